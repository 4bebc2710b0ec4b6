"""The contract of `GameForm`, for three forms and a form that delegates."""

import dataclasses

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.games.game_form import GameForm, HasSequenceForm
from spiel_cr.games.phantom import phantom_game
from spiel_cr.games.public_tree import public_tree_game

# The members of the protocols.
MEMBERS = {
    name
    for protocol in (GameForm, HasSequenceForm)
    for name in vars(protocol)
    if not name.startswith("_")
}
HEX = "dark_hex(num_rows=2,num_cols=2)"


class Delegate:
    """A form of another class, with only the members of the protocol."""

    kind = "delegate"

    def __init__(self, form):
        self._form = form

    def __getattr__(self, name):
        if name not in MEMBERS:
            raise AttributeError(name)
        return getattr(self._form, name)


def build_delegate(game):
    return Delegate(spiel_cr.build_tree(game))


# For each form: its builder, two different games, and its kind.
CASES = {
    "tree": (spiel_cr.build_tree, "leduc_poker", "kuhn_poker", "tree"),
    "simultaneous": (spiel_cr.build_tree, "matrix_mp", "matrix_rps", "tree"),
    "public-tree": (
        public_tree_game,
        "python_leduc_poker",
        "python_rhode_island_holdem(num_ranks=3,num_suits=2)",
        "public-tree",
    ),
    "phantom": (phantom_game, HEX, "dark_hex(num_rows=2,num_cols=3)", "phantom"),
    "delegate": (build_delegate, "leduc_poker", "kuhn_poker", "delegate"),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    build, game, other, kind = CASES[request.param]
    return build, game, other, kind, build(game)


def test_forms_implement_the_protocol(case):
    *_, kind, form = case
    assert all(hasattr(form, name) for name in MEMBERS)
    assert form.kind == kind and isinstance(form.game, pyspiel.Game)
    assert len(form.decisions) == 2
    for player in range(2):
        decisions = form.decisions[player]
        theirs = form.sequence_form.decisions[player]
        np.testing.assert_array_equal(decisions.parent, theirs.parent)
        np.testing.assert_array_equal(decisions.num_actions, theirs.num_actions)
        assert (decisions.parent < decisions.first_sequence).all()


def test_labels_are_unique_for_each_player(case):
    form = case[-1]
    for player, decisions in enumerate(form.decisions):
        labels = [form.label(player, i) for i in range(len(decisions))]
        assert all(isinstance(label, str) and label for label in labels)
        assert len(set(labels)) == len(labels)


def test_infosets_of_states_agree_with_random_play(case):
    """Equal strings give equal infosets, whose parent is the player's last action."""
    *_, form = case
    random, by_string = np.random.default_rng(0), {}
    visited = [set(), set()]
    for _ in range(2000):
        state, last = form.game.new_initial_state(), [0, 0]
        while not state.is_terminal():
            player, legal = state.current_player(), state.legal_actions()
            action = legal[int(random.integers(len(legal)))]
            if player >= 0:
                assert form.infoset_of(state)[0] == player
                infoset = form.infoset_of(state)[1]
                visited[player].add(infoset)
                assert form.actions(player, infoset).tolist() == sorted(legal)
                decisions = form.decisions[player]
                assert decisions.num_actions[infoset] == len(legal)
                assert decisions.parent[infoset] == last[player]
                key = player, state.information_state_string(player)
                assert by_string.setdefault(key, infoset) == infoset
                first = int(decisions.first_sequence[infoset])
                last[player] = first + sorted(legal).index(action)
            state.apply_action(action)
    for numbers, decisions in zip(visited, form.decisions, strict=True):
        assert len(numbers) > 0.5 * len(decisions)


def test_states_without_a_decision_are_rejected(case):
    form = case[-1]
    state = form.game.new_initial_state()
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
    with pytest.raises(ValueError, match="state: .*; give a state of"):
        form.infoset_of(state)


def test_game_ids_depend_on_the_game_and_not_on_the_build(case):
    build, game, other, _, form = case
    again = build(game)
    assert again.game_id == form.game_id and again.decisions_id == form.decisions_id
    assert form.game_id != form.decisions_id
    different = build(other)
    assert different.game_id != form.game_id
    assert different.decisions_id != form.decisions_id


def test_games_that_differ_in_payoffs_have_equal_decisions():
    tree = spiel_cr.build_tree("kuhn_poker")
    histories = dataclasses.replace(tree.histories, utility=2 * tree.histories.utility)
    doubled = dataclasses.replace(tree, histories=histories)
    assert doubled.decisions_id == tree.decisions_id
    assert doubled.game_id != tree.game_id
    game = public_tree_game("python_leduc_poker")
    terms = game.terms._replace(stake=2 * game.terms.stake)
    doubled = dataclasses.replace(game, terms=terms)
    assert doubled.decisions_id == game.decisions_id
    assert doubled.game_id != game.game_id
    game = phantom_game(HEX)
    fields = game.worlds._asdict() | {"utility": 2 * game.worlds.utility}
    doubled = dataclasses.replace(game, worlds=type(game.worlds)(**fields))
    assert doubled.decisions_id == game.decisions_id
    assert doubled.game_id != game.game_id
