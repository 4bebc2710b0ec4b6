"""Deep CFR and related algorithms: the loop of traversals, memories and fits."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.common.network_fits import FitSchedule, Targets
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.deep import strategies
from spiel_cr.solvers.deep.advantages import Advantages, numbered, within
from spiel_cr.solvers.deep.approximators import Perceptron, make_approximator
from spiel_cr.solvers.deep.averages import Networks, RunningReach
from spiel_cr.solvers.deep.critic import Critic
from spiel_cr.solvers.deep.deep_config import PRESETS, DeepConfig
from spiel_cr.solvers.deep.deep_training import Training
from spiel_cr.solvers.deep.infosets import ActingInfosets
from spiel_cr.solvers.deep.outputs import PerceptronShape
from spiel_cr.solvers.deep.tensors import SimulatedTensors
from spiel_cr.solvers.deep.traversal import PlayerSampling, in_chunks

# Purposes of random numbers. Each has a separate generator in every iteration.
_SAMPLES, _FITS, _ENSEMBLE, _CRITIC = range(4)


class DeepSolver(Training):
    """Solver for deep CFR and related algorithms, with its state between calls.

    Every random number depends on the seed, the iteration, the player and the purpose.
    Runs with the same seed are therefore bitwise identical on one machine, even if they
    are interrupted and resumed.

    Attributes:
      source: Simulator of the game.
      knowledge: Information of the players at the simulator's positions.
      config: Settings of the algorithm.
      seed: Seed for all random choices.
      iterations: Number of iterations completed.
      episodes: Number of trajectories of both players; 0 without sampling.
      nodes: Number of visited decisions and terminal nodes, without chance nodes.
      seconds: Time spent iterating, without the computation of averages at the end.
    """

    def __init__(
        self,
        game: GameTree | SimulatedTensors,
        config: DeepConfig | str,
        *,
        seed: int = 0,
    ) -> None:
        """Create networks and empty memories.

        Args:
          game: Game tree, or a simulated game whose simulator the caller closes.
          config: Settings, or a string such as "sd-cfr(hidden=64)".
          seed: Seed for all random choices.

        Raises:
          ValueError: If a setting or the seed is invalid, settings need a game tree, or
            the game does not provide the tensors that networks read.
          ImportError: If optax is missing and there are networks.
        """
        self.config = config = read_settings(config, PRESETS)
        super().__init__(game, config, seed)
        knowledge = self.knowledge
        self.nodes = 0
        kinds = config.averages
        self._advantages = [
            Advantages(knowledge, p, config, self._number(p)) for p in range(2)
        ]
        # Networks of the average, and the iteration after which they were fitted.
        self._fitted: tuple[int, Networks] | None = None
        self._critic: Critic | None = None
        if config.values != "sampled":
            values = make_approximator(knowledge, None, config, self._number(2))
            self._critic = Critic(knowledge, values, config.critic_capacity)
        self._strategies = [
            strategies.SampledStrategies(knowledge, p, config, self._number(3 + p))
            for p in range(2 if "network" in kinds else 0)
        ]
        self._ensembles = [
            strategies.IterateEnsemble(config.ensemble)
            for _ in range(2 if "ensemble" in kinds else 0)
        ]
        self._reaches: list[RunningReach] = []
        if "exact" in kinds and self.tree is not None:
            self._reaches = [RunningReach(self.tree, p) for p in range(2)]

    def strategy(self, player: int, seen: ActingInfosets) -> np.ndarray:
        """Return the current strategy of a player, float64 [m, A].

        Args:
          player: Player 0 or 1.
          seen: Information of the player at m decisions.
        """
        return self._advantages[player].strategy(seen)

    def _iterate(self) -> None:
        """Update both players in turn, then the critic."""
        iteration = self.iterations + 1
        for player in range(2):
            self._average(player, iteration)
            chunks = self._traverse(player, iteration)
            random = self._random(iteration, player, _FITS)
            self._advantages[player].learn(chunks, iteration, random)
        if self._critic is not None:
            config = self.config
            schedule = FitSchedule(
                config.critic_steps, config.critic_batch, config.critic_rate
            )
            random = self._random(iteration, 0, _CRITIC)
            self._critic.fit(self.strategy, schedule, random)
        self.iterations = iteration

    def _traverse(self, player: int, iteration: int) -> Iterator[Targets]:
        """Yield the visits of an iteration, and store strategies and moves."""
        config, knowledge = self.config, self.knowledge
        random = self._random(iteration, player, _SAMPLES)
        self.episodes += config.traversals
        task = PlayerSampling(
            self.source, knowledge, self.strategy, config, player, self._critic
        )
        for traversal in in_chunks(task, config.traversals, random):
            self.nodes += traversal.positions
            if self._strategies:
                weight = self._weight(iteration)
                self._strategies[1 - player].add(traversal.strategies, weight, random)
            if self._critic is not None and traversal.moves is not None:
                self._critic.replay.add(traversal.moves)
            yield traversal.advantages

    def _average(self, player: int, iteration: int) -> None:
        """Add the strategy of a player before its update to the averages."""
        weight = self._weight(iteration)
        if self._reaches:
            self._reaches[player].add(self.current_behaviour(player), weight)
        if self._ensembles:
            advantages = self._advantages[player]
            leaves = advantages.approximator.leaves()
            if not advantages.fitted:
                leaves = [np.zeros_like(leaf) for leaf in leaves]
            random = self._random(iteration, player, _ENSEMBLE)
            self._ensembles[player].add(leaves, weight, random)

    def _weight(self, iteration: int) -> float:
        """Return the weight of an iteration's strategies in the average."""
        return float(iteration) ** self.config.gamma

    def _random(self, iteration: int, player: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, iteration, player, purpose])

    def _number(self, which: int) -> int:
        """Return the seed of a network."""
        sequence = np.random.SeedSequence([self.seed, which])
        return int(sequence.generate_state(1)[0] >> 1)

    def average(self, kind: str | None = None) -> Networks:
        """Return both players' average strategies as networks.

        Averages of the kind "exact" have no networks.

        Args:
          kind: Kind of average, one of the configuration's; None: the first one.

        Raises:
          ValueError: If the configuration does not compute such an average, or before
            the first iteration.
        """
        kind = self._kind(kind)
        config, first = self.config, self._advantages[0].approximator
        if kind == "ensemble":
            shape = first.shape if isinstance(first, Perceptron) else None
            one, two = self._ensembles
            leaves = one.stacked(), two.stacked()
            weights = np.array(one.weights), np.array(two.weights)
            return Networks(shape, config.features, config.fallback, leaves, weights)
        if self._fitted is None or self._fitted[0] != self.iterations:
            shape = PerceptronShape.of(self.knowledge, config)
            fitted = [one.fit() for one in self._strategies]
            average = Networks.single(shape, config.features, fitted)
            self._fitted = self.iterations, average
        return self._fitted[1]

    def _kind(self, kind: str | None) -> str:
        """Return the kind of average; raise ValueError if it does not exist."""
        kinds = self.config.averages
        kind = str(check_choice(kinds[0] if kind is None else kind, "kind", kinds))
        if not self.iterations:
            raise ValueError("iterations=0: no average yet; call run first")
        return kind

    def average_behaviours(
        self, kind: str | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return both players' average strategies by sequence, float64 [S] each.

        Args:
          kind: Kind of average, as in `average`.

        Raises:
          ValueError: If the configuration does not compute such an average, before the
            first iteration, or if the game has no tree.
        """
        knowledge = self._compiled()
        if self._kind(kind) == "exact":
            return self._reaches[0].behaviour(), self._reaches[1].behaviour()
        average, config = self.average(kind), self.config
        first, second = (
            strategies.behaviour_of(average, knowledge, p, config) for p in range(2)
        )
        return first, second

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that `restore` needs."""
        counts = [self.iterations, self.episodes, self.nodes]
        arrays: dict[str, np.ndarray] = {"counts": np.array(counts, np.int64)}
        for name, part in self._parts():
            arrays |= {f"{name}.{key}": array for key, array in part.arrays().items()}
        for player, reach in enumerate(self._reaches):
            arrays[f"reach{player}"] = reach.total
        if self._critic is not None:
            for k, leaf in enumerate(self._critic.values.leaves()):
                arrays[f"critic.net{k}"] = leaf
        return arrays

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float = 0.0) -> None:
        """Restore the state that `arrays` returned.

        The run continues bitwise identically.

        Args:
          arrays: Arrays of a solver of the same game, configuration and seed.
          seconds: Time spent iterating before.

        Raises:
          ValueError: If the arrays do not belong to such a solver.
        """
        try:
            self._restore(arrays)
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(
                f"its arrays do not belong to such a solver: {error}"
            ) from error
        self.seconds, self.is_complete = seconds, True

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._fitted = None
        counts = arrays["counts"]
        if counts.shape != (3,) or (counts < 0).any():
            raise ValueError(f"its counts {counts.tolist()} are invalid")
        for name, part in self._parts():
            part.restore(within(arrays, f"{name}."))
        for advantages, ensemble in zip(
            self._advantages, self._ensembles, strict=False
        ):
            shapes = [leaf.shape for leaf in advantages.approximator.leaves()]
            if any([leaf.shape for leaf in kept] != shapes for kept in ensemble.leaves):
                raise ValueError("its iterates belong to another network")
        for player, reach in enumerate(self._reaches):
            total = arrays[f"reach{player}"]
            if total.shape != reach.total.shape:
                raise ValueError("its averages belong to another game")
            reach.total = total.copy()
        if self._critic is not None:
            self._critic.values.restore(numbered(arrays, "critic.net"))
        self.iterations, self.episodes, self.nodes = map(int, counts)

    def _parts(self) -> list[tuple[str, Any]]:
        """Return all parts that have `arrays` and `restore`, by name."""
        parts: list[tuple[str, Any]] = []
        for player, advantages in enumerate(self._advantages):
            parts.append((f"advantages{player}", advantages))
        for player, kept in enumerate(self._strategies):
            parts.append((f"strategies{player}", kept.memory))
        for player, ensemble in enumerate(self._ensembles):
            parts.append((f"ensemble{player}", ensemble))
        if self._critic is not None:
            parts.append(("replay", self._critic.replay))
        return parts
