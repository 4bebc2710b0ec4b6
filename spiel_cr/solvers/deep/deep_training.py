"""Base class of solvers that train networks, by deep CFR or by self-play."""

import abc
from typing import Any, cast

import numpy as np

from spiel_cr.common.checks import check_seed
from spiel_cr.games.simulation import key_making
from spiel_cr.games.simulation.simulator import Simulator
from spiel_cr.games.simulation.tree_source import TreeSource
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import value_bounds
from spiel_cr.policies.conversions import Behaviours
from spiel_cr.policies.result import SolvedForm
from spiel_cr.solvers.deep.averages import Networks
from spiel_cr.solvers.deep.infosets import ActingInfosets, Knowledge, TreeKnowledge
from spiel_cr.solvers.deep.network_policy import DeepPolicy
from spiel_cr.solvers.deep.tensors import SimulatedTensors
from spiel_cr.solvers.iterative_solver import IterativeSolver, settings_text


def check_simulated(config: Any) -> None:
    """Raise ValueError if a setting needs a game tree.

    Args:
      config: Settings, a `DeepConfig` or a `SelfPlayConfig`.
    """
    if config.needs_tree:
        raise ValueError(
            f"algorithm={config.name!r}: {config.needs_tree} requires a game "
            f"tree; choose another setting, or build the game tree"
        )


class Training(IterativeSolver):
    """Solver that samples matches of a game and learns from them.

    Attributes:
      source: Simulator of the game.
      knowledge: Information of the players at the simulator's positions.
      tree: Game tree; None: the game is simulated.
      seed: Seed for all random choices.
      iterations: Number of iterations completed.
      episodes: Number of matches sampled.
      nodes: Number of visited decisions and terminal nodes.
    """

    iterations: int

    def __init__(
        self, game: GameTree | SimulatedTensors, config: Any, seed: int
    ) -> None:
        """Prepare the simulator and the information; nothing is sampled yet.

        Args:
          game: Game tree, or a simulated game whose simulator the caller closes.
          config: Settings, a `DeepConfig` or a `SelfPlayConfig`.
          seed: Seed for all random choices.

        Raises:
          ValueError: If the seed is invalid, or a setting needs a game tree.
        """
        self.seed = check_seed(seed)
        self.source: Simulator
        self.knowledge: Knowledge
        self.tree: GameTree | None = None
        if isinstance(game, GameTree):
            self.source = TreeSource(game, stratified=config.draws == "stratified")
            self.knowledge = TreeKnowledge(game, config.features)
            self.tree = game
        else:
            check_simulated(config)
            self.source, self.knowledge = game
        self.iterations = self.episodes = self.nodes = 0
        # Before the first iteration there is no state to save.
        self.is_complete = False

    @abc.abstractmethod
    def average(self) -> Networks:
        """Return the networks of the average strategies."""

    @abc.abstractmethod
    def average_behaviours(self) -> Behaviours:
        """Return both players' average strategies, with one probability per sequence.

        Raises:
          ValueError: If the game has no tree.
        """

    @abc.abstractmethod
    def strategy(self, player: int, seen: ActingInfosets) -> np.ndarray:
        """Return the current strategy of a player, float64 [m, A].

        Args:
          player: Player 0 or 1.
          seen: Information of the player at m decisions.
        """

    def current_behaviour(self, player: int) -> np.ndarray:
        """Return the current strategy, with one probability per sequence, float64 [S].

        Args:
          player: Player 0 or 1.

        Raises:
          ValueError: If the game has no tree.
        """
        knowledge = self._compiled()
        return knowledge.behaviour(
            player, self.strategy(player, knowledge.everywhere(player))
        )

    def _compiled(self) -> TreeKnowledge:
        """Return the knowledge of a game tree.

        Raises:
          ValueError: If the game has no tree.
        """
        if self.tree is not None:
            return cast(TreeKnowledge, self.knowledge)
        raise ValueError(
            f"{self.source.game}: infosets have no numbers without a game tree; "
            f"build the tree, or use the networks that average() returns"
        )

    def nash_conv(self) -> float:
        """Compute the exact NashConv of the average strategies.

        Raises:
          ValueError: If the game has no tree.
        """
        low, high = value_bounds(
            self._compiled().tree.sequence_form, self.average_behaviours()
        )
        return high - low

    def identity(self) -> dict[str, Any]:
        """Return the fields that identify a run; see `IterativeSolver.identity`."""
        tree = self.tree
        game_id = key_making.fingerprint(self.source) if tree is None else tree.game_id
        return {
            "game": str(self.source.game),
            "form": "deep" if tree is None else "deep, compiled",
            "fingerprint": game_id,
            "config": settings_text(self.config),
            "seed": self.seed,
        }

    def outcome(self) -> dict[str, Any]:
        """Return the policy and counts of the run; see `IterativeSolver.outcome`."""
        fields: dict[str, Any] = {"trajectories": self.episodes}
        kinds = getattr(self.config, "averages", ("network",))
        if self.config.network == "mlp" and kinds[0] != "exact":
            fields["networks"] = DeepPolicy(self.source.game, self.average())
        if (tree := self.tree) is not None:
            return fields | {
                "solved": SolvedForm(tree, tree.sequence_form),
                "average": self.average_behaviours(),
                "current": (self.current_behaviour(0), self.current_behaviour(1)),
            }
        return fields | {"policy": fields["networks"], "nodes": self.nodes}

    def close(self) -> None:
        """Close the simulator of a tree-free game."""
        if self.tree is None:
            self.source.close()
