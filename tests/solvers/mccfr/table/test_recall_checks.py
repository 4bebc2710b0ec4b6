"""Information states that break their promises are found by random matches."""

import pytest

from spiel_cr.common.errors import ImperfectRecallError, InvalidGameError
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.stepping import key_making, recall_checks
from tests.support import made_games


def rules_of(first, second):
    """Player 0 acts twice; information and actions of the second time are given."""

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
def test_broken_promises_are_found(infos, exact, error):
    game = made_games.MadeGame(rules_of(*infos), "promises")
    source = key_making.make_source(open_game(game), key_making.STRINGS)
    if error is None:
        recall_checks.check_source(source, exact=exact)
    else:
        with pytest.raises(error):
            recall_checks.check_source(source, exact=exact)
