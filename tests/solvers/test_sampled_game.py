"""Games that are sampled without compiling: arguments, checkpoints, limits, files."""

import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.common import messages, storage
from spiel_cr.common.errors import (
    CorruptFileError,
    GameTooLargeError,
    ImperfectRecallError,
)
from spiel_cr.games.simulation import recall_checks
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.policies.queries import query
from spiel_cr.solvers import policy_files, simulator_makers
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.mccfr.table import sampling
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy, arrays_of
from spiel_cr.solvers.mccfr.table.table_solver import SampledTableSolver, batch_bytes
from tests.support import games
from tests.support.made_games import TERMINAL, MadeGame, Node
from tests.support.solving import solve_with

ROOT = pathlib.Path(__file__).parents[2]
SMALL = "os-mccfr(batch=32)"
LIMIT = "3GB"


def sample(game="kuhn_poker", algorithm=SMALL, iterations=20, **options):
    options = {"form": "simulator", "memory_limit": LIMIT, **options}
    return solve_with(game, algorithm, iterations, **options)


def assert_same(result, expected):
    assert result.iterations == expected.iterations
    assert result.table[-2:] == expected.table[-2:]
    assert 0 < result.table.hits < result.table.decisions
    mine, theirs = (arrays_of(r.average_policy().strategy) for r in (result, expected))
    for name, array in mine.items():
        np.testing.assert_array_equal(array, theirs[name])


def openspiel_and_ours(policy, tree):
    """NashConv of a policy by OpenSpiel's tool, and by our own best response."""
    behaviour = query(tree, policy)
    ours = nash_conv(tree.sequence_form, reach_of(tree.sequence_form, behaviour))
    return exploitability.nash_conv(tree.game, policy), ours


@pytest.mark.parametrize(
    "name", ["kuhn", pytest.param("leduc", marks=pytest.mark.slow)]
)
def test_openspiel_judges_the_policy_and_the_file(tmp_path, name):
    """Exactly as ours, also where infosets were never met."""
    tree = games.compiled(name, observations=False)
    result = sample(str(tree.game), iterations=3)
    result.save(tmp_path / "policy")
    read = spiel_cr.load_policy(tmp_path / "policy")
    assert isinstance(read, TablePolicy)
    for policy in (result.average_policy(), read):
        openspiel, ours = openspiel_and_ours(policy, tree)
        assert openspiel == pytest.approx(ours, abs=1e-12)
        assert openspiel > 0.1
        if name == "leduc":
            assert 0 < policy.unvisited < policy.queried
    assert result.trajectories == 2 * 3 * 32 and result.table.infosets > 10


def test_rules_on_arrays_are_used_and_can_be_turned_off():
    name = "phantom_ttt"
    by = {use: sample(name, iterations=4, batched_rules=use) for use in (True, False)}
    assert [by[use].table.keys for use in (True, False)] == ["rules", "strings"]
    state = by[True].game.new_initial_state()
    for result in by.values():
        assert result.table.infosets > 100
        # The root's row is one that both have met.
        policy = result.average_policy()
        assert sum(policy.action_probabilities(state).values()) == 1
        assert policy.unvisited == 0 < policy.queried


def test_games_that_forget_need_sampled_averages(monkeypatch):
    """Players of dark hex see how many moves there were, and forget it."""
    with monkeypatch.context() as patch:
        # Refused before the work.
        patch.setattr(SampledTableSolver, "run", None)
        with pytest.raises(ImperfectRecallError, match="use .* averaging=sampled"):
            sample("dark_hex(board_size=3)", "os-mccfr(batch=256)")
    result = sample("dark_hex(board_size=3)", "os-mccfr(batch=256,averaging=sampled)")
    assert result.table.infosets > 1000 and result.table.keys == "rules"


def test_policies_answer_for_the_player_who_acts():
    policy = sample().average_policy()
    state = policy.game.new_initial_state()
    with pytest.raises(ValueError, match="player -1 acts; query the acting player"):
        policy.action_probabilities(state)
    for card in (0, 1):
        state.apply_action(card)
    with pytest.raises(ValueError, match="player_id=1: .*player 0 acts"):
        policy.action_probabilities(state, 1)
    assert policy.action_probabilities(state) == policy.action_probabilities(state, 0)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A checkpoint of 5 iterations on Kuhn poker, as bytes."""
    path = tmp_path_factory.mktemp("checkpoint") / "checkpoint"
    sample(iterations=5, checkpoint_path=path)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, content):
    """The same as a file."""
    (tmp_path / "checkpoint").write_bytes(content)
    return tmp_path / "checkpoint"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"game": "leduc_poker"}, "game"),
        ({"algorithm": "os-mccfr(batch=33)"}, "algorithm"),
        ({"seed": 1}, "seed"),
        ({"memory_limit": "2.9GB"}, "memory_limit"),
        ({"iterations": 4}, "5 iterations already"),
    ],
)
def test_other_runs_are_refused(path, content, options, named):
    with pytest.raises(ValueError, match=f"checkpoint.*{named}"):
        sample(**options, checkpoint_path=path)
    assert path.read_bytes() == content


def test_a_run_goes_on_with_the_limit_that_it_began_with(path):
    result = sample(memory_limit=None, checkpoint_path=path)
    assert_same(result, sample())
    batch = batch_bytes(find(SMALL).config, 2, result.game.max_game_length())
    room = storage.load_metadata(path)["table_limit"]
    assert result.table.limit == room - batch


@pytest.mark.parametrize("room", [10**15, 0, -1])
def test_a_checkpoint_cannot_ask_for_any_memory(path, room):
    arrays, metadata = storage.load(path)
    sizes = {"memory_limit": 2 * 10**15, "table_limit": room}
    storage.save(path, arrays, {**metadata, **sizes})
    with pytest.raises(ValueError, match="checkpoint .* was started with a table of"):
        sample(memory_limit=None, checkpoint_path=path)


def test_files_of_other_kinds_are_refused(tmp_path, path):
    policy = tmp_path / "policy"
    with pytest.raises(ValueError, match="holds a checkpoint"):
        spiel_cr.load_policy(path)
    sample().save(policy)
    with pytest.raises(ValueError, match="checkpoint with kind 'table policy'"):
        sample(checkpoint_path=policy)
    with pytest.raises(ValueError, match="a policy of kuhn_poker.*was given for leduc"):
        spiel_cr.load_policy(policy, "leduc_poker")


@pytest.mark.parametrize("name", ["random", "counts", "key", "regret"])
def test_checkpoints_without_an_array_are_damaged(path, name):
    arrays, metadata = storage.load(path)
    del arrays[name]
    storage.save(path, arrays, metadata)
    with pytest.raises(CorruptFileError, match="corrupt checkpoint"):
        sample(checkpoint_path=path)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("probability", lambda array: array * 2),
        ("probability", lambda array: np.full_like(array, np.nan)),
        ("probability", lambda array: array[1:]),
        ("probability", lambda array: array.astype(np.float64)),
        ("key", lambda array: array[1:]),
        ("key", lambda array: array[[1, *range(1, len(array))]]),
        ("count", lambda array: array * 0),
        ("visits", None),
    ],
)
def test_policies_that_are_none_are_damaged(tmp_path, name, spoil):
    path = tmp_path / "policy"
    sample(iterations=1).save(path)
    policy_files.check_policy_file(path)
    arrays, metadata = storage.load(path)
    if spoil is None:
        del arrays[name]
    else:
        arrays[name] = spoil(arrays[name])
    storage.save(path, arrays, metadata)
    with pytest.raises(CorruptFileError, match="corrupt policy file"):
        spiel_cr.load_policy(path)
    with pytest.raises(CorruptFileError):
        policy_files.check_policy_file(path)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"algorithm": "cfr+"}, "algorithm='cfr\\+' visits the whole game"),
        ({"algorithm": "as-mccfr"}, "algorithm='as-mccfr'.*scheme=average"),
        ({"algorithm": "evr-mccfr"}, "algorithm='evr-mccfr'"),
        ({"iterations": 0}, "iterations=0"),
        ({"seconds": -1}, "seconds=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"workers": 0}, "workers=0"),
        ({"checkpoint_every": 0}, "checkpoint_every=0"),
        ({"memory_limit": "none"}, "memory_limit='none'.*4GB"),
        ({"memory_limit": "10MB"}, "memory_limit.*raise the limit"),
        ({"game": "backgammon"}, "information_state_string"),
        ({"game": "phantom_ttt", "workers": 2}, "workers=2.*omit workers"),
    ],
)
def test_refused_before_the_work(monkeypatch, options, named):
    monkeypatch.setattr(SampledTableSolver, "run", None)
    with pytest.raises(ValueError, match=named):
        sample(**options)


def test_a_table_that_holds_no_trajectory_is_refused():
    with pytest.raises(GameTooLargeError, match="memory"):
        sample("phantom_ttt", "os-mccfr(batch=1048576)", memory_limit="500MB")


def waiting(path, length):
    """Player 0 decides `length` times; its first decision is what counts."""
    if len(path) == length:
        return Node(TERMINAL, utility=float(path[0]))
    return Node(0, (0, 1), (f"{len(path)} {hash(path)}", ""))


# Matches of oshi_zumo may have 2000 moves.
LONG = "oshi_zumo"


def test_a_batch_that_nobody_gave_is_one_that_fits(tmp_path, capsys, absl_log):
    with messages.listening():
        result = sample(LONG, "os-mccfr", 2, memory_limit="2GB")
    batch = result.table.batch
    assert 1 < batch < 4096 and batch.bit_count() == 1
    assert f"batch={batch}, not 4096: matches may have up" in capsys.readouterr().err
    given = f"os-mccfr(batch={batch})"
    assert_same(sample(LONG, given, 2, memory_limit="2GB"), result)
    assert sample(LONG, "os-mccfr", 1, memory_limit="3GB").table.batch > batch
    assert sample(LONG, "es-mccfr", 1, memory_limit="600MB").table.batch < 64
    assert "leaves most of them unused" not in absl_log.text  # nobody chose it
    assert sample("kuhn_poker", "os-mccfr", 1).table.batch == 4096
    path = tmp_path / "state.npz"
    options = {"memory_limit": "2GB", "checkpoint_path": path}
    sample(LONG, "os-mccfr", 1, **options)
    assert_same(sample(LONG, "os-mccfr", 2, **options), result)


@pytest.mark.parametrize("kind", ["os-mccfr", "es-mccfr"])
def test_a_given_batch_that_does_not_fit_is_refused_with_the_largest(kind):
    with pytest.raises(GameTooLargeError, match="choose batch=[0-9]+ or less") as said:
        sample(LONG, f"{kind}(batch=4096)", 1, memory_limit="1GB")
    largest = int(str(said.value).rpartition("batch=")[2].partition(" ")[0])
    assert sample(LONG, f"{kind}(batch={largest})", 1, memory_limit="1GB").iterations
    with pytest.raises(GameTooLargeError, match=f"batch={largest} or less"):
        sample(LONG, f"{kind}(batch={largest + 1})", 1, memory_limit="1GB")


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("algorithm", "averaging"), [("os-mccfr", "exact"), ("vr-mccfr", "sampled")]
)
def test_matches_of_a_thousand_moves_leave_numbers_only(
    algorithm, averaging, monkeypatch
):
    """Importance weights of so many moves are beyond all floating-point numbers."""
    # It plays two thousand matches.
    monkeypatch.setattr(recall_checks, "check_source", lambda source, exact: None)
    length = 1100
    game = MadeGame(lambda path: waiting(path, length), "waiting", length=length)
    settings = f"(batch=1,incremental=false,averaging={averaging})"
    result = sample(game, algorithm + settings, 3)
    strategy = result.average_policy().strategy
    assert result.table.infosets > length
    assert np.isfinite(strategy.probability).all()
    assert (strategy.probability >= 0).all()


@pytest.mark.slow
def test_results_are_the_same_for_any_number_of_workers():
    expected = sample("leduc_poker", iterations=10)
    for workers in (2, 3):
        found = sample("leduc_poker", iterations=10, workers=workers)
        assert_same(found, expected)


_PEAK = """
import sys, spiel_cr
from spiel_cr.solvers.algorithms import find
from spiel_cr.common import memory
algorithm = "vr-mccfr(batch=2048,incremental=false)"
result = spiel_cr.solve(sys.argv[1], algorithm, spiel_cr.Goal(seconds=15),
    options=spiel_cr.GameOptions("simulator", memory_limit="550MB"))
result.save(sys.argv[2])
print(int(result.table.full), result.table.bytes, memory.peak_bytes())
"""


@pytest.mark.slow
def test_the_peak_stays_under_the_limit(tmp_path):
    """Of a run whose table is full, and which has written its policy."""
    game = "goofspiel(num_cards=13,imp_info=True,points_order=descending)"
    words = [sys.executable, "-c", _PEAK, game, tmp_path / "policy.npz"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    full, table, peak = map(int, done.stdout.split())
    assert full and 8e7 < table < peak < 5.5e8
    assert done.stderr.count("the table is full") == 1


def send_interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def fail():
    raise RuntimeError("a worker died")


@pytest.mark.parametrize(
    ("happens", "raised"),
    [(send_interrupt, KeyboardInterrupt), (fail, RuntimeError)],
)
def test_half_an_iteration_is_never_written(tmp_path, monkeypatch, happens, raised):
    """Within the sixth iteration, both leave the state after the fifth in the file."""
    path, climb, climbs = tmp_path / "c.npz", sampling.Trajectories.climb, []
    sample(iterations=5, checkpoint_path=path)

    def disturbed(batch):
        climbs.append(1)
        if len(climbs) == 1:
            happens()
        return climb(batch)

    monkeypatch.setattr(sampling.Trajectories, "climb", disturbed)
    # Who runs the tests may have it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(raised):
            sample(checkpoint_path=path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert storage.load(path)[1]["iterations"] == 5
    assert_same(sample(checkpoint_path=path), sample())


def test_small_batches_that_were_given_are_warned_of(absl_log):
    sample(algorithm="os-mccfr(batch=64)", iterations=1)
    assert not absl_log.records
    sample(algorithm="os-mccfr(batch=1)", iterations=1)
    assert "batch=1 wastes most of that time" in absl_log.text


def test_what_workers_hold_does_not_change_what_is_followed(monkeypatch, absl_log):
    """External sampling follows as much as the limit says, not as is free."""
    game, algorithm = games.goofspiel(5, "descending"), "es-mccfr(batch=64)"
    results = []
    for room in (60_000_000, 90_000_000):
        sizes = 500_000_000, room
        monkeypatch.setattr(
            simulator_makers, "_kept_limits", lambda *_, sizes=sizes: sizes
        )
        results.append(sample(game, algorithm, 2, batched_rules=False))
    assert results[0].table.limit < results[1].table.limit
    assert absl_log.text.count("and one action below") == 2
    assert_same(*results)
