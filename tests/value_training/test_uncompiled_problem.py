"""Value networks of games that are never compiled."""

import dataclasses

import numpy as np
import pytest

import game_defs  # noqa: F401
from spiel_cr.cfr.config import parse_algorithm
from spiel_cr.common.errors import DamagedFileError, GameTooLargeError
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.eval.players import traversing
from spiel_cr.lookahead import ExactValues
from spiel_cr.lookahead.frontier_network import (
    FrontierNetwork,
    load_frontier_network,
    next_cut,
)
from spiel_cr.lookahead.network import load_network
from spiel_cr.lookahead.set_network import Architecture, initial
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.tree import PartialTree
from spiel_cr.players import load_bot
from spiel_cr.value_training import train_values, uncompiled_problem
from spiel_cr.value_training.targets import TargetSolver
from spiel_cr.value_training.uncompiled_problem import UncompiledProblem
from tests.support.forests import values_of
from tests.value_training.test_training import SMALL

pytest.importorskip("optax")

GAME = "python_ii_goofspiel(num_cards=3)"


def problem(depth=2, unit="moves_from_start", states=64, game=GAME):
    return UncompiledProblem(game, depth, unit, states=states, seed=0)


def untrained(found: UncompiledProblem) -> FrontierNetwork:
    size = found.features(0)[0].shape[1]
    architecture = Architecture(size, 8, 1, 0)
    return found.network(architecture, initial(architecture, 0))


def test_public_states_are_found_after_each_number_of_moves():
    found = problem(2, "moves")
    # After the first round: 3 pairs that either wins, 3 ties. After the second all 36
    # histories, each player knowing two own cards and who won.
    assert [len(states.history) for states in found.parts] == [9, 36]
    assert sorted(np.bincount(found.parts[0].root_state)) == [1, 1, 1, 3, 3]
    for number, states in enumerate(found.parts):
        assert np.array_equal(
            found.games[number].histories.chance[states.history], states.chance
        )
        for p, rows in enumerate(found.features(number)):
            assert len(rows) == len(states.infosets[p])
            pairs = np.hstack([rows, states.state[p][:, None]])
            assert len(np.unique(pairs, axis=0)) == len(rows)
        ranges = found.random(number, 4, np.random.default_rng(0), 0.1)
        bounds = states.bounds(0)[:-1]
        assert np.add.reduceat(ranges[0], bounds, axis=1) == pytest.approx(1)
    assert [next_cut(2, "moves", k) for k in (0, 1, 2, 3)] == [2, 2, 4, 4]
    assert [next_cut(2, "moves_from_start", k) for k in (0, 2)] == [2, None]
    assert len(problem(states=2).parts[0]) == 2


def test_a_network_says_what_it_is_for(tmp_path):
    network, path = untrained(problem()), tmp_path / "net.npz"
    network.save(path)
    read = load_frontier_network(path)
    for name, own in network.parameters.items():
        assert np.array_equal(own, read.parameters[name])
    assert (read.depth, read.unit, read.scale) == (2, "moves_from_start", 1.0)
    assert np.array_equal(read.reading.columns, network.reading.columns)
    PartialConfig(100, leaf=f"network(path={path})")
    with pytest.raises(ValueError, match="compiled games is needed.*train-values"):
        load_network(path)
    with pytest.raises(ValueError, match=r"num_cards=3.*another game; train one"):
        PartialTree.start("kuhn_poker", 9, player=0, ends=read)
    with pytest.raises(FileNotFoundError, match="no such file"):
        PartialConfig(100, leaf="network(path=nothing.npz)")
    with pytest.raises(ValueError, match="give leaf=network"):
        PartialConfig(100, leaf="network")
    network.parameters["embed0"] = network.parameters["embed0"][:-1]
    network.save(path)
    with pytest.raises(DamagedFileError, match="does not fit together"):
        load_frontier_network(path)


def test_a_sample_of_public_states_reads_all_entries():
    # What never varies in two public states may vary in the others.
    whole, sample = problem(), problem(states=2)
    assert len(sample.parts[0].history) < len(whole.parts[0].history)
    sizes = [found.features(0)[0].shape[1] for found in (whole, sample)]
    assert sizes[0] < sizes[1]


def test_what_cannot_be_trained_is_refused(tmp_path, monkeypatch):
    out, never = tmp_path / "net.npz", {"compile": "never"}
    with pytest.raises(ValueError, match="depth_unit='rounds' does not go with"):
        train_values("no game", 1, out, depth_unit="rounds", **never)
    with pytest.raises(ValueError, match="compile='perhaps'"):
        train_values("no game", 1, out, compile="perhaps")
    with pytest.raises(ValueError, match="over after so many moves"):
        train_values(GAME, 6, out, **never)
    with pytest.raises(ValueError, match="player 1 may not have acted.*greater depth"):
        train_values("kuhn_poker", 3, out, **never)
    with pytest.raises(ValueError, match="is compiled; give its string"):
        train_values(compile_game(GAME, observations=True), 2, out, **never)
    monkeypatch.setattr(uncompiled_problem, "_MOST_HISTORIES", 20)
    with pytest.raises(GameTooLargeError, match="more than 20 histories; take"):
        train_values(GAME, 2, out, **never)
    assert not out.exists()


@pytest.mark.slow  # compiles for seconds
def test_labels_are_those_of_the_whole_game():
    """Below a public state lies what lies below it in the game compiled whole."""
    found, tree = problem(), compile_game(GAME, observations=True)
    states = found.parts[0]
    part = found._parts[0]
    # The game as far as the cut has the first histories of the whole one.
    above = part.frontier.public.history
    whole = dataclasses.replace(
        states,
        history=above,
        chance=np.broadcast_to(tree.histories.chance, len(tree.histories))[above],
    )
    ranges = found.random(0, 64, np.random.default_rng(1), 0.1)
    solver = TargetSolver(
        found.games[0], states, 300, parse_algorithm("cfr+"), dtype=np.float64
    )
    values = solver.solve(ranges)
    # Of 9 histories that chance leads to alike.
    for row in range(4):
        own = (ranges[0][row], ranges[1][row])
        exact = values_of(ExactValues(300).lay_out(tree, whole), own)
        for p in range(2):
            assert 9 * values[p][row] == pytest.approx(exact[p], abs=1e-6)


@pytest.mark.slow  # programs are compiled
def test_a_network_is_trained_without_the_game_and_played_with(tmp_path):
    config = dataclasses.replace(SMALL, rounds=2, steps=200, hidden=16)
    out, kept = tmp_path / "net.npz", tmp_path / "state.npz"
    arguments = {"compile": "never", "config": config}
    whole = train_values(GAME, 2, out, depth_unit="moves_from_start", **arguments)
    assert whole.finished and whole.curve[-1].met_loss is not None
    assert whole.curve[-1].train_loss < whole.curve[0].train_loss / 2
    first = train_values(
        *(GAME, 2, tmp_path / "part.npz"),
        depth_unit="moves_from_start",
        minutes=1e-9,
        checkpoint=kept,
        **arguments,
    )
    assert not first.finished
    second = train_values(
        *(GAME, 2, tmp_path / "part.npz"),
        depth_unit="moves_from_start",
        checkpoint=kept,
        **arguments,
    )
    for name, own in whole.network.parameters.items():
        assert np.array_equal(own, second.network.parameters[name]), name
    tree = compile_game(GAME)
    text = f"resolving(max_histories=60,iterations=50,leaf=network(path={out}))"
    found = traversing.evaluate_bot(tree, text)
    untaught = tmp_path / "untaught.npz"
    untrained(problem()).save(untaught)
    other = traversing.evaluate_bot(tree, text.replace(str(out), str(untaught)))
    assert found.nash_conv < 0.2 < other.nash_conv
    assert load_bot(text, tree.game, 0).agent.counts.most_histories <= 60
