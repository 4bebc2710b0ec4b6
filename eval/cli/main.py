"""The command line `spiel-cr`: its parser, and the setup and end of every command.

The output is text for people. With --json, the last line of stdout is one JSON object
for programs. Progress goes to stderr.

examples:
  spiel-cr info --game leduc_poker
  spiel-cr solve --game leduc_poker --algorithm cfr+ --iterations 1000
  spiel-cr resolve --game 'liars_dice(numdice=1,dice_sides=4)' --iterations 500 --json

Games are OpenSpiel strings. In addition to OpenSpiel's games there are
python_ii_goofspiel, python_princess_and_monster, python_latent_tic_tac_toe,
python_leduc_poker, python_rhode_island_holdem, python_poker_spot,
python_rock_paper_scissors and python_scotland_yard.
"""

import contextlib
import importlib
import json
import logging
import os
import pathlib
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TextIO, cast

import pyspiel
from absl import flags
from jax.errors import JaxRuntimeError

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.common import atomic, compilation_cache, messages, plugins
from spiel_cr.common.errors import SolverFailedError, UnsavedWarning, WorkerFailedError
from spiel_cr.common.messages import one_line
from spiel_cr.games.opening import foreign_code, game_strings

from ..common import help_pages
from . import interrupt_signals
from .command import Arguments, Parser, add_command, check_arguments, report_problem

# The modules of the commands, in the order of the help.
_COMMANDS = (
    "info algorithms solve spot resolve evaluate subgame best-response exploit "
    "certify tournament review play compare tune show trace export study abstract "
    "push-fold"
).split()

# Prefixes of XLA's messages about invalid operations, which are mistakes in the code.
_INVALID_OPERATIONS = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE")
# Errors about the machine, or about the game that the user chose.
_EXPECTED = (
    MemoryError,
    OSError,
    SolverFailedError,
    WorkerFailedError,
    pyspiel.SpielError,
)


class _OneLine(logging.Formatter):
    """Formatter of log records whose messages stay on one line."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record))


def main(*, owns_process: bool = False) -> None:
    """Run the command line of this process; `entry` calls it.

    Args:
      owns_process: Whether the process may be ended as soon as the command is
        interrupted; see `watchdog`.
    """
    # Warnings of the log look like all other lines.
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("spiel-cr: warning: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    arguments = _parse(sys.argv)
    if arguments.no_compilation_cache:
        os.environ[compilation_cache.VARIABLE] = "off"
    with compilation_cache.caching():
        _run(arguments, owns_process=owns_process)


def make_parser(names: Sequence[str] = _COMMANDS) -> Parser:
    """Construct the parser of commands; by default, of all.

    Each command imports other modules, so a parser of one command is made in less time.
    """
    parser = Parser(
        prog="spiel-cr",
        description="Solve, resolve and evaluate two-player zero-sum OpenSpiel games.",
        epilog=(__doc__ or "").partition("\n\n")[2],
    )
    version = f"spiel-cr {spiel_cr.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in names:
        module = importlib.import_module(f".{name.replace('-', '_')}", __package__)
        add_command(commands, name, module)
    return parser


def make_help_pages() -> dict[str, str]:
    """Return what --help prints, by command; "" is the page without a command.

    The pages are as wide as COLUMNS says, which is set to `help_pages.HELP_COLUMNS`.
    """
    parser = make_parser()
    (commands,) = (action for action in parser._actions if action.choices)
    assert isinstance(commands.choices, dict)
    pages = {name: each.format_help() for name, each in commands.choices.items()}
    return {"": parser.format_help(), **pages}


def write_help_pages() -> None:
    """Write the file that `help_pages.help_page` reads (`make help-pages`)."""
    text = json.dumps(make_help_pages(), indent=1)
    atomic.write_text(help_pages.HELP_PAGES, text + "\n")


def _parse(argv: Sequence[str]) -> Arguments:
    """Parse the command line; argparse exits by itself on --help and on errors."""
    parser = make_parser(argv[1:2] if argv[1:2] and argv[1] in _COMMANDS else _COMMANDS)
    arguments, surplus = parser.parse_known_args(argv[1:])
    if surplus:
        words = " ".join(surplus)
        parser.error(f"unrecognized arguments: {words}; leave them out")
    # Flags of absl are not options of spiel-cr; --flagfile would cause a traceback.
    flags.FLAGS.mark_as_parsed()
    return arguments


class _StandardOutput:
    """Standard output for spiel_cr, and standard error for users' code.

    The last line of standard output is the command's report, so that what a user's
    module prints must not be mixed with it.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the stream that belongs to the calling code."""
        module = str(sys._getframe(1).f_globals.get("__name__"))
        is_report = module.partition(".")[0] in plugins.PACKAGES
        return getattr(self._out if is_report else sys.stderr, name)


@contextlib.contextmanager
def _separating_output(arguments: Arguments) -> Iterator[None]:
    """Print to standard error what users' modules print during the block."""
    if not (getattr(arguments, "imports", ()) or os.environ.get(plugins.VARIABLE)):
        yield
        return
    with contextlib.redirect_stdout(cast(TextIO, _StandardOutput(sys.stdout))):
        yield


class _Farewell:
    """The last lines of an interrupted command, which are printed once."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments, self._printed = arguments, False

    def __call__(self) -> None:
        """Print where the command can be resumed, and that it was interrupted."""
        if not self._printed:
            self._printed = True
            _print_kept_files(self._arguments)
            print("spiel-cr: interrupted", file=sys.stderr)

    def exit(self, stopped: KeyboardInterrupt) -> NoReturn:
        """Print the lines, and leave with the exit code of the signal."""
        self()
        sys.exit(128 + getattr(stopped, "number", signal.SIGINT))


def _run(arguments: Arguments, *, owns_process: bool = False) -> None:
    with _separating_output(arguments):
        _run_command(arguments, owns_process=owns_process)


def _run_command(arguments: Arguments, *, owns_process: bool) -> None:
    farewell = _Farewell(arguments)
    interrupting = interrupt_signals.interrupting(farewell if owns_process else None)
    try:
        plugins.import_from_environment()
        plugins.import_user_modules(getattr(arguments, "imports", ()))
        # Checked before the work.
        check_arguments(arguments)
        with interrupting, _warnings_in_lines(arguments), _announcing():
            report = arguments.run(arguments)
    # Users' code may raise anything. Errors that are not about the user's input, code
    # or machine are printed with their traceback.
    except BaseException as error:
        fault = foreign_code.diagnosis(error)
        if fault is None and isinstance(error, KeyboardInterrupt):
            farewell.exit(error)
        # While modules in C are imported, an interrupt becomes another error.
        cause = error.__cause__
        if isinstance(cause, KeyboardInterrupt) and not plugins.is_raised(cause):
            farewell.exit(cause)
        if fault is None and not isinstance(error, Exception):
            raise
        if fault is not None:
            fault.__cause__, error = error, fault
        _report_error(error, arguments, is_fault=fault is not None)
    # The work was completed without a usable result.
    code = report.pop("exit_code", 0)
    if arguments.json:
        print(json.dumps(report))
    if arguments.unwritten:
        names = ", ".join(arguments.unwritten)
        report_problem("error", f"some outputs could not be written: {names}")
        code = code or 1
    if code:
        sys.exit(code)


def _platform_problem() -> str:
    """Return the error message if the user chose a device that JAX cannot use."""
    platforms, jax = os.environ.get("JAX_PLATFORMS"), sys.modules.get("jax")
    if not platforms or jax is None:
        return ""
    try:
        jax.devices()
    # JAX documents no types of these errors, and some of them have no message.
    except Exception as error:
        reason = one_line(error) or "there is no such device"
        return (
            f"JAX_PLATFORMS={platforms!r}: JAX cannot use this platform ({reason}); "
            f"install its JAX package, such as 'jax[cuda12]', or leave the variable out"
        )
    return ""


def _report_error(
    error: BaseException, arguments: Arguments, *, is_fault: bool
) -> NoReturn:
    """Print an error, and exit with 2, or with 1 if it is a mistake in spiel_cr.

    Args:
      error: The error.
      arguments: The options of the command.
      is_fault: Whether the error is about a user's code, see `foreign_code`.
    """
    assert isinstance(error, Exception)
    expected = is_fault or _is_expected(error)
    if expected and getattr(arguments, "traceback", False):
        traceback.print_exception(error.__cause__ or error)
    if not expected and (problem := _platform_problem()):
        report_problem("error", problem)
        sys.exit(2)
    if not expected:
        traceback.print_exception(error)
        report_problem(
            "error",
            "this is a mistake in spiel_cr; please report it, with the lines above "
            "and the command",
        )
        sys.exit(1)
    text = str(error)
    if isinstance(error, MemoryError):
        text = f"out of memory; choose a smaller game, or fewer --workers: {text}"
    if isinstance(error, pyspiel.SpielError) and not text.startswith("game="):
        # The game string passed all checks, but the game fails later.
        text = (
            f"game={getattr(arguments, 'game', None)!r}: OpenSpiel failed in this game"
            f"{game_strings.reason(error)}; choose other values of its parameters"
        )
    if isinstance(error, pyspiel.SpielError) and "Unknown game" in text:
        text += "; a game of your own: --import MODULE.py"
    report_problem("error", text)
    sys.exit(2)


@contextlib.contextmanager
def _announcing() -> Iterator[None]:
    """Announce every phase on stderr during the block."""
    with messages.listening(), compilation_cache.compilation_messages():
        yield


def _is_expected(error: Exception) -> bool:
    """Return whether an error is about the user's input or about the machine.

    The text of such an error is written for users. Other errors are mistakes in the
    code.
    """
    if isinstance(error, ValueError):
        return plugins.is_deliberate(error)
    if isinstance(error, ImportError):
        # An extra is missing, or a library does not load.
        return str(error.name).partition(".")[0] not in plugins.PACKAGES
    if isinstance(error, JaxRuntimeError):
        return not str(error).startswith(_INVALID_OPERATIONS)
    return isinstance(error, _EXPECTED)


def _print_kept_files(arguments: Arguments) -> None:
    """Print, after an interruption, where the same command can be resumed."""
    # The work is missing in files that could not be written.
    unwritten = [pathlib.Path(path) for path in arguments.unwritten]
    lost = not unwritten and not getattr(arguments, "saved", False)
    for name in ("out", "checkpoint"):
        path = getattr(arguments, name, None) if arguments.resumes else None
        if not path or pathlib.Path(path) in unwritten:
            continue
        if pathlib.Path(path).exists():
            kept = f"completed results are kept in {path}"
            print(one_line(f"{kept}; repeat the command to resume"), file=sys.stderr)
            lost = False
    if lost and "save" in arguments:
        without = getattr(arguments, "checkpoint", "") is None
        option = " (no --checkpoint)" if without else ""
        later = "; --save is written at the end only" if arguments.save else ""
        print(f"no results were kept{option}{later}", file=sys.stderr)


@contextlib.contextmanager
def _warnings_in_lines(arguments: Arguments) -> Iterator[None]:
    """Print warnings of spiel_cr in one line, and record those about unsaved files."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_line(
            message: Any, category: type[Warning], *place: Any, **options: Any
        ) -> None:
            if issubclass(category, UnsavedWarning):
                arguments.note_unwritten(message.error)
            elif category is UserWarning:
                report_problem("warning", message)
            else:
                show(message, category, *place, **options)

        warnings.showwarning = show_line
        warnings.simplefilter("always", UserWarning)
        yield
