"""Invalid command lines: exit code 2, a line that names the problem, no output."""

import pytest

import spiel_cr
from spiel_cr.common import atomic
from tests.support import commands

KUHN = "--game kuhn_poker"
PLAY = f"play {KUHN}"
EVALUATE = f"evaluate {KUHN} --bot"
STEP = f"subgame {KUHN} --actions"
RESPONSE = f"best-response {KUHN} --policy"
TOURNAMENT = f"tournament {KUHN} --out OUT"
BOTS = "--bots=uniform;uniform"
# A game whose players cannot infer the number of their turns.
HIDDEN = "restricted_nash_response(game=kuhn_poker(),p=0.5)"
SAMPLE = f"solve {KUHN} --form simulator"
SAMPLED = f"{SAMPLE} --algorithm os-mccfr"
COMPARE = f"compare {KUHN} --algorithms lp --out OUT"
DEEP = f"solve {KUHN} --algorithm sd-cfr"
GRID = "show --game python_leduc_poker --policy GRID"

# A command line, and a part of the last line on stderr.
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
    (f"play --game {HIDDEN} --bots resolving(iterations=1);uniform", "turns"),
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
    (f"solve {KUHN} --seconds 1_0", "--seconds"),
    (f"solve {KUHN} --until \uff11", "\uff11"),
    (f"solve {KUHN} --plot x.png", "--eval-every"),
    ("solve --game leduc_poker --memory-limit 10MB", "memory"),
    ("solve --game leduc_poker --algorithm os-mccfr --memory-limit 10MB", "memory"),
    (f"solve {KUHN} --form maybe", "--form"),
    (f"solve {KUHN} --workers 0", "workers=0"),
    *(
        (f"solve {KUHN} {words} --workers 2", "workers=2: only simulated games use")
        for words in ("--form tree", "--form phantom", "--algorithm cfr+", "")
    ),
    (f"{SAMPLE} --algorithm lp", "algorithm='lp' visits the whole game"),
    (f"{SAMPLED} --until 0.1", "until=0.1 needs the game tree; leave it out"),
    (f"{SAMPLED} --imperfect-recall", "imperfect_recall=True needs the game tree"),
    (f"{SAMPLED} --evaluator openspiel", "--evaluator=openspiel needs a game tree"),
    (f"{SAMPLED} --memory-limit none", "memory_limit='none'"),
    (
        f"solve {KUHN} --form public-tree --algorithm os-mccfr",
        "algorithm='os-mccfr' samples histories",
    ),
    (
        f"solve {KUHN} --form public-tree --imperfect-recall",
        "imperfect_recall=True needs",
    ),
    (
        "info --game python_rock_paper_scissors --form public-tree",
        "does not declare private states",
    ),
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
    (f"{EVALUATE} uniform --matches 5", "so leave --matches out"),
    (f"{EVALUATE} uniform --repeats 0", "repeats=0"),
    (f"{EVALUATE} uniform --seed -1", "seed=-1"),
    (f"{EVALUATE} uniform --method matches --matches 0", "matches=0"),
    (f"{STEP} 0,9", "action 2, '9',"),
    (f"{RESPONSE} uniform --method lbr --learn 5", "--learn=5"),
    ("study kuhn --size 0", "size=0"),
    (
        "info --game liars_dice(numdice=0)",
        "numdice=0)': OpenSpiel failed in this game;",
    ),
    (f"{STEP} 0 --plot=no/x.png", "plot='no/x.png': folder no does not exist;"),
    (f"solve {KUHN} --save=", "--save"),
    (f"solve {KUHN} --checkpoint=", "--checkpoint"),
    (f"info {KUHN} --cache=", "--cache"),
    (f"info {KUHN} --cache /dev/null", "--cache='/dev/null'"),
    (f"{EVALUATE} uniform --out /proc/none/x", "--out='/proc/none/x' cannot be"),
    (f"solve {KUHN} --save OUT --checkpoint OUT", "--save and --checkpoint both"),
    (f"solve {KUHN} --seed 99999999999999999999", "seed=99999999999999999999 must"),
    (f"resolve {KUHN} --seed=-1", "seed=-1 must"),
    (f"info {KUHN} --memory-limit \uff13GB", "\uff13GB"),
    (f"{RESPONSE} missing.npz", "path='missing.npz': the file does not exist; give"),
    (f"{RESPONSE} uniform --method learned --rounds -1", "rounds=-1 must"),
    (f"{EVALUATE} uniform --out=", "--out"),
    ("solve --game kuhn\udcff", "'kuhn\\udcff' is not UTF-8"),
    (f"solve {KUHN} --flagfile=missing", "--flagfile"),
    (f"info {KUHN} --json=yes", "argument --json: it has no value; remove 'yes'"),
    (f"info {KUHN} surplus", "unrecognized arguments: surplus; leave them out"),
    (f"{COMPARE} --seeds 0", "seeds=0"),
    (f"{COMPARE} --workers=-1", "workers=-1"),
    (f"{COMPARE} --iterations 0", "iterations=0"),
    (f"{COMPARE} --workers 0 --patience 5", "without worker processes cannot be"),
    (f"{COMPARE} --ray nowhere", "ray='nowhere' is not the address of a cluster"),
    (f"{COMPARE} --patience 0", "patience=0.0 must be finite and above 0"),
    (f"exploit {KUHN} --policy lp --trained --workers 2", "--trained does not support"),
    (f"{DEEP} --workers 2", "workers=2: algorithm='sd-cfr'"),
    (f"{DEEP} --form public-tree", "--form public-tree"),
    (
        f"{DEEP}(network=table) --form simulator",
        "network=table requires a game tree",
    ),
    (f"{PLAY} {BOTS} --web", "human;B"),
    (f"{PLAY} {BOTS} --port 8000", "requires --web; add it, or leave --port out"),
    (f"{PLAY} {BOTS} --web --port 80", "--port=80 must be from 1024"),
    (f"{PLAY} {BOTS} --no-open", "--no-open requires --web"),
    (f"{PLAY} {BOTS} --matches 0", "matches=0"),
    (f"show {KUHN} --policy nowhere.npz", "write it with"),
    (f"show {KUHN} --policy POLICY --limit 0", "limit=0"),
    (
        "show --game leduc_poker --policy POLICY",
        "a policy of kuhn_poker() was given for",
    ),
    (f"{GRID} --find 0", "--find=0 applies only to policies of game trees"),
    (f"{GRID} --node jump", "after the deal the action 'jump' does not exist"),
    (f"{GRID} --node raise,fold", "the game ends there"),
    (f"{GRID} --node raise,fold,call", "the game has ended after raise fold"),
    (f"{GRID} --board 5c", "round 0 has no public cards"),
    (f"{GRID} --node call,call --board 5c", "not a board of round 1"),
    (f"{GRID} --plot x.gif", "use a name that ends in"),
    (f"solve {KUHN} --iterations 5 --save FILE/policy.npz", "FILE"),
    (f"resolve {KUHN} --iterations 5 --save FILE/policy.npz", "FILE"),
    (f"{TOURNAMENT} {BOTS} --out FILE", "FILE"),
    (f"{TOURNAMENT} {BOTS} --out FILE/below", "FILE"),
]

# Rejected before a game tree is built, which may take minutes.
JUDGED = f"solve {KUHN} --evaluator openspiel"
EARLY = [
    (f"{JUDGED} --checkpoint-every=-1", "checkpoint_every=-1"),
    (f"{JUDGED} --iterations 0", "iterations=0"),
    (f"{JUDGED} --eval-every 0", "eval_every=0"),
    (f"{JUDGED} --algorithm sarsa", "sarsa"),
    (f"{JUDGED} --algorithm lp --seconds 1", "leave out seconds"),
    (f"{JUDGED} --checkpoint HELD", "is in use by another run"),
    (f"{SAMPLED} --checkpoint HELD", "is in use by another run"),
    (f"{SAMPLED} --checkpoint-every=0", "checkpoint_every=0"),
    (f"{SAMPLED} --checkpoint DAMAGED", "error: checkpoint /"),
    (f"resolve {KUHN} --evaluator openspiel --algorithm lp", "lp"),
    (f"resolve {KUHN} --evaluator openspiel --iterations 0", "iterations=0"),
    (f"{EVALUATE} nobody", "the player 'nobody' does not exist"),
    ("info --game my_matrix", "; a game of your own: --import MODULE.py"),
    (f"{EVALUATE} resolving(iterations=0)", "iterations=0"),
    (f"{EVALUATE} resolving(iterations=1_0)", "iterations=1_0 must be a number"),
    (f"{EVALUATE} resolving(max_histories=9,gadget=safe)", "gadget='safe'"),
    (f"{EVALUATE} oos(target=me)", "target='me'"),
    (f"{EVALUATE} oos(max_histories=9,solver=cfr)", "cfr"),
    (f"{EVALUATE} solved(solver=lp,seconds=1)", "leave out seconds"),
    (f"{EVALUATE} policy(path=missing.npz)", "the file does not exist"),
    (f"{RESPONSE} nobody", "policy='nobody'"),
    (f"{RESPONSE} solved(iterations=0)", "iterations=0"),
    (f"{RESPONSE} cfr+", "the number of iterations is missing"),
    (f"{RESPONSE} cfr+(iterations=0)", "iterations=0"),
    (f"{RESPONSE} cfr+(iterations=9,alpha=x)", "alpha=x"),
    (f"{RESPONSE} DAMAGED", "is not a file written by spiel_cr"),
    (f"{RESPONSE} uniform --states --method exact", "leave --states out"),
    ("best-response --game tic_tac_toe --policy always_fold", "is not a game of poker"),
    (f"show {KUHN} --policy DAMAGED", "is not a file written by spiel_cr"),
    (
        f"{PLAY} --bots=solved(iterations=9);nobody",
        "the player 'nobody' does not exist",
    ),
    (
        f"{TOURNAMENT} --bots=solved(iterations=9);nobody",
        "the player 'nobody' does not exist",
    ),
    (f"{STEP} 0,1,0,1 --trunk-iterations 0", "trunk_iterations=0"),
    (f"{STEP} 0,1,0,1 --algorithm sarsa", "sarsa"),
    (f"{STEP} 0,1,0,1 --noise=-1", "noise=-1"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return paths by placeholder: policies, a corrupt file, and one in use."""
    folder = tmp_path_factory.mktemp("files")
    found = {
        name: folder / f"{name.lower()}.npz"
        for name in ("POLICY", "GRID", "DAMAGED", "HELD", "FILE")
    }
    spiel_cr.solve("kuhn_poker", "lp").save(found["POLICY"])
    signals = spiel_cr.GameOptions("public-tree")
    spiel_cr.solve("python_leduc_poker", "cfr+", 5, options=signals).save(found["GRID"])
    found["DAMAGED"].write_bytes(b"PK\3\4 and no more")
    found["FILE"].write_text("not a folder")
    with atomic.lock(found["HELD"]):
        yield found


def check_rejection(capsys, files, out, words, named):
    """Check that a command fails, writes nothing, and names the cause last."""
    for word, path in {**files, "OUT": out}.items():
        words, named = words.replace(word, str(path)), named.replace(word, str(path))
    assert named in commands.rejection(capsys, *words.split())
    assert not list(out.parent.iterdir())


@pytest.mark.parametrize(("words", "named"), EARLY)
def test_rejects_invalid_arguments_before_building_the_tree(
    tmp_path, capsys, nothing_is_compiled, files, words, named
):
    check_rejection(capsys, files, tmp_path / "out", words, named)


@pytest.mark.parametrize(("words", "named"), ROWS)
def test_rejects_invalid_command_lines(tmp_path, capsys, files, words, named):
    check_rejection(
        capsys, files, tmp_path / "out", f"{words} --json" * bool(words), named
    )
