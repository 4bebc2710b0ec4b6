"""The solver that processes boards one by one, compared with the JAX solver."""

import functools
import os

import numpy as np
import pytest

import spiel_cr
from spiel_cr import poker
from spiel_cr.common.compilation_cache import VARIABLE, numba_jit
from spiel_cr.common.plugins import registered
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.games.sequence_form.locking import locked
from spiel_cr.policies.best_responses import value_bounds
from spiel_cr.solvers.cfr import board_solver, cfr
from spiel_cr.solvers.cfr.cfr_config import PRESETS

numba = pytest.importorskip("numba")

# The flop has three rounds, showdowns before the river, and equivalent suits, so that
# private states have several hands.
FLOP = {"board": "5s9sJs", "pot": 60, "stack": 60, "bets": "allin"}
FLOP |= {"ranges": ("KK,QQ:0.5", "AA,TT,AsJs")}
TURN = {"board": "AsKd7c2h", "pot": 60, "stack": 200, "bets": "50%; raises allin"}
TURN |= {"ranges": ("AT+,77:0.3", "KT+,QJ:0.25")}


@functools.cache
def game_of(street):
    registered("spiel_cr.public_tree", "universal_poker")
    return public_tree_game(str(poker.spot(**{"flop": FLOP, "turn": TURN}[street])))


def make_board_solver(game, form, name, dtype=np.float64):
    """Return the board solver of a game."""
    config, dtype = PRESETS[name], np.dtype(dtype)
    solver = board_solver.make_solver(game, form, config=config, dtype=dtype)
    assert solver is not None
    return solver


def board_and_jax_solvers(street, name, dtype=np.float64, locks=None):
    """Return the board solver and the JAX solver of the same game."""
    game = game_of(street)
    form = game.sequence_form
    if locks is not None:
        form = locked(form, locks(game))
    config, dtype = PRESETS[name], np.dtype(dtype)
    reference = cfr.make_solver(form, config=config, dtype=dtype, compile="once")
    return make_board_solver(game, form, name, dtype), reference


def regrets_of(boards, player):
    """Return the regrets of a board solver by logical sequence, in the game's units."""
    regrets, arrays = np.asarray(boards.state.regrets[player]), boards.problem
    side, result = arrays.sides[player], np.zeros(arrays.sizes[player])
    for r, board in zip(arrays.boards.round, side.boards.tolist(), strict=True):
        (start, n), row = board, side.rounds[r]
        origin = row["base"] + start * row["num_actions"]
        for d in range(row["first_decision"], side.rounds["first_decision"][r + 1]):
            count = int(side.decisions["num_actions"][d])
            first = arrays.sequences[player][d] + start * count
            at = origin + side.decisions["offset"][d] * n
            block = regrets[at : at + n * count].reshape(count, n)
            result[first : first + n * count] = block.T.ravel()
    return np.ldexp(result, boards.exponent)


def compare(boards, reference, tolerance, *, single=False):
    for player in range(2):
        for read in () if single else ("average_behaviour", "current_behaviour"):
            found, expected = (getattr(s, read)(player) for s in (boards, reference))
            assert np.abs(found - expected).max() < tolerance
        found, expected = regrets_of(boards, player)[1:], reference.regrets(player)[1:]
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    assert boards.nash_conv() == pytest.approx(reference.nash_conv(), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [
        ("dcfr", np.float64, 1e-9),
        pytest.param("cfr+", np.float64, 1e-9, marks=pytest.mark.slow),
        pytest.param("hs-dcfr", np.float64, 1e-9, marks=pytest.mark.slow),
        pytest.param("dcfr", np.float32, 1e-5, marks=pytest.mark.slow),
    ],
)
def test_iterates_on_a_flop_equal_those_of_the_jax_solver(name, dtype, tolerance):
    """In float32, rounding breaks ties in iteration 2, so one iteration is compared."""
    solvers = board_and_jax_solvers("flop", name, dtype)
    for solver in solvers:
        solver.run(1 if dtype == np.float32 else 10)
    compare(*solvers, tolerance, single=dtype == np.float32)


def test_locked_turn_equals_the_jax_solver_and_can_be_restored():
    """The first decision of player 1 is locked at 30% checks for some hands."""

    def locks(game):
        rows = np.full(game.decisions[1].num_sequences, np.nan)
        decisions = game.public_decisions[1]
        first, count = int(decisions.first_sequence[0]), int(decisions.num_actions[0])
        rows[first : first + 4 * count] = np.tile(
            [0.3, *[0.7 / (count - 1)] * (count - 1)], 4
        )
        return None, rows

    boards, reference = board_and_jax_solvers("turn", "dcfr", locks=locks)
    boards.run(6)
    arrays = {name: array.copy() for name, array in boards.arrays().items()}
    snapshot = boards.state
    kept = snapshot.regrets[0].copy()
    boards.run(6)
    assert (snapshot.regrets[0] == kept).all()
    last = boards.average_behaviour(1)
    boards.restore(arrays)
    boards.run(6)
    assert (boards.average_behaviour(1) == last).all()
    reference.run(12)
    compare(boards, reference, 1e-9)
    assert boards.nash_conv_with_locks() == pytest.approx(
        reference.nash_conv_with_locks(), rel=1e-9
    )
    assert boards.nash_conv_with_locks() < boards.nash_conv()


@pytest.mark.parametrize(
    "dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)]
)
def test_nash_conv_equals_jax_best_responses(dtype):
    """The tolerance is relative to the largest stake."""
    game = game_of("turn")
    solver = make_board_solver(game, game.sequence_form, "dcfr", dtype)
    solver.run(8)
    strategies = tuple(solver.average_behaviour(player) for player in range(2))
    low, high = value_bounds(game.sequence_form, strategies)
    largest = TURN["pot"] / 2 + TURN["stack"]
    assert solver.nash_conv() == pytest.approx(high - low, abs=1e-9 * largest)


def test_threads_do_not_change_the_result(monkeypatch):
    game, results = game_of("flop"), []
    for threads in (1, 3, 16):
        monkeypatch.setattr(board_solver, "_num_processors", lambda n=threads: n)
        solver = make_board_solver(game, game.sequence_form, "dcfr")
        solver.run(4)
        results.append(solver.average_behaviour(0))
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="needs os.sched_getaffinity"
)
def test_number_of_threads_equals_allowed_processors(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7})
    assert board_solver._num_processors() == 3


@pytest.mark.parametrize("extras", [("poker", None), (None, "poker")])
def test_checkpoint_is_resumed_only_with_the_same_extra(extras, tmp_path, monkeypatch):
    game, path = str(poker.spot(**TURN)), tmp_path / "turn.ckpt"
    supported = board_solver.supports

    def solve(extra, iterations):
        used = supported if extra else lambda _: False
        monkeypatch.setattr(board_solver, "supports", used)
        return spiel_cr.solve(game, "dcfr", iterations, checkpoint=path)

    solve(extras[0], 2)
    assert solve(extras[0], 3).iterations == 3
    message = "with extra '?{}'?, and this run has '?{}'?; install the same extras"
    with pytest.raises(ValueError, match=message.format(*extras)):
        solve(extras[1], 4)


def add_fours(x, y, out):
    """Add four numbers, without a loop."""
    a, b, c, d = x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] + y[3]
    out[0], out[1], out[2], out[3] = a, b, c, d


def test_numba_jit_vectorises_straight_line_code(monkeypatch):
    """Numba's global setting changes only while this package's functions compile."""
    # Functions that are loaded from a cache have no LLVM listing.
    monkeypatch.setenv(VARIABLE, "off")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    before = numba.config.SLP_VECTORIZE
    x, y = np.arange(4.0), np.array([1.0, 2, 3, 5])
    vectorized = {}
    for name, jit in (("ours", numba_jit), ("plain", numba.njit)):
        function, out = jit(add_fours), np.zeros(4)
        function(x, y, out)
        assert out.tolist() == [1, 3, 5, 8]
        vectorized[name] = " x double> " in "".join(function.inspect_llvm().values())
        assert numba.config.SLP_VECTORIZE == before
    assert vectorized == {"ours": True, "plain": bool(before)}
