"""How every command refuses: exit code 2, a line that names what is wrong, no work."""

import pytest

from spiel_cr.eval.cli import main

KUHN = "--game kuhn_poker"
PLAY = f"play {KUHN}"
EVALUATE = f"evaluate {KUHN} --bot"
STEP = f"subgame {KUHN} --actions"
RESPONSE = f"best-response {KUHN} --policy"
TOURNAMENT = f"tournament {KUHN} --out OUT"
BOTS = "--bots=uniform;uniform"

# A command line, and what the last line on stderr names.
ROWS = [
    ("", "COMMAND"),
    ("dissolve", "dissolve"),
    ("info", "--game"),
    ("info --game kuhn_poker(players=3)", "players"),
    ("info --game leduc_poker(flavour=1)", "flavour"),
    ("info --game python_leduc_poker(flavour=1)", "flavour"),
    ("info --game leduc_poker(players=2", "bracket"),
    ("info --game leduc_poker --memory-limit 10MB", "memory"),
    (f"info {KUHN} --memory-limit lots", "lots"),
    (f"info {KUHN} --colour", "--colour"),
    ("solve", "--game"),
    ("solve --game 2048", "2048"),
    ("solve --game kuhn_pocker", "kuhn_pocker"),
    (f"solve {KUHN} --algorithm sarsa", "sarsa"),
    (f"solve {KUHN} --algorithm dcfr(delta=1)", "delta"),
    (f"solve {KUHN} --iterations 0", "iterations"),
    (f"solve {KUHN} --iterations many", "--iterations"),
    (f"solve {KUHN} --dtype float16", "--dtype"),
    (f"solve {KUHN} --eval-every 0", "eval"),
    (f"solve {KUHN} --checkpoint-every=-1", "checkpoint_every=-1"),
    (f"solve {KUHN} --checkpoint OUT --checkpoint-every nan", "checkpoint_every=nan"),
    (f"solve {KUHN} --plot x.png", "--eval-every"),
    ("solve --game leduc_poker --memory-limit 10MB", "memory"),
    (f"resolve {KUHN} --algorithm sarsa", "sarsa"),
    (f"resolve {KUHN} --algorithm lp", "lp"),
    (f"resolve {KUHN} --iterations 0", "iterations"),
    (f"{PLAY} --bots=uniform", "needs two bots"),
    (f"{PLAY} --bots=uniform;uniform;human", "needs two bots"),
    (f"{PLAY} --bots=human;human", "only one"),
    (f"{PLAY} --bots=human;", "is missing"),
    (f"{PLAY} --bots=human;deepstack", "deepstack"),
    (f"{PLAY} --bots=human;uniform --seed=-1", "seed=-1"),
    (f"{TOURNAMENT} --bots=uniform", "two bots or more"),
    (f"{TOURNAMENT} --bots=uniform;;uniform", "is missing"),
    (f"{TOURNAMENT} --bots=uniform;human", "spiel-cr play"),
    (f"{TOURNAMENT} --bots=uniform;deepstack", "deepstack"),
    (f"{TOURNAMENT} --bots=uniform;solved(speed=1)", "speed"),
    (f"{TOURNAMENT} {BOTS} --matches=0", "matches=0"),
    (f"{TOURNAMENT} {BOTS} --seed=-1", "seed=-1"),
    (f"{TOURNAMENT} {BOTS} --game=kuhn_pocker", "kuhn_pocker"),
    (f"{EVALUATE} sarsa", "there is no bot 'sarsa'"),
    (f"{EVALUATE} uniform --matches 5", "so leave --matches out"),
    (f"{EVALUATE} uniform --matches 5", "matches=5"),
    (f"{EVALUATE} uniform --repeats 0", "repeats=0"),
    (f"{EVALUATE} uniform --seed -1", "seed=-1"),
    (f"{EVALUATE} uniform --evaluator playing --matches 0", "matches=0"),
    (f"{STEP} 0,9", "action 2, '9',"),
    (f"{STEP} 0,1,0,1 --trunk-iterations 0", "trunk_iterations=0"),
    (f"{RESPONSE} nobody", "opponent='nobody'"),
    (f"{RESPONSE} uniform --method lbr --learn 5", "--learn 5"),
    ("study kuhn --size 0", "size=0"),
    (
        "info --game liars_dice(numdice=0)",
        "liars_dice(numdice=0)': OpenSpiel fails in it;",
    ),
    (
        f"subgame {KUHN} --actions 0 --plot=no/x.png",
        "plot='no/x.png': there is no folder no;",
    ),
    (f"solve {KUHN} --save=", "--save"),
    (f"solve {KUHN} --checkpoint=", "--checkpoint"),
    (f"info {KUHN} --cache=", "--cache"),
    (f"info {KUHN} --cache /dev/null", "--cache='/dev/null'"),
    (f"{EVALUATE} uniform --out /proc/none/x", "--out='/proc/none/x' cannot be"),
    (f"solve {KUHN} --save OUT --checkpoint OUT", "--save and --checkpoint both"),
    (f"solve {KUHN} --seed 99999999999999999999", "seed=99999999999999999999 must"),
    (f"resolve {KUHN} --seed=-1", "seed=-1 must"),
    (f"info {KUHN} --memory-limit \uff13GB", "\uff13GB"),
    (f"{RESPONSE} missing.npz", "path='missing.npz': there is no such file; give"),
    (f"{RESPONSE} uniform --method learned --rounds -1", "rounds=-1 must"),
    (f"{EVALUATE} uniform --out=", "--out"),
    ("solve --game kuhn\udcff", "'kuhn\\udcff' is not UTF-8"),
    (f"solve {KUHN} --flagfile=missing", "--flagfile"),
]


@pytest.mark.parametrize(("words", "named"), ROWS)
def test_refusals(tmp_path, capsys, words, named):
    given = words.replace("OUT", str(tmp_path / "out")).split()
    with pytest.raises(SystemExit) as stopped:
        main._run(main._parse(["spiel-cr", *given, *(["--json"] if given else [])]))
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert named in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("spiel-cr")
    assert not out and "Traceback" not in err
    assert not list(tmp_path.iterdir())
