"""Styles of play: counts of actions by street, intervals and outputs."""

import csv
import io
import math

import pytest

from spiel_cr.eval.tournaments import styles
from spiel_cr.players.fixed_policies import NotPokerError

LEDUC, KUHN = "leduc_poker", "kuhn_poker"
FOLD, CALL, RAISE = range(3)


def styles_by_bot(game, hands):
    return {style.bot: style for style in styles.styles_of(game, hands)}


def test_action_counts_of_leduc_hands_equal_a_count_by_hand():
    """Counts are (fold, check, call, raise) by street; the seats change."""
    hands = [
        # a checks, b raises, a calls; then a raises, b raises, a folds.
        ("one", ("a", "b"), [0, 2, CALL, RAISE, CALL, 4, RAISE, RAISE, FOLD]),
        # b raises, a folds.
        ("one", ("b", "a"), [0, 2, RAISE, FOLD]),
        # Both check down.
        ("two", ("a", "b"), [0, 2, CALL, CALL, 4, CALL, CALL]),
    ]
    both = styles_by_bot(LEDUC, hands)
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


def test_intervals_are_computed_over_deals():
    """Voluntary hands 1 of 2 and 0 of 1 leave residuals ±1/3 of 1.5 hands per deal."""
    hands = [
        ("one", ("a", "b"), [0, 2, RAISE, FOLD]),
        ("one", ("b", "a"), [0, 2, CALL, CALL, 4, CALL, CALL]),
        ("two", ("a", "b"), [0, 2, CALL, CALL, 4, CALL, CALL]),
    ]
    style = styles_by_bot(LEDUC, hands)["a"]
    t_1 = math.tan(math.pi * 0.475)  # Student's t with one degree of freedom
    spread = (1 / 3) / 1.5
    assert style.voluntary_half_width == pytest.approx(t_1 * spread)


def test_kuhn_actions_are_counted_as_fold_check_call_and_raise():
    # a checks, b bets, a folds; a checks, b bets, a calls.
    hands = [("x", ("a", "b"), [0, 1, 0, 1, 0]), ("y", ("a", "b"), [2, 1, 0, 1, 1])]
    both = styles_by_bot(KUHN, hands)
    assert both["a"].streets == [[1, 2, 1, 0]]
    assert both["b"].streets == [[0, 0, 0, 2]]


def test_free_fold_does_not_turn_checks_into_calls():
    """In python_leduc_poker, players may fold if there is nothing to call."""
    calls = [CALL, CALL, 2, CALL, RAISE, CALL]
    style = styles_by_bot("python_leduc_poker", [("x", ("a", "b"), [0, 1, *calls])])
    assert style["a"].streets == [[0, 1, 0, 0], [0, 1, 1, 0]]
    assert style["b"].streets == [[0, 1, 0, 0], [0, 0, 0, 1]]


def test_small_blind_calls_and_big_blind_checks():
    """The small blind must put in more chips, unlike the big blind."""
    game = (
        "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=2 1,firstPlayer="
        "2 1,raiseSize=2 4,maxRaises=3 4,numSuits=4,numRanks=13,numHoleCards=2,"
        "numBoardCards=0 3)"
    )
    deal = [0, 5, 10, 15]
    hands = [("x", ("a", "b"), [*deal, CALL, CALL, 20, 24, 28, RAISE, FOLD])]
    both = styles_by_bot(game, hands)
    # Player 1 has the small blind.
    assert both["b"].streets == [[0, 0, 1, 0], [1, 0, 0, 0]]
    assert both["a"].streets == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert (both["a"].voluntary, both["b"].voluntary) == (0, 1)


def test_styles_are_written_as_table_and_text():
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


def test_rejects_games_that_are_not_poker():
    with pytest.raises(NotPokerError):
        styles.styles_of("tic_tac_toe", [])
