"""The command `abstract`: partitions, and the NashConv that they cost."""

import pytest

import spiel_cr
from spiel_cr.abstraction import abstract, gameshrink, infoset_buckets
from spiel_cr.games.public_tree import public_tree_game
from spiel_cr.policies import best_responses
from spiel_cr.resolving import first_phase
from spiel_cr.resolving.public_endgames import solve_endgames
from tests.support.commands import outputs, rejection

GAME = "python_leduc_poker(num_ranks=5)"


def test_thresholds_give_the_partition_of_the_library(capsys):
    words = ("--thresholds", "0-0.6", "--iterations", 50, "--algorithm", "cfr+")
    found, out, _ = outputs(capsys, "abstract", "--game", GAME, *words)
    game = public_tree_game(GAME)
    partition = gameshrink.histogram_partition(game, [0, 0.6])
    assert found["buckets"] == [partition.num_classes(player) for player in range(2)]
    assert (
        found["buckets"][0][1] < gameshrink.histogram_partition(game).num_classes(0)[1]
    )
    assert found["thresholds"] == [0, 0.6] and "GameShrink with thresholds" in out
    # Shared regrets in the full game give nearly the same strategy.
    options = spiel_cr.GameOptions(buckets=infoset_buckets(game, partition))
    result = spiel_cr.solve(game, "cfr+", 50, options=options)
    assert found["nash_conv"] == pytest.approx(result.nash_conv(), rel=0.02)


def test_early_rounds_and_endgames_equal_the_library(capsys, tmp_path):
    """Early rounds use buckets; a file supplies later rounds; endgames are unsafe."""
    path = str(tmp_path / "blueprint.npz")
    options = spiel_cr.GameOptions("public-tree")
    spiel_cr.solve(GAME, "cfr+", 20, options=options).save(path)
    words = ("--budget", "3", "--early-rounds", 1, "--later", path)
    solve = ("--iterations", 30, "--algorithm", "cfr+", "--endgames", "unsafe")
    found, _, _ = outputs(capsys, "abstract", "--game", GAME, *words, *solve)
    assert (found["early_rounds"], found["endgames"]) == (1, "unsafe")
    assert found["buckets"] == [[3], [3]] and found["signals"] == [[5], [5]]
    game = public_tree_game(GAME)
    early = first_phase.early_rounds(game, 1, path)
    partition = abstract(early, [3]).partition
    average = spiel_cr.solve(gameshrink.coarsen(early, partition), "cfr+", 30).average
    lifted = gameshrink.lift(early, partition, average)
    whole = first_phase.with_later_rounds(game, lifted, path)
    both = solve_endgames(game, whole, gadget="unsafe", iterations=30)
    form = game.sequence_form
    expected = [
        best_responses.nash_conv(form, best_responses.reach_of(form, behaviour))
        for behaviour in (whole, both)
    ]
    assert found["nash_conv"] == pytest.approx(expected[1], rel=1e-6)
    assert found["nash_conv"] != pytest.approx(expected[0], rel=0.01)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give exactly one of them"),
        (("--budget", "2-4", "--thresholds", "0-0"), "give exactly one of them"),
        (("--thresholds", "0-1e-3"), "invalid numbers '0-1e-3'"),
        (("--thresholds", "0.1"), "has 2 rounds"),
        (("--budget", "2-4", "--early-rounds", 1), "has 1 rounds"),
        (("--budget", "2", "--early-rounds", 2), "rounds=2"),
        (("--budget", "2-4", "--later", "uniform"), "needs --early-rounds"),
        (("--budget", "2-4", "--endgames", "cfrd"), "needs --iterations"),
    ],
)
def test_rejects_invalid_options(capsys, words, message):
    assert message in rejection(capsys, "abstract", "--game", GAME, *words)
