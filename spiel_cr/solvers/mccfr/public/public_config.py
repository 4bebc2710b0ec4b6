"""Names and settings of public sampling, as `name(parameter=value)`."""

import dataclasses
import math

from spiel_cr.common.checks import Wanted, check_settings
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
    """One member of the family. An iteration is a trajectory and an update per player.

    Attributes:
      name: for people; two configurations that differ in name only are equal.
      rule: what happens to regrets: `alpha` infinite, `beta` -inf (regret matching+) or
        inf, not predictive.
      gamma: iteration t enters the average strategy with weight t^gamma.
      scheme: which public actions of the updating player a trajectory follows:
        "outcome" one, "external" all.
      epsilon: outcome sampling: share of uniform sampling at the updating player's
        decisions; else an action is drawn as often as the player's hands play it.
      epsilon_other: the same at the other player's decisions.
      baseline: "average": the mean of sampled values per unit of what is at stake, for
        each public action, public card and hand (Schmid et al. 2019); "none".
      decay: how much of a baseline one sample replaces.
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
                f"{changed[0]}: public sampling updates visited infosets only, so old "
                f"regrets cannot fade; leave it out"
            )


# `public-vr` and `public-vr+` have the settings of Schmid et al. 2019: everybody's
# actions are drawn uniformly, baselines are averages of decay 0.5; the latter has
# regret matching+ and linear averages.
PRESETS: dict[str, PublicConfig] = {
    preset.name: preset
    for preset in (
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
}
