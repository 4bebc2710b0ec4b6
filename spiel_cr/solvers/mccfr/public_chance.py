"""Public chance sampling: one board per iteration, with all bets and all hands on it.

Johanson, Bard, Lanctot, Gibson & Bowling 2012, "Efficient Nash equilibrium
approximation through Monte Carlo counterfactual regret minimization". Each iteration
draws the public cards of all rounds. Given this board, the game is a tree of bets in
which each player holds one of H hands, and the values of all hands are computed at
once, as in full-width CFR. Hands in the same bucket share regrets and averages, so the
abstraction may have imperfect recall.

The average strategies are sums over boards and hands of the player's own reach times
the strategy.
"""

import dataclasses
import typing
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.common.checks import check_settings
from spiel_cr.games.simulation import keys
from spiel_cr.games.simulation.boards import BetTree, BoardRules, Group
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.solvers.cfr.regret_matching import Rule, discount
from spiel_cr.solvers.iterative_solver import check_arrays, check_numbers
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy
from spiel_cr.solvers.mccfr.table.table_solver import TableSolver


@dataclasses.dataclass(frozen=True)
class PublicChanceConfig:
    """Settings of public chance sampling.

    Attributes:
      name: Name for messages; configurations that differ only in it are equal.
      alpha, beta: Discount exponents of positive and negative regrets, as in
        `regret_matching.Rule`; t is the number of boards drawn so far.
      gamma: Exponent of the averaging weights: board t has weight t^gamma.
    """

    name: str = dataclasses.field(compare=False)
    alpha: float = 1.5
    beta: float = 0.0
    gamma: float = 2.0

    def __post_init__(self) -> None:
        Rule(self.alpha, self.beta)  # Raises ValueError for invalid exponents.
        check_settings(self, {"gamma": "[0, inf)"})


PRESETS = {"pcs": PublicChanceConfig("pcs")}


class _BucketedBoard(NamedTuple):
    """A board and the h hands that are possible on it.

    Attributes:
      labels: Buckets of the hands in each round, int64 [h] each.
      members: Membership of hands in buckets in each round, float32 [h, B] each: 1 in
        the hand's bucket, otherwise 0.
      held, beats: Cards held by each hand, float32 [h, cards], and comparisons of
        hands, float32 [h, h]; both as in `BoardRules`.
    """

    labels: list[np.ndarray]
    members: list[np.ndarray]
    held: np.ndarray
    beats: np.ndarray


class PublicChanceSolver(TableSolver):
    """Solver that samples boards of a game whose hands are assigned to buckets.

    Attributes:
      source: Simulator of the game, with `BoardRules`.
      config: Settings of the algorithm.
      seed: Seed of the boards.
      iterations: Number of boards drawn.
    """

    def __init__(
        self, source: RulesSource, config: PublicChanceConfig, *, seed: int
    ) -> None:
        """Build the tree of bets.

        Args:
          source: Simulator whose rules implement `BoardRules`.
          config: Settings of the algorithm.
          seed: Seed of the boards.
        """
        self.source, self.config, self.seed = source, config, seed
        self._rules = typing.cast(BoardRules, source.rules)
        self._random = np.random.default_rng(seed)
        self.iterations = self.trajectories = 0
        self._tree = BetTree(self._rules)
        self._regret = np.zeros(self._tree.groups[-1].table.stop, np.float32)
        self._average = np.zeros_like(self._regret)
        # Reach and values at all nodes, allocated when the first board is drawn.
        self._numbers: np.ndarray | None = None

    def _iterate(self) -> None:
        """Draw a board, then update player 0 and after that player 1 on it."""
        self.iterations += 1
        self.trajectories = self.iterations
        self._average *= np.float32((1 - 1 / self.iterations) ** self.config.gamma)
        board, discounts = self._board(), self._discounts()
        for player in range(2):
            self._update(player, board)
            for group in self._tree.groups:
                if group.player == player:
                    regret = self._regret[group.table]
                    regret *= np.where(regret > 0, *discounts)

    def _board(self) -> _BucketedBoard:
        """Draw a board and return the hands that are possible on it."""
        rules = self._rules
        cards = rules.draw_board(self._random)
        _, left = rules.buckets(cards, len(rules.sizes) - 1)
        labels = [
            rules.buckets(cards[:size], number)[0][left]
            for number, size in enumerate(rules.sizes)
        ]
        members = [
            (label[:, None] == np.arange(count)).astype(np.float32)
            for label, count in zip(labels, rules.counts, strict=True)
        ]
        beats = rules.beats(cards)[np.ix_(left, left)]
        return _BucketedBoard(labels, members, rules.held[left], beats)

    def _discounts(self) -> tuple[np.float32, np.float32]:
        """Return the factors of positive and negative regrets after this board."""
        done = np.float64(self.iterations)
        with np.errstate(over="ignore"):  # a large negative exponent: the factor is 0
            positive = np.float32(discount(self.config.alpha, done))
            negative = np.float32(discount(self.config.beta, done))
        return positive, negative

    def _strategy(self, group: Group) -> np.ndarray:
        """Return a group's current strategy by regret matching, float32 [A, n, B]."""
        positive = self._regret[group.table].reshape(group.shape).clip(min=0)
        total = positive.sum(axis=0)
        uniform = np.float32(1 / group.shape[0])
        return np.divide(
            positive, total, out=np.full_like(positive, uniform), where=total > 0
        )

    def _update(self, player: int, board: _BucketedBoard) -> None:
        """Add a player's regrets on a board, and its reach to the average."""
        tree, hands = self._tree, len(board.held)
        if self._numbers is None:
            self._numbers = np.empty((4, len(tree.place), hands), np.float32)
        reach, value, spare = self._numbers[:2], *self._numbers[2:]
        reach[:, 0] = 1
        strategies = [self._strategy(group) for group in tree.groups]
        for group, strategy in zip(tree.groups, strategies, strict=True):
            before = reach[group.player, tree.own[group.player, group.nodes]]
            after = reach[group.player, group.below].reshape(-1, *before.shape)
            strategy.take(board.labels[group.round], axis=2, out=after, mode="clip")
            after *= before
        tree.end_values(player, reach[1 - player], board.held, board.beats, value)
        for group, strategy in zip(tree.groups[::-1], strategies[::-1], strict=True):
            actions = value[group.below].reshape(-1, len(group.nodes), hands)
            at = tree.place[group.nodes]
            if group.player != player:
                value[at] = actions.sum(axis=0)
                continue
            played = spare[: len(actions) * len(at)].reshape(actions.shape)
            strategy.take(board.labels[group.round], axis=2, out=played, mode="clip")
            value[at] = np.einsum("anh,anh->nh", played, actions)
            gains = actions @ board.members[group.round]
            gains -= (strategy * gains).sum(axis=0)
            self._regret[group.table] += gains.ravel()
            reach_below = reach[player, tree.own[player, group.nodes]]
            reach_below = reach_below @ board.members[group.round]
            self._average[group.table] += (reach_below * strategy).ravel()

    def progress_counts(self) -> dict[str, Any]:
        """Return the number of boards drawn; see `IterativeSolver`."""
        return {"boards": f"{self.iterations:,}"}

    @property
    def num_bytes(self) -> int:
        """Approximate memory in use: regrets, averages, reach and values of hands."""
        hands, counts = len(self._rules.held), self._rules.counts
        numbers = 4 * len(self._tree.place) * hands + hands * sum(counts)
        return 4 * (4 * len(self._regret) + numbers)

    def facts(self) -> dict[str, Any]:
        """Return fields of `TableFacts`; all infosets exist from the start."""
        bytes_of = self._regret.nbytes + self._average.nbytes
        return {"bytes": bytes_of, "limit": bytes_of, "full": False}

    def average(self) -> TableStrategy:
        """Return the average strategies of both players for all bets and buckets."""
        tables: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for group in self._tree.groups:
            width, nodes, buckets = group.shape
            rows = np.stack(
                [np.repeat(group.nodes, buckets), np.tile(np.arange(buckets), nodes)], 1
            )
            sums = self._average[group.table].reshape(width, -1)
            total = sums.sum(axis=0)
            is_visited = total > 0
            shares = np.where(
                is_visited, sums / np.where(is_visited, total, 1), 1 / width
            )
            counts = np.full(len(rows), width, np.uint16)
            shares = shares.T.ravel().astype(np.float32)
            tables.append((keys.of_rows(rows, group.player), counts, shares))
        key, count, probability = map(np.concatenate, zip(*tables, strict=True))
        visits = np.full(len(count), self.iterations, np.uint32)
        return TableStrategy(key, count, visits, probability)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint; see `IterativeSolver.arrays`."""
        return {
            "regret": self._regret,
            "average": self._average,
            "random": self.random_array(),
            "seconds": np.array(self.seconds),
            "iterations": np.array(self.iterations),
        }

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float = 0.0) -> None:
        """Restore the state of a checkpoint; see `IterativeSolver.restore`.

        The time comes from the arrays, so the argument `seconds` is not used.
        """
        check_arrays(arrays, self.arrays(), resized=("random",))
        check_numbers(arrays, {"regret": -np.inf, "average": 0, "seconds": 0})
        self._regret[:], self._average[:] = arrays["regret"], arrays["average"]
        self.restore_random(arrays["random"])
        self.seconds = float(arrays["seconds"])
        self.iterations = self.trajectories = int(arrays["iterations"])
