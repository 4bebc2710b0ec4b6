"""ISMCTS-BR that learns: the training loop, for compiled games and for states.

Timbers et al. 2022, "Approximate exploitability: learning a best response", section 3:
the training loop of AlphaZero (Silver et al. 2017) against a fixed opponent. Episodes
are played with search, a policy-value network learns the visits and the returns, and
predicts priors and values for the next searches. What a game is played on
(`learn_compiled.py`, `learn_states.py`) is an `Environment` of the loop here.
"""

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common import storage
from spiel_cr.common.checks import check_iterations, check_number, check_seed
from spiel_cr.responses import network
from spiel_cr.responses.ismcts_config import SearchConfig


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

    def __post_init__(self) -> None:
        for name in ("episodes", "steps", "minibatch", "replay", "evaluate_every"):
            check_iterations(getattr(self, name), name=name)
        for units in self.hidden:
            check_iterations(units, name="hidden")
        if self.search.learn:
            raise ValueError(
                f"search.learn={self.search.learn} learns a table; here a network "
                f"learns: leave it 0"
            )
        if self.search.posterior != "exact":
            raise ValueError(
                f"search.posterior={self.search.posterior!r}: learning needs 'exact'"
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


class Evaluation(NamedTuple):
    """How good a response is, in the responder's utility.

    Attributes:
      network_value: of the network's likeliest actions, without search.
      search_value: of the response that searches with the network.
      exact_value: of a best response; None where it is not known.
      network_error: standard error of `network_value`; 0 where it is exact.
      search_error: standard error of `search_value`; 0 where it is exact.
    """

    network_value: float
    search_value: float
    exact_value: float | None = None
    network_error: float = 0.0
    search_error: float = 0.0


class LearningPoint(NamedTuple):
    """A point of the curve.

    Attributes:
      stage: place of the opponent in the curriculum.
      opponent: its name.
      round: rounds so far, over all opponents; 0: nothing has been learned.
      episodes: played so far.
      simulations: run so far in episodes.
      network_value, search_value, exact_value, network_error, search_error: as in
        `Evaluation`.
      loss: mean of the last round, None before the first one.
      policy_loss: its cross-entropy.
      value_loss: its squared error.
    """

    stage: int
    opponent: str
    round: int
    episodes: int
    simulations: int
    network_value: float
    search_value: float
    exact_value: float | None
    network_error: float
    search_error: float
    loss: float | None = None
    policy_loss: float | None = None
    value_loss: float | None = None


# Arrays of equal lengths by name; "returned" is always among them.
Samples = dict[str, np.ndarray]


class Environment(Protocol):
    """A game with a curriculum, as the loop needs it.

    Attributes:
      game: OpenSpiel's.
      player: the responder.
      stages: the curriculum.
      graph: the network's structure.
      parameters: the network's, before it has learned anything.
      minibatch_stream: tells the random numbers of minibatches from those of episodes.
    """

    game: pyspiel.Game
    player: int
    stages: Sequence[Stage[Any]]
    graph: Any
    parameters: Any
    minibatch_stream: tuple[int, ...]

    def no_samples(self) -> Samples:
        """An empty replay buffer."""

    def play(self, stage: int, parameters: Any, round: int) -> tuple[Samples, int]:
        """The episodes of one round, their returns as `network.Scale` has them, and
        how many simulations they took."""

    def training_data(self, samples: Samples) -> tuple[network.Inputs, network.Samples]:
        """The padded buffer as the network learns from it."""

    def evaluate(self, stage: int, parameters: Any) -> Evaluation:
        """How good a response is to the opponent of a stage."""

    def identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with besides game, player, names, settings."""


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


def check_stages(stages: Sequence[Stage[Any]]) -> None:
    """Raises ValueError if there are none, or one without rounds."""
    if not stages:
        raise ValueError("opponents is empty; give at least one Stage")
    for stage in stages:
        check_iterations(stage.rounds, name=f"rounds of {stage.name!r}")


def learn(
    environment: Environment,
    config: LearningConfig,
    *,
    seed: int,
    checkpoint_path: storage.Path | None,
    progress: bool,
) -> Progress:
    """Learns to respond to each opponent in turn.

    Args:
      environment: the game and the curriculum.
      config: of search and learning.
      seed: of all draws.
      checkpoint_path: written after each round, read at the beginning if it is there.
      progress: show a bar.

    Raises:
      ValueError: a bad seed, a checkpoint of another run, or a responder that decides
        nothing.
    """
    check_seed(seed)
    start, stages = environment.parameters, environment.stages
    optimiser = network.optimiser_state(start, config.learning_rate)
    now = Progress(0, 0, start, optimiser, environment.no_samples(), ())
    ends = np.cumsum([stage.rounds for stage in stages])
    total = int(ends[-1])
    identity = {
        **environment.identity(),
        "game": str(environment.game),
        "player": environment.player,
        # The last opponent's rounds may become more.
        "opponents": [[s.name, s.rounds] for s in stages[:-1]] + [[stages[-1].name]],
        "config": repr(config),
        "seed": seed,
    }
    found = None
    if checkpoint_path is not None:
        storage.check_writable(checkpoint_path)
        found = _load(checkpoint_path, identity, now, total)
    now = found or _evaluate(environment, config, now, 0, None)
    with tqdm(
        total=total, initial=now.round, unit="round", disable=not progress
    ) as bar:
        while now.round < total:
            if now.round in ends:
                now = now._replace(samples=environment.no_samples())
            stage = int(np.searchsorted(ends, now.round, side="right"))
            now, losses = _round(environment, config, seed, now, stage)
            if now.round % config.evaluate_every == 0 or now.round in ends:
                now = _evaluate(environment, config, now, stage, losses)
            if checkpoint_path is not None:
                _save(checkpoint_path, identity, now)
            bar.update()
    return now


def _round(
    environment: Environment,
    config: LearningConfig,
    seed: int,
    now: Progress,
    stage: int,
) -> tuple[Progress, network.Losses]:
    """Episodes, then steps of the optimiser."""
    new, simulations = environment.play(stage, now.parameters, now.round)
    samples = {
        name: np.concatenate([kept, new[name]])[-config.replay :]
        for name, kept in now.samples.items()
    }
    size = len(samples["returned"])
    if not size:
        raise ValueError(
            f"{environment.game}: player {environment.player} decided nothing in "
            f"{config.episodes} episodes; raise episodes"
        )
    # Padded, so that there is one program.
    padded = {
        name: np.pad(a, [(0, config.replay - size)] + [(0, 0)] * (a.ndim - 1))
        for name, a in samples.items()
    }
    seen, data = environment.training_data(padded)
    random = np.random.default_rng([seed, now.round, *environment.minibatch_stream])
    rows = random.integers(size, size=(config.steps, config.minibatch))
    parameters, optimiser, losses = network.fit(
        environment.graph,
        now.parameters,
        now.optimiser,
        seen,
        jax.device_put(data),
        jnp.asarray(rows.astype(np.int32)),
        jnp.asarray(config.l2, jnp.float32),
        learning_rate=config.learning_rate,
    )
    simulations += now.simulations
    done = Progress(
        now.round + 1, simulations, parameters, optimiser, samples, now.curve
    )
    return done, losses


def _evaluate(
    environment: Environment,
    config: LearningConfig,
    now: Progress,
    stage: int,
    losses: network.Losses | None,
) -> Progress:
    """The same with one more point of the curve."""
    point = LearningPoint(
        stage,
        environment.stages[stage].name,
        now.round,
        now.round * config.episodes,
        now.simulations,
        *environment.evaluate(stage, now.parameters),
        *(() if losses is None else map(float, losses)),
    )
    return now._replace(curve=(*now.curve, point))


def _save(path: storage.Path, identity: dict[str, Any], now: Progress) -> None:
    """Atomically; the old file stays if this is interrupted."""
    leaves = jax.tree.leaves((now.parameters, now.optimiser))
    arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    storage.save(
        path,
        {**arrays, **now.samples},
        {
            **identity,
            "round": now.round,
            "simulations": now.simulations,
            "curve": now.curve,
            "versions": storage.versions(),
        },
    )


def _load(
    path: storage.Path, identity: dict[str, Any], blank: Progress, most: int
) -> Progress | None:
    """What a file holds; None where there is no file.

    Args:
      path: of the file.
      identity: what it must agree with, as JSON has it.
      blank: a run that has not begun, for the shapes.
      most: rounds that the run may have.

    Raises:
      ValueError: it belongs to another run, has more rounds, or is damaged.
    """
    if not pathlib.Path(path).exists():
        return None
    name = f"checkpoint_path={os.fspath(path)!r}"
    arrays, metadata = storage.load(path)
    for key, mine in identity.items():
        if metadata.get(key) != mine:
            raise ValueError(
                f"{name} has a run with {key} {metadata.get(key)!r}, and this one "
                f"has {mine!r}; give another path or the same arguments"
            )
    empty, structure = jax.tree.flatten((blank.parameters, blank.optimiser))
    try:
        leaves = [arrays[f"leaf{i}"] for i in range(len(empty))]
        for found, wanted in zip(leaves, empty, strict=True):
            if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
                raise ValueError("its parameters have other shapes")
        parameters, optimiser = jax.tree.unflatten(structure, map(jnp.asarray, leaves))
        progress = Progress(
            int(metadata["round"]),
            int(metadata["simulations"]),
            parameters,
            optimiser,
            {key: arrays[key] for key in blank.samples},
            tuple(LearningPoint(*point) for point in metadata["curve"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name} is damaged ({error!r}); delete it to start anew"
        ) from error
    if progress.round > most:
        raise ValueError(
            f"{name} holds {progress.round} rounds and the opponents have {most}; ask "
            f"for more or give another path"
        )
    return progress
