"""Table responses that are learned from complete matches, and their opponents."""

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

import spiel_cr
from spiel_cr.evaluation.responses import table_response as settings
from spiel_cr.evaluation.responses.fixed_players import TablePlayer, UniformPlayer
from spiel_cr.evaluation.responses.table_responder import TableResponder
from spiel_cr.evaluation.responses.table_response import Unplanned
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.opened import load_game, open_game
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.state_source import StateSource
from spiel_cr.players.fixed_policies import FixedPolicy
from spiel_cr.policies.best_responses import (
    best_response_value,
    reach_of,
)
from spiel_cr.policies.conversions import (
    tabular_policy,
)
from spiel_cr.policies.queries import query
from spiel_cr.solvers.deep.tensors import simulated_tensors
from tests.support import games
from tests.support.solving import solve_with

HOLDEM = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=10 5,"
    "firstPlayer=2 1 1 1,numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,"
    "raiseSize=10 10 20 20,maxRaises=3 4 4 4,bettingAbstraction=fcpa)"
)


class FoldsBot(pyspiel.Bot):
    """A bot without probabilities that plays the first action and checks its inputs."""

    def __init__(self):
        pyspiel.Bot.__init__(self)
        self.actions = []

    def restart(self):
        self.actions = []

    def inform_action(self, state, player, action):
        self.actions.append(action)

    def step(self, state):
        assert self.actions == state.history()
        return state.legal_actions()[0]


def test_learned_tables_are_nearly_best_responses():
    """The opponent's policy of Kuhn poker is far from an equilibrium."""
    result = solve_with(
        "kuhn_poker", "os-mccfr(batch=64)", 1, form="simulator", memory_limit="3GB"
    )
    policy = result.average_policy()
    tree = games.compiled("kuhn")
    reach = reach_of(tree.sequence_form, query(tree, policy))
    opponent = TablePlayer(policy.strategy)
    setting = settings.Setting(policy.source, opponent, opponent)
    gaps = []
    for player in range(2):
        responder = TableResponder(setting, player, seed=1)
        # A response that has learned nothing can play, too.
        assert len(responder.response().play(setting, 9, np.random.default_rng(0))) == 9
        responder.learn(1000)
        response = responder.response()
        mean = response.play(setting, 20_000, np.random.default_rng(0)).mean()
        best = best_response_value(tree.sequence_form, player, reach[1 - player])
        # Returns have a standard deviation of at most 2, so the mean one of 0.014.
        assert mean < best + 5 * 0.014
        assert len(response.key) == 6
        gaps.append(mean - best)
    assert sum(gaps) > -0.1 and max(gaps) > -0.05


def test_actions_are_drawn_with_the_policys_probabilities():
    """The policy of Leduc poker is random."""
    tree = games.compiled("leduc")
    random = np.random.default_rng(5)
    mixed = []
    for own in tree.infosets:
        weight = np.append(1.0, random.random(own.decisions.num_sequences - 1))
        total = np.bincount(own.decisions.owner[1:], weight[1:])
        mixed.append(np.append(1.0, weight[1:] / total[own.decisions.owner[1:]]))
    policy = tabular_policy(tree, tuple(mixed))
    setting = settings.on_states(tree.game, policy)
    source, opponent = setting.source, setting.opponent
    start = source.start(3000, random)
    (first,) = np.flatnonzero(start.key[:, 0] == start.key[0, 0])[:1]
    same = np.flatnonzero((start.key == start.key[first]).all(axis=1))
    drawn = opponent.draw(start, same, random)
    state = tree.game.new_initial_state()
    # The card of these matches is unknown, so the shares must fit one of the cards.
    shares = np.bincount(drawn, minlength=2) / len(same)
    close = []
    for card in range(6):
        state = tree.game.new_initial_state()
        state.apply_action(card)
        state.apply_action((card + 2) % 6)
        odds = list(policy.action_probabilities(state).values())
        close.append(np.abs(shares - odds).max())
    # Five standard deviations of a share of some 500 draws.
    assert min(close) < 5 * 0.5 / np.sqrt(len(same))


def test_fixed_policies_play_on_batched_rules():
    """In limit hold'em, both players are checked at each set of legal actions."""
    game = pyspiel.load_game(HOLDEM)
    random = np.random.default_rng(6)
    for kind, wanted in {
        "always_raise": {(0, 1): [0.0, 1.0], (0, 1, 2): [0.0, 0.0, 1.0]},
        "call_raise": {(0, 1): [0.0, 1.0], (0, 1, 2): [0.0, 0.5, 0.5]},
    }.items():
        setting = settings.on_states(game, FixedPolicy(game, kind))
        assert isinstance(setting.source, RulesSource)
        knowledge = simulated_tensors(open_game(game)).knowledge
        positions, visited = setting.source.start(4000, random), set()
        for _ in range(4):
            player = int(positions.player[0])
            # All matches have the same actions so far, so the same player acts in each.
            assert (positions.player == player).all()
            places = np.arange(len(positions.player))
            seen = knowledge.seen(positions, places, player)
            drawn = setting.opponent.draw(positions, places, random)
            legal = tuple(np.flatnonzero(seen.legal[0]).tolist())
            if (odds := wanted.get(legal)) is not None:
                visited.add(legal)
                shares = np.bincount(drawn, minlength=len(legal)) / len(drawn)
                # Five standard deviations of a share of 4000 draws.
                assert np.abs(shares - odds).max() <= 5 * 0.5 / np.sqrt(4000)
            # Both players raise while that is legal, then call.
            action = np.full(len(places), len(legal) - 1)
            positions = setting.source.step(positions.states[places], action, random)
        assert visited == set(wanted)


def test_bots_without_probabilities_are_informed_of_all_actions():
    setting = settings.on_bot(load_game("kuhn_poker"), (FoldsBot(), FoldsBot()))
    responder = TableResponder(setting, 0)
    responder.learn(40)
    response = responder.response()
    # The bot always passes, so a bet wins the ante.
    assert response.play(setting, 500, np.random.default_rng(0)).mean() == 1.0


def test_fewer_matches_run_in_parallel_if_there_are_many_actions(monkeypatch):
    """Each match stores a list of its legal actions."""
    game, counts = load_game("kuhn_poker"), []
    setting = settings.on_states(game, openspiel_policy.UniformRandomPolicy(game))
    monkeypatch.setattr(setting.source, "max_actions", 20_000, raising=False)
    assert setting.side_by_side(4096) == 419
    start = setting.source.start

    def counted(count, random):
        counts.append(count)
        return start(count, random)

    monkeypatch.setattr(setting.source, "start", counted)
    TableResponder(setting, 0).learn(64)
    assert max(counts) == 416 and sum(counts) == 1024


def test_settings_use_batched_rules_if_the_policy_supports_them():
    game = spiel_cr.load_game("phantom_ttt")
    uniform = openspiel_policy.UniformRandomPolicy(game)
    fast = settings.on_states(game, uniform)
    assert isinstance(fast.source, RulesSource)
    assert isinstance(fast.opponent, UniformPlayer)
    small = spiel_cr.load_game("python_ii_goofspiel(num_cards=3)")
    table = settings.on_states(small, openspiel_policy.TabularPolicy(small))
    assert isinstance(table.source, RulesSource)
    start = table.source.start(300, np.random.default_rng(0))
    drawn = table.opponent.draw(start, np.arange(300), np.random.default_rng(0))
    assert set(drawn.tolist()) == {0, 1, 2}
    slow = settings.on_states(game, openspiel_policy.FirstActionPolicy(game))
    assert isinstance(slow.source, StateSource)
    random = np.random.default_rng(0)
    start = slow.source.start(4, random)
    assert slow.opponent.draw(start, np.arange(4), random).tolist() == [0] * 4
    assert (start.player != TERMINAL).all()


@pytest.mark.slow
def test_battleship_response_does_not_repeat_shots():
    """Against random shots on a large board, little more can be learned quickly.

    A responder that repeated actions that had won by chance lost 0.25 per match.
    """
    game = load_game("battleship")
    setting = settings.on_states(game, openspiel_policy.UniformRandomPolicy(game))
    responder = TableResponder(setting, 0, seed=0)
    responder.learn(192)
    response = responder.response()
    assert response.varied
    returns = response.play(setting, 1024, np.random.default_rng(1))
    # Without repeats 0.27 in 2048 matches, with a standard error of 0.02; here it is
    # 0.03, and five of them below is a false alarm in a million.
    assert returns.mean() > 0.27 - 5 * 0.03

    random, state = np.random.default_rng(2), game.new_initial_state()
    own = openspiel_policy.UniformRandomPolicy(game)
    policy = response.policy(game, setting.source, own)
    shots = set()
    while not state.is_terminal():
        acts = state.current_player()
        odds = policy.action_probabilities(state, acts)
        action = int(random.choice(list(odds), p=list(odds.values())))
        if acts == 0 and state.move_number() >= 10:
            left = [odds[a] for a in state.legal_actions() if a not in shots]
            # The shot is uniform among the other cells, or deterministic.
            assert np.allclose(left, 1 / len(left)) or max(odds.values()) == 1
            shots.add(action)
        state.apply_action(action)
    assert len(shots) > 45


def test_varied_actions_do_not_repeat_with_rules_or_states():
    """Actions that are not varied are drawn uniformly, so most matches repeat some."""
    game = load_game(
        "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],"
        "num_shots=6)"
    )
    own = openspiel_policy.UniformRandomPolicy(game)
    for use_rules in (True, False):
        setting = settings.on_states(game, own, use_rules=use_rules)
        for varied in (True, False):
            unplanned = Unplanned(setting, np.full(300, varied))
            random = np.random.default_rng(0)
            moves: list[dict[int, int]] = []

            def respond(positions, there, games, at=(unplanned, random, moves)):
                unplanned, random, moves = at
                chosen = np.full(len(there), -1)
                unplanned.fill(positions, there, games, chosen, random)
                assert (chosen >= 0).all()
                assert (chosen < positions.num_actions[there]).all()
                moves.append(dict(zip(games.tolist(), chosen.tolist(), strict=True)))
                return chosen

            setting.play(0, 300, random, respond)
            shots = moves[1:5]
            whole = [g for g in range(300) if all(g in shot for shot in shots)]
            different = [len({shot[g] for shot in shots}) == 4 for g in whole]
            assert len(whole) > 20
            assert all(different) if varied else np.mean(different) < 0.4
