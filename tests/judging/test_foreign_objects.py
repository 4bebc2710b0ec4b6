"""Every kind of policy and bot of other people, in every function that takes one.

A table says which cells must return a number and which must raise an error. Numbers of
policies are those of OpenSpiel's own tools.
"""

import math

import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability
from open_spiel.python.algorithms.best_response import BestResponsePolicy

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.judging import targets
from spiel_cr.judging.responses.ismcts_config import SearchConfig
from tests.support import foreign_objects as objects

TREE, PHANTOM = "kuhn_poker", "dark_hex(num_rows=2,num_cols=2)"
PUBLIC = "liars_dice(numdice=1,dice_sides=2)"
# Too large for a game tree, and without another form.
SIMULATED = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=true,num_cards=8,"
    "points_order=descending))"
)
SMALL = (TREE, PHANTOM, PUBLIC)

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


def _nash_conv(game, who):
    return spiel_cr.nash_conv(game, who)


def _best_response(game, who):
    return spiel_cr.best_response(game, who, 0, _quick(game)).value


def _quick(game):
    """How a response is searched where there is no tree."""
    if game != SIMULATED:
        return None
    search = SearchConfig(simulations=2)
    return spiel_cr.ResponseConfig(
        "ismcts", matches=2, search=search, max_histories=8, particles=8
    )


def _exploit(game, who):
    return spiel_cr.exploit(game, who, seconds=1.0).at_least


def _evaluate(game, who):
    return spiel_cr.evaluate(game, who).nash_conv


def _play_matches(game, who):
    return spiel_cr.play_matches(game, [who, "uniform"], 4, seed=1).mean


def _differences(game, who):
    return spiel_cr.differences(game, who, "uniform").nash_conv[0]


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
    PHANTOM: (),
    TREE: (),
    SIMULATED: ("nash_conv", "evaluate", "differences"),
}
MOVES = ("bots that move",)


def is_number(kind: str, function: str, game: str) -> bool:
    """The table: whether a cell returns a number; otherwise it raises ValueError."""
    if function in NEEDS_TREE[game]:
        return False
    # These read probabilities from the bot; its moves at every infoset of a game tree
    # are an estimate.
    unread = ("evaluate", "nash_conv") if game == PUBLIC else ("evaluate",)
    return not (kind in MOVES and function in unread)


@pytest.fixture
def public_tree(monkeypatch):
    """The memory has no room for a game tree of the public-tree game."""
    build = targets.lay_out_to_judge

    def refuse(opened, *given, **named):
        if "liars_dice" in str(opened.game):
            raise GameTooLargeError("too large")
        return build(opened, *given, **named)

    monkeypatch.setattr(targets, "lay_out_to_judge", refuse)


def expected_values(game, reference):
    """OpenSpiel's NashConv, and the value of a best response of player 0."""
    loaded = spiel_cr.load_game(game)
    response = BestResponsePolicy(loaded, 0, reference)
    value = response.value(loaded.new_initial_state())
    return exploitability.nash_conv(loaded, reference), value


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("game", SMALL)
def test_numbers_of_small_games(game, function, request):
    if game == PUBLIC and function in ("nash_conv", "best_response"):
        request.getfixturevalue("public_tree")
    loaded = spiel_cr.load_game(game)
    known = {}
    for kind, make in KINDS.items():
        who, reference = make(loaded)
        if not is_number(kind, function, game):
            with pytest.raises(ValueError):
                FUNCTIONS[function](game, who)
            continue
        found = FUNCTIONS[function](game, who)
        assert math.isfinite(found), (kind, found)
        if function == "play_matches" or (kind in MOVES and function != "nash_conv"):
            continue
        name = type(reference).__name__
        if name not in known or "AsPython" in name or "Tabular" in name:
            known[name] = expected_values(game, reference)
        nash_conv, value = known[name]
        right = value if function == "best_response" else nash_conv
        assert found == pytest.approx(right, abs=1e-9), kind


@pytest.mark.parametrize("kind", TREE_FREE)
def test_simulated_games(kind):
    loaded = spiel_cr.load_game(SIMULATED)
    who, _ = KINDS[kind](loaded)
    assert math.isfinite(_play_matches(SIMULATED, who))
    if kind in ("Policy subclass", "tuple", "callable object", "string"):
        assert math.isfinite(_best_response(SIMULATED, who))
        assert math.isfinite(_exploit(SIMULATED, who))
    for function in NEEDS_TREE[SIMULATED]:
        with pytest.raises(ValueError):
            FUNCTIONS[function](SIMULATED, who)


def test_the_table_has_enough_numbers():
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


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("game", SMALL)
def test_invalid_policies_are_rejected(game, function, request):
    """The message names the class or the function."""
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
def test_invalid_policies_of_simulated_games(kind):
    who = objects.INVALID_POLICIES[kind](spiel_cr.load_game(SIMULATED))
    for function in ("best_response", "exploit", "play_matches"):
        with pytest.raises(ValueError, match="_Answering"):
            FUNCTIONS[function](SIMULATED, who)


def test_the_message_names_infoset_and_histories():
    who = objects.INVALID_POLICIES["sees what is hidden"](pyspiel.load_game(TREE))
    words = r"_Answering: at the information state '1p' of player 1 .* after the "
    words += r"actions \[.*\] and .* after \[.*\]"
    with pytest.raises(ValueError, match=words.replace("'1p' of player 1", ".*")):
        spiel_cr.nash_conv(TREE, who)
