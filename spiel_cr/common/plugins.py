"""Users' own modules: games that they register, bots and policies that they name.

What a command imports, its worker processes import, too: they read the same environment
variable.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# Modules and files, with the system's separator of paths between them.
VARIABLE = "SPIEL_CR_IMPORT"

# Top-level names of what was imported here: mistakes in them are their authors'.
own_modules: set[str] = set()


def import_own(names: Sequence[str]) -> None:
    """Imports modules or files, and has worker processes do the same.

    A module is looked for in the current folder, too, after all other places. A file's
    module is named as the file, without ".py", and finds modules beside it.

    Args:
      names: "package.module", or the path of a file that ends in ".py".

    Raises:
      ValueError: there is no such module or file, another module has a file's name, or
        importing fails.
    """
    for name in names:
        try:
            _import_one(name)
        except Exception as error:  # a user's module may raise anything
            if isinstance(error, _NameTakenError):
                raise
            raise ValueError(
                f"--import={name!r}: {type(error).__name__}: {error}; give a module "
                f"that Python finds, or the path of a .py file"
            ) from error
    before = os.environ.get(VARIABLE, "").split(os.pathsep)
    paths = [str(Path(n).resolve()) if _is_file(n) else n for n in names]
    known = [name for name in dict.fromkeys([*before, *paths]) if name]
    if known:
        os.environ[VARIABLE] = os.pathsep.join(known)


def import_from_environment() -> None:
    """Imports what the environment variable names.

    Raises:
      ValueError: as `import_own`.
    """
    import_own(
        [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    )


class _NameTakenError(ValueError):
    """Another module has a file's name."""


def _is_file(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def _import_one(name: str) -> None:
    folder, module_name = os.getcwd(), name
    path = Path(name).resolve()
    if _is_file(name):
        folder, module_name = str(path.parent), path.stem
    if folder not in sys.path:
        # The last: a file there hides no module of ours.
        sys.path.append(folder)
    own_modules.add(module_name.partition(".")[0])
    if not _is_file(name):
        importlib.import_module(module_name)
        return
    there = sys.modules.get(module_name)
    if there is not None:
        if getattr(there, "__file__", None) == str(path):
            return
        raise _NameTakenError(
            f"--import={name!r}: there is a module {module_name!r} already, of "
            f"{getattr(there, '__file__', 'Python')}; give the file another name"
        )
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
