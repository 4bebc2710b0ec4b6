"""Checks by random matches that information states are valid, before a run starts."""

import numpy as np

from spiel_cr.common.errors import ImperfectRecallError, InvalidGameError
from spiel_cr.games.simulation.simulator import Positions, Simulator, play

# Number of parallel matches, and number of decisions after which no more are played.
_MATCHES, _DECISIONS = 2048, 100_000
_SIDE_BY_SIDE = 512
# Largest number of actions at all decisions of parallel matches.
_ACTIONS = 1 << 22
# Columns of a record: key, key of the player's previous decision, and the action
# there (from 1; zeros: none before), and the number of legal actions.
_COLUMNS, _KEY, _BEFORE = 6, slice(0, 2), slice(2, 5)


def check_source(source: Simulator, *, exact: bool) -> None:
    """Play random matches, and check that information states are consistent.

    This detects frequent violations. Rare ones are detected when a run encounters them.

    Args:
      source: Simulator of the game; the matches have a separate seed.
      exact: Whether averages are exact, so that players must remember their own
        actions.

    Raises:
      ImperfectRecallError: If an information state follows different actions of its
        player.
      InvalidGameError: If an information state has different numbers of legal actions.
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
    check_recall(
        source,
        same_actions=~same | (above[:, -1] == below[:, -1]),
        same_sequence=not exact
        or ~same | (above[:, _BEFORE] == below[:, _BEFORE]).all(axis=1),
    )


def _noted(
    source: Simulator, matches: int, random: np.random.Generator, most: int
) -> list[np.ndarray]:
    """Return records of matches at each depth, uint64 [n, 6]; about `most`."""
    before = np.zeros((matches, 2, 3), np.uint64)
    noted: list[np.ndarray] = []

    def act(
        positions: Positions, live: np.ndarray, match: np.ndarray
    ) -> np.ndarray | None:
        if sum(map(len, noted)) >= most:
            return None
        count = positions.num_actions[live]
        action: np.ndarray = (random.random(len(live)) * count).astype(np.int64)
        # Decisions with one legal action need no record.
        decides = np.flatnonzero(count > 1)
        actors, acts = match[decides], positions.player[live[decides]]
        key, legal = positions.key[live[decides]], count[decides].astype(np.uint64)
        noted.append(np.column_stack([key, before[actors, acts], legal]))
        before[actors, acts, :2] = key
        before[actors, acts, 2] = action[decides] + 1
        return action

    play(source, matches, random, act)
    return noted


def check_recall(
    source: Simulator, *, same_actions: np.ndarray, same_sequence: np.ndarray | bool
) -> None:
    """Raise an error if information states contradict perfect recall.

    Args:
      source: Simulator of the game.
      same_actions: Whether an information state has as many legal actions as when it
        was first visited, bool [n].
      same_sequence: Whether it follows the same action of the player as before, bool;
        True for sampled averages, because these do not need the player's history.

    Raises:
      ImperfectRecallError: As in `check_source`.
      InvalidGameError: As in `check_source`.
    """
    if not same_actions.all():
        raise InvalidGameError(
            f"{source.game}: an information state of a player has different numbers of "
            f"legal actions; correct the game's information states"
        )
    if not np.all(same_sequence):
        raise ImperfectRecallError(
            f"{source.game}: imperfect recall: an information state of a player is "
            f"reached after different own actions, which exact averages do not "
            f"support; use the parameter averaging=sampled of the algorithm"
        )
