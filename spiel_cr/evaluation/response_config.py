"""Settings of a response: how it is found, and how it is measured."""

import dataclasses

import numpy as np
import pyspiel

from spiel_cr.common.checks import (
    check_choice,
    check_iterations,
    check_number,
    check_whole,
)
from spiel_cr.players import opponents
from spiel_cr.players.poker_roles import NotPokerError
from spiel_cr.policies.beliefs.state_posterior import PARTICLES

METHODS = ("exact", "ismcts", "lbr", "learned")

Behaviours = tuple[np.ndarray, np.ndarray]


HISTORIES = ("all", "drawn")


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How ISMCTS-BR searches (Timbers et al. 2022, Algorithms 1 and 2).

    Attributes:
      simulations: from each information state that is searched.
      learn: simulations from *every* information state that the opponent's play can
        lead to, from the last decisions to the first, before those: what follows an
        action has then been searched before it is tried, a value function learned as a
        table. On compiled games only; 0: none.
      exploration: c of PUCT, in units of half the range of the game's utilities: an
        action a at s is worth Q(s, a) + c P(a | s) sqrt(N(s)) / (1 + N(s, a)).
      batch: on compiled games, at most this many simulations side by side, rounded
        down to a power of two; 1 is the textbook algorithm, slow. Fewer are used while
        few information states are searched.
      histories: on states, what a simulation follows: "all", the whole belief of an
        information state with all that the opponent and chance may do, where the belief
        is small enough (`belief_search.py`); "drawn", one history, as in the
        paper, with moves that are drawn. Where beliefs are too large, it is "drawn" in
        any case.
      max_nodes: on states, most information states in the tree. A full tree does not
        grow; if it is full when a search begins, it is dropped first. With "all", what
        follows an information state joins the tree as a whole, and may overfill it.
    """

    simulations: int = 1000
    learn: int = 0
    exploration: float = 4.0
    batch: int = 4096
    max_nodes: int = 200_000
    histories: str = "all"

    def __post_init__(self) -> None:
        for name in ("simulations", "batch", "max_nodes"):
            check_iterations(getattr(self, name), name=name)
        if self.learn:
            check_iterations(self.learn, name="learn")
        check_number(self.exploration, "exploration", "(0, inf)")
        check_choice(self.histories, "histories", HISTORIES)


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
            opponents.chump(game, "always_call")
        except NotPokerError:
            return self.leaf or "uniform"
        return self.leaf or "call"
