"""Players in games that are never whole: what they share with others, what they see."""

import copy
import functools

import numpy as np
import pyspiel
import pytest

import game_defs  # noqa: F401  registers the games
import spiel_cr
from spiel_cr.common.errors import ImperfectRecallError
from spiel_cr.games.tree import compiler
from spiel_cr.judging import one_match as match
from spiel_cr.players import bot_strings, bots, partial_bots
from spiel_cr.resolving.partial.partial_config import PartialConfig
from spiel_cr.resolving.partial.partial_tree import PartialTree, compile_partial
from spiel_cr.resolving.resolving_config import ResolvingConfig
from tests.support import games
from tests.support.made_games import TERMINAL, MadeGame, Node
from tests.support.states import agree_on_scrambled_cards

SOLVER = "pdcfr+"
GOOFSPIEL = "python_ii_goofspiel(num_cards=4)"
PLAYERS = (0, 1)


def make(name, player, max_histories, *, iterations=20, seed=0, **settings):
    settings = {"warmup_matches": 0, **settings}
    partial = PartialConfig(max_histories, **settings)
    config = ResolvingConfig(SOLVER, iterations=iterations)
    return partial_bots.PartialResolvingBot(
        name, player, config, partial=partial, seed=seed
    )


@functools.cache
def compiled(name):
    return compiler.compile_game(name, observations=True)


def state_at(tree, history):
    state = tree.game.new_initial_state()
    for action in tree.histories.actions_to(int(history)):
        state.apply_action(action)
    return state


def first_states(name, player, most=10_000):
    """At most so many of the player's infosets, from the first to the last layer."""
    tree = compiled(name)
    history = tree.infosets[player].history
    every = -(-len(history) // most)
    return [state_at(tree, h) for h in history[::every]]


def assert_policy(policy, state):
    assert [action for action, _ in policy] == state.legal_actions()
    odds = [p for _, p in policy]
    assert all(isinstance(p, float) and 0 <= p <= 1 for p in odds)
    assert sum(odds) == pytest.approx(1, abs=1e-9)


# Where the whole game fits, nothing differs.


def same_as_the_ordinary_bot(name, player, most):
    tree = compiled(name)
    config = ResolvingConfig(SOLVER, iterations=20)
    ordinary = bots.ResolvingBot(tree, player, config)
    bot = make(name, player, len(tree.histories))
    for state in first_states(name, player, most):
        expected, found = ordinary.get_policy(state), bot.get_policy(state)
        assert [a for a, _ in found] == [a for a, _ in expected]
        np.testing.assert_allclose(
            [p for _, p in found], [p for _, p in expected], rtol=0, atol=1e-6
        )
    assert bot.counts.unsafe_restarts == bot.counts.uniform == 0
    return bot


@pytest.mark.parametrize("player", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_whole_game_fits_kuhn(player):
    bot = same_as_the_ordinary_bot("kuhn_poker", player, 6)
    assert bot.counts.safe_resolves == (3 if player == 0 else 0)


@pytest.mark.slow
@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("name", ["python_leduc_poker", GOOFSPIEL])
def test_the_whole_game_fits(name, player):
    """Down to the last layer."""
    bot = same_as_the_ordinary_bot(name, player, 20)
    assert bot.counts.safe_resolves > 5


# With less.


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
def test_a_policy_at_every_infoset(name, player, max_histories):
    """Whatever way leads there, in any order, with N never exceeded."""
    bot = make(name, player, max_histories)
    for state in first_states(name, player, most=12):
        assert_policy(bot.get_policy(state), state)
    assert bot.counts.most_histories <= max_histories
    assert bot.counts.unsafe_restarts > 0
    assert bot.counts.uniform == 0
    assert bot.counts.safe_resolves > 0


def mean_return(bot, name, count, seed=0):
    """Against uniform play."""
    game = compiled(name).game
    other = bots.uniform_bot(game, 1 - bot.player_id())
    pair = [bot, other] if bot.player_id() == 0 else [other, bot]
    rng = np.random.default_rng(seed)
    returns = [match.play_match(game, pair, rng).returns for _ in range(count)]
    mine = [pair[bot.player_id()] for pair in returns]
    return np.mean(mine), np.std(mine) / np.sqrt(count)


@pytest.mark.slow
@pytest.mark.parametrize("player", PLAYERS)
def test_better_than_uniform_play(player):
    """60 matches; at least two standard errors above what uniform play gets, 0."""
    bot = make(GOOFSPIEL, player, 300)
    mean, error = mean_return(bot, GOOFSPIEL, 60)
    assert mean > 2 * error
    assert bot.counts.most_histories <= 300
    assert bot.counts.uniform == 0


@pytest.mark.slow
def test_a_game_that_cannot_be_compiled():
    """phantom_ttt: legal, by its own information, and it wins against uniform play."""
    bot = make("phantom_ttt", 0, 3000, iterations=50)
    game = pyspiel.load_game("phantom_ttt")
    rng = np.random.default_rng(0)
    pair = [bot, bots.uniform_bot(game, 1)]
    returns = [match.play_match(game, pair, rng).returns[0] for _ in range(10)]
    # Uniform play gets 0.3 there; a deviation of a mean of ten is 0.3 or less.
    assert np.mean(returns) > 0.3
    assert bot.counts.unsafe_restarts > 10 and bot.counts.uniform == 0


@pytest.mark.slow
def test_in_time_without_a_new_program():
    """Under a clock all programs are those of the construction."""
    config = ResolvingConfig(SOLVER, move_ms=400)
    settings = PartialConfig(2000, warmup_matches=2)
    bot = partial_bots.PartialResolvingBot(GOOFSPIEL, 0, config, partial=settings)
    mean_return(bot, GOOFSPIEL, 5)
    found = bot.statistics
    assert found.moves == 20
    assert found.programs_compiled == 0
    # Other processes may take the processor away now and then.
    assert found.late_moves <= 5
    assert bot.counts.uniform == 0


@pytest.mark.slow
def test_max_margin_is_as_good_as_the_other_gadget_where_all_fits():
    tree = compiled("kuhn_poker")
    for kind in ("cfrd", "maxmargin"):
        text = f"resolving(max_histories=58,iterations=200,gadget={kind})"
        assert spiel_cr.evaluate(tree, text).nash_conv < 0.01


# What bots may know.


@pytest.mark.slow
def test_only_its_own_information():
    """Two histories of one infoset, hidden cards scrambled: the same policy.

    Asked by bots of the same seed, each of one history only.
    """
    name, max_histories = "python_leduc_poker", 150
    tree = compiled(name)
    for player in PLAYERS:
        one = functools.partial(make, name, player, max_histories)
        agree_on_scrambled_cards(tree, state_at, one, player, 6, 3)


def test_the_same_seed_gives_the_same_policies():
    states = first_states("kuhn_poker", 1)
    one, other = (
        [bot.get_policy(state) for state in states]
        for bot in (make("kuhn_poker", 1, 40, seed=3) for _ in range(2))
    )
    assert one == other


def test_restart_forgets_the_match():
    """Without a clock, a subgame that was solved once is not solved again."""
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


def test_until_the_end_no_shorter_tree_is_solved():
    agent, laid = make("kuhn_poker", 0, 58).agent, []
    agent._make_solved = lambda *_: laid.append(1)
    agent.settings = copy.copy(agent.settings)
    for until_end in (True, False):
        object.__setattr__(agent.settings, "until_end", until_end)
        for most in (20, 58):
            tree = PartialTree.start("kuhn_poker", 58, player=0)
            assert not agent._solve(tree, None, most, None)
            assert tree.can_grow == (most < 58)
            assert bool(laid) == (not until_end or most == 58)
            laid.clear()


def test_labels_are_known_as_long_as_solutions_that_need_them():
    bot = make("kuhn_poker", 0, 58)
    agent, labels = bot.agent, bot.agent._start.partial.simulator.labels
    bot.get_policy(first_states("kuhn_poker", 0)[-1])
    assert len(agent._kept) == 1
    counts = [len(known) for known in labels]
    assert labels[0]["met later"] == counts[0]
    bot.restart()
    assert len(agent._kept) == 1 and len(labels[0]) == counts[0] + 1
    agent._kept.most = 0
    bot.restart()
    assert not len(agent._kept)
    assert [len(known) for known in labels] == counts


def test_old_answers_are_counted():
    """A decision that is in the tree, but could not be solved."""
    bot = make("kuhn_poker", 0, 58)
    bot.agent._solve = lambda *_, **__: False
    state = first_states("kuhn_poker", 0)[-1]
    assert_policy(bot.get_policy(state), state)
    # The first decision is answered by the solve of the beginning.
    assert bot.counts.reused == bot.counts.fallback == 1
    assert (
        bot.counts.uniform
        == bot.counts.safe_resolves
        == bot.counts.unsafe_restarts
        == 0
    )
    # Joining a match late, with no time for the decisions that were made in it.
    bot.restart()
    bot.agent._layers.has_no_time = lambda deadline: True
    assert_policy(bot.get_policy(state), state)
    assert bot.counts.reused == 1 and bot.counts.fallback == 2


def forgets_its_second_move(path):
    """Turns in the open; player 0 forgets its second move before its third."""
    if len(path) == 5:
        return Node(TERMINAL, utility=float(sum(path[::2])))
    seen = path[:2] + path[3:] if len(path) == 4 else path
    infos = (f"0: {len(path)} {seen}", f"1: {path}")
    return Node(len(path) % 2, (0, 1), infos)


def test_trees_that_cannot_be_resolved():
    """They are given up; faults of a game or a leaf value are not taken for these."""
    agent = make("kuhn_poker", 0, 58).agent
    partial = agent.solved.partial
    tree, ids = agent.solved.snapshot.tree, agent.solved.snapshot.ids
    paths = [tree.histories.actions_to(h) for h in range(58)]
    # A root of the infoset "0pb", and one from which passing leads there.
    roots = ids[[paths.index([0, 1]), paths.index([0, 2, 0, 1])]]
    rooted = partial.rooted_at(partial.nodes(roots), np.ones(2))
    rooted.grow()
    assert agent._make_solved(rooted) is None

    def leaf(game, states):
        raise ValueError("a fault of its own")

    unknown = PartialTree.start("kuhn_poker", 58, leaf=leaf)
    with pytest.raises(ValueError, match="a fault of its own"):
        agent._make_solved(unknown)
    forgetful = PartialTree.start(MadeGame(forgets_its_second_move, "forgets"), 63)
    forgetful.grow(31)
    assert agent._make_solved(forgetful) is not None
    forgetful.grow()
    with pytest.raises(ImperfectRecallError, match="0: 4"):
        agent._make_solved(forgetful)


# Strings and refusals.


def test_bots_from_strings():
    partial = "max_histories=58,warmup_matches=0"
    text = f"resolving(solver={SOLVER},iterations=5,{partial})"
    bot = bot_strings.load_bot(text, "kuhn_poker", 0)
    assert isinstance(bot, partial_bots.PartialResolvingBot)
    assert bot.agent.settings.max_histories == 58
    tree = games.compiled("kuhn")
    assert_policy(
        bot.get_policy(state_at(tree, tree.infosets[0].history[0])),
        state_at(tree, tree.infosets[0].history[0]),
    )


@pytest.mark.parametrize(
    "text",
    [
        "resolving(iterations=5)",
        "oos(iterations=5)",
        "solved(iterations=5)",
        "policy(path={path})",
    ],
)
def test_partial_trees_are_refused_when_bots_are_made(text, tmp_path):
    path = tmp_path / "kuhn.npz"
    spiel_cr.solve("kuhn_poker", goal=1).save(path)
    partial = compile_partial("kuhn_poker", 40, "rollouts")
    with pytest.raises(ValueError, match="compiled in part"):
        bot_strings.load_bot(text.format(path=path), partial, 0)


@pytest.mark.slow
def test_answers_do_not_depend_on_what_was_asked_before():
    """Nor on another bot: leaf values and restarts draw by seed and what was seen."""
    tree = compiled("python_leduc_poker")
    asked = tree.infosets[1].history[[7, 33, 52]]

    def answers(order, seed=0):
        leaf = "rollouts(n=1)"
        bot = make("python_leduc_poker", 1, 120, iterations=10, seed=seed, leaf=leaf)
        found = {h: bot.get_policy(state_at(tree, h)) for h in asked[::order]}
        return [found[h] for h in asked], bot.counts

    forwards, counts = answers(1)
    assert forwards == answers(-1)[0] != answers(1, seed=1)[0]
    assert counts.frontier_resolves + counts.unsafe_restarts > 0


@pytest.mark.slow
def test_a_resolve_has_all_roots_of_its_subgame():
    """A start that shows few hands of the opponent does not decide which it holds."""
    tree = spiel_cr.compile_game("leduc_poker")
    bot = make("leduc_poker", 1, 1000, iterations=4)
    key = (
        "[Observer: 1][Private: 3][Round 2][Player: 1][Pot: 10][Money: 95 95]"
        "[Public: 1][Round1: 1 2 2 1][Round2: 1]"
    )
    infosets = tree.infosets[1]
    (infoset,) = [n for n, known in enumerate(infosets.keys) if known == key]
    bot.get_policy(tree.state_at(int(infosets.history[infoset])))
    solved = bot.agent.solved
    d, opening = solved.decomposition, solved.find(key)
    while not d.opens[opening]:
        opening = int(d.decisions.owner[d.decisions.parent[opening]])
    # Each of the five other cards may be the opponent's, with four for the player.
    assert len(solved.subgame_roots(opening)) == 20
    assert solved.has_all_roots(opening) and not bot.counts.unsafe_restarts
