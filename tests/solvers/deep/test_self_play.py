"""Self-play: advantage estimates, the loss and its gradient, and convergence."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spiel_cr.common import networks
from spiel_cr.common.networks import NEVER
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.opened import load_game, open_game
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.deep.infosets import ActingInfosets, TreeKnowledge
from spiel_cr.solvers.deep.network_policy import DeepPolicy
from spiel_cr.solvers.deep.self_play import self_play_network as network
from spiel_cr.solvers.deep.self_play.self_play_config import (
    SELF_PLAY_PRESETS,
    SelfPlayConfig,
)
from spiel_cr.solvers.deep.self_play.self_play_network import (
    Moves,
    Rows,
    UpdateRates,
)
from spiel_cr.solvers.deep.self_play.self_play_rollouts import (
    Episodes,
    NetworkDecisions,
    advantages,
    play,
)
from spiel_cr.solvers.deep.self_play.updates import SelfPlay, batch_size
from spiel_cr.solvers.deep.tensors import simulated_tensors

TABLE = None
UNIFORM = np.zeros((6, 2))
# Few decisions, and the same compiled function for several tests.
SMALL = (
    "mmd(network=table,schedule=1000,episodes=64,epochs=1,minibatches=2,"
    "learning_rate=0.01,mean_share=1)"
)


@pytest.fixture(scope="module")
def kuhn():
    return build_tree("kuhn_poker")


@jax.jit
def slope_of(parameters, magnet, rows, rates):
    """Compute the gradient of a table's loss."""
    return jax.grad(lambda own: network.loss(TABLE, own, magnet, rows, rates)[0])(
        parameters
    )


def rates_of(temperature, proximity):
    """Return rates of a loss that is not used for updates."""
    return UpdateRates(temperature, proximity, 0.0, 0.0, 0.0)


def softmax(logits):
    weights = np.exp(logits)
    return weights / weights.sum(axis=-1, keepdims=True)


def random_rows(random, count=40, width=4, states=5):
    """Draw rows of a table and the legal actions of their infosets."""
    legal = random.random((states, width)) < 0.6
    legal[:, 0] = True
    seen = random.integers(states, size=count).astype(np.int32)
    policy = softmax(np.where(legal, random.normal(size=(states, width)), -np.inf))
    before = np.where(legal, np.log(np.where(legal, policy, 1)), NEVER)[seen]
    gain = np.where(legal[seen], random.normal(size=(count, width)), 0)
    return Rows(seen, legal[seen], before, gain, np.ones(count)), legal


@pytest.mark.slow
def test_gradient_equals_finite_differences():
    random = np.random.default_rng(1)
    rows, legal = random_rows(random)
    rates = rates_of(0.3, 0.7)
    parameters = random.normal(size=(5, 4)) / 5
    parameters += np.where(legal, 0, 50)  # logits of illegal actions are ignored
    magnet = jnp.asarray(random.normal(size=(5, 4)))

    def total(parameters):
        return network.loss(TABLE, parameters, magnet, rows, rates)[0]

    slope = np.asarray(slope_of(parameters, magnet, rows, rates))
    value, step = jax.jit(jax.vmap(total)), 1e-6
    apart = step * np.eye(20).reshape(-1, 5, 4)
    numeric = np.asarray(value(parameters + apart) - value(parameters - apart))
    # Central differences err by step^2, and by rounding over the step.
    np.testing.assert_allclose(
        slope.ravel(), numeric / (2 * step), rtol=1e-6, atol=1e-8
    )
    assert not slope[~legal].any()
    assert slope[legal & (legal.sum(axis=1, keepdims=True) > 1)].all()


def test_loss_equals_a_worked_example():
    """Two rows are computed by hand; the third row is padding."""
    policy, old = np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.25, 0.25])
    rows = Rows(
        seen=np.zeros(3, np.int32),
        legal=np.ones((3, 3), bool),
        before=np.log(np.tile(old, (3, 1))),
        advantage=np.array([[1.0, 4.0, 0.0], [0.0, 0.0, -2.0], [100.0, 0.0, 0.0]]),
        weight=np.array([1.0, 1.0, 0.0]),
    )
    parameters = jnp.asarray(np.log(policy)[None])
    total, parts = jax.jit(
        lambda own: network.loss(TABLE, own, np.zeros((1, 3)), rows, rates_of(0.5, 2.0))
    )(parameters)
    gain = (0.2 * 1.0 + 0.5 * 4.0 + 0.3 * -2.0) / 2
    magnet = float(policy @ np.log(3 * policy))
    proximity = float(policy @ np.log(policy / old))
    np.testing.assert_allclose(parts, [total, gain, magnet, proximity], rtol=1e-12)
    wanted = -gain + 0.5 * magnet + 2.0 * proximity
    assert float(total) == pytest.approx(wanted, rel=1e-12)


def test_minimum_of_the_loss_is_the_magnetic_mirror_descent_step():
    """The closed form is equation 5 of Sokota et al. (2022)."""
    old = np.array([0.5, 0.2, 0.2, 0.1])
    magnet = np.array([0.1, 0.2, 0.3, 0.4])
    gains, alpha, inverse_eta = np.array([1.0, -1.0, 0.5, 2.0]), 0.3, 0.8
    closed = (old * magnet ** (alpha / inverse_eta) * np.exp(gains / inverse_eta)) ** (
        1 / (1 + alpha / inverse_eta)
    )
    rows = Rows(
        seen=np.zeros(1, np.int32),
        legal=np.ones((1, 4), bool),
        before=np.log(old)[None],
        advantage=gains[None],
        weight=np.ones(1),
    )

    def slope(policy):
        parameters, centre = (
            jnp.asarray(np.log(one)[None]) for one in (policy, magnet)
        )
        return slope_of(parameters, centre, rows, rates_of(alpha, inverse_eta))

    assert abs(slope(closed / closed.sum())).max() < 1e-12
    assert abs(slope(old)).max() > 0.1


def test_illegal_actions_do_not_affect_the_policy():
    legal = np.array([[True, False, True], [False, True, False]])
    parameters = np.array([[1.0, 50.0, 2.0], [50.0, 1.0, 50.0]], np.float32)
    seen = np.array([0, 1, 0], np.int32)
    log_policy = network.evaluate(TABLE, parameters, seen, legal[seen])
    first = np.log(softmax(np.array([1.0, 2.0])))
    wanted = [[first[0], NEVER, first[1]], [NEVER, 0, NEVER]]
    np.testing.assert_allclose(log_policy, np.array(wanted)[seen], rtol=1e-6)


def enumerate_matches(tree, behaviour):
    """Enumerate all matches of a game tree, with the probability of each.

    Args:
      tree: The game tree.
      behaviour: Probabilities of each player's actions, float64 [I, A].
    """
    histories = tree.histories
    knowledge = TreeKnowledge(tree)
    ends = np.flatnonzero(histories.player == TERMINAL)
    likely, found = histories.chance[ends].copy(), []
    for match, end in enumerate(ends):
        below = end
        while (above := histories.parent[below]) >= 0:
            player = histories.player[above]
            if player >= 0:
                infoset, action = histories.infoset[above], histories.action[below]
                likely[match] *= behaviour[player][infoset, action]
                depth = len(histories.actions_to(above))
                found.append((depth, match, player, infoset, action, above))
            below = above
    found.sort()
    depth, match, player, infoset, action, history = np.array(found).T
    where = list(zip(player, infoset, strict=True))
    legal = np.array([knowledge.legal[p][i] for p, i in where])
    log_policy = np.log([behaviour[p][i] for p, i in where])
    starts = np.searchsorted(depth, [*np.unique(depth), depth[-1] + 1])
    answer = NetworkDecisions(infoset, legal, log_policy)
    utility = histories.utility[ends]
    return Episodes(player, match, answer, action, starts, utility, history), likely


def test_expected_gradient_equals_gradient_of_expected_utility(kuhn):
    """All matches of Kuhn poker are enumerated, with random values of the critic."""
    random = np.random.default_rng(2)
    logits = [random.normal(size=(6, 2)) for _ in range(2)]
    behaviour = [softmax(own) for own in logits]
    episodes, likely = enumerate_matches(kuhn, behaviour)
    assert likely.sum() == pytest.approx(1, abs=1e-12) and len(likely) == 30
    said = random.normal(size=(len(kuhn.histories), 2))[episodes.joint]
    gain, _ = advantages(episodes, said, 1.0, 2.0)
    knowledge = TreeKnowledge(kuhn)
    for player, sign in ((0, 1), (1, -1)):
        mine = episodes.player == player
        answer = episodes.answer
        weight = likely[episodes.match[mine]]
        rows = Rows(
            *(answer.seen[mine], answer.legal[mine], answer.log_policy[mine]),
            *(gain[mine], weight),
        )
        parameters = jnp.asarray(logits[player])
        slope = slope_of(parameters, UNIFORM, rows, rates_of(0.0, 0.0))
        # The loss is a mean over rows, of which a match has one or two.
        slope = -np.asarray(slope) * max(weight.sum(), 1)

        def utility(own, player=player, sign=sign):
            played = list(behaviour)
            played[player] = softmax(own)
            reach = [
                reach_from_behaviour(
                    kuhn.sequence_form.decisions[p], knowledge.behaviour(p, played[p])
                )
                for p in range(2)
            ]
            return (
                sign
                * best_responses.expected_value(kuhn.sequence_form, tuple(reach))
                / 2.0
            )

        numeric = np.zeros((6, 2))
        for place in np.ndindex(6, 2):
            apart = np.zeros((6, 2))
            apart[place] = 1e-6
            rise = utility(logits[player] + apart) - utility(logits[player] - apart)
            numeric[place] = rise / 2e-6
        np.testing.assert_allclose(slope, numeric, atol=1e-8)
        assert abs(numeric).max() > 0.01


class RandomPolicies:
    """Random policies in place of a network."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def __call__(self, positions, at, player):
        legal = positions.states[at].legal
        policy = softmax(np.where(legal, self.random.normal(size=legal.shape), -np.inf))
        log_policy = np.where(legal, np.log(np.where(legal, policy, 1)), NEVER)
        return NetworkDecisions(at[:, None], legal, log_policy)


def placeholder_features(positions, at):
    """Return placeholder features of the joint state."""
    return at[:, None]


@pytest.mark.parametrize("trace", [0.0, 0.7, 1.0])
def test_advantages_equal_the_backward_recursion(trace):
    """In phantom tic-tac-toe a player moves again after a rejected move."""
    source = RulesSource(load_game("phantom_ttt"))
    random = np.random.default_rng(3)
    episodes = play(source, RandomPolicies(3), 30, random, joint=placeholder_features)
    legal = episodes.answer.legal
    values = random.normal(size=legal.shape)
    gain, target = advantages(episodes, values, trace, 2.0)
    policy = np.where(legal, np.exp(episodes.answer.log_policy), 0)
    again = 0
    for match in range(30):
        worth = episodes.utility[match] / 2.0
        rows = np.flatnonzero(episodes.match == match)
        again += np.count_nonzero(np.diff(episodes.player[rows]) == 0)
        for row in rows[::-1]:
            action = episodes.action[row]
            mean = policy[row][legal[row]] @ values[row][legal[row]]
            wrong = worth - values[row, action]
            wanted = np.where(legal[row], values[row] - mean, 0)
            wanted[action] += wrong / policy[row, action]
            sign = (1, -1)[episodes.player[row]]
            np.testing.assert_allclose(gain[row], sign * wanted, atol=1e-12)
            assert target[row] == pytest.approx(worth, abs=1e-12)
            worth = mean + trace * wrong
    assert again > 10 and set(episodes.utility) == {-1, 0, 1}


def test_critic_learns_the_targets_of_actions_that_were_taken():
    """Padding, which has other targets, is ignored."""
    random = np.random.default_rng(7)
    joint = random.normal(size=(24, 5)).astype(np.float32)
    action = random.integers(3, size=24).astype(np.int32)
    target = np.sin(joint.sum(axis=1) + action)
    weight = (np.arange(24) < 20).astype(np.float32)
    told = np.where(weight > 0, target, 50).astype(np.float32)
    begun = network.begin(networks.make((5, 64, 3), 1), 1.0)
    batches = np.tile(np.arange(24, dtype=np.int32), (1500, 1))
    moves = Moves(joint, action, told, weight)
    critic, errors = network.advance_critic(
        *(TABLE, begun, moves, batches, np.float32(0.01)), norm=1.0
    )
    assert errors[0] > 0.1 and errors[-1] < 1e-3
    said = networks.evaluate(critic.parameters, joint)[np.arange(24), action]
    np.testing.assert_allclose(said[:20], target[:20], atol=0.1)
    assert abs(said[20:]).max() < 10


@pytest.mark.parametrize("settings", ["network=table", "hidden=16,layers=1"])
def test_critic_converges_to_the_values_of_the_policies(kuhn, settings):
    """Values are player 0's in the solver's unit; the policies stay nearly constant."""
    solver = SelfPlay(
        kuhn, f"mmd({settings},episodes=512,learning_rate=1e-12,critic_rate=0.02)"
    )
    solver.run(40)
    histories, knowledge = kuhn.histories, solver.knowledge
    played = [
        solver.strategy(player, ActingInfosets(np.arange(6), knowledge.legal[player]))
        for player in range(2)
    ]
    worth = np.where(histories.player == TERMINAL, histories.utility, 0.0)
    values = np.zeros((len(histories), 2))
    for below in range(len(histories) - 1, 0, -1):
        above = histories.parent[below]
        player, action = histories.player[above], histories.action[below]
        if player >= 0:
            values[above, action] = worth[below]
            worth[above] += (
                played[player][histories.infoset[above], action] * worth[below]
            )
    decisions = np.flatnonzero(histories.player >= 0)
    said = network.evaluate(
        solver._features[2], solver._critic.parameters, np.arange(len(decisions))
    )
    unit = float(solver.arrays()["unit"])
    np.testing.assert_allclose(said * unit, values[decisions], atol=0.25)
    assert np.corrcoef(said.ravel(), values[decisions].ravel())[0, 1] > 0.99


def test_updates_use_the_rates_of_the_schedule(kuhn, monkeypatch):
    told, advance = [], network.advance

    def listen(*arguments, **settings):
        told.append(arguments[-1])
        return advance(*arguments, **settings)

    monkeypatch.setattr(network, "advance", listen)
    solver = SelfPlay(kuhn, SMALL, seed=1)
    solver.run_to(500)
    before = solver.decisions
    del told[:]
    solver.run(1)
    config = solver.config
    mean = 1 - before / solver.decisions
    wanted = (*config.weights_after(before), config.rate_after(before), 0.0, mean)
    np.testing.assert_allclose(told, [wanted] * 2, rtol=1e-6)
    assert wanted[0] < 0.15 and wanted[1] > 4.0 and before >= 500


def test_learns_games_where_a_player_has_no_decisions(tmp_path):
    """The game has no tensors either, because tables do not need them."""
    (tmp_path / "coin.efg").write_text(
        'EFG 2 R "coin" { "a" "b" } ""\nc "" 1 "" { "l" 1/2 "r" 1/2 } 0\n'
        'p "" 2 1 "" { "x" "y" } 0\nt "" 1 "" { 1.0 -1.0 }\nt "" 2 "" { -1.0 1.0 }\n'
        'p "" 2 2 "" { "x" "y" } 0\nt "" 3 "" { 0.0 0.0 }\nt "" 4 "" { 2.0 -2.0 }\n'
    )
    tree = build_tree(f"efg_game(filename={tmp_path}/coin.efg)")
    solver = SelfPlay(tree, SMALL.replace("1000", "6400").replace("0.01", "0.05"))
    solver.run_to(6400)
    policy = solver.strategy(1, ActingInfosets(np.arange(2), np.ones((2, 2), bool)))
    assert policy[0, 1] > 0.9 and policy[1, 0] > 0.9
    # Player 0 has no decisions, and cannot gain.
    assert 0 <= solver.nash_conv() < 0.2


def test_unit_of_values_is_the_rms_of_the_first_utilities(kuhn):
    solver = SelfPlay(kuhn, SMALL, seed=1)
    random = np.random.default_rng([1, 0])
    first = play(
        *(solver.source, solver, 64, random),
        joint=placeholder_features,
        stratified=True,
    )
    solver.run(2)
    unit = np.sqrt(np.mean(first.utility**2))
    assert solver.arrays()["unit"] == unit and 1 < unit < 2


def test_matches_of_self_play_follow_the_rules_of_the_game():
    """OpenSpiel's states have the same legal actions, players and utilities."""
    game = load_game("phantom_ttt")
    random = np.random.default_rng(4)
    episodes = play(
        RulesSource(game), RandomPolicies(4), 20, random, joint=placeholder_features
    )
    for match in range(20):
        state = game.new_initial_state()
        for row in np.flatnonzero(episodes.match == match):
            assert state.current_player() == episodes.player[row]
            legal = np.flatnonzero(episodes.answer.legal[row])
            assert legal.tolist() == state.legal_actions()
            state.apply_action(int(episodes.action[row]))
        assert state.is_terminal()
        assert state.returns()[0] == episodes.utility[match]


@pytest.mark.slow
def test_actions_are_sampled_with_their_probabilities(kuhn):
    """The chi-squared value of player 0's first bets exceeds 30 with chance 1e-5."""
    solver = SelfPlay(kuhn, SMALL)
    table = np.array(np.random.default_rng(5).normal(size=(6, 2)), np.float32)
    solver._learners[0] = solver._learners[0]._replace(parameters=jnp.asarray(table))
    random = np.random.default_rng(6)
    episodes = play(solver.source, solver, 20_000, random, joint=placeholder_features)
    seen = ActingInfosets(np.arange(6), solver.knowledge.legal[0])
    policy = solver.strategy(0, seen)
    np.testing.assert_allclose(policy, softmax(table), atol=1e-6)
    total = 0.0
    for infoset in range(3):
        here = (episodes.player == 0) & (episodes.answer.seen == infoset)
        bets, count = episodes.action[here].sum(), here.sum()
        expected = count * policy[infoset, 1]
        total += (bets - expected) ** 2 / (expected * policy[infoset, 0])
    assert total < 30


def test_same_seed_is_bitwise_reproducible_and_resumes(kuhn):
    def after(seed):
        solver = SelfPlay(kuhn, SMALL, seed=seed)
        solver.run_to(400)
        return solver

    first, second, third = after(1), after(1), after(2)
    assert 400 <= first.decisions < 700 and first.iterations == second.iterations > 1
    for one, other in zip(
        first.average_behaviours(), second.average_behaviours(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert (first.average_behaviours()[0] != third.average_behaviours()[0]).any()
    # A new solver resumes from the state of the first.
    other = SelfPlay(kuhn, SMALL, seed=1)
    other.restore(first.arrays())
    for solver in (first, other):
        solver.run_to(800)
    assert first.decisions == other.decisions
    for name, one in first.arrays().items():
        np.testing.assert_array_equal(one, other.arrays()[name], err_msg=name)
    with pytest.raises(ValueError, match="its array learner0"):
        SelfPlay(kuhn, "mmd(hidden=3)").restore(first.arrays())


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("episodes", None, "its array episodes does not fit"),
        ("episodes", np.array(-1), "its array episodes contains invalid"),
        ("episodes", np.array([2]), "its array episodes does not fit"),
        ("episodes", np.array(1.5), "its array episodes does not fit"),
        ("unit", None, "its array unit does not fit"),
        ("unit", np.array(-1.0), "its array unit contains invalid"),
        ("unit", np.array(np.inf), "its array unit contains invalid"),
        ("unit", np.array(1), "its array unit does not fit"),
    ],
)
def test_restore_rejects_invalid_arrays(kuhn, name, wrong, said):
    solver = SelfPlay(kuhn, SMALL, seed=1)
    arrays = solver.arrays()
    del arrays[name]
    if wrong is not None:
        arrays[name] = wrong
    with pytest.raises(ValueError, match=said):
        solver.restore(arrays)


def test_initial_weights_depend_on_all_bits_of_the_seed(kuhn):
    seeds = (1, 2, 1 + 2**31, 2**32 - 1)
    small = "mmd(hidden=4,layers=1)"
    found = [SelfPlay(kuhn, small, seed=seed).arrays() for seed in seeds]
    weights = [np.concatenate([x.ravel() for x in own.values()]) for own in found]
    for i, j in itertools.combinations(range(4), 2):
        assert (weights[i] != weights[j]).any()


@pytest.mark.slow
def test_table_converges_on_kuhn_poker(kuhn):
    """Uniform play has a NashConv of 0.917."""
    solver = SelfPlay(kuhn, "mmd(network=table,episodes=512,schedule=2e6)")
    solver.run_to(2_000_000)
    assert solver.nash_conv() < 0.05


@pytest.mark.slow
def test_mirror_descent_converges_on_leduc_poker():
    """Uniform play has a NashConv of 4.75."""
    solver = SelfPlay(build_tree("leduc_poker"), "mmd(schedule=5e6)")
    solver.run_to(5_000_000)
    assert solver.nash_conv() < 0.45


@pytest.mark.slow
def test_networks_halve_nash_conv_on_kuhn_poker(kuhn):
    solver = SelfPlay(kuhn, "mmd(hidden=32,schedule=1e5,episodes=512)")
    before = solver.nash_conv()
    solver.run_to(100_000)
    assert solver.nash_conv() < before / 2


@pytest.mark.slow
def test_average_network_policy_equals_average_behaviour(kuhn):
    solver = SelfPlay(kuhn, "mmd(hidden=3,episodes=64,epochs=1,mean_share=1)")
    solver.run_to(400)
    policy = DeepPolicy(kuhn.game, solver.average())
    for player, own in enumerate(kuhn.infosets):
        for infoset in range(len(own)):
            state = kuhn.state_at(own.history[infoset])
            first = own.decisions.first_sequence[infoset]
            wanted = solver.average_behaviours()[player][first : first + 2]
            found = [policy.action_probabilities(state)[a] for a in (0, 1)]
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
            assert abs(wanted[0] - 0.5) > 1e-6


def test_networks_use_the_selected_features(kuhn):
    """Kuhn poker's observations are shorter than its information states."""
    solver = SelfPlay(kuhn, "mmd(hidden=3,layers=1,features=observation)")
    average = solver.average()
    assert average.features == "observation"
    assert average.shape.features == kuhn.game.observation_tensor_size() == 7
    policy, state = (
        DeepPolicy(kuhn.game, average),
        kuhn.state_at(kuhn.infosets[1].history[2]),
    )
    first = kuhn.infosets[1].decisions.first_sequence[2]
    wanted = solver.average_behaviours()[1][first : first + 2]
    found = [policy.action_probabilities(state)[a] for a in (0, 1)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_stratified_draws_have_less_variance(kuhn):
    """The number of bets at an infoset differs from its expectation by at most one."""
    solver = SelfPlay(kuhn, SMALL)
    table = np.array(np.random.default_rng(5).normal(size=(6, 2)), np.float32)
    solver._learners[0] = solver._learners[0]._replace(parameters=jnp.asarray(table))
    random = np.random.default_rng(6)
    episodes = play(
        *(solver.source, solver, 600, random),
        joint=placeholder_features,
        stratified=True,
    )
    for infoset, odds in enumerate(softmax(table)[:, 1]):
        here = (episodes.player == 0) & (episodes.answer.seen == infoset)
        assert abs(episodes.action[here].sum() - here.sum() * odds) <= 1


@pytest.mark.slow
def test_simulated_games_train_on_tensors():
    """This works with batched rules and with OpenSpiel's states."""
    for use_rules in (True, False):
        game = load_game("liars_dice(numdice=1,dice_sides=3)")
        tensors = simulated_tensors(open_game(game), use_rules=use_rules)
        solver, knowledge = (
            SelfPlay(tensors, "mmd(episodes=64,hidden=8)"),
            tensors.knowledge,
        )
        random = np.random.default_rng(1)
        rows = play(
            tensors.source, solver, 50, random, joint=placeholder_features
        ).answer
        assert rows.seen.shape[1] == knowledge.num_features == rows.legal.shape[1] + 5
        solver.run(1)
        assert 64 < solver.decisions < 1000
        with pytest.raises(ValueError, match="without a game tree"):
            solver.average_behaviours()


def test_batch_sizes_are_few_and_barely_larger_than_needed():
    sizes = {count: batch_size(count) for count in range(2000)}
    assert all(size == 64 for count, size in sizes.items() if count <= 64)
    assert all(n <= size <= 1.125 * n + 1 for n, size in sizes.items() if n > 64)
    assert len(set(sizes.values())) <= 1 + 5 * 8 and batch_size(1024) == 1024


@pytest.mark.parametrize("share", [0, 0.25])
def test_result_averages_parameters_and_play_uses_the_last(kuhn, share):
    """Parameters are averaged in float64; the last iterate plays the matches."""
    settings = f"mmd(network=table,episodes=64,mean_share={share})"
    solver = SelfPlay(kuhn, settings, seed=3)
    tables, made = [], []
    for _ in range(12):
        solver.run(1)
        tables.append([np.asarray(own.parameters, float) for own in solver._learners])
        made.append(solver.decisions)
    weights = np.zeros(12)
    for number, count in enumerate(np.diff(made, prepend=0)):
        newest = min(1, count / (share * made[number])) if share else 1
        weights *= 1 - newest
        weights[number] = newest
    for player, result in enumerate(solver.average_behaviours()):
        mean = softmax(np.tensordot(weights, [own[player] for own in tables], 1))
        last = softmax(tables[-1][player])
        np.testing.assert_allclose(result[1:], mean.ravel(), atol=1e-6)
        current = solver.current_behaviour(player)
        np.testing.assert_allclose(current[1:], last.ravel(), atol=1e-6)
        seen = solver.knowledge.everywhere(player)
        np.testing.assert_allclose(np.exp(solver.ask(seen, player)), last, atol=1e-6)
        assert (abs(mean - last).max() > 0.01) == (share > 0)


def test_learning_rate_decays_to_zero():
    config = SelfPlayConfig("x", schedule=10, learning_rate=2.0)
    assert [config.rate_after(done) for done in (0, 5, 10, 20)] == [2, 1, 0, 0]


def test_step_size_falls_with_the_temperature():
    config = SelfPlayConfig(
        "x", schedule=10, temperature=0.5, cooling=0.01, proximity=2.0
    )
    found = [config.weights_after(done) for done in (0, 5, 10, 20)]
    wanted = [(0.5, 2), (0.05, 20), (0.005, 200), (0.005, 200)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_finds_the_preset_and_its_settings():
    assert set(SELF_PLAY_PRESETS) == {"mmd"}
    config = find("mmd(trace=1,hidden=7)").config
    assert (config.trace, config.hidden) == (1.0, 7)
    assert config.epochs == SELF_PLAY_PRESETS["mmd"].epochs


def test_rejects_tables_for_simulated_games():
    with pytest.raises(ValueError, match="network=table"):
        SelfPlay(simulated_tensors(open_game("phantom_ttt")), SMALL)
