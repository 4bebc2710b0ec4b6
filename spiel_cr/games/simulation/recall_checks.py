"""Games whose information states are none are refused before the work, by matches."""

import numpy as np

from spiel_cr.common.errors import ImperfectRecallError, InvalidGameError
from spiel_cr.games.simulation.simulator import Positions, Simulator, play

# Matches that are played, side by side, and decisions after which no more are.
_MATCHES, _DECISIONS = 2048, 100_000
_SIDE_BY_SIDE = 512
# Actions at all decisions of matches side by side, at most.
_ACTIONS = 1 << 22
# Columns of what is noted: a key, that of the player's decision before and the action
# there (from 1; zeros: none before), and the number of legal actions.
_COLUMNS, _KEY, _BEFORE = 6, slice(0, 2), slice(2, 5)


def check_source(source: Simulator, *, exact: bool) -> None:
    """Plays random matches, and holds information states to what they promise.

    That finds what is common. What is rare is found by sampling, when it is met.

    Args:
      source: of the game; its matches have a seed of their own.
      exact: averages are exact, so players must remember their own actions.

    Raises:
      ImperfectRecallError: one comes after different own actions.
      InvalidGameError: one has different numbers of legal actions.
    """
    random = np.random.default_rng(0)
    noted: list[np.ndarray] = []
    left = _DECISIONS
    count = max(1, min(_SIDE_BY_SIDE, _ACTIONS // max(source.max_actions, 1)))
    for _ in range(-(-_MATCHES // count)):
        if left > 0:
            played = _noted(source, count, random, left)
            noted += played
            left -= sum(map(len, played))
    rows = np.concatenate(noted) if noted else np.zeros((0, _COLUMNS), np.uint64)
    rows = rows[np.lexsort(rows.T[_KEY])]
    above, below = rows[:-1], rows[1:]
    same = (above[:, _KEY] == below[:, _KEY]).all(axis=1)
    check_promises(
        source,
        same_actions=~same | (above[:, -1] == below[:, -1]),
        same_sequence=not exact
        or ~same | (above[:, _BEFORE] == below[:, _BEFORE]).all(axis=1),
    )


def _noted(
    source: Simulator, matches: int, random: np.random.Generator, most: int
) -> list[np.ndarray]:
    """What some matches note at each depth, uint64 [n, 6]; some more than `most`."""
    before = np.zeros((matches, 2, 3), np.uint64)
    noted: list[np.ndarray] = []

    def act(
        positions: Positions, live: np.ndarray, match: np.ndarray
    ) -> np.ndarray | None:
        if sum(map(len, noted)) >= most:
            return None
        count = positions.num_actions[live]
        action: np.ndarray = (random.random(len(live)) * count).astype(np.int64)
        # With one legal action nothing is decided.
        decides = np.flatnonzero(count > 1)
        actors, acts = match[decides], positions.player[live[decides]]
        key, legal = positions.key[live[decides]], count[decides].astype(np.uint64)
        noted.append(np.column_stack([key, before[actors, acts], legal]))
        before[actors, acts, :2] = key
        before[actors, acts, 2] = action[decides] + 1
        return action

    play(source, matches, random, act)
    return noted


def check_promises(
    source: Simulator, *, same_actions: np.ndarray, same_sequence: np.ndarray | bool
) -> None:
    """Refuses games whose information states are none of perfect recall.

    Args:
      source: of the game.
      same_actions: bool, whether an information state has as many legal actions as
        before.
      same_sequence: bool, whether it comes after the same own action as before; True
        where averages are sampled, for then what was before may be forgotten.

    Raises:
      ImperfectRecallError, InvalidGameError: as `check_source`.
    """
    if not same_actions.all():
        raise InvalidGameError(
            f"{source.game}: an information state of a player has different numbers of "
            f"legal actions; correct the game's information states"
        )
    if not np.all(same_sequence):
        raise ImperfectRecallError(
            f"{source.game}: imperfect recall: an information state of a player is "
            f"reached after different own actions, and exact averages need to know "
            f"after which; give the algorithm the parameter averaging=sampled"
        )
