"""II-Goofspiel: sealed bids for point cards; only the winner of each round is revealed.

Rules. Each of two players holds the cards 1..N. In every round one point card is on
offer: player 0 bids one of its remaining cards, and then player 1 bids without seeing
that bid. The higher bid wins the point card; if the bids are equal, neither player gets
it. Both players learn which player won the round, or that the bids were equal, but they
never see the opponent's bid. Bids are removed from the hand. The point cards 1..N come
in a fixed order that both players know. The game is over after N rounds. Every bid is a
move, including the last one, which is forced.

Parameters.
  num_cards: N, from 2 to 13 (default 5).
  points_order: "ascending" (default) offers the point cards 1, 2, .., N, "descending"
    N, .., 2, 1.
  returns_type: "win_loss" (default) pays 1, 0 or -1 to a player with more points than
    the opponent, equally many or fewer; "point_difference" pays the difference.

Sizes. N = 4: 2229 histories (nodes of the tree), 369 infosets for each player; N = 5:
55,731 and 4974; N = 6: 2,006,323 and 83,001. The value is 0 by symmetry.

OpenSpiel's `goofspiel(imp_info=true, ...)`, made turn-based, is the same game, but it
plays the last card of both players automatically. Therefore its tree is smaller: 1077
histories and 81 infosets for each player with N = 4.

Source: Schlindenbuch (2019), thesis on general continual resolving; the variant without
revealed bids is that of Lanctot et al., "Monte Carlo sampling for regret minimization
in extensive games" (2009); the game is due to Ross, "Goofspiel: the game of pure
strategy" (1971).
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyspiel

from game_defs import base, parameters

_NAME = "python_ii_goofspiel"
_ORDERS = ("ascending", "descending")
_RETURNS = ("win_loss", "point_difference")

# Index of a tie next to players 0 and 1, and the symbols of winners in strings.
TIE = 2
_WINNER_SIGNS = "01="

_GAME_TYPE = base.game_type(
    _NAME,
    "Python Imperfect-Information Goofspiel",
    parameter_specification={
        "num_cards": 5,
        "points_order": _ORDERS[0],
        "returns_type": _RETURNS[0],
    },
)


# Rules as pure functions. Their domains are small, so that batched rules can tabulate
# them. A bid is the index of a card, 0..N-1, which is its value minus one.


def point_cards(num_cards: int, points_order: str) -> tuple[int, ...]:
    """Return the values of the point cards in the order of their rounds."""
    ascending = tuple(range(1, num_cards + 1))
    return ascending if points_order == "ascending" else ascending[::-1]


def round_winner(bid0: int, bid1: int) -> int:
    """Return the winner of the point card: 0, 1 or `TIE`."""
    if bid0 == bid1:
        return TIE
    return 0 if bid0 > bid1 else 1


def points(winners: Iterable[int], cards: Iterable[int]) -> tuple[int, int]:
    """Return both players' points after rounds won as given, for the point cards."""
    totals = [0, 0, 0]
    # Before the end there are fewer winners than cards.
    for winner, card in zip(winners, cards, strict=False):
        totals[winner] += card
    return totals[0], totals[1]


def utility(points0: int, points1: int, returns_type: str) -> int:
    """Return player 0's utility for the final points."""
    difference = points0 - points1
    if returns_type == "point_difference":
        return difference
    return (difference > 0) - (difference < 0)


def max_utility(num_cards: int, returns_type: str) -> int:
    """Return the highest utility that a player can reach.

    If one player wins a round, the other player wins a round, too, because both hands
    contain the same cards. Therefore a player wins at most all point cards except the
    1, by bidding one more than the opponent in all other rounds.
    """
    if returns_type == "point_difference":
        return num_cards * (num_cards + 1) // 2 - 2
    return 1


@dataclasses.dataclass(frozen=True)
class _GoofspielRules(base.Shared):
    """Parameters of the game that its states use."""

    num_cards: int
    point_cards: tuple[int, ...]
    returns_type: str


class IIGoofspielGame(base.Game):
    """II-Goofspiel; the module's docstring has its rules and parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        allowed: dict[str, parameters.Allowed] = {
            "num_cards": range(2, 14),
            "points_order": _ORDERS,
            "returns_type": _RETURNS,
        }
        merged = parameters.merge(_GAME_TYPE, params, allowed)
        num_cards = merged["num_cards"]
        super().__init__(
            _GAME_TYPE,
            merged,
            num_distinct_actions=num_cards,
            max_utility=max_utility(num_cards, merged["returns_type"]),
            max_game_length=base.NUM_PLAYERS * num_cards,
        )
        self.rules = _GoofspielRules(
            num_cards,
            point_cards(num_cards, merged["points_order"]),
            merged["returns_type"],
        )

    def new_initial_state(self) -> "IIGoofspielState":
        """Return the state before the first bid."""
        return IIGoofspielState(self)

    def batched_rules(self) -> "BatchedIIGoofspiel":
        """Return the batched rules."""
        return BatchedIIGoofspiel(self.rules)

    def _observer(self, shows: pyspiel.IIGObservationType) -> base.Observer:
        return IIGoofspielObserver(shows, self.rules.num_cards)


class IIGoofspielState(base.State):
    """A state of II-Goofspiel: all bids so far, and winners of completed rounds.

    Attributes:
      rules: Parameters of the game.
      bids: Bytes, both players' bids in turn; `bids[player::2]` are one player's.
      winners: Character for each completed round: "0", "1", or "=" for equal bids.
    """

    def __init__(self, game: IIGoofspielGame) -> None:
        """Use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.rules = game.rules
        # Clones deep-copy each attribute; copies of bytes and str are free.
        self.bids = b""
        self.winners = ""

    def current_player(self) -> int:
        """Return the player to bid, or TERMINAL after the last bid."""
        if self.is_terminal():
            return base.TERMINAL
        return len(self.bids) % 2

    def _legal_actions(self, player: int) -> list[int]:
        return _hand(self.bids[player::2], self.rules.num_cards)

    def _apply_action(self, action: int) -> None:
        if len(self.bids) % 2 == 1:
            self.winners += _WINNER_SIGNS[round_winner(self.bids[-1], action)]
        self.bids += bytes((action,))

    def _action_to_string(self, player: int, action: int) -> str:
        return f"Bid {action + 1}"

    def is_terminal(self) -> bool:
        """Return True if all cards have been played."""
        return len(self.bids) == 2 * self.rules.num_cards

    def round_winners(self) -> list[int]:
        """Return the winner of each completed round: 0, 1 or `TIE`."""
        return [_WINNER_SIGNS.index(sign) for sign in self.winners]

    def points(self) -> tuple[int, int]:
        """Return both players' points so far."""
        return points(self.round_winners(), self.rules.point_cards)

    def _utility(self) -> int:
        return utility(*self.points(), self.rules.returns_type)

    def __str__(self) -> str:
        bids0, bids1 = _cards(self.bids[0::2]), _cards(self.bids[1::2])
        return f"p0 bids {bids0} p1 bids {bids1} won {self.winners or '-'}"


class IIGoofspielObserver(base.Observer):
    """Observer: a player's bids are private, winners of rounds and the turn are public.

    Parts of the tensor with perfect recall: `bids` [N, N], round by card; `winners` [N,
    3], round by result (player 0, player 1, equal bids). Parts without perfect recall:
    `hand` [N], the remaining cards; `points` [2], those of both players. In both cases
    `turn` [2 N + 1], the number of bids so far, is public.
    """

    def __init__(self, shows: pyspiel.IIGObservationType, num_cards: int) -> None:
        self._num_cards = num_cards
        private: dict[str, base.Shape] = {"hand": (num_cards,)}
        public: dict[str, base.Shape] = {"turn": (2 * num_cards + 1,)}
        if shows.perfect_recall:
            private = {"bids": (num_cards, num_cards)}
            public["winners"] = (num_cards, 3)
        else:
            public["points"] = (2,)
        super().__init__(shows, private, public)

    def _set_private(
        self, pieces: base.Pieces, state: IIGoofspielState, owner: int
    ) -> None:
        bids = state.bids[owner::2]
        if self._recall:
            base.mark(pieces["bids"], bids)
        else:
            pieces["hand"][_hand(bids, self._num_cards)] = 1

    def _set_public(self, pieces: base.Pieces, state: IIGoofspielState) -> None:
        pieces["turn"][len(state.bids)] = 1
        if self._recall:
            base.mark(pieces["winners"], state.round_winners())
        else:
            pieces["points"][:] = state.points()

    def _private_text(self, state: IIGoofspielState, owner: int) -> str:
        bids = state.bids[owner::2]
        if self._recall:
            return _bids_text(owner, bids)
        return f"p{owner} hand {_cards(_hand(bids, self._num_cards))}"

    def _public_text(self, state: IIGoofspielState) -> str:
        if self._recall:
            return _winners_text(len(state.bids), state.winners)
        points0, points1 = state.points()
        return f"turn {len(state.bids)} points {points0}-{points1}"


class BatchedIIGoofspiel:
    """Batched states of II-Goofspiel; the methods are those of `pyspiel.State`.

    States are int64 [n, 5]: the number of bids; the bids of player 0 and of player 1,
    each a number whose hexadecimal digits are the cards; the winners of completed
    rounds as the digits of a number to base 3; the played cards as bits, N for each
    player.
    """

    def __init__(self, rules: _GoofspielRules) -> None:
        """Use `game.batched_rules()` instead."""
        self._rules = rules
        self._cards = np.arange(rules.num_cards)
        bids = range(rules.num_cards)
        self._winners = np.array([[round_winner(a, b) for b in bids] for a in bids])

    @functools.cached_property
    def _utilities(self) -> np.ndarray:
        """Return player 0's utility for all sequences of winners, int64 [3 ** N]."""
        cards, pays = self._rules.point_cards, self._rules.returns_type
        every = itertools.product(range(3), repeat=len(cards))
        return np.array([utility(*points(winners, cards), pays) for winners in every])

    def new_initial_states(self) -> np.ndarray:
        """Return the state before the first bid."""
        return np.zeros((1, 5), np.int64)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the players to bid, or TERMINAL; int64 [n]."""
        turn = states[:, 0]
        over = turn == 2 * self._rules.num_cards
        return np.where(over, base.TERMINAL, turn % 2)

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return the remaining cards of the player to bid, bool [n, N]."""
        spent = states[:, 4] >> states[:, 0] % 2 * self._rules.num_cards
        return (spent[:, None] >> self._cards) & 1 == 0

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after one bid each."""
        after = states.copy()
        player = states[:, 0] % 2
        after[:, 0] += 1
        after[np.arange(len(after)), 1 + player] <<= 4
        after[np.arange(len(after)), 1 + player] += 1 + actions
        replies = player == 1
        winners = self._winners[(states[replies, 1] & 15) - 1, actions[replies]]
        after[replies, 3] = after[replies, 3] * 3 + winners
        after[:, 4] |= 1 << (actions + player * self._rules.num_cards)
        return after

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utilities at the end, int64 [n]."""
        return self._utilities[states[:, 3]]

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int64 [n, 3]: the turn, the player's bids, and the winners."""
        return states[:, [0, 1 + player, 3]]

    def information_state_strings(self, states: np.ndarray, player: int) -> list[str]:
        """Return the strings of `IIGoofspielObserver` with perfect recall."""
        texts = []
        for turn, bids, winners in self.information_state(states, player).tolist():
            cards = [int(digit, 16) - 1 for digit in f"{bids:x}"] if bids else []
            signs = [_WINNER_SIGNS[winners // 3**i % 3] for i in range(turn // 2)]
            public = _winners_text(turn, "".join(reversed(signs)))
            texts.append(f"{_bids_text(player, cards)} {public}")
        return texts

    def information_state_tensor(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return the tensors of `IIGoofspielObserver` with recall, bool [n, F]."""
        count, size = len(states), self._rules.num_cards
        turn, winners = states[:, 0], states[:, 3, None]
        # The latest bid and winner are the last digits.
        later = ((turn + 1 - player) // 2)[:, None] - 1 - self._cards
        bids = states[:, 1 + player, None] >> 4 * np.maximum(later, 0) & 15
        bids = np.where(later < 0, 0, bids)
        later = (turn // 2)[:, None] - 1 - self._cards
        winners = np.where(later < 0, -1, winners // 3 ** np.maximum(later, 0) % 3)
        pieces = (
            np.broadcast_to(np.arange(base.NUM_PLAYERS) == player, (count, 2)),
            bids[:, :, None] == 1 + self._cards,
            turn[:, None] == np.arange(2 * size + 1),
            winners[:, :, None] == np.arange(3),
        )
        return np.concatenate([piece.reshape(count, -1) for piece in pieces], axis=1)


def _bids_text(player: int, bids: Iterable[int]) -> str:
    return f"p{player} bids {_cards(bids)}"


def _winners_text(turn: int, winners: str) -> str:
    return f"turn {turn} won {winners or '-'}"


def _hand(bids: bytes, num_cards: int) -> list[int]:
    """Return the indices of the cards that remain after `bids`."""
    return [card for card in range(num_cards) if card not in bids]


def _cards(bids: Iterable[int]) -> str:
    """Return the values of cards, given their indices, as a readable list."""
    return ",".join([str(bid + 1) for bid in bids]) or "-"


pyspiel.register_game(_GAME_TYPE, IIGoofspielGame)
