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

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common import memory
from spiel_cr.common.checks import check_choice, check_dtype
from spiel_cr.games.signals.form import form_of
from spiel_cr.games.signals.game import SignalGame
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies.conversions import reach_from_behaviour, uniform_behaviour
from spiel_cr.policies.result import Held, Result
from spiel_cr.resolving.decomposition import Decomposition, decompose
from spiel_cr.resolving.gadget import Forest, build_forest, top_infosets
from spiel_cr.resolving.gadget_fronts import Gadget
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.leaves.leaf_strings import DepthUnit, Leaf, parse_leaf
from spiel_cr.resolving.lookahead import leaf_bytes, look_ahead, warn_if_never_cut
from spiel_cr.resolving.plans import Responses
from spiel_cr.resolving.public_gadget import PublicForest, build_public_forest
from spiel_cr.resolving.public_layers import PublicDecomposition, decompose_public
from spiel_cr.resolving.resolving_config import (
    ResolvingConfig,
    whole_game_settings,
)
from spiel_cr.solvers import footprint
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver
from spiel_cr.solvers.laying_out import (
    LAID_OUT,
    SIGNALS,
    STEPPED,
    AnyGame,
    Laid,
    Layout,
    Need,
    lay_out,
)

# Bytes that both roles' layers and gadget games take for each history, at the peak.
_DECOMPOSING = 112
# Bytes for each weight of a signal game's gadgets: itself, laid out, on the device.
_WEIGHING = 32


class LayerState(NamedTuple):
    """What resolving carries from one layer to the next, or a match so far.

    Attributes:
      behaviour: float64 [S of i], action probabilities resolved so far; below, those of
        its plan (`plans.py`), or uniform ones without a blueprint.
      opponent_values: float64 [G], o's counterfactual values (its own utility, weighted
        by the reach of i and chance) at the augmented infosets of the next layer; 0
        elsewhere.
    """

    behaviour: np.ndarray
    opponent_values: np.ndarray

    def copy(self) -> "LayerState":
        """One that may change without this."""
        return LayerState(self.behaviour.copy(), self.opponent_values.copy())


# A game cut into layers, and the subgames of one of them: compiled, or in public terms.
Layers = Decomposition | PublicDecomposition
LayerForest = Forest | PublicForest
# Both players' layers, and what makes a result of their strategies.
_Roles: TypeAlias = tuple[Sequence[Layers], Callable[..., Result]]


class DepthLimit(NamedTuple):
    """Where a lookahead ends; see `look_ahead`.

    Attributes:
      depth: moves or rounds.
      unit: see `look_ahead`.
      value: what there is at the cut.
    """

    depth: int
    unit: DepthUnit
    value: Leaf


class _Work(NamedTuple):
    """What is done on each layer's forest, see `resolve`."""

    config: CFRConfig
    iterations: int
    dtype: np.typing.DTypeLike
    limit: DepthLimit | None
    gadget: Gadget


def initial_state(decomposition: Layers, leaf: Leaf | None = None) -> LayerState:
    """Before the first layer nothing is fixed; i's plan is the leaf's blueprint."""
    count = len(decomposition.augmented_layer)
    behaviour = uniform_behaviour(decomposition.decisions)
    if isinstance(leaf, Continuations):
        assert isinstance(decomposition, Decomposition)
        behaviour = leaf.behaviour(decomposition.tree)[decomposition.player]
    return LayerState(behaviour, np.zeros(count))


def resolve_layer(
    decomposition: Layers,
    layer: int,
    state: LayerState,
    solver_of: Callable[[Layers, LayerForest], Solver],
    limit: DepthLimit | None = None,
    gadget: Gadget = "cfrd",
) -> LayerState:
    """Solves all subgames of one layer and fixes i's strategy there.

    Args:
      decomposition: layers of the resolving player.
      layer: 1 .. num_layers, after the layers above.
      state: what the layer above left.
      solver_of: solves a forest; must keep infoset values.
      limit: where the subgames are cut off, of a compiled game; None: nowhere.
      gadget: what stands in front of the subgames; in public terms "cfrd" only.
    """
    d, player, decisions = decomposition, decomposition.player, decomposition.decisions
    reach = reach_from_behaviour(decisions, state.behaviour)
    forest: LayerForest
    if isinstance(d, PublicDecomposition):
        forest = build_public_forest(d, layer, reach, state.opponent_values)
    else:
        if limit is not None and isinstance(limit.value, Continuations):
            return _replan(d, layer, state, solver_of, limit, gadget)
        ahead = None
        if limit is not None:
            ahead = look_ahead(d, layer, limit.depth, limit.value, unit=limit.unit)
        values = state.opponent_values
        forest = build_forest(d, layer, reach, values, ahead, gadget=gadget)
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


def _replan(
    d: Decomposition,
    layer: int,
    state: LayerState,
    solver_of: Callable[[Layers, LayerForest], Solver],
    limit: DepthLimit,
    gadget: Gadget,
) -> LayerState:
    """As `resolve_layer`, by promises that the plan keeps; see `plans.py`."""
    responses, plan = Responses(d), state.behaviour
    promised = responses.values(plan)
    reach = reach_from_behaviour(d.decisions, plan)
    ahead = look_ahead(d, layer, limit.depth, limit.value, unit=limit.unit)
    forest = build_forest(d, layer, reach, promised[:-1], ahead, gadget=gadget)
    solver = solver_of(d, forest)
    inside = np.isin(d.decisions.owner, forest.own)
    found = plan.copy()
    found[inside] = solver.average_behaviour(d.player)[1:]
    rises = responses.rises(promised, responses.values(found))
    kept = np.full(len(forest.own), rises[-1])
    if layer > 1:
        subgame = d.own_subgame[forest.own[top_infosets(forest.decisions[d.player])]]
        count = int(d.augmented_subgame.max()) + 1
        worse = rises[:-1] & (d.augmented_layer == layer)
        broken = np.bincount(d.augmented_subgame[worse], minlength=count) > 0
        # Where the player never comes nothing can be gained.
        reached = np.bincount(subgame, reach[d.decisions.parent[forest.own]], count) > 0
        kept = (broken | ~reached)[subgame]
    found = np.where(np.isin(d.decisions.owner, forest.own[kept]), plan, found)
    return LayerState(found, promised[:-1])


def resolve(
    game: AnyGame | Laid,
    algorithm: str | CFRConfig | ResolvingConfig = "cfr+",
    iterations: int | None = None,
    *,
    layout: Layout | None = None,
    dtype: np.typing.DTypeLike = np.float64,
    progress: bool = False,
) -> Result:
    """Resolves a whole game continually, in both roles.

    Every infoset gets the strategy that a continually resolving player has there, given
    `iterations` at each of its decisions, up to rounding: a `Resolver` adds in another
    order, and where regrets are as small as rounding errors that can pick another
    action (docs/resolving.md). The run is deterministic.

    Args:
      game: OpenSpiel game string, game, compiled game, signal game, or one that was
        laid out. A compiled game should have been compiled with `observations=True`,
        for smaller subgames.
      algorithm: solver of every solve, see `algorithms.find`. Outside poker "pdcfr+" is
        mostly far better (docs/resolving.md). Or all the settings: solver, iterations,
        gadget, and depth, its unit and leaf. With a depth the strategy is no longer
        sure to approach an equilibrium (docs/leaves.md says how near it comes).
      iterations: of every solve; None: 1000, or as the settings say.
      layout: the form of the game, and memory; see `Layout`. Neither stepped nor in
        buckets.
      dtype: arithmetic, float64 or float32.
      progress: show a progress bar on stderr.

    Returns:
      A result whose `average_policy()` is the resolved strategy; `current` is None.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game does not fit (see `compile_game` and `decompose`; for signals
        `signal_game`), or a bad argument.
    """
    config, wanted = whole_game_settings(algorithm, iterations)
    dtype = check_dtype(dtype)
    layout, limit = layout or Layout(), None
    check_choice(layout.form, "form", LAID_OUT)
    if layout.buckets is not None or layout.imperfect_recall:
        raise ValueError(
            "buckets: games are resolved without them; leave them out, or use solve"
        )
    if wanted.depth is not None:
        limit = DepthLimit(wanted.depth, wanted.depth_unit, parse_leaf(wanted.leaf))
    started = time.perf_counter()
    laid = game
    if not isinstance(laid, Laid):
        laid = lay_out(laid, need_of(wanted), layout, progress=progress)
    if isinstance(laid.game, SignalGame):
        roles, finish = _signal_roles(laid.game, dtype, layout.memory_limit)
    else:
        assert isinstance(laid.game, CompiledGame)
        roles, finish = _compiled_roles(laid.game, limit, dtype, layout.memory_limit)
    assert wanted.iterations is not None
    work = _Work(config, wanted.iterations, dtype, limit, wanted.gadget)
    average, timings = _resolve_roles(roles, work, progress)
    elapsed = time.perf_counter() - started
    seconds = sum(spent for spent, _ in timings)
    compile_seconds = sum(spent for _, spent in timings)
    return finish(
        algorithm=config.name,
        iterations=wanted.iterations,
        average=average,
        current=None,
        seconds=seconds,
        compile_seconds=compile_seconds,
        build_seconds=elapsed - seconds - compile_seconds,
        solves=len(timings),
    )


def need_of(wanted: ResolvingConfig) -> Need:
    """What resolving needs of the form of a game.

    Args:
      wanted: settings; with some of them (a depth, say) no signal game is resolved.
    """
    refused = {STEPPED: ""}
    if refusal := wanted.signals_refusal:
        refused[SIGNALS] = refusal
    return Need(refused, observations=True)


def _signal_roles(
    game: SignalGame, dtype: np.dtype[Any], memory_limit: memory.Limit
) -> _Roles:
    """Both players' layers in public terms; arguments as of `resolve`."""
    need = footprint.peak_bytes(game, dtype=dtype) + _gadget_bytes(game)
    _check_need(game.game, need, dtype, memory_limit)
    held = Held(game, form_of(game), dtype)
    roles = [decompose_public(game, player) for player in range(2)]
    return roles, functools.partial(Result, held=held)


def _compiled_roles(
    tree: CompiledGame,
    limit: DepthLimit | None,
    dtype: np.dtype[Any],
    memory_limit: memory.Limit,
) -> _Roles:
    """Both players' layers of a compiled game; arguments as of `resolve`."""
    if limit is not None:
        limit.value.check(tree)
    need = footprint.peak_bytes(tree, dtype=dtype) + _DECOMPOSING * len(tree.histories)
    _check_need(tree.game, need, dtype, memory_limit)
    roles = [decompose(tree, player) for player in range(2)]
    if limit is not None:
        warn_if_never_cut(roles, limit.depth, limit.unit)
        need += leaf_bytes(roles, *limit)
        remedy = "take a smaller depth, or a leaf that needs less"
        _check_need(tree.game, need, dtype, memory_limit, remedy=remedy)
    return roles, functools.partial(Result, held=Held(tree, tree.form))


def _gadget_bytes(game: SignalGame) -> int:
    """What gadgets take besides: weights of each term's signals, and copies of them."""
    rounds = np.array([kernel.round for kernel in game.kernels])[game.terms.kernel]
    signals = np.array([game.num_signals(player) for player in range(2)]).max(axis=0)
    return _WEIGHING * int(signals[rounds].sum())


def _check_need(
    game: pyspiel.Game,
    need: float,
    dtype: np.typing.DTypeLike,
    limit: memory.Limit,
    *,
    remedy: str | None = None,
) -> None:
    """Raises GameTooLargeError where resolving would take more than the limit."""
    if remedy is None:
        remedy = "take dtype float32" if dtype != np.float32 else "take a smaller game"
    memory.check_need(f"resolving {game}", need, limit, remedy)


def _resolve_roles(
    roles: Sequence[Layers],
    work: _Work,
    progress: bool,
) -> tuple[tuple[np.ndarray, np.ndarray], list[tuple[float, float]]]:
    """Both players' strategies; seconds of iterating and of compiling by solve."""
    config, iterations, dtype, limit, gadget = work
    timings: list[tuple[float, float]] = []
    total = sum(role.num_layers for role in roles) * iterations
    with tqdm(total=total, desc=f"resolve {config.name}", disable=not progress) as bar:

        def advance(count: int) -> None:
            bar.update(count)

        def solver_of(role: Layers, forest: LayerForest) -> Solver:
            # The player updates first. Its opponent's mean values are then against
            # strategies one iteration newer than the average's, yet measured over many
            # games this order is the better one as often as not, and by more. With the
            # max-margin gadget it is the other way round, see `Front.other_first`.
            turned = isinstance(forest, Forest) and forest.front.other_first
            number, layers = len(timings) + 1, sum(role.num_layers for role in roles)
            bar.set_description(f"compiling program {number} of {layers}")
            solver = cfr.make_solver(
                forest.form,
                config=config,
                dtype=dtype,
                values=True,
                first=role.player ^ turned,
                compile=cfr.compile_for(forest.form, iterations, once=True),
            )
            bar.set_description(f"resolve {config.name}, solve {number} of {layers}")
            solver.run(iterations, after_chunk=advance)
            timings.append((solver.seconds, solver.compile_seconds))
            return solver

        behaviours = []
        for role in roles:
            state = initial_state(role, limit and limit.value)
            for layer in range(1, role.num_layers + 1):
                state = resolve_layer(role, layer, state, solver_of, limit, gadget)
            behaviours.append(state.behaviour)
    return (behaviours[0], behaviours[1]), timings
