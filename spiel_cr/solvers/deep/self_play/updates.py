"""Self-play by mirror descent: play, estimate advantages, learn."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import networks
from spiel_cr.common.arrays import padded_size
from spiel_cr.common.jax_utils import precision
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.simulation.simulator import Positions
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.deep.averages import Networks
from spiel_cr.solvers.deep.deep_training import Training
from spiel_cr.solvers.deep.infosets import ActingInfosets
from spiel_cr.solvers.deep.outputs import PerceptronShape
from spiel_cr.solvers.deep.self_play import self_play_network as network
from spiel_cr.solvers.deep.self_play import self_play_rollouts as rollouts
from spiel_cr.solvers.deep.self_play.self_play_config import (
    SELF_PLAY_PRESETS,
    SelfPlayConfig,
)
from spiel_cr.solvers.deep.tensors import SimulatedTensors
from spiel_cr.solvers.iterative_solver import check_arrays, check_numbers

# Minimum padded number of decisions of a step, and number of padded sizes between a
# power of two and its double. Few sizes mean that XLA compiles few functions.
_LEAST, _SIZES = 64, 8
# Networks are evaluated at all infosets at once if there are at most this many.
_MOST_INFOSETS = 1 << 14
# Counts that a checkpoint contains.
_COUNTS = ("iterations", "episodes", "decisions")


class SelfPlay(Training):
    """Solver of two players that learn by playing against each other.

    The result is the policy of the mean of the last iterates' parameters.

    Attributes:
      source: Simulator of the game.
      knowledge: Information of the players at the simulator's positions.
      config: Settings of the algorithm.
      seed: Seed for all random choices.
      iterations: Number of iterations completed.
      episodes: Number of matches played.
      decisions: Number of decisions of both players in them.
    """

    def __init__(
        self,
        game: GameTree | SimulatedTensors,
        algorithm: str | SelfPlayConfig = "mmd",
        *,
        seed: int = 0,
    ) -> None:
        """Create the networks.

        Args:
          game: Game tree, or a simulated game whose simulator the caller closes.
          algorithm: Preset with settings, or a configuration.
          seed: Seed for all random choices; the same seed gives bitwise identical
            results on one machine.

        Raises:
          ValueError: If a setting or the seed is invalid, a table is requested for a
            simulated game, or the game does not provide the tensors that networks read.
          ImportError: If optax is missing.
        """
        self.config = config = read_settings(algorithm, SELF_PLAY_PRESETS)
        super().__init__(game, config, seed)
        self.decisions = 0
        # Unit of values, in utilities; 0 until a match has a nonzero utility.
        self._unit = 0.0
        # Outputs of the current networks at all infosets.
        self._cached_policies: dict[int, np.ndarray] = {}
        with precision(np.dtype(np.float32)):
            initial = [self._make(n, seed) for n in range(3)]
        self._features = [features for features, _ in initial]
        *self._learners, critic = (
            network.begin(parameters, config.gradient_norm) for _, parameters in initial
        )
        self._critic = critic._replace(magnet=None, mean=None)

    def _make(self, number: int, seed: int) -> tuple[jax.Array | None, Any]:
        """Return features and parameters of a player's network, or the critic's (2).

        See `network.outputs`.
        """
        config, knowledge = self.config, self.knowledge
        if config.network == "table":
            rows = (*knowledge.legal, knowledge.deciders)[number]
            assert rows is not None  # see `SelfPlayConfig.needs_tree`
            return None, network.table(max(len(rows), 1), knowledge.num_actions)
        player = number if number < 2 else None
        shape = PerceptronShape.of(knowledge, config, is_joint=player is None)
        # A seed of 31 bits that depends on all bits of the solver's seed.
        network_seed = np.random.SeedSequence([seed, number]).generate_state(1)[0] >> 1
        return knowledge.table(player), networks.make(shape.widths, int(network_seed))

    def _iterate(self) -> None:
        """Play matches, and perform steps of the optimiser on their decisions."""
        config = self.config
        with precision(np.dtype(np.float32)):
            random = np.random.default_rng([self.seed, self.iterations])
            episodes = rollouts.play(
                *(self.source, self, config.episodes, random),
                joint=self._joint,
                stratified=config.draws == "stratified",
            )
            self._unit = self._unit or float(np.sqrt(np.mean(episodes.utility**2)))
            values = network.evaluate(
                self._features[2], self._critic.parameters, episodes.joint
            )
            unit = self._unit or 1.0
            gains, targets = rollouts.advantages(episodes, values, config.trace, unit)
            for number in range(len(self._learners)):
                self._learn(number, episodes, gains, random)
            self._learn_values(episodes, targets, random)
            self._cached_policies.clear()
        self.decisions += len(episodes.player)
        self.episodes += config.episodes
        self.nodes = self.decisions + self.episodes
        self.iterations += 1

    @property
    def schedule_share(self) -> float:
        """Completed share of the schedule; see `IterativeSolver`."""
        return self.config.completed(self.decisions)

    def run_to(self, decisions: int) -> None:
        """Iterate until both players have made at least a number of decisions.

        Args:
          decisions: Total number of decisions.
        """
        while self.decisions < decisions:
            self.run(1)

    def _joint(self, positions: Positions, at: np.ndarray) -> np.ndarray:
        """Return joint information at decisions: features, or rows of a table."""
        return self._places(self.knowledge.joint(positions, at))

    def _learn(
        self,
        number: int,
        episodes: rollouts.Episodes,
        gains: np.ndarray,
        random: np.random.Generator,
    ) -> None:
        """Perform steps of the optimiser for one network."""
        config, rate = self.config, self.config.rate_after(self.decisions)
        rows = self._rows(number, episodes, gains)
        if not len(rows.weight):
            return
        rows, batches = self._batches(rows, random)
        magnet_rate = config.magnet_rate * rate / config.learning_rate
        mean_rate = config.mean_rate(len(episodes.player), self.decisions)
        rates = *config.weights_after(self.decisions), rate, magnet_rate, mean_rate
        # Wait for the steps, so that the measured time includes them.
        self._learners[number], losses = network.advance(
            self._features[number],
            self._learners[number],
            rows,
            batches,
            network.UpdateRates(*map(np.float32, rates)),
            norm=config.gradient_norm,
        )
        jax.block_until_ready(losses)

    def _learn_values(
        self,
        episodes: rollouts.Episodes,
        targets: np.ndarray,
        random: np.random.Generator,
    ) -> None:
        """Perform steps of the optimiser for the critic."""
        weight = np.ones(len(targets), np.float32)
        rows = episodes.joint, episodes.action, targets.astype(np.float32), weight
        moves, batches = self._batches(network.Moves(*rows), random)
        rate = np.float32(self.config.critic_rate)
        self._critic, errors = network.advance_critic(
            *(self._features[2], self._critic, moves, batches, rate),
            norm=self.config.gradient_norm,
        )
        jax.block_until_ready(errors)

    def _batches(
        self, rows: Any, random: np.random.Generator
    ) -> tuple[Any, np.ndarray]:
        """Return padded `Rows` or `Moves`, and the rows of each step, int32 [T, M]."""
        config, count = self.config, len(rows.weight)
        size = batch_size(-(-count // config.minibatches))
        rows = network.padded(rows, size * config.minibatches)
        orders = [random.permutation(len(rows.weight)) for _ in range(config.epochs)]
        return rows, np.concatenate(orders).astype(np.int32).reshape(-1, size)

    def _rows(
        self, number: int, episodes: rollouts.Episodes, gains: np.ndarray
    ) -> network.Rows:
        """Return the rows that a network learns from."""
        chosen, answer = np.flatnonzero(episodes.player == number), episodes.answer
        return network.Rows(
            *(answer.seen[chosen], answer.legal[chosen], answer.log_policy[chosen]),
            *(gains[chosen].astype(np.float32), np.ones(len(chosen), np.float32)),
        )

    def __call__(
        self, positions: Positions, at: np.ndarray, player: int
    ) -> rollouts.NetworkDecisions:
        """Evaluate a player's network; see `self_play_rollouts.Actor`."""
        seen = self.knowledge.seen(positions, at, player)
        return rollouts.NetworkDecisions(
            self._places(seen.rows), seen.legal, self.ask(seen, player)
        )

    def _places(self, rows: np.ndarray) -> np.ndarray:
        """Return the input of a network: features, or row numbers."""
        return rows if self.tree is None else rows.astype(np.int32)

    def ask(self, seen: ActingInfosets, player: int) -> np.ndarray:
        """Return the log probabilities of a player, float32 [m, A].

        They are very low for illegal actions.

        Args:
          seen: Information of the player at m decisions, see `knowledge`.
          player: Player 0 or 1.
        """
        legal, cached = self.knowledge.legal[player], self._cached_policies
        parameters = self._learners[player].parameters
        if legal is None or len(legal) > _MOST_INFOSETS:
            return self._evaluate(seen, player, parameters)
        if player not in cached:
            everywhere = self._compiled().everywhere(player)
            cached[player] = self._evaluate(everywhere, player, parameters)
        return cached[player][seen.rows]

    def _evaluate(
        self, seen: ActingInfosets, player: int, parameters: Any
    ) -> np.ndarray:
        places = self._places(seen.rows)
        with precision(np.dtype(np.float32)):
            return network.evaluate(
                self._features[player], parameters, places, seen.legal
            )

    def strategy(self, player: int, seen: ActingInfosets) -> np.ndarray:
        """Return the current strategy of a player, float64 [m, A].

        Args:
          player: Player 0 or 1.
          seen: Information of the player at m decisions.
        """
        return self._policy(player, seen, self._learners[player].parameters)

    def _policy(self, player: int, seen: ActingInfosets, parameters: Any) -> np.ndarray:
        """Return the policy of a player's network, float64 [m, A].

        Args:
          player: Player 0 or 1.
          seen: Information of the player at m decisions.
          parameters: Parameters of the network.
        """
        log_policy = self._evaluate(seen, player, parameters)
        policy = rollouts.policy_of(seen.legal, log_policy)
        return policy / policy.sum(axis=1, keepdims=True)

    def average_behaviours(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the strategies of the networks with averaged parameters.

        Returns:
          Probability of each sequence's last action, float64 [S], for each player.

        Raises:
          ValueError: If the game has no tree.
        """
        knowledge = self._compiled()
        first, second = (
            self._policy(p, knowledge.everywhere(p), learner.mean)
            for p, learner in enumerate(self._learners)
        )
        return knowledge.behaviour(0, first), knowledge.behaviour(1, second)

    def average(self) -> Networks:
        """Return the means of parameters as networks; a table has none."""
        config = self.config
        assert config.network == "mlp"
        shape = PerceptronShape.of(self.knowledge, config)
        both = [networks.leaves(learner.mean) for learner in self._learners]
        return Networks.single(shape, config.features, both)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that `restore` needs."""
        arrays = {
            f"learner{number}.{place}": np.asarray(leaf)
            for number, learner in enumerate([*self._learners, self._critic])
            for place, leaf in enumerate(jax.tree.leaves(learner))
        }
        arrays["unit"] = np.array(self._unit)
        for name in _COUNTS:
            arrays[name] = np.array(getattr(self, name))
        return arrays

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float = 0.0) -> None:
        """Restore the state that `arrays` returned.

        The run continues bitwise identically.

        Args:
          arrays: Arrays of a solver of the same game, settings and seed.
          seconds: Time spent iterating before.

        Raises:
          ValueError: If the arrays do not belong to such a solver.
        """
        check_arrays(arrays, self.arrays())
        check_numbers(arrays, dict.fromkeys((*_COUNTS, "unit"), 0.0))
        restored = []
        for number, learner in enumerate([*self._learners, self._critic]):
            leaves, structure = jax.tree.flatten(learner)
            names = [f"learner{number}.{place}" for place in range(len(leaves))]
            with precision(np.dtype(np.float32)):
                leaves_on_device = [jnp.asarray(arrays[name]) for name in names]
            restored.append(jax.tree.unflatten(structure, leaves_on_device))
        *self._learners, self._critic = restored
        self._unit = float(arrays["unit"])
        self._cached_policies.clear()
        for name in _COUNTS:
            setattr(self, name, int(arrays[name]))
        self.nodes = self.decisions + self.episodes
        self.seconds, self.is_complete = seconds, True


def batch_size(count: int) -> int:
    """Return the smallest of a few sizes that is at least a count."""
    count = max(count, _LEAST)
    unit = padded_size(count) // (2 * _SIZES)
    return -(-count // unit) * unit
