"""`spiel-cr solve` without a game tree, and commands that use its saved policies."""

import re

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.player_specs import prepare
from spiel_cr.players.player_strings import read_string
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.policies.queries import query
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy
from tests.support import games
from tests.support.commands import outputs, rejection, report, run
from tests.support.named_opponents import load_opponent
from tests.support.solving import solve_with

SAMPLE = (
    *("--algorithm", "os-mccfr(batch=64,incremental=false)"),
    *("--iterations", "3"),
)
LIMIT = ("--memory-limit", "3GB")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save a policy of Kuhn poker that was sampled without a game tree."""
    path = tmp_path_factory.mktemp("policy") / "kuhn.npz"
    result = solve_with(
        "kuhn_poker", "os-mccfr(batch=64)", 3, form="simulator", memory_limit="3GB"
    )
    result.save(path)
    return path


def test_solve_simulated_reports_form_and_table_size(
    tmp_path, capsys, nothing_is_compiled
):
    path = tmp_path / "policy.npz"
    words = ("solve", "--game", "phantom_ttt", *SAMPLE, *LIMIT, "--form", "simulator")
    found = report(capsys, *words, "--save", path, "--seed", "4")
    assert found["form"] == "simulator" and found["keys"] == "rules"
    assert found["trajectories"] == 2 * 3 * 64 and not found["full"]
    assert 0 < found["known_share"] < 1
    assert found["table_bytes"] < found["table_limit"] < 2.7e9
    policy = spiel_cr.load_policy(path)
    assert len(policy.strategy) == found["infosets"] > 300
    plain = report(capsys, *words, "--no-batched-rules")
    assert plain["keys"] == "strings"


def test_too_large_games_are_simulated_if_the_algorithm_samples(capsys):
    words = ("solve", "--game", "phantom_ttt", *LIMIT)
    found, _, err = outputs(capsys, *words, *SAMPLE)
    assert found["form"] == "simulator"
    (said,) = (line for line in err.splitlines() if "--form simulator" in line)
    assert "phantom_ttt() has about" in said
    # A low limit, because worlds are enumerated until the limit is reached.
    exact = ("--algorithm", "cfr+", "--memory-limit", "500MB")
    for more in (exact, (*SAMPLE, "--until", "1")):
        said = rejection(capsys, *words, *more)
        assert "an algorithm that samples (os-mccfr" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--algorithm", "evr-mccfr"), "explore=balanced requires a game tree"),
        ((*SAMPLE, "--dtype", "float32"), "dtype='float32' needs .*; leave it out"),
    ],
)
def test_error_explains_why_a_too_large_game_cannot_be_simulated(capsys, words, why):
    said = rejection(capsys, "solve", "--game", "phantom_ttt", *LIMIT, *words)
    assert re.search(f"cannot be simulated: .*{why}", said)


def test_checkpoint_determines_the_form(tmp_path, capsys):
    """The form does not depend on the memory that is free when the run resumes."""
    words = ("solve", "--game", "kuhn_poker", *SAMPLE, *LIMIT, "--checkpoint")
    for number, how in enumerate(("simulator", "tree")):
        path = tmp_path / f"{number}.npz"
        report(capsys, *words, path, "--form", how)
        other = {"simulator": "tree", "tree": "simulator"}[how]
        found = report(capsys, *words, path)
        assert found["form"] == how and found["iterations"] == 3
        said = rejection(capsys, *words, path, "--form", other)
        assert "the checkpoint" in said and f"--form {other}) out" in said
    said = rejection(capsys, *words, tmp_path / "0.npz", "--until", "1")
    assert "0.npz has this form: until" in said


def test_checkpoint_of_a_game_tree_is_not_simulated(tmp_path, capsys):
    words = ("solve", "--game", "kuhn_poker", *SAMPLE, "--checkpoint", tmp_path / "c")
    report(capsys, *words)
    said = rejection(capsys, *words, "--memory-limit", "1MB")
    assert "c is of a game tree" in said


def test_tree_is_built_if_it_fits_in_memory(capsys):
    words = ("solve", "--game", "kuhn_poker", "--iterations", "3", *LIMIT)
    found = report(capsys, *words)
    assert found["form"] == "tree" and found["nash_conv"] > 0


def test_policy_bot_plays_the_saved_policy(saved, nothing_is_compiled):
    text = f"policy(path={saved})"
    assert not read_string(text).needs_tree
    game = prepare("kuhn_poker", [text, "uniform"])
    assert isinstance(game, pyspiel.Game)
    bot = spiel_cr.load_bot(game, text, 0)
    assert isinstance(bot, PolicyBot)
    state = game.new_initial_state()
    for card in (0, 1):
        state.apply_action(card)
    policy = spiel_cr.load_policy(saved)
    assert dict(bot.get_policy(state)) == policy.action_probabilities(state)


def test_opponent_is_loaded_from_the_saved_policy(saved, nothing_is_compiled):
    opponent = load_opponent(str(saved), "kuhn_poker")
    assert isinstance(opponent, TablePolicy)
    with pytest.raises(ValueError, match="a policy of kuhn_poker"):
        load_opponent(str(saved), "leduc_poker")


def test_best_response_to_a_sampled_policy_is_exact(saved, capsys):
    words = ("best-response", "--game", "kuhn_poker", "--policy", saved)
    found = report(capsys, *words, "--method", "exact")
    tree = games.compiled("kuhn")
    behaviour = query(tree, spiel_cr.load_policy(saved, tree))
    expected = nash_conv(tree.sequence_form, reach_of(tree.sequence_form, behaviour))
    assert found["value"] == pytest.approx(expected, abs=1e-9) and expected > 0.1
    assert found["unvisited_share"] == 0


def test_share_of_unvisited_infosets_is_reported(tmp_path, capsys):
    path = tmp_path / "policy.npz"
    words = ("--algorithm", "os-mccfr(batch=1)", "--iterations", "2", *LIMIT)
    game = ("--game", "leduc_poker")
    run("solve", *game, *words, "--form", "simulator", "--save", path)
    capsys.readouterr()
    bots = ("--bots", f"policy(path={path});uniform", "--matches", "4")
    # The second time, all matches are read from the folder.
    for _ in range(2):
        out = ("--out", tmp_path / "out")
        found, out, _ = outputs(capsys, "tournament", *game, *bots, *out)
        share, none = found["unvisited_share"]
        assert none is None and 0.3 < share <= 1
        assert f"never visited: {share:.1%} of" in out
    words = ("--policy", path, "--method", "lbr", "--states", "--matches", "2")
    found, out, _ = outputs(capsys, "best-response", *game, *words, "--rollouts", "1")
    share = found["unvisited_share"]
    assert 0.3 < share <= 1 and f"never visited: {share:.1%} of" in out


def test_show_lists_a_sampled_policy(saved, capsys):
    found = report(capsys, "show", "--game", "kuhn_poker", "--policy", saved)
    assert len(found["infosets"]) == 12
    played = [a["probability"] for a in found["infosets"][0]["actions"]]
    assert sum(played) == pytest.approx(1) and np.ptp(played) > 0.02


@pytest.mark.slow
def test_sampled_policy_beats_uniform_in_a_tournament(tmp_path, capsys):
    path = tmp_path / "policy.npz"
    words = ("solve", "--game", "phantom_ttt", *SAMPLE[:3], "150", *LIMIT)
    run(*words, "--save", path, "--form", "simulator")
    bots = f"policy(path={path});uniform"
    words = ("tournament", "--game", "phantom_ttt", "--bots", bots, "--matches", "100")
    found = report(capsys, *words, "--out", tmp_path / "out")
    # Measured +0.35, with a half width of 0.15.
    assert found["mean"][0][1] > 0


@pytest.mark.slow
def test_evaluation_by_matches_visits_the_whole_policy(saved, capsys):
    words = ("evaluate", "--game", "kuhn_poker", "--method", "matches")
    words += ("--matches", "200", "--bot", f"policy(path={saved})")
    found = report(capsys, *words)
    assert found["infosets_visited"] == 12
    tree = games.compiled("kuhn")
    behaviour = query(tree, spiel_cr.load_policy(saved, tree))
    expected = nash_conv(tree.sequence_form, reach_of(tree.sequence_form, behaviour))
    assert found["nash_conv"] == pytest.approx(expected, abs=1e-6)
