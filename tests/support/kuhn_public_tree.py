"""Kuhn poker as a public-tree game, written by hand from its rules."""

import functools

import numpy as np
import pyspiel

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import SparseMatrix
from spiel_cr.games.public_tree.public_nodes import Betting, LeafTerms
from spiel_cr.games.sequence_form.decisions import Payoffs

PASS, BET = 0, 1
# Parent, action, player; then the chips won and the winner (-1: a showdown).
_NODES = (
    (-1, -1, 0),
    (0, PASS, 1),
    (0, BET, 1),
    (1, PASS, TERMINAL, 1, -1),
    (1, BET, 0),
    (2, PASS, TERMINAL, 1, 0),
    (2, BET, TERMINAL, 2, -1),
    (4, PASS, TERMINAL, 1, 1),
    (4, BET, TERMINAL, 2, -1),
)
CARDS = "JQK"


class Reader:
    """A reader whose private states are cards."""

    def private_state(self, state: pyspiel.State, player: int) -> int:
        return int(state.history()[player])

    def name(self, player: int, round: int, private_state: int) -> str:
        return CARDS[private_state]


@functools.cache
def kuhn() -> PublicTreeGame:
    """Return the public-tree game, whose only round follows the deal of both cards."""
    betting = Betting(
        player=np.array([row[2] for row in _NODES], np.int8),
        parent=np.array([row[0] for row in _NODES], np.int32),
        action=np.array([row[1] for row in _NODES], np.int32),
        round=np.zeros(len(_NODES), np.int8),
    )
    ends = [(node, *row[3:]) for node, row in enumerate(_NODES) if len(row) > 3]
    first, second = np.nonzero(1 - np.eye(3))
    won = np.sign(first - second) / 6
    pairs = [index.astype(np.int32) for index in (first, second)]
    payoff_matrices = tuple(
        SparseMatrix(0, (3, 3), Payoffs(*pairs, values))
        for values in (won, np.full(6, 1 / 6))
    )
    terms = LeafTerms(
        leaf=np.array([node for node, _, _ in ends], np.int32),
        matrix=np.array([int(who >= 0) for _, _, who in ends], np.int32),
        stake=np.array(
            [chips * (-1 if who == 1 else 1) for _, chips, who in ends], float
        ),
    )
    none = (np.zeros(3, np.int32),)
    return PublicTreeGame(
        pyspiel.load_game("kuhn_poker"),
        betting,
        (none, none),
        payoff_matrices,
        terms,
        Reader(),
    )
