"""`tune`: its runs equal `solve`, and its choices equal a slow search."""

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

import spiel_cr
from spiel_cr.solvers import tuning
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import CFRConfig, CustomRule, Rule
from tests.support.commands import outputs, rejection

_GAMES = ("kuhn_poker", "matrix_rps", "liars_dice(numdice=1,dice_sides=2)")


def hedge(regrets, gains, uniform, iteration, *, rate=2.0, name="no number"):
    regrets = regrets + gains
    legal = jnp.where(uniform > 0, rate * regrets / jnp.sqrt(iteration), -jnp.inf)
    return regrets, jnp.exp(legal - legal.max(0)[None])


def faster(regrets, gains, uniform, iteration):
    return hedge(regrets, gains, uniform, iteration, rate=7.0)


def powers(state, gains, uniform, iteration, *, power=1.0):
    return iteration**power


def quadratic(state, gains, uniform, iteration):
    return iteration**2.0


_LEDUC = pytest.param("leduc_poker", marks=pytest.mark.slow)


@pytest.mark.parametrize("game", ["kuhn_poker", _LEDUC])
@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("dcfr", {"alpha": [0.5, 2.0], "beta": [-1.0, 0.5], "gamma": [3.0, 0.0]}),
        ("dcfr", {"exploration": [0.0, 0.01], "alpha": [1.5, 3.0]}),
        ("sapcfr+", {"prediction": [0.3, 1.0], "gamma": [0.0, 4.0]}),
    ],
)
def test_nash_conv_of_settings_equals_solve(algorithm, settings, game):
    """The compiled function runs all settings at once; `solve` runs them one by one."""
    config, values = find(algorithm).config, np.array([*settings.values()]).T
    found = tuning.nash_convs(game, config, [*settings], values, 30)
    for numbers, value in zip(values, found, strict=True):
        text = ",".join(f"{k}={v}" for k, v in zip(settings, numbers, strict=True))
        result = spiel_cr.solve(game, f"{algorithm}({text})", 30)
        assert value == pytest.approx(result.nash_conv(), abs=1e-9)


def test_numbers_of_a_custom_rule_are_tuned():
    config = find(CustomRule(hedge, averaging=powers, raw=True)).config
    ranges = tuning.read_ranges("rate=1..9;power=0..3", config)
    values = np.array([[7.0, 2.0], [2.0, 1.0]])
    found = tuning.nash_convs("kuhn_poker", config, [*ranges], values, 40)
    for value, (rule, weights) in zip(
        found, [(faster, quadratic), (hedge, powers)], strict=True
    ):
        own = CustomRule(rule, averaging=weights, raw=True)
        expected = spiel_cr.solve("kuhn_poker", own, 40).nash_conv()
        assert value == pytest.approx(expected, abs=1e-9)
    assert tuning.draw_settings(config, ranges, 4, 0)[0].tolist() == [2.0, 1.0]
    plain = CFRConfig("mine", Rule(custom=CustomRule(hedge)), gamma=1.0)
    assert [*tuning.read_ranges("gamma=0..2;rate=1..2", plain)] == ["gamma", "rate"]


def test_rejects_a_rule_keyword_named_like_the_exponent():
    def rule(regrets, gains, uniform, iteration, *, gamma=1.0):
        return hedge(regrets, gains, uniform, iteration, rate=gamma)

    config = CFRConfig("mine", Rule(custom=CustomRule(rule)), gamma=1.0)
    with pytest.raises(ValueError, match="keyword gamma.*rename it"):
        tuning.read_ranges("gamma=0..2", config)
    own = find(CustomRule(rule, averaging=powers)).config
    assert [*tuning.read_ranges("gamma=0..2", own)] == ["gamma"]


def test_numbers_that_are_not_tuned_keep_their_defaults():
    config = CFRConfig("mine", Rule(custom=CustomRule(hedge)), gamma=1.0)
    changed = tuning.with_numbers(config, {"gamma": 2.0})
    assert changed.gamma == 2.0
    assert changed.rule.custom.update.keywords == {}


def test_drawn_settings_are_uniform_in_their_ranges():
    config = find("dcfr").config
    ranges = tuning.read_ranges("alpha=0..5;beta=-5..5;gamma=0..10", config)
    settings = tuning.draw_settings(config, ranges, 500, 1)
    assert settings[0].tolist() == [1.5, 0, 2]
    low, high = np.array([*ranges.values()]).T
    assert (settings >= low).all() and (settings <= high).all()
    # Means of 500 uniform numbers within 4 standard errors: one false alarm in 5,000.
    error = 4 * (high - low) / math.sqrt(12 * 500)
    assert (np.abs(settings.mean(axis=0) - (low + high) / 2) < error).all()


def test_cross_validation_equals_a_slow_loop():
    """The loop over games and settings recomputes choices, folds and ranks."""
    random = np.random.default_rng(3)
    found = np.exp(random.normal(size=(7, 11)) * 5)
    found[2, 3] = 0.0
    folds = tuning.cross_validate(found, 5)
    assert sorted(game for fold in folds for game in fold.held_out) == list(range(11))
    for number, fold in enumerate(folds):
        assert all(game % 5 == number for game in fold.held_out)
        others = [game for game in range(11) if game not in fold.held_out]
        scores = [
            math.prod(max(found[k, g], 1e-12) ** (1 / len(others)) for g in others)
            for k in range(7)
        ]
        assert fold.chosen == scores.index(min(scores))
        for game, rank in zip(fold.held_out, fold.ranks, strict=True):
            order = sorted(found[:, game])
            assert rank == 1 + order.index(found[fold.chosen, game])


def test_tune_command_resumes_and_reports_defaults(tmp_path, capsys):
    """The report has the NashConv of the default numbers for comparison."""
    words = ["tune", "--candidates", 8, "--iterations", 50, "--out", tmp_path]
    words += [word for game in _GAMES for word in ("--game", game)]
    found, out, _ = outputs(capsys, *words)
    assert len(found["held_out"]) == 3 and found["settings"] == 8
    own = {row["game"]: row["default_nash_conv"] for row in found["held_out"]}
    for game, value in zip(_GAMES, own.values(), strict=True):
        result = spiel_cr.solve(game, "dcfr", 50)
        assert value == pytest.approx(result.nash_conv(), abs=1e-9)
    lines = (tmp_path / "tune.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [len(record["nash_conv"]) for record in records] == [8, 8, 8]
    again, same, err = outputs(capsys, *words)
    assert again == found and same == out and "compiling" not in err
    one, _, _ = outputs(capsys, "tune", "--game", _GAMES[0], *words[1:7])
    assert one["held_out"] == [] and "geometric_mean" not in one


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--numbers", "alpha=0"], "not a range"),
        (["--numbers", "alpha=3..1"], "not a range"),
        (["--numbers", "alpha=0..1;alpha=0..2"], "not a range"),
        (["--numbers", "rate=0..1"], "no finite number 'rate'"),
        (["--algorithm", "cfr+"], "no finite number 'alpha'; choose among"),
        (["--algorithm", "vad-cfr"], "those of another algorithm"),
        (["--algorithm", "os-mccfr"], "full-width"),
        (["--folds", "1", "--game", "leduc_poker"], "--folds"),
    ],
)
def test_rejects_invalid_options(words, message, capsys):
    words = ["tune", "--game", "kuhn_poker", "--candidates", 2, *words]
    assert message in rejection(capsys, *words)
