"""Lookahead players, which expand only a part of the game tree at each decision."""

import dataclasses
import functools
import time

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms.exploitability import nash_conv as nash_conv_of
from open_spiel.python.policy import UniformRandomPolicy

import game_defs  # noqa: F401  registers the games
import spiel_cr
from spiel_cr.common.errors import ImperfectRecallError
from spiel_cr.evaluation import evaluate, traversal
from spiel_cr.evaluation import referee as match
from spiel_cr.games.tree import tree_builder
from spiel_cr.players import bots, player_specs
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.resolving.lookahead import layer_solver, lookahead_resolver
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.cfr.solver import Solver
from tests.support import games, made_games
from tests.support.states import agree_on_scrambled_cards

SOLVER = "pdcfr+"
GOOFSPIEL = "python_ii_goofspiel(num_cards=4)"
PLAYERS = (0, 1)


def make(name, player, max_histories, *, iterations=20, seed=0, **settings):
    settings = {"warmup_matches": 0, "blueprint_iterations": 5, **settings}
    partial = LookaheadConfig(max_histories, **settings)
    config = ResolvingConfig(SOLVER, iterations=iterations)
    return bots.LookaheadResolvingBot(
        name, player, config, lookahead=partial, seed=seed
    )


@functools.cache
def tree_of(name):
    return tree_builder.build_tree(name, observations=True)


def first_states(name, player, most=10_000):
    """Return states of at most `most` infosets, from the first to the last layer."""
    tree = tree_of(name)
    history = tree.infosets[player].history
    every = -(-len(history) // most)
    return [tree.state_at(h) for h in history[::every]]


def assert_policy(policy, state):
    assert [action for action, _ in policy] == state.legal_actions()
    odds = [p for _, p in policy]
    assert all(isinstance(p, float) and 0 <= p <= 1 for p in odds)
    assert sum(odds) == pytest.approx(1, abs=1e-9)


# Exploitability: never above the blueprint's if lookahead trees reach the end of the
# game.


@functools.cache
def blueprint(name, iterations=20):
    return spiel_cr.solve(tree_of(name), "cfr+", iterations)


def nash_conv(name, max_histories, iterations=100):
    tree, found = tree_of(name), []
    for player in PLAYERS:
        bot = make(
            *(name, player, max_histories),
            iterations=iterations,
            blueprint=blueprint(name).average_policy(),
        )
        found.append(traversal.traverse(tree, bot))
    return evaluate.evaluate_strategies(tree, (found[0], found[1])).nash_conv, bot


def test_complete_lookahead_trees_improve_on_the_blueprint():
    value, bot = nash_conv("kuhn_poker", 58)
    assert value < blueprint("kuhn_poker").nash_conv() / 3
    assert bot.counts.resolved > 0 and bot.counts.blueprint == 0


def test_subgames_that_cannot_be_checked_to_the_end_are_not_solved(monkeypatch):
    """The initial tree ends before the game; the rest is enumerated or too large."""
    policy = blueprint("kuhn_poker").average_policy()
    state = first_states("kuhn_poker", 0)[0]
    for walk in (10, 0):
        monkeypatch.setattr(lookahead_resolver, "_WALK", (walk, 0))
        bot = make("kuhn_poker", 0, 30, blueprint=policy)
        start = bot.agent._start
        assert start.snapshot.tree.frontier.any()
        assert start.exact == start.accepted == (walk > 0)
        planned = dict(bot.get_policy(state))
        stays = planned == pytest.approx(policy.action_probabilities(state), abs=1e-9)
        assert stays == (walk == 0)
        assert (bot.counts.resolved, bot.counts.incumbent) == (
            (1, 0) if walk else (0, 1)
        )


def test_initial_solve_has_ten_times_the_iterations(monkeypatch):
    ran, run = [], Solver.run

    def note(self, iterations):
        ran.append(iterations)
        return run(self, iterations)

    monkeypatch.setattr(Solver, "run", note)
    bot = make("kuhn_poker", 0, 58, iterations=7)
    assert ran[-1] == 70
    bot.get_policy(first_states("kuhn_poker", 0)[-1])
    assert ran[-1] == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "share"),
    [
        (GOOFSPIEL, 1.0),
        (GOOFSPIEL, 0.5),
        ("liars_dice(numdice=1,dice_sides=3)", 0.5),
        ("python_leduc_poker", 0.5),
    ],
)
def test_improves_on_its_blueprint(name, share):
    most = int(share * len(tree_of(name).histories))
    value, bot = nash_conv(name, most)
    assert value < 0.9 * blueprint(name).nash_conv()
    assert bot.counts.resolved > bot.counts.incumbent
    assert bot.counts.most_histories <= most


@pytest.mark.slow
@pytest.mark.parametrize("transient", [0.0, 0.9])
def test_never_worse_than_its_blueprint_in_random_games(transient):
    """Lookahead trees have a quarter of the histories of the game.

    If players forget some observations this is not guaranteed, but it holds here.
    """
    played = better = 0
    for seed in range(14):
        game = made_games.random_game(
            seed, depth=7, max_actions=3, remembered=0.3, transient=transient
        )
        tree = tree_builder.build_tree(game, observations=True)
        if len(tree.histories) < 60:
            continue
        policy, found = spiel_cr.solve(tree, "cfr", 3).average_policy(), []
        partial = LookaheadConfig(len(tree.histories) // 4, policy, warmup_matches=0)
        try:
            for player in PLAYERS:
                config = ResolvingConfig("cfr+", iterations=40)
                bot = bots.LookaheadResolvingBot(
                    game, player, config, lookahead=partial, seed=0
                )
                found.append(traversal.traverse(tree, bot))
        except ValueError as error:
            assert "does not reach a decision" in str(error)
            continue
        after = evaluate.evaluate_strategies(tree, (found[0], found[1])).nash_conv
        before = nash_conv_of(game, policy)
        played, better = played + 1, better + (after < 0.7 * before)
        assert after <= before + 1e-9
    assert played >= 8 and better >= played / 2


@pytest.mark.slow
def test_never_worse_than_an_initial_solve_of_the_complete_game(monkeypatch):
    """The initial solution covers every infoset, and is nearly an equilibrium.

    Subgames are solved with fewer iterations, and worse solutions are discarded, so
    most policies may be those of the incumbent strategy.
    """
    name, most = "python_leduc_poker", len(tree_of("python_leduc_poker").histories)
    value, bot = nash_conv(name, most)
    monkeypatch.setattr(
        lookahead_resolver.LookaheadResolver, "_decide", lambda *_: None
    )
    at_start, same = nash_conv(name, most)
    assert value <= at_start + 1e-9 < 0.9 * blueprint(name).nash_conv()
    assert bot.counts.resolved >= same.counts.resolved > 0
    assert bot.counts.exact > same.counts.exact == 0
    assert bot.counts.most_histories <= most
    assert bot.counts.blueprint == same.counts.blueprint == 0


# Smaller lookahead trees.


@pytest.mark.slow
@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize(
    ("name", "max_histories"),
    [
        ("python_leduc_poker", 120),
        ("liars_dice(numdice=1,dice_sides=3)", 200),
        (GOOFSPIEL, 200),
    ],
)
def test_policies_are_valid_at_every_infoset(name, player, max_histories):
    """Infosets are queried in any order, and trees stay within `max_histories`."""
    bot = make(name, player, max_histories)
    states = first_states(name, player, most=12)
    for state in states:
        assert_policy(bot.get_policy(state), state)
    counts = bot.counts
    assert counts.most_histories <= max_histories
    assert counts.resolved + counts.incumbent + counts.blueprint == len(states)
    assert counts.resolved > 0


def mean_return(bot, name, count, seed=0):
    """Return the mean return against uniform play and its standard error."""
    game = tree_of(name).game
    other = bots.uniform_bot(game, 1 - bot.player_id())
    pair = [bot, other] if bot.player_id() == 0 else [other, bot]
    rng = np.random.default_rng(seed)
    returns = [match.play_match(game, pair, rng).returns for _ in range(count)]
    mine = [pair[bot.player_id()] for pair in returns]
    return np.mean(mine), np.std(mine) / np.sqrt(count)


@pytest.mark.slow
def test_games_that_are_too_large_are_played_by_the_blueprint():
    """Public states of phantom_ttt are too large for the lookahead tree."""
    bot = make("phantom_ttt", 0, 1000, k=2, rollouts=1)
    game = pyspiel.load_game("phantom_ttt")
    rng = np.random.default_rng(0)
    pair = [bot, bots.uniform_bot(game, 1)]
    for _ in range(3):
        match.play_match(game, pair, rng)
    assert bot.counts.blueprint > 3


@pytest.mark.slow
def test_time_limit_is_kept_without_compiling():
    """With a time limit, all functions are compiled during construction."""
    config = ResolvingConfig(SOLVER, move_ms=400)
    settings = LookaheadConfig(2000, warmup_matches=2, blueprint_iterations=5)
    bot = bots.LookaheadResolvingBot(GOOFSPIEL, 0, config, lookahead=settings)
    mean_return(bot, GOOFSPIEL, 5)
    found = bot.statistics
    assert found.moves == 20
    assert found.compilations == 0
    # Other processes may delay some of the moves.
    assert found.deadline_misses <= 5
    assert bot.counts.blueprint < found.moves


def test_timed_bots_reuse_solutions_of_earlier_matches(monkeypatch):
    """The next match plays a stored solution, although it has no time to solve."""
    config = ResolvingConfig(SOLVER, move_ms=60_000, iterations=20)
    settings = LookaheadConfig(58, warmup_matches=0, blueprint_iterations=5)
    bot = bots.LookaheadResolvingBot("kuhn_poker", 0, config, lookahead=settings)
    state = first_states("kuhn_poker", 0)[-1]
    found = bot.get_policy(state)
    solved = bot.agent.solved
    assert bot.statistics.solves == 1 and solved is not bot.agent._start
    bot.restart()
    monkeypatch.setattr(bot.agent._layers, "affordable", lambda deadline, known=0: 0)
    assert bot.get_policy(state) == found and bot.agent.solved is solved
    assert bot.statistics.solves == 1


def test_labels_do_not_grow_from_match_to_match(monkeypatch):
    monkeypatch.setattr(lookahead_resolver, "_MOST_LABELS", 0)
    bot, state = make("kuhn_poker", 0, 58), first_states("kuhn_poker", 0)[-1]
    labels = bot.agent._root.tree.simulator.labels
    counts = [len(known) for known in labels]
    bot.get_policy(state)
    assert labels[0]["met in a walk that came to nothing"] >= counts[0]
    bot.restart()
    assert [len(known) for known in labels] == counts
    assert not bot.agent._start.after


def test_solutions_above_the_limit_are_discarded_after_the_match(monkeypatch):
    monkeypatch.setattr(lookahead_resolver, "_MOST_KEPT", 1)
    bot, state = make("kuhn_poker", 0, 58), first_states("kuhn_poker", 0)[-1]
    found = bot.get_policy(state)
    assert not bot.agent._start.after and not bot.agent._root.after
    bot.restart()
    assert bot.agent._kept_histories == 0
    assert bot.get_policy(state) == found and bot.statistics.solves == 2


def test_warming_up_has_more_time_than_a_move(monkeypatch):
    """The player measures the cost of subgames that do not fit in a move's time."""
    asked = []

    def affordable(self, deadline, known=0):
        asked.append(deadline - time.perf_counter())
        return 0

    monkeypatch.setattr(layer_solver.LayerSolver, "affordable", affordable)
    config = ResolvingConfig(SOLVER, move_ms=250, init_ms=1)
    settings = LookaheadConfig(58, warmup_matches=2)
    policy = blueprint("kuhn_poker").average_policy()
    settings = dataclasses.replace(settings, blueprint=policy)
    bot = bots.LookaheadResolvingBot("kuhn_poker", 0, config, lookahead=settings)
    assert asked and all(0.25 < seconds < 1 for seconds in asked)
    asked.clear()
    bot.get_policy(first_states("kuhn_poker", 0)[-1])
    assert asked and all(seconds < 0.25 for seconds in asked)


# Hidden information and reproducibility.


@pytest.mark.slow
def test_bots_do_not_use_hidden_information():
    """Two histories of an infoset with other hidden cards give the same policy.

    Bots with the same seed are queried at one history each.
    """
    name, max_histories = "python_leduc_poker", 150
    tree = tree_of(name)
    for player in PLAYERS:
        one = functools.partial(make, name, player, max_histories)
        agree_on_scrambled_cards(tree, one, player, 6, 3)


def test_the_same_seed_gives_the_same_policies():
    states = first_states("kuhn_poker", 1)
    one, other = (
        [bot.get_policy(state) for state in states]
        for bot in (make("kuhn_poker", 1, 40, seed=3) for _ in range(2))
    )
    assert one == other


def test_restart_resets_the_match_and_keeps_solutions():
    """Without a time limit, a subgame that was solved once is not solved again."""
    bot = make("kuhn_poker", 0, 58)
    state = first_states("kuhn_poker", 0)[-1]
    found = []
    for forget in (None, None, bot.restart, lambda: bot.restart_at(state)):
        if forget is not None:
            forget()
        if forget == bot.restart:
            assert bot.agent.solved is bot.agent._start and not bot.agent._stages
        found.append((bot.statistics.solves, bot.get_policy(state)))
    assert [solves for solves, _ in found] == [0, 1, 1, 1]
    assert all(policy == found[0][1] for _, policy in found)


def test_labels_are_kept_as_long_as_the_solutions_that_use_them():
    bot = make("kuhn_poker", 0, 58)
    agent, labels = bot.agent, bot.agent._root.tree.simulator.labels
    bot.get_policy(first_states("kuhn_poker", 0)[-1])
    assert len(agent._start.after) == 1
    counts = [len(known) for known in labels]
    assert labels[0]["met later"] == counts[0]
    bot.restart()
    assert len(agent._start.after) == 1 and len(labels[0]) == counts[0] + 1
    agent._kept_histories = lookahead_resolver._MOST_KEPT + 1
    bot.restart()
    assert not agent._start.after and not agent._root.after
    assert [len(known) for known in labels] == counts


def test_each_public_state_is_searched_for_once(monkeypatch):
    """Queries at all infosets of a public state enumerate its histories only once."""
    tree, bot = tree_of("kuhn_poker"), make("kuhn_poker", 0, 58)
    walk, walked = LookaheadTree.next_public_state, []

    def counted(self, ids, key, **limits):
        found = walk(self, ids, key, **limits)
        walked.append(key)
        assert key in found[2]
        return found

    monkeypatch.setattr(LookaheadTree, "next_public_state", counted)
    for _ in range(2):
        for history in tree.infosets[0].history:
            bot.get_policy(tree.state_at(history))
    # The player's first decision, and the one after a pass and a bet.
    assert len(walked) == 2
    assert bot.statistics.solves == 1


def test_counts_distinguish_the_sources_of_policies(monkeypatch):
    """Policies come from a solve, the incumbent strategy or the blueprint."""
    policy = blueprint("kuhn_poker").average_policy()
    state = first_states("kuhn_poker", 0)[-1]
    bot = make("kuhn_poker", 0, 58, blueprint=policy)
    start = bot.agent._start
    start.behaviour = uniform_behaviour(start.decomposition.decisions)
    assert_policy(bot.get_policy(state), state)
    assert dataclasses.astuple(bot.counts)[:3] == (1, 0, 0)
    # If a subgame is not solved, the previous lookahead tree gives the policy.
    bot = make("kuhn_poker", 0, 58, blueprint=policy)
    monkeypatch.setattr(bot.agent, "_solve", lambda *_: None)
    planned = dict(bot.get_policy(state))
    assert dataclasses.astuple(bot.counts)[:3] == (0, 1, 0)
    assert planned != pytest.approx(policy.action_probabilities(state), abs=1e-6)
    # If that tree ends before the decision, the blueprint gives the policy.
    bot = make("kuhn_poker", 0, 30, blueprint=policy)
    monkeypatch.setattr(bot.agent, "_solve", lambda *_: None)
    assert dict(bot.get_policy(state)) == policy.action_probabilities(state)
    assert dataclasses.astuple(bot.counts)[:3] == (0, 0, 1)
    # A bot that joins a match without time to solve uses the incumbent strategy.
    bot = make("kuhn_poker", 0, 58, blueprint=policy)
    monkeypatch.setattr(bot.agent._layers, "affordable", lambda deadline, known=0: 0)
    assert dict(bot.get_policy(state)) == planned
    assert bot.counts.incumbent == 1


# Strings and errors.


def test_bots_from_strings():
    partial = "max_histories=58,warmup_matches=0,blueprint_iterations=2"
    text = f"resolving(solver={SOLVER},iterations=5,{partial})"
    bot = player_specs.load_bot("kuhn_poker", text, 0)
    assert isinstance(bot, bots.LookaheadResolvingBot)
    assert bot.agent.settings.max_histories == 58
    tree = games.compiled("kuhn")
    state = tree.state_at(tree.infosets[0].history[0])
    assert_policy(bot.get_policy(state), state)


@pytest.mark.slow
def test_policies_do_not_depend_on_earlier_queries():
    """Random draws of leaf values depend only on the seed and the subgame's roots."""
    tree = tree_of("python_leduc_poker")
    asked = tree.infosets[1].history[[7, 33, 52]]

    def answers(order, seed=0):
        settings = {"iterations": 10, "seed": seed, "rollouts": 1}
        bot = make("python_leduc_poker", 1, 120, **settings)
        found = {h: bot.get_policy(tree.state_at(h)) for h in asked[::order]}
        return [found[h] for h in asked]

    assert answers(1) == answers(-1) != answers(1, seed=1)


# Games whose batched rules do not provide information state strings.

POKER = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
    "numSuits=2,numRanks=2,numHoleCards=1,numBoardCards=0 1,raiseSize=2 4,"
    "maxRaises=1 1)"
)
# So small that each decision is below the previous lookahead tree.
_SMALL = 60


def _query_states(game, **settings):
    bot = make(game, 0, _SMALL, iterations=2, **settings)
    for state in first_states(game, 0, 12):
        bot.restart()
        assert_policy(bot.get_policy(state), state)
    return bot


def test_states_provide_strings_that_batched_rules_lack(monkeypatch):
    monkeypatch.setattr(
        lookahead_resolver, "_WALK", (1000, 1000)
    )  # everything is checked
    bot = _query_states(POKER)
    assert not bot.agent._root.tree.simulator.source.has_strings
    assert bot.counts.resolved


@pytest.mark.parametrize("kind", ["tabular", "any"])
def test_blueprints_without_batched_queries_are_queried_at_states(kind):
    policy = blueprint(POKER, 2).average_policy()
    if kind == "any":
        policy = UniformRandomPolicy(tree_of(POKER).game)
    bot = _query_states(POKER, blueprint=policy)
    assert bot.agent.blueprint.rules is None


def test_imperfect_recall_error_names_applicable_remedies():
    """In dark hex on three rows, players forget when opponents' moves were rejected."""
    with pytest.raises(ImperfectRecallError) as refused:
        make("dark_hex(board_size=3)", 0, 3000)
    assert "choose other parameters of the game" in str(refused.value)
    assert "averaging" not in str(refused.value)
