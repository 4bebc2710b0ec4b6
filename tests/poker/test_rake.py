"""Spots with rake, compared with slow best responses on OpenSpiel's states."""

import collections
import dataclasses

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr import poker
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.opening.opened import has_rake
from spiel_cr.games.public_tree import public_tree_game

# Board, pot, stack, ranges, bets, rake.
RIVERS = [
    ("5c9dJs2h3c", 20, 40, "AhAd,9h8h:0.5,Td8d;QQ:0.5,JhTh", "pot", "5%,3"),
    ("5c9dJs2h3c", 100, 100, "AhAd,5h4h,7h6h;KsKd,JdTd:0.7", "50%,allin", "10%"),
    ("2s2c7d7h3s", 100, 100, "AhAd,6d5d,6h5h;KhKd,KsKc", "pot; cap 2", "5%,4"),
    ("AhKhQhJhTh", 30, 50, "2c2d,3c3d;4c4d,5c5d", "pot", "4%,1.5"),  # always a tie
    ("AsKd7c2h9s", 60, 90, "AcQc,7h7s:0.25,5d4d;KcQh,AdTd,8h8d", "allin", "20%,10"),
]
FORM = spiel_cr.GameOptions("public-tree")
_REMEDY = "leave rake out, or solve it by a full-width algorithm such as dcfr"


def rake_of(text: str, pot: float) -> float:
    share, _, cap = text.partition(",")
    return min(pot * float(share[:-1]) / 100, float(cap or "inf"))


class SlowGame:
    """A river that is enumerated state by state, with payoffs after rake."""

    def __init__(self, board, pot, stack, ranges, bets, rake):
        # The game without rake is enumerated; names of actions give the chips.
        self.game = poker.spot(board, pot, stack, ranges=ranges, bets=bets)
        self.pot, self.rake = pot, rake
        self.ends = []
        self.played = {}

    def walk(self, policy):
        self._walk(policy, self.game.new_initial_state(), 1.0, ((), ()), (0, 0))

    def _walk(self, policy, state, chance, paths, chips):
        """Visit a state; `paths` has the infosets and actions of each player so far."""
        if state.is_terminal():
            self.ends.append((chance, paths, self._payoffs(state, chips)))
            return
        if state.is_chance_node():
            for action, p in state.chance_outcomes():
                self._walk(policy, state.child(action), chance * p, paths, chips)
            return
        player = state.current_player()
        key = state.information_state_string(player)
        self.played[key] = policy.action_probabilities(state)
        for action in state.legal_actions():
            name = state.action_to_string(player, action)
            after, bets = list(paths), list(chips)
            after[player] = (*paths[player], (key, action))
            if name == "Call":
                bets[player] = chips[1 - player]
            elif name not in ("Fold", "Check"):
                bets[player] = int(name.split()[1])
            child = state.child(action)
            self._walk(policy, child, chance, tuple(after), tuple(bets))

    def _payoffs(self, state, chips):
        half = self.pot / 2 + min(chips)
        rake = rake_of(self.rake, 2 * half)
        sign = np.sign(state.player_return(0))
        if sign == 0:
            return -rake / 2, -rake / 2
        return (half - rake, -half) if sign > 0 else (-half, half - rake)

    def reach(self, path):
        return np.prod([self.played[key][action] for key, action in path])

    def value(self, player):
        return sum(
            chance * self.reach(paths[0]) * self.reach(paths[1]) * payoffs[player]
            for chance, paths, payoffs in self.ends
        )

    def best_response_value(self, player):
        totals = collections.defaultdict(float)
        after = collections.defaultdict(lambda: collections.defaultdict(set))
        for chance, paths, payoffs in self.ends:
            weight = chance * self.reach(paths[1 - player])
            totals[paths[player]] += weight * payoffs[player]
            for n, (key, action) in enumerate(paths[player]):
                after[paths[player][:n]][key].add(action)

        def best(path):
            return totals[path] + sum(
                max(best((*path, (key, action))) for action in actions)
                for key, actions in after[path].items()
            )

        return best(())


@pytest.mark.parametrize("setting", RIVERS)
def test_values_and_regrets_equal_slow_best_responses(setting):
    board, pot, stack, ranges, bets, rake = setting
    game = poker.spot(board, pot, stack, ranges=ranges, bets=bets, rake=rake)
    result = spiel_cr.solve(game, "dcfr", 20, options=FORM)
    slow = SlowGame(*setting)
    slow.walk(result.average_policy())
    values = [slow.value(player) for player in range(2)]
    gains = [slow.best_response_value(p) - values[p] for p in range(2)]
    assert min(gains) > -1e-9 and sum(values) < -0.1
    assert result.values() == pytest.approx(values, abs=1e-6)
    assert result.regrets() == pytest.approx(gains, abs=1e-6)
    assert result.nash_conv() == pytest.approx(sum(gains), abs=1e-6)
    root = poker.answers(result.average_policy(), form=result.form)
    assert root.mean(root.ev) == pytest.approx(values[0], abs=1e-6)


def test_general_sum_games_need_a_declared_rake():
    raked = poker.spot("5c9dJs2h3c", 100, 100, ranges="AA;KK", rake="5%,3")
    assert has_rake(raked) and not has_rake(pyspiel.load_game("bargaining"))
    game = public_tree_game(raked)
    game.check()
    with pytest.raises(InvalidGameError, match="its declaration has no rake"):
        dataclasses.replace(game, rake=None).check()


@pytest.mark.parametrize("rake", ["0%", "0%,3", "5%,0"])
def test_zero_rake_keeps_the_game_zero_sum(rake):
    game = poker.spot("5c9dJs2h3c", 100, 100, ranges="AA;KK", bets="pot", rake=rake)
    assert game.get_type().utility == pyspiel.GameType.Utility.ZERO_SUM
    assert spiel_cr.solve(game, "lp").nash_conv() < 1e-9


def test_states_pay_the_rake():
    game = poker.spot("5c9dJs2h3c", 100, 100, ranges="AA;KK", bets="pot", rake="5%,8")
    state = game.new_initial_state()
    for _ in range(2):
        state.apply_action(state.legal_actions()[0])
    assert game.get_type().utility.name == "GENERAL_SUM"
    checked, folded, called = (state.clone() for _ in range(3))
    for action in (1, 1):
        checked.apply_action(action)
    assert checked.returns() == [50 - 5, -50]  # 5% of 100
    for action in (2, 0):  # The bet is not called, so it is not raked.
        folded.apply_action(action)
    assert folded.returns() == [50 - 5, -50]
    for action in (2, 1):
        called.apply_action(action)
    assert called.returns() == [150 - 8, -150]  # The cap.


def test_raked_spot_is_solved_and_saved(tmp_path):
    game = poker.spot("2s2c7d7h3s", 100, 100, ranges="AA,65s;KK", bets="pot", rake="5%")
    result = spiel_cr.solve(game, "cfr+", spiel_cr.Goal(2000, until=0.5), options=FORM)
    assert result.stop_reason == "nash_conv" and 0 <= result.nash_conv() <= 0.5
    path = tmp_path / "rake.npz"
    result.save(path)
    policy = spiel_cr.load_policy(path)
    assert "rake=5%" in str(policy.game)
    root = poker.answers(policy)
    assert root.mean(root.ev) == pytest.approx(result.values()[0], abs=1e-9)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g: spiel_cr.solve(g, "lp", options=FORM), _REMEDY),
        (lambda g: spiel_cr.solve(g, "auto", options=FORM), _REMEDY),
        (lambda g: spiel_cr.solve(g, "pdhg", options=FORM), _REMEDY),
        (lambda g: spiel_cr.solve(public_tree_game(g), "lp"), _REMEDY),
        (lambda g: spiel_cr.build_tree(g), _REMEDY),
        (
            lambda g: spiel_cr.solve(g, "dcfr", options=spiel_cr.GameOptions("tree")),
            "with rake, the game is not zero-sum; use the public-tree form",
        ),
        (lambda g: spiel_cr.nash_conv(g, "uniform"), _REMEDY),
        (lambda g: spiel_cr.load_bot(g, "uniform", 0), _REMEDY),
        (lambda g: spiel_cr.resolve(g), _REMEDY),
        (lambda g: spiel_cr.exploit(g, "uniform", seconds=1), _REMEDY),
    ],
)
def test_rake_is_rejected_by_functions_for_zero_sum_games(call, said):
    game = poker.spot("5c9dJs2h3c", 20, 20, ranges="AA;KK", bets="pot", rake="5%,3")
    with pytest.raises(ValueError) as refusal:
        call(game)
    assert said in str(refusal.value)


@pytest.mark.parametrize("rake", ["5", "101%", "five%", "5%,x", "5%,3,1"])
def test_rejects_invalid_rakes(rake):
    with pytest.raises(ValueError, match="not a percentage and a cap in chips"):
        poker.spot("5c9dJs2h3c", 20, 20, rake=rake)
