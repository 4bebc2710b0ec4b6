"""Sizes of linear programs, compared with published sizes of Rhode Island Hold'em."""

import numpy as np
import pytest

from spiel_cr.abstraction import gameshrink
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.games.tree.tree_builder import build_tree
from tests.abstraction.gameshrink.test_partition import SMALL, trivial_partition
from tests.support import detection

GAME = "python_rhode_island_holdem"


@pytest.mark.parametrize(
    "string", ["kuhn_poker", "python_leduc_poker", "nim(pile_sizes=1;2;3)"]
)
def test_sizes_equal_those_of_the_game_tree(string):
    """Count sequences and payoffs in the game tree."""
    tree = build_tree(string)
    decisions = [infosets.decisions for infosets in tree.infosets]
    payoffs = len(np.flatnonzero(np.abs(tree.sequence_form.payoffs.values) > 1e-15))
    rows = 1 + len(decisions[0]) + decisions[1].num_sequences
    columns = decisions[0].num_sequences + 1 + len(decisions[1])
    entries = sum(1 + len(own) + int(own.num_actions.sum()) for own in decisions)
    found = gameshrink.lp_size(detection.detect(tree))
    assert found == (rows, columns, payoffs + entries, payoffs)


def test_trivial_partition_does_not_change_the_size():
    game = public_tree_game(SMALL)
    same = gameshrink.coarsen(game, trivial_partition(game))
    assert gameshrink.lp_size(same) == gameshrink.lp_size(game)


@pytest.mark.slow  # a few seconds, mostly to build the public-tree game
def test_sizes_of_rhode_island_holdem_equal_published_ones():
    """Gilpin & Sandholm 2007: rows without abstraction, rows and nonzeros with it."""
    game = public_tree_game(GAME)
    counts = gameshrink.count(game)
    published = gameshrink.histogram_partition(game, counts=counts)
    for player in range(2):
        assert published.num_classes(player) == [13, 205, 1774]
    size = gameshrink.lp_size(gameshrink.coarsen(game, published))
    assert size.rows == size.columns == 1_237_238
    assert size.nonzeros == 50_428_638
    deals = [52, 52 * 51, 52 * 51 * 50]
    assert gameshrink.lp_rows(game.betting, [deals, deals]) == 91_224_226
    # The declared game, which merges suits, and the coarsest lossless partition.
    assert game.num_private_states(0) == [13, 325, 9997]
    assert gameshrink.lp_size(game).rows == 6_889_976
    lossless = gameshrink.lossless_partition(game, counts)
    for player in range(2):
        assert lossless.num_classes(player) == [13, 325, 7969]
    assert gameshrink.lp_size(gameshrink.coarsen(game, lossless)).rows == 5_498_768
    assert gameshrink.difference(game, lossless, counts) is None
    # A deuce with flops five and six has equal histograms but different opponents.
    found = gameshrink.difference(game, published, counts)
    assert found is not None and found.round == 1
    flops = [game.reader.name(0, 1, s)[-2] for s in found.signals]
    assert flops == ["5", "6"]
