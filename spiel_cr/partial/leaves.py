"""What histories at the frontier of a player's trees are worth, from strings."""

import pyspiel

from spiel_cr.lookahead.continuations import Continuations
from spiel_cr.lookahead.frontier import FrontierFunction
from spiel_cr.lookahead.frontier_network import FrontierLeaf, network_of
from spiel_cr.lookahead.leaf_strings import names_choices, read_leaf
from spiel_cr.partial.blueprint import check_blueprint_file, load_blueprint
from spiel_cr.policies.leaf_values import ChoiceValues, parse_leaf


def parse_partial_leaf(
    leaf: str | FrontierLeaf, game: pyspiel.Game | None = None
) -> FrontierLeaf:
    """Reads a leaf value.

    Args:
      leaf: "rollouts(n=4,seed=0)", "continuations(path=FILE,k=4)" of a policy of a
        compiled game, of one that was not compiled, or of networks that play,
        "network(path=FILE)" of a value network of a game that was not compiled, or such
        values.
      game: the sequential game that a policy or network must be for; None: the one that
        its file names.

    Raises:
      ValueError, OSError, DamagedFileError: none of these, or as
        `lookahead.leaf_strings.read_leaf`.
    """
    leaf = network_of(leaf) or leaf
    if isinstance(leaf, FrontierFunction):
        if game is not None:
            leaf.check_game(game)
        return leaf
    if isinstance(leaf, ChoiceValues):
        return leaf
    if names_choices(leaf):
        read = read_leaf(leaf, check_blueprint_file)
        assert isinstance(read, tuple)
        given = dict(read[1])
        return Continuations(load_blueprint(given.pop("path"), game), **given)
    return parse_leaf(leaf, compiled=False)
