"""Bots in matches: OpenSpiel's contract, hidden information, and learning."""

import functools
import time
import types

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import evaluate_bots
from open_spiel.python.bots import policy as openspiel_bots

from spiel_cr.evaluation import traversal
from spiel_cr.games.tree import tree_builder
from spiel_cr.players import bots
from spiel_cr.policies.best_responses import nash_conv
from spiel_cr.resolving import clock, continual
from spiel_cr.resolving.resolver import ResolvingConfig
from spiel_cr.solvers.cfr import solver
from spiel_cr.solvers.mccfr import mccfr, sample_tree
from tests.support import games
from tests.support.made_games import TERMINAL, MadeGame, Node
from tests.support.states import agree_on_scrambled_cards

PLAYERS = (0, 1)
SOLVER = "pdcfr+"
SMALL_BATCH = "os-mccfr(epsilon=0.4,exploration=0.01,batch=64)"
# Regrets change at visited infosets only, and untargeted trajectories are rare.
# Strategies explore, because a target that a player never plays to is unreachable.
AIMED = "os-mccfr(epsilon=1.0,exploration=0.01,batch=64,delta=0.999999)"


@functools.cache
def uniform_table(name):
    return openspiel_policy.UniformRandomPolicy(games.compiled(name).game)


def make(kind, name, player, seed=0):
    tree = games.compiled(name)
    if kind == "resolving":
        config = ResolvingConfig(SOLVER, iterations=20)
        return bots.ResolvingBot(tree, player, config, seed=seed)
    if kind == "oos":
        solver = AIMED if name == "leduc7" else SMALL_BATCH
        return bots.OOSBot(tree, player, bots.OOSConfig(solver, 2, None), seed=seed)
    if kind == "policy":
        return bots.PolicyBot(player, uniform_table(name), seed=seed)
    return bots.uniform_bot(tree, player, seed=seed)


# The functions of outcome sampling take long to compile.
KINDS = ("resolving", pytest.param("oos", marks=pytest.mark.slow), "policy", "uniform")
kuhn_and_larger = pytest.mark.parametrize(
    "name", ["kuhn", pytest.param("leduc7", marks=pytest.mark.slow)]
)
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_get_policy_is_a_distribution_over_legal_actions(kind):
    """Infosets of every layer are queried."""
    tree = games.compiled("leduc7")
    for player in PLAYERS:
        bot = make(kind, "leduc7", player)
        assert bot.player_id() == player
        assert bot.provides_policy()
        for history in tree.infosets[player].history[::4]:
            state = tree.state_at(history)
            before = state.history()
            policy = bot.get_policy(state)
            assert [a for a, _ in policy] == state.legal_actions()
            probabilities = [p for _, p in policy]
            assert all(isinstance(p, float) and 0 <= p <= 1 for p in probabilities)
            assert sum(probabilities) == pytest.approx(1, abs=1e-9)
            assert state.history() == before


@pytest.mark.parametrize("kind", ["resolving", "policy", "uniform"])
def test_step_with_policy_returns_get_policy_and_a_legal_action(kind):
    tree = games.compiled("kuhn")
    bot = make(kind, "kuhn", 0)
    for history in tree.infosets[0].history:
        state = tree.state_at(history)
        policy, action = bot.step_with_policy(state)
        assert policy == bot.get_policy(state)
        assert action in state.legal_actions()
        assert bot.step(state) in state.legal_actions()


class Fixed(openspiel_policy.Policy):
    """A policy with probabilities 0, 0.25 and 0.75."""

    def action_probabilities(self, state, player_id=None):
        return dict(zip(state.legal_actions(), (0.0, 0.25, 0.75), strict=False))


def test_actions_are_drawn_with_the_policys_probabilities():
    """There are 4000 draws, and five standard errors give a false alarm of 6e-7."""
    game = pyspiel.load_game("python_rock_paper_scissors(num_actions=3)")
    bot = bots.PolicyBot(0, Fixed(game, list(PLAYERS)), seed=1)
    state = game.new_initial_state()
    drawn = np.bincount([bot.step(state) for _ in range(4000)], minlength=3)
    assert drawn[0] == 0
    assert abs(drawn[1] - 1000) < 5 * np.sqrt(4000 * 0.25 * 0.75)


def play(pair, name, seed):
    """Play a match by OpenSpiel's loop, and return its actions and returns."""
    state = games.compiled(name).game.new_initial_state()
    random = np.random.RandomState(seed)
    returns = evaluate_bots.evaluate_bots(state, pair, random)
    return state.history(), returns


@every_kind
def test_the_same_seed_gives_the_same_matches(kind):
    """Budgets are numbers of iterations, and another seed gives other matches."""
    runs = []
    for seed in (5, 5, 6):
        pair = [make(kind, "leduc7", p, seed) for p in PLAYERS]
        runs.append([play(pair, "leduc7", match)[0] for match in range(12)])
    assert runs[0] == runs[1] != runs[2]


@every_kind
def test_bots_play_in_openspiels_loops(kind):
    """The loops are in Python and C++, and returns are those of the last state."""
    game = games.compiled("leduc7").game
    pair = [make(kind, "leduc7", 0), make("uniform", "leduc7", 1)]
    for seed in range(5):
        history, returns = play(pair, "leduc7", seed)
        state = game.new_initial_state()
        for action in history:
            assert action in state.legal_actions()
            state.apply_action(action)
        assert state.is_terminal() and list(returns) == state.returns()
        found = pyspiel.evaluate_bots(game.new_initial_state(), pair, seed)
        assert sum(found) == 0


@every_kind
def test_bots_do_not_use_hidden_information(kind):
    """Two histories of an infoset with other hidden cards give the same policy.

    Bots with the same seed are queried at one history each.
    """
    tree = games.compiled("leduc7")
    for player in PLAYERS:
        one = functools.partial(make, kind, "leduc7", player)
        agree_on_scrambled_cards(tree, one, player, 12, 6)


# Resolving.


@kuhn_and_larger
def test_resolving_bot_plays_the_policy_of_resolve(name):
    tree = games.compiled(name)
    table = continual.resolve(tree, SOLVER, 20).average_policy()
    for player in PLAYERS:
        bot = make("resolving", name, player)
        infosets = tree.infosets[player]
        every = list(zip(infosets.keys, infosets.history, strict=True))
        for key, history in every[::3]:
            row = table.policy_for_key(key)
            for action, probability in bot.get_policy(tree.state_at(history)):
                assert probability == pytest.approx(row[action], abs=1e-6)


@kuhn_and_larger
def test_resolve_and_bot_agree_with_the_max_margin_gadget(name):
    """Both strategies are compared at every infoset."""
    tree = games.compiled(name)
    config = ResolvingConfig(solver="cfr+", iterations=20, gadget="maxmargin")
    found = continual.resolve(tree, config).average
    plain = continual.resolve(tree, "cfr+", 20).average
    for player in PLAYERS:
        bot = bots.ResolvingBot(tree, player, config)
        asked = traversal.traverse(tree, bot).behaviour
        np.testing.assert_allclose(found[player], asked, atol=1e-6)
    assert not all(np.allclose(*pair) for pair in zip(found, plain, strict=True))


def test_restart_discards_solutions_of_the_match():
    """The complete game is solved once; subgames of a match are solved again."""
    tree = games.compiled("leduc7")
    bot = make("resolving", "leduc7", 1)
    state = tree.state_at(tree.infosets[1].history[-1])
    solved = []
    for forget in (None, None, bot.restart, None, lambda: bot.restart_at(state)):
        if forget is not None:
            forget()
        policy = bot.get_policy(state)
        solved.append((bot.resolver.statistics.solves, policy))
    assert [n for n, _ in solved] == [1, 1, 2, 2, 3]
    assert all(policy == solved[0][1] for _, policy in solved)


def test_trees_of_game_strings_are_built_with_observations():
    bot = bots.ResolvingBot("kuhn_poker", 0, ResolvingConfig(SOLVER, iterations=20))
    assert bot.resolver.decomposition.tree.histories.observations is not None
    tree = games.compiled("kuhn")
    state = tree.state_at(tree.infosets[0].history[0])
    assert bot.get_policy(state) == make("resolving", "kuhn", 0).get_policy(state)


def test_default_budget_is_a_time_limit():
    bot = bots.ResolvingBot(games.compiled("kuhn"), 1)
    config = bot.resolver.config
    assert (config.solver, config.move_ms, config.iterations) == ("auto", 100, None)


def test_matches_with_a_time_limit_rarely_miss_deadlines(monkeypatch):
    """The time limit is ten times the overhead of a solve of this game.

    CPU time is measured, which does not depend on other processes.
    """
    own = types.SimpleNamespace(perf_counter=time.process_time)
    monkeypatch.setattr(clock, "time", own)
    monkeypatch.setattr(solver, "time", own)
    tree = games.compiled("kuhn")
    config = ResolvingConfig(SOLVER, move_ms=40)
    bot = bots.ResolvingBot(tree, 0, config)
    state = tree.state_at(tree.infosets[0].history[-1])
    for number in range(1, 31):
        bot.restart()
        bot.get_policy(state)
        found = bot.resolver.statistics
        assert found.moves == found.solves == number
    assert found.deadline_misses <= 3
    assert found.iterations > 1000 and found.compilations == 0


# Online outcome sampling.


def reaches(tree, target):
    """Return bool [N], whether a history is a target, above one, or below one."""
    parent = tree.histories.parent
    result = np.zeros(len(parent), bool)
    for h in range(len(parent)):
        up, way = h, []
        while up >= 0:
            way.append(up)
            up = parent[up]
        result[h] = target[way].any()
        if target[h]:
            result[way] = True
    return result


def regrets(bot, player):
    """Return float32 [S], the player's regrets by logical sequence."""
    reader = bot._solver._reader
    own = slice(reader.roots[player], reader.stops[player])
    return np.array(bot._solver.state.regrets)[own]


def visited(bot, player, before):
    """Return the player's infosets whose regrets have changed."""
    changed = regrets(bot, player)[1:] != before[player][1:]
    owner = bot._solver.form.decisions[player].owner[1:]
    return set(owner[changed].tolist())


@pytest.mark.parametrize(
    ("name", "target"),
    [("kuhn", "infoset"), pytest.param("leduc7", "subgame", marks=pytest.mark.slow)],
)
def test_trajectories_are_targeted_at_the_match(name, target, monkeypatch):
    """Almost all of the 64 trajectories reach the target, so other visits are rare.

    A share of 1e-6 is not targeted: with 64 trajectories, once in 16,000 moves.
    """
    tree = games.compiled(name)
    aimed = []
    leads_to = sample_tree.leads_to

    def recording(tree, mask):
        aimed.append(mask)
        return leads_to(tree, mask)

    monkeypatch.setattr(sample_tree, "leads_to", recording)
    bot = bots.OOSBot(tree, 0, bots.OOSConfig(AIMED, 1, None, target=target))
    histories = tree.histories
    sizes = []
    count = len(tree.infosets[0])
    for infoset in range(count) if name == "kuhn" else (3, 20, count - 1):
        mine = (histories.player == 0) & (histories.infoset == infoset)
        before = [regrets(bot, p) for p in PLAYERS]
        bot.get_policy(tree.state_at(tree.infosets[0].history[infoset]))
        region = aimed[-1]
        assert region[mine].all()
        if target == "infoset":
            np.testing.assert_array_equal(region, mine)
        else:
            assert region.sum() > mine.sum()
        allowed = reaches(tree, region)
        assert not allowed.all()
        for p in PLAYERS:
            there = allowed & (histories.player == p)
            found = visited(bot, p, before)
            assert found <= set(histories.infoset[there].tolist())
            sizes.append(len(found))
            if p == 0:
                assert infoset in found
    assert max(sizes) > 2


def test_untargeted_trajectories_visit_every_infoset():
    """This shows that the previous test can fail."""
    tree = games.compiled("kuhn")
    bot = make("oos", "kuhn", 0)
    before = [regrets(bot, p) for p in PLAYERS]
    mccfr.aim(bot._solver, bot._tree, None)
    bot._solver.run(1)
    region = bot._region(len(tree.infosets[0]) - 1)
    there = reaches(tree, region) & (tree.histories.player == 0)
    allowed = set(tree.histories.infoset[there].tolist())
    everywhere = set(range(len(tree.infosets[0])))
    assert visited(bot, 0, before) - allowed == everywhere - allowed


def whole_nash_conv(bot):
    form = bot._solver.form
    reach = (bot._solver.average(0), bot._solver.average(1))
    return nash_conv(form, reach)


@pytest.mark.slow
def test_targeted_sampling_approaches_an_equilibrium():
    """The average strategy improves overall and at the queried infoset of Kuhn poker.

    With the king, calling a bet is dominant: its probability is 1 in all equilibria.
    With eight seeds, NashConv was 0.075 to 0.15 at first and 0.015 to 0.037 at the end;
    the uniform strategy's NashConv is 0.917.
    """
    tree = games.compiled("kuhn")
    bot = bots.OOSBot(tree, 1, bots.OOSConfig(SMALL_BATCH, 50, None), seed=3)
    king_after_bet = next(
        h
        for h, player in enumerate(tree.histories.player)
        if player == 1 and tree.histories.actions_to(h) == [0, 2, 1]
    )
    state = tree.state_at(king_after_bet)
    first = dict(bot.get_policy(state))[1]
    early = whole_nash_conv(bot)
    for _ in range(90):
        policy = dict(bot.get_policy(state))
    late = whole_nash_conv(bot)
    assert late < early / 2 and late < 0.1
    assert policy[1] > max(first - 1e-9, 0.99)
    assert bot.statistics.moves == bot.statistics.solves == 91
    assert bot.statistics.iterations == 91 * 50
    assert bot.statistics.compilations == 0


def test_initial_solve_has_the_budget_of_a_move():
    bot = bots.OOSBot(games.compiled("kuhn"), 0, bots.OOSConfig(SMALL_BATCH, 50, None))
    assert bot._solver.iterations >= 50
    assert bot.statistics.moves == bot.statistics.solves == 0


@pytest.mark.parametrize(("init_ms", "seconds"), [(None, 0.1), (5000.0, 5.0)])
def test_initial_solve_has_the_time_of_init_ms_or_a_move(init_ms, seconds, monkeypatch):
    start, deadlines, solve = time.perf_counter(), [], clock.Clock.solve

    def record(self, solver, deadline, most=None):
        deadlines.append(deadline)
        return solve(self, solver, deadline, most)

    monkeypatch.setattr(clock.Clock, "solve", record)
    config = bots.OOSConfig(SMALL_BATCH, 1, 100.0, init_ms)
    bots.OOSBot(games.compiled("kuhn"), 0, config)
    (first, second), ended = deadlines, time.perf_counter()
    assert first is None and start < second - seconds < ended


def test_a_restart_keeps_the_tables():
    bot = make("oos", "kuhn", 0)
    tree = games.compiled("kuhn")
    state = tree.state_at(tree.infosets[0].history[0])
    bot.get_policy(state)
    before = bot._solver.iterations
    bot.restart()
    bot.restart_at(state)
    bot.get_policy(state)
    assert bot._solver.iterations == before + 2


def test_reset_matches_restores_the_initial_tables():
    """Each match starts from the initial tables, with other random numbers."""
    tree = games.compiled("kuhn")
    config = bots.OOSConfig(SMALL_BATCH, 5, None, reset_matches=True)
    state = tree.state_at(tree.infosets[0].history[0])
    found = []
    for _ in range(2):
        bot = bots.OOSBot(tree, 0, config)
        start = bot._solver.iterations
        for _ in range(3):
            bot.restart()
            assert bot._solver.iterations == start
            found.append(bot.get_policy(state))
            assert bot._solver.iterations == start + 5
    assert found[:3] == found[3:]
    assert found[0] != found[1] != found[2] != found[0]


# Policies.


def only_zero(path):
    """Rules of a game in which player 0 has only action 0, then player 1 chooses."""
    if not path:
        return Node(0, (0,), ("forced", ""))
    if len(path) == 1:
        return Node(1, (0, 1), ("", "choose"))
    return Node(TERMINAL, utility=float(path[1]))


def test_action_zero_can_be_the_only_legal_action():
    game = MadeGame(only_zero, "only_zero")
    uniform = openspiel_policy.UniformRandomPolicy(game)
    state = game.new_initial_state()
    bot = bots.PolicyBot(0, uniform)
    assert bot.step_with_policy(state) == ([(0, 1.0)], 0)
    # OpenSpiel's bot treats this action as no action.
    theirs = openspiel_bots.PolicyBot(0, np.random, uniform)
    assert theirs.step(state) == pyspiel.INVALID_ACTION
    tree = tree_builder.build_tree(game, observations=True)
    resolver = bots.ResolvingBot(tree, 0, ResolvingConfig(SOLVER, iterations=5))
    assert resolver.step_with_policy(state) == ([(0, 1.0)], 0)


def test_policy_bot_adds_missing_actions_with_probability_zero():
    class First(openspiel_policy.Policy):
        def action_probabilities(self, state, player_id=None):
            return {state.legal_actions()[0]: 1.0}

    tree = games.compiled("kuhn")
    bot = bots.PolicyBot(1, First(tree.game, list(PLAYERS)))
    state = tree.state_at(tree.infosets[1].history[0])
    assert bot.get_policy(state) == [(0, 1.0), (1, 0.0)]
    assert bot.step(state) == 0


# Errors.


@pytest.mark.parametrize("kind", ["resolving", "oos"])
def test_states_of_another_game_are_rejected(kind):
    bot = make(kind, "kuhn", 0)
    tree = games.compiled("leduc7")
    state = tree.state_at(tree.infosets[0].history[0])
    with pytest.raises(ValueError, match="a decision of kuhn_poker.*another game"):
        bot.get_policy(state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"iterations": None}, "needs a budget"),
        ({"iterations": 0}, "iterations=0"),
        ({"move_ms": -1}, "move_ms=-1"),
        ({"init_ms": 0}, "init_ms=0"),
        ({"target": "hand"}, "target='hand' must be one of infoset, subgame"),
        ({"reset_matches": 1}, "reset_matches=1 must be True or False"),
    ],
    ids=str,
)
def test_oos_config_rejects_invalid_settings(change, message):
    arguments = {**{"solver": SMALL_BATCH, "move_ms": None, "iterations": 2}, **change}
    with pytest.raises(ValueError, match=message):
        bots.OOSConfig(**arguments)
