"""Histories of a phantom game at which policies are queried."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pyspiel

from spiel_cr.games.histories import state_after
from spiel_cr.games.phantom.abrupt import AbruptGame
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.query_batch import QueryBatch

# Number of infosets of each part of a game at which a policy is queried twice.
_QUERIED_TWICE = 64


def queries(
    game: PhantomGame,
    player: int,
    random: np.random.Generator | None = None,
    *,
    full: bool = False,
) -> Iterator[QueryBatch]:
    """Choose histories of all infosets of a player.

    Infosets may be coarser than OpenSpiel's information states. Queries at some
    infosets are therefore repeated, whatever the policy.

    Args:
      game: The phantom game.
      player: The player whose infosets they are.
      random: Unused: every policy is queried at the same histories.
      full: Must be False, because an infoset may have too many histories.

    Yields:
      Batches of histories in which no move of the other player is rejected, each
      followed by a few of these infosets at histories with rejected moves.
    """
    if full:
        raise ValueError(
            f"check='full': the histories of the phantom game {game.game} are not "
            f"enumerated; use check='sample', or build the game tree"
        )
    side = game.sides[player]
    for part, paths in game.histories(player):
        counts = side.decisions.num_actions[part]
        first = side.decisions.first_sequence[part]
        actions = side.actions[first[0] - 1 : first[-1] - 1 + counts[-1]]
        batch = path_batch(game, player, counts, actions, paths, first)
        yield batch
        some = np.arange(0, len(paths), max(1, len(paths) // _QUERIED_TWICE))
        actions = actions[np.isin(batch.owner, some)]
        original = path_batch(
            game, player, counts[some], actions, paths[some], first[some]
        )
        longer = [
            game.with_failures([action for action in path if action >= 0], player)
            for path in paths[some].tolist()
        ]
        padded = np.full((len(longer), 1 + max(map(len, longer))), -1, np.int16)
        for row, path in zip(padded, longer, strict=True):
            row[: len(path)] = path
        yield dataclasses.replace(
            path_batch(game, player, counts[some], actions, padded, first[some]),
            original=original,
        )


def path_batch(
    game: PhantomGame | AbruptGame,
    player: int,
    counts: np.ndarray,
    actions: np.ndarray,
    paths: np.ndarray,
    first_sequence: np.ndarray,
) -> QueryBatch:
    """Make a batch of infosets from one history of each.

    Args:
      game: The game.
      player: Player who acts after all histories.
      counts: Number of legal actions at each infoset, int [n].
      actions: Legal actions at all infosets, int [m].
      paths: OpenSpiel's actions to each infoset, then -1, int16 [n, L].
      first_sequence: Sequence of each infoset's first action, int [n].
    """
    rules = game.rules

    def rows() -> np.ndarray:
        states = np.repeat(rules.new_initial_states(), len(paths), axis=0)
        for step in paths.T:
            going = np.flatnonzero(step >= 0)
            states[going] = rules.child(states[going], step[going].astype(np.int64))
        return states

    def states() -> Iterator[pyspiel.State]:
        for path in paths.tolist():
            yield state_after(game.game, (action for action in path if action >= 0))

    return QueryBatch(player, counts, first_sequence, actions, states, rules, rows)
