"""Tests of match reviews, compared with a recursion over OpenSpiel's states."""

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.eval.table import bot_beliefs, families, review
from spiel_cr.evaluation.aivat import TreeValues
from spiel_cr.evaluation.referee import play_match
from spiel_cr.players.bots import PolicyBot, ResolvingBot
from spiel_cr.policies.conversions import history_values
from spiel_cr.resolving.resolving_config import ResolvingConfig
from tests.support import games
from tests.support.scripted import Scripted
from tests.support.states import after

KUHN = "kuhn_poker"


def best_value(group, player, probabilities):
    """Return the best-response value of a player from weighted histories.

    Args:
      group: Pairs (weight, state); states of one infoset of the player are not
        distinguished.
      player: Player who maximises.
      probabilities: Function from a state to the opponent's action probabilities.
    """
    total, infosets = 0.0, {}
    stack = list(group)
    while stack:
        weight, state = stack.pop()
        if state.is_terminal():
            total += weight * state.player_return(player)
        elif state.is_chance_node():
            stack += [(weight * p, state.child(a)) for a, p in state.chance_outcomes()]
        elif state.current_player() == player:
            key = state.information_state_string(player)
            infosets.setdefault(key, []).append((weight, state))
        else:
            odds = probabilities(state)
            stack += [(weight * p, state.child(a)) for a, p in odds.items()]
    for members in infosets.values():
        total += max(
            best_value([(w, s.child(a)) for w, s in members], player, probabilities)
            for a in members[0][1].legal_actions()
        )
    return total


def weighted_histories(state, player, probabilities):
    """Return (weight, state) of an infoset's histories, without the player's reach."""
    key, found = state.information_state_string(player), []
    stack = [(1.0, state.get_game().new_initial_state())]
    while stack:
        weight, at = stack.pop()
        if at.is_terminal():
            continue
        acts = at.current_player()
        if acts == player and at.information_state_string(player) == key:
            found.append((weight, at))
        elif at.is_chance_node():
            stack += [(weight * p, at.child(a)) for a, p in at.chance_outcomes()]
        elif acts == player:
            stack += [(weight, at.child(a)) for a in at.legal_actions()]
        else:
            odds = probabilities(at)
            stack += [(weight * p, at.child(a)) for a, p in odds.items()]
    return found


def solve_five(tree):
    return spiel_cr.solve(tree, "cfr+", 5).average


@pytest.mark.parametrize("person", [0, 1])
def test_ranges_and_values_equal_recursion(monkeypatch, person):
    monkeypatch.setattr(review, "_ITERATIONS", 5)
    tree = games.compiled("kuhn")
    solved = spiel_cr.solve(tree, "cfr+", 3)
    policy = solved.average_policy()
    bot = PolicyBot(1 - person, policy, seed=0)
    players = [bot, bot]
    reviewer = review.Reviewer(tree)
    decisions = 0
    for seed in range(3):
        actions = iter((0, 1))
        players[person] = Scripted(lambda state, left=actions: next(left))
        match = play_match(tree, players, np.random.default_rng(seed))
        found = reviewer.review(match, person, bot)
        values = TreeValues(tree, history_values(tree, solve_five(tree)))
        worth = -values.estimate(match) if person else values.estimate(match)
        assert found["aivat"] == pytest.approx(worth, abs=1e-9)
        note = found["notes"][-1]
        assert f"result: {match.returns[person]:+g}." in note
        assert f"are known: {worth:+.3f} (AIVAT" in note
        assert "AIVAT subtracts from the result" in note
        # The notes name the columns of the page.
        columns = [n for n in found["notes"] if n.startswith("Column “at equilibrium”")]
        assert len(columns) == 1
        states = bot_beliefs.decisions_of(tree.game, match, person)
        assert len(found["decisions"]) == len(states) > 0
        for state, shown in zip(states, found["decisions"], strict=True):
            members = weighted_histories(state, person, policy.action_probabilities)
            total = sum(weight for weight, _ in members)
            held = {}
            for weight, at in members:
                name = families.draw(at, 1 - person).holds
                held[name] = held.get(name, 0.0) + weight / total
            lines = {
                line["holds"]: line["probability"] for line in shown["range"]["lines"]
            }
            assert lines == pytest.approx(
                {n: p for n, p in held.items() if p}, abs=1e-6
            )
            (true,) = [line for line in shown["range"]["lines"] if line["true"]]
            assert true["holds"] == families.draw(state, 1 - person).holds
            for action, move in zip(state.legal_actions(), shown["moves"], strict=True):
                after = [(weight, at.child(action)) for weight, at in members]
                value = best_value(after, person, policy.action_probabilities) / total
                assert move["bot"] == pytest.approx(value, abs=1e-6)
                assert move["chosen"] == (action == match.actions[len(state.history())])
                decisions += 1
    assert decisions >= 6


def test_review_of_a_too_large_game_omits_ranges_and_exact_values():
    bots = [spiel_cr.load_bot("phantom_ttt", "uniform", seat) for seat in range(2)]
    match = play_match("phantom_ttt", bots, np.random.default_rng(1))
    found = review.Reviewer(pyspiel.load_game("phantom_ttt")).review(match, 0, bots[1])
    assert "no ranges and no exact values: the game has more" in found["notes"][0]
    assert all(decision["range"] is None for decision in found["decisions"])
    chosen = [
        [move["name"] for move in decision["moves"] if move["chosen"]]
        for decision in found["decisions"]
    ]
    assert chosen and all(len(names) == 1 for names in chosen)


def test_review_mentions_imperfect_recall():
    """Information states of dark hex omit rejected moves."""
    string = "dark_hex(num_rows=2,num_cols=3)"
    bots = [spiel_cr.load_bot(string, "uniform", seat) for seat in range(2)]
    match = play_match(string, bots, np.random.default_rng(0))
    found = review.Reviewer(pyspiel.load_game(string)).review(match, 1, bots[0])
    assert found["notes"][0].endswith("the game has imperfect recall.")


def test_story_names_chance_and_both_players():
    tree = games.compiled("kuhn")
    bots = [Scripted(lambda state, a=action: a) for action in (1, 0)]
    match = play_match(tree, bots, np.random.default_rng(0))
    lines = review.story(after(tree.game, *match.actions), ("you", "bot"))
    assert [player for player, _ in lines] == ["chance", "chance", "you", "bot"]
    assert [action for _, action in lines[2:]] == ["Bet", "Fold"]


def test_review_shows_the_beliefs_of_the_bot_at_its_last_move():
    """The person checks with the king, and calls the bot's bet if there is one."""
    tree = games.compiled("kuhn")
    config = ResolvingConfig("dcfr", 8)
    bot, other = (ResolvingBot(tree, 1, config, seed=seed) for seed in (0, 1))
    shown = []
    for seed in range(30):
        match = play_match(
            tree, [Scripted(lambda s: 0 if len(s.history()) == 2 else 1), bot],
            np.random.default_rng(seed),
        )  # fmt: skip
        found = review.Reviewer(tree).review(match, 0, bot)["decisions"]
        assert found[0]["beliefs"] is None
        shown += [(match.actions, found[1]["beliefs"])] if found[1:] else []
        if shown:
            break
    actions, beliefs = shown[0]
    state = after(tree.game, *actions[:3])
    expected = other.beliefs(state).opponent_range
    lines = {line["holds"]: line["probability"] for line in beliefs["lines"]}
    assert lines == {
        "JQK"[int(key[0])]: pytest.approx(share, abs=1e-6)
        for key, share in expected.items()
    }
    (held,) = (line["holds"] for line in beliefs["lines"] if line["true"])
    assert held == "JQK"[actions[0]]
    assert beliefs["notes"][0].startswith("its own range: ")
    assert beliefs["notes"][-1].startswith("NashConv of its last subgame: ")
