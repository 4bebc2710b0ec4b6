"""Fuzzed command lines, which are generated from the parsers, run, and checked.

`make_line(seed)` draws a command with options that are valid together, and usually
makes one argument invalid. The command must then reject this argument by name.
`complaints` lists the faults of the output. To repeat a line, run
`python -m tests.fuzz command_lines SEED SEED+1`.
"""

import contextlib
import functools
import json
import os
import pathlib
import random
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import spiel_cr
from tests.fuzz import in_process
from tests.fuzz.in_process import Outcome
from tests.fuzz.values import (
    POKER_GAMES,
    POKER_MISTAKES,
    SAMPLED,
    Bad,
    any_poker,
    bad_of,
    options,
    switches,
)


class Line(NamedTuple):
    """A command line.

    Attributes:
      seed: Seed from which the line was drawn.
      words: Arguments of `spiel-cr`.
      spoiled: Invalid values, of which the error names one; None if the line is
        valid.
    """

    seed: int
    words: list[str]
    spoiled: tuple[Bad, ...]

    def __str__(self) -> str:
        return f"seed {self.seed}: spiel-cr {' '.join(map(repr, self.words))}"


# Commands with more faults in the past, which are drawn three times as often.
_OFTEN = (
    *("solve", "resolve", "exploit", "tournament", "study"),
    *("abstract", "push-fold"),
)
# Share of `universal_poker` in lines whose game is not fixed.
_POKER = 0.25
# Options that each line of a command has, so that the work is small.
_ALWAYS: dict[str, dict[str, str]] = {
    "solve": {"--iterations": "2"},
    "resolve": {"--game": "kuhn_poker", "--iterations": "2"},
    "review": {"--game": "kuhn_poker", "--reference": "uniform"},
    "subgame": {"--iterations": "2", "--trunk-iterations": "2"},
    "evaluate": {"--bot": "uniform"},
    "best-response": {"--matches": "2", "--simulations": "8", "--rollouts": "2"},
    "exploit": {"--minutes": "1e-9", "--methods": "exact;table"},
    "tournament": {"--matches": "2"},
    "play": {"--game": "kuhn_poker", "--bots": "uniform;uniform", "--seed": "1"},
    "compare": {
        **{"--game": "kuhn_poker", "--iterations": "2", "--workers": "0"},
        "--algorithms": "uniform;cfr+",
    },
    "show": {"--game": "kuhn_poker", "--policy": "kuhn.npz"},
    "study": {"--size": "0.001"},
    "tune": {"--iterations": "2", "--candidates": "2", "--numbers": "alpha=0..5"},
    "push-fold": {
        **{"--stacks": "900/900", "--prizes": "2/1", "--blinds": "300/600"},
        **{"--boards": "1", "--rounds": "2", "--cache": "new/cache", "--steps": "5"},
    },
    "abstract": {"--budget": "2-4", "--iterations": "2"},
    "spot": {
        **{"--board": "5c9dJs2h3c", "--pot": "20", "--stack": "30"},
        **{"--iterations": "2", "--ranges": "AA;KK"},
    },
}
# Options that require others, or exclude them (None), for one command or for all.
_NEEDS: dict[tuple[str, str], dict[str, str | None]] = {
    ("review", "--open"): {"--game": "kuhn_poker"},
    ("review", "--bot"): {"--game": "kuhn_poker", "--open": "matches.jsonl"},
    ("solve", "--plot"): {"--eval-every": "1", "--form": None},
    ("spot", "--plot"): {"--eval-every": "1"},
    ("solve", "--lock"): {
        **{"--game": "kuhn_poker", "--form": None, "--evaluator": None},
        "--algorithm": None,
    },
    ("resolve", "--lock"): {
        **{
            "--game": "kuhn_poker",
            "--depth": None,
            "--form": None,
            "--evaluator": None,
        },
        **{"--depth-unit": None, "--leaf": None},
    },
    **{
        (name, "--checkpoint-every"): {"--checkpoint": "state.npz"}
        for name in ("solve", "spot")
    },
    ("spot", "--node"): {"--first": "oop"},
    ("resolve", "--leaf"): {"--depth": "2"},
    ("resolve", "--depth-unit"): {"--depth": "2"},
    ("evaluate", "--matches"): {"--method": "matches"},
    ("best-response", "--rounds"): {"--method": "learned"},
    ("best-response", "--rollouts"): {"--method": "lbr", "--learn": None},
    ("best-response", "--leaf"): {"--method": "lbr", "--learn": None},
    **{
        ("best-response", flag): {"--method": "ismcts"}
        for flag in ("--simulations", "--exploration", "--histories", "--learn")
    },
    ("compare", "--seconds"): {"--iterations": None},
    ("compare", "--iterations"): {"--seconds": None},
    ("abstract", "--thresholds"): {"--budget": None, "--early-rounds": None},
    ("abstract", "--early-rounds"): {"--budget": "3", "--thresholds": None},
    ("abstract", "--later"): {
        **{"--early-rounds": "1", "--budget": "3", "--thresholds": None}
    },
    ("compare", "--patience"): {"--workers": "1"},
    ("study", "--table"): {"--out": "out"},
    ("certify", "path"): {"--game": "kuhn_poker"},
    # Options that need a game that is not simulated.
    **{
        ("solve", flag): {"--form": None}
        for flag in ("--until", "--dtype", "--cache", "--evaluator")
    },
    ("solve", "--eval-every"): {"--form": None},
    # Strings, files and actions that belong to one game.
    **{
        ("", flag): {"--game": "kuhn_poker"}
        for flag in ("--policy", "--actions", "--bot", "--bots")
    },
}
# Options that valid lines do not have: pages need a person; some options need policies
# in public-tree form, or games with buckets; processes take seconds to start; and names
# of algorithms are not opponents.
_LEFT_OUT = {
    "play": ("--web", "--no-open", "--port"),
    "show": ("--node", "--board", "--plot", "--csv"),
    "compare": ("--ray", "--patience", "--suite", "--table"),
    **dict.fromkeys(
        ("tournament", "evaluate", "push-fold", "study"), ("--ray", "--workers")
    ),
    "solve": ("--imperfect-recall", "--lock-player", "--hand-buckets"),
    "spot": ("--lock", "--open", "--report"),
    "resolve": ("--lock-player",),
    "exploit": (
        *("--trained", "--iterations", "--ray", "--workers"),
        *("--queries", "--cost-limit", "--allow-remote"),
    ),
    "best-response": ("--rounds", "--checkpoint", "--ray", "--workers"),
}
_WITH_LP = (
    *("--seconds", "--wall-clock", "--until", "--eval-every", "--plot", "--dtype"),
    "--checkpoint",
)
_POSITIONAL = {"name", "path"}


def make_line(seed: int, command: str | None = None) -> Line:
    """Draw a line, which depends only on the seed.

    Args:
      seed: Seed for all random choices.
      command: Command of the line; None for a random one.
    """
    draw = random.Random(seed)
    command = command or draw.choice([*options(), *_OFTEN, *_OFTEN])
    own, always = options()[command], _ALWAYS.get(command, {})
    chosen = {
        flag: draw.choice(option.values.good)
        for flag, option in own.items()
        if option.required or (flag not in always and draw.random() < 0.15)
    } | always
    turned_on = {flag for flag in switches()[command] if draw.random() < 0.15}
    for flag in _LEFT_OUT.get(command, ()):
        chosen.pop(flag, None)
        turned_on.discard(flag)
    _agree(draw, command, chosen, turned_on)
    kind = draw.random()
    poker = "--game" in own and draw.random() < _POKER
    if poker and command != "abstract" and "--game" not in _fixed(command, chosen):
        chosen["--game"] = draw.choice(POKER_GAMES)
    if 0.75 < kind < 0.85:
        words, spoiled = _misshape(draw, command, chosen, turned_on)
        return Line(seed, words, spoiled)
    spoiled = ()
    if poker and kind < 0.6:
        spoiled = (draw.choice([any_poker(draw), draw.choice(POKER_MISTAKES)]),)
        chosen["--game"] = spoiled[0].value
    elif kind < 0.75:
        spoiled = (_spoil(draw, command, chosen),)
    return Line(seed, _words(draw, command, chosen, turned_on), spoiled)


def _fixed(command: str, chosen: dict[str, str]) -> set[str]:
    """Return the options that the chosen options determine."""
    pairs = ((one, flag) for flag in chosen for one in ("", command))
    fixed = {name for pair in pairs for name in _NEEDS.get(pair, ())}
    return fixed | ({"--game"} if "kuhn.npz" in chosen.get("--leaf", "") else set())


def _need(command: str, flag: str, chosen: dict[str, str]) -> None:
    """Change other options so that they are valid together with one."""
    needs = {**_NEEDS.get(("", flag), {}), **_NEEDS.get((command, flag), {})}
    for name, value in needs.items():
        if value is None:
            chosen.pop(name, None)
        elif name not in ("--eval-every", "--checkpoint", "--depth") or (
            name not in chosen
        ):
            chosen[name] = value


def _agree(
    draw: random.Random, command: str, chosen: dict[str, str], turned_on: set[str]
) -> None:
    """Remove options that contradict others, so that the line is valid."""
    for flag in list(chosen):
        if flag in chosen and flag not in _ALWAYS.get(command, ()):
            _need(command, flag, chosen)
    if chosen.get("--form") == "simulator":
        chosen["--algorithm"] = draw.choice(SAMPLED[:2])
    if chosen.get("--algorithm") == "lp":
        for flag in (*_WITH_LP, "--checkpoint-every"):
            chosen.pop(flag, None)
    if "kuhn.npz" in chosen.get("--leaf", ""):
        chosen["--game"] = "kuhn_poker"
    if command == "evaluate" and chosen.get("--method") == "matches":
        chosen["--matches"] = "2"
    if "--learn" in chosen or chosen.get("--method") == "exact":
        turned_on.discard("--states")


def _spoil(draw: random.Random, command: str, chosen: dict[str, str]) -> Bad:
    """Replace the value of an argument by an invalid one."""
    flag = draw.choice(list(options()[command]))
    bad = draw.choice(bad_of(command, flag))
    if flag == "--learn" or flag not in ("--simulations", "--learn"):
        chosen.pop("--learn", None)
    _need(command, flag, chosen)
    chosen[flag] = bad.value
    return bad


def _words(
    draw: random.Random, command: str, chosen: dict[str, str], turned_on: set[str]
) -> list[str]:
    """Return the words of a line, with options in random order."""
    parts = [[flag] for flag in turned_on]
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
    draw: random.Random, command: str, chosen: dict[str, str], turned_on: set[str]
) -> tuple[list[str], tuple[Bad, ...]]:
    """Return a line whose structure is invalid."""
    words = _words(draw, command, chosen, turned_on)
    kind = draw.randrange(7)
    if kind == 0:
        return words + ["--colour"], (Bad("", ("--colour",)),)
    if kind == 1:
        return words + ["surplus"], (Bad("", ("surplus",)),)
    if kind == 2:
        return ["dissolve", *words[1:]], (Bad("", ("dissolve",), ("dissolve",)),)
    if kind == 3:
        flags = [flag for flag in chosen if flag not in _POSITIONAL]
        if flags:
            words.append(draw.choice(flags))
            return words, (Bad("", (words[-1],)),)
        return words + ["--json=yes"], (Bad("", ("--json",), ("yes",)),)
    if kind == 4:
        required = [flag for flag, own in options()[command].items() if own.required]
        if not required:
            return words + ["--flagfile=x"], (Bad("", ("--flagfile",), ("x",)),)
        flag = draw.choice(required)
        del chosen[flag]
        return _words(draw, command, chosen, turned_on), (Bad("", (flag,)),)
    if kind == 5:
        # Two results in one file, or a result that would replace an input.
        pair = {
            "solve": ["--save=one.npz", "--checkpoint=./one.npz"],
            "subgame": ["--plot=out", "--out=out"],
            "show": ["--policy=kuhn.npz", "--html=./kuhn.npz"],
        }.get(command)
        if pair:
            if command == "show":
                del chosen["--policy"]
                words = _words(draw, command, chosen, turned_on)
            return [*words, *pair], (Bad("", tuple(p.partition("=")[0] for p in pair)),)
    return words + ["--json", "--", "more"], (Bad("", ("more",)),)


@functools.cache
def _policies() -> dict[str, bytes]:
    """Return valid policy files and other files by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        _make_policies(folder)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def _make_policies(folder: pathlib.Path) -> None:
    # Linear programs need no compiled functions.
    for name, game in ("kuhn", "kuhn_poker"), ("other", "python_rock_paper_scissors"):
        spiel_cr.solve(game, "lp").save(folder / f"{name}.npz")
    np.savez(folder / "arrays.npz", a=np.zeros(3))
    pickled = np.empty(1, object)
    pickled[0] = {1: 2}
    np.savez(folder / "pickled.npz", allow_pickle=True, a=pickled)
    whole = (folder / "kuhn.npz").read_bytes()
    (folder / "truncated.npz").write_bytes(whole[: len(whole) // 2])
    (folder / "matches.jsonl").write_text(
        '{"players": ["a", "b"], "actions": [0, 1, 1, 1]}\n'
    )
    for name in ("file", "text.npz"):
        (folder / name).write_text("some text\n")
    (folder / "empty.npz").write_bytes(b"")


def prepare(folder: pathlib.Path) -> None:
    """Write the files that lines name to a folder."""
    for name, content in _policies().items():
        (folder / name).write_bytes(content)
    for name in ("folder", "folder.npz", "folder.png"):
        (folder / name).mkdir()
    for name in ("fifo", "fifo.npz"):
        os.mkfifo(folder / name)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as place:
        with contextlib.chdir(folder):  # Names of sockets must be short.
            place.bind("socket")


def run_line(line: Line) -> Outcome:
    """Run a line in a separate folder."""
    with tempfile.TemporaryDirectory(prefix="line-") as name:
        folder = pathlib.Path(name)
        prepare(folder)
        return in_process.run(line.words, folder)


# ------------------------------------------------------------------ checks
_REMEDY = re.compile(
    r"\b(give|use|choose|write|install|raise|lower|delete|leave|must be|must lie"
    r"|must end|must have|add|remove|correct|did you mean|shorten|start|ask"
    r"|expected one argument|arguments are required)\b"
    r"|\bset \w+=|\bgo on (with|to)\b",
    re.IGNORECASE,
)
# The parser appends this to every error.
_EVERYWHERE = re.compile(r"; see spiel-cr\b.* --help$")
_LETTERS = 40


def _shows(message: str, value: str) -> bool:
    """Return whether a message shows a value, escaped, as a number, or its start."""
    if not value.strip():
        return repr(value) in message or f"={value}" in message
    forms = {value, repr(value)[1:-1], value.strip()}
    with contextlib.suppress(ValueError, OverflowError):
        forms |= {repr(float(value)), f"{float(value):g}"}
    if len(value) > _LETTERS:
        forms.add(value[:_LETTERS])
    return any(form in message for form in forms)


def _besides(message: str, bad: Bad) -> str:
    """Return a message without the string that it quotes."""
    return message.replace(repr(bad.inside), "") if bad.inside else message


def _is_named(message: str, bad: Bad) -> bool:
    """Return whether a message has one of the argument's names as a word."""
    small = _besides(message, bad).lower()
    return any(
        re.search(rf"(?<![a-z]){re.escape(name.lower())}(?![a-z])", small)
        for name in bad.names
    )


def _is_shown(message: str, bad: Bad) -> bool:
    """Return whether a message shows one of the required parts of the value."""
    besides = _besides(message, bad)
    return any(_shows(besides, shown) for shown in bad.shown or ("",))


def complaints(line: Line, outcome: Outcome) -> list[str]:
    """Return the faults of the output of a line; none if it is correct."""
    found = []
    if outcome.error:
        last = outcome.error.strip().splitlines()[-1]
        return [f"{'hang' if 'HangsError' in last else 'traceback'}: {last}"]
    wanted = "--traceback" in line.words
    if "Traceback (most recent call last)" in outcome.err + outcome.out and not wanted:
        found.append("a traceback is printed")
    lines = outcome.err.strip().splitlines()
    message = lines[-1] if lines else ""
    # Large games may be rejected, interrupted after a minute, or reported.
    unsure = bool(line.spoiled) and not line.spoiled[0].sure
    if unsure and outcome.code in (0, 130):
        return found
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
    if outcome.code != 2 and not (unsure and "nothing gave a number" in message):
        found.append(f"exit {outcome.code}, not 2")
    begins = [
        i for i, text in enumerate(lines) if re.match(r"spiel-cr\b.*error: ", text)
    ]
    if not begins:
        return [*found, f"no message: {message!r}"]
    if begins != [len(lines) - 1]:
        found.append(f"the message has {len(lines) - begins[0]} lines")
        message = " ".join(lines[begins[0] :])
    if outcome.out.strip() and outcome.code == 2:
        found.append(f"something on stdout: {outcome.out.strip()[:60]!r}")
    message = _EVERYWHERE.sub("", message)
    named = [b for b in line.spoiled if _is_named(message, b)]
    if not named and not unsure:
        found.append(
            f"the argument is not named ({line.spoiled[0].names[0]}): {message}"
        )
    if not unsure and not any(_is_shown(message, bad) for bad in line.spoiled):
        if any(b.shown for b in line.spoiled):
            found.append(f"the value is not shown: {message}")
    if not _REMEDY.search(message):
        found.append(f"no remedy: {message}")
    if re.search(
        r"/(open_spiel|site-packages|pybind)|CHECK_|allow_pickle|\.cc:", message
    ):
        found.append(f"words of a library: {message}")
    return found


# Commands that reject invalid arguments before they compile functions.
_CHEAP = ("info", "solve", "play", "show", "subgame", "compare", "tournament", "study")


def cheap_line(seed: int) -> Line:
    """Return the first line, of those drawn from the seed on, that takes little time.

    A command rejects it before it compiles functions.
    """
    line = make_line(seed)
    while not (line.spoiled and line.spoiled[0].sure and line.words[0] in _CHEAP):
        seed += 1000
        line = make_line(seed)
    return line


def judge(line: Line) -> dict[str, Any]:
    """Run a line; return its outcome and its faults."""
    outcome = run_line(line)
    wrong = complaints(line, outcome)
    return {
        "outcome": f"{line.words[0]} ends with {outcome.code}",
        "faults": [f"{line}: {'; '.join(wrong)}"] if wrong else [],
        "poker": int("universal_poker" in str(line)),
    }


@contextlib.contextmanager
def trials(only: Sequence[str]) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Prepare trials of random lines, of all commands or of those in `only`."""

    def trial(seed: int) -> dict[str, Any]:
        return judge(make_line(seed, only[seed % len(only)] if only else None))

    yield trial
