"""Histories at which policies are queried, and contradictions that are detected."""

import re
from collections import defaultdict

import numpy as np
import pytest
from open_spiel.python import policy as openspiel_policy

import spiel_cr
from spiel_cr.common.errors import InvalidPolicyError
from spiel_cr.games.phantom import phantom_game
from spiel_cr.games.public_tree import public_tree_game
from spiel_cr.policies.bot_policies import BotPolicy
from spiel_cr.policies.queries import query
from tests.support.learner import Learner

# Each infoset has three histories, one for each die of the opponent.
GAME = "liars_dice(numdice=1,dice_sides=3)"


class Recorder(openspiel_policy.Policy):
    """Plays uniformly, except after one history, and records where it is queried."""

    # Queries are repeated.
    by_information_state = False

    def __init__(self, game, odd=None):
        super().__init__(game, [0, 1])
        self.odd, self.histories = odd, []

    def action_probabilities(self, state, player_id=None):
        legal, history = state.legal_actions(), tuple(state.history())
        self.histories.append(history)
        if history == self.odd:
            return {legal[0]: 1.0}
        return {action: 1 / len(legal) for action in legal}


@pytest.fixture(scope="module")
def tree():
    return spiel_cr.build_tree(GAME)


def paths_by_infoset(tree):
    """The actions that lead to each history of each infoset, the first one first."""
    histories, paths = tree.histories, defaultdict(list)
    for history in np.flatnonzero(histories.player >= 0).tolist():
        key = int(histories.player[history]), int(histories.infoset[history])
        paths[key].append(tuple(histories.actions_to(history)))
    for (player, infoset), listed in paths.items():
        first = int(tree.infosets[player].history[infoset])
        assert listed[0] == tuple(histories.actions_to(first))
    return paths


def test_all_histories_are_queried(tree):
    policy = Recorder(tree.game)
    query(tree, policy, check="full")
    expected = [path for paths in paths_by_infoset(tree).values() for path in paths]
    assert sorted(policy.histories) == sorted(expected)


def test_two_histories_of_each_infoset_are_sampled(tree):
    chosen = []
    for seed in range(2):
        policy = Recorder(tree.game)
        query(tree, policy, seed=seed)
        queried = set(policy.histories)
        for paths in paths_by_infoset(tree).values():
            assert len(paths) == 3 and paths[0] in queried
            assert len(queried.intersection(paths)) == 2
        chosen.append(queried)
    assert chosen[0] != chosen[1]


@pytest.mark.parametrize("place", [1, 2])
def test_full_check_always_finds_a_contradicting_history(tree, place):
    """A sample of two histories may miss the contradiction, unlike a full check."""
    odd = paths_by_infoset(tree)[0, 0][place]
    message = re.escape(f"after {list(odd)}; a strategy must depend on")
    with pytest.raises(InvalidPolicyError, match=message):
        query(tree, Recorder(tree.game, odd), check="full")
    found = []
    for seed in range(10):
        try:
            query(tree, Recorder(tree.game, odd), seed=seed)
        except InvalidPolicyError as error:
            assert re.search(message, str(error))
            found.append(seed)
    assert 0 < len(found) < 10


@pytest.mark.parametrize(
    "form",
    [
        lambda: public_tree_game(GAME),
        lambda: phantom_game("dark_hex(num_rows=2,num_cols=2)"),
    ],
    ids=["public-tree", "phantom"],
)
def test_forms_that_list_no_histories_reject_a_full_check(form):
    game_form = form()
    with pytest.raises(ValueError, match="check='full': .*; use check='sample', or"):
        query(game_form, Recorder(game_form.game), check="full")


def test_unknown_checks_are_rejected(tree):
    with pytest.raises(ValueError, match="check='all' must be one of sample, full"):
        query(tree, Recorder(tree.game), check="all")


def test_learning_bots_are_reset_before_each_query():
    """The bot has seen the decisions on the path, and nothing of earlier queries."""
    bots = []

    def make(player, seed):
        bots.append(Learner(player))
        return bots[-1]

    policy = BotPolicy(spiel_cr.load_game("kuhn_poker"), make)
    for deal in ((0, 1), (1, 2), (2, 0)):
        state = policy.game.new_initial_state()
        for action in (*deal, 0, 1):
            state.apply_action(action)
        # Player 0 has passed, and player 1 has bet: its second decision.
        assert policy.action_probabilities(state)[0] == pytest.approx(1 / 3)
    (bot,) = bots
    assert bot.met == {"0": (), "0pb": ("0",), "1": (), "1pb": ("1",)} | {
        "2": (),
        "2pb": ("2",),
    }
