"""Growth of lookahead trees in the order of both players' reach probabilities."""

import dataclasses

import numpy as np
import pytest

from tests.support import lookahead_trees

LEDUC = "leduc_poker"


def grown(most, *, player=0, game=LEDUC):
    tree = lookahead_trees.start(game, max(most, 4000), player=player)
    tree.grow(300)
    tree.grow(most)
    return tree


def test_infosets_are_expanded_as_a_whole_at_all_depths():
    table = grown(1500).table
    expanded = np.flatnonzero(table.first[: table.used] >= 0)
    frontier = table.frontier()
    assert len(frontier) and table.used <= 1500
    assert not np.isin(table.infosets(frontier), table.infosets(expanded)).any()
    # Chance nodes are never at the frontier.
    assert (table.player[frontier] >= 0).all()


def test_decisions_indistinguishable_to_the_opponent_expand_together():
    table = grown(1500, player=0).table
    used = table.used
    own = table.player[:used] == 0
    inside = own & (table.first[:used] >= 0)
    outside = own & (table.first[:used] < 0) & (table.num_actions[:used] > 0)
    seen = table.observation[:used]
    assert inside.any() and outside.any()
    assert not np.isin(seen[outside], seen[inside]).any()


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    ("game", "most", "least"), [(LEDUC, 1500, 750), ("phantom_ttt", 6000, 100)]
)
def test_growth_does_not_split_public_states(game, most, least, player):
    """No player confuses a history of the frontier with an expanded one.

    In phantom_ttt, nearly all histories of the same length are one public state.
    """
    table = grown(most, player=player, game=game).table
    expanded = np.flatnonzero(table.first[: table.used] >= 0)
    frontier = table.frontier()
    assert len(frontier) and least < table.used <= most
    for p in range(2):
        ends = frontier[table.player[frontier] == p]
        inside = expanded[table.player[expanded] == p]
        assert not np.isin(table.label[ends], table.label[inside]).any()
        assert not np.isin(table.observation[ends], table.observation[inside]).any()


class FirstActions:
    """A blueprint in which both players always take their first action."""

    def play(self, nodes, player):
        odds = np.zeros(nodes.num_actions.sum())
        odds[np.cumsum(nodes.num_actions) - nodes.num_actions] = 1.0
        return odds


def test_growth_prefers_histories_that_the_blueprint_reaches():
    """Histories that neither player reaches are expanded last."""
    tree = lookahead_trees.start(LEDUC, 4000)
    dataclasses.replace(tree, blueprint=FirstActions()).grow(1200)
    table = tree.table
    expanded = np.flatnonzero(table.first[: table.used] >= 0)
    assert (table.player_reach[table.frontier()] == 0).all(axis=1).any()
    # Each player's reach contains only its own moves.
    for row in expanded[expanded > 0]:
        parent = table.parent[row]
        first = row == table.first[parent]
        for p in range(2):
            moved = table.player[parent] == p
            expected = table.player_reach[parent, p] * (first if moved else 1)
            assert table.player_reach[row, p] == expected
    # An expanded history that neither player reaches shares its infoset with a history
    # that a player reaches.
    nobody = (table.player_reach[: table.used] == 0).all(axis=1)
    leads = np.unique(table.infosets(expanded[~nobody[expanded]]))
    alone = expanded[nobody[expanded] & (table.player[expanded] >= 0)]
    assert np.isin(table.infosets(alone), leads).all()
