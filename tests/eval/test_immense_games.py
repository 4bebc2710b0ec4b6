"""Commands reject games whose tree does not fit in memory, by default.

Each is rejected within seconds. The message has the size of the game, the memory limit
and a remedy. `spiel-cr best-response` continues without a game tree.
"""

import time

import pytest

import spiel_cr
from spiel_cr.common import memory
from spiel_cr.evaluation import best_response
from tests.support.commands import run

HOLDEM = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=5 10,"
    "raiseSize=10 10 20 20,maxRaises=3 4 4 4,numSuits=4,numRanks=13,numHoleCards=2,"
    "numBoardCards=0 3 1 1,firstPlayer=1 1 1 1)"
)
# A deep game, for all commands, and one that is only a thousand times too large.
DEEP, LARGE = "chess", "goofspiel(imp_info=true,num_cards=9)"
GAMES = (
    DEEP,
    LARGE,
    *"battleship go(board_size=9) hex(board_size=11) kriegspiel checkers hive".split(),
    *("dots_and_boxes(num_rows=4,num_cols=4)", "quoridor", "othello", "connect_four"),
    *("liars_dice(numdice=3,dice_sides=6)", "goofspiel(imp_info=true,num_cards=13)"),
    *("python_ii_goofspiel(num_cards=9)", "oshi_zumo(coins=50,size=3)"),
    *("dark_hex(board_size=5)", HOLDEM),
)
COMMANDS = {
    "info": "",
    "solve": "",
    "resolve": "",
    "evaluate": "--bot uniform --method traversal",
    "subgame": "--actions 0",
    "show": "--policy POLICY",
    "compare": "--algorithms uniform --out OUT",
    "best-response": "--policy uniform",
    "play": "--bots uniform;solved(iterations=1)",
}
# Seconds of CPU time, because the machine may have other work.
MOST_SECONDS = 15


def _is_quick(game, command):
    return game == DEEP or (game, command) == (LARGE, "solve")


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    path = tmp_path_factory.mktemp("immense") / "kuhn.npz"
    spiel_cr.solve("kuhn_poker", "lp").save(path)
    return path


@pytest.mark.parametrize(
    ("game", "command"),
    [
        pytest.param(game, command, marks=marks)
        for game in GAMES
        for command in COMMANDS
        for marks in [() if _is_quick(game, command) else pytest.mark.slow]
    ],
)
def test_commands_reject_immense_games_within_seconds(
    tmp_path, capsys, monkeypatch, policy, game, command
):
    options = COMMANDS[command].replace("POLICY", str(policy))
    words = options.replace("OUT", str(tmp_path / "out")).split()

    def search(*_):
        # Like a user who interrupts after the search has started.
        raise KeyboardInterrupt

    monkeypatch.setattr(best_response, "_respond_on_states", search)
    held, began = memory.held_bytes(), time.process_time()
    with pytest.raises(SystemExit) as stopped:
        run(command, "--game", game, *words)
    assert time.process_time() - began < MOST_SECONDS
    # Enumerating the game would have used more within a second.
    assert memory.held_bytes() - held < 5e7
    lines = capsys.readouterr().err.strip().splitlines()
    if command == "best-response":
        assert stopped.value.code == 130
        (last,) = (line for line in lines if line.startswith("searching in matches: "))
    else:
        last = lines[-1]
        assert stopped.value.code == 2 and last.startswith("spiel-cr: error: ")
    parts = "histories", "memory_limit is", "GB", "max_histories=N", "raise the"
    if game == HOLDEM and command in ("info", "solve", "resolve"):
        # The public-tree form is tried first; its error says which part can be solved.
        parts = "all of hold'em is too large", "potSize", "boardCards", "os-mccfr"
        last = last.replace("OpenSpiel's information states", "")
    for part in parts:
        assert part in last
    assert " inf" not in last and not (tmp_path / "out").exists()


def test_exploit_runs_without_a_game_tree(capsys):
    """The table for chess has fewer rows, because there are thousands of actions."""
    words = ["--game", DEEP, "--policy", "uniform", "--minutes", "1e-9"]
    run("exploit", *words)
    out, _ = capsys.readouterr()
    assert "not used: building chess() would take" in out
