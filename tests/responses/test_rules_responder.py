"""Particles and rollouts on rules on arrays, against exact beliefs on states."""

import numpy as np
import pytest
from open_spiel.python import policy
from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from spiel_cr.compilation.vectorised import of_game
from spiel_cr.responses import chump
from spiel_cr.responses.arrays import RulesBelief, RulesResponder
from spiel_cr.responses.particles import ParticleConfig
from spiel_cr.responses.state_posterior import StatePosterior

SHIPS = (
    "battleship(board_height=3,board_width=4,ship_sizes=[2;2],ship_values=[1;1],"
    "num_shots=5)"
)


def at_decision(game, player, decisions, seed):
    """A state of the first random match with so many decisions of a player."""
    random = np.random.default_rng(seed)
    while True:
        state, met = game.new_initial_state(), 0
        while not state.is_terminal():
            met += state.current_player() == player
            if met == decisions:
                return state
            state.apply_action(int(random.choice(state.legal_actions())))


class OddOnes(policy.Policy):
    """Likes odd actions six times as much as even ones."""

    def __init__(self, game):
        super().__init__(game, [0, 1])

    def action_probabilities(self, state, player_id=None):
        odds = {action: 1 + 5 * (action % 2) for action in state.legal_actions()}
        return {action: odd / sum(odds.values()) for action, odd in odds.items()}


def odd_ones(states, player, legal):
    """The same on arrays."""
    odds = legal * (1 + 5 * (np.arange(legal.shape[1]) % 2))
    return odds / odds.sum(axis=1, keepdims=True)


def exact(game, player, state, opponent=UniformRandomPolicy):
    """Histories and their probabilities."""
    belief = StatePosterior(game, player, opponent(game), particles=None)
    belief.update(state)
    keys = [tuple(history.history()) for history in belief.states]
    return dict(zip(keys, belief.weights.tolist(), strict=True))


def believed(belief):
    """As `exact`, of a belief on arrays."""
    found = belief.histories
    return {
        tuple(actions[:length].tolist()): weight
        for actions, length, weight in zip(
            found.action, found.length.tolist(), belief.weights.tolist(), strict=True
        )
    }


@pytest.mark.parametrize(
    ("name", "decisions"),
    [
        (SHIPS, 4),
        ("phantom_ttt", 3),
        ("liars_dice(numdice=1,dice_sides=3)", 2),
        ("python_ii_goofspiel(num_cards=4)", 3),
    ],
)
@pytest.mark.parametrize("player", [0, 1])
def test_a_belief_that_fits_is_exact(name, decisions, player):
    game = spiel_cr.load_game(name)
    state = at_decision(game, player, decisions, 3)
    config = ParticleConfig(10_000)
    belief = RulesBelief(game, of_game(game), player, config=config)
    belief.update(state)
    assert belief.complete and not belief.approximate
    assert believed(belief) == pytest.approx(exact(game, player, state))


def shares(histories, weights, known):
    """float64 [known], of particles by history."""
    found = dict.fromkeys(known, 0.0)
    for history, weight in zip(histories, weights, strict=True):
        found[history] += weight
    return np.array(list(found.values()))


def covered(known):
    """bool [k, histories]: a hidden or known move at a place of the history."""
    moves = np.array([[*history, *[-1] * 40][:40] for history in known])
    columns = [moves[:, place] == move for place in range(40) for move in range(40)]
    return np.array([has for has in columns if has.any() and not has.all()])


@pytest.mark.parametrize(("name", "decisions"), [(SHIPS, 5), ("phantom_ttt", 3)])
def test_particles_have_the_exact_means(name, decisions):
    game, seeds = spiel_cr.load_game(name), 20
    state = at_decision(game, 0, decisions, 5)
    known = exact(game, 0, state)
    has, rows = covered(known), []
    for seed in range(seeds):
        config = ParticleConfig(12, 1)
        belief = RulesBelief(game, of_game(game), 0, config=config, seed=seed)
        belief.update(state)
        assert belief.approximate and 1 <= belief.effective_size <= 12
        rows.append(has @ shares(*zip(*believed(belief).items(), strict=True), known))
    error = np.std(rows, axis=0, ddof=1) / seeds**0.5
    # Weights that are normalised have a small bias. Some 60 comparisons at five
    # standard errors: a false alarm in one of 10,000 sets of seeds.
    expected = has @ np.array(list(known.values()))
    assert (abs(np.mean(rows, axis=0) - expected) <= 5 * error + 0.02).all()


def test_redraws_keep_the_posterior():
    game = spiel_cr.load_game(SHIPS)
    state = at_decision(game, 0, 4, 5)
    known = exact(game, 0, state, OddOnes)
    belief = RulesBelief(
        *(game, of_game(game), 0), odds_of=odd_ones, config=ParticleConfig(1_000)
    )
    belief.update(state)
    assert believed(belief) == pytest.approx(known)
    # Draws from the exact belief, and moved.
    belief._config = ParticleConfig(2_000, 6)
    view = belief._view_of(state)
    random = np.random.default_rng(0)
    found, weights = belief._redrawn(belief.histories, belief.weights, view, random)
    belief.histories, belief.weights = found, weights
    new = shares(*zip(*believed(belief).items(), strict=True), known)
    odds = np.array(list(known.values()))
    moved = belief._redrawn(found.take(np.zeros(1, int)), np.ones(1), view, random)
    assert len(moved[1]) > 1
    # Chi-squared of independent draws, five standard deviations above its mean.
    far = 2_000 * np.sum((new - odds) ** 2 / odds)
    assert far < len(odds) + 5 * np.sqrt(2 * len(odds))


def test_moves_that_are_seen_lose_no_particles():
    game = spiel_cr.load_game("battleship")
    state = at_decision(game, 0, 7, 5)
    belief = RulesBelief(game, of_game(game), 0, config=ParticleConfig(20, 1))
    belief.update(state)
    # Of 100 shots of the opponent one fits; ten continuations of a particle are tried.
    assert len(belief.weights) >= 15


# One ship of two cells in a row of five.
ROW = (
    "battleship(board_height=1,board_width=5,ship_sizes=[2],ship_values=[1],"
    "num_shots=3)"
)


@pytest.mark.parametrize("player", [0, 1])
def test_the_second_cell_of_a_ship_is_shot(player):
    game = spiel_cr.load_game(ROW)
    state = game.new_initial_state()
    # The ships lie at the left; then each player hits the leftmost cell.
    for action in (5, 5, 0, 0, 4)[: 4 + player]:
        state.apply_action(action)
    bots = [
        RulesResponder(game, player, UniformRandomPolicy(game), simulations=200)
        for _ in range(2)
    ]
    assert bots[0].step(state) == bots[1].step(state) == 1
    assert bots[0].belief.effective_size == 1 and bots[0].simulations == 200
    bots[0].restart()
    assert bots[0].step(state) == 1


def test_who_cannot_be_asked_on_arrays_is_refused():
    game = spiel_cr.load_game(SHIPS)
    with pytest.raises(ValueError, match="opponent=OddOnes is not uniform"):
        RulesResponder(game, 0, OddOnes(game))
    with pytest.raises(ValueError, match="has no rules on arrays"):
        RulesResponder("kuhn_poker", 0, chump("kuhn_poker", "always_call"))
    bot = RulesResponder(game, 1, OddOnes(game), odds_of=odd_ones)
    with pytest.raises(ValueError, match="player 0 is to act"):
        bot.belief.update(game.new_initial_state())
    with pytest.raises(ValueError, match="simulations"):
        RulesResponder(game, 0, UniformRandomPolicy(game), simulations=0)
