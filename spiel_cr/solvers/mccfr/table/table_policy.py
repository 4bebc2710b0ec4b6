"""A strategy of a game that was never compiled, as an OpenSpiel policy."""

import functools
from collections.abc import Mapping

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.simulator import Simulator
from spiel_cr.policies import result
from spiel_cr.policies.conversions import SUM_TOLERANCE, StatePolicy
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy

# Information states whose rows are remembered: making a key from batched rules plays
# the whole history again. Some 200 bytes each.
_REMEMBERED = 1 << 18
# Arrays of a table, and their types in files.
_TYPES = {
    "key": np.uint64,
    "count": np.uint16,
    "probability": np.float32,
    "visits": np.uint32,
}


class TablePolicy(StatePolicy):
    """Probabilities by hashed information states, for both players.

    OpenSpiel's tools and all that takes a policy accept it. Where the table has no row
    all legal actions are played alike, and counted. Where there is one legal action
    nothing is decided, and nothing is counted.

    Attributes:
      strategy: the table.
      source: makes the keys by which it is looked up.
      asked: how often it was asked at decisions.
      unmet: how often no row was there.
      beyond: what is played there; None: all actions alike.
      from_roots: a decision without a row has none of the same player below it.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        source: Simulator,
        strategy: TableStrategy,
        beyond: openspiel_policy.Policy | None = None,
        *,
        from_roots: bool = False,
    ) -> None:
        """Takes a strategy as it is.

        Args:
          game: a sequential game.
          source: makes the keys of its states as those of the strategy were made.
          strategy: of both players.
          beyond: what is played where the table has no row; None: all actions alike.
          from_roots: rows were made along trajectories of a game of perfect recall, and
            all were kept.
        """
        super().__init__(game)
        self.from_roots = from_roots
        self.beyond = beyond
        self.strategy = strategy
        self.asked = self.unmet = 0
        self.source = source
        self._rows: dict[tuple[int, str], int] = {}

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`; refuses states that have other actions than their row."""
        legal = sorted(state.legal_actions())
        if len(legal) == 1:
            return {legal[0]: 1.0}
        self.asked += 1
        row = self._row(state, player)
        if row < 0:
            self.unmet += 1
            if self.beyond is not None:
                odds: dict[int, float] = self.beyond.action_probabilities(state, player)
                return odds
            return dict.fromkeys(legal, 1 / len(legal))
        found = self.strategy.probabilities(row).astype(np.float64)
        if len(found) != len(legal):
            raise ValueError(
                f"state: after the actions {state.history()} there are {len(legal)} "
                f"actions, and the policy has {len(found)} there; give it states of "
                f"{self.game}"
            )
        return dict(zip(legal, (found / found.sum()).tolist(), strict=True))

    def array_probabilities(
        self, rules: BatchedRules, states: np.ndarray, player: int
    ) -> np.ndarray:
        """Probabilities at many states at once, by the rules of the table's keys.

        Args:
          rules: of the game.
          states: [n, ...], of these rules, where the player acts.
          player: who acts.

        Returns:
          float64 [n, A], by action; 0 in rows that were never met.

        Raises:
          ValueError: the table's keys are made of strings.
        """
        if not isinstance(self.source, RulesSource):
            raise ValueError(
                f"the policy of {self.game} has keys made of strings, so it cannot be "
                f"asked for arrays of states; ask state by state"
            )
        legal = rules.legal_actions_mask(states)
        found = self.strategy.find(self.source.keys_of(states, player))
        return self.strategy.spread(found, legal)

    def _row(self, state: pyspiel.State, player: int) -> int:
        """The row of a state's information; -1: it has none."""
        known = player, state.information_state_string(player)
        row = self._rows.get(known)
        if row is None:
            if len(self._rows) >= _REMEMBERED:
                self._rows.clear()
            row = int(self.strategy.find(self.source.key_of(state)[None])[0])
            self._rows[known] = row
        return row


def arrays_of(strategy: TableStrategy) -> dict[str, np.ndarray]:
    """A strategy's arrays, as they lie in files."""
    return {name: getattr(strategy, name) for name in _TYPES}


def read_strategy(arrays: Mapping[str, np.ndarray], path: object) -> TableStrategy:
    """A strategy from a file's arrays.

    Args:
      arrays: of the file.
      path: of the file, for the error.

    Raises:
      CorruptFileError: an array is missing or does not fit, or probabilities are none.
    """
    damaged = functools.partial(result.damaged, path)
    for name, dtype in _TYPES.items():
        if name not in arrays or arrays[name].dtype != dtype:
            raise damaged(f"it has no {name} of type {np.dtype(dtype)}")
    key, count, played, visits = (arrays[name] for name in _TYPES)
    rows = len(count) if count.ndim == 1 else -1
    if key.shape != (rows, 2) or visits.shape != (rows,) or played.ndim != 1:
        raise damaged("its arrays have other shapes")
    if (count < 1).any() or count.sum(dtype=np.int64) != len(played):
        raise damaged("its rows do not add up to its probabilities")
    ordered = key[np.lexsort(key.T)]
    if (ordered[1:] == ordered[:-1]).all(axis=1).any():
        raise damaged("two of its rows have the same key")
    # Written so that NaN fails.
    good = bool((played >= 0).all())
    if good and rows:
        begin = np.cumsum(count, dtype=np.int64) - count
        total = np.add.reduceat(played, begin, dtype=np.float64)
        good = bool((np.abs(total - 1) <= SUM_TOLERANCE).all())
    if not good:
        raise damaged("its probabilities do not lie in [0, 1] and sum to 1")
    return TableStrategy(key=key, count=count, visits=visits, probability=played)
