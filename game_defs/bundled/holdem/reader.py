"""Private states of OpenSpiel states of `universal_poker`, and their names."""

from collections.abc import Sequence

import numpy as np
import pyspiel

from game_defs import base
from game_defs.bundled.holdem import betting, public_tree


class HandReader:
    """Reader that finds and names private states."""

    def __init__(
        self,
        deals: public_tree.HoldemDeals,
        boards: Sequence[public_tree.PublicCards],
        private_states: Sequence[Sequence[public_tree.RoundPrivateStates]],
    ) -> None:
        """Store the tables for the look-ups.

        Args:
          deals: All possible deals and their probabilities.
          boards: Public cards that are known in each round.
          private_states: Private states of each player and round.
        """
        self._deals, self._boards, self._private_states = deals, boards, private_states

    def private_state(self, state: pyspiel.State, player: int) -> int:
        """Return the player's private state at a decision or terminal node.

        A terminal node is in the round of the last bet: cards that are dealt after that
        bet are ignored.

        Raises:
          ValueError: If the state is a chance node, or the deal has probability 0.
        """
        hands, public = self._cards(state)
        return self.find(player, hands[player], public)

    def find(self, player: int, hand: Sequence[int], public: Sequence[int]) -> int:
        """Return the private state of a hand and public cards.

        The number of public cards determines the round.

        Args:
          player: Player that holds the hand.
          hand: Private cards, in any order, numbered as in `cards.HoldemDeck`.
          public: Public cards that were dealt after the first ones, deal by deal.

        Raises:
          ValueError: If the deal has probability 0.
        """
        round = self._deals.rules.round_of(len(public))
        boards = self._boards[round]
        private_states = self._private_states[player][round]
        size = boards.every.cards.shape[1]
        which = boards.every.find(np.array([public[:size]], np.int64))[0]
        number = self._deals.hands.find(np.array([hand], np.int64))[0]
        moved = self._deals.images[boards.by[which], number]
        private_state = int(private_states.number[boards.stands_for[which], moved])
        if private_state < 0:
            deck = self._deals.rules.deck
            raise ValueError(
                f"player {player} is never dealt {deck.text(hand)} if the public cards"
                f" are {deck.text([*self._deals.rules.board, *public])}; choose a hand"
                " of the range without these cards"
            )
        return private_state

    def name(self, player: int, round: int, private_state: int) -> str:
        """Return the hand and, after a bar, the public cards, such as "KhQd | 5c9dJs".

        If a private state contains several deals, which differ by suits only, the name
        is that of one of them.
        """
        deck = self._deals.rules.deck
        boards, states = self._boards[round], self._private_states[player][round]
        hand = self.hand_name(int(states.hand[private_state]))
        dealt = boards.every.cards[boards.canonical[states.board[private_state]]]
        public = deck.text([*self._deals.rules.board, *dealt])
        return f"{hand} | {public}" if public else hand

    def hand_name(self, hand: int) -> str:
        """Return the names of a hand's cards, such as "KhQd"."""
        return str(self._deals.rules.deck.text(self._deals.hands.cards[hand][::-1]))

    def states_on(self, player: int, round: int, board: str) -> np.ndarray:
        """Return the private state of each hand on a board, int [hands].

        Args:
          player: Player that holds the hands.
          round: Round of the private states.
          board: All public cards, such as "5c9dJs2h"; empty: those of the first round.

        Returns:
          For each hand, in the order of `HoldemDeals.hands`, its private state, or -1
          if it is not in the range or shares a card with the board.

        Raises:
          ValueError: If no such board can be dealt in the round.
        """
        rules, boards = self._deals.rules, self._boards[round]
        first, come = len(rules.board), boards.every.cards.shape[1]
        try:
            cards = (
                rules.deck.cards("".join(board.split())) if board else [*rules.board]
            )
            is_wrong = {*cards[:first]} != {*rules.board} or len(cards) != first + come
            which = -1 if is_wrong else boards.every.find(np.array([cards[first:]]))[0]
        except (KeyError, ValueError):
            which = -1
        if which < 0:
            raise ValueError(
                f"board={board!r}: not the public cards of this decision; "
                f"write {rules.deck.text(rules.board)} and the {come} cards dealt since"
            )
        moved = self._deals.images[boards.by[which]]
        number = self._private_states[player][round].number
        return number[boards.stands_for[which], moved]

    def runouts(
        self, player: int, round: int
    ) -> tuple[list[list[str]], np.ndarray, np.ndarray]:
        """Return all deals of public cards before a round, and their boards.

        Args:
          player: Player of the private states.
          round: Round of the private states.

        Returns:
          All public cards of each of the n deals, one after another; the canonical
          board of each deal, int [n]; and that of each private state, int [states].
        """
        boards, rules = self._boards[round], self._deals.rules
        deals = [
            [rules.deck.text([card]) for card in (*rules.board, *row)]
            for row in boards.every.cards.tolist()
        ]
        return deals, boards.stands_for, self._private_states[player][round].board

    def orbits(self, player: int, round: int) -> np.ndarray:
        """Return the number of boards that each private state's board represents."""
        return self._boards[round].orbit[self._private_states[player][round].board]

    @property
    def merges_deals(self) -> bool:
        """Whether a private state may contain several deals."""
        return len(self._deals.suits) > 1

    def deals(
        self, player: int, round: int, random: np.random.Generator | None = None
    ) -> np.ndarray:
        """Return a deal of each private state.

        Args:
          player: Player of the private states.
          round: Round of the private states.
          random: If given, suits and the opponent's hand are chosen at random.

        Returns:
          Cards in the order in which OpenSpiel deals them, up to the round, int64
          [n, c].

        Raises:
          ValueError: If hands are not dealt card by card, as in spots.
        """
        rules, boards = self._deals.rules, self._boards[round]
        if rules.reaches is not None or rules.board:
            raise ValueError("hands are not dealt card by card")
        states = self._private_states[player][round]
        hands = self._deals.hands.cards[states.hand]
        cards = [hands, boards.every.cards[boards.canonical[states.board]]]
        used = np.concatenate(cards, axis=1)
        numbers: np.ndarray = np.zeros((len(used), len(rules.deck)))
        if random is not None:
            numbers = random.random(numbers.shape, np.float32)
            suits = np.array(self._deals.suits)
            suits = suits[random.integers(len(suits), size=len(used))]
            rank, suit = np.divmod(used, rules.deck.num_suits)
            moved = np.take_along_axis(suits, suit, axis=1)
            used = rank * rules.deck.num_suits + moved
        np.put_along_axis(numbers, used, 2, axis=1)
        other = np.argsort(numbers, axis=1, kind="stable")[:, : rules.hole]
        pair = [used[:, : rules.hole], other][:: -1 if player else 1]
        return np.concatenate([*pair, used[:, rules.hole :]], axis=1)

    def _cards(self, state: pyspiel.State) -> tuple[list[list[int]], list[int]]:
        """Return both players' hands, and the public cards dealt before the last bet.

        At a decision node these are all public cards.
        """
        steps = state.full_history()
        chance = [step.player == base.CHANCE for step in steps]
        if state.is_chance_node():
            raise ValueError("a state where cards are dealt next has no private state")
        if state.is_terminal():
            while chance and chance[-1]:
                chance.pop()
        dealt = [step.action for step, by in zip(steps, chance, strict=False) if by]
        return self.split(dealt)

    def split(self, dealt: list[int]) -> tuple[list[list[int]], list[int]]:
        """Return both players' hands and the public cards of chance outcomes."""
        rules = self._deals.rules
        if rules.reaches is not None:
            dealt = [*betting.decode(rules, dealt[0]), *dealt[1:]]
        first, second = rules.hole, 2 * rules.hole
        return [dealt[:first], dealt[first:second]], dealt[second:]

    def combos(self, player: int, round: int) -> np.ndarray:
        """Return the number of hands per private state on its board, int64 [n]."""
        number = self._private_states[player][round].number
        return np.bincount(number[number >= 0])

    def range_weights(self, player: int, round: int) -> np.ndarray:
        """Return the range weight of each private state's hand, float64 [n]."""
        hands = self._private_states[player][round].hand
        reaches = self._deals.rules.reaches
        return np.ones(len(hands)) if reaches is None else reaches[player, hands]
