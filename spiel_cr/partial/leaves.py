"""What histories at the frontier of a player's trees are worth, from strings."""

import pyspiel

from spiel_cr.lookahead.continuations import Continuations
from spiel_cr.lookahead.leaf_strings import names_choices, read_leaf
from spiel_cr.policies.leaf_values import ChoiceValues, LeafValue, parse_leaf
from spiel_cr.uncompiled.policy_files import check_histories_file, load_histories_policy


def parse_partial_leaf(
    leaf: str | LeafValue | ChoiceValues, game: pyspiel.Game | None = None
) -> LeafValue | ChoiceValues:
    """Reads a leaf value.

    Args:
      leaf: "rollouts(n=4,seed=0)", "continuations(path=FILE,k=4)" of a policy of a
        compiled game or of one that was not compiled, or such values.
      game: the sequential game that a policy must be for; None: the one that its file
        names.

    Raises:
      ValueError, OSError, DamagedFileError: none of these, or as
        `lookahead.leaf_strings.read_leaf`.
    """
    if isinstance(leaf, ChoiceValues):
        return leaf
    if names_choices(leaf):
        found = read_leaf(leaf, check_histories_file)
        assert isinstance(found, tuple)
        given = dict(found[1])
        return Continuations(load_histories_policy(given.pop("path"), game), **given)
    return parse_leaf(leaf, compiled=False)
