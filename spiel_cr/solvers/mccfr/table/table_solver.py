"""Monte Carlo CFR for tree-free games: the driver of batches, and its state."""

import abc
import dataclasses
import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from absl import logging

from spiel_cr.common.checks import check_number, check_seed
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.json_records import read_object
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation import key_making
from spiel_cr.games.simulation.simulator import Simulator
from spiel_cr.policies.result import TableFacts
from spiel_cr.solvers import iterative_solver
from spiel_cr.solvers.cfr.cfr_config import SAMPLED_PRESETS, MCCFRConfig
from spiel_cr.solvers.mccfr.table import sampling, strategy, table
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

# Bytes of a visit until the backward pass, and bytes for each of its actions.
_VISIT, _VISIT_ACTION = 200, 40
# Default batch of outcome sampling.
_BATCH = 4096
# Smaller batches cause a warning, because most of their time is overhead.
SMALL_BATCH = 64
# Averages are float32, below 2^128. Weights stay below 2^32, and their sum below 2^32
# times the iterations. The remaining range is for importance weights.
_WEIGHT_BITS = 32
# Above this gamma, rounding errors of gamma times a logarithm affect weights.
_MOST_GAMMA = 1000.0
# Best defaults for tree-free games. Measured on 6-card goofspiel with equal time, the
# NashConv of batches of 4096 is 0.6 times that of batches of 256. If a quarter of the
# infosets fit in the table, the NashConv of incremental trees is 0.6 to 0.8 times that
# of others. If all infosets fit, they are about equal.
PRESETS: dict[str, MCCFRConfig] = {
    name: dataclasses.replace(
        preset,
        incremental=True,
        batch=_BATCH if preset.scheme == "outcome" else preset.batch,
    )
    for name, preset in SAMPLED_PRESETS.items()
}
# Settings that only game trees support, and alternatives.
_NEEDS_TREE = {
    "scheme=average": "outcome or external sampling",
    "explore=balanced": "explore=uniform",
    "baseline=expected": "baseline=average or none",
}
# Share of the memory for the visits of external sampling.
BRANCHES = 0.25


def read_config(algorithm: str | MCCFRConfig) -> MCCFRConfig:
    """Read a sampling algorithm for simulated games.

    Args:
      algorithm: One of `PRESETS` with parameters, or settings.

    Raises:
      ValueError: If a setting needs a game tree.
    """
    config: MCCFRConfig = read_settings(algorithm, PRESETS)
    plain = dict.fromkeys(
        config.rule.touches_all, "alpha=inf, beta=inf or -inf and predictive=false"
    )
    for setting, remedy in (_NEEDS_TREE | plain).items():
        name, _, value = setting.partition("=")
        if getattr(config, name, None) == value or setting in plain:
            raise ValueError(
                f"algorithm={config.name!r}: {setting} requires a game tree; use "
                f"{remedy}, or build the game tree"
            )
    for setting in config.user_functions:
        raise ValueError(
            f"algorithm={config.name!r}: a function as {setting} requires a game tree; "
            f"leave {setting} out, or build the game tree"
        )
    if config.gamma > _MOST_GAMMA:
        raise ValueError(
            f"algorithm={config.name!r}: gamma={config.gamma} reduces the average "
            f"to the last strategy; use at most {_MOST_GAMMA:g}"
        )
    return config


def _weight(iteration: int, gamma: float) -> tuple[float, int]:
    """Return the weight t^gamma of an iteration in averages, in units that grow with t.

    Args:
      iteration: Number t of the iteration, from 1.
      gamma: Exponent of the averaging weights.

    Returns:
      The weight, from 1 to below 2^33, and the binary logarithm of the quotient of the
      units of this and the previous iteration.
    """

    def unit(time: int) -> int:
        return int(gamma * math.log2(time) // _WEIGHT_BITS) * _WEIGHT_BITS

    now, before = unit(iteration), unit(max(iteration - 1, 1))
    if not now:
        return float(iteration) ** gamma, 0
    return 2.0 ** (gamma * math.log2(iteration) - now), now - before


def batch_bytes(config: MCCFRConfig, max_actions: int, max_length: int) -> int:
    """Return the memory in bytes of the trajectories of a batch, without the table.

    Args:
      config: Settings of the algorithm.
      max_actions: Maximum number of legal actions of a decision.
      max_length: Maximum number of decisions of a match.
    """
    visit = _VISIT + _VISIT_ACTION * max_actions
    return config.batch * max_length * visit


def trajectory_bytes(config: MCCFRConfig, max_actions: int, max_length: int) -> int:
    """Return the memory in bytes of a table for one trajectory of each player.

    Args:
      config: Settings of the algorithm.
      max_actions: Maximum number of legal actions of a decision.
      max_length: Maximum number of decisions of a match.
    """
    entry = table.entry_bytes(baselines=config.baseline == "average")
    row = table.row_bytes() + max_actions * entry
    return 2 * max_length * row + max_actions * entry


class TableSolver(iterative_solver.IterativeSolver):
    """Solver that samples a tree-free game and stores infosets in a table.

    Attributes:
      source: Simulator of the game.
      seed: Seed of all random numbers; the same seed gives bitwise identical results.
      keys: Kind of the infosets' keys, see `key_making.KINDS`.
      limits: Memory limits in bytes that a resumed run must share.
      trajectories: Number of trajectories sampled.
    """

    source: Simulator
    seed: int
    iterations: int
    _random: np.random.Generator
    keys: str = "strings"
    limits: Mapping[str, int] = MappingProxyType({})
    trajectories: int

    @abc.abstractmethod
    def average(self) -> strategy.TableStrategy:
        """Return the average strategies of both players."""

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return fields of `TableFacts`."""

    def random_array(self) -> np.ndarray:
        """Return the state of the random numbers, uint8, for checkpoints."""
        state = json.dumps(self._random.bit_generator.state).encode()
        return np.frombuffer(state, np.uint8)

    def restore_random(self, array: np.ndarray) -> None:
        """Restore the result of `random_array`; raise ValueError if it is invalid."""
        try:
            self._random.bit_generator.state = read_object(array.tobytes())
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(
                f"state: invalid random-generator state: {error!r}"
            ) from error

    def nash_conv(self) -> float:
        """Raise ValueError, because NashConv needs the game tree."""
        raise ValueError(
            f"{self.source.game}: NashConv requires a game tree; use spiel_cr.exploit "
            f"for a bound"
        )

    def identity(self) -> dict[str, Any]:
        """Return the fields that identify a run; see `IterativeSolver.identity`."""
        return {
            "game": str(self.source.game),
            "keys": self.keys,
            "fingerprint": key_making.fingerprint(self.source),
            "config": iterative_solver.settings_text(self.config),
            "seed": self.seed,
            **self.limits,
        }

    def outcome(self) -> dict[str, Any]:
        """Return the policy and facts of the solve; see `IterativeSolver.outcome`."""
        game, average = self.source.game, self.average()
        arrays = key_making.bucket_arrays(self.source) or None
        source = key_making.make_source(Opened(game), self.keys, arrays=arrays)
        # Exact averages need perfect recall, which buckets of hands do not provide.
        exact = arrays is None and self.config.averaging == "exact"
        policy = TablePolicy(game, source, average, keys=self.keys, from_roots=exact)
        batch = getattr(self.config, "batch", None)
        facts = TableFacts(len(average), self.keys, batch=batch, **self.facts())
        return {"policy": policy, "trajectories": self.trajectories, "table": facts}

    def close(self) -> None:
        """Close the simulator."""
        self.source.close()


class SampledTableSolver(TableSolver):
    """Solver that samples histories of a tree-free game.

    Attributes:
      source: Simulator of the game.
      config: Settings of the algorithm for simulated games (see `read_config`).
      seed: Seed of all random numbers; the same seed gives bitwise identical results.
      table: Infosets of both players.
      iterations: Number of batches per player.
      trajectories: Number of trajectories, `2 * batch` per iteration.
      seconds: Time spent iterating.
      decisions: Number of decisions of updating players on trajectories.
      hits: Number of those whose infoset was in the table before.
    """

    def __init__(
        self,
        source: Simulator,
        config: MCCFRConfig,
        *,
        seed: int = 0,
        max_bytes: float,
        branch_bytes: float | None = None,
    ) -> None:
        """Create an empty table.

        Args:
          source: Simulator of the game; the caller closes it.
          config: Settings of the algorithm.
          seed: Seed for all random choices.
          max_bytes: Memory for the table, the batch and the final strategy, without the
            rest of the process and the simulator.
          branch_bytes: Part of `max_bytes` for the visits and states of a batch if
            external sampling follows all actions; a quarter of it if None. If it is too
            small to follow all actions, results depend on it.

        Raises:
          ValueError: If settings need a game tree, or the seed is invalid.
          GameTooLargeError: If the infosets of one trajectory do not fit in the memory.
        """
        self.source, self.config = source, read_config(config)
        self.seed = check_seed(seed)
        check_number(max_bytes, "max_bytes", "(0, inf)")
        length = source.game.max_game_length()
        actions = source.max_actions
        batch = batch_bytes(self.config, actions, length)
        visit = _VISIT + _VISIT_ACTION * actions
        if config.scheme == "external":
            if branch_bytes is None:
                branch_bytes = BRANCHES * max_bytes
            batch = max(batch, int(branch_bytes))
            # Each visit of a batch has a separate state.
            visit += source.state_bytes
        self._most_visits = batch // visit
        baselines = config.baseline == "average"
        least = trajectory_bytes(config, actions, length)
        if max_bytes < batch + least:
            raise GameTooLargeError(
                f"memory_limit: {int(max_bytes)} bytes are available, but a batch of "
                f"{config.batch} trajectories of up to {length} moves needs {batch}, "
                f"and the infosets of one trajectory need up to {least}; allow more "
                f"memory, or choose a smaller batch or fewer workers"
            )
        self.table = table.InfosetTable(
            int(max_bytes) - batch, actions, baselines=baselines
        )
        self._random = np.random.Generator(np.random.PCG64(self.seed))
        self._mass = 0.0
        self._narrowed = False
        self.iterations = self.trajectories = self.decisions = self.hits = 0
        self._shown = 0, 0

    def progress_counts(self) -> dict[str, Any]:
        """Return counts for progress messages; see `IterativeSolver`.

        The counts include the share of infosets that were in the table before.
        """
        decisions = self.decisions - self._shown[0]
        hits = self.hits - self._shown[1]
        self._shown = self.decisions, self.hits
        return {
            "trajectories": f"{self.trajectories:,}",
            "infosets": f"{self.table.rows:,}",
            "MB": f"{self.table.nbytes / 1e6:,.0f}",
            "known": f"{hits / max(decisions, 1):.1%}",
        }

    def facts(self) -> dict[str, Any]:
        """Return fields of `TableFacts`."""
        return {
            "bytes": self.table.nbytes,
            "limit": self.table.limit,
            "full": self.table.full,
            "decisions": self.decisions,
            "hits": self.hits,
        }

    def average(self) -> strategy.TableStrategy:
        """Return the average strategies of both players; the solver does not change."""
        return strategy.of_table(
            self.table,
            exact=self.config.averaging == "exact",
            exploration=self.config.rule.exploration,
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint; see `IterativeSolver.arrays`.

        Arrays of the table are views.
        """
        return {
            **self.table.state(),
            "random": self.random_array(),
            "mass": np.array(self._mass),
            "seconds": np.array(self.seconds),
            "counts": np.array(
                [self.iterations, self.trajectories, self.decisions, self.hits],
                np.int64,
            ),
        }

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float = 0.0) -> None:
        """Restore the state of a checkpoint; see `IterativeSolver.restore`.

        Args:
          arrays: Arrays of a solver of the same game, configuration and memory limit;
            the table's columns are removed from the dict.
          seconds: Not used, because the arrays contain the time.

        Raises:
          ValueError: If the arrays do not belong to such a solver.
        """
        iterative_solver.check_arrays(
            arrays, self.arrays(), resized=set(arrays) - {"counts"}
        )
        table.check_state(arrays, self.source.max_actions)
        iterative_solver.check_numbers(
            arrays, dict.fromkeys(("mass", "seconds", "counts"), 0.0)
        )
        self.table.restore(arrays)
        self.restore_random(arrays["random"])
        self._mass, self.seconds = float(arrays["mass"]), float(arrays["seconds"])
        self.iterations, self.trajectories, self.decisions, self.hits = (
            int(count) for count in arrays["counts"]
        )
        self._shown = self.decisions, self.hits

    def _iterate(self) -> None:
        """Sample one batch for each player."""
        config = self.config
        self.iterations += 1
        weight, shift = _weight(self.iterations, config.gamma)
        if shift:
            self.table.scale_averages(-shift)
            self._mass = math.ldexp(self._mass, -shift)
        self._mass += weight
        first = self._descend(0, weight)
        if config.alternating:
            self._count(*first.climb())
            self._count(*self._descend(1, weight).climb())
        else:
            second = self._descend(1, weight)
            self._count(*first.climb())
            self._count(*second.climb())
        self.trajectories += 2 * config.batch

    def _descend(self, player: int, weight: float) -> sampling.Trajectories:
        """Sample a batch for one player, down to the ends of its matches."""
        # The sum of the empty sequence is the sum of all weights so far.
        self.table.average[player] = self._mass
        return sampling.Trajectories(
            self.source,
            self.table,
            self.config,
            player,
            self._random,
            weight=weight,
            most_visits=self._most_visits,
        )

    def _count(self, decisions: int, hits: int, narrowed: bool) -> None:
        self.decisions += decisions
        self.hits += hits
        if narrowed and not self._narrowed:
            self._narrowed = True
            logging.warning(
                "%s follows all actions of a player while they fit in memory, and one "
                "action below; to follow more, allow more memory or use a batch "
                "smaller than %d",
                self.config.name,
                self.config.batch,
            )
