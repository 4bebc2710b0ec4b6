"""Streamed evaluation of abrupt phantom games, compared with OpenSpiel."""

import signal

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.common import memory
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.evaluation import opponent
from spiel_cr.evaluation.abrupt_phantom import AbruptEvaluation
from spiel_cr.evaluation.best_response import respond
from spiel_cr.evaluation.matches import play_matches
from spiel_cr.evaluation.response_config import ResponseConfig
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom.abrupt import Leaves, abrupt_game
from tests.support.hidden_boards import Drawn

HEX = "dark_hex(num_rows={},num_cols={},gameversion=adh)"
TTT = "phantom_ttt(gameversion=abrupt)"
# Infosets of players 0 and 1; for the large games, rounded sums are published.
INFOSETS = {
    HEX.format(2, 2): (59, 35),
    HEX.format(2, 3): (4033, 2725),
    TTT: (14_482_810, 8_827_459),
    HEX.format(3, 3): (16_497_034, 10_828_243),
}


def streamed(name: str, policy: openspiel_policy.Policy) -> AbruptEvaluation:
    game = abrupt_game(open_game(name), "none")
    assert game is not None
    return AbruptEvaluation(game, policy)


def infosets_of(name: str) -> tuple[int, ...]:
    game = abrupt_game(open_game(name), "none")
    assert game is not None
    return tuple(
        sum(int(some.possible.sum()) for some in game.infosets(player))
        for player in range(2)
    )


@pytest.mark.parametrize("seed", range(10))
def test_streamed_values_equal_openspiels(seed):
    name = HEX.format(2, 2)
    game = pyspiel.load_game(name)
    policy = Drawn(game, seed)
    seats = streamed(name, policy).values
    wanted = exploitability.nash_conv(game, policy, return_only_nash_conv=False)
    assert sum(seat.value for seat in seats) == pytest.approx(
        wanted.nash_conv, abs=1e-12
    )
    for seat, gain in zip(seats, wanted.player_improvements, strict=True):
        assert seat.value - seat.on_policy == pytest.approx(gain, abs=1e-12)


@pytest.mark.parametrize(
    "shape", [(2, 3), pytest.param((3, 2), marks=pytest.mark.slow)]
)
def test_streamed_values_equal_those_of_the_game_tree(shape):
    name = HEX.format(*shape)
    tree = spiel_cr.build_tree(name)
    policy = Drawn(tree.game, 3)
    target = opponent.open_opponent(policy, tree)
    for player, seat in enumerate(streamed(name, policy).values):
        wanted = respond(target, player, ResponseConfig("exact"))
        both = (wanted.value, wanted.on_policy)
        assert (seat.value, seat.on_policy) == pytest.approx(both, abs=1e-12)


@pytest.mark.parametrize("name", [HEX.format(2, 2), HEX.format(2, 3)])
def test_number_of_infosets(name):
    assert infosets_of(name) == INFOSETS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", [HEX.format(3, 3), TTT])
def test_number_of_infosets_of_large_boards(name):
    assert infosets_of(name) == INFOSETS[name]


def test_each_infoset_has_a_representative_history():
    name = HEX.format(2, 3)
    game = abrupt_game(open_game(name))
    for player, count in enumerate(INFOSETS[name]):
        seen = set()
        for infosets in game.infosets(player):
            rows = infosets.possible.nonzero()[0]
            for actions in game.histories(player, infosets, rows).tolist():
                state = game.game.new_initial_state()
                for action in actions:
                    state.apply_action(action)
                assert state.current_player() == player
                seen.add(state.information_state_string())
        assert len(seen) == count


def test_interrupted_evaluation_is_resumed(tmp_path, monkeypatch):
    name, path = HEX.format(2, 3), tmp_path / "evaluation.npz"
    policy = Drawn(pyspiel.load_game(name), 1)
    wanted = [seat.value for seat in streamed(name, policy).values]
    run, walked = Leaves.run, []

    def counted(leaves: Leaves, count: int) -> None:
        run(leaves, count)
        walked.append(leaves.iterations)
        if len(walked) == 20:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Leaves, "run", counted)
    first, second = streamed(name, policy), streamed(name, policy)
    first.checkpoint = second.checkpoint = spiel_cr.Checkpoint(path)
    with pytest.raises(KeyboardInterrupt):
        _ = first.values
    assert len(walked) == 20
    assert [seat.value for seat in second.values] == wanted
    assert walked == list(range(1, 37))
    other = streamed(name, Drawn(pyspiel.load_game(name), 2))
    other.checkpoint = spiel_cr.Checkpoint(path)
    with pytest.raises(ValueError, match="checkpoint with fingerprint"):
        _ = other.values


def test_other_games_return_none_and_large_boards_raise():
    for name in ("kuhn_poker", "phantom_ttt", "dark_hex(board_size=2)"):
        assert abrupt_game(open_game(name)) is None
    with pytest.raises(GameTooLargeError, match="choose ismcts"):
        abrupt_game(open_game("dark_hex(board_size=4,gameversion=adh)"))


@pytest.mark.slow
def test_value_of_abrupt_phantom_tic_tac_toe():
    """The value agrees with matches within four standard errors; this takes minutes."""
    found = spiel_cr.best_response(TTT, "uniform", 0, memory_limit="none")
    assert found.is_exact and found.value == pytest.approx(0.84713955, abs=1e-8)
    played = play_matches(TTT, ["uniform", "uniform"], 20_000, seed=1)
    returns = played.returns[:, 0]
    spread = returns.std() / len(returns) ** 0.5
    assert abs(returns.mean() - found.seat.on_policy) < 4 * spread
    assert memory.peak_bytes() < 8e9
