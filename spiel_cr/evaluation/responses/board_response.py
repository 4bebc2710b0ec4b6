"""Local best response in games of boards: all hands of the responder at once.

Lisý and Bowling 2017, "Equilibrium approximation quality of current no-limit poker
bots". The responder knows what the opponent's hands are likely to be, folds, calls or
raises, whichever brings most if both then check and call to the end, where a raise may
be folded to; further raises count as calls. How often hands win is the mean over boards
that are drawn beside the one that is played, so that nothing is known of what is to
come. The mean over boards estimates the value of a strategy, a lower bound of a best
response's; each board's number is a mean over all pairs of hands.
"""

import numpy as np
from tqdm import tqdm

from spiel_cr.common.announcing import is_wanted
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.simulation import keys
from spiel_cr.games.simulation.boards import BetTree, BoardRules, Group
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy

# Boards by which hands are compared before the first card is dealt, and later.
_AT_FIRST, _LATER = 500, 50


class BoardResponse:
    """Local best response to a strategy by bets and buckets."""

    def __init__(
        self, rules: BoardRules, strategy: TableStrategy, player: int, *, seed: int
    ) -> None:
        """Asks for the whole strategy.

        Args:
          rules: of the game; keys of the strategy are made by them.
          strategy: the opponent's; uniform where it has no row.
          player: the responder.
          seed: of all boards.
        """
        self._rules, self._player, self._seed = rules, player, seed
        self._tree = BetTree(rules)
        self._played = {
            index: _asked(strategy, group)
            for index, group in enumerate(self._tree.groups)
            if group.player != player
        }
        # The group of each of the opponent's decisions, and where it is in that.
        self._where = {
            int(node): (index, row)
            for index in self._played
            for row, node in enumerate(self._tree.groups[index].nodes)
        }
        self._before_cards = self._wins(np.zeros(0, np.int64), 0)

    def values(self, boards: int) -> np.ndarray:
        """float64 [boards], the responder's mean utility on boards that are drawn."""
        said = f"boards, player {self._player}"
        numbers = tqdm(range(boards), said, disable=not is_wanted())
        return np.array([self._value(number) for number in numbers])

    def _folds(self, node: int) -> bool:
        bets = self._tree.bets
        return bets.player[node] == TERMINAL and not bets.showdown[node]

    def _called(self, node: int) -> int:
        """The end of checks and calls from a node on."""
        while len(below := self._tree.children[node]):
            node = next(int(child) for child in below if not self._folds(child))
        return node

    def _wins(self, first: np.ndarray, number: int) -> np.ndarray:
        """float32 [H, H], how much more often hands win than lose after some cards."""
        size = self._rules.sizes[-1]
        draws = 1 if len(first) == size else _LATER if len(first) else _AT_FIRST
        random = np.random.default_rng([self._seed, 1, self._player, number])
        total = np.zeros((len(self._rules.held),) * 2, np.float32)
        left = np.zeros((draws, len(total)), np.float32)
        for draw in range(draws):
            board = self._rules.draw_board(random, first)
            total += self._rules.beats(board)
            left[draw] = self._rules.buckets(board, len(self._rules.sizes) - 1)[1]
        return total / np.maximum(left.T @ left, 1)

    def _value(self, number: int) -> float:
        """The mean utility on one board."""
        rules, tree, player = self._rules, self._tree, self._player
        random = np.random.default_rng([self._seed, 0, number])
        board = rules.draw_board(random)
        seen = [rules.buckets(board[:size], at) for at, size in enumerate(rules.sizes)]
        wins = [
            self._wins(board[:size], number) if size else self._before_cards
            for size in rules.sizes
        ]
        reach = np.ones((2, len(tree.place), len(rules.held)), np.float32)
        for index, group in enumerate(tree.groups):
            labels, left = seen[group.round]
            before = reach[group.player, tree.own[group.player, group.nodes]]
            after = reach[group.player, group.below].reshape(-1, *before.shape)
            if group.player != player:
                after[:] = self._played[index][:, :, labels] * before
                continue
            other = reach[1 - player, tree.own[1 - player, group.nodes]] * left
            best = self._compared(group, other, labels, wins[group.round]).argmax(0)
            after[:] = (best == np.arange(len(after))[:, None, None]) * before
        hands = np.flatnonzero(seen[-1][1])
        held, beats = rules.held[hands], rules.beats(board)[np.ix_(hands, hands)]
        value = np.zeros((len(tree.place), len(hands)), np.float32)
        tree.end_values(player, reach[1 - player][:, hands], held, beats, value)
        ends = np.concatenate([tree.folds, tree.shown])
        own = reach[player, tree.own[player, ends]][:, hands]
        total = np.einsum("eh,eh->", own, value[tree.place[ends]], dtype=np.float64)
        apart = len(hands) ** 2 - ((held @ held.T) > 0).sum()
        return float(total / apart)

    def _compared(
        self, group: Group, other: np.ndarray, labels: np.ndarray, wins: np.ndarray
    ) -> np.ndarray:
        """float32 [A, n, H], what each action of a group is taken to bring.

        Args:
          group: of the responder.
          other: float32 [n, H], the opponent's reach there.
          labels: int64 [H], its buckets.
          wins: float32 [H, H], by what is known there.
        """
        stake = np.abs(self._tree.bets.stake)
        found = np.empty((group.shape[0], *other.shape), np.float32)
        for at, node in enumerate(group.nodes):
            for values, child in zip(
                found[:, at], self._tree.children[node], strict=True
            ):
                if self._folds(child):
                    values[:] = -stake[child] * self._apart(other[at])
                    continue
                stays = other[at]
                values[:] = 0
                below = self._tree.children[child]
                if len(below) and self._folds(below[0]):
                    index, row = self._where[child]
                    gone = self._played[index][0, row, labels] * stays
                    values += stake[below[0]] * self._apart(gone)
                    stays = stays - gone
                values += stake[self._called(child)] * (wins @ stays)
        return found

    def _apart(self, reach: np.ndarray) -> np.ndarray:
        """float32 [H], sums of reach [H] over hands that share no card with each."""
        held = self._rules.held
        apart: np.ndarray = reach.sum() - held @ (reach @ held)
        return apart + (held[0].sum() - 1) * reach


def _asked(strategy: TableStrategy, group: Group) -> np.ndarray:
    """float32 [A, n, B], a strategy at the decisions of a group."""
    width, nodes, buckets = group.shape
    bucket = np.tile(np.arange(buckets), nodes)
    rows = np.stack([np.repeat(group.nodes, buckets), bucket], axis=1)
    row = strategy.find(keys.of_rows(rows, group.player))
    found = strategy.spread(row, np.ones((len(row), width), bool))
    found[row < 0] = 1 / width
    return found.T.reshape(group.shape).astype(np.float32)
