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
from typing import NamedTuple, Protocol

import numpy as np

from spiel_cr.compilation.tree import TERMINAL
from spiel_cr.eval.common.statistics import mean_and_half_width
from spiel_cr.uncompiled.index import Index, distinct
from spiel_cr.uncompiled.source import Positions, Source
from spiel_cr.uncompiled.strategy import TableStrategy

# How much a sample moves a mean at least: what is played later changes.
_STEP = 0.01
# Visits of an infoset, per action, before the responder trusts what it has learned.
_TRUSTED = 10


class Opponent(Protocol):
    """Draws actions of a fixed strategy."""

    def draw(
        self, positions: Positions, places: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """int64 [m], an action each, counted among the legal ones.

        Args:
          positions: of the source.
          places: int64 [m], indices of decisions, of one player.
          random: advanced.
        """


class Fixed:
    """Draws actions of a fixed strategy by keys; uniform where it has no row."""

    def __init__(self, strategy: TableStrategy) -> None:
        self._strategy = strategy
        count = strategy.count.astype(np.int64)
        self._first = np.cumsum(count) - count

    def draw(
        self, positions: Positions, places: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """See `Opponent`."""
        key, num_actions = positions.key[places], positions.num_actions[places]
        row = self._strategy.find(key)
        actions = np.arange(num_actions.max())
        legal = actions < num_actions[:, None]
        odds = legal / num_actions[:, None]
        met = np.flatnonzero(row >= 0)
        place = self._first[row[met]][:, None] + actions
        given = self._strategy.probability.take(place, mode="clip")
        odds[met] = np.where(legal[met], given, 0)
        total = np.cumsum(odds, axis=1)
        point = random.random(len(key)) * (1 - 2.0**-40) * total[:, -1]
        chosen: np.ndarray = np.count_nonzero(total <= point[:, None], axis=1)
        return chosen


class Response(NamedTuple):
    """What a response is worth.

    Attributes:
      mean: return of the responder, in matches that taught it nothing.
      half_width: of its 95 % interval.
      simulations: that taught it.
      infosets: of its table.
    """

    mean: float
    half_width: float | None
    simulations: int
    infosets: int


class Responder:
    """Means of returns by infoset and action."""

    def __init__(
        self, source: Source, opponent: Opponent, player: int, *, most_rows: int
    ) -> None:
        """An empty table.

        Args:
          source: of histories.
          opponent: a fixed strategy, of both seats.
          player: the responder.
          most_rows: of the table.
        """
        self._source, self._player = source, player
        self._fixed = opponent
        width = source.max_actions
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

    def play(
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
        positions = self._source.start(count, random)
        which = np.arange(count)
        own = np.zeros(count, np.int64)  # decisions so far
        explores = random.integers(self._longest, size=count)
        # What is played before this decision is followed by a random action.
        since = np.zeros(count, np.int64)
        added = np.zeros(count, bool)
        returns = np.zeros(count)
        met = []
        while len(which):
            over = positions.player == TERMINAL
            returns[which[over]] = positions.utility[over]
            live = np.flatnonzero(~over)
            if not len(live):
                break
            action = np.zeros(len(live), np.int64)
            mine = positions.player[live] == self._player
            if not mine.all():
                there = live[~mine]
                action[~mine] = self._fixed.draw(positions, there, random)
            if mine.any():
                there = live[mine]
                games = which[there]
                row = self._rows(positions, there, games, added if learns else None)
                chosen = self._choose(row, positions, there, random)
                if learns:
                    any_ = explores[games] == own[games]
                    drawn = random.random(len(there)) * positions.num_actions[there]
                    chosen = np.where(any_, drawn.astype(np.int64), chosen)
                    since[games[any_]] = own[games[any_]]
                    met.append((games, row, chosen, own[games].copy()))
                action[mine] = chosen
                own[games] += 1
            positions = self._source.step(positions, live, action, random)
            which = which[live]
        if self._player:
            returns = -returns
        if learns:
            self._longest = max(self._longest, int(own.max()))
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
        visits = np.where(row[:, None] >= 0, self._visits[row], 0)
        value = np.where(visits > 0, self._mean[row], -np.inf)
        trusted = visits.sum(axis=1) >= _TRUSTED * positions.num_actions[there]
        chosen = np.argmax(value, axis=1)
        unknown = np.flatnonzero(~trusted)
        if len(unknown):
            chosen[unknown] = self._fixed.draw(positions, there[unknown], random)
        return chosen

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


def respond(
    source: Source,
    opponent: Opponent,
    player: int,
    *,
    seconds: float,
    matches: int,
    seed: int,
    most_rows: int = 1 << 21,
    batch: int = 1024,
    clock: Callable[[], float] = time.perf_counter,
) -> Response:
    """Learns a response for a while, then plays matches with what it has learned.

    Args:
      source: of histories.
      strategy: of the opponent.
      player: the responder.
      seconds: to learn.
      matches: to measure it by.
      seed: of all that is drawn.
      most_rows: of the responder's table.
      batch: simulations at a time.
      clock: what `seconds` are by.
    """
    random = np.random.default_rng(seed)
    responder = Responder(source, opponent, player, most_rows=most_rows)
    begun, simulations = clock(), 0
    while clock() - begun < seconds:
        responder.play(batch, random, learns=True)
        simulations += batch
    returns = responder.play(matches, random, learns=False)
    mean, half_width = mean_and_half_width(returns)
    return Response(mean, half_width, simulations, responder.infosets)
