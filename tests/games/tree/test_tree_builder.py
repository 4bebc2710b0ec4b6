"""Game trees: every array equals that of a plain walk over OpenSpiel's states."""

import functools

import numpy as np
import pyspiel
import pytest

from spiel_cr.games.tree.tree_builder import build_tree
from tests.support import games, made_games, reference
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node

# goofspiel5 has the tree of goofspiel5_descending, which is the largest one here.
LARGEST = "goofspiel5_descending"
every_game = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] * (case.name == LARGEST))
        for case in games.CASES
        if case.name != "goofspiel5"
    ],
    ids=lambda case: case.name,
)


@functools.cache
def reference_tree(name: str) -> reference.Tree:
    return reference.Tree(games.compiled(name).game)


def pairs(case: games.Case):
    """Return a game tree, its reference, and the reference node of each history."""
    compiled, tree = games.compiled(case.name), reference_tree(case.name)
    node_of = {node.path: node for node in tree.nodes}
    histories = compiled.histories
    return (
        compiled,
        tree,
        [node_of[tuple(histories.actions_to(h))] for h in range(len(histories))],
    )


@every_game
def test_counts_equal_the_reference(case):
    compiled = games.compiled(case.name)
    histories = compiled.histories
    tree = reference_tree(case.name)
    assert len(histories) == len(tree.nodes) == case.histories
    for p in range(2):
        expected = {key[1] for key in tree.infosets if key[0] == p}
        assert len(expected) == case.infosets[p]
        assert len(compiled.infosets[p]) == case.infosets[p]
        assert set(compiled.infosets[p].keys) == expected
    players = [node.player for node in tree.nodes]
    assert compiled.num_terminals == players.count(TERMINAL)
    assert compiled.max_depth == max(len(node.path) for node in tree.nodes)


@every_game
def test_histories_equal_the_reference(case):
    compiled, _, nodes = pairs(case)
    h = compiled.histories
    assert len({node.path for node in nodes}) == len(nodes)
    np.testing.assert_array_equal(h.player, [node.player for node in nodes])
    np.testing.assert_array_equal(h.utility, [node.utility for node in nodes])
    # The factors of these products may have a different order.
    chance = [node.chance for node in nodes]
    np.testing.assert_allclose(h.chance, chance, rtol=1e-13)
    assert h.parent[0] == h.action[0] == -1


@every_game
def test_histories_are_breadth_first_with_contiguous_children(case):
    compiled, _, nodes = pairs(case)
    h = compiled.histories
    depth = np.array([len(node.path) for node in nodes])
    for d in range(compiled.max_depth + 1):
        inside = np.flatnonzero(depth == d)
        np.testing.assert_array_equal(
            inside, np.arange(h.level_start[d], h.level_start[d + 1])
        )
    assert h.level_start[-1] == len(h)
    children = [np.flatnonzero(h.parent == i) for i in range(min(len(h), 3000))]
    for i, below in enumerate(children):
        assert (np.diff(below) == 1).all()
        assert list(h.action[below]) == list(nodes[i].children)


@every_game
def test_infosets_and_sequences_equal_the_reference(case):
    compiled, tree, nodes = pairs(case)
    h = compiled.histories
    for p, infosets in enumerate(compiled.infosets):
        first = infosets.decisions.first_sequence
        # The information states and actions of each sequence.
        sequences: list = [()]
        for i, key in enumerate(infosets.keys):
            before = tree.nodes[tree.infosets[p, key][0]].sequences[p]
            actions = tree.actions((p, key))
            assert infosets.decisions.num_actions[i] == len(actions)
            assert first[i] == len(sequences)
            assert sequences[infosets.decisions.parent[i]] == before
            sequences += [(*before, (key, action)) for action in actions]
        assert infosets.decisions.num_sequences == len(sequences)
        assert list(infosets.actions) == [s[-1][1] for s in sequences[1:]]
        for i, node in enumerate(nodes):
            assert sequences[h.sequence[p, i]] == node.sequences[p]
            if node.player == p:
                assert infosets.keys[h.infoset[i]] == node.key[1]
        # The first history in breadth-first order, and levels in order.
        for i in range(len(infosets)):
            members = np.flatnonzero((h.player == p) & (h.infoset == i))
            assert infosets.history[i] == members.min()
        levels = infosets.decisions.levels()
        assert (np.diff(levels) >= 0).all()
        for i, key in enumerate(infosets.keys):
            own = tree.nodes[tree.infosets[p, key][0]].sequences[p]
            assert levels[i] == len(own)
        # Infosets of a level are in preorder, the order of the reference's nodes.
        met = [tree.infosets[p, key][0] for key in infosets.keys]
        order = list(zip(levels.tolist(), met, strict=True))
        assert order == sorted(order)
    nobody = h.player < 0
    assert (h.infoset[nobody] == -1).all()


@every_game
def test_payoffs_of_sequence_pairs_equal_the_reference(case):
    compiled, _, nodes = pairs(case)
    h = compiled.histories
    expected: dict[tuple[int, int], float] = {}
    for i, node in enumerate(nodes):
        if node.player == TERMINAL:
            pair = (int(h.sequence[0, i]), int(h.sequence[1, i]))
            expected[pair] = expected.get(pair, 0.0) + node.chance * node.utility
    payoffs = compiled.sequence_form.payoffs
    found = list(zip(payoffs.rows.tolist(), payoffs.columns.tolist(), strict=True))
    assert len(set(found)) == len(found)
    values = dict(zip(found, payoffs.values, strict=True))
    for pair, value in expected.items():
        # Sums of at most a few hundred terms in another order.
        assert values.get(pair, 0.0) == pytest.approx(value, abs=1e-13)
    assert set(values) <= set(expected)


@every_game
def test_observation_numbers_are_equal_iff_strings_are_equal(case):
    """This is tested for the observations of each non-acting player."""
    compiled, tree, nodes = pairs(case)
    observations = compiled.histories.observations
    assert observations is not None
    for other in range(2):
        at = [i for i, node in enumerate(nodes) if node.player == 1 - other]
        observed = [nodes[i].observations[other] for i in at]
        number_of = dict(zip(observed, observations[at].tolist(), strict=True))
        assert [number_of[words] for words in observed] == observations[at].tolist()
        assert len(set(number_of.values())) == len(number_of)
        # Numbers are in preorder, the order of the reference's nodes.
        first = dict.fromkeys(
            node.observations[other] for node in tree.nodes if node.player == 1 - other
        )
        assert [number_of[words] for words in first] == list(range(len(first)))
    nobody = compiled.histories.player < 0
    assert (observations[nobody] == -1).all()
    assert games.compiled(case.name, observations=False).histories.observations is None


@every_game
def test_layout_maps_sequences_to_distinct_positions(case):
    """The empty sequence has position 0, and no sequence has a padding position."""
    form = games.compiled(case.name).sequence_form
    for decisions, layout, arrays in zip(
        form.decisions, form.layouts, form.arrays, strict=True
    ):
        assert layout.sequences[0] == 0
        assert len(set(layout.sequences.tolist())) == decisions.num_sequences
        assert layout.sequences.max() < layout.size
        assert sorted(layout.infosets.tolist()) == list(range(len(decisions)))
        blocks = [np.ravel(b) for level in arrays.levels for b in level.uniform]
        uniform = np.concatenate([np.ones(1), *blocks])
        assert len(uniform) == layout.size
        expected = np.repeat(1 / decisions.num_actions, decisions.num_actions)
        np.testing.assert_array_equal(uniform[layout.sequences[1:]], expected)
        legal = np.zeros(layout.size, bool)
        legal[layout.sequences] = True
        assert (uniform[~legal] == 0).all()


def test_rejects_three_players():
    with pytest.raises(ValueError, match="exactly two players.*has 3"):
        build_tree("kuhn_poker(players=3)")


@pytest.mark.parametrize("game", ["bargaining", "matrix_pd", "tiny_hanabi"])
def test_rejects_games_that_are_not_zero_sum(game):
    with pytest.raises(ValueError, match="zero-sum"):
        build_tree(game)


@pytest.mark.parametrize("game", ["kuhn_poker(ranks=3)", "no_such_game"])
def test_unknown_games_raise_spiel_error(game):
    with pytest.raises(pyspiel.SpielError, match="[Uu]nknown"):
        build_tree(game)


@pytest.mark.parametrize("game", [None, 3, b"kuhn_poker", ["kuhn_poker"]])
def test_rejects_wrong_types(game):
    with pytest.raises(TypeError, match=type(game).__name__):
        build_tree(game)


def forgets_its_action(path):
    if len(path) < 2:
        return Node(0, (0, 1), (f"move {len(path)}", "x"))
    return Node(TERMINAL, utility=1.0)


def repeats_its_infoset(path):
    if len(path) < 2:
        return Node(0, (0, 1), ("again", "x"))
    return Node(TERMINAL, utility=1.0)


def forgets_an_infoset(path):
    """Player 1 observes the deal at its first move, but not at its second."""
    if not path:
        return Node(CHANCE, (0, 1), chance=(0.5, 0.5))
    if len(path) == 1:
        return Node(1, (0,), ("x", f"dealt {path[0]}"))
    if len(path) == 2:
        return Node(1, (0, 1), ("x", "second move"))
    return Node(TERMINAL, utility=1.0)


@pytest.mark.parametrize(
    "rules", [forgets_its_action, repeats_its_infoset, forgets_an_infoset]
)
def test_rejects_imperfect_recall(rules):
    with pytest.raises(ValueError, match="imperfect recall.*information state"):
        build_tree(MadeGame(rules, rules.__name__))


def differing_actions(path):
    if not path:
        return Node(CHANCE, (0, 1), chance=(0.5, 0.5))
    if len(path) == 1:
        return Node(0, (0, 1) if path[0] else (0, 2), ("same", "x"))
    return Node(TERMINAL, utility=1.0)


def test_rejects_different_legal_actions_in_one_infoset():
    with pytest.raises(ValueError, match=r"\[0, 1\].*'same'.*\[0, 2\]|\[0, 2\]"):
        build_tree(MadeGame(differing_actions, "differing"))


def test_rejects_sampled_chance():
    mode = pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
    game = MadeGame(differing_actions, "sampled", chance_mode=mode)
    with pytest.raises(ValueError, match="chance.*sampled"):
        build_tree(game)


def test_rejects_games_without_information_states():
    game = MadeGame(differing_actions, "silent", strings=False)
    with pytest.raises(ValueError, match="information_state_string"):
        build_tree(game)


def test_rejects_decisions_without_actions():
    """The error names the problem, although OpenSpiel accepts such a game."""

    def stuck(path):
        return Node(1, (), ("x", "stuck here"))

    with pytest.raises(ValueError, match="action"):
        build_tree(MadeGame(stuck, "stuck"))


@pytest.mark.parametrize("limit", [1, 57])
def test_raises_if_histories_exceed_the_limit(limit):
    with pytest.raises(ValueError, match=f"max_histories={limit} "):
        build_tree("kuhn_poker", max_histories=limit)


def test_accepts_a_limit_equal_to_the_number_of_histories():
    assert len(build_tree("kuhn_poker", max_histories=58).histories) == 58


@pytest.mark.parametrize("case", [c for c in games.CASES if c.converted], ids=str)
def test_simultaneous_moves_are_converted_with_a_notice(case, absl_log):
    compiled = build_tree(case.string)
    assert "simultaneous" in absl_log.text and "turns" in absl_log.text
    build_tree(case.string)
    assert absl_log.text.count("simultaneous") == 1  # once in a process
    dynamics = compiled.game.get_type().dynamics
    assert dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL


def test_sequential_games_cause_no_notice(absl_log):
    build_tree("kuhn_poker")
    assert not absl_log.text


def test_game_objects_and_strings_build_equal_trees():
    by_string = build_tree("kuhn_poker")
    by_object = build_tree(pyspiel.load_game("kuhn_poker"))
    for field in ("parent", "action", "player", "infoset", "sequence", "chance"):
        np.testing.assert_array_equal(
            getattr(by_string.histories, field), getattr(by_object.histories, field)
        )


def test_games_without_moves_have_one_history():
    compiled = build_tree(MadeGame(lambda path: Node(TERMINAL, utility=2.0), "over"))
    assert len(compiled.histories) == compiled.num_terminals == 1
    assert compiled.max_depth == 0
    assert list(compiled.sequence_form.payoffs.values) == [2.0]


def test_observations_are_none_if_the_game_raises():
    """A SpielError for the player who does not act is not an error here."""

    class State(made_games.MadeState):
        def information_state_string(self, player=None):
            if player not in (None, self.current_player()):
                raise pyspiel.SpielError("only the player who acts")
            return super().information_state_string(player)

    def rules(path):
        if len(path) < 2:
            return Node(len(path), (0, 1), ("a", "b"))
        return Node(TERMINAL, utility=float(path[0] == path[1]))

    class Game(MadeGame):
        def new_initial_state(self):
            return State(self, rules)

    compiled = build_tree(Game(rules, "shy"), observations=True)
    assert compiled.histories.observations is None
    assert len(compiled.histories) == 7
