"""Beliefs on states: comparison with enumeration, hidden information, and limits."""

import collections
import functools
import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policy_lib

from spiel_cr.games.simulation.observations import observations
from spiel_cr.players.fixed_policies import FixedPolicy
from spiel_cr.policies.beliefs.state_posterior import PARTICLES, StatePosterior
from tests.support import games, made_games, reference
from tests.support.states import after

HOLDEM = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=10 5,firstPlayer=2 1,"
    "numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1,raiseSize=10 10 20 20,"
    "maxRaises=3 4 4 4,bettingAbstraction=fcpa)"
)


class RandomPolicy(policy_lib.Policy):
    """A random policy, which is determined by a seed and the information state.

    If `zeros` is true, some actions have probability zero.
    """

    def __init__(self, game, seed, *, zeros=False):
        super().__init__(game, [0, 1])
        self._seed, self._zeros = seed, zeros

    def action_probabilities(self, state, player_id=None):
        player = state.current_player() if player_id is None else player_id
        text = state.information_state_string(player).encode()
        random = np.random.default_rng([self._seed, player, *text])
        legal = state.legal_actions()
        weights = random.random(len(legal)) + 0.05
        if self._zeros and random.random() < 0.4:
            weights[random.integers(len(legal))] = 0
        if not weights.any():
            weights += 1
        return dict(zip(legal, (weights / weights.sum()).tolist(), strict=True))


@functools.cache
def walked(string):
    """Return all histories of a game, which are cached for several tests."""
    return reference.Tree(pyspiel.load_game(string))


def beliefs(tree, opponent, player, keys=None):
    """Compute beliefs by enumeration, at the infosets `keys` or at all.

    The results are {information state: {path: probability}}, the reach of each
    information state, and the set of those that the opponent never reaches.
    """
    asked = reference.from_openspiel(tree, opponent)
    found, reach, surprises = {}, {}, set()
    for owner, key in keys or tree.infosets:
        if owner != player:
            continue
        histories = tree.infosets[owner, key]
        for reach_by in (asked, tree.uniform()):
            weights = {
                tree.nodes[h].path: tree.nodes[h].chance
                * tree.own_reach(h, 1 - player, reach_by)
                for h in histories
            }
            total = sum(weights.values())
            if total > 0:
                break
            surprises.add(key)
        found[key] = {p: w / total for p, w in weights.items() if w > 0}
        reach[key] = total
    return found, reach, surprises


def belief(posterior):
    return {
        tuple(state.history()): weight
        for state, weight in zip(posterior.states, posterior.weights, strict=True)
    }


def check_all(game, opponent, player, *, every=1, tree=None, **settings):
    """Compare beliefs at infosets of a player, and count infosets and surprises."""
    tree = tree or reference.Tree(game)
    keys = list(tree.infosets)[::every]
    expected, reach, surprises = beliefs(tree, opponent, player, keys)
    posterior = StatePosterior(game, player, opponent, **settings)
    for owner, key in keys:
        if owner != player:
            continue
        path = tree.nodes[tree.infosets[owner, key][-1]].path
        if len(path) % 3:
            # The belief must catch up with several decisions at once, too.
            posterior.restart()
        posterior.update(after(game, *path))
        found = belief(posterior)
        assert found.keys() == expected[key].keys(), key
        for history, weight in found.items():
            assert math.isclose(weight, expected[key][history], rel_tol=1e-9)
        assert math.exp(posterior.log_reach) == pytest.approx(reach[key], rel=1e-9)
        assert posterior.surprised == (key in surprises)
    return len(expected), len(surprises)


# "auto" starts as "decisions".
@pytest.mark.parametrize("compare", ["always", "decisions"])
@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    "string",
    [
        "kuhn_poker",
        games.goofspiel(3, "descending"),
        "python_leduc_poker",
        "python_princess_and_monster(horizon=3)",
        "liars_dice(numdice=1,dice_sides=3)",
        # After a rejected move, the player moves again.
        "dark_hex(board_size=2)",
    ],
)
def test_beliefs_equal_enumeration(string, player, compare):
    game = pyspiel.load_game(string)
    check_all(game, RandomPolicy(game, 1), player, tree=walked(string), compare=compare)


@pytest.mark.parametrize("player", [0, 1])
def test_beliefs_in_leduc_equal_enumeration(player):
    game = pyspiel.load_game("leduc_poker")
    settings = {"compare": "always", "tree": walked("leduc_poker")}
    check_all(game, RandomPolicy(game, 2), player, every=9, **settings)


@pytest.mark.parametrize(
    ("string", "kind"),
    [("kuhn_poker", "always_fold"), ("python_leduc_poker", "always_call")],
)
def test_beliefs_at_infosets_the_opponent_cannot_reach(string, kind):
    game = pyspiel.load_game(string)
    for player in (0, 1):
        opponent = FixedPolicy(game, kind)
        count, surprises = check_all(game, opponent, player, tree=walked(string))
        assert 0 < surprises < count


def test_beliefs_about_opponents_that_never_play_some_actions():
    game = pyspiel.load_game("python_leduc_poker")
    for player in (0, 1):
        opponent = RandomPolicy(game, 3, zeros=True)
        check_all(game, opponent, player, tree=walked("python_leduc_poker"))


@pytest.mark.parametrize("seed", range(12))
def test_beliefs_of_players_that_do_not_observe_the_number_of_moves(seed):
    """In random games, observations at a decision may come from one or two steps."""
    game = made_games.random_game(seed, turns="by history", transient=0.5)
    for player in (0, 1):
        check_all(game, RandomPolicy(game, seed), player)


@pytest.mark.parametrize("seed", range(6))
def test_beliefs_use_observations_between_decisions(seed):
    game = made_games.random_game(seed, depth=7)
    for player in (0, 1):
        check_all(game, RandomPolicy(game, seed), player, compare="always")


def test_number_of_hidden_moves_is_not_observed():
    """The opponent moves again after a rejected move, which the player cannot see."""
    game = pyspiel.load_game("phantom_ttt")
    posterior = StatePosterior(
        game, 0, policy_lib.UniformRandomPolicy(game), compare="always"
    )
    posterior.update(after(game, 4, 0))
    found = {path: weight for path, weight in belief(posterior).items()}
    # The opponent chooses one of nine cells, and again if it chose the centre.
    assert found == pytest.approx(
        {(4, a): 1 / 9 for a in range(9) if a != 4}
        | {(4, 4, a): 1 / 72 for a in range(9) if a != 4}
    )


def test_beliefs_do_not_use_hidden_information():
    """All histories of an information state give the same belief."""
    game, tree = pyspiel.load_game("leduc_poker"), walked("leduc_poker")
    opponent = RandomPolicy(game, 4)
    for player in (0, 1):
        first, second = (
            StatePosterior(game, player, opponent, compare="always") for _ in range(2)
        )
        scrambled = 0
        for (owner, _), histories in list(tree.infosets.items())[::4]:
            if owner == player and len(histories) > 1:
                first.update(after(game, *tree.nodes[histories[0]].path))
                second.update(after(game, *tree.nodes[histories[-1]].path))
                assert belief(first) == belief(second)
                scrambled += 1
        assert scrambled > 90


def test_samples_follow_the_belief():
    game = pyspiel.load_game("leduc_poker")
    posterior = StatePosterior(game, 1, RandomPolicy(game, 5))
    posterior.update(after(game, 0, 2, 2))
    expected = belief(posterior)
    random, draws = np.random.default_rng(0), 4000
    counts = collections.Counter(
        tuple(posterior.sample(random).history()) for _ in range(draws)
    )
    assert counts.keys() == expected.keys()
    for history, share in expected.items():
        # Five standard errors; ten such, a false alarm in 1e5.
        error = math.sqrt(share * (1 - share) / draws)
        assert abs(counts[history] / draws - share) < 5 * error
    before = belief(posterior)
    posterior.sample(random).apply_action(1)
    assert belief(posterior) == before, "samples are copies"


def test_belief_sizes_in_a_hand_of_holdem():
    """The opponent has 231 hands in either order, and fewer after each public card."""
    game = pyspiel.load_game(HOLDEM.replace("numRanks=13", "numRanks=6"))
    opponent = FixedPolicy(game, "call_raise")
    for player in (0, 1):
        posterior = StatePosterior(game, player, opponent, compare="always")
        state = after(game, 0, 8, 19, 22)
        deck = iter((3, 20, 14, 10, 23))
        sizes = []
        while not state.is_terminal():
            if state.current_player() == player:
                posterior.update(state)
                sizes.append(len(posterior.states))
            state.apply_action(next(deck) if state.is_chance_node() else 1)
        # Of the 22 cards not held, 3, 4 and 5 are then on the board.
        assert sizes == [22 * 21, 19 * 18, 18 * 17, 17 * 16]
        # The policy ignores its cards, so its actions reveal nothing about them.
        assert np.allclose(posterior.weights, 1 / (17 * 16))


def test_too_many_histories_are_replaced_by_particles():
    game = pyspiel.load_game(HOLDEM)
    opponent = policy_lib.UniformRandomPolicy(game)
    posterior = StatePosterior(game, 0, opponent, max_histories=1000)
    posterior.update(after(game, 0, 16, 39, 49, 1))
    assert posterior.approximate and len(posterior.states) <= PARTICLES


def test_auto_switches_to_always_above_the_limit():
    """If too many histories are followed, inconsistent ones are removed immediately."""
    game = pyspiel.load_game("leduc_poker")
    opponent = RandomPolicy(game, 6)
    posterior = StatePosterior(game, 1, opponent, max_histories=12)
    state = after(game, 0, 2, 1, 1, 4, 1)
    posterior.update(state)
    key = state.information_state_string(1)
    expected, *_ = beliefs(walked("leduc_poker"), opponent, 1, [(1, key)])
    assert belief(posterior) == pytest.approx(expected[key])
    always = StatePosterior(game, 1, opponent, max_histories=12, compare="always")
    always.update(state)


class ActingPlayerState(made_games.MadeState):
    """A state that provides strings only for the player that acts."""

    def information_state_string(self, player=None):
        if player not in (None, self.current_player()):
            raise pyspiel.SpielError("not to you")
        return super().information_state_string(player)


def test_games_without_strings_between_decisions(monkeypatch):
    monkeypatch.setattr(made_games, "MadeState", ActingPlayerState)
    game = made_games.random_game(3)
    for player in (0, 1):
        check_all(game, RandomPolicy(game, 1), player, compare="always")


def test_observations_are_grouped_by_decision():
    game = pyspiel.load_game("kuhn_poker")
    stages = observations(after(game, 2, 1, 0, 1), 0)
    assert [(stage.seen, stage.action) for stage in stages] == [
        (("", "2"), 0),
        (("2p", "2pb"), None),
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"player": 2}, "player=2 must be one of 0, 1"),
        ({"compare": "never"}, "must be one of auto, always, decisions"),
        ({"max_histories": 0}, "max_histories=0"),
    ],
)
def test_rejects_invalid_arguments(settings, message):
    game = pyspiel.load_game("kuhn_poker")
    opponent = policy_lib.UniformRandomPolicy(game)
    with pytest.raises(ValueError, match=message):
        StatePosterior(**{"game": game, "player": 0, "opponent": opponent, **settings})


def test_rejects_states_of_the_other_player():
    game = pyspiel.load_game("kuhn_poker")
    posterior = StatePosterior(game, 1, policy_lib.UniformRandomPolicy(game))
    with pytest.raises(ValueError, match="state: player 0 acts.* decision of player 1"):
        posterior.update(after(game, 0, 1))
