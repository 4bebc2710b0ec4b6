"""OpenSpiel's states in worker processes; only numbers go to and fro.

A state stays in the process that made it, and so do those that follow it. Chance is
drawn in the parent, so results are the same for any number of workers.
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


class _Level:
    """Decisions that workers hold, by one number in all of them; dropped with this."""

    def __init__(self, number: int, dropped: list[int]) -> None:
        self.number = number
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append(self.number)


class HeldStates:
    """States of positions that workers hold: where each one is.

    They are held until nobody has these places any more.
    """

    def __init__(self, level: _Level, worker: np.ndarray, place: np.ndarray) -> None:
        """Takes places as they are.

        Args:
          level: of all of them.
          worker: int64 [n].
          place: int64 [n], within the worker's part of the level.
        """
        self.level, self.worker, self.place = level, worker, place

    def __getitem__(self, chosen: np.ndarray) -> "HeldStates":
        """Some of them, by integers or a mask."""
        return HeldStates(self.level, self.worker[chosen], self.place[chosen])


class Workers:
    """A `StateSource` whose states are stepped by several processes.

    Attributes:
      game: the (sequential) game.
      max_actions: no decision has more actions.
      state_bytes: as of `StateSource`, in the workers.
      held_bytes: what the processes held together before their first step.
    """

    state_bytes = state_source.STATE_BYTES

    def __init__(self, game: pyspiel.Game, count: int) -> None:
        """Starts the processes, and waits until each has loaded the game.

        Args:
          game: a sequential game.
          count: of processes.

        Raises:
          ValueError: a bad count; or other processes cannot make this game from its
            string.
          WorkerFailedError: a process ended.
        """
        check_integer(count, "workers", 1, MOST_WORKERS)
        self.game = game
        self.max_actions: int = self.game.num_distinct_actions()
        if load_again(self.game) is None:
            raise ValueError(
                f"workers={count}: other processes cannot make {self.game} from its "
                f"string; register the game in a module of its own, or leave workers "
                f"out"
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
                self._workers.append(processes.start(_Steps, setup))
                self._workers[-1].send(None)
            for worker in self._workers:
                worker.receive()
                self.held_bytes += worker.receive()
        except BaseException:
            self.close()
            raise

    def start(self, count: int, random: np.random.Generator) -> Positions:
        """As `StateSource.start`."""
        drawn = state_source.draws(self.game, count, random)
        worker = np.arange(count) * len(self._workers) // max(count, 1)
        nowhere = np.zeros(count, np.int64)
        return self._step(-1, worker, nowhere, nowhere, drawn)

    def step(
        self, states: HeldStates, action: np.ndarray, random: np.random.Generator
    ) -> Positions:
        """As `StateSource.step`."""
        drawn = state_source.draws(self.game, len(action), random)
        level = states.level.number
        return self._step(level, states.worker, states.place, action, drawn)

    key_of = staticmethod(state_source.key_of)

    def close(self) -> None:
        """Ends the processes."""
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
        """Lets each worker make its part of a new level.

        Args:
          level: number of the old one; -1: histories begin.
          worker: int64 [m], who has the state.
          place: int64 [m], where in its part of the old level.
          action: int64 [m], indices among the legal actions.
          drawn: uint64 [m], seeds of chance.
        """
        new = _Level(next(self._numbers), self._dropped)
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


class _Steps:
    """What a worker does: it makes its parts of levels, and holds their states."""

    def __init__(self, game: str, modules: Sequence[str]) -> None:
        """Loads the game; games in Python are registered by their modules first."""
        for name in modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        self._game = load_printed(game)
        self._held: dict[int, list[Decision | None]] = {}
        self._dropped: list[Any] = []

    def __call__(self, request: tuple[Any, ...] | None) -> np.ndarray | int:
        """Facts of a new level, see `Workers._step`; for None the bytes held."""
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
        """Ends the states that were dropped, while the parent reads the answer."""
        self._dropped.clear()
