"""Settings and presets of first-order methods."""

import dataclasses

from spiel_cr.common.checks import check_choice


@dataclasses.dataclass(frozen=True)
class FirstOrderConfig:
    """Settings of a first-order method.

    Attributes:
      name: Name of the algorithm, for messages.
      method: Method, also in checkpoints: "pdhg" (`primal_dual`), "egt"
        (`excessive_gap`) or "smoothing" (`iterated_smoothing`).
    """

    name: str = dataclasses.field(default="pdhg", compare=False)
    method: str = dataclasses.field(default="pdhg", metadata={"fixed": True})


@dataclasses.dataclass(frozen=True)
class ExcessiveGapConfig(FirstOrderConfig):
    """Settings of the excessive gap technique.

    Attributes:
      name: Name of the algorithm, for messages.
      method: Method, always "egt".
      prox: Prox function of the simplices: "euclidean", the squared Euclidean distance,
        or "entropy".
      aggressive: Whether the first μ is as small, and steps are as long, as the
        excessive gap condition permits. Otherwise the theory gives both.
      balancing: Whether each step reduces the larger of both smoothing parameters.
        Otherwise players alternate.
    """

    prox: str = "euclidean"
    aggressive: bool = True
    balancing: bool = True

    def __post_init__(self) -> None:
        check_choice(self.prox, "prox", ("euclidean", "entropy"))


PRESETS: dict[str, FirstOrderConfig] = {
    "pdhg": FirstOrderConfig(),
    "egt": ExcessiveGapConfig("egt", "egt"),
    "iterated-smoothing": FirstOrderConfig("iterated-smoothing", "smoothing"),
}
