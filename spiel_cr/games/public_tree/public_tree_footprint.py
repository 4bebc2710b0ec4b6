"""How much memory solving a signal game will take.

Told by the sizes of the game alone: nothing large is allocated. The factors were fitted
to peaks of processes on CPUs (docs/measurements/public-tree.md).
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.hand_operators import KEPT
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix, PayoffMatrix

# What a process holds that solves the smallest game; and of XLA, for all programs, for
# each kind of decision, which becomes a block of arrays.
_BASE, _KIND = 350e6, 6.3e6
# For each infoset the tolerance, on the host and cast, and what judging holds; for each
# sequence logical numbers while a result is made.
_INFOSET, _SEQUENCE = 16, 8
# How often the state is there at the peak: itself, and what an iteration works with.
_STATES = 1.6
# Best responses: float64 vectors over sequences that are there at once.
_VECTORS = 1
# How often the game's arrays are there: as declared, laid out for both players, cast.
_GAMES = 3
# Of matrices of hands, for each hand: laid out for both players, on the host and cast;
# and the hands that it is compared with, one by one.
_HAND, _BLOCK = 120, 64


class Size(NamedTuple):
    """What a player's part of a signal form is made of.

    Attributes:
      infosets: I.
      sequences: S, the empty one included.
    """

    infosets: int
    sequences: int


def size_of(signals: PublicTreeGame, player: int) -> Size:
    """Infosets and sequences of a player in the signal form."""
    decisions = signals.public_decisions[player]
    return Size(int(decisions.first_infoset[-1]), decisions.num_sequences)


def game_bytes(signals: PublicTreeGame) -> int:
    """What the arrays of a signal game take, its matrices included."""
    parts = signals.betting, signals.parents, signals.payoff_matrices, signals.terms
    return sum(map(_bytes, parts))


def _bytes(part: Any) -> int:
    """Of arrays, tuples and dataclasses of them; other things count nothing."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    if dataclasses.is_dataclass(part):
        values = (getattr(part, field.name) for field in dataclasses.fields(part))
        return sum(map(_bytes, values))
    return sum(map(_bytes, part)) if isinstance(part, tuple) else 0


def num_kinds(signals: PublicTreeGame) -> int:
    """How many kinds of public decisions there are, of both players.

    Of a kind are those with as many own decisions before, in the same round, and with
    about as many actions (powers of two).
    """
    betting, count = signals.betting, 0
    by_depth = betting.by_depth()[1:]
    for player in range(2):
        acts = betting.player == player
        before = np.zeros(len(betting), np.int32)
        for nodes in by_depth:
            above = betting.parent[nodes]
            before[nodes] = before[above] + acts[above]
        width = np.ceil(np.log2(np.maximum(betting.num_actions, 1))).astype(np.int32)
        kinds = np.stack([before, betting.round, width])[:, acts]
        count += np.unique(kinds, axis=1).shape[1]
    return count


def _hand_bytes(matrix: PayoffMatrix, itemsize: int) -> float:
    """What a matrix of hands takes laid out for both players, and cast; 0 of others.

    With what programs keep to multiply by, in numbers of so many bytes.
    """
    if not isinstance(matrix, HandMatrix):
        return 0.0
    hands = sum(len(side.board) for side in matrix.hands)
    cards = 1 + len(np.unique(np.concatenate([h.cards.ravel() for h in matrix.hands])))
    # Into sums by card and back; at a showdown, pairs of a block, too.
    kept = hands * (2 * cards + (_BLOCK if matrix.showdown else 0))
    return float(_HAND * hands + itemsize * (kept if kept <= 2 * KEPT else 0))


def peak_bytes(signals: PublicTreeGame, dtype: np.typing.DTypeLike) -> float:
    """The peak of a process that solves a signal game by full-width iterations.

    Args:
      signals: the game.
      dtype: of the arithmetic.
    """
    sizes = [size_of(signals, player) for player in range(2)]
    infosets = sum(size.infosets for size in sizes)
    sequences = sum(size.sequences for size in sizes)
    state = 4 * sequences * np.dtype(dtype).itemsize
    host = float(_INFOSET * infosets + _SEQUENCE * sequences)
    host += _GAMES * game_bytes(signals)
    itemsize = np.dtype(dtype).itemsize
    host += sum(_hand_bytes(matrix, itemsize) for matrix in signals.payoff_matrices)
    vectors = 8 * _VECTORS * sequences
    return _BASE + program_bytes(signals) + host + _STATES * state + vectors


def program_bytes(signals: PublicTreeGame) -> float:
    """What compiling the program of full-width iterations takes."""
    return _KIND * num_kinds(signals)
