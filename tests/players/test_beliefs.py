"""Beliefs of bots, compared with Bayes' rule by enumeration of OpenSpiel's states.

The enumeration uses only strategies: the bot's policies, and for the opponent those of
the forests of `resolve`, whose code is independent of a bot's subgames.
"""

import collections
import functools
import re

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.gambit.export import efg_text
from spiel_cr.games.public_tree import public_tree_loading as loading
from spiel_cr.players.bots import LookaheadResolvingBot, OOSBot, OOSConfig, ResolvingBot
from spiel_cr.players.search_bot import SearchBot, SearchBotConfig
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs, short_labels
from spiel_cr.policies.conversions import tabular_policy, uniform_behaviour
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.roles import Role
from tests.support import games
from tests.support.strategies import forest_solver, random_behaviours

slow = pytest.mark.slow
# Few iterations, so that rounding changes nothing; numbers are compared to 1e-9.
CONFIG = ResolvingConfig("dcfr", 8)
EXACT = {"rtol": 0, "atol": 1e-9}


def public(state):
    """Return public actions and cards of Kuhn and Leduc, after two moves that deal."""
    return tuple(state.history()[2:])


def enumerated(game, policies):
    """Yield decisions with chance's probability and each player's reach."""
    stack = [(game.new_initial_state(), 1.0, (1.0, 1.0))]
    while stack:
        state, chance, reach = stack.pop()
        if state.is_terminal():
            continue
        acts = state.current_player()
        if state.is_chance_node():
            stack += [
                (state.child(a), chance * p, reach) for a, p in state.chance_outcomes()
            ]
            continue
        yield state, chance, reach
        for action, p in policies[acts](state).items():
            after = list(reach)
            after[acts] *= p
            stack.append((state.child(action), chance, tuple(after)))


def normalised(sums):
    return {key: weight / sum(sums.values()) for key, weight in sums.items()}


def bayes(game, player, policies):
    """Yield both ranges for each of the player's information states.

    If the opponent never reaches an information state, its range is that of a uniform
    opponent, as in the beliefs of bots.
    """
    theirs, uniform, mine, root = ({} for _ in range(4))
    shape = functools.partial(collections.defaultdict, float)
    for state, chance, reach in enumerated(game, policies):
        if state.current_player() != player:
            continue
        own, other = (state.information_state_string(p) for p in (player, 1 - player))
        root[own] = public(state)
        theirs.setdefault(own, shape())[other] += chance * reach[1 - player]
        uniform.setdefault(own, shape())[other] += chance
        mine.setdefault(public(state), shape())[own] += chance * reach[player]
    for own, sums in theirs.items():
        yield (
            own,
            normalised(sums if any(sums.values()) else uniform[own]),
            normalised(mine[root[own]]) if any(mine[root[own]].values()) else None,
        )


def same(numbers, expected):
    assert numbers.keys() == expected.keys()
    for key, number in numbers.items():
        np.testing.assert_allclose(number, expected[key], **EXACT)


def answers(bot):
    """Return a function from a state to the bot's probabilities, in one match."""
    known = {}

    def answer(state):
        key = state.information_state_string()
        if key not in known:
            known[key] = dict(bot.get_policy(state))
        return known[key]

    return answer


def table_of(keys_and_rows):
    """Return a function from a state to probabilities, by information state string."""
    table = dict(keys_and_rows)
    return lambda state: table[state.information_state_string()]


def opponents_in_forests(tree, player):
    """Return the opponent's strategy from the forests of `resolve`.

    The other results are the decomposition, the opponent's counterfactual values at the
    roots of each layer by augmented infoset, and the solver of the first solve.
    """
    d, solve = decompose(tree, player), forest_solver(CONFIG.solver, CONFIG.iterations)
    role = Role(d)
    state, values, infosets = role.start(), {}, tree.infosets[1 - player]
    behaviour, first = uniform_behaviour(infosets.decisions), None

    def solver_of(d, forest):
        nonlocal first
        solver = solve(d, forest)
        played = solver.average_behaviour(1 - player)
        begin = 1 + forest.gadget_infosets.num_sequences
        for infoset in forest.other.tolist():
            start = infosets.decisions.first_sequence[infoset]
            count = infosets.decisions.num_actions[infoset]
            behaviour[start : start + count] = played[begin : begin + count]
            begin += count
        if first is None:
            first = solver
        return solver

    for layer in range(1, d.num_layers + 1):
        values[layer] = state.opponent_values
        state = role.resolve(layer, state, solver_of)
    rows = {}
    for infoset, key in enumerate(infosets.keys):
        actions = tree.actions(1 - player, infoset).tolist()
        start = infosets.decisions.first_sequence[infoset]
        rows[key] = dict(zip(actions, behaviour[start:], strict=False))
    return table_of(rows), d, values, first


def decisions_of(tree, player):
    """Return a state of each of the player's infosets, by information state string."""
    infosets = tree.infosets[player]
    return {
        key: tree.state_at(int(history))
        for key, history in zip(infosets.keys, infosets.history, strict=True)
    }


# Poker with two rounds of bets, with eight deals of private cards.
SMALL = "python_leduc_poker(stack0=13,stack1=13,max_raises=1,num_ranks=2)"
SEATS = [
    *(("kuhn", 0), ("kuhn", 1), (SMALL, 1)),
    *(pytest.param("leduc", player, marks=slow) for player in (0, 1)),
    pytest.param(SMALL, 0, marks=slow),
]


@functools.cache
def tree_of(name):
    if name == SMALL:
        return spiel_cr.build_tree(name, observations=True)
    return games.compiled(name)


@functools.cache
def resolving(name, player):
    return ResolvingBot(tree_of(name), player, CONFIG)


@pytest.mark.parametrize(("name", "player"), SEATS)
def test_ranges_and_values_of_a_resolving_bot(name, player):
    """Ranges at every decision and values at every root agree to 1e-9."""
    tree, bot = tree_of(name), resolving(name, player)
    opponent, d, values, first = opponents_in_forests(tree, player)
    policies = [opponent, opponent]
    policies[player] = answers(bot)
    states = decisions_of(tree, player)
    bot.restart()
    for key, theirs, mine in bayes(tree.game, player, policies):
        beliefs = bot.beliefs(states[key])
        assert beliefs.player == player
        same(beliefs.opponent_range, theirs)
        if mine is not None:
            same(beliefs.player_range, mine)
    reach = collections.defaultdict(float)
    for state, chance, both in enumerated(tree.game, policies):
        if state.current_player() == player:
            key = public(state), state.information_state_string(1 - player)
            reach[key] += chance * both[player]
    checked = 0
    for root, augmented in zip(d.roots.tolist(), d.root_augmented, strict=True):
        state, layer = tree.state_at(root), int(d.layer[root])
        numbers = bot.beliefs(state).counterfactual_values
        label = state.information_state_string(1 - player)
        total = reach[public(state), label]
        if layer == 1:
            assert numbers is None
        elif total > 1e-3:
            expected = -values[layer][augmented] / total
            np.testing.assert_allclose(numbers[label], expected, **EXACT)
            checked += 1
    assert checked > 5 or name == "kuhn"


@pytest.mark.parametrize("player", [0, 1])
def test_nash_conv_of_the_first_solve(player):
    """NashConv is that of the complete game, as OpenSpiel computes it."""
    tree = games.compiled("kuhn")
    first = opponents_in_forests(tree, player)[-1]
    behaviours = [
        # The opponent's last sequences are roots of the next layer, not decisions.
        first.average_behaviour(p)[: decisions.num_sequences]
        for p, decisions in enumerate(tree.decisions)
    ]
    policy = tabular_policy(tree, behaviours)
    expected = exploitability.nash_conv(tree.game, policy)
    state = next(iter(decisions_of(tree, player).values()))
    beliefs = resolving("kuhn", player).beliefs(state)
    assert expected > 0.001
    np.testing.assert_allclose(beliefs.nash_conv, expected, **EXACT)


def test_values_and_nash_conv_of_a_gadget_by_hand():
    """In Kuhn poker player 0 has passed and player 1 has bet, below a gadget."""
    tree, bot = games.compiled("kuhn"), resolving("kuhn", 0)
    states = {}
    for mine, theirs in ((m, t) for m in range(3) for t in range(3) if m != t):
        states[mine, theirs] = state = tree.game.new_initial_state()
        for action in (mine, theirs, 0, 1):
            state.apply_action(action)
    beliefs = bot.beliefs(states[0, 1])
    calls, passes = {}, {}
    for mine in range(3):
        state = states[mine, (mine + 1) % 3]
        calls[mine] = dict(bot.get_policy(state))[1]
        start = tree.game.new_initial_state()
        start.apply_action(mine)
        start.apply_action((mine + 1) % 3)
        passes[mine] = dict(bot.get_policy(start))[0]
    total = sum(passes.values()) * 2 / 6
    # Weights of the deals, as shares; the opponent's utility after fold and call.
    weight = {(m, t): passes[m] / 6 / total for m, t in states}
    terminate = {
        t: -beliefs.counterfactual_values[f"{t}pb"]
        * sum(weight[m, u] for m, u in weight if u == t)
        for t in range(3)
    }
    fold = {key: w * 1.0 for key, w in weight.items()}
    call = {(m, t): w * (2.0 if t > m else -2.0) for (m, t), w in weight.items()}

    def follow(t):
        return sum(
            (1 - calls[m]) * fold[m, t] + calls[m] * call[m, t]
            for m in range(3)
            if m != t
        )

    solve = list(bot._match.solved.values())[-1]
    gadget = solve.solver.average_behaviour(1)
    # Two actions at each of three infosets: terminate, follow.
    d = bot.resolver.decomposition
    follows = {}
    for root, augmented in zip(d.roots, d.root_augmented, strict=True):
        if augmented in solve.subgame.augmented:
            place = solve.subgame.augmented.tolist().index(augmented)
            follows[tree.state_at(root).history()[1]] = gadget[2 + 2 * place]
    best_of_opponent = sum(max(terminate[t], follow(t)) for t in range(3))
    best_of_bot = sum((1 - follows[t]) * terminate[t] for t in range(3)) + sum(
        min(
            sum(follows[t] * payoff[m, t] for t in range(3) if t != m)
            for payoff in (fold, call)
        )
        for m in range(3)
    )
    expected = best_of_opponent - best_of_bot
    assert expected > 1e-4
    np.testing.assert_allclose(beliefs.nash_conv, expected, **EXACT)


@functools.cache
def blueprint():
    tree = games.compiled("kuhn")
    return tabular_policy(tree, random_behaviours(tree, 1))


def as_function(policy):
    return lambda state: policy.action_probabilities(state)


@pytest.mark.parametrize("player", [0, 1])
def test_beliefs_of_players_with_a_blueprint(player):
    """The opponent plays the blueprint; only the lookahead bot has public states."""
    tree = games.compiled("kuhn")
    settings = LookaheadConfig(500, blueprint=blueprint())
    look = LookaheadResolvingBot(tree.game, player, CONFIG, lookahead=settings)
    search = SearchBot(tree, player, SearchBotConfig(blueprint(), simulations=10))
    states, policies = decisions_of(tree, player), [as_function(blueprint())] * 2
    policies[player] = answers(look)
    complete = 0
    for key, theirs, mine in bayes(tree.game, player, policies):
        beliefs = look.beliefs(states[key])
        same(beliefs.opponent_range, theirs)
        assert not beliefs.sampled
        if beliefs.player_range is not None and mine is not None:
            same(beliefs.player_range, mine)
            assert 0 <= beliefs.nash_conv < 1
            complete += 1
        of_search = search.beliefs(states[key])
        same(of_search.opponent_range, theirs)
        assert of_search == BotBeliefs(player, of_search.opponent_range)
    assert complete >= 3


def test_beliefs_of_online_sampling():
    """The opponent plays the strategy learned so far; a query learns nothing."""
    tree = games.compiled("kuhn")
    bot = OOSBot(tree, 1, OOSConfig(iterations=5, move_ms=None))
    states = decisions_of(tree, 1)
    learned = tabular_policy(tree, [bot._solver.average_behaviour(p) for p in range(2)])
    for key, theirs, _ in bayes(tree.game, 1, [as_function(learned)] * 2):
        same(bot.beliefs(states[key]).opponent_range, theirs)


@slow
def test_the_public_tree_form_has_the_same_beliefs():
    """Private states are compared by name, and strategies differ by rounding."""
    name = "python_leduc_poker(stack0=13,stack1=13,max_raises=2,num_ranks=3)"
    config = ResolvingConfig("dcfr+", 6)
    game = loading.public_tree_game(name)
    tree = games.compiled("leduc13")
    for player in (0, 1):
        by_tree = ResolvingBot(tree, player, config)
        by_nodes = ResolvingBot(game, player, config)
        names = collections.defaultdict(dict)
        for state, *_ in enumerated(tree.game, [uniform_answer] * 2):
            node = game.betting.node_of(state)
            for p in range(2):
                number = game.reader.private_state(state, p)
                label = game.reader.name(p, int(game.betting.round[node]), number)
                names[node][state.information_state_string(p)] = label
        for state in decisions_of(tree, player).values():
            expected, beliefs = by_tree.beliefs(state), by_nodes.beliefs(state)
            label = names[game.betting.node_of(state)]
            for field in ("opponent_range", "player_range", "counterfactual_values"):
                wanted, numbers = getattr(expected, field), getattr(beliefs, field)
                assert (wanted is None) == (numbers is None)
                for key, number in (wanted or {}).items():
                    assert numbers[label[key]] == pytest.approx(number, abs=1e-6)
            assert beliefs.nash_conv == pytest.approx(expected.nash_conv, abs=1e-6)


def uniform_answer(state):
    legal = state.legal_actions()
    return dict.fromkeys(legal, 1 / len(legal))


def test_sampled_solves_have_no_range_of_the_opponent():
    config = ResolvingConfig("evr-mccfr(batch=8)", 5)
    tree = games.compiled("kuhn")
    bot = ResolvingBot(tree, 0, config)
    beliefs = bot.beliefs(next(iter(decisions_of(tree, 0).values())))
    assert beliefs.opponent_range is beliefs.nash_conv is None
    assert sum(beliefs.player_range.values()) == pytest.approx(1)


def test_values_have_the_units_of_the_game(tmp_path):
    """If each player of Kuhn poker gets one more chip, every value is higher by 1."""
    paths, numbers = [tmp_path / "same.efg", tmp_path / "more.efg"], []

    def more(match):
        return f"{{ {float(match[1]) + 1:g}, {float(match[2]) + 1:g} }}"

    text = re.sub(r"\{ (-?[\d.]+) (-?[\d.]+) \}", more, efg_text("kuhn_poker"))
    paths[0].write_text(efg_text("kuhn_poker"), "utf-8")
    paths[1].write_text(text, "utf-8")
    for path in paths:
        tree = spiel_cr.build_tree(path, observations=True)
        bot = ResolvingBot(tree, 0, CONFIG)
        beliefs = [bot.beliefs(s) for s in decisions_of(tree, 0).values()]
        values = [sorted((b.counterfactual_values or {}).values()) for b in beliefs]
        numbers.append([v for v in values if v])
    assert np.shape(numbers[0]) == (3, 1)
    np.testing.assert_allclose(np.add(numbers[0], 1), numbers[1], rtol=0, atol=1e-9)


def test_beliefs_are_rejected_if_the_other_player_acts():
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    with pytest.raises(ValueError, match="player 0 acts"):
        resolving("kuhn", 1).beliefs(state)


def test_repr_shows_only_differing_parts_of_labels():
    beliefs = BotBeliefs(0, {"[P: 0][Pot: 2]": 0.25, "[P: 1][Pot: 2]": 0.75}, None)
    text = repr(beliefs)
    assert "[P: 1]" in text and "0.7500" in text and "Pot" not in text
    assert "own range: not available" in text
    assert short_labels(["0pb", "2pb"]) == ["0pb", "2pb"]
