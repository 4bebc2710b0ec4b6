"""Tournaments: a one-card game, small ones, checkpoints, and a large one."""

import os
from pathlib import Path

import numpy as np
import pytest

from game_defs.bundled.holdem import strengths
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.push_fold import engine, equities, outer, rules, solve, tournament
from spiel_cr.push_fold.engine import Engine, InnerSettings
from spiel_cr.push_fold.solve import SolveSettings
from tests.push_fold.reference import ex_post_gains, one_card, small_tables

CARDS = 200


def strength(sets):
    return strengths.strengths(strengths.split(sets))


@pytest.mark.parametrize("stack", [4.0, 10.0])
def test_one_card_game_has_the_known_thresholds(stack):
    """Jam above 1 - 3S/(S+1)^2, call above 1 - 3/(2(S+1)); S in big blinds."""
    chips = {(): -0.5, (0, 0): 0.0, (0, 1): stack, (1, 0): -stack}
    won = [
        1.0 if end.jams == (True, False) else chips[end.ranks]
        for end in rules.outcomes(2)
    ]
    uniform = np.full((1, 2, CARDS), 0.5, np.float32)
    worth = np.stack([won, -np.array(won)], axis=-1)[None].astype(np.float32)
    forced, inner = np.zeros((1, 2), bool), InnerSettings(5000, 1)
    hands = Engine(one_card(CARDS))
    jam, call = hands.play(uniform, worth, forced, inner, 0)[0]
    # The tolerance covers one card of the grid, and the error of early steps.
    assert jam.mean() == pytest.approx(3 * stack / (stack + 1) ** 2, abs=2 / CARDS)
    assert call.mean() == pytest.approx(3 / (2 * (stack + 1)), abs=2 / CARDS)
    assert (np.diff(call) >= -0.02).all()


@pytest.fixture(scope="module")
def small_engine():
    return Engine(small_tables(1, 3)[0])


def test_heads_up_solution_has_low_regret_and_is_resumed(small_engine, tmp_path):
    """No player gains by deviating, and a resumed run is bitwise identical."""

    def run(rounds, **more):
        settings = SolveSettings(rounds=rounds, steps=200)
        return solve.solve_tournament(
            [900, 1500], [3, 1], [300, 600], small_engine, settings=settings, **more
        )

    whole = run(6)
    level = whole.levels[0]
    assert whole.unit == 300 and level.stacks[whole.start].tolist() == [3, 5]
    np.testing.assert_allclose(level.values.sum(axis=1), 4)
    assert level.regrets.max() < 2e-3 * 3
    path = tmp_path / "state.npz"
    run(2, checkpoint=path)
    again = run(6, checkpoint=path).levels[0]
    np.testing.assert_array_equal(again.profile, level.profile)
    with pytest.raises(ValueError, match="checkpoint"):
        solve.solve_tournament(
            [900, 900], [3, 1], [300, 600], small_engine, checkpoint=path
        )


def test_threads_give_bitwise_identical_results(monkeypatch):
    """Seven states are solved in three batches, by one thread and by three."""
    monkeypatch.setattr(engine, "_BATCH", 3)
    setting, found = tournament.TournamentSetting(8, 2, (1, 2), (3.0, 1.0)), []
    for workers in (1, 3):
        threads = Engine(small_tables(1, 3)[0], workers)
        game = tournament.TournamentGame(setting, threads)
        profile, values = game.start_profile(), game.start_values()
        profile = game.play(profile, values, InnerSettings(9, 1), 0)
        found.append(profile)
        found += [*game.best_replies(profile, values), game.evaluate(profile)]
    for one, three in zip(found[:4], found[4:], strict=True):
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize(
    ("stacks", "prizes", "blinds", "said"),
    [
        ([1], [1], [1, 2], "stacks"),
        ([1, 0, 1], [1], [1, 2], "stacks=0"),
        ([5, 5], [1, 2], [1, 2], "prizes"),
        ([5, 5], [2, 2], [1, 2], "prizes"),
        ([5, 5], [3, 2, 1], [1, 2], "prizes"),
        ([5, 5], [1], [2, 1], "blinds"),
        ([5, 5], [1], [2], "blinds"),
    ],
)
def test_rejects_invalid_tournaments(stacks, prizes, blinds, said):
    with pytest.raises(ValueError, match=said):
        solve.units_of(stacks, prizes, blinds)


def test_rejects_too_many_states():
    with pytest.raises(GameTooLargeError, match="round stacks"):
        solve.units_of([1001, 1001, 1001], [1], [1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", outer.ALGORITHMS)
def test_three_player_solution_has_low_regret(small_engine, algorithm):
    settings = SolveSettings(algorithm, rounds=20, steps=100)
    found = solve.solve_tournament(
        [3, 3, 3], [50, 30, 20], [1, 2], small_engine, settings=settings
    )
    level = found.levels[0]
    np.testing.assert_allclose(level.values.sum(axis=1), 100)
    # One percent of the first prize: twenty steps of the outer fictitious play.
    assert level.regrets[found.start].max() < 0.5


@pytest.mark.slow
def test_policy_iteration_has_lower_regret_than_value_iteration(small_engine):
    """Both run for equal rounds on 91 states with three classes of hands."""
    gains, rest = {}, None
    for players in (2, 3):
        prizes = (50.0, 30.0, 20.0)[:players]
        setting = tournament.TournamentSetting(15, players, (1, 2), prizes)
        game = tournament.TournamentGame(setting, small_engine, rest)
        for algorithm in ("vi-fp", "pi-fp") if players == 3 else ("pi-fp",):
            for last in outer.rounds(game, algorithm, InnerSettings(40, 20)):
                if last.number == 12:
                    break
            gains[algorithm] = ex_post_gains(game, last.profile, tolerance=1e-3)
        rest = last.values
    assert gains["pi-fp"].max() < gains["vi-fp"].max()
    assert gains["pi-fp"].mean() < gains["vi-fp"].mean()


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("SPIEL_CR_JAM_FOLD_TABLE"), reason="takes most of an hour"
)
def test_regret_of_a_large_tournament_is_small():
    """13,500 chips, blinds 300/600, 946 states: at most 0.1% of the first prize."""
    folder = Path(os.environ["SPIEL_CR_JAM_FOLD_TABLE"])
    table = equities.through(folder, strength, equities.Draws(3, 204_800))
    local = Engine(equities.hand_tables(table))
    found = solve.solve_tournament([4500] * 3, [50, 30, 20], [300, 600], local)
    assert len(found.levels[0].stacks) == 946
    assert found.levels[0].regrets.max() <= 0.001 * 50
