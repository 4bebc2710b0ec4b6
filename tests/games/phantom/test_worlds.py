"""The phantom form represents the game: sizes, payoffs, iterates and NashConv."""

import functools
import itertools

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom import phantom_game
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.phantom.phantom_rules import (
    estimate_phantom_worlds,
    phantom_rules,
    walk_worlds,
)
from spiel_cr.games.phantom.sides import walk_side
from spiel_cr.policies import best_responses, conversions
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr
from tests.support import hidden_boards

HEX = "dark_hex(num_rows={},num_cols={})"
# Worlds, terminal worlds, infosets, sequences, pairs and terminal histories.
SIZES = {
    "phantom_ttt": (
        *(549_946, 255_168, (3_683_314, 2_307_355), (6_384_801, 5_772_465)),
        *((38_520_864, 55_300_608), 9_829_101_024),
    ),
    "dark_hex(board_size=3)": (
        # The numbers of sequences are not known from another program.
        *(548_650, 257_760, (3_720_850, 2_352_067), None),
        *((37_020_960, 56_979_360), 9_469_697_760),
    ),
}
# Larger boards whose histories are still all enumerated.
LARGER = [HEX.format(2, 3), HEX.format(3, 2)]
SMALL = [HEX.format(2, 2), LARGER[0], *range(10), LARGER[1]]


def phantom_game_of_board(seed: int) -> PhantomGame:
    board = hidden_boards.RandomBoard(seed)
    worlds = walk_worlds(board, board)
    sides = tuple(walk_side(worlds, player, lambda *_: None) for player in range(2))
    return PhantomGame(board, board, worlds, sides)


@functools.cache
def phantom_and_enumerated_game(
    name: str | int,
) -> tuple[PhantomGame, hidden_boards.Enumerated]:
    if isinstance(name, int):
        board = hidden_boards.RandomBoard(name)
        return phantom_game_of_board(name), hidden_boards.of_board(board)
    return phantom_game(name), hidden_boards.of_states(pyspiel.load_game(name))


def places(worlds: PhantomGame, plain: hidden_boards.Enumerated, player: int):
    """Return the phantom form's infosets and sequences in the enumeration's order."""
    found = [worlds.infoset_after(history) for history in plain.histories[player]]
    assert {acts for acts, _ in found} <= {player}
    infosets = np.array([infoset for _, infoset in found], np.int64)
    counts = plain.sequence_form.decisions[player].num_actions
    first = worlds.first_sequences[player][infosets]
    steps = np.concatenate([np.arange(count) for count in counts.tolist()])
    return infosets, np.append(0, np.repeat(first, counts) + steps)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in LARGER else [])
        for name in SMALL
    ],
)
def test_phantom_form_equals_the_enumerated_game(name):
    worlds, plain = phantom_and_enumerated_game(name)
    assert worlds.num_terminals == plain.terminals
    for player in range(2):
        infosets, sequences = places(worlds, plain, player)
        own, other = (
            worlds.sequence_form.decisions[player],
            plain.sequence_form.decisions[player],
        )
        assert sorted(infosets) == list(range(len(own))) and len(own) == len(other)
        assert (own.num_actions[infosets] == other.num_actions).all()
        assert (own.parent[infosets] == sequences[other.parent]).all()
    rows, columns, values = plain.sequence_form.payoffs
    (_, first), (_, second) = (places(worlds, plain, p) for p in range(2))
    wanted = _entries(first[rows], second[columns], values)
    assert _entries(*worlds.sequence_form.payoffs) == wanted


def _entries(rows, columns, values) -> dict:
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    found = zip(pairs, values.tolist(), strict=True)
    return {pair: value for pair, value in found if value}


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        pytest.param(
            *(name, algorithm),
            marks=[pytest.mark.slow] if number > 2 or name in LARGER else [],
        )
        for number, (name, algorithm) in enumerate(
            zip(SMALL, itertools.cycle(["pcfr+", "cfr+", "dcfr", "cfr"]), strict=False)
        )
    ],
)
def test_iterates_and_nash_conv_equal_those_of_the_enumerated_game(name, algorithm):
    worlds, plain = phantom_and_enumerated_game(name)
    solvers = [
        cfr.make_solver(form, config=find(algorithm).config, compile="once")
        for form in (worlds.sequence_form, plain.sequence_form)
    ]
    for solver in solvers:
        solver.run(15)
    for player in range(2):
        _, sequences = places(worlds, plain, player)
        for read in ("average", "current_behaviour"):
            found, wanted = (getattr(solver, read)(player) for solver in solvers)
            np.testing.assert_allclose(found[sequences], wanted, atol=1e-12)
    ours, theirs = (solver.nash_conv() for solver in solvers)
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_rounding_tolerance_is_bounded_by_pure_opponent_strategies():
    """With sums over all histories of a world, true regrets would count as rounding."""
    game = phantom_game(HEX.format(2, 3))
    for player, side in enumerate(game.sides):
        behaviour = conversions.uniform_behaviour(side.decisions)
        reach = conversions.reach_from_behaviour(side.decisions, behaviour)
        counts = np.diff(side.incidence.starts)
        of_worlds = np.bincount(side.incidence.worlds, np.repeat(reach, counts))
        assert of_worlds.max() <= 1 + 1e-12 and counts.sum() == game.pairs[player]
        first = game.sequence_form.arrays[player].levels[0]
        (tolerance,) = first.tolerance
        # Payoffs are 1 or -1, and all pairs are below the first level's infosets.
        wanted = 16 * np.finfo(float).eps * game.pairs[player]
        assert tolerance.sum() == pytest.approx(wanted, rel=1e-12)


def test_best_responses_to_uniform_play_have_known_values():
    name = HEX.format(2, 2)
    worlds = phantom_game(name)
    behaviour = tuple(
        map(conversions.uniform_behaviour, worlds.sequence_form.decisions)
    )
    reach = best_responses.reach_of(worlds.sequence_form, behaviour)
    found = [
        best_responses.best_response_value(
            worlds.sequence_form, player, reach[1 - player]
        )
        for player in range(2)
    ]
    assert found == pytest.approx([1.0, 0.25], abs=1e-12)


@pytest.mark.parametrize(
    ("shape", "seed"),
    [
        ((2, 3), 1),
        pytest.param((2, 4), None, marks=pytest.mark.slow),
        pytest.param((2, 4), 2, marks=pytest.mark.slow),
        pytest.param((4, 2), 3, marks=pytest.mark.slow),
    ],
)
def test_best_responses_equal_those_from_beliefs(shape, seed):
    """Boards of 2x4 and 4x2 have 44 and 119 million histories, which beliefs avoid.

    The policy, uniform or random, depends only on the sets of stones and attempts.
    """
    name = HEX.format(*shape)
    cells = shape[0] * shape[1]
    size = 2, 1 << cells, 1 << cells, cells
    odds = np.ones(size)
    if seed is not None:
        odds = np.random.default_rng(seed).exponential(size=size)
    game = phantom_game(name)
    for player in range(2):
        other = game.sides[1 - player]
        stones, tried = hidden_boards.stones_and_tries(other)
        owner = other.decisions.owner[1:]
        behaviour = odds[1 - player, stones[owner], tried[owner], other.actions]
        behaviour = np.append(1.0, behaviour)
        behaviour = conversions.behaviour_from_reach(other.decisions, behaviour)
        reach = conversions.reach_from_behaviour(other.decisions, behaviour)
        found = best_responses.best_response_value(game.sequence_form, player, reach)
        wanted = hidden_boards.response_to_beliefs(
            cells, open_game(name).rules._wins, player, odds[1 - player]
        )
        assert found == pytest.approx(wanted, abs=1e-9)


def test_each_history_leads_to_its_infoset():
    worlds = phantom_game(HEX.format(2, 3))
    for player in range(2):
        number = 0
        for part, actions in worlds.histories(player):
            assert part.start == number
            for row in actions.tolist():
                history = [action for action in row if action >= 0]
                assert worlds.infoset_after(history) == (player, number)
                number += 1
        assert number == len(worlds.sides[player].decisions)


def test_rejects_histories_that_reach_no_decision():
    worlds = phantom_game(HEX.format(2, 2))
    for history in ([0, 0, 0], [9], [0, 1, 2, 3]):
        with pytest.raises(ValueError, match="do not lead to a decision"):
            worlds.infoset_after(history)


def test_rejects_games_that_are_not_phantom_games():
    names = ("kuhn_poker", "phantom_ttt(gameversion=abrupt)")
    for name in (*names, "dark_hex(board_size=2,obstype=reveal-numturns)"):
        with pytest.raises(ValueError, match="phantom game; give its"):
            phantom_game(name)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda f, t: (f[:, :2], t), "it must return bool"),
        (lambda f, t: (f, t - 1), "they must be integers"),
        (lambda f, t: (f, t * 200), "answers above 127"),
        (lambda f, t: (f & (t > 2), t), "has made every attempt"),
    ],
)
def test_rejects_invalid_move_outcomes(wrong, why, monkeypatch):
    board = hidden_boards.RandomBoard(1)
    true = board.move_outcomes
    monkeypatch.setattr(board, "move_outcomes", lambda states: wrong(*true(states)))
    with pytest.raises(InvalidGameError, match=why):
        walk_side(walk_worlds(board, board), 0, lambda *_: None)
        walk_side(walk_worlds(board, board), 1, lambda *_: None)


@pytest.mark.parametrize("name", SIZES)
def test_memory_limit_is_checked_before_building(name, monkeypatch):
    """The form needs 4 GB, so the limit is half of that."""
    monkeypatch.setattr("spiel_cr.games.phantom.game.walk_worlds", None)
    with pytest.raises(GameTooLargeError, match="phantom form needs more than"):
        phantom_game(name, memory_limit="2GB")
    rules, pairs = phantom_rules(open_game(name).rules), SIZES[name][4]
    for player in range(2):
        estimated = estimate_phantom_worlds(open_game(name).game, rules, player)
        assert estimated == pytest.approx(pairs[player], rel=0.15)


def test_memory_limit_is_checked_while_building(monkeypatch):
    monkeypatch.setattr(
        "spiel_cr.games.phantom.game.estimate_phantom_worlds", lambda *_: 0
    )
    with pytest.raises(GameTooLargeError, match="phantom form needs more than"):
        phantom_game("phantom_ttt", memory_limit="450MB")


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_sizes_of_large_boards(name):
    worlds, ends, infosets, sequences, pairs, terminals = SIZES[name]
    game = phantom_game(name, memory_limit="none")
    assert (game.worlds.player == TERMINAL).sum() == ends
    assert len(game.worlds) == worlds and game.num_terminals == terminals
    assert tuple(len(side.decisions) for side in game.sides) == infosets
    # The empty sequence is not counted.
    found = tuple(side.decisions.num_sequences - 1 for side in game.sides)
    assert game.pairs == pairs and sequences in (None, found)
    if name != "phantom_ttt":
        found = spiel_cr.nash_conv(name, "uniform", memory_limit="none")
        assert found == pytest.approx(1.832804233, abs=1e-9)
