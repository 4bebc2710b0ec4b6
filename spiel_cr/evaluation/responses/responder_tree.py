"""A compiled game as a searching responder sees it.

The opponent is fixed, so what lies between two decisions of the responder is chance. A
simulation jumps from the responder's action straight to its next decision: all that can
come next stands in one list with cumulative probabilities, and one uniform number picks
from it. Where the game may end before, what that is worth is known in expectation.
"""

import dataclasses
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.beliefs import tree_posterior


class Shape(NamedTuple):
    """What a program must know of a game before it is compiled.

    Attributes:
      actions: A, the most actions of an infoset.
      depth: the most decisions of the responder in one game.
      below: the most nodes below an edge.
      members: the most nodes of an infoset.
      levels: for each level of own decisions, its infosets: begin and end.
      half_range: half the range of the game's utilities; 1 if that is zero.
    """

    actions: int
    depth: int
    below: int
    members: int
    levels: tuple[tuple[int, int], ...]
    half_range: float


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SearchTree:
    """The M nodes: the histories at which the responder decides.

    An *edge* is an action at one of them; edge 0 is the start of the game. Nodes are
    sorted by the edge that leads to them, so the nodes below an edge are consecutive.

    Attributes:
      infoset: int32 [M], the responder's infoset.
      edge: int32 [M], the edge of its first action.
      start: int32 [E + 1], the nodes below edge e are `start[e]:start[e + 1]`.
      odds: float [M], cumulative probability of the nodes below an edge, given that the
        game goes on.
      going: float [E], probability that the game goes on to another own decision.
      reward: float [S + A], by sequence: the responder's utility if the game ends
        before that, times the probability that it does, given the infoset.
      first: int32 [I + 1], each infoset's first sequence.
      actions: int32 [I + 1], its number of actions; 0 at the last, which is nobody's.
      parent: int32 [I], its parent sequence.
      member: int32 [M], the nodes again, infoset after infoset.
      member_start: int32 [I + 1], an infoset's nodes are
        `member[member_start[i]:member_start[i + 1]]`.
      belief: float [M], cumulative probability of the nodes of an infoset.
      shape: what a program must know before it is compiled.
    """

    infoset: jax.Array
    edge: jax.Array
    start: jax.Array
    odds: jax.Array
    going: jax.Array
    reward: jax.Array
    first: jax.Array
    actions: jax.Array
    parent: jax.Array
    member: jax.Array
    member_start: jax.Array
    belief: jax.Array
    shape: Shape = dataclasses.field(metadata={"static": True})


def build(
    tree: GameTree,
    player: int,
    other_behaviour: np.ndarray,
    *,
    dtype: np.typing.DTypeLike = np.float32,
) -> SearchTree:
    """Lays out a game for one responder; numpy arrays.

    Args:
      tree: the compiled game.
      player: the responder.
      other_behaviour: float64 [S'], the opponent's action probabilities.
      dtype: of utilities and probabilities.

    Raises:
      ValueError: not a player, not a strategy of the other, or a game in which the
        responder never decides.
    """
    tree_posterior.check_opponent(tree, player, other_behaviour)
    histories, decisions = tree.histories, tree.infosets[player].decisions
    if not len(decisions):
        raise ValueError(
            f"{tree.game}: player {player} never decides anything; choose the other "
            f"player, or a game with decisions"
        )
    acts = histories.player == player
    # Elsewhere the infoset is another's number, or none.
    own_infoset = np.where(acts, histories.infoset, 0)
    counts = np.where(acts, decisions.num_actions[own_infoset], 0)
    # Edge 0 is the start; then every node's actions, in order.
    edge_of = np.where(acts, 1 + np.cumsum(counts) - counts, 0)
    edges = 1 + int(counts.sum())
    through, last, odds = _jumps(tree, player, other_behaviour, edge_of)
    nodes = np.flatnonzero(acts)
    nodes = nodes[np.argsort(through[nodes], kind="stable")]
    start = np.searchsorted(through[nodes], np.arange(edges + 1))
    over = np.flatnonzero(histories.player == TERMINAL)
    infoset = histories.infoset[nodes]
    member = np.argsort(infoset, kind="stable")
    member_start = np.searchsorted(infoset[member], np.arange(len(decisions) + 1))
    levels = decisions.levels()
    belief = tree_posterior.beliefs(tree, player, other_behaviour)
    gain = belief[last[over]] * odds[over] * histories.utility[over]
    reward = np.bincount(
        histories.sequence[player][over],
        gain * (1 if player == 0 else -1),
        minlength=decisions.num_sequences,
    )
    actions = int(decisions.num_actions.max())
    depth = int(levels.max()) + 1
    ends = [int(i) for i in np.searchsorted(levels, np.arange(depth + 1))]
    shape = Shape(
        actions=actions,
        depth=depth,
        below=int(np.diff(start).max()),
        members=int(np.diff(member_start).max()),
        levels=tuple(zip(ends[:-1], ends[1:], strict=True)),
        half_range=float(np.ptp(histories.utility[over])) / 2 or 1.0,
    )
    return SearchTree(
        infoset=_index(infoset),
        edge=_index(edge_of[nodes]),
        start=_index(start),
        odds=_real(_cumulate(odds[nodes], through[nodes], edges), dtype),
        going=_real(np.bincount(through[nodes], odds[nodes], minlength=edges), dtype),
        reward=_real(np.concatenate([reward, np.zeros(actions)]), dtype),
        first=_index(np.append(decisions.first_sequence, 0)),
        actions=_index(np.append(decisions.num_actions, 0)),
        parent=_index(decisions.parent),
        member=_index(member),
        member_start=_index(member_start),
        belief=_real(
            _cumulate(belief[nodes[member]], infoset[member], len(decisions)), dtype
        ),
        shape=shape,
    )


def pick(
    odds: jax.Array, begin: jax.Array, end: jax.Array, draw: jax.Array, most: int
) -> jax.Array:
    """The first place of begin:end whose cumulative probability exceeds a draw.

    Args:
      odds: float [M], cumulative within each range, at least 1 at its end.
      begin: int32 [B], start of each range.
      end: int32 [B], end of each range.
      draw: float [B] in [0, 1).
      most: length of the longest range.
    """
    low, high = begin, jnp.maximum(end - 1, begin)
    for _ in range(int(np.ceil(np.log2(max(1, most))))):
        middle = (low + high) // 2
        beyond = odds[middle] <= draw
        low = jnp.where(beyond, jnp.minimum(middle + 1, high), low)
        high = jnp.where(beyond, high, middle)
    return low


def padded_sequences(
    decisions: Decisions, infosets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The sequences of some infosets, in rows of equal length.

    Args:
      decisions: of one player.
      infosets: int [R].

    Returns:
      int [R, A], sequences, 0 at padding, and bool [R, A], not padding.
    """
    place = np.arange(int(decisions.num_actions.max()))
    legal = place < decisions.num_actions[infosets][:, None]
    sequence = decisions.first_sequence[infosets][:, None] + place
    return np.where(legal, sequence, 0), legal


def _jumps(
    tree: GameTree, player: int, other_behaviour: np.ndarray, edge_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each history the edge and the node last above it, and its probability given
    that edge."""
    histories = tree.histories
    step = tree_posterior.transitions(tree, player, other_behaviour)
    through = np.zeros(len(histories), np.int64)
    last = np.zeros(len(histories), np.int64)
    odds = np.ones(len(histories))
    starts = histories.level_start
    own = histories.sequence[player]
    first = tree.infosets[player].decisions.first_sequence
    for begin, end in zip(starts[1:-1], starts[2:], strict=True):
        above = histories.parent[begin:end]
        mine = histories.player[above] == player
        infoset = np.where(mine, histories.infoset[above], 0)
        action = own[begin:end] - first[infoset]
        through[begin:end] = np.where(mine, edge_of[above] + action, through[above])
        last[begin:end] = np.where(mine, above, last[above])
        odds[begin:end] = np.where(mine, 1.0, odds[above] * step[begin:end])
    return through, last, odds


def _cumulate(weight: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """Cumulative shares within runs of equal `group`; 1 from the last positive on."""
    total = np.bincount(group, weights=weight, minlength=groups)
    begin = np.searchsorted(group, np.arange(groups))
    running = np.cumsum(weight)
    before = np.where(begin > 0, running[begin - 1], 0.0)
    share = (running - before[group]) / np.where(total > 0, total, 1.0)[group]
    # Rounding may leave the last positive one a little below 1.
    place = np.arange(len(weight))
    last = np.zeros(groups, np.int64)
    np.maximum.at(last, group, np.where(weight > 0, place, 0))
    share[place >= last[group]] = 1.0
    return share


def _index(values: np.ndarray) -> jax.Array:
    return cast(jax.Array, values.astype(np.int32))


def _real(values: np.ndarray, dtype: np.typing.DTypeLike) -> jax.Array:
    return cast(jax.Array, values.astype(dtype))
