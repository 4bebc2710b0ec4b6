"""Sampling in the simulator form: arguments, checkpoints, limits and files."""

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
    """Compute NashConv with OpenSpiel's evaluator and with our best responses."""
    behaviour = query(tree, policy)
    ours = nash_conv(tree.sequence_form, reach_of(tree.sequence_form, behaviour))
    return exploitability.nash_conv(tree.game, policy), ours


@pytest.mark.parametrize(
    "name", ["kuhn", pytest.param("leduc", marks=pytest.mark.slow)]
)
def test_nash_conv_of_policy_and_file_equals_openspiel(tmp_path, name):
    """The values agree although some infosets were never visited."""
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


def test_batched_rules_are_used_and_can_be_disabled():
    name = "phantom_ttt"
    by = {use: sample(name, iterations=4, batched_rules=use) for use in (True, False)}
    assert [by[use].table.keys for use in (True, False)] == ["rules", "strings"]
    state = by[True].game.new_initial_state()
    for result in by.values():
        assert result.table.infosets > 100
        # Both runs visited the root.
        policy = result.average_policy()
        assert sum(policy.action_probabilities(state).values()) == 1
        assert policy.unvisited == 0 < policy.queried


def test_imperfect_recall_requires_sampled_averaging(monkeypatch):
    """In dark hex, players see the number of moves, but later infosets omit it."""
    with monkeypatch.context() as patch:
        # The error is raised before the run starts.
        patch.setattr(SampledTableSolver, "run", None)
        with pytest.raises(ImperfectRecallError, match="use .* averaging=sampled"):
            sample("dark_hex(board_size=3)", "os-mccfr(batch=256)")
    result = sample("dark_hex(board_size=3)", "os-mccfr(batch=256,averaging=sampled)")
    assert result.table.infosets > 1000 and result.table.keys == "rules"


def test_policy_rejects_queries_for_a_player_that_does_not_act():
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
    """Return a checkpoint of 5 iterations on Kuhn poker, as bytes."""
    path = tmp_path_factory.mktemp("checkpoint") / "checkpoint"
    sample(iterations=5, checkpoint_path=path)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, content):
    """Write `content` to a file and return its path."""
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
def test_checkpoint_rejects_a_run_with_other_settings(path, content, options, named):
    with pytest.raises(ValueError, match=f"checkpoint.*{named}"):
        sample(**options, checkpoint_path=path)
    assert path.read_bytes() == content


def test_resumed_run_keeps_the_memory_limit_of_the_checkpoint(path):
    result = sample(memory_limit=None, checkpoint_path=path)
    assert_same(result, sample())
    batch = batch_bytes(find(SMALL).config, 2, result.game.max_game_length())
    room = storage.load_metadata(path)["table_limit"]
    assert result.table.limit == room - batch


@pytest.mark.parametrize("room", [10**15, 0, -1])
def test_rejects_a_checkpoint_with_an_invalid_table_limit(path, room):
    arrays, metadata = storage.load(path)
    sizes = {"memory_limit": 2 * 10**15, "table_limit": room}
    storage.save(path, arrays, {**metadata, **sizes})
    with pytest.raises(ValueError, match="checkpoint .* was started with a table of"):
        sample(memory_limit=None, checkpoint_path=path)


def test_rejects_files_of_another_kind(tmp_path, path):
    policy = tmp_path / "policy"
    with pytest.raises(ValueError, match="holds a checkpoint"):
        spiel_cr.load_policy(path)
    sample().save(policy)
    with pytest.raises(ValueError, match="checkpoint with kind 'table policy'"):
        sample(checkpoint_path=policy)
    with pytest.raises(ValueError, match="a policy of kuhn_poker.*was given for leduc"):
        spiel_cr.load_policy(policy, "leduc_poker")


@pytest.mark.parametrize("name", ["random", "counts", "key", "regret"])
def test_rejects_checkpoints_without_an_array(path, name):
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
def test_rejects_corrupt_policy_files(tmp_path, name, spoil):
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
def test_rejects_invalid_options_before_the_run(monkeypatch, options, named):
    monkeypatch.setattr(SampledTableSolver, "run", None)
    with pytest.raises(ValueError, match=named):
        sample(**options)


def test_rejects_a_memory_limit_without_room_for_a_trajectory():
    with pytest.raises(GameTooLargeError, match="memory"):
        sample("phantom_ttt", "os-mccfr(batch=1048576)", memory_limit="500MB")


def waiting(path, length):
    """Rules: player 0 decides `length` times, and only its first decision matters."""
    if len(path) == length:
        return Node(TERMINAL, utility=float(path[0]))
    return Node(0, (0, 1), (f"{len(path)} {hash(path)}", ""))


# A game whose matches may have 2000 moves.
LONG = "oshi_zumo"


def test_default_batch_fits_the_memory_limit(tmp_path, capsys, absl_log):
    with messages.listening():
        result = sample(LONG, "os-mccfr", 2, memory_limit="2GB")
    batch = result.table.batch
    assert 1 < batch < 4096 and batch.bit_count() == 1
    assert f"batch={batch}, not 4096: matches may have up" in capsys.readouterr().err
    given = f"os-mccfr(batch={batch})"
    assert_same(sample(LONG, given, 2, memory_limit="2GB"), result)
    assert sample(LONG, "os-mccfr", 1, memory_limit="3GB").table.batch > batch
    assert sample(LONG, "es-mccfr", 1, memory_limit="600MB").table.batch < 64
    assert "leaves most of them unused" not in absl_log.text  # no batch was given
    assert sample("kuhn_poker", "os-mccfr", 1).table.batch == 4096
    path = tmp_path / "state.npz"
    options = {"memory_limit": "2GB", "checkpoint_path": path}
    sample(LONG, "os-mccfr", 1, **options)
    assert_same(sample(LONG, "os-mccfr", 2, **options), result)


@pytest.mark.parametrize("kind", ["os-mccfr", "es-mccfr"])
def test_error_for_a_too_large_batch_names_the_largest_that_fits(kind):
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
def test_matches_of_a_thousand_moves_give_finite_probabilities(
    algorithm, averaging, monkeypatch
):
    """Importance weights of so many moves overflow floating-point numbers."""
    # The check for perfect recall would play two thousand matches.
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
def test_results_do_not_depend_on_the_number_of_workers():
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
def test_peak_memory_stays_below_the_limit(tmp_path):
    """The table of the run is full, and the run has saved its policy."""
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
def test_checkpoint_never_contains_half_an_iteration(
    tmp_path, monkeypatch, happens, raised
):
    """An interrupt or error in iteration 6 leaves the state after iteration 5."""
    path, climb, climbs = tmp_path / "c.npz", sampling.Trajectories.climb, []
    sample(iterations=5, checkpoint_path=path)

    def disturbed(batch):
        climbs.append(1)
        if len(climbs) == 1:
            happens()
        return climb(batch)

    monkeypatch.setattr(sampling.Trajectories, "climb", disturbed)
    # The process of the tests may ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(raised):
            sample(checkpoint_path=path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert storage.load(path)[1]["iterations"] == 5
    assert_same(sample(checkpoint_path=path), sample())


def test_warns_of_a_batch_of_one(absl_log):
    sample(algorithm="os-mccfr(batch=64)", iterations=1)
    assert not absl_log.records
    sample(algorithm="os-mccfr(batch=1)", iterations=1)
    assert "batch=1 wastes most of that time" in absl_log.text


def test_external_sampling_depends_on_the_limit_not_on_free_memory(
    monkeypatch, absl_log
):
    """The memory limit alone determines how many actions are followed."""
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
