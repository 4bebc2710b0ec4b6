"""Adapters of this project's algorithms."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import spiel_cr
from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.common.checks import check_iterations
from spiel_cr.common.parameters import parse
from spiel_cr.evaluation import traversal
from spiel_cr.games.public_tree.comparison import sequence_map
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.players.player_strings import PLAYERS, read_plugin
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.resolving.leaves.leaf_strings import check_lookahead, leaf_files
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers import algorithms
from spiel_cr.solvers.representation import TREE
from spiel_cr.solvers.task import Algorithm, Task

from ..common.exact_evaluator import Strategy
from ..common.game_instance import GameInstance, MissingError
from ..common.plurals import counted
from . import protocol
from .protocol import (
    CATALOGUE,
    Computed,
    ComputingAdapter,
    Entry,
    IteratingAdapter,
    Mode,
    computing,
)

# A readable selection: every family once, resolving with the two best solvers. Players
# that resolve by sampling are omitted, because they compile for most of a minute.
DEFAULT = tuple(
    "auto;cfr;cfr+;dcfr;pdcfr+;os-mccfr;es-mccfr;evr-mccfr;lp;resolve(solver=cfr+);"
    "resolve(solver=pdcfr+);resolving(solver=cfr+,iterations=10);"
    "resolving(solver=cfr+,iterations=100);oos(iterations=20);uniform".split(";")
)
_TEXTS = CATALOGUE["others"]


def find(text: str) -> Entry | None:
    """Return the entry of an algorithm of spiel_cr; None if it is not one.

    Args:
      text: Algorithm of `solve`, "resolve(solver=...,iterations=...)", or a bot.

    Raises:
      ValueError: If its parameters are invalid, or it cannot be compared.
    """
    name = text.partition("(")[0].strip()
    family = algorithms.ALGORITHMS.get(name)
    if family is algorithms.BOARDS:
        raise ValueError(
            f"algorithms: {text!r} needs hands in buckets, and such strategies cannot "
            f"be evaluated exactly; use spiel-cr solve --hand-buckets"
        )
    if family is not None and family.name in CATALOGUE["families"]:
        return _solver(text, algorithms.find(text))
    if ":" in name:
        if algorithms.names_algorithm(text):
            return _solver(text, algorithms.find(text))
        read_plugin(text)
        return _bot(text, {})
    table = _PARAMETERS.get(name)
    if table is None:
        if name not in PLAYERS:
            return None
        table = PLAYERS[name].parameters
    return _ENTRIES.get(name, _bot)(text, parse(text, "algorithm").convert(table))


def _entry(
    text: str,
    how: str,
    make: Callable[[GameInstance, int], protocol.SolverAdapter],
    **options: Any,
) -> Entry:
    return Entry(text, f"spiel_cr {text}", True, how, make, **options)


def _solver(text: str, algorithm: Algorithm) -> Entry:
    """Return the entry of an iterative algorithm, tabular or with networks."""
    config, family = algorithm.config, algorithm.family

    def make(instance: GameInstance, seed: int) -> protocol.SolverAdapter:
        task = Task(algorithm, options=instance.options, seed=seed)
        if TREE not in family.makers:
            return PublicTreeAdapter(instance, task)

        def start() -> Any:
            return task.solver(instance.tree)

        return NetworkAdapter(start) if family.networks else IteratingAdapter(start())

    scheme = getattr(config, "scheme", getattr(config, "sampling", ""))
    samples = CATALOGUE["samples"].get(f"{family.name} {scheme}", "")
    how = CATALOGUE["families"][family.name].format(config, samples=samples)
    options: dict[str, Any] = {"samples": family.samples or family is algorithms.PUBLIC}
    if family.networks:
        options |= {"modules": ("optax",), "extra": "deep"}
    return _entry(text, how, make, **options)


class PublicTreeAdapter(IteratingAdapter):
    """A solver of a game in public-tree form, evaluated on the game tree."""

    def __init__(self, instance: GameInstance, task: Task) -> None:
        """Compile the solver.

        Args:
          instance: The game.
          task: Algorithm and options.

        Raises:
          MissingError: If the game has no public-tree form.
        """
        try:
            limit = instance.memory_limit
            form = merged(public_tree_game(instance.game, memory_limit=limit))
        except ValueError as error:
            raise MissingError(str(error)) from error
        super().__init__(task.solver(form))
        self._form, self._instance = form, instance

    @functools.cached_property
    def _sequences(self) -> list[np.ndarray]:
        """Sequence of the form for each sequence of the tree, by player, int32 [S]."""
        return [sequence_map(self._form, self._instance.tree, p) for p in range(2)]

    def strategy(self) -> Strategy:
        first, second = super().strategy()
        return first[self._sequences[0]], second[self._sequences[1]]


class NetworkAdapter(protocol.SolverAdapter):
    """A solver that trains networks, evaluated by its average strategy.

    The seconds that count include the computation of each average, such as the fit of a
    network. Another solver compiles all functions before.
    """

    def __init__(self, start: Callable[[], Any]) -> None:
        """Compile all functions.

        Args:
          start: Function that makes the solver.

        Raises:
          MissingError: If the game has no tensors for networks.
        """
        try:
            other = start()
        except ValueError as error:
            raise MissingError(str(error)) from error

        def work() -> None:
            other.run(1)
            other.average_behaviours()

        self.compile_seconds = protocol.seconds_of_compiling(work)
        self._solver = start()

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)
        self._average: Strategy = self._solver.average_behaviours()

    def strategy(self) -> Strategy:
        return self._average

    @property
    def note(self) -> str:  # type: ignore[override]
        """The number of episodes and nodes so far."""
        return f"{self._solver.episodes:,} episodes, {self._solver.nodes:,} nodes"


def _lp(text: str, parameters: dict[str, Any]) -> Entry:
    def compute(instance: GameInstance, seed: int, _: int) -> Computed:
        result = spiel_cr.solve(instance.tree, "lp", options=instance.options)
        return _computed(result)

    return _entry(text, _TEXTS["lp"], computing(compute), mode="once")


def _uniform(text: str, parameters: dict[str, Any]) -> Entry:
    def make(instance: GameInstance, seed: int) -> ComputingAdapter:
        first, second = (uniform_behaviour(i.decisions) for i in instance.tree.infosets)
        return ComputingAdapter(lambda _: Computed((first, second), 0.0))

    return Entry(text, text, False, _TEXTS["uniform"], make, mode="once")


def _auto(text: str, parameters: dict[str, Any]) -> Entry:
    def compute(instance: GameInstance, seed: int, amount: float) -> Computed:
        timed, options = isinstance(amount, float), instance.options
        goal = spiel_cr.Goal(seconds=amount) if timed else int(amount)
        result = spiel_cr.solve(instance.tree, "auto", goal, options=options, seed=seed)
        return _computed(result, note=f"{result.algorithm}: {result.reason}")

    make = computing(compute)
    return _entry(text, _TEXTS["auto"], make, mode="restarts", timed=True)


def _resolve(text: str, parameters: dict[str, Any]) -> Entry:
    config = algorithms.find(
        parameters.get("solver", "auto"), "solver", (algorithms.CFR,)
    ).config
    fixed = parameters.get("iterations")
    ahead = {name: parameters[name] for name in _LOOKAHEAD if name in parameters}
    check_lookahead(**{"depth": None, "depth_unit": "moves", "leaf": None, **ahead})
    if fixed is not None:
        check_iterations(fixed)

    def compute(instance: GameInstance, seed: int, iterations: int) -> Computed:
        settings = ResolvingConfig(config, fixed or iterations, **ahead)
        result = spiel_cr.resolve(instance.tree, settings, options=instance.options)
        return _computed(result, note=counted(result.solves, "solve"))

    mode: Mode = "once" if fixed else "restarts"
    how = _TEXTS["resolve fixed" if fixed else "resolve"]
    files = _files(parameters)
    return _entry(text, how, computing(compute), mode=mode, files=files)


def _computed(result: spiel_cr.Result, note: str = "") -> Computed:
    """Return the result of a solve."""
    return Computed(
        result.sequence_form_and_average()[1],
        result.seconds + result.build_seconds,
        result.compile_seconds,
        result.iterations,
        note,
    )


def _bot(text: str, parameters: dict[str, Any]) -> Entry:
    """Return the entry of a bot that is queried at every infoset."""
    name = text.partition("(")[0].strip()
    saved = name == "policy"
    solver = algorithms.find(parameters.get("solver", "lp"), "solver")

    def make(instance: GameInstance, seed: int) -> ComputingAdapter:
        bots = [
            spiel_cr.load_bot(instance.tree, text, seat, seed=(2 * seed + seat) % 2**32)
            for seat in range(2)
        ]

        def compute(_: int) -> Computed:
            first, second = (traversal.traverse(instance.tree, bot) for bot in bots)
            work = first.work.plus(second.work)
            late = f", {work.deadline_misses} late" if work.deadline_misses else ""
            return Computed(
                (first.behaviour, second.behaviour),
                0.0 if saved else work.seconds,
                iterations=parameters.get("iterations"),
                note=f"{work.moves} queries, the longest {work.max_ms:.1f} ms{late}",
            )

        return ComputingAdapter(compute)

    return _entry(
        text,
        _TEXTS["saved" if saved else "bot"],
        make,
        mode="once",
        samples=name == "oos" or solver.family.samples,
        files=_files(parameters),
    )


def _files(parameters: dict[str, Any]) -> tuple[str, ...]:
    """Return files that must exist: a player's policy, a leaf's network or policy."""
    path_files = (parameters["path"],) if "path" in parameters else ()
    of_leaf = leaf_files(parameters["leaf"]) if "leaf" in parameters else ()
    return (*path_files, *of_leaf)


# Parameters of the lookahead.
_LOOKAHEAD = {"depth": int, "depth_unit": str, "leaf": str}
# Parameters with their types, of entries that are not bots.
_PARAMETERS: dict[str, dict[str, Any]] = {
    "auto": {},
    "lp": {},
    "resolve": {"solver": str, "iterations": int, **_LOOKAHEAD},
}
# All others are bots that are queried.
_ENTRIES: dict[str, Callable[[str, dict[str, Any]], Entry]] = {
    "auto": _auto,
    "lp": _lp,
    "resolve": _resolve,
    "uniform": _uniform,
}
