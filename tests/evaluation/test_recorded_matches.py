"""Tests of recorded matches: AIVAT estimates, and the losses of decisions."""

import collections
import json

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.evaluation import matches as matches_module
from spiel_cr.evaluation.recorded_matches import read_matches, review_matches
from spiel_cr.policies import conversions
from tests.support.games import compiled


@pytest.mark.parametrize("known", [True, False])
def test_aivat_of_recorded_matches_equals_that_of_play_matches(
    known, tmp_path, monkeypatch
):
    """The matches are recorded as OpenSpiel trajectories."""
    tree = compiled("leduc")
    reference = spiel_cr.solve(tree, "cfr+", 50)
    first = "cfr+(iterations=3)" if known else _make_random_bot
    players = (first, "uniform" if known else _make_random_bot)
    lines, original = [], matches_module.play_match

    def recorded(game, *arguments, **settings):
        match = original(game, *arguments, **settings)
        state = tree.game.new_initial_state()
        for action in match.actions:
            state.apply_action(action)
        lines.append(pyspiel.Trajectory(state).to_string())
        return match

    monkeypatch.setattr(matches_module, "play_match", recorded)
    played = spiel_cr.play_matches(tree, players, 40, aivat=reference, seed=4)
    path = tmp_path / "trajectories.jsonl"
    path.write_text("\n".join(lines) + "\n")
    matches, _ = read_matches(path)
    assert len(matches) == 40
    for swapped in (0, 1):
        policies = None
        if known:
            policies = dict(enumerate(players[:: 1 - 2 * swapped]))
        result = review_matches(tree, matches[swapped::2], reference, policies=policies)
        sign = 1 - 2 * swapped
        assert sign * result.estimates == pytest.approx(
            played.returns[:, swapped], abs=1e-12
        )
    assert np.std(result.estimates) < np.std(result.returns)


class _RandomBot(pyspiel.Bot):
    """Bot that moves at random and provides no probabilities."""

    def __init__(self, player, seed):
        pyspiel.Bot.__init__(self)
        self._player, self._random = player, np.random.default_rng(seed)

    def player_id(self):
        return self._player

    def restart(self):
        pass

    def step(self, state):
        return int(self._random.choice(state.legal_actions()))


def _make_random_bot(player, seed):
    return _RandomBot(player, seed)


def test_aivat_of_tournament_logs_equals_the_logged_estimates(tmp_path):
    from spiel_cr.eval.tournaments.tournament import play_tournament

    bots = ["cfr+(iterations=3)", "uniform"]
    play_tournament("kuhn_poker", bots, 20, tmp_path, aivat="lp")
    lines = (tmp_path / "matches.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    matches, _ = read_matches(tmp_path / "matches.jsonl")
    for swapped in (False, True):
        chosen = [n for n, record in enumerate(records) if record["swapped"] == swapped]
        result = review_matches(
            "kuhn_poker",
            [matches[n] for n in chosen],
            "lp",
            policies=dict(enumerate(bots[::-1] if swapped else bots)),
        )
        expected = [records[n]["aivat"] for n in chosen]
        assert result.estimates == pytest.approx(expected, abs=1e-12)


def test_reads_the_matches_of_a_bot_in_both_seats(tmp_path):
    """The tournament plays each deal of Kuhn poker in both seats."""
    from spiel_cr.eval.tournaments.tournament import play_tournament

    bots = ["cfr+(iterations=3)", "uniform", "always_first"]
    play_tournament("kuhn_poker", bots[:2], 20, tmp_path, aivat="lp")
    path = tmp_path / "matches.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for bot, sign in zip(bots[:2], (1, -1), strict=True):
        matches, seats = read_matches(path, bot)
        assert seats == [record["players"].index(bot) for record in records]
        result = review_matches("kuhn_poker", matches, "lp", seats=seats)
        expected = [r["returns"][int(r["swapped"])] for r in records]
        assert result.returns == pytest.approx(sign * np.array(expected))
        moves = collections.Counter()
        for actions, seat in zip(matches, seats, strict=True):
            state = pyspiel.load_game("kuhn_poker").new_initial_state()
            for action in actions:
                if state.current_player() == seat:
                    key = state.information_state_string()
                    moves[seat, key, state.action_to_string(action)] += 1
                state.apply_action(action)
        assert result.habits or bot != "uniform"
        for habit in result.habits:
            assert moves[habit[:3]] == habit.times
    with pytest.raises(ValueError, match="no matches of bot='always_first'"):
        read_matches(path, bots[2])


def test_habits_report_the_losses_of_mistakes_in_kuhn_poker():
    """Player 1 folds the king to a bet, or calls with the jack.

    With the king, a call wins two chips, and a fold loses one. With the jack, a call
    loses one chip more than a fold, because player 0 never bets the queen.
    """
    fold, call = (0, 2, 1, 0), (1, 0, 1, 1)
    result = review_matches("kuhn_poker", [fold, fold, call])
    (first, second) = (h for h in result.habits if h.player == 1)
    assert first[:4] == (1, "2b", "Pass", 2) and first.best == "Bet"
    assert first.loss == pytest.approx(3, abs=0.01)
    assert (second.information_state, second.action) == ("0b", "Bet")
    assert second.loss == pytest.approx(1, abs=0.01)


def test_losses_equal_a_slow_enumeration():
    """Sum the expected values over the opponent's hands, state by state."""
    tree = compiled("kuhn")
    reference = spiel_cr.solve(tree, "cfr+", 7)
    behaviours = reference.sequence_form_and_average()[1]
    values = conversions.history_values(tree, behaviours)
    deals = [(a, b) for a in range(3) for b in range(3) if a != b]
    matches = [(*deal, 0, 1, 1) for deal in deals] + [(*deal, 1, 1) for deal in deals]
    result = review_matches(tree, matches, reference)
    policy = reference.average_policy()
    checked = 0
    for habit in result.habits:
        if habit.information_state not in ("0pb", "1pb", "2pb", "0b", "1b", "2b"):
            continue
        sums = np.zeros(3)
        for number in range(len(tree.histories)):
            if tree.histories.player[number] != habit.player:
                continue
            state = tree.state_at(number)
            if state.information_state_string() != habit.information_state:
                continue
            weight, before = 1.0, tree.game.new_initial_state()
            for action in state.history():
                if before.current_player() == 1 - habit.player:
                    weight *= policy.action_probabilities(before)[action]
                before.apply_action(action)
            below = np.flatnonzero(tree.histories.parent == number)
            sums += weight * np.append(values[below] * (1 - 2 * habit.player), 1)
        loss = (
            sums[:2].max() / sums[2]
            - sums[["Pass", "Bet"].index(habit.action)] / sums[2]
        )
        assert habit.loss == pytest.approx(loss, abs=1e-12)
        checked += 1
    assert checked >= 3


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[]", "line 1: not a match"),
        ("{}", "line 1: not a match"),
        ('{"actions": ["a"]}', "line 1: not a match"),
        ('{"transitions": [1]}', "line 1: not a match"),
        ("", "has no matches"),
    ],
)
def test_rejects_invalid_files(line, problem, tmp_path):
    path = tmp_path / "matches.jsonl"
    path.write_text(line)
    with pytest.raises(ValueError, match=problem):
        read_matches(path)


def test_rejects_invalid_matches():
    with pytest.raises(ValueError, match="the action 5 is not legal after"):
        review_matches("kuhn_poker", [(0, 5)])
    with pytest.raises(ValueError, match="is not over"):
        review_matches("kuhn_poker", [(0, 1, 0)])
