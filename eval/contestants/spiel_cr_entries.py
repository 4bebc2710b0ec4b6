"""Comparing: this project's algorithms as adapters."""

from typing import Any

import numpy as np
import pyspiel

import spiel_cr
from spiel_cr.cfr import cfr
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.common.checks import check_iterations
from spiel_cr.mccfr import mccfr
from spiel_cr.players import bot_strings
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.solving import lp

from ..common.game_instance import GameInstance, Strategy
from ..players import traversing
from .protocol import Entry

# A readable selection: every family once, resolving with the two best solvers. Players
# that resolve by sampling are left out: their programs compile for most of a minute.
DEFAULT = (
    "cfr",
    "cfr+",
    "dcfr",
    "pdcfr+",
    "os-mccfr",
    "es-mccfr",
    "vr-mccfr",
    "lp",
    "resolve(solver=cfr+)",
    "resolve(solver=pdcfr+)",
    "resolving(solver=cfr+,iterations=10)",
    "resolving(solver=cfr+,iterations=100)",
    "oos(iterations=20)",
    "uniform",
)


def find(text: str) -> Entry | None:
    """The entry of this name and these parameters; None: none of ours.

    Args:
      text: an algorithm of `solve`, "resolve(solver=...,iterations=...)", or a bot.

    Raises:
      ValueError: ours, but with bad parameters.
    """
    name = text.partition("(")[0].strip()
    if name in (*algorithm_lib.PRESETS, *algorithm_lib.SAMPLED_PRESETS):
        return _solver(text)
    if name == "lp" and text.strip() == "lp":
        return Entry(
            "lp",
            "spiel_cr lp",
            True,
            "Exact equilibrium by sparse sequence-form linear programs (HiGHS), one a "
            "player; iterations are those of the simplex method.",
            lambda instance, seed: _LP(instance),
            way="once",
        )
    if name == "resolve":
        return _resolve(text)
    if name == "uniform" and text.strip() == "uniform":
        how = "All legal actions alike: the NashConv that everybody starts from."
        return Entry(
            "uniform",
            "uniform",
            True,
            how,
            lambda instance, seed: _Uniform(instance),
            "once",
        )
    if name in bot_strings.BOTS:
        return _bot(text)
    return None


def _parameters(text: str) -> dict[str, Any]:
    try:
        given: dict[str, Any] = dict(pyspiel.game_parameters_from_string(text))
    except (pyspiel.SpielError, RuntimeError) as error:
        raise ValueError(
            f"algorithm={text!r} cannot be read: {error}; write name or "
            f"name(parameter=value,...)"
        ) from error
    given.pop("name", None)
    return given


# By the scheme of sampling.
_BATCH_OF = {
    "outcome": "trajectories for each player",
    "external": "samples for each player, each with all of its own actions followed",
    "average": "samples for each player, each with some of its own actions followed, "
    "by the average strategy",
}


def _solver(text: str) -> Entry:
    config = algorithm_lib.parse_any(text)
    samples = isinstance(config, algorithm_lib.MCCFRConfig)
    how = "Average strategy; one iteration updates both players over the whole game."
    if isinstance(config, algorithm_lib.MCCFRConfig):
        how = (
            f"Average strategy in float32; one iteration is a batch of {config.batch} "
            f"{_BATCH_OF[config.scheme]}."
        )
    return Entry(
        text,
        f"spiel_cr {text}",
        True,
        how,
        lambda instance, seed: _Solver(instance, config, seed),
        samples=samples,
    )


class _Solver:
    """A member of the CFR family, full-width or sampled."""

    note = ""

    def __init__(
        self,
        instance: GameInstance,
        config: algorithm_lib.CFRConfig | algorithm_lib.MCCFRConfig,
        seed: int,
    ) -> None:
        if isinstance(config, algorithm_lib.MCCFRConfig):
            self._solver = mccfr.make_solver(instance.tree, config=config, seed=seed)
        else:
            self._solver = cfr.make_solver(instance.tree.form, config=config)
        self.compile_seconds = self._solver.compile_seconds

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)

    def strategy(self) -> Strategy:
        return self._solver.average_behaviour(0), self._solver.average_behaviour(1)


class _Uniform:
    compile_seconds = 0.0
    note = ""

    def __init__(self, instance: GameInstance) -> None:
        self._tree = instance.tree

    def run(self, iterations: int) -> float:
        return 0.0

    def strategy(self) -> Strategy:
        first, second = (
            policy_lib.uniform_behaviour(infosets.decisions)
            for infosets in self._tree.infosets
        )
        return first, second


class _LP:
    compile_seconds = 0.0
    note = ""
    iterations = 0

    def __init__(self, instance: GameInstance) -> None:
        self._tree = instance.tree
        self._found: list[np.ndarray] = []

    def run(self, iterations: int) -> None:
        simplex = 0
        for player in range(2):
            reach, _, count = lp.realisation_plan(self._tree.form, player)
            decisions = self._tree.infosets[player].decisions
            self._found.append(policy_lib.behaviour_from_reach(decisions, reach))
            simplex += count
        self.iterations = simplex

    def strategy(self) -> Strategy:
        return self._found[0], self._found[1]


def _resolve(text: str) -> Entry:
    given = _parameters(text)
    unknown = sorted(set(given) - {"solver", "iterations"})
    if unknown:
        raise ValueError(
            f"algorithm={text!r}: unknown parameter {unknown[0]!r}; resolve takes "
            f"solver and iterations"
        )
    solver = given.get("solver", "cfr+")
    if isinstance(solver, dict):
        solver = pyspiel.game_parameters_to_string(solver)
    config = algorithm_lib.parse_algorithm(str(solver))
    fixed = given.get("iterations")
    if fixed is not None:
        check_iterations(fixed)
    how = (
        "Continual resolving of every infoset, a forest of gadget games a layer and "
        "role; iterations are those of each solve, seconds those of all solves and of "
        "building their games. "
    )
    how += (
        "The effort is fixed by its parameters."
        if fixed
        else "Each point of the curve is a run from the beginning; compiling is "
        "that of all these runs together, which share programs."
    )
    return Entry(
        text,
        f"spiel_cr {text}",
        True,
        how,
        lambda instance, seed: _Resolve(instance, config, fixed),
        way="once" if fixed else "restarts",
    )


class _Resolve:
    note = ""

    def __init__(
        self, instance: GameInstance, config: algorithm_lib.CFRConfig, fixed: int | None
    ) -> None:
        self._tree = instance.tree
        self._config = config
        self._fixed = fixed
        self.iterations = fixed
        self.compile_seconds = 0.0
        self._result: spiel_cr.SolveResult | None = None

    def run(self, iterations: int) -> float:
        self._result = spiel_cr.resolve(
            self._tree, self._fixed or iterations, self._config
        )
        self.compile_seconds += self._result.compile_seconds
        self.note = f"{self._result.solves} solves"
        return self._result.seconds + self._result.build_seconds

    def strategy(self) -> Strategy:
        assert self._result is not None
        return self._result.average


_BOT_HOW = (
    "A player that thinks in a match, asked at every infoset, reached as in a match; "
    "iterations are those of a solve, seconds those of all answers; its warm-up "
    "(compiling, the first solve) is in the set-up. The effort is fixed by its "
    "parameters."
)


_SOLVED_HOW = (
    "A player that plays what a solver found beforehand; seconds are those of its "
    "solves, one a seat. The effort is fixed by its parameters."
)


def _bot(text: str) -> Entry:
    name = text.partition("(")[0].strip()
    kind = bot_strings.BOTS[name]
    given = _parameters(text)
    unknown = sorted(set(given) - set(kind.parameters))
    if unknown:
        raise ValueError(
            f"algorithm={text!r}: unknown parameter {unknown[0]!r}; {name} takes "
            f"{', '.join(kind.parameters) or 'none'}"
        )
    if name == "policy":
        return Entry(
            text,
            f"spiel_cr {text}",
            True,
            "A policy from a file, which took its time elsewhere: no seconds count.",
            lambda instance, seed: _Bot(instance, text, seed, None),
            way="once",
            files=(str(given["path"]),) if "path" in given else (),
        )
    solver = str(given.get("solver", ""))
    if isinstance(given.get("solver"), dict):
        solver = pyspiel.game_parameters_to_string(given["solver"])
    samples = name == "oos"
    if solver not in ("", "lp"):
        config = algorithm_lib.parse_any(solver)
        samples = isinstance(config, algorithm_lib.MCCFRConfig)
    if name == "solved":
        given["solver"] = solver or "cfr+"
        return Entry(
            text,
            f"spiel_cr {text}",
            True,
            _SOLVED_HOW,
            lambda instance, seed: _Solved(instance, given, seed),
            way="once",
            samples=samples,
        )
    return Entry(
        text,
        f"spiel_cr {text}",
        True,
        _BOT_HOW,
        lambda instance, seed: _Bot(instance, text, seed, given.get("iterations")),
        way="once",
        samples=samples,
    )


class _Solved:
    """A player that plays what a solver found: the solves are the work."""

    compile_seconds = 0.0
    note = "one solve a seat"

    def __init__(
        self, instance: GameInstance, given: dict[str, Any], seed: int
    ) -> None:
        self._tree = instance.tree
        self._given = dict(given)
        self._solver = self._given.pop("solver")
        self._seed = seed
        self.iterations: int | None = None
        self._found: list[np.ndarray] = []

    def run(self, iterations: int) -> float:
        seconds = 0.0
        for seat in range(2):
            # Seeds as those of the bots.
            result = spiel_cr.solve(
                self._tree, self._solver, seed=2 * self._seed + seat, **self._given
            )
            self._found.append(result.average[seat])
            self.iterations = result.iterations
            self.compile_seconds += result.compile_seconds
            seconds += result.seconds + result.build_seconds
        return seconds

    def strategy(self) -> Strategy:
        return self._found[0], self._found[1]


class _Bot:
    """A player, asked everywhere."""

    compile_seconds = 0.0
    note = ""

    def __init__(
        self, instance: GameInstance, text: str, seed: int, iterations: int | None
    ) -> None:
        self._tree = instance.tree
        self.iterations = iterations
        self._saved = text.partition("(")[0].strip() == "policy"
        self._bots = [
            spiel_cr.load_bot(text, instance.tree, seat, seed=2 * seed + seat)
            for seat in range(2)
        ]
        self._seats: list[traversing.SeatStrategy] = []

    def run(self, iterations: int) -> float:
        self._seats = [traversing.traverse(self._tree, bot) for bot in self._bots]
        work = self._seats[0].work.plus(self._seats[1].work)
        self.note = f"{work.moves} answers, the longest {work.max_ms:.1f} ms"
        if work.late_moves:
            self.note += f", {work.late_moves} late"
        return 0.0 if self._saved else work.seconds

    def strategy(self) -> Strategy:
        return self._seats[0].behaviour, self._seats[1].behaviour
