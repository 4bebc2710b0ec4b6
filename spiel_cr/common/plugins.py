"""Users' own modules: games that they register, and bots and policies that they name.

Worker processes import the same modules as the command, because both read the same
environment variable.
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

# Top-level names of imported user modules, whose errors are their authors' mistakes.
user_modules: set[str] = set()

# Full names of the modules that `import_user_modules` imported. Names of players may
# refer only to these modules.
_named: set[str] = set()

# Functions that return an error about a user's code for an exception, or None.
diagnoses: list[Callable[[BaseException], Exception | None]] = []

# Packages of the project. An error that they raise is a mistake of the user only if
# the `raise` statement reports one.
PACKAGES = ("spiel_cr", "game_defs")


def import_user_modules(names: Sequence[str]) -> None:
    """Import modules or files, and register them for worker processes.

    The current folder is the last place in which a module is searched. A file's module
    has the name of the file without ".py", and it can import modules in the same
    folder.

    Args:
      names: Names such as "package.module", or paths of files that end in ".py".

    Raises:
      ValueError: If a module or file does not exist, another module has the name of a
        file, or a module raises an error. The message then contains the place. Errors
        that are mistakes in spiel_cr are raised unchanged.
    """
    for name in names:
        try:
            _named.add(_import_one(name))
        except _NameTakenError:
            raise
        # A user's module may raise any exception while it is executed. The message has
        # its type, text and line, and mistakes in spiel_cr are raised unchanged.
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
    """Import the modules that the environment variable lists.

    Raises:
      ValueError: As `import_user_modules`.
    """
    import_user_modules(
        [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    )


def to_ship() -> tuple[list[str], list[str]]:
    """Return names of imported user modules, and paths of those not installed."""
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
    """Return a fingerprint of the project's code, which changes between versions.

    Args:
      module: Name of a module. If it belongs to the project, its package is included,
        because a subpackage of `spiel_cr` may be located in another folder.
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
    """Return the object that an installed package registers under a name, or None.

    Args:
      group: Group of entry points, such as "spiel_cr.public_tree".
      name: Name of a game.
    """
    for point in metadata.entry_points(group=group, name=name):
        return point.load()
    return None


def was_named(module: str) -> bool:
    """Return whether `import_user_modules` imported a module or its package.

    Names in files and in arguments for players never cause an import.
    """
    return any(f"{module}.".startswith(f"{name}.") for name in _named)


def named_object(name: str, label: str) -> Any:
    """Return an object of an imported user module.

    Args:
      name: Name of the form "module:name" or "module:class.name".
      label: The argument and its value, for errors.

    Raises:
      ValueError: If `import_user_modules` did not import the module, or it has no such
        name.
    """
    module_name, _, path = name.partition(":")
    if not was_named(module_name):
        raise ValueError(
            f"{label}: module {module_name!r} was not imported; write module:name, and "
            f"name its module or file with --import (in Python: "
            f"spiel_cr.common.plugins.import_user_modules)"
        )
    try:
        value: Any = importlib.import_module(module_name)
        for attribute in path.split("."):
            value = getattr(value, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{label}: {error}; write module:name, and import its file before "
            f"(--import FILE)"
        ) from error
    return value


def origin(error: BaseException) -> TracebackType | None:
    """Return the innermost place of an error's traceback."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place


def package_of(error: BaseException) -> str:
    """Return the top-level package of the module that raised an error, or ""."""
    place = origin(error)
    module = "" if place is None else str(place.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0]


def is_deliberate(error: Exception) -> bool:
    """Return whether a `raise` statement of this project raised an error.

    Errors from other packages, such as the ValueErrors of numpy, are excluded.
    """
    return package_of(error) in PACKAGES and is_raised(error)


def is_raised(error: BaseException) -> bool:
    """Return whether a `raise` statement raised an exception, and not a signal."""
    if (place := origin(error)) is None:
        return False
    instruction = place.tb_frame.f_code.co_code[place.tb_lasti]
    return dis.opname[instruction] == "RAISE_VARARGS"


class _NameTakenError(ValueError):
    """Another module already has the name of a file."""


class _NoPythonFileError(ImportError):
    """Python cannot import a file."""


def _is_internal(error: BaseException) -> bool:
    """Return whether an error during an import is a mistake in spiel_cr.

    The innermost frame that belongs to the user's code or to this project decides. The
    error is internal if the frame belongs to this project and did not deliberately
    reject the user's input.
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
    """Return the file and line in a user's module that raised an error, in parentheses.

    The result is "" if the traceback contains no user module.
    """
    places = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] in user_modules
    ]
    return f" ({places[-1][0]}, line {places[-1][1]})" if places else ""


def _remedy(error: BaseException, name: str) -> str:
    """Return the remedy for a failed import: another name, or a correction."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is not None:
        exists = missing != name and not name.startswith(f"{missing}.")
    else:
        exists = not isinstance(error, _NoPythonFileError) and not (
            isinstance(error, FileNotFoundError) and not Path(name).exists()
        )
    if exists:
        return "correct it there"
    return "use an importable module, or the path of a .py file"


def _is_file(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def _import_one(name: str) -> str:
    """Import a module or a file, and return the name of the module."""
    folder, module_name = os.getcwd(), name
    path = Path(name).resolve()
    if _is_file(name):
        folder, module_name = str(path.parent), path.stem
    if folder not in sys.path:
        # Appended last, so that a file there does not hide an installed module.
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
            f"--import={name!r}: module {module_name!r} already exists in "
            f"{getattr(module_before, '__file__', 'Python')}; choose another "
            f"name for the file"
        )
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise _NoPythonFileError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module_name
