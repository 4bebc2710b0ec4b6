"""Leaf values of what strings say: see `leaf_strings.py`."""

from collections.abc import Callable

from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.lookahead.continuations import Continuations
from spiel_cr.lookahead.exact import ConstantValues, ExactValues
from spiel_cr.lookahead.leaf_strings import DEFAULT, Leaf, read_leaf
from spiel_cr.lookahead.network import load_network
from spiel_cr.lookahead.values import CheckedFunction, ValueFunction
from spiel_cr.policies.leaf_values import ChoiceValues

_MAKE: dict[str, Callable[..., ValueFunction | ChoiceValues]] = {
    "exact": ExactValues,
    "constant": ConstantValues,
    "network": load_network,
    "continuations": Continuations,
}


def check_leaf(leaf: Leaf, tree: CompiledGame) -> None:
    """Refuses a leaf value of another game, as far as the leaf value can tell.

    Raises:
      ValueError: it is of another game.
    """
    if isinstance(leaf, CheckedFunction):
        leaf.check(tree)


def parse_leaf(leaf: str | Leaf | None) -> Leaf:
    """A leaf value of a game that is compiled whole.

    Args:
      leaf: one of `leaf_strings.LEAVES`; a leaf value itself, which is returned; None:
        `leaf_strings.DEFAULT`.

    Raises:
      ValueError, OSError, DamagedFileError: as `read_leaf`.
    """
    if leaf is None:
        leaf = DEFAULT
    if not isinstance(leaf, str):
        return leaf
    found = read_leaf(leaf)
    if not isinstance(found, tuple):
        return found
    name, given = found
    return _MAKE[name](**given)
