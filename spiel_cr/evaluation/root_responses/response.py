"""A response as a table of its player's infosets: played in many matches, as a policy.

Where a search knows what may come after the response's action, and what that is worth,
a match is judged by less than its luck: the difference between what came and what was
to be expected has mean zero at every decision, whatever the worths are, if the odds are
exact. It is a control variate, as in AIVAT (Burch et al. 2018). A response that was
searched to all ends has no luck left.
"""

import dataclasses
import functools
import math

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.evaluation.control_variates import without_luck
from spiel_cr.evaluation.root_responses.setting import Setting
from spiel_cr.evaluation.root_responses.unplanned import Unplanned
from spiel_cr.games.simulation.simulator import Positions, Simulator
from spiel_cr.policies.conversions import StatePolicy
from spiel_cr.solvers.mccfr.table.index import Index
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

# Own decisions, and legal actions, that habits tell apart.
_DEPTHS, _COUNTS = 32, 64
NUM_HABITS = _DEPTHS * _COUNTS


def habit_of(decided: np.ndarray, num_actions: np.ndarray) -> np.ndarray:
    """int64 [n], what is looked at where an infoset is not known.

    Args:
      decided: int [n], own decisions before.
      num_actions: int [n], legal ones.
    """
    depth, count = (
        np.minimum(decided, _DEPTHS - 1),
        np.minimum(num_actions, _COUNTS - 1),
    )
    return depth * _COUNTS + count


class Habits(StatePolicy):
    """What is played where no infoset is known, and in the other seat."""

    def __init__(self, response: "Response", own: openspiel_policy.Policy) -> None:
        """Takes the habits of a response; `own` plays where there is none."""
        super().__init__(own.game)
        self._response, self._own = response, own

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`."""
        response = self._response
        if player == response.player:
            legal = sorted(state.legal_actions())
            history = state.full_history()
            done = [m.action for m in history if m.player == response.player]
            place = response.habits[habit_of(np.array(len(done)), np.array(len(legal)))]
            some = [legal[min(place, len(legal) - 1)]] if place >= 0 else []
            if response.varied and not some:
                some = sorted(set(legal).difference(done)) or legal
            if some:
                return {action: (action in some) / len(some) for action in legal}
        return self._own.action_probabilities(state, player)


@dataclasses.dataclass(frozen=True, eq=False)
class Response:
    """A fixed way to play in one seat, against a fixed opponent.

    Attributes:
      player: the seat.
      key: uint64 [R, 2], of its infosets, as the setting's source makes them.
      count: int [R], legal actions.
      action: int [R], which one is played, counted in ascending order; -1: a habit, as
        at infosets that have no row.
      worth: float64 [R], what each infoset is worth; NaN where nobody knows.
      expected: float64 [R], the expectation, after the action, of what is returned or
        what the next infoset is worth; NaN where the odds are not exact.
      habits: int [NUM_HABITS], actions by `habit_of`; -1: see `Unplanned`.
      start: as `expected`, at the start of the game.
      value: what it wins, where that is known exactly; else None.
      varied: where there is no habit it does not repeat itself, see `Unplanned`.
    """

    player: int
    key: np.ndarray
    count: np.ndarray
    action: np.ndarray
    worth: np.ndarray
    expected: np.ndarray
    habits: np.ndarray
    start: float = math.nan
    value: float | None = None
    varied: bool = False

    @functools.cached_property
    def _index(self) -> Index:
        index = Index(self.key)
        index.extend(len(self.key))
        return index

    def play(
        self, setting: Setting, count: int, random: np.random.Generator
    ) -> np.ndarray:
        """float64 [count], its returns in matches, less their luck where it is known.

        Args:
          setting: of the opponent, with the keys of this table.
          count: of matches.
          random: of all that is drawn; consumed.
        """
        expected, luck = np.full(count, self.start), np.zeros(count)
        decided = np.zeros(count, np.int64)
        unplanned = Unplanned(setting, np.full(count, self.varied))

        def arrive(games: np.ndarray, worth: np.ndarray) -> None:
            change = worth - expected[games]
            luck[games] += np.where(np.isnan(change), 0.0, change)

        def respond(
            positions: Positions, there: np.ndarray, games: np.ndarray
        ) -> np.ndarray:
            row = self._index.find(positions.key[there])
            arrive(games, _looked_up(self.worth, row, np.nan))
            expected[games] = _looked_up(self.expected, row, np.nan)
            chosen = _looked_up(self.action, row, -1)
            habit = habit_of(decided[games], positions.num_actions[there])
            usual = np.minimum(self.habits[habit], positions.num_actions[there] - 1)
            chosen = np.where(chosen < 0, usual, chosen)
            decided[games] += 1
            unplanned.fill(positions, there, games, chosen, random)
            return chosen

        returns = setting.play(self.player, count, random, respond)
        arrive(np.arange(count), returns)
        return without_luck(returns, luck)

    def policy(
        self, game: pyspiel.Game, source: Simulator, own: openspiel_policy.Policy
    ) -> TablePolicy:
        """An OpenSpiel policy, which can be saved.

        Args:
          game: sequential.
          source: that made the keys.
          own: what is played where nothing is known, and in the other seat.
        """
        rows = np.flatnonzero(self.action >= 0)
        count = self.count[rows].astype(np.uint16)
        probability = np.zeros(int(count.sum()), np.float32)
        probability[np.cumsum(count, dtype=np.int64) - count + self.action[rows]] = 1
        strategy = TableStrategy(
            self.key[rows], count, np.ones(len(rows), np.uint32), probability
        )
        beyond = Habits(self, own)
        return TablePolicy(game, source, strategy, beyond)


def _looked_up(values: np.ndarray, row: np.ndarray, otherwise: float) -> np.ndarray:
    """[n], the values of some rows; where the row is -1, the other one."""
    found = np.full(len(row), otherwise, values.dtype)
    met = np.flatnonzero(row >= 0)
    found[met] = values[row[met]]
    return found
