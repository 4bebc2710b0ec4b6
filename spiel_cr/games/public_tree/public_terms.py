"""The public part of a public-tree game: decisions and payoffs without private states.

A *public sequence* is the empty one, 0, or an action at a public decision, in the order
of decisions. This module determines which logical sequences and payoffs result from
public sequences and private states; `form` builds the solvers' arrays from the same
data.

Legend for shapes: J public decisions, H private states, T terms.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.public_tree.payoff_matrices import PayoffMatrix
from spiel_cr.games.public_tree.public_nodes import Betting, LeafTerms, ancestors
from spiel_cr.games.sequence_form.decisions import (
    Decisions,
    Payoffs,
    first_sequences,
    sum_payoffs,
)

# Largest number of entries of a coupling that are listed.
_MOST_LISTED = 50_000_000

# For each player and round int32 [H], parents of private states (see `PublicTreeGame`).
Parents = tuple[Sequence[np.ndarray], Sequence[np.ndarray]]


class PublicSide(NamedTuple):
    """One player's public decisions.

    Attributes:
      parent: The player's previous public sequence, int32 [J]; 0 if it is the empty
        one.
      num_actions: int32 [J].
      round: Round of the private states at the decision, int8 [J].
    """

    parent: np.ndarray
    num_actions: np.ndarray
    round: np.ndarray

    @property
    def decisions(self) -> Decisions:
        """The same decisions, without private states."""
        return Decisions(self.parent, self.num_actions)

    @property
    def sequence_rounds(self) -> np.ndarray:
        """Rounds of the sequences, int64 [public sequences]; -1 for the empty one."""
        rounds = np.repeat(self.round.astype(np.int64), self.num_actions)
        return np.append(np.int64(-1), rounds)


class PublicTerms(NamedTuple):
    """Payoffs as a function of the players' last public sequences: stake · matrix.

    Attributes:
      sequences: Public sequences, for each player int32 [T]; their rounds are not later
        than that of the matrix.
      matrix: Number of the payoff matrix, int32 [T].
      stake: Player 0's utility, float64 [T].
      weights: Factors of a player's reach in the computation of the opponent's values,
        for each player T arrays [H of the sequence's round], or None. The player's
        values are not affected.
    """

    sequences: tuple[np.ndarray, np.ndarray]
    matrix: np.ndarray
    stake: np.ndarray
    weights: tuple[Sequence[np.ndarray] | None, Sequence[np.ndarray] | None] = (
        None,
        None,
    )


class Constants(NamedTuple):
    """One player's payoffs at some of its sequences, independent of the opponent.

    Attributes:
      player: The player, 0 or 1.
      sequences: Public sequences, int32 [C].
      values: C arrays float64 [H of the sequence's round], the player's utility.
    """

    player: int
    sequences: np.ndarray
    values: Sequence[np.ndarray]


def public_form(
    betting: Betting, terms: LeafTerms
) -> tuple[tuple[PublicSide, PublicSide], PublicTerms]:
    """Return both players' public decisions, and terms by last public sequences."""
    size = len(betting)
    counts = betting.num_actions
    levels = betting.levels()[1:]
    sides, last = [], []
    for player in range(2):
        acts = betting.player == player
        nodes = np.flatnonzero(acts)
        num_actions = counts[nodes]
        first = np.zeros(size, np.int32)
        first[nodes] = first_sequences(num_actions)
        sequence = np.zeros(size, np.int32)
        for level in levels:
            above = betting.parent[level]
            after = first[above] + betting.index[level]
            sequence[level] = np.where(acts[above], after, sequence[above])
        sides.append(PublicSide(sequence[nodes], num_actions, betting.round[nodes]))
        last.append(sequence[terms.leaf])
    by_sequence = PublicTerms((last[0], last[1]), terms.matrix, terms.stake)
    return (sides[0], sides[1]), by_sequence


def list_payoffs(
    sides: tuple[PublicSide, PublicSide],
    parents: Parents,
    payoff_matrices: Sequence[PayoffMatrix],
    terms: PublicTerms,
    constants: Sequence[Constants] = (),
) -> Payoffs:
    """Return the coupling in coordinates of logical sequences.

    For the arguments see `form.build`.

    Raises:
      GameTooLargeError: If there are more than 50 million entries.
    """
    entries = [matrix.coordinates() for matrix in payoff_matrices]
    sizes = np.array([len(entry.values) for entry in entries], np.int64)
    count = int(sizes[terms.matrix].sum())
    if count > _MOST_LISTED:
        raise GameTooLargeError(
            f"the payoff coupling has {count:,} entries, but at most {_MOST_LISTED:,} "
            f"can be listed; use an algorithm that multiplies by payoff matrices, such "
            f"as cfr+ instead of lp"
        )
    starts = [
        logical_starts(side, above) for side, above in zip(sides, parents, strict=True)
    ]
    rounds = [side.sequence_rounds for side in sides]
    parts: list[list[np.ndarray]] = [[], [], []]
    for t, k in enumerate(terms.matrix):
        values = terms.stake[t] * entries[k].values
        for p in range(2):
            public = terms.sequences[p][t]
            private_state = entries[k][p]
            above = ancestors(
                parents[p], payoff_matrices[k].round, int(rounds[p][public])
            )
            private_state = above[private_state]
            start, stride = starts[p][public]
            parts[p].append((start + private_state * stride).astype(np.int32))
            weights = terms.weights[p]
            if weights is not None:
                values = values * weights[t][private_state]
        parts[2].append(values)
    for constant in constants:
        p = constant.player
        for public, utility in zip(constant.sequences, constant.values, strict=True):
            start, stride = starts[p][public]
            parts[p].append(start + stride * np.arange(len(utility), dtype=np.int32))
            parts[1 - p].append(np.zeros(len(utility), np.int32))
            parts[2].append(utility if p == 0 else -utility)
    rows, columns, values = (
        np.concatenate(part) if part else np.zeros(0, kind)
        for part, kind in zip(parts, (np.int32, np.int32, np.float64), strict=True)
    )
    return sum_payoffs(rows, columns, values)


def logical_starts(side: PublicSide, parents: Sequence[np.ndarray]) -> np.ndarray:
    """Return the numbers of the logical sequences of each public sequence.

    Returns:
      The logical sequence of private state 0, and the step from one private state to
      the next, int64 [public sequences, 2].
    """
    sizes = np.array([len(parent) for parent in parents], np.int64)
    totals = sizes[side.round] * side.num_actions
    first = 1 + np.cumsum(totals) - totals
    starts = np.repeat(first, side.num_actions) + ranges(0, side.num_actions)
    table = np.stack([starts, np.repeat(side.num_actions, side.num_actions)], axis=1)
    return np.concatenate([np.zeros((1, 2), np.int64), table])


def logical_decisions(side: PublicSide, parents: Sequence[np.ndarray]) -> Decisions:
    """Return a player's decision points with private states, in logical numbers."""
    sizes = np.array([len(parent) for parent in parents], np.int64)
    counts = sizes[side.round]
    first = np.cumsum(counts) - counts
    starts, rounds = logical_starts(side, parents), side.sequence_rounds
    result = np.zeros(int(counts.sum()), np.int32)
    before = rounds[side.parent]
    for round in np.unique(side.round):
        for above in np.unique(before[side.round == round]):
            chosen = np.flatnonzero((side.round == round) & (before == above))
            behind = ancestors(parents, int(round), int(above))
            start, stride = starts[side.parent[chosen]].T
            places = first[chosen, None] + np.arange(len(behind))
            result[places] = start[:, None] + stride[:, None] * behind
    return Decisions(result, np.repeat(side.num_actions, counts).astype(np.int32))


def num_private_states(parents: Sequence[np.ndarray], round: int) -> int:
    """Return the number of private states of a round; 1 before all rounds (-1)."""
    return 1 if round < 0 else len(parents[round])
