"""Best responses that are learned from the root, on a table of own infosets.

Beliefs of some games are too large to enumerate, so nothing is searched from inside a
match. Matches begin at the root: chance and the fixed opponent are drawn, the responder
plays the best action that it knows, and tries others at one of its decisions, at some,
or at all of them. Where it knows too little it plays by habit: what was best on average
after as many own decisions with as many legal actions, or as the setting's own player
does if that was better.
An action is taught what was returned, if the best known actions followed; else what the
infoset is worth at which the next other one was tried (Watkins 1989). So also those are
found that pay together only.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from spiel_cr.evaluation.responses.table_response import (
    NUM_HABITS,
    Setting,
    TableResponse,
    Unplanned,
    habit_of,
)
from spiel_cr.games.simulation.simulator import Positions
from spiel_cr.solvers.mccfr.table.index import Index, distinct

# How much a sample moves a mean at least: what is played later changes.
_STEP = 0.01
# Visits of an infoset, per action, before the responder trusts what it has learned.
_TRUSTED = 10
# Visits of an arm before a habit may be to take it.
_HABITUAL = 50
# Matches that repeat actions, and that do not, from which it is decided what is better;
# these must be so by so many standard errors.
_COMPARED, _CLEARLY = 2048, 3.0
# Matches of a unit of learning, and how many units are played side by side.
_UNIT, _WIDE = 16, 64
# Of the table, and of means and visits: with thousands of actions it has fewer rows.
_MOST_ROWS, _MOST_BYTES = 1 << 21, 1 << 32
# What is kept of a table, besides its units.
_ARRAYS, _NUMBERS = ("key", "count", "mean", "visits"), ("batches", "longest")
_HABITS = ("usual", "times", "compared")
# Shares of the matches in which others are tried at one decision, or at each of them
# with some probability.
_TRIES = ((0.5, 0.0), (0.3, 0.3), (0.2, 1.0))


class _Met(NamedTuple):
    """Decisions of the responder in matches; int64 [n] each.

    Attributes:
      depth: own decisions before.
      games: which matches.
      row: of the table; -1: none.
      action: that was taken.
      tried: bool, that this was to try it.
      trusted: bool, the row was known well enough.
      habit: see `response.habit_of`.
      arm: of the habit: the action, or the last one, as the setting's own player does.
    """

    depth: np.ndarray
    games: np.ndarray
    row: np.ndarray
    action: np.ndarray
    tried: np.ndarray
    trusted: np.ndarray
    habit: np.ndarray
    arm: np.ndarray


class TableResponder:
    """Means of returns by infoset and action. A unit of learning is 16 matches.

    Attributes:
      player: the responder.
      setting: in which it learns.
      finished: never.
      units: of learning so far.
    """

    finished = False

    def __init__(self, setting: Setting, player: int, *, seed: int = 0) -> None:
        """An empty table.

        Args:
          setting: of the game and the opponent.
          player: the responder, 0 or 1.
          seed: of the matches that teach it.
        """
        self.player, self.setting = player, setting
        self._seed, self._batches, self.units = seed, 0, 0
        width = setting.source.max_actions
        rows = min(_MOST_ROWS, _MOST_BYTES // (8 * width))
        self._key = np.zeros((rows, 2), np.uint64)
        self._index = Index(self._key)
        self._count = np.zeros(rows, np.int32)
        self._mean = np.zeros((rows, width), np.float32)
        self._visits = np.zeros((rows, width), np.int32)
        # The same of habits; the last arm is to do as the setting's own player does.
        self._usual = np.zeros((NUM_HABITS, width + 1), np.float32)
        self._times = np.zeros((NUM_HABITS, width + 1), np.int32)
        # Of matches that repeat moves and others: number, sums of returns and squares.
        self._compared = np.zeros((2, 3))
        # The most own decisions of a history so far.
        self._longest = 1

    def learn(self, units: int, stop: Callable[[], bool] = lambda: False) -> int:
        """Plays so many units of matches.

        Args:
          units: how many.
          stop: asked after each batch whether to stop.

        Returns:
          How many they were.
        """
        done = 0
        most = max(1, self.setting.side_by_side(_UNIT * _WIDE) // _UNIT)
        while done < units and not (done and stop()):
            wide = min(most, units - done)
            self._batches += 1
            stream = [self._seed, self.player, self._batches]
            self._teach(_UNIT * wide, np.random.default_rng(stream))
            done += wide
        self.units += done
        return done

    def share(self) -> float:
        """How much of all work is done; nobody knows."""
        return 0.0

    def state(self) -> dict[str, np.ndarray]:
        """All that it has learned, for a file."""
        rows = self._index.rows
        arrays = {name: getattr(self, f"_{name}")[:rows] for name in _ARRAYS}
        numbers = {name: np.array(getattr(self, f"_{name}")) for name in _NUMBERS}
        habits = {name: getattr(self, f"_{name}") for name in _HABITS}
        return {**arrays, **numbers, **habits, "units": np.array(self.units)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from a `state` of the same setting."""
        rows = len(state["key"])
        for name in _ARRAYS:
            getattr(self, f"_{name}")[:rows] = state[name]
        for name in _NUMBERS:
            setattr(self, f"_{name}", int(state[name]))
        for name in _HABITS:
            setattr(self, f"_{name}", state[name].copy())
        self.units = int(state["units"])
        self._index.extend(rows)

    def response(self) -> TableResponse:
        """What it would play now."""
        rows = self._index.rows
        count = self._count[:rows].copy()
        best, trusted = self._best(np.arange(rows), count)
        action, nan = np.where(trusted, best, -1), np.full(rows, np.nan)
        key, habits = self._key[:rows].copy(), self._habits()
        return TableResponse(
            self.player, key, count, action, nan, nan, habits, varied=self._varies()
        )

    def _teach(self, count: int, random: np.random.Generator) -> None:
        """Plays histories in lockstep, and learns from what comes of them."""
        decided = np.zeros(count, np.int64)  # decisions so far
        shares = np.array([share for share, _ in _TRIES])
        kind = random.choice(len(_TRIES), count, p=shares)
        rate = np.array([rate for _, rate in _TRIES])[kind]
        once = np.where(kind == 0, random.integers(self._longest, size=count), -1)
        added, habits = np.zeros(count, bool), self._habits()
        compares = self._compared[:, 0].min() < _COMPARED
        half = random.random(count) < 0.5
        varied = half if compares else np.full(count, self._varies())
        unplanned = Unplanned(self.setting, varied)
        met: list[_Met] = []

        def respond(
            positions: Positions, there: np.ndarray, games: np.ndarray
        ) -> np.ndarray:
            row = self._rows(positions, there, games, added)
            number = positions.num_actions[there]
            best, trusted = self._best(row, number)
            habit, last = habit_of(decided[games], number), self._usual.shape[1] - 1
            tries = (once[games] == decided[games]) | (
                random.random(len(there)) < rate[games]
            )
            # Where nothing is known one more is tried: the own player's.
            arm = (random.random(len(there)) * (number + ~trusted)).astype(np.int64)
            arm = np.where(arm == number, last, arm)
            usual = np.where(trusted, best, np.minimum(habits[habit], number - 1))
            arm = np.where(tries, arm, np.where(usual < 0, last, usual))
            chosen = np.where(arm == last, -1, arm)
            unplanned.fill(positions, there, games, chosen, random)
            depth = decided[games]
            met.append(_Met(depth, games, row, chosen, tries, trusted, habit, arm))
            decided[games] += 1
            return chosen

        returns = self.setting.play(self.player, count, random, respond)
        self._longest = max(self._longest, int(decided.max()))
        for side in range(2) if compares else ():
            some = returns[varied == side]
            self._compared[side] += len(some), some.sum(), some @ some
        if compares and not unplanned.again:
            # Nothing can be repeated, as where cards are played: nothing to compare.
            self._compared[:] = _COMPARED, 0, 0
        self._learn(met, returns)

    def _rows(
        self,
        positions: Positions,
        there: np.ndarray,
        games: np.ndarray,
        added: np.ndarray,
    ) -> np.ndarray:
        """int64 [n], rows or -1; each history may add the first that is missing."""
        key = positions.key[there]
        row = self._index.find(key)
        new = np.flatnonzero((row < 0) & ~added[games])
        if len(new):
            chosen, group = distinct(key[new])
            begin = self._index.rows
            free = min(len(chosen), len(self._key) - begin)
            first = new[chosen[:free]]
            self._key[begin : begin + free] = key[first]
            self._count[begin : begin + free] = positions.num_actions[there[first]]
            self._index.extend(begin + free)
            row[new] = np.where(group < free, begin + group, -1)
            added[games[new]] = True
        return row

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

    def _habits(self) -> np.ndarray:
        """int64 [NUM_HABITS], the best arms; -1: the own player's, or too little."""
        if self._varies():
            # The same action in every match repeats what others have done in it.
            return np.full(NUM_HABITS, -1)
        value = np.where(self._times >= _HABITUAL, self._usual, -np.inf)
        best, last = value.argmax(axis=1), value.shape[1] - 1
        own = (best == last) | (value[:, last] == -np.inf)
        return np.where(own, -1, best)

    def _varies(self) -> bool:
        """Whether what wins more is not to repeat moves."""
        number, total, squares = self._compared.T
        if number.min() < _HABITUAL:
            return False
        mean = total / number
        error = math.sqrt(((squares / number - mean**2) / number).sum())
        return bool(mean[1] > mean[0] + _CLEARLY * error)

    def _learn(self, met: list[_Met], returns: np.ndarray) -> None:
        """Moves means towards what followed, the last decisions first.

        Args:
          met: decisions.
          returns: float64 [count], the responder's; changed.
        """
        if not met:
            return
        whole = _Met(*(np.concatenate(part) for part in zip(*met, strict=True)))
        for now in range(int(whole.depth.max()), -1, -1):
            at = np.flatnonzero(whole.depth == now)
            here = _Met(*(part[at] for part in whole))
            known, rows = here.row >= 0, here.row
            for means, visits, place, arm, some in (
                (self._mean, self._visits, rows, here.action, known),
                (self._usual, self._times, here.habit, here.arm, ~here.trusted),
            ):
                _move(means, visits, place[some], arm[some], returns[here.games[some]])
            # What came after the best one would have been worth this before it.
            off = np.flatnonzero(here.tried)
            means, visits = self._mean[rows[off]], self._visits[rows[off]]
            best = np.where(visits > 0, means, -np.inf).max(axis=1)
            usual, times = self._usual[here.habit[off]], self._times[here.habit[off]]
            habit = np.where(times >= _HABITUAL, usual, -np.inf).max(axis=1)
            worth = np.where(here.trusted[off], best, habit)
            games = here.games[off]
            returns[games] = np.where(worth > -np.inf, worth, returns[games])


def _move(
    means: np.ndarray,
    visits: np.ndarray,
    row: np.ndarray,
    action: np.ndarray,
    returns: np.ndarray,
) -> None:
    """Moves means towards returns.

    Args:
      means, visits: [R, A], written into.
      row, action: int64 [n].
      returns: float64 [n].
    """
    entry, group, count = np.unique(
        row * means.shape[1] + action, return_inverse=True, return_counts=True
    )
    old, times = means.reshape(-1), visits.reshape(-1)
    mean = np.bincount(group, returns, len(count)) / count
    times[entry] += count.astype(np.int32)
    share = np.maximum(count / times[entry], 1 - (1 - _STEP) ** count)
    old[entry] += share * (mean - old[entry])
