"""A policy-value network, which tells a searching responder where to look.

A perceptron maps what the responder knows (OpenSpiel's information state tensor) to a
logit for each action of the game and a value.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel

from spiel_cr.common import network_fits, networks
from spiel_cr.common.networks import Parameters
from spiel_cr.policies.rollouts import first_decision

# Information states that the network remembers.
_REMEMBERED = 100_000


class Samples(NamedTuple):
    """What a network learns from, one row for each decision of an episode.

    Attributes:
      features: float32 [B, F], information state tensors.
      legal: bool [B, A], the legal ones of all actions of the game.
      visits: float32 [B, A], share of the search's visits of each action.
      returned: float32 [B], the responder's return; see `Scale`.
    """

    features: np.ndarray | jax.Array
    legal: np.ndarray | jax.Array
    visits: np.ndarray | jax.Array
    returned: np.ndarray | jax.Array


class Losses(NamedTuple):
    """Means over a batch.

    Attributes:
      total: policy + value + L2 penalty.
      policy: cross-entropy of the network's policy relative to the visits, nats.
      value: squared error of the value, see `Scale`.
    """

    total: float | jax.Array
    policy: float | jax.Array
    value: float | jax.Array


class Scale(NamedTuple):
    """Values of networks lie in [-1, 1]: (utility - centre) / half_range.

    Attributes:
      centre: of the responder's utilities.
      half_range: of the utilities; 1 if that is zero.
    """

    centre: float
    half_range: float

    def relative(self, utility: float) -> float:
        """Of a utility in the game's units."""
        return (utility - self.centre) / self.half_range

    def units(self, value: float) -> float:
        """In the game's units; what no game can return is cut off."""
        return self.centre + self.half_range * min(max(value, -1.0), 1.0)


def scale_of(game: pyspiel.Game) -> Scale:
    """The scale of the utilities that a game may give."""
    low, high = game.min_utility(), game.max_utility()
    return Scale((low + high) / 2, (high - low) / 2 or 1.0)


@jax.jit
def evaluate(
    parameters: Parameters, features: jax.Array, legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The network's opinion.

    Args:
      parameters: of a perceptron with a logit for each action of the game, and a value.
      features: float32 [B, F].
      legal: bool [B, A].

    Returns:
      float32 [B, A], log probabilities of the legal actions (`networks.NEVER` of
      others), and float32 [B], values; see `Scale`.
    """
    numbers = networks.outputs(parameters, features)
    return networks.log_policy(numbers[:, :-1], legal), numbers[:, -1]


def loss(parameters: Parameters, samples: Samples, l2: float | jax.Array) -> Losses:
    """Cross-entropy + squared error + L2, as AlphaZero's (Silver et al. 2017, eq. 1).

    Args:
      parameters: of the network.
      samples: B of them.
      l2: weight of the parameters' squares.
    """
    log_prior, value = evaluate(parameters, samples.features, samples.legal)
    cross = jnp.where(samples.legal, samples.visits * log_prior, 0)
    policy = -cross.sum(axis=1).mean()
    error = jnp.square(value - samples.returned).mean()
    squares = [jnp.square(leaf).sum() for leaf in jax.tree.leaves(parameters)]
    return Losses(policy + error + l2 * sum(squares), policy, error)


@functools.partial(jax.jit, static_argnames="learning_rate")
def fit(
    start: tuple[Parameters, Any],
    samples: Samples,
    batches: jax.Array,
    l2: jax.Array,
    *,
    learning_rate: float,
) -> tuple[tuple[Parameters, Any], Losses]:
    """Steps of Adam, one for each batch.

    Args:
      start: the network's parameters, and the state of
        `network_fits.adam(learning_rate)`.
      samples: the replay buffer; rows past its end may hold anything.
      batches: int32 [T, B], rows of the samples.
      l2: weight of the parameters' squares.
      learning_rate: Adam's.

    Returns:
      New parameters and state, and the mean losses of the T batches.
    """

    def objective(parameters: Any, rows: jax.Array) -> tuple[jax.Array, Losses]:
        losses = loss(parameters, Samples(*(array[rows] for array in samples)), l2)
        return jnp.asarray(losses.total), losses

    end, losses = network_fits.descend(
        objective, network_fits.adam(learning_rate), start, batches
    )
    return end, Losses(*(jnp.mean(jnp.asarray(part)) for part in losses))


class NetworkPriorAndValue:
    """A network for a search (a `belief_search.PriorAndValue`).

    What was asked before is remembered.
    """

    def __init__(self, game: pyspiel.Game, parameters: Parameters) -> None:
        """Asks nothing yet.

        Args:
          game: whose states it will see; with information state tensors.
          parameters: of the network.
        """
        self._parameters, self._scale = parameters, scale_of(game)
        self._known: dict[tuple[int, str], tuple[list[float], float]] = {}

    def __call__(self, state: pyspiel.State, player: int) -> tuple[list[float], float]:
        """Prior of the legal actions and value of the player's information state."""
        key = player, state.information_state_string(player)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._ask(state, player)
        return known

    def _ask(self, state: pyspiel.State, player: int) -> tuple[list[float], float]:
        features = np.array([state.information_state_tensor(player)], np.float32)
        legal = np.array([state.legal_actions_mask()], bool)
        log_prior, value = evaluate(self._parameters, features, legal)
        prior = np.exp(np.asarray(log_prior[0], np.float64))[legal[0]]
        return (prior / prior.sum()).tolist(), self._scale.units(float(value[0]))


def check_tensor(game: pyspiel.Game) -> None:
    """Raises ValueError if the game has no information state tensors."""
    remedy = "search without a network (method ismcts), which needs none"
    if not game.get_type().provides_information_state_tensor:
        raise ValueError(
            f"{game}: the game offers no information_state_tensor, which a network "
            f"reads; implement it in the game, or {remedy}"
        )
    state = first_decision(game)
    if state.is_terminal():
        return
    try:
        state.information_state_tensor(state.current_player())
    # A game in Python whose observer is missing, or does not do what it promises.
    except (AttributeError, NotImplementedError) as error:
        raise ValueError(
            f"{game}: the game promises an information_state_tensor, which a network "
            f"reads, and gives none ({error}); give the game a make_py_observer, or "
            f"{remedy}"
        ) from error
