"""Fingerprints tell games apart."""

import pyspiel
import pytest

from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.simulation import key_making
from tests.support import made_games


def print_of(game):
    return key_making.fingerprint(
        key_making.make_source(open_game(game), key_making.STRINGS)
    )


def drawn(share):
    """A game whose chance draws one of two cards, which player 0 sees."""

    def rules(path):
        if len(path) == 0:
            return made_games.Node(made_games.CHANCE, (0, 1), chance=(share, 1 - share))
        if len(path) == 1:
            return made_games.Node(0, (0, 1), (str(path), "nothing"))
        return made_games.Node(made_games.TERMINAL, utility=float(path[1]))

    return made_games.MadeGame(rules, "drawn")


def test_chance_is_looked_at():
    assert print_of(drawn(0.25)) == print_of(drawn(0.25))
    assert print_of(drawn(0.25)) != print_of(drawn(0.75))


@pytest.mark.parametrize(
    ("game", "other", "same"),
    [
        ("kuhn_poker", "kuhn_poker(players=2)", True),
        ("phantom_ttt", "phantom_ttt(obstype=reveal-nothing)", True),
        ("dark_hex(board_size=3)", "dark_hex(num_cols=3,num_rows=3)", True),
        ("leduc_poker", "leduc_poker(suit_isomorphism=false)", True),
        ("liars_dice", "liars_dice(bidding_rule=reset-quantity)", False),
        ("phantom_ttt", "tic_tac_toe", False),
    ],
)
def test_names_and_parameters_are_looked_at(monkeypatch, game, other, same):
    """Also where no match would tell the games apart."""
    monkeypatch.setattr(key_making, "_MATCHES", 0)
    assert (print_of(pyspiel.load_game(game)) == print_of(other)) is same
