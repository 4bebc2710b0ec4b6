"""ISMCTS-BR with a learned network, on OpenSpiel's states.

Timbers et al. 2022, "Approximate exploitability: learning a best response", section 3:
the training loop of AlphaZero (Silver et al. 2017) against a fixed opponent. Episodes
are matches of `ISMCTSBRBot`, whose tree is reused within each; a policy-value network
learns the visits and the returns, and predicts priors and values for the next searches.
Deviation: root noise is drawn once for each information state and round.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import checks, network_fits, networks
from spiel_cr.common.messages import progress_bar
from spiel_cr.common.networks import Parameters
from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.evaluation.responses.ismcts_bot import ISMCTSBRBot, Predictor
from spiel_cr.games.histories import after_deals
from spiel_cr.games.opening.game_checks import player_return, utility_bounds
from spiel_cr.policies.rollouts import Answers, play_on

# Largest number of information states whose answers are cached.
_REMEMBERED = 100_000


class Samples(NamedTuple):
    """Training samples of a network, one row for each decision of an episode.

    Attributes:
      features: Information state tensors, float32 [B, F].
      legal: Whether each action of the game is legal, bool [B, A].
      visits: Shares of the search's visits of all actions, float32 [B, A].
      returned: The responder's returns, float32 [B]; see `Scale`.
    """

    features: np.ndarray | jax.Array
    legal: np.ndarray | jax.Array
    visits: np.ndarray | jax.Array
    returned: np.ndarray | jax.Array


class ResponseLosses(NamedTuple):
    """Means over a batch.

    Attributes:
      total: Sum of policy, value and L2 penalty.
      policy: Cross-entropy of the network's policy relative to the visits, in nats.
      value: Squared error of the value, see `Scale`.
    """

    total: float | jax.Array
    policy: float | jax.Array
    value: float | jax.Array


class Scale(NamedTuple):
    """The scale of network values in [-1, 1]: (utility - centre) / half_range.

    Attributes:
      centre: Centre of the responder's utilities.
      half_range: Half of the range of the utilities; 1 if the range is zero.
    """

    centre: float
    half_range: float

    def relative(self, utility: float) -> float:
        """Return the network value of a utility in the game's units."""
        return (utility - self.centre) / self.half_range

    def units(self, value: float) -> float:
        """Return a network value in the game's units, clipped to the game's range."""
        return self.centre + self.half_range * min(max(value, -1.0), 1.0)


def scale_of(game: pyspiel.Game) -> Scale:
    """Return the scale of a game's utilities."""
    low, high = utility_bounds(game) or (game.min_utility(), game.max_utility())
    return Scale((low + high) / 2, (high - low) / 2 or 1.0)


@jax.jit
def evaluate(
    parameters: Parameters, features: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Evaluate a network.

    Args:
      parameters: Parameters of a perceptron with a logit for each action of the game,
        and a value.
      features: Information state tensors, float32 [B, F].
      legal: Whether each action is legal, bool [B, A].

    Returns:
      float32 [B, A], log probabilities of the legal actions (`networks.NEVER` of
      others), and float32 [B], values; see `Scale`.
    """
    numbers = networks.outputs(parameters, features)
    return networks.log_policy(numbers[:, :-1], legal), numbers[:, -1]


def loss(
    parameters: Parameters, samples: Samples, l2: float | jax.Array
) -> ResponseLosses:
    """Compute the loss of AlphaZero (Silver et al. 2017, eq. 1).

    It is the sum of cross-entropy, squared error and an L2 penalty.

    Args:
      parameters: Parameters of the network.
      samples: B samples.
      l2: Weight of the squared parameters.
    """
    log_prior, value = evaluate(parameters, samples.features, samples.legal)
    cross = jnp.where(samples.legal, samples.visits * log_prior, 0)
    policy = -cross.sum(axis=1).mean()
    error = jnp.square(value - samples.returned).mean()
    squares = [jnp.square(leaf).sum() for leaf in jax.tree.leaves(parameters)]
    return ResponseLosses(policy + error + l2 * sum(squares), policy, error)


@functools.partial(jax.jit, static_argnames="learning_rate")
def fit(
    start: tuple[Parameters, Any],
    samples: Samples,
    batches: jax.Array,
    l2: jax.Array,
    *,
    learning_rate: float,
) -> tuple[tuple[Parameters, Any], ResponseLosses]:
    """Train a network by one step of Adam for each batch.

    Args:
      start: Parameters of the network, and the state of
        `network_fits.adam(learning_rate)`.
      samples: The replay buffer; rows after its end are not used.
      batches: Rows of the samples, int32 [T, B].
      l2: Weight of the squared parameters.
      learning_rate: Learning rate of Adam.

    Returns:
      New parameters and state, and the mean losses of the T batches.
    """

    def objective(parameters: Any, rows: jax.Array) -> tuple[jax.Array, ResponseLosses]:
        losses = loss(parameters, Samples(*(array[rows] for array in samples)), l2)
        return jnp.asarray(losses.total), losses

    end, losses = network_fits.descend(
        objective, network_fits.adam(learning_rate), start, batches
    )
    return end, ResponseLosses(*(jnp.mean(jnp.asarray(part)) for part in losses))


class NetworkPriorAndValue:
    """A network for a search (a `belief_search.PriorAndValue`), with a cache."""

    def __init__(self, game: pyspiel.Game, parameters: Parameters) -> None:
        """Start with an empty cache.

        Args:
          game: The game, which has information state tensors.
          parameters: Parameters of the network.
        """
        self._parameters, self._scale = parameters, scale_of(game)
        self._known: dict[tuple[int, str], tuple[list[float], float]] = {}

    def __call__(self, state: pyspiel.State, player: int) -> tuple[list[float], float]:
        """Return the prior of the legal actions, and the information state's value."""
        key = player, state.information_state_string(player)
        answer = self._known.get(key)
        if answer is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            answer = self._known[key] = self._ask(state, player)
        return answer

    def _ask(self, state: pyspiel.State, player: int) -> tuple[list[float], float]:
        features = np.array([state.information_state_tensor(player)], np.float32)
        legal = np.array([state.legal_actions_mask()], bool)
        log_prior, value = evaluate(self._parameters, features, legal)
        prior = np.exp(np.asarray(log_prior[0], np.float64))[legal[0]]
        return (prior / prior.sum()).tolist(), self._scale.units(float(value[0]))


def check_tensor(game: pyspiel.Game) -> None:
    """Raise ValueError if the game has no information state tensors."""
    remedy = "search without a network (method ismcts)"
    if not game.get_type().provides_information_state_tensor:
        raise ValueError(
            f"{game}: the game has no information_state_tensor, the input of a "
            f"network; implement it in the game, or {remedy}"
        )
    state = after_deals(game.new_initial_state())
    if state.is_terminal():
        return
    try:
        state.information_state_tensor(state.current_player())
    # A game in Python without an observer, or with one that does not support tensors.
    except (AttributeError, NotImplementedError) as error:
        raise ValueError(
            f"{game}: the game declares an information_state_tensor, the input of a "
            f"network, but has none ({error}); give the game a make_py_observer, or "
            f"{remedy}"
        ) from error


# Share of Dirichlet noise in the prior of a search's root, and weight of the squared
# parameters in the loss.
_NOISE, _L2 = 0.25, 1e-5


@dataclasses.dataclass(frozen=True)
class LearningConfig:
    """Settings of a learned response.

    Attributes:
      search: Settings of the search at each decision; `batch` is not used.
      rounds: Number of rounds of episodes and training.
      episodes: Number of episodes per round.
      hidden: Numbers of units of the network's hidden layers.
      steps: Number of optimiser steps (Adam) per round.
      minibatch: Number of samples of a step, with replacement, from the replay buffer.
      learning_rate: Learning rate of Adam.
      replay: Number of the newest samples (decisions) that the buffer keeps.
    """

    search: SearchConfig = SearchConfig(simulations=100)
    rounds: int = 20
    episodes: int = 64
    hidden: tuple[int, ...] = (128, 128)
    steps: int = 200
    minibatch: int = 256
    learning_rate: float = 1e-3
    replay: int = 20_000

    def __post_init__(self) -> None:
        checks.check_settings(
            self, {"rounds episodes steps minibatch replay": checks.COUNT}
        )
        for units in self.hidden:
            checks.check_iterations(units, name="hidden")
        if self.search.learn:
            raise ValueError(
                f"search.learn={self.search.learn}: learning a table is not available "
                f"for the method learned; use 0"
            )
        checks.check_number(self.learning_rate, "learning_rate", "(0, inf)")


class Learned(NamedTuple):
    """A learned response.

    Attributes:
      player: The responder.
      prior_and_value: The network, for `Predictor(prior_and_value=...)`.
      parameters: Parameters of the network.
      losses: Mean losses of each round.
      simulations: Number of simulations in all episodes.
    """

    player: int
    prior_and_value: NetworkPriorAndValue
    parameters: networks.Parameters
    losses: tuple[ResponseLosses, ...]
    simulations: int


def learn_response(
    game: pyspiel.Game,
    player: int,
    opponent: openspiel_policy.Policy,
    config: LearningConfig | None = None,
    *,
    seed: int = 0,
    progress: bool | None = None,
) -> Learned:
    """Learn a response to an opponent.

    Args:
      game: A sequential game, as from `load_game`, with information state tensors.
      player: The responder.
      opponent: The opponent's policy, which must depend on its information states only.
      config: Settings of search and learning.
      seed: Seed for all random choices.
      progress: Whether to show a progress bar on stderr.

    Raises:
      ImportError: If optax is missing.
      ValueError: If an argument is invalid, the game has no tensors, or the responder
        has no decisions.
    """
    check_tensor(game)
    checks.check_choice(player, "player", (0, 1))
    checks.check_seed(seed)
    config = config or LearningConfig()
    size = int(np.prod(game.information_state_tensor_shape()))
    actions = game.num_distinct_actions()
    parameters: Any = networks.make(
        (size, *config.hidden, actions + 1), seed, variance_factor=1.0
    )
    state = network_fits.adam(config.learning_rate).init(parameters)
    samples = Samples(
        np.zeros((0, size), np.float32),
        np.zeros((0, actions), bool),
        np.zeros((0, actions), np.float32),
        np.zeros(0, np.float32),
    )
    answers = {1 - player: Answers(opponent, 1 - player)}
    losses, simulations = [], 0
    for number in progress_bar(range(config.rounds), unit="round", progress=progress):
        bot = ISMCTSBRBot(
            game,
            player,
            opponent,
            config.search,
            seed=int(np.random.default_rng([seed, number]).integers(2**31)),
            predictor=Predictor(NetworkPriorAndValue(game, parameters)),
        )
        played = []
        for match in range(config.episodes):
            random = np.random.default_rng([seed, number, match])
            played.append(_episode(game, bot, answers, random))
        simulations += bot.simulations
        samples = _newest([samples, *played], config.replay)
        if not len(samples.returned):
            raise ValueError(
                f"{game}: player {player} had no decision in {config.episodes} "
                f"episodes, so it has nothing to learn from; choose the exact "
                f"response, or raise episodes"
            )
        random = np.random.default_rng([seed, number, 0, 1])
        rows = random.integers(
            len(samples.returned), size=(config.steps, config.minibatch)
        )
        (parameters, state), lost = fit(
            (parameters, state),
            _padded(samples, config.replay),
            jnp.asarray(rows.astype(np.int32)),
            jnp.asarray(_L2, jnp.float32),
            learning_rate=config.learning_rate,
        )
        losses.append(ResponseLosses(*map(float, lost)))
    predicted = NetworkPriorAndValue(game, parameters)
    return Learned(player, predicted, parameters, tuple(losses), simulations)


def _episode(
    game: pyspiel.Game,
    bot: ISMCTSBRBot,
    answers: Mapping[int, Answers],
    random: np.random.Generator,
) -> Samples:
    """Play a match, and return its decisions with more than one action.

    Actions are sampled by the visits of a search with noise.

    Args:
      game: The game.
      bot: The responder, which is restarted.
      answers: The opponent's policy.
      random: Random numbers of all moves.
    """
    player = bot.player_id()
    features, legality, shares = [], [], []
    bot.restart()
    state = game.new_initial_state()
    while play_on(state, answers, random.random) == player:
        legal = state.legal_actions()
        if len(legal) == 1:
            state.apply_action(legal[0])
            continue
        search = bot.search(state, noise=_NOISE)
        visits = np.array(search.visits, np.float64)
        running = np.cumsum(visits / visits.max())
        place = int((running <= random.random() * running[-1]).sum())
        shares.append(np.zeros(game.num_distinct_actions(), np.float32))
        shares[-1][search.actions] = visits / visits.sum()
        features.append(state.information_state_tensor(player))
        legality.append(state.legal_actions_mask())
        state.apply_action(search.actions[place])
    returned = scale_of(game).relative(player_return(state, player))
    return Samples(
        np.array(features, np.float32),
        np.array(legality, bool),
        np.array(shares, np.float32),
        np.full(len(shares), returned, np.float32),
    )


def _newest(parts: Sequence[Samples], count: int) -> Samples:
    """Return at most `count` of the last samples."""
    parts_with_rows = [part for part in parts if len(part.returned)] or parts[:1]
    columns = zip(*parts_with_rows, strict=True)
    return Samples(*(np.concatenate(column)[-count:] for column in columns))


def _padded(samples: Samples, count: int) -> Samples:
    """Pad samples to a fixed number of rows, so that one function is compiled."""
    return jax.device_put(
        Samples(*(networks.padded(np.asarray(a), count) for a in samples))
    )
