"""Public names and their modules; `__init__.py` imports each at its first use."""

from .evaluation.best_response import best_response as best_response
from .evaluation.best_response import nash_conv as nash_conv
from .evaluation.differences import differences as differences
from .evaluation.evaluate import evaluate as evaluate
from .evaluation.exploit import exploit as exploit
from .evaluation.matches import play_matches as play_matches
from .evaluation.response_config import ResponseConfig as ResponseConfig
from .games.opening.matrix_games import matrix_game as matrix_game
from .games.opening.opened import load_game as load_game
from .games.tree.tree_builder import build_tree as build_tree
from .players.player_specs import load_bot as load_bot
from .policies.leaf_values import LeafValue as LeafValue
from .policies.plotting import plot as plot
from .policies.result import Result as Result
from .resolving.continual import resolve as resolve
from .resolving.resolving_config import ResolvingConfig as ResolvingConfig
from .solvers.openspiel_solver import CFRPlusSolver as CFRPlusSolver
from .solvers.openspiel_solver import CFRSolver as CFRSolver
from .solvers.policy_files import load_policy as load_policy
from .solvers.representation import GameOptions as GameOptions
from .solvers.run import Checkpoint as Checkpoint
from .solvers.run import Goal as Goal
from .solvers.solve import solve as solve

__version__: str
