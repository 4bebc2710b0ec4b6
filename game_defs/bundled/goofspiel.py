"""Batched rules of turn-based `goofspiel` with imperfect information.

Two players have the cards 1 to N. In each round a point card is revealed. Both players
bid a card of their hands at the same time. They observe who won the point card, but not
the other player's bid. If the bids are equal, no player wins the point card. The last
of N rounds is played automatically. In the turn-based game, player 0 bids first and
player 1 does not observe that bid.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from game_defs import base
from game_defs.bundled.packing import Packing

# Columns of the states, before those of sequences.
_PHASE, _ROUND, _BID, _POINTS, _HANDS, _DECK, _SEQUENCES = 0, 1, 2, 3, 5, 7, 8
# Phases: a point card is revealed, player 0 bids, player 1 bids, terminal.
_DEAL, _FIRST, _SECOND, _OVER = range(4)
_NEXT_PLAYER = np.array([base.CHANCE, 0, 1, base.TERMINAL])
# Winner of a round: 0, 1, or a tie; and the symbol of ties in OpenSpiel's strings.
_TIE = 2
_WINNERS = ("0", "1", str(int(pyspiel.PlayerId.INVALID)))
_MOST_CARDS = 15


def batched_goofspiel(game: pyspiel.Game) -> "BatchedGoofspiel | None":
    """Return the batched rules of a turn-based `goofspiel`, or None.

    The result is None for perfect information, more than two players or 15 cards, total
    points (which are not zero-sum), and if the number of rounds is one less than the
    number of cards, because the game of OpenSpiel 2.0.2 does not end then.
    """
    params = game.get_parameters()["game"]
    rounds = params["num_cards"] if params["num_turns"] == -1 else params["num_turns"]
    supported = (
        params["imp_info"]
        and params["players"] == base.NUM_PLAYERS
        and params["num_cards"] <= _MOST_CARDS
        and params["returns_type"] != "total_points"
        and rounds >= 1
        and rounds != params["num_cards"] - 1
    )
    return BatchedGoofspiel(params, rounds) if supported else None


class BatchedGoofspiel:
    """Many states of goofspiel; the methods are those of `pyspiel.State`.

    States are int64 [n, 8 + ...]: the next kind of move; the number of rounds played;
    player 0's bid in this round, plus one, or 0; both players' points; each player's
    cards and the hidden point cards, as bits. Then follow, each plus one: the bids of
    player 0 and of player 1 in the rounds played, the revealed point cards, and the
    winners of the rounds.
    """

    def __init__(self, params: dict[str, Any], rounds: int) -> None:
        """Prepare the rules; use `batched_goofspiel` instead.

        Args:
          params: Parameters of OpenSpiel's goofspiel.
          rounds: Number of rounds.
        """
        self._num_cards = params["num_cards"]
        self._rounds = rounds
        self._order = params["points_order"]
        self._difference = params["returns_type"] == "point_difference"
        self._cards = np.arange(self._num_cards)
        self._shown = Packing(self._num_cards, self._num_cards)
        self._winner_codes = Packing(self._num_cards, _TIE + 1)
        *self._bids, self._point_cards = (
            self._shown.columns(_SEQUENCES, n) for n in range(base.NUM_PLAYERS + 1)
        )
        self._winners = self._winner_codes.columns(self._point_cards.stop)

    def new_initial_states(self) -> np.ndarray:
        """Return the state before the first bid, or before the first point card."""
        states = np.zeros((1, self._winners.stop), np.int64)
        states[:, _HANDS : _DECK + 1] = (1 << self._num_cards) - 1
        return self._next_round(states)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return CHANCE before a point card, the bidders, or TERMINAL; int64 [n]."""
        return _NEXT_PLAYER[states[:, _PHASE]]

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return the bidder's cards, or the point cards that are left, bool [n, N]."""
        column = np.array([_DECK, _HANDS, _HANDS + 1, _DECK])[states[:, _PHASE]]
        held = states[np.arange(len(states)), column]
        return held[:, None] >> self._cards & 1 == 1

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return equal probabilities of the hidden point cards, float64 [n, N]."""
        left = states[:, _DECK, None] >> self._cards & 1
        return left / left.sum(axis=1, keepdims=True)

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after one bid or point card each."""
        after = states.copy()
        phase = states[:, _PHASE]
        deals = phase == _DEAL
        if deals.any():
            after[deals] = self._deal(after[deals], actions[deals])
        first = phase == _FIRST
        after[first, _BID] = actions[first] + 1
        after[first, _PHASE] = _SECOND
        second = phase == _SECOND
        if second.any():
            some = after[second]
            bids = some[:, _BID] - 1, actions[second]
            after[second] = self._next_round(self._play(some, *bids))
        return after

    def _deal(self, states: np.ndarray, cards: np.ndarray) -> np.ndarray:
        """Show point cards; change `states` in place, and return them."""
        states[:, _DECK] &= ~(1 << cards)
        columns = states[:, self._point_cards]
        self._shown.put(columns, states[:, _ROUND], cards + 1)
        states[:, _PHASE] = _FIRST
        return states

    def _play(self, states: np.ndarray, *bids: np.ndarray) -> np.ndarray:
        """Play a round with the bids of both players."""
        played = states[:, _ROUND]
        card = self._shown.get(states[:, self._point_cards], played)
        winner = np.where(bids[0] > bids[1], 0, np.where(bids[1] > bids[0], 1, _TIE))
        for p, bid in enumerate(bids):
            states[:, _POINTS + p] += np.where(winner == p, card, 0)
            states[:, _HANDS + p] &= ~(1 << bid)
            self._shown.put(states[:, self._bids[p]], played, bid + 1)
        self._winner_codes.put(states[:, self._winners], played, winner + 1)
        states[:, _BID] = 0
        states[:, _ROUND] += 1
        return states

    def _next_round(self, states: np.ndarray) -> np.ndarray:
        """Start the same round in all states, or end the game."""
        ended = states[:, _ROUND] == self._rounds
        states[ended, _PHASE] = _OVER
        goes_on = np.flatnonzero(~ended)
        states[goes_on, _PHASE] = _DEAL
        if self._order != "random":
            some = states[goes_on]
            card = some[:, _ROUND]
            if self._order == "descending":
                card = self._num_cards - 1 - card
            states[goes_on] = self._deal(some, card)
        # The last cards of both players are played automatically.
        last = states[:, _ROUND] == self._num_cards - 1
        last &= ~ended & (self._num_cards > 1)
        if last.any():
            some = states[last]
            if self._order == "random":
                some = self._deal(some, _only_card(some[:, _DECK]))
            bids = [_only_card(some[:, _HANDS + p]) for p in range(base.NUM_PLAYERS)]
            some = self._play(some, *bids)
            some[:, _PHASE] = _OVER
            states[last] = some
        return states

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utilities at the end, float64 [n]."""
        difference = states[:, _POINTS] - states[:, _POINTS + 1]
        return difference / 2 if self._difference else np.sign(difference) * 1.0

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int64 [n, k]: acting player, own bids, point cards, and winners."""
        phase = states[:, _PHASE, None]
        bid = states[:, _BID, None] if player == 0 else np.zeros_like(phase)
        columns = [states[:, self._bids[player]], states[:, self._point_cards]]
        return np.concatenate([phase, bid, *columns, states[:, self._winners]], axis=1)

    def information_state_strings(self, states: np.ndarray, player: int) -> list[str]:
        """Return the strings of OpenSpiel's turn-based goofspiel."""
        rounds = self._num_cards
        columns = (
            _NEXT_PLAYER[states[:, _PHASE]],
            states[:, _BID] if player == 0 else np.zeros(len(states), np.int64),
            states[:, _HANDS + player],
            self._shown.unpack(states[:, self._bids[player]], rounds),
            self._shown.unpack(states[:, self._point_cards], rounds),
            self._winner_codes.unpack(states[:, self._winners], rounds),
            states[:, _POINTS : _POINTS + 2],
        )
        rows = zip(*[column.tolist() for column in columns], strict=True)
        return [self._text(player, row) for row in rows]

    def information_state_tensor(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return OpenSpiel's tensors of the turn-based game, bool [n, F].

        The parts are the acting player, the observer, points, own hand, winners, point
        cards and own bids. Points, cards and players are one-hot.
        """
        count, rounds, size = len(states), self._rounds, self._num_cards
        acts = _NEXT_PLAYER[states[:, _PHASE]]
        points = states[:, [_POINTS + player, _POINTS + 1 - player]]
        hand = states[:, _HANDS + player, None] >> self._cards & 1
        winners = self._winner_codes.unpack(states[:, self._winners], rounds)
        cards = self._shown.unpack(states[:, self._point_cards], rounds)
        bids = self._shown.unpack(states[:, self._bids[player]], rounds)
        most = size * (size + 1) // 2
        players = np.arange(2)
        pieces = (
            acts[:, None] == players,
            np.broadcast_to(players == player, (count, 2)),
            points[:, :, None] == np.arange(most + 1),
            hand == 1,
            # Entries are stored plus one; 0 marks later rounds.
            winners[:, :, None] == 1 + players,
            cards[:, :, None] == 1 + self._cards,
            bids[:, :, None] == 1 + self._cards,
        )
        return np.concatenate([piece.reshape(count, -1) for piece in pieces], axis=1)

    def _text(self, player: int, row: Sequence[Any]) -> str:
        """Return a string from a row of `information_state_string`."""
        acts, bid, hand, bids, cards, winners, points = row
        lines = [f"Current player: {acts}"]
        if bid:
            lines.append(f"Observer's action this turn: {bid - 1}")
        held = [card + 1 for card in range(self._num_cards) if hand >> card & 1]
        lists: dict[str, Sequence[object]] = {
            f"P{player} hand": held,
            f"P{player} action sequence": [entry - 1 for entry in bids if entry],
            "Point card sequence": [card for card in cards if card],
            "Win sequence": [_WINNERS[entry - 1] for entry in winners if entry],
            "Points": points,
        }
        for name, entries in lists.items():
            lines.append(f"{name}: " + "".join(f"{entry} " for entry in entries))
        return "\n".join([*lines, "Terminal?: 0\n"])


def _only_card(bits: np.ndarray) -> np.ndarray:
    """Return the index of the only bit of each number, int64 [n]."""
    return np.bitwise_count(bits - 1).astype(np.int64)
