"""A policy-value network, which tells a searching responder where to look.

A multilayer perceptron maps what the responder knows (OpenSpiel's information state
tensor) to a logit for each action of the game and a value. Needs flax and optax, which
are imported when they are first used: `pip install 'spiel_cr[deep]'`.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel

from spiel_cr.common.arrays import padded_size
from spiel_cr.common.jax_utils import deep_packages
from spiel_cr.compilation.tree import TERMINAL, CompiledGame
from spiel_cr.responses.responder_tree import padded_sequences
from spiel_cr.responses.rollouts import first_decision

# Of actions that are not legal: finite, so that nothing times it is not a number.
_NEVER = -1e9
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


def make(
    num_features: int, num_actions: int, hidden: tuple[int, ...], *, seed: int
) -> tuple[Any, Any]:
    """A perceptron with rectified hidden layers, and a policy and a value head in one.

    Args:
      num_features: F.
      num_actions: of the whole game, OpenSpiel's `num_distinct_actions`.
      hidden: units of each hidden layer.
      seed: of its initial weights.

    Returns:
      Its structure (flax nnx's graph definition, hashable) and its parameters, float32.

    Raises:
      ImportError: flax or optax is missing.
    """
    nnx, _ = deep_packages()
    rngs = nnx.Rngs(seed)
    layers: list[Any] = []
    width = num_features
    for units in hidden:
        layers += [nnx.Linear(width, units, rngs=rngs), nnx.relu]
        width = units
    # Starts near zero: a uniform prior, and values in the middle.
    start = nnx.initializers.variance_scaling(0.01, "fan_in", "truncated_normal")
    layers.append(nnx.Linear(width, num_actions + 1, kernel_init=start, rngs=rngs))
    graph, parameters = nnx.split(nnx.Sequential(*layers))
    return graph, parameters


@functools.partial(jax.jit, static_argnames="graph")
def evaluate(graph: Any, parameters: Any, seen: Inputs) -> tuple[jax.Array, jax.Array]:
    """The network's opinion.

    Args:
      graph: its structure, from `make`.
      parameters: from `make` or `fit`.
      seen: of B infosets.

    Returns:
      float32 [B, A], log probabilities of the legal actions (very low at padding), and
      float32 [B], values; see `Scale`.
    """
    nnx, _ = deep_packages()
    out = nnx.merge(graph, parameters)(seen.features)
    logits = jnp.take_along_axis(out[:, :-1], seen.actions, axis=1)
    return jax.nn.log_softmax(jnp.where(seen.legal, logits, _NEVER)), out[:, -1]


def loss(
    graph: Any, parameters: Any, seen: Inputs, samples: Samples, l2: float | jax.Array
) -> Losses:
    """Cross-entropy + squared error + L2, as AlphaZero's (Silver et al. 2017, eq. 1).

    Args:
      graph: the network's structure.
      parameters: its parameters.
      seen: of the samples' infosets, B rows.
      samples: B of them.
      l2: weight of the parameters' squares.
    """
    log_prior, value = evaluate(graph, parameters, seen)
    cross = jnp.where(seen.legal, samples.visits * log_prior, 0)
    policy = -cross.sum(axis=1).mean()
    error = jnp.square(value - samples.returned).mean()
    squares = [jnp.square(leaf).sum() for leaf in jax.tree.leaves(parameters)]
    return Losses(policy + error + l2 * sum(squares), policy, error)


def optimiser_state(parameters: Any, learning_rate: float) -> Any:
    """Adam's state before the first step."""
    _, optax = deep_packages()
    return optax.adam(learning_rate).init(parameters)


@functools.partial(jax.jit, static_argnames=("graph", "learning_rate"))
def fit(
    graph: Any,
    parameters: Any,
    state: Any,
    seen: Inputs,
    samples: Samples,
    batches: jax.Array,
    l2: jax.Array,
    *,
    learning_rate: float,
) -> tuple[Any, Any, Losses]:
    """Steps of Adam, one for each batch.

    Args:
      graph: the network's structure.
      parameters: its parameters.
      state: from `optimiser_state` or the last call.
      seen: of all I infosets.
      samples: the replay buffer; rows past its end may hold anything.
      batches: int32 [T, B], rows of the samples.
      l2: weight of the parameters' squares.
      learning_rate: Adam's.

    Returns:
      New parameters, new state, and the mean losses of the T batches.
    """
    _, optax = deep_packages()
    optimiser = optax.adam(learning_rate)

    def step(carry: Any, rows: jax.Array) -> tuple[Any, Losses]:
        parameters, state = carry
        batch = Samples(*(array[rows] for array in samples))

        def objective(parameters: Any) -> tuple[jax.Array, Losses]:
            losses = loss(graph, parameters, seen.at(batch.infoset), batch, l2)
            return losses.total, losses

        slope, losses = jax.grad(objective, has_aux=True)(parameters)
        updates, state = optimiser.update(slope, state, parameters)
        return (optax.apply_updates(parameters, updates), state), losses

    (parameters, state), losses = jax.lax.scan(step, (parameters, state), batches)
    return parameters, state, Losses(*(one.mean() for one in losses))


class NetworkPriorAndValue:
    """A network for a search on states (an `ismcts_br_bot.StatePriorAndValue`).

    One state per call, and what was asked before is remembered; on compiled games the
    network is asked for all infosets at once.
    """

    def __init__(
        self, game: pyspiel.Game, graph: Any, parameters: Any, scale: Scale
    ) -> None:
        """Asks nothing yet.

        Args:
          game: whose states it will see.
          graph: the network's structure, from `make`.
          parameters: its parameters.
          scale: of the responder's utilities.

        Raises:
          ValueError: the game has no information state tensors.
        """
        check_tensor(game)
        self._graph, self._parameters, self._scale = graph, parameters, scale
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
        log_prior, value = evaluate(self._graph, self._parameters, known)
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
