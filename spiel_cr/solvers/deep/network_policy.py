"""Average strategies of networks as OpenSpiel policies, and in files.

A policy looks at the tensors of the player who acts, and, where it is a bank of
iterates, at what that player did before: the mixture of iterates that are drawn once
per match plays, at an infoset, each iterate in proportion to its weight times its own
reach (Steinberger 2019).
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
from spiel_cr.solvers.deep.averages import SOFTMAX, Networks
from spiel_cr.solvers.deep.outputs import Shape, regret_matching, softmax

# What files say that they hold.
KIND = "deep policy"
_NETWORK, _BANK = "network", "bank"
# Bytes of iterates' strategies that are remembered, and of finished ones.
_REMEMBERED = 64e6


class DeepPolicy(StatePolicy):
    """What networks play, for both players.

    Attributes:
      average: the networks.
    """

    def __init__(self, game: pyspiel.Game, average: Networks):
        """Puts the networks together.

        Args:
          game: a sequential game.
          average: from `solver.DeepSolver.average`.

        Raises:
          ValueError: the networks are of another game, or a bank's iterates are tables
            of a compiled game.
          ImportError: optax is missing.
        """
        super().__init__(game)
        shape = average.shape
        if shape is None:
            raise ValueError(
                f"average: iterates of {game} are tables, not networks; take the "
                f"policy of the compiled game"
            )
        wanted = feature_count(game, average.features), game.num_distinct_actions()
        if (shape.features, shape.actions) != wanted:
            raise ValueError(
                f"average: its networks see {shape.features} numbers and have "
                f"{shape.actions} actions, and {game} has {wanted[0]} and {wanted[1]}; "
                f"give the game that they were made for"
            )
        self.average = average
        self._shape = shape
        average.check()
        # By player, with an axis [T] in front.
        self._networks = [networks.assembled(leaves) for leaves in average.leaves]
        self._known: OrderedDict[tuple[int, str], np.ndarray] = OrderedDict()
        self._finished: OrderedDict[tuple[int, str], np.ndarray] = OrderedDict()

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`."""
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
            "average": _NETWORK if single else _BANK,
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
        """What networks play at states of batched rules.

        Args:
          rules: of the game; must give the tensors that the networks see.
          states: [n, ...], of these rules, where the player acts.
          player: who acts.

        Returns:
          float64 [n, A], by OpenSpiel's actions.

        Raises:
          ValueError: the rules make no such tensors; or the policy is a bank, whose
            mixture depends on what was played before.
        """
        self.check_arrays(rules)
        read = getattr(rules, f"{self.average.features}_tensor")
        legal = rules.legal_actions_mask(states)[:, : self._shape.actions]
        missing = self._shape.actions - legal.shape[1]
        legal = np.pad(legal, ((0, 0), (0, missing))) if missing else legal
        return self.strategies(read(states, player), legal, player)[0]

    def check_arrays(self, rules: BatchedRules) -> None:
        """Refuses batched rules whose states networks cannot be asked for.

        Args:
          rules: of the game.

        Raises:
          ValueError: as `array_probabilities`.
        """
        if not callable(getattr(rules, f"{self.average.features}_tensor", None)):
            raise ValueError(
                f"the networks of {self.game} see {self.average.features} tensors, "
                f"which its batched rules do not make; ask state by state"
            )
        if self.average.rule != SOFTMAX:
            raise ValueError(
                f"a bank's mixture depends on what was played before, so that of "
                f"{self.game} cannot be asked for arrays of states; train with "
                f"averaging=network"
            )

    def compile_for(self, most: int, seconds: float) -> None:
        """Compiles what answers about up to so many positions at once need.

        A player under a clock has this done before its first match: there is a program
        for each padded number of positions.

        Args:
          most: positions.
          seconds: numbers of them that take longer are left out, but for the first.
        """
        size, taken = networks.LEAST_ROWS, 0.0
        while taken <= seconds:
            seen = np.zeros((size, self._shape.features), np.float32)
            legal = np.ones((size, self._shape.actions), bool)
            self.strategies(seen, legal, 0)
            each = []
            for _ in range(2):
                start = time.perf_counter()
                self.strategies(seen, legal, 0)
                each.append(time.perf_counter() - start)
            taken = min(each)
            if size >= most:
                return
            size *= 2

    def strategies(
        self, features: np.ndarray, legal: np.ndarray, player: int
    ) -> np.ndarray:
        """What all iterates play, many positions at a time.

        Args:
          features: [m, F], tensors of the player who acts.
          legal: bool [m, A], its legal actions.
          player: who acts.

        Returns:
          float64 [T, m, A]; T is 1 where there is one network.
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
        # Iterates that are all zeros: before the first fit.
        fitted = [
            leaf.reshape(len(leaf), -1).any(axis=1)
            for leaf in self.average.leaves[player]
        ]
        blank = np.flatnonzero(~np.any(fitted, axis=0))
        played[blank] = legal / legal.sum(axis=1)[:, None]
        return played

    def _of_iterates(
        self, states: Sequence[pyspiel.State], player: int
    ) -> list[np.ndarray]:
        """float64 [T, A] for each state, where the player acts."""
        keys = [(player, state.information_state_string(player)) for state in states]
        cached = {key: self._known[key] for key in keys if key in self._known}
        uncached = {
            key: state
            for key, state in zip(keys, states, strict=True)
            if key not in cached
        }
        if uncached:
            name = f"{self.average.features}_tensor"
            features = np.array(
                [getattr(state, name)(player) for state in uncached.values()],
                np.float32,
            )
            legal = np.zeros((len(uncached), self._shape.actions), bool)
            for row, state in zip(legal, uncached.values(), strict=True):
                row[state.legal_actions()] = True
            strategies = self.strategies(features, legal, player)
            for place, key in enumerate(uncached):
                cached[key] = strategies[:, place]
                _remember(self._known, key, cached[key])
        return [cached[key] for key in keys]

    def _posterior(self, state: pyspiel.State, player: int) -> np.ndarray:
        """float64 [T], how likely each iterate is in a match that came here.

        By its weight alone where all have ruled out what the player did.
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
    """A player's decisions before a state, with more than one action, and its moves."""
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
    """Keeps a value, and forgets the oldest ones beyond so many bytes."""
    kept[key] = value
    while len(kept) > 1 and len(kept) * (value.nbytes + 200) > _REMEMBERED:
        kept.popitem(last=False)


def _by_action(state: pyspiel.State, strategy: np.ndarray) -> dict[int, float]:
    legal = sorted(state.legal_actions())
    probabilities = strategy[legal]
    return dict(zip(legal, (probabilities / probabilities.sum()).tolist(), strict=True))


# float32 [T, n, A], of T networks at once.
_outputs = jax.jit(jax.vmap(networks.outputs, in_axes=(0, None)))


def check_file(path: atomic.Path) -> None:
    """Refuses what `load_deep_policy` refuses whatever the game.

    Args:
      path: the file.

    Raises:
      OSError, CorruptFileError, ValueError: as `load_deep_policy`.
    """
    _read(path)


def load_deep_policy(
    path: atomic.Path, game: str | pyspiel.Game | None = None
) -> DeepPolicy:
    """Reads a policy of networks.

    Args:
      path: Path of a file that `DeepPolicy.save` or `Result.save` wrote.
      game: the game it must be for; None: the one named in the file.

    Raises:
      OSError: there is no such file, or it cannot be read.
      CorruptFileError: the file is no file of ours, was changed since, or its arrays
        are not of such networks.
      ValueError: the file holds no such policy, or one for another game; or OpenSpiel
        cannot load its game by name.
      ImportError: optax is missing.
    """
    named, average = _read(path)
    loaded = (
        behaviour_files.named_game(named, path)
        if game is None
        else open_game(game).game
    )
    if str(loaded) != named:
        file_game = open_game(named).game
        check_same_decisions(f"{path}: a policy", file_game, loaded)
    try:
        return DeepPolicy(loaded, average)
    except ValueError as error:
        raise behaviour_files.damaged(path, error) from error


def _read(path: atomic.Path) -> tuple[str, Networks]:
    """The game's name and the networks; nothing is put together."""
    metadata = behaviour_files.read_metadata(path)
    if metadata.get("kind") != KIND:
        raise ValueError(
            f"path={os.fspath(path)!r} holds a "
            f"{metadata.get('kind', 'file of another kind')}, not a policy of "
            f"networks; a strategy in numbers is played by policy(path=...)"
        )
    arrays, metadata = storage.load(path)
    damaged = functools.partial(behaviour_files.damaged, path)
    named = behaviour_files.text_of(metadata, "game", path)
    features = behaviour_files.text_of(metadata, "features", path)
    kind = behaviour_files.text_of(metadata, "average", path)
    if features not in deep_config.FEATURES or kind not in (_NETWORK, _BANK):
        raise damaged(f"it has an average of the kind {kind!r}, of {features!r}")
    shape = _shape(metadata.get("shape"))
    if shape is None:
        raise damaged(f"its networks have the shape {metadata.get('shape')!r}")
    leaves: list[list[np.ndarray]] = []
    for player in range(2):
        player_leaves: list[np.ndarray] = []
        while (name := f"player{player}_{len(player_leaves)}") in arrays:
            player_leaves.append(arrays[name])
            if (
                player_leaves[-1].dtype != np.float32
                or not np.isfinite(player_leaves[-1]).all()
            ):
                raise damaged(f"{name} has numbers that are none of a network")
        leaves.append(player_leaves)
    if kind == _NETWORK:
        # Of who was never met there are no arrays in older files.
        nothing = [np.zeros_like(leaf) for leaf in leaves[0] or leaves[1]]
        average = Networks.single(
            shape, features, [player_leaves or nothing for player_leaves in leaves]
        )
    else:
        fallback = behaviour_files.text_of(metadata, "fallback", path)
        if fallback not in deep_config.FALLBACK:
            raise damaged(f"its fallback is {fallback!r}")
        weights: list[np.ndarray] = []
        for player, player_leaves in enumerate(leaves):
            weight = arrays.get(f"weights{player}", np.zeros(0))
            fits = weight.dtype == np.float64 and weight.ndim == 1
            # Written so that NaN fails.
            fits = fits and bool((weight >= 0).all()) and 0 < weight.sum() < math.inf
            if (
                not fits
                or not player_leaves
                or any(len(leaf) != len(weight) for leaf in player_leaves)
            ):
                raise damaged(
                    f"weights of player {player}'s iterates are missing or wrong"
                )
            weights.append(weight)
        average = Networks(
            *(shape, features, fallback),
            (leaves[0], leaves[1]),
            (weights[0], weights[1]),
        )
    try:
        average.check()
    except ValueError as error:
        raise damaged(error) from error
    return named, average


def _shape(fields: Any) -> Shape | None:
    """A shape from a file; None: it is none."""
    if not isinstance(fields, dict) or set(fields) != set(Shape._fields):
        return None
    numbers = [fields[name] for name in Shape._fields]
    if not all(type(number) is int and number > 0 for number in numbers):
        return None
    shape = Shape(*numbers)
    fits = max(shape.hidden, shape.actions) <= deep_config.MOST_UNITS
    return shape if fits and shape.layers <= deep_config.MOST_LAYERS else None
