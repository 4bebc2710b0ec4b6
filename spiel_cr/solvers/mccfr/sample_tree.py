"""The histories of a compiled game as sampled solvers walk them.

Tables over actions (strategies, sampled values, baselines) have one entry for every
sequence of player 0, then of player 1, then for every outcome of every chance history:
T entries in all. A history's actions are consecutive in them. `Columns` has what all
samplers read, by number of history. A batch of trajectories moves down one depth at a
time, and has them by depth (`SampleTree`); `flat_tree` is for walks of one.
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

# Acting "players" besides 0 and 1.
_CHANCE, NO_PLAYER = 2, 3


class Columns(NamedTuple):
    """N histories and T entries of tables over actions; numpy arrays.

    Attributes:
      first_child: int64 [N], number of the first child; where the game is over
        anything.
      row: int64 [N], the entry of the first action; 0 where the game is over.
      num_actions: int64 [N], 0 where the game is over.
      player: int32 [N], who acts: 0, 1, 2 chance, 3 nobody.
      chance: float64 [C], probabilities of chance outcomes, the last entries.
      balanced: float64 [T], at each infoset the actions in proportion to how many of
        the player's sequences they lead to.
    """

    first_child: np.ndarray
    row: np.ndarray
    num_actions: np.ndarray
    player: np.ndarray
    chance: np.ndarray
    balanced: np.ndarray


class SampleLevel(NamedTuple):
    """The n histories of one depth, and one last row for finished trajectories.

    In a subgame, which has one level for all depths, children are in the same level.

    Attributes:
      first_child: int32 [n + 1], index of the first child in the next level.
      row: int32 [n + 1], index of the first action in tables over actions.
      num_actions: int32 [n + 1], number of actions; 0 where the game is over.
      player: int32 [n + 1], who acts: 0, 1, 2 chance, 3 nobody.
      utility: float [n + 1], player 0's utility at terminals over 2^exponent, else 0.
    """

    first_child: jax.Array
    row: jax.Array
    num_actions: jax.Array
    player: jax.Array
    utility: jax.Array


class SampleTree(NamedTuple):
    """All levels, top to bottom, and maps between tables and solvers' positions.

    Attributes:
      levels: one for each depth.
      chance: float [C], probabilities of chance outcomes.
      balanced: float [T + A], see `Columns`.
      positions: for each player int32 [S], where the solver's blocks hold a sequence.
      entries: for each player int32 [size], the entry of each position; T at padding.
    """

    levels: tuple[SampleLevel, ...]
    chance: jax.Array
    balanced: jax.Array
    positions: tuple[jax.Array, jax.Array]
    entries: tuple[jax.Array, jax.Array]


class Depth(NamedTuple):
    """What is known of a depth when a program is compiled.

    Attributes:
      width: the largest number of actions.
      full: every history has `width` actions and no trajectory has finished before.
      players: who acts at some history of this depth; None: anybody.
    """

    width: int
    full: bool
    players: frozenset[int] | None


Plan = tuple[Depth, ...]


def columns_of(tree: GameTree) -> Columns:
    """What samplers read of a compiled game's histories."""
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
) -> tuple[SampleTree, Plan]:
    """Lays out the histories for batches; numpy arrays.

    Args:
      tree: the compiled game.
      columns: of `columns_of`; None: made anew.
      exponent: utilities are the game's over 2^exponent.
    """
    columns = columns or columns_of(tree)
    utility = np.asarray(treeplex.divide(typed(tree.histories.utility), exponent))
    levels, plan, alive = [], [], True
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
        plan.append(Depth(width, full, frozenset(np.unique(players).tolist())))
        alive = alive and bool((counts > 0).all())
    size = [infosets.decisions.num_sequences for infosets in tree.infosets]
    layouts, maps = tree.sequence_form.layouts, []
    for p, layout in enumerate(layouts):
        entry = np.full(layout.size, len(columns.balanced), np.int32)
        entry[layout.sequences] = np.arange(size[p], dtype=np.int32) + p * size[0]
        maps.append(typed(entry))
    padding = np.zeros(max_width(tuple(plan)))
    samples = SampleTree(
        levels=tuple(levels),
        chance=typed(columns.chance),
        balanced=typed(np.append(columns.balanced, padding)),
        positions=(typed(layouts[0].sequences), typed(layouts[1].sequences)),
        entries=(maps[0], maps[1]),
    )
    return samples, tuple(plan)


def balance(decisions: Decisions) -> np.ndarray:
    """float64 [S], the balanced strategy (Farina et al. 2020, "Stochastic regret
    minimization in extensive-form games")."""
    size = np.ones(decisions.num_sequences)
    levels, owner = decisions.levels(), decisions.owner
    for level in range(int(levels.max(initial=-1)), -1, -1):
        in_level = levels[owner[1:]] == level
        sums = np.bincount(
            owner[1:][in_level], size[1:][in_level], minlength=len(decisions)
        )
        at_level = np.flatnonzero(levels == level)
        np.add.at(size, decisions.parent[at_level], sums[at_level])
    totals = np.bincount(owner[1:], size[1:], minlength=len(decisions))
    return np.concatenate([np.ones(1), size[1:] / totals[owner[1:]]])


def consecutive(first: jax.Array, width: int, stride: int = 1) -> jax.Array:
    """int32 [A, M], `width` numbers from each of M on, `stride` apart."""
    return first[None] + stride * jnp.arange(width, dtype=jnp.int32)[:, None]


def take(rows: jax.Array, chosen: jax.Array) -> jax.Array:
    """[M], the entry of the chosen action, int32 [M], in each column of [A, M]."""
    actions = jnp.arange(rows.shape[0], dtype=jnp.int32)[:, None]
    return treeplex.sum_rows(jnp.where(actions == chosen[None], rows, 0))


def max_width(plan: Plan) -> int:
    """A, the largest number of actions at any depth: the padding of tables."""
    return max(shape.width for shape in plan)


def leads_to(tree: GameTree, target: np.ndarray) -> np.ndarray:
    """bool [N], the histories on the way to a target, the targets, and all below.

    Raises:
      ValueError: an array of another length, or an empty target.
    """
    if target.shape != (len(tree.histories),):
        raise ValueError(
            f"target has shape {target.shape}; it must say yes or no for each of the "
            f"{len(tree.histories)} histories"
        )
    if not target.any():
        raise ValueError("target names no history; leave it out or name some")
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
    """Each history's first entry in tables over actions, and chance probabilities."""
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
    # Quotients of products of probabilities; the sum of each row becomes exactly one.
    chance = histories.chance[outcomes] / histories.chance[histories.parent[outcomes]]
    owner = np.repeat(np.arange(len(at_chance)), counts[at_chance])
    total = np.bincount(owner, weights=chance, minlength=len(at_chance))
    return row, chance / total[owner]


def _row(values: np.ndarray, last: int) -> jax.Array:
    """int32 with one more row behind."""
    return typed(np.append(values, last).astype(np.int32))
