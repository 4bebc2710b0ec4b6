"""Depth-limited lookahead: truncation of subgames.

A subgame is cut off at histories that are `depth` moves, or rounds, below its roots,
but never before the player's own next turn in a new subgame, because continual
re-solving needs values there. The values at the cut are `HistoryValues`
(`policies/leaf_values.py`): one number per history, or k, among which the opponent
chooses.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.common.pairs import pair
from spiel_cr.games.histories import CHANCE, TERMINAL, Histories
from spiel_cr.policies.leaf_values import HistoryValues, leaf_utilities
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.gadget import Choices, Truncation
from spiel_cr.resolving.leaves.leaf_strings import DepthUnit, parse_leaf
from spiel_cr.resolving.resolving_config import ResolvingConfig


class DepthLimit(NamedTuple):
    """Settings of a depth-limited lookahead, see `truncate_layer`.

    Attributes:
      depth: Number of moves or rounds.
      value: Values of histories at the cut.
      unit: Unit of `depth`.
    """

    depth: int
    value: HistoryValues
    unit: DepthUnit = "moves"

    @classmethod
    def of(cls, config: ResolvingConfig) -> "DepthLimit | None":
        """Return the limit in settings of re-solving; None: to the end of the game."""
        if config.depth is None:
            return None
        return cls(config.depth, parse_leaf(config.leaf), config.depth_unit)


def truncate_layer(
    decomposition: Decomposition,
    number: int,
    depth: int,
    value: HistoryValues,
    unit: DepthUnit = "moves",
) -> Truncation:
    """Truncate the subgames of a layer at a given depth.

    Args:
      decomposition: Result of `decompose`.
      number: Number of the layer, from 1.
      depth: Moves (chance included) or rounds below the layer's roots, or, in layer 1,
        below the start of the game. If the player's next turn in a new subgame comes
        later, the subgame is cut there.
      value: Values of histories at the cut.
      unit: Unit of `depth`, "moves" or "rounds"; a round ends when chance moves after a
        player.

    Raises:
      ValueError: If values are not finite.
    """
    d, histories = decomposition, decomposition.tree.histories
    within, cut = _within_and_cut(d, number, depth, unit, entire_states=value.k > 1)
    leaves = np.flatnonzero(cut)
    kept = pair(np.zeros(len(infosets), bool) for infosets in d.tree.infosets)
    for p in range(2):
        kept[p][histories.infoset[within & ~cut & (histories.player == p)]] = True
    ends = np.flatnonzero(within & (histories.player == TERMINAL))
    values = leaf_utilities(value, d.tree, leaves, d.player)
    if value.k > 1:
        choices = Choices(leaves, values) if len(leaves) else None
        return Truncation(ends, histories.utility[ends], kept, choices)
    return Truncation(
        histories=np.concatenate([ends, leaves]),
        values=np.concatenate([histories.utility[ends], values[:, 0]]),
        kept=kept,
    )


def warn_if_never_truncated(
    decompositions: Sequence[Decomposition], depth: int, unit: DepthUnit
) -> None:
    """Log a warning if every lookahead reaches the end of the game.

    Args:
      decompositions: Layers of the re-solved roles.
      depth: Depth limit, as in `truncate_layer`.
      unit: Unit of `depth`.
    """
    for role in decompositions:
        for number in range(1, role.num_layers + 1):
            _, cut = _within_and_cut(role, number, depth, unit, entire_states=True)
            if cut.any():
                return
    game = decompositions[0].tree.game
    logging.warning(
        "depth=%d (%s): every lookahead reaches the end of %s, so no leaf is used; "
        "use a smaller depth, or leave depth and leaf out",
        *(depth, unit, game),
    )


def _within_and_cut(
    d: Decomposition, number: int, depth: int, unit: DepthUnit, *, entire_states: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return histories of a layer's lookaheads, and those cut off, bool [N] each.

    Args:
      d: Layers of the game.
      number: Number of the layer, from 1.
      depth: Depth limit, as in `truncate_layer`.
      unit: Unit of `depth`.
      entire_states: Whether all or none of a public state's histories are cut off.

    Raises:
      ValueError: If the depth is below 1, or the unit is unknown.
    """
    histories = d.tree.histories
    is_root = np.zeros(len(histories), bool)
    is_root[d.roots_of(number) if number > 1 else 0] = True
    passed = _passed(histories, is_root, unit)
    due = (d.layer > number) & (histories.player != TERMINAL) & (passed >= depth)
    if entire_states:
        due = _entire_states(d, due)
    within = np.zeros(len(histories), bool)
    cut = np.zeros(len(histories), bool)
    for level in histories.by_depth:
        if level.start:
            above = histories.parent[level]
            within[level] = within[above] & ~cut[above]
        within[level][is_root[level]] = True
        cut[level] = within[level] & due[level]
    return within, cut


def _passed(histories: Histories, is_root: np.ndarray, unit: str) -> np.ndarray:
    """Return moves or rounds since the last of some roots, int64 [N]; -1 above them."""
    passed = np.full(len(histories), -1, np.int64)
    player = histories.player
    for level in histories.by_depth:
        if level.start:
            above = histories.parent[level]
            step = np.ones(len(above), np.int64)
            if unit == "rounds":
                # The first chance move after a decision ends a round.
                before = np.where(is_root[above], -1, histories.parent[above])
                step = ((player[above] == CHANCE) & (before >= 0)).astype(np.int64)
                step[player[before] < 0] = 0
            passed[level] = np.where(passed[above] >= 0, passed[above] + step, -1)
        passed[level][is_root[level]] = 0
    return passed


def _entire_states(d: Decomposition, due: np.ndarray) -> np.ndarray:
    """Return roots of public states that have a due history, bool [N]."""
    state = d.augmented_subgame[d.root_augmented]
    count = int(state.max(initial=-1)) + 1
    due_states = np.bincount(state[due[d.roots]], minlength=count) > 0
    result = np.zeros(len(due), bool)
    result[d.roots] = due_states[state]
    return result
