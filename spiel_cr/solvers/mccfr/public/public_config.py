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
    """A member of the family. An iteration has a trajectory and an update per player.

    Attributes:
      name: Name for messages; configurations that differ only in it are equal.
      rule: Regret rule: `alpha` infinite, `beta` -inf (regret matching+) or inf, not
        predictive.
      gamma: Exponent of averaging: iteration t has weight t^gamma.
      scheme: Public actions of the updating player that a trajectory follows: "outcome"
        one, "external" all.
      epsilon: Share of uniform sampling at the updating player's decisions in outcome
        sampling; otherwise an action is drawn as often as the player's hands play it.
      epsilon_other: The same at the other player's decisions.
      baseline: "average": the mean of sampled values per unit of what is at stake, for
        each public action, public card and hand (Schmid et al. 2019); or "none".
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
