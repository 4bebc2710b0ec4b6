"""What a responder in limit hold'em can expect from its decisions: little noise."""

import itertools
from collections.abc import Iterable

import numpy as np
import pyspiel
from open_spiel.python import policy as policy_lib

from spiel_cr.responses import opponents
from spiel_cr.responses.rollouts import Answers

# Cards in a hand and on the board.
_HOLE, _BOARD = 2, 5
# Check or call, by its number in the game; fold is 0, bet is 2.
_CALL = 1


class Judge:
    """What a responder's decisions are worth, rather than what it happened to get.

    The value of a policy is that of a baseline policy plus the expected sum of the
    baseline's advantages Q(h, a) - V(h) at the policy's own decisions (Kakade and
    Langford 2002, Lemma 6.1). Put otherwise: the effects of all moves of chance and of
    the opponent, whose policy is known, are taken out by control variates of mean 0, as
    in AIVAT (Burch et al. 2018).

    The baseline always raises. Neither its actions nor the opponent's depend on cards,
    so at given betting its value is linear in the responder's equity, E: V(h) = E W +
    (1 - E) L, where W and L are its values if all showdowns were won or lost. These are
    computed by going through the betting. The equity, the chance to win a showdown plus
    half of that to tie, is estimated by dealing what the responder does not see. What
    is linear in it stays unbiased, since the responder's choice does not depend on
    these draws; they are made from the seed and the cards, so that responders who meet
    the same cards are judged alike.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        opponent: policy_lib.Policy,
        seat: int,
        *,
        seed: int = 0,
        samples: int = 1000,
    ) -> None:
        """Deals nothing yet.

        Args:
          game: hold'em for two.
          opponent: its policy; may depend on the betting only.
          seat: the responder's, 0 or 1.
          seed: of the deals.
          samples: deals for an equity.
        """
        self._game, self._seat, self._seed = game, seat, seed
        self._samples = samples
        policies = [opponent, opponent]
        policies[seat] = opponents.chump(game, "always_raise")
        self._answers = [Answers(policies[p], p) for p in (0, 1)]
        self._values: dict[tuple[tuple[int, ...], bool], float] = {}
        self._equities: dict[tuple[int, ...], float] = {}
        self._fixed: dict[bool, list[int]] = {}
        random = np.random.default_rng(seed)
        while len(self._fixed) < 2:
            cards = random.permutation(game.max_chance_outcomes()).tolist()
            won = self._show_down(cards)
            if won:
                self._fixed.setdefault(won > 0, cards)

    def start(self) -> float:
        """The baseline's value of a match; both players win showdowns alike."""
        return (self._value((), True) + self._value((), False)) / 2

    def advantage(self, state: pyspiel.State, action: int) -> float:
        """What the responder's action adds to the baseline's value, in chips.

        Args:
          state: the responder is to act; the opponent's cards are not looked at.
          action: a legal one.
        """
        moves = tuple(move.action for move in state.full_history() if move.player >= 0)
        equity = self._equity(state)
        win, lose = (
            self._value((*moves, action), won) - self._value(moves, won)
            for won in (True, False)
        )
        return equity * win + (1 - equity) * lose

    def _value(self, moves: tuple[int, ...], won: bool) -> float:
        """The baseline's value after some betting, if all showdowns end alike."""
        if (moves, won) not in self._values:
            state = self._at(moves, self._fixed[won])
            if state.is_terminal():
                value = float(state.player_return(self._seat))
            else:
                actions, shares, *_ = self._answers[state.current_player()](state)
                value = sum(
                    share * self._value((*moves, action), won)
                    for action, share in zip(actions, shares, strict=True)
                )
            self._values[moves, won] = value
        return self._values[moves, won]

    def _at(self, moves: Iterable[int], cards: Iterable[int]) -> pyspiel.State:
        """After these moves, where somebody is to act or all is over."""
        state, left, deck = self._game.new_initial_state(), iter(moves), iter(cards)
        while not state.is_terminal():
            source = deck if state.is_chance_node() else left
            action = next(source, None)
            if action is None:
                break
            state.apply_action(action)
        return state

    def _equity(self, state: pyspiel.State) -> float:
        """The chance to win a showdown against random cards; a tie is half a win."""
        dealt = [m.action for m in state.full_history() if m.player < 0]
        own = dealt[_HOLE * self._seat :][:_HOLE]
        board = dealt[2 * _HOLE :]
        known = (*sorted(own), *board)
        if known not in self._equities:
            random = np.random.default_rng([self._seed, *known])
            deck = set(range(self._game.max_chance_outcomes()))
            left = np.array(sorted(deck.difference(known)))
            total = 0.0
            for _ in range(self._samples):
                rest = random.permutation(left)[: 2 * _HOLE + _BOARD].tolist()
                hands = [rest[:_HOLE], rest[:_HOLE]]
                hands[self._seat] = own
                total += self._show_down([*hands[0], *hands[1], *board, *rest[_HOLE:]])
            # The next decision is on the same cards or never again.
            self._equities = {known: 0.5 + total / self._samples / 2}
        return self._equities[known]

    def _show_down(self, cards: Iterable[int]) -> float:
        """1 if the responder wins a match in which nobody bets, 0 if it ties, or -1."""
        state = self._at(itertools.repeat(_CALL), cards)
        return float(np.sign(state.player_return(self._seat)))
