"""The betting of a `universal_poker`, read off OpenSpiel's states.

Bets do not depend on cards, so one deal shows all of them. Two are played side by
side: one that player 0 wins, and the same with hands swapped. That tells folds from
showdowns, and holds OpenSpiel to what a matrix needs: the winner gets the same either
way.
"""

import collections
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from game_defs import base
from game_defs.bundled.holdem.rules import Rules

# Each of them costs a solver some numbers for each of a thousand hands.
MAX_NODES = 50_000
# A public node, by the attributes of `PublicTree`.
Row = tuple[int, int, int, int, int, float, bool]


class PublicTree(NamedTuple):
    """Public nodes P, the root first; each one's children in order of actions.

    Attributes:
      player: int8 [P], who acts: 0, 1 or TERMINAL.
      parent: int32 [P], the node above; -1 at the root.
      action: int32 [P], OpenSpiel's action that leads here; -1 at the root.
      round: int8 [P], how often public cards were dealt after bets. An end is in the
        round of the last bet, even if cards are dealt after it.
      dealt: int8 [P], public cards that were dealt since the start; at ends, too.
      stake: float64 [P], at ends: player 0's returns if it wins the showdown, or if
        somebody folded; else 0.
      showdown: bool [P].
    """

    player: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    round: np.ndarray
    dealt: np.ndarray
    stake: np.ndarray
    showdown: np.ndarray

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> "PublicTree":
        """From nodes, each with the attributes in this order."""
        kinds = np.int8, np.int32, np.int32, np.int8, np.int8, float, bool
        columns = zip(zip(*rows, strict=True), kinds, strict=True)
        return cls(*(np.array(column, kind) for column, kind in columns))


class Deal(NamedTuple):
    """One deal: both players' cards, and the public cards that are to come."""

    hands: tuple[list[int], list[int]]
    board: list[int]


def play(game: pyspiel.Game, rules: Rules, deal: Deal) -> PublicTree:
    """Walk all bets.

    Args:
      game: a `universal_poker`.
      rules: its rules.
      deal: one that player 0 wins; if nobody can win any deal, all showdowns are ties,
        and the stake at them is 0.

    Raises:
      ValueError: there are too many nodes, or OpenSpiel's returns have another shape.
    """
    swapped = Deal((deal.hands[1], deal.hands[0]), deal.board)
    deals = deal, swapped
    states = [_after_hands(game, rules, deal) for deal in deals]
    waiting = collections.deque([(-1, -1, 0, 0, states)])
    rows: list[Row] = []
    while waiting:
        if len(rows) + len(waiting) > MAX_NODES:
            raise ValueError(
                f"more than {MAX_NODES} public nodes; give smaller stacks (stack), a"
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
    return PublicTree.of_rows(rows)


def _after_hands(game: pyspiel.Game, rules: Rules, deal: Deal) -> pyspiel.State:
    """Return the state after the private cards."""
    state = game.new_initial_state()
    if rules.reaches is None:
        for card in [*deal.hands[0], *deal.hands[1]]:
            state.apply_action(card)
    else:
        state.apply_action(encode(rules, deal.hands))
    return state


def encode(rules: Rules, hands: tuple[list[int], list[int]]) -> int:
    """OpenSpiel's outcome of chance where there are handReaches: all four cards."""
    code = 0
    for card in [*hands[0], *hands[1]]:
        code = code * len(rules.deck) + card
    return code


def decode(rules: Rules, code: int) -> list[int]:
    """Return the cards of `encode`."""
    cards = []
    for _ in range(base.NUM_PLAYERS * rules.hole):
        code, card = divmod(code, len(rules.deck))
        cards.append(card)
    return cards[::-1]


def _deal_board(state: pyspiel.State, deal: Deal, dealt: int) -> int:
    """Deal public cards as long as the state asks for them; how many there are."""
    while state.is_chance_node():
        state.apply_action(deal.board[dealt])
        dealt += 1
    return dealt


def _paid(states: list[pyspiel.State]) -> tuple[float, bool]:
    """Return the stake, and whether there was a showdown."""
    value, other_value = (state.returns()[0] for state in states)
    if value == other_value:  # A fold, or a tie for both assignments of hands.
        return value, False
    if value != -other_value:
        raise ValueError(
            f"a showdown pays player 0 {value:g} if it wins and {other_value:g} if it"
            " loses; these must be opposites"
        )
    return value, True
