"""Reading files of Gambit, and exporting games and policies to Gambit."""

import functools
import io
import itertools
import pickle
import sys

import numpy as np
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr import gambit
from spiel_cr.gambit.export import _preorder_infosets
from spiel_cr.games.opening import gambit_files
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.policies import conversions
from tests.support import commands
from tests.support.made_games import random_game

pygambit = pytest.importorskip("pygambit")

HEAD = 'EFG 2 R "a game" { "Ann" "Bob" }\n""\n'
PENNIES_NFG = (
    'NFG 1 R "pennies" { "Ann" "Bob" }\n{ { "H" "T" } { "H" "T" } }\n""\n'
    '{ { "win" 2, -2 } { "lose" -1, 1 } }\n1 2 2 1\n'
)
# Matching pennies of value 1/2, in several spellings.
PENNIES = {
    "outcomes of a table": PENNIES_NFG,
    "payoffs of a table": 'NFG 1 D "pennies" { "Ann" "Bob" } { 2 2 }\n'
    "2 -2 -1 1 -1 1 2.0 -2.0\n",
    "actions listed once": HEAD + 'p "" 1 1 "" { "H" "T" } 0\n'
    'p "" 2 1 "" { "h" "t" } 0\nt "" 1 "" { 2 -2 }\nt "" 2 "" { -1 1 }\n'
    'p "" 2 1 0\nt "" 2\nt "" 1\n',
    "outcomes before their definition": HEAD + 'p "" 1 1 "" { "H" "T" } 0\n'
    'p "" 2 1 "" { "h" "t" } 0\nt "" 1\nt "" 2\n'
    'p "" 2 1 0\nt "" 2 "" { -1 1 }\nt "" 1 "" { 2 -2 }\n',
    "payoffs at inner nodes": HEAD + 'p "" 1 4 "" { "H" "T" } 0\n'
    'p "" 2 7 "" { "h" "t" } 3 "ante" { 1/2 -1/2 }\nt "" 1 "" { 3/2 -3/2 }\n'
    't "" 2 "" { -1.5 1.5 }\np "" 2 7 "" { "h" "t" } 3\nt "" 2\nt "" 1\n',
    "a chance outcome of probability zero": HEAD + 'c "" 1 "" { "a" 1 "b" 0 } 0\n'
    'p "" 1 1 "" { "H" "T" } 0\np "" 2 1 "" { "h" "t" } 0\nt "" 1 "" { 2 -2 }\n'
    't "" 2 "" { -1 1 }\np "" 2 1 "" { "h" "t" } 0\nt "" 2\nt "" 1\n'
    'p "" 1 2 "" { "X" "Y" } 0\nt "" 3 "" { 100 -100 }\nt "" 4 "" { -100 100 }\n',
}
# A constant-sum game of value 0.5225 for player 0 under uniform play.
CONSTANT = (
    HEAD + 'c "" 1 "" { "Flush" 1/100 "Air" 99/100 } 0\n'
    'p "" 1 1 "" { "Bet" "Check" } 0\np "" 2 1 "" { "Call" "Fold" } 0\n'
    't "" 1 "" { 5 -4 }\nt "" 2 "" { 2 -1 }\nt "" 3 "" { 1 0 }\n'
    'p "" 1 2 "" { "Bluff" "Check" } 0\np "" 2 1 "" { "Call" "Fold" } 0\n'
    't "" 4 "" { -4 5 }\nt "" 2 "" { 2 -1 }\nt "" 5 "" { 1/2 1/2 }\n'
)
FEW = ["kuhn_poker", "matrix_rps", "python_ii_goofspiel(num_cards=3)"]
GOOFSPIEL = "goofspiel(imp_info=true,points_order=descending,num_cards={})"
UNIVERSAL = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=1,blind=1 1,firstPlayer=1,"
    "numSuits=1,numRanks={},numHoleCards=1,numBoardCards=0,raiseSize=1,maxRaises={})"
)
DARK_HEX = "dark_hex(num_rows=2,num_cols=2,gameversion={},obstype=reveal-{})"
BATTLESHIP = (
    "battleship(board_width=2,board_height={},ship_sizes=[1],ship_values=[1],"
    "num_shots={})"
)
MANY = [
    *("kuhn_poker", "leduc_poker", "python_kuhn_poker", "python_leduc_poker"),
    *("leduc_poker(suit_isomorphism=true)", "python_rock_paper_scissors"),
    *(
        "connect_four(rows=3,columns=3,x_in_row=3)",
        "go(board_size=2,max_game_length=6)",
    ),
    *("restricted_nash_response(game=kuhn_poker(),p=0.5)", "coordinated_mp"),
    *("start_at(history=0;1,game=kuhn_poker())", "misere(game=nim(pile_sizes=2;2))"),
    *("turn_based_simultaneous_game(game=matrix_mp())", "hex(num_rows=2,num_cols=2)"),
    *(f"matrix_{name}" for name in ("mp", "rps", "rpsw", "brps")),
    *(f"liars_dice(numdice=1,dice_sides={n})" for n in (2, 3, 4)),
    *map(GOOFSPIEL.format, ("2", "3", "4", "5,num_turns=2", "5,num_turns=3")),
    *(f"goofspiel(num_cards={n},imp_info=true)" for n in (2, 3)),
    *(f"python_ii_goofspiel(num_cards={n})" for n in (2, 3, 4)),
    *(f"python_princess_and_monster(horizon={n})" for n in (2, 3, 4)),
    *itertools.starmap(UNIVERSAL.format, itertools.product((3, 4, 5), (1, 2, 3))),
    *itertools.starmap(
        DARK_HEX.format, itertools.product(("cdh", "adh"), ("nothing", "numturns"))
    ),
    *(f"nim(pile_sizes={piles})" for piles in ("1;2", "1;2;3", "2;2", "3;3")),
    *(f"blotto(players=2,coins={n},fields={m})" for n in range(2, 6) for m in (2, 3)),
    *(f"oshi_zumo(coins={n},size=1,horizon=3)" for n in (2, 3, 4)),
    *itertools.starmap(BATTLESHIP.format, itertools.product((1, 2), (1, 2))),
]


def solved(text, tmp_path, suffix=".efg"):
    path = tmp_path / f"game{suffix}"
    path.write_text(text, "utf-8")
    return spiel_cr.solve(str(path), "lp")


@pytest.mark.parametrize("spelling", PENNIES)
def test_reads_all_spellings_of_matching_pennies(spelling, tmp_path):
    text = PENNIES[spelling]
    result = solved(text, tmp_path, f".{text[:3].lower()}")
    assert result.game_value() == pytest.approx(0.5)
    assert [len(infosets) for infosets in result.tree.infosets] == [1, 1]


def test_file_labels_name_actions_and_infosets(tmp_path):
    text = HEAD + 'p "here" 1 1 "my \\"first\\"  move" { "" "" "B\\\\et" } 0\n'
    text += "".join(f't "" {n} "" {{ {n} -{n} }}\n' for n in (1, 2, 3))
    result = solved(text, tmp_path)
    state = result.game.new_initial_state()
    names = [state.action_to_string(action) for action in state.legal_actions()]
    assert sorted(names) == ["1", "2", "B/et"]
    assert "my 'first' move" in result.tree.label(0, 0)
    assert result.game_value() == pytest.approx(3)


def test_game_identity_depends_only_on_content(tmp_path):
    """A copy of the file at another path is the same game; other content is not."""
    texts = {"a": PENNIES["actions listed once"], "b": CONSTANT}
    for name in "abc":
        folder = tmp_path / name
        folder.mkdir()
        (folder / "game.efg").write_text(texts.get(name, texts["a"]), "utf-8")
    games = [spiel_cr.load_game(tmp_path / name / "game.efg") for name in "abc"]
    assert str(games[0]) == str(games[2]) != str(games[1])
    assert str(pickle.loads(pickle.dumps(games[0]))) == str(games[0])
    checkpoint = spiel_cr.Checkpoint(tmp_path / "checkpoint.npz")
    paths = [str(tmp_path / name / "game.efg") for name in "ac"]
    spiel_cr.solve(paths[0], "cfr+", 3, checkpoint=checkpoint)
    resumed = spiel_cr.solve(paths[1], "cfr+", 5, checkpoint=checkpoint)
    resumed.save(tmp_path / "policy.npz")
    (tmp_path / "a" / "game.efg").unlink()
    policy = spiel_cr.load_policy(tmp_path / "policy.npz")
    assert spiel_cr.nash_conv(paths[1], policy) == pytest.approx(resumed.nash_conv())


def test_pygambit_games_are_solved_like_files(tmp_path):
    for text, read in ((CONSTANT, pygambit.read_efg), (PENNIES_NFG, pygambit.read_nfg)):
        given = read(io.BytesIO(text.encode()))
        value = spiel_cr.solve(given, "lp").game_value()
        suffix = f".{text[:3].lower()}"
        assert value == pytest.approx(solved(text, tmp_path, suffix).game_value())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EFG 2 R", "ends too early"),
        ("a text", "begin with EFG or NFG"),
        (HEAD + 'p "" 3 1 "" { "a" } 0\nt "" 1 "" { 1 1 }', "line 3.*no player 3"),
        (HEAD + 'c "" 1 "" { "a" 1/2 } 0\nt "" 1 "" { 1 1 }', "line 3.*must sum to 1"),
        (HEAD + 't "" 1 "" { 1 }', "line 3.*2 payoffs"),
        (HEAD + 't "" 1', "outcome 1 is never defined"),
        (HEAD + 't "" 1 "" { x 1 }', "'x' must be a number"),
        (HEAD + 't "" 1 "" { 1/0 1 }', "divides by zero"),
        (HEAD + 'p "" 1 1 "" { "a" } 0\n', "more branches than nodes"),
        (HEAD + 't "" 1 "" { 1 -1 }\nt "" 1', "end of the tree"),
        (HEAD + 'p "" 1 1 "" 0\nt "" 1 "" { 1 -1 }', "has no actions"),
        (PENNIES_NFG.replace("1 2 2 1", "1 2 2 7"), "no outcome 7"),
        (HEAD.replace('"Bob"', '"Bob" "Cy"') + 't "" 1 "" { 1 1 1 }', "two players"),
        (HEAD + 'p "" 1 1 "" { "a" "b" } 0\nt "" 1 "" { 1 1 }\nt "" 2 "" { 2 1 }',
         "game.efg: spiel_cr solves zero-sum.*general-sum; use Gambit's"),
    ],
)  # fmt: skip
def test_rejects_invalid_files(text, message, tmp_path):
    path = tmp_path / f"game.{'nfg' if text.startswith('NFG') else 'efg'}"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        spiel_cr.load_game(path)


def test_raises_if_the_file_does_not_exist():
    with pytest.raises(FileNotFoundError, match="nowhere.efg.*there is no such file"):
        spiel_cr.solve("nowhere.efg", "lp")


def test_constant_sum_values_equal_openspiel_and_gambit(tmp_path):
    """Values are in the units of the game, before any conversion to zero-sum."""
    result = solved(CONSTANT, tmp_path)
    exact = pygambit.nash.lcp_solve(pygambit.read_efg(io.BytesIO(CONSTANT.encode())))
    equilibrium = (getattr(exact, "equilibria", None) or [exact.equilibrium])[0]
    payoffs = [float(equilibrium.payoffs[p]) for p in exact.game.players]
    assert result.game_value() == pytest.approx(payoffs[0])
    assert result.value_bounds() == pytest.approx([payoffs[0]] * 2)
    game, policy = result.game, result.average_policy()
    for player in (0, 1):
        response = spiel_cr.best_response(game, policy, player)
        assert response.value == pytest.approx(payoffs[player])
    table = exploitability.nash_conv(game, policy)
    assert spiel_cr.nash_conv(game, policy) == pytest.approx(table, abs=1e-9)
    uniform_policy = openspiel_policy.UniformRandomPolicy(game)
    expected = exploitability.nash_conv(game, uniform_policy)
    uniform = spiel_cr.exploit(game, "uniform", seconds=9)
    assert uniform.value == pytest.approx(expected)
    values = [each.value for each in uniform.players]
    assert sum(values) - 1 == pytest.approx(uniform.value)
    matches = spiel_cr.play_matches(game, ["uniform", "uniform"], 400, seed=1)
    assert matches.mean == pytest.approx(0.5, abs=0.3)


def compare(game, random):
    """Compare a game that was exported to Gambit with the original."""
    tree = spiel_cr.build_tree(game)
    first, second = (
        np.concatenate([[1.0], *(random.dirichlet(np.ones(n)) for n in d.num_actions)])
        for d in tree.decisions
    )
    policy = conversions.tabular_policy(tree, (first, second))
    exported, profile = gambit.to_gambit(tree, policy)
    value = conversions.action_values(tree, (first, second))[1]
    offset = payoff_offset(tree.game)
    payoffs = [float(profile.payoffs[player]) for player in exported.players]
    close = functools.partial(
        pytest.approx, abs=1e-9 * max(1.0, np.abs(tree.histories.utility).max())
    )
    assert payoffs == close([offset + value, offset - value])
    again = spiel_cr.build_tree(exported)
    assert len(again.histories) == len(tree.histories)
    played = [
        translated(tree, again, player, behaviour)
        for player, behaviour in enumerate((first, second))
    ]
    other = conversions.tabular_policy(again, tuple(played))
    nash_conv = spiel_cr.nash_conv(tree, policy)
    assert spiel_cr.nash_conv(again, other) == close(nash_conv)
    assert conversions.action_values(again, tuple(played))[1] == close(value)


def translated(tree, again, player, behaviour):
    """Translate a strategy to a game that was exported and read again.

    Infosets correspond in the order of the file, and actions by their names.
    """
    orders = [_preorder_infosets(each, player) for each in (tree, again)]
    played = np.ones(again.decisions[player].num_sequences)
    for old, new in zip(*orders, strict=True):
        names = names_of(tree, player, old)
        begin = tree.decisions[player].first_sequence[old]
        rows = dict(zip(names, behaviour[begin : begin + len(names)], strict=True))
        names = names_of(again, player, new)
        begin = again.decisions[player].first_sequence[new]
        played[begin : begin + len(names)] = [rows.pop(name) for name in names]
        assert not rows
    return played


def names_of(tree, player, infoset):
    """Return the names of an infoset's actions in exported files."""
    state = tree.state_at(tree.infosets[player].history[infoset])
    actions = tree.actions(player, infoset).tolist()
    names = [state.action_to_string(player, action) for action in actions]
    return gambit_files.distinct_labels([gambit_files.quoted(name) for name in names])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_payoffs_near_the_largest_float_do_not_overflow(tmp_path):
    text = CONSTANT.replace("{ 5 -4 }", "{ 1e300 -1e300 }").replace(
        "2 -1", "1e299 -1e299"
    )
    text = text.replace("{ 1 0 }", "{ 0 0 }").replace("{ 1/2 1/2 }", "{ 0 0 }")
    result = solved(text.replace("{ -4 5 }", "{ -1e300 1e300 }"), tmp_path)
    game, uniform = result.game, "uniform"
    assert result.nash_conv() <= 1e290
    assert spiel_cr.solve(game, "cfr+", 9).nash_conv() < spiel_cr.nash_conv(
        game, uniform
    )
    search = spiel_cr.ResponseConfig("ismcts", matches=10)
    found = spiel_cr.best_response(game, uniform, 0, search).value
    best = spiel_cr.best_response(game, uniform, 0).value
    assert 0 < found <= best * (1 + 1e-9)
    half_width = spiel_cr.play_matches(game, [uniform, uniform], 20).half_width
    assert 0 < half_width < 1e301


@pytest.mark.parametrize("game", FEW)
def test_exported_games_equal_the_originals(game):
    compare(game, np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize("game", MANY)
def test_many_exported_games_equal_the_originals(game):
    compare(game, np.random.default_rng(1))


@pytest.mark.parametrize(
    "seeds", [range(5), pytest.param(range(100), marks=pytest.mark.slow)]
)
def test_exported_random_trees_equal_the_originals(seeds):
    for seed in seeds:
        compare(random_game(seed), np.random.default_rng(seed))


def test_number_of_exported_games():
    assert len(set(MANY)) >= 60


def test_constant_sum_games_are_exported(tmp_path):
    result = solved(CONSTANT, tmp_path)
    game, profile = gambit.to_gambit(result.game, result)
    assert game.is_const_sum and float(profile.max_regret()) < 1e-9
    payoffs = [float(profile.payoffs[player]) for player in game.players]
    assert payoffs == pytest.approx([result.game_value(), 1 - result.game_value()])


def test_export_command_writes_a_solvable_file(capsys, tmp_path):
    path = str(tmp_path / "kuhn.efg")
    report = commands.report(capsys, "export", "--game", "kuhn_poker", "--efg", path)
    assert report["histories"] == 58
    report = commands.report(capsys, "solve", "--game", path, "--algorithm", "lp")
    assert report["game_value"] == pytest.approx(-1 / 18)


def test_files_are_solved_without_pygambit(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pygambit", None)
    assert solved(CONSTANT, tmp_path).nash_conv() < 1e-9
    with pytest.raises(ImportError, match="pip install 'spiel_cr.gambit.'"):
        gambit.to_gambit("kuhn_poker", "uniform")


def test_matches_of_constant_sum_games_report_the_games_payoffs(tmp_path, capsys):
    path = tmp_path / "game.efg"
    path.write_text(CONSTANT, "utf-8")
    words = ("--game", path, "--bots", "uniform;uniform", "--matches", 6, "--seed", 1)
    report, text, _ = commands.outputs(capsys, "play", *words)
    game, totals = spiel_cr.load_game(path), np.zeros(2)
    for number, match in enumerate(report["matches"]):
        state = game.new_initial_state()
        for action in match["actions"]:
            state.apply_action(action)
        assert match["returns"] == pytest.approx(state.returns())
        assert sum(match["returns"]) == pytest.approx(1)
        totals += state.returns()[:: -1 if number % 2 else 1]
    assert report["totals"] == pytest.approx(list(totals))
    assert f"score after 6: uniform {totals[0]:+g}, uniform {totals[1]:+g}" in text
