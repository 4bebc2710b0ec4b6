"""A game as first-order methods take it: treeplexes and weights of regularisers."""

from typing import NamedTuple

import jax
import numpy as np

from spiel_cr.games.sequence_form.treeplex import Treeplex
from spiel_cr.solvers.first_order.regularisers import Weights


class Problem(NamedTuple):
    """A game and what its regularisers weigh.

    Attributes:
      trees: each player's treeplex, payoffs over 2^exponent.
      weights: of each player's infosets.
      diameter: float scalar, the largest d_0(x_0) + d_1(x_1) there is.
    """

    trees: tuple[Treeplex, Treeplex]
    weights: tuple[Weights, Weights]
    diameter: jax.Array | np.ndarray
