"""The command `algorithms`: list the algorithms of solve, resolve and spot.

algorithms, whose settings can be given in parentheses, as in 'dcfr(alpha=1.5,gamma=2)':
  auto           algorithm chosen by the form of the game, its size and the budget
  cfr            counterfactual regret minimization (Zinkevich et al. 2007)
  cfr+           CFR with regret matching+ and linear averages (Tammelin 2014)
  lcfr           CFR with linear weights of regrets and averages (Brown & Sandholm 2019)
  dcfr           discounted CFR (Brown & Sandholm 2019)
  hs-dcfr        discounted CFR with scheduled discounts (Zhang et al. 2024)
  dcfr+          discounted CFR without negative regrets (Xu et al. 2024)
  pcfr+          predictive CFR+ (Farina et al. 2021)
  pcfr+30        predictive CFR+ with averages weighted by t^30 (Farina et al. 2021)
  sapcfr+        predictive CFR+ with half a prediction (Meng et al. 2025)
  pdcfr+         predictive and discounted CFR+ (Xu et al. 2024)
  vad-cfr        discounts by the volatility of regrets (Li et al. 2026)
  os-mccfr       outcome-sampling Monte Carlo CFR (Lanctot et al. 2009)
  es-mccfr       external-sampling Monte Carlo CFR (Lanctot et al. 2009)
  as-mccfr       average-strategy sampling, Monte Carlo CFR (Gibson et al. 2012)
  vr-mccfr       outcome sampling with baselines (Schmid et al. 2019)
  vr-mccfr+      vr-mccfr with regret matching+ and linear averages
  evr-mccfr      outcome sampling with expected-value baselines (Davis et al. 2020)
  pcs            public chance sampling, hands in buckets (Johanson et al. 2012)
  pdhg           primal-dual hybrid gradient, sequence form (Applegate et al. 2021)
  egt            excessive gap technique on the sequence form (Hoda et al. 2010)
  iterated-smoothing
                 gradient descent on smoothed NashConv (Gilpin et al. 2012)
  public-es      external sampling of public actions and cards, for all hands at once
  public-vr      outcome sampling of public actions and cards, with baselines
  public-vr+     public-vr with regret matching+ and linear averages
  deep-cfr       deep CFR with an average-policy network (Brown et al. 2019)
  sd-cfr         single deep CFR: average of stored networks (Steinberger 2019)
  dream          deep CFR by outcome sampling with baselines (Steinberger et al. 2020)
  escher         deep CFR without importance sampling (McAleer et al. 2022)
  vr-deep-dcfr+  deep CFR with baselines and discounting (Xu et al. 2025)
  vr-deep-pdcfr+ vr-deep-dcfr+ with predictions (Xu et al. 2025)
  mmd            magnetic mirror descent in self-play (Sokota et al. 2023)
  lp             linear programs, one for each player (Koller et al. 1996)

With --json, the output also contains the families and the names of their settings.
"""

import dataclasses
import re

from spiel_cr.common.parameters import table_of
from spiel_cr.solvers.algorithms import ALGORITHMS

from .command import Arguments

_LINE = re.compile(r"^  (\S+)\s+(.+)$", re.MULTILINE)


@dataclasses.dataclass
class AlgorithmsOptions:
    """The command has only the general options."""


def run(arguments: Arguments) -> dict[str, object]:
    """List the algorithms."""
    descriptions = dict(_LINE.findall(__doc__ or ""))
    rows: list[dict[str, object]] = []
    for name, family in ALGORITHMS.items():
        preset, description = family.presets[name], descriptions[name]
        is_table = dataclasses.is_dataclass(preset)
        print(f"{name:<19}{description}")
        row = {"name": name, "family": family.name, "description": description}
        row["settings"] = list(table_of(type(preset))) if is_table else []
        rows.append(row)
    return {"algorithms": rows}
