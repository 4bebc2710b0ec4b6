"""Policies and bots of every kind in every public function that accepts one.

For each of four games, the table below lists whether a function returns a number or
raises an error, and the reason of the error. Numbers are compared with those of other
kinds of the same strategy. `tests/evaluation/test_foreign_objects.py` has more kinds of
user-defined objects, and compares their values with OpenSpiel's tools.
"""

import functools
import math
import pathlib
from typing import NamedTuple

import pyspiel
import pytest

import game_defs  # noqa: F401  (registers the games)
import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.evaluation.response_config import SearchConfig
from tests.support import foreign_objects as objects


class Setting(NamedTuple):
    """A game, and how it is represented.

    Attributes:
      game: Game string.
      limit: Memory limit; None means the default. A game tree does not fit within the
        limit of the simulated game.
      form: Form in which results are computed, and in which spiel_cr evaluates them.
      algorithm: Algorithm that computes them.
      string: String that names the same policy.
    """

    game: str
    limit: str | None
    form: str
    algorithm: str = "cfr+"
    string: str = "cfr+(iterations=2)"


SETTINGS = {
    "tree": Setting("kuhn_poker", None, "tree"),
    "public-tree": Setting("python_leduc_poker", None, "public-tree"),
    "phantom": Setting("dark_hex(board_size=2)", None, "phantom"),
    "simulated": Setting(
        # This string must differ from that of the tree, so that functions recognise it.
        "kuhn_poker(players=2)",
        "400.001MB",
        "simulator",
        "os-mccfr(batch=64)",
        "os-mccfr(batch=64,iterations=2)",
    ),
}
_NETWORK = "sd-cfr(hidden=8,layers=1,traversals=4,steps=2)"


@functools.cache
def result(form, algorithm=None):
    setting = SETTINGS[form]
    plain = algorithm is not None and form != "simulated"
    return spiel_cr.solve(
        setting.game,
        algorithm or setting.algorithm,
        2,
        options=spiel_cr.GameOptions("auto" if plain else setting.form),
    )


@functools.cache
def load(form):
    return spiel_cr.load_game(SETTINGS[form].game)


def path(form, folder):
    file = pathlib.Path(folder) / f"{form}.npz"
    if not file.exists():
        result(form).save(file)
    return str(file)


# Functions that make an object of each kind from a form and a folder for files.
KINDS = {
    "policy of OpenSpiel": lambda form, _: objects.Weighted(load(form)),
    "policy of C++": lambda form, _: pyspiel.UniformPolicy(),
    "TabularPolicy": lambda form, _: objects.weighted_table(load(form)),
    "pair of policies": lambda form, _: (
        objects.Weighted(load(form)),
        objects.Uniform(load(form)),
    ),
    "Result": lambda form, _: result(form),
    "network": lambda form, _: result(form, _NETWORK),
    "bots with get_policy": lambda form, _: (
        lambda player, seed: objects.WithPolicy(player)
    ),
    "bots that move": lambda form, _: objects.make_moving,
    "function of a state": lambda form, _: (
        lambda state: objects.weights(state.legal_actions())
    ),
    "function of player and seed": lambda form, _: (
        lambda player, seed: objects.Weighted(load(form))
    ),
    "string": lambda form, _: SETTINGS[form].string,
    "path": path,
}


def _best_response(game, policy, limit):
    config = None
    if game == SETTINGS["simulated"].game:
        search = SearchConfig(simulations=2)
        config = spiel_cr.ResponseConfig(
            "ismcts", matches=2, search=search, max_histories=8, particles=8
        )
    return spiel_cr.best_response(game, policy, 0, config, memory_limit=limit).value


def _exploit(game, policy, limit):
    """Return the lower bound; only inexact methods use all of their time budget."""
    searched = game == SETTINGS["simulated"].game or hasattr(policy, "moves")
    seconds = 0.4 if searched else 60.0
    return spiel_cr.exploit(game, policy, seconds=seconds, memory_limit=limit).at_least


def _load_bot(game, policy, limit):
    bot = spiel_cr.load_bot(game, policy, 0)
    state = spiel_cr.load_game(game).new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    bot.restart_at(state)
    return float(bot.step(state))


FUNCTIONS = {
    "nash_conv": lambda game, policy, limit: spiel_cr.nash_conv(
        game, policy, memory_limit=limit
    ),
    "best_response": _best_response,
    "exploit": _exploit,
    "evaluate": lambda game, policy, limit: (
        spiel_cr.evaluate(game, policy, memory_limit=limit).nash_conv
    ),
    "play_matches": lambda game, policy, limit: (
        spiel_cr.play_matches(
            game, [policy, "uniform"], 2, memory_limit=limit or "4GB"
        ).mean
    ),
    "differences": lambda game, policy, limit: spiel_cr.differences(
        game, policy, "uniform", memory_limit=limit
    ).nash_conv[0],
    "load_bot": _load_bot,
    "load_policy": lambda game, policy, limit: len(
        spiel_cr.load_policy(policy, game).action_probabilities(_decision(game))
    ),
}


def _decision(game):
    state = spiel_cr.load_game(game).new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    return state


# The errors in the table by their reasons, with patterns of the messages.
REASONS = {
    "moves": (ValueError, "does not provide probabilities"),
    "large": (GameTooLargeError, "memory_limit"),
    "text": ((ValueError, TypeError), "not a string|should be string"),
    "file": (FileNotFoundError, "the file does not exist"),
}
_ENUMERATED = """
    policy of OpenSpiel          | - | - | - | -     | - | - | text | text
    policy of C++                | - | - | - | -     | - | - | text | text
    TabularPolicy                | - | - | - | -     | - | - | text | text
    pair of policies             | - | - | - | -     | - | - | text | text
    Result                       | - | - | - | -     | - | - | text | text
    network                      | - | - | - | -     | - | - | text | text
    bots with get_policy         | - | - | - | -     | - | - | text | text
    bots that move               | - | - | - | moves | - | - | text | text
    function of a state          | - | - | - | -     | - | - | text | text
    function of player and seed  | - | - | - | -     | - | - | text | text
    string                       | - | - | - | -     | - | - | -    | file
    path                         | - | - | - | -     | - | - | -    | -
"""
# Functions in the order of `FUNCTIONS`; "-" is a number.
TABLE = {
    "tree": _ENUMERATED,
    "public-tree": _ENUMERATED,
    "phantom": _ENUMERATED,
    "simulated": """
    policy of OpenSpiel          | large | - | - | large | - | large | text | text
    policy of C++                | large | - | - | large | - | large | text | text
    TabularPolicy                | large | - | - | large | - | large | text | text
    pair of policies             | large | - | - | large | - | large | text | text
    Result                       | large | - | - | large | - | large | text | text
    network                      | large | - | - | large | - | large | text | text
    bots with get_policy         | large | - | - | large | - | large | text | text
    bots that move               | large | - | - | large | - | large | text | text
    function of a state          | large | - | - | large | - | large | text | text
    function of player and seed  | large | - | - | large | - | large | text | text
    string                       | large | - | - | large | - | large | -    | file
    path                         | large | - | - | large | - | large | -    | -
""",
}


def cells():
    for form, text in TABLE.items():
        rows = [[c.strip() for c in row.split("|")] for row in text.strip().split("\n")]
        assert [kind for kind, *_ in rows] == list(KINDS)
        for kind, *reasons in rows:
            for function, reason in zip(FUNCTIONS, reasons, strict=True):
                yield pytest.param(
                    form,
                    kind,
                    function,
                    reason,
                    id=f"{form}-{kind}-{function}",
                )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("policies")


@pytest.mark.parametrize(("form", "kind", "function", "reason"), list(cells()))
def test_function_returns_a_number_or_raises_as_listed_in_the_table(
    form, kind, function, reason, folder
):
    setting = SETTINGS[form]
    policy = KINDS[kind](form, folder)
    if reason != "-":
        error, words = REASONS[reason]
        with pytest.raises(error, match=words):
            FUNCTIONS[function](setting.game, policy, setting.limit)
        return
    value = FUNCTIONS[function](setting.game, policy, setting.limit)
    assert math.isfinite(value)
    exact = ("nash_conv", "exploit", "evaluate", "differences")
    if function in exact and not hasattr(policy, "moves") and form != "simulated":
        assert value == pytest.approx(nash_conv(form, kind), abs=1e-9)


# Kinds of objects that have the same strategy as another kind.
_ALIKE = {
    "TabularPolicy": "policy of OpenSpiel",
    "bots with get_policy": "policy of OpenSpiel",
    "function of a state": "policy of OpenSpiel",
    "function of player and seed": "policy of OpenSpiel",
    "string": "Result",
    "path": "Result",
}


@functools.cache
def nash_conv(form, kind):
    """Return the NashConv of a policy on a game tree, with the default memory limit."""
    policy = KINDS[_ALIKE.get(kind, kind)](form, None)
    if kind in ("Result", "string", "path", "network"):
        policy = policy.average_policy()
    return spiel_cr.nash_conv(SETTINGS[form].game, policy)
