"""Game trees from batched rules equal those from a walk over OpenSpiel's states."""

import dataclasses
import functools

import numpy as np
import pyspiel
import pytest

from game_defs import rock_paper_scissors
from spiel_cr.common.errors import TooManyHistoriesError
from spiel_cr.games.opening import batched_rules
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree import batched_check, batched_walk, numbering, state_walk
from spiel_cr.games.tree.tree_builder import build_tree
from tests.support import games, made_games, reference, tabled
from tests.support.made_games import TERMINAL

SMALL = (
    "python_ii_goofspiel(num_cards=2)",
    "python_ii_goofspiel(num_cards=4)",
    "python_ii_goofspiel(num_cards=4,points_order=descending)",
    "python_ii_goofspiel(num_cards=4,returns_type=point_difference)",
    "python_leduc_poker",
    "python_leduc_poker(stack0=13,stack1=9,max_raises=2,num_ranks=4)",
    "python_leduc_poker(stack0=1,stack1=20,max_raises=3,num_ranks=6)",
    "python_leduc_poker(max_raises=0,num_ranks=2)",
    "python_princess_and_monster",
    "python_princess_and_monster(rows=2,columns=4,horizon=4)",
    "python_rock_paper_scissors",
    "python_rock_paper_scissors(num_actions=99)",
    "python_scotland_yard(rounds=2)",
    "python_scotland_yard(map=square,detectives=1,rounds=6)",
    "python_scotland_yard(map=tripod,rounds=4,detectives=1)",
    "python_scotland_yard(map=tripod,rounds=3,detectives=2)",
)
SCOTLAND_YARD = "python_scotland_yard"
KEEP = "python_latent_tic_tac_toe(conflict=keep)"
LARGE = (
    "python_ii_goofspiel(num_cards=10)",
    "python_latent_tic_tac_toe",
    KEEP,
    "python_leduc_poker(stack0=1000,stack1=900,max_raises=10,num_ranks=13)",
    "python_princess_and_monster(rows=10,columns=10,horizon=50)",
    "python_scotland_yard(rounds=50)",
)


def same(ours, theirs, name=""):
    """Check that two trees are bitwise identical, including types and strings."""
    if dataclasses.is_dataclass(ours):
        for field in dataclasses.fields(ours):
            if field.name != "game":
                pair = getattr(ours, field.name), getattr(theirs, field.name)
                same(*pair, f"{name}.{field.name}")
    elif isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype, name
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    elif name.endswith(".keys"):
        assert list(ours) == list(theirs), name
    elif callable(ours):  # methods that return decisions, payoffs and positions
        same(ours(), theirs(), f"{name}()")
    elif isinstance(ours, tuple):
        assert len(ours) == len(theirs), name
        for i, pair in enumerate(zip(ours, theirs, strict=True)):
            same(*pair, f"{name}[{i}]")
    else:
        assert ours == theirs, name


def build_with_and_without_batched_rules(string, observations=True):
    return (
        build_tree(string, observations=observations),
        build_tree(string, observations=observations, batched_rules=False),
    )


@pytest.mark.parametrize("string", SMALL)
def test_batched_tree_equals_the_state_walk(string):
    ours, theirs = build_with_and_without_batched_rules(string)
    same(ours, theirs)
    assert ours.histories.observations is not None
    assert len(ours.histories) == theirs.histories.level_start[-1]


@pytest.mark.parametrize("string", SMALL[:2] + SMALL[4:5])
def test_batched_tree_equals_the_state_walk_without_observations(string):
    ours, theirs = build_with_and_without_batched_rules(string, observations=False)
    same(ours, theirs)
    assert ours.histories.observations is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "string",
    [
        KEEP,
        "python_ii_goofspiel(num_cards=5,points_order=descending)",
        "python_ii_goofspiel(num_cards=6)",
        SCOTLAND_YARD,
    ],
)
def test_batched_tree_equals_the_state_walk_of_large_games(string):
    same(*build_with_and_without_batched_rules(string))


@pytest.mark.parametrize("string", LARGE)
def test_rollouts_of_large_games_equal_openspiel(string):
    """Compare every step of rollouts, including both players' information states."""
    batched_check.check_rollouts(string, np.random.default_rng(5), rollouts=40)


@pytest.mark.parametrize("string", SMALL[:1] + SMALL[4:5] + SMALL[8:9])
def test_batched_rules_build_without_openspiel_states(string, monkeypatch):
    """The tests above do not compare two walks over OpenSpiel's states."""

    def fail(*arguments, **keywords):
        raise AssertionError("walked")

    monkeypatch.setattr(state_walk, "walk", fail)
    compiled = build_tree(string)
    assert compiled.num_terminals > 0
    with pytest.raises(AssertionError, match="walked"):
        build_tree(string, batched_rules=False)


@functools.cache
def table(name):
    return tabled.Tabled(reference.Tree(games.compiled(name).game))


@pytest.mark.parametrize("case", games.SMALL, ids=lambda case: case.name)
@pytest.mark.parametrize("observations, chunk", [(True, 3), (False, 1 << 14)])
def test_batched_walk_equals_the_state_walk_on_all_games(
    case, observations, chunk, monkeypatch
):
    monkeypatch.setattr(batched_rules, "_CHUNK", chunk)
    game = games.compiled(case.name).game
    ours = batched_walk.walk(game, table(case.name), observations=observations)
    theirs, _ = state_walk.walk(game, observations=observations)
    for field in ("parent", "action", "player", "utility", "chance", "level_start"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
    same(numbering.number(ours, game)[:2], numbering.number(theirs, game)[:2])


@pytest.mark.parametrize("seed", range(6))
def test_batched_walk_equals_the_state_walk_on_random_games(seed):
    """The games include infosets whose histories have different depths."""
    game = made_games.random_game(seed, turns="by history" if seed % 2 else "by depth")
    rules = tabled.Tabled(reference.Tree(game))
    ours = batched_walk.walk(game, rules, observations=True)
    theirs, _ = state_walk.walk(game, observations=True)
    same(numbering.number(ours, game)[:2], numbering.number(theirs, game)[:2])


def test_legal_action_masks_are_not_copied_without_null_outcomes(monkeypatch):
    """In Kuhn poker, the second deal has two legal outcomes of three."""

    class UncopyableMask(np.ndarray):
        def copy(self, order="C"):
            raise AssertionError("copied")

    rules = tabled.Tabled(reference.Tree(games.compiled("kuhn").game))
    ask = rules.legal_actions_mask
    monkeypatch.setattr(
        rules, "legal_actions_mask", lambda states: ask(states).view(UncopyableMask)
    )
    walked = batched_walk.walk(games.compiled("kuhn").game, rules)
    assert len(walked) == 58 and not len(walked.dropped)


def test_observations_are_none_if_the_game_raises():
    class OnlyActingPlayer(tabled.Tabled):
        def information_state(self, states, player):
            if {self.nodes[i].player for i in states} != {player}:
                raise pyspiel.SpielError("only the player who acts")
            return super().information_state(states, player)

    game = games.compiled("kuhn").game
    rules = OnlyActingPlayer(reference.Tree(game))
    assert batched_walk.walk(game, rules, observations=True).observations is None


def test_games_may_return_no_batched_rules():
    class Game(rock_paper_scissors.RockPaperScissorsGame):
        def batched_rules(self):
            return None

    compiled = build_tree(Game())
    same(compiled, build_tree("python_rock_paper_scissors"))
    with pytest.raises(ValueError, match="the game has no batched rules"):
        batched_check.check(Game(), np.random.default_rng(0))


@pytest.mark.parametrize(
    "string", ["python_leduc_poker", "python_scotland_yard(rounds=3)"]
)
def test_information_state_strings_are_created_lazily(string):
    """One game's batched rules create the strings; for the other, OpenSpiel does."""
    compiled = build_tree(string)
    for player, infosets in enumerate(compiled.infosets):
        keys = infosets.keys
        assert keys.nbytes == 0
        assert len(keys) == len(infosets)
        some = [0, 7, len(keys) - 1]
        alone = [keys[i] for i in some]
        assert alone[2] == keys[-1] and keys.nbytes == 0
        for i, key in zip(some, alone, strict=True):
            state = compiled.game.new_initial_state()
            for action in compiled.histories.actions_to(int(infosets.history[i])):
                state.apply_action(action)
            assert state.information_state_string(player) == key
        every = list(keys)
        assert len(set(every)) == len(every) == len(keys)
        assert [every[i] for i in some] == alone == [keys[i] for i in some]
        assert keys[5:0:-2] == (every[5], every[3], every[1])
        assert keys.nbytes == sum(map(len, every)) + 8 * len(every)
        assert keys[np.int64(3)] == every[3] and every[3] in keys
        with pytest.raises(IndexError):
            keys[len(keys)]


def test_nbytes_includes_created_strings():
    """Arrays need at least 26 bytes per history; created strings are added."""
    compiled = build_tree("python_ii_goofspiel(num_cards=5)")
    before = compiled.nbytes
    assert 26 < before / len(compiled.histories) < 60
    list(compiled.infosets[0].keys)
    assert compiled.nbytes == before + compiled.infosets[0].keys.nbytes
    assert compiled.histories.chance.strides == (0,)
    assert build_tree("kuhn_poker").histories.chance.strides == (8,)


@pytest.mark.parametrize("limit", [1, 2, 30])
def test_raises_if_histories_exceed_the_limit(limit):
    string = "python_rock_paper_scissors(num_actions=5)"
    with pytest.raises(TooManyHistoriesError, match=f"max_histories={limit} "):
        build_tree(string, max_histories=limit)
    assert len(build_tree(string, max_histories=31).histories) == 31


@pytest.mark.slow
@pytest.mark.parametrize(
    ("string", "histories", "terminals"),
    [
        (KEEP, 4_854_291, 3_584_128),
        # An independent program gave these numbers.
        ("python_latent_tic_tac_toe", 73_159_699, 37_650_720),
    ],
)
def test_visits_count_histories_of_large_games(string, histories, terminals):
    """Visits do not store the tree."""
    opened, found = open_game(string), np.zeros(2, int)
    for visit in batched_rules.visits(opened.game, opened.rules):
        found += len(visit.player), np.count_nonzero(visit.player == TERMINAL)
    assert found.tolist() == [histories, terminals]


class _KuhnWithWrongMethod(tabled.Tabled):
    """The batched rules of Kuhn poker with one method replaced."""

    def __init__(self, method, change):
        super().__init__(reference.Tree(games.compiled("kuhn").game))
        right = getattr(self, method)
        setattr(self, method, lambda states, *more: change(right(states, *more)))


@pytest.mark.parametrize(
    ("method", "change", "words"),
    [
        ("current_player", lambda x: np.where(x == 1, 2, x), "gives 2; only"),
        ("current_player", lambda x: x.astype(float), "current_player.*float64"),
        ("current_player", lambda x: x[:, None], r"must give integers \[1\]"),
        ("legal_actions_mask", lambda x: x & False, "player -1 has no legal action"),
        ("legal_actions_mask", lambda x: x.astype(int), "legal_actions_mask.*bool"),
        ("legal_actions_mask", lambda x: x[0], "legal_actions_mask.*bool"),
        ("chance_probabilities", lambda x: x / 2, "sum to 1.*0.5"),
        ("chance_probabilities", lambda x: x[:, :2], "chance_probabilities.*, 3"),
        ("child", lambda x: x.astype(np.int32), "child.*int32"),
        ("child", lambda x: x[:1], "child.*int64"),
        ("information_state", lambda x: x * 0.5, "information_state.*float64"),
        ("information_state", lambda x: x[:1], "information_state.*integers"),
    ],
)
def test_rejects_invalid_batched_rules(method, change, words):
    game = games.compiled("kuhn").game
    with pytest.raises(ValueError, match=words):
        batched_walk.walk(game, _KuhnWithWrongMethod(method, change))
