"""Bots from strings: every kind, its parameters, and errors with a remedy."""

import pytest

from spiel_cr import load_bot, solve
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players import bots, player_specs, player_strings
from spiel_cr.players.search_bot import SearchBot
from spiel_cr.resolving import continual
from tests.support import games


def kuhn(player=0):
    state = games.compiled("kuhn").game.new_initial_state()
    for action in (0, 2, 1)[: 2 + player]:
        state.apply_action(action)
    return state


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("resolving(iterations=5)", bots.ResolvingBot),
        (
            "oos(iterations=2,solver=os-mccfr(batch=64),reset_matches=true)",
            bots.OOSBot,
        ),
        ("solved(iterations=5)", bots.PolicyBot),
        ("uniform", bots.PolicyBot),
        ("uniform()", bots.PolicyBot),
        ("honest(rollouts=4)", bots.PolicyBot),
        ("search(simulations=9,blueprint_iterations=2)", SearchBot),
    ],
)
def test_strings_make_bots_of_each_kind(text, kind):
    for player in (0, 1):
        bot = load_bot(games.compiled("kuhn"), text, player, seed=1)
        assert isinstance(bot, kind)
        assert bot.player_id() == player
        state = kuhn(player)
        policy, action = bot.step_with_policy(state)
        assert [a for a, _ in policy] == state.legal_actions()
        assert action in state.legal_actions()


def test_solvers_in_strings_can_have_parameters():
    text = "resolving(solver=dcfr(alpha=1.5,beta=0),iterations=10)"
    bot = load_bot(games.compiled("kuhn"), text, 0)
    config = bot.resolver.config
    assert (config.solver, config.iterations) == ("dcfr(alpha=1.5,beta=0)", 10)
    assert (config.move_ms, config.gadget) == (None, "cfrd")
    expected = continual.resolve(games.compiled("kuhn"), "dcfr(alpha=1.5,beta=0)", 10)
    row = expected.average_policy().action_probabilities(kuhn())
    assert dict(bot.get_policy(kuhn())) == pytest.approx(row, abs=1e-6)


def test_all_parameters_of_a_resolving_bot():
    bot = load_bot(
        games.compiled("kuhn"),
        "resolving(solver=cfr,iterations=3,move_ms=50,init_ms=20.5,gadget=maxmargin,"
        "values=best_response)",
        1,
    )
    config = bot.resolver.config
    assert (config.solver, config.iterations) == ("cfr", 3)
    assert (config.move_ms, config.init_ms) == (50.0, 20.5)
    assert isinstance(config.move_ms, float) and isinstance(config.iterations, int)
    assert (config.gadget, config.values) == ("maxmargin", "best_response")


def test_default_budgets():
    """The default is 0.1 s per move, and a budget in iterations has no time limit."""
    assert load_bot("kuhn_poker", "resolving", 0).resolver.config.move_ms == 100
    config = load_bot("kuhn_poker", "resolving(iterations=4)", 0).resolver.config
    assert (config.move_ms, config.iterations) == (None, 4)
    bot = load_bot("kuhn_poker", "oos(iterations=3,solver=os-mccfr(batch=64))", 0)
    bot.get_policy(kuhn())
    assert bot.statistics.iterations == 3


def test_a_solved_bot_plays_the_solution():
    bot = load_bot(games.compiled("kuhn"), "solved(solver=pdcfr+,iterations=40)", 0)
    expected = solve(games.compiled("kuhn"), "pdcfr+", 40).average_policy()
    assert dict(bot.get_policy(kuhn())) == expected.action_probabilities(kuhn())
    exact = load_bot(games.compiled("kuhn"), "solved(solver=lp)", 1)
    # With the king, after a bet, player 1 calls.
    state = games.compiled("kuhn").game.new_initial_state()
    for action in (0, 2, 1):
        state.apply_action(action)
    assert dict(exact.get_policy(state))[1] == pytest.approx(1)


def test_loads_a_policy_from_a_file(tmp_path):
    solution = solve(games.compiled("kuhn"), "cfr+", 30)
    path = tmp_path / "kuhn.npz"
    solution.save(path)
    bot = load_bot(games.compiled("kuhn"), f"policy(path={path})", 0)
    expected = solution.average_policy().action_probabilities(kuhn())
    assert dict(bot.get_policy(kuhn())) == expected
    with pytest.raises(ValueError, match="kuhn_poker.*was given for"):
        load_bot(games.compiled("leduc7"), f"policy(path={path})", 0)
    with pytest.raises(FileNotFoundError):
        load_bot(games.compiled("kuhn"), f"policy(path={tmp_path / 'none.npz'})", 0)


def test_the_seed_is_passed_on():
    drawn = []
    for seed in (1, 1, 2):
        bot = load_bot(games.compiled("kuhn"), "uniform", 0, seed=seed)
        drawn.append([bot.step(kuhn()) for _ in range(30)])
    assert drawn[0] == drawn[1] != drawn[2]


def test_help_lists_every_bot_with_its_parameters():
    lines = player_strings.describe_players().splitlines()
    assert lines.pop().strip().startswith("module:name(...)")
    assert len(lines) == len(player_strings.PLAYERS)
    names = (
        *("resolving", "search", "oos", "solved", "policy", "honest", "deep"),
        *("canonical", "uniform", "process", "http"),
    )
    for line, name in zip(lines, names, strict=True):
        assert line.startswith(f"  {name}(")
        for parameter in player_strings.PLAYERS[name].parameters:
            assert parameter in line


@pytest.mark.parametrize("player", [-1, 2, True])
@pytest.mark.parametrize("text", ["resolving(iterations=2)", "uniform"])
def test_invalid_player_indices_are_rejected(text, player):
    with pytest.raises(ValueError, match=f"player={player} must be 0 or 1"):
        load_bot(games.compiled("kuhn"), text, player)


@pytest.mark.parametrize("text", ["uniform", "oos(iterations=3)", "my_bots:First"])
def test_exchanged_game_and_bot_arguments_are_rejected(text):
    for game in ("kuhn_poker", games.compiled("kuhn")):
        with pytest.raises(ValueError, match="the game comes first"):
            load_bot(text, game, 0)


@pytest.mark.parametrize(
    "text",
    [
        *("uniform", "solved(iterations=2)", "resolving(iterations=2)"),
        "oos(iterations=2,solver=os-mccfr(batch=64))",
        "resolving(iterations=2,max_histories=58,blueprint_iterations=2)",
        "search(simulations=2,blueprint_iterations=2)",
    ],
)
def test_states_of_the_other_player_are_rejected(text):
    tree = games.compiled("kuhn")
    bot = load_bot(tree, text, 0)
    state = tree.game.new_initial_state()
    for actions, actor in (((), "no player"), ((0, 1, 0), "player 1")):
        for action in actions:
            state.apply_action(action)
        with pytest.raises(ValueError, match=f"{actor} acts .* the bot is player 0"):
            bot.step(state)
        with pytest.raises(ValueError, match=f"{actor} acts .* the bot is player 0"):
            bot.get_policy(state)


def test_path_of_a_policy_file_names_a_bot(tmp_path, monkeypatch):
    """The bot equals that of policy(path=...), and the game tree is built for it."""
    monkeypatch.chdir(tmp_path)
    solve(games.compiled("kuhn"), "cfr+", 5).save("kuhn(5).npz")
    long, short = (
        load_bot(games.compiled("kuhn"), text, 0, seed=1)
        for text in ("policy(path=kuhn(5).npz)", " kuhn(5).npz")
    )
    assert isinstance(short, bots.PolicyBot)
    assert short.get_policy(kuhn()) == long.get_policy(kuhn())
    prepared = player_specs.prepare("kuhn_poker", ["kuhn(5).npz", "uniform"])
    assert isinstance(prepared, GameTree)
    with pytest.raises(ValueError, match="a bracket is not closed"):
        load_bot("kuhn_poker", "policy(path=kuhn.npz", 0)
