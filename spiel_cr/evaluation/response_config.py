"""Settings of the computation and evaluation of a response."""

import dataclasses

import numpy as np
import pyspiel

from spiel_cr.common.checks import COUNT, check_settings
from spiel_cr.players.fixed_policies import FixedPolicy, NotPokerError
from spiel_cr.policies.beliefs.state_posterior import PARTICLES

# The methods that find responses, for `best_response` and `exploit`.
METHODS = {
    "exact": "best response, if the game can be represented in memory",
    "ismcts": "ISMCTS-BR, a search from the responder's belief",
    "lbr": "local best response, a lookahead of one action",
    "learned": "ISMCTS-BR with a network that is trained first",
    "search": "search of all beliefs, from the start of the game to its end",
    "table": "table of the responder's infosets, learned in matches",
}
RESPONSE_METHODS = ("exact", "ismcts", "lbr", "learned")
EXPLOIT_METHODS = ("exact", "search", "table")

Behaviours = tuple[np.ndarray, np.ndarray]


HISTORIES = ("all", "drawn")


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """Settings of the search of ISMCTS-BR (Timbers et al. 2022, Algorithms 1 and 2).

    Attributes:
      simulations: Number of simulations from each information state that is searched.
      learn: Number of simulations from every information state, from the last decisions
        to the first, before the search itself: what follows an action has then been
        searched before the action is tried, a value function learned as a table. Game
        trees only; 0: none.
      exploration: Exploration constant c of PUCT, in units of half the range of the
        game's utilities: an action a at s has the score Q(s, a) + c P(a | s) sqrt(N(s))
        / (1 + N(s, a)).
      batch: Maximum number of parallel simulations on game trees, rounded down to a
        power of two; 1 is the textbook algorithm, which is slow. Fewer are used while
        few information states are searched.
      histories: Histories that a simulation follows in games without a game tree: all
        histories of the belief of an information state, with every action of the
        opponent and chance, if the belief is small enough (`belief_search.py`), or
        drawn histories, as in the paper. Large beliefs are always drawn.
      max_nodes: Maximum number of information states in the search tree without a game
        tree. A full tree does not grow; if it is full when a search begins, it is
        emptied first. With "all", the successors of an information state are added
        together and may exceed the maximum.
    """

    simulations: int = 1000
    learn: int = 0
    exploration: float = 4.0
    batch: int = 4096
    max_nodes: int = 200_000
    histories: str = "all"

    def __post_init__(self) -> None:
        check_settings(self, {"simulations batch max_nodes": COUNT})
        if self.learn:
            check_settings(self, {"learn": COUNT})
        check_settings(self, {"exploration": "(0, inf)", "histories": HISTORIES})


@dataclasses.dataclass(frozen=True)
class ResponseConfig:
    """Settings of a response: how it is computed, and how it is evaluated.

    Attributes:
      method: Method that computes the response: one of `RESPONSE_METHODS`.
      search: Settings of "ismcts", and of the searches of "learned".
      leaf: Default policy of lbr after its action. If None, call in poker, otherwise
        uniform.
      rollouts: Number of rollouts of lbr per decision, in games without a game tree.
      rounds: Number of rounds of learned, each with searched episodes and training.
      matches: Number of matches per player that estimate a value that is not exact.
      max_histories: Maximum number of histories in an exact belief. Larger beliefs are
        approximated.
      particles: Number of histories in an approximate belief.
      luck_rollouts: Number of rollouts for the control variate of matches without a
        game tree, after each action of chance and the opponent and after an alternative
        action; 0: no control variate.
      seed: Seed for all random choices.

    Example:
      >>> import spiel_cr
      >>> config = spiel_cr.ResponseConfig(method="lbr", matches=100)
      >>> response = spiel_cr.best_response("kuhn_poker", "uniform", 0, config)
      >>> 0 < response.value <= 0.5
      True
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
        check_settings(self, {"method": RESPONSE_METHODS})
        check_settings(self, {"rounds rollouts max_histories particles": COUNT})
        # A confidence interval needs two matches.
        check_settings(
            self, {"luck_rollouts": range(2**31), "matches": range(2, 2**31)}
        )

    def leaf_for(self, game: pyspiel.Game) -> str:
        """Return the default policy of local best response after its action."""
        try:
            FixedPolicy(game, "always_call")
        except NotPokerError:
            return self.leaf or "uniform"
        return self.leaf or "call"
