"""Depth limits and leaf values as configuration: parsing and validation.

There are two kinds of leaf values (docs/explanation/depth-limits.md). *Multi-valued*
leaves have several numbers per history, among which the opponent chooses by its
information: `continuations`. *Fixed* leaves have one number per history: `uniform` and
`rollouts`. A lookahead with fixed leaf values is not sound.
"""

from typing import Any, Literal, get_args

from spiel_cr.common.checks import check_choice, check_iterations
from spiel_cr.common.parameters import parse
from spiel_cr.policies.behaviour_files import check_tabular_file
from spiel_cr.policies.leaf_values import HistoryValues, LeafValue, UniformValue
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.leaves.playout_values import PlayoutValue

DepthUnit = Literal["moves", "rounds"]

# Leaf values of a lookahead for which only a depth is given.
DEFAULT = "uniform"


# Leaf values by name: the class, and the type of each parameter. `continuations`
# requires a path.
KINDS: dict[str, tuple[type[HistoryValues], dict[str, Any]]] = {
    "continuations": (Continuations, {"path": str, "k": int}),
    "uniform": (UniformValue, {}),
    "rollouts": (PlayoutValue, {"n": int, "seed": int, "path": str}),
}
LEAVES = ("continuations(path=FILE,k=4)", "uniform", "rollouts(n=100)")


def parse_leaf(leaf: object) -> HistoryValues:
    """Parse a leaf value, and check the file that it names.

    Args:
      leaf: One of `LEAVES`; a function `value(game, histories)`, see `HistoryValues`;
        or a leaf value, which is returned. None: `DEFAULT`.

    Raises:
      ValueError: If `leaf` is not a leaf value, or has an invalid parameter.
      OSError, CorruptFileError: If a policy file cannot be read.
    """
    leaf = DEFAULT if leaf is None else leaf
    if isinstance(leaf, str):
        parsed = parse(leaf, "leaf")
        if parsed.name in KINDS:
            kind, types = KINDS[parsed.name]
            parameters = parsed.convert(types)
            if "path" in parameters or kind is not Continuations:
                value = kind(**parameters)
                if "path" in parameters:
                    check_tabular_file(parameters["path"])
                return value
    elif isinstance(leaf, HistoryValues):
        return leaf
    elif callable(leaf):
        return LeafValue(leaf, "histories")
    raise ValueError(
        f"leaf={leaf!r}: not a leaf value; use {', '.join(LEAVES)}, or a LeafValue or "
        f"HistoryValues"
    )


def is_fixed(leaf: object) -> bool:
    """Return whether a leaf value or leaf string has one number per history."""
    kind = KINDS[parse(leaf, "leaf").name][0] if isinstance(leaf, str) else type(leaf)
    return not issubclass(kind, Continuations)


def leaf_files(leaf: str) -> tuple[str, ...]:
    """Return the paths of the files that a leaf string names.

    Raises:
      ValueError: If the string cannot be parsed.
    """
    parameters = parse(leaf, "leaf").values
    return (parameters["path"],) if "path" in parameters else ()


def check_lookahead(
    depth: int | None, depth_unit: DepthUnit, leaf: str | HistoryValues | None
) -> None:
    """Check settings of a depth-limited lookahead that are invalid for every game.

    Args:
      depth: Depth limit. None: the lookahead extends to the end of the game.
      depth_unit: Unit of `depth`.
      leaf: Leaf values at the depth limit. None: `DEFAULT`.

    Raises:
      ValueError: If the depth or the unit is invalid, or a unit or leaf values are
        given without a depth.
      OSError, CorruptFileError: As for `parse_leaf`.
    """
    check_choice(depth_unit, "depth_unit", get_args(DepthUnit))
    parse_leaf(leaf)
    if depth is not None:
        check_iterations(depth, name="depth")
        return
    for name, value in (
        ("leaf", leaf),
        ("depth_unit", None if depth_unit == "moves" else depth_unit),
    ):
        if value is not None:
            raise ValueError(
                f"{name}={value!r} needs a depth limit; set depth=N, or leave {name} "
                f"out"
            )
