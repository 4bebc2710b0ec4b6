"""Two-player spot of hold'em: flop, turn or river, pot, stacks, ranges and bet sizes.

Rules. The pot contains chips, half of which count as each player's, and both players
have equal stacks. Each player is dealt a hand of its range. The probability of a pair
of hands is proportional to the product of their weights if they share no card with each
other or with the board. Player 0, out of position ("oop"), acts first on each street,
player 1 ("ip") second. A player that faces no bet checks or bets; otherwise, it folds,
calls or raises. A raise must not be smaller than the bet or raise before it, unless it
is all-in. When the betting on the flop or turn is over, a card is dealt. Payoffs are
net chips: a player that folds immediately loses half the pot.

With a rake, the winner of a pot pays this share of it, at most the cap, also after a
fold; in a tie each player pays half. The game is then not zero-sum. A bet that is not
called is returned before.

Parameters.
  board: three to five cards, such as 5c9dJs2h.
  pot: chips in the middle, from 1 to 1,000,000.
  stack: chips behind, from 1 to 1,000,000.
  ranges: of player 0 and of player 1, separated by a semicolon (see `ranges`); in game
    strings, spaces replace commas.
  bets: bet sizes (see `bets`); in game strings, spaces replace commas.
  first: the player that acts first, oop or ip. With ip, oop has checked.
  rake: a percentage, and a cap in chips, such as "5% 3"; empty: no rake.

Actions are 0 (fold), 1 (check or call), and from 2 on the bet sizes of a decision in
ascending order. Their names contain the player's chips on the street: "Raise 300" is a
raise to 300. Sizes are whole chips. Chance outcomes are the hands of player 0 and
player 1, numbered as in `ranges.HANDS`, and the turn and river cards.

Source: these are the games that solvers for poker players solve. If `universal_poker`
can express a spot, both games are the same.
"""

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyspiel

from game_defs import base, parameters
from game_defs.bundled.holdem import strengths
from game_defs.bundled.holdem.cards import RANKS, SUITS
from game_defs.bundled.holdem.declaration import Declaration, declare
from game_defs.bundled.holdem.public_tree import HoldemDeals
from game_defs.bundled.holdem.reader import HandReader
from game_defs.bundled.holdem.rules import HoldemRules
from game_defs.spots.bets import read_bets
from game_defs.spots.betting import SpotBetting, lay_out
from game_defs.spots.ranges import DECK, HANDS, hand_text, range_text, read_range

NAME = "python_poker_spot"
_FLOP, _RIVER = 3, 5
_CARD = re.compile(f"[{RANKS}][{SUITS}]")
_FIRST = ("oop", "ip")
_RAKE = re.compile(r"([0-9]*\.?[0-9]+)%(?:[,\s]+([0-9]*\.?[0-9]+))?")
_PARAMETERS: Mapping[str, int | str] = {
    "board": "5c9dJs2h3c",
    "pot": 100,
    "stack": 200,
    "ranges": "random;random",
    "bets": "pot allin",
    "first": "oop",
    "rake": "",
}
_GAME_TYPE, _RAKED_TYPE = (
    base.game_type(
        NAME, "Python Spot of Hold'em", _PARAMETERS, chance=True, zero_sum=zero_sum
    )
    for zero_sum in (True, False)
)
_ALLOWED: Mapping[str, parameters.Allowed] = {
    "pot": range(1, 1_000_001),
    "stack": range(1, 1_000_001),
    "first": _FIRST,
}


class Spot(base.Shared):
    """Deals and bets of a spot, shared by all states.

    Attributes:
      deals: Hands and their probabilities.
      bets: Public tree of all bets.
      stakes: Chips, bet sizes and number of streets.
      rake: Function that returns the rake of pots; None if there is none.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        """Read the parameters of the game.

        Raises:
          ValueError: If a parameter cannot be parsed, or no hands can be dealt.
        """
        self._params = dict(params)
        board = _read_board(params["board"])
        deal = _RIVER - len(board)
        reaches = _read_ranges(params["ranges"])
        self.deals = HoldemDeals(
            HoldemRules(DECK, 2, board, (0,) + (1,) * deal, reaches)
        )
        possible = HANDS.bits & self.deals.board_mask == 0
        for player, weights in enumerate(reaches):
            if not (weights * possible).any():
                raise ValueError(
                    f"ranges={params['ranges']!r}: player {player} has no possible "
                    f"hand on the board {params['board']}; add other hands"
                )
        first, second = self.deals.reaches
        if not first.any():
            raise ValueError(
                f"ranges={params['ranges']!r}: all pairs of hands share a card, so no "
                f"deal is possible; add other hands"
            )
        pairs = first[:, None] * self.deals.meets * second
        self._first = pairs.sum(axis=1)
        sizes = read_bets(params["bets"])
        self.stakes = SpotBetting(
            params["pot"], params["stack"], sizes, deal, _FIRST.index(params["first"])
        )
        self.bets = lay_out(self.stakes)
        self.rake = _read_rake(params.get("rake", ""))

    def __reduce__(self) -> tuple[Callable[..., "Spot"], tuple]:
        """Pickle the parameters."""
        return _spot, tuple(sorted(self._params.items()))

    def deal_probabilities(self, dealt: tuple[int, ...]) -> list[tuple[int, float]]:
        """Return the outcomes of the next deal, and their probabilities.

        Args:
          dealt: Chance outcomes so far.
        """
        if len(dealt) >= base.NUM_PLAYERS:
            held = HANDS.cards[[*dealt[: base.NUM_PLAYERS]]].flat
            dealt_cards = {*self.deals.rules.board, *held, *dealt[base.NUM_PLAYERS :]}
            left = [card for card in range(len(DECK)) if card not in dealt_cards]
            return [(card, 1 / len(left)) for card in left]
        weights = self._first
        if dealt:
            weights = self.deals.reaches[1] * self.deals.meets[dealt[0]]
        hands = np.flatnonzero(weights)
        chances = weights[hands] / weights.sum()
        return list(zip(hands.tolist(), chances.tolist(), strict=True))

    def board_text(self, dealt: tuple[int, ...]) -> str:
        """Return the names of all public cards."""
        board = self.deals.rules.board
        return str(DECK.text([*board, *dealt[base.NUM_PLAYERS :]]))


def _read_rake(text: str) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return a function that computes the rake of pots, float64 [n]; None: no rake."""
    if not text.strip():
        return None
    match = _RAKE.fullmatch(text.strip())
    if match is None or float(match[1]) > 100:
        raise ValueError(
            f"rake={text!r}: not a percentage and a cap in chips; use text such as "
            f"'5%,3', or '5%' without a cap"
        )
    share, cap = float(match[1]) / 100, float(match[2] or "inf")
    if 0 in (share, cap):
        return None
    return lambda pots: np.minimum(share * pots, cap)


@functools.lru_cache(maxsize=16)
def _spot(*items: tuple[str, Any]) -> Spot:
    return Spot(dict(items))


def _read_board(text: str) -> tuple[int, ...]:
    """Return the cards of a flop, a turn or a river."""
    pairs = _CARD.findall(text)
    if "".join(pairs) != text.replace(" ", ""):
        raise ValueError(
            f"board={text!r} is not a list of cards; use ranks from {RANKS} and suits "
            f"from {SUITS}, such as 5c9dJs2h"
        )
    twice = [card for card in pairs if pairs.count(card) > 1]
    if twice or not _FLOP <= len(pairs) <= _RIVER:
        problem = f"{twice[0]} twice" if twice else f"{len(pairs)} cards"
        raise ValueError(
            f"board={text!r} has {problem}; use 3 different cards (a flop), 4 (a "
            f"turn) or 5 (a river); preflop spots are not supported"
        )
    return tuple(DECK.cards("".join(pairs)))


def _read_ranges(text: str) -> np.ndarray:
    """Return the weights of both players, float64 [2, hands]."""
    parts = text.split(";")
    if len(parts) != base.NUM_PLAYERS:
        raise ValueError(
            f"ranges={text!r}: {len(parts)} ranges; use two, of player 0 (oop) and "
            f"player 1 (ip), separated by a semicolon, such as 'QQ+,AK;random'"
        )
    return np.stack([read_range(part) for part in parts])


class SpotGame(base.Game):
    """A spot; the module's docstring has its rules and parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        merged = parameters.merge(_GAME_TYPE, params, _ALLOWED)
        self.spot = _spot(*sorted(merged.items()))
        bets, stakes = self.spot.bets, self.spot.stakes
        super().__init__(
            _GAME_TYPE if self.spot.rake is None else _RAKED_TYPE,
            merged,
            num_distinct_actions=1 + int(bets.tree.action.max()),
            max_chance_outcomes=len(HANDS),
            max_utility=stakes.stack + stakes.pot / 2,
            max_game_length=len(bets.path(len(bets.names) - 1)),
        )

    def max_chance_nodes_in_history(self) -> int:
        """Return the number of deals."""
        return base.NUM_PLAYERS + self.spot.stakes.deal

    def new_initial_state(self) -> "SpotState":
        """Return the state before the first deal."""
        return SpotState(self)

    def public_tree_declaration(self) -> Declaration:
        """Return the declaration of the public-tree form."""
        spot = self.spot
        return declare(spot.deals, lambda boards: spot.bets.tree, SpotReader, spot.rake)

    def _observer(self, shows: pyspiel.IIGObservationType) -> base.Observer:
        return SpotObserver(shows, self)


class SpotReader(HandReader):
    """Reader that finds the private states of spots."""

    def split(self, dealt: list[int]) -> tuple[list[list[int]], list[int]]:
        """Return both players' hands and the public cards of chance outcomes."""
        hands = HANDS.cards[dealt[: base.NUM_PLAYERS]].tolist()
        return hands, dealt[base.NUM_PLAYERS :]

    def chosen(self, player: int, round: int, text: str) -> np.ndarray:
        """Return the private states that contain the hands of a range, bool [n].

        Raises:
          ValueError: If the range cannot be parsed or has weights, or if it contains
            some but not all of several hands that are equivalent up to suits.
        """
        weights = read_range(text)
        odd = (weights > 0) & (weights < 1)
        if odd.any():
            raise ValueError(
                f"{text!r} has the weight {weights[odd][0]:g}; weights are not "
                f"supported here, remove it"
            )
        images = weights[self._deals.images]
        if (images != weights).any():
            which, hand = np.argwhere((images != weights) & (weights > 0))[0]
            alike = self._deals.images[which, hand]
            raise ValueError(
                f"{text!r} has {hand_text(hand)} without {hand_text(alike)}, but on "
                f"this board with these ranges they are equivalent; add the latter"
            )
        number = self._private_states[player][round].number[:, weights > 0]
        chosen = np.zeros(len(self._private_states[player][round].hand), bool)
        chosen[number[number >= 0]] = True
        return chosen

    def range_text(
        self, player: int, round: int, weights: np.ndarray, board: str, notation: str
    ) -> str:
        """Return the weights of private states on a board as the text of a range.

        Args:
          player: Player of the private states.
          round: Round of the private states.
          weights: Weight of each private state, float64 [n].
          board: Board, as for `states_on`.
          notation: Notation, as for `ranges.range_text`.
        """
        number = self.states_on(player, round, board)
        return range_text(np.where(number >= 0, weights[number], 0.0), notation)


class SpotState(base.State):
    """A state of a spot.

    Attributes:
      spot: Deals and bets of the game.
      dealt: Chance outcomes so far.
      node: Node of the public tree.
    """

    def __init__(self, game: SpotGame) -> None:
        """Use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.spot = game.spot
        self.dealt: tuple[int, ...] = ()
        self.node = 0

    def current_player(self) -> int:
        """Return the player to act, CHANCE before a deal, or TERMINAL."""
        tree = self.spot.bets.tree
        if len(self.dealt) < base.NUM_PLAYERS + tree.dealt[self.node]:
            return base.CHANCE
        return int(tree.player[self.node])

    def _legal_actions(self, player: int) -> list[int]:
        return list(self.spot.bets.children[self.node])

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the outcomes of the next deal, and their probabilities."""
        return self.spot.deal_probabilities(self.dealt)

    def _apply_action(self, action: int) -> None:
        if self.is_chance_node():
            self.dealt += (action,)
        else:
            self.node = self.spot.bets.children[self.node][action]

    def _action_to_string(self, player: int, action: int) -> str:
        if player >= 0:
            return self.spot.bets.names[self.spot.bets.children[self.node][action]]
        hand = len(self.dealt) < base.NUM_PLAYERS
        return f"Deal {hand_text(action) if hand else DECK.text([action])}"

    def is_terminal(self) -> bool:
        """Return True after a fold and at a showdown."""
        return self.current_player() == base.TERMINAL

    def returns(self) -> list[float]:
        """Return both players' utilities; 0 before the end."""
        first, second = super().returns()
        if self.spot.rake is None or not self.is_terminal():
            return [first, second]
        pot = 2 * abs(self.spot.bets.tree.stake[self.node])
        rake = float(self.spot.rake(np.array(pot)))
        paid = np.array([0.5, 0.5]) if first == 0 else np.array([first > 0, first < 0])
        return (np.array([first, second]) - rake * paid).tolist()

    def _utility(self) -> float:
        tree, deals = self.spot.bets.tree, self.spot.deals
        if not tree.showdown[self.node]:
            return float(tree.stake[self.node])
        board = [*deals.rules.board, *self.dealt[base.NUM_PLAYERS :]]
        hands = HANDS.cards[[*self.dealt[: base.NUM_PLAYERS]]]
        cards = np.array([[*hand, *board] for hand in hands])
        first, second = strengths.of_cards(cards, len(SUITS)).tolist()
        return float(tree.stake[self.node]) * np.sign(first - second)

    def bets_text(self) -> str:
        """Return the names of the players' actions so far."""
        path = self.spot.bets.path(self.node)
        names = (self.spot.bets.names[node] for node in path)
        return " ".join(name.replace(" ", "-").lower() for name in names)

    def __str__(self) -> str:
        hands = " ".join(hand_text(hand) for hand in self.dealt[: base.NUM_PLAYERS])
        board = self.spot.board_text(self.dealt)
        return f"hands {hands} board {board} bets {self.bets_text()}"


class SpotObserver(base.Observer):
    """Observer: a player's hand is private; deals, board and bets are public.

    Parts of the tensor: `hand` [52], private; `deals` [3 + cards to come], the number
    of deals so far; `board` [cards to come, at least 1, 52], in which the first cards
    and the first card dealt share a row; `bets` [most bets in a game, actions], all
    actions in order, also without perfect recall.
    """

    def __init__(self, shows: pyspiel.IIGObservationType, game: SpotGame) -> None:
        cards = (len(DECK),)
        bets = (game.max_game_length(), game.num_distinct_actions())
        deals = (game.max_chance_nodes_in_history() + 1,)
        board = (max(1, game.spot.stakes.deal), *cards)
        public = {"deals": deals, "board": board, "bets": bets}
        super().__init__(shows, {"hand": cards}, public)

    def _set_private(self, pieces: base.Pieces, state: SpotState, owner: int) -> None:
        if len(state.dealt) > owner:
            pieces["hand"][HANDS.cards[state.dealt[owner]]] = 1

    def _set_public(self, pieces: base.Pieces, state: SpotState) -> None:
        pieces["deals"][len(state.dealt)] = 1
        pieces["board"][0, list(state.spot.deals.rules.board)] = 1
        base.mark(pieces["board"], list(state.dealt[base.NUM_PLAYERS :]))
        bets = state.spot.bets
        actions = bets.tree.action[bets.path(state.node)]
        base.mark(pieces["bets"], actions.tolist())

    def _private_text(self, state: SpotState, owner: int) -> str:
        hand = hand_text(state.dealt[owner]) if len(state.dealt) > owner else "-"
        return f"p{owner} hand {hand}"

    def _public_text(self, state: SpotState) -> str:
        board = state.spot.board_text(state.dealt)
        return f"board {board} deals {len(state.dealt)} bets {state.bets_text()}"


pyspiel.register_game(_GAME_TYPE, SpotGame)
