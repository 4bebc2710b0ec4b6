"""Solving phantom games: algorithms, the choice of the form, rejected options."""

import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.opening.opened import open_game
from spiel_cr.solvers.representation import (
    PHANTOM,
    FormRequirements,
    GameOptions,
    choose_form,
)
from spiel_cr.solvers.solve import task_of

SMALL = "dark_hex(num_rows=2,num_cols=3)"


@pytest.mark.parametrize(
    "algorithm", ["lp", pytest.param("pdhg", marks=pytest.mark.slow)]
)
def test_lp_and_pdhg_find_the_value_of_a_phantom_game(algorithm):
    result = spiel_cr.solve(
        SMALL, algorithm, 100, options=spiel_cr.GameOptions(PHANTOM)
    )
    assert result.nash_conv() < 1e-2
    low, high = result.value_bounds()
    assert low <= 1 <= high + 1e-12


def test_dark_hex_is_solved_in_the_phantom_form_and_resumed(tmp_path):
    """OpenSpiel's strings have imperfect recall, so no game tree can be built."""
    goal = spiel_cr.Goal(iterations=60, eval_every=20)
    first = spiel_cr.solve(SMALL, "pcfr+", goal, dtype="float32")
    assert type(first.game_form).__name__ == "PhantomGame" and first.nash_conv() < 1e-3
    assert [point.iterations for point in first.curve] == [20, 40, 60]
    path = tmp_path / "checkpoint.npz"
    for iterations in (15, 60):
        again = spiel_cr.solve(
            SMALL, "pcfr+", iterations, dtype="float32", checkpoint=path
        )
    for ours, theirs in zip(first.average, again.average, strict=True):
        assert ours.dtype == np.float32 and (ours == theirs).all()


def test_default_form_of_large_boards_is_phantom():
    opened = open_game("phantom_ttt")
    assert choose_form(opened, GameOptions(), FormRequirements({})).form == PHANTOM
    for algorithm, form in (("cfr+", PHANTOM), ("os-mccfr", "tree")):
        task = task_of(algorithm, 1)
        assert choose_form(opened, task.options, task.need()).form == form
    with pytest.raises(GameTooLargeError, match="phantom form needs more"):
        spiel_cr.solve(
            "phantom_ttt", options=spiel_cr.GameOptions(memory_limit="450MB")
        )


@pytest.mark.parametrize(
    ("algorithm", "options", "why"),
    [
        ("os-mccfr", {}, "samples histories, which the phantom form"),
        ("public-vr+", {}, "samples public actions"),
        ("cfr+", {"buckets": (None, [0])}, "cannot share regrets in the phantom form"),
        ("cfr+", {"imperfect_recall": True}, "cannot share regrets"),
    ],
)
def test_phantom_form_rejects_unsupported_options(algorithm, options, why):
    options = spiel_cr.GameOptions(PHANTOM, **options)
    with pytest.raises(ValueError, match=why):
        spiel_cr.solve(SMALL, algorithm, 1, options=options)
