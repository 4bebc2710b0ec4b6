"""Training of value networks: labels, ranges, resuming, and that it learns."""

import contextlib
import dataclasses
import functools
import itertools
import json
import types

import numpy as np
import pytest

from spiel_cr.common import storage
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.tree import compiler
from spiel_cr.resolving.continual import resolve
from spiel_cr.resolving.leaves import ExactValues
from spiel_cr.resolving.leaves.network_values import load_network
from spiel_cr.resolving.leaves.training import (
    TrainingConfig,
    fitting,
    train_values,
    training,
)
from spiel_cr.resolving.leaves.training.data import label, other_reach
from spiel_cr.resolving.leaves.training.met_ranges import MeetSettings, meet
from spiel_cr.resolving.leaves.training.random_ranges import random_ranges
from spiel_cr.resolving.leaves.training.targets import TargetSolver
from spiel_cr.resolving.leaves.training.training_config import PRESETS
from spiel_cr.resolving.leaves.training.training_cuts import find_cuts
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.algorithms import find
from tests.support.forests import values_of

pytest.importorskip("optax")

SMALL = TrainingConfig(
    hidden=8,
    blocks=1,
    random_ranges=24,
    met_ranges=16,
    rounds=1,
    label_iterations=30,
    met_iterations=20,
    looks=5,
    steps=60,
    batch=4,
)


# As those that were chosen for goofspiel.
MUON = dataclasses.replace(SMALL, pairs=4, recency=1.0, matrix_rate=0.01)


@functools.cache
def cuts_of(game, depth):
    return find_cuts(compiler.compile_game(game, observations=True), depth, "moves")


@pytest.mark.parametrize(
    "algorithm", ["cfr+", pytest.param("pcfr+", marks=pytest.mark.slow)]
)
def test_labels_are_exact_values(algorithm):
    """Many ranges at once give what the reference gives for each."""
    cuts = cuts_of("kuhn_poker", 1)
    states = cuts.parts[0]
    ranges = random_ranges(cuts.tree, states, 3, np.random.default_rng(0), pure=0.3)
    solver = TargetSolver(
        *(cuts.tree, states, 25, find(algorithm).config), dtype=np.float64
    )
    ours = solver.solve(ranges)
    below = ExactValues(25, algorithm).lay_out(cuts.tree, states)
    for row in range(3):
        theirs = values_of(below, (ranges[0][row], ranges[1][row]))
        for p in range(2):
            # The reference weighs payoffs, not reach: rounding differs.
            assert ours[p][row] == pytest.approx(theirs[p], abs=1e-9)
    assert np.abs(ours[0]).max() > 0.1


@pytest.mark.slow  # compiles for seconds
def test_targets_are_zero_sum_and_relative_to_what_chance_and_the_other_give():
    cuts = cuts_of("liars_dice(numdice=1,dice_sides=2)", 2)
    states = cuts.parts[0]
    random = np.random.default_rng(1)
    ranges = random_ranges(cuts.tree, states, 5, random, pure=0.1)
    ranges[0][4] = 0
    solver = TargetSolver(cuts.tree, states, 400, find("cfr+").config)
    samples = label(solver, ranges, 1.0)
    for both in samples:
        assert all(np.isfinite(own).all() for own in both)
    total = np.zeros(5)
    for p in range(2):
        reach = other_reach(states, p, ranges[1 - p])
        total += (ranges[p] * reach * samples.targets[p]).sum(axis=1)
        assert np.abs(samples.targets[p]).max() <= 1 + 1e-3
        assert ((samples.weights[p] > 0) == (reach > 0)).all()
    # Means of a solve that has not quite ended.
    assert np.abs(total).max() < 5e-3


def test_random_ranges_are_distributions_of_all_kinds():
    cuts = cuts_of("liars_dice(numdice=1,dice_sides=2)", 2)
    states = cuts.parts[0]
    random = np.random.default_rng(2)
    for own, state in zip(
        random_ranges(cuts.tree, states, 200, random, pure=0.1),
        states.state,
        strict=True,
    ):
        sums = np.stack([np.bincount(state, row) for row in own])
        assert sums == pytest.approx(1)
        assert (own >= 0).all() and (own == 0).any() and (own == 1).any()


@pytest.mark.slow  # compiles for seconds
def test_each_game_below_is_met_once_and_every_cut_has_a_twin():
    cuts = cuts_of("liars_dice(numdice=1,dice_sides=3)", 2)
    found = meet(
        cuts,
        ExactValues(20),
        MeetSettings(
            iterations=10,
            looks=10,
            config=find("cfr+").config,
            random=np.random.default_rng(0),
            held_out=0.3,
            held_random=np.random.default_rng(1),
        ),
    )
    assert sum(map(len, cuts.parts)) < sum(map(len, cuts.twins)) / 2
    for pools, states in zip(found.pools, cuts.parts, strict=True):
        for k, pool in enumerate(pools):
            for p in range(2):
                assert pool[p], "every state is met by one of its twins"
                width = np.diff(states.bounds(p))[k]
                assert all(len(own) == width for own in pool[p])
                assert np.sum(pool[p], axis=1) == pytest.approx(1)
    # Of each solve some iterations only validate.
    held = {
        own.tobytes() for part in found.held_out for pool in part for own in pool[0]
    }
    kept = {own.tobytes() for part in found.pools for pool in part for own in pool[0]}
    assert kept and held - kept
    assert 0 < found.nash_conv < 1


@pytest.mark.slow  # programs are compiled three times
@pytest.mark.parametrize("config", [SMALL, MUON])
def test_training_learns_resumes_and_repeats(config, tmp_path, monkeypatch):
    whole = train_values("kuhn_poker", 1, tmp_path / "whole.npz", config=config)
    assert whole.finished
    start, end = whole.curve[0], whole.curve[-1]
    assert start.nash_conv is not None and end.nash_conv is not None
    if config.matrix_rate:  # which has learned by the first look, of 0.92
        assert max(start.nash_conv, end.nash_conv) < 0.05
    else:
        assert end.nash_conv < start.nash_conv / 2
    lines = (tmp_path / "whole.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [60, 120]

    # Interrupted again and again, also while data are gathered, and gone on with. The
    # clock goes on by a second whenever it is looked at.
    state, ticks = tmp_path / "state.npz", itertools.count()
    arguments = {"config": config, "checkpoint": state}
    clock = types.SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    monkeypatch.setattr(training, "time", clock)
    done = []
    for looks in (1, 4, 5, 20, 21, 40, 80, 160):
        part = train_values(
            *("kuhn_poker", 1, tmp_path / "part.npz"), minutes=looks / 60, **arguments
        )
        done.append(part.finished)
        # The first time is over in the midst of the first data: none are kept by half.
        if looks == 1:
            assert storage.load_metadata(state)["blocks"] == 0
        if part.finished:
            break
    assert done[-1] and len(done) > 3
    for name, own in whole.network.parameters.items():
        assert np.array_equal(own, part.network.parameters[name]), name
    losses = [[point.validation_loss for point in r.curve] for r in (whole, part)]
    assert losses[0] == losses[1]

    network = load_network(tmp_path / "whole.npz")
    resolved = resolve(
        "kuhn_poker",
        ResolvingConfig(iterations=config.met_iterations, depth=1, leaf=network),
    )
    assert resolved.nash_conv() == pytest.approx(end.nash_conv, abs=1e-9)

    other = dataclasses.replace(config, seed=1)
    with pytest.raises(ValueError, match="config.*give another path"):
        train_values(
            "kuhn_poker", 1, tmp_path / "x.npz", config=other, checkpoint=state
        )
    state.write_bytes(b"some text")
    with pytest.raises(ValueError, match="^checkpoint /.*delete it to start anew"):
        train_values("kuhn_poker", 1, tmp_path / "x.npz", checkpoint=state)


def interrupting(called, count, *, before):
    """A function that is interrupted at one of its calls, before or after it."""
    calls = itertools.count(1)

    def interrupted(*args, **kwargs):
        last = next(calls) == count
        if last and before:
            raise KeyboardInterrupt
        found = called(*args, **kwargs)
        if last:
            raise KeyboardInterrupt
        return found

    return interrupted


def test_an_interruption_anywhere_leaves_a_state_that_goes_on(tmp_path, monkeypatch):
    """Before or after any part of a phase, in each phase; results are the same bits."""
    small = {"random_ranges": 6, "met_ranges": 4, "label_iterations": 4, "steps": 4}
    config = dataclasses.replace(SMALL, met_iterations=4, looks=2, **small)
    whole = train_values("kuhn_poker", 1, tmp_path / "whole.npz", config=config)
    places = [(fitting, "advance"), (training, "label")]
    places += [(training._Training, name) for name in ("_losses", "_meet")]
    for owner, name in places:
        called, state = getattr(owner, name), tmp_path / name
        arguments = {"config": config, "checkpoint": state}
        for count, before in itertools.product((1, 2), (True, False)):
            with monkeypatch.context() as patched:
                interrupted = interrupting(called, count, before=before)
                patched.setattr(owner, name, interrupted)
                with contextlib.suppress(KeyboardInterrupt):
                    train_values("kuhn_poker", 1, tmp_path / "part.npz", **arguments)
        part = train_values("kuhn_poker", 1, tmp_path / "part.npz", **arguments)
        for key, array in whole.network.parameters.items():
            np.testing.assert_array_equal(array, part.network.parameters[key])
        assert [point._replace(seconds=0) for point in part.curve] == [
            point._replace(seconds=0) for point in whole.curve
        ]


@pytest.mark.slow  # compiles for seconds
@pytest.mark.parametrize("matrix_rate", [0.0, 0.01])
def test_training_lowers_the_validation_loss(tmp_path, matrix_rate):
    config = dataclasses.replace(SMALL, rounds=0, steps=400, matrix_rate=matrix_rate)
    result = train_values("kuhn_poker", 1, tmp_path / "out.npz", config=config)
    start, end = result.curve
    assert (start.step, end.step) == (200, 400)
    assert end.validation_loss < 0.9 * start.validation_loss


@pytest.mark.slow  # compiles for seconds
def test_each_kind_of_parameter_has_its_own_rate():
    """Muon moves a matrix by orthogonal steps, Adam each bias by its rate."""
    rates = {"learning_rate": 1e-3, "matrix_rate": 1e-2}
    optimiser = fitting._optimiser(TrainingConfig(**rates, steps=1000, rounds=0))
    matrix = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
    parameters = {"matrix": matrix, "bias": np.ones(6, np.float32)}
    moved, _ = optimiser.update(parameters, optimiser.init(parameters), parameters)
    assert np.asarray(moved["bias"]) == pytest.approx(-1e-3, rel=1e-2)
    sizes = np.linalg.svd(moved["matrix"], compute_uv=False)
    # Three Newton-Schulz steps bring singular values near 1, small ones not quite.
    assert (sizes < 1.3e-2).all() and (sizes > 1e-3).all()
    assert sizes.max() / sizes.min() < np.linalg.cond(matrix) / 2


def test_settings_are_read_from_strings():
    ours = read_settings("leduc(hidden=8,label_algorithm=pcfr+,seed=3)", PRESETS)
    fields = {"hidden": 8, "label_algorithm": "pcfr+", "seed": 3}
    assert ours == dataclasses.replace(PRESETS["leduc"], **fields)
    assert read_settings(ours, PRESETS) is ours
    for text, match in (
        ("poker", "no preset 'poker'; choose one of general, leduc"),
        ("leduc(units=8)", "unknown parameter 'units'"),
        ("leduc(steps=0)", "steps=0 must"),
    ):
        with pytest.raises(ValueError, match=match):
            read_settings(text, PRESETS, kind="preset")


def test_without_time_the_network_is_as_it_began(tmp_path):
    result = train_values(
        "kuhn_poker", 1, tmp_path / "out.npz", config=SMALL, minutes=1e-9
    )
    assert not result.finished and not result.curve
    assert load_network(tmp_path / "out.npz").cut == "1 moves"


@pytest.mark.parametrize(
    ("setting", "match"),
    [
        ({"hidden": 0}, "hidden=0 must be"),
        ({"pure": 1.5}, "pure=1.5 must"),
        ({"label_algorithm": "os-mccfr"}, "os-mccfr"),
        ({"rounds": -1}, "rounds=-1 must"),
        ({"matrix_rate": -1}, "matrix_rate=-1 must"),
        ({"held_out": 0}, "held_out=0 must"),
    ],
)
def test_bad_settings_are_refused(setting, match):
    with pytest.raises(ValueError, match=match):
        TrainingConfig(**setting)


def test_bad_arguments_are_refused_before_any_work(tmp_path):
    out = tmp_path / "out.npz"
    with pytest.raises(ValueError, match="depth=0"):
        train_values("no game", 0, out)
    with pytest.raises(ValueError, match="depth_unit='plies'"):
        train_values("no game", 1, out, depth_unit="plies")
    with pytest.raises(ValueError, match="minutes=0"):
        train_values("no game", 1, out, minutes=0)
    for name, other in (("out", out), ("curve", tmp_path / "." / "out.jsonl")):
        with pytest.raises(ValueError, match=f"{name} and checkpoint both name"):
            train_values("no game", 1, out, checkpoint=other)
    with pytest.raises(ValueError, match="take a smaller depth"):
        train_values("kuhn_poker", 50, out)
    assert not out.exists()
