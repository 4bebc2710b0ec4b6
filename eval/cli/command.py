"""Foundations of all commands of `spiel-cr`: options, output files and errors."""

import argparse
import contextlib
import dataclasses
import pathlib
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TypeVar

from spiel_cr.common import atomic, figures
from spiel_cr.common.checks import check_seed
from spiel_cr.common.executor import Executor
from spiel_cr.common.messages import one_line

from ..common.files import csv_text
from .setting_options import field_option, flag_of

Commands = argparse._SubParsersAction
_Settings = TypeVar("_Settings")


def report_problem(kind: str, text: object) -> None:
    """Print an error or a warning to stderr, always as one line.

    Args:
      kind: "error" or "warning".
      text: Message, or an exception with the message. Line breaks and control
        characters, for example of a quoted game string, are escaped.
    """
    print(f"spiel-cr: {kind}: {one_line(text)}", file=sys.stderr)


class Arguments(argparse.Namespace):
    """The parsed options of a command, and the outputs that could not be written."""

    def options(self, *names: str) -> dict[str, Any]:
        """Return some options by name."""
        return {name: getattr(self, name) for name in names}

    def settings(self, kind: type[_Settings], **values: Any) -> _Settings:
        """Construct settings from the options that are named as their fields.

        Args:
          kind: Dataclass of the settings.
          **values: Values of other fields, or values that replace those of options.
        """
        names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
        return kind(**{**self.options(*(n for n in names if n in self)), **values})

    def reject(
        self, defaults: type, names: Sequence[str], problem: str, remedy: str = ""
    ) -> None:
        """Raise ValueError if one of some options does not have its default.

        Args:
          defaults: Dataclass of options, with their defaults.
          names: Names of the options.
          problem: Predicate of the error, after "--name=value".
          remedy: Another remedy than to leave the option out, such as "add it".
        """
        for name in names:
            flag, value = flag_of(name), getattr(self, name)
            if value != getattr(defaults, name, None):
                text = flag if value is True else f"{flag}={value}"
                either = f"{remedy}, or " if remedy else ""
                raise ValueError(f"{text} {problem}; {either}leave {flag} out")

    def executor(self, workers: int = 0, **settings: Any) -> Executor:
        """Construct the executor of `WorkerOptions`.

        Args:
          workers: Number of workers if neither --workers nor --ray is given.
          **settings: Further settings of the executor.
        """
        if self.workers is not None or self.ray is not None:
            workers = self.workers or 0
        return Executor(workers, self.ray, **settings)

    @contextlib.contextmanager
    def writing(self, label: str = "", path: atomic.Path = "") -> Iterator[None]:
        """Write one output of the command, and print where it is.

        If that fails, the failure is recorded (`note_unwritten`) and the command
        continues with its other outputs.

        Args:
          label: Text before the path. If empty, nothing is printed.
          path: Path of the file that the block writes.
        """
        try:
            yield
            if label:
                print(f"{label} {one_line(path)}")
        except OSError as error:
            self.note_unwritten(error)

    def write_text(self, path: atomic.Path, text: str, label: str = "") -> bool:
        """Write a text file, as in `writing`, and return whether that succeeded."""
        with self.writing(label, path):
            atomic.write_text(path, text)
            return True
        return False

    def note_unwritten(self, error: OSError) -> None:
        """Print that a file could not be written; the command ends with exit code 1."""
        report_problem("error", error)
        self.unwritten.append(str(error.filename or error))


class _HelpFormatter(argparse.HelpFormatter):
    """Formatter of help pages that does not break names at hyphens.

    The description and the epilog are printed as they are.
    """

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "".join(indent + line for line in text.splitlines(keepends=True))


class Parser(argparse.ArgumentParser):
    """A parser of command lines whose errors say where to find help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=_HelpFormatter, **settings)
        self._titled = [
            (self.add_argument_group(title), flags.split())
            for title, flags in _GROUPS.items()
        ]

    def error(self, message: str) -> NoReturn:
        """Print the usage and a message, and end the process with exit code 2."""
        super().error(f"{one_line(message)}; see {self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as `argparse` does, with an error for switches that have a value."""
        for word in args or ():
            if word == "--":
                break
            flag, equals, value = word.partition("=")
            switch = self._option_string_actions.get(flag)
            if equals and switch is not None and switch.nargs == 0:
                self.error(f"argument {flag}: it has no value; remove {value!r}")
        namespace = Arguments() if namespace is None else namespace
        return super().parse_known_args(args, namespace)

    def settings(
        self, settings: type, names: str = "", **changes: dict[str, Any]
    ) -> None:
        """Add options for fields of settings, each to the group to which it belongs.

        Args:
          settings: Dataclass of the settings, as described in `setting_options`.
          names: Names of fields, with spaces between them; "": all fields.
          **changes: By field, settings for `argparse` if they are not those of the
            field, and "flag" if the option has another name.
        """
        fields = [field.name for field in dataclasses.fields(settings)]
        for name in names.split() or fields:
            flag, options = field_option(settings, name)
            change = changes.get(name, {})
            if "flag" in change:
                flag = options.pop("dest") and change.pop("flag")
            options |= change
            default = options.get("default")
            if default is not None and "(default" not in options["help"]:
                shown = f"{default:g}" if isinstance(default, float) else "%(default)s"
                options["help"] += f" (default {shown})"
            if "choices" in options:
                options.pop("metavar", None)
            titled = (group for group, flags in self._titled if flag in flags)
            next(titled, self).add_argument(flag, **options)


@dataclasses.dataclass(kw_only=True)
class GeneralOptions:
    """Options of all commands.

    Attributes:
      imports (MODULE_OR_FILE): Import a module or .py file first, which may register
        games and define what module:name refers to; may be repeated.
      no_compilation_cache: Do not keep compiled functions in the user's cache folder.
      json: End with one line of JSON on stdout.
      traceback: Print the complete traceback of an error in your game, policy or bot.
    """

    imports: list[str] | None = None
    no_compilation_cache: bool = False
    json: bool = False
    traceback: bool = False


@dataclasses.dataclass(kw_only=True)
class WorkerOptions:
    """Options of commands that run tasks in an `Executor`."""

    workers: int | None = None
    ray: str | None = dataclasses.field(
        default=None, metadata={"nargs": "?", "const": "local"}
    )


# Options with paths of outputs, and those with paths of inputs.
OUTPUT_FILES = (
    "save plot figure checkpoint html csv efg table latex write_ranges".split()
)
OUTPUT_FOLDERS, _READ = ("out", "cache"), ("policy", "open")


def check_arguments(arguments: Arguments) -> None:
    """Check the arguments that all commands share, before any work.

    Raises:
      ValueError: If the seed is out of range, a path cannot be written, two options
        have the same path, or the format of a plot is unknown.
    """
    if getattr(arguments, "seed", None) is not None:
        check_seed(arguments.seed)
    paths: dict[str, atomic.Path | None] = {}
    for name in (*_READ, *OUTPUT_FILES, *OUTPUT_FOLDERS):
        path = getattr(arguments, name, None)
        if not path:
            continue
        flag = flag_of(name)
        paths[flag] = path
        atomic.check_distinct(paths)
        if name in OUTPUT_FOLDERS:
            _check_folder(path, flag)
        elif name in OUTPUT_FILES:
            atomic.check_writable(path, flag)
    for name in ("plot", "figure"):
        if path := getattr(arguments, name, None):
            figures.check(path, name)


def _check_folder(path: str, flag: str) -> None:
    """Check that a folder exists or can be created, and that it is writable."""
    try:
        parent = pathlib.Path(path).absolute()
        while not parent.exists():
            parent = parent.parent
        if not parent.is_dir():
            raise NotADirectoryError(f"{parent} is not a folder")
    except OSError as error:
        raise ValueError(
            f"{flag}={path!r}: {error.strerror or error}; use the path of a folder"
        ) from error
    try:
        atomic.check_writable(pathlib.Path(path) / "file", flag)
    except ValueError as error:
        cause = error.__cause__
        raise ValueError(
            f"{flag}={path!r} cannot be written to "
            f"({getattr(cause, 'strerror', None) or cause}); use the path of a folder "
            f"with free space"
        ) from error


# Groups of options on help pages, by title.
_GROUPS = {
    "game": "--game --suite --form --no-batched-rules --hand-buckets "
    "--imperfect-recall --policy --player --bot --bots --policies --reference "
    "--actions --open --board --pot --stack --ranges --bets --first --rake --stacks "
    "--prizes --blinds",
    "algorithm": "--algorithm --algorithms --numbers --candidates --dtype --lock "
    "--lock-player --method --thresholds --early-rounds --later --endgames --depth "
    "--depth-unit --leaf --gadget --values --noise --seed",
    "stopping and evaluation": "--iterations --trunk-iterations --seconds --minutes "
    "--wall-clock --until --eval-every --evaluator --matches --repeats --seeds --folds "
    "--retry --rounds --steps --queries --cost-limit",
    "output": "--save --checkpoint --checkpoint-every --out --plot --figure --panel "
    "--width --unit --latex --html --csv --efg --node --report --write-ranges "
    "--notation --find --sort --limit",
    "resources": "--memory-limit --cache --workers --ray --patience",
}


def add_command(commands: Commands, name: str, module: Any) -> Parser:
    """Add the command of a module.

    Args:
      commands: Subparsers of the parser.
      name: Name of the command.
      module: Module with a dataclass of options, such as `SolveOptions`, and a function
        `run(arguments)` that does the work, prints its results, and returns the
        report for --json. A function `add_options(parser)`, if there is one, adds
        options of the library's settings. The first line of the module's docstring,
        after the colon, is the command's description, and the rest is the end of its
        help page. `LISTS` has texts for names in braces there. `RESUMES` is True if
        the same command continues from its --out or --checkpoint after an
        interruption.
    """
    head, _, epilog = (module.__doc__ or f": {name}").partition("\n\n")
    text = " ".join(head.split()).partition(": ")[2].removesuffix(".")
    parser: Parser = commands.add_parser(
        name,
        help=text,
        description=textwrap.fill(f"{text[0].upper()}{text[1:]}.", 78),
        epilog=epilog.format(**getattr(module, "LISTS", {})),
    )
    # `unwritten` names outputs that could not be written after the work.
    parser.set_defaults(run=module.run, unwritten=[], imports=[])
    parser.set_defaults(resumes=getattr(module, "RESUMES", False))
    parser.settings(GeneralOptions, imports={"flag": "--import", "dest": "imports"})
    parser.settings(getattr(module, f"{name.title().replace('-', '')}Options"))
    getattr(module, "add_options", lambda parser: None)(parser)
    return parser


def split_bots(bots: str) -> list[str]:
    """Return the bots of --bots, which are separated by semicolons."""
    names = [name.strip() for name in bots.split(";")]
    if "" in names:
        raise ValueError(
            f"--bots={bots!r}: a bot is missing before or after a semicolon; use 'A;B'"
        )
    return names


def write_csv(path: pathlib.Path, rows: Sequence[dict[str, object]]) -> None:
    """Write a table whose columns are the keys of the first row."""
    values = (list(row.values()) for row in rows)
    atomic.write_text(path, csv_text(list(rows[0]), values, end="\r\n"))
