"""Size of the linear program of a game in public-tree form, without constructing it.

In sequence form (Koller, Megiddo & von Stengel 1996) player 0's realisation plan x and
the values q of player 1's infosets satisfy E x = e and F' q ≤ A' x. E and F require for
each infoset that its sequences sum to the one before it; A contains the payoffs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from spiel_cr.abstraction.gameshrink.counts import list_entries
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import PayoffMatrix
from spiel_cr.games.public_tree.public_nodes import Betting


class LPSize(NamedTuple):
    """The size of a linear program.

    Attributes:
      rows: Number of constraints, without signs of variables.
      columns: Number of variables.
      nonzeros: Number of nonzeros of the matrix of constraints: those of A, E and F.
      payoff_nonzeros: Number of nonzeros of A.
    """

    rows: int
    columns: int
    nonzeros: int
    payoff_nonzeros: int


def lp_size(game: PublicTreeGame) -> LPSize:
    """Count rows, columns and nonzeros of the linear program of a game.

    Sums that cancel up to rounding are not counted as nonzeros.

    Raises:
      GameTooLargeError: If a matrix is too large; see `counts.list_entries`.
    """
    sequences, infosets = _sides(
        game.betting, [game.num_private_states(p) for p in range(2)]
    )
    payoffs = _payoff_nonzeros(game)
    return LPSize(
        rows=infosets[0] + sequences[1],
        columns=sequences[0] + infosets[1],
        # A row of E or F has its infoset's sequences and the one before; the empty
        # sequence has a row of its own.
        nonzeros=payoffs + sum(sequences) + sum(infosets) - 2,
        payoff_nonzeros=payoffs,
    )


def lp_rows(betting: Betting, num_private_states: Sequence[Sequence[int]]) -> int:
    """Count the rows, from a public tree and numbers of private states."""
    sequences, infosets = _sides(betting, num_private_states)
    return infosets[0] + sequences[1]


def _sides(
    betting: Betting, num_private_states: Sequence[Sequence[int]]
) -> tuple[list[int], list[int]]:
    """Return both players' numbers of sequences, and of infosets plus one.

    The additional one is the constraint of the empty sequence.
    """
    num_actions = betting.num_actions.astype(np.int64)
    sequences, infosets = [], []
    for player in range(2):
        nodes = np.flatnonzero(betting.player == player)
        signals = np.array(num_private_states[player], np.int64)[betting.round[nodes]]
        infosets.append(1 + int(signals.sum()))
        sequences.append(1 + int((signals * num_actions[nodes]).sum()))
    return sequences, infosets


def _payoff_nonzeros(game: PublicTreeGame) -> int:
    """Count pairs of sequences with nonzero payoffs."""
    betting, terms = game.betting, game.terms
    last = _last_sequences(game)
    meetings: dict[tuple[int, int], list[int]] = {}
    for number, leaf in enumerate(terms.leaf):
        pair = int(last[0][leaf]), int(last[1][leaf])
        meetings.setdefault(pair, []).append(number)
    # Terms of a single matrix have the same nonzeros for all stakes.
    nonzeros: dict[tuple[tuple[int, ...], tuple[tuple[int, float], ...]], int] = {}
    total = 0
    for pair, numbers in meetings.items():
        rounds = tuple(
            -1 if node < 0 else int(betting.round[betting.parent[node]])
            for node in pair
        )
        stakes: dict[int, float] = {}
        for number in numbers:
            matrix = int(terms.matrix[number])
            stakes[matrix] = stakes.get(matrix, 0.0) + float(terms.stake[number])
        if len(stakes) == 1:
            stakes = {k: float(stake != 0) for k, stake in stakes.items()}
        key = rounds, tuple(sorted(stakes.items()))
        if key not in nonzeros:
            nonzeros[key] = _nonzeros(game, rounds, stakes)
        total += nonzeros[key]
    return total


def _last_sequences(game: PublicTreeGame) -> np.ndarray:
    """Return the last node after an action of each player; -1: none."""
    betting = game.betting
    last = np.full((2, len(betting)), -1)
    for node in range(1, len(betting)):
        above = betting.parent[node]
        last[:, node] = last[:, above]
        last[betting.player[above], node] = node
    return last


def _nonzeros(
    game: PublicTreeGame, rounds: tuple[int, ...], stakes: dict[int, float]
) -> int:
    """Count entries of a sum of matrices, by private states at last decisions."""
    tables = [
        (stake, _between(game, game.payoff_matrices[k], rounds))
        for k, stake in stakes.items()
        if stake != 0
    ]
    if not tables:
        return 0
    total = sum(stake * table for stake, (table, _) in tables)
    size = sum(abs(stake) * size for stake, (_, size) in tables)
    return int((abs(total) > 1e-12 * size).nnz)


def _between(
    game: PublicTreeGame, matrix: PayoffMatrix, rounds: tuple[int, ...]
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return a matrix and its absolute entries, summed over refinements."""
    entries = list_entries(matrix)
    rows, columns = (
        game.ancestors(player, matrix.round, rounds[player])[signals]
        for player, signals in enumerate((entries.rows, entries.columns))
    )
    shape = tuple(
        1 if r < 0 else game.num_private_states(player)[r]
        for player, r in enumerate(rounds)
    )
    table, size = (
        sparse.csr_array((values, (rows, columns)), shape=shape)
        for values in (entries.values, abs(entries.values))
    )
    return table, size
