"""Bets of poker games with limits: deals and bets, as tables.

The bets do not depend on the cards, so `betting_tree` enumerates all sequences of deals
and bets in advance. A state of a game is then a row of these tables and the dealt
cards. A level of many states is expanded by indexing the tables with an array of rows.

In each round the same player acts first, usually player 0. A player folds, calls (a
check if there is nothing to call) or raises (a bet if there is nothing to call). After
a raise the player has the round's amount more in the pot than the other player. A round
ends when the second or a later action is a call; the game ends with a fold or after the
last round.
"""

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import NamedTuple

from game_defs.base import CHANCE, NUM_PLAYERS, TERMINAL, Shared


class Action(enum.IntEnum):
    """Actions of a player; deals use the number of the card."""

    FOLD = 0
    CALL = 1
    RAISE = 2


_LETTERS = "fcr"
_DEAL = "d"


class BettingRules(NamedTuple):
    """Parameters of the bets of a game.

    Attributes:
      ante: Chips that each player pays at the start.
      raises: Chips of a raise, by round.
      public_cards: Number of cards dealt before each round except the first, before
        which each player gets one card.
      max_raises: Largest number of raises in a round, of both players together.
      stacks: Chips of each player, including the ante. A player with too few chips to
        call calls with all of them, and the other player gets the difference back.
      free_folds: Whether a player may fold if there is nothing to call.
      opener: Player that acts first in each round.
    """

    ante: int
    raises: tuple[int, ...]
    public_cards: tuple[int, ...]
    max_raises: int
    stacks: tuple[int, int]
    free_folds: bool
    opener: int = 0

    def num_dealt(self) -> list[int]:
        """Return the number of cards that have been dealt when each round begins."""
        counts = [NUM_PLAYERS]
        for number in self.public_cards:
            counts.append(counts[-1] + number)
        return counts


class BettingState(NamedTuple):
    """Public information except public cards: number of deals, and bets so far.

    Attributes:
      num_deals: Number of dealt cards.
      mover: Player to move, or OpenSpiel's number of chance or of a terminal state.
      chips: Chips of each player in the pot, without those returned.
      raises: Number of raises in this round.
      folded: Player that has folded, or -1.
      text: All deals and bets in order, as the letters d, f, c, r.
    """

    num_deals: int
    mover: int
    chips: tuple[int, int]
    raises: int
    folded: int
    text: str

    def actions(self) -> list["Action"]:
        """Return all actions of players, in order."""
        return [Action(_LETTERS.index(c)) for c in self.text if c != _DEAL]


@dataclasses.dataclass(frozen=True, eq=False)
class BettingTree(Shared):
    """All sequences of deals and bets; row 0 is the start, and children follow parents.

    There is one object for each choice of rules, which all states share.

    Attributes:
      rules: Rules of the bets.
      bets: Bets of each row.
      mover: Mover of each row; see `BettingState`.
      legal: Actions of the mover in each row; empty if it is not a player.
      children: Row after each of the three actions, for each row; -1 if the action is
        not legal. The row after a deal, whatever the card, is the first entry.
      num_actions: 1 plus the highest action of a player in any row.
      num_deals: Number of cards dealt in a game without folds.
      max_bets: Largest number of actions of players in a sequence.
      max_utility: Largest number of chips that can be won.
    """

    rules: BettingRules
    bets: tuple[BettingState, ...]
    mover: tuple[int, ...]
    legal: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, int, int], ...]
    num_actions: int
    num_deals: int
    max_bets: int
    max_utility: int

    def __reduce__(self) -> tuple[Callable[..., "BettingTree"], tuple[BettingRules]]:
        """Pickle the rules only, so that serialised states are small."""
        return betting_tree, (self.rules,)


def start(rules: BettingRules) -> BettingState:
    """Return the bets before the first deal."""
    return BettingState(
        0, CHANCE, (rules.ante, rules.ante), raises=0, folded=-1, text=""
    )


def deal(bets: BettingState, rules: BettingRules) -> BettingState:
    """Return the bets after a deal."""
    num_deals = bets.num_deals + 1
    mover = rules.opener if num_deals in rules.num_dealt() else CHANCE
    return bets._replace(
        num_deals=num_deals, mover=mover, raises=0, text=bets.text + _DEAL
    )


def legal_actions(bets: BettingState, rules: BettingRules) -> list[Action]:
    """Return the actions of the player to move, in order."""
    player = bets.mover
    actions = [Action.CALL]
    if rules.free_folds or bets.chips[1 - player] > bets.chips[player]:
        actions.insert(0, Action.FOLD)
    raised = _chips_after_raise(bets, rules)
    if bets.raises < rules.max_raises and raised <= rules.stacks[player]:
        actions.append(Action.RAISE)
    return actions


def bet(bets: BettingState, action: Action, rules: BettingRules) -> BettingState:
    """Return the bets after a legal action of the player to move."""
    player = bets.mover
    other_chips = bets.chips[1 - player]
    text = bets.text + _LETTERS[action]
    if action == Action.FOLD:
        return bets._replace(mover=TERMINAL, folded=player, text=text)
    if action == Action.RAISE:
        raised = _chips_after_raise(bets, rules)
        return bets._replace(
            mover=1 - player,
            chips=(raised, other_chips) if player == 0 else (other_chips, raised),
            raises=bets.raises + 1,
            text=text,
        )
    # The caller matches the opponent's chips, or the difference is returned.
    matched = min(other_chips, rules.stacks[player])
    bets = bets._replace(chips=(matched, matched), text=text)
    if bets.text.endswith(_DEAL + _LETTERS[Action.CALL]):
        return bets._replace(mover=1 - player)
    over = bets.num_deals == rules.num_dealt()[-1]
    return bets._replace(mover=TERMINAL if over else CHANCE)


def _chips_after_raise(bets: BettingState, rules: BettingRules) -> int:
    """Return the chips in the pot of the player to move, if it raises."""
    betting_round = rules.num_dealt().index(bets.num_deals)
    return bets.chips[1 - bets.mover] + rules.raises[betting_round]


@functools.cache
def betting_tree(rules: BettingRules) -> BettingTree:
    """Return the betting tree for the rules."""
    rows = [start(rules)]
    legal: list[tuple[int, ...]] = []
    children: list[tuple[int, int, int]] = []
    for bets in rows:  # The list grows during the loop.
        row_children = [-1, -1, -1]
        actions: list[Action] = []
        if bets.mover == CHANCE:
            row_children[0] = len(rows)
            rows.append(deal(bets, rules))
        elif bets.mover != TERMINAL:
            actions = legal_actions(bets, rules)
            for action in actions:
                row_children[action] = len(rows)
                rows.append(bet(bets, action, rules))
        legal.append(tuple(int(action) for action in actions))
        children.append((row_children[0], row_children[1], row_children[2]))
    terminal = [bets for bets in rows if bets.mover == TERMINAL]
    return BettingTree(
        rules=rules,
        bets=tuple(rows),
        mover=tuple(bets.mover for bets in rows),
        legal=tuple(legal),
        children=tuple(children),
        num_actions=1 + max(max(actions) for actions in legal if actions),
        num_deals=rules.num_dealt()[-1],
        max_bets=max(len(bets.text) - bets.num_deals for bets in terminal),
        max_utility=max(min(bets.chips) for bets in terminal),
    )


def money(bets: BettingState) -> tuple[int, int, int]:
    """Return both players' chips in the pot and the raises of this round."""
    return *bets.chips, bets.raises


def fold_sign(bets: BettingState) -> int:
    """Return 1 if player 1 has folded, -1 if player 0 has, and 0 otherwise."""
    return 0 if bets.folded < 0 else 2 * bets.folded - 1


def stake(bets: BettingState) -> int:
    """Return the chips that the winner wins."""
    # After a fold to a raise the loser has fewer chips in the pot; otherwise, equal.
    return min(bets.chips)
