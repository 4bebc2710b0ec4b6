"""Names and settings of first-order methods, as `name(parameter=value)`."""

import dataclasses
import math

from spiel_cr.common.checks import (
    Wanted,
    check_choice,
    check_number,
    check_settings,
)

# How infosets weigh in regularisers, see `regularisers.make_weights`.
WEIGHTS = ("one", "height", "balanced")


@dataclasses.dataclass(frozen=True)
class EGTConfig:
    """The excessive gap technique, see `excessive_gap`.

    Attributes:
      name: for people.
      weights: of infosets in the dilated entropy, one of `WEIGHTS`.
      first_share: τ of the first step that is tried, and the longest.
      growth: what τ is multiplied by after a step.
      shrinkage: what it is multiplied by where the excessive gap condition fails.
    """

    name: str = dataclasses.field(compare=False)
    weights: str = "balanced"
    first_share: float = 0.5
    growth: float = 1.0
    shrinkage: float = 0.5

    def __post_init__(self) -> None:
        check_choice(self.weights, "weights", WEIGHTS)
        check_number(self.first_share, "first_share", "(0, 1)")
        check_number(self.growth, "growth", "[1, inf)")
        check_number(self.shrinkage, "shrinkage", "(0, 1)", why="or no step ends")


@dataclasses.dataclass(frozen=True)
class SmoothingConfig:
    """Iterated smoothing, see `smoothing`.

    Attributes:
      name: for people.
      weights: of infosets in the dilated Euclidean distance, one of `WEIGHTS`.
      factor: what ε is divided by from round to round.
    """

    name: str = dataclasses.field(compare=False)
    weights: str = "height"
    factor: float = math.e

    def __post_init__(self) -> None:
        check_choice(self.weights, "weights", WEIGHTS)
        check_number(self.factor, "factor", "(1, inf)", why="or ε does not fall")


@dataclasses.dataclass(frozen=True)
class PDHGConfig:
    """Restarted primal-dual hybrid gradient, see `primal_dual`.

    Attributes:
      name: for people.
      check: steps between two looks at the KKT error.
      sufficient: restart where the error has decayed to this share.
      necessary: restart where it has decayed to this share, and rises.
      longest: restart after this share of all steps without a restart.
      rounds: of scaling.
      draws: random vectors for each round of scaling.
    """

    name: str = dataclasses.field(compare=False)
    check: int = 64
    sufficient: float = 0.2
    necessary: float = 0.8
    longest: float = 0.36
    rounds: int = 10
    draws: int = 16

    def __post_init__(self) -> None:
        wanted: Wanted = {
            "check": range(1, 1_000_001),
            "sufficient necessary": "(0, 1)",
            "longest": "(0, 1]",
            "rounds": range(1001),
            "draws": range(1, 10_001),
        }
        check_settings(self, wanted)


FirstOrderConfig = EGTConfig | SmoothingConfig | PDHGConfig

PRESETS: dict[str, FirstOrderConfig] = {
    preset.name: preset
    for preset in (
        EGTConfig("egt"),
        SmoothingConfig("iterated-smoothing"),
        PDHGConfig("pdhg"),
    )
}
