"""Game strings: spellings that are accepted, and errors that suggest a remedy."""

import pyspiel
import pytest

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.common import messages
from spiel_cr.games.opening.game_strings import load_string
from spiel_cr.games.opening.opened import load_game, open_game
from spiel_cr.games.opening.origins import load_again


def test_registered_games_are_loaded_from_their_strings():
    seen = 0
    for kind in pyspiel.registered_games():
        if not kind.default_loadable or "python" in kind.short_name:
            continue
        # Only two-player games are supported.
        if not kind.min_num_players <= 2 <= kind.max_num_players:
            continue
        game = pyspiel.load_game(kind.short_name)
        if game.num_players() == 2 and game.get_type().short_name != "crossword":
            assert str(load_string(str(game))) == str(game)
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
        ("kriegspiel(fen=)", "kriegspiel()"),
    ],
)
def test_accepts_spellings_that_openspiel_rejects(text, same):
    game = load_string(text)
    assert same is None or str(game) == str(pyspiel.load_game(same))


# Pairs of an invalid string and a pattern of the error message.
ROWS = [
    ("", "is not a name"),
    ("kuhn_pocker", "did you mean kuhn_poker"),
    ("limit_holdem", r"for a river.*'universal_poker\(betting=limit,"),
    ("texas", "for a river"),
    ("rps", "write python_rock_paper_scissors$"),
    ("Goofspiel_4", r"write python_ii_goofspiel\(num_cards=4\)"),
    ("kuhn", "write kuhn_poker$"),
    ("rhode_island", "did you mean python_rhode_island_holdem"),
    ("kuhn_poker(players=2)x", "'x' follows the last bracket"),
    ("kuhn_poker(players=2))", "follows the last bracket"),
    ("kuhn_poker(players=2", "bracket is not closed"),
    ("kuhn_poker(players=2,players=2)", "players is given twice"),
    ("kuhn_poker(players)", "is not parameter=value"),
    ("kuhn_poker(players=)", "players= must be a whole number .*players=2"),
    (
        "kuhn_poker(flavour=1)",
        "unknown parameter 'flavour'; kuhn_poker accepts players",
    ),
    ("python_leduc_poker(flavour=1)", "'flavour'; .*accepts .*num_ranks=3"),
    ("kuhn_poker(players=2.5)", "players=2.5 must be a whole"),
    ("kuhn_poker(players=99999999999999999999)", "must be a whole number of 32 bits"),
    ("kuhn_poker(players=11)", "exactly two players .* has 11; set players=2"),
    ("universal_poker(betting=limit,numPlayers=7)", "exactly two players"),
    ("leduc_poker(action_mapping=1)", "must be true or false"),
    ("add_noise(game=kuhn_poker(),epsilon=nan)", "epsilon=nan must be a finite number"),
    ("add_noise(game=kuhn_poker(),epsilon=1_0)", "epsilon=1_0 must be a number"),
    ("misere(game=kuhn_poker(flavour=1))", "'flavour'"),
    ("misere(game=nothing())", "Unknown game 'nothing'"),
    ("efg_game", r"write efg_game\(filename=PATH\)"),
    ("efg_game(filename=/)", "filename=/: there is no such file; give"),
    ("nfg_game(filename=nowhere)", "filename=nowhere: there is no such file"),
    ("nfg_game(filename=no\nwhere)", r"filename=no\\nwhere: there is no such file"),
    ("liars_dice(dice_sides=-1)", "OpenSpiel rejects it; .*dice_sides=6"),
    ("go(board_size=99)", r"rejects it \(.*up to 19.*\); choose .*board_size=19"),
    ("hex(board_size=0)", "initial state has no legal action; choose"),
    ("turn_based_simultaneous_game(game=kuhn_poker())", "OpenSpiel rejects it; choose"),
]

# OpenSpiel reads unset memory at invalid positions.
ROWS += [
    ("kriegspiel(fen=5)", "fen=5 must be a position of 8 ranks"),
    ("kriegspiel(fen=8/8/8/8/8/8/8/8 w - - 0 1)", "with one king each"),
    ("rbc(board_size=4,fen=x)", "must be a position of 4 ranks"),
    ("antichess(fen=rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w)", "fen=rnb"),
    ("markov_soccer(grid=a\nb)", r"choose .* grid=\.\.\.\.\.\\n"),
    ("markov_soccer", "offers no information_state_string"),
    ("laser_tag(grid=S.S\n...)", r"^laser_tag\(grid=S.S\\n...\): .*zero-sum"),
    ("kuhn_poker(\ud800=1)", "is not parameter=value"),
    ("kuhn\ud800", "is not a name"),
]

# Most of these would terminate the process in OpenSpiel.
POKER_ROWS = [
    ("numRanks=14", "numRanks=14 must be a whole number from 2 to 13"),
    ("numSuits=0", "numSuits=0 must be"),
    ("numHoleCards=9", "numHoleCards=9 must be a whole number from 1 to 3"),
    ("numRounds=-1", "numRounds=-1 must be"),
    ("numRounds=3", "firstPlayer=1 1 must be 3 whole numbers from 1 to 2"),
    ("betting=limit,numRounds=1,raiseSize=0 2", "raiseSize=0 2 must be 1 whole"),
    ("betting=limit,raiseSize=a b", "raiseSize=a b must be 2 whole numbers"),
    ("blind=a b", "blind=a b must be 2 whole numbers from 0 to 2147483647"),
    ("blind=0 0 4", "blind=0 0 4 must have a positive number"),
    ("stack=99999999999 1", "stack=99999999999 1 must be"),
    ("blind=5 10,stack=20 9", "stack=20 9 must be larger than .* blind, 10"),
    ("potSize=5", "potSize=5 must be even"),
    (
        "blind=10 5,potSize=80",
        "potSize=80 must be twice the largest blind.* write blind=40 40",
    ),
    ("maxRaises=x y", "maxRaises=x y must be"),
    (
        "numBoardCards=3 5,numRanks=13",
        "numBoardCards=3 5: a board has at most 7 cards",
    ),
    ("numRanks=2,numSuits=1", "must fit in the deck of 2 cards"),
    ("boardCards=2C", "boardCards=2C must be at most 1 different cards .*, such as 7c"),
    ("numBoardCards=0 2,boardCards=2c2c", "must be at most 2 different cards"),
    ("handReaches=1 2", "handReaches must be 2652 nonnegative numbers"),
]


@pytest.mark.parametrize(
    ("text", "words"),
    ROWS + [(f"universal_poker({given})", words) for given, words in POKER_ROWS],
)
def test_invalid_strings_raise_helpful_errors(text, words):
    with pytest.raises((ValueError, pyspiel.SpielError), match=words) as caught:
        load_game(text)
    message = str(caught.value)
    assert message.startswith(("game='", text.partition("(")[0]))
    assert message.isprintable() and "CHECK" not in message and ".cc:" not in message


KUHN = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=1,blind=1 1,raiseSize={0},"
    "firstPlayer={0},maxRaises={0},numSuits=1,numRanks=3,numHoleCards=1,"
    "numBoardCards={1})"
)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("nim(pile_sizes=5)", {"name": "nim", "pile_sizes": "5"}),
        ('nim(pile_sizes="5")', {"name": "nim", "pile_sizes": "5"}),
        ("nim(pile_sizes='1;2')", {"name": "nim", "pile_sizes": "1;2"}),
        (
            "misere(game=nim(pile_sizes=2))",
            {"name": "misere", "game": {"name": "nim", "pile_sizes": "2"}},
        ),
    ],
)
def test_numeric_looking_text_parameters_stay_text(text, same):
    name = same.pop("name")
    game = load_string(text)
    assert str(game) == str(pyspiel.load_game(name, same))
    assert str(load_game(str(game))) == str(game)
    again = load_again(game)
    assert again is not None and again.get_parameters() == game.get_parameters()


@pytest.mark.parametrize(
    "written", [("1", "0"), ('"1"', '"0"'), ("1 1", "0 0"), ("1 2 2", "0 1")]
)
def test_one_round_poker_accepts_single_values(written):
    """The game is Kuhn poker, whose value is known."""
    result = spiel_cr.solve(KUHN.format(*written), "lp")
    assert result.game_value() == pytest.approx(-1 / 18, abs=1e-12)
    assert open_game(KUHN.format(*written)).rules is not None


# Texts that OpenSpiel would parse as other types, and texts with unusual characters.
TEXTS = ("5", "-1", "1.5", "true", '"5"', "x", "a\nb", "\x00", "9" * 30, "\ud800", "")


def _text_parameters():
    return [
        (kind.short_name, key)
        for kind in pyspiel.registered_games()
        if kind.utility == pyspiel.GameType.Utility.ZERO_SUM
        and kind.min_num_players <= 2 <= kind.max_num_players
        for key, default in kind.parameter_specification.items()
        if isinstance(default, str)
    ]


def test_text_parameters_accept_any_text():
    """The game is loaded, or the error does not claim that the value must be text."""
    seen, loaded = _text_parameters(), 0
    assert len(seen) > 25
    for name, key in seen:
        for value in TEXTS:
            try:
                game = load_string(f"{name}({key}={value})")
            except (ValueError, pyspiel.SpielError) as error:
                message = str(error)
                assert message.isprintable() and (name in message or key in message)
                assert "must be text" not in message and "CHECK" not in message
                continue
            loaded += 1
            if value:
                assert game.get_parameters().get(key, value) == value.strip('"')
    assert loaded > 10


def test_loading_prints_progress(capsys):
    """Some games load for half a minute, during which OpenSpiel prints nothing."""
    with messages.listening():
        load_string("blotto(coins=4,fields=3)")
    assert capsys.readouterr().err.strip().endswith("s] loading blotto")
