"""Known values and NashConvs of uniform play, also of equivalent OpenSpiel games."""

import pyspiel
import pytest
from open_spiel.python import policy
from open_spiel.python.algorithms import exploitability

import game_defs  # noqa: F401  (registers the games)
from tests.game_defs.test_ii_goofspiel import openspiel_game
from tests.support import lp_reference

PRINCESS = "python_princess_and_monster(horizon={})"
LEDUC = "python_leduc_poker(stack0=13,stack1=13,max_raises=2)"
GLASSES = "python_scotland_yard(map=glasses,rounds={})"
SIGNS = "python_rock_paper_scissors(num_actions={})"


def slow(*row):
    return pytest.param(*row, marks=pytest.mark.slow)


# Tolerances are half of the last digit that other programs or papers agree on. The
# error of the linear program is 1e-7 relative to the largest utility.
@pytest.mark.parametrize(
    ("game", "value", "close"),
    [
        *((f"python_ii_goofspiel(num_cards={n})", 0.0, 1e-7) for n in (3, 4)),
        *((openspiel_game(n), 0.0, 1e-7) for n in (3, 4)),
        (PRINCESS.format(4), 42 / 13, 5e-8),
        (PRINCESS.format(5), 1.8715572, 5e-8),
        ("python_leduc_poker", -0.07811, 5e-6),
        (LEDUC, -0.085606, 5e-7),
        # OpenSpiel's game differs only in suits and in folds without a raise.
        ("leduc_poker", -0.085606, 5e-7),
        *((SIGNS.format(n), 0.0, 1e-7) for n in (3, 5, 7, 11)),
    ],
    ids=str,
)
def test_game_values_equal_known_values(game, value, close):
    found = lp_reference.game_value(pyspiel.load_game(str(game)))
    assert found == pytest.approx(value, abs=close)


# Tolerances of sums of up to 10^5 terms, each with relative error 1e-16, and of few.
MANY, FEW = 1e-10, 1e-12


@pytest.mark.parametrize(
    ("game", "nash_conv", "close"),
    [
        ("python_ii_goofspiel(num_cards=4)", 17 / 12, MANY),
        (openspiel_game(4), 17 / 12, MANY),
        slow("python_ii_goofspiel(num_cards=5)", 1.55, MANY),
        slow(openspiel_game(5), 1.55, MANY),
        (PRINCESS.format(4), 5.5, MANY),
        slow(PRINCESS.format(5), 65 / 9, MANY),
        ("python_leduc_poker", 2.725, FEW),
        *((SIGNS.format(n), 0.0, FEW) for n in (3, 5, 7, 11)),
        # OpenSpiel computed these values; they detect changes of the map.
        (GLASSES.format(2), 1.5, MANY),
        slow(GLASSES.format(3), 1.6547067901234567, MANY),
    ],
    ids=str,
)
def test_nash_conv_of_uniform_play_equals_known_values(game, nash_conv, close):
    loaded = pyspiel.load_game(str(game))
    found = exploitability.nash_conv(loaded, policy.UniformRandomPolicy(loaded))
    assert found == pytest.approx(nash_conv, abs=close)
