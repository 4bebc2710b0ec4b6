"""Push/fold (jam/fold) tournaments of two and three players, solved before the flop.

`solve_tournament` computes an approximate equilibrium for every distribution of the
chips, and the regret of each player. `chip_model` computes the values of stacks under
the independent chip model, for any number of players. `guarantee` computes what
push/fold wins heads-up against an opponent who may bet any amount.
"""

from spiel_cr.push_fold.charts import text_chart
from spiel_cr.push_fold.chip_model import chip_model
from spiel_cr.push_fold.engine import Engine, InnerSettings
from spiel_cr.push_fold.equities import Equities, hand_tables
from spiel_cr.push_fold.hand_classes import class_names
from spiel_cr.push_fold.one_sided import Guarantee, guarantee
from spiel_cr.push_fold.outer import ALGORITHMS, StochasticGame
from spiel_cr.push_fold.solve import SolveSettings, TournamentSolution, solve_tournament
from spiel_cr.push_fold.tournament import TournamentGame, TournamentSetting

__all__ = [
    "ALGORITHMS",
    "Engine",
    "Equities",
    "Guarantee",
    "InnerSettings",
    "TournamentSetting",
    "TournamentSolution",
    "SolveSettings",
    "StochasticGame",
    "TournamentGame",
    "chip_model",
    "class_names",
    "guarantee",
    "hand_tables",
    "solve_tournament",
    "text_chart",
]
