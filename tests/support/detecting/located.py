"""Where a compiled game's infosets and sequences are in its signal form."""

from typing import NamedTuple

import numpy as np

from spiel_cr.games.signals.game import SignalGame
from tests.support.detecting.knowledge import Signals
from tests.support.detecting.table import Table


class Detected(NamedTuple):
    """A signal game, and where the compiled game's infosets are in it.

    Attributes:
      game: the signal game.
      infosets: for each player int32 [I], the signal form's infoset of each compiled
        one. The signal form numbers a player's infosets by its public decisions in
        order of nodes, then by signals.
      sequences: for each player int32 [S], the same for sequences.
    """

    game: SignalGame
    infosets: tuple[np.ndarray, np.ndarray]
    sequences: tuple[np.ndarray, np.ndarray]


def locate_all(table: Table, game: SignalGame, signals: Signals) -> Detected:
    """Numbers of infosets and sequences in both forms."""
    betting = game.betting
    children = np.bincount(betting.parent[1:], minlength=len(betting))
    infosets, sequences = [], []
    for player, own in enumerate(table.tree.infosets):
        hands = np.array(game.num_signals(player))[betting.round]
        hands = np.where(betting.player == player, hands, 0)
        before = np.cumsum(hands) - hands
        node = table.public.node[own.history]
        deal = table.deals.node[own.history]
        signal = np.zeros(len(own), np.int64)
        for number, part in enumerate(table.rounds):
            here = np.flatnonzero(betting.round[node] == number)
            signal[here] = signals[player][number][
                np.searchsorted(part.deals, deal[here])
            ]
        place = before[node] + signal
        infosets.append(place.astype(np.int32))
        # All signals of a node have as many actions.
        actions = children[node]
        count = np.empty(len(own), np.int64)
        count[place] = actions
        first = 1 + np.cumsum(count) - count
        begin = own.decisions.first_sequence
        rank = np.arange(1, own.decisions.num_sequences) - np.repeat(begin, actions)
        mapped = np.repeat(first[place], actions) + rank
        sequences.append(np.append(0, mapped).astype(np.int32))
    return Detected(game, (infosets[0], infosets[1]), (sequences[0], sequences[1]))
