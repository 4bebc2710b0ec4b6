"""Second stage: many paths played again by a game's expansion, for what is asked later.

What belongs to infosets only (strings, keys of buckets) is not kept on the way down the
tree; it is asked at the first history of each infoset.
"""

from collections.abc import Iterator

import numpy as np
import pyspiel

from spiel_cr.compilation import infostate_strings, vectorised

# Paths played at once: few enough that their states stay in a processor's cache.
_CHUNK = 1 << 14


def states_along(
    rules: vectorised.VectorisedGame, paths: np.ndarray
) -> Iterator[np.ndarray]:
    """Plays each of many paths.

    Args:
      rules: an expansion.
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


def strings(
    game: pyspiel.Game, rules: vectorised.VectorisedGame, paths: np.ndarray, player: int
) -> Iterator[str]:
    """Information-state strings of a player after each of many paths.

    Args:
      game: asked if the expansion makes no strings.
      rules: its expansion.
      paths: integers [paths, D], actions from the root, chance included, then -1.
      player: who has observed.
    """
    make = getattr(rules, "information_state_strings", None)
    if make is None:
        yield from infostate_strings.strings_along(game, paths, player)
        return
    for states in states_along(rules, paths):
        yield from make(states, player)
