"""Fuzzed command lines: made from the parsers themselves, run, and judged.

`make_line(seed)` draws a command with options that go together, and then, mostly,
spoils one argument. So it is known what must be refused, and what the refusal must
name. `run` does a line in this process as `spiel-cr` would; `complaints` says what is
wrong with what came out. To see one again: `python -m tests.fuzz.command_lines SEED`.
"""

import atexit
import contextlib
import faulthandler
import functools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple, TextIO

import numpy as np

import spiel_cr
from spiel_cr.abstraction.methods import Method
from spiel_cr.common.parameters import table_of
from spiel_cr.eval.cli import main
from spiel_cr.players.bot_strings import BOTS
from spiel_cr.solvers.cfr.cfr_config import PRESETS, SAMPLED_PRESETS

MAX_SECONDS = 60
# A process that does not hear of that is ended after these seconds.
_STUCK = 90


class Bad(NamedTuple):
    """A value that must be refused.

    Attributes:
      value: what is written.
      names: what a message may call the argument; none: the option's own name.
      shown: what of the value a message must show; none: all of it.
      inside: a string that messages quote; names and values must be shown besides.
    """

    value: str
    names: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    inside: str = ""


class Line(NamedTuple):
    """A command line.

    Attributes:
      seed: makes it again.
      words: after `spiel-cr`.
      spoiled: what must be refused; several: one of them is named. None: the line
        makes sense.
    """

    seed: int
    words: list[str]
    spoiled: tuple[Bad, ...]

    def __str__(self) -> str:
        return f"seed {self.seed}: spiel-cr {' '.join(map(repr, self.words))}"


class Outcome(NamedTuple):
    """What a line did.

    Attributes:
      code: exit code; None: an exception came through, or the time was over.
      out, err: all that was written.
      error: the exception that came through, as text.
      seconds: on the wall.
    """

    code: int | None
    out: str
    err: str
    error: str
    seconds: float


class OverTimeError(BaseException):
    """The line took too long. Nobody may catch it: so it is no Exception."""


# ------------------------------------------------------------------ values
_BYTES = "caf\udce9"  # Latin-1 for a word with an accent: no UTF-8
_NOT_TEXT = [_BYTES, "nul\0nul"]
# Where anything but some words and numbers is refused.
_NO_WORD = ["two\nlines", *_NOT_TEXT]
_HUGE = "9" * 5000
_NOT_WHOLE = [
    *("", " ", "nan", "inf", "-inf", "1.5", "1e3", "many", "0x10", "5 apples", "1;2"),
    *("\uff15", "99999999999999999999", "-99999999999999999999", _HUGE, *_NO_WORD),
]
_NOT_NUMBER = [
    *("", " ", "nan", "x", "1,5", "5 apples", "1e", "1_0", "\uff11", *_NO_WORD),
]
_NOT_SIZE = [
    *(
        "",
        " ",
        "3 apples",
        "-1GB",
        "nan",
        "inf",
        "1..5GB",
        "GB",
        "1e-3",
        "3GB and more",
    ),
    *("\uff13GB", *_NO_WORD),
]
_TOO_LITTLE = [Bad("0", shown=("0 bytes", "='0'")), Bad("0.1GB", shown=("100000000",))]
_NOT_FILE = [
    *("", " ", "folder", "file/x.npz", "fifo", "socket", "/proc/none/x.npz"),
    *("n" * 300 + ".npz", *_NOT_TEXT),
]
_NOT_FOLDER = [
    *("", " ", "file", "file/x", "fifo", "socket", "/proc/none/x", "n" * 300),
    *_NOT_TEXT,
]
_NOT_POLICY = [
    *("", "missing.npz", "folder", "folder.npz", "text.npz", "empty.npz", "fifo.npz"),
    *("other.npz", "arrays.npz", "pickled.npz", "truncated.npz", *_NO_WORD),
]
_GAMES = [
    *("kuhn_poker", "kuhn_poker()", "kuhn_poker(players=2)", "python_kuhn_poker"),
    *("python_rock_paper_scissors", "matrix_rps", "liars_dice(numdice=1,dice_sides=2)"),
    *(
        "python_ii_goofspiel(num_cards=3)",
        "turn_based_simultaneous_game(game=matrix_rps())",
    ),
]
_NOT_GAME = [
    *("", " ", "()", "kuhn_pocker", "KUHN_POKER", "kuhn poker", "kuhn_poker)", "2048"),
    *("kuhn_poker(players=2", "kuhn_poker(players=2))", "kuhn_poker(players=2)x"),
    *("kuhn_poker()()", "kuhn_poker(players=2,players=2)", "kuhn_poker((players=2))"),
    *("kuhn_poker(players)", "kuhn_poker(=2)", "kuhn_poker(players=)"),
    *("kuhn_poker(flavour=1)", "python_leduc_poker(flavour=1)"),
    *("kuhn_poker(players=3)", "kuhn_poker(players=0)", "kuhn_poker(players=-1)"),
    *("kuhn_poker(players=11)", "kuhn_poker(players=two)", "kuhn_poker(players=2.5)"),
    *("kuhn_poker(players=true)", "kuhn_poker(players=99999999999999999999)"),
    *("matrix_pd", "bargaining", "blackjack", "oh_hell", "tarok", "hearts", "catch"),
    *(
        "mfg_crowd_modelling",
        "python_mfg_predator_prey",
        "pathfinding",
        "coop_box_pushing",
    ),
    *("efg_game", "efg_game(filename=folder)", "efg_game(filename=missing.efg)"),
    *(
        "efg_game(filename=file)",
        "nfg_game(filename=folder)",
        "nfg_game(filename=file)",
        "nfg_game(filename=two\nlines)",
    ),
    *("universal_poker(betting=limit,numPlayers=7)", "universal_poker(numPlayers=2)x"),
    *("liars_dice(numdice=0)", "liars_dice(dice_sides=-1)", "liars_dice(numdice=x)"),
    *("python_leduc_poker(num_ranks=0)", "python_leduc_poker(num_ranks=x)"),
    *("python_leduc_poker(num_ranks=99999999999999999999)",),
    *("python_ii_goofspiel(num_cards=0)", "python_ii_goofspiel(points_order=up)"),
    *("python_scotland_yard(map=moon)", "python_scotland_yard(rounds=-1)"),
    *("python_princess_and_monster(horizon=0)", "python_princess_and_monster(rows=0)"),
    "repeated_game(stage_game=matrix_rps(),num_repetitions=1)",
    *("repeated_game(stage_game=nothing(),num_repetitions=1)", "hex(board_size=0)"),
    *("turn_based_simultaneous_game(game=kuhn_poker())", "go(board_size=99)"),
    *("\u043auhn_poker", "g" * 5000, *_NO_WORD),
]
_ALGORITHMS = [
    *("cfr", "cfr+", "cfr()", "dcfr(alpha=1.5,beta=0,gamma=2)", "pcfr+", "pdcfr+"),
    *("lcfr(exploration=0.1)", "cfr+(alternating=false)", " cfr+ "),
]
_FIRST_ORDER = ("egt", "pdhg")
_SAMPLED = ["os-mccfr(batch=16)", "es-mccfr(batch=4)", "evr-mccfr(batch=16)"]
_BOTS = [
    *("uniform", "uniform()", "resolving(iterations=2)", "solved(iterations=2)"),
    *("policy(path=kuhn.npz)", "resolving(iterations=2,gadget=maxmargin)"),
    "resolving(iterations=2,depth=1,depth_unit=rounds,leaf=exact(iterations=2))",
]
_LEAVES = [
    *("uniform", "exact", "exact(iterations=2)"),
    *("exact(iterations=1,algorithm=cfr)", "continuations(path=kuhn.npz,k=1)"),
]
_OPPONENTS = [
    "uniform",
    "always_fold",
    "cfr+(iterations=2)",
    "lp",
    "kuhn.npz",
    *_BOTS[2:4],
]
_CONTESTANTS = ["uniform", "cfr+", "lp", "openspiel-cfr", "dcfr(alpha=1)"]


# A string with parameters: what makes any of it wrong.
def _broken(text: str) -> list[str]:
    name, bracket, rest = text.partition("(")
    inside = rest.removesuffix(")")
    broken = [f"{name}({inside}", f"{name}({inside}))", f"{name}({inside})x"]
    broken += [f"{name}({inside})()", f"{name}(({inside}))x", f"({text})", f"{name}=1"]
    if inside:
        broken += [f"{name}({inside},{inside})", f"{name}({inside},x)"]
        broken += [f"{name}({inside},,=)", f"{name}({inside},x=)", f"{name}[{inside}]"]
    return broken


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
    """A thing with one parameter that is wrong, by the table of its parameters."""
    found = []
    for key, hint in {**table, "speed": None}.items():
        kind = _type_of(hint)
        for value in ["1"] if hint is None else _BAD_OF_TYPE[kind]:
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
    bad = [Bad(t) for t in ("", " ", "Exact", "best", "policy", *_NO_WORD)]
    bad += [Bad(t) for text in _LEAVES[3:5] for t in _broken(text)]
    bad += [
        Bad("continuations(path=missing.npz)", ("path",), ("missing.npz",)),
        Bad("continuations(path=text.npz)", ("path",), ("text.npz",)),
        Bad("exact(iterations=0)", ("iterations",), ("0",)),
    ]
    return bad + _bad_parameters("exact", {}, {"iterations": int})


@functools.cache
def _not_algorithms() -> list[Bad]:
    bad = [Bad(t) for t in ("", " ", "CFR", "sarsa", "cfr;cfr+", *_NO_WORD)]
    bad += [Bad(t) for text in _ALGORITHMS[2:6] for t in _broken(text)]
    for name in ("cfr+", "dcfr"):
        bad += _bad_parameters(name, {}, table_of(type(PRESETS[name])))
    return bad


@functools.cache
def _not_sampled() -> list[Bad]:
    table = table_of(type(SAMPLED_PRESETS["os-mccfr"]))
    return [
        bad
        for name in ("os-mccfr", "evr-mccfr")
        for bad in _bad_parameters(name, {}, table)
    ]


@functools.cache
def _not_bots() -> list[Bad]:
    bad = [Bad(t) for t in ("", " ", "nobody", "Uniform", "resolving iterations=2")]
    bad += [Bad(t) for t in _NO_WORD]
    bad += [Bad(t) for text in _BOTS[2:4] for t in _broken(text)]
    for name, kind in BOTS.items():
        base = (
            {"path": "kuhn.npz"} if name in ("policy", "deep") else {"iterations": "2"}
        )
        base = {} if name in ("uniform", "honest") else base
        bad += _bad_parameters(name, base, kind.parameters)
    paths = [p for p in _NOT_POLICY if p and p not in _NO_WORD]
    return bad + [Bad(f"policy(path={p})", ("path", p), (p,)) for p in paths]


@functools.cache
def _not_opponents() -> list[Bad]:
    bad = [*_not_bots(), *(Bad(t) for t in ("cfr+", "cfr+(gamma=2)", "lp(x=1)"))]
    bad += [Bad(p) for p in _NOT_POLICY if p.endswith(".npz")]
    return bad + [Bad(t) for t in _broken("cfr+(iterations=2)")]


@functools.cache
def _not_contestants() -> list[Bad]:
    bad = [Bad(t) for t in ("", " ", ";", "cfr;;lp", "cfr++", "nobody", *_NO_WORD)]
    bad += [Bad(t) for text in _ALGORITHMS[2:6] for t in _broken(text)]
    bad += [Bad(t) for t in ("lp(x=1)", "resolve(speed=1)", "openspiel-cfr(x=1)")]
    return bad + _not_algorithms()[-20:]


def _pairs(bots: Sequence[Bad]) -> list[Bad]:
    return [
        bad._replace(value=f"uniform;{bad.value}", shown=bad.shown or (bad.value,))
        for bad in bots
        if bad.value.strip()
    ]


_NOT_ACTIONS = [
    *("", ",", "0", "0,1", "0,1,0", "0,9", "0,1,0,1,0", "Deal:0,Fold", "0;1;0;1", "-1"),
    *("99999999999999999999", "0,1,0,1.5", "nan", "0,,1", *_NO_WORD),
]


class Values(NamedTuple):
    """Values of an option: those that make sense, and those that do not."""

    good: Sequence[str]
    bad: Sequence[str | Bad] | Callable[[], Sequence[str | Bad]]


_FILES = ("policy.npz", "new/policy.npz")
_COUNT = Values(("1", "2", "3"), ["0", "-1", *_NOT_WHOLE])
_VALUES: dict[str, Values] = {
    "--game": Values(_GAMES, _NOT_GAME),
    "--algorithm": Values(_ALGORITHMS, _not_algorithms),
    "--iterations": _COUNT,
    "--dtype": Values(("float32", "float64"), ["", "float16", "FLOAT32", *_NO_WORD]),
    "--memory-limit": Values(("1GB", "2 GiB", "900000000", "1.5gb"), _NOT_SIZE),
    "--cache": Values(("cache", "folder"), _NOT_FOLDER),
    "--save": Values(_FILES, _NOT_FILE),
    "--judge": Values(("auto", "openspiel", "spiel_cr"), ["", "me", *_NO_WORD]),
    "--import": Values(
        ("json", "game_defs"),
        ["", "no_such_module", "missing.py", "text.npz", "json.py"],
    ),
    "--seed": Values(("0", "7", "4294967295"), ["-1", "4294967296", *_NOT_WHOLE]),
    "--minutes": Values(("1e-9",), ["0", "-1", "inf", "1e999", *_NOT_NUMBER]),
    "--steps": _COUNT,
    "--seconds": Values(("0.01",), ["0", "-1", "inf", "1e999", *_NOT_NUMBER]),
    "--until": Values(("0.5",), ["-1", "inf", *_NOT_NUMBER]),
    "--eval-every": _COUNT,
    "--plot": Values(
        ("x.png", "x.svg"), ["x.txt", "x", "missing/x.png", "folder.png", *_NOT_FILE]
    ),
    "--checkpoint": Values(("state.npz",), ["text.npz", "pickled.npz", *_NOT_FILE]),
    "--checkpoint-every": Values(("1", "60"), ["-1", "inf", *_NOT_NUMBER]),
    "--bot": Values(_BOTS, _not_bots),
    "--bots": Values(
        ("uniform;uniform", "uniform; resolving(iterations=2)"),
        lambda: [
            *(Bad(t) for t in ("", ";", "uniform", "uniform;")),
            *_pairs(_not_bots()),
        ],
    ),
    "--evaluator": Values(("traversing", "playing"), ["", "asking", *_NO_WORD]),
    "--matches": Values(("2", "4"), ["0", "-1", *_NOT_WHOLE]),
    "--repeats": Values(("1", "2"), ["0", "-1", *_NOT_WHOLE]),
    "--out": Values(("out", "new/out", "folder"), _NOT_FOLDER),
    "--actions": Values(("0,1,0,1", "Deal:0,Deal:1,Pass,Bet"), _NOT_ACTIONS),
    "--trunk-iterations": _COUNT,
    "--values": Values(("iterates", "best_response"), ["", "mine", *_NO_WORD]),
    "--noise": Values(("0", "0.5"), ["-1", "inf", *_NOT_NUMBER]),
    "--gadget": Values(("cfrd", "maxmargin"), ["", "safe", *_NO_WORD]),
    "--policy": Values(_OPPONENTS, _not_opponents),
    "--instruments": Values(
        ("table", "exact;lbr", "exact; table"),
        ["", ";", "guess", "exact;", *_NO_WORD],
    ),
    "--method": Values(("exact", "ismcts", "lbr"), ["", "guess", *_NO_WORD]),
    "--player": Values(("0", "1"), ["", "2", "-1", "one", "1.0", *_NO_WORD]),
    "--simulations": Values(("1", "16"), ["0", "-1", *_NOT_WHOLE]),
    "--learn": Values(("0", "4"), ["-1", *_NOT_WHOLE]),
    "--exploration": Values(("0.5", "2"), ["-1", "inf", *_NOT_NUMBER]),
    "--histories": Values(("all", "drawn"), ["", "some", *_NO_WORD]),
    "--leaf": Values(("call", "uniform"), ["", "fold", *_NO_WORD]),
    "--depth": _COUNT,
    "--depth-unit": Values(
        ("moves", "rounds", "moves_from_start"), ["", "plies", *_NO_WORD]
    ),
    "--rollouts": _COUNT,
    "--max-histories": Values(("20", "1000"), ["0", "-1", *_NOT_WHOLE]),
    "--particles": Values(("2", "20"), ["0", "-1", *_NOT_WHOLE]),
    "--luck-rollouts": Values(("0", "2"), ["-1", *_NOT_WHOLE]),
    "--rounds": _COUNT,
    "--algorithms": Values(
        (";".join(_CONTESTANTS[:3]), *_CONTESTANTS), _not_contestants
    ),
    "--seeds": Values(("1", "2"), ["0", "-1", *_NOT_WHOLE]),
    "--workers": Values(("0", "1"), ["-1", *_NOT_WHOLE]),
    "--compile": Values(("auto", "always", "never"), ["", "maybe", *_NO_WORD]),
    "--form": Values(("auto", "compiled"), ["", "tree", *_NO_WORD]),
    "--node": Values(("check",), ["check", "Bet", "0 1"]),
    "--board": Values(("5c 9d",), ["5c 9d", "x"]),
    "--patience": Values(("600",), ["0", "-1", "inf", *_NOT_NUMBER]),
    "--find": Values(("0", "", "\u00e4"), _NOT_TEXT),
    "--sort": Values(("game", "reach", "gain"), ["", "size", *_NO_WORD]),
    "--limit": _COUNT,
    "--html": Values(("page.html", "new/page.html"), _NOT_FILE),
    "name": Values(("kuhn",), ["", "poker", *_NO_WORD]),
    "--session": Values(
        ("stack=3,rounds=2",),
        [
            *("", "stack=3", "3,2", "stack=0,rounds=2", "stack=3,rounds=x"),
            *("stack=3,rounds=2,x=1", "stack=3,rounds=2)", *_NO_WORD),
        ],
    ),
    "--port": Values(("8765",), ["0", "-1", "80", "65536", *_NOT_WHOLE]),
    "--budget": Values(
        ("2-4",),
        [
            *("", "2", "2-4-8", "0-4", "4-2", "-2-4", "2-", "2-4x", "2,4", "1.5-4"),
            *("\uff12-4", *_NO_WORD),
        ],
    ),
    "--size": Values(("0.001",), ["0", "-1", "inf", "1001", *_NOT_NUMBER]),
}
_OWN_VALUES: dict[tuple[str, str], Values] = {
    ("solve", "--algorithm"): Values(
        (*_ALGORITHMS, *_SAMPLED, *_FIRST_ORDER, "lp"),
        lambda: [*_not_algorithms(), *_not_sampled()],
    ),
    ("solve", "--workers"): Values(("1",), ["0", "-1", "1025", *_NOT_WHOLE]),
    **{
        (command, "--memory-limit"): Values(("1GB", "2GiB"), [*_NOT_SIZE, *_TOO_LITTLE])
        for command in ("info", "solve", "resolve")
    },
    ("abstract", "--method"): Values(
        (
            "win-probability",
            "win-probability(restarts=1)",
            "potential-aware(distance=earth-movers,bins=3)",
        ),
        lambda: [
            *(Bad(t) for t in ("", " ", "guess", "potential", *_NO_WORD)),
            Bad("win-probability(bins=3)", ("bins",), ("bins",)),
            *_bad_parameters(
                "potential-aware",
                {},
                table_of(Method, leave_out=("name", "histograms")),
            ),
        ],
    ),
    ("show", "--policy"): Values(("kuhn.npz",), _NOT_POLICY),
    ("resolve", "--leaf"): Values(_LEAVES, _not_leaves),
    # Of public nodes, which the policies here have not.
    ("show", "--plot"): Values(("x.png",), ["x.png", "y.svg"]),
    ("best-response", "--player"): Values(("0", "1", "both"), ["", "2", "-1", "x"]),
    ("exploit", "--player"): Values(("0", "1", "both"), ["", "2", "-1", "x"]),
    ("exploit", "--seeds"): Values(("1", "2"), ["0", "-1", *_NOT_WHOLE]),
    ("best-response", "--matches"): Values(("2", "4"), ["0", "1", "-1", *_NOT_WHOLE]),
}
_OWN_VALUES |= {
    ("jam-fold", flag): values
    for flag, values in {
        "--stacks": Values(
            ("900/900", "600/1200", " 300 / 900 "),
            [
                *("", "/", "900/", "9x/9", "-1/2", "1.5/2", "1e3/2", *_NO_WORD),
                Bad("900", shown=("[900]",)),
                Bad("0/900", shown=("stacks=0",)),
                Bad("1/2/3/4", shown=("[1, 2, 3, 4]",)),
            ],
        ),
        "--prizes": Values(
            ("2/1", "1", "50.5/0"),
            [
                *("", "/", "2/", "2;1", "x", "-1/2", "nan", "inf", *_NO_WORD),
                Bad("1/2", shown=("[1.0, 2.0]",)),
                Bad("3/2/1", shown=("[3.0, 2.0, 1.0]",)),
                Bad("0", shown=("[0.0]",)),
            ],
        ),
        "--blinds": Values(
            ("300/600", "300/300"),
            [
                *("", "/", "300/", "x/y", "1.5/3", "-3/6", *_NO_WORD),
                Bad("300", shown=("[300]",)),
                Bad("600/300", shown=("[600, 300]",)),
                Bad("0/300", shown=("blinds=0",)),
            ],
        ),
        "--algorithm": Values(("pi-fp", "vi-fp"), ["", "fp", "cfr", *_NO_WORD]),
        "--boards": Values(("1",), ["0", "-1", "100000001", *_NOT_WHOLE]),
        "--steps": _COUNT,
        "--workers": Values(("0",), ["-1", "1025", *_NOT_WHOLE]),
    }.items()
}
SWITCHES = {
    "--json",
    "--no-program-cache",
    "--states",
    "--ray",
    "--retry",
    "--imperfect-recall",
}
SWITCHES |= {
    "--trained",
    "--baselines",
    "--no-baselines",
    "--no-vectorised",
    "--styles",
    "--web",
    "--no-open",
    "--unrestricted-opponent",
}
# What one line of a command always has, beside what its parser requires: small work.
_ALWAYS: dict[str, dict[str, str]] = {
    "solve": {"--iterations": "2"},
    "resolve": {"--game": "kuhn_poker", "--iterations": "2"},
    "subgame": {"--iterations": "2", "--trunk-iterations": "2"},
    "evaluate": {"--bot": "uniform"},
    "best-response": {"--matches": "2", "--simulations": "8", "--rollouts": "2"},
    "exploit": {"--minutes": "1e-9", "--instruments": "exact;table"},
    "tournament": {"--matches": "2"},
    "play": {"--seed": "1"},
    "compare": {"--iterations": "2", "--workers": "0", "--algorithms": "uniform;cfr+"},
    "study": {"--size": "0.001"},
    "jam-fold": {
        **{"--stacks": "900/900", "--prizes": "2/1", "--blinds": "300/600"},
        **{"--boards": "1", "--rounds": "2", "--cache": "new/cache", "--steps": "5"},
    },
    "abstract": {"--game": "leduc_poker"},
}
# Options of `solve` that need the compiled game.
_COMPILED_ONLY = ("--until", "--eval-every", "--plot", "--dtype", "--cache", "--judge")
_COMPILED_ONLY += ("--form",)
# Options of `show` for policies of signal games.
_OF_NODES = ("--node", "--board", "--plot")
# Where strings, files and actions are of one game.
_OF_KUHN = {"--policy", "--actions", "--bot", "--bots"}
_POSITIONAL = {"name"}


@functools.cache
def options() -> dict[str, tuple[str, ...]]:
    """Every command's arguments, from its parser."""
    (commands,) = (a for a in main.make_parser()._actions if a.choices)
    assert isinstance(commands.choices, dict)
    return {
        name: tuple(
            flag
            for action in parser._actions
            for flag in (action.option_strings or [action.dest])
            if flag not in ("-h", "--help")
        )
        for name, parser in commands.choices.items()
    }


# What --help calls the value.
_ALIASES = {
    "--bots": ("bot",),
    "--policy": ("opponent", "bot", "path"),
    "--algorithms": ("algorithm",),
}


def values_of(command: str, flag: str) -> Values:
    """The values that an option is tried with."""
    return _OWN_VALUES.get((command, flag)) or _VALUES[flag]


@functools.cache
def bad_of(command: str, flag: str) -> list[Bad]:
    """What must be refused, with the option's names."""
    values = values_of(command, flag).bad
    plain = flag.lstrip("-")
    own = (plain, plain.replace("-", "_"), *_ALIASES.get(flag, ()))
    found = []
    for bad in values() if callable(values) else values:
        bad = Bad(bad) if isinstance(bad, str) else bad
        names, shown = bad.names or own, bad.shown or (bad.value,)
        name, bracket, rest = bad.value.partition("(")
        if flag == "--game" and bracket and name.isidentifier():
            # A game may speak for itself: name: parameter=value must be ...
            names = (*names, name)
            given = [p.strip("() ").partition("=") for p in rest.split(",") if "=" in p]
            shown += tuple(f"{key}={text}" for key, _, text in given)
            shown += tuple(f"{key}={text!r}" for key, _, text in given)
        found.append(bad._replace(names=names, shown=shown))
    return found


# ------------------------------------------------------------------ lines
def make_line(seed: int, command: str | None = None) -> Line:
    """A line, the same for the same seed.

    Args:
      seed: of all that is drawn.
      command: draw from this one's options only.
    """
    draw = random.Random(seed)
    command = command or draw.choice(tuple(options()))
    own = options()[command]
    chosen = {
        flag: draw.choice(values_of(command, flag).good)
        for flag in own
        if flag not in SWITCHES and flag not in _ALWAYS.get(command, {})
        if draw.random() < 0.15 or flag in _required(command)
    }
    chosen |= _ALWAYS.get(command, {})
    switches = {f for f in own if f in SWITCHES - {"--ray"} if draw.random() < 0.15}
    _agree(draw, command, chosen, switches)
    kind = draw.random()
    spoiled: tuple[Bad, ...] = ()
    if kind < 0.75:
        flag = draw.choice([f for f in own if f not in SWITCHES])
        spoiled = (_spoil(draw, command, flag, chosen),)
    elif kind < 0.85:
        words, spoiled = _misshape(draw, command, chosen, switches)
        return Line(seed, words, spoiled)
    return Line(seed, _words(draw, command, chosen, switches), spoiled)


def _required(command: str) -> tuple[str, ...]:
    return {
        "evaluate": ("--game", "--bot"),
        "subgame": ("--game", "--actions"),
        "best-response": ("--game", "--policy"),
        "exploit": ("--game", "--policy"),
        "tournament": ("--game", "--bots", "--out"),
        "play": ("--game", "--bots"),
        "show": ("--game", "--policy"),
        "study": ("name",),
        "jam-fold": ("--stacks", "--prizes", "--blinds"),
        "abstract": ("--game", "--budget"),
    }.get(command, ("--game",))


def _agree(
    draw: random.Random, command: str, chosen: dict[str, str], switches: set[str]
) -> None:
    """Takes out what does not go with the rest, so that all of it makes sense."""
    if _OF_KUHN & set(chosen):
        chosen["--game"] = "kuhn_poker"
    if command == "solve":
        switches.discard("--imperfect-recall")
        if chosen.get("--compile") == "never":
            chosen["--algorithm"] = draw.choice(_SAMPLED[:2])
            for flag in _COMPILED_ONLY:
                chosen.pop(flag, None)
        if chosen.get("--algorithm") == "lp":
            for flag in ("--seconds", "--until", "--eval-every", "--plot", "--dtype"):
                chosen.pop(flag, None)
            for flag in ("--checkpoint", "--checkpoint-every"):
                chosen.pop(flag, None)
        if "--plot" in chosen:
            chosen["--eval-every"] = "1"
        if "--checkpoint-every" in chosen:
            chosen["--checkpoint"] = "state.npz"
    if command == "play":
        # Nobody is there to play in a page.
        switches -= {"--web", "--no-open"}
        chosen.pop("--port", None)
    if command == "resolve":
        if "--leaf" in chosen or "--depth-unit" in chosen:
            chosen.setdefault("--depth", "2")
        if "kuhn.npz" in chosen.get("--leaf", ""):
            chosen["--game"] = "kuhn_poker"
    if command == "study":
        # Studies that take seconds keep nothing.
        chosen.pop("--out", None)
    if command == "show":
        for flag in _OF_NODES:
            chosen.pop(flag, None)
    if command == "evaluate" and "--matches" in chosen:
        chosen["--evaluator"] = "playing"
    if command == "evaluate" and chosen.get("--evaluator") == "playing":
        chosen["--matches"] = "2"
    if command == "best-response":
        if "--learn" in chosen:
            chosen["--method"] = "ismcts"
        if "--leaf" in chosen:
            chosen["--method"] = "lbr"
            chosen.pop("--learn", None)
        if "--learn" in chosen:
            switches.discard("--states")
    if command == "exploit":
        # Names of algorithms are no opponents.
        switches.discard("--trained")
        chosen.pop("--iterations", None)
    if command == "compare":
        if "--seconds" in chosen:
            chosen.pop("--iterations", None)
        # Processes take seconds to start.
        if draw.random() < 0.1:
            chosen["--workers"] = "1"
        else:
            chosen.pop("--patience", None)


def _spoil(draw: random.Random, command: str, flag: str, chosen: dict[str, str]) -> Bad:
    """Replaces one argument's value by one that must be refused."""
    bad = draw.choice(bad_of(command, flag))
    chosen[flag] = bad.value
    if flag == "--matches" and command == "evaluate":
        chosen["--evaluator"] = "playing"
    if flag == "--learn":
        chosen["--method"] = "ismcts"
    if command == "resolve" and flag in ("--leaf", "--depth-unit"):
        chosen.setdefault("--depth", "2")
    elif flag in ("--leaf", "--rollouts"):
        chosen["--method"] = "lbr"
    if flag not in ("--learn", "--simulations"):
        chosen.pop("--learn", None)
    searched = ("--simulations", "--exploration", "--histories")
    if flag in searched and command == "best-response":
        chosen["--method"] = "ismcts"
    if flag == "--rounds" and command == "best-response":
        chosen["--method"] = "learned"
    if flag in _COMPILED_ONLY:
        chosen.pop("--compile", None)
    if flag == "--checkpoint-every":
        chosen["--checkpoint"] = "state.npz"
    if flag == "--plot" and command == "solve":
        chosen["--eval-every"] = "1"
    if flag == "--patience":
        chosen["--workers"] = "1"
    if flag == "--seconds" and command == "compare":
        chosen.pop("--iterations", None)
    if flag == "--iterations" and command == "compare":
        chosen.pop("--seconds", None)
    if flag in _OF_KUHN:
        chosen["--game"] = "kuhn_poker"
    return bad


def _words(
    draw: random.Random, command: str, chosen: dict[str, str], switches: set[str]
) -> list[str]:
    """The words of a line, options in any order."""
    parts = [[flag] for flag in switches]
    for flag, value in chosen.items():
        if flag in _POSITIONAL:
            parts.append([value])
        elif value.startswith("-") or draw.random() < 0.5:
            parts.append([f"{flag}={value}"])
        else:
            parts.append([flag, value])
    draw.shuffle(parts)
    return [command, *(word for part in parts for word in part)]


def _misshape(
    draw: random.Random, command: str, chosen: dict[str, str], switches: set[str]
) -> tuple[list[str], tuple[Bad, ...]]:
    """A line that is wrong as a whole."""
    words = _words(draw, command, chosen, switches)
    kind = draw.randrange(7)
    if kind == 0:
        return words + ["--colour"], (Bad("", ("--colour",)),)
    if kind == 1:
        return words + ["surplus"], (Bad("", ("surplus",)),)
    if kind == 2:
        return ["dissolve", *words[1:]], (Bad("", ("dissolve",), ("dissolve",)),)
    if kind == 3:
        flag = draw.choice([f for f in chosen if f not in _POSITIONAL] or ["--json"])
        if flag != "--json":
            return words + [flag], (Bad("", (flag,)),)
        return words + ["--json=yes"], (Bad("", ("--json",), ("yes",)),)
    if kind == 4:
        flag = draw.choice(_required(command))
        chosen.pop(flag, None)
        if command == "resolve":  # has a game by default
            return words + ["--flagfile=x"], (Bad("", ("--flagfile",), ("x",)),)
        return _words(draw, command, chosen, switches), (Bad("", (flag,)),)
    if kind == 5:
        # Two results in one file, or a result in place of what is read.
        pair = {
            "solve": ["--save=one.npz", "--checkpoint=./one.npz"],
            "subgame": ["--plot=out", "--out=out"],
            "show": ["--policy=kuhn.npz", "--html=./kuhn.npz"],
        }.get(command)
        if pair:
            kept = [w for w in words if "policy" not in w and w != "kuhn.npz"]
            kept = words if command != "show" else kept
            return [*kept, *pair], (Bad("", tuple(p.partition("=")[0] for p in pair)),)
    return words + ["--json", "--", "more"], (Bad("", ("more",)),)


# ------------------------------------------------------------------ running
@functools.cache
def _policies() -> pathlib.Path:
    """A folder with files that lines read: good policies, and all kinds of others."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="command-lines-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # Linear programs need no program to be compiled.
    for name, game in ("kuhn", "kuhn_poker"), ("other", "python_rock_paper_scissors"):
        spiel_cr.solve(game, "lp").save(folder / f"{name}.npz")
    np.savez(folder / "arrays.npz", a=np.zeros(3))
    pickled = np.empty(1, object)
    pickled[0] = {1: 2}
    np.savez(folder / "pickled.npz", allow_pickle=True, a=pickled)
    whole = (folder / "kuhn.npz").read_bytes()
    (folder / "truncated.npz").write_bytes(whole[: len(whole) // 2])
    for name in ("file", "text.npz"):
        (folder / name).write_text("some text\n")
    (folder / "empty.npz").write_bytes(b"")
    return folder


def prepare(folder: pathlib.Path) -> None:
    """Puts the files into a folder that lines name."""
    for path in _policies().iterdir():
        shutil.copy(path, folder)
    for name in ("folder", "folder.npz", "folder.png"):
        (folder / name).mkdir()
    for name in ("fifo", "fifo.npz"):
        os.mkfifo(folder / name)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as place:
        here = os.getcwd()
        os.chdir(folder)  # names of sockets are short
        try:
            place.bind("socket")
        finally:
            os.chdir(here)


@functools.cache
def _written() -> tuple[TextIO, TextIO]:
    """Both streams, as Python opens them where the locale is UTF-8.

    They are opened once: what logs to stderr keeps it.
    """
    return (
        open(1, "w", encoding="utf-8", errors="strict", closefd=False),
        open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False),
    )


@contextlib.contextmanager
def _streams() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Both streams into files, those of libraries in C++ as well; no input."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        open(os.devnull) as nothing,
    ):
        sys.stdout.flush()
        sys.stderr.flush()
        saved = os.dup(1), os.dup(2)
        python = sys.stdin, sys.stdout, sys.stderr
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdin = nothing
        sys.stdout, sys.stderr = _written()
        try:
            yield out, err
        finally:
            sys.stdin, sys.stdout, sys.stderr = python
            for number, old in enumerate(saved, 1):
                os.dup2(old, number)
                os.close(old)


def run(words: Sequence[str], folder: pathlib.Path) -> Outcome:
    """Runs a command in this process, in a folder, for a minute at most."""
    code: int | None = None
    error, started = "", time.perf_counter()
    here = os.getcwd()

    def late(number: int, frame: object) -> None:
        raise OverTimeError(f"over {MAX_SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    with _streams() as (out, err):
        os.chdir(folder)
        signal.alarm(MAX_SECONDS)
        try:
            main._run(main._parse(["spiel-cr", *words]))
            sys.stdout.flush()
            code = 0
        except SystemExit as stopped:
            code = (
                stopped.code
                if isinstance(stopped.code, int)
                else int(bool(stopped.code))
            )
        except (Exception, OverTimeError):
            error = traceback.format_exc()
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
            os.chdir(here)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "backslashreplace"))
    seconds = time.perf_counter() - started
    return Outcome(code, texts[0], texts[1], error, seconds)


def run_line(line: Line) -> Outcome:
    """Runs a line in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="line-") as name:
        folder = pathlib.Path(name)
        prepare(folder)
        return run(line.words, folder)


# ------------------------------------------------------------------ judging
_REMEDY = re.compile(
    r"\b(give|use|choose|write|install|raise|lower|delete|leave|must be|must lie"
    r"|must end|must have|add|remove|correct|did you mean|shorten|start|ask"
    r"|expected one argument|arguments are required)\b"
    r"|\bset \w+=|\bgo on (with|to)\b",
    re.IGNORECASE,
)
# The parser ends every refusal with it, whatever it is about.
_EVERYWHERE = re.compile(r"; see spiel-cr\b.* --help$")
_LETTERS = 40


def _shows(message: str, value: str) -> bool:
    """Whether a message shows a value: as it is, escaped, as a number, or its begin."""
    if not value.strip():
        return repr(value) in message or f"={value}" in message
    forms = {value, repr(value)[1:-1], value.strip()}
    with contextlib.suppress(ValueError, OverflowError):
        forms |= {repr(float(value)), f"{float(value):g}"}
    if len(value) > _LETTERS:
        forms.add(value[:_LETTERS])
    return any(form in message for form in forms)


def _besides(message: str, bad: Bad) -> str:
    """A message without the string that it quotes."""
    return message.replace(repr(bad.inside), "") if bad.inside else message


def _is_named(message: str, bad: Bad) -> bool:
    """Whether a message has one of the argument's names as a word."""
    small = _besides(message, bad).lower()
    return any(
        re.search(rf"(?<![a-z]){re.escape(name.lower())}(?![a-z])", small)
        for name in bad.names
    )


def _is_shown(message: str, bad: Bad) -> bool:
    """Whether a message shows what it must of the value."""
    besides = _besides(message, bad)
    return any(_shows(besides, shown) for shown in bad.shown or ("",))


def complaints(line: Line, outcome: Outcome) -> list[str]:
    """What is wrong with how a line ended; nothing: all is well."""
    found = []
    if outcome.error:
        last = outcome.error.strip().splitlines()[-1]
        return [f"{'hang' if 'OverTime' in last else 'traceback'}: {last}"]
    if "Traceback (most recent call last)" in outcome.err + outcome.out:
        found.append("a traceback is printed")
    lines = outcome.err.strip().splitlines()
    message = lines[-1] if lines else ""
    if not line.spoiled:
        if outcome.code == 0:
            if "--json" in line.words:
                with contextlib.suppress(ValueError):
                    json.loads(outcome.out.splitlines()[-1])
                    return found
                found.append("no line of JSON")
            return found
        return [*found, f"exit {outcome.code} though it makes sense: {message}"]
    if outcome.code == 0:
        return [*found, "exit 0 on nonsense"]
    if outcome.code != 2:
        found.append(f"exit {outcome.code}, not 2")
    begins = [
        i for i, text in enumerate(lines) if re.match(r"spiel-cr\b.*error: ", text)
    ]
    if not begins:
        return [*found, f"no message: {message!r}"]
    if begins != [len(lines) - 1]:
        found.append(f"the message has {len(lines) - begins[0]} lines")
        message = " ".join(lines[begins[0] :])
    if outcome.out.strip():
        found.append(f"something on stdout: {outcome.out.strip()[:60]!r}")
    message = _EVERYWHERE.sub("", message)
    named = [b for b in line.spoiled if _is_named(message, b)]
    if not named:
        found.append(
            f"the argument is not named ({line.spoiled[0].names[0]}): {message}"
        )
    if not any(_is_shown(message, bad) for bad in line.spoiled):
        if any(b.shown for b in line.spoiled):
            found.append(f"the value is not shown: {message}")
    if not _REMEDY.search(message):
        found.append(f"no remedy: {message}")
    if re.search(
        r"/(open_spiel|site-packages|pybind)|CHECK_|allow_pickle|\.cc:", message
    ):
        found.append(f"words of a library: {message}")
    return found


# What refuses before it compiles programs.
_CHEAP = ("info", "solve", "play", "show", "subgame", "compare", "tournament", "study")


def judge(seed: int, *, cheap: bool = False) -> dict[str, Any]:
    """Makes a line, runs it, and says what is wrong.

    Args:
      seed: of the line.
      cheap: of all lines drawn from the seed on, the first that is refused, and that
        by a command that compiles no programs before.
    """
    line = make_line(seed)
    while cheap and not (line.spoiled and line.words[0] in _CHEAP):
        seed += 1000
        line = make_line(seed)
    outcome = run_line(line)
    return {
        "seed": seed,
        "line": str(line),
        "code": outcome.code,
        "seconds": round(outcome.seconds, 2),
        "complaints": complaints(line, outcome),
    }


def judge_many(first: int, last: int, record: pathlib.Path) -> list[dict[str, Any]]:
    """Judges many lines, in a process that may crash: that counts as well.

    Args:
      first, last: the seeds, `last` not included.
      record: a file of JSON lines, a line for each seed; what is there is not repeated.
    """
    here = pathlib.Path(__file__).parents[2]
    words = [sys.executable, "-m", "tests.fuzz.command_lines", "--many"]
    while True:
        rows = _rows(record)
        begin = first + len(rows)
        if begin >= last:
            return rows
        places = [str(begin), str(last), str(record)]
        done = subprocess.run([*words, *places], cwd=here, capture_output=True)
        if len(rows) == len(_rows(record)) or done.returncode:
            seed = first + len(_rows(record))
            if seed < last:
                text = (
                    f"the process ended with {done.returncode}: {done.stderr[-300:]!r}"
                )
                row = {"seed": seed, "line": str(make_line(seed)), "complaints": [text]}
                with record.open("a") as file:
                    file.write(json.dumps({**row, "code": None, "seconds": 0}) + "\n")


def _rows(record: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in record.read_text().splitlines() if row.strip()]


if __name__ == "__main__":
    if sys.argv[1] == "--many":
        # Signals wait for loops in C++ to end; this does not. Lines have other streams.
        last_words = open(os.dup(2), "w")
        for number in range(int(sys.argv[2]), int(sys.argv[3])):
            faulthandler.dump_traceback_later(_STUCK, exit=True, file=last_words)
            row = json.dumps(judge(number))
            with open(sys.argv[4], "a") as record_file:
                record_file.write(row + "\n")
    else:
        for given in sys.argv[1:]:
            again = make_line(int(given))
            result = run_line(again)
            print(again, result.code, result.out, result.err, result.error, sep="\n")
            print("\n".join(complaints(again, result)) or "nothing to complain about")
