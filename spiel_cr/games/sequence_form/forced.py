"""Games laid out without their forced moves, where nothing is to be decided.

An infoset with one action is worth what that action is, and its sequence is reached as
often as the own sequence before it. So payoffs of the one can be paid at the other: the
same game with fewer infosets, of which liar's dice has half.
"""

import functools
from typing import NamedTuple

import numpy as np

from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs, sum_payoffs


class Free(NamedTuple):
    """What is left of a game.

    Attributes:
      decisions: each player's decision points with several actions, numbered anew.
      payoffs: between the sequences of these.
      sizes: for each player float64, the sum of |payoff| of each of these sequences
        before payoffs were added up: what rounding errors are measured by.
      numbers: for each player int32 [S], what each logical sequence is numbered now:
        forced moves as the sequence before them.
    """

    decisions: tuple[Decisions, Decisions]
    payoffs: Payoffs
    sizes: tuple[np.ndarray, np.ndarray]
    numbers: tuple[np.ndarray, np.ndarray]


def leave_out(decisions: tuple[Decisions, Decisions], payoffs: Payoffs) -> Free:
    """Leaves forced moves out.

    Args:
      decisions: each player's decision points, logical.
      payoffs: pairs of logical sequences with player 0's utility times chance.
    """
    (first, first_numbers), (second, second_numbers) = map(_free, decisions)
    rows, columns = first_numbers[payoffs.rows], second_numbers[payoffs.columns]
    return Free(
        (first, second),
        sum_payoffs(rows, columns, payoffs.values),
        layout.sizes_of((first, second), Payoffs(rows, columns, payoffs.values)),
        (first_numbers, second_numbers),
    )


def _free(decisions: Decisions) -> tuple[Decisions, np.ndarray]:
    """One player's part of `Free`."""
    is_forced = decisions.num_actions == 1
    # What stands for each sequence: itself, or what is before a forced move.
    stands = np.arange(decisions.num_sequences, dtype=np.int32)
    stands[decisions.first_sequence[is_forced]] = decisions.parent[is_forced]
    is_left = stands == np.arange(len(stands))
    while (stands[stands] != stands).any():  # forced moves after forced moves
        stands = stands[stands]
    numbers = (np.cumsum(is_left, dtype=np.int32) - 1)[stands]
    parent = numbers[decisions.parent[~is_forced]]
    return Decisions(parent, decisions.num_actions[~is_forced]), numbers


def without(form: layout.SequenceForm) -> layout.SequenceForm:
    """A game as solvers go through it, without its forced moves.

    Args:
      form: the game; where nothing is forced, or where it is locked or its payoffs are
        not listed, it is given back.
    """
    if not form.is_listed or any(rows is not None for rows in form.locks):
        return form
    if all((decisions.num_actions > 1).all() for decisions in form.decisions):
        return form
    free = leave_out(form.decisions, form.payoffs)
    return lay_out(form.decisions, form.payoffs, free)


def lay_out(
    decisions: tuple[Decisions, Decisions],
    payoffs: Payoffs,
    free: Free,
    capacity: layout.PaddedShapes | None = None,
) -> layout.SequenceForm:
    """Lays out what is left of a game, to be read by its logical numbers.

    Decisions and payoffs are those of the game, the arrays what is left of it. A forced
    move has the position of the sequence before it, where its reach is read. Its
    infoset has none, so values of infosets are asked of the game itself.

    Args:
      decisions: each player's decision points, logical.
      payoffs: pairs of logical sequences with player 0's utility times chance.
      free: of these, by `leave_out`.
      capacity: of what is left, see `layout.build`.

    Raises:
      ValueError: what is left does not fit into the capacity.
    """
    form = layout.build(
        free.decisions, free.payoffs, capacity=capacity, below=free.sizes
    )
    first, second = map(_read_by, form.layouts, free.numbers, decisions)
    return layout.SequenceForm(
        functools.partial(layout.constant, decisions),
        functools.partial(Payoffs, *payoffs),
        (first, second),
        form.arrays,
    )


def _read_by(
    positions: layout.PositionMap, numbers: np.ndarray, decisions: Decisions
) -> layout.PositionMap:
    """A layout by the logical numbers that were before moves were left out."""
    forced = decisions.first_sequence[decisions.num_actions == 1]
    arrays = functools.partial(
        layout.constant, (positions.sequences[numbers], positions.infosets)
    )
    return layout.PositionMap(arrays, positions.size, forced)
