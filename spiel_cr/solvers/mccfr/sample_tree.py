"""Histories of a game tree in the form that sampling solvers use.

Tables over actions (strategies, sampled values, baselines) have one entry for each
sequence of player 0, then for each sequence of player 1, then for each outcome of each
chance history: T entries in total. The entries of a history's actions are consecutive.
`Columns` contains the data that all samplers need, indexed by the number of the
history. Batches of trajectories move down one depth at a time and use histories grouped
by depth (`SampleTree`). Single trajectories use `flat_tree`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import GameTree

# Values of `player` for chance histories and terminals.
_CHANCE, NO_PLAYER = 2, 3


class Columns(NamedTuple):
    """Data of N histories and T entries of tables over actions; numpy arrays.

    Attributes:
      first_child: Number of the first child, int64 [N]; arbitrary at terminals.
      row: Entry of the first action, int64 [N]; 0 at terminals.
      num_actions: Number of actions, int64 [N]; 0 at terminals.
      player: Acting player, int32 [N]: 0, 1, 2 for chance, 3 for terminals.
      chance: Probabilities of chance outcomes, the last entries, float64 [C].
      balanced: Balanced strategy, float64 [T]: at each infoset, actions in proportion
        to the number of the player's sequences below them.
    """

    first_child: np.ndarray
    row: np.ndarray
    num_actions: np.ndarray
    player: np.ndarray
    chance: np.ndarray
    balanced: np.ndarray


class SampleLevel(NamedTuple):
    """The n histories of one depth, and one last row for finished trajectories.

    A subgame has one level for all depths, so there the children are in the same level.

    Attributes:
      first_child: Index of the first child in the next level, int32 [n + 1].
      row: Index of the first action in tables over actions, int32 [n + 1].
      num_actions: Number of actions, int32 [n + 1]; 0 at terminals.
      player: Acting player, int32 [n + 1]: 0, 1, 2 for chance, 3 for terminals.
      utility: Player 0's utility at terminals divided by 2^exponent, float [n + 1]; 0
        at other histories.
    """

    first_child: jax.Array
    row: jax.Array
    num_actions: jax.Array
    player: jax.Array
    utility: jax.Array


class SampleTree(NamedTuple):
    """All levels from top to bottom, and maps between tables and solvers' positions.

    Attributes:
      levels: Histories of each depth.
      chance: Probabilities of chance outcomes, float [C].
      balanced: Balanced strategy as in `Columns`, float [T + A].
      positions: Position of each sequence in the solver's blocks, int32 [S] for each
        player.
      entries: Table entry of each position, int32 [size] for each player; T at padding.
    """

    levels: tuple[SampleLevel, ...]
    chance: jax.Array
    balanced: jax.Array
    positions: tuple[jax.Array, jax.Array]
    entries: tuple[jax.Array, jax.Array]


class Depth(NamedTuple):
    """Facts about a depth that are known at XLA compilation.

    Attributes:
      width: Largest number of actions.
      full: True if every history has `width` actions and no trajectory has finished
        before.
      players: Players that act at some history of this depth; None: any player may act.
    """

    width: int
    full: bool
    players: frozenset[int] | None


Depths = tuple[Depth, ...]


def columns_of(tree: GameTree) -> Columns:
    """Return the data of a game tree's histories that samplers need."""
    histories = tree.histories
    counts = np.bincount(histories.parent[1:], minlength=len(histories))
    player = np.select(
        [histories.player == CHANCE, histories.player == TERMINAL],
        [_CHANCE, NO_PLAYER],
        histories.player,
    )
    player = np.where(counts == 0, NO_PLAYER, player).astype(np.int32)
    row, chance = _rows(tree, player, counts)
    balanced = [balance(infosets.decisions) for infosets in tree.infosets]
    return Columns(
        first_child=np.searchsorted(histories.parent, np.arange(len(histories))),
        row=row,
        num_actions=counts,
        player=player,
        chance=chance,
        balanced=np.concatenate([*balanced, np.zeros(len(chance))]),
    )


def build(
    tree: GameTree, columns: Columns | None = None, exponent: int = 0
) -> tuple[SampleTree, Depths]:
    """Build the histories by depth for batches of trajectories, as numpy arrays.

    Args:
      tree: Game tree.
      columns: Result of `columns_of`; None: computed here.
      exponent: Binary exponent of the scale; utilities are divided by 2^exponent.
    """
    columns = columns or columns_of(tree)
    utility = np.asarray(treeplex.divide(typed(tree.histories.utility), exponent))
    levels, depths, alive = [], [], True
    for level_slice in tree.histories.by_depth:
        counts, players = columns.num_actions[level_slice], columns.player[level_slice]
        after, width = int(counts.sum()), int(counts.max(initial=0))
        children = np.where(
            counts > 0, columns.first_child[level_slice] - level_slice.stop, after
        )
        levels.append(
            SampleLevel(
                first_child=_row(children, after),
                row=_row(columns.row[level_slice], 0),
                num_actions=_row(counts, 0),
                player=_row(players, NO_PLAYER),
                utility=typed(np.append(utility[level_slice], 0.0)),
            )
        )
        full = alive and width > 0 and bool((counts == width).all())
        depths.append(Depth(width, full, frozenset(np.unique(players).tolist())))
        alive = alive and bool((counts > 0).all())
    size = [infosets.decisions.num_sequences for infosets in tree.infosets]
    layouts, maps = tree.sequence_form.layouts, []
    for p, layout in enumerate(layouts):
        entry = np.full(layout.size, len(columns.balanced), np.int32)
        entry[layout.sequences] = np.arange(size[p], dtype=np.int32) + p * size[0]
        maps.append(typed(entry))
    padding = np.zeros(max_width(tuple(depths)))
    samples = SampleTree(
        levels=tuple(levels),
        chance=typed(columns.chance),
        balanced=typed(np.append(columns.balanced, padding)),
        positions=(typed(layouts[0].sequences), typed(layouts[1].sequences)),
        entries=(maps[0], maps[1]),
    )
    return samples, tuple(depths)


def balance(decisions: Decisions) -> np.ndarray:
    """Return the balanced strategy, float64 [S].

    See Farina et al. 2020, "Stochastic regret minimization in extensive-form games".
    """
    size, totals = np.ones(decisions.num_sequences), np.zeros(len(decisions))
    owner = decisions.owner
    for infosets, sequences in decisions.upwards():
        np.add.at(totals, owner[sequences], size[sequences])
        np.add.at(size, decisions.parent[infosets], totals[infosets])
    return np.concatenate([np.ones(1), size[1:] / totals[owner[1:]]])


def consecutive(first: jax.Array, width: int, stride: int = 1) -> jax.Array:
    """Return `width` numbers from each of M numbers on, int32 [A, M].

    Args:
      first: First numbers, int32 [M].
      width: Count A of numbers in each column.
      stride: Difference between consecutive numbers.
    """
    return first[None] + stride * jnp.arange(width, dtype=jnp.int32)[:, None]


def take(rows: jax.Array, chosen: jax.Array) -> jax.Array:
    """Return the entry of the chosen action in each column, [M].

    Args:
      rows: Values of actions, [A, M].
      chosen: Chosen actions, int32 [M].
    """
    actions = jnp.arange(rows.shape[0], dtype=jnp.int32)[:, None]
    return treeplex.sum_rows(jnp.where(actions == chosen[None], rows, 0))


def max_width(depths: Depths) -> int:
    """Return the largest number A of actions at any depth, the padding of tables."""
    return max(shape.width for shape in depths)


def leads_to(tree: GameTree, target: np.ndarray) -> np.ndarray:
    """Return a mask of the target histories, their ancestors and their descendants.

    Args:
      tree: Game tree.
      target: Target histories, bool [N].

    Returns:
      The mask, bool [N].

    Raises:
      ValueError: If the target is empty or has another length.
    """
    if target.shape != (len(tree.histories),):
        raise ValueError(
            f"target: shape {target.shape} is not ({len(tree.histories)},); pass one "
            f"boolean for each history"
        )
    if not target.any():
        raise ValueError("target: no history is selected; select one or omit it")
    histories = tree.histories
    above, below = target.copy(), target.copy()
    depths = histories.by_depth[1:]
    for level_slice in reversed(depths):
        above[histories.parent[level_slice][above[level_slice]]] = True
    for level_slice in depths:
        below[level_slice] |= below[histories.parent[level_slice]]
    return above | below


def _rows(
    tree: GameTree, player: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each history's first entry in tables, and chance probabilities."""
    histories = tree.histories
    sizes = [infosets.decisions.num_sequences for infosets in tree.infosets]
    row = np.zeros(len(histories), np.int64)
    for p, infosets in enumerate(tree.infosets):
        acts = player == p
        first = infosets.decisions.first_sequence[histories.infoset[acts]]
        row[acts] = first + p * sizes[0]
    at_chance = np.flatnonzero(player == _CHANCE)
    ends = np.cumsum(counts[at_chance])
    row[at_chance] = sum(sizes) + ends - counts[at_chance]
    outcomes = 1 + np.flatnonzero(player[histories.parent[1:]] == _CHANCE)
    # The quotients are rounded, so each row is normalised to sum to one.
    chance = histories.chance[outcomes] / histories.chance[histories.parent[outcomes]]
    owner = np.repeat(np.arange(len(at_chance)), counts[at_chance])
    total = np.bincount(owner, weights=chance, minlength=len(at_chance))
    return row, chance / total[owner]


def _row(values: np.ndarray, last: int) -> jax.Array:
    """Return int32 values with one more value appended."""
    return typed(np.append(values, last).astype(np.int32))
