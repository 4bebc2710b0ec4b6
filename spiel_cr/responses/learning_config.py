"""Settings of learned best responses, their opponents, and what is recorded."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from spiel_cr.common.checks import check_iterations
from spiel_cr.responses.ismcts_config import SearchConfig


@dataclasses.dataclass(frozen=True)
class LearningConfig:
    """How a response is learned.

    Attributes:
      search: of each decision in an episode, and of the final response.
      episodes: of a round.
      noise: share of Dirichlet noise in the prior where a search begins.
      concentration: of the Dirichlet distribution, of each action.
      temperature: episodes choose actions with visits ** (1 / temperature); 0: the most
        visited one.
      hidden: units of the network's hidden layers.
      steps: of the optimiser (Adam) in a round.
      minibatch: samples of a step, drawn with replacement from the replay buffer.
      learning_rate: Adam's.
      l2: weight of the parameters' squares in the loss.
      replay: samples (decisions of episodes) that the buffer keeps, the newest ones. It
        is emptied when the opponent changes: what was right against one is wrong
        against the next.
      evaluate_every: rounds between two points of the curve; the last round of each
        opponent always has one.
    """

    search: SearchConfig = SearchConfig(simulations=100)
    episodes: int = 256
    noise: float = 0.25
    concentration: float = 0.3
    temperature: float = 1.0
    hidden: tuple[int, ...] = (128, 128)
    steps: int = 200
    minibatch: int = 256
    learning_rate: float = 1e-3
    l2: float = 1e-5
    replay: int = 20_000
    evaluate_every: int = 1

    def __post_init__(self) -> None:
        for name in ("episodes", "steps", "minibatch", "replay", "evaluate_every"):
            check_iterations(getattr(self, name), name=name)
        if self.search.learn:
            raise ValueError(
                f"search.learn={self.search.learn} learns a table; here a network "
                f"learns: leave it 0"
            )
        if self.search.posterior != "exact":
            raise ValueError(
                f"search.posterior={self.search.posterior!r}: learning needs 'exact'"
            )
        for units in self.hidden:
            check_iterations(units, name="hidden")
        if not 0 <= self.noise <= 1:
            raise ValueError(f"noise={self.noise!r} must lie in [0, 1]")
        for name in ("concentration", "learning_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name}={getattr(self, name)!r} must be positive")
        for name in ("temperature", "l2"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name}={getattr(self, name)!r} must be 0 or more")


class Stage(NamedTuple):
    """One opponent of the curriculum.

    Attributes:
      name: for the curve.
      behaviour: float64 [S'], its action probabilities, as from
        `policy.behaviour_from_policy`.
      rounds: of episodes and learning.
    """

    name: str
    behaviour: np.ndarray
    rounds: int


class LearningPoint(NamedTuple):
    """How good the response is; values in the responder's utility, exact.

    Attributes:
      stage: place of the opponent in the curriculum.
      opponent: its name.
      round: rounds so far, over all opponents; 0: nothing has been learned.
      episodes: played so far.
      simulations: run so far in episodes.
      network_value: of the network's likeliest actions, without search.
      search_value: of the response that a search with the network finds.
      exact_value: of a best response.
      loss: mean of the last round, None before the first one.
      policy_loss: its cross-entropy.
      value_loss: its squared error.
    """

    stage: int
    opponent: str
    round: int
    episodes: int
    simulations: int
    network_value: float
    search_value: float
    exact_value: float
    loss: float | None = None
    policy_loss: float | None = None
    value_loss: float | None = None

    def share(self, value: float) -> float | None:
        """A value as share of the exact one; None where that is not positive."""
        return value / self.exact_value if self.exact_value > 0 else None
