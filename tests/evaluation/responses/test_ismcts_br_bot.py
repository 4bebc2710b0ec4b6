"""ISMCTS-BR on states: quality of responses, node limit, and hidden information."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policy_lib
from open_spiel.python.algorithms import evaluate_bots

from spiel_cr.evaluation.best_response import respond
from spiel_cr.evaluation.opponent import open_opponent
from spiel_cr.evaluation.response_config import HISTORIES, ResponseConfig, SearchConfig
from spiel_cr.evaluation.responses import belief_search, ismcts_bot
from spiel_cr.evaluation.responses.ismcts_bot import ISMCTSBRBot, Predictor
from spiel_cr.evaluation.responses.local_best_response import LBRBot
from spiel_cr.evaluation.result import from_same_deals
from spiel_cr.games.opening.opened import load_game
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.fixed_policies import FixedPolicy
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from tests.support import games, reference
from tests.support.states import after


def fixed(game, seed):
    """Return a random policy that is far from uniform."""
    table = policy_lib.TabularPolicy(game)
    random = np.random.default_rng(seed)
    weights = table.legal_actions_mask * random.random(table.legal_actions_mask.shape)
    weights **= 3
    table.action_probability_array[:] = weights / weights.sum(axis=1, keepdims=True)
    return table


def response_value(tree, opponent, bot, player):
    """Return the exact value of the bot's policy at all information states."""
    policy = reference.from_openspiel(tree, opponent)
    for key, histories in tree.infosets.items():
        if key[0] == player:
            state = after(tree.game, *tree.nodes[histories[0]].path)
            bot.restart_at(state)
            policy[key] = dict(bot.get_policy(state))
    return (1 - 2 * player) * reference.value_at(tree, policy)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    ("string", "simulations", "share"),
    [
        ("kuhn_poker", 1000, 0.999),
        (games.goofspiel(3, "descending"), 300, 0.97),
        ("python_leduc_poker", 400, 0.95),
        # The least important decision is worth 5e-9 of the possible gain.
        pytest.param("python_leduc_poker", 8000, 1 - 1e-8, marks=pytest.mark.slow),
    ],
)
def test_finds_nearly_best_responses(string, simulations, share, player):
    """The bot wins at least a share of the best response's gain over the policy."""
    game = pyspiel.load_game(string)
    tree = reference.Tree(game)
    opponent = fixed(game, 2)
    config = SearchConfig(simulations=simulations)
    bot = ISMCTSBRBot(game, player, opponent, config, seed=1)
    found = response_value(tree, opponent, bot, player)
    asked = reference.from_openspiel(tree, opponent)
    best = reference.best_response_value(tree, asked, player)
    own = (1 - 2 * player) * reference.value_at(tree, asked)
    assert best > own + 0.1
    assert own + share * (best - own) <= found <= best + 1e-9


def leduc_bot(player, seed=0, **settings):
    """A search in Leduc poker against uniform play."""
    game = pyspiel.load_game("leduc_poker")
    opponent = policy_lib.UniformRandomPolicy(game)
    return ISMCTSBRBot(game, player, opponent, SearchConfig(**settings), seed=seed)


class Honest(policy_lib.Policy):
    """A policy of Kuhn poker that bets always and only with the best card."""

    def action_probabilities(self, state, player_id=None):
        best = state.information_state_string().startswith("2")
        return {0: float(not best), 1: float(best)}


def test_search_uses_the_posterior():
    """Calling this bet loses, but would not if all cards were equally likely."""
    game = pyspiel.load_game("kuhn_poker")
    honest = Honest(game, [0, 1])
    state = after(game, 2, 1, 1)
    blind = StatePosterior(game, 1, policy_lib.UniformRandomPolicy(game))
    config = SearchConfig(histories="drawn", simulations=2000)
    for belief, call, answer in ((None, -2, 0), (blind, 0, 1)):
        bot = ISMCTSBRBot(game, 1, honest, config, belief=belief)
        found = bot.search(state)
        assert found.actions == [0, 1] and sum(found.visits) == 2000
        assert found.values[0] == -1
        # A call loses 2 to the best card and wins 2 from the lowest one; 1700 or more
        # simulations of it, standard error 0.05.
        assert found.values[1] == pytest.approx(call, abs=0.25)
        assert bot.step(state) == answer


def test_puct_by_hand():
    node = ismcts_bot.Node([3, 5, 9], [0.5, 0.25, 0.25])
    # Nothing visited: the prior decides.
    assert node.choose(1.0) == 0
    node.add(0, 2.0)
    node.add(0, 0.0)
    node.add(1, 3.0)
    # Means 1, 3 and, for the one not visited, 5/3; sqrt(3 + 1) = 2.
    # c = 1: 1 + 2/6, 3 + 2/8, 5/3 + 2/4; c = 10: 1 + 20/6, 3 + 20/8, 5/3 + 20/4.
    assert node.choose(1.0) == 1
    assert node.choose(10.0) == 2
    assert (node.reached, node.total, node.visits) == (3, 5.0, [2, 1, 0])


def test_values_by_hand():
    """Two decisions, one after the other; the first may also end the game."""
    first, second = (ismcts_bot.Node([0, 1], [0.5, 0.5]) for _ in range(2))
    seen = []
    for path, value in (
        ([(first, 0)], 2.0),
        ([(first, 0), (second, 0)], 4.0),
        ([(first, 0), (second, 1)], -10.0),
        ([(first, 0), (second, 1)], -2.0),
        # Starts at the second decision, so the first one is not updated.
        ([(second, 0)], 6.0),
        ([(first, 0), (second, 0)], 5.0),
    ):
        ismcts_bot.back_up(path, None, value)
        seen.append(first.totals[0])
    assert (first.visits, second.visits) == ([5, 0], [3, 2])
    assert second.totals == [15.0, -12.0]
    # The second decision has values 4, 4 (a tie, kept), -6, -6 (kept), and 5.
    assert seen == [2, 2 + 4, 2 + 2 * 4, 2 - 3 * 6, 2 - 3 * 6, 2 + 4 * 5]


def test_predicted_values_are_replaced_by_simulated_ones():
    root, leaf = (ismcts_bot.Node([0, 1], [0.5, 0.5]) for _ in range(2))
    ismcts_bot.back_up([(root, 1)], leaf, 7.0)
    assert root.totals == [0, 7] and leaf.visits == [0, 0]
    ismcts_bot.back_up([(root, 1), (leaf, 0)], None, 3.0)
    assert root.totals == [0, 2 * 3] and root.visits == [0, 2]


def test_values_equal_those_of_the_most_visited_actions(monkeypatch):
    """Incremental values equal those that all simulations together give at the end."""
    game = pyspiel.load_game("leduc_poker")
    ended, parents = Counter(), {}
    plain = ismcts_bot.back_up

    def record(path, leaf, value):
        plain(path, leaf, value)
        assert leaf is None
        node, place = path[-1]
        ended[id(node), place] += value
        for (above, by), (below, _) in itertools.pairwise(path):
            counts = parents.setdefault(id(below), (below, above, by, []))
            assert counts[1:3] == (above, by)
            counts[3].append(1)

    monkeypatch.setattr(ismcts_bot, "back_up", record)
    bot = ISMCTSBRBot(
        game, 0, fixed(game, 2), SearchConfig(histories="drawn", simulations=2000)
    )
    bot.search(after(game, 0, 2))
    for node, above, by, arrived in parents.values():
        ended[id(above), by] += len(arrived) * node.value
        assert node.visits[node.most] == max(node.visits)
        assert node.value == node.totals[node.most] / node.visits[node.most]
    assert len(parents) > 30
    for node in bot._nodes.values():
        for place, total in enumerate(node.totals):
            assert total == pytest.approx(ended[id(node), place], abs=1e-9)


def test_search_does_not_use_hidden_information():
    game = pyspiel.load_game("leduc_poker")
    tree = reference.Tree(game)
    opponent = fixed(game, 2)
    config = SearchConfig(simulations=20)
    for player in (0, 1):
        bot = ISMCTSBRBot(game, player, opponent, config)
        for (owner, _), histories in list(tree.infosets.items())[::40]:
            if owner == player:
                found = []
                for history in (histories[0], histories[-1]):
                    bot.restart()
                    found.append(bot.search(after(game, *tree.nodes[history].path)))
                assert found[0] == found[1]


def test_search_depends_on_the_seed_and_not_on_earlier_matches():
    def search(seed, before=()):
        bot = leduc_bot(1, seed, simulations=50)
        for path in before:
            bot.search(after("leduc_poker", *path))
            bot.restart()
        return bot.search(after("leduc_poker", 0, 2, 2))

    assert search(0) == search(0) == search(0, [(1, 2, 1), (5, 0, 2)])
    assert search(0) != search(1)


def test_number_of_nodes_is_limited():
    state, sizes = after("leduc_poker", 0, 2, 2), {}
    for most in (7, 1000):
        bot = leduc_bot(1, histories="drawn", simulations=300, max_nodes=most)
        bot.search(state)
        sizes[most] = bot.num_nodes
        assert sum(bot.search(state).visits) == (300 if most == 7 else 600)
    assert sizes[7] == 7 < sizes[1000] < 300
    bot.restart()
    assert bot.num_nodes == 0


def test_the_tree_is_kept_within_a_match():
    bot = leduc_bot(0, histories="drawn", simulations=200)
    first, later = after("leduc_poker", 0, 2), after("leduc_poker", 0, 2, 2, 2)
    first, second = bot.search(first), bot.search(later)
    assert sum(first.visits) == 200 < sum(second.visits)
    bot.restart()
    assert sum(bot.search(later).visits) == 200


def test_predictor_provides_priors_and_values():
    """A predicted value replaces a rollout, and a prior guides the search."""
    game = pyspiel.load_game("leduc_poker")
    opponent = FixedPolicy(game, "always_raise")
    asked = []

    def predict(state, player):
        asked.append(state.information_state_string(player))
        legal = state.legal_actions()
        prior = [0.0] * len(legal)
        prior[-1] = 1.0
        return prior, 7.5

    config = SearchConfig(histories="drawn", simulations=1)
    bot = ISMCTSBRBot(game, 0, opponent, config, predictor=Predictor(predict))
    found = bot.search(after(game, 0, 2))
    assert found.actions == [1, 2]
    assert found.visits == [0, 1] and found.values == [0.0, 7.5]
    assert len(asked) == 2 == bot.num_nodes
    # Strong exploration follows the prior, whatever the values are.
    spread = SearchConfig(histories="drawn", simulations=400, exploration=1e6)

    def skewed(state, player):
        legal = state.legal_actions()
        return [0.25, 0.75] if len(legal) == 2 else [1 / len(legal)] * len(legal), None

    bot = ISMCTSBRBot(game, 0, opponent, spread, predictor=Predictor(skewed))
    visits = bot.search(after(game, 0, 2)).visits
    assert visits == pytest.approx([100, 300], abs=2)


def test_rollouts_use_the_given_policy():
    """The player has the best card against constant raises; the tree has one node.

    Every simulation calls first and continues as a rollout. A rollout that folds to
    the raise loses its ante, one that always calls usually wins, and a random one wins
    less often.
    """
    game = pyspiel.load_game("leduc_poker")
    raises = FixedPolicy(game, "always_raise")
    config = SearchConfig(histories="drawn", simulations=200, max_nodes=1)

    def predict(state, player):
        return [float(action == 1) for action in state.legal_actions()], None

    values = {}
    for kind in (None, "always_fold", "always_call"):
        bot = ISMCTSBRBot(
            *(game, 0, raises, config),
            predictor=Predictor(predict, kind and FixedPolicy(game, kind)),
        )
        found = bot.search(after(game, 4, 2))
        assert found.actions == [1, 2] and found.visits == [200, 0]
        values[kind] = found.values[0]
    assert values["always_fold"] == -1
    assert -1 < values[None] < values["always_call"]


def test_noise_changes_the_search():
    state = after("leduc_poker", 0, 2, 2)
    plain = leduc_bot(1, simulations=70).search(state)
    noisy = leduc_bot(1, simulations=70).search(state, noise=1.0)
    assert plain.visits != noisy.visits


def test_the_most_visited_action_is_played():
    state = after("leduc_poker", 0, 2, 2)
    visits = np.array(leduc_bot(1, simulations=70).search(state).visits)
    policy = leduc_bot(1, simulations=70).get_policy(state)
    assert len(set(visits)) == 3
    assert policy == [(a, float(visits[a] == visits.max())) for a in (0, 1, 2)]


def test_noise_does_not_accumulate():
    state = after("leduc_poker", 0, 2, 2)
    bot = leduc_bot(1, histories="drawn", simulations=5)
    for _ in range(3):
        bot.search(state, noise=0.5)
        root = bot._nodes[state.information_state_string(1)]
        assert root.prior == [1 / 3] * 3


@pytest.mark.parametrize("string", ["kuhn_poker", "python_ii_goofspiel(num_cards=3)"])
def test_plays_matches_in_openspiels_evaluate_bots(string):
    game = pyspiel.load_game(string)
    opponent = policy_lib.UniformRandomPolicy(game)
    config = SearchConfig(histories="drawn", simulations=20)
    for seat in (0, 1):
        bots = [PolicyBot(p, opponent) for p in (0, 1)]
        bots[seat] = ISMCTSBRBot(game, seat, opponent, config)
        for seed in range(5):
            returns = evaluate_bots.evaluate_bots(
                game.new_initial_state(), bots, np.random.RandomState(seed)
            )
            assert sum(returns) == 0
        assert bots[seat].simulations % 20 == 0 < bots[seat].simulations


@pytest.mark.parametrize("settings", [{"player": 2}, {"seed": -1}])
def test_rejects_invalid_arguments(settings):
    game = pyspiel.load_game("kuhn_poker")
    given = {"player": 0, "opponent": policy_lib.UniformRandomPolicy(game), **settings}
    with pytest.raises(ValueError, match=f"{next(iter(settings))}="):
        ISMCTSBRBot(game, **given)


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (ISMCTSBRBot, {"config": SearchConfig(simulations=2)}),
        (LBRBot, {"leaf": "uniform", "rollouts": 2}),
    ],
)
def test_states_of_the_simultaneous_game_are_rejected(kind, how):
    string = "goofspiel(imp_info=true,num_cards=3,points_order=descending)"
    game = load_game(string)
    bot = kind(game, 0, policy_lib.UniformRandomPolicy(game), **how)
    state = pyspiel.load_game(string).new_initial_state()
    look = bot.search if kind is ISMCTSBRBot else bot.action_values
    for ask in (bot.get_policy, bot.step, look):
        with pytest.raises(ValueError, match=r"states of spiel_cr\.load_game\('goof"):
            ask(state)
    assert bot.step(game.new_initial_state()) in (0, 1, 2)


def _opponent_of_liars_dice():
    game = load_game("liars_dice(numdice=1,dice_sides=2)")
    return game, fixed(game, 3)


@pytest.mark.parametrize("player", [0, 1])
def test_complete_beliefs_are_solved_exactly(player):
    """If the budget covers the whole tree, values equal those of a slow recursion."""
    game, opponent = _opponent_of_liars_dice()
    tree = reference.Tree(game)
    bot = ISMCTSBRBot(game, player, opponent, SearchConfig(simulations=500), seed=4)
    found = response_value(tree, opponent, bot, player)
    policy = reference.from_openspiel(tree, opponent)
    best = reference.best_response_value(tree, policy, player)
    assert found == pytest.approx(best, abs=1e-12)
    # Searches use few simulations, because later decisions reuse solved trees.
    asked = sum(key[0] == player for key in tree.infosets)
    assert bot.simulations < 500 * asked / 4


def test_complete_beliefs_win_more_than_drawn_ones_at_equal_budget():
    """The complete tree is much larger than the number of simulations."""
    game = load_game("liars_dice(numdice=1,dice_sides=3)")
    opponent, tree = fixed(game, 3), reference.Tree(game)
    values = {}
    for histories in HISTORIES:
        config = SearchConfig(simulations=60, histories=histories)
        bots = [ISMCTSBRBot(game, 1, opponent, config, seed=n) for n in range(3)]
        found = [response_value(tree, opponent, bot, 1) for bot in bots]
        values[histories] = np.mean(found)
    assert values["all"] > values["drawn"]


def test_few_samples_histories_by_weight_without_bias():
    """Over all starting points of the draws, the mean of each history is its weight."""
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    edges = [(state, move, share) for move, share in enumerate([0.5, 0.02, 0.3, 0.18])]
    total = np.zeros(4)
    starts = (np.arange(1000) + 0.5) / 1000
    for start in starts:
        drawn = belief_search.few(edges, 3, start)
        assert sum(edge[2] for edge in drawn) == pytest.approx(1)
        for _, move, weight in drawn:
            total[move] += weight / len(starts)
    # With 1000 starts, each share is exact to within one start.
    np.testing.assert_allclose(total, [0.5, 0.02, 0.3, 0.18], atol=1 / 1000)


def test_small_budgets_sample_from_the_belief():
    """Two simulations are too few to expand anything."""
    game, opponent = _opponent_of_liars_dice()
    state = after(game, 0, 1)
    few = SearchConfig(simulations=2)
    drawn = dataclasses.replace(few, histories="drawn")
    bots = [ISMCTSBRBot(game, 0, opponent, c, seed=1) for c in (few, drawn)]
    found = [bot.search(state) for bot in bots]
    assert sum(found[0].visits) == sum(found[1].visits) == 2
    # The paper's method of drawn histories is reproducible.
    again = ISMCTSBRBot(game, 0, opponent, drawn, seed=1).search(state)
    assert again == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("string", "simulations", "median", "worst"),
    [
        ("leduc_poker", 1000, 0.97, 0.97),
        ("liars_dice(numdice=1,dice_sides=4)", 300, 0.9, 0.9),
        (games.goofspiel(4, "descending"), 300, 0.97, 0.97),
    ],
)
def test_shares_of_the_best_gain_against_cfr_plus(string, simulations, median, worst):
    """Exact shares of the best response's gain against cfr+(10), for five seeds."""
    target = open_opponent("cfr+(iterations=10)", string)
    shares = []
    for seed in range(5):
        config = ResponseConfig(
            search=SearchConfig(simulations),
            matches=1_000_000,
            seed=seed,
        )
        seats = [respond(target, player, config, states=True) for player in (0, 1)]
        shares.append(from_same_deals(seats).share()[0])
    assert np.median(shares) >= median and min(shares) >= worst


def test_beliefs_larger_than_the_budget_are_sampled():
    game = pyspiel.load_game(
        "battleship(board_height=5,board_width=5,ship_sizes=[2;3],ship_values=[1;1],"
        "num_shots=12)"
    )
    uniform = policy_lib.UniformRandomPolicy(game)
    bot = ISMCTSBRBot(
        game,
        0,
        uniform,
        SearchConfig(simulations=10),
        predictor=Predictor(rollout=uniform),
    )
    # One history has forty placements, each with forty replies and as many rollouts.
    found = bot.search(game.new_initial_state())
    assert sum(found.visits) == bot.simulations == 10
