"""Protocols of represented games, on which solvers, policies and evaluations rely.

A *form* is a game in arrays: a game tree, a public tree, or the worlds of a phantom
game. Its infosets are numbered separately for each player, and its sequences are
numbered as in `Decisions`. Optional abilities are separate protocols, because not every
form has them.
"""

from typing import ClassVar, Protocol

import numpy as np
import pyspiel

from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.tree import GameTree


class GameForm(Protocol):
    """A represented two-player zero-sum game with numbered infosets."""

    @property
    def game(self) -> pyspiel.Game:
        """Sequential OpenSpiel game."""

    @property
    def kind(self) -> str:
        """Name of the form for messages and files; never compared."""

    @property
    def tree(self) -> GameTree | None:
        """The form itself if it is a game tree, which lists all histories."""

    @property
    def decisions_id(self) -> str:
        """Hash of infosets and legal actions; equal if a policy fits both games."""

    @property
    def game_id(self) -> str:
        """Hash of all data that affect values; equal if a result fits both games."""

    @property
    def decisions(self) -> tuple[Decisions, Decisions]:
        """Decision points of both players."""

    def label(self, player: int, infoset: int) -> str:
        """Return a readable name of an infoset, unique among those of its player."""

    def infoset_of(self, state: pyspiel.State) -> tuple[int, int]:
        """Return the acting player at a state, and the number of its infoset.

        Raises:
          ValueError: If no player acts at the state, or the state is of another game.
        """

    def actions(self, player: int, infoset: int) -> np.ndarray:
        """Return OpenSpiel's legal actions at an infoset, integers [A], ascending."""


class HasSequenceForm(GameForm, Protocol):
    """A form whose payoffs couple the sequences of both players."""

    # Whether policies keep the data type of their solver; otherwise they are float64.
    keeps_dtype: ClassVar[bool]

    @property
    def sequence_form(self) -> SequenceForm:
        """Game in sequence form."""

    @property
    def payoff_range(self) -> tuple[float, float]:
        """Bounds of player 0's payoffs; exact if histories are enumerated."""
