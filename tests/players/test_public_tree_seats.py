"""Re-solving players of public-tree games, compared with `resolve`."""

import functools

import numpy as np
import pyspiel
import pytest

import game_defs  # noqa: F401  (registers the games)
from spiel_cr.games.public_tree import public_tree_loading as loading
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.players import player_specs
from spiel_cr.players.bots import ResolvingBot
from spiel_cr.resolving import continual
from spiel_cr.resolving.public_subgames import PublicSubgames
from spiel_cr.resolving.resolving_config import ResolvingConfig
from tests.support import detection, games

slow = pytest.mark.slow
RHODE_ISLAND = "python_rhode_island_holdem(num_ranks=4,num_suits=2)"


@functools.cache
def located(name):
    return detection.locate(games.compiled(name))


def play(game, bots, seed):
    """Play a match of bots, and check that policies cover exactly the legal actions."""
    rng = np.random.default_rng(seed)
    state = game.new_initial_state()
    for bot in bots:
        bot.restart()
    while not state.is_terminal():
        if state.is_chance_node():
            actions, odds = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(int(rng.choice(actions, p=odds)))
            continue
        policy, action = bots[state.current_player()].step_with_policy(state)
        assert [a for a, _ in policy] == state.legal_actions()
        assert abs(sum(p for _, p in policy) - 1) < 1e-9
        state.apply_action(action)
    return state


@pytest.mark.parametrize(
    ("name", "iterations"), [("kuhn", 20), pytest.param("leduc", 20, marks=slow)]
)
@pytest.mark.parametrize("player", [0, 1])
def test_bot_policies_equal_those_of_resolve(name, iterations, player):
    """The bot is queried at every infoset, and solves each subgame separately.

    There are few iterations, so that rounding does not decide ties.
    """
    tree, game = games.compiled(name), located(name).game
    expected = continual.resolve(game, iterations=iterations).average_policy()
    bot = ResolvingBot(game, player, ResolvingConfig(iterations=iterations))
    asked, worst = 0, 0.0
    for state in states_of(tree, player):
        found = dict(bot.get_policy(state))
        wanted = expected.action_probabilities(state)
        worst = max(worst, *(abs(found[a] - wanted[a]) for a in found))
        asked += 1
    assert asked == len(tree.infosets[player])
    assert worst < 1e-9
    assert bot.statistics.compilations == 0
    assert bot.statistics.moves == asked


def states_of(tree, player):
    """Return one state of each infoset of a player."""
    found = {}

    def walk(state):
        if state.is_terminal():
            return
        if state.current_player() == player:
            found.setdefault(state.information_state_string(player), state.clone())
        for action in state.legal_actions():
            walk(state.child(action))

    walk(tree.game.new_initial_state())
    return found.values()


def test_matches_depend_on_the_seed_only():
    game = located("kuhn").game
    histories = []
    for _ in range(2):
        bots = [
            ResolvingBot(game, p, ResolvingConfig(iterations=10), seed=3)
            for p in (0, 1)
        ]
        histories.append([play(game.game, bots, s).history() for s in range(5)])
    assert histories[0] == histories[1]
    assert len({tuple(h) for h in histories[0]}) > 1


@slow
def test_bots_keep_their_time_limit_without_compiling():
    """The game has public cards, and no function is compiled during a match.

    The overhead of a move's solve takes a tenth of a second.
    """
    game = pyspiel.load_game(RHODE_ISLAND)
    form = loading.public_tree_game(game)
    config = ResolvingConfig(move_ms=1000, iterations=30)
    bots = [ResolvingBot(form, p, config) for p in (0, 1)]
    for match in range(10):
        assert play(game, bots, match).is_terminal()
    for bot in bots:
        found = bot.statistics
        assert found.moves > 10 and found.solves >= 10
        assert (found.compilations, found.deadline_misses) == (0, 0)


def test_large_games_are_prepared_in_public_tree_form():
    """The game has millions of histories, so it is prepared and not played."""
    text = "python_rhode_island_holdem(num_ranks=6,num_suits=3)"
    prepared = player_specs.prepare(text, ["resolving(iterations=2)", "uniform"])
    assert isinstance(prepared, PublicTreeGame)
    with pytest.raises(ValueError, match="needs the game tree"):
        player_specs.prepare(text, ["resolving(iterations=2,gadget=maxmargin)"])
    small = player_specs.prepare("kuhn_poker", ["resolving(iterations=2)"])
    assert not isinstance(small, pyspiel.Game)


@pytest.mark.parametrize(
    "text",
    ["python_rhode_island_holdem(num_ranks=6,num_suits=3)", "python_leduc_poker"],
    ids=["public-tree", "tree"],
)
def test_both_forms_respect_the_memory_limit(text):
    with pytest.raises(ValueError, match="needs the game tree: .* the limit"):
        player_specs.prepare(text, ["resolving(iterations=2)"], memory_limit=1)


@pytest.mark.parametrize(
    "setting",
    [
        {"gadget": "maxmargin"},
        {"depth": 2},
        {"values": "best_response"},
        {"solver": "os-mccfr"},
    ],
    ids=str,
)
def test_settings_that_need_a_game_tree_are_rejected(setting):
    [name] = setting
    with pytest.raises(ValueError, match=f"{name}="):
        ResolvingBot(located("kuhn").game, 0, ResolvingConfig(iterations=2, **setting))


def test_states_of_another_game_are_rejected():
    bot = ResolvingBot(located("kuhn").game, 0, ResolvingConfig(iterations=2))
    assert isinstance(bot.resolver.subgames, PublicSubgames)
    state = pyspiel.load_game("leduc_poker").new_initial_state()
    for action in (0, 1):
        state.apply_action(action)
    with pytest.raises(ValueError, match="another game"):
        bot.get_policy(state)
