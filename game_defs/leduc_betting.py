"""The rules of `leduc_poker`: deals and bets, as tables and pure functions.

The bets do not depend on the cards, so `betting_tree` lays out all sequences of deals
and bets in advance, as tables. A state of the game is then a row of these tables and
the cards dealt, two integers; a level of many states is expanded by indexing the tables
with an array of rows. The functions of cards take numpy arrays just as well as
integers, elementwise, but for `rank_odds`.
"""

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from game_defs.base import CHANCE, NUM_PLAYERS, TERMINAL, Shared


class Action(enum.IntEnum):
    """What a player can do; a deal has the number of the rank instead."""

    FOLD = 0
    CALL = 1
    RAISE = 2


NUM_SUITS = 2
NUM_DEALS = 3
ANTE = 1
RAISES = (2, 4)  # by round

_LETTERS = "fcr"
_DEAL = "d"
# A card is the rank plus 1, or 0 as long as it is not dealt. The cards of player 0 and
# player 1 and the public one, in the order of the deals, share one integer.
_CARD_BITS = 4
_CARD_MASK = (1 << _CARD_BITS) - 1

_Cards = TypeVar("_Cards", int, np.ndarray)


class Bets(NamedTuple):
    """What is public but the public card: deals made and bets so far.

    Attributes:
      num_deals: cards dealt, 0 to 3.
      mover: player to move, or the OpenSpiel number of chance or of a terminal state.
      chips: chips that each player has put into the pot and not got back.
      raises: raises in this round.
      folded: player that has folded, or -1.
      text: all deals and bets in order, of the letters d, f, c, r.
    """

    num_deals: int = 0
    mover: int = CHANCE
    chips: tuple[int, int] = (ANTE, ANTE)
    raises: int = 0
    folded: int = -1
    text: str = ""

    def actions(self) -> list["Action"]:
        """Returns all actions of players, in order."""
        return [Action(_LETTERS.index(c)) for c in self.text if c != _DEAL]


@dataclasses.dataclass(frozen=True, eq=False)
class BettingTree(Shared):
    """All sequences of deals and bets; row 0 is the start, children follow parents.

    There is one object for each choice of parameters, which all states share.

    Attributes:
      stacks: chips of each player, the ante included.
      max_raises: raises allowed in a round.
      bets: what each row stands for.
      mover: of each row, as in `Bets`.
      legal: of each row, the actions of the mover; empty if that is no player.
      children: of each row, the row after each of the three actions, -1 if it is not
        legal; after a deal of any rank it is the first.
      num_actions: 1 plus the highest action of a player in any row.
      max_bets: actions of players in the longest sequence.
      max_utility: most chips that can be won.
    """

    stacks: tuple[int, int]
    max_raises: int
    bets: tuple[Bets, ...]
    mover: tuple[int, ...]
    legal: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, int, int], ...]
    num_actions: int
    max_bets: int
    max_utility: int

    def __reduce__(self) -> tuple[Callable[..., "BettingTree"], tuple[int, int, int]]:
        """Pickled as its parameters, so that serialised states are small."""
        return betting_tree, (*self.stacks, self.max_raises)


def deal(bets: Bets) -> Bets:
    """Returns the bets after a deal."""
    num_deals = bets.num_deals + 1
    mover = CHANCE if num_deals < NUM_PLAYERS else 0
    return bets._replace(
        num_deals=num_deals, mover=mover, raises=0, text=bets.text + _DEAL
    )


def legal_actions(bets: Bets, stacks: tuple[int, int], max_raises: int) -> list[Action]:
    """Returns the actions of the player to move, in order."""
    actions = [Action.FOLD, Action.CALL]
    raised = _chips_after_raise(bets)
    if bets.raises < max_raises and raised <= stacks[bets.mover]:
        actions.append(Action.RAISE)
    return actions


def bet(bets: Bets, action: Action, stacks: tuple[int, int]) -> Bets:
    """Returns the bets after a legal action of the player to move."""
    player = bets.mover
    other_chips = bets.chips[1 - player]
    text = bets.text + _LETTERS[action]
    if action == Action.FOLD:
        return bets._replace(mover=TERMINAL, folded=player, text=text)
    if action == Action.RAISE:
        raised = _chips_after_raise(bets)
        return bets._replace(
            mover=1 - player,
            chips=(raised, other_chips) if player == 0 else (other_chips, raised),
            raises=bets.raises + 1,
            text=text,
        )
    # The caller matches the other's chips, or the other gets the difference back.
    matched = min(other_chips, stacks[player])
    bets = bets._replace(chips=(matched, matched), text=text)
    if bets.text.endswith(_DEAL + _LETTERS[Action.CALL]):
        return bets._replace(mover=1 - player)
    return bets._replace(mover=CHANCE if bets.num_deals < NUM_DEALS else TERMINAL)


def _chips_after_raise(bets: Bets) -> int:
    """The chips in the pot of the player to move, if it raises."""
    return bets.chips[1 - bets.mover] + RAISES[bets.num_deals - NUM_PLAYERS]


@functools.cache
def betting_tree(stack0: int, stack1: int, max_raises: int) -> BettingTree:
    """Returns the betting tree for stacks, antes included, and raises in a round."""
    stacks = (stack0, stack1)
    rows = [Bets()]
    legal: list[tuple[int, ...]] = []
    children: list[tuple[int, int, int]] = []
    for bets in rows:  # grows while it is read
        row_children = [-1, -1, -1]
        actions: list[Action] = []
        if bets.mover == CHANCE:
            row_children[0] = len(rows)
            rows.append(deal(bets))
        elif bets.mover != TERMINAL:
            actions = legal_actions(bets, stacks, max_raises)
            for action in actions:
                row_children[action] = len(rows)
                rows.append(bet(bets, action, stacks))
        legal.append(tuple(int(action) for action in actions))
        children.append((row_children[0], row_children[1], row_children[2]))
    terminal = [bets for bets in rows if bets.mover == TERMINAL]
    return BettingTree(
        stacks=stacks,
        max_raises=max_raises,
        bets=tuple(rows),
        mover=tuple(bets.mover for bets in rows),
        legal=tuple(legal),
        children=tuple(children),
        num_actions=1 + max(max(actions) for actions in legal if actions),
        max_bets=max(len(bets.text) - bets.num_deals for bets in terminal),
        max_utility=max(min(bets.chips) for bets in terminal),
    )


def rank_odds(cards: int, num_ranks: int) -> list[tuple[int, float]]:
    """Returns the ranks that can be dealt next and their probabilities.

    Args:
      cards: the cards dealt so far, as one integer.
      num_ranks: ranks in the deck.
    """
    left = [NUM_SUITS] * num_ranks
    total = NUM_SUITS * num_ranks
    while cards:
        left[(cards & _CARD_MASK) - 1] -= 1
        total -= 1
        cards >>= _CARD_BITS
    return [(rank, count / total) for rank, count in enumerate(left) if count]


def add_card(cards: _Cards, number: _Cards, rank: _Cards) -> _Cards:
    """Returns the cards after the deal with this number, counted from 0."""
    return cards | ((rank + 1) << (_CARD_BITS * number))


def card_of(cards: _Cards, number: int) -> _Cards:
    """Returns the card of player 0, of player 1 or, number 2, the public one."""
    return (cards >> (_CARD_BITS * number)) & _CARD_MASK


def showdown(cards: _Cards) -> _Cards:
    """Returns 1 if player 0 has the better cards, -1 if player 1 has, 0 if equal."""
    public = card_of(cards, 2)
    card0, card1 = card_of(cards, 0), card_of(cards, 1)
    # A pair beats any single card.
    strength0 = card0 + _CARD_MASK * (card0 == public)
    strength1 = card1 + _CARD_MASK * (card1 == public)
    return 1 * (strength0 > strength1) - 1 * (strength0 < strength1)


def money(bets: Bets) -> tuple[int, int, int]:
    """Returns both players' chips in the pot and the raises of this round."""
    return *bets.chips, bets.raises


def fold_sign(bets: Bets) -> int:
    """Returns 1 if player 1 has folded, -1 if player 0 has, 0 if nobody has."""
    return 0 if bets.folded < 0 else 2 * bets.folded - 1


def stake(bets: Bets) -> int:
    """Returns the chips that the winner wins."""
    # Who folds to a raise has fewer chips in the pot; else both have equally many.
    return min(bets.chips)


def utility(bets: Bets, cards: int) -> int:
    """Returns player 0's utility after the last bet."""
    return stake(bets) * (fold_sign(bets) or showdown(cards))
