"""Settings of the training of value networks, as `name(parameter=value)`."""

import dataclasses

from spiel_cr.common.checks import Wanted, check_seed, check_settings
from spiel_cr.solvers.algorithms import CFR, find

# What settings must be.
_WANTED: Wanted = {
    "hidden label_iterations met_iterations looks steps": range(1, 2**31),
    "random_ranges met_ranges batch": range(2, 2**31),
    "blocks pairs rounds": range(1001),
    "pure met_share": "[0, 1]",
    "recency matrix_rate": "[0, inf)",
    "average": "[0, 1)",
    "held_out": "(0, 1)",
    "learning_rate delta": "(0, inf)",
}


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How a value network is trained.

    Training has 1 + `rounds` phases of `steps` steps each. The first has random ranges.
    Before each later one the game is resolved with the network so far; the ranges that
    this met are solved, too, and join the data.

    Attributes:
      hidden: units of every layer.
      blocks: residual layers of the decoder.
      pairs: rank of what pairs of infosets are worth, see `set_network`; 0: each
        player's infosets are valued alone.
      random_ranges: pairs of random ranges for every public state.
      met_ranges: pairs of ranges that the resolver met, in every round.
      rounds: how often the game is resolved.
      pure: share of pure random ranges.
      met_share: share of ranges that the resolver met in a batch, once there are any.
      recency: a range in a batch that was met in round k is chosen with probability in
        proportion to k^recency; 0: every round counts alike.
      label_iterations: of the solves that make targets.
      label_algorithm: of these solves.
      met_iterations: of each solve where the game is resolved.
      met_algorithm: of these solves.
      looks: how often a solve's ranges are noted.
      steps: of the optimiser, in each phase.
      batch: pairs of ranges of every public state in a step.
      learning_rate: of Adam at first; falls to 0 along a cosine.
      matrix_rate: at first, of Muon (Jordan et al. 2024), which then fits matrices, and
        Adam the rest; falls likewise. 0: Adam fits all.
      average: weight that the moving average of the parameters keeps in a step.
      delta: errors beyond it count linearly (Huber), in units of the largest utility.
      held_out: share of the random and of the met ranges that only validate; of each
        kind at least one pair does, and one is learned from.
      seed: of everything random.
    """

    hidden: int = 64
    blocks: int = 2
    pairs: int = 0
    random_ranges: int = 256
    met_ranges: int = 192
    rounds: int = 12
    pure: float = 0.1
    met_share: float = 0.9
    recency: float = 0.0
    label_iterations: int = 300
    label_algorithm: str = "cfr+"
    met_iterations: int = 500
    met_algorithm: str = "cfr+"
    looks: int = 60
    steps: int = 500
    batch: int = 16
    learning_rate: float = 2e-3
    matrix_rate: float = 0.0
    average: float = 0.998
    delta: float = 0.02
    held_out: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError for a bad setting."""
        check_settings(self, _WANTED)
        for name in ("label_algorithm", "met_algorithm"):
            find(getattr(self, name), families=(CFR,))
        check_seed(self.seed)

    @property
    def total_steps(self) -> int:
        """Steps of the optimiser, of all phases."""
        return self.steps * (1 + self.rounds)


# By the games that they were chosen for; docs/leaves.md says how far they come.
PRESETS: dict[str, TrainingConfig] = {
    "general": TrainingConfig(),
    "leduc": TrainingConfig(
        hidden=128,
        pairs=32,
        recency=1.0,
        met_iterations=1000,
        rounds=8,
        steps=400,
        matrix_rate=0.01,
    ),
    "goofspiel": TrainingConfig(
        hidden=128,
        pairs=32,
        met_ranges=256,
        met_share=0.85,
        recency=1.0,
        label_algorithm="pcfr+",
        met_iterations=500,
        rounds=10,
        steps=600,
        matrix_rate=0.01,
        delta=0.05,
    ),
    "liars-dice": TrainingConfig(met_iterations=300),
    "liars-dice-large": TrainingConfig(
        hidden=96,
        random_ranges=160,
        met_ranges=160,
        met_share=0.85,
        met_iterations=400,
        rounds=10,
        steps=600,
        batch=12,
    ),
}
