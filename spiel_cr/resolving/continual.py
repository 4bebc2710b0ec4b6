"""Continual resolving of a whole game: one solve a layer, for both roles.

A player that resolves continually keeps only its own reach of where it may be and the
opponent's counterfactual values there, and solves a gadget game at each of its
decisions (Burch et al. 2014, CFR-D; Moravčík et al. 2017, DeepStack). `resolve`
computes what such a player would do at *every* infoset: all subgames between two of its
decisions are solved together, as a forest (see `gadget.py`).

The invariant between layers, `LayerState`: i's average strategy above, in sequence
form, and o's counterfactual value at every gate, averaged over the *iterates* of the
solve above. Values of the average strategy instead look right and are wrong where o's
own reach is zero (`opponent_values="average"` shows it).
"""

import time
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.cfr import cfr
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.cfr import solver as driver
from spiel_cr.common import storage
from spiel_cr.common.checks import check_dtype, check_iterations
from spiel_cr.compilation.compiler import as_compiled
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.policies import best_responses
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.policies import result as result_lib
from spiel_cr.resolving import decomposition as subgame
from spiel_cr.resolving import gadget

OpponentValues = Literal["iterates", "average"]


class LayerState(NamedTuple):
    """What resolving carries from one layer to the next.

    Attributes:
      behaviour: float64 [S of i], action probabilities resolved so far, uniform below.
      reach: float64 [S of i], their sequence form.
      gate_values: float64 [G], o's counterfactual values (its own utility, weighted by
        the reach of i and chance) at the gates of the next layer; 0 elsewhere.
    """

    behaviour: np.ndarray
    reach: np.ndarray
    gate_values: np.ndarray


def initial_state(decomposition: subgame.Decomposition) -> LayerState:
    """Before the first layer nothing is fixed."""
    decisions = decomposition.tree.infosets[decomposition.player].decisions
    uniform = policy_lib.uniform_behaviour(decisions)
    return LayerState(
        behaviour=uniform,
        reach=policy_lib.reach_from_behaviour(decisions, uniform),
        gate_values=np.zeros(len(decomposition.gate_layer)),
    )


def resolve_layer(
    decomposition: subgame.Decomposition,
    layer: int,
    state: LayerState,
    solver_of: Callable[[subgame.Decomposition, gadget.Forest], driver.Solver],
    *,
    opponent_values: OpponentValues = "iterates",
) -> LayerState:
    """Solves all subgames of one layer and fixes i's strategy there.

    Args:
      decomposition: layers of the resolving player.
      layer: 1 .. num_layers, after the layers above.
      state: what the layer above left.
      solver_of: solves a forest; must keep infoset values.
      opponent_values: where the next gadget's values come from: the mean over the
        iterates, or (to show why not) the average strategies.
    """
    player = decomposition.player
    forest = gadget.build_forest(decomposition, layer, state.reach, state.gate_values)
    solver = solver_of(decomposition, forest)
    own, other = forest.form.decisions[player], forest.form.decisions[1 - player]
    resolved = policy_lib.behaviour_from_reach(own, solver.average(player))

    decisions = decomposition.tree.infosets[player].decisions
    here = decomposition.own_layer[forest.own] == layer
    behaviour = state.behaviour.copy()
    owner = decisions.owner[1:]
    in_forest = np.isin(owner, forest.own)
    in_layer = np.isin(owner, forest.own[here])
    behaviour[1:][in_layer] = resolved[1:][in_layer[in_forest]]

    if opponent_values == "iterates":
        values = solver.infoset_values(1 - player)
    else:
        other_behaviour = policy_lib.behaviour_from_reach(
            other, solver.average(1 - player)
        )
        values = best_responses.infoset_values(
            forest.form, 1 - player, solver.average(player), other_behaviour
        )[:-1]
    gate_values = np.zeros_like(state.gate_values)
    gate_values[forest.next_gates] = values[len(other) - len(forest.next_gates) :]
    reach = policy_lib.reach_from_behaviour(decisions, behaviour)
    return LayerState(behaviour, reach, gate_values)


def resolve(
    game: str | pyspiel.Game | CompiledGame,
    iterations: int = 1000,
    algorithm: str | algorithm_lib.CFRConfig = "cfr+",
    *,
    dtype: np.typing.DTypeLike = np.float64,
    opponent_values: OpponentValues = "iterates",
    memory_limit: int | str | None = None,
    cache: storage.Path | None = None,
    progress: bool = False,
) -> result_lib.SolveResult:
    """Resolves a whole game continually, in both roles.

    Every infoset gets the strategy that a continually resolving player has there, given
    `iterations` at each of its decisions. The run is deterministic.

    Args:
      game: OpenSpiel game string, game, or compiled game. A compiled game should have
        been compiled with `observations=True`, for smaller subgames.
      iterations: iterations of every solve.
      algorithm: solver of every solve; see `algorithm.parse_algorithm`. Outside poker
        "pdcfr+" is far better than the default (docs/resolving.md).
      dtype: arithmetic, float64 or float32.
      opponent_values: "iterates", or "average" to see what goes wrong.
      memory_limit: bytes, or a size like "3GB"; refuse larger games.
      cache: a folder in which compiled games are kept for the next time.
      progress: show a progress bar on stderr.

    Returns:
      A result whose `average_policy()` is the resolved strategy; `current` is None.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game does not fit (see `tree.compile_game` and
        `subgame.decompose`), or a bad argument.
    """
    config = algorithm_lib.parse_algorithm(algorithm)
    iterations = check_iterations(iterations)
    check_dtype(dtype)
    if opponent_values not in get_args(OpponentValues):
        raise ValueError(
            f"opponent_values={opponent_values!r} must be one of "
            f"{', '.join(get_args(OpponentValues))}"
        )
    started = time.perf_counter()
    tree = as_compiled(game, observations=True, memory_limit=memory_limit, cache=cache)
    roles = [subgame.decompose(tree, player) for player in range(2)]
    timings: list[tuple[float, float]] = []
    layers = sum(role.num_layers for role in roles)
    total = layers * iterations
    with tqdm(total=total, desc=f"resolve {config.name}", disable=not progress) as bar:

        def advance(count: int) -> None:
            bar.update(count)

        def solver_of(
            role: subgame.Decomposition, forest: gadget.Forest
        ) -> driver.Solver:
            # The player updates first. Its opponent's mean values are then against
            # strategies one iteration newer than the average's, yet measured over many
            # games this order is the better one as often as not, and by more.
            solver = cfr.make_solver(
                forest.form,
                config=config,
                dtype=dtype,
                values=True,
                first=role.player,
                planned=iterations,
            )
            solver.run(iterations, after_chunk=advance)
            timings.append((solver.seconds, solver.compile_seconds))
            return solver

        behaviours = []
        for role in roles:
            state = initial_state(role)
            for layer in range(1, role.num_layers + 1):
                state = resolve_layer(
                    role, layer, state, solver_of, opponent_values=opponent_values
                )
            behaviours.append(state.behaviour)
    elapsed = time.perf_counter() - started
    seconds = sum(spent for spent, _ in timings)
    compile_seconds = sum(spent for _, spent in timings)
    return result_lib.SolveResult(
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
