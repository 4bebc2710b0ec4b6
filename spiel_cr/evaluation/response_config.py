"""Settings of a response: how it is found, and how it is measured."""

import dataclasses

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_choice, check_iterations, check_whole
from spiel_cr.evaluation.responses.ismcts_config import SearchConfig
from spiel_cr.players.fixed_policies import FixedPolicy
from spiel_cr.players.poker_roles import NotPokerError
from spiel_cr.policies.beliefs.state_posterior import PARTICLES

METHODS = ("exact", "ismcts", "lbr", "learned")

Behaviours = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class ResponseConfig:
    """How a response is found and measured.

    Attributes:
      method: one of `METHODS`.
      search: settings of "ismcts", and of the searches of "learned".
      leaf: of "lbr", see `local_best_response.LEAVES`; None: "call" in poker, else
        "uniform".
      rollouts: of "lbr" where the game is not compiled, per decision.
      rounds: of "learned", of episodes and training.
      matches: to estimate the value by, two or more.
      max_histories: of exact beliefs on states; larger ones are approximated.
      particles: of approximate beliefs.
      luck_rollouts: after each move of chance and the opponent and one drawn in its
        place, for the control variate of matches on states; 0: plain returns.
      seed: of searches and matches.
    """

    method: str = "ismcts"
    search: SearchConfig = SearchConfig()
    leaf: str | None = None
    rollouts: int = 1000
    rounds: int = 20
    matches: int = 1000
    max_histories: int = 100_000
    particles: int = PARTICLES
    luck_rollouts: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.method, "method", METHODS)
        check_iterations(self.rounds, name="rounds")
        check_iterations(self.rollouts, name="rollouts")
        check_iterations(self.max_histories, name="max_histories")
        check_iterations(self.particles, name="particles")
        check_whole(self.luck_rollouts, "luck_rollouts", 0)
        # An interval needs two.
        check_whole(self.matches, "matches", 2)

    def leaf_for(self, game: pyspiel.Game) -> str:
        """How local best response plays after its action."""
        try:
            FixedPolicy(game, "always_call")
        except NotPokerError:
            return self.leaf or "uniform"
        return self.leaf or "call"
