"""User-defined policies and bots of every kind, in every function that accepts one.

`is_number` lists which combinations must return a number and which must raise an error.
Values of policies are compared with those of OpenSpiel's tools.
"""

import functools
import math

import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability
from open_spiel.python.algorithms.best_response import BestResponsePolicy

import spiel_cr
from spiel_cr.common import plugins
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.evaluation import opponent
from spiel_cr.evaluation.response_config import SearchConfig
from tests.support import foreign_objects as objects

TREE, PHANTOM = "kuhn_poker", "dark_hex(num_rows=2,num_cols=3)"
# Small enough for a game tree, so that OpenSpiel's tools compute its values.
TINY = "dark_hex(num_rows=2,num_cols=2)"
PUBLIC = "liars_dice(numdice=1,dice_sides=2)"
# Too large for a game tree, and without another form.
SIMULATED = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=true,num_cards=8,"
    "points_order=descending))"
)
SMALL = (TREE, TINY, PHANTOM, PUBLIC)

KINDS = objects.POLICIES | objects.BOTS
# Objects that can be made without enumerating the game.
TREE_FREE = [
    "string",
    "UniformRandomPolicy",
    "FirstActionPolicy",
    "Policy subclass",
    "Policy that leaves out actions",
    "tuple",
    "list of C++ and Python",
    "dictionary by player",
    "pair with a string",
    "pair with a function",
    "function to a dictionary",
    "function to pairs",
    "function to an array",
    "function of state and player",
    "callable object",
    *objects.BOTS,
]


def _nash_conv(game, policy):
    return spiel_cr.nash_conv(game, policy)


def _best_response(game, policy):
    return spiel_cr.best_response(game, policy, 0, _quick(game)).value


def _quick(game):
    """Return settings of a short search for the game without a tree."""
    if game != SIMULATED:
        return None
    search = SearchConfig(simulations=2)
    return spiel_cr.ResponseConfig(
        "ismcts", matches=2, search=search, max_histories=8, particles=8
    )


def _exploit(game, policy):
    """Return the lower bound; only a search uses all of its time budget."""
    moves = getattr(policy, "moves", False)
    seconds = 0.4 if game == SIMULATED or moves else 60.0
    return spiel_cr.exploit(game, policy, seconds=seconds).at_least


@functools.cache
def _tree(game):
    """Return a game tree, for functions that need every history."""
    return spiel_cr.build_tree(game)


def _evaluate(game, policy):
    given = game if game in (SIMULATED, PHANTOM) else _tree(game)
    return spiel_cr.evaluate(given, policy).nash_conv


def _play_matches(game, policy):
    return spiel_cr.play_matches(game, [policy, "uniform"], 4, seed=1).mean


def _differences(game, policy):
    given = game if game in (SIMULATED, PHANTOM) else _tree(game)
    return spiel_cr.differences(given, policy, "uniform").nash_conv[0]


FUNCTIONS = {
    "nash_conv": _nash_conv,
    "best_response": _best_response,
    "exploit": _exploit,
    "evaluate": _evaluate,
    "play_matches": _play_matches,
    "differences": _differences,
}
# Functions that need every history of the game in memory.
NEEDS_TREE = {
    PUBLIC: (),
    PHANTOM: ("differences",),
    TINY: (),
    TREE: (),
    SIMULATED: ("nash_conv", "evaluate", "differences"),
}
MOVES = ("bots that move",)
# Classes of reference policies whose objects all have the same strategy.
STATELESS = ("UniformRandomPolicy", "Weighted", "Split", "LastAction")
# A strategy for each string of OpenSpiel, which reveals more than players observe.
FINER = ("pyspiel.GetRandomPolicy",)


def is_number(kind: str, function: str, game: str) -> bool:
    """Return whether a function returns a number; otherwise it raises ValueError."""
    if function in NEEDS_TREE[game]:
        return False
    if game == PHANTOM and kind in FINER and function != "play_matches":
        return function in ("exploit", "best_response")
    # These functions need probabilities. On a game tree, `nash_conv` estimates them
    # from a bot's moves at every infoset.
    large = game in (PUBLIC, PHANTOM)
    unread = ("evaluate", "nash_conv") if large else ("evaluate",)
    return not (kind in MOVES and function in unread)


# Combinations that are not slow: all functions on a game tree, and on other forms the
# functions that query infosets differently. The larger phantom game takes a minute per
# function.
QUICK = {
    TREE: tuple(FUNCTIONS),
    TINY: ("nash_conv",),
    PUBLIC: ("nash_conv", "best_response"),
    PHANTOM: (),
}
CELLS = [
    pytest.param(
        game, function, marks=[] if function in QUICK[game] else [pytest.mark.slow]
    )
    for game in SMALL
    for function in FUNCTIONS
]


@pytest.fixture
def public_tree(monkeypatch):
    """Pretend that the game tree of the public-tree game does not fit in memory."""
    build = opponent.build_for_evaluation

    def refuse(opened, *given, **named):
        if "liars_dice" in str(opened.game):
            raise GameTooLargeError("too large")
        return build(opened, *given, **named)

    monkeypatch.setattr(opponent, "build_for_evaluation", refuse)


# Expected values by game and kind, or by the class of references that are equal.
_expected: dict[tuple[str, str], tuple[float, float]] = {}


def expected_values(game, reference):
    """Return the NashConv and the value of player 0's best response by OpenSpiel.

    OpenSpiel's tools treat the strings of the larger phantom game as infosets, which is
    incorrect. For that game all objects with one strategy must give the same number.
    """
    if game == PHANTOM:
        value = spiel_cr.best_response(game, reference, 0).value
        return spiel_cr.nash_conv(game, reference), value
    loaded = spiel_cr.load_game(game)
    response = BestResponsePolicy(loaded, 0, reference)
    value = response.value(loaded.new_initial_state())
    return exploitability.nash_conv(loaded, reference), value


@pytest.mark.parametrize(("game", "function"), CELLS)
def test_values_of_small_games_equal_openspiels(game, function, request):
    if game == PUBLIC and function in ("nash_conv", "best_response"):
        request.getfixturevalue("public_tree")
    loaded = spiel_cr.load_game(game)
    for kind, make in KINDS.items():
        policy, reference = make(loaded)
        if not is_number(kind, function, game):
            with pytest.raises(ValueError):
                FUNCTIONS[function](game, policy)
            continue
        if function == "best_response" and game == PHANTOM and kind in FINER + MOVES:
            continue  # The search takes a minute.
        found = FUNCTIONS[function](game, policy)
        assert math.isfinite(found), (kind, found)
        if function == "play_matches" or (kind in MOVES and function != "nash_conv"):
            continue
        if game == PHANTOM and kind in FINER:
            continue
        name = type(reference).__name__
        key = game, name if name in STATELESS else kind
        if key not in _expected:
            _expected[key] = expected_values(game, reference)
        nash_conv, value = _expected[key]
        right = value if function == "best_response" else nash_conv
        assert found == pytest.approx(right, abs=1e-9), kind


@pytest.mark.parametrize("kind", TREE_FREE)
def test_simulated_games_accept_tree_free_objects(kind):
    loaded = spiel_cr.load_game(SIMULATED)
    policy, _ = KINDS[kind](loaded)
    assert math.isfinite(_play_matches(SIMULATED, policy))
    if kind in ("Policy subclass", "tuple", "callable object", "string"):
        assert math.isfinite(_best_response(SIMULATED, policy))
        assert math.isfinite(_exploit(SIMULATED, policy))
    for function in NEEDS_TREE[SIMULATED]:
        with pytest.raises(ValueError):
            FUNCTIONS[function](SIMULATED, policy)


def test_at_least_half_of_the_combinations_return_numbers():
    cells = [
        is_number(kind, function, game)
        for game in SMALL
        for kind in KINDS
        for function in FUNCTIONS
    ]
    cells += [
        is_number(kind, function, SIMULATED)
        for kind in TREE_FREE
        for function in FUNCTIONS
    ]
    assert len(KINDS) >= 30 and sum(cells) >= len(cells) / 2


@pytest.mark.parametrize(("game", "function"), CELLS)
def test_invalid_policies_are_rejected(game, function, request):
    """Each error message is a single line."""
    if game == PUBLIC and function in ("nash_conv", "best_response"):
        request.getfixturevalue("public_tree")
    loaded = spiel_cr.load_game(game)
    assert len(objects.INVALID_POLICIES) >= 25
    for kind, make in objects.INVALID_POLICIES.items():
        with pytest.raises(ValueError) as caught:
            found = FUNCTIONS[function](game, make(loaded))
            raise AssertionError(f"{kind}: {found} was accepted")
        assert "\n" not in str(caught.value), kind


@pytest.mark.parametrize("function", FUNCTIONS)
def test_invalid_bots_are_rejected(function):
    loaded = spiel_cr.load_game(TREE)
    for kind, make in objects.INVALID_BOTS.items():
        with pytest.raises(ValueError):
            found = FUNCTIONS[function](TREE, make(loaded))
            raise AssertionError(f"{kind}: {found} was accepted")


@pytest.mark.parametrize("kind", ["sees what is hidden", "half", "answers at random"])
def test_simulated_games_reject_invalid_policies(kind):
    policy = objects.INVALID_POLICIES[kind](spiel_cr.load_game(SIMULATED))
    for function in ("best_response", "exploit", "play_matches"):
        with pytest.raises(ValueError, match="_Answering"):
            FUNCTIONS[function](SIMULATED, policy)


def test_error_names_the_infoset_and_both_histories():
    policy = objects.INVALID_POLICIES["sees what is hidden"](pyspiel.load_game(TREE))
    words = r"_Answering: at the information state '\w+' of player \d it answers .* "
    words += r"after the actions \[[\d, ]+\] and .* after \[[\d, ]+\]; a strategy must"
    with pytest.raises(ValueError, match=words):
        spiel_cr.nash_conv(TREE, policy)


@pytest.mark.parametrize(
    "kind",
    [
        *("Policy subclass", "function to pairs"),
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("tuple", "TabularPolicy")
        ),
    ],
)
def test_phantom_values_do_not_depend_on_the_kind_of_object(kind):
    loaded = spiel_cr.load_game(PHANTOM)
    policy, reference = KINDS[kind](loaded)
    expected = spiel_cr.nash_conv(PHANTOM, reference)
    assert spiel_cr.nash_conv(PHANTOM, policy) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "game", [PHANTOM, "phantom_ttt(obstype=reveal-nothing,gameversion=abrupt)"]
)
@pytest.mark.parametrize(
    "kind", ["sees what is hidden", "action 99", "nothing", "answers at random", "NaN"]
)
def test_phantom_games_reject_invalid_policies(game, kind):
    policy = objects.INVALID_POLICIES[kind](spiel_cr.load_game(game))
    with pytest.raises(ValueError, match="_Answering: at the information state"):
        spiel_cr.nash_conv(game, policy)


_MODULE = """
import pyspiel
from open_spiel.python import policy

game = pyspiel.load_game("kuhn_poker")
solver = pyspiel.CFRSolver(game)
solver.evaluate_and_update_policy()
of_cpp = solver.tabular_average_policy()
pair = policy.UniformRandomPolicy(game), of_cpp
table = {key: dict(row) for key, row in policy.TabularPolicy(game).to_dict().items()}

def of_states(state):
    return dict.fromkeys(state.legal_actions(), 1 / len(state.legal_actions()))

def makes_a_pair(seed):
    return pair

def invalid(state):
    return {state.legal_actions()[0]: 0.5}
"""


def test_objects_are_loaded_by_module_and_name(tmp_path, monkeypatch):
    """Names have the form that `--policy` and `load_bot` accept."""
    (tmp_path / "foreign_objects_of_a_user.py").write_text(_MODULE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.import_user_modules(["foreign_objects_of_a_user"])
    uniform = spiel_cr.nash_conv(TREE, "uniform")
    for name in ("of_cpp", "pair", "table", "of_states", "makes_a_pair"):
        text = f"foreign_objects_of_a_user:{name}"
        # CFR's first average is uniform.
        assert spiel_cr.nash_conv(TREE, text) == pytest.approx(uniform, abs=1e-9)
        bot = spiel_cr.load_bot(TREE, text, 1)
        assert math.isfinite(spiel_cr.best_response(TREE, bot, 0).value)
    with pytest.raises(ValueError, match="invalid"):
        spiel_cr.nash_conv(TREE, "foreign_objects_of_a_user:invalid")
