"""The command `abstract`: its partitions, and what they lose."""

import pytest

import spiel_cr
from spiel_cr.abstraction import gameshrink, infoset_buckets
from spiel_cr.games.public_tree import public_tree_game
from tests.support.commands import refused, told

GAME = "python_leduc_poker(num_ranks=5)"


def test_thresholds_are_those_of_the_library(capsys):
    words = ("--thresholds", "0-0.6", "--iterations", 50, "--algorithm", "cfr+")
    found, out, _ = told(capsys, "abstract", "--game", GAME, *words)
    game = public_tree_game(GAME)
    partition = gameshrink.histogram_partition(game, [0, 0.6])
    assert found["buckets"] == [partition.num_classes(player) for player in range(2)]
    assert (
        found["buckets"][0][1] < gameshrink.histogram_partition(game).num_classes(0)[1]
    )
    assert found["thresholds"] == [0, 0.6] and "GameShrink with thresholds" in out
    # Shared regrets in the full game are another path to the same strategy.
    options = spiel_cr.GameOptions(buckets=infoset_buckets(game, partition))
    result = spiel_cr.solve(game, "cfr+", 50, options=options)
    assert found["nash_conv"] == pytest.approx(result.nash_conv(), rel=0.02)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give exactly one of them"),
        (("--budget", "2-4", "--thresholds", "0-0"), "give exactly one of them"),
        (("--thresholds", "0-1e-3"), "invalid numbers '0-1e-3'"),
        (("--thresholds", "0.1"), "has 2 rounds"),
    ],
)
def test_invalid_options(capsys, words, message):
    assert message in refused(capsys, "abstract", "--game", GAME, *words)
