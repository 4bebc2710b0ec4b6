"""Iterates of compiled functions, board by board, are those of `cfr.step`."""

import numpy as np
import pytest

from spiel_cr import poker
from spiel_cr.common.plugins import registered
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.games.sequence_form.locking import locked
from spiel_cr.solvers.cfr import board_arrays, board_solver, cfr
from spiel_cr.solvers.cfr.cfr_config import PRESETS

numba = pytest.importorskip("numba")
board_iteration = pytest.importorskip("spiel_cr.solvers.cfr.board_iteration")

# Three rounds; suits that are equivalent, so that private states have several hands;
# showdowns before the river.
FLOP = {"board": "5s9sJs", "pot": 60, "stack": 60, "bets": "allin"}
FLOP_RANGES = ("KK,QQ:0.5", "AA,TT,AsJs")
TURN = {"board": "AsKd7c2h", "pot": 60, "stack": 200, "bets": "50%; raises allin"}
TURN_RANGES = ("AT+,77", "KT+,QJ:0.25")


@pytest.fixture(autouse=True)
def few_hands(monkeypatch):
    """Games of few hands are solved by the compiled functions, too."""
    monkeypatch.setattr(board_arrays, "has_many_hands", lambda _: True)


def both(kind, ranges, name, dtype=np.float64, locks=None):
    """The compiled functions' solver and JAX's, of the same game."""
    registered("spiel_cr.public_tree", "universal_poker")
    game = public_tree_game(str(poker.spot(**kind, ranges=ranges)))
    form = game.sequence_form
    if locks is not None:
        form = locked(form, locks(game))
    config, dtype = PRESETS[name], np.dtype(dtype)
    boards = board_solver.make_solver(game, form, config=config, dtype=dtype)
    assert boards is not None
    return boards, cfr.make_solver(form, config=config, dtype=dtype, compile="once")


def compare(boards, reference, tolerance):
    for player in range(2):
        for read in ("average_behaviour", "current_behaviour"):
            found, expected = (getattr(s, read)(player) for s in (boards, reference))
            assert np.abs(found - expected).max() < tolerance
        found, expected = (s.regrets(player)[1:] for s in (boards, reference))
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    assert boards.nash_conv() == pytest.approx(reference.nash_conv(), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [
        ("dcfr", np.float64, 1e-9),
        pytest.param("cfr+", np.float64, 1e-9, marks=pytest.mark.slow),
        pytest.param("hs-dcfr", np.float64, 1e-9, marks=pytest.mark.slow),
        pytest.param("dcfr", np.float32, 1e-3, marks=pytest.mark.slow),
    ],
)
def test_same_iterates_on_a_flop(name, dtype, tolerance):
    solvers = both(FLOP, FLOP_RANGES, name, dtype)
    for solver in solvers:
        solver.run(10)
    compare(*solvers, tolerance)


def test_locks_and_a_restored_state_on_a_turn():
    """The first decision of player 1 is locked at 30% checks for some hands."""

    def locks(game):
        rows = np.full(game.decisions[1].num_sequences, np.nan)
        decisions = game.public_decisions[1]
        first, count = int(decisions.first_sequence[0]), int(decisions.num_actions[0])
        rows[first : first + 4 * count] = np.tile(
            [0.3, *[0.7 / (count - 1)] * (count - 1)], 4
        )
        return None, rows

    boards, reference = both(TURN, TURN_RANGES, "dcfr", locks=locks)
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


def test_threads_do_not_change_the_result():
    boards, _ = both(FLOP, FLOP_RANGES, "dcfr")
    results = []
    for threads in (1, 3, 3):
        game = boards._functions.advance
        game.threads = threads
        boards.restore({k: 0 * v for k, v in boards.arrays().items()})
        boards.run(4)
        results.append(boards.average_behaviour(0))
    assert (results[1] == results[2]).all()
    assert np.abs(results[0] - results[1]).max() < 1e-9


def add_fours(x, y, out):
    """Add four numbers, without a loop."""
    a, b, c, d = x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] + y[3]
    out[0], out[1], out[2], out[3] = a, b, c, d


def test_numbers_of_tuples_are_added_together():
    """The setting of numba only changes while this package's functions are compiled."""
    before = numba.config.SLP_VECTORIZE
    x, y = np.arange(4.0), np.array([1.0, 2, 3, 5])
    vectorized = {}
    for name, jit in (("ours", board_iteration._jit), ("plain", numba.njit)):
        function, out = jit(add_fours), np.zeros(4)
        function(x, y, out)
        assert out.tolist() == [1, 3, 5, 8]
        vectorized[name] = " x double> " in "".join(function.inspect_llvm().values())
        assert numba.config.SLP_VECTORIZE == before
    assert vectorized == {"ours": True, "plain": bool(before)}
