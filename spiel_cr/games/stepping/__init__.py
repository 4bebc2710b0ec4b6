"""Games played move by move: by compiled trees, rules on arrays, OpenSpiel's states."""

from spiel_cr.games.stepping.labelled import LabelledSimulator, Nodes
from spiel_cr.games.stepping.rules_source import RulesSource
from spiel_cr.games.stepping.simulator import (
    FixedPlayer,
    Listing,
    Positions,
    Simulator,
    play,
)
from spiel_cr.games.stepping.state_source import StateSource
from spiel_cr.games.stepping.tree_source import TreeSource
from spiel_cr.games.stepping.workers import Workers

__all__ = [
    "FixedPlayer",
    "LabelledSimulator",
    "Listing",
    "Nodes",
    "Positions",
    "RulesSource",
    "Simulator",
    "StateSource",
    "TreeSource",
    "Workers",
    "play",
]
