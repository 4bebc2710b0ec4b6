"""Game strings: what OpenSpiel takes is taken, and a mistake is told with a remedy."""

import pyspiel
import pytest

import game_defs  # noqa: F401  registers the project's games
from spiel_cr.games.opening import game_strings
from spiel_cr.games.opening.loading import load_game


def test_games_are_loaded_by_their_own_strings():
    seen = 0
    for kind in pyspiel.registered_games():
        if not kind.default_loadable or "python" in kind.short_name:
            continue
        # What two players can play, and the checks of strings know no more of.
        if not kind.min_num_players <= 2 <= kind.max_num_players:
            continue
        game = pyspiel.load_game(kind.short_name)
        if game.num_players() == 2 and game.get_type().short_name != "crossword":
            assert str(game_strings.load(str(game))) == str(game)
            seen += 1
    assert seen > 50


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (" kuhn_poker (players = 2) ", "kuhn_poker(players=2)"),
        ("misere(game=kuhn_poker)", "misere(game=kuhn_poker())"),
        ("restricted_nash_response(game=kuhn_poker(),p=1)", None),
        ("restricted_nash_response(game=kuhn_poker(),p=1e-9)", None),
        ("leduc_poker(action_mapping=True)", "leduc_poker(action_mapping=True)"),
    ],
)
def test_what_openspiel_reads_too_strictly_is_taken(text, same):
    game = game_strings.load(text)
    assert same is None or str(game) == str(pyspiel.load_game(same))


# A string, and what the error says.
ROWS = [
    ("", "no name"),
    ("kuhn_pocker", "did you mean kuhn_poker"),
    ("kuhn_poker(players=2)x", "'x' stands behind the last bracket"),
    ("kuhn_poker(players=2))", "stands behind the last bracket"),
    ("kuhn_poker(players=2", "bracket is not closed"),
    ("kuhn_poker(players=2,players=2)", "players is given twice"),
    ("kuhn_poker(players)", "is not parameter=value"),
    ("kuhn_poker(players=)", "players= must be a whole number .*players=2"),
    ("kuhn_poker(flavour=1)", "unknown parameter 'flavour'; kuhn_poker takes players"),
    ("python_leduc_poker(flavour=1)", "'flavour'; .*takes .*num_ranks=3"),
    ("kuhn_poker(players=2.5)", "players=2.5 must be a whole"),
    ("kuhn_poker(players=99999999999999999999)", "must be a whole number of 32 bits"),
    ("kuhn_poker(players=11)", "exactly two players .* has 11; set players=2"),
    ("universal_poker(betting=limit,numPlayers=7)", "exactly two players"),
    ("leduc_poker(action_mapping=1)", "must be true or false"),
    ("python_scotland_yard(map=5)", "map=5 must be text; .*map=glasses"),
    ("add_noise(game=kuhn_poker(),epsilon=nan)", "epsilon=nan must be a finite number"),
    ("add_noise(game=kuhn_poker(),epsilon=1_0)", "epsilon=1_0 must be a number"),
    ("misere(game=kuhn_poker(flavour=1))", "'flavour'"),
    ("misere(game=nothing())", "Unknown game 'nothing'"),
    ("efg_game", r"write efg_game\(filename=PATH\)"),
    ("efg_game(filename=/)", "filename=/: there is no such file; give"),
    ("nfg_game(filename=nowhere)", "filename=nowhere: there is no such file"),
    ("nfg_game(filename=no\nwhere)", r"filename='no\\nwhere': there is no such file"),
    ("liars_dice(dice_sides=-1)", "OpenSpiel refuses it; .*dice_sides=6"),
    ("go(board_size=99)", r"refuses it \(.*up to 19.*\); choose .*board_size=19"),
    ("hex(board_size=0)", "no legal action at its beginning; choose"),
    ("turn_based_simultaneous_game(game=kuhn_poker())", "OpenSpiel refuses it; choose"),
]


@pytest.mark.parametrize(("text", "words"), ROWS)
def test_mistakes(text, words):
    with pytest.raises((ValueError, pyspiel.SpielError), match=words) as caught:
        load_game(text)
    message = str(caught.value)
    assert message.startswith("game='")
    assert "\n" not in message and "CHECK" not in message and ".cc:" not in message
