"""Simulation of OpenSpiel's states in worker processes, which exchange only numbers.

A state remains in the process that created it, and so do its successors. Seeds of
chance are drawn in the parent process, so results do not depend on the number of
workers.
"""

import contextlib
import importlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common import memory, processes
from spiel_cr.common.checks import check_integer
from spiel_cr.common.executor import MOST_WORKERS
from spiel_cr.games.opening.game_strings import load_printed
from spiel_cr.games.opening.origins import load_again
from spiel_cr.games.simulation import state_source
from spiel_cr.games.simulation.simulator import Positions
from spiel_cr.games.simulation.state_source import FACTS, Decision


class _StoredLevel:
    """Decisions that workers store under one number, until this object is deleted."""

    def __init__(self, number: int, dropped: list[int]) -> None:
        self.number = number
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append(self.number)


class HeldStates:
    """Locations of states of positions that workers store.

    The workers delete the states after the last reference to these locations.
    """

    def __init__(
        self, level: _StoredLevel, worker: np.ndarray, place: np.ndarray
    ) -> None:
        """Store the locations.

        Args:
          level: Level of all states.
          worker: Worker of each state, int64 [n].
          place: Index within the worker's part of the level, int64 [n].
        """
        self.level, self.worker, self.place = level, worker, place

    def __getitem__(self, chosen: np.ndarray) -> "HeldStates":
        """Return some of the states, by integers or a mask."""
        return HeldStates(self.level, self.worker[chosen], self.place[chosen])


class Workers:
    """A `StateSource` whose states are simulated by several processes.

    Attributes:
      game: The (sequential) game.
      max_actions: Upper bound of the number of actions of a decision.
      state_bytes: Approximate size of a state in the workers; see `StateSource`.
      held_bytes: Memory of all processes together before their first step.
    """

    state_bytes = state_source.STATE_BYTES

    def __init__(self, game: pyspiel.Game, count: int) -> None:
        """Start the processes, and wait until each has loaded the game.

        Args:
          game: Sequential game.
          count: Number of processes.

        Raises:
          ValueError: If the count is invalid, or other processes cannot load the game
            from its string.
          WorkerFailedError: If a process ended.
        """
        check_integer(count, "workers", 1, MOST_WORKERS)
        self.game = game
        self.max_actions: int = self.game.num_distinct_actions()
        if load_again(self.game) is None:
            raise ValueError(
                f"workers={count}: other processes cannot load {self.game} from its "
                f"string; register the game in a separate module, or omit workers"
            )
        self._numbers = itertools.count()
        self._dropped: list[int] = []
        self._workers: list[processes.Worker] = []
        self.held_bytes = 0
        # The modules of games that are written in Python, so that workers know them.
        kinds: list[type] = [pyspiel.Game]
        for kind in kinds:
            kinds += kind.__subclasses__()
        setup = str(self.game), sorted({kind.__module__ for kind in kinds})
        try:
            for _ in range(count):
                self._workers.append(processes.start(_WorkerFunction, setup))
                self._workers[-1].send(None)
            for worker in self._workers:
                worker.receive()
                self.held_bytes += worker.receive()
        except BaseException:
            self.close()
            raise

    def start(self, count: int, random: np.random.Generator) -> Positions:
        """Return the first decisions; see `StateSource`."""
        drawn = state_source.draws(self.game, count, random)
        worker = np.arange(count) * len(self._workers) // max(count, 1)
        nowhere = np.zeros(count, np.int64)
        return self._step(-1, worker, nowhere, nowhere, drawn)

    def step(
        self, states: HeldStates, action: np.ndarray, random: np.random.Generator
    ) -> Positions:
        """Apply actions; see `StateSource`."""
        drawn = state_source.draws(self.game, len(action), random)
        level = states.level.number
        return self._step(level, states.worker, states.place, action, drawn)

    key_of = staticmethod(state_source.key_of)

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def _step(
        self,
        level: int,
        worker: np.ndarray,
        place: np.ndarray,
        action: np.ndarray,
        drawn: np.ndarray,
    ) -> Positions:
        """Compute a new level, each worker its part.

        Args:
          level: Number of the previous level; -1: histories begin.
          worker: Worker of each state, int64 [m].
          place: Index in the worker's part of the previous level, int64 [m].
          action: Indices among the legal actions, int64 [m].
          drawn: Seeds of chance, uint64 [m].
        """
        new = _StoredLevel(next(self._numbers), self._dropped)
        # One at a time: levels may be dropped meanwhile.
        dropped = [self._dropped.pop() for _ in range(len(self._dropped))]
        parts = [np.flatnonzero(worker == n) for n in range(len(self._workers))]
        place_after = np.zeros(len(worker), np.int64)
        for number, part in enumerate(parts):
            request = level, new.number, dropped, place[part], action[part], drawn[part]
            self._workers[number].send(request)
            place_after[part] = np.arange(len(part))
        facts = np.zeros(len(worker), FACTS)
        for number, part in enumerate(parts):
            facts[part] = self._workers[number].receive()
        held = HeldStates(new, worker, place_after)
        return state_source.as_positions(held, facts)


class _WorkerFunction:
    """Function object of a worker, which computes levels and stores states."""

    def __init__(self, game: str, modules: Sequence[str]) -> None:
        """Load the game, after the modules that register games written in Python."""
        for name in modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        self._game = load_printed(game)
        self._held: dict[int, list[Decision | None]] = {}
        self._dropped: list[Any] = []

    def __call__(self, request: tuple[Any, ...] | None) -> np.ndarray | int:
        """Return facts of a new level (see `Workers._step`).

        For None, return the memory that the process uses, in bytes.
        """
        if request is None:
            return memory.held_bytes()
        level, new, dropped, place, action, drawn = request
        if level < 0:
            decisions, facts = state_source.first(self._game, drawn)
        else:
            level_before = self._held.get(level, [])
            before = [level_before[index] for index in place.tolist()]
            decisions, facts = state_source.after(before, action, drawn)
        self._held[new] = decisions
        self._dropped = [self._held.pop(number, None) for number in dropped]
        return facts

    def rest(self) -> None:
        """Delete the states that were dropped, while the parent reads the answer."""
        self._dropped.clear()
