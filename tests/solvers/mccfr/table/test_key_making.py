"""Fingerprints of games."""

import pyspiel
import pytest

from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.simulation import key_making
from tests.support import made_games


def fingerprint_of(game):
    return key_making.fingerprint(
        key_making.make_source(open_game(game), key_making.STRINGS)
    )


def drawn(share):
    """Return a game in which player 0 sees one of two cards that chance draws."""

    def rules(path):
        if len(path) == 0:
            return made_games.Node(made_games.CHANCE, (0, 1), chance=(share, 1 - share))
        if len(path) == 1:
            return made_games.Node(0, (0, 1), (str(path), "nothing"))
        return made_games.Node(made_games.TERMINAL, utility=float(path[1]))

    return made_games.MadeGame(rules, "drawn")


def test_fingerprint_depends_on_chance_probabilities():
    assert fingerprint_of(drawn(0.25)) == fingerprint_of(drawn(0.25))
    assert fingerprint_of(drawn(0.25)) != fingerprint_of(drawn(0.75))


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
def test_fingerprint_depends_on_name_and_parameters(monkeypatch, game, other, same):
    """This holds even without matches, which would distinguish the games."""
    monkeypatch.setattr(key_making, "_MATCHES", 0)
    assert (fingerprint_of(pyspiel.load_game(game)) == fingerprint_of(other)) is same
