"""Ranges that a depth-limited player meets, and how exploitable it is.

Random ranges alone do not do: a network then errs where solvers go (Brown et al. 2020,
"Combining deep reinforcement learning and search", section 7).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spiel_cr.policies import best_responses
from spiel_cr.resolving.continual import (
    DepthLimit,
    LayerForest,
    Layers,
    initial_state,
    resolve_layer,
)
from spiel_cr.resolving.gadget import CutPlace, Forest
from spiel_cr.resolving.leaves.public_states import PublicStates
from spiel_cr.resolving.leaves.training.training_cuts import Cuts
from spiel_cr.resolving.leaves.values import ValueFunction
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver

# Of each state, pairs of ranges by player: float64 [k, n0] and [k, n1].
Pairs = tuple[list[np.ndarray], list[np.ndarray]]


class Met(NamedTuple):
    """What resolving a game came by.

    Attributes:
      pools: for each part of the cuts and each of its states the pairs of ranges to
        learn from.
      held_out: likewise, those that only validate; a state may have none.
      nash_conv: of the resolved strategy, in the game's units.
    """

    pools: list[list[Pairs]]
    held_out: list[list[Pairs]]
    nash_conv: float


class MeetSettings(NamedTuple):
    """How a game is resolved for its ranges.

    Attributes:
      iterations: of every solve.
      looks: after how many iterations of each solve to note the current ranges; those
        of the average strategies are noted at the end.
      config: the algorithm.
      random: chooses the iterations.
      held_out: the share of each solve's iterations, one after another, whose ranges
        only validate. Ranges of the iterations beside these, a quarter as many on each
        side, are not used: they are too like them.
      held_random: chooses these; in the same state, the same ones.
      before_solve: called before each look; may raise to stop.
    """

    iterations: int
    looks: int
    config: CFRConfig
    random: np.random.Generator
    held_out: float
    held_random: np.random.Generator
    before_solve: Callable[[], None] = lambda: None


# The players' reach [S] by logical sequence, and whether it is only to validate.
Look = Callable[[list[np.ndarray], bool], None]


def run_and_look(
    solver: Solver, first: int, settings: MeetSettings, note: Look
) -> None:
    """Runs a solver, and shows both players' reach on the way.

    Args:
      solver: at its start.
      first: who updates first.
      settings: how far, and when to look.
      note: shown the reach by player, float64 [S] by logical sequence.
    """
    iterations = settings.iterations
    length = max(1, int(settings.held_out * iterations))
    begin = int(settings.held_random.integers(iterations - length + 1))
    count = min(settings.looks, iterations)
    stops = np.sort(settings.random.choice(iterations, count, False))
    for stop in stops.tolist():
        settings.before_solve()
        solver.run(stop - solver.iterations)
        validates = begin <= stop < begin + length
        if not validates and -length / 4 <= stop - begin < 1.25 * length:
            continue
        note(_current_reach(solver, first), validates)
    settings.before_solve()
    solver.run(iterations - solver.iterations)
    note([solver.average(p) for p in range(2)], False)


def _current_reach(solver: Solver, first: int) -> list[np.ndarray]:
    """By player float64 [S], the current strategies in sequence form, logical."""
    order = (first, 1 - first)
    return [
        np.asarray(solver.state.players[order[p]].reach, np.float64)[layout.sequences]
        for p, layout in enumerate(solver.form.layouts)
    ]


def meet(
    cuts: Cuts,
    value: ValueFunction,
    settings: MeetSettings,
) -> Met:
    """Resolves the game in both roles, and notes the ranges at the cuts.

    Args:
      cuts: of the game at this depth.
      value: at their ends.
      settings: of the solves.
    """
    learned, validating = _empty_pools(cuts), _empty_pools(cuts)

    def solver_of(role: Layers, forest: LayerForest) -> Solver:
        solver = cfr.make_solver(
            forest.form,
            config=settings.config,
            values=True,
            first=role.player,
            compile=cfr.compile_for(forest.form, settings.iterations),
        )
        cut = forest.cut if isinstance(forest, Forest) else None
        if cut is None:
            settings.before_solve()
            solver.run(settings.iterations)
            return solver

        def note(reach: list[np.ndarray], validates: bool) -> None:
            _note(cuts, cut, reach, validating if validates else learned)

        run_and_look(solver, role.player, settings, note)
        return solver

    limit = DepthLimit(cuts.depth, cuts.unit, value)
    behaviours = []
    for role in cuts.roles:
        state = initial_state(role)
        for layer in range(1, role.num_layers + 1):
            state = resolve_layer(role, layer, state, solver_of, limit)
        behaviours.append(state.behaviour)
    form = cuts.tree.form
    reach = best_responses.reach_of(form, (behaviours[0], behaviours[1]))
    return Met(learned, validating, float(best_responses.nash_conv(form, reach)))


def _empty_pools(cuts: Cuts) -> list[list[Pairs]]:
    return [[([], []) for _ in range(len(part))] for part in cuts.parts]


def _note(
    cuts: Cuts, cut: CutPlace, reach: list[np.ndarray], pools: list[list[Pairs]]
) -> None:
    """Adds the ranges at a cut to the pools; reach [S] by logical sequence."""
    ranges = [
        own[sequences] * weights
        for own, sequences, weights in zip(
            reach, cut.sequences, cut.weights, strict=True
        )
    ]
    states: PublicStates = cut.states
    bounds = [states.bounds(p) for p in range(2)]
    for k, number in enumerate(states.numbers.tolist()):
        twin = cuts.twins[states.player][number]
        pair = [ranges[p][bounds[p][k] : bounds[p][k + 1]] for p in range(2)]
        add_pair(pools[twin.part][twin.state], pair)


def add_pair(pool: Pairs, pair: list[np.ndarray]) -> None:
    """Adds a pair of ranges of a state, if either player comes there at all."""
    if pair[0].sum() + pair[1].sum() == 0:
        return
    for p in range(2):
        total = pair[p].sum()
        own = pair[p] / total if total > 0 else np.full(len(pair[p]), 1.0)
        pool[p].append(own / own.sum())


def draw(
    pools: list[Pairs],
    others: tuple[np.ndarray, np.ndarray],
    states: PublicStates,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ranges for all states of a part, from what was met.

    Args:
      pools: of each state.
      others: float64 [B, J0] and [B, J1], what to take where nothing was met, and a
        little of which is mixed into every second row.
      states: the part.
      random: consumed.

    Returns:
      float64 [B, J0] and [B, J1], distributions in every state.
    """
    found = [own.copy() for own in others]
    count = len(found[0])
    for k, pool in enumerate(pools):
        size = len(pool[0])
        if not size:
            continue
        rows = (
            random.permutation(size)[:count]
            if size >= count
            else random.integers(size, size=count)
        )
        for p in range(2):
            mine = slice(*states.bounds(p)[k : k + 2])
            met = np.array(pool[p])[rows]
            share = 10 ** random.uniform(-3, -0.7, count) * (random.random(count) < 0.5)
            share = share[:, None]
            found[p][:, mine] = (1 - share) * met + share * others[p][:, mine]
    return found[0], found[1]
