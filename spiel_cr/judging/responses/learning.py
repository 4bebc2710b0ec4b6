"""ISMCTS-BR that learns: the training loop, for compiled games and for states.

Timbers et al. 2022, "Approximate exploitability: learning a best response", section 3:
the training loop of AlphaZero (Silver et al. 2017) against a fixed opponent. Episodes
are played with search, a policy-value network learns the visits and the returns, and
predicts priors and values for the next searches. What a game is played on is left to
two subclasses of `Learner`, in `learn_compiled.py` and `learn_states.py`.
"""

import abc
import dataclasses
import os
import pathlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from absl import logging
from tqdm import tqdm

from spiel_cr.common import atomic, fits, networks, storage
from spiel_cr.common.checks import (
    check_choice,
    check_iterations,
    check_number,
    check_seed,
    check_whole,
)
from spiel_cr.common.errors import DamagedFileError, UnsavedWarning
from spiel_cr.judging.responses import response_network as network
from spiel_cr.judging.responses.ismcts_config import SearchConfig


@dataclasses.dataclass(frozen=True)
class LearningConfig:
    """How a response is learned.

    Attributes:
      search: of each decision in an episode, and of the final response.
      episodes: of a round.
      noise: share of Dirichlet noise in the prior where a search begins.
      concentration: of the Dirichlet distribution, of each action.
      temperature: episodes choose actions with visits ** (1 / temperature); 0: the most
        visited one.
      hidden: units of the network's hidden layers.
      steps: of the optimiser (Adam) in a round.
      minibatch: samples of a step, drawn with replacement from the replay buffer.
      learning_rate: Adam's.
      l2: weight of the parameters' squares in the loss.
      replay: samples (decisions of episodes) that the buffer keeps, the newest ones. It
        is emptied when the opponent changes: what was right against one is wrong
        against the next.
      evaluate_every: rounds between two points of the curve; the last round of each
        opponent always has one.
      matches: on states, to evaluate by at each point of the curve; equal deals for all
        points.
    """

    search: SearchConfig = SearchConfig(simulations=100)
    episodes: int = 256
    noise: float = 0.25
    concentration: float = 0.3
    temperature: float = 1.0
    hidden: tuple[int, ...] = (128, 128)
    steps: int = 200
    minibatch: int = 256
    learning_rate: float = 1e-3
    l2: float = 1e-5
    replay: int = 20_000
    evaluate_every: int = 1
    matches: int = 100

    def __post_init__(self) -> None:
        for name in ("episodes", "steps", "minibatch", "replay", "evaluate_every"):
            check_iterations(getattr(self, name), name=name)
        check_iterations(self.matches, name="matches")
        for units in self.hidden:
            check_iterations(units, name="hidden")
        if self.search.learn:
            raise ValueError(
                f"search.learn={self.search.learn} learns a table; here a network "
                f"learns: leave it 0"
            )
        for name, interval in (
            ("noise", "[0, 1]"),
            ("concentration", "(0, inf)"),
            ("learning_rate", "(0, inf)"),
            ("temperature", "[0, inf)"),
            ("l2", "[0, inf)"),
        ):
            check_number(getattr(self, name), name, interval)


Opponent = TypeVar("Opponent")


class Stage(NamedTuple, Generic[Opponent]):
    """One opponent of the curriculum.

    Attributes:
      name: for the curve and for checkpoints.
      opponent: on compiled games float64 [S'], its action probabilities, as from
        `conversions.behaviour_from_policy`; on states an OpenSpiel policy that depends
        on its information states only.
      rounds: of episodes and learning.
    """

    name: str
    opponent: Opponent
    rounds: int


class LearningPoint(NamedTuple):
    """How good the response is, in the responder's utility.

    Attributes:
      stage: place of the opponent in the curriculum.
      opponent: its name.
      round: rounds so far, over all opponents; 0: nothing has been learned.
      episodes: played so far.
      simulations: run so far in episodes.
      loss: mean of the last round, None before the first one.
      policy_loss: its cross-entropy.
      value_loss: its squared error.
      network_value: of the network's likeliest actions, without search.
      search_value: of the response that searches with the network.
      exact_value: of a best response; None where it is not known.
      network_error: standard error of `network_value`; 0 where it is exact.
      search_error: standard error of `search_value`; 0 where it is exact.
    """

    stage: int
    opponent: str
    round: int
    episodes: int
    simulations: int
    loss: float | None
    policy_loss: float | None
    value_loss: float | None
    network_value: float
    search_value: float
    exact_value: float | None = None
    network_error: float = 0.0
    search_error: float = 0.0


# Arrays of equal lengths by name; "returned" is always among them.
Samples = dict[str, np.ndarray]


class Progress(NamedTuple):
    """All that a run is, between two rounds.

    Attributes:
      round: rounds so far.
      simulations: of all episodes.
      parameters: the network's.
      optimiser: Adam's state.
      samples: the replay buffer.
      curve: points so far.
    """

    round: int
    simulations: int
    parameters: Any
    optimiser: Any
    samples: Samples
    curve: tuple[LearningPoint, ...]


class Learner(abc.ABC):
    """A run of the training loop, on a game that a subclass plays.

    Attributes:
      minibatch_stream: tells the random numbers of minibatches from those of episodes.
      game: OpenSpiel's.
      player: the responder.
      stages: the curriculum.
      config: of search and learning.
      seed: of all draws.
    """

    minibatch_stream: tuple[int, ...]

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        stages: Sequence[Stage[Any]],
        config: LearningConfig | None,
        seed: int,
    ) -> None:
        """Checks the arguments of `learn_response` or `learn_on_states`."""
        network.check_tensor(game)
        check_choice(player, "player", (0, 1))
        check_seed(seed)
        if not stages:
            raise ValueError("opponents is empty; give at least one Stage")
        for stage in stages:
            check_iterations(stage.rounds, name=f"rounds of {stage.name!r}")
        self.game, self.player, self.stages = game, player, stages
        self.config, self.seed = config or LearningConfig(), seed
        self._ends = np.cumsum([stage.rounds for stage in stages])
        size = int(np.prod(game.information_state_tensor_shape()))
        widths = size, *self.config.hidden, game.num_distinct_actions() + 1
        self._parameters = networks.make(widths, seed, gain=1.0)
        self._optimiser = fits.adam(self.config.learning_rate)

    @abc.abstractmethod
    def no_samples(self) -> Samples:
        """An empty replay buffer."""

    @abc.abstractmethod
    def play(self, stage: int, parameters: Any, round: int) -> tuple[Samples, int]:
        """The episodes of one round, their returns as `network.Scale` has them, and
        how many simulations they took."""

    @abc.abstractmethod
    def training_data(self, samples: Samples) -> tuple[network.Inputs, network.Samples]:
        """The padded buffer as the network learns from it."""

    @abc.abstractmethod
    def evaluate(self, stage: int, parameters: Any) -> dict[str, float]:
        """Values and errors of a `LearningPoint`."""

    @abc.abstractmethod
    def identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with besides game, player, names, settings."""

    def learn(self, checkpoint_path: atomic.Path | None, progress: bool) -> Progress:
        """Responds to each opponent in turn.

        Args:
          checkpoint_path: written after each round, read at the beginning if it is
            there.
          progress: show a bar.

        Raises:
          DamagedFileError: the checkpoint was changed since it was written.
          FileInUseError: another run has the checkpoint.
          ValueError: a checkpoint of another run or one that cannot be written, or a
            responder that decides nothing.
        """
        with atomic.reserved(checkpoint_path, "checkpoint_path"):
            return self._learn(checkpoint_path, progress)

    def _learn(self, checkpoint_path: atomic.Path | None, progress: bool) -> Progress:
        optimiser = self._optimiser.init(self._parameters)
        start = Progress(0, 0, self._parameters, optimiser, self.no_samples(), ())
        found = None
        if checkpoint_path is not None:
            found = self._load(checkpoint_path, start)
        now = found or self._evaluate(start, 0, None)
        total = int(self._ends[-1])
        with tqdm(
            total=total, initial=now.round, unit="round", disable=not progress
        ) as bar:
            while now.round < total:
                now = self._round(now)
                if checkpoint_path is not None:
                    self._save(checkpoint_path, now)
                bar.update()
        return now

    def _round(self, now: Progress) -> Progress:
        """Episodes, then steps of the optimiser, then perhaps a point of the curve."""
        config = self.config
        stage = int(np.searchsorted(self._ends, now.round, side="right"))
        new, simulations = self.play(stage, now.parameters, now.round)
        old = self.no_samples() if now.round in self._ends else now.samples
        samples = {
            name: np.concatenate([old[name], new[name]])[-config.replay :]
            for name in old
        }
        size = len(samples["returned"])
        if not size:
            raise ValueError(
                f"{self.game}: player {self.player} decided nothing in "
                f"{config.episodes} episodes; raise episodes"
            )
        # Padded, so that there is one program.
        padded = {
            name: np.pad(a, [(0, config.replay - size)] + [(0, 0)] * (a.ndim - 1))
            for name, a in samples.items()
        }
        seen, data = self.training_data(padded)
        random = np.random.default_rng([self.seed, now.round, *self.minibatch_stream])
        rows = random.integers(size, size=(config.steps, config.minibatch))
        (parameters, optimiser), losses = network.fit(
            (now.parameters, now.optimiser),
            seen,
            jax.device_put(data),
            jnp.asarray(rows.astype(np.int32)),
            jnp.asarray(config.l2, jnp.float32),
            learning_rate=config.learning_rate,
        )
        done, simulations = now.round + 1, now.simulations + simulations
        now = Progress(done, simulations, parameters, optimiser, samples, now.curve)
        if done % config.evaluate_every == 0 or done in self._ends:
            now = self._evaluate(now, stage, losses)
        return now

    def _evaluate(
        self, now: Progress, stage: int, losses: network.Losses | None
    ) -> Progress:
        """The same with one more point of the curve."""
        point = LearningPoint(
            stage,
            self.stages[stage].name,
            now.round,
            now.round * self.config.episodes,
            now.simulations,
            *((None,) * 3 if losses is None else map(float, losses)),
            **self.evaluate(stage, now.parameters),
        )
        return now._replace(curve=(*now.curve, point))

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with, as JSON has it."""
        names = [[stage.name, stage.rounds] for stage in self.stages]
        # The last opponent's rounds may become more.
        names[-1].pop()
        return {
            **self.identity(),
            "game": str(self.game),
            "player": self.player,
            "opponents": names,
            "config": repr(self.config),
            "seed": self.seed,
        }

    def _save(self, path: atomic.Path, now: Progress) -> None:
        """Atomically; the old file stays if this is interrupted, or fails.

        Then a warning names the file, and learning goes on.
        """
        leaves = jax.tree.leaves((now.parameters, now.optimiser))
        arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        metadata = {
            **self._identity(),
            "round": now.round,
            "simulations": now.simulations,
            "curve": now.curve,
            "versions": storage.versions(),
        }
        try:
            storage.save(path, {**arrays, **now.samples}, metadata)
        except OSError as error:
            if now.round == self._ends[-1]:
                warnings.warn(UnsavedWarning(error), stacklevel=2)
            else:
                logging.warning("no checkpoint of round %d: %s", now.round, error)

    def _load(self, path: atomic.Path, blank: Progress) -> Progress | None:
        """What a file holds; None where there is no file.

        Args:
          path: of the file.
          blank: a run that has not begun, for the shapes.

        Raises:
          DamagedFileError: it was changed since it was written.
          ValueError: it belongs to another run, or has more rounds.
        """
        if not pathlib.Path(path).exists():
            return None
        name = f"checkpoint_path={os.fspath(path)!r}"
        arrays, metadata = storage.load(path)
        for key, mine in self._identity().items():
            if metadata.get(key) != mine:
                raise ValueError(
                    f"{name} has a run with {key} {metadata.get(key)!r}, and this one "
                    f"has {mine!r}; give another path or the same arguments"
                )
        try:
            progress = self._progress(arrays, metadata, blank)
        except ValueError as error:
            raise DamagedFileError(
                f"{name} is damaged ({error}); delete it to start anew"
            ) from error
        if progress.round > self._ends[-1]:
            raise ValueError(
                f"{name} holds {progress.round} rounds and the opponents have "
                f"{self._ends[-1]}; ask for more or give another path"
            )
        return progress

    def _progress(
        self,
        arrays: Mapping[str, np.ndarray],
        metadata: Mapping[str, Any],
        blank: Progress,
    ) -> Progress:
        """What a file of this run holds.

        Args:
          arrays: of the file.
          metadata: of the file.
          blank: a run that has not begun, for the shapes.

        Raises:
          ValueError: the content is not of a run like this.
        """
        empty, structure = jax.tree.flatten((blank.parameters, blank.optimiser))
        names = [f"leaf{i}" for i in range(len(empty))]
        if set(arrays) != {*names, *blank.samples}:
            raise ValueError("its arrays have other names")
        for name, wanted in zip(names, empty, strict=True):
            found = arrays[name]
            if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
                raise ValueError("its parameters have other shapes")
        samples = {name: arrays[name] for name in blank.samples}
        self.check_samples(samples)
        rounds, simulations = (
            check_whole(metadata.get(key, -1), key, 0, 2**63 - 1)
            for key in ("round", "simulations")
        )
        parameters, optimiser = jax.tree.unflatten(
            structure, [jnp.asarray(arrays[name]) for name in names]
        )
        points = metadata.get("curve")
        if not isinstance(points, list):
            raise ValueError(f"curve={points!r}")
        curve = tuple(map(_point, points))
        return Progress(rounds, simulations, parameters, optimiser, samples, curve)

    def check_samples(self, samples: Samples) -> None:
        """Raises ValueError where samples of a file are none of this run.

        Args:
          samples: with the names of `no_samples`.
        """
        for name, wanted in self.no_samples().items():
            found = samples[name]
            if (found.shape[1:], found.dtype) != (wanted.shape[1:], wanted.dtype):
                raise ValueError(f"its samples have another shape of {name}")
            if not found.ndim or len(found) > self.config.replay:
                raise ValueError(f"its samples have too many of {name}")
        if len(set(map(len, samples.values()))) > 1:
            raise ValueError("its samples have different lengths")


def _point(row: Any) -> LearningPoint:
    """A point of the curve as JSON has it.

    Raises:
      ValueError: it is none.
    """
    if not isinstance(row, list) or len(row) != len(LearningPoint._fields):
        raise ValueError(f"its curve has the point {row!r}")
    point = LearningPoint(*row)
    counts = point.stage, point.round, point.episodes, point.simulations
    numbers = [value for value in row[5:] if value is not None]
    if (
        any(type(value) is not int for value in counts)
        or type(point.opponent) is not str
        or any(type(value) not in (int, float) for value in numbers)
    ):
        raise ValueError(f"its curve has the point {row!r}")
    return point
