"""Backward and local best responses in limit hold'em on many deals at once.

Run `python -m benchmarks.uncompiled.holdem_bets --help`. Against opponents that never
look at their cards all bets can be gone through for each deal, and so can the answers
to an estimate of the hand's strength. What is left to chance are the cards. So
thousands of deals are judged in minutes, where `benchmarks.holdem` plays a match in a
second. Both responders see the same estimates, of 1200 sampled hands before the river
and 600 on it; showdowns are judged by others.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.document import interval, table
from benchmarks.frame import Parser, Row
from benchmarks.holdem import HOLDEM
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import TERMINAL
from spiel_cr.eval.common.statistics import mean_and_half_width
from spiel_cr.players.opponent_strings import load_opponent
from spiel_cr.responses import opponents
from spiel_cr.root_responses import setting as settings_of
from spiel_cr.root_responses.backward import BackwardResponder

_CALL = 1
# Strength of hands, float64 [n, 2], at a node, to int64 [n], actions.
_Chooser = Callable[[int, np.ndarray], np.ndarray]


def main(arguments: Sequence[str] | None = None) -> int:
    """Learns, judges, and prints a table."""
    options = _parser().parse_args(arguments)
    rows = [_against(name, options) for name in options.opponents]
    columns = {
        "opponent": "`{opponent}`",
        "LBR": "{local}",
        "backward": "{backward}",
        "backward − LBR": "{more}",
        "as player 0": "{more_0}",
        "as player 1": "{more_1}",
        "CPU seconds": "{seconds:.0f}",
    }
    print(
        f"Expected reward of a match in chips, ± half of a 95 % interval over "
        f"{options.deals} deals, seats swapped; backward learned from {options.learn} "
        f"others in each seat.\n\n{table(rows, columns)}"
    )
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="python -m benchmarks.uncompiled.holdem_bets",
        description="Compare backward with local best responses in limit hold'em, on "
        "many deals, against opponents that look at no card.",
    )
    kinds = ["uniform", *opponents.CHUMPS]
    parser.strings("--opponents", kinds, "uniform and chumps", metavar="OPPONENT")
    parser.number("--deals", 10_000, "to judge by")
    parser.number("--learn", 20_000, "deals that the backward response learns from")
    parser.number("--seed", 0, "of everything", least=0)
    return parser


def _against(name: str, options: argparse.Namespace) -> Row:
    """Both responses against one opponent."""
    begun, game = time.process_time(), load_game(HOLDEM)
    setting = settings_of.on_states(game, load_opponent(name, game))
    found: dict[str, list[np.ndarray]] = {"backward": [], "local": []}
    for player in (0, 1):
        responder = BackwardResponder(setting, player, seed=options.seed)
        responder.learn(options.learn)
        judge = BetsJudge(setting, player, options.deals, seed=options.seed)
        found["backward"].append(judge.values(responder.choose))
        found["local"].append(judge.values(judge.local))
    more = [
        mine - its for mine, its in zip(found["backward"], found["local"], strict=True)
    ]
    shown = {who: np.mean(each, axis=0) for who, each in found.items()}
    shown |= {"more": np.mean(more, axis=0), "more_0": more[0], "more_1": more[1]}
    entries = {who: interval(*mean_and_half_width(v)) for who, v in shown.items()}
    return {"opponent": name, **entries, "seconds": time.process_time() - begun}


class BetsJudge:
    """What a response is worth in some deals, by all bets that may follow."""

    def __init__(
        self, setting: settings_of.Setting, player: int, deals: int, *, seed: int = 0
    ) -> None:
        """Deals cards; both seats get the same.

        Args:
          setting: of limit hold'em, and an opponent that looks at no card.
          player: the responder.
          deals: how many.
          seed: of the cards and the estimates.
        """
        source: Any = setting.source
        self._rules, self._opponent, self._player = (
            source.rules,
            setting.opponent,
            player,
        )
        self._bets = self._rules.bets
        self._count = deals
        cards = self._rules.deals(deals, np.random.default_rng([seed, 2]))
        if player:
            # The responder has the same hand in both seats.
            hands = int(self._bets.cards[0])
            cards[:, :hands] = np.roll(cards[:, :hands], hands // 2, axis=1)
        random = np.random.default_rng([seed, 3])
        own = np.flatnonzero(self._bets.player == player)
        self._strength: dict[int, np.ndarray] = {}
        for dealt in np.unique(self._bets.cards[own]).tolist():
            node = int(own[self._bets.cards[own] == dealt][0])
            states = self._rules.states_at(node, cards)
            found = self._rules.hand_strength(states, player, random)
            self._strength[int(dealt)] = found
        # Not what is decided by: the best of noise is no gain.
        again = self._rules.hand_strength(states, player, random)
        self._showdown = 2 * again[:, 0] - 1
        self._called: dict[int, np.ndarray] = {}

    def values(self, chooser: _Chooser, node: int = 0) -> np.ndarray:
        """float64 [deals], expected rewards of a response.

        Args:
          chooser: the response.
          node: where it begins.
        """
        bets, below = self._bets, self._bets.below[node]
        if bets.player[node] == TERMINAL:
            win, lose = self._end(node)
            share = (1 + self._showdown) / 2
            return np.asarray(share * win + (1 - share) * lose)
        if bets.player[node] != self._player:
            return np.sum(
                [
                    odds * self.values(chooser, child)
                    for child, odds in self._odds(node)
                ],
                axis=0,
            )
        chosen = chooser(node, self._strength[int(bets.cards[node])])
        found = np.zeros(self._count)
        for action in np.unique(chosen).tolist():
            its = chosen == action
            found[its] = self.values(chooser, int(below[action]))[its]
        return found

    def local(self, node: int, strength: np.ndarray) -> np.ndarray:
        """int64 [n], what local best response plays, with check and call as default.

        As `responses.local_best_response.LBRBot`, with means instead of its rollouts:
        if nobody folds but in the answer, values are linear in the equity.
        """
        below, equity = self._bets.below[node], strength[:, 0]
        values = np.full((len(strength), len(below)), -np.inf)
        for action in np.flatnonzero(below >= 0).tolist():
            after = int(below[action])
            parts = [(after, 1.0)]
            if self._bets.player[after] == 1 - self._player:
                parts = self._odds(after)
            win, lose = np.sum([odds * self._call(n) for n, odds in parts], axis=0)
            values[:, action] = equity * win + (1 - equity) * lose
        best = values >= values.max(axis=1, keepdims=True) - 1e-9
        found: np.ndarray = np.argmax(best, axis=1)
        return found

    def _odds(self, node: int) -> list[tuple[int, float]]:
        """Where the opponent goes, and how likely."""
        below, opponent = self._bets.below[node], self._opponent
        assert hasattr(opponent, "odds")
        odds = opponent.odds(1 - self._player, below >= 0)
        return [(int(below[a]), float(odds[a])) for a in np.flatnonzero(odds).tolist()]

    def _call(self, node: int) -> np.ndarray:
        """float64 [2], rewards if all check and call: of who wins, of who loses."""
        if node not in self._called:
            over = self._bets.player[node] == TERMINAL
            after = int(self._bets.below[node, _CALL])
            self._called[node] = self._end(node) if over else self._call(after)
        return self._called[node]

    def _end(self, node: int) -> np.ndarray:
        """float64 [2], rewards at an end: of who wins, of who loses."""
        stake = float(self._bets.stake[node])
        if self._bets.showdown[node]:
            return np.array([abs(stake), -abs(stake)])
        return np.full(2, stake if self._player == 0 else -stake)


if __name__ == "__main__":
    sys.exit(main())
