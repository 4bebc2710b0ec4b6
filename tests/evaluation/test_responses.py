"""Approximate best responses: values of both players, matches, and the command."""

import dataclasses
import itertools
import math
from typing import NamedTuple

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.eval.common import exact_evaluator
from spiel_cr.evaluation import openspiel_evaluator, result
from spiel_cr.evaluation.best_response import respond
from spiel_cr.evaluation.opponent import Opponent, open_opponent
from spiel_cr.evaluation.response_config import ResponseConfig, SearchConfig
from spiel_cr.evaluation.response_matches import rollout_of
from spiel_cr.evaluation.responses.ismcts_bot import ISMCTSBRBot, Predictor
from spiel_cr.evaluation.responses.local_best_response import LBRBot
from spiel_cr.evaluation.result import ResponseValue
from spiel_cr.games.tree import tree as tree_lib
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players.player_strings import read_string
from spiel_cr.policies import conversions as policy
from spiel_cr.policies.best_responses import best_response_value, reach_of
from spiel_cr.policies.bot_policies import BotPolicy
from spiel_cr.policies.queries import query
from tests.support import games
from tests.support.commands import outputs, report
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node
from tests.support.named_opponents import load_opponent
from tests.support.scripted import Scripted, drawing


def _both(target, config):
    """Return the responses of both players and the report of their sum."""
    seats = [respond(target, player, config) for player in (0, 1)]
    return seats, result.from_same_deals(seats).report()


def _without_tree(target):
    """Return the opponent without a tree, as if the tree did not fit in memory."""
    return Opponent(target.name, target.game, target.policy)


@pytest.mark.parametrize("policy", ["uniform", "cfr+(iterations=3)"])
def test_exact_responses_have_share_one(policy):
    tree = games.compiled("kuhn")
    target = open_opponent(policy, tree)
    _, report = _both(target, ResponseConfig("exact"))
    assert report["share"] == pytest.approx(1)
    # OpenSpiel's NashConv of uniform play.
    if policy == "uniform":
        assert report["value"] == pytest.approx(0.916667, abs=1e-6)
    assert report["half_width"] == 0 and report["is_exact"]


def test_share_is_the_gain_relative_to_the_best_gain():
    target = open_opponent("cfr+(iterations=3)", games.compiled("kuhn"))
    seats, report = _both(target, ResponseConfig("lbr", leaf="call"))
    # The gains of both players add up to NashConv.
    expected = exploitability.nash_conv(target.game, target.policy)
    assert report["exact_value"] == pytest.approx(expected, abs=1e-9)
    assert sum(seat.on_policy for seat in seats) == pytest.approx(0, abs=1e-9)
    assert report["share"] == pytest.approx(report["value"] / report["exact_value"])
    assert 0 < report["share"] < 1
    one = result.from_same_deals(seats[:1]).report()
    gain = seats[0].value - seats[0].on_policy
    assert one["share"] == pytest.approx(
        gain / (seats[0].exact_value - seats[0].on_policy)
    )


def _by_enumeration(game, player, opponent, bot):
    """Return a bot's exact value, over all moves of the opponent and of chance.

    The bot plays each match from the start.
    """

    def decision(actions):
        state = game.new_initial_state()
        bot.restart()
        chosen = None
        for action in (*actions, None):
            if state.current_player() == player:
                chosen = bot.step(state)
            if action is not None:
                state.apply_action(action)
        return chosen

    def value(state):
        if state.is_terminal():
            return state.player_return(player)
        if state.current_player() == player:
            return value(state.child(decision(state.history())))
        if state.is_chance_node():
            odds = dict(state.chance_outcomes())
        else:
            odds = opponent.action_probabilities(state)
        return sum(p * value(state.child(a)) for a, p in odds.items() if p > 0)

    return value(game.new_initial_state())


@pytest.mark.parametrize("player", [0, 1])
def test_searches_of_complete_beliefs_are_evaluated_exactly(player):
    """Search trees are kept between decisions, and repeated matches do not change."""
    tree = games.compiled("kuhn")
    target = open_opponent("cfr+(iterations=3)", tree)
    opponent = target.policy
    search = SearchConfig(2)
    config = ResponseConfig("ismcts", search, matches=6, seed=3)
    seat = respond(target, player, config, states=True)
    rollout = rollout_of(opponent, search)
    bot = ISMCTSBRBot(
        tree.game,
        player,
        opponent,
        search,
        seed=3,
        predictor=Predictor(rollout=rollout),
    )
    expected = _by_enumeration(tree.game, player, opponent, bot)
    assert seat.is_exact and seat.value == pytest.approx(expected, abs=1e-12)
    assert seat.value <= seat.exact_value + 1e-12


@pytest.mark.parametrize("method", ["ismcts", "lbr"])
@pytest.mark.parametrize("player", [0, 1])
def test_responses_on_states_are_evaluated_exactly(method, player):
    """The searches are too short to be optimal, and the value includes their errors."""
    tree = games.compiled("kuhn")
    target = open_opponent("cfr+(iterations=3)", tree)
    opponent = target.policy
    search, rollouts, seed = SearchConfig(2, histories="drawn"), 1, 11
    config = ResponseConfig(method, search, rollouts=rollouts, matches=6, seed=seed)
    seat = respond(target, player, config, states=True)
    if method == "ismcts":
        bot = ISMCTSBRBot(tree.game, player, opponent, search, seed=seed)
    else:
        bot = LBRBot(tree.game, player, opponent, rollouts=rollouts, seed=seed)
    expected = _by_enumeration(tree.game, player, opponent, bot)
    assert seat.is_exact and seat.value == pytest.approx(expected, abs=1e-12)
    assert seat.value < seat.exact_value - 1e-3
    report = result.from_same_deals([seat]).report()
    assert report["half_width"] == report["share_half_width"] == 0
    # With fewer matches than information states, the value is the mean of matches.
    config = dataclasses.replace(config, matches=2)
    seat = respond(target, player, config, states=True)
    assert not seat.is_exact and seat.value == seat.returns.mean()


def _seat(returns, *, is_exact=False, value=0.0):
    """Return a response value for which a best response wins 2 and the policy 0."""
    returns = np.array(returns, float)
    known = {"exact_value": 2.0, "on_policy": 0.0}
    if is_exact:
        return ResponseValue(0, "lbr", value, **known)
    mean, half_width = result.mean_of_matches(returns, 0.0)
    matches = len(returns)
    return ResponseValue(0, "lbr", mean, half_width, matches, returns=returns, **known)


def test_share_is_omitted_if_its_interval_is_too_wide():
    noisy = _seat([3.0, -1.0, 2.0, -2.0])
    assert noisy.half_width > noisy.value
    # The interval is from value - half_width to value + half_width.
    wide = _seat([1.0, 0.5, 1.5, 0.8, 0.2])
    assert wide.half_width < wide.value < 2 * wide.half_width
    for seat in (noisy, wide):
        report = result.from_same_deals([seat]).report()
        assert report["share"] is None and report["share_half_width"] is None
    sure = _seat([2.1, 1.9, 2.0, 2.12])
    report = result.from_same_deals([sure]).report()
    assert report["share"] == pytest.approx(1.015)
    assert report["share_half_width"] == pytest.approx(sure.half_width / 2)
    exact = _seat([3.0, -1.0, 2.0, -2.0], is_exact=True, value=1.0)
    assert result.from_same_deals([exact]).report()["share"] == 0.5
    # The interval of both players comes from the one whose value is estimated.
    both = result.from_same_deals([sure, exact]).report()
    assert both["half_width"] == sure.half_width and both["share"] is not None
    assert not both["is_exact"]


def test_interval_of_equal_returns_sums_over_estimated_players():
    """A player with an exact value adds nothing; without bounds the half width is 0."""
    equal = [_seat([1.0] * 10)._replace(largest=largest) for largest in (2.0, 7.0)]
    exact = equal[1]._replace(matches=0, returns=None, half_width=0.0)
    alone = result.from_same_deals(equal[:1]).report()["half_width"]
    assert alone == pytest.approx(3 * (1 - 0.05**0.1))
    assert result.from_same_deals([equal[0], exact]).report()["half_width"] == alone
    both = result.from_same_deals(equal).report()
    assert both["half_width"] == pytest.approx(11 * (1 - 0.05**0.1))
    unknown = equal[1]._replace(largest=0.0)
    assert result.from_same_deals([equal[0], unknown]).report()["half_width"] == 0


# One of three chance outcomes has probability zero; it leads to player 1's "two".
_ZERO = """EFG 2 R "zero" { "a" "b" }
c "" 1 "" { "x" 0 "y" 1/2 "z" 1/2 } 0
p "" 1 1 "one" { "l" "r" } 0
t "" 1 "" { 10 -10 }
t "" 2 "" { -10 10 }
p "" 1 2 "two" { "l" "r" } 0
p "" 2 1 "other" { "L" "R" } 0
t "" 3 "" { 1 -1 }
t "" 4 "" { -1 1 }
p "" 2 1 "other" { "L" "R" } 0
t "" 5 "" { -1 1 }
t "" 6 "" { 2 -2 }
p "" 2 2 "last" { "L" "R" } 0
t "" 7 "" { 3 -3 }
t "" 8 "" { 0 0 }
"""
_RESTRICTED = "restricted_nash_response(game=kuhn_poker(),p={},fixed_player={})"


# The same game with a tiny probability instead of zero.
_NEARLY = _ZERO.replace(
    '"x" 0 "y" 1/2 "z" 1/2',
    '"x" 1/1000000000 "y" 499999999/1000000000 "z" 1/2',
)


def _loaded(text):
    load = pyspiel.load_efg_game if text.startswith("EFG") else pyspiel.load_game
    return load(text)


@pytest.mark.parametrize(
    ("without", "nearly"),
    [
        pytest.param(_ZERO, _NEARLY, id="efg"),
        *(
            pytest.param(
                _RESTRICTED.format(p, fixed),
                _RESTRICTED.format(near, fixed),
                id=f"p={p}, fixed {fixed}",
                marks=pytest.mark.slow,
            )
            for p, near in (("0.0", "0.000000001"), ("1.0", "0.999999999"))
            for fixed in (0, 1)
        ),
    ],
)
def test_chance_outcomes_of_probability_zero_do_not_change_responses(without, nearly):
    """Values equal OpenSpiel's, and those of a game with a tiny probability instead."""
    game = _loaded(without)
    uniform = pyspiel.UniformRandomPolicy(game)
    start = game.new_initial_state().history_str()
    best = [
        pyspiel.TabularBestResponse(game, player, uniform).value(start)
        for player in (0, 1)
    ]
    trees = [spiel_cr.build_tree(_loaded(text)) for text in (without, nearly)]
    found = {}
    for method, tree in itertools.product(("exact", "lbr", "ismcts"), trees):
        if method == "ismcts" and tree is trees[1]:
            # The value of the first game is compared with the best response itself.
            continue
        search = SearchConfig(64, batch=8)
        config = ResponseConfig(method, search, leaf="uniform", seed=1)
        seats, _ = _both(open_opponent("uniform", tree), config)
        for seat in seats:
            assert seat.value <= seat.exact_value + 1e-9
        found[method, tree is trees[0]] = [seat.value for seat in seats]
    assert found["exact", True] == pytest.approx(best, abs=1e-12)
    for method in ("exact", "lbr"):
        assert found[method, True] == pytest.approx(found[method, False], abs=1e-7)
    assert found["ismcts", True] == pytest.approx(best, abs=1e-7)
    # On states, which have such outcomes; the response is queried at every infoset.
    tree = trees[0]
    target = open_opponent("uniform", tree)
    behaviour = target.behaviour
    config = ResponseConfig(search=SearchConfig(600), matches=12, seed=1)
    for player in (0, 1):
        seat = respond(target, player, config, states=True)
        assert seat.is_exact and seat.value == pytest.approx(best[player], abs=1e-9)
    # Both of OpenSpiel's evaluators query infosets of probability zero.
    table = policy.tabular_policy(tree, behaviour)
    evaluation = openspiel_evaluator.evaluate(tree.game, table)
    assert evaluation.nash_conv == pytest.approx(sum(best), abs=1e-9)
    cpp = exact_evaluator.ExactEvaluator(_Instance(tree, tree.game, tree.game)).final(
        behaviour
    )
    assert cpp.nash_conv == pytest.approx(sum(best), abs=1e-9)
    assert cpp.evaluator == exact_evaluator.OPENSPIEL


def test_histories_below_impossible_outcomes_are_kept_up_to_a_limit(monkeypatch):
    tree = spiel_cr.build_tree(_loaded(_ZERO))
    assert tree.impossible is tree.impossible and tree.impossible.histories == 3
    possible = spiel_cr.build_tree(_loaded(_NEARLY))
    taken = openspiel_evaluator.openspiel_bytes(dataclasses.replace(tree))
    assert taken == openspiel_evaluator.openspiel_bytes(possible)
    monkeypatch.setattr(tree_lib, "_MOST_IMPOSSIBLE", 2)
    tree = dataclasses.replace(tree)
    result = spiel_cr.solve(tree, "lp")
    assert openspiel_evaluator.evaluate_result(result).evaluator == "spiel_cr"
    refused = "more than 2 histories are below outcomes of probability zero"
    with pytest.raises(GameTooLargeError, match=refused):
        result.average_policy()
    evaluator = exact_evaluator.ExactEvaluator(_Instance(tree, tree.game, tree.game))
    assert evaluator.curve_by == exact_evaluator.SPIEL_CR
    assert refused in evaluator.final(result.average).statistics["reason"]


class _Instance(NamedTuple):
    """The fields of a game instance that an evaluator reads."""

    tree: GameTree
    game: pyspiel.Game
    fast: pyspiel.Game
    memory_limit: str = "none"


def _rare_pots(odds, pot):
    """Return a game with a rare large pot, which a player loses by action 0."""

    def rules(path):
        if not path:
            return Node(CHANCE, (0, 1), ("", ""), chance=(1 - odds, odds))
        if len(path) < 3:
            info = f"{path[0]} {len(path)}"
            return Node(len(path) - 1, (0, 1), (info, info))
        stake = pot if path[0] else 1.0
        return Node(TERMINAL, utility=stake * ((path[2] == 0) - (path[1] == 0)))

    return MadeGame(rules, "rare_pots", largest=pot)


def _covers(report, truth):
    return abs(report["value"] - truth) <= report["half_width"]


def test_intervals_of_both_players_cover_the_value_of_rare_large_pots():
    """Coverage is measured over 1000 seeds, with 20 large pots per seed on average.

    Both players have the same deals. Three standard errors of a coverage of 95% are 2%;
    with 20 rare events on average, an interval by Student's t misses another 2%. If the
    variances of both players are added, the intervals cover 83%.
    """
    odds, pot, matches, seeds = 0.02, 100.0, 1000, 1000
    worth = (odds * pot + 1 - odds) / 2
    rng = np.random.default_rng(0)
    single = both = apart = 0
    for _ in range(seeds):
        stake = np.where(rng.random(matches) < odds, pot, 1.0)
        seats = [_seat(stake * (rng.random(matches) < 0.5)) for _ in range(2)]
        single += abs(seats[0].value - worth) <= seats[0].half_width
        found = result.from_same_deals(seats).report()
        both += _covers(found, 2 * worth)
        width = math.hypot(*(seat.half_width for seat in seats))
        apart += abs(found["value"] - 2 * worth) <= width
    assert single / seeds > 0.91 and both / seeds > 0.91
    assert apart / seeds < 0.89


def _rare_pot_matches(tree, seed, matches):
    """Play matches of both players' local best responses on states."""
    config = ResponseConfig(
        *("lbr", SearchConfig(), "uniform"),
        rollouts=20,
        matches=matches,
        luck_rollouts=0,
        seed=seed,
    )
    seats, report = _both(_without_tree(open_opponent("uniform", tree)), config)
    return report, seats


def test_both_players_are_evaluated_on_the_same_deals():
    tree = spiel_cr.build_tree(_rare_pots(0.1, 100.0))
    report, seats = _rare_pot_matches(tree, 0, 200)
    first, second = (seat.returns for seat in seats)
    # When one player wins a large pot, the other also does in half of the matches.
    assert 0.2 < np.mean(second[first == 100.0] == 100.0) < 0.8
    apart = math.hypot(*(seat.half_width for seat in seats))
    assert report["half_width"] > 1.1 * apart


def test_rejects_invalid_arguments():
    with pytest.raises(ValueError, match="method='best'"):
        ResponseConfig("best")
    with pytest.raises(ValueError, match="matches=1"):
        ResponseConfig(matches=1)
    target = open_opponent("uniform", "kuhn_poker")
    with pytest.raises(ValueError, match="method='exact' needs the game tree"):
        respond(_without_tree(target), 0, ResponseConfig("exact"))


def test_command_reports_all_keys(capsys):
    """The command chooses an exact best response and reports that it is exact."""
    words = ("--policy", "uniform", "--simulations", "2000", "--matches", "100")
    found, out, _ = outputs(capsys, "best-response", "--game", "kuhn_poker", *words)
    for key in "value exact_value share half_width simulations seconds".split():
        assert isinstance(found[key], float | int), key
    assert found["value"] == pytest.approx(11 / 12) and found["is_exact"]
    assert found["exact_value"] == pytest.approx(0.916667, abs=1e-6)
    assert found["share"] == pytest.approx(1, abs=0.01)
    assert found["form"] == "tree" and found["method"] == "exact"
    # An exact value needs no matches.
    assert found["matches"] == 0 and found["half_width"] == 0
    *text, _ = out.strip().splitlines()
    assert "  exact, by a best response on the game tree" in text
    assert not any("±" in line or "matches" in line for line in text)
    # The text lists each player's value and omits methods that were not used.
    for seat, won in enumerate((0.5, 5 / 12)):
        wins = f"player {seat}: a best response wins {won:+.6f} per match (exact)"
        assert f"  {wins}" in text
    assert "  NashConv  0.916667, exact (exploitability 0.458333)" in text
    assert not any("simulation" in line for line in text)


def test_command_searches_if_the_tree_does_not_fit(capsys):
    """Beliefs above the limit are particles, whose numbers are reported."""
    found = report(
        capsys, "best-response", "--game", "phantom_ttt", "--player", "0",
        "--policy", "uniform", "--memory-limit", "1KB", "--simulations", "2",
        "--matches", "2", "--max-histories", "30", "--particles", "10",
    )  # fmt: skip
    assert found["method"] == "ismcts" and found["form"] == "states"
    assert not found["is_exact"] and found["share"] is None
    (seat,) = found["players"]
    assert seat["plain_half_width"] is not None
    beliefs = seat["beliefs"]
    assert 0 < beliefs["approximate"] <= beliefs["decisions"]
    assert 1 <= beliefs["least_effective_size"] <= beliefs["mean_effective_size"] <= 10


def test_command_searches_on_states(capsys):
    found = report(
        capsys, "best-response", "--game", "kuhn_poker", "--states",
        "--policy", "always_fold", "--simulations", "50", "--matches", "20",
        "--player", "1",
    )  # fmt: skip
    # A player that always folds or passes loses its ante to a bet.
    assert found["value"] == pytest.approx(1)
    # The tree fits in memory, so the exact value is known.
    assert found["exact_value"] == pytest.approx(1)
    assert found["share"] == pytest.approx(1) and found["form"] != "tree"


def test_command_omits_the_exact_value_of_an_estimated_bot(capsys):
    found = report(
        capsys, "best-response", "--game", "kuhn_poker", "--method",
        "exact", "--policy", "resolving(move_ms=1)", "--matches", "10", "--player", "0",
    )  # fmt: skip
    assert found["matches"] == 10 and found["half_width"] > 0
    assert found["exact_value"] is None and found["share"] is None


@pytest.mark.slow
def test_lower_bounds_rarely_exceed_the_exact_value():
    """At most three of 20 lower bounds are too high.

    If the search always finds a best response, the bound of a 95% interval is too high
    with probability 1/40, and more than three of 20 are with probability 1/600.
    """
    target = _without_tree(open_opponent("uniform", games.compiled("kuhn")))
    search = SearchConfig(simulations=40)
    misses = 0
    for seed in range(20):
        config = ResponseConfig(search=search, matches=80, seed=seed)
        _, report = _both(target, config)
        misses += report["value"] - report["half_width"] > 11 / 12
    assert misses <= 3


@pytest.mark.slow
def test_noise_of_estimated_policies_does_not_look_exploitable():
    """An equilibrium is not exploitable, although an estimate from few moves seems so.

    There are 20 seeds as above; the responder expects a gain in every one.
    """
    tree = games.compiled("kuhn")
    equilibrium = load_opponent("lp", tree)
    misses, expected = 0, []
    for seed in range(20):
        estimate = BotPolicy(
            tree.game,
            lambda player, own: Scripted(drawing(equilibrium, own)),
            queries=20,
            seed=seed,
        )
        behaviour = query(tree, estimate)
        reach = reach_of(tree.sequence_form, behaviour)
        best = [
            best_response_value(tree.sequence_form, p, reach[1 - p]) for p in (0, 1)
        ]
        expected.append(sum(best))
        target = Opponent(
            *("silent", tree.game, estimate, tree, tree.sequence_form),
            bots=tuple(Scripted(drawing(equilibrium, 1000 + seed)) for _ in (0, 1)),
        )
        _, report = _both(target, ResponseConfig("exact", matches=150, seed=seed))
        assert report["exact_value"] is None
        misses += report["value"] - report["half_width"] > 0
    assert min(expected) > 0.01
    assert misses <= 3


def test_bots_behind_returns_none_for_exact_policies():
    tree = games.compiled("kuhn")
    oos = "oos(solver=os-mccfr(batch=64),iterations=2)"
    for text, exact in (
        ("uniform", True),
        ("solved(iterations=3)", True),
        ("always_fold", True),
        ("resolving(iterations=2)", True),
        (oos, False),
    ):
        assert (read_string(text).bots_behind(tree, 0) is None) == exact


def test_opponents_respect_the_memory_limit():
    for text in ("cfr+(iterations=3)", "solved(iterations=3)"):
        with pytest.raises(ValueError, match="memory_limit"):
            open_opponent(text, "kuhn_poker", memory_limit="1KB")
