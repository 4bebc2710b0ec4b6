"""Public nodes and deals of a public-tree game at which policies are queried."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.errors import MoreKnowledgeError
from spiel_cr.games.opening.batched_rules import BatchedRules, of_game
from spiel_cr.games.public_tree.declaration import deals as dealing
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_nodes import Betting
from spiel_cr.games.query_batch import QueryBatch

# Whether `queries` has the argument `merged`.
MERGES_DEALS = True
# Infosets of a batch, about.
_CHUNK = 1 << 16


def queries(
    game: PublicTreeGame,
    player: int,
    random: np.random.Generator | None = None,
    *,
    full: bool = False,
    merged: bool = False,
) -> Iterator[QueryBatch]:
    """Choose public nodes and deals of all infosets of a player.

    Args:
      game: A game whose reader has deals of private states.
      player: The player whose infosets they are.
      random: Chooses deals for repeated queries. If None, no query is repeated.
      full: Must be False, because a private state may have too many deals.
      merged: Whether to accept private states that contain deals which players can
        tell apart. Otherwise such games raise an error.

    Yields:
      Batches of infosets, each followed by the same infosets at other deals if queries
      are repeated.

    Raises:
      MoreKnowledgeError: If a player may know more than its private state and the
        public actions.
      ValueError: If the reader has no deals of private states.
    """
    if full:
        raise ValueError(
            f"check='full': the deals of the public-tree game {game.game} are not "
            f"enumerated; use check='sample', or build the game tree"
        )
    reader: Any = game.reader
    rules = getattr(reader, "rules", None) or of_game(game.game)
    if not hasattr(reader, "deals") or rules is None:
        raise ValueError(
            f"{game.game}: policies cannot be queried at its private states, because "
            f"its batched rules do not declare them; give a game that does"
        )
    if reader.merges_deals and not merged:
        raise MoreKnowledgeError(
            f"{game.game}: players may know more than their private states (for "
            f"example, suits that make no difference), or there are too many deals to "
            f"check, so a policy may not be a strategy of the public tree; use "
            f"'canonical(policy=...)', which plays every deal as one with the same "
            f"private state, or approximate best responses"
        )
    for nodes, bets in _alike(game.betting, player):
        round = int(game.betting.round[nodes[0]])
        deals = reader.deals(player, round)
        others = None if random is None else reader.deals(player, round, random)
        step = max(1, _CHUNK // len(deals))
        for begin in range(0, len(nodes), step):
            some = bets[begin : begin + step]
            for first in range(0, len(deals), _CHUNK):
                part = slice(first, min(first + _CHUNK, len(deals)))
                batch = _batch(game, player, nodes[begin : begin + step], part)
                first_batch = dataclasses.replace(
                    batch,
                    states=functools.partial(_states, game.game, deals[part], some),
                    rules=rules,
                    rows=functools.partial(_rows, rules, deals[part], some),
                )
                yield first_batch
                if others is not None:
                    states = functools.partial(_states, game.game, others[part], some)
                    yield dataclasses.replace(
                        batch, states=states, original=first_batch
                    )


def _batch(
    game: PublicTreeGame, player: int, nodes: np.ndarray, part: slice
) -> QueryBatch:
    """Make a batch of some private states at some public nodes, without states."""
    decisions, size = game.public_decisions[player], part.stop - part.start
    j = np.searchsorted(decisions.node, nodes)
    counts = np.repeat(decisions.num_actions[j], size)
    first = np.repeat(decisions.first_sequence[j], size)
    first += np.tile(np.arange(part.start, part.stop), len(j)) * counts
    actions = [np.tile(game.betting.actions(int(node)), size) for node in nodes]
    return QueryBatch(player, counts, first, np.concatenate(actions), lambda: iter(()))


def _rows(rules: BatchedRules, deals: np.ndarray, bets: np.ndarray) -> np.ndarray:
    """Return states of batched rules; for the arguments see `_states`."""
    each = np.repeat(bets, len(deals), axis=0)
    return dealing.play(rules, np.tile(deals, (len(bets), 1)), each)


def _states(
    game: pyspiel.Game, deals: np.ndarray, bets: np.ndarray
) -> Iterator[pyspiel.State]:
    """Make the states after each of some bets with each of some deals.

    Args:
      game: The game.
      deals: Chance outcomes for each private state, int [H, n].
      bets: Actions of the players, int [m, k].
    """
    for moves in bets:
        for deal in deals:
            yield dealing.state_after(game, deal, moves)


def _alike(betting: Betting, player: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Group a player's public decisions by number of actions and ends of rounds.

    Yields:
      int64 [n], nodes, and int32 [n, m], the players' actions that lead there.
    """
    kind = np.zeros(len(betting), np.int64)
    for depth, nodes in enumerate(betting.levels()):
        if depth:
            above = np.stack([kind[betting.parent[nodes]], betting.round[nodes]])
            _, kind[nodes] = np.unique(above, axis=1, return_inverse=True)
        acting = nodes[betting.player[nodes] == player]
        bets, place = np.zeros((len(acting), depth), np.int32), acting
        for column in bets.T[::-1]:
            column[:] = betting.action[place]
            place = betting.parent[place]
        for number in np.unique(kind[acting]):
            chosen = kind[acting] == number
            yield acting[chosen], bets[chosen]
