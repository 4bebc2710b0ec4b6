"""Third stage: what may have happened, as far as a player can tell, in a growing game.

A belief is a list of histories of one infoset of the player, each weighted with the
probability that chance and the opponent, as it is believed to play, lead there.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spiel_cr import numbering
from spiel_cr.growing_source import Nodes, Source

__all__ = ["Belief", "advance", "keep_some", "most_roots", "select"]

# A part that begins anew has room for so many histories for each of its roots, but
# there are a few roots, however little that is.
_ROOM_OF_A_ROOT, _LEAST_ROOTS = 64, 4

# From an opponent's infosets, by label, and how many actions they have, int [n] each:
# its probabilities, float64 [sum of the counts].
Opponent = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Belief(NamedTuple):
    """Histories of one infoset.

    Attributes:
      nodes: n histories.
      weights: float64 [n], their probabilities; sum to 1.
    """

    nodes: Nodes
    weights: np.ndarray


def select(nodes: Nodes, chosen: np.ndarray) -> Nodes:
    """Some of the histories, by index or mask."""
    return Nodes(*(column[chosen] for column in nodes))


def most_roots(beliefs: int, room: int) -> int:
    """How many histories a part may begin with.

    Args:
      beliefs: how many the player thinks possible at most.
      room: histories that the part may have.
    """
    few = max(_LEAST_ROOTS, min(beliefs, room // _ROOM_OF_A_ROOT))
    # The move of chance to them takes room, too.
    return max(1, min(few, room - 1))


def keep_some(
    nodes: Nodes, weights: np.ndarray, most: int, random: np.random.Generator
) -> tuple[Nodes, np.ndarray]:
    """At most so many histories, drawn by their weights where there are more.

    Systematic sampling: a history whose weight is k times the mean of those kept is
    drawn k times or so, and then weighs k; the draws are one random number.
    """
    positive = np.flatnonzero(weights > 0)
    if len(positive) <= most:
        return select(nodes, positive), weights[positive]
    ends = np.cumsum(weights)
    points = (np.arange(most) + random.random()) * (ends[-1] / most)
    drawn = np.searchsorted(ends, points, side="right")
    drawn, times = np.unique(np.minimum(drawn, len(weights) - 1), return_counts=True)
    return select(nodes, drawn), times * (ends[-1] / most)


def advance(
    source: Source,
    belief: Belief,
    player: int,
    action: int | None,
    key: str,
    opponent: Opponent,
    *,
    most: int,
    random: np.random.Generator,
) -> Belief | None:
    """From a player's decision to its next one.

    Args:
      source: of the game.
      belief: at the last decision, or at the beginning of the game.
      player: whose.
      action: what it did there; None at the beginning of the game.
      key: its information-state string at the next decision.
      opponent: how the other one plays.
      most: histories to follow at a time; of more, some are drawn.
      random: consumed, one number a draw of histories.

    Returns:
      The belief there; None: none of the histories that were followed leads there.
    """
    nodes, weights = belief
    if action is not None:
        nodes, weights = _after(source, nodes, weights, action)
    found: list[tuple[Nodes, np.ndarray]] = []
    while len(weights):
        mine = np.flatnonzero(nodes.player == player)
        if len(mine):
            strings = source.strings(nodes.handles[mine], player)
            fits = mine[[string == key for string in strings]]
            found.append((select(nodes, fits), weights[fits]))
        goes_on = (nodes.player != player) & (nodes.player != numbering.TERMINAL)
        nodes, weights = select(nodes, goes_on), weights[goes_on]
        nodes, weights = keep_some(nodes, weights, most, random)
        if len(weights):
            nodes, weights = _follow(source, nodes, weights, opponent)
    if not sum(len(part) for _, part in found):
        return None
    columns = zip(*(part for part, _ in found), strict=True)
    nodes = Nodes(*(np.concatenate(column) for column in columns))
    nodes, weights = keep_some(
        nodes, np.concatenate([part for _, part in found]), most, random
    )
    return Belief(nodes, weights / weights.sum()) if len(weights) else None


def _after(
    source: Source, nodes: Nodes, weights: np.ndarray, action: int
) -> tuple[Nodes, np.ndarray]:
    """The histories after an action of the player."""
    children, where = source.children(nodes.handles, nodes.player, action)
    return children, weights[where]


def _follow(
    source: Source, nodes: Nodes, weights: np.ndarray, opponent: Opponent
) -> tuple[Nodes, np.ndarray]:
    """The children of histories where chance or the opponent acts."""
    children, where = source.children(nodes.handles, nodes.player)
    odds = children.factor.copy()
    acts = nodes.player != numbering.CHANCE
    if acts.any():
        odds[acts[where]] = opponent(nodes.label[acts], nodes.legal[acts])
    return children, weights[where] * odds
