"""Where a lookahead ends, as configuration: its depth, and leaf values as strings.

Leaf values are of two kinds (docs/explanation/depth-limits.md). *Multi-valued* ones are
several numbers per history, among which the opponent chooses by its information:
`continuations`. *Fixed* ones are one number per history: `uniform`; no lookahead that
ends in them is sound.
"""

from typing import Any, Literal, get_args

from spiel_cr.common.checks import check_choice, check_iterations
from spiel_cr.common.parameters import parse
from spiel_cr.policies.behaviour_files import check_tabular_file
from spiel_cr.policies.leaf_values import HistoryValues, LeafValue, UniformValue
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.leaves.playout_values import PlayoutValue

DepthUnit = Literal["moves", "rounds"]

# What a lookahead ends in where only its depth is given.
DEFAULT = "uniform"


# Leaf values by name: their class, and the types of parameters. A path must be given.
KINDS: dict[str, tuple[type[HistoryValues], dict[str, Any]]] = {
    "continuations": (Continuations, {"path": str, "k": int}),
    "uniform": (UniformValue, {}),
    "rollouts": (PlayoutValue, {"n": int, "seed": int, "path": str}),
}
LEAVES = ("continuations(path=FILE,k=4)", "uniform", "rollouts(n=100)")


def parse_leaf(leaf: object) -> HistoryValues:
    """Reads a leaf value; files are checked.

    Args:
      leaf: one of `LEAVES`; a function `value(game, histories)`, see `HistoryValues`; a
        leaf value itself, which is returned; None: `DEFAULT`.

    Raises:
      ValueError: none of these, or a bad parameter.
      OSError, CorruptFileError: a file is not there, or not what it must be.
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
    """Whether a leaf, or what its string says, is one number per history."""
    kind = KINDS[parse(leaf, "leaf").name][0] if isinstance(leaf, str) else type(leaf)
    return not issubclass(kind, Continuations)


def leaf_files(leaf: str) -> tuple[str, ...]:
    """The files that a leaf's string names.

    Raises:
      ValueError: it cannot be read.
    """
    parameters = parse(leaf, "leaf").values
    return (parameters["path"],) if "path" in parameters else ()


def check_lookahead(
    depth: int | None, depth_unit: DepthUnit, leaf: str | HistoryValues | None
) -> None:
    """Refuses a lookahead that no game makes right, before any work.

    Args:
      depth: where it ends; None: at the end of the game.
      depth_unit: what depth counts.
      leaf: what the game is worth there; None: `DEFAULT`.

    Raises:
      ValueError: a bad depth or unit, or a unit or leaf without a depth.
      OSError, CorruptFileError: as `parse_leaf`.
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
