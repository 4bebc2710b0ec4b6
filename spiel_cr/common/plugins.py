"""Users' own modules: games that they register, bots and policies that they name.

What a command imports, its worker processes import, too: they read the same environment
variable.
"""

import dis
import functools
import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any

# Modules and files, with the system's separator of paths between them.
VARIABLE = "SPIEL_CR_IMPORT"

# Top-level names of what was imported here: mistakes in them are their authors'.
user_modules: set[str] = set()

# Full names of those that `import_user_modules` imported: players may be named in
# these alone.
_named: set[str] = set()

# Functions that return an error about a user's code for an exception, or None.
diagnoses: list[Callable[[BaseException], Exception | None]] = []

# What raises in these is no mistake of the users', unless it was meant for them.
PACKAGES = ("spiel_cr", "game_defs")


def import_user_modules(names: Sequence[str]) -> None:
    """Imports modules or files, and has worker processes do the same.

    A module is looked for in the current folder, too, after all other places. A file's
    module is named as the file, without ".py", and finds modules beside it.

    Args:
      names: "package.module", or the path of a file that ends in ".py".

    Raises:
      ValueError: there is no such module or file, another module has a file's name, or
        the module raises; then the text says where. What goes wrong in this package
        while the module is executed is raised as it is.
    """
    for name in names:
        try:
            _named.add(_import_one(name))
        except _NameTakenError:
            raise
        # A user's module may raise anything while it is executed, so this is wide.
        # Nothing is hidden: type, text and line are told, and mistakes of ours go on.
        except BaseException as error:
            signal = isinstance(error, KeyboardInterrupt) and not is_raised(error)
            if signal or _is_internal(error):
                raise
            raise ValueError(
                f"--import={name!r}: {type(error).__name__}: {error}"
                f"{_place(error)}; {_remedy(error, name)}"
            ) from error
    before = os.environ.get(VARIABLE, "").split(os.pathsep)
    paths = [str(Path(n).resolve()) if _is_file(n) else n for n in names]
    modules = [name for name in dict.fromkeys([*before, *paths]) if name]
    if modules:
        os.environ[VARIABLE] = os.pathsep.join(modules)


def import_from_environment() -> None:
    """Imports what the environment variable names.

    Raises:
      ValueError: as `import_user_modules`.
    """
    import_user_modules(
        [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    )


def to_ship() -> tuple[list[str], list[str]]:
    """Modules that were imported, by names, and the paths of those not installed."""
    names, places = [], []
    for name in os.environ.get(VARIABLE, "").split(os.pathsep):
        module = sys.modules.get(Path(name).stem if _is_file(name) else name)
        if module is None:
            continue
        names.append(module.__name__)
        top = sys.modules[module.__name__.partition(".")[0]]
        place = Path(getattr(top, "__path__", [top.__file__])[0])
        if _is_file(name) or place.is_relative_to(os.getcwd()):
            places.append(str(place))
    return names, places


@functools.cache
def source(module: str) -> str:
    """A fingerprint of the project's code, which changes more often than versions.

    Args:
      module: its package counts, too, if it is of the project: one of `spiel_cr` may
        lie outside of its folder.
    """
    digest = hashlib.sha256()
    parts = module.split(".")[:2]
    names = [*PACKAGES, *([".".join(parts)] if parts[0] in PACKAGES else [])]
    for name in names:
        spec = importlib.util.find_spec(name)
        for place in (spec and spec.submodule_search_locations) or ():
            for file in sorted(Path(place).rglob("*.py")):
                digest.update(os.fsencode(f"{name}/{file.relative_to(place)}\0"))
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@functools.cache
def registered(group: str, name: str) -> Any:
    """What an installed package registers under a name; None: nothing.

    Args:
      group: of entry points, such as "spiel_cr.public_tree".
      name: of a game.
    """
    for point in metadata.entry_points(group=group, name=name):
        return point.load()
    return None


def was_named(module: str) -> bool:
    """Whether `import_user_modules` imported a module, or the package that it lies in.

    What a file says, or an argument that is a player's name, imports nothing.
    """
    return any(f"{module}.".startswith(f"{name}.") for name in _named)


def origin(error: BaseException) -> TracebackType | None:
    """Where an error was raised: the innermost place of its traceback."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place


def package_of(error: BaseException) -> str:
    """The top-level package of the module in which an error was raised; "": none."""
    place = origin(error)
    module = "" if place is None else str(place.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0]


def is_deliberate(error: Exception) -> bool:
    """Whether a `raise` of this project raised it; numpy raises ValueErrors, too."""
    return package_of(error) in PACKAGES and is_raised(error)


def is_raised(error: BaseException) -> bool:
    """Return whether a `raise` statement raised an exception, and not a signal."""
    if (place := origin(error)) is None:
        return False
    instruction = place.tb_frame.f_code.co_code[place.tb_lasti]
    return dis.opname[instruction] == "RAISE_VARARGS"


class _NameTakenError(ValueError):
    """Another module has a file's name."""


class _NoPythonFileError(ImportError):
    """A file that Python cannot import."""


def _is_internal(error: BaseException) -> bool:
    """Whether an error while a user's module is executed is a mistake of this project.

    It is if the last code of the user's or of this project that was called is this
    project's, and did not refuse what the user gave.
    """
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = str(frame.f_globals.get("__name__"))
        package = module.partition(".")[0]
        if package in user_modules - set(PACKAGES):
            return False
        if package in PACKAGES and module != __name__:
            return not (isinstance(error, ValueError) and is_deliberate(error))
    return False


def _place(error: BaseException) -> str:
    """Where in a user's module an error comes from, in brackets; "" if in none."""
    places = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] in user_modules
    ]
    return f" ({places[-1][0]}, line {places[-1][1]})" if places else ""


def _remedy(error: BaseException, name: str) -> str:
    """What to do: give another name, or correct the module."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is not None:
        exists = missing != name and not name.startswith(f"{missing}.")
    else:
        exists = not isinstance(error, _NoPythonFileError) and not (
            isinstance(error, FileNotFoundError) and not Path(name).exists()
        )
    if exists:
        return "correct it there"
    return "give a module that Python finds, or the path of a .py file"


def _is_file(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def _import_one(name: str) -> str:
    """Imports a module or file; its module's name."""
    folder, module_name = os.getcwd(), name
    path = Path(name).resolve()
    if _is_file(name):
        folder, module_name = str(path.parent), path.stem
    if folder not in sys.path:
        # The last: a file there hides no module of ours.
        sys.path.append(folder)
    user_modules.add(module_name.partition(".")[0])
    if not _is_file(name):
        importlib.import_module(module_name)
        return module_name
    module_before = sys.modules.get(module_name)
    if module_before is not None:
        if getattr(module_before, "__file__", None) == str(path):
            return module_name
        raise _NameTakenError(
            f"--import={name!r}: there is a module {module_name!r} already, of "
            f"{getattr(module_before, '__file__', 'Python')}; give the file another "
            f"name"
        )
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise _NoPythonFileError("it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module_name
