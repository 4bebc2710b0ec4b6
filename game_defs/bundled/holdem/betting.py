"""The betting of a `universal_poker`, read from OpenSpiel's states.

Because bets do not depend on cards, one deal visits all of them. Two deals are played
in parallel: one that player 0 wins, and the same deal with hands exchanged. The
comparison distinguishes folds from showdowns. It also checks that a showdown pays the
winner the same amount in both deals, which a payoff matrix requires.
"""

import collections
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from game_defs import base
from game_defs.bundled.holdem.rules import HoldemRules

# A solver stores several numbers per public node for each of about 1000 hands.
MAX_NODES = 50_000
# Values of a public node for the fields of `HoldemTree`.
Row = tuple[int, int, int, int, int, float, bool]


class HoldemTree(NamedTuple):
    """All public nodes P of a game, the root first.

    The children of a node are in the order of their actions.

    Attributes:
      player: The player to act, int8 [P]: 0, 1 or TERMINAL.
      parent: The parent node, int32 [P]; -1 at the root.
      action: OpenSpiel's action that leads to the node, int32 [P]; -1 at the root.
      round: The number of deals of public cards after bets, int8 [P]. A terminal node
        is in the round of the last bet, even if cards are dealt after it.
      dealt: The number of public cards dealt since the start, also at terminal nodes,
        int8 [P].
      stake: Player 0's returns at terminal nodes after a fold, or if it wins the
        showdown, float64 [P]; 0 at other nodes.
      showdown: True at terminal nodes where hands are compared, bool [P].
    """

    player: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    round: np.ndarray
    dealt: np.ndarray
    stake: np.ndarray
    showdown: np.ndarray

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> "HoldemTree":
        """Return the tree of the given nodes."""
        kinds = np.int8, np.int32, np.int32, np.int8, np.int8, float, bool
        columns = zip(zip(*rows, strict=True), kinds, strict=True)
        return cls(*(np.array(column, kind) for column, kind in columns))


class Deal(NamedTuple):
    """One deal: both players' hands, and the public cards that follow."""

    hands: tuple[list[int], list[int]]
    board: list[int]


def play(game: pyspiel.Game, rules: HoldemRules, deal: Deal) -> HoldemTree:
    """Enumerate all bets and return the public tree.

    Args:
      game: A `universal_poker`.
      rules: Rules of the game.
      deal: A deal that player 0 wins. If no such deal exists, all showdowns are ties
        and have stake 0.

    Raises:
      ValueError: If there are too many nodes, or a showdown does not pay the winner the
        same amount whichever player wins.
    """
    swapped = Deal((deal.hands[1], deal.hands[0]), deal.board)
    deals = deal, swapped
    states = [_after_hands(game, rules, deal) for deal in deals]
    waiting = collections.deque([(-1, -1, 0, 0, states)])
    rows: list[Row] = []
    while waiting:
        if len(rows) + len(waiting) > MAX_NODES:
            raise ValueError(
                f"more than {MAX_NODES} public nodes; use smaller stacks (stack), a"
                " larger pot (potSize), fewer raises (maxRaises) or a coarser"
                " bettingAbstraction, such as fcpa"
            )
        above, action, last_round, before, states = waiting.popleft()
        for state, cards in zip(states, deals, strict=True):
            dealt = _deal_board(state, cards, before)
        player = states[0].current_player()
        end = player == base.TERMINAL
        round = last_round if end else rules.round_of(dealt)
        number = len(rows)
        stake, showdown = _paid(states) if end else (0.0, False)
        rows.append((player, above, action, round, dealt, stake, showdown))
        if not end:
            for choice in states[0].legal_actions():
                after = [state.child(choice) for state in states]
                waiting.append((number, choice, round, dealt, after))
    return HoldemTree.of_rows(rows)


def _after_hands(game: pyspiel.Game, rules: HoldemRules, deal: Deal) -> pyspiel.State:
    """Return the state after the deal of the private cards."""
    state = game.new_initial_state()
    if rules.reaches is None:
        for card in [*deal.hands[0], *deal.hands[1]]:
            state.apply_action(card)
    else:
        state.apply_action(encode(rules, deal.hands))
    return state


def encode(rules: HoldemRules, hands: tuple[list[int], list[int]]) -> int:
    """Return OpenSpiel's chance outcome for both hands if there are `handReaches`."""
    code = 0
    for card in [*hands[0], *hands[1]]:
        code = code * len(rules.deck) + card
    return code


def decode(rules: HoldemRules, code: int) -> list[int]:
    """Return the private cards that `encode` has combined into a chance outcome."""
    cards = []
    for _ in range(base.NUM_PLAYERS * rules.hole):
        code, card = divmod(code, len(rules.deck))
        cards.append(card)
    return cards[::-1]


def _deal_board(state: pyspiel.State, deal: Deal, dealt: int) -> int:
    """Deal public cards until a player acts; return the number dealt so far."""
    while state.is_chance_node():
        state.apply_action(deal.board[dealt])
        dealt += 1
    return dealt


def _paid(states: list[pyspiel.State]) -> tuple[float, bool]:
    """Return the stake of a terminal node, and whether it is a showdown."""
    value, other_value = (state.returns()[0] for state in states)
    if value == other_value:  # A fold, or a tie for both assignments of hands.
        return value, False
    if value != -other_value:
        raise ValueError(
            f"a showdown pays player 0 {value:g} if it wins and {other_value:g} if it"
            " loses; these must be opposites"
        )
    return value, True
