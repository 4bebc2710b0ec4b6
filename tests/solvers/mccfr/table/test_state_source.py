"""Positions from OpenSpiel's states, in this process and in worker processes."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyspiel
import pytest

from spiel_cr.common.errors import InvalidGameError, WorkerFailedError
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.opened import load_game
from spiel_cr.games.simulation.state_source import StateSource, key_of
from spiel_cr.games.simulation.workers import Workers
from tests.support import made_games

LEDUC = "leduc_poker"


def play(source, count, seed, *, branch=False):
    """Return positions of uniform play; with `branch`, one step follows all actions."""
    random = np.random.default_rng(seed)
    found = [source.start(count, random)]
    while (live := np.flatnonzero(found[-1].player != TERMINAL)).size:
        here = found[-1]
        if branch and len(found) == 2:
            parent = np.repeat(live, here.num_actions[live])
            first = np.cumsum(here.num_actions[live]) - here.num_actions[live]
            action = np.arange(len(parent)) - np.repeat(first, here.num_actions[live])
        else:
            parent = random.permutation(live)
            action = (random.random(len(parent)) * here.num_actions[parent]).astype(int)
        found.append(source.step(here.states[parent], action, random))
    return found


@pytest.mark.parametrize("name", [LEDUC, "phantom_ttt", "goofspiel(num_cards=3)"])
def test_positions_equal_those_of_the_game(name):
    """Keys differ exactly if information states differ."""
    source = StateSource(load_game(name))
    strings, total = {}, 0
    for positions in play(source, 60, 1):
        total += len(positions.player)
        for place, decision in enumerate(positions.states):
            player = positions.player[place]
            if decision is None:
                assert player == TERMINAL and positions.num_actions[place] == 0
                continue
            state = decision.state
            assert state.current_player() == player and positions.utility[place] == 0
            legal = state.legal_actions()
            assert len(legal) == positions.num_actions[place] <= source.max_actions
            key = tuple(positions.key[place].tolist())
            assert key == tuple(key_of(state).tolist())
            text = (player, state.information_state_string(player))
            assert strings.setdefault(key, text) == text
    assert len(set(strings.values())) == len(strings) > 20 and total > 200


def test_utilities_and_chance_frequencies_are_correct():
    """Utilities depend on the deals, which chance draws with equal probabilities."""
    game = pyspiel.load_game("kuhn_poker")
    source = StateSource(load_game(game))
    random = np.random.default_rng(3)
    begin = source.start(3000, random)
    cards = [tuple(d.state.history()) for d in begin.states]
    # Each of the six deals has a standard deviation of 20; the bound of five standard
    # deviations fails with a chance of about 2e-6.
    counts = [cards.count(deal) for deal in sorted(set(cards))]
    assert len(counts) == 6 and np.abs(np.array(counts) - 500).max() < 100
    after = source.step(begin.states, np.zeros(3000, int), random)
    over = source.step(after.states, np.zeros(3000, int), random)
    assert (over.player == TERMINAL).all()
    higher = np.array([first > second for first, second in cards])
    np.testing.assert_array_equal(over.utility, np.where(higher, 1.0, -1.0))
    # Steps do not change the earlier positions.
    assert [len(d.state.history()) for d in begin.states[:5]] == [2] * 5


@pytest.mark.parametrize(
    ("count", "branch"),
    [(1, True), pytest.param(3, True, marks=pytest.mark.slow)],
)
def test_workers_give_the_same_positions(count, branch):
    expected = play(StateSource(load_game(LEDUC)), 50, 7, branch=branch)
    with contextlib.closing(Workers(load_game(LEDUC), count)) as workers:
        assert workers.held_bytes > 0
        found = play(workers, 50, 7, branch=branch)
    assert len(found) == len(expected) and len(found[-1].player)
    for mine, theirs in zip(found, expected, strict=True):
        for name in ("player", "key", "num_actions", "utility"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))


@pytest.mark.slow
def test_workers_free_positions_that_are_no_longer_used():
    """Otherwise a long run would exhaust the memory."""
    with contextlib.closing(Workers(load_game(LEDUC), 1)) as workers:
        random = np.random.default_rng(0)
        pid = workers._workers[0].process.pid
        sizes = []
        for _ in range(40):
            begin = workers.start(3000, random)
            workers.step(begin.states, np.zeros(3000, int), random)
            with open(f"/proc/{pid}/statm") as file:
                sizes.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        # 3000 states of Leduc poker take more than a megabyte.
        assert sizes[-1] - sizes[9] < 5e6


@pytest.mark.slow
def test_workers_support_python_games():
    name = "python_ii_goofspiel(num_cards=3)"
    with contextlib.closing(Workers(load_game(name), 2)) as workers:
        found = play(workers, 20, 0)
    expected = play(StateSource(load_game(name)), 20, 0)
    np.testing.assert_array_equal(found[-1].utility, expected[-1].utility)


@pytest.mark.slow
def test_failed_workers_raise_errors():
    random = np.random.default_rng(0)
    with contextlib.closing(Workers(load_game("kuhn_poker"), 2)) as workers:
        begin = workers.start(10, random)
        os.kill(workers._workers[1].process.pid, signal.SIGKILL)
        with pytest.raises(
            WorkerFailedError, match="its process ended with code -9; use f"
        ):
            workers.step(begin.states, np.zeros(10, int), random)
    with contextlib.closing(Workers(load_game("kuhn_poker"), 1)) as workers:
        begin = workers.start(10, random)
        with pytest.raises(WorkerFailedError, match="IndexError"):
            workers.step(begin.states, np.full(10, 9), random)


_PARENT = """
import sys, time
from pyspiel import load_game
from spiel_cr.games.simulation.workers import Workers
if __name__ == "__main__":
    workers = Workers(load_game("kuhn_poker"), 2)
    print(*(worker.process.pid for worker in workers._workers), flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE)
    try:
        own = [int(word) for word in parent.stdout.readline().split()]
    finally:
        parent.kill()
        parent.communicate()
    deadline = time.monotonic() + 30
    while left := [number for number in own if os.path.exists(f"/proc/{number}")]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert len(own) == 2


def test_workers_reject_invalid_arguments():
    with pytest.raises(ValueError, match="workers=0 must"):
        Workers(load_game("kuhn_poker"), 0)
    made = made_games.random_game(1)
    with pytest.raises(ValueError, match="cannot load random_1.* from its string"):
        Workers(made, 1)


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (made_games.Node(CHANCE, (0, 1), ("", ""), chance=(0.5, 0.4)), "sum to 0.9"),
        (made_games.Node(0, (), ("a", "b")), "player 0 has no legal action"),
        (made_games.Node(TERMINAL, utility=float("nan")), "returns are nan"),
        (made_games.Node(2, (0,), ("a", "b")), "current_player gives 2"),
    ],
)
def test_rejects_invalid_games_and_names_the_history(broken, named):
    first = made_games.Node(0, (0,), ("a", "b"))
    game = made_games.MadeGame(lambda path: broken if path else first, "broken")
    # `load_game` would reject the game, because it checks the first histories.
    source, random = StateSource(game), np.random.default_rng(0)
    begin, none = source.start(2, random), np.zeros(2, int)
    with pytest.raises(InvalidGameError, match=f"after 0:0 .*{named}"):
        source.step(begin.states, none, random)
