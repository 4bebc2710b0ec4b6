"""A game as first-order methods take it: treeplexes and weights of regularisers."""

from typing import NamedTuple

from spiel_cr.games.sequence_form.treeplex import Treeplex
from spiel_cr.solvers.first_order.regularisers import Weights


class Problem(NamedTuple):
    """A game and what its regularisers weigh.

    Attributes:
      trees: each player's treeplex, payoffs over 2^exponent.
      weights: of each player's infosets.
    """

    trees: tuple[Treeplex, Treeplex]
    weights: tuple[Weights, Weights]
