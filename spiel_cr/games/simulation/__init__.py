"""Simulation of games by game trees, batched rules or OpenSpiel states."""

from spiel_cr.games.simulation.labelled import LabelledSimulator, Nodes
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.simulator import (
    FixedPlayer,
    Listing,
    Positions,
    Simulator,
    play,
)
from spiel_cr.games.simulation.state_source import StateSource
from spiel_cr.games.simulation.tree_source import TreeSource
from spiel_cr.games.simulation.workers import Workers

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
