"""Best responses that are learned from the root, on a table of the player's infosets.

Beliefs of some games are too large to enumerate, so no search starts inside a match.
All matches begin at the root. Chance and the fixed opponent are sampled. The responder
plays the best action that it has learned, and explores others at one of its decisions,
at some, or at all of them. At infosets with too few visits it plays by habit: the best
action on average after as many decisions with as many legal actions, or the action of
the setting's default player if that was better.
The target of an action is the return if the best learned actions followed; otherwise it
is the value of the infoset at which the next action was explored (Watkins 1989). The
method therefore also finds actions that are only good together.
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

# Smallest step size of a mean, because later play changes.
_STEP = 0.01
# Number of visits of an infoset, per action, before its learned action is played.
_TRUSTED = 10
# Number of visits of an arm before it can be a habit.
_HABITUAL = 50
# Number of matches with and without repeated actions before they are compared, and the
# number of standard errors by which the latter must be better.
_MOST_COMPARISONS, _CLEARLY = 2048, 3.0
# Number of matches of a unit of learning, and of units that are played at once.
_UNIT, _WIDE = 16, 64
# Largest table, and largest memory of means and visits, which limits the rows, too.
_MOST_ROWS, _MOST_BYTES = 1 << 21, 1 << 32
# Stored attributes of a table, in addition to its units.
_ARRAYS, _NUMBERS = ("key", "count", "mean", "visits"), ("batches", "longest")
_HABITS = ("usual", "times", "return_sums")
# Shares of matches, and the probability of exploration at each decision; the first kind
# of match explores at one decision.
_TRIES = ((0.5, 0.0), (0.3, 0.3), (0.2, 1.0))


class _ResponderDecisions(NamedTuple):
    """Decisions of the responder in matches; int64 [n] each.

    Attributes:
      depth: Number of the player's earlier decisions.
      games: Number of the match.
      row: Row of the table; -1 for no row.
      action: The played action.
      tried: Whether the action was explored, bool.
      trusted: Whether the row has enough visits, bool.
      habit: Number of the habit, see `table_response.habit_of`.
      arm: Arm of the habit: the action, or the last arm for the setting's default
        player.
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
      player: The responder.
      setting: The setting in which it learns.
      finished: Always False, because learning has no end.
      units: Number of units of learning so far.
    """

    finished = False

    def __init__(self, setting: Setting, player: int, *, seed: int = 0) -> None:
        """Start with an empty table.

        Args:
          setting: The setting of the game and the opponent.
          player: The responder, 0 or 1.
          seed: Seed of the matches.
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
        # Means and visits of habits; the last arm is the setting's default player.
        self._usual = np.zeros((NUM_HABITS, width + 1), np.float32)
        self._times = np.zeros((NUM_HABITS, width + 1), np.int32)
        # Number, sum of returns and of squares of matches with and without repetitions.
        self._return_sums = np.zeros((2, 3))
        # Largest number of the player's decisions in a match so far.
        self._longest = 1

    def learn(self, units: int, stop: Callable[[], bool] = lambda: False) -> int:
        """Learn from units of matches.

        Args:
          units: Largest number of units.
          stop: Function that is called after each batch, and returns whether to stop.

        Returns:
          The number of units.
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
        """Return the share of all work that is done, which is not known: 0."""
        return 0.0

    def state(self) -> dict[str, np.ndarray]:
        """Return all that was learned, for a file."""
        rows = self._index.rows
        arrays = {name: getattr(self, f"_{name}")[:rows] for name in _ARRAYS}
        numbers = {name: np.array(getattr(self, f"_{name}")) for name in _NUMBERS}
        habits = {name: getattr(self, f"_{name}") for name in _HABITS}
        return {**arrays, **numbers, **habits, "units": np.array(self.units)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore a `state` of the same setting."""
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
        """Return the current response."""
        rows = self._index.rows
        count = self._count[:rows].copy()
        best, trusted = self._best(np.arange(rows), count)
        action, nan = np.where(trusted, best, -1), np.full(rows, np.nan)
        key, habits = self._key[:rows].copy(), self._habits()
        return TableResponse(
            self.player, key, count, action, nan, nan, habits, varied=self._varies()
        )

    def _teach(self, count: int, random: np.random.Generator) -> None:
        """Play matches at once, and learn from their returns."""
        decided = np.zeros(count, np.int64)  # decisions so far
        shares = np.array([share for share, _ in _TRIES])
        kind = random.choice(len(_TRIES), count, p=shares)
        rate = np.array([rate for _, rate in _TRIES])[kind]
        once = np.where(kind == 0, random.integers(self._longest, size=count), -1)
        added, habits = np.zeros(count, bool), self._habits()
        compares = self._return_sums[:, 0].min() < _MOST_COMPARISONS
        half = random.random(count) < 0.5
        varied = half if compares else np.full(count, self._varies())
        unplanned = Unplanned(self.setting, varied)
        steps: list[_ResponderDecisions] = []

        def respond(
            positions: Positions, acting: np.ndarray, games: np.ndarray
        ) -> np.ndarray:
            row = self._rows(positions, acting, games, added)
            number = positions.num_actions[acting]
            best, trusted = self._best(row, number)
            habit, last = habit_of(decided[games], number), self._usual.shape[1] - 1
            tries = (once[games] == decided[games]) | (
                random.random(len(acting)) < rate[games]
            )
            # Without enough visits, exploration includes the setting's default player.
            arm = (random.random(len(acting)) * (number + ~trusted)).astype(np.int64)
            arm = np.where(arm == number, last, arm)
            usual = np.where(trusted, best, np.minimum(habits[habit], number - 1))
            arm = np.where(tries, arm, np.where(usual < 0, last, usual))
            chosen = np.where(arm == last, -1, arm)
            unplanned.fill(positions, acting, games, chosen, random)
            depth = decided[games]
            steps.append(
                _ResponderDecisions(
                    depth, games, row, chosen, tries, trusted, habit, arm
                )
            )
            decided[games] += 1
            return chosen

        returns = self.setting.play(self.player, count, random, respond)
        self._longest = max(self._longest, int(decided.max()))
        for side in range(2) if compares else ():
            some = returns[varied == side]
            self._return_sums[side] += len(some), some.sum(), some @ some
        if compares and not unplanned.again:
            # No action can be repeated, for example in card games.
            self._return_sums[:] = _MOST_COMPARISONS, 0, 0
        self._learn(steps, returns)

    def _rows(
        self,
        positions: Positions,
        acting: np.ndarray,
        games: np.ndarray,
        added: np.ndarray,
    ) -> np.ndarray:
        """Return rows or -1, int64 [n]; each match may add the first missing row."""
        key = positions.key[acting]
        row = self._index.find(key)
        new = np.flatnonzero((row < 0) & ~added[games])
        if len(new):
            chosen, group = distinct(key[new])
            begin = self._index.rows
            free = min(len(chosen), len(self._key) - begin)
            first = new[chosen[:free]]
            self._key[begin : begin + free] = key[first]
            self._count[begin : begin + free] = positions.num_actions[acting[first]]
            self._index.extend(begin + free)
            row[new] = np.where(group < free, begin + group, -1)
            added[games[new]] = True
        return row

    def _best(
        self, row: np.ndarray, num_actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return int64 [n], the best learned actions, and bool [n], their use.

        Args:
          row: Rows, int64 [n]; -1 for no row.
          num_actions: Numbers of legal actions, int [n].
        """
        visits = np.where(row[:, None] >= 0, self._visits[row], 0)
        value = np.where(visits > 0, self._mean[row], -np.inf)
        trusted = visits.sum(axis=1) >= _TRUSTED * num_actions
        return np.argmax(value, axis=1), trusted

    def _habits(self) -> np.ndarray:
        """Return the best arms, int64 [NUM_HABITS]; -1 for the setting's own player."""
        if self._varies():
            # A fixed habit would repeat earlier actions of the match.
            return np.full(NUM_HABITS, -1)
        value = np.where(self._times >= _HABITUAL, self._usual, -np.inf)
        best, last = value.argmax(axis=1), value.shape[1] - 1
        own = (best == last) | (value[:, last] == -np.inf)
        return np.where(own, -1, best)

    def _varies(self) -> bool:
        """Return whether matches without repeated actions win more."""
        number, total, squares = self._return_sums.T
        if number.min() < _HABITUAL:
            return False
        mean = total / number
        error = math.sqrt(((squares / number - mean**2) / number).sum())
        return bool(mean[1] > mean[0] + _CLEARLY * error)

    def _learn(self, steps: list[_ResponderDecisions], returns: np.ndarray) -> None:
        """Move means towards the returns, starting with the last decisions.

        Args:
          steps: Decisions of the matches.
          returns: The responder's returns, float64 [count]; changed in place.
        """
        if not steps:
            return
        joined = _ResponderDecisions(
            *(np.concatenate(part) for part in zip(*steps, strict=True))
        )
        for now in range(int(joined.depth.max()), -1, -1):
            at = np.flatnonzero(joined.depth == now)
            here = _ResponderDecisions(*(part[at] for part in joined))
            known, rows = here.row >= 0, here.row
            for means, visits, place, arm, some in (
                (self._mean, self._visits, rows, here.action, known),
                (self._usual, self._times, here.habit, here.arm, ~here.trusted),
            ):
                _move(means, visits, place[some], arm[some], returns[here.games[some]])
            # The target of earlier actions is the value of the best action.
            off = np.flatnonzero(here.tried)
            means, visits = self._mean[rows[off]], self._visits[rows[off]]
            best = np.where(visits > 0, means, -np.inf).max(axis=1)
            usual, times = self._usual[here.habit[off]], self._times[here.habit[off]]
            habit = np.where(times >= _HABITUAL, usual, -np.inf).max(axis=1)
            value = np.where(here.trusted[off], best, habit)
            games = here.games[off]
            returns[games] = np.where(value > -np.inf, value, returns[games])


def _move(
    means: np.ndarray,
    visits: np.ndarray,
    row: np.ndarray,
    action: np.ndarray,
    returns: np.ndarray,
) -> None:
    """Move means towards returns.

    Args:
      means, visits: Arrays [R, A], changed in place.
      row, action: Entries of the arrays, int64 [n].
      returns: Returns, float64 [n].
    """
    entry, group, count = np.unique(
        row * means.shape[1] + action, return_inverse=True, return_counts=True
    )
    old, times = means.reshape(-1), visits.reshape(-1)
    mean = np.bincount(group, returns, len(count)) / count
    times[entry] += count.astype(np.int32)
    share = np.maximum(count / times[entry], 1 - (1 - _STEP) ** count)
    old[entry] += share * (mean - old[entry])
