"""Finds the signal form of a compiled game, or says why it has none.

Histories with the same players' actions are one public node, chance moves are deals. A
player's signal is what its infosets tell it of the deal: at every node of a round they
must tell the same. Payoff matrices of leaves that are proportional share a kernel. All
payoffs are then built again from the signal form and compared to the compiled ones.
"""

import numpy as np

from spiel_cr.games.signals.game import SignalGame
from spiel_cr.games.tree.tree import CompiledGame
from tests.support.detecting import factors, knowledge, located, rebuilding
from tests.support.detecting.deal_reader import DealReader, Deals
from tests.support.detecting.knowledge import Signals
from tests.support.detecting.located import Detected
from tests.support.detecting.table import Table, betting_of, make_table


def detect(tree: CompiledGame) -> SignalGame:
    """The signal form of a compiled game.

    Args:
      tree: a whole game.

    Raises:
      ValueError: the game has no signal form; the message says why.
    """
    return locate(tree).game


def locate(tree: CompiledGame) -> Detected:
    """The signal form of a compiled game, and what is what.

    Args:
      tree: a whole game.

    Raises:
      ValueError: the game has no signal form; the message says why.
    """
    if tree.frontier is not None:
        raise ValueError(
            f"{tree.game} is compiled in part only, so its signal form cannot be "
            f"found; compile it whole"
        )
    table = make_table(tree)
    betting = betting_of(table)
    signals, parents = knowledge.signals_of_deals(table)
    kernels, terms = factors.factorise(table, signals)
    reader = _reader(table, signals)
    game = SignalGame(tree.game, betting, parents, kernels, terms, reader)
    game.check()
    detected = located.locate_all(table, game, signals)
    rebuilding.check_payoffs(tree, detected)
    return detected


def _reader(table: Table, signals: Signals) -> DealReader:
    of_deal = np.full((2, len(table.deals.parent)), -1, np.int32)
    for number, part in enumerate(table.rounds):
        for player in range(2):
            of_deal[player, part.deals] = signals[player][number]
    return DealReader(
        table.tree.game,
        Deals(table.deals.parent, table.deals.action),
        (of_deal[0], of_deal[1]),
        tuple(part.deals for part in table.rounds),
        tuple(tuple(table.moves_to(int(part.nodes[0]))) for part in table.rounds),
    )
