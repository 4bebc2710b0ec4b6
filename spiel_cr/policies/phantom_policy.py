"""Strategies of hidden-board games: as OpenSpiel policies, and of any policy."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.phantom.phantom_world_rules import PhantomWorldRules
from spiel_cr.policies.conversions import (
    StatePolicy,
    check_numbers,
    odd_infoset,
)


class PhantomPolicy(StatePolicy):
    """Action probabilities by what a player did and was told, for both players.

    A state is looked up by its history, so also where its strings forget.

    Attributes:
      worlds: the game.
      behaviour: for each player float64 or float32 [S], by logical sequence.
    """

    def __init__(self, worlds: PhantomGame, behaviour: Sequence[np.ndarray]) -> None:
        """Takes the probabilities as they are, without a copy.

        Raises:
          ValueError: they are of another size or type, or no probabilities.
        """
        super().__init__(worlds.game)
        self.worlds = worlds
        for player, side in enumerate(worlds.sides):
            given, whose = behaviour[player], f"behaviour of player {player}"
            check_numbers(given, side.decisions.num_sequences, whose)
            if odd_infoset(given[1:], side.decisions.first_sequence - 1) is not None:
                raise ValueError(
                    f"{whose}: at some infoset the probabilities are negative or do "
                    f"not sum to 1"
                )
        self.behaviour = behaviour[0], behaviour[1]

    @property
    def form(self) -> PhantomGame:
        """The game."""
        return self.worlds

    @functools.cached_property
    def rules(self) -> PhantomWorldRules:
        """Batched rules by which it is queried."""
        return PhantomWorldRules(self.worlds)

    def array_probabilities(
        self, rules: Any, rows: np.ndarray, player: int
    ) -> np.ndarray:
        """Return float64 [n, A] at states of `rules`; raises ValueError for others."""
        if not isinstance(rules, PhantomWorldRules):
            raise ValueError(
                f"policy of {self.game}: it has rules of its own; use them"
            )
        return rules.probabilities(self.behaviour[player], rows, player)

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`."""
        _, infoset = self.worlds.infoset_of(state)
        actions = self.worlds.actions(player, infoset)
        first = int(self.worlds.first_sequences[player][infoset])
        played = self.behaviour[player][first : first + len(actions)]
        odds = played.astype(np.float64)
        return dict(zip(actions.tolist(), (odds / odds.sum()).tolist(), strict=True))
