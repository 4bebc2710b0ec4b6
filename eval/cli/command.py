"""What the commands of `spiel-cr` have in common: their options, files and seeds."""

import argparse
import contextlib
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from spiel_cr.common import atomic, memory
from spiel_cr.common.checks import check_seed
from spiel_cr.common.executor import Executor
from spiel_cr.common.messages import one_line
from spiel_cr.common.parameters import read_number
from spiel_cr.players.bot_strings import MEMORY_LIMIT

from ..common.files import csv_text

Commands = argparse._SubParsersAction


def report_problem(kind: str, text: object) -> None:
    """Print an error or a warning to stderr, always as one line.

    Args:
      kind: "error" or "warning".
      text: Message, or the exception that carries it. What it quotes, such as a game
        string, may contain line breaks and control characters; these are escaped.
    """
    print(f"spiel-cr: {kind}: {one_line(text)}", file=sys.stderr)


class Arguments(argparse.Namespace):
    """What was given to a command, and how its outputs are written."""

    def given(self, *names: str) -> dict[str, Any]:
        """Some options by name, to be passed on or reported as they are."""
        return {name: getattr(self, name) for name in names}

    def executor(self, workers: int = 0, **settings: Any) -> Executor:
        """What the options of `Parser.worker_options` say.

        Args:
          workers: without options.
          **settings: of the executor, besides.
        """
        if self.workers is not None or self.ray is not None:
            workers = self.workers or 0
        return Executor(workers, self.ray, **settings)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Writes one of the command's outputs, when the work is done.

        If that fails, the others are written nevertheless; see `note_unwritten`.
        """
        try:
            yield
        except OSError as error:
            self.note_unwritten(error)

    def note_unwritten(self, error: OSError) -> None:
        """Tells what could not be written; the command goes on, and ends with code 1.

        Args:
          error: with the file's name.
        """
        report_problem("error", error)
        self.unwritten.append(str(error.filename or error))


class Parser(argparse.ArgumentParser):
    """Reads a command line; every refusal says where help is."""

    def error(self, message: str) -> NoReturn:
        """Prints usage and message, and ends the process with exit code 2."""
        super().error(f"{one_line(message)}; see {self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but says of a switch with a value what to do."""
        for word in args or ():
            if word == "--":
                break
            flag, equals, value = word.partition("=")
            switch = self._option_string_actions.get(flag)
            if equals and switch is not None and switch.nargs == 0:
                self.error(f"argument {flag}: it takes no value; leave {value!r} out")
        namespace = Arguments() if namespace is None else namespace
        return super().parse_known_args(args, namespace)

    def option(
        self,
        flag: str,
        text: str = "",
        default: Any = None,
        *,
        group: argparse._ActionsContainer | None = None,
        **settings: Any,
    ) -> None:
        """Adds an option.

        Args:
          flag: such as "--seed"; what several commands share is known here.
          text: of the help; a default is added to it.
          default: where the option is left out; tells the type of its values, too.
          group: of this parser, that the option belongs to.
          **settings: of `argparse`.
        """
        settings = {**_SHARED.get(flag, {}), **settings}
        text = text or settings["help"]
        if default is None:
            default = settings.get("default")
        if default is not None:
            kind = settings.setdefault("type", type(default))
            if "(default" not in text:
                said = f"{default:g}" if kind is float else "%(default)s"
                text += f" (default {said})"
            settings["default"] = default
        if "action" not in settings or settings["action"] == "append":
            kind = settings.get("type", str)
            settings["type"] = _READERS.get(kind, kind)
            if kind is int and "choices" not in settings:
                settings.setdefault("metavar", "N")
        settings["help"] = text
        (group or self).add_argument(flag, **settings)

    def bot_options(self, bots: str, text: str, *, required: bool = True) -> None:
        """Options of commands whose players are bots: --game, --bots, --memory-limit.

        Args:
          bots: how --bots is written.
          text: help of --bots.
          required: whether --game and --bots are.
        """
        self.option("--game", required=required)
        self.option("--bots", text, required=required, metavar=bots)
        text = "refuse bots that need the whole of a larger game"
        self.option("--memory-limit", text, MEMORY_LIMIT)

    def worker_options(
        self, text: str = "processes at a time; 0: this one", default: int = 0
    ) -> None:
        """Options of commands whose tasks an `Executor` does: --workers, --ray."""
        text = f"{text} (default {default})"
        self.option("--workers", text, metavar="N", type=int)
        self.option(
            "--ray",
            "work on the Ray cluster at this address, or on one of this machine (the "
            "extra `ray`), with N workers, or one for each core",
            nargs="?",
            const="local",
            metavar="ADDRESS",
        )


def text_value(text: str) -> str:
    """An option's value as it is, where it can be printed and given to OpenSpiel."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not UTF-8; write it in UTF-8"
        ) from None
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} has a NUL in it; leave that out")
    return text


def path_value(text: str) -> str:
    """The path of a file or folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            f"{text!r} is no path; give one that has a name"
        )
    return text_value(text)


def whole_value(text: str) -> int:
    """A whole number; the range is checked where it is used."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,4000}\s*", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no whole number; write one such as 10"
        )
    return int(text)


def number_value(text: str) -> float:
    """A number; the range is checked where it is used."""
    try:
        return read_number(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number; write one such as 0.5"
        ) from None


def size_value(text: str) -> str:
    """A size in bytes, as it was written."""
    try:
        memory.parse_size(text, "--memory-limit")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


# Options that name what is written, and a file that is read.
OUTPUT_FILES, OUTPUT_FOLDERS, _READ = (
    ("save", "plot", "checkpoint", "html", "csv"),
    ("out", "cache"),
    "policy",
)


def check_arguments(arguments: Arguments) -> None:
    """Refuses, before any work, what no command can use.

    Raises:
      ValueError: a seed out of range, a place that cannot be written, or the same place
        for two options.
    """
    if getattr(arguments, "seed", None) is not None:
        check_seed(arguments.seed)
    places: dict[str, atomic.Path | None] = {}
    for name in (_READ, *OUTPUT_FILES, *OUTPUT_FOLDERS):
        given = getattr(arguments, name, None)
        if not given:
            continue
        flag = f"--{name}"
        places[flag] = given
        atomic.check_distinct(places)
        if name in OUTPUT_FOLDERS:
            _check_folder(given, flag)
        elif name in OUTPUT_FILES:
            atomic.check_writable(given, flag)


def _check_folder(given: str, flag: str) -> None:
    """Refuses a folder that cannot be made or written to."""
    try:
        there = pathlib.Path(given).absolute()
        while not there.exists():
            there = there.parent
        if not there.is_dir():
            raise NotADirectoryError(f"{there} is no folder")
    except OSError as error:
        why = error.strerror or error
        raise ValueError(
            f"{flag}={given!r}: {why}; give the path of a folder"
        ) from error
    try:
        atomic.check_writable(pathlib.Path(given) / "file", flag)
    except ValueError as error:
        cause = error.__cause__
        raise ValueError(
            f"{flag}={given!r} cannot be written to "
            f"({getattr(cause, 'strerror', None) or cause}); give the path of a folder "
            f"with room in it"
        ) from error


# How values are read: by the type of the option's default, text where it has none.
_READERS: dict[type, Callable[[str], Any]] = {
    str: text_value,
    int: whole_value,
    float: number_value,
}
# Options of several commands; each command may replace any of it.
_SHARED: dict[str, dict[str, Any]] = {
    "--game": {"required": True, "help": "OpenSpiel game string"},
    "--policy": {"required": True},
    "--seed": {"default": 0, "metavar": "SEED", "help": "of all that is drawn"},
    "--iterations": {"type": int},
    "--matches": {"type": int},
    "--save": {"metavar": "PATH", "type": path_value},
    "--checkpoint": {"metavar": "PATH", "type": path_value},
    "--html": {"metavar": "FILE", "type": path_value},
    "--csv": {"metavar": "FILE", "type": path_value},
    "--out": {"metavar": "DIR", "type": path_value},
    "--plot": {
        "metavar": "PATH",
        "type": path_value,
        "help": "draw the curve (png, svg or pdf)",
    },
    "--memory-limit": {
        "metavar": "SIZE",
        "type": size_value,
        "help": "refuse what needs more than this, such as 3GB; none: no limit "
        "(default 70 %% of what the process may have, at least 1 GB)",
    },
    "--cache": {
        "metavar": "DIR",
        "type": path_value,
        "help": "keep compiled games in this folder for the next time",
    },
}


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[Arguments], dict[str, object]],
    text: str,
    doc: str | None = None,
    *,
    resumes: bool = False,
    **lists: str,
) -> Parser:
    """Adds a command; every one can end with a line of JSON.

    Args:
      commands: of the parser.
      name: what the user types.
      run: does the work, prints for people, and returns what --json prints.
      text: one line of help.
      doc: docstring of the command's file. What comes after its first line is printed
        as it is at the end of the command's --help.
      resumes: whether the same command goes on from its --out or --checkpoint after an
        interruption.
      **lists: what stands for the names in braces of `doc`.
    """
    epilog = (doc or "").partition("\n\n")[2].format(**lists)
    parser: Parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter
        if epilog
        else argparse.HelpFormatter,
    )
    # `unwritten` names outputs that could not be written after the work.
    parser.set_defaults(run=run, resumes=resumes, unwritten=[], imports=[])
    parser.option(
        "--import",
        "import a module or a .py file first: it may register games, and has what "
        "module:name means; may be given several times",
        action="append",
        dest="imports",
        metavar="MODULE_OR_FILE",
    )
    parser.option(
        "--no-program-cache",
        "do not keep compiled programs in the user's cache folder for the next time",
        action="store_true",
    )
    parser.option("--json", "end with one line of JSON on stdout", action="store_true")
    return parser


def split_bots(bots: str) -> list[str]:
    """The bots of --bots."""
    names = [name.strip() for name in bots.split(";")]
    if "" in names:
        raise ValueError(
            f"--bots={bots!r}: a bot is missing before or after a semicolon; "
            f"write 'A;B'"
        )
    return names


def write_csv(path: pathlib.Path, rows: Sequence[dict[str, object]]) -> None:
    """Writes a table with the first row's keys as its head."""
    values = (list(row.values()) for row in rows)
    atomic.write_text(path, csv_text(list(rows[0]), values, end="\r\n"))
