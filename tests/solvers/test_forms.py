"""Solving in the public-tree form: results, the choice of the form, policy files."""

import dataclasses

import numpy as np
import pytest

import spiel_cr
from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.common import storage
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree import public_tree_game
from spiel_cr.policies.behaviour_files import save_behaviours
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.solvers import representation
from spiel_cr.solvers.solve import task_of
from tests.support import games
from tests.support.kuhn_public_tree import kuhn
from tests.support.solving import solve_with

SUITS = "python_leduc_poker(num_ranks=2,max_raises=1)"
TINY = "python_rhode_island_holdem(num_ranks=2,num_suits=2,max_bets=1)"


@pytest.mark.parametrize("algorithm", ["cfr+", "lp"])
def test_public_tree_values_equal_those_of_the_game_tree(algorithm):
    public_tree = spiel_cr.solve(kuhn(), algorithm, 100)
    compiled = spiel_cr.solve("kuhn_poker", algorithm, 100)
    assert public_tree.game_form is kuhn() and public_tree.tree is None
    assert compiled.tree is not None and compiled.game_form is compiled.tree
    # Both forms compute the same sums, in another order.
    assert public_tree.value_bounds() == pytest.approx(
        compiled.value_bounds(), abs=1e-9
    )


def test_until_stops_the_run_and_curve_ends_with_the_result():
    result = spiel_cr.solve(kuhn(), "pcfr+", spiel_cr.Goal(until=1e-3), dtype="float32")
    assert result.curve[-1].nash_conv == pytest.approx(result.nash_conv(), abs=1e-6)
    assert result.curve[-1].iterations == result.iterations
    assert result.nash_conv() <= 1e-3


def choose(game, form="auto", algorithm="cfr+", **options):
    checkpoint = options.pop("checkpoint_path", None)
    options = spiel_cr.GameOptions(form, **options)
    task = task_of(algorithm, options=options, checkpoint=checkpoint)
    if isinstance(game, str):
        game = open_game(game)
    return representation.choose_form(game, options, task.need())


def test_auto_form_is_public_tree_if_declared_and_the_tree_is_large():
    large = choose("python_rhode_island_holdem")
    assert large.form == "public-tree" and "histories" in large.text
    assert choose(TINY).form == "tree" and "histories" in choose(TINY).text
    assert choose(TINY, memory_limit=400_100_000).form == "public-tree"
    # These options need histories, or something that the game does not declare.
    for options in (
        {"algorithm": "os-mccfr"},
        {"algorithm": "lp"},
        {"imperfect_recall": True},
        {"batched_rules": False},
        {"buckets": ({}, None)},
    ):
        found = choose("python_rhode_island_holdem", **options)
        assert found.form == "tree" and not found.text
    assert choose("liars_dice").form == "tree"
    assert choose(games.compiled("kuhn")).form == "tree"
    assert choose(kuhn()).form == "public-tree"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"algorithm": "os-mccfr"}, "algorithm='os-mccfr' samples histories"),
        ({"imperfect_recall": True}, "imperfect_recall=True needs the game tree"),
        ({"buckets": (None, {"0": 1})}, r"buckets\[1\] by string needs"),
        ({"form": "tree"}, "is a `PublicTreeGame` already"),
        ({"form": "tabular"}, "form='tabular'"),
        ({"buckets": ([0, 1], None)}, r"integers \[6\], one for each infoset"),
        ({"buckets": (range(6), range(6), None)}, "3 entries"),
    ],
)
def test_public_tree_form_rejects_unsupported_options(options, named):
    with pytest.raises(ValueError, match=named):
        solve_with(kuhn(), **options)


def test_memory_error_suggests_the_public_tree_form_if_declared():
    large = "python_rhode_island_holdem"
    options = spiel_cr.GameOptions(form="tree", memory_limit="500MB")
    for run in (spiel_cr.solve, spiel_cr.resolve):
        with pytest.raises(
            GameTooLargeError, match="form='public-tree', --form public-tree"
        ):
            run(large, "cfr+", 1, options=options)
    with pytest.raises(GameTooLargeError) as refused:
        spiel_cr.solve(
            "phantom_ttt", goal=1, options=spiel_cr.GameOptions(memory_limit="500MB")
        )
    assert "public-tree" not in str(refused.value)


def test_rejects_the_public_tree_form_if_it_is_not_declared():
    with pytest.raises(ValueError, match="does not declare private states"):
        spiel_cr.solve(
            "python_rock_paper_scissors", options=spiel_cr.GameOptions("public-tree")
        )


def test_memory_limit_is_checked_before_the_sequence_form_is_built(monkeypatch):
    # The game is built first, because the memory that other tests left in the process
    # counts too and would make the building fail.
    game = public_tree_game(TINY)
    monkeypatch.setattr(type(game), "sequence_form", None)
    with pytest.raises(GameTooLargeError, match="solving python_rhode_island_holdem"):
        spiel_cr.solve(game, options=spiel_cr.GameOptions(memory_limit="370MB"))


def test_loads_policies_of_games_with_unmerged_private_states(tmp_path):
    """Before the public card is dealt, the two ranks are equivalent."""
    path, game = tmp_path / "policy.npz", public_tree_game(SUITS)
    behaviours = [uniform_behaviour(own) for own in game.sequence_form.decisions]
    save_behaviours(path, game, behaviours, {})
    assert merged(game).num_private_states(0) != game.num_private_states(0)
    found = spiel_cr.load_policy(path, SUITS)
    assert found.form.num_private_states(0) == game.num_private_states(0)
    # A user's game with other stakes has the same policies.
    stakes = game.terms._replace(stake=2 * game.terms.stake)
    changed = dataclasses.replace(game, terms=stakes)
    save_behaviours(path, changed, behaviours, {})
    again = spiel_cr.load_policy(path, SUITS)
    assert again.form.game_id == game.game_id != changed.game_id
    assert spiel_cr.load_policy(path, changed).form is changed


def test_buckets_as_numbers_equal_buckets_as_mappings():
    """Player 0 of Kuhn poker does not distinguish its cards, in both forms."""
    tree = games.compiled("kuhn")
    blind = {key: key[1:] for key in tree.infosets[0].keys}
    expected = solve_with(tree, "cfr+", 50, buckets=(blind, None))
    found = solve_with(kuhn(), "cfr+", 50, buckets=([0] * 3 + [1] * 3, None))
    bounds = pytest.approx(expected.value_bounds(), abs=1e-9)
    assert found.value_bounds() == bounds
    assert found.nash_conv() > 0.1


def test_resumed_run_is_bitwise_identical(tmp_path):
    path = tmp_path / "checkpoint.npz"
    options = {"form": "public-tree", "dtype": "float32", "until": 1e-9}
    whole = solve_with(TINY, "dcfr", 40, **options)
    solve_with(TINY, "dcfr", 17, checkpoint_path=path, **options)
    # If no form is given, the run resumes in the form of the checkpoint.
    del options["form"]
    assert choose(TINY, checkpoint_path=path).form == "public-tree"
    again = solve_with(TINY, "dcfr", 40, checkpoint_path=path, **options)
    for name in ("average", "current"):
        for one, other in zip(getattr(whole, name), getattr(again, name), strict=True):
            assert (one == other).all()
    with pytest.raises(ValueError, match="form 'public-tree', and this run has 'tree'"):
        solve_with(TINY, "dcfr", 40, form="tree", checkpoint=path)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_saved_public_tree_policies_can_be_loaded(tmp_path, dtype):
    path = tmp_path / "policy.npz"
    result = solve_with(TINY, "cfr+", 20, form="public-tree", dtype=dtype)
    result.save(path)
    metadata = storage.load_metadata(path)
    assert metadata["kind"] == "public-tree policy" and metadata["iterations"] == 20
    assert metadata["nash_conv"] == result.nash_conv()
    for game in (None, TINY, spiel_cr.load_game(TINY), result.game_form):
        policy = spiel_cr.load_policy(path, game)
        for mine, own in zip(policy.behaviour, result.average, strict=True):
            assert mine.dtype == dtype and np.allclose(mine, own, atol=1e-7)
    with pytest.raises(ValueError, match="was given for kuhn_poker"):
        spiel_cr.load_policy(path, "kuhn_poker")
