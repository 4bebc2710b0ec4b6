"""The contract of all algorithms of the registry, on games in every form they take.

A policy is valid; the same seed gives the same bits; a run that is resumed gives those
of one that was not; the second run compiles nothing; NashConv is under its bound; and
seconds stop a run within a chunk.
"""

import contextlib
from typing import NamedTuple

import jax
import numpy as np
import pytest

import game_defs  # noqa: F401  (registers the games)
import spiel_cr
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.policies.conversions import behaviour_from_policy
from spiel_cr.solvers import algorithms
from spiel_cr.solvers.laying_out import COMPILED, SIGNALS, STEPPED
from tests.support import games

slow = pytest.mark.slow
_SMALL_NETS = "hidden=8,layers=1,traversals=24,steps=12,batch=64"
_SMALL_PLAY = "hidden=8,layers=1,episodes=64"
_SMALL_LEDUC = "python_leduc_poker(num_ranks=2,max_raises=1)"


class Row(NamedTuple):
    """An algorithm, and what it must reach.

    Attributes:
      name: of the registry.
      settings: that make it small.
      iterations: of a run.
      share: of the uniform policy's NashConv, which the average must be below.
    """

    name: str
    settings: str
    iterations: int
    share: float


# About twice what seed 1 reached on Kuhn poker when the test was written.
ROWS = (
    *(
        Row(name, "", 60, 0.05)
        for name in ("cfr+", "dcfr", "pcfr+", "pcfr+30", "pdcfr+", "lcfr")
    ),
    Row("cfr", "", 60, 0.15),
    *(
        Row(name, "batch=64", 60, 0.3)
        for name in ("os-mccfr", "es-mccfr", "as-mccfr", "evr-mccfr")
    ),
    *(Row(name, "batch=64", 60, 0.4) for name in ("vr-mccfr", "vr-mccfr+")),
    Row("egt", "", 60, 0.3),
    Row("iterated-smoothing", "", 200, 0.3),
    Row("pdhg", "", 200, 0.3),
    *(Row(name, "", 2000, 0.4) for name in ("public-vr", "public-vr+", "public-es")),
    Row("lp", "", 1, 1e-8),
    *(
        Row(name, _SMALL_NETS, 4, 0.95)
        for name in algorithms.ALGORITHMS
        if algorithms.ALGORITHMS[name] is algorithms.DEEP
    ),
    *(Row(name, _SMALL_PLAY, 4, 1.0) for name in ("mmd", "ppo")),
)
# One of each family, in the suite that is run often.
_QUICK = {
    ("cfr+", COMPILED),
    ("cfr+", SIGNALS),
    ("os-mccfr", COMPILED),
    ("os-mccfr", STEPPED),
    ("egt", COMPILED),
    ("public-vr+", SIGNALS),
    ("lp", COMPILED),
    ("sd-cfr", COMPILED),
    ("mmd", COMPILED),
}


def cases():
    """Every algorithm in every form that its family and its settings take."""
    for row in ROWS:
        text = f"{row.name}({row.settings})" if row.settings else row.name
        for form in (COMPILED, SIGNALS, STEPPED):
            task = algorithms.Task(algorithms.find(text))
            if form in task.need().refused:
                continue
            marks = () if (row.name, form) in _QUICK else (slow,)
            name = f"{row.name}-{form}"
            yield pytest.param(row, text, form, id=name, marks=marks)


def test_all_algorithms_of_the_registry_are_listed():
    assert sorted(row.name for row in ROWS) == sorted(algorithms.ALGORITHMS)


@contextlib.contextmanager
def counting():
    """What JAX compiles in the block, one entry a program."""
    events = []

    def tell(event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            events.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(tell)
    try:
        yield events
    finally:
        jax.monitoring.unregister_event_duration_listener(tell)


def played(tree, policy):
    """Action probabilities at all infosets; OpenSpiel's policies checked on the way."""
    for own in tree.infosets:
        for history in own.history.tolist():
            state = tree.state_at(history)
            found = policy.action_probabilities(state)
            assert set(found) <= set(state.legal_actions())
            probabilities = np.array(list(found.values()))
            assert (probabilities >= 0).all()
            assert probabilities.sum() == pytest.approx(1, abs=1e-6)
    return behaviour_from_policy(tree, policy)


@pytest.mark.parametrize(("row", "text", "form"), list(cases()))
def test_contract(tmp_path, row, text, form):
    name = _SMALL_LEDUC if form == SIGNALS else "kuhn_poker"
    tree = spiel_cr.compile_game(name)
    layout = spiel_cr.Layout(form, memory_limit="3GB")

    def solve(goal, **more):
        return spiel_cr.solve(name, text, goal, layout=layout, seed=1, **more)

    expected = solve(row.iterations)
    with counting() as compiled:
        result = solve(row.iterations)
    assert not compiled
    behaviour = played(tree, result.average_policy())
    for one, other in zip(
        behaviour, played(tree, expected.average_policy()), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    # What a strategy of all alike loses, by our best response.
    alike = [1 / np.repeat(own.num_actions, own.num_actions) for own in _sides(tree)]
    uniform = _nash_conv(tree, [np.append(1, own) for own in alike])
    assert _nash_conv(tree, behaviour) < row.share * uniform
    if result.form is not None:
        assert result.nash_conv() < row.share * uniform
    if not algorithms.ALGORITHMS[row.name].iterates:
        return
    path = tmp_path / "state.npz"
    for iterations in (max(1, row.iterations // 2), row.iterations):
        resumed = solve(iterations, checkpoint=path)
    for one, other in zip(
        behaviour, played(tree, resumed.average_policy()), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    # The first chunk is one iteration, whatever the algorithm.
    assert solve(spiel_cr.Goal(seconds=1e-9)).iterations == 1


def _sides(tree):
    return [own.decisions for own in tree.infosets]


def _nash_conv(tree, behaviour):
    return nash_conv(tree.form, reach_of(tree.form, behaviour))


def test_the_catalogue_has_what_uniform_play_loses():
    """The scale of the bounds, by OpenSpiel's tool."""
    tree = games.compiled("kuhn")
    alike = [1 / np.repeat(own.num_actions, own.num_actions) for own in _sides(tree)]
    found = _nash_conv(tree, [np.append(1, own) for own in alike])
    assert found == pytest.approx(games.BY_NAME["kuhn"].uniform, abs=1e-6)
