"""Solving by deep CFR, its successors and self-play: `solve_deep`, and what it gives.

A game that fits into memory is compiled, and the result is a strategy in numbers, with
an exact NashConv. Any other game is sampled as it is, and the result are networks.
"""

import dataclasses
import time
from typing import NamedTuple

import pyspiel
from tqdm import tqdm

from spiel_cr.common import atomic, interrupts
from spiel_cr.common.checks import (
    check_choice,
    check_iterations,
    check_number,
    check_seed,
)
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.jax_utils import deep_packages
from spiel_cr.common.memory import Limit
from spiel_cr.common.short_repr import short_repr
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.fingerprints import fingerprint
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.deep import needs
from spiel_cr.deep.averages import BankAverage, NetworkAverage
from spiel_cr.deep.config import PRESETS, DeepConfig, parse_deep
from spiel_cr.deep.infosets import Knowledge, feature_count
from spiel_cr.deep.policy import DeepPolicy, save_deep_policy
from spiel_cr.deep.self_play.config import (
    SELF_PLAY_PRESETS,
    SelfPlayConfig,
    parse_self_play,
)
from spiel_cr.deep.self_play.learning import SelfPlay
from spiel_cr.deep.solver import DeepSolver
from spiel_cr.deep.tensors import stepped
from spiel_cr.policies.result import CurvePoint, SolveResult
from spiel_cr.solving.checkpoint import Keeper
from spiel_cr.uncompiled import key_making
from spiel_cr.uncompiled.source import Source

# Settings of both kinds, and their solvers, which are driven alike.
AnyConfig = DeepConfig | SelfPlayConfig
AnySolver = DeepSolver | SelfPlay
ALGORITHMS: dict[str, AnyConfig] = {**PRESETS, **SELF_PLAY_PRESETS}

COMPILE = ("auto", "always", "never")
# What checkpoints say that they are of.
FORMS = {True: "deep, compiled", False: "deep"}
_ITERATIONS = 100


@dataclasses.dataclass(frozen=True, repr=False)
class DeepResult:
    """What deep CFR on a game that was not compiled gave.

    Attributes:
      policy: the average strategy; for both players.
      algorithm: as given.
      seed: of all that was drawn.
      iterations: done.
      trajectories: sampled, of both players.
      nodes: decisions and ends that these visited.
      seconds: time spent iterating.
      build_seconds: time spent before.
    """

    __repr__ = short_repr

    policy: DeepPolicy
    algorithm: str
    seed: int
    iterations: int
    trajectories: int
    nodes: int
    seconds: float
    build_seconds: float

    @property
    def game(self) -> pyspiel.Game:
        """The (sequential) game."""
        return self.policy.game

    def average_policy(self) -> DeepPolicy:
        """The average strategy, as of `SolveResult`."""
        return self.policy

    def save(self, path: atomic.Path) -> None:
        """Writes the networks to an `.npz` file, atomically, for `deep(path=...)`.

        Raises:
          OSError: it cannot be written; the old file is as it was.
        """
        metadata = {
            "algorithm": self.algorithm,
            "seed": self.seed,
            "iterations": self.iterations,
            "trajectories": self.trajectories,
            "nodes": self.nodes,
            "seconds": self.seconds,
        }
        save_deep_policy(path, self.game, self.policy.average, metadata)


def is_deep(algorithm: object) -> bool:
    """Whether an algorithm is of this family, whatever its parameters."""
    if isinstance(algorithm, AnyConfig):
        return True
    return isinstance(algorithm, str) and _name(algorithm) in ALGORITHMS


def _name(algorithm: str) -> str:
    return algorithm.partition("(")[0].strip()


def parse_any(algorithm: str | AnyConfig) -> AnyConfig:
    """Reads "sd-cfr(hidden=64)" or "mmd(hidden=64)".

    Args:
      algorithm: a preset of `deep.config` or `deep.self_play.config`, with any of its
        parameters; a configuration is taken as it is.

    Raises:
      ValueError: an unknown preset or parameter, or a bad value.
    """
    if isinstance(algorithm, SelfPlayConfig) or (
        isinstance(algorithm, str) and _name(algorithm) in SELF_PLAY_PRESETS
    ):
        return parse_self_play(algorithm)
    return parse_deep(algorithm)


def make_deep(
    game: CompiledGame | Source,
    config: AnyConfig,
    *,
    seed: int,
    knowledge: Knowledge | None = None,
) -> AnySolver:
    """The solver of a configuration; arguments and errors are those of `DeepSolver`."""
    make = SelfPlay if isinstance(config, SelfPlayConfig) else DeepSolver
    return make(game, config, seed=seed, knowledge=knowledge)  # type: ignore[arg-type]


class _Goal(NamedTuple):
    """When to stop and when to evaluate; see `solve_deep`."""

    iterations: int | None
    seconds: float | None
    until: float | None
    eval_every: int | None


def check_deep(
    algorithm: str | AnyConfig,
    iterations: int | None = None,
    *,
    seconds: float | None = None,
    until: float | None = None,
    eval_every: int | None = None,
    seed: int = 0,
    compile: str = "auto",
    checkpoint_every: float = 60.0,
) -> AnyConfig:
    """Refuses arguments of `solve_deep` that no game makes right.

    Args: as there.

    Returns:
      The algorithm's settings.

    Raises:
      ValueError: a bad argument.
      ImportError: flax or optax is missing, and networks are asked for.
    """
    config = parse_any(algorithm)
    check_seed(seed)
    for name, count in (("iterations", iterations), ("eval_every", eval_every)):
        if count is not None:
            check_iterations(count, name=name)
    for name, value in (("seconds", seconds), ("until", until)):
        if value is not None:
            check_number(value, name, "(0, inf)")
    check_number(checkpoint_every, "checkpoint_every", "(0, inf)")
    check_choice(compile, "compile", COMPILE)
    if compile == "never" and config.needs_compiled:
        raise ValueError(
            f"algorithm={config.name!r}: {config.needs_compiled} needs the compiled "
            f"game; choose another setting, or let the game be compiled"
        )
    if config.network == "mlp":
        deep_packages()
    return config


def solve_deep(
    game: Game,
    algorithm: str | AnyConfig = "sd-cfr",
    iterations: int | None = None,
    *,
    seconds: float | None = None,
    until: float | None = None,
    eval_every: int | None = None,
    seed: int = 0,
    compile: str = "auto",
    vectorised: bool = True,
    memory_limit: Limit = None,
    cache: atomic.Path | None = None,
    checkpoint_path: atomic.Path | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> SolveResult | DeepResult:
    """Trains networks by a member of the deep CFR family.

    The same arguments (without `seconds`) give the same bits on the same machine,
    interrupted and resumed or not.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      algorithm: a preset with settings, such as "sd-cfr(hidden=64,traversals=500)", or
        a configuration; see `deep.config`. Or self-play, "mmd" or "ppo", whose result
        is the last iterate; see `deep.self_play.config`.
      iterations: how many at most; in each, both players are updated once. By default
        100, or no limit where `seconds` or `until` says when to stop.
      seconds: stop after this time of iterating, that before a checkpoint included;
        fits of average networks and computing NashConv are not counted.
      until: stop when NashConv of the average strategy, in the game's units, is at most
        this; compiled games only.
      eval_every: compute NashConv after every N iterations, for `result.curve`;
        compiled games only. With `until` and without it, after every 10.
      seed: of all that is drawn, networks included.
      compile: "always", "never", or "auto": unless the game takes more memory than the
        limit.
      vectorised: play and walk by the game's own rules on arrays, if it has them.
      memory_limit: of the compiled game, as for `compile_game`; of any other, of what
        training may take by its end, see `deep.needs`.
      cache: a folder in which compiled games are kept for the next time.
      checkpoint_path: a file to continue from where it exists, and to write to.
      checkpoint_every: seconds between writes; the last state is written too.
      progress: show a progress bar on stderr.

    Returns:
      A `SolveResult` of a compiled game, a `DeepResult` of any other.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      GameTooLargeError: the game must be compiled, and takes more than the limit; or
        it is not compiled, and training would take more.
      ValueError: a bad argument, a game without the tensors that networks read, what
        only compiled games have, or a checkpoint of another run.
      DamagedFileError: the checkpoint was changed since it was written.
      FileInUseError: another run has the checkpoint.
      ImportError: flax or optax is missing.
    """
    config = check_deep(
        algorithm,
        iterations,
        seconds=seconds,
        until=until,
        eval_every=eval_every,
        seed=seed,
        compile=compile,
        checkpoint_every=checkpoint_every,
    )
    if iterations is None and seconds is None and until is None:
        iterations = _ITERATIONS
    goal = _Goal(iterations, seconds, until, eval_every)
    named = algorithm if isinstance(algorithm, str) else config.name
    if config.network == "mlp":
        whole = game.game if isinstance(game, CompiledGame) else load_game(game)
        feature_count(whole, config.features)
    with atomic.reserved(checkpoint_path, "checkpoint_path"):
        started = time.perf_counter()
        tree = _compiled(
            *(game, config, compile),
            vectorised=vectorised,
            memory_limit=memory_limit,
            cache=cache,
            progress=progress,
        )
        if tree is None:
            if until is not None or eval_every is not None:
                what = "until" if until is not None else "eval_every"
                raise ValueError(
                    f"{what}={until if until is not None else eval_every!r} needs "
                    f"NashConv, which is known of compiled games only; leave it out"
                )
            assert not isinstance(game, CompiledGame)
            way = stepped(game, config.features, use_rules=vectorised)
            try:
                needs.check(
                    *(config, way.source.game, way.knowledge, iterations),
                    memory_limit,
                )
                solver = make_deep(
                    way.source, config, seed=seed, knowledge=way.knowledge
                )
                seal = key_making.fingerprint(way.source)
                keeper = _keeper(
                    solver, seal, iterations, checkpoint_path, checkpoint_every
                )
                build_seconds = time.perf_counter() - started
                _run(solver, goal, keeper, progress=progress)
            finally:
                way.source.close()
            return _result_of_networks(solver, named, build_seconds)
        solver = make_deep(tree, config, seed=seed)
        seal = fingerprint(tree)
        keeper = _keeper(solver, seal, iterations, checkpoint_path, checkpoint_every)
        build_seconds = time.perf_counter() - started
        curve = _run(solver, goal, keeper, progress=progress)
        return _result_in_numbers(tree, solver, named, build_seconds, curve)


def _result_of_networks(
    solver: AnySolver, algorithm: str, build_seconds: float
) -> DeepResult:
    """Of a game that was not compiled."""
    average = solver.average()
    assert isinstance(average, BankAverage | NetworkAverage)
    return DeepResult(
        policy=DeepPolicy(solver.source.game, average),
        algorithm=algorithm,
        seed=solver.seed,
        iterations=solver.iterations,
        trajectories=solver.episodes,
        nodes=solver.nodes,
        seconds=solver.seconds,
        build_seconds=build_seconds,
    )


def _result_in_numbers(
    tree: CompiledGame,
    solver: AnySolver,
    algorithm: str,
    build_seconds: float,
    curve: tuple[CurvePoint, ...],
) -> SolveResult:
    """Of a compiled game."""
    return SolveResult(
        tree=tree,
        algorithm=algorithm,
        iterations=solver.iterations,
        average=solver.average_behaviours(),
        current=(solver.current_behaviour(0), solver.current_behaviour(1)),
        seconds=solver.seconds,
        compile_seconds=0.0,
        build_seconds=build_seconds,
        trajectories=solver.episodes,
        curve=curve,
    )


def _compiled(
    game: Game,
    config: AnyConfig,
    compile: str,
    *,
    vectorised: bool,
    memory_limit: Limit,
    cache: atomic.Path | None,
    progress: bool,
) -> CompiledGame | None:
    """The compiled game; None: it is sampled as it is."""
    if isinstance(game, CompiledGame):
        return game
    if compile == "never":
        return None
    try:
        return as_compiled(
            load_game(game),
            vectorised=vectorised,
            memory_limit=memory_limit,
            cache=cache,
            progress=progress,
        )
    except GameTooLargeError as error:
        if compile == "always":
            raise
        if config.needs_compiled:
            raise GameTooLargeError(
                f"{error}; it cannot be sampled without compiling, for "
                f"{config.needs_compiled} needs the compiled game"
            ) from error
    return None


def _keeper(
    solver: AnySolver,
    seal: str,
    most: int | None,
    path: atomic.Path | None,
    every: float,
) -> Keeper | None:
    """A checkpoint, read where it exists.

    Args:
      solver: to go on with.
      seal: tells the game's version.
      most: iterations that the file may have; None: any number.
      path: of the file; None: there is none.
      every: seconds between writes.
    """
    if path is None:
        return None
    settings = dataclasses.asdict(solver.config)
    settings.pop("name")
    identity = {
        "kind": "checkpoint",
        "game": str(solver.source.game),
        "form": FORMS[solver.knowledge.num_infosets is not None],
        "fingerprint": seal,
        "config": repr(settings),
        "seed": solver.seed,
    }
    keeper = Keeper(path, identity, solver, every)
    keeper.resume(most)
    return keeper


def _run(
    solver: AnySolver, goal: _Goal, keeper: Keeper | None, *, progress: bool
) -> tuple[CurvePoint, ...]:
    """Iterates to the goal; checkpoints on the way and at the end, however it comes."""
    curve: list[CurvePoint] = [] if keeper is None else keeper.curve
    every = goal.eval_every
    if every is None and goal.until is not None:
        every = 10
    whole = solver.iterations > 0
    with tqdm(
        total=goal.iterations,
        initial=solver.iterations,
        desc=solver.config.name,
        disable=not progress,
    ) as bar:

        def evaluate() -> None:
            """Adds a point where it is due."""
            last = solver.iterations == goal.iterations
            if every is None or (solver.iterations % every and not last):
                return
            if not curve or curve[-1].iterations < solver.iterations:
                found = solver.nash_conv()
                curve.append(CurvePoint(solver.iterations, solver.seconds, found))
            bar.set_postfix(nash_conv=f"{curve[-1].nash_conv:.2e}")

        def over() -> bool:
            reached = bool(curve) and curve[-1].nash_conv <= (goal.until or 0.0)
            late = goal.seconds is not None and solver.seconds >= goal.seconds
            return solver.iterations == goal.iterations or late or reached

        try:
            with interrupts.Steps() as steps:
                while not over():
                    with steps.step():
                        whole = False
                        solver.run(1)
                        whole = True
                    bar.update(1)
                    evaluate()
                    if keeper is not None:
                        keeper.tick()
        finally:
            # After an error within an iteration the state is half of the next one.
            if keeper is not None and whole:
                keeper.write_last()
    return tuple(curve)
