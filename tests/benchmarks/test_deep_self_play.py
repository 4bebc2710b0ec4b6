"""The benchmark of self-play, and strategies of networks in the form of signals."""

import numpy as np
import pytest

import game_defs  # noqa: F401  (registers the games)
from benchmarks.deep import self_play, signal_judging
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.deep.infosets import CompiledKnowledge, Seen
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.signals.loading import signal_game
from tests.support.benchmark_pages import run_on_page


@pytest.mark.slow
def test_a_row_for_each_run_and_a_line_for_each_algorithm(tmp_path):
    command = ["--games", "kuhn", "phantom ttt", "--seeds", "1", "--decisions", "2000"]
    settings = "(hidden=4,episodes=64,epochs=1)"
    rows, text = run_on_page(
        self_play.BENCHMARK,
        tmp_path,
        [*command, "--algorithms", f"ppo{settings}", f"mmd{settings}"],
    )
    assert [row["name"] for row in rows] == 2 * ["kuhn"] + 2 * ["phantom ttt"]
    for row in rows:
        assert 2000 <= row["decisions"] < 4000
        assert row["settings"]["schedule"] == 2000 and row["gflops"] > 0
    assert 0 < rows[0]["nash_conv"] < 1.2 and rows[2]["nash_conv"] is None
    assert len(rows[0]["curve"]) == 10 and text.count("`ppo(") == 2


@pytest.mark.slow
@pytest.mark.parametrize("dice", [(1, 4), (2, 2)])
def test_strategies_are_the_same_in_the_form_of_signals(dice):
    """Judged on the compiled game, which lists the same infosets one by one."""
    game = "liars_dice(numdice={},dice_sides={})".format(*dice)
    signals = signal_game(game)
    random = np.random.default_rng(1)
    size = signals.game.information_state_tensor_size()
    weights = random.normal(size=(2, size, signals.game.num_distinct_actions()))

    def strategy(player, seen):
        odds = np.exp(seen.rows.astype(float) @ weights[player]) * seen.legal
        return odds / odds.sum(axis=1, keepdims=True)

    found = signal_judging.nash_conv(game, strategy)
    tree = compile_game(game)
    known, reach = CompiledKnowledge(tree), []
    for player, own in enumerate(tree.form.decisions):
        seen = np.asarray(known.table(player))
        played = strategy(player, Seen(seen, known.legal[player]))
        played = known.behaviour(player, played)
        reach.append(reach_from_behaviour(own, played))
    wanted = best_responses.nash_conv(tree.form, tuple(reach))
    # Probabilities are kept in float32.
    assert found == pytest.approx(wanted, abs=1e-6) and wanted > 1


def test_games_of_several_deals_are_refused():
    game = "python_rhode_island_holdem(num_ranks=3,num_suits=2)"
    with pytest.raises(ValueError, match="one round of signals"):
        signal_judging.behaviour_of(signal_game(game), lambda _, seen: seen.legal)
