"""Third stage: what may have happened, as far as a player can tell, in a growing game.

A belief is a list of histories of one infoset of the player, each weighted with the
probability that chance and the opponent, as it is believed to play, lead there.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spiel_cr.compilation import numbering
from spiel_cr.partial.simulator import Nodes, Source

# A part that begins anew has room for so many histories for each of its roots, but
# there are a few roots, however little that is.
_ROOM_OF_A_ROOT, _LEAST_ROOTS = 64, 4

# From a player's infosets, by label, and how many actions they have, int [n] each: its
# probabilities, float64 [sum of the counts].
Strategy = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Belief(NamedTuple):
    """Histories of one infoset.

    Attributes:
      nodes: n histories.
      weights: float64 [n], their probabilities; sum to 1.
    """

    nodes: Nodes
    weights: np.ndarray


class Advanced(NamedTuple):
    """What `advance` finds.

    Attributes:
      belief: at the next decision.
      odds: probability that chance and the opponent lead there, after the action.
      turn: where the opponent acted first since the last decision, all histories of
        infosets after which the next one may come; weighted by probability. None: the
        opponent did not always act.
    """

    belief: Belief
    odds: float
    turn: Belief | None


def select(nodes: Nodes, chosen: np.ndarray) -> Nodes:
    """Some of the histories, by index or mask."""
    return Nodes(*(column[chosen] for column in nodes))


def join(*beliefs: Belief) -> Belief:
    """The histories of several, weighted as they are."""
    columns = zip(*(nodes for nodes, _ in beliefs), strict=True)
    nodes = Nodes(*(np.concatenate(column) for column in columns))
    return Belief(nodes, np.concatenate([weights for _, weights in beliefs]))


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
    drawn, weights = _draw(weights, most, random)
    return select(nodes, drawn), weights


def _draw(
    weights: np.ndarray, most: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Indices and new weights of those that `keep_some` keeps."""
    positive = np.flatnonzero(weights > 0)
    if len(positive) <= most:
        return positive, weights[positive]
    ends = np.cumsum(weights)
    points = (np.arange(most) + random.random()) * (ends[-1] / most)
    drawn = np.searchsorted(ends, points, side="right")
    drawn, times = np.unique(np.minimum(drawn, len(weights) - 1), return_counts=True)
    return drawn, times * (ends[-1] / most)


def advance(
    source: Source,
    belief: Belief,
    player: int,
    action: int | None,
    key: str,
    opponent: Strategy,
    *,
    most: int,
    random: np.random.Generator,
) -> Advanced | None:
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
      What is possible there; None: none of the histories that were followed leads
      there.
    """
    nodes, weights = belief
    if action is not None:
        nodes, weights = _after(source, nodes, weights, action)
    found: list[Belief] = []
    # Where the opponent acted first, and which of these each history comes after.
    turns: list[Belief] = []
    turn, turn_found, count = np.full(len(weights), -1), [], 0
    while len(weights):
        mine = np.flatnonzero(nodes.player == player)
        if len(mine):
            strings = source.strings(nodes.handles[mine], player)
            fits = mine[[string == key for string in strings]]
            found.append(Belief(select(nodes, fits), weights[fits]))
            turn_found.append(turn[fits])
        goes_on = (nodes.player != player) & (nodes.player != numbering.TERMINAL)
        chosen, weights = _draw(np.where(goes_on, weights, 0.0), most, random)
        nodes, turn = select(nodes, chosen), turn[chosen]
        first = np.flatnonzero((nodes.player == 1 - player) & (turn < 0))
        turn[first] = count + np.arange(len(first))
        turns.append(Belief(select(nodes, first), weights[first]))
        count += len(first)
        if len(weights):
            nodes, weights, where = _follow(source, nodes, weights, opponent)
            turn = turn[where]
    if not sum(len(weights) for _, weights in found):
        return None
    nodes, weights = join(*found)
    chosen, weights = _draw(weights, most, random)
    if not len(weights):
        return None
    begun = np.unique(np.concatenate(turn_found)[chosen])
    since = None
    if begun[0] >= 0:
        starts = join(*turns)
        every = np.isin(starts.nodes.label, starts.nodes.label[begun])
        since = Belief(select(starts.nodes, every), starts.weights[every])
    odds = float(weights.sum())
    return Advanced(Belief(select(nodes, chosen), weights / odds), odds, since)


def _after(
    source: Source, nodes: Nodes, weights: np.ndarray, action: int
) -> tuple[Nodes, np.ndarray]:
    """The histories after an action of the player."""
    children, where = source.children(nodes.handles, nodes.player, action)
    return children, weights[where]


def _follow(
    source: Source, nodes: Nodes, weights: np.ndarray, opponent: Strategy
) -> tuple[Nodes, np.ndarray, np.ndarray]:
    """The children of histories where chance or the opponent acts, and whose."""
    children, where = source.children(nodes.handles, nodes.player)
    odds = children.factor.copy()
    acts = nodes.player != numbering.CHANCE
    if acts.any():
        odds[acts[where]] = opponent(nodes.label[acts], nodes.legal[acts])
    return children, weights[where] * odds, where
