"""What histories at the frontier of a player's trees are worth, from strings."""

from spiel_cr.common.parameters import parse
from spiel_cr.lookahead.continuations import Continuations
from spiel_cr.lookahead.leaf_strings import MULTI_VALUED, read_leaf
from spiel_cr.policies.leaf_values import ChoiceValues, LeafValue, parse_leaf


def parse_partial_leaf(
    leaf: str | LeafValue | ChoiceValues,
) -> LeafValue | ChoiceValues:
    """Reads a leaf value.

    Args:
      leaf: "rollouts(n=4,seed=0)", "continuations(path=FILE,k=4)", or such values.

    Raises:
      ValueError, OSError, DamagedFileError: none of these, or as
        `lookahead.leaf_strings.read_leaf`.
    """
    if isinstance(leaf, ChoiceValues):
        return leaf
    if isinstance(leaf, str) and parse(leaf, "leaf").name in MULTI_VALUED:
        found = read_leaf(leaf)
        assert isinstance(found, tuple)
        return Continuations(**found[1])
    return parse_leaf(leaf, compiled=False)
