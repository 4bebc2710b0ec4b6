"""Valid and invalid values for the options of commands.

Numbers, sizes, paths and choices come from the parsers. `_VALUES` contains words, and
numbers of other ranges than 1, 2, 3, ...
"""

import argparse
import functools
import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from spiel_cr.abstraction.methods import Method
from spiel_cr.common.parameters import table_of
from spiel_cr.eval.cli import main
from spiel_cr.eval.cli import setting_options as cli
from spiel_cr.players.player_strings import PLAYERS
from spiel_cr.solvers.cfr.cfr_config import PRESETS, SAMPLED_PRESETS


class Bad(NamedTuple):
    """An invalid value.

    Attributes:
      value: The value as written.
      names: Names of the argument in messages; empty for the name of the option.
      shown: Parts of the value of which a message must show one; empty for all of it.
      inside: String that messages quote; they must show names and values elsewhere.
      sure: Whether it is always invalid; otherwise it may be valid.
    """

    value: str
    names: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    inside: str = ""
    sure: bool = True


class Values(NamedTuple):
    """Valid and invalid values of an option."""

    good: Sequence[str]
    bad: Sequence[str | Bad] | Callable[[], Sequence[str | Bad]]


def _lines(text: str) -> list[str]:
    """Split values at line ends, or at two or more spaces."""
    return [word for word in re.split(r"\n|  +", text) if word]


_BYTES = "caf\udce9"  # A Latin-1 word with an accent, which is not UTF-8.
_NOT_TEXT = [_BYTES, "nul\0nul"]
# Invalid values where only some words and numbers are valid.
_NO_WORD = ["two\nlines", *_NOT_TEXT]
_NOTHING = ["", " ", *_NO_WORD]
_NOT_WHOLE = [
    *_lines("nan  inf  -inf  1.5  1e3  many  0x10  5 apples  1;2"),
    *("\uff15", "9" * 20, "-" + "9" * 20, "9" * 5000, *_NOTHING),
]
_NOT_NUMBER = [*_lines("nan  x  1,5  5 apples  1e  1_0"), "\uff11", *_NOTHING]
_NOT_SIZE = [
    *_lines("3 apples  -1GB  nan  inf  1..5GB  GB  1e-3  3GB and more"),
    *("\uff13GB", *_NOTHING),
]
_NOT_PATH = ["", " ", "fifo", "socket", *_NOT_TEXT]
_NOT_FILE = [
    *("folder", "file/x.npz", "/proc/none/x.npz", "n" * 300 + ".npz", *_NOT_PATH)
]
_NOT_FOLDER = ["file", "file/x", "/proc/none/x", "n" * 300, *_NOT_PATH]
_NOT_POLICY = [
    *_lines("missing.npz  folder  folder.npz  text.npz  empty.npz  fifo.npz"),
    *_lines("other.npz  arrays.npz  pickled.npz  truncated.npz"),
    *("", *_NO_WORD),
]
_POLICY_FILES = [path for path in _NOT_POLICY if path.endswith(".npz")]

_POKER = {
    **{"betting": "limit", "numPlayers": "2", "numRounds": "1", "blind": "1 1"},
    **{"firstPlayer": "1 1", "numSuits": "1", "numRanks": "3", "numHoleCards": "1"},
    **{"numBoardCards": "0 0", "raiseSize": "1 1", "maxRaises": "1 1"},
}


def _poker(**given: str) -> str:
    pairs = (f"{key}={value}" for key, value in {**_POKER, **given}.items())
    return f"universal_poker({','.join(pairs)})"


_TWO_ROUNDS = _poker(numRounds="2", numSuits="2", numBoardCards="0 1")
POKER_GAMES = (
    *(_poker(), _poker(numRanks="4"), _poker(numSuits="2", numRanks="2")),
    *(_poker(betting="nolimit", stack="3 3"), _poker(maxRaises="0 0"), _TWO_ROUNDS),
)
_NOT_POKER = {
    **{"numRanks": "14  1  0  -1  2.5", "numSuits": "0  5  -1  x", "speed": "1"},
    **{"numHoleCards": "0  4  9  -1", "numRounds": "0  5  -1  x", "potSize": "5  -2"},
    **{"blind": "a b  1  -1 1  0 0  1.5 2", "stack": "1 1  x y  9", "betting": "pot"},
    **{"firstPlayer": "0  3 3  x  -1", "numBoardCards": "9 9  x  -1  2 2"},
    **{"raiseSize": "0 0  x  -1  1.5", "maxRaises": "256 1  x  -1"},
    **{"boardCards": "2C  2c  Ax  9", "handReaches": "1 2  x"},
}
POKER_MISTAKES = [
    Bad(_poker(**{"betting": "nolimit", key: value}), (key,), (value,))
    if key == "stack"
    else Bad(_poker(**{key: value}), (key,), (value,))
    for key, values in _NOT_POKER.items()
    for value in _lines(values)
]


def any_poker(draw: random.Random) -> Bad:
    """Draw parameters of `universal_poker`, valid, immense or invalid."""
    rounds = draw.randrange(1, 5)
    given = {
        "numRounds": str(rounds),
        "betting": draw.choice(["limit", "nolimit"]),
        "blind": draw.choice(["1 1", "1 2", "5 10", "2 1", "0 3"]),
        "stack": draw.choice(["3 3", "2 5", "20 20", "1200 1200", "100 3"]),
        "numSuits": draw.choice("1234"),
        "numRanks": draw.choice(["2", "3", "4", "6", "13"]),
        "numHoleCards": draw.choice("1112"),
        "bettingAbstraction": draw.choice(["fcpa", "fc", "fullgame", "fchpa", "none"]),
    }
    for key, numbers in (
        *(("firstPlayer", "1 2"), ("numBoardCards", "0 0 1 1 3")),
        *(("raiseSize", "1 2 10"), ("maxRaises", "0 1 1 2 4")),
    ):
        given[key] = " ".join(draw.choice(numbers.split()) for _ in range(rounds))
    for key in draw.sample(sorted(given), draw.randrange(4)):
        del given[key]
    if draw.random() < 0.3:
        given[draw.choice(sorted(given))] = draw.choice(
            ["", "0", "9", "x", "1 1 1 1 1"]
        )
    text = f"universal_poker({','.join(f'{key}={v}' for key, v in given.items())})"
    return Bad(text, ("game", "universal_poker"), ("universal_poker",), sure=False)


_GAMES = [
    *_lines("kuhn_poker  kuhn_poker()  kuhn_poker(players=2)  python_kuhn_poker"),
    *("python_rock_paper_scissors", "matrix_rps", "liars_dice(numdice=1,dice_sides=2)"),
    "python_ii_goofspiel(num_cards=3)",
    "turn_based_simultaneous_game(game=matrix_rps())",
]
_NOT_GAME = [
    *("()", "\u043auhn_poker", "g" * 5000, "nfg_game(filename=two\nlines)", *_NOTHING),
    *_lines("""
kuhn_pocker  KUHN_POKER  kuhn poker  kuhn_poker)  2048  kuhn_poker(players=2
kuhn_poker(players=2))  kuhn_poker(players=2)x  kuhn_poker()()  kuhn_poker((players=2))
kuhn_poker(players=2,players=2)  kuhn_poker(players)  kuhn_poker(=2)
kuhn_poker(players=)  kuhn_poker(flavour=1)  python_leduc_poker(flavour=1)
kuhn_poker(players=3)  kuhn_poker(players=0)  kuhn_poker(players=-1)
kuhn_poker(players=11)  kuhn_poker(players=two)  kuhn_poker(players=2.5)
kuhn_poker(players=true)  kuhn_poker(players=99999999999999999999)
matrix_pd  bargaining  blackjack  oh_hell  tarok  hearts  catch  pathfinding
mfg_crowd_modelling  python_mfg_predator_prey  coop_box_pushing  efg_game
efg_game(filename=folder)  efg_game(filename=missing.efg)  efg_game(filename=file)
nfg_game(filename=folder)  nfg_game(filename=file)  universal_poker(numPlayers=2)x
universal_poker(betting=limit,numPlayers=7)  liars_dice(numdice=0)
liars_dice(dice_sides=-1)  liars_dice(numdice=x)  python_leduc_poker(num_ranks=0)
python_leduc_poker(num_ranks=x)  python_leduc_poker(num_ranks=99999999999999999999)
python_ii_goofspiel(num_cards=0)  python_ii_goofspiel(points_order=up)
python_scotland_yard(map=moon)  python_scotland_yard(rounds=-1)  hex(board_size=0)
python_princess_and_monster(horizon=0)  python_princess_and_monster(rows=0)
repeated_game(stage_game=matrix_rps(),num_repetitions=1)  go(board_size=99)
repeated_game(stage_game=nothing(),num_repetitions=1)
turn_based_simultaneous_game(game=kuhn_poker())
"""),
]
_ALGORITHMS = [
    *_lines("cfr  cfr+  cfr()  dcfr(alpha=1.5,beta=0,gamma=2)  pcfr+  pdcfr+"),
    *("lcfr(exploration=0.1)", "cfr+(alternating=false)", " cfr+ ", "hs-dcfr(ramp=9)"),
]
SAMPLED = ("os-mccfr(batch=16)", "es-mccfr(batch=4)", "evr-mccfr(batch=16)")
_BOTS = [
    *_lines("uniform  uniform()  resolving(iterations=2)  solved(iterations=2)"),
    *("policy(path=kuhn.npz)", "resolving(iterations=2,gadget=maxmargin)"),
    "resolving(iterations=2,depth=1,depth_unit=rounds,leaf=uniform)",
]
_LEAVES = [
    *("uniform", "continuations(path=kuhn.npz,k=1)"),
]


def _broken(*texts: str) -> list[Bad]:
    """Return invalid variants of strings with parameters."""
    broken = []
    for text in texts:
        name, _, rest = text.partition("(")
        inside = rest.removesuffix(")")
        ends = [f"({inside}", f"({inside}))", f"({inside})x", f"({inside})()", "=1"]
        ends.append(f"(({inside}))x")
        if inside:
            ends += [f"({inside},{inside})", f"({inside},x)", f"({inside},,=)"]
            ends += [f"({inside},x=)", f"[{inside}]"]
        broken += [f"({text})", *(name + end for end in ends)]
    return [Bad(text) for text in broken]


_BAD_OF_TYPE = {
    int: ["", "x", "1.5", "nan", "-1", "1_0", "99999999999999999999", "a\nb"],
    float: ["", "x", "nan", "1,5", "\uff11", "a\nb"],
    bool: ["", "2", "perhaps", "a\nb"],
    str: ["", "nonsense", "(", "cfr+)", "a\nb"],
}


def _type_of(hint: object) -> type:
    for kind in (bool, int, float):
        if hint is kind or kind in getattr(hint, "__args__", ()):
            return kind
    return str


def _bad_parameters(
    name: str, base: dict[str, str], table: dict[str, object]
) -> list[Bad]:
    """Return strings with one invalid parameter, from a table of parameters."""
    found = []
    for key, hint in {**table, "speed": None}.items():
        for value in ["1"] if hint is None else _BAD_OF_TYPE[_type_of(hint)]:
            given = ",".join(f"{k}={v}" for k, v in {**base, key: value}.items())
            text = f"{name}({given})"
            if re.search("[(),]", value):
                # It breaks the string, of which no part can be named with certainty.
                found.append(Bad(text, (key, value), (value,)))
                continue
            shown = (f"{key}={value}", f"{key}={value!r}", repr(value))
            if not value:
                shown = (repr(f"{key}="),)
            if hint is None:
                shown = (key,)
            found.append(Bad(text, (key,), shown, inside=text))
    return found


@functools.cache
def _not_leaves() -> list[Bad]:
    return [
        *map(Bad, ("Uniform", "best", "policy", *_NOTHING)),
        *_broken(_LEAVES[1]),
        Bad("continuations(path=missing.npz)", ("path",), ("missing.npz",)),
        Bad("continuations(path=text.npz)", ("path",), ("text.npz",)),
        Bad("continuations(path=kuhn.npz,k=0)", ("k",), ("0",)),
        *_bad_parameters("continuations", {"path": "kuhn.npz"}, {"k": int}),
    ]


@functools.cache
def _not_algorithms() -> list[Bad]:
    bad = [*map(Bad, ("CFR", "sarsa", "cfr;cfr+", *_NOTHING))]
    bad += _broken(*_ALGORITHMS[2:6])
    for name in ("cfr+", "dcfr"):
        bad += _bad_parameters(name, {}, table_of(type(PRESETS[name])))
    return bad


@functools.cache
def _not_solved_by() -> list[Bad]:
    """Return invalid algorithms of `solve`."""
    table = table_of(type(SAMPLED_PRESETS["os-mccfr"]))
    sampled = (_bad_parameters(name, {}, table) for name in ("os-mccfr", "evr-mccfr"))
    return sum(sampled, _not_algorithms())


@functools.cache
def not_bots() -> list[Bad]:
    """Return invalid bot strings."""
    bad = [*map(Bad, ("nobody", "Uniform", "resolving iterations=2", *_NOTHING))]
    bad += _broken(*_BOTS[2:4])
    for name, kind in PLAYERS.items():
        base = {"simulations" if name == "search" else "iterations": "2"}
        if name in ("policy", "deep"):
            base = {"path": "kuhn.npz"}
        if name in ("uniform", "honest"):
            base = {}
        table = kind.parameters
        if name in ("process", "http"):
            base = {"process": {"command": "cat"}, "http": {"url": "http://127.0.0.1"}}[
                name
            ]
            # Any text may be a command or an address.
            table = {k: v for k, v in table.items() if k in ("timeout", "retries")}
        bad += _bad_parameters(name, base, table)
    paths = [path for path in _NOT_POLICY if path and path not in _NO_WORD]
    return bad + [Bad(f"policy(path={p})", ("path", p), (p,)) for p in paths]


def _not_pairs() -> list[Bad]:
    return [
        *map(Bad, ("", ";", "uniform", "uniform;")),
        *(
            bad._replace(value=f"uniform;{bad.value}", shown=bad.shown or (bad.value,))
            for bad in not_bots()
            if bad.value.strip()
        ),
    ]


@functools.cache
def _not_opponents() -> list[Bad]:
    bad = [*not_bots(), *map(Bad, ("cfr+", "cfr+(gamma=2)", "lp(x=1)", *_POLICY_FILES))]
    return bad + _broken("cfr+(iterations=2)")


@functools.cache
def _not_algorithm_lists() -> list[Bad]:
    bad = [*map(Bad, (";", "cfr;;lp", "cfr++", "nobody", *_NOTHING))]
    bad += _broken(*_ALGORITHMS[2:6])
    bad += map(Bad, ("lp(x=1)", "resolve(speed=1)", "openspiel-cfr(x=1)"))
    return bad + _not_algorithms()[-20:]


@functools.cache
def _not_methods() -> list[Bad]:
    """Return invalid methods of merging private states."""
    table = table_of(Method)
    return [
        *map(Bad, ("guess", "potential", *_NOTHING)),
        Bad("win-probability(bins=3)", ("bins",), ("bins",)),
        *_bad_parameters("potential-aware", {}, table),
    ]


def _words(good: str, bad: str, *more: str | Bad) -> Values:
    """Return valid and invalid words."""
    return Values(_lines(good), [*_lines(bad), *more, "", *_NO_WORD])


def _whole(good: str, bad: str) -> Values:
    """Return valid and invalid whole numbers."""
    return Values(good.split(), [*bad.split(), *_NOT_WHOLE])


def _number(good: str, bad: str) -> Values:
    return Values(good.split(), [*bad.split(), "-1", "inf", *_NOT_NUMBER])


# Values by the parser's type.
_BY_TYPE = {
    cli.integer_value: _whole("1 2 3", "0 -1"),
    cli.number_value: _number("0.01", "0 1e999"),
    cli.size_value: Values(("1GB", "2 GiB", "900000000", "1.5gb"), _NOT_SIZE),
}
_LIMITS = Values(
    ("1GB", "2GiB"),
    [
        *(*_NOT_SIZE, Bad("0", shown=("0 bytes", "='0'"))),
        Bad("0.1GB", shown=("100000000",)),
    ],
)
_ANY = ""  # Any command.
_VALUES: dict[tuple[str, str], Values] = {
    (_ANY, "--game"): Values(_GAMES, [*_NOT_GAME, *POKER_MISTAKES]),
    (_ANY, "--algorithm"): Values(_ALGORITHMS, _not_algorithms),
    (_ANY, "--cache"): Values(("cache", "folder"), _NOT_FOLDER),
    (_ANY, "--save"): Values(("policy.npz", "new/policy.npz"), _NOT_FILE),
    (_ANY, "--import"): Values(
        ("json", "game_defs"), ["", *_lines("no_such_module  missing.py  text.npz")]
    ),
    (_ANY, "--seed"): _whole("0 7 4294967295", "-1 4294967296"),
    (_ANY, "--minutes"): _number("1e-9", "0 1e999"),
    (_ANY, "--noise"): _number("0 0.5", ""),
    (_ANY, "--plot"): Values(
        ("x.png", "x.svg"), ["x.txt", "x", "missing/x.png", "folder.png", *_NOT_FILE]
    ),
    (_ANY, "--figure"): Values(
        ("x.pdf", "x.svg"), ["x.txt", "x", "missing/x.png", "folder.png", *_NOT_FILE]
    ),
    (_ANY, "--panel"): _words("seconds  wall  iterations", "hours"),
    (_ANY, "--width"): _words("3.3in  84mm  5", "0in  wide  3.3ft  1e9in  ..in"),
    # Units of chips need a game with blinds or antes, which most games do not have.
    (_ANY, "--unit"): _words("nash_conv  exploitability", "chips"),
    (_ANY, "--latex"): Values(("table.tex", "new/table.tex"), _NOT_FILE),
    (_ANY, "--checkpoint"): Values(
        ("state.npz",), ["text.npz", "pickled.npz", *_NOT_FILE]
    ),
    (_ANY, "--bot"): Values(_BOTS, not_bots),
    (_ANY, "--bots"): Values(
        ("uniform;uniform", "uniform; resolving(iterations=2)"), _not_pairs
    ),
    (_ANY, "--matches"): _whole("2 4", "0 -1"),
    (_ANY, "--out"): Values(("out", "new/out", "folder"), _NOT_FOLDER),
    (_ANY, "--actions"): _words(
        "0,1,0,1  Deal:0,Deal:1,Pass,Bet",
        ",  0  0,1  0,1,0  0,9  0,1,0,1,0  Deal:0,Fold  0;1;0;1  -1  "
        "99999999999999999999  0,1,0,1.5  nan  0,,1",
    ),
    (_ANY, "--policy"): Values(
        (
            *_lines("uniform  always_fold  cfr+(iterations=2)  lp  kuhn.npz"),
            *_BOTS[2:4],
        ),
        _not_opponents,
    ),
    (_ANY, "--methods"): _words(
        "table  exact;search  exact; table", ";  guess  exact;"
    ),
    # Only choices that are quick.
    (_ANY, "--form"): _words("auto  tree", "compiled"),
    (_ANY, "--method"): _words("exact  ismcts  lbr", "guess"),
    ("evaluate", "--method"): _words("traversal  matches", "guess"),
    (_ANY, "--leaf"): _words("call  uniform", "fold"),
    (_ANY, "--simulations"): _whole("1 16", "0 -1"),
    (_ANY, "--learn"): _whole("0 2", "-1"),
    (_ANY, "--luck-rollouts"): _whole("0 2", "-1"),
    (_ANY, "--max-histories"): _whole("20 1000", "0 -1"),
    (_ANY, "--particles"): _whole("2 20", "0 -1"),
    (_ANY, "--algorithms"): Values(
        _lines("uniform;cfr+;lp  uniform  cfr+  lp  openspiel-cfr  dcfr(alpha=1)"),
        _not_algorithm_lists,
    ),
    (_ANY, "--workers"): _whole("0", "-1 1025"),
    ("solve", "--workers"): _whole("1", "0 -1 1025"),
    # No game of the fuzzer supports buckets of hands.
    (_ANY, "--hand-buckets"): Values(("3-4",), ["x", "3-", "0-1", "-1"]),
    (_ANY, "--ray"): _words("local", "nowhere  a:b  127.0.0.1:x  ray://a:1"),
    # Infosets that most games here do not have.
    (_ANY, "--lock"): Values(
        ('{"0pb": [1, 0]}',), ["{", "[]", "missing.json", "text.npz"]
    ),
    (_ANY, "--aivat"): Values(
        ("uniform", "cfr+(iterations=2)"), ["nonsense", "missing.npz", "text.npz"]
    ),
    # Public nodes, which the policies here do not have.
    (_ANY, "--node"): Values(("check",), ["check", "Bet", "0 1"]),
    (_ANY, "--board"): Values(("5c 9d",), ["5c 9d", "x"]),
    ("show", "--plot"): Values(("x.png", "y.svg"), ["x.txt", *_NOT_FILE]),
    (_ANY, "--patience"): _number("600", "0"),
    (_ANY, "--queries"): _whole("20", "0 -1"),
    (_ANY, "--cost-limit"): _number("1", "0"),
    (_ANY, "--find"): Values(("0", "", "\u00e4"), _NOT_TEXT),
    (_ANY, "--html"): Values(("page.html", "new/page.html"), _NOT_FILE),
    (_ANY, "--efg"): Values(("game.efg", "new/game.efg"), _NOT_FILE),
    (_ANY, "name"): _words("kuhn", "poker"),
    (_ANY, "--session"): _words(
        "stack=3,rounds=2",
        "stack=3  3,2  stack=3,rounds=x  stack=3,rounds=2,x=1  stack=3,rounds=2)",
        Bad("stack=0,rounds=2", ("stack",), ("stack=0",)),
    ),
    (_ANY, "--port"): _whole("8765", "0 -1 80 65536"),
    (_ANY, "--budget"): _words(
        "2-4", "2  2-4-8  0-4  4-2  -2-4  2-  2-4x  2,4  1.5-4", "\uff12-4"
    ),
    ("abstract", "--early-rounds"): _whole("1", "0 2 -1"),
    ("abstract", "--later"): _words(
        "check-down  uniform", "nothing.npz", Bad("kuhn.npz", ("policy",))
    ),
    (_ANY, "--thresholds"): _words("0-0.3  0-0", "0  0-0-0  -1-0  0-1e-3  0,1  0-"),
    (_ANY, "--size"): _number("0.001", "0 1001"),
    ("solve", "--algorithm"): Values(
        (*_ALGORITHMS, *SAMPLED, "pdhg", "egt", "lp"), _not_solved_by
    ),
    ("compare", "--workers"): _whole("0 1", "-1"),
    **{(name, "--memory-limit"): _LIMITS for name in ("info", "solve", "resolve")},
    ("abstract", "--game"): Values(
        ("python_leduc_poker", _TWO_ROUNDS), [*_NOT_GAME, *POKER_MISTAKES]
    ),
    ("abstract", "--method"): Values(
        _lines("win-probability  win-probability(restarts=1)  ")
        + ["potential-aware(distance=earth-movers,bins=3)"],
        _not_methods,
    ),
    ("show", "--policy"): Values(("kuhn.npz",), _NOT_POLICY),
    ("certify", "path"): Values(("kuhn.npz",), _NOT_POLICY),
    ("resolve", "--leaf"): Values(_LEAVES, _not_leaves),
    ("best-response", "--matches"): _whole("2 4", "0 1 -1"),
    # Some studies take minutes at any size.
    ("study", "name"): _words("kuhn  leduc  kuhn-cfr", "nonsense  kuhns"),
    (_ANY, "--table"): Values(("table.md", "new/table.md"), _NOT_FILE),
    ("tune", "--algorithm"): _words(
        "dcfr  dcfr(gamma=3)", "cfr++  os-mccfr  dcfr(x=1)"
    ),
    ("tune", "--folds"): _whole("2 3", "0 1 -1"),
    ("tune", "--numbers"): _words(
        "alpha=0..5  beta=-2..0;gamma=0..3", "alpha  alpha=0  alpha=2..1  rate=0..1"
    ),
    (_ANY, "--csv"): Values(("hands.csv", "new/hands.csv"), _NOT_FILE),
    ("spot", "--board"): _words(
        "5c9dJs2h3c  5c9dJs2h", "5c9d  5c9dJs2h5c  5c9dJs2x  5c9dJs2  AhKhQhJhTh9h"
    ),
    ("spot", "--pot"): _whole("20 100", "0 -1 1000001"),
    ("spot", "--stack"): Values(
        ("30", "50", "30,50"),
        [*"0 -1 1000001".split(), Bad("1,2,3", shown=("[1, 2, 3]",)), *_NOT_WHOLE],
    ),
    ("spot", "--rake"): Values(
        ("5%,3", "5%", "0.5%,2.5"),
        [*_lines("5  five%  101%"), Bad("5%,x", shown=("5% x",)), *_NO_WORD],
    ),
    ("review", "--open"): Values(("matches.jsonl",), ["folder", "file", "missing.x"]),
    ("review", "--bot"): Values(("a", "b"), ["c", "a;b"]),
    ("review", "--reference"): Values(
        ("uniform", "cfr+(iterations=2)"), ["nonsense", "missing.npz", "text.npz"]
    ),
    ("review", "--policies"): _words(
        "uniform;uniform", "uniform  ;", Bad("guess;uniform", (), ("guess",))
    ),
    ("spot", "--open"): Values(("spot.npz",), _NOT_POLICY),
    ("spot", "--write-ranges"): Values(("ranges.txt", "new/ranges.txt"), _NOT_FILE),
    ("spot", "--ranges"): _words(
        "AA;KK  QQ+,AKs:0.5;22  [50]AA,KQs[/50];KK",
        "AA  AA;KK;QQ  AA;5c9d",
        *(Bad("AA;KX", shown=("KX",)), Bad("AA;KK:2", shown=("KK:2",))),
        *(Bad("[50]AA;KK", shown=("[50]",)), Bad("[9x]AA;KK", shown=("[9x]",))),
    ),
    ("spot", "--bets"): _words(
        "pot  50%,allin; raises 3x",
        "big  3x  0%  cap x",
        *(Bad("50%;", shown=("''",)), Bad("pot; river", shown=("river",))),
    ),
    ("spot", "--node"): Values(("check", "1"), ["check x", "fold", "7"]),
    ("spot", "--algorithm"): Values(("dcfr", "cfr+"), _not_solved_by),
    ("spot", "--memory-limit"): _LIMITS,
    ("push-fold", "--stacks"): _words(
        "900/900  600/1200",
        "/  900/  9x/9  -1/2  1.5/2  1e3/2",
        *(Bad("900", shown=("[900]",)), Bad("0/900", shown=("stacks=0",))),
        Bad("1/2/3/4", shown=("[1, 2, 3, 4]",)),
    ),
    ("push-fold", "--prizes"): _words(
        "2/1  1  50.5/0",
        "/  2/  2;1  x  -1/2  nan  inf",
        *(Bad("1/2", shown=("[1.0, 2.0]",)), Bad("0", shown=("[0.0]",))),
        Bad("3/2/1", shown=("[3.0, 2.0, 1.0]",)),
    ),
    ("push-fold", "--blinds"): _words(
        "300/600  300/300",
        "/  300/  x/y  1.5/3  -3/6",
        *(Bad("300", shown=("[300]",)), Bad("0/300", shown=("blinds=0",))),
        Bad("600/300", shown=("[600, 300]",)),
    ),
    ("push-fold", "--boards"): _whole("1", "0 -1 100000001"),
    ("push-fold", "--algorithm"): _words("pi-fp  vi-fp", "fp  cfr"),
}


class Option(NamedTuple):
    """An option of a command in its parser."""

    values: Values
    required: bool


@functools.cache
def options() -> dict[str, dict[str, Option]]:
    """Return the options with values of every command."""
    return {
        command: {
            name: Option(_values_of(command, name, action), action.required)
            for action in parser._actions
            if action.nargs != 0
            for name in action.option_strings or [action.dest]
        }
        for command, parser in _parsers().items()
    }


@functools.cache
def switches() -> dict[str, list[str]]:
    """Return the options without values of every command."""
    return {
        command: [
            name
            for action in parser._actions
            if action.nargs == 0
            for name in action.option_strings
            if name not in ("-h", "--help")
        ]
        for command, parser in _parsers().items()
    }


def _parsers() -> dict:
    (commands,) = (a for a in main.make_parser()._actions if a.choices)
    assert isinstance(commands.choices, dict)
    return commands.choices


def _values_of(command: str, name: str, action: argparse.Action) -> Values:
    """Return values from the tables, or from the parser."""
    known = _VALUES.get((command, name)) or _VALUES.get((_ANY, name))
    if known:
        return known
    if action.choices:
        good = [str(choice) for choice in action.choices]
        return Values(good, ["nonsense", good[0] + "s", "-1", "", *_NO_WORD])
    return _BY_TYPE[action.type]  # type: ignore[index]


# Names of the value in help pages.
_ALIASES = {
    "--bots": ("bot",),
    "--policy": ("opponent", "bot", "path"),
    "path": ("policy",),
    "--algorithms": ("algorithm",),
    "--open": ("line",),
    "--policies": ("bots",),
}


@functools.cache
def bad_of(command: str, flag: str) -> list[Bad]:
    """Return the invalid values of an option, with its names."""
    values = options()[command][flag].values.bad
    plain = flag.lstrip("-")
    own = (plain, plain.replace("-", "_"), *_ALIASES.get(flag, ()))
    found = []
    for value in values() if callable(values) else values:
        bad = Bad(value) if isinstance(value, str) else value
        names, shown = bad.names or own, bad.shown or (bad.value,)
        name, bracket, rest = bad.value.partition("(")
        # A game may write its own message: name: parameter=value must be ...
        if flag == "--game" and bracket and not bad.names:
            names = (*names, *([name] if name.isidentifier() else ()))
            given = [p.strip("() ").partition("=") for p in rest.split(",") if "=" in p]
            shown += tuple(f"{key}={text}" for key, _, text in given)
            shown += tuple(f"{key}={text!r}" for key, _, text in given)
        found.append(bad._replace(names=names, shown=shown))
    return found
