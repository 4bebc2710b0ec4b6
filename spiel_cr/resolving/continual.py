"""Continual resolving of a whole game: one solve per layer, for both roles.

A player that resolves continually keeps only its own reach of where it may be and the
opponent's counterfactual values there, and solves a gadget game at each of its
decisions (Burch et al. 2014, CFR-D; Moravčík et al. 2017, DeepStack). `resolve`
computes what such a player would do at *every* infoset: all subgames between two of its
decisions are solved together, as a forest (see `gadget.py`).

The invariant between layers, `LayerState`: i's average strategy above, in sequence
form, and o's counterfactual value at every augmented infoset, averaged over the
*iterates* of the solve above. Values of the average strategy instead look right and are
wrong where o's own reach is zero (tests/resolving/test_continual.py shows it).
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.cfr import cfr, footprint
from spiel_cr.cfr.config import CFRConfig, parse_algorithm
from spiel_cr.cfr.solver import Solver
from spiel_cr.common import memory, storage
from spiel_cr.common.checks import check_dtype, check_iterations
from spiel_cr.compilation.compiler import as_compiled
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.policies.conversions import reach_from_behaviour, uniform_behaviour
from spiel_cr.policies.result import SolveResult
from spiel_cr.resolving.decomposition import Decomposition, decompose
from spiel_cr.resolving.gadget import Forest, build_forest

# Bytes that both roles' layers and gadget games take for each history, at the peak.
_DECOMPOSING = 112


class LayerState(NamedTuple):
    """What resolving carries from one layer to the next.

    Attributes:
      behaviour: float64 [S of i], action probabilities resolved so far, uniform below.
      opponent_values: float64 [G], o's counterfactual values (its own utility, weighted
        by the reach of i and chance) at the augmented infosets of the next layer; 0
        elsewhere.
    """

    behaviour: np.ndarray
    opponent_values: np.ndarray


def initial_state(decomposition: Decomposition) -> LayerState:
    """Before the first layer nothing is fixed."""
    decisions = decomposition.tree.infosets[decomposition.player].decisions
    zeros = np.zeros(len(decomposition.augmented_layer))
    return LayerState(uniform_behaviour(decisions), zeros)


def resolve_layer(
    decomposition: Decomposition,
    layer: int,
    state: LayerState,
    solver_of: Callable[[Decomposition, Forest], Solver],
) -> LayerState:
    """Solves all subgames of one layer and fixes i's strategy there.

    Args:
      decomposition: layers of the resolving player.
      layer: 1 .. num_layers, after the layers above.
      state: what the layer above left.
      solver_of: solves a forest; must keep infoset values.
    """
    d, player = decomposition, decomposition.player
    decisions = d.tree.infosets[player].decisions
    reach = reach_from_behaviour(decisions, state.behaviour)
    forest = build_forest(d, layer, reach, state.opponent_values)
    solver = solver_of(d, forest)

    in_forest = np.isin(decisions.owner, forest.own)
    in_layer = in_forest & (d.own_layer[decisions.owner] == layer)
    behaviour = state.behaviour.copy()
    resolved = solver.average_behaviour(player)[1:]
    behaviour[in_layer] = resolved[in_layer[in_forest]]

    opponent_values = np.zeros_like(state.opponent_values)
    values = solver.infoset_values(1 - player)
    first_next = len(values) - len(forest.next_augmented)
    opponent_values[forest.next_augmented] = values[first_next:]
    return LayerState(behaviour, opponent_values)


def resolve(
    game: str | pyspiel.Game | CompiledGame,
    iterations: int = 1000,
    algorithm: str | CFRConfig = "cfr+",
    *,
    dtype: np.typing.DTypeLike = np.float64,
    memory_limit: memory.Limit = None,
    cache: storage.Path | None = None,
    progress: bool = False,
) -> SolveResult:
    """Resolves a whole game continually, in both roles.

    Every infoset gets the strategy that a continually resolving player has there, given
    `iterations` at each of its decisions, up to rounding: a `Resolver` adds in another
    order, and where regrets are as small as rounding errors that can pick another
    action (docs/resolving.md). The run is deterministic.

    Args:
      game: OpenSpiel game string, game, or compiled game. A compiled game should have
        been compiled with `observations=True`, for smaller subgames.
      iterations: iterations of every solve.
      algorithm: solver of every solve; see `parse_algorithm`. Outside poker "pdcfr+" is
        mostly far better than the default (docs/resolving.md).
      dtype: arithmetic, float64 or float32.
      memory_limit: refuse what would take more, as in `solve`.
      cache: a folder in which compiled games are kept for the next time.
      progress: show a progress bar on stderr.

    Returns:
      A result whose `average_policy()` is the resolved strategy; `current` is None.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game does not fit (see `compile_game` and `decompose`), or a bad
        argument.
    """
    config = parse_algorithm(algorithm)
    iterations = check_iterations(iterations)
    dtype = check_dtype(dtype)
    started = time.perf_counter()
    tree = as_compiled(
        game,
        observations=True,
        memory_limit=memory_limit,
        cache=cache,
        progress=progress,
    )
    need = footprint.peak_bytes(tree, dtype) + _DECOMPOSING * len(tree.histories)
    remedy = "take dtype float32" if dtype != np.float32 else "take a smaller game"
    held = footprint.held_besides(tree)
    memory.check_need(f"resolving {tree.game}", need, memory_limit, remedy, held=held)
    roles = [decompose(tree, player) for player in range(2)]
    timings: list[tuple[float, float]] = []
    total = sum(role.num_layers for role in roles) * iterations
    with tqdm(total=total, desc=f"resolve {config.name}", disable=not progress) as bar:

        def advance(count: int) -> None:
            bar.update(count)

        def solver_of(role: Decomposition, forest: Forest) -> Solver:
            # The player updates first. Its opponent's mean values are then against
            # strategies one iteration newer than the average's, yet measured over many
            # games this order is the better one as often as not, and by more.
            solver = cfr.make_solver(
                forest.form,
                config=config,
                dtype=dtype,
                values=True,
                first=role.player,
                compile=cfr.compile_for(forest.form, iterations),
            )
            solver.run(iterations, after_chunk=advance)
            timings.append((solver.seconds, solver.compile_seconds))
            return solver

        behaviours = []
        for role in roles:
            state = initial_state(role)
            for layer in range(1, role.num_layers + 1):
                state = resolve_layer(role, layer, state, solver_of)
            behaviours.append(state.behaviour)
    elapsed = time.perf_counter() - started
    seconds = sum(spent for spent, _ in timings)
    compile_seconds = sum(spent for _, spent in timings)
    return SolveResult(
        tree=tree,
        algorithm=config.name,
        iterations=iterations,
        average=(behaviours[0], behaviours[1]),
        current=None,
        seconds=seconds,
        compile_seconds=compile_seconds,
        build_seconds=elapsed - seconds - compile_seconds,
        solves=len(timings),
    )
