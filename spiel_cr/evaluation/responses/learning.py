"""ISMCTS-BR that learns, on OpenSpiel's states.

Timbers et al. 2022, "Approximate exploitability: learning a best response", section 3:
the training loop of AlphaZero (Silver et al. 2017) against a fixed opponent. Episodes
are matches of `ISMCTSBRBot`, whose tree is reused within each; a policy-value network
learns the visits and the returns, and predicts priors and values for the next searches.
Deviation: root noise is drawn once for each information state and round.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common import checks, network_fits, networks
from spiel_cr.evaluation.responses import response_network as network
from spiel_cr.evaluation.responses.ismcts_br_bot import ISMCTSBRBot, Predictor
from spiel_cr.evaluation.responses.ismcts_config import SearchConfig
from spiel_cr.games.opening.game_checks import player_return
from spiel_cr.policies.rollouts import Answers, play_on

# Share of Dirichlet noise in the prior where a search begins, and weight of the
# parameters' squares in the loss.
_NOISE, _L2 = 0.25, 1e-5


@dataclasses.dataclass(frozen=True)
class LearningConfig:
    """How a response is learned.

    Attributes:
      search: of each decision in an episode; `batch` is not used.
      rounds: of episodes and training.
      episodes: of a round.
      hidden: units of the network's hidden layers.
      steps: of the optimiser (Adam) in a round.
      minibatch: samples of a step, drawn with replacement from the replay buffer.
      learning_rate: Adam's.
      replay: samples (decisions of episodes) that the buffer keeps, the newest ones.
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
        for name in ("rounds", "episodes", "steps", "minibatch", "replay"):
            checks.check_iterations(getattr(self, name), name=name)
        for units in self.hidden:
            checks.check_iterations(units, name="hidden")
        if self.search.learn:
            raise ValueError(
                f"search.learn={self.search.learn} learns a table; here a network "
                f"learns: leave it 0"
            )
        checks.check_number(self.learning_rate, "learning_rate", "(0, inf)")


class Learned(NamedTuple):
    """A learned response.

    Attributes:
      player: the responder.
      prior_and_value: the network, for `Predictor(prior_and_value=...)`.
      parameters: its parameters.
      losses: means of each round.
      simulations: of all episodes.
    """

    player: int
    prior_and_value: network.NetworkPriorAndValue
    parameters: networks.Parameters
    losses: tuple[network.Losses, ...]
    simulations: int


def learn_response(
    game: pyspiel.Game,
    player: int,
    opponent: openspiel_policy.Policy,
    config: LearningConfig | None = None,
    *,
    seed: int = 0,
    progress: bool = False,
) -> Learned:
    """Learns to respond to an opponent.

    Args:
      game: sequential, as from `load_game`, with information state tensors.
      player: the responder.
      opponent: its policy; must depend on its information states only.
      config: of search and learning.
      seed: of all draws.
      progress: show a bar.

    Raises:
      ImportError: optax is missing.
      ValueError: a bad argument, a game without tensors, or a responder that decides
        nothing.
    """
    network.check_tensor(game)
    checks.check_choice(player, "player", (0, 1))
    checks.check_seed(seed)
    config = config or LearningConfig()
    size = int(np.prod(game.information_state_tensor_shape()))
    actions = game.num_distinct_actions()
    parameters: Any = networks.make((size, *config.hidden, actions + 1), seed, gain=1.0)
    state = network_fits.adam(config.learning_rate).init(parameters)
    samples = network.Samples(
        np.zeros((0, size), np.float32),
        np.zeros((0, actions), bool),
        np.zeros((0, actions), np.float32),
        np.zeros(0, np.float32),
    )
    answers = {1 - player: Answers(opponent, 1 - player)}
    losses, simulations = [], 0
    for number in tqdm(range(config.rounds), unit="round", disable=not progress):
        bot = ISMCTSBRBot(
            game,
            player,
            opponent,
            config.search,
            seed=int(np.random.default_rng([seed, number]).integers(2**31)),
            predictor=Predictor(network.NetworkPriorAndValue(game, parameters)),
        )
        played = []
        for match in range(config.episodes):
            random = np.random.default_rng([seed, number, match])
            played.append(_episode(game, bot, answers, random))
        simulations += bot.simulations
        samples = _newest([samples, *played], config.replay)
        if not len(samples.returned):
            raise ValueError(
                f"{game}: player {player} decided nothing in {config.episodes} "
                f"episodes, so there is nothing to learn from; choose the exact "
                f"response, or raise episodes"
            )
        random = np.random.default_rng([seed, number, 0, 1])
        rows = random.integers(
            len(samples.returned), size=(config.steps, config.minibatch)
        )
        (parameters, state), lost = network.fit(
            (parameters, state),
            _padded(samples, config.replay),
            jnp.asarray(rows.astype(np.int32)),
            jnp.asarray(_L2, jnp.float32),
            learning_rate=config.learning_rate,
        )
        losses.append(network.Losses(*map(float, lost)))
    predicted = network.NetworkPriorAndValue(game, parameters)
    return Learned(player, predicted, parameters, tuple(losses), simulations)


def _episode(
    game: pyspiel.Game,
    bot: ISMCTSBRBot,
    answers: Mapping[int, Answers],
    random: np.random.Generator,
) -> network.Samples:
    """The decisions of a match, without those that have one action.

    Actions are drawn by the visits of a search with noise.

    Args:
      game: that is played.
      bot: the responder; restarted.
      answers: the opponent's policy.
      random: of all moves; consumed.
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
        found = bot.search(state, noise=_NOISE)
        visits = np.array(found.visits, np.float64)
        running = np.cumsum(visits / visits.max())
        place = int((running <= random.random() * running[-1]).sum())
        shares.append(np.zeros(game.num_distinct_actions(), np.float32))
        shares[-1][found.actions] = visits / visits.sum()
        features.append(state.information_state_tensor(player))
        legality.append(state.legal_actions_mask())
        state.apply_action(found.actions[place])
    returned = network.scale_of(game).relative(player_return(state, player))
    return network.Samples(
        np.array(features, np.float32),
        np.array(legality, bool),
        np.array(shares, np.float32),
        np.full(len(shares), returned, np.float32),
    )


def _newest(parts: Sequence[network.Samples], count: int) -> network.Samples:
    """The last samples of some episodes, so many at most."""
    met = [part for part in parts if len(part.returned)] or parts[:1]
    columns = zip(*met, strict=True)
    return network.Samples(*(np.concatenate(column)[-count:] for column in columns))


def _padded(samples: network.Samples, count: int) -> network.Samples:
    """As many rows whatever the buffer holds, so that there is one program."""
    return jax.device_put(
        network.Samples(*(networks.padded(np.asarray(a), count) for a in samples))
    )
