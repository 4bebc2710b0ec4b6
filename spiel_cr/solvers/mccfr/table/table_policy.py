"""Strategy of a tree-free game as an OpenSpiel policy."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic, storage
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.identity import other_game
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation import key_making
from spiel_cr.policies import behaviour_files
from spiel_cr.policies.conversions import SUM_TOLERANCE, StatePolicy
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy

# Maximum number of information states in the cache of rows (about 200 bytes each).
# Without the cache, the key of batched rules requires a replay of the history.
_CACHED_STATES = 1 << 18
# Value of the field `kind` in files.
TABLE = "table policy"
# Arrays of a table, and their types in files.
_TYPES = {
    "key": np.uint64,
    "count": np.uint16,
    "probability": np.float32,
    "visits": np.uint32,
}


class TablePolicy(StatePolicy):
    """Probabilities by hashed information states, for both players.

    OpenSpiel's tools and every function that accepts a policy support it. If the table
    has no row for a state, the query is counted, and the policy `fallback` (by default
    the uniform policy) gives the probabilities. States with one legal action are not
    counted.

    Attributes:
      strategy: Probabilities at the infosets of the table.
      source: Simulator that computes the keys of states.
      queried: Number of queries at states with several actions.
      unvisited: Number of queries without a row.
      fallback: Policy for states without a row. None: the uniform policy.
      keys: Kind of the infosets' keys, see `key_making.KINDS`.
      from_roots: Whether the player has no rows below a decision without a row.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        source: Any,
        strategy: TableStrategy,
        fallback: openspiel_policy.Policy | None = None,
        *,
        keys: str = "",
        from_roots: bool = False,
    ) -> None:
        """Create the policy; the strategy is not copied.

        Args:
          game: Sequential game.
          source: `RulesSource` or `StateSource` that computes the same keys as those of
            the strategy.
          strategy: Probabilities of both players.
          fallback: Policy for states without a row; uniform if None.
          keys: Kind of the source's keys, see `key_making.KINDS`; empty: batched rules
            if the source has them, otherwise strings.
          from_roots: True if rows were added along trajectories of a game of perfect
            recall, and none were removed.
        """
        super().__init__(game)
        self.from_roots = from_roots
        self.fallback = fallback
        self.strategy = strategy
        self.queried = self.unvisited = 0
        self.source = source
        self.keys = keys or source.key_kind
        self._rows: dict[tuple[int, str], int] = {}

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the probabilities at a state; see `StatePolicy`.

        Raises:
          ValueError: If the number of legal actions is not that of the state's row.
        """
        legal = sorted(state.legal_actions())
        if len(legal) == 1:
            return {legal[0]: 1.0}
        self.queried += 1
        row = self._row(state, player)
        if row < 0:
            self.unvisited += 1
            if self.fallback is not None:
                probabilities: dict[int, float] = self.fallback.action_probabilities(
                    state, player
                )
                return probabilities
            return dict.fromkeys(legal, 1 / len(legal))
        row_probabilities = self.strategy.probabilities(row).astype(np.float64)
        if len(row_probabilities) != len(legal):
            raise ValueError(
                f"state: the state after actions {state.history()} has {len(legal)} "
                f"legal actions but the policy has {len(row_probabilities)}; use "
                f"states of {self.game}"
            )
        shares = (row_probabilities / row_probabilities.sum()).tolist()
        return dict(zip(legal, shares, strict=True))

    def array_probabilities(
        self, rules: BatchedRules, states: np.ndarray, player: int
    ) -> np.ndarray:
        """Return probabilities at many states, by the batched rules of the keys.

        Args:
          rules: Batched rules of the game.
          states: States of these rules where the player acts, [n, ...].
          player: Player who acts.

        Returns:
          Probabilities by action, float64 [n, A]; 0 at states without a row.

        Raises:
          ValueError: If the table's keys are computed from strings.
        """
        rows = self.strategy.find(self.source.keys_of(states, player))
        return self.strategy.spread(rows, rules.legal_actions_mask(states))

    def save(self, path: atomic.Path, metadata: Mapping[str, Any]) -> None:
        """Write the policy to an `.npz` file, atomically; see `SavedPolicy`."""
        fields = {
            "kind": TABLE,
            "game": str(self.game),
            "keys": self.keys,
            "fingerprint": key_making.fingerprint(self.source),
            "from_roots": self.from_roots,
            **metadata,
            "versions": storage.versions(),
        }
        arrays = arrays_of(self.strategy) | key_making.bucket_arrays(self.source)
        storage.save(path, arrays, fields)

    def _row(self, state: pyspiel.State, player: int) -> int:
        """Return the row of a state's infoset, or -1 if it has none."""
        key = player, state.information_state_string(player)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _CACHED_STATES:
                self._rows.clear()
            row = int(self.strategy.find(self.source.key_of(state)[None])[0])
            self._rows[key] = row
        return row


def as_table(policy: Any) -> TablePolicy | None:
    """Return a policy if it is a `TablePolicy`, otherwise None."""
    return policy if isinstance(policy, TablePolicy) else None


def table_queries(policy: openspiel_policy.Policy | None) -> tuple[int, int] | None:
    """Return the numbers of all queries and of queries at unvisited infosets.

    If the policy is not a table, the result is None.
    """
    table = as_table(policy)
    return None if table is None else (table.queried, table.unvisited)


def arrays_of(strategy: TableStrategy) -> dict[str, np.ndarray]:
    """Return the arrays of a strategy by their names in files."""
    return {name: getattr(strategy, name) for name in _TYPES}


def read_strategy(arrays: Mapping[str, np.ndarray], path: object) -> TableStrategy:
    """Return a strategy from a file's arrays.

    Args:
      arrays: Arrays of the file.
      path: Path of the file, for error messages.

    Raises:
      CorruptFileError: If an array is missing or does not fit, or probabilities are
        invalid.
    """
    corrupt = functools.partial(behaviour_files.corrupt, path)
    for name, dtype in _TYPES.items():
        if name not in arrays or arrays[name].dtype != dtype:
            raise corrupt(f"array {name} of type {np.dtype(dtype)} is missing")
    key, count, played, visits = (arrays[name] for name in _TYPES)
    rows = len(count) if count.ndim == 1 else -1
    if key.shape != (rows, 2) or visits.shape != (rows,) or played.ndim != 1:
        raise corrupt("its arrays have incompatible shapes")
    if (count < 1).any() or count.sum(dtype=np.int64) != len(played):
        raise corrupt("its action counts do not match its probabilities")
    ordered = key[np.lexsort(key.T)]
    if (ordered[1:] == ordered[:-1]).all(axis=1).any():
        raise corrupt("two of its rows have the same key")
    # The comparison is false for NaN.
    good = bool((played >= 0).all())
    if good and rows:
        begin = np.cumsum(count, dtype=np.int64) - count
        total = np.add.reduceat(played, begin, dtype=np.float64)
        good = bool((np.abs(total - 1) <= SUM_TOLERANCE).all())
    if not good:
        raise corrupt("its probabilities are not in [0, 1] with sum 1")
    return TableStrategy(key=key, count=count, visits=visits, probability=played)


def check_table_file(path: atomic.Path) -> None:
    """Raise the errors of `load_table_policy` that do not depend on the game.

    Raises:
      OSError: If the file does not exist or cannot be read.
      CorruptFileError: If the contents of the file are invalid.
    """
    read_strategy(storage.load(path)[0], path)


def load_table_policy(
    path: atomic.Path, game: pyspiel.Game | None = None
) -> TablePolicy:
    """Load the policy of a tree-free game.

    Args:
      path: Path of a file that `Result.save` or --save wrote.
      game: Sequential game that the policy must belong to. None: the game that the file
        names.

    Returns:
      A table of hashed infosets, which is uniform at unvisited infosets and counts
      them.

    Raises:
      OSError: If the file does not exist, or cannot be read.
      CorruptFileError: If the file was not written by spiel_cr, was modified since, or
        contains invalid probabilities.
      ValueError: If the policy is for another game, or OpenSpiel cannot load its game
        by name.
    """
    metadata = behaviour_files.read_metadata(path)
    named = behaviour_files.text_of(metadata, "game", path)
    kind = behaviour_files.text_of(metadata, "keys", path)
    buckets = kind.startswith(f"{key_making.BUCKETS} ")
    if not buckets and kind not in (key_making.RULES, key_making.STRINGS):
        raise behaviour_files.corrupt(path, f"its keys have the unknown kind {kind!r}")
    print_of_file = behaviour_files.text_of(metadata, "fingerprint", path)
    loaded = behaviour_files.named_game(named, path) if game is None else game
    opened = Opened(loaded)
    if kind == key_making.RULES and key_making.kind_for(opened) != kind:
        raise ValueError(
            f"{path}: the file uses batched rules of {named}, and {loaded} has none; "
            f"install the package with these rules, or solve with --no-batched-rules"
        )
    arrays = storage.load(path)[0]
    try:
        source = key_making.make_source(opened, kind, arrays=arrays)
    except ValueError as error:
        if game is None:
            raise behaviour_files.corrupt(path, str(error)) from error
        raise ValueError(
            f"{path}: policy of {named} used with {loaded}: {error}"
        ) from error
    if key_making.fingerprint(source) != print_of_file:
        raise other_game(f"{path}: a policy", named, loaded)
    strategy = read_strategy(arrays, path)
    from_roots = metadata.get("from_roots") is True
    return TablePolicy(loaded, source, strategy, keys=kind, from_roots=from_roots)
