"""The first rounds of hold'em alone, and judging them board by board."""

import dataclasses

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr import gameshrink
from spiel_cr.abstraction import board_responses, buckets, first_phase
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.eval.cli.solving.abstract import whole_nash_conv
from spiel_cr.policies import best_responses
from spiel_cr.signals import game as signal_games
from spiel_cr.signals import kernel_boards, public_nodes
from spiel_cr.signals.form import form_of
from spiel_cr.signals.game import BoardKernel, HandKernel, SparseKernel
from spiel_cr.signals.loading import signal_game
from tests.abstraction.test_first_phase import ALL_IN, PAIRS, mixed_behaviour, value

HOLDEM = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=10 5,"
    "firstPlayer=2 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,"
    "raiseSize=10 10 20 20,maxRaises=3 4 4 4)"
)


def poker(ranks, suits, hole, deals, raises="1 1 1 1"):
    """Limit poker with a small deck, a round for each number of public cards."""
    rounds = len(deals.split())
    first = "2" + " 1" * (rounds - 1)
    return (
        f"universal_poker(betting=limit,numPlayers=2,numRounds={rounds},blind=10 5,"
        f"firstPlayer={first},numSuits={suits},numRanks={ranks},numHoleCards={hole},"
        f"numBoardCards={deals},raiseSize=10 10 20 20,maxRaises={raises})"
    )


# Two cards each, a flop of two, a turn and a river.
SMALL = poker(4, 3, 2, "0 2 1 1")
# Two ways to be all in before the last card.
SHORT = (
    "universal_poker(betting=nolimit,bettingAbstraction=fcpa,numPlayers=2,numRounds=3,"
    "blind=5 10,firstPlayer=2 1 1,numSuits=2,numRanks=4,numHoleCards=1,"
    "numBoardCards=0 1 1,stack=60 60)"
)


@pytest.mark.parametrize("name", [PAIRS, ALL_IN, PAIRS.replace("Suits=2", "Suits=3")])
def test_of_two_rounds_it_is_the_early_one(name):
    """Which is made from the whole game, and held to checking down."""
    expected = first_phase.early_rounds(signal_game(name), 1)
    found = first_phase.first_rounds(name, 1)
    for part in ("player", "parent", "action", "round"):
        np.testing.assert_array_equal(
            getattr(found.betting, part), getattr(expected.betting, part)
        )
    first, second = form_of(found), form_of(expected)
    for seed in range(3):
        behaviour = mixed_behaviour(first, seed)
        assert value(first, behaviour) == pytest.approx(
            value(second, behaviour), abs=1e-12
        )


def walked(game, behaviour):
    """What player 0 gets, by OpenSpiel's states alone: later on everybody calls."""
    finder = public_nodes.Finder(game)
    decisions = [public_nodes.public_decisions(game, p) for p in range(2)]

    def worth(state, node, hands, public):
        """Cards are kept in the order of the deal; node None: nobody bets any more."""
        if state.is_terminal():
            return state.returns()[0]
        if state.is_chance_node():
            if node is not None and game.betting.player[node] < 0:
                node = None
            outcomes = state.chance_outcomes()
            return sum(
                chance * worth(state.child(card), node, hands, public)
                for card, chance in outcomes
            )
        if node is None:
            return worth(state.child(1), None, hands, public)
        player = state.current_player()
        signal = game.reader.signal(state, player)
        shares = decisions[player].block(behaviour[player], node)[signal]
        children = finder.children(node).tolist()
        total = 0.0
        for action, share, child in zip(
            state.legal_actions(), shares, children, strict=True
        ):
            assert game.betting.action[child] == action
            total += share * worth(state.child(action), child, hands, public)
        return total

    return worth(game.game.new_initial_state(), 0, [], [])


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        (poker(3, 2, 1, "0 1 1"), 1),
        (poker(3, 2, 1, "0 1 1"), 2),
        (poker(3, 2, 1, "0 0 1 2"), 1),
        (poker(3, 2, 2, "0 1 1"), 2),
        (SHORT.replace("numRanks=4", "numRanks=3"), 2),
    ],
)
def test_worth_what_openspiel_pays_where_nobody_bets_later(name, rounds):
    game = first_phase.first_rounds(name, rounds)
    game.check()
    assert game.num_rounds == rounds
    form = form_of(game)
    behaviour = mixed_behaviour(form, 1)
    assert value(form, behaviour) == pytest.approx(walked(game, behaviour), abs=1e-12)


def test_a_state_of_a_later_round_has_no_signal():
    game = first_phase.first_rounds(poker(3, 2, 1, "0 1 1"), 2)
    state = pyspiel.load_game(str(game.game)).new_initial_state()
    for action in (0, 1, 1, 1, 2, 1, 1, 3):
        state.apply_action(action)
    with pytest.raises(ValueError, match="2 public cards"):
        game.reader.signal(state, 0)


@pytest.mark.parametrize("name", [SMALL, SHORT])
def test_nash_conv_board_by_board(name):
    """Equal to that of the game laid out as a whole."""
    game = first_phase.first_rounds(name, 2)
    assert board_responses.by_boards(game)
    found = buckets.abstract(game, (4, 9))
    smaller = gameshrink.coarsen(game, found.partition)
    behaviour = spiel_cr.solve(smaller, "dcfr", iterations=20).average
    lifted = gameshrink.lift(game, found.partition, behaviour)
    assert board_responses.nash_conv(game, found.partition, behaviour) == pytest.approx(
        whole_nash_conv(game, lifted), abs=1e-12
    )
    # What best responses among buckets gain is less than what they gain here.
    reach = best_responses.reach_of(form_of(smaller), behaviour)
    small = best_responses.nash_conv(form_of(smaller), reach)
    assert small < whole_nash_conv(game, lifted) - 0.1


def test_strategies_of_another_game_are_refused():
    game = first_phase.first_rounds(SMALL, 2)
    partition = buckets.abstract(game, (4, 9)).partition
    with pytest.raises(ValueError, match="behaviour of player 1"):
        board_responses.nash_conv(game, partition, [np.ones(3), np.ones(3)])


def test_smaller_game_pays_what_lifted_strategies_are_paid():
    game = first_phase.first_rounds(SMALL, 2)
    partition = buckets.abstract(game, (4, 9)).partition
    smaller = gameshrink.coarsen(game, partition)
    behaviour = mixed_behaviour(form_of(smaller), 2)
    lifted = gameshrink.lift(game, partition, behaviour)
    assert value(form_of(smaller), behaviour) == pytest.approx(
        value(form_of(game), lifted), abs=1e-12
    )


@pytest.mark.parametrize("pairs", [kernel_boards._PAIRS, 100])
def test_kernels_of_hands_are_summed_without_being_listed(pairs, monkeypatch):
    monkeypatch.setattr(kernel_boards, "_PAIRS", pairs)
    game = signal_game(PAIRS.replace("Suits=2", "Suits=3"))
    rng = np.random.default_rng(3)
    for kernel in game.kernels:
        assert isinstance(kernel, HandKernel)
        labels = tuple(rng.integers(0, 5, size) for size in kernel.shape)
        found = dense(kernel_boards.summed(kernel, labels))
        rows, columns, values = kernel.coordinates()
        expected = np.zeros((5, 5))
        np.add.at(expected, (labels[0][rows], labels[1][columns]), values)
        np.testing.assert_allclose(found, expected, atol=1e-15)


def dense(kernel):
    rows, columns, values = kernel.coordinates()
    found = np.zeros(kernel.shape)
    np.add.at(found, (rows, columns), values)
    return found


def test_board_kernels_multiply_as_their_entries_do():
    game = first_phase.first_rounds(SMALL, 2)
    rng = np.random.default_rng(4)
    for kernel in game.kernels:
        if isinstance(kernel, SparseKernel):
            continue
        matrix = dense(kernel)
        for player in range(2):
            other = rng.uniform(size=(3, kernel.shape[1 - player]))
            expected = other @ (matrix.T if player == 0 else -matrix)
            np.testing.assert_allclose(
                kernel_boards.times(kernel, player, other), expected, atol=1e-15
            )
            np.testing.assert_allclose(
                kernel_boards.dealt(kernel, player),
                np.abs(matrix).sum(axis=1 - player),
                atol=1e-15,
            )


def test_unlisted_games_are_not_solved(monkeypatch):
    game = first_phase.first_rounds(SMALL, 2)
    monkeypatch.setattr(signal_games, "_MOST_ENTRIES", 10)
    with pytest.raises(GameTooLargeError, match="put signals into buckets first"):
        spiel_cr.solve(game, "cfr", iterations=1)


def test_refused():
    game = first_phase.first_rounds(SMALL, 2)
    kernel = next(k for k in game.kernels if isinstance(k, BoardKernel))
    wrong = dataclasses.replace(kernel, weight=kernel.weight * np.nan)
    broken = dataclasses.replace(game, kernels=(wrong,) * len(game.kernels))
    with pytest.raises(InvalidGameError, match="not finite"):
        broken.check()
    with pytest.raises(ValueError, match="rounds=5: this game has 4 rounds"):
        first_phase.first_rounds(HOLDEM, 5)
    # 55 190 538 exactly, up to suits.
    with pytest.raises(ValueError, match=r"rounds=3: .* about 5\.1e\+07 signals per"):
        first_phase.first_rounds(HOLDEM, 3)
    # Before anything is compared: two bytes for a showdown of two hands, one for folds.
    said = r"1,286,792 hands on 1,755 boards .* takes about 4\.\d GB"
    with pytest.raises(GameTooLargeError, match=said):
        first_phase.first_rounds(HOLDEM, 2, memory_limit="2GB")


@pytest.mark.slow
def test_chances_before_the_flop():
    """Against a random hand, to the four digits that are printed everywhere."""
    game = first_phase.first_rounds(HOLDEM, 1)
    folds, shown = sorted(game.kernels, key=lambda k: -k.entries.values.min())
    ours = (1 + dense(shown).sum(axis=1) / dense(folds).sum(axis=1)) / 2
    names = [game.reader.name(0, 0, signal) for signal in range(169)]
    for hand, chance in (
        ("AdAc", 0.8520),
        ("KdKc", 0.8240),
        ("AcKc", 0.6704),
        ("2d2c", 0.5033),
        ("3d2c", 0.3230),
    ):
        assert ours[names.index(hand)] == pytest.approx(chance, abs=5e-5)
