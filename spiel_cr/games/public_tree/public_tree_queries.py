"""Public nodes and deals of a public-tree game at which policies are queried."""

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np
import pyspiel

from spiel_cr.common.errors import MoreKnowledgeError
from spiel_cr.games.public_tree.declaration.declaration import DealtReader
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_nodes import Betting
from spiel_cr.games.query_batch import QueryBatch

# Infosets of a batch, about.
_CHUNK = 1 << 16


def queries(
    game: PublicTreeGame,
    player: int,
    random: np.random.Generator | None = None,
    *,
    full: bool = False,
) -> Iterator[QueryBatch]:
    """Choose public nodes and deals of all infosets of a player.

    Args:
      game: A game that is declared by batched rules.
      player: The player whose infosets they are.
      random: Chooses deals for repeated queries. If None, no query is repeated.
      full: Must be False, because a private state may have too many deals.

    Yields:
      Batches of infosets, each followed by the same infosets at other deals if queries
      are repeated.

    Raises:
      MoreKnowledgeError: If a player may know more than its private state and the
        public actions.
      ValueError: If the game is declared by other means.
    """
    if full:
        raise ValueError(
            f"check='full': the deals of the public-tree game {game.game} are not "
            f"enumerated; use check='sample', or build the game tree"
        )
    reader = game.reader
    if not isinstance(reader, DealtReader):
        raise ValueError(
            f"{game.game}: policies cannot be queried at its private states, because "
            f"its batched rules do not declare them; give a game that does"
        )
    if not reader.tells_all():
        raise MoreKnowledgeError(
            f"{game.game}: players may know more than their private states (for "
            f"example, suits that make no difference), or there are too many deals to "
            f"check, so a policy may not be a strategy of the public tree; use "
            f"approximate best responses"
        )
    decisions = game.public_decisions[player]
    for nodes, bets in _alike(game.betting, player):
        round = int(game.betting.round[nodes[0]])
        hands = game.num_private_states(player)[round]
        step = max(1, _CHUNK // hands)
        for begin in range(0, len(nodes), step):
            some = slice(begin, begin + step)
            j = np.searchsorted(decisions.node, nodes[some])
            counts = np.repeat(decisions.num_actions[j], hands)
            first = np.repeat(decisions.first_sequence[j], hands)
            first += np.tile(np.arange(hands), len(j)) * counts
            rows = reader.states(player, round, bets[some])
            legal = reader.rules.legal_actions_mask(rows)
            batch = QueryBatch(
                player,
                counts,
                first,
                np.nonzero(legal)[1],
                functools.partial(
                    _states, reader, reader.examples[player][round], bets[some]
                ),
                reader.rules,
                functools.partial(np.asarray, rows),
            )
            yield batch
            if random is not None:
                deals = reader.random_examples(player, round, random)
                states = functools.partial(_states, reader, deals, bets[some])
                yield dataclasses.replace(
                    batch, states=states, rules=None, rows=None, original=batch
                )


def _states(
    reader: DealtReader, deals: np.ndarray, bets: np.ndarray
) -> Iterator[pyspiel.State]:
    """Make the states after each of some bets with each of some deals.

    Args:
      reader: The reader of the game.
      deals: Chance outcomes for each private state, int [H, n].
      bets: Actions of the players, int [m, k].
    """
    for moves in bets:
        for deal in deals:
            yield reader.state_after(deal, moves)


def _alike(betting: Betting, player: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Group a player's public decisions by number of actions and ends of rounds.

    Yields:
      int64 [n], nodes, and int32 [n, m], the players' actions that lead there.
    """
    kind = np.zeros(len(betting), np.int64)
    for depth, nodes in enumerate(betting.by_depth()):
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
