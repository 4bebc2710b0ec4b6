"""Ranges and what public states are worth at them: the data of value networks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.resolving.leaves.public_states import PublicStates
from spiel_cr.resolving.leaves.training.targets import TargetSolver

# Pairs of ranges that are solved at a time.
_AT_ONCE = 64
# An infoset that the other player's range rules out nearly counts so much.
_LEAST_WEIGHT = 0.05
# An infoset that the player's own range rules out counts so much; one that it holds
# this many times less often than its likeliest, in full.
_LEAST_OWN = 0.25
_MANY = 5


class Samples(NamedTuple):
    """B pairs of ranges at all public states of a part, with their values.

    Attributes:
      ranges: by player float32 [B, J0] and [B, J1].
      targets: likewise, values over the largest utility and over the probability of
        chance and the other's range; 0 where that is 0.
      weights: likewise, what errors count: that probability relative to the state's
        largest plus a little, times the player's own range relative to the state's
        largest, at least a quarter; 0 where the probability is 0.
    """

    ranges: tuple[Any, Any]
    targets: tuple[Any, Any]
    weights: tuple[Any, Any]


def label(
    solver: TargetSolver,
    ranges: tuple[np.ndarray, np.ndarray],
    scale: float,
    before_solve: Callable[[], None] = lambda: None,
) -> Samples:
    """Makes samples of pairs of ranges at the public states of a part.

    Args:
      solver: of these states.
      ranges: float [B, J0] and [B, J1].
      scale: the game's largest |utility|.
      before_solve: called before each batch; may raise to stop.
    """
    count, states = len(ranges[0]), solver.states
    values: list[list[np.ndarray]] = [[], []]
    for begin in range(0, count, _AT_ONCE):
        before_solve()
        # The last batch is filled up: one shape, one program.
        rows = np.arange(begin, begin + _AT_ONCE) % count
        some = solver.solve((ranges[0][rows], ranges[1][rows]))
        for p in range(2):
            values[p].append(some[p][: count - begin])
    targets, weights = [], []
    for p in range(2):
        found = np.concatenate(values[p]) / scale
        reach = other_reach(states, p, ranges[1 - p])
        targets.append(
            np.divide(found, reach, out=np.zeros_like(found), where=reach > 0)
        )
        bounds, state = states.bounds(p), states.state[p]
        top = np.maximum.reduceat(reach, bounds[:-1], axis=1)[:, state]
        share = reach / np.where(top > 0, top, 1)
        # Where a player nearly never is, its value only says whether to go there.
        most = np.maximum.reduceat(ranges[p], bounds[:-1], axis=1)[:, state]
        held = ranges[p] / np.where(most > 0, most, 1)
        own = _LEAST_OWN + (1 - _LEAST_OWN) * np.minimum(1, _MANY * held)
        weights.append(np.where(reach > 0, (share + _LEAST_WEIGHT) * own, 0))
    pairs = (tuple(ranges), tuple(targets), tuple(weights))
    single = [tuple(own.astype(np.float32) for own in both) for both in pairs]
    return Samples(*((both[0], both[1]) for both in single))


def other_reach(states: PublicStates, player: int, ranges: np.ndarray) -> np.ndarray:
    """Probability of chance and of the other's range at each of a player's infosets.

    Args:
      states: the public states.
      player: whose infosets.
      ranges: float [B, J of the other].

    Returns:
      float [B, J of the player].
    """
    place = states.place
    weights = np.zeros((len(states.infosets[1 - player]), len(states.infosets[player])))
    np.add.at(weights, (place[1 - player], place[player]), states.chance)
    reach: np.ndarray = ranges @ weights
    return reach


def joined(parts: list[Samples]) -> Samples:
    """Samples one after another."""
    return Samples(
        *(
            (
                np.concatenate([getattr(one, name)[0] for one in parts]),
                np.concatenate([getattr(one, name)[1] for one in parts]),
            )
            for name in Samples._fields
        )
    )
