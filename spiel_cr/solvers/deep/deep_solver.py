"""Deep CFR and its successors: the loop around traversals, memories and fits."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.common.network_fits import FitSchedule, Targets
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.deep.advantages import Advantages, numbered, within
from spiel_cr.solvers.deep.approximators import Perceptron, make_approximator
from spiel_cr.solvers.deep.averages import Networks, RunningReach
from spiel_cr.solvers.deep.critic import Critic
from spiel_cr.solvers.deep.deep_config import PRESETS, DeepConfig
from spiel_cr.solvers.deep.deep_training import Training
from spiel_cr.solvers.deep.infosets import Seen
from spiel_cr.solvers.deep.outputs import Shape
from spiel_cr.solvers.deep.strategies import Bank, SampledStrategies, behaviour_of
from spiel_cr.solvers.deep.tensors import Stepped
from spiel_cr.solvers.deep.traversal import Task, in_chunks

# What random numbers are for: with the seed and the iteration it makes a generator.
_SAMPLES, _FITS, _BANK, _CRITIC = range(4)


class DeepSolver(Training):
    """Deep CFR or a successor of it on one game; holds the state between calls.

    Every random number comes from the seed, the iteration, the player and what it is
    for: the same seed gives the same bits on one machine, resumed or not.

    Attributes:
      source: of histories.
      knowledge: of what is known at its positions.
      config: the algorithm.
      seed: of everything random.
      iterations: done so far.
      episodes: trajectories so far, of both players; 0 without sampling.
      nodes: decisions and ends that these have visited (chance is not counted).
      seconds: spent on that; what averages take in the end is not counted.
    """

    def __init__(
        self, game: GameTree | Stepped, config: DeepConfig | str, *, seed: int = 0
    ) -> None:
        """Makes networks and empty memories.

        Args:
          game: compiled; or one that is stepped, whose source the caller closes.
          config: the algorithm, or a string such as "sd-cfr(hidden=64)".
          seed: of everything random.

        Raises:
          ValueError: a bad setting or seed; settings that need a compiled game; or the
            game does not provide the tensors that networks read.
          ImportError: optax is missing, and networks are asked for.
        """
        self.config = config = read_settings(config, PRESETS)
        super().__init__(game, config, seed)
        knowledge = self.knowledge
        self.nodes = 0
        kinds = config.averages
        self._advantages = [
            Advantages(knowledge, p, config, self._number(p)) for p in range(2)
        ]
        self._critic: Critic | None = None
        if config.values != "sampled":
            values = make_approximator(knowledge, None, config, self._number(2))
            self._critic = Critic(knowledge, values, config.critic_capacity)
        self._strategies = [
            SampledStrategies(knowledge, p, config, self._number(3 + p))
            for p in range(2 if "network" in kinds else 0)
        ]
        self._banks = [Bank(config.bank) for _ in range(2 if "bank" in kinds else 0)]
        self._reaches: list[RunningReach] = []
        if "exact" in kinds and self.tree is not None:
            self._reaches = [RunningReach(self.tree, p) for p in range(2)]

    def strategy(self, player: int, seen: Seen) -> np.ndarray:
        """float64 [m, A], what a player plays now.

        Args:
          player: 0 or 1.
          seen: what it sees at m decisions.
        """
        return self._advantages[player].strategy(seen)

    def _iterate(self) -> None:
        """Both players in turn, then the critic."""
        iteration = self.iterations + 1
        for player in range(2):
            self._average(player, iteration)
            chunks = self._traverse(player, iteration)
            random = self._random(iteration, player, _FITS)
            self._advantages[player].learn(chunks, iteration, random)
        if self._critic is not None:
            config = self.config
            plan = FitSchedule(
                config.critic_steps, config.critic_batch, config.critic_rate
            )
            random = self._random(iteration, 0, _CRITIC)
            self._critic.fit(self.strategy, plan, random)
        self.iterations = iteration

    def _traverse(self, player: int, iteration: int) -> Iterator[Targets]:
        """The visits of an iteration; strategies and moves are taken in."""
        config, knowledge = self.config, self.knowledge
        random = self._random(iteration, player, _SAMPLES)
        self.episodes += config.traversals
        task = Task(self.source, knowledge, self.strategy, config, player, self._critic)
        for traversal in in_chunks(task, config.traversals, random):
            self.nodes += traversal.positions
            if self._strategies:
                weight = self._weight(iteration)
                self._strategies[1 - player].add(traversal.strategies, weight, random)
            if self._critic is not None and traversal.moves is not None:
                self._critic.replay.add(traversal.moves)
            yield traversal.advantages

    def _average(self, player: int, iteration: int) -> None:
        """Averages take in what a player plays before it learns."""
        weight = self._weight(iteration)
        if self._reaches:
            self._reaches[player].add(self.current_behaviour(player), weight)
        if self._banks:
            advantages = self._advantages[player]
            leaves = advantages.approximator.leaves()
            if not advantages.fitted:
                leaves = [np.zeros_like(leaf) for leaf in leaves]
            random = self._random(iteration, player, _BANK)
            self._banks[player].add(leaves, weight, random)

    def _weight(self, iteration: int) -> float:
        """Of an iteration's strategies in the average."""
        return float(iteration) ** self.config.gamma

    def _random(self, iteration: int, player: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, iteration, player, purpose])

    def _number(self, which: int) -> int:
        """A seed of its own for each network."""
        sequence = np.random.SeedSequence([self.seed, which])
        return int(sequence.generate_state(1)[0] >> 1)

    def average(self, kind: str | None = None) -> Networks:
        """Both players' average strategies, as networks; "exact" ones have none.

        Args:
          kind: one of the configuration's averages; None: its first.

        Raises:
          ValueError: the configuration does not keep such an average, or there was no
            iteration yet.
        """
        kind = self._kind(kind)
        config, first = self.config, self._advantages[0].approximator
        if kind == "bank":
            return Networks(
                first.shape if isinstance(first, Perceptron) else None,
                config.features,
                config.fallback,
                (self._banks[0].stacked(), self._banks[1].stacked()),
                (np.array(self._banks[0].weights), np.array(self._banks[1].weights)),
            )
        knowledge = self.knowledge
        shape = Shape(
            knowledge.num_features, knowledge.num_actions, config.hidden, config.layers
        )
        fitted = [one.fit() for one in self._strategies]
        return Networks.single(shape, config.features, fitted)

    def _kind(self, kind: str | None) -> str:
        """One of the configuration's averages, once there was an iteration."""
        kinds = self.config.averages
        kind = str(check_choice(kinds[0] if kind is None else kind, "kind", kinds))
        if not self.iterations:
            raise ValueError("iterations=0: there is no average yet; call run first")
        return kind

    def average_behaviours(
        self, kind: str | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Both players' average strategies, float64 [S] each, by logical sequence.

        Args:
          kind: as of `average`.

        Raises:
          ValueError: as `average`, or the game is not compiled.
        """
        knowledge = self._compiled()
        if self._kind(kind) == "exact":
            return self._reaches[0].behaviour(), self._reaches[1].behaviour()
        average, config = self.average(kind), self.config
        first, second = (behaviour_of(average, knowledge, p, config) for p in range(2))
        return first, second

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the solver needs to go on, for `restore`."""
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
        """Puts back what `arrays` gave; the solver then goes on to the same bits.

        Args:
          arrays: of a solver of the same game, configuration and seed.
          seconds: time that was spent iterating before.

        Raises:
          ValueError: these are not of such a solver.
        """
        try:
            self._restore(arrays)
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f"its arrays are not of such a solver: {error}") from error
        self.seconds, self.is_complete = seconds, True

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        counts = arrays["counts"]
        if counts.shape != (3,) or (counts < 0).any():
            raise ValueError(f"its counts are {counts.tolist()}")
        for name, part in self._parts():
            part.restore(within(arrays, f"{name}."))
        for advantages, bank in zip(self._advantages, self._banks, strict=False):
            shapes = [leaf.shape for leaf in advantages.approximator.leaves()]
            if any([leaf.shape for leaf in kept] != shapes for kept in bank.leaves):
                raise ValueError("its iterates are of another network")
        for player, reach in enumerate(self._reaches):
            total = arrays[f"reach{player}"]
            if total.shape != reach.total.shape:
                raise ValueError("its averages are of another game")
            reach.total = total.copy()
        if self._critic is not None:
            self._critic.values.restore(numbered(arrays, "critic.net"))
        self.iterations, self.episodes, self.nodes = map(int, counts)

    def _parts(self) -> list[tuple[str, Any]]:
        """What has `arrays` and `restore`, by name."""
        parts: list[tuple[str, Any]] = []
        for player, advantages in enumerate(self._advantages):
            parts.append((f"advantages{player}", advantages))
        for player, kept in enumerate(self._strategies):
            parts.append((f"strategies{player}", kept.memory))
        for player, bank in enumerate(self._banks):
            parts.append((f"bank{player}", bank))
        if self._critic is not None:
            parts.append(("replay", self._critic.replay))
        return parts
