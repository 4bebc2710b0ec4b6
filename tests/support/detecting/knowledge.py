"""What deals tell the players: their signals, which each round refines."""

from typing import TypeAlias

import numpy as np

from tests.support.detecting.deal_reader import Deals
from tests.support.detecting.table import Round, Table

# For each player and round int32 [D], the signal of each deal.
Signals: TypeAlias = tuple[list[np.ndarray], list[np.ndarray]]


def signals_of_deals(
    table: Table,
) -> tuple[Signals, tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]]:
    """What each deal tells each player.

    Returns:
      For each player and round int32 [D], the signal of each deal; and `parents` of
      the signal game.

    Raises:
      ValueError: a player knows more of a deal at one node of a round than at another.
    """
    signals: Signals = ([], [])
    parents: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    deals = Deals(table.deals.parent, table.deals.action)
    for number, part in enumerate(table.rounds):
        before = _deals_before(table, number)
        outcomes = deals.outcomes(part.deals)
        for player in range(2):
            above = signals[player][-1][before] if number else np.zeros(1, np.int32)
            above = np.broadcast_to(above, len(part.deals))
            first, signal = _known(table, part, player, above, outcomes)
            signals[player].append(signal.astype(np.int32))
            parents[player].append(above[first].astype(np.int32))
    return signals, (tuple(parents[0]), tuple(parents[1]))


def _known(
    table: Table, part: Round, player: int, above: np.ndarray, outcomes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the deals of one round tell one player.

    Args:
      table: the game.
      part: the round.
      player: whose signals.
      above: integers [D], the signals of the round before.
      outcomes: int32 [D, m], of each deal.

    Returns:
      integers [H], a deal that gives each signal, and integers [D], the signals.
    """
    rows = np.flatnonzero(table.player[part.nodes] == player)
    if not len(rows):
        return np.unique(above, return_index=True, return_inverse=True)[1:]
    known = table.tree.histories.infoset[part.history[rows]]
    _, first, signal = np.unique(known[0], return_index=True, return_inverse=True)
    rank = np.argsort(_order(outcomes, signal, first))
    signal, first = rank[signal], first[np.argsort(rank)]
    shown = known[:, first]
    odd = (known != shown[:, signal]).any(axis=1)
    # A node at which the player knows less gives one infoset to several signals.
    ordered = np.sort(shown, axis=1)
    odd |= (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if odd.any():
        raise table.refusal(
            f"player {player} does not know the same of the deal after {{}} and after "
            f"{{}}",
            part.nodes[rows[0]],
            part.nodes[rows[np.argmax(odd)]],
        )
    if (above != above[first][signal]).any():
        raise table.refusal(
            f"player {player} knows less of the deal after {{}} than in the round "
            f"before",
            part.nodes[rows[0]],
        )
    return first, signal


def _order(outcomes: np.ndarray, signal: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Signals by the outcomes that they tell for sure, then by their first deals.

    Args:
      outcomes: int32 [D, m], of each deal.
      signal: integers [D], the signal of each deal.
      first: integers [H], the first deal of each signal.

    Returns:
      integers [H], signals in their new order.
    """
    same = np.ones((len(first), outcomes.shape[1]), bool)
    np.logical_and.at(same, signal, outcomes == outcomes[first][signal])
    sure = np.where(same, outcomes[first], -1)
    return np.lexsort((first, *sure.T[::-1]))


def _deals_before(table: Table, number: int) -> np.ndarray:
    """integers [D], for each deal of a round the deal of the round before it."""
    part = table.rounds[number]
    if not number:
        return np.zeros(len(part.deals), int)
    earlier = table.rounds[number - 1].deals
    deals, depth = part.deals, int(table.deals.depth[earlier[0]])
    for _ in range(int(table.deals.depth[deals[0]]) - depth):
        deals = table.deals.parent[deals]
    place = np.minimum(np.searchsorted(earlier, deals), len(earlier) - 1)
    if (earlier[place] != deals).any():
        raise table.refusal(
            "what chance deals depends on the players' actions: after {} there are "
            "cards that cannot come after {}",
            part.nodes[0],
            table.rounds[number - 1].nodes[0],
        )
    return place
