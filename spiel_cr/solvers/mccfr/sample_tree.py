"""The histories of a compiled game as sampled solvers walk them.

A sampled solver moves a batch of trajectories down the histories, one depth at a time.
Tables over actions (strategies, sampled values, baselines) have one entry for every
sequence of player 0, then of player 1, then for every outcome of every chance history:
T entries in all. A history's actions are consecutive in them.
"""

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import CompiledGame

# Acting "players" besides 0 and 1.
_CHANCE, NOBODY = 2, 3


class SampleLevel(NamedTuple):
    """The n histories of one depth, and one last row for finished trajectories.

    Attributes:
      first_child: int32 [n + 1], index of the first child in the next level.
      row: int32 [n + 1], index of the first action in tables over actions.
      num_actions: int32 [n + 1], number of actions; 0 where the game is over.
      player: int32 [n + 1], who acts: 0, 1, 2 chance, 3 nobody.
      utility: float [n + 1], player 0's utility at terminals, else 0; in the game's
        units, or in a solver's (see `rescale`).
      target: bool [n + 1 + A] or None, what targeted trajectories may visit.
    """

    first_child: jax.Array
    row: jax.Array
    num_actions: jax.Array
    player: jax.Array
    utility: jax.Array
    target: jax.Array | None


class SampleTree(NamedTuple):
    """All levels, top to bottom, and maps between tables and solvers' positions.

    Attributes:
      levels: one for each depth.
      chance: float [C], probabilities of chance outcomes.
      balanced: float [T + A], at each infoset the actions in proportion to how many of
        the player's sequences they lead to.
      row_of: int32 [T], the first entry of the history or infoset of each entry.
      positions: for each player int32 [S], where the solver's blocks hold a sequence.
      entries: for each player int32 [size], the entry of each position; T at padding.
    """

    levels: tuple[SampleLevel, ...]
    chance: jax.Array
    balanced: jax.Array
    row_of: jax.Array
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


def build(
    tree: CompiledGame,
    *,
    target: np.ndarray | None = None,
) -> tuple[SampleTree, Plan]:
    """Lays out the histories for sampling; numpy arrays.

    Args:
      tree: the compiled game.
      target: bool [N], histories that targeted trajectories must pass through; None:
        no targeting.

    Raises:
      ValueError: an array of another length, or an empty target.
    """
    histories = tree.histories
    counts = np.bincount(histories.parent[1:], minlength=len(histories))
    player = np.select(
        [histories.player == CHANCE, histories.player == TERMINAL],
        [_CHANCE, NOBODY],
        histories.player,
    )
    player = np.where(counts == 0, NOBODY, player).astype(np.int32)
    sizes = [infosets.decisions.num_sequences for infosets in tree.infosets]
    row, chance = _rows(tree, player, counts, sizes)
    first_child = np.searchsorted(histories.parent, np.arange(len(histories)))
    levels = []
    for here in histories.by_depth:
        children = first_child[here] - here.stop
        after = int(counts[here].sum())
        levels.append(
            SampleLevel(
                first_child=_row(np.where(counts[here] > 0, children, after), after),
                row=_row(row[here], 0),
                num_actions=_row(counts[here], 0),
                player=_row(player[here], NOBODY),
                utility=host(np.append(histories.utility[here], 0.0)),
                target=None,
            )
        )
    entries = sum(sizes) + len(chance)
    changes = np.zeros(entries + 1, np.int32)
    changes[row[counts > 0]] = row[counts > 0]
    layouts = tree.form.layouts
    maps = []
    for p, layout in enumerate(layouts):
        entry = np.full(layout.size, entries, np.int32)
        entry[layout.sequences] = np.arange(sizes[p], dtype=np.int32) + p * sizes[0]
        maps.append(host(entry))
    parts = [balance(infosets.decisions) for infosets in tree.infosets]
    balanced = np.concatenate([*parts, np.zeros(counts.max() + len(chance))])
    arrays = SampleTree(
        levels=tuple(levels),
        chance=host(chance),
        balanced=host(balanced),
        row_of=host(np.maximum.accumulate(changes)[:entries]),
        positions=(host(layouts[0].sequences), host(layouts[1].sequences)),
        entries=(maps[0], maps[1]),
    )
    if target is not None:
        arrays = retarget(arrays, tree, target)
    return arrays, _plan(tree, player, counts)


def retarget(arrays: SampleTree, tree: CompiledGame, target: np.ndarray) -> SampleTree:
    """The same histories with another target, see `build`.

    Raises:
      ValueError: an array of another length, or an empty target.
    """
    allowed = leads_to(tree, target)
    padding = len(arrays.balanced) - len(arrays.row_of) + 1
    levels = [
        level._replace(target=_flags(allowed[here], padding))
        for level, here in zip(arrays.levels, tree.histories.by_depth, strict=True)
    ]
    return arrays._replace(levels=tuple(levels))


def rescale(arrays: SampleTree, exponent: int) -> SampleTree:
    """The same histories with utilities over 2^exponent; numpy arrays."""
    levels = [
        level._replace(utility=treeplex.divide(level.utility, exponent))
        for level in arrays.levels
    ]
    return arrays._replace(levels=tuple(levels))


def balance(decisions: Decisions) -> np.ndarray:
    """float64 [S], the balanced strategy (Farina et al. 2020, "Stochastic regret
    minimization in extensive-form games")."""
    size = np.ones(decisions.num_sequences)
    levels, owner = decisions.levels(), decisions.owner
    for level in range(int(levels.max(initial=-1)), -1, -1):
        here = levels[owner[1:]] == level
        sums = np.bincount(owner[1:][here], size[1:][here], minlength=len(decisions))
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


def leads_to(tree: CompiledGame, target: np.ndarray) -> np.ndarray:
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
    for here in reversed(depths):
        above[histories.parent[here][above[here]]] = True
    for here in depths:
        below[here] |= below[histories.parent[here]]
    return above | below


def _rows(
    tree: CompiledGame, player: np.ndarray, counts: np.ndarray, sizes: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Each history's first entry in tables over actions, and chance probabilities."""
    histories = tree.histories
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


def _plan(
    tree: CompiledGame,
    player: np.ndarray,
    counts: np.ndarray,
) -> Plan:
    depths, alive = [], True
    for here in tree.histories.by_depth:
        widths = counts[here]
        width = int(widths.max(initial=0))
        depths.append(
            Depth(
                width=width,
                full=alive and width > 0 and bool((widths == width).all()),
                players=frozenset(int(p) for p in np.unique(player[here])),
            )
        )
        alive = alive and bool((widths > 0).all())
    return tuple(depths)


def _row(values: np.ndarray, last: int) -> jax.Array:
    """int32 with one more row behind."""
    return host(np.append(values, last).astype(np.int32))


def _flags(values: np.ndarray, padding: int) -> jax.Array:
    """bool with False behind."""
    return host(np.append(values, np.zeros(padding, bool)))


def host(array: np.ndarray) -> jax.Array:
    """Types a numpy array as what it becomes when a solver puts it on a device."""
    return cast(jax.Array, array)
