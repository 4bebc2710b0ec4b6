"""Settings of the training of value networks."""

import dataclasses

from spiel_cr.cfr.config import parse_algorithm
from spiel_cr.common.checks import check_number, check_seed, check_whole


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How a value network is trained.

    Training has 1 + `rounds` phases of `steps` steps each. The first has random ranges.
    Before each later one the game is resolved with the network so far; the ranges that
    this met are solved, too, and join the data.

    Attributes:
      hidden: units of every layer.
      blocks: residual layers of the decoder.
      random_ranges: pairs of random ranges for every public state.
      met_ranges: pairs of ranges that the resolver met, in every round.
      rounds: how often the game is resolved.
      pure: share of pure random ranges.
      met_share: share of ranges that the resolver met in a batch, once there are any.
      label_iterations: of the solves that make targets.
      label_algorithm: of these solves.
      met_iterations: of each solve where the game is resolved.
      met_algorithm: of these solves.
      looks: how often a solve's ranges are noted.
      steps: of Adam, in each phase.
      batch: pairs of ranges of every public state in a step.
      learning_rate: at first; falls to 0 along a cosine.
      average: weight that the moving average of the parameters keeps in a step.
      delta: errors beyond it count linearly (Huber), in units of the largest utility.
      held_out: share of the random and of the met ranges that only validate; of each
        kind at least one pair does, and one is learned from.
      seed: of everything random.
    """

    hidden: int = 64
    blocks: int = 2
    random_ranges: int = 256
    met_ranges: int = 192
    rounds: int = 12
    pure: float = 0.1
    met_share: float = 0.9
    label_iterations: int = 300
    label_algorithm: str = "cfr+"
    met_iterations: int = 500
    met_algorithm: str = "cfr+"
    looks: int = 60
    steps: int = 500
    batch: int = 16
    learning_rate: float = 2e-3
    average: float = 0.998
    delta: float = 0.02
    held_out: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError for a bad setting."""
        for name in ("hidden", "label_iterations", "met_iterations", "looks", "steps"):
            check_whole(getattr(self, name), name, 1)
        for name in ("random_ranges", "met_ranges", "batch"):
            check_whole(getattr(self, name), name, 2)
        for name in ("blocks", "rounds"):
            check_whole(getattr(self, name), name, 0, 1000)
        for name in ("pure", "met_share"):
            check_number(getattr(self, name), name, "[0, 1]")
        check_number(self.average, "average", "[0, 1)")
        check_number(self.held_out, "held_out", "(0, 1)")
        for name in ("learning_rate", "delta"):
            check_number(getattr(self, name), name, "(0, inf)")
        for name in ("label_algorithm", "met_algorithm"):
            parse_algorithm(getattr(self, name))
        check_seed(self.seed)
