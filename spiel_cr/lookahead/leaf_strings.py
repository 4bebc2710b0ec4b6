"""Where a lookahead ends, as configuration: its depth, and leaf values as strings.

Leaf values are of three kinds (docs/leaves.md). *Range-aware* ones depend on what both
players may hold at a public state, and are asked in every iteration: `exact`,
`constant`, `network`. *Multi-valued* ones are several numbers per history, among which
the opponent chooses by its information: `continuations`. *Fixed* ones are one number
per history: `rollouts`, `uniform`, `policy`; no lookahead that ends in them is sound.
`leaves.py` makes them of what is read here.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard, get_args

from spiel_cr.cfr.config import parse_algorithm
from spiel_cr.common.checks import check_choice, check_iterations, check_seed
from spiel_cr.common.parameters import parse
from spiel_cr.lookahead.network import load_network
from spiel_cr.lookahead.values import ValueFunction
from spiel_cr.policies import leaf_values
from spiel_cr.policies.leaf_values import ChoiceValues, HistoryValue
from spiel_cr.policies.result import check_tabular_file

Leaf: TypeAlias = HistoryValue | ValueFunction | ChoiceValues
ContinuationKind = Literal["responses", "biased"]
DepthUnit = Literal["moves", "rounds", "moves_from_start"]

# What a lookahead ends in where only its depth is given.
DEFAULT = "uniform"


class Kind(NamedTuple):
    """A leaf by name that is not one number per history.

    Attributes:
      text: how it is written.
      table: its parameters with their types.
      needs: those that must be given.
      check: refuses bad values of parameters, and bad files.
    """

    text: str
    table: dict[str, Any]
    needs: tuple[str, ...]
    check: Callable[..., object]


def _check_solve(iterations: int = 1, algorithm: str = "cfr+") -> None:
    check_iterations(iterations)
    parse_algorithm(algorithm)


def _check_network(path: str) -> None:
    load_network(path)


def _check_continuations(
    path: str,
    k: int = 1,
    kind: ContinuationKind = "biased",
    rollouts: int = 1,
    seed: int = 0,
) -> None:
    check_iterations(k, name="k")
    check_choice(kind, "kind", get_args(ContinuationKind))
    check_iterations(rollouts, name="rollouts")
    check_seed(seed)


_SOLVE = {"iterations": int, "algorithm": str}
RANGE_AWARE = {
    "exact": Kind("exact(iterations=100,algorithm=cfr+)", _SOLVE, (), _check_solve),
    "constant": Kind("constant(iterations=1000)", _SOLVE, (), _check_solve),
    "network": Kind("network(path=FILE)", {"path": str}, ("path",), _check_network),
}
MULTI_VALUED = {
    "continuations": Kind(
        "continuations(path=FILE,k=4)",
        {"path": str, "k": int, "kind": str, "rollouts": int, "seed": int},
        ("path",),
        _check_continuations,
    )
}
_KINDS = RANGE_AWARE | MULTI_VALUED
_FIXED = {text.partition("(")[0] for text in leaf_values.LEAVES}
LEAVES = (*(kind.text for kind in _KINDS.values()), *leaf_values.LEAVES)


def read_leaf(
    leaf: str, check_policy: Callable[[str], object] = check_tabular_file
) -> HistoryValue | tuple[str, dict[str, Any]]:
    """Reads a string, one of `LEAVES`; files are checked.

    Args:
      leaf: the string.
      check_policy: refuses files that hold no policy for continuations.

    Returns:
      A fixed leaf value; or the name of another one and its parameters.

    Raises:
      ValueError: none of these, or a bad parameter.
      OSError, DamagedFileError: a file is not there, or not what it must be.
    """
    found = parse(leaf, "leaf")
    kind = _KINDS.get(found.name)
    if kind is not None and set(kind.needs) <= set(found.given):
        given = found.convert(kind.table)
        kind.check(**given)
        if found.name in MULTI_VALUED:
            check_policy(given["path"])
        return found.name, given
    if found.name in _FIXED and (found.given or found.name != "policy"):
        return leaf_values.parse_leaf(leaf)
    raise ValueError(
        f"leaf={leaf!r} must be one of {', '.join(LEAVES)}, or a leaf value itself"
    )


def knows_ranges(leaf: str | Leaf | None) -> bool:
    """Whether a leaf, or what its string says, depends on the players' ranges."""
    if isinstance(leaf, str):
        return parse(leaf, "leaf").name in RANGE_AWARE
    return isinstance(leaf, ValueFunction)


def names_choices(leaf: object) -> TypeGuard[str]:
    """Whether a leaf is a string of values among which the opponent chooses."""
    return isinstance(leaf, str) and parse(leaf, "leaf").name in MULTI_VALUED


def leaf_files(leaf: str) -> tuple[str, ...]:
    """The files that a leaf's string names.

    Raises:
      ValueError: it cannot be read.
    """
    given = parse(leaf, "leaf").given
    return (given["path"],) if "path" in given else ()


def check_lookahead(
    depth: int | None, depth_unit: DepthUnit, leaf: str | Leaf | None
) -> None:
    """Refuses a lookahead that no game makes right, before any work.

    Args:
      depth: where it ends; None: at the end of the game.
      depth_unit: what depth counts.
      leaf: what the game is worth there; None: `DEFAULT`.

    Raises:
      ValueError: a bad depth or unit, or a unit or leaf without a depth.
      OSError, DamagedFileError: as `read_leaf`.
    """
    check_choice(depth_unit, "depth_unit", get_args(DepthUnit))
    if isinstance(leaf, str):
        read_leaf(leaf)
    elif not (
        leaf is None or isinstance(leaf, ValueFunction | ChoiceValues) or callable(leaf)
    ):
        raise ValueError(
            f"leaf={leaf!r} is no leaf value; give a string, one of "
            f"{', '.join(LEAVES)}, a LeafValue, a ChoiceValues or a ValueFunction"
        )
    if depth is not None:
        check_iterations(depth, name="depth")
        return
    for name, value in (
        ("leaf", leaf),
        ("depth_unit", None if depth_unit == "moves" else depth_unit),
    ):
        if value is not None:
            raise ValueError(
                f"{name}={value!r} says how a lookahead ends, and there is none; give "
                f"depth=N, too, or leave {name} out"
            )
