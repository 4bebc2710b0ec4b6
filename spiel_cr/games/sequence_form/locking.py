"""Node locks: infosets with fixed strategies, for any game in sequence form.

A locked game is used like other games. At locked infosets, all CFR solvers, linear
programs and best responses play exactly the locked probabilities. The NashConv of a
locked form therefore only counts the players' gains at unlocked infosets. For the
NashConv of the whole game, use the form that `lifted` returns.
"""

import dataclasses
import functools

import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.common.pairs import map_pair
from spiel_cr.games.sequence_form import layout, treeplex

# For each player float64 [S], by logical sequence, NaN at free infosets; None: all are.
Rows = tuple[np.ndarray | None, np.ndarray | None]


def locked(form: layout.SequenceForm, rows: Rows) -> layout.SequenceForm:
    """Return the game with some infosets locked; existing locks are removed.

    Args:
      form: The game.
      rows: Locked probabilities.
    """
    arrays = layout.Once(functools.partial(_locked_arrays, form, rows))
    return dataclasses.replace(form, list_arrays=arrays, locks=rows)


def _locked_arrays(
    form: layout.SequenceForm, rows: Rows
) -> tuple[treeplex.Treeplex, treeplex.Treeplex]:
    """Return both players' trees with their infosets locked."""
    return map_pair(_locked, form.arrays, form.layouts, rows)


def _locked(
    tree: treeplex.Treeplex, position_map: layout.PositionMap, kept: np.ndarray | None
) -> treeplex.Treeplex:
    """Return one player's tree with its infosets locked."""
    if kept is None:
        levels = [level._replace(locked=()) for level in tree.levels]
        return tree._replace(levels=tuple(levels))
    positions = position_map.by_position(np.where(np.isnan(kept), -1.0, kept), -1.0)
    levels = []
    parts = treeplex.by_level(tree.levels, positions)
    for level, part in zip(tree.levels, parts, strict=True):
        blocks = level.split(typed(part))
        some = tuple(block if (block >= 0).any() else None for block in blocks)
        is_free = all(block is None for block in some)
        levels.append(level._replace(locked=() if is_free else some))
    return tree._replace(levels=tuple(levels))


def has_locks(form: layout.SequenceForm) -> bool:
    """Return whether any infoset of either player is locked."""
    return any(rows is not None for rows in form.locks)


def lifted(form: layout.SequenceForm) -> layout.SequenceForm:
    """Return the game without its locks, which shares all other arrays."""
    return locked(form, (None, None)) if has_locks(form) else form


def kept(form: layout.SequenceForm, player: int, behaviour: np.ndarray) -> np.ndarray:
    """Return a player's strategy [S] with locked probabilities inserted."""
    rows = form.locks[player]
    return behaviour if rows is None else np.where(np.isnan(rows), behaviour, rows)


def infosets(form: layout.SequenceForm, player: int) -> np.ndarray:
    """Return whether each infoset of a player is locked, bool [I]."""
    decisions, rows = form.decisions[player], form.locks[player]
    if rows is None:
        return np.zeros(len(decisions), bool)
    return ~np.isnan(rows[decisions.first_sequence])
