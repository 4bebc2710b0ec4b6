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

from spiel_cr.common import fits, networks
from spiel_cr.common.arrays import padded_size
from spiel_cr.common.networks import Parameters
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.responses.responder_tree import padded_sequences
from spiel_cr.policies.rollouts import first_decision

# Information states that the network on states remembers.
_REMEMBERED = 100_000


class Inputs(NamedTuple):
    """What a network sees of I infosets.

    Attributes:
      features: float32 [I, F], information state tensors.
      actions: int32 [I, A], OpenSpiel's number of each legal action; 0 at padding.
      legal: bool [I, A], not padding.
    """

    features: jax.Array
    actions: jax.Array
    legal: jax.Array

    def at(self, infosets: np.ndarray | jax.Array) -> "Inputs":
        """The rows of some infosets, int [B]."""
        return Inputs(*(array[infosets] for array in self))


class Samples(NamedTuple):
    """What a network learns from, one row for each decision of an episode.

    Attributes:
      infoset: int32 [B], where it was.
      visits: float32 [B, A], share of the search's visits of each action.
      returned: float32 [B], the responder's return; see `Scale`.
    """

    infoset: np.ndarray | jax.Array
    visits: np.ndarray | jax.Array
    returned: np.ndarray | jax.Array


class Losses(NamedTuple):
    """Means over a batch.

    Attributes:
      total: policy + value + L2 penalty.
      policy: cross-entropy of the network's policy relative to the visits, nats.
      value: squared error of the value, see `Scale`.
    """

    total: jax.Array
    policy: jax.Array
    value: jax.Array


class Scale(NamedTuple):
    """Values of networks lie in [-1, 1]: (utility - centre) / half_range.

    Attributes:
      centre: of the responder's utilities.
      half_range: of the utilities; 1 if that is zero.
    """

    centre: float
    half_range: float

    def relative(self, utility: Any) -> Any:
        """Of a utility in the game's units."""
        return (utility - self.centre) / self.half_range

    def units(self, value: np.ndarray) -> np.ndarray:
        """In the game's units; what no game can return is cut off."""
        inside = np.clip(np.asarray(value, np.float64), -1, 1)
        units: np.ndarray = self.centre + self.half_range * inside
        return units


def scale(tree: CompiledGame, player: int) -> Scale:
    """The scale of one player's utilities, from the game's terminals."""
    histories = tree.histories
    over = histories.utility[histories.player == TERMINAL]
    middle = float(over.max() + over.min()) / 2
    return Scale(middle * (1 if player == 0 else -1), float(np.ptp(over)) / 2 or 1.0)


def inputs(tree: CompiledGame, player: int) -> Inputs:
    """The tensors and legal actions of all infosets of a player.

    Args:
      tree: the compiled game.
      player: the responder.

    Raises:
      ValueError: the game has no information state tensors, or the player never
        decides.
    """
    check_tensor(tree.game)
    infosets = tree.infosets[player]
    if not len(infosets):
        raise ValueError(
            f"{tree.game}: player {player} never decides anything; choose the other "
            f"player, or a game with decisions"
        )
    features = [
        tree.state_at(history).information_state_tensor(player)
        for history in infosets.history
    ]
    sequence, legal = padded_sequences(infosets.decisions, np.arange(len(infosets)))
    actions = np.where(legal, infosets.actions[sequence - 1], 0)
    return Inputs(
        jnp.asarray(np.array(features, np.float32)),
        jnp.asarray(actions.astype(np.int32)),
        jnp.asarray(legal),
    )


@jax.jit
def evaluate(parameters: Parameters, seen: Inputs) -> tuple[jax.Array, jax.Array]:
    """The network's opinion.

    Args:
      parameters: of a perceptron with a logit for each action of the game, and a value.
      seen: of B infosets.

    Returns:
      float32 [B, A], log probabilities of the legal actions (`networks.NEVER` at
      padding), and float32 [B], values; see `Scale`.
    """
    numbers = networks.outputs(parameters, seen.features)
    logits = jnp.take_along_axis(numbers[:, :-1], seen.actions, axis=1)
    both = jnp.concatenate([logits, numbers[:, -1:]], axis=1)
    return networks.policy_and_value(both, seen.legal)


def loss(
    parameters: Parameters, seen: Inputs, samples: Samples, l2: float | jax.Array
) -> Losses:
    """Cross-entropy + squared error + L2, as AlphaZero's (Silver et al. 2017, eq. 1).

    Args:
      parameters: of the network.
      seen: of the samples' infosets, B rows.
      samples: B of them.
      l2: weight of the parameters' squares.
    """
    log_prior, value = evaluate(parameters, seen)
    cross = jnp.where(seen.legal, samples.visits * log_prior, 0)
    policy = -cross.sum(axis=1).mean()
    error = jnp.square(value - samples.returned).mean()
    squares = [jnp.square(leaf).sum() for leaf in jax.tree.leaves(parameters)]
    return Losses(policy + error + l2 * sum(squares), policy, error)


@functools.partial(jax.jit, static_argnames="learning_rate")
def fit(
    start: tuple[Parameters, Any],
    seen: Inputs,
    samples: Samples,
    batches: jax.Array,
    l2: jax.Array,
    *,
    learning_rate: float,
) -> tuple[tuple[Parameters, Any], Losses]:
    """Steps of Adam, one for each batch.

    Args:
      start: the network's parameters, and the state of `fits.adam(learning_rate)`.
      seen: of all I infosets.
      samples: the replay buffer; rows past its end may hold anything.
      batches: int32 [T, B], rows of the samples.
      l2: weight of the parameters' squares.
      learning_rate: Adam's.

    Returns:
      New parameters and state, and the mean losses of the T batches.
    """

    def objective(parameters: Any, rows: jax.Array) -> tuple[jax.Array, Losses]:
        batch = Samples(*(array[rows] for array in samples))
        losses = loss(parameters, seen.at(batch.infoset), batch, l2)
        return losses.total, losses

    end, losses = fits.descend(objective, fits.adam(learning_rate), start, batches)
    return end, Losses(*(part.mean() for part in losses))


class NetworkPriorAndValue:
    """A network for a search on states (an `ismcts_br_bot.StatePriorAndValue`).

    One state per call, and what was asked before is remembered; on compiled games the
    network is asked for all infosets at once.
    """

    def __init__(
        self, game: pyspiel.Game, parameters: Parameters, scale: Scale
    ) -> None:
        """Asks nothing yet.

        Args:
          game: whose states it will see.
          parameters: of the network.
          scale: of the responder's utilities.

        Raises:
          ValueError: the game has no information state tensors.
        """
        check_tensor(game)
        self._parameters, self._scale = parameters, scale
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
        legal = state.legal_actions()
        # Padded to a power of two, so that there are few programs.
        width = padded_size(len(legal))
        actions = np.zeros((1, width), np.int32)
        actions[0, : len(legal)] = legal
        features = np.array([state.information_state_tensor(player)], np.float32)
        legality = np.arange(width)[None] < len(legal)
        known = Inputs(*map(jnp.asarray, (features, actions, legality)))
        log_prior, value = evaluate(self._parameters, known)
        prior = np.exp(np.asarray(log_prior[0, : len(legal)], np.float64))
        worth = self._scale.units(np.asarray(value))
        return (prior / prior.sum()).tolist(), float(worth[0])


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
