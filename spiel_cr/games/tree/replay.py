"""Paths of actions played again, for what is asked later: by states or vectorised.

What belongs to infosets only (strings, keys of buckets) is not kept on the way down the
tree; it is asked at the first history of each infoset.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyspiel

from spiel_cr.games.histories import Histories
from spiel_cr.games.opening.vectorised import VectorisedGame
from spiel_cr.games.tree.infostate_strings import Strings

# Paths played at once: few enough that their states stay in a processor's cache.
_CHUNK = 1 << 14


def lazy_strings(
    game: pyspiel.Game,
    rules: VectorisedGame,
    histories: Histories,
    first: np.ndarray,
    player: int,
) -> Strings:
    """A player's information-state strings, made when they are asked for.

    Args:
      game: asked if the vectorised game makes no strings.
      rules: the vectorised game.
      histories: all histories.
      first: int32 [I], the first history of each of the player's infosets.
      player: 0 or 1.
    """

    def one(infoset: int) -> str:
        path = histories.actions_to(int(first[infoset]))
        return string_at(game, path, player)

    def every() -> Iterator[str]:
        paths = histories.paths_to(first)
        make = getattr(rules, "information_state_strings", None)
        if make is None:
            found = {
                number: state.information_state_string(player)
                for number, state in states_along(game, paths)
            }
            yield from (found[number] for number in range(len(paths)))
            return
        for states in vectorised_states_along(rules, paths):
            yield from make(states, player)

    return Strings(len(first), one, every)


def vectorised_states_along(
    rules: VectorisedGame, paths: np.ndarray
) -> Iterator[np.ndarray]:
    """Plays each of many paths by a vectorised game.

    Args:
      rules: the vectorised game.
      paths: integers [paths, D], actions from the root, chance included, then -1.

    Yields:
      The states after the paths, in order, some thousands at a time.
    """
    for start in range(0, len(paths), _CHUNK):
        some = paths[start : start + _CHUNK].astype(np.int64)
        states = np.repeat(rules.new_initial_states(), len(some), axis=0)
        for action in some.T:
            on = action >= 0
            states[on] = rules.child(states[on], action[on])
        yield states


def string_at(game: pyspiel.Game, actions: Iterable[int], player: int) -> str:
    """A player's information-state string after some actions, chance included."""
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(int(action))
    return state.information_state_string(player)


def states_along(
    game: pyspiel.Game, paths: np.ndarray
) -> Iterator[tuple[int, pyspiel.State]]:
    """Plays each of many paths.

    Paths with a common beginning share the states there, so each state on the way is
    made once.

    Args:
      game: a sequential game.
      paths: integers [paths, D], actions from the root, chance included, then -1.

    Yields:
      The index of each path, in any order, and the state after it; do not change it.
    """
    states = [game.new_initial_state()]
    last = np.full(paths.shape[1], -1)
    for number in np.lexsort(paths.T[::-1]) if len(paths) else ():
        path = paths[number]
        differs = np.flatnonzero(np.append(path != last, True))[0]
        del states[differs + 1 :]
        for action in path[differs : np.count_nonzero(path >= 0)].tolist():
            states.append(states[-1].child(action))
        yield int(number), states[-1]
        last = path
