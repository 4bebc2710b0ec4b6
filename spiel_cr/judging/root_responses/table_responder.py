"""Best responses that are searched from the root, on a table of own infosets.

Beliefs of some games are too large to enumerate, so nothing is searched from inside a
match. Simulations begin at the root: chance and the fixed opponent are drawn, the
responder plays the best action that it knows, but for one of its decisions, where it
plays any. Where it knows too little it plays as the fixed strategy does in its seat.
Returns teach the actions from the random one on; those before it were not followed by
the responder's own play. What the response is worth is measured in matches afterwards.
"""

import time
from collections.abc import Callable

import numpy as np

from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.stepping.simulator import Positions, play
from spiel_cr.judging.root_responses.setting import Setting
from spiel_cr.solvers.mccfr.table.index import Index, distinct

# How much a sample moves a mean at least: what is played later changes.
_STEP = 0.01
# Visits of an infoset, per action, before the responder trusts what it has learned.
_TRUSTED = 10


class TableResponder:
    """Means of returns by infoset and action.

    Attributes:
      player: the responder.
      simulations: matches that taught it.
    """

    def __init__(
        self, setting: Setting, player: int, *, most_rows: int = 1 << 21, seed: int = 0
    ) -> None:
        """An empty table.

        Args:
          setting: of the game and the opponent.
          player: the responder, 0 or 1.
          most_rows: of the table.
          seed: of the matches that teach it.
        """
        self.player, self.simulations = player, 0
        self._setting, self._source = setting, setting.source
        self._fixed = setting.opponent
        self._random = np.random.default_rng([seed, player])
        width = self._source.max_actions
        self._key = np.zeros((most_rows, 2), np.uint64)
        self._index = Index(self._key)
        self._mean = np.zeros((most_rows, width), np.float32)
        self._visits = np.zeros((most_rows, width), np.int32)
        # The most own decisions of a history so far.
        self._longest = 1

    @property
    def infosets(self) -> int:
        """How many the table has."""
        return self._index.rows

    def learn(
        self,
        seconds: float,
        *,
        batch: int = 1024,
        clock: Callable[[], float] = time.perf_counter,
        after: Callable[[int], None] = lambda matches: None,
    ) -> None:
        """Learns for a while.

        Args:
          seconds: of the clock.
          batch: matches at a time.
          clock: what the seconds are by.
          after: called after every batch with the matches so far.
        """
        begun = clock()
        while clock() - begun < seconds:
            self._play(batch, self._random, learns=True)
            self.simulations += batch
            after(self.simulations)

    def play(self, count: int, random: np.random.Generator) -> np.ndarray:
        """float64 [count], its returns in matches that teach it nothing.

        Args:
          count: of them.
          random: of all that is drawn.
        """
        return self._play(count, random, learns=False)

    def measure(self, matches: int, seed: int) -> tuple[float, float | None]:
        """Its mean return in matches that teach it nothing, and half of its interval.

        Args:
          matches: how many.
          seed: of all that is drawn in them.
        """
        returns = self.play(matches, np.random.default_rng([seed, 4]))
        return mean_and_half_width(returns, utility_bounds(self._source.game))

    def behaviour(self, fallback: np.ndarray) -> np.ndarray:
        """float64 [S], what it plays in a compiled game, by logical sequence.

        Args:
          fallback: float64 [S], what the opponent's strategy plays in this seat: it
            plays so where it knows too little.
        """
        assert self._setting.tree is not None
        decisions = self._setting.tree.infosets[self.player].decisions
        key = np.zeros((len(decisions), 2), np.uint64)
        key[:, 0], key[:, 1] = np.arange(len(decisions)), self.player
        best, trusted = self._best(self._index.find(key), decisions.num_actions)
        first = decisions.first_sequence
        chosen = fallback.copy()
        for infoset in np.flatnonzero(trusted).tolist():
            begin = int(first[infoset])
            chosen[begin : begin + int(decisions.num_actions[infoset])] = 0.0
            chosen[begin + int(best[infoset])] = 1.0
        return chosen

    def _play(
        self, count: int, random: np.random.Generator, *, learns: bool
    ) -> np.ndarray:
        """Plays histories in lockstep.

        Args:
          count: of them.
          random: of all that is drawn.
          learns: play one decision at random, and learn from what comes of it.

        Returns:
          float64 [count], the responder's returns.
        """
        decided = np.zeros(count, np.int64)  # decisions so far
        explores = random.integers(self._longest, size=count)
        # What is played before this decision is followed by a random action.
        since = np.zeros(count, np.int64)
        added = np.zeros(count, bool) if learns else None
        met = []

        def respond(
            positions: Positions, there: np.ndarray, games: np.ndarray
        ) -> np.ndarray:
            row = self._rows(positions, there, games, added)
            chosen = self._choose(row, positions, there, random)
            if learns:
                tries = explores[games] == decided[games]
                drawn = random.random(len(there)) * positions.num_actions[there]
                chosen = np.where(tries, drawn.astype(np.int64), chosen)
                since[games[tries]] = decided[games[tries]]
                met.append((games, row, chosen, decided[games]))
            decided[games] += 1
            return chosen

        def act(
            positions: Positions, live: np.ndarray, match: np.ndarray
        ) -> np.ndarray:
            action = np.zeros(len(live), np.int64)
            responds = positions.player[live] == self.player
            if not responds.all():
                action[~responds] = self._fixed.draw(positions, live[~responds], random)
            if responds.any():
                there, games = live[responds], match[responds]
                action[responds] = respond(positions, there, games)
            return action

        utility = play(self._source, count, random, act)
        returns = -utility if self.player else utility
        if learns:
            self._longest = max(self._longest, int(decided.max()))
            self._learn(met, since, returns)
        return returns

    def _rows(
        self,
        positions: Positions,
        there: np.ndarray,
        games: np.ndarray,
        added: np.ndarray | None,
    ) -> np.ndarray:
        """int64 [n], rows or -1; each history may add the first that is missing."""
        key = positions.key[there]
        row = self._index.find(key)
        if added is None:
            return row
        new = np.flatnonzero((row < 0) & ~added[games])
        if len(new):
            chosen, group = distinct(key[new])
            begin = self.infosets
            free = min(len(chosen), len(self._key) - begin)
            self._key[begin : begin + free] = key[new[chosen[:free]]]
            self._index.extend(begin + free)
            row[new] = np.where(group < free, begin + group, -1)
            added[games[new]] = True
        return row

    def _choose(
        self,
        row: np.ndarray,
        positions: Positions,
        there: np.ndarray,
        random: np.random.Generator,
    ) -> np.ndarray:
        """int64 [n], the best actions known; the fixed strategy's where too little is.

        Args:
          row: int64 [n], -1: there is none.
          positions: of the source.
          there: int64 [n], places of these decisions.
          random: of the fixed strategy.
        """
        chosen, trusted = self._best(row, positions.num_actions[there])
        unknown = np.flatnonzero(~trusted)
        if len(unknown):
            chosen[unknown] = self._fixed.draw(positions, there[unknown], random)
        return chosen

    def _best(
        self, row: np.ndarray, num_actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """int64 [n], the best actions known; bool [n], whether enough is known.

        Args:
          row: int64 [n], -1: there is none.
          num_actions: int [n], legal ones.
        """
        visits = np.where(row[:, None] >= 0, self._visits[row], 0)
        value = np.where(visits > 0, self._mean[row], -np.inf)
        trusted = visits.sum(axis=1) >= _TRUSTED * num_actions
        return np.argmax(value, axis=1), trusted

    def _learn(
        self,
        met: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]],
        since: np.ndarray,
        returns: np.ndarray,
    ) -> None:
        """Moves means towards what was returned.

        Args:
          met: histories, rows, actions, and how many own decisions came before.
          since: int64 [count], from which own decision on nothing is random.
          returns: float64 [count].
        """
        if not met:
            return
        games, row, action, depth = (
            np.concatenate(part) for part in zip(*met, strict=True)
        )
        good = (row >= 0) & (depth >= since[games])
        games, row, action = games[good], row[good], action[good]
        width = self._mean.shape[1]
        entry, group, count = np.unique(
            row * width + action, return_inverse=True, return_counts=True
        )
        mean = np.bincount(group, returns[games]) / count
        old, visits = self._mean.reshape(-1), self._visits.reshape(-1)
        visits[entry] += count.astype(np.int32)
        share = np.maximum(count / visits[entry], 1 - (1 - _STEP) ** count)
        old[entry] += share * (mean - old[entry])
