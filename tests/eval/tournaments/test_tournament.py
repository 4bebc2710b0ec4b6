"""Tournaments: statistics, matches, and files after an interrupt."""

import csv
import itertools
import json
import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import expected_game_score

import spiel_cr
from spiel_cr.common import json_log
from spiel_cr.common.executor import Executor
from spiel_cr.eval.tournaments import round_robin, tournament
from spiel_cr.eval.tournaments.round_robin import RoundRobinConfig
from spiel_cr.evaluation import referee
from spiel_cr.players import player_specs
from spiel_cr.players.bots import uniform_bot
from spiel_cr.players.player_strings import read_string
from tests.support.commands import outputs, rejection, report, run
from tests.support.scripted import Scripted

KUHN = "kuhn_poker"
SOLVED = "solved(solver=cfr+,iterations=50)"
RESOLVING = "resolving(solver=cfr+,iterations=20)"
BOTS = ("uniform", SOLVED, RESOLVING)
RESULTS = ("bots", "mean", "half_width", "matches")
# Of Student's t with two degrees of freedom: 2 (p - 1/2) / sqrt(2 p (1 - p)) at
# p = 0.975.
T_2 = 2 * 0.475 / math.sqrt(2 * 0.975 * 0.025)


def play(out, *, bots=BOTS, matches=6, game=KUHN, **options):
    observers = options.pop("observers", ())
    config = RoundRobinConfig(**options)
    return tournament.play_tournament(
        game, bots, matches, out, config, observers=observers
    )


def results(played):
    return {key: getattr(played, key) for key in RESULTS}


def lines(out):
    """Return the logged matches; none exist before the first match ends."""
    file = out / "matches.jsonl"
    text = file.read_text("utf-8") if file.exists() else ""
    return [json_log.unsealed(line) for line in text.splitlines()]


def moves(out):
    """Return the logged matches without times."""
    return [
        {
            key: line[key]
            for key in line
            if key not in ("seconds", "deadline_misses", "crc")
        }
        for line in lines(out)
    ]


class Stop(Exception):
    """A simulated crash."""


def stopper(actions, error=Stop):
    """Return an observer that raises at the given action."""
    counter = itertools.count(1)

    def observe(state, player, action):
        if next(counter) == actions:
            raise error

    return observe


def write_log(out, returns):
    """Write a finished tournament of two bots with (unswapped, swapped) returns."""
    play(out, bots=["uniform", "uniform"], matches=2 * len(returns))
    made = lines(out)
    for line in made:
        won = returns[line["deal"]][line["swapped"]]
        line["returns"] = [-won, won] if line["swapped"] else [won, -won]
    text = "".join(json.dumps(json_log.sealed(line)) + "\n" for line in made)
    (out / "matches.jsonl").write_text(text)


def test_results_equal_a_calculation_by_hand(tmp_path):
    """Returns 1, 3; -2, 0; 4, 6 are means 2, -1, 5 of deals: standard error sqrt(3)."""
    write_log(tmp_path, [(1.0, 3.0), (-2.0, 0.0), (4.0, 6.0)])
    found = play(tmp_path, bots=["uniform", "uniform"], matches=6)
    half = pytest.approx(T_2 * math.sqrt(3), abs=1e-12)
    assert found.mean == [[None, 2.0], [-2.0, None]]
    assert found.half_width == [[None, half], [half, None]]
    assert found.matches == [[0, 6], [6, 0]]
    (row,) = csv.DictReader((tmp_path / "table.csv").open())
    assert float(row["mean_as_player_0"]) == 1.0
    assert float(row["mean_as_player_1"]) == 3.0
    # A call with fewer matches reports those only.
    less = play(tmp_path, bots=["uniform", "uniform"], matches=4)
    assert less.mean[0][1] == 0.5
    assert less.matches[0][1] == 4


def test_every_pair_plays_in_both_seats_with_the_same_deals(tmp_path):
    found = play(tmp_path, matches=6)
    made = lines(tmp_path)
    assert len(made) == 3 * 6
    assert found.matches == [[0 if i == j else 6 for i in range(3)] for j in range(3)]
    by_deal = {}
    for line in made:
        row, column = BOTS[line["row"]], BOTS[line["column"]]
        expected = [column, row] if line["swapped"] else [row, column]
        assert line["players"] == expected
        by_deal.setdefault((line["row"], line["column"], line["deal"]), []).append(line)
    assert len(by_deal) == 9
    for one, other in by_deal.values():
        assert {one["swapped"], other["swapped"]} == {False, True}
        assert one["actions"][:2] == other["actions"][:2]
    assert len({tuple(one["actions"][:2]) for one, _ in by_deal.values()}) > 2


def test_results_follow_from_the_logged_matches(tmp_path):
    found = play(tmp_path, matches=8)
    game = pyspiel.load_game(KUHN)
    total = np.zeros((3, 3))
    for line in lines(tmp_path):
        state = game.new_initial_state()
        for action in line["actions"]:
            state.apply_action(action)
        assert line["returns"] == state.returns()
        first = BOTS.index(line["players"][0])
        second = BOTS.index(line["players"][1])
        total[first, second] += state.returns()[0]
        total[second, first] += state.returns()[1]
    for i, j in itertools.permutations(range(3), 2):
        assert found.mean[i][j] == pytest.approx(total[i, j] / 8, abs=1e-12)
        assert found.half_width[i][j] == found.half_width[j][i] > 0
    assert all(found.mean[i][i] is None is found.half_width[i][i] for i in range(3))


def test_mean_per_seat_equals_the_exact_value(tmp_path):
    """Each seat of uniform against a solution has the value computed by OpenSpiel.

    The tolerance is 4 standard errors per seat: one false alarm in 8,000 seeds.
    """
    play(tmp_path, bots=["uniform", SOLVED], matches=6000)
    game = pyspiel.load_game(KUHN)
    solved = spiel_cr.solve(KUHN, "cfr+", 50).average_policy()
    uniform = uniform_bot(KUHN, 0)._policy
    made = lines(tmp_path)
    values = []
    for swapped, policies in ((False, [uniform, solved]), (True, [solved, uniform])):
        state = game.new_initial_state()
        value = expected_game_score.policy_value(state, policies)[int(swapped)]
        returns = [m["returns"][swapped] for m in made if m["swapped"] == swapped]
        error = np.std(returns) / math.sqrt(len(returns))
        assert abs(np.mean(returns) - value) < 4 * error
        values.append(value)
    # If the seats were not swapped, the second check would fail by this margin.
    assert abs(values[1] + values[0]) > 8 * error


def test_same_seed_gives_the_same_matches(tmp_path):
    one = play(tmp_path / "one", seed=5)
    two = play(tmp_path / "two", seed=5)
    other = play(tmp_path / "other", seed=6)
    assert results(one) == results(two)
    assert moves(tmp_path / "one") == moves(tmp_path / "two")
    assert moves(tmp_path / "one") != moves(tmp_path / "other")
    assert one.mean != other.mean


@pytest.mark.parametrize(
    ("actions", "error"), [(1, Stop), (37, KeyboardInterrupt), (60, Stop)]
)
def test_resumed_tournament_equals_an_uninterrupted_run(tmp_path, actions, error):
    straight = play(tmp_path / "straight")
    out = tmp_path / "stopped"
    with pytest.raises(error):
        play(out, observers=[stopper(actions, error)])
    before = moves(out)
    assert len(before) < 18
    assert not (out / "summary.json").exists()
    resumed = play(out)
    assert results(resumed) == results(straight)
    assert moves(out) == moves(tmp_path / "straight")
    assert moves(out)[: len(before)] == before
    for name in ("summary.json", "table.csv"):
        here, there = (folder / name for folder in (out, tmp_path / "straight"))
        assert here.exists()
        if name == "table.csv":
            assert here.read_text() == there.read_text()


def test_finished_tournament_plays_no_further_matches(tmp_path):
    straight = play(tmp_path)
    before = (tmp_path / "matches.jsonl").read_bytes()
    (tmp_path / "summary.json").unlink()
    again = play(tmp_path, observers=[stopper(1)])
    assert again == straight
    assert (tmp_path / "matches.jsonl").read_bytes() == before
    assert (tmp_path / "summary.json").exists()


def test_each_match_is_written_when_it_ends(tmp_path):
    seen = []

    def look(state, player, action):
        if not state.history():
            seen.append(len(lines(tmp_path)))

    play(tmp_path, observers=[look])
    assert seen == list(range(18))


def test_more_matches_extend_those_on_disk(tmp_path):
    play(tmp_path / "grown", matches=2)
    before = moves(tmp_path / "grown")
    grown = play(tmp_path / "grown", matches=6)
    assert moves(tmp_path / "grown")[: len(before)] == before
    assert results(grown) == results(play(tmp_path / "straight", matches=6))


def test_single_deal_has_no_interval(tmp_path):
    found = play(tmp_path, bots=BOTS[:2], matches=2)
    assert found.half_width == [[None, None], [None, None]]
    assert found.mean[0][1] is not None


def test_error_names_a_corrupt_line(tmp_path):
    play(tmp_path)
    log = tmp_path / "matches.jsonl"
    made = log.read_text().splitlines(keepends=True)
    wrong = lines(tmp_path)[3]
    wrong["returns"] = [0.0, *wrong["returns"]]
    made[3] = json.dumps(json_log.sealed(wrong)) + "\n"
    log.write_text("".join(made))
    with pytest.raises(
        ValueError, match="line 4, is not a valid match.*has a wrong returns"
    ):
        play(tmp_path)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"seed": 1}, "seed=0, not 1"),
        ({"bots": ("uniform", RESOLVING)}, "bots=.*solved.*not.*resolving"),
        ({"bots": (SOLVED, "uniform")}, "bots="),
        ({"game": "leduc_poker"}, "game='kuhn_poker.*leduc_poker"),
    ],
)
def test_rejects_the_folder_of_another_tournament(tmp_path, options, named):
    base = {"bots": ("uniform", SOLVED), "matches": 2}
    play(tmp_path, **base)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=named) as refused:
        play(tmp_path, **{**base, **options})
    assert str(tmp_path) in str(refused.value)
    assert "another folder" in str(refused.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_accepts_an_equivalent_game_string(tmp_path):
    first = play(tmp_path, bots=BOTS[:2], matches=2)
    other = play(tmp_path, bots=BOTS[:2], matches=2, game="kuhn_poker(players=2)")
    assert other == first


def test_unknown_bot_does_not_occupy_the_folder(tmp_path):
    with pytest.raises(ValueError, match="unifrom"):
        play(tmp_path, bots=["uniform", "unifrom"])
    play(tmp_path, bots=["uniform", "uniform"], matches=2)


def test_illegal_action_error_names_the_match(tmp_path, monkeypatch):
    cheat, load = Scripted(lambda state: 7), spiel_cr.load_bot

    def load_cheat(game, text, player, *, seed):
        return load(game, text, player, seed=seed) if text == "uniform" else cheat

    monkeypatch.setattr(round_robin, "load_bot", load_cheat)
    uniform = read_string("uniform")
    monkeypatch.setattr(round_robin, "read_string", lambda text, name: uniform)
    monkeypatch.setattr(player_specs, "read_string", lambda text, name: uniform)
    with pytest.raises(ValueError, match="uniform and cheat, deal 0.*illegal action 7"):
        play(tmp_path, bots=["uniform", "cheat"])


def test_efforts_report_moves_times_and_deadline_misses(tmp_path):
    timed = "resolving(solver=cfr+,move_ms=0.000001,init_ms=1)"
    found = play(tmp_path, bots=["uniform", RESOLVING, timed], matches=6)
    made = lines(tmp_path)
    uniform, resolving, late = found.efforts
    assert [effort.bot for effort in found.efforts] == list(found.bots)
    for effort in found.efforts:
        own = [
            1000 * seconds
            for line in made
            for name, answers in zip(line["players"], line["seconds"], strict=True)
            if name == effort.bot
            for seconds in answers
        ]
        assert effort.moves == len(own) > 12
        assert effort.max_ms == pytest.approx(max(own))
        assert effort.mean_ms == pytest.approx(np.mean(own))
        assert effort.compilations == 0
    assert uniform.deadline_misses is None
    assert resolving.deadline_misses == 0
    assert late.deadline_misses == late.moves
    summary = json.loads((tmp_path / "summary.json").read_text("utf-8"))
    assert summary["efforts"] == [effort._asdict() for effort in found.efforts]


def test_tournament_command_prints_and_saves_its_table(tmp_path, capsys):
    words = ("tournament", "--game", KUHN, "--bots", f"uniform; {SOLVED};{RESOLVING}")
    words += ("--matches", 5, "--out", tmp_path / "new" / "out", "--seed", 3)
    found, shown, err = outputs(capsys, *words)
    table = shown.splitlines()
    assert found.keys() == {*RESULTS, "unvisited_share", "plain_half_width"}
    assert found["unvisited_share"] == [None] * 3
    assert found["bots"] == list(BOTS)
    assert found["matches"] == [[0, 6, 6], [6, 0, 6], [6, 6, 0]]
    for i, j in itertools.permutations(range(3), 2):
        cell = f"{found['mean'][i][j]:+.4f} ± {found['half_width'][i][j]:.4f}"
        assert any(line.startswith(f"[{i + 1}]") and cell in line for line in table)
    assert "--matches 5 is odd: 6" in err
    assert "18/18" in err
    out = tmp_path / "new" / "out"
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert {key: summary[key] for key in RESULTS}.items() <= found.items()
    assert summary["seed"] == 3
    assert "spiel_cr" in summary["versions"]
    rows = list(csv.DictReader((out / "table.csv").open()))
    assert [(row["row"], row["column"]) for row in rows] == [
        (BOTS[i], BOTS[j]) for i, j in itertools.combinations(range(3), 2)
    ]
    assert float(rows[0]["mean"]) == found["mean"][0][1]
    assert float(rows[0]["half_width"]) == found["half_width"][0][1]
    assert not [path for path in out.iterdir() if path.name.endswith(".part")]
    assert report(capsys, *words) == found


def test_interrupted_command_reports_where_results_are_kept(
    tmp_path, capsys, monkeypatch
):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(referee, "play_match", interrupt)
    with pytest.raises(SystemExit, match="130"):
        run(
            "tournament", "--game", KUHN, "--bots", "uniform;uniform", "--out", tmp_path
        )
    assert f"kept in {tmp_path}" in capsys.readouterr().err


def test_game_tree_is_not_built_if_no_bot_needs_it(tmp_path, nothing_is_compiled):
    bots = ["uniform", "uniform"]
    # About 2e10 histories.
    found = play(tmp_path, bots=bots, matches=2, game="phantom_ttt")
    assert found.matches[0][1] == 2
    settings = json.loads((tmp_path / "settings.json").read_text("utf-8"))
    assert settings["game"] == "phantom_ttt()" and settings["fingerprint"] is None
    assert play(tmp_path, bots=bots, matches=2, game="phantom_ttt()") == found
    with pytest.raises(ValueError, match=r"game='phantom_ttt\(\)', not 'kuhn_poker"):
        play(tmp_path, bots=bots, matches=2, game=KUHN)


def test_folder_of_a_game_tree_resumes_with_a_game_string(tmp_path):
    bots = ["uniform", "uniform"]
    tree = spiel_cr.build_tree(KUHN, observations=True)
    first = play(tmp_path, bots=bots, matches=2, game=tree)
    settings = json.loads((tmp_path / "settings.json").read_text("utf-8"))
    assert settings["fingerprint"]
    assert play(tmp_path, bots=bots, matches=2) == first


@pytest.mark.parametrize("bot", [RESOLVING, SOLVED, "oos(iterations=2)"])
def test_rejects_a_bot_whose_game_tree_is_too_large(tmp_path, capsys, bot):
    out = tmp_path / "out"
    words = ("--game", "phantom_ttt", "--bots", f"uniform;{bot}", "--out", out)
    error = rejection(capsys, "tournament", *words)
    assert f"bot={bot!r} needs the game tree" in error and "memory_limit" in error
    remedy = f"{bot.partition('(')[0]}(max_histories=N"
    assert (remedy in error) == bot.startswith("resolving")
    assert not out.exists()


def test_memory_limit_applies_to_bots(tmp_path):
    with pytest.raises(ValueError, match="memory_limit='much' is not a size"):
        play(tmp_path, memory_limit="much")
    with pytest.raises(ValueError, match="bot='resolving.*memory_limit is 0.41 GB"):
        play(
            tmp_path,
            bots=["uniform", RESOLVING],
            game="python_ii_goofspiel(num_cards=6)",
            memory_limit="410MB",
        )


@pytest.mark.slow
def test_lookahead_player_plays_a_game_without_a_game_tree(tmp_path):
    bot = (
        "resolving(max_histories=500,iterations=1,warmup_matches=0,"
        "blueprint_iterations=1)"
    )
    found = play(tmp_path, bots=[bot, "uniform"], matches=2, game="phantom_ttt")
    assert found.matches[0][1] == 2 and found.efforts[0].moves >= 6


def test_workers_give_the_same_matches_in_the_same_order(tmp_path):
    """Two workers write matches in order of completion; the file is sorted later."""
    names, executor = ["uniform", "solved(iterations=5)"], Executor(2)
    config = RoundRobinConfig(executor=executor)
    spread = tournament.play_tournament(
        "kuhn_poker", names, 12, tmp_path / "two", config
    )
    alone = tournament.play_tournament("kuhn_poker", names, 12, tmp_path / "one")
    assert results(spread) == results(alone)
    assert moves(tmp_path / "two") == moves(tmp_path / "one")
