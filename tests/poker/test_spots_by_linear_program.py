"""Values of random spots with few hands, compared with linear programs.

The reference enumerates every pair of hands and every card by OpenSpiel's interface and
shares no code with the forms of the game.
"""

import numpy as np
import pytest

import spiel_cr
from game_defs.bundled.holdem.cards import HoldemDeck
from spiel_cr import poker
from spiel_cr.games.public_tree import public_tree_game
from spiel_cr.policies.best_responses import value_bounds
from spiel_cr.solvers.cfr import board_arrays, board_solver
from spiel_cr.solvers.cfr.cfr_config import PRESETS
from tests.support import lp_reference

BETS = ("50%; cap 2", "pot; cap 1", "allin", "30c; raises allin; cap 2")
# Few bets, because the reference visits each pair of hands with each turn and river.
FLOP_BETS = ("allin; flop none; turn none", "pot; cap 1; turn none; river none")


def random_spot(cards: int, seed: int):
    """Draw a spot with up to three hands each, some weights and symmetric suits."""
    rng = np.random.default_rng(seed)
    deck = HoldemDeck(13, 4)
    order = rng.permutation(52)
    if seed % 3 == 0:  # A board of one suit: the others are equivalent.
        suit = order[0] % 4
        order = np.array(sorted(order, key=lambda card: card % 4 != suit))
    board, left = order[:cards], order[cards:]
    ranges = []
    for _ in range(2):
        count = int(rng.integers(1, 4))
        hands = [deck.text(rng.choice(left, 2, replace=False)) for _ in range(count)]
        if seed % 3 == 0:
            hands = hands[:1] + ["QQ" if cards > 3 else "AA"]
        weights = rng.choice(["", ":0.5", ":0.25"], size=len(hands))
        parts = (hand + weight for hand, weight in zip(hands, weights, strict=True))
        ranges.append(",".join(dict.fromkeys(parts)))
    bets = FLOP_BETS if cards == 3 else BETS
    pot, stack = int(rng.integers(10, 200)), int(rng.integers(20, 300))
    text = deck.text(board)
    return poker.spot(text, pot, stack, ranges=ranges, bets=bets[seed % len(bets)]), pot


def check(cards, seed, monkeypatch, *, products=False):
    game, pot = random_spot(cards, seed)
    expected = lp_reference.game_value(game)
    result = spiel_cr.solve(game, "lp", options=spiel_cr.GameOptions("public-tree"))
    monkeypatch.setattr(board_arrays, "has_many_hands", lambda _: True)
    public_tree = public_tree_game(game)
    dtype = np.dtype(float)
    solver = board_solver.make_solver(
        public_tree, public_tree.sequence_form, config=PRESETS["dcfr"], dtype=dtype
    )
    if solver is None:  # Without bets, the flop and the turn have no payoffs.
        assert cards == 3
        low, high = value_bounds(public_tree.sequence_form, result.average)
        values = high, -low
    else:
        average = solver.engine.by_position(result.average)
        values = solver.engine.best_values(average, locks=None)
    assert values[0] == pytest.approx(expected, abs=1e-6 * pot)
    assert values[1] == pytest.approx(-expected, abs=1e-6 * pot)
    if products:
        # Sums over hands in JAX.
        monkeypatch.setattr("spiel_cr.games.public_tree.matrix_operators._FEW_PAIRS", 0)
        form = public_tree.build_sequence_form(products=True)
        bounds = value_bounds(form, result.average)
        assert bounds == pytest.approx((expected, expected), abs=1e-6 * pot)


@pytest.mark.parametrize(
    "seed",
    [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 20))],
)
def test_river_values_equal_a_linear_program(seed, monkeypatch):
    check(5, seed, monkeypatch, products=seed < 2)


@pytest.mark.parametrize(
    "seed",
    # The sixth spot has suits in symmetry and the fewest bets.
    [6, *(pytest.param(n, marks=pytest.mark.slow) for n in (*range(6), 7))],
)
def test_turn_values_equal_a_linear_program(seed, monkeypatch):
    check(4, seed, monkeypatch, products=seed == 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_flop_values_equal_a_linear_program(seed, monkeypatch):
    check(3, seed, monkeypatch)
