"""Players that search by update equivalence: beliefs, steps, time limits, errors."""

import functools
import math
from collections import defaultdict

import jax
import numpy as np
import pytest
from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from spiel_cr.games.histories import moves_along
from spiel_cr.games.phantom.game import phantom_game
from spiel_cr.players import load_bot, search_bot
from spiel_cr.players.search_bot import SearchBot, SearchBotConfig
from spiel_cr.policies.array_queries import rules_for
from spiel_cr.policies.beliefs.array_belief import ArrayBelief
from spiel_cr.policies.best_responses import value_bounds
from spiel_cr.policies.conversions import tabular_policy
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.queries import query
from spiel_cr.resolving import clock
from spiel_cr.resolving.leaves import rollout_values
from spiel_cr.resolving.leaves.rollout_values import Rollouts
from spiel_cr.resolving.update_equivalence import shrinkage
from tests.support import games
from tests.support.exact_search import search_everywhere
from tests.support.states import agree_on_scrambled_cards
from tests.support.strategies import random_behaviours

HEX = "dark_hex(num_rows=2,num_cols=2)"
GOOFSPIEL = "goofspiel(num_cards=4,imp_info=True,points_order=descending)"
DICE = "liars_dice(numdice=1,dice_sides=3)"


@functools.cache
def tree_of(name):
    return spiel_cr.build_tree(name, observations=True)


def blueprint_of(tree, seed=1):
    return tabular_policy(tree, random_behaviours(tree, seed))


def state_at(tree, history):
    return tree.state_at(history)


def first_takes_least(state):
    """Return whether player 0 always chose its lowest action."""
    return all(
        action == min(before.legal_actions())
        for before, action in moves_along(state.get_game(), state.history())
        if before.current_player() == 0
    )


@functools.cache
def phantom_rules():
    """Return a phantom game whose strings reveal turns, unlike worlds, and a policy."""
    worlds, random = phantom_game(HEX), np.random.default_rng(3)
    behaviours = []
    for side in worlds.sides:
        owner = side.decisions.owner[1:]
        odds = random.random(len(owner)) + 0.01
        behaviours.append(np.append(1.0, odds / np.bincount(owner, odds)[owner]))
    return worlds, FormPolicy(worlds, behaviours)


def decisions(state, observed=((), ()), odds=1.0, policy=None, own=0):
    """Yield each decision, the players' observations, and the reach without `own`."""
    if state.is_terminal():
        return
    player = state.current_player()
    yield state, observed, odds
    for action, p in policy.action_probabilities(state, player).items():
        child = state.child(action)
        after = list(observed)
        after[player] = (*observed[player], action, child.current_player() == player)
        reach = odds if player == own else odds * p
        yield from decisions(child, tuple(after), reach, policy, own)


def successes(worlds, world):
    path = []
    while world > 0:
        path.append(int(worlds.action[world]))
        world = int(worlds.parent[world])
    return tuple(path[::-1])


@pytest.mark.parametrize("player", [0, 1])
def test_beliefs_with_hidden_turns_equal_enumeration(player):
    worlds, policy = phantom_rules()
    rules = worlds.world_rules
    expected = defaultdict(lambda: defaultdict(float))
    states = {}
    root = worlds.game.new_initial_state()
    for state, observed, odds in decisions(root, policy=policy, own=player):
        if state.current_player() == player:
            # A move succeeded if the turn ended, whether or not players observe that.
            path, before = [], root.clone()
            for action in state.history():
                mover = before.current_player()
                before.apply_action(action)
                path += [action] * (before.current_player() != mover)
            expected[observed[player]][tuple(path)] += odds
            states[observed[player]] = state
    settings = {"most": 10**6, "seed": 0}
    belief = ArrayBelief(worlds.game, rules, player, policy, **settings)
    many = 0
    for known, histories in expected.items():
        got, found = defaultdict(float), belief.at(states[known])
        assert found.complete and found.weights.sum() == pytest.approx(1)
        for (world, *_), weight in zip(found.states, found.weights, strict=True):
            got[successes(worlds.worlds, world)] += weight
        total = sum(histories.values())
        assert math.exp(found.log_reach) == pytest.approx(total)
        assert set(got) == set(histories)
        for key, odds in histories.items():
            assert got[key] == pytest.approx(odds / total)
        many += len(histories) > 1
    assert many > 3


def test_sampled_beliefs_approximate_complete_ones():
    tree = tree_of(GOOFSPIEL)
    policy = blueprint_of(tree)
    rules = rules_for(tree.game, policy)
    own = tree.histories.player == 1
    largest = np.argsort(-np.bincount(tree.histories.infoset[own]))[:5]
    deep = [state_at(tree, h) for h in tree.infosets[1].history[largest]]
    whole = ArrayBelief(tree.game, rules, 1, policy, most=10**6, seed=0)
    sizes = []
    for state in deep:
        exact, mean = whole.at(state), defaultdict(float)
        runs, reach = 100, []
        for seed in range(runs):
            few = ArrayBelief(tree.game, rules, 1, policy, most=8, seed=seed)
            found = few.at(state)
            assert len(found.states) <= 8
            reach.append(math.exp(found.log_reach - exact.log_reach))
            for row, weight in zip(found.states, found.weights, strict=True):
                mean[row.tobytes()] += weight / runs
        for row, weight in zip(exact.states, exact.weights, strict=True):
            # Four standard errors of 100 means of numbers in [0, 1], and the bias of
            # weights that are normalised.
            assert mean[row.tobytes()] == pytest.approx(weight, abs=0.15)
        # The estimated probability of the observations is unbiased.
        assert abs(np.mean(reach) - 1) < 5 * np.std(reach) / np.sqrt(runs) + 1e-9
        sizes.append(len(exact.states))
    assert max(sizes) > 8


def test_beliefs_are_empty_at_states_the_opponent_cannot_reach():
    tree = tree_of(GOOFSPIEL)
    first = [np.ones(i.decisions.num_sequences) for i in tree.infosets]
    for player, infosets in enumerate(tree.infosets):
        first[player][1:] = 0
        first[player][infosets.decisions.first_sequence] = 1
    policy = tabular_policy(tree, first)
    rules = rules_for(tree.game, policy)
    belief = ArrayBelief(tree.game, rules, 1, policy, most=999, seed=0)
    led = 0
    for history in tree.infosets[1].history:
        state = state_at(tree, history)
        fits = first_takes_least(state)
        found = belief.at(state)
        led += fits
        # The opponent is deterministic, so it reaches states with probability 0 or 1.
        assert (len(found.states) > 0) == fits
        assert found.log_reach == (0 if fits else -math.inf)
    assert 3 < led < len(tree.infosets[1]) / 2


@pytest.mark.parametrize("rules", [rules_for, lambda game, policy: None])
def test_plays_its_blueprint_at_states_the_opponent_cannot_reach(monkeypatch, rules):
    tree = tree_of(GOOFSPIEL)
    made = blueprint_of(tree)
    never = random_behaviours(tree, 1)
    decisions = tree.infosets[0].decisions
    never[0][1:] = 0
    never[0][decisions.first_sequence] = 1
    policy = tabular_policy(tree, never)
    monkeypatch.setattr(search_bot, "rules_for", rules)
    bot = SearchBot(tree, 1, SearchBotConfig(policy, 50, eta=10.0))
    stayed = moved = 0
    for history in tree.infosets[1].history:
        state = state_at(tree, history)
        played = dict(bot.get_policy(state))
        same = played == pytest.approx(made.action_probabilities(state, 1), abs=1e-12)
        if not first_takes_least(state):
            assert same and not bot.step_scale
            stayed += 1
        elif len(played) > 1:
            moved += not same
    assert stayed > 50 and moved > 3


@pytest.mark.parametrize(
    ("name", "simulations", "zeros"),
    [
        ("kuhn_poker", 400, False),
        (DICE, 2000, False),
        (GOOFSPIEL, 2000, False),
        (GOOFSPIEL, 2000, True),
    ],
)
def test_step_approaches_the_exact_one_with_many_simulations(name, simulations, zeros):
    tree = tree_of(name)
    behaviours = random_behaviours(tree, 1, zeros=zeros)
    policy = tabular_policy(tree, behaviours)
    exact = tabular_policy(tree, search_everywhere(tree, behaviours, eta=2.0))
    config = SearchBotConfig(policy, simulations, eta=2.0)
    far, moved = [], []
    for player, infosets in enumerate(tree.infosets):
        bot = SearchBot(tree, player, config, seed=4)
        for history in infosets.history[:: max(1, len(infosets) // 25)]:
            state = state_at(tree, history)
            wanted = exact.action_probabilities(state)
            before = policy.action_probabilities(state)
            for action, got in bot.get_policy(state):
                far.append(abs(got - wanted[action]))
                moved.append(abs(before[action] - wanted[action]))
    # q in [-1, 1] from n simulations: a standard error of at most 1 / sqrt(n).
    assert np.mean(far) < 2 / np.sqrt(simulations)
    assert np.mean(far) < 0.3 * np.mean(moved)


def test_phantom_games_are_searched_by_their_worlds():
    worlds, policy = phantom_rules()
    exact = FormPolicy(worlds, search_everywhere(worlds, policy.behaviour))
    bots = [SearchBot(HEX, p, SearchBotConfig(policy, 3000), seed=0) for p in (0, 1)]
    root, far, visited = worlds.game.new_initial_state(), [], set()
    for state, observed, _ in decisions(root, policy=policy):
        player = state.current_player()
        if observed[player] in visited or len(observed[player]) > 4:
            continue
        visited.add(observed[player])
        wanted = exact.action_probabilities(state)
        got = bots[player].get_policy(state)
        far += [abs(p - wanted[action]) for action, p in got]
    assert np.mean(far) < 0.02 and len(far) > 50


def test_search_at_every_infoset_improves_a_poor_blueprint():
    tree = tree_of(GOOFSPIEL)
    policy = UniformRandomPolicy(tree.game)
    made = tabular_policy(tree, random_behaviours(tree, 0))
    for player, infosets in enumerate(tree.infosets):
        bot = SearchBot(tree, player, SearchBotConfig(policy, 300, eta=3.0), seed=1)
        for key, history in zip(infosets.keys, infosets.history, strict=True):
            row = made.action_probability_array[made.state_lookup[key]]
            row[:] = 0
            for action, probability in bot.get_policy(state_at(tree, history)):
                row[action] = probability
    gaps = []
    for given in (policy, made):
        low, high = value_bounds(tree.sequence_form, query(tree, given))
        gaps.append(high - low)
    assert gaps[1] < 0.75 * gaps[0]  # measured: 0.93 of 1.42


def test_a_step_shrinks_with_its_noise():
    random, blueprint = np.random.default_rng(0), np.array([0.5, 0.3, 0.2])

    def left(values, noise, count):
        drawn = values + noise * random.standard_normal((count, 3))
        drawn -= (drawn @ blueprint)[:, None]
        sums = np.stack([drawn.sum(axis=0), (drawn**2).sum(axis=0)])
        return shrinkage(blueprint, sums, count)

    values = np.array([0.1, -0.1, 0.3])
    values -= values @ blueprint
    assert left(values, 0.0, 50) == pytest.approx(1)
    assert left(values, 0.0, 3) == 0
    # V / (V + N), with N the sum of pi times the variance of a mean's advantage.
    spread = blueprint @ (1 - 2 * blueprint + blueprint @ blueprint)
    signal = blueprint @ values**2
    mean = np.mean([left(values, 1.0, 1000) for _ in range(400)])
    assert mean == pytest.approx(signal / (signal + spread / 1000), abs=0.01)
    # With few simulations less of the step remains, because its noise is uncertain.
    mean = np.mean([left(values, 1.0, 50) for _ in range(400)])
    assert 0.3 < mean < signal / (signal + spread / 50)
    # With pure noise, four fifths of the step are removed on average.
    assert np.mean([left(0 * values, 1.0, 50) for _ in range(400)]) < 0.25


def test_plays_its_blueprint_with_two_simulations():
    tree = tree_of(DICE)
    policy = blueprint_of(tree)
    bot = SearchBot(tree, 0, SearchBotConfig(policy, 2, eta=10.0))
    for history in tree.infosets[0].history[:5]:
        state = state_at(tree, history)
        assert dict(bot.get_policy(state)) == pytest.approx(
            policy.action_probabilities(state)
        )
    assert bot.statistics.iterations == 10


def test_policies_depend_on_the_seed_and_not_on_query_order():
    tree = tree_of(GOOFSPIEL)
    policy = blueprint_of(tree)
    states = [state_at(tree, h) for h in tree.infosets[0].history[:12]]

    def asked(seed, order):
        bot = SearchBot(tree, 0, SearchBotConfig(policy, 50, particles=4), seed=seed)
        found = {n: bot.get_policy(states[n]) for n in order}
        return [found[n] for n in range(len(states))]

    first = asked(5, range(12))
    assert asked(5, range(11, -1, -1)) == first
    assert asked(6, range(12)) != first
    moves = [
        SearchBot(tree, 0, SearchBotConfig(policy, 50), seed=9).step(states[0])
        for _ in range(2)
    ]
    assert moves[0] == moves[1]


@pytest.mark.parametrize("name", ["kuhn_poker", GOOFSPIEL])
def test_search_does_not_use_hidden_information(name):
    tree = tree_of(name)
    policy = blueprint_of(tree)
    for player in (0, 1):
        agree_on_scrambled_cards(
            tree,
            lambda player=player: SearchBot(tree, player, SearchBotConfig(policy, 30)),
            *(player, 12, 3),
        )


class FakeClock:
    """A clock that advances only when a test changes its time."""

    def __init__(self):
        self.seconds = 0.0

    def perf_counter(self):
        return self.seconds


@pytest.mark.parametrize(("move_ms", "each"), [(5, 5e-5), (50, 5e-5), (50, 3e-3)])
def test_time_limits_are_kept(monkeypatch, move_ms, each):
    now, play = FakeClock(), Rollouts.play

    def take_time(self, game, histories, player, group, deadline=None):
        now.seconds += 2e-4 + each * (group[-1] + 1)
        return play(self, game, histories, player, group, deadline)

    monkeypatch.setattr(Rollouts, "play", take_time)
    monkeypatch.setattr(rollout_values, "time", now)
    monkeypatch.setattr(search_bot, "time", now)
    monkeypatch.setattr(clock, "time", now)
    tree = tree_of(GOOFSPIEL)
    bot = SearchBot(tree, 0, SearchBotConfig(blueprint_of(tree), move_ms=move_ms))
    for history in tree.infosets[0].history[:3]:
        start = now.seconds
        bot.get_policy(state_at(tree, history))
        assert 0.5 * move_ms < 1000 * (now.seconds - start) < move_ms
    assert (bot.statistics.moves, bot.statistics.deadline_misses) == (3, 0)


@pytest.mark.parametrize(
    ("arrays", "each"),
    [
        *((False, each) for each in (1e-4, 8e-3, 14e-3)),
        *((True, each) for each in (1e-3, 12e-3, 13e-3, 20e-3)),
    ],
)
def test_rollouts_stop_in_time(monkeypatch, arrays, each):
    """Rollouts stop between histories, or between moves on arrays of states.

    A step needs values of all actions of a history.
    """
    now = FakeClock()

    class Slow(UniformRandomPolicy):
        def action_probabilities(self, state, player_id=None):
            now.seconds += each
            return super().action_probabilities(state, player_id)

    if arrays:

        def answer(self, rules, states, player):
            now.seconds += each
            return rules.legal_actions_mask(states).astype(float)

        Slow.array_probabilities = answer
    monkeypatch.setattr(rollout_values, "time", now)
    monkeypatch.setattr(search_bot, "time", now)
    monkeypatch.setattr(clock, "time", now)
    tree = tree_of(GOOFSPIEL)
    bot = SearchBot(tree, 0, SearchBotConfig(Slow(tree.game), move_ms=50))
    assert (bot._source is not None) == arrays
    quick = each < 5e-3
    histories = [*tree.infosets[0].history[:3]] * (1 if quick else 7)
    for history in histories:
        start = now.seconds
        bot.get_policy(state_at(tree, history))
        assert 1000 * (now.seconds - start) < 50
        assert (bot.step_scale > 0) == quick
    assert (bot.statistics.moves, bot.statistics.deadline_misses) == (len(histories), 0)
    assert (bot.statistics.iterations > 0) == quick


def test_search_resumes_after_one_slow_rollout(monkeypatch):
    """One query is slow, as on a busy machine, and later queries search again."""
    now, slow = FakeClock(), {"seconds": 1e-4}

    class Slow(UniformRandomPolicy):
        def action_probabilities(self, state, player_id=None):
            now.seconds += slow["seconds"]
            return super().action_probabilities(state, player_id)

    for module in (rollout_values, search_bot, clock):
        monkeypatch.setattr(module, "time", now)
    tree = tree_of(GOOFSPIEL)
    bot = SearchBot(tree, 0, SearchBotConfig(Slow(tree.game), move_ms=50))
    state = state_at(tree, tree.infosets[0].history[0])
    for number, seconds in enumerate((1e-4, 1e-4, 0.2, 1e-4, 1e-4)):
        slow["seconds"] = seconds
        before = bot.statistics.iterations
        bot.get_policy(state)
        assert (bot.statistics.iterations > before) == (number != 2)


def test_networks_are_not_compiled_during_timed_moves(tmp_path, monkeypatch):
    monkeypatch.setattr(search_bot, "_AT_ONCE", 1 << 9)
    path = str(tmp_path / "network.npz")
    stepped = spiel_cr.GameOptions("simulator")
    spiel_cr.solve(DICE, "mmd(hidden=4,episodes=16)", 1, options=stepped).save(path)
    tree, compiled_later = tree_of(DICE), []
    bot = SearchBot(tree, 0, SearchBotConfig(path, move_ms=100))

    def note(event, seconds, **_):
        if event.endswith("compile_duration"):
            compiled_later.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        for history in tree.infosets[0].history[:4]:
            bot.get_policy(state_at(tree, history))
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert bot.statistics.iterations > 0 and not compiled_later


def test_search_bots_from_strings(tmp_path):
    path = tmp_path / "dice.npz"
    spiel_cr.solve(DICE, "cfr+", 5).save(path)
    for text in (
        f"search(blueprint={path},simulations=50,eta=1)",
        "search(simulations=50,blueprint_iterations=1)",
        "search(init_ms=50)",
    ):
        made = load_bot(DICE, text, 0, seed=1)
        assert isinstance(made, SearchBot)
    played = spiel_cr.play_matches(
        DICE, [f"search(blueprint={path},simulations=20)", "uniform"], 4
    )
    assert np.isfinite(played.mean)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("search(eta=-1)", r"eta=-1.0 must"),
        ("search(eta=much)", "eta=much must be a number"),
        ("search(simulations=0)", "simulations=0 must be a whole number from 1"),
        ("search(move_ms=0)", "move_ms=0.0 must"),
        ("search(particles=0)", "particles=0 must be a whole number"),
        ("search(rollouts=3)", "unknown parameter 'rollouts'; search accepts"),
        ("search(blueprint=nowhere.npz)", "nowhere.npz"),
    ],
)
def test_rejects_invalid_strings(text, message):
    with pytest.raises((ValueError, OSError), match=message):
        load_bot("kuhn_poker", text, 0)


def test_rejects_invalid_settings_games_and_states():
    with pytest.raises(
        ValueError, match="needs a budget; set simulations, move_ms, or"
    ):
        SearchBotConfig()
    with pytest.raises(ValueError, match="must be an OpenSpiel policy or the path"):
        SearchBotConfig(blueprint=3, simulations=1)
    with pytest.raises(ValueError, match="players"):
        load_bot("kuhn_poker(players=3)", "search(simulations=1)", 0)
    tree = games.compiled("kuhn")
    bot = SearchBot(tree, 1, SearchBotConfig(UniformRandomPolicy(tree.game), 5))
    with pytest.raises(ValueError, match="no player acts .* the bot is player 1"):
        bot.step(tree.game.new_initial_state())
