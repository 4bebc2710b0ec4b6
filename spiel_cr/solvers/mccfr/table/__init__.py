"""Games that are never compiled: sampled CFR on a table of infosets that grows."""

from spiel_cr.games.stepping.keys import of_bytes, of_rows
from spiel_cr.games.stepping.rules_source import RulesSource
from spiel_cr.games.stepping.simulator import Positions, Simulator
from spiel_cr.games.stepping.state_source import StateSource
from spiel_cr.games.stepping.workers import Workers
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy
from spiel_cr.solvers.mccfr.table.table import Table
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy
from spiel_cr.solvers.mccfr.table.table_solver import UncompiledSolver

__all__ = [
    "Positions",
    "RulesSource",
    "Simulator",
    "StateSource",
    "Table",
    "TablePolicy",
    "TableStrategy",
    "UncompiledSolver",
    "Workers",
    "of_bytes",
    "of_rows",
]
