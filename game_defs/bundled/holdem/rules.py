"""The deals of a `universal_poker`, read from its parameters."""

import itertools
from typing import NamedTuple

import numpy as np
import pyspiel

from game_defs import base
from game_defs.bundled.holdem.cards import HoldemDeck

MAX_HOLE_CARDS = 2


class HoldemRules(NamedTuple):
    """Deals of a game; the bets are read from OpenSpiel's states.

    Attributes:
      deck: Deck of all cards.
      hole: Number of private cards of each player.
      board: Public cards at the start, in the order of the game string.
      deals: Number of public cards dealt before each round of bets.
      reaches: Weights of both players' hands, in the order of `cards.Sets`, float64 [2,
        n]; None: all hands are equally likely.
    """

    deck: HoldemDeck
    hole: int
    board: tuple[int, ...]
    deals: tuple[int, ...]
    reaches: np.ndarray | None

    def round_of(self, dealt: int) -> int:
        """Return the round, from 0, in which `dealt` public cards have been dealt."""
        totals = itertools.accumulate(self.deals)
        return max(0, sum(cards <= dealt for cards in totals) - 1)


def rules_of(game: pyspiel.Game) -> HoldemRules:
    """Return the rules that a game's parameters describe.

    Raises:
      ValueError: If the game has no supported public-tree form. The message gives the
        reason.
    """
    params = game.get_parameters()
    if params["numPlayers"] != base.NUM_PLAYERS:
        raise ValueError(
            f"numPlayers={params['numPlayers']}: only two players are supported; use"
            " numPlayers=2"
        )
    hole = params["numHoleCards"]
    if not 1 <= hole <= MAX_HOLE_CARDS:
        raise ValueError(
            f"numHoleCards={hole}: only one or two private cards are supported; use 1"
            " or 2"
        )
    if params["betting"] == "limit" and params["bettingAbstraction"] == "fullgame":
        raise ValueError(
            "bettingAbstraction=fullgame with betting=limit: OpenSpiel offers bets that"
            " limit games do not have; use bettingAbstraction=fcpa for all limit bets"
        )
    deck = HoldemDeck(params["numRanks"], params["numSuits"])
    board = tuple(deck.cards(params["boardCards"]))
    deals = _deals(params, len(board))
    late = [cards for cards in deals[1:] if cards]
    if len(late) + (deals[0] > 0) > 1:
        shown = len(board) + deals[0]
        raise ValueError(
            f"boardCards={params['boardCards']!r}: public cards are dealt in several"
            f" rounds ({shown} at first, then"
            f" {', '.join(map(str, late))}), and OpenSpiel's information states do not"
            " contain their order; use a subgame with at most one deal to come, such as"
            " a turn or a river (potSize and boardCards), or spiel-cr spot for a flop,"
            " or solve the full game without a tree by algorithm os-mccfr or sd-cfr"
        )
    reaches = _reaches(params["handReaches"], deck, hole)
    return HoldemRules(deck, hole, board, (deals[0], *late), reaches)


def _deals(params: dict, shown: int) -> list[int]:
    """Return the number of public cards dealt before each remaining round of bets.

    As in OpenSpiel, a subgame begins in the round to which its last public card
    belongs.
    """
    every = [int(cards) for cards in params["numBoardCards"].split()]
    every = (every + [0] * params["numRounds"])[: params["numRounds"]]
    if shown > sum(every):
        raise ValueError(
            f"boardCards={params['boardCards']!r}: more cards than"
            f" numBoardCards={params['numBoardCards']!r} has in numRounds"
            f"={params['numRounds']}; give fewer cards, or add rounds"
        )
    if not shown:
        return every
    start = next(r for r in range(len(every)) if sum(every[: r + 1]) >= shown)
    return [sum(every[: start + 1]) - shown, *every[start + 1 :]]


def _reaches(text: str, deck: HoldemDeck, hole: int) -> np.ndarray | None:
    """Return the weights of both players' hands, in the order of `cards.Sets`.

    OpenSpiel orders hands by rank and, within a rank, by suit in reverse order
    ("shdc").
    """
    if not text:
        return None
    weights = np.array(text.split(), float)
    low, high = np.triu_indices(len(deck), 1)
    if hole != 2 or len(deck) != 52:
        raise ValueError(
            "handReaches: OpenSpiel supports ranges for two private cards of 52 only;"
            f" this game has {hole} of {len(deck)}, so leave handReaches out"
        )
    if len(weights) != 2 * len(low):
        raise ValueError(
            f"handReaches: {len(weights)} numbers were given; give {2 * len(low)}, one"
            " for each hand of each player"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(
            "handReaches: a number is negative or not finite; use weights of at least 0"
        )
    mirrored = deck.permuted(np.arange(len(deck)), range(deck.num_suits)[::-1])
    # Index of each pair of cards in OpenSpiel's order of hands.
    place = np.zeros((len(deck), len(deck)), int)
    place[low, high] = place[high, low] = np.arange(len(low))
    return weights.reshape(2, -1)[:, place[mirrored[low], mirrored[high]]]
