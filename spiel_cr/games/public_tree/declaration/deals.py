"""Enumeration of all deals of a declared game, a few hundred thousand at a time.

Deals are played along one line of bets. In each round, private states are numbered and
the entries of payoff matrices are summed. Single deals are not stored.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.arrays import places_in
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.histories import CHANCE
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.public_tree.declaration.line import BettingLine
from spiel_cr.games.public_tree.declaration.numbers import Numbers
from spiel_cr.games.public_tree.declaration.public_tree import PublicTree
from spiel_cr.games.public_tree.declaration.stakes import LeafPayoffs
from spiel_cr.games.public_tree.declaration.symmetry import MergedDealsCheck, RoundDeals
from spiel_cr.games.public_tree.payoff_matrices import SparseMatrix, sum_entries
from spiel_cr.games.sequence_form.decisions import Payoffs

# Number of deals at once, and of pairs of private states before they are summed.
_CHUNK = 1 << 17
_WAITING = 1 << 20
# Rounding errors of cancelling wins and losses, at most, relative to the probability.
_ROUNDING = 1e-13


class _Sums:
    """Sums of several values by pairs of numbers."""

    def __init__(self, count: int) -> None:
        self._pairs = np.zeros(0, np.int64)
        self._values = np.zeros((count, 0))
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._size = 0

    def add(self, first: np.ndarray, second: np.ndarray, values: np.ndarray) -> None:
        """Add values [count, n] at pairs of numbers [n] below 2^31."""
        part = _by_pair(first.astype(np.int64) << 31 | second, values)
        self._waiting.append(part)
        self._size += len(part[0])
        if self._size > _WAITING + len(self._pairs):
            self._settle()

    def _settle(self) -> None:
        parts = [(self._pairs, self._values), *self._waiting]
        self._pairs, self._values = _by_pair(
            np.concatenate([pairs for pairs, _ in parts]),
            np.concatenate([values for _, values in parts], axis=1),
        )
        self._waiting, self._size = [], 0

    def get(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the distinct pairs, and the sums [count, pairs]."""
        self._settle()
        return self._pairs >> 31, self._pairs & (1 << 31) - 1, self._values


def _by_pair(pairs: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(pairs)
    pairs = pairs[order]
    begins = np.ones(len(pairs), bool)
    np.not_equal(pairs[1:], pairs[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    if not len(starts):
        return pairs, values
    return pairs[starts], np.add.reduceat(values[:, order], starts, axis=1)


class _PartialDeals(NamedTuple):
    """Deals up to a certain chance node.

    Attributes:
      states: States on the line of bets.
      outcomes: Chance outcomes, int32 [n, c].
      probabilities: Probabilities of all outcomes of each deal together, float64 [n].
      above: Both players' private states in the round before, int64 [2, n].
      seen: Result of `MergedDealsCheck.see` in the round before, int64 [2, n].
    """

    states: np.ndarray
    outcomes: np.ndarray
    probabilities: np.ndarray
    above: np.ndarray
    seen: np.ndarray


class _Round:
    """Data of a round: numbers of private states, parents, first deals and sums."""

    def __init__(self, num_matrices: int) -> None:
        self.numbers = (Numbers(), Numbers())
        self.parents: list[list[np.ndarray]] = [[], []]
        self.examples: list[list[np.ndarray]] = [[], []]
        self.parent: list[np.ndarray] = [np.zeros(0, np.int64)] * 2
        self.sums = _Sums(num_matrices)
        self.total = 0.0


class Dealt(NamedTuple):
    """Private states and payoff matrices.

    Attributes:
      parents: Parents of private states; see `PublicTreeGame`.
      keys: Keys of private states in the game, for each player and round int64 [H, k].
      examples: A deal that leads to each private state, for each player and round int32
        [H, c].
      payoff_matrices: Payoff matrices in the order of the stakes.
    """

    parents: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    keys: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    examples: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    payoff_matrices: tuple[SparseMatrix, ...]


class Dealing:
    """Enumeration of all deals along a line of bets."""

    def __init__(
        self,
        tree: PublicTree,
        line: BettingLine,
        stakes: LeafPayoffs,
        *,
        num_deals: list[float],
        random: np.random.Generator,
        progress: Callable[[int], object],
    ) -> None:
        """Prepare the enumeration; `run` plays the deals.

        Args:
          tree: The public tree.
          line: Line of bets along which the deals are played.
          stakes: Stakes, with a representative leaf of each matrix.
          num_deals: Approximate number of deals that enter each round.
          random: Random generator; see `MergedDealsCheck`.
          progress: Function that is called with the number of deals played since.
        """
        self._checked, self._progress = tree.checked, progress
        self._num_deals, self._line, self._stakes = tree.num_deals, line, stakes
        rounds = tree.betting.round[stakes.leaf]
        self._payoff_matrices = [
            np.flatnonzero(rounds == r) for r in range(len(tree.num_deals))
        ]
        paths = [tree.betting.path(node) for node in line.nodes]
        self._after: dict[int, list[int]] = {}
        self._path: dict[int, list[int]] = {}
        for matrix, leaf in enumerate(stakes.leaf):
            path, start = tree.betting.path(int(leaf)), paths[rounds[matrix]]
            self._path[matrix] = path
            if path[: len(start)] == start:
                self._after[matrix] = path[len(start) :]
        self._rounds = [_Round(1 + len(some)) for some in self._payoff_matrices]
        self._symmetry = MergedDealsCheck(
            *(tree, line),
            [len(some) for some in self._payoff_matrices],
            num_deals,
            random,
        )
        self._count = 0

    def run(self) -> Dealt:
        """Play all deals.

        Raises:
          InvalidGameError: If the declaration contradicts the game: a private state has
            imperfect recall, or see `MergedDealsCheck.compare_sums`.
        """
        states, none = self._checked.rules.new_initial_states(), np.zeros((2, 1), int)
        outcomes = np.zeros((1, 0), np.int32)
        self._go_on(0, _PartialDeals(states, outcomes, np.ones(1), none, none))
        self._symmetry.compare_sums()
        return self._finish()

    def _go_on(self, r: int, batch: _PartialDeals) -> None:
        """Continue some deals, depth first."""
        if batch.outcomes.shape[1] == self._num_deals[r]:
            above, seen = self._enter(r, batch)
            if r + 1 == len(self._rounds):
                return
            states = self._checked.play(batch.states, self._line.moves[r])
            batch = batch._replace(states=states, above=above, seen=seen)
            r += 1
        size, start, part = len(batch.probabilities), 0, 1
        chunk = _CHUNK * 16 // (16 + len(self._payoff_matrices[r]))
        while start < size:
            below = self._deal(batch, slice(start, start + part))
            start += part
            # The first part determined the number of outcomes.
            part = max(1, chunk * part // len(below.probabilities))
            self._go_on(r, below)

    def _deal(self, batch: _PartialDeals, some: slice) -> _PartialDeals:
        """Return all deals with one more outcome after some of the deals so far."""
        below, where, outcome, share = self._checked.outcomes(batch.states[some])
        return _PartialDeals(
            below,
            np.column_stack([batch.outcomes[some][where], outcome.astype(np.int32)]),
            batch.probabilities[some][where] * share,
            batch.above[:, some][:, where],
            batch.seen[:, some][:, where],
        )

    def _enter(self, r: int, batch: _PartialDeals) -> tuple[np.ndarray, np.ndarray]:
        """Number the private states as a round begins, and add to the payoff matrices.

        Returns:
          `above` and `seen` of the deals that follow, int64 [2, n].
        """
        entered = self._rounds[r]
        private_states = np.empty((2, len(batch.probabilities)), np.int64)
        for player in range(2):
            keys = self._checked.rows("private_state", batch.states, player)
            private_states[player], new = entered.numbers[player].of(keys)
            if len(new):
                entered.parent[player] = np.concatenate(
                    [entered.parent[player], batch.above[player][new]]
                )
                entered.examples[player].append(batch.outcomes[new])
            parent = entered.parent[player][private_states[player]]
            self._refines(r, player, batch, parent == batch.above[player])
        values = np.empty((1 + len(self._payoff_matrices[r]), len(batch.probabilities)))
        values[0] = batch.probabilities
        for number, matrix in enumerate(self._payoff_matrices[r], 1):
            values[number] = batch.probabilities * self._payoffs(int(matrix), batch)
        entered.sums.add(private_states[0], private_states[1], values)
        self._count += len(batch.probabilities)
        self._progress(self._count)
        deals = RoundDeals(*batch[:3], private_states, values[1:], batch.seen)
        return private_states, self._symmetry.see(r, deals)

    def _refines(
        self, r: int, player: int, batch: _PartialDeals, same: np.ndarray
    ) -> None:
        if not same.all():
            deal = batch.outcomes[int(np.argmin(same))].tolist()
            raise InvalidGameError(
                f"{self._checked.game}: after deals {deal}, the private state of "
                f"player {player} in round {r} follows several private states of round "
                f"{r - 1}, which is imperfect recall; let `private_state` return "
                f"everything that the player was dealt, in order"
            )

    def _payoffs(self, matrix: int, batch: _PartialDeals) -> np.ndarray:
        """Return player 0's utility in units of the matrix, float64 [n]."""
        if matrix in self._after:
            states = self._checked.play(batch.states, self._after[matrix])
        else:
            states = play(self._checked.rules, batch.outcomes, self._path[matrix])
        utility = self._checked.utility(states)
        return utility / self._stakes.unit[matrix]

    def _finish(self) -> Dealt:
        """Sort private states, so that those of the same parent are consecutive."""
        by_player: tuple[list, list] = ([], [])
        payoff_matrices: dict[int, SparseMatrix] = {}
        place = [np.zeros(1, np.int32)] * 2
        for r, entered in enumerate(self._rounds):
            shape = (len(entered.numbers[0]), len(entered.numbers[1]))
            for player in range(2):
                rows = entered.numbers[player].rows
                parent = place[player][entered.parent[player]]
                order = np.lexsort([*rows.T[::-1], parent])
                place[player] = places_in(order, len(order))
                deals = np.concatenate(entered.examples[player])
                by_player[player].append((parent[order], rows[order], deals[order]))
            first, second, values = entered.sums.get()
            values[1:][np.abs(values[1:]) <= _ROUNDING * values[0]] = 0
            for matrix, value in zip(self._payoff_matrices[r], values[1:], strict=True):
                entries = sum_entries(place[0][first], place[1][second], value, shape)
                payoff_matrices[int(matrix)] = SparseMatrix(r, shape, Payoffs(*entries))
        by_field = (zip(*rounds, strict=True) for rounds in by_player)
        parents, keys, examples = zip(*by_field, strict=True)
        kept = tuple(payoff_matrices[number] for number in sorted(payoff_matrices))
        return Dealt(parents, keys, examples, kept)


def play(
    rules: BatchedRules, outcomes: np.ndarray, bets: list[int] | np.ndarray
) -> np.ndarray:
    """Return the states after deals and bets.

    Args:
      rules: Batched rules.
      outcomes: Outcomes of all chance nodes, integers [n, c].
      bets: Actions of the players, the same for all rows, or integers [n, m]. Deals
        occur at the same places in all rows.

    Returns:
      The n states after all of them.
    """
    count = len(outcomes)
    states = np.repeat(rules.new_initial_states(), count, axis=0)
    num_bets, every = 0, np.asarray(bets, np.int64)
    columns = np.broadcast_to(every, (count, every.shape[-1])).T
    for actions in [*columns, None]:
        while (
            num_bets < outcomes.shape[1]
            and rules.current_player(states[:1])[0] == CHANCE
        ):
            states = rules.child(states, outcomes[:, num_bets].astype(np.int64))
            num_bets += 1
        if actions is not None:
            states = rules.child(states, actions)
    return states


def state_after(
    game: pyspiel.Game, outcomes: np.ndarray, bets: Iterable[int]
) -> pyspiel.State:
    """Return OpenSpiel's state after a deal and bets.

    Args:
      game: The game.
      outcomes: Outcomes of the chance nodes up to the state, int [c].
      bets: Actions of the players up to the state.
    """
    state, left, moves = game.new_initial_state(), outcomes.tolist(), list(bets)
    while left or moves:
        state.apply_action(int((left if state.is_chance_node() else moves).pop(0)))
    return state
