"""Values where a lookahead ends that know the players' ranges.

A lookahead ends in *public states*. What one is worth depends on how often either
player is there with what information: its range. `ValueFunction` says so
(DeepStack's form), and solvers call it in every iteration.
"""

from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.leaves.public_states import PublicStates
from spiel_cr.resolving.leaves.values import RangeValues, ValueFunction

__all__ = [
    "Continuations",
    "PublicStates",
    "RangeValues",
    "ValueFunction",
]
