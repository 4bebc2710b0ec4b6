"""Fourth stage: ISMCTS-BR that learns, on games too large to compile.

The training loop of `learning.py` (Timbers et al. 2022, section 3) on OpenSpiel's
states: episodes are matches of `state_search.ISMCTSBRBot` against the fixed opponent,
the tree is reused within each, and how good the response is, matches tell.

Deviation. Root noise is drawn once for each information state and round.
"""

import bisect
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common import storage
from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.compilation import loading
from spiel_cr.responses import episodes, ismcts_br_bot, learning, network, opponents
from spiel_cr.responses.learning_config import LearningConfig

# A normal variable is inside of +- so many standard errors with probability 0.95.
_Z = 1.959964


class StateStage(NamedTuple):
    """One opponent of the curriculum.

    Attributes:
      name: for the curve; a checkpoint knows opponents by their names.
      policy: must depend on its information states only.
      rounds: of episodes and learning.
    """

    name: str
    policy: openspiel_policy.Policy
    rounds: int


class StatePoint(NamedTuple):
    """How good the response is, in the responder's utility.

    Attributes:
      stage: place of the opponent in the curriculum.
      opponent: its name.
      round: rounds so far, over all opponents; 0: nothing has been learned.
      episodes: played so far.
      simulations: run so far in episodes.
      matches: that the values are means of; equal deals for all points.
      search_value: of the response that searches with the network.
      search_half_width: half of its 95 % interval.
      network_value: of the network's likeliest actions, without search.
      network_half_width: half of its 95 % interval.
      loss: mean of the last round, None before the first one.
      policy_loss: its cross-entropy.
      value_loss: its squared error.
    """

    stage: int
    opponent: str
    round: int
    episodes: int
    simulations: int
    matches: int
    search_value: float
    search_half_width: float
    network_value: float
    network_half_width: float
    loss: float | None = None
    policy_loss: float | None = None
    value_loss: float | None = None


class StateLearned(NamedTuple):
    """A learned response to the last opponent.

    Attributes:
      player: the responder.
      guide: the network, for `state_search.ISMCTSBRBot(guide=...)`.
      graph: its structure.
      parameters: its parameters.
      curve: what was evaluated.
      simulations: of all episodes.
    """

    player: int
    guide: network.NetworkGuide
    graph: Any
    parameters: Any
    curve: tuple[StatePoint, ...]
    simulations: int


def learn_on_states(
    game: str | pyspiel.Game,
    player: int,
    opponents: Sequence[StateStage],
    config: LearningConfig | None = None,
    *,
    seed: int = 0,
    matches: int = 100,
    checkpoint_path: storage.Path | None = None,
    progress: bool = False,
) -> StateLearned:
    """Learns to respond to each opponent in turn, from the weaker to the stronger.

    Args:
      game: OpenSpiel game string or game, with information state tensors.
      player: the responder.
      opponents: the curriculum, at least one; the last one is the one that counts.
      config: of search and learning. `search.batch` is not used.
      seed: of all draws.
      matches: to evaluate by, at each point of the curve.
      checkpoint_path: written after each round (atomically, no pickle). If the file is
        there, learning goes on where it stopped, with the same bits as a run that was
        never interrupted. The last opponent's rounds may have become more.
      progress: show a bar.

    Raises:
      ImportError: flax or optax is missing.
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: a bad argument, a game without tensors, or a checkpoint of another
        run.
    """
    config = config or LearningConfig()
    matches = check_iterations(matches, name="matches")
    if player not in (0, 1):
        raise ValueError(f"player={player!r} must be 0 or 1")
    loop = _Loop(
        loading.load_game(game),
        player,
        opponents,
        config,
        check_seed(seed),
        matches,
    )
    total = sum(stage.rounds for stage in opponents)
    file = None
    if checkpoint_path is not None:
        file = learning.ProgressFile(
            checkpoint_path, loop.identity(), loop.begin(look=False), StatePoint
        )
    now = (file.read(total) if file else None) or loop.begin()
    bar = tqdm(total=total, initial=now.round, unit="round", disable=not progress)
    with bar:
        while now.round < total:
            now = loop.round(now)
            if file:
                file.write(now)
            bar.update()
    parameters = now.learner.parameters
    return StateLearned(
        player,
        loop.guide(parameters),
        loop.graph,
        parameters,
        tuple(now.curve),
        now.simulations,
    )


class _Loop:
    """The fixed parts of a run."""

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        stages: Sequence[StateStage],
        config: LearningConfig,
        seed: int,
        matches: int,
    ) -> None:
        if not stages:
            raise ValueError("opponents is empty; give at least one StateStage")
        for stage in stages:
            check_iterations(stage.rounds, name=f"rounds of {stage.name!r}")
        self.game, self.player, self.stages = game, player, tuple(stages)
        self.config, self.seed, self.matches = config, seed, matches
        low, high = game.min_utility(), game.max_utility()
        self.scale = network.Scale((low + high) / 2, (high - low) / 2 or 1.0)
        network.check_tensor(game)
        self._features = int(np.prod(game.information_state_tensor_shape()))
        self._actions = game.num_distinct_actions()
        self.graph, self._first = network.make(
            self._features, self._actions, config.hidden, seed=seed
        )
        self._ends = np.cumsum([stage.rounds for stage in stages])

    def begin(self, *, look: bool = True) -> learning.Progress:
        """Nothing learned yet; with a first point of the curve if one is to look."""
        optimiser = network.optimiser_state(self._first, self.config.learning_rate)
        learner = learning.Learner(self._first, optimiser)
        now = learning.Progress(0, 0, learner, self._no_samples(), [])
        return now._replace(curve=[self._point(now, 0, None)]) if look else now

    def round(self, now: learning.Progress) -> learning.Progress:
        """Episodes, then learning."""
        config = self.config
        stage = int(np.searchsorted(self._ends, now.round, side="right"))
        bot = self._bot(
            stage,
            self.guide(now.learner.parameters),
            seed=int(np.random.default_rng([self.seed, now.round]).integers(2**31)),
            noise=config.noise,
        )
        kept = self._no_samples() if now.round in self._ends else now.samples
        rows = {name: [*array] for name, array in kept.items()}
        policy = self.stages[stage].policy
        for number in range(config.episodes):
            random = np.random.default_rng([self.seed, now.round, number])
            self._episode(bot, policy, random, rows)
        samples = {
            name: np.array(values[-config.replay :], kept[name].dtype)
            for name, values in rows.items()
        }
        size = len(samples["returned"])
        if not size:
            raise ValueError(
                f"{self.game}: player {self.player} decided nothing in "
                f"{config.episodes} episodes; raise episodes"
            )
        seen, padded = self._padded(samples)
        random = np.random.default_rng([self.seed, now.round, 0, 1])
        learner, losses = learning.steps(
            self.graph, now.learner, seen, padded, size, config, random
        )
        done = now.round + 1
        now = learning.Progress(
            done, now.simulations + bot.simulations, learner, samples, now.curve
        )
        if done % config.evaluate_every == 0 or done in self._ends:
            now = now._replace(curve=[*now.curve, self._point(now, stage, losses)])
        return now

    def guide(self, parameters: Any) -> network.NetworkGuide:
        return network.NetworkGuide(self.game, self.graph, parameters, self.scale)

    def identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        stages = [[stage.name, stage.rounds] for stage in self.stages]
        stages[-1].pop()
        return {
            "kind": "learning on states",
            "game": str(self.game),
            "player": self.player,
            "opponents": stages,
            "config": repr(self.config),
            "seed": self.seed,
            "matches": self.matches,
        }

    def _bot(
        self, stage: int, guide: network.NetworkGuide, *, seed: int, noise: float = 0.0
    ) -> ismcts_br_bot.ISMCTSBRBot:
        return ismcts_br_bot.ISMCTSBRBot(
            self.game,
            self.player,
            self.stages[stage].policy,
            self.config.search,
            seed=seed,
            guide=guide,
            noise=noise,
            concentration=self.config.concentration,
        )

    def _no_samples(self) -> dict[str, np.ndarray]:
        """The empty buffer; visits are those of all actions of the game."""
        return {
            "features": np.zeros((0, self._features), np.float32),
            "visits": np.zeros((0, self._actions), np.float32),
            "legal": np.zeros((0, self._actions), bool),
            "returned": np.zeros(0, np.float32),
        }

    def _padded(
        self, samples: dict[str, np.ndarray]
    ) -> tuple[network.Inputs, network.Samples]:
        """The buffer as the network learns from it: each row its own infoset."""
        replay = self.config.replay
        room = [(0, replay - len(samples["returned"]))]
        full = {
            name: np.pad(array, room + [(0, 0)] * (array.ndim - 1))
            for name, array in samples.items()
        }
        actions = np.broadcast_to(
            np.arange(self._actions, dtype=np.int32), (replay, self._actions)
        )
        seen = network.Inputs(
            *map(jnp.asarray, (full["features"], actions, full["legal"]))
        )
        rows = np.arange(replay, dtype=np.int32)
        return seen, network.Samples(rows, full["visits"], full["returned"])

    def _episode(
        self,
        bot: ismcts_br_bot.ISMCTSBRBot,
        policy: openspiel_policy.Policy,
        random: np.random.Generator,
        rows: dict[str, list[Any]],
    ) -> None:
        """Plays a match and appends its decisions."""
        decisions = 0

        def decide(state: pyspiel.State) -> int:
            nonlocal decisions
            found = bot.search(state)
            visits = np.array(found.visits, np.float64)
            place = episodes.choose(visits[None], self.config.temperature, random)[0]
            shares = np.zeros(self._actions, np.float32)
            shares[found.actions] = visits / visits.sum()
            rows["features"].append(state.information_state_tensor(self.player))
            rows["visits"].append(shares)
            rows["legal"].append(np.array(state.legal_actions_mask(), bool))
            decisions += 1
            return found.actions[int(place)]

        bot.restart()
        value = self._match(decide, policy, random)
        scaled = (value - self.scale.centre) / self.scale.half_range
        rows["returned"] += [scaled] * decisions

    def _match(
        self, decide: Any, policy: openspiel_policy.Policy, random: np.random.Generator
    ) -> float:
        """The responder's return; `decide` is asked where there is a choice."""
        answers = opponents.Answers(policy, 1 - self.player)
        state = self.game.new_initial_state()
        while not state.is_terminal():
            mover = state.current_player()
            if state.is_chance_node():
                outcomes = state.chance_outcomes()
                action = ismcts_br_bot.draw_outcome(outcomes, random.random())
            elif mover == self.player:
                legal = state.legal_actions()
                action = legal[0] if len(legal) == 1 else decide(state)
            else:
                legal, _, ends = answers(state)
                action = legal[bisect.bisect_right(ends, random.random())]
            state.apply_action(action)
        return float(state.player_return(self.player))

    def _point(
        self, now: learning.Progress, stage: int, losses: network.Losses | None
    ) -> StatePoint:
        guide, policy = self.guide(now.learner.parameters), self.stages[stage].policy
        bot = self._bot(stage, guide, seed=self.seed)

        def greedy(state: pyspiel.State) -> int:
            prior, _ = guide(state, self.player)
            return int(state.legal_actions()[int(np.argmax(prior))])

        measured: list[float] = []
        for decide in (bot.step, greedy):
            returns = []
            for number in range(self.matches):
                bot.restart()
                random = np.random.default_rng([self.seed, number, 0, 2])
                returns.append(self._match(decide, policy, random))
            spread = float(np.std(returns, ddof=1)) if self.matches > 1 else math.inf
            measured += [float(np.mean(returns)), _Z * spread / math.sqrt(self.matches)]
        return StatePoint(
            stage,
            self.stages[stage].name,
            now.round,
            now.round * self.config.episodes,
            now.simulations,
            self.matches,
            *measured,
            *(() if losses is None else map(float, losses)),
        )
