"""Random matches that detect invalid information states and imperfect recall."""

import pytest

import spiel_cr
from spiel_cr.common.errors import (
    GameTooLargeError,
    ImperfectRecallError,
    InvalidGameError,
)
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.simulation import key_making, recall_checks
from tests.support import made_games


def rules_of(first, second):
    """Return rules where player 0 acts twice, with given infosets the second time."""

    def rules(path):
        if len(path) == 0:
            return made_games.Node(0, (0, 1), ("start", "start"))
        if len(path) == 1:
            info = (first, second)[path[0]]
            actions = range(int(info[-1]))
            return made_games.Node(0, tuple(actions), (info[:-1], "start"))
        return made_games.Node(made_games.TERMINAL, utility=float(path[0]))

    return rules


@pytest.mark.parametrize(
    ("infos", "exact", "error"),
    [
        (("left2", "right3"), True, None),
        (("same2", "same2"), True, ImperfectRecallError),
        (("same2", "same2"), False, None),
        (("same2", "same3"), False, InvalidGameError),
    ],
)
def test_detects_imperfect_recall_and_unequal_actions(infos, exact, error):
    game = made_games.MadeGame(rules_of(*infos), "promises")
    source = key_making.make_source(open_game(game), key_making.STRINGS)
    if error is None:
        recall_checks.check_source(source, exact=exact)
    else:
        with pytest.raises(error):
            recall_checks.check_source(source, exact=exact)


def test_plays_few_matches_at_once_if_many_actions_are_legal():
    """Every match stores a list of its legal actions."""
    source = key_making.make_source(open_game("kuhn_poker"), key_making.STRINGS)
    source.max_actions, start, counts = 1 << 20, source.start, []

    def counted(count, random):
        counts.append(count)
        return start(count, random)

    source.start = counted
    recall_checks.check_source(source, exact=True)
    assert max(counts) <= 4 and sum(counts) >= 2048


def test_memory_limit_is_checked_before_the_matches(monkeypatch):
    monkeypatch.setattr(recall_checks, "check_source", None)
    options = spiel_cr.GameOptions("simulator", memory_limit="2GB")
    with pytest.raises(GameTooLargeError, match="choose batch=[1-9][0-9]* or less"):
        spiel_cr.solve(
            "blotto(coins=30,fields=5)", "os-mccfr(batch=4096)", 1, options=options
        )


def test_rejects_more_actions_than_a_table_can_count():
    """The error names the number of actions, not an invalid information state."""
    options = spiel_cr.GameOptions("simulator", memory_limit="2GB")
    with pytest.raises(GameTooLargeError, match="up to 176,851 actions, .* 65,535;"):
        spiel_cr.solve(
            "blotto(coins=100,fields=4)", "os-mccfr(batch=1)", 1, options=options
        )
