"""Padded shapes of subgames, and the estimated time to build and solve them."""

import functools
import time

import numpy as np
from open_spiel.python.policy import UniformRandomPolicy

from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.layout import PaddedShape
from spiel_cr.policies.leaf_values import HistoryValues
from spiel_cr.resolving.clock import Clock, Cost
from spiel_cr.resolving.lookahead import layer_solver
from spiel_cr.resolving.lookahead.blueprint import Blueprint
from spiel_cr.resolving.lookahead.capacity import Capacities
from spiel_cr.resolving.lookahead.layer_solver import LayerSolver
from spiel_cr.resolving.lookahead.solved_lookahead import SolvedLookahead
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.cfr import cfr
from tests.support import lookahead_trees


def padded_shape(*levels, rows):
    return PaddedShape(tuple(np.array(level) for level in levels), np.array(rows))


def test_capacities_return_the_smallest_known_shape_that_fits():
    known = Capacities()
    need = (padded_shape([3, 2, 2, 2, 2, 2, 2], [2], rows=[4, 1]),) * 2
    assert known.find(need) is None
    learnt = known.learn(need)
    assert known.find(need) is learnt and known.learn(need) is learnt
    assert len(known) == 1
    for wrong in (
        padded_shape([9, 2], [2], rows=[4, 1]),
        padded_shape([3, 2], [2], rows=[99, 1]),
        padded_shape([3, 2], [2], rows=[4] * 99),
        padded_shape([3, 2], [2] * 99, rows=[4]),
        padded_shape(*[[2]] * 9, rows=[4]),
    ):
        assert known.find((need[0], wrong)) is None
    deep = (padded_shape([2], [2], [2], [2], [2], rows=[30]),) * 2
    known.learn(deep)
    assert len(known) == 2
    mixed = (need[0], deep[1])
    assert known.find(mixed) is None
    # A need that is much smaller than all known shapes gets its own shape.
    wide = (padded_shape([2] * 500, rows=[30] * 500),) * 2
    assert known.learn(wide) is not known.learn(need) is learnt
    tiny = (padded_shape([2], rows=[1]),) * 2
    assert known.learn(tiny) is learnt
    alone = Capacities()
    alone.learn(wide)
    assert alone.learn(tiny) is alone.find(tiny) and len(alone) == 2
    known.close()
    assert known.find(mixed) is not None


def test_closed_capacities_fit_rearranged_shapes():
    """Levels are reordered, rows are merged, or a gadget infoset is larger."""
    known = Capacities()
    need = padded_shape([3, 2], [4] * 6, rows=[6] * 20)
    known.learn((need, need))
    for other in (
        padded_shape([4] * 6, [4] * 3, rows=[6] * 20),
        padded_shape([3, 2], [4] * 6, rows=[60, 30, 20, 10]),
        padded_shape([11], [4] * 6, rows=[6] * 20),
    ):
        assert known.find((need, other)) is None
        last = Capacities()
        last.learn((need, need))
        assert last.close() is last.find((need, other))


def test_no_solver_is_created_without_time_for_it():
    config = ResolvingConfig(iterations=20, move_ms=50)
    layers = LayerSolver(0, config, 500, Clock(50, 20))
    tree = lookahead_trees.start("kuhn_poker", 500)
    beliefs = Blueprint(UniformRandomPolicy(tree.game), tree.simulator.source.rules)

    def build(tree):
        return SolvedLookahead.of(tree, 0, beliefs, walk=1000)

    later = time.perf_counter() + 60
    assert layers.solve(tree, build, 58, later).accepted
    # Functions are compiled now, and the remaining cost of creating a solver is known.
    fixed, each = layers._making.line
    assert 0 < fixed + 1000 * each < 1
    layers.close()
    layers._making = Cost()
    layers._making.add(1000, 300.0)
    assert layers.solve(tree, build, 58, later) is None
    assert layers.solve(tree, build, 58, later, start=True).accepted


def test_new_shapes_are_run_again_before_the_time_limit_starts(monkeypatch):
    """The second run absorbs the work that JAX does when it sees a shape again."""
    made, run, make = [], [], layer_solver.full_width_solver

    def solver(*args, **settings):
        made.append(make(*args, **settings))
        number = len(made)
        monkeypatch.setattr(made[-1], "run", lambda n: run.append((number, n)))
        return made[-1]

    monkeypatch.setattr(layer_solver, "full_width_solver", solver)
    # Numbers of compilations: the first of two solvers compiles one function.
    programs = iter([0, 1, 1, 1] * 2)
    monkeypatch.setattr(cfr, "compilations", lambda: next(programs))
    for move_ms, runs in ((50, [(1, 1), (2, 3), (3, 3)]), (None, [(4, 3), (5, 3)])):
        config = ResolvingConfig(iterations=3, move_ms=move_ms)
        layers = LayerSolver(0, config, 500, Clock(None, 3))
        tree = lookahead_trees.start("kuhn_poker", 500)
        beliefs = Blueprint(UniformRandomPolicy(tree.game), tree.simulator.source.rules)
        build = functools.partial(
            SolvedLookahead.of, player=0, incumbent=beliefs, walk=1000
        )
        for _ in range(2):
            layers.solve(tree, build, 58, None)
        assert run == runs
        run.clear()


def test_shapes_of_unsolved_trees_are_compiled_before_the_match():
    """A tree of such a shape is then solved in a match without compilation."""
    config = ResolvingConfig(iterations=3, move_ms=50)
    layers = LayerSolver(0, config, 500, Clock(50, 3))

    def solved(game, most, walk):
        tree = lookahead_trees.start(game, 500)
        beliefs = Blueprint(UniformRandomPolicy(tree.game), tree.simulator.source.rules)
        build = functools.partial(
            SolvedLookahead.of, player=0, incumbent=beliefs, walk=walk
        )
        return layers.solve(tree, build, most, time.perf_counter() + 60)

    assert not solved("python_leduc_poker", 400, 0).exact
    layers._making.add(1000, 300.0)
    assert solved("kuhn_poker", 20, 1000).exact
    layers.close()
    programs = cfr.compilations()
    layers._making = Cost()
    assert solved("python_leduc_poker", 400, 100_000).exact
    assert cfr.compilations() == programs


def test_failed_builds_count_as_used_time():
    """Otherwise every move would repeat them and be late again."""
    layers = LayerSolver(0, ResolvingConfig(move_ms=50), 500, Clock(50, None))
    tree = lookahead_trees.start("python_leduc_poker", 500)
    assert layers.affordable(time.perf_counter() + 0.05)

    called = []

    def fails(tree):
        called.append(tree)
        time.sleep(0.5)

    assert layers.solve(tree, fails, 300, time.perf_counter() + 0.05) is None
    assert not layers.affordable(time.perf_counter() + 0.05)
    # An existing tree is not built again, because there is no time for it.
    assert layers.solve(tree, fails, 300, time.perf_counter() + 0.05) is None
    assert len(called) == 1


def test_cost_estimates_recover_from_background_load():
    layers = LayerSolver(0, ResolvingConfig(move_ms=50), 500, Clock(50, None))
    layers._expanding.add(500, 0.01)
    layers._building.add(500, 0.2)
    refused = 0
    while not layers.affordable(time.perf_counter() + 0.05):
        refused += 1
    # At 0.2 s for 500 histories, 70% of 50 ms must cover 100 histories.
    assert 50 < refused < 500
    layers._building.add(500, 0.2)
    assert not layers.affordable(time.perf_counter() + 0.05)


class SlowValue(HistoryValues):
    """Leaf values that need 20 ms per history; `num_queries` counts the histories."""

    k, num_queries = 1, 0

    def __call__(self, game, histories, player=0, /):
        self.num_queries += len(histories)
        time.sleep(0.02 * len(histories))
        return np.zeros(len(histories))


def test_leaf_values_are_not_computed_without_time_for_them():
    layers = LayerSolver(0, ResolvingConfig(move_ms=50), 500, Clock(50, None))
    for number in range(2):
        leaf = SlowValue()
        tree = lookahead_trees.start("python_leduc_poker", 500, leaf)
        lookahead_trees.by_levels(tree, 100)
        soon = time.perf_counter() + 0.3
        assert layers.solve(tree, lambda tree: None, 100, soon) is None
        assert (leaf.num_queries == 0) == bool(number)
    # At the start of a match there is no time limit, so they are computed.
    assert layers.solve(tree, lambda tree: None, 100, soon, start=True) is None
    assert leaf.num_queries


def test_expanded_histories_do_not_count_as_expansion_cost():
    layers = LayerSolver(0, ResolvingConfig(move_ms=50), 500, Clock(50, None))
    layers._expanding.add(100, 3.0)
    layers._building.add(100, 0.5)
    soon = time.perf_counter() + 5
    # A history costs 0.035 s, but only 0.005 s if it is expanded already.
    assert layers.affordable(soon) == 0
    assert 100 < layers.affordable(soon, 90) < 200


def test_subgames_with_unexpanded_roots_are_not_built():
    layers = LayerSolver(0, ResolvingConfig(iterations=1), 500, Clock(None, 1))
    tree = lookahead_trees.start("python_leduc_poker", 500)
    lookahead_trees.by_levels(tree, 100)
    ends, called = tree.table.id[tree.table.frontier()], []
    assert not tree.is_expanded(ends) and tree.is_expanded(tree.table.id[:1])
    assert layers.solve(tree, called.append, 100, None, roots=ends) is None
    assert not called
    assert layers.solve(tree, called.append, 100, None, roots=ends[:0]) is None
    assert len(called) == 1


def test_forced_moves_are_excluded_from_shapes(monkeypatch):
    needs = []

    def shapes_of(*given):
        needs.append(layout.shapes_of(*given))
        return needs[-1]

    monkeypatch.setattr(layer_solver, "shapes_of", shapes_of)
    layers = LayerSolver(0, ResolvingConfig(iterations=3), 5000, Clock(None, 3))
    tree = lookahead_trees.start("python_ii_goofspiel(num_cards=3)", 5000)
    beliefs = Blueprint(UniformRandomPolicy(tree.game), tree.simulator.source.rules)
    build = functools.partial(
        SolvedLookahead.of, player=0, incumbent=beliefs, walk=100_000
    )
    assert layers.solve(tree, build, 5000, None, start=True).accepted
    for shape in needs[0]:
        assert [len(counts) for counts in shape.levels] == [1, 7]
        assert all((counts > 1).all() for counts in shape.levels)
