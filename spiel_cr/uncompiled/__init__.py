"""Games that are never compiled: sampled CFR on a table of infosets that grows."""

from spiel_cr.uncompiled.keys import of_bytes, of_rows
from spiel_cr.uncompiled.policy import TablePolicy
from spiel_cr.uncompiled.rules_source import RulesSource
from spiel_cr.uncompiled.solver import UncompiledSolver
from spiel_cr.uncompiled.source import Positions, Source
from spiel_cr.uncompiled.state_source import StateSource
from spiel_cr.uncompiled.strategy import TableStrategy
from spiel_cr.uncompiled.table import Table
from spiel_cr.uncompiled.workers import Workers

__all__ = [
    "Positions",
    "RulesSource",
    "Source",
    "StateSource",
    "Table",
    "TablePolicy",
    "TableStrategy",
    "UncompiledSolver",
    "Workers",
    "of_bytes",
    "of_rows",
]
