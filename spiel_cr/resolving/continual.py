"""Continual re-solving of a complete game: one solve per layer, for both roles.

A player that re-solves continually keeps only its own reach of where it may be and the
opponent's counterfactual values there, and solves a gadget game at each of its
decisions (Burch et al. 2014, CFR-D; Moravčík et al. 2017, DeepStack). `resolve`
computes the strategy of such a player at *every* infoset: all subgames between two of
its decisions are solved together, as a forest (see `gadget.py`).
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cr.common.checks import check_choice, check_dtype
from spiel_cr.common.messages import progress_bar
from spiel_cr.games.opening.opened import Openable
from spiel_cr.games.sequence_form.locking import Rows, locked
from spiel_cr.policies.result import Result
from spiel_cr.resolving.resolving_config import ResolvingConfig, full_game_settings
from spiel_cr.resolving.roles import LayeredGame, Role, make_roles
from spiel_cr.resolving.truncation import DepthLimit
from spiel_cr.solvers import representation
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.locks import solved_form

_PHANTOM = (
    "form='phantom': re-solving a phantom game needs its game tree; leave form out, "
    "or use form='tree'"
)
_LOCKS = (
    "locks: re-solving with node locks needs the game tree and no depth limit; use "
    "form='tree' and no depth, or use solve"
)


def resolve(
    game: Openable,
    algorithm: str | CFRConfig | ResolvingConfig = "auto",
    iterations: int | None = None,
    *,
    options: representation.GameOptions | None = None,
    dtype: np.typing.DTypeLike = np.float64,
    progress: bool | None = None,
) -> Result:
    """Re-solve a complete game continually, for both players.

    Every infoset gets the strategy that a continual re-solving player has there, with
    `iterations` at each of its decisions. The strategies agree up to rounding: a
    `Resolver` sums in another order, and if regrets are as small as rounding errors,
    this can change the chosen action (docs/explanation/resolving.md). The run is
    deterministic.

    Args:
      game: OpenSpiel game string, game, or represented game. Build a game tree with
        `observations=True`, because the subgames are smaller then.
      algorithm: Algorithm of every solve, see `algorithms.find`; "auto" is
        `automatic.OF_SUBGAMES`. Or all settings: algorithm, iterations, gadget, depth,
        unit of the depth, and leaf values. With a depth, the strategy need not approach
        an equilibrium (docs/explanation/depth-limits.md).
      iterations: Number of iterations of every solve. If None, 1000 or that of the
        settings.
      options: Form of the game, node locks and memory, see `GameOptions`. Simulated
        games and buckets are not supported.
      dtype: Data type of the arithmetic, float64 or float32.
      progress: Whether to show progress on stderr. If None, after ten seconds if stderr
        is a terminal.

    Returns:
      A result whose `average_policy()` is the re-solved strategy; `current` is None.

    Raises:
      pyspiel.SpielError: If OpenSpiel does not know the game.
      ValueError: If an argument is invalid or the game is not supported (see
        `build_tree`, `decompose` and `public_tree_game`).

    Example:
      >>> import spiel_cr
      >>> result = spiel_cr.resolve("kuhn_poker", "cfr+", 200)
      >>> spiel_cr.nash_conv("kuhn_poker", result) < 0.05
      True
    """
    wanted = full_game_settings(algorithm, iterations)
    dtype = check_dtype(dtype)
    options, limit = options or representation.GameOptions(), DepthLimit.of(wanted)
    check_choice(options.form, "form", representation.BUILT)
    if options.buckets is not None or options.imperfect_recall:
        raise ValueError(
            "buckets: re-solving does not support buckets; leave them out, or use solve"
        )
    started = time.perf_counter()
    need = need_of(wanted, locks=options.locks is not None)
    represented: Any
    represented, reason = representation.represent(
        game, options, need, progress=progress
    )
    if options.locks is not None and limit is not None:
        raise ValueError(_LOCKS)
    config = wanted.algorithm(reason.form)
    assert wanted.iterations is not None and isinstance(config, CFRConfig)
    roles = make_roles(represented, limit, wanted.gadget, dtype, options.memory_limit)
    solved = solved_form(represented, options.locks, dtype)
    locks = solved.sequence_form.locks
    average, timings = _resolve_roles(
        roles, config, wanted.iterations, dtype, locks, progress
    )
    elapsed = time.perf_counter() - started
    seconds = sum(spent for spent, _ in timings)
    compile_seconds = sum(spent for _, spent in timings)
    return Result(
        algorithm=config.name,
        iterations=wanted.iterations,
        average=average,
        current=None,
        seconds=seconds,
        compile_seconds=compile_seconds,
        build_seconds=elapsed - seconds - compile_seconds,
        solves=len(timings),
        solved=solved,
    )


def need_of(
    wanted: ResolvingConfig, *, locks: bool = False
) -> representation.FormRequirements:
    """Return the requirements of re-solving on the form of a game.

    Args:
      wanted: Settings of re-solving; some of them, such as a depth, are not supported
        in public-tree form.
      locks: Whether strategies are locked, which public-tree form does not support.
    """
    rejected = {representation.SIMULATOR: "", representation.PHANTOM: _PHANTOM}
    if refusal := wanted.public_tree_error or (_LOCKS if locks else None):
        rejected[representation.PUBLIC_TREE] = refusal
    return representation.FormRequirements(rejected, observations=True)


def _resolve_roles(
    roles: Sequence[Role],
    config: CFRConfig,
    iterations: int,
    dtype: np.dtype,
    locks: Rows,
    progress: bool | None,
) -> tuple[tuple[np.ndarray, np.ndarray], list[tuple[float, float]]]:
    """Return both strategies, and seconds of iterating and compiling per solve."""
    timings: list[tuple[float, float]] = []
    layers = sum(role.d.num_layers for role in roles)
    total = layers * iterations
    with progress_bar(
        total=total, desc=f"resolve {config.name}", progress=progress
    ) as bar:

        def advance(count: int) -> None:
            bar.update(count)

        def solver_of(d: LayeredGame, forest: Any) -> Solver:
            # The player updates first. Its opponent's mean values are then against
            # strategies one iteration newer than those of the average. Measured over
            # many games, this order is better as often as worse, and by more. With the
            # max-margin gadget the opponent updates first:
            # `other_first`.
            number = len(timings) + 1
            form = forest.form
            if any(rows is not None for rows in locks):
                form = locked(form, forest.rows_of(d, locks))
            bar.set_description(f"compiling function {number} of {layers}")
            solver = cfr.make_solver(
                form,
                config=config,
                dtype=dtype,
                values=True,
                first=d.player ^ forest.other_first,
                compile=cfr.compile_for(form, iterations, once=True),
            )
            bar.set_description(f"resolve {config.name}, solve {number} of {layers}")
            solver.run(iterations, after_chunk=advance)
            timings.append((solver.seconds, solver.compile_seconds))
            return solver

        behaviours = []
        for role in roles:
            state = role.start()
            for layer in range(1, role.d.num_layers + 1):
                state = role.resolve(layer, state, solver_of)
            behaviours.append(state.behaviour)
    return (behaviours[0], behaviours[1]), timings
