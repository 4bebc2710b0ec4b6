"""Average strategies of networks as OpenSpiel policies, and their files.

A policy uses the tensors of the acting player. The policy of an ensemble of iterates
also uses the player's earlier decisions: one iterate is drawn for each match, so at an
infoset the mixture weighs each iterate by its weight times its own reach (Steinberger
2019).
"""

import functools
import math
import os
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pyspiel

from spiel_cr.common import atomic, networks, storage
from spiel_cr.common.arrays import padded_size
from spiel_cr.common.jax_utils import precision
from spiel_cr.games.histories import moves_along
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.game_checks import feature_count
from spiel_cr.games.opening.identity import check_same_decisions
from spiel_cr.games.opening.opened import open_game
from spiel_cr.policies import behaviour_files
from spiel_cr.policies.conversions import StatePolicy
from spiel_cr.solvers.deep import deep_config
from spiel_cr.solvers.deep.advantages import numbered
from spiel_cr.solvers.deep.averages import SOFTMAX, Networks
from spiel_cr.solvers.deep.outputs import PerceptronShape, regret_matching, softmax

# Values of the fields `kind` and `average` in files.
KIND = "deep policy"
_NETWORK, _ENSEMBLE = "network", "ensemble"
# Maximum size in bytes of the cache of iterates' strategies, and of that of mixtures.
_CACHE_BYTES = 64e6


class DeepPolicy(StatePolicy):
    """Policy of networks, for both players.

    Attributes:
      average: Networks of the average strategy.
    """

    def __init__(self, game: pyspiel.Game, average: Networks):
        """Build the networks from their arrays.

        Args:
          game: Sequential game.
          average: Result of `solver.DeepSolver.average`.

        Raises:
          ValueError: If the networks belong to another game, or an ensemble's iterates
            are tables of a game tree.
          ImportError: If optax is missing.
        """
        super().__init__(game)
        shape = average.shape
        if shape is None:
            raise ValueError(
                f"average: iterates of {game} are tables, not networks; use the "
                f"policy of the game tree"
            )
        sizes = feature_count(game, average.features), game.num_distinct_actions()
        if (shape.features, shape.actions) != sizes:
            raise ValueError(
                f"average: its networks have {shape.features} inputs and "
                f"{shape.actions} actions, and {game} has {sizes[0]} and {sizes[1]}; "
                f"use the game for which they were trained"
            )
        self.average = average
        self._shape = shape
        average.check()
        # One for each player, with a leading axis [T].
        self._networks = [networks.assembled(leaves) for leaves in average.leaves]
        self._known: OrderedDict[tuple[int, str], np.ndarray] = OrderedDict()
        self._finished: OrderedDict[tuple[int, str], np.ndarray] = OrderedDict()

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the probabilities at a state; see `StatePolicy`."""
        key = player, state.information_state_string(player)
        strategy = self._finished.get(key)
        if strategy is None:
            each = self._of_iterates([state], player)[0]
            posterior = self._posterior(state, player)
            strategy = posterior @ each
            _remember(self._finished, key, strategy)
        return _by_action(state, strategy)

    def save(self, path: atomic.Path, metadata: Mapping[str, Any]) -> None:
        """Write the policy to an `.npz` file, atomically; see `SavedPolicy`."""
        average, single = self.average, self.average.rule == SOFTMAX
        fields = {
            "kind": KIND,
            "game": str(self.game),
            "average": _NETWORK if single else _ENSEMBLE,
            "shape": self._shape._asdict(),
            "features": average.features,
        }
        if not single:
            fields["fallback"] = average.rule
        arrays: dict[str, np.ndarray] = {}
        for player, leaves in enumerate(average.leaves):
            if not single:
                weights = np.asarray(average.weights[player], np.float64)
                arrays[f"weights{player}"] = weights
            for number, leaf in enumerate(leaves):
                array = leaf[0] if single else leaf
                arrays[f"player{player}_{number}"] = np.asarray(array, np.float32)
        fields = {**fields, **metadata, "versions": storage.versions()}
        storage.save(path, arrays, fields)

    def array_probabilities(
        self, rules: BatchedRules, states: np.ndarray, player: int
    ) -> np.ndarray:
        """Return the networks' probabilities at states of batched rules.

        Args:
          rules: Batched rules of the game, which must compute the tensors of the
            networks.
          states: States of these rules where the player acts, [n, ...].
          player: Player who acts.

        Returns:
          Probabilities by OpenSpiel's actions, float64 [n, A].

        Raises:
          ValueError: If the rules do not compute these tensors, or the policy is an
            ensemble, whose mixture depends on earlier actions.
        """
        self.check_arrays(rules)
        read = getattr(rules, f"{self.average.features}_tensor")
        legal = rules.legal_actions_mask(states)[:, : self._shape.actions]
        missing = self._shape.actions - legal.shape[1]
        legal = np.pad(legal, ((0, 0), (0, missing))) if missing else legal
        return self.strategies(read(states, player), legal, player)[0]

    def check_arrays(self, rules: BatchedRules) -> None:
        """Raise ValueError if `array_probabilities` does not support batched rules.

        Args:
          rules: Batched rules of the game.

        Raises:
          ValueError: If `array_probabilities` would raise it.
        """
        if not callable(getattr(rules, f"{self.average.features}_tensor", None)):
            raise ValueError(
                f"the networks of {self.game} need {self.average.features} tensors, "
                f"which its batched rules do not compute; use action_probabilities "
                f"for each state"
            )
        if self.average.rule != SOFTMAX:
            raise ValueError(
                f"the policy of {self.game} is an ensemble, whose mixture depends on "
                f"earlier actions, so it does not support arrays of states; train "
                f"with averaging=network"
            )

    def compile_for(self, most: int, seconds: float) -> None:
        """Compile the functions that evaluate networks at up to a number of positions.

        A player with a time limit calls this before its first match, because every
        padded number of positions needs its own compiled function.

        Args:
          most: Maximum number of positions.
          seconds: Maximum duration of an evaluation. Larger numbers of positions are
            not compiled, except for the smallest number.
        """
        size, duration = networks.LEAST_ROWS, 0.0
        while duration <= seconds:
            seen = np.zeros((size, self._shape.features), np.float32)
            legal = np.ones((size, self._shape.actions), bool)
            self.strategies(seen, legal, 0)
            each = []
            for _ in range(2):
                start = time.perf_counter()
                self.strategies(seen, legal, 0)
                each.append(time.perf_counter() - start)
            duration = min(each)
            if size >= most:
                return
            size *= 2

    def strategies(
        self, features: np.ndarray, legal: np.ndarray, player: int
    ) -> np.ndarray:
        """Return the strategies of all iterates at many positions.

        Args:
          features: Tensors of the acting player, [m, F].
          legal: Mask of legal actions, bool [m, A].
          player: Player who acts.

        Returns:
          Probabilities, float64 [T, m, A]; T is 1 if there is one network.
        """
        count, rule = len(legal), self.average.rule
        size = padded_size(count, networks.LEAST_ROWS)
        padded = np.zeros((size, self._shape.features), np.float32)
        padded[:count] = features
        with precision(np.dtype(np.float32)):
            outputs = np.asarray(_outputs(self._networks[player], padded))[:, :count]
        if rule == SOFTMAX:
            return softmax(outputs[0], legal)[None]
        flat = outputs.reshape(-1, outputs.shape[2])
        many = np.broadcast_to(legal, outputs.shape).reshape(flat.shape)
        played = regret_matching(flat, many, rule)
        played = played.reshape(outputs.shape)
        # Iterates from before the first fit contain only zeros.
        leaves = self.average.leaves[player]
        fitted = [leaf.reshape(len(leaf), -1).any(axis=1) for leaf in leaves]
        blank = np.flatnonzero(~np.any(fitted, axis=0))
        played[blank] = legal / legal.sum(axis=1)[:, None]
        return played

    def _of_iterates(
        self, states: Sequence[pyspiel.State], player: int
    ) -> list[np.ndarray]:
        """Return all iterates' strategies at a player's states, float64 [T, A] each."""
        keys = [(player, state.information_state_string(player)) for state in states]
        cached = {key: self._known[key] for key in keys if key in self._known}
        queries = zip(keys, states, strict=True)
        uncached = {key: state for key, state in queries if key not in cached}
        if uncached:
            name = f"{self.average.features}_tensor"
            tensors = [getattr(state, name)(player) for state in uncached.values()]
            features = np.array(tensors, np.float32)
            legal = np.zeros((len(uncached), self._shape.actions), bool)
            for row, state in zip(legal, uncached.values(), strict=True):
                row[state.legal_actions()] = True
            strategies = self.strategies(features, legal, player)
            for place, key in enumerate(uncached):
                cached[key] = strategies[:, place]
                _remember(self._known, key, cached[key])
        return [cached[key] for key in keys]

    def _posterior(self, state: pyspiel.State, player: int) -> np.ndarray:
        """Return the posterior probability of each iterate, float64 [T].

        It is conditioned on the player's earlier actions. If all iterates exclude these
        actions, the result contains the prior probabilities.
        """
        if self.average.rule == SOFTMAX:
            return np.ones(1)
        weights = self.average.weights[player].astype(np.float64)
        states, actions = _player_moves(state, player)
        probabilities = weights / weights.sum()
        for each, action in zip(
            self._of_iterates(states, player), actions, strict=True
        ):
            probabilities = probabilities * each[:, action]
            total = probabilities.sum()
            if not total > 0:
                return weights / weights.sum()
            probabilities = probabilities / total
        return probabilities


def _player_moves(
    state: pyspiel.State, player: int
) -> tuple[list[pyspiel.State], list[int]]:
    """Return a player's earlier decisions with more than one action, and its moves."""
    states, actions = [], []
    for at, action in moves_along(state.get_game(), state.history()):
        if at.current_player() == player and len(at.legal_actions()) > 1:
            states.append(at.clone())
            actions.append(action)
    return states, actions


def _remember(
    kept: "OrderedDict[tuple[int, str], np.ndarray]",
    key: tuple[int, str],
    value: np.ndarray,
) -> None:
    """Store a value in a cache; remove the oldest values above a number of bytes."""
    kept[key] = value
    while len(kept) > 1 and len(kept) * (value.nbytes + 200) > _CACHE_BYTES:
        kept.popitem(last=False)


def _by_action(state: pyspiel.State, strategy: np.ndarray) -> dict[int, float]:
    legal = sorted(state.legal_actions())
    probabilities = strategy[legal]
    return dict(zip(legal, (probabilities / probabilities.sum()).tolist(), strict=True))


# Outputs of T networks at once, float32 [T, n, A].
_outputs = jax.jit(jax.vmap(networks.outputs, in_axes=(0, None)))


def check_file(path: atomic.Path) -> None:
    """Raise the errors of `load_deep_policy` that do not depend on the game.

    Args:
      path: Path of the file.

    Raises:
      OSError: If the file does not exist, or cannot be read.
      CorruptFileError: If the contents of the file are invalid.
      ValueError: If the file does not contain such a policy.
    """
    _read(path)


def load_deep_policy(
    path: atomic.Path, game: str | pyspiel.Game | None = None
) -> DeepPolicy:
    """Load a policy of networks.

    Args:
      path: Path of a file that `DeepPolicy.save` or `Result.save` wrote.
      game: Game that the policy must belong to; None: the game that the file names.

    Raises:
      OSError: If the file does not exist, or cannot be read.
      CorruptFileError: If the file was not written by spiel_cr, was modified since, or
        its arrays do not belong to such networks.
      ValueError: If the file contains no such policy, or one for another game, or
        OpenSpiel cannot load its game by name.
      ImportError: If optax is missing.
    """
    named, average = _read(path)
    if game is None:
        loaded = behaviour_files.named_game(named, path)
    else:
        loaded = open_game(game).game
    if str(loaded) != named:
        file_game = open_game(named).game
        check_same_decisions(f"{path}: a policy", file_game, loaded)
    try:
        return DeepPolicy(loaded, average)
    except ValueError as error:
        raise behaviour_files.corrupt(path, error) from error


def _read(path: atomic.Path) -> tuple[str, Networks]:
    """Return the name of the game and the networks' arrays of a file."""
    metadata = behaviour_files.read_metadata(path)
    if metadata.get("kind") != KIND:
        raise ValueError(
            f"path={os.fspath(path)!r} holds a "
            f"{metadata.get('kind', 'file of another kind')}, not a policy of "
            f"networks; use policy(path=...) to play a tabular policy"
        )
    arrays, metadata = storage.load(path)
    corrupt = functools.partial(behaviour_files.corrupt, path)
    named = behaviour_files.text_of(metadata, "game", path)
    features = behaviour_files.text_of(metadata, "features", path)
    kind = behaviour_files.text_of(metadata, "average", path)
    if features not in deep_config.FEATURES or kind not in (_NETWORK, _ENSEMBLE):
        raise corrupt(
            f"its average has the unknown kind {kind!r} or features {features!r}"
        )
    shape = _shape(metadata.get("shape"))
    if shape is None:
        raise corrupt(
            f"its networks have the shape {metadata.get('shape')!r}, which is invalid"
        )
    for name, leaf in arrays.items():
        is_finite = leaf.dtype == np.float32 and np.isfinite(leaf).all()
        if name.startswith("player") and not is_finite:
            raise corrupt(f"{name} contains values that are not finite float32 numbers")
    first, second = (numbered(arrays, f"player{player}_") for player in range(2))
    if kind == _NETWORK:
        # Older files have no arrays of a player without visits.
        nothing = [np.zeros_like(leaf) for leaf in first or second]
        leaves = first or nothing, second or nothing
        average = Networks.single(shape, features, leaves)
    else:
        fallback = behaviour_files.text_of(metadata, "fallback", path)
        if fallback not in deep_config.FALLBACK:
            raise corrupt(f"its fallback is {fallback!r}")
        weights = [arrays.get(f"weights{p}", np.zeros(0)) for p in range(2)]
        for player, weight in enumerate(weights):
            counts = {len(leaf) for leaf in (first, second)[player]}
            fits = weight.dtype == np.float64 and counts == {weight.size}
            # The comparisons are false for NaN.
            if not (fits and (weight >= 0).all() and 0 < weight.sum() < math.inf):
                raise corrupt(
                    f"weights of player {player}'s iterates are missing or wrong"
                )
        both = weights[0], weights[1]
        average = Networks(shape, features, fallback, (first, second), both)
    try:
        average.check()
    except ValueError as error:
        raise corrupt(error) from error
    return named, average


def _shape(fields: Any) -> PerceptronShape | None:
    """Return a shape from a file, or None if it is invalid."""
    if not isinstance(fields, dict) or set(fields) != set(PerceptronShape._fields):
        return None
    numbers = [fields[name] for name in PerceptronShape._fields]
    if not all(type(number) is int and number > 0 for number in numbers):
        return None
    shape = PerceptronShape(*numbers)
    fits = max(shape.hidden, shape.actions) <= deep_config.MOST_UNITS
    return shape if fits and shape.layers <= deep_config.MOST_LAYERS else None
