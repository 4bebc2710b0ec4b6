"""Monte Carlo CFR on games without a tree: the driver of batches, and its state."""

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
from spiel_cr.solvers.cfr.cfr_config import SAMPLED_PRESETS, MCCFRConfig
from spiel_cr.solvers.iterative_solver import (
    IterativeSolver,
    check_arrays,
    check_numbers,
    settings_text,
)
from spiel_cr.solvers.mccfr.table import sampling, strategy, table
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

# Bytes of a visit until the way up, and for each action.
_VISIT, _VISIT_ACTION = 200, 40
# Default batch of outcome sampling.
_BATCH = 4096
# Batches below this size are mostly overhead, so that there is a warning.
SMALL_BATCH = 64
# Averages hold float32, below 2^128. Weights stay below 2^32, their sum below that
# times the iterations; what trajectories are weighed by may take the rest.
_WEIGHT_BITS = 32
# From here on rounding errors of gamma times a logarithm can be seen in weights.
_MOST_GAMMA = 1000.0
# The defaults that are best without compiling. Measured on 6-card goofspiel in equal
# seconds, batches of 4096 have 0.6 times the NashConv of batches of 256. Where the
# table holds a quarter of the infosets, incremental trees have 0.6 to 0.8 times the
# NashConv of others; where it holds all, about as much.
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
                f"algorithm={config.name!r}: {setting} needs the compiled game; choose "
                f"{remedy}, or compile the game"
            )
    if config.gamma > _MOST_GAMMA:
        raise ValueError(
            f"algorithm={config.name!r}: gamma={config.gamma} leaves nothing of the "
            f"average but the last strategy; choose at most {_MOST_GAMMA:g}"
        )
    return config


def _weight(iteration: int, gamma: float) -> tuple[float, int]:
    """Return the weight of an iteration in averages, t^gamma in units that grow.

    Args:
      iteration: t, from 1.
      gamma: The exponent.

    Returns:
      The weight, from 1 to below 2^33, and the number of powers of two by which the
      unit is larger than that of the iteration before.
    """

    def unit(time: int) -> int:
        return int(gamma * math.log2(time) // _WEIGHT_BITS) * _WEIGHT_BITS

    now, before = unit(iteration), unit(max(iteration - 1, 1))
    if not now:
        return float(iteration) ** gamma, 0
    return 2.0 ** (gamma * math.log2(iteration) - now), now - before


def batch_bytes(config: MCCFRConfig, max_actions: int, max_length: int) -> int:
    """Return the memory of the trajectories of a batch, without the table.

    Args:
      config: The algorithm.
      max_actions: Maximum number of legal actions of a decision.
      max_length: Maximum number of decisions of a match.
    """
    visit = _VISIT + _VISIT_ACTION * max_actions
    return config.batch * max_length * visit


def trajectory_bytes(config: MCCFRConfig, max_actions: int, max_length: int) -> int:
    """Return what a table takes that holds the infosets of one trajectory per player.

    Args:
      config: The algorithm.
      max_actions: The largest number of legal actions of a decision.
      max_length: The largest number of decisions of a match.
    """
    entry = table.entry_bytes(baselines=config.baseline == "average")
    row = table.row_bytes() + max_actions * entry
    return 2 * max_length * row + max_actions * entry


class TableSolver(IterativeSolver):
    """A solver that samples a game without a tree and keeps infosets in a table.

    Attributes:
      source: Simulator of the game.
      seed: Seed of all random numbers; the same seed gives bitwise identical results.
      keys: How the table identifies infosets, see `key_making.KINDS`.
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
        """Restore what `random_array` returned; raise ValueError if it is invalid."""
        try:
            self._random.bit_generator.state = read_object(array.tobytes())
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"its random numbers are none: {error!r}") from error

    def nash_conv(self) -> float:
        """Raise ValueError, because NashConv needs the game tree."""
        raise ValueError(f"{self.source.game}: NashConv needs the compiled game")

    def identity(self) -> dict[str, Any]:
        """See `IterativeSolver.identity`."""
        return {
            "game": str(self.source.game),
            "keys": self.keys,
            "fingerprint": key_making.fingerprint(self.source),
            "config": settings_text(self.config),
            "seed": self.seed,
            **self.limits,
        }

    def outcome(self) -> dict[str, Any]:
        """See `IterativeSolver.outcome`."""
        game, average = self.source.game, self.average()
        arrays = key_making.bucket_arrays(self.source) or None
        source = key_making.make_source(Opened(game), self.keys, arrays=arrays)
        # Exact averages need perfect recall, which hands in buckets do not have.
        exact = arrays is None and self.config.averaging == "exact"
        policy = TablePolicy(game, source, average, keys=self.keys, from_roots=exact)
        batch = getattr(self.config, "batch", None)
        facts = TableFacts(len(average), self.keys, batch=batch, **self.facts())
        return {
            "policy": policy,
            "trajectories": self.trajectories,
            "table": facts,
        }

    def close(self) -> None:
        """Close the simulator."""
        self.source.close()


class SampledTableSolver(TableSolver):
    """A solver that samples histories of a game without a tree.

    Attributes:
      source: Simulator of the game.
      config: The algorithm for simulated games (see `read_config`).
      seed: Seed of all random numbers; the same seed gives bitwise identical results.
      table: Both players' infosets.
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
        """Make an empty table.

        Args:
          source: Simulator of the game; the caller closes it.
          config: The algorithm.
          seed: Seed for all random choices.
          max_bytes: Memory for table, batch, and the strategy at the end, without the
            rest of the process and the simulator's own.
          branch_bytes: Part of it for the visits of a batch if external sampling
            follows all actions, states included; None: a quarter. If it is too small to
            follow all actions, results depend on it.

        Raises:
          ValueError: If settings need a game tree, or the seed is invalid.
          GameTooLargeError: If the memory does not hold the infosets of one trajectory.
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
            # Each visit of a batch holds a state of its own.
            visit += source.state_bytes
        self._most_visits = batch // visit
        baselines = config.baseline == "average"
        least = trajectory_bytes(config, actions, length)
        if max_bytes < batch + least:
            raise GameTooLargeError(
                f"memory_limit: table and batch have {int(max_bytes)} bytes, and a "
                f"batch of {config.batch} trajectories of up to {length} moves takes "
                f"{batch}, and what one trajectory meets up to {least}; allow more "
                f"memory, or choose a smaller batch or fewer workers"
            )
        self.table = table.Table(int(max_bytes) - batch, actions, baselines=baselines)
        self._random = np.random.Generator(np.random.PCG64(self.seed))
        self._mass = 0.0
        self._narrowed = False
        self.iterations = self.trajectories = self.decisions = self.hits = 0
        self._shown = 0, 0

    def progress_counts(self) -> dict[str, Any]:
        """See `IterativeSolver`; contains the share of known infosets."""
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
        """See `IterativeSolver.arrays`; those of the table are views."""
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
        """See `IterativeSolver.restore`.

        Args:
          arrays: Arrays of a solver of the same game, configuration and memory limit;
            the table's columns are removed from the dict.
          seconds: Not used, because the arrays contain the time.

        Raises:
          ValueError: If the arrays are not those of such a solver.
        """
        check_arrays(arrays, self.arrays(), resized=set(arrays) - {"counts"})
        table.check_state(arrays, self.source.max_actions)
        check_numbers(arrays, dict.fromkeys(("mass", "seconds", "counts"), 0.0))
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
        """Sample a batch for one player, down to its ends."""
        # The empty sequence has been played with all weights so far.
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
                "%s follows all actions of a player as far as the memory holds them, "
                "and below that one action; more memory or a smaller batch than %d "
                "holds more",
                self.config.name,
                self.config.batch,
            )
