"""Names and settings of public sampling, as `name(parameter=value)`."""

import dataclasses
import math

from spiel_cr.common.checks import Wanted, check_settings
from spiel_cr.common.parameters import by_name
from spiel_cr.solvers.cfr.regret_matching import Rule

_WANTED: Wanted = {
    "scheme": ("outcome", "external"),
    "baseline": ("none", "average"),
    "epsilon_other": "[0, 1]",
    "decay": "(0, 1]",
    "gamma": "[0, 5]",
    "epsilon": "(0, 1]",
}


@dataclasses.dataclass(frozen=True)
class PublicConfig:
    """Settings of a public sampling algorithm.

    An iteration samples a trajectory and performs an update for each player.

    Attributes:
      name: Name for messages; configurations that differ only in it are equal.
      rule: Regret rule: `alpha` infinite, `beta` -inf (regret matching+) or inf, not
        predictive.
      gamma: Exponent of averaging: iteration t has weight t^gamma.
      scheme: Public actions of the updating player that a trajectory follows: "outcome"
        one, "external" all.
      epsilon: Share of uniform sampling at the updating player's decisions in outcome
        sampling; the rest follows the current strategy, averaged over the hands by
        reach.
      epsilon_other: Share of uniform sampling at the other player's decisions.
      baseline: Kind of baseline: "average", the mean of sampled values per unit of
        stake for each public action, public card and hand (Schmid et al. 2019), or
        "none".
      decay: Share of a baseline that one sample replaces.
    """

    name: str = dataclasses.field(compare=False)
    rule: Rule = Rule()
    gamma: float = 0.0
    scheme: str = dataclasses.field(default="outcome", metadata={"fixed": True})
    epsilon: float = 0.6
    epsilon_other: float = 0.0
    baseline: str = "none"
    decay: float = 0.5

    def __post_init__(self) -> None:
        check_settings(self, _WANTED)
        if changed := self.rule.touches_all:
            raise ValueError(
                f"{changed[0]}: public sampling updates visited infosets only, so "
                f"old regrets cannot be discounted; remove this setting"
            )


# `public-vr` and `public-vr+` have the settings of Schmid et al. 2019: actions of both
# players are sampled uniformly, and baselines are averages with decay 0.5. `public-vr+`
# also uses regret matching+ and linear averaging.
PRESETS: dict[str, PublicConfig] = by_name(
    PublicConfig("public-es", scheme="external"),
    PublicConfig("public-vr", baseline="average", epsilon=1.0, epsilon_other=1.0),
    PublicConfig(
        "public-vr+",
        Rule(beta=-math.inf),
        gamma=1.0,
        baseline="average",
        epsilon=1.0,
        epsilon_other=1.0,
    ),
)
