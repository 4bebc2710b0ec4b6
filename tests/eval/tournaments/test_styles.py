"""Styles of play: what was done on which street, counted by hand."""

import csv
import io
import math

import pytest

from spiel_cr.eval.tournaments import styles
from spiel_cr.players.poker_roles import NotPokerError

LEDUC, KUHN = "leduc_poker", "kuhn_poker"
FOLD, CALL, RAISE = range(3)


def found(game, hands):
    return {style.bot: style for style in styles.styles_of(game, hands)}


def test_leduc_by_hand():
    """fold, check, call, raise by street; who sits where changes."""
    hands = [
        # a checks, b raises, a calls; then a raises, b raises, a folds.
        ("one", ("a", "b"), [0, 2, CALL, RAISE, CALL, 4, RAISE, RAISE, FOLD]),
        # b raises, a folds.
        ("one", ("b", "a"), [0, 2, RAISE, FOLD]),
        # Both check down.
        ("two", ("a", "b"), [0, 2, CALL, CALL, 4, CALL, CALL]),
    ]
    both = found(LEDUC, hands)
    assert both["a"].streets == [[1, 2, 1, 0], [1, 1, 0, 1]]
    assert both["b"].streets == [[0, 1, 0, 2], [0, 1, 0, 1]]
    assert both["a"].hands == both["b"].hands == 3
    # a calls one raise before the board; b raises twice.
    assert both["a"].voluntary == pytest.approx(1 / 3)
    assert both["b"].voluntary == pytest.approx(2 / 3)
    assert both["a"].aggression == 1.0
    assert both["b"].aggression is None is both["b"].aggression_half_width
    assert (both["a"].text, both["b"].text) == (
        "tight, aggressive",
        "loose, aggressive",
    )
    assert both["a"].shares(0) == [0.25, 0.5, 0.25, 0.0]


def test_intervals_are_over_deals():
    """Voluntary hands 1 of 2, 0 of 1: what is left by the ratio is ±1/3 of 1.5."""
    hands = [
        ("one", ("a", "b"), [0, 2, RAISE, FOLD]),
        ("one", ("b", "a"), [0, 2, CALL, CALL, 4, CALL, CALL]),
        ("two", ("a", "b"), [0, 2, CALL, CALL, 4, CALL, CALL]),
    ]
    style = found(LEDUC, hands)["a"]
    t_1 = math.tan(math.pi * 0.475)  # Student's t with one degree of freedom
    spread = (1 / 3) / 1.5
    assert style.voluntary_half_width == pytest.approx(t_1 * spread)


def test_kuhn_poker_has_two_actions_with_four_meanings():
    # a checks, b bets, a folds; a checks, b bets, a calls.
    hands = [("x", ("a", "b"), [0, 1, 0, 1, 0]), ("y", ("a", "b"), [2, 1, 0, 1, 1])]
    both = found(KUHN, hands)
    assert both["a"].streets == [[1, 2, 1, 0]]
    assert both["b"].streets == [[0, 0, 0, 2]]


def test_a_fold_that_is_free_makes_no_call():
    """In python_leduc_poker one may fold where there is nothing to call."""
    calls = [CALL, CALL, 2, CALL, RAISE, CALL]
    style = found("python_leduc_poker", [("x", ("a", "b"), [0, 1, *calls])])
    assert style["a"].streets == [[0, 1, 0, 0], [0, 1, 1, 0]]
    assert style["b"].streets == [[0, 1, 0, 0], [0, 0, 0, 1]]


def test_blinds_are_called():
    """In limit hold'em the small blind calls, and the big blind then checks."""
    game = (
        "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=2 1,firstPlayer="
        "2 1,raiseSize=2 4,maxRaises=3 4,numSuits=4,numRanks=13,numHoleCards=2,"
        "numBoardCards=0 3)"
    )
    deal = [0, 5, 10, 15]
    hands = [("x", ("a", "b"), [*deal, CALL, CALL, 20, 24, 28, RAISE, FOLD])]
    both = found(game, hands)
    # Player 1 has the small blind.
    assert both["b"].streets == [[0, 0, 1, 0], [1, 0, 0, 0]]
    assert both["a"].streets == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert (both["a"].voluntary, both["b"].voluntary) == (0, 1)


def test_table_and_lines():
    hands = [("one", ("a", "b"), [0, 2, CALL, RAISE, CALL, 4, RAISE, RAISE, FOLD])]
    made = styles.styles_of(LEDUC, hands)
    rows = list(csv.DictReader(io.StringIO(styles.table_of_styles(made))))
    assert [(row["bot"], row["street"]) for row in rows] == [
        (bot, street) for bot in "ab" for street in "01"
    ]
    assert rows[1]["fold"] == "1" and rows[1]["style"] == "loose, aggressive"
    assert rows[0]["voluntary_half_width"] == ""
    text = styles.lines_of_styles(made)
    assert text[0] == "a: loose, aggressive, 1 hands"
    assert "check  50.0%" in text[1] and text[3].endswith("raises per call 1.000 ± ?")


def test_other_games_are_refused():
    with pytest.raises(NotPokerError):
        styles.styles_of("tic_tac_toe", [])
