"""Sequence forms without forced moves, which involve no decision.

The value of an infoset with one action is the value of that action, and the action's
reach is that of the player's previous sequence. Therefore its payoffs can be moved to
the previous sequence, which results in the same game with fewer infosets. In liar's
dice, half of the infosets are forced.
"""

import functools
from typing import NamedTuple

import numpy as np

from spiel_cr.common.pairs import map_pair
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs, sum_payoffs


class Free(NamedTuple):
    """A game without its forced moves.

    Attributes:
      decisions: Each player's decision points with several actions, with new numbers.
      payoffs: Payoffs between the sequences of these decision points.
      sizes: Sums of the absolute payoffs of these sequences before payoffs were added
        up, for each player float64. They determine rounding errors.
      numbers: New number of each logical sequence, for each player int32 [S]; for
        forced moves, that of the sequence before them.
      complete: Each player's decision points in the complete game.
      complete_payoffs: Payoffs of the complete game.
    """

    decisions: tuple[Decisions, Decisions]
    payoffs: Payoffs
    sizes: tuple[np.ndarray, np.ndarray]
    numbers: tuple[np.ndarray, np.ndarray]
    complete: tuple[Decisions, Decisions]
    complete_payoffs: Payoffs


def leave_out(decisions: tuple[Decisions, Decisions], payoffs: Payoffs) -> Free:
    """Remove forced moves from a game.

    Args:
      decisions: Each player's decision points, in logical numbers.
      payoffs: Pairs of sequences, with player 0's utility times the probability of the
        chance outcomes.
    """
    (first, first_numbers), (second, second_numbers) = map(_free, decisions)
    rows, columns = first_numbers[payoffs.rows], second_numbers[payoffs.columns]
    return Free(
        (first, second),
        sum_payoffs(rows, columns, payoffs.values),
        layout.sizes_of((first, second), Payoffs(rows, columns, payoffs.values)),
        (first_numbers, second_numbers),
        decisions,
        payoffs,
    )


def _free(decisions: Decisions) -> tuple[Decisions, np.ndarray]:
    """Return one player's part of `Free`."""
    is_forced = decisions.num_actions == 1
    # Sequence that represents each one: itself, or that before a forced move.
    stands = np.arange(decisions.num_sequences, dtype=np.int32)
    stands[decisions.first_sequence[is_forced]] = decisions.parent[is_forced]
    is_left = stands == np.arange(len(stands))
    while (stands[stands] != stands).any():  # forced moves after forced moves
        stands = stands[stands]
    numbers = (np.cumsum(is_left, dtype=np.int32) - 1)[stands]
    parent = numbers[decisions.parent[~is_forced]]
    return Decisions(parent, decisions.num_actions[~is_forced]), numbers


def without(form: layout.SequenceForm) -> layout.SequenceForm:
    """Return a game in the form for solvers, without its forced moves.

    Args:
      form: The game. It is returned unchanged if it has no forced moves, if it has node
        locks, or if its payoffs are not listed.
    """
    if not form.is_listed or any(rows is not None for rows in form.locks):
        return form
    if all((decisions.num_actions > 1).all() for decisions in form.decisions):
        return form
    return lay_out(leave_out(form.decisions, form.payoffs))


def lay_out(
    free: Free, capacity: layout.PaddedShapes | None = None
) -> layout.SequenceForm:
    """Build the arrays of a game without its forced moves, with its logical numbers.

    Decisions and payoffs are those of the complete game; the arrays do not contain
    forced moves. A forced move has the position of the sequence before it, whose reach
    is the same. Its infoset has no position, so values of infosets must be computed
    from the complete game.

    Args:
      free: Result of `leave_out`.
      capacity: Shapes to which the arrays are padded; see `layout.build`.

    Raises:
      ValueError: If the game without forced moves does not fit into the capacity.
    """
    form = layout.build(
        free.decisions, free.payoffs, capacity=capacity, below=free.sizes
    )
    layouts = map_pair(_read_by, form.layouts, free.numbers, free.complete)
    return layout.SequenceForm(
        layout.constant(free.complete),
        functools.partial(Payoffs, *free.complete_payoffs),
        layout.constant(layouts),
        form.list_arrays,
    )


def _read_by(
    positions: layout.PositionMap, numbers: np.ndarray, decisions: Decisions
) -> layout.PositionMap:
    """Return a position map by the logical numbers of the complete game."""
    forced = decisions.first_sequence[decisions.num_actions == 1]
    arrays = layout.constant((positions.sequences[numbers], positions.infosets))
    return layout.PositionMap(arrays, positions.size, forced)
