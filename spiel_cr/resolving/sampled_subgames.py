"""Subgames of a layer as padded tables for sampling solvers.

A `SampledLayer` sorts the histories of a layer by subgame once. When a match reaches a
subgame, its tables are built (`subgame_sampling.SubgameTree`) and completed with the
values of the match: the player's reach of the roots and the opponent's values at its
augmented infosets. The cost of a solve depends only on the subgame's shape. All
subgames of a layer have one shape, and small layers share the shape of the layer above,
because each shape requires one compilation.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from spiel_cr.common.arrays import Groups, ranges
from spiel_cr.common.jax_utils import spread
from spiel_cr.common.pairs import map_pair
from spiel_cr.games.histories import CHANCE
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.resolving import subgame_sampling
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.layer_subgames import Subgame, or_ones
from spiel_cr.resolving.subgame_sampling import SubgameTree
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.cfr.solver import Solver, SolverFunctions
from spiel_cr.solvers.mccfr.sample_tree import SampleLevel, balance

_DTYPE = np.float32
# A layer shares the shape of the layer above if that shape has at most this number of
# histories (then tables cost less than trajectories), or is at most this many times as
# large as its own.
_SMALL_HISTORIES = 4096
_SMALL_RATIO = 4
# Maximum size in bytes of the cached tables of a layer.
_KEPT_BYTES = 1 << 26


class SubgameShape(NamedTuple):
    """Sizes of a `SubgameTree`, and the number of depths of its random points.

    The first four sizes include one entry for "none".

    Attributes:
      histories: Number of histories, N.
      rows: Number of table rows, R.
      roots: Number of roots, K.
      below: Number of augmented infosets of the next layer, G.
      width: Largest number of actions or outcomes, A.
      depths: Largest number of actions from a root to the end, D.
    """

    histories: int
    rows: int
    roots: int
    below: int
    width: int
    depths: int

    def join(self, other: "SubgameShape") -> "SubgameShape":
        """Return the smallest shape in which both fit."""
        return SubgameShape(*map(max, self, other))


class SubgameSampler(Solver):
    """Solver of one subgame by sampling.

    Only i's average strategy and o's values below the subgame can be read.
    """

    def __init__(
        self,
        decomposition: Decomposition,
        subgame: Subgame,
        problem: subgame_sampling.SubgameProblem,
        state: Any,
        config: MCCFRConfig,
        unit: float,
    ) -> None:
        """Put the tables of a subgame on the device, and compile the function.

        Args:
          decomposition: Layers of the game.
          subgame: The subgame.
          problem: Its tables.
          state: The initial state.
          config: Settings of the sampler.
          unit: Factor from the values of the state to counterfactual values in the
            game's units.
        """
        run = subgame_sampling.jitted_run()
        functions = SolverFunctions(run, config, np.dtype(_DTYPE))
        super().__init__(decomposition.tree.sequence_form, problem, state, functions)
        self._actions = decomposition.decisions.num_actions[subgame.infosets]
        self._below, self._unit = len(subgame.next_augmented), unit

    def average_behaviour(
        self, player: int, dtype: np.typing.DTypeLike = np.float64
    ) -> np.ndarray:
        """Return i's average strategy in the subgame, [1 + sum of actions]."""
        average = np.asarray(self.state.average, dtype)
        average = np.maximum(average[:, : len(self._actions)], 0)
        legal = np.arange(len(average))[:, None] < self._actions[None]
        # Infosets that sampling has not visited are uniform.
        average += legal * (average.sum(axis=0) == 0)
        average /= average.sum(axis=0)
        return np.append(1.0, average.T[legal.T])

    def infoset_values(self, player: int) -> np.ndarray:
        """Return o's mean values under the iterates at the next augmented infosets.

        Returns:
          Counterfactual values in o's utility and in the game's units, in the order of
          `Subgame.next_augmented`, float64 [n].
        """
        return self._unit * np.asarray(self.state.values, np.float64)[: self._below]


class _SharedTables(NamedTuple):
    """Data of the game that all layers share; N histories.

    Attributes:
      decomposition: Layers and subgames.
      config: Settings of the sampler.
      counts: Number of children of each history, int64 [N].
      first: First child of each history, int64 [N]; meaningless at terminals.
      augmented: o's augmented infoset at roots of layers, int32 [N]; -1 elsewhere.
      explore: Strategy of each player with which trajectories explore, float64 [S].
      scale: Largest absolute utility, by which utilities are divided; 1 if all are 0.
    """

    decomposition: Decomposition
    config: MCCFRConfig
    counts: np.ndarray
    first: np.ndarray
    augmented: np.ndarray
    explore: tuple[np.ndarray, np.ndarray]
    scale: float

    @classmethod
    def of(cls, decomposition: Decomposition, config: MCCFRConfig) -> "_SharedTables":
        histories = decomposition.tree.histories
        augmented = np.full(len(histories), -1, np.int32)
        augmented[decomposition.roots] = decomposition.root_augmented
        explore = balance if config.explore == "balanced" else uniform_behaviour
        return cls(
            decomposition,
            config,
            counts=np.bincount(histories.parent[1:], minlength=len(histories)),
            first=np.searchsorted(histories.parent, np.arange(len(histories))),
            augmented=augmented,
            explore=map_pair(explore, decomposition.tree.decisions),
            scale=float(np.abs(histories.utility).max(initial=0)) or 1.0,
        )


class SampledLayer:
    """Subgames of one layer for sampling solvers.

    Attributes:
      shape: Shape in which each of the subgames fits.
    """

    def __init__(self, shared: _SharedTables, number: int) -> None:
        """Assign histories to subgames.

        Args:
          shared: Data of the game.
          number: Number of the layer, from 1. Layer 1 is one subgame, the complete game
            without gadget, which has the number 0.
        """
        self._shared, self._number = shared, number
        d = self._d = shared.decomposition
        self._is_root = np.zeros(len(d.tree.histories), bool)
        self._is_root[d.roots_of(number)] = True
        label, self._moves = self._label()
        self._groups = Groups(label)
        levels = d.tree.infosets[d.player].decisions.levels()
        below = levels[d.player_layer >= number]
        self._levels = 1 + int(below.max() - below.min())
        self.shape = self._shape(label)
        self._kept_trees: dict[int, SubgameTree] = {}

    def solve(
        self,
        number: int,
        subgame: Subgame,
        player_reach: np.ndarray,
        opponent_values: np.ndarray,
        *,
        target: int | None,
        seed: int,
    ) -> SubgameSampler:
        """Prepare a solve of one subgame, with the values of a match.

        Args:
          number: Number of the subgame.
          subgame: The same subgame, from the `Layer` of this layer.
          player_reach: Average reach of i at the subgame's roots, float64 [r]. If it is
            zero throughout, all roots have equal weight.
          opponent_values: o's counterfactual values at its augmented infosets, float64
            [g].
          target: i's infoset, among the roots, that trajectories are targeted at; -1:
            no infoset of this subgame. None: no targeting.
          seed: Seed for all random choices.
        """
        tree = self._tables(number, subgame)
        nodes = self._groups.of(number)
        tree, mass = self._fill(tree, nodes, subgame, player_reach, opponent_values)
        if target is not None:
            # Without an infoset, too: a mask of a match must not cause a compilation.
            infosets = self._d.tree.histories.infoset[nodes[self._starts(nodes)]]
            is_target = (infosets == target) & (target >= 0)
            mask = _padded(is_target, self.shape.roots, 0, bool)
            tree = tree._replace(target=mask)  # type: ignore[arg-type]
        shape, config = self.shape, self._shared.config
        problem = subgame_sampling.SubgameProblem(
            tree, _points(shape.depths + 1, config.batch)
        )
        state: Any = subgame_sampling.init(tree, shape.below, config, seed=seed)
        unit = mass * self._shared.scale
        return SubgameSampler(self._d, subgame, problem, state, config, unit)

    def _tables(self, number: int, subgame: Subgame) -> SubgameTree:
        """Return the tables of a subgame; recent ones are cached up to a size limit."""
        tree = self._kept_trees.pop(number, None)
        if tree is None:
            tree = self._cut(number, subgame)
        self._kept_trees[number] = tree
        # All have one shape.
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
        while len(self._kept_trees) > max(1, _KEPT_BYTES // size):
            del self._kept_trees[next(iter(self._kept_trees))]
        return tree

    def _label(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where each history is in this layer.

        Returns:
          The subgame of each history, int32 [N], -1 above the layer; and the number of
          moves since its root, int32 [N].
        """
        d, histories = self._d, self._d.tree.histories
        label = np.full(len(histories), -1, np.int32)
        moves = np.zeros(len(histories), np.int32)
        if self._number == 1:
            label[0] = 0
        else:
            roots = np.flatnonzero(self._is_root)
            label[roots] = d.augmented_subgame[self._shared.augmented[roots]]
        for level in histories.by_depth[1:]:
            parent = histories.parent[level]
            below = label[parent] >= 0
            label[level] = np.where(below, label[parent], label[level])
            moves[level] = np.where(below, moves[parent] + 1, 0)
        return label, moves

    def _shape(self, label: np.ndarray) -> SubgameShape:
        """Return the smallest shape for all subgames."""
        d, histories = self._d, self._d.tree.histories
        inside = label >= 0

        def most(labels: np.ndarray) -> int:
            return int(np.bincount(labels[labels >= 0]).max(initial=0))

        further = np.isin(np.arange(len(histories)), d.roots_of(self._number + 1))
        _, first = np.unique(self._shared.augmented[further], return_index=True)
        rows = [label[infosets.history] for infosets in d.tree.infosets]
        rows.append(label[histories.player == CHANCE])
        if self._number > 1:
            augmented = np.unique(self._shared.augmented[self._is_root])
            rows.append(d.augmented_subgame[augmented])
        return SubgameShape(
            histories=most(label) + 1,
            rows=most(np.concatenate(rows)) + 1,
            roots=most(label[self._is_root]) + 1,
            below=most(label[further][first]) + 1,
            width=max(2, int(self._shared.counts[inside].max(initial=0))),
            depths=int(self._moves[inside].max(initial=0)),
        )

    def _cut(self, number: int, subgame: Subgame) -> SubgameTree:
        """Return the tables of a subgame without the values of a match, in numpy."""
        d, histories, shape = self._d, self._d.tree.histories, self.shape
        nodes = self._groups.of(number)
        counts, player = self._shared.counts[nodes], histories.player[nodes]
        player = np.where(player == CHANCE, 2, np.where(counts == 0, 3, player))
        first = np.searchsorted(nodes, self._shared.first[nodes])
        first = np.where(counts > 0, first, shape.histories - 1)
        row = np.full(len(nodes), shape.rows - 1)
        owner = np.full(shape.rows, 2)
        uniform, explore = np.zeros((2, shape.width, shape.rows), _DTYPE)
        begin = 0
        for p in (d.player, 1 - d.player):
            histories_of = np.flatnonzero(player == p)
            infosets, place = np.unique(
                histories.infoset[nodes[histories_of]], return_inverse=True
            )
            row[histories_of] = begin + place
            decisions = d.tree.infosets[p].decisions
            rows = slice(begin, begin + len(infosets))
            owner[rows] = p
            entry, action = _entries(decisions.num_actions[infosets])
            sequences = decisions.first_sequence[infosets][entry] + action
            uniform[action, begin + entry] = 1 / decisions.num_actions[infosets][entry]
            explore[action, begin + entry] = self._shared.explore[p][sequences]
            begin += len(infosets)
        gadgets = begin
        if len(subgame.augmented):
            begin += len(subgame.augmented)
            owner[gadgets:begin] = 1 - d.player
            uniform[:2, gadgets:begin] = explore[:2, gadgets:begin] = 0.5
        at_chance = np.flatnonzero(player == 2)
        row[at_chance] = begin + np.arange(len(at_chance))
        entry, action = _entries(counts[at_chance])
        outcomes = histories.chance[
            self._shared.first[nodes[at_chance]][entry] + action
        ]
        total = np.bincount(entry, outcomes, minlength=len(at_chance))
        uniform[action, begin + entry] = outcomes / total[entry]
        n, last = shape.histories, shape.rows - 1
        utility = histories.utility[nodes] / self._shared.scale
        to_fill: Any = np.zeros(shape.roots, _DTYPE)
        level: tuple[Any, ...] = (
            _padded(first, n, n - 1),
            _padded(row, n, last),
            _padded(counts, n, 0),
            _padded(player, n, 3),
            _padded(utility, n, 0, _DTYPE),
        )
        columns: dict[str, Any] = {
            "level": SampleLevel(*level),
            "next_augmented": _padded(
                self._next_augmented(nodes, subgame), n, shape.below - 1
            ),
            "owner": owner.astype(np.int32),
            "uniform": uniform,
            "explore": explore,
            "parent": _padded(
                self._parents(subgame), shape.rows, shape.width * shape.rows
            ),
            "root": _padded(np.flatnonzero(self._starts(nodes)), shape.roots, n - 1),
            "gadget": _padded(self._gadget(nodes, subgame, gadgets), shape.roots, last),
            "share": to_fill,
            "terminate": to_fill,
            "resolving": np.int32(d.player),
            "depths": np.int32(self._moves[nodes].max()),
            "levels": np.int32(self._levels),
            "target": None,
        }
        return SubgameTree(**columns)

    def _starts(self, nodes: np.ndarray) -> np.ndarray:
        """Return where trajectories start, bool [n]."""
        return nodes == 0 if self._number == 1 else self._is_root[nodes]

    def _gadget(self, nodes: np.ndarray, subgame: Subgame, first: int) -> np.ndarray:
        """Return the row of each root's augmented infoset, int32 [k]."""
        if self._number == 1:
            return np.array([self.shape.rows - 1])
        augmented = self._shared.augmented[nodes[self._is_root[nodes]]]
        return first + np.searchsorted(subgame.augmented, augmented)

    def _next_augmented(self, nodes: np.ndarray, subgame: Subgame) -> np.ndarray:
        """Return the next layer's augmented infoset of each history, int64 [n]."""
        d = self._d
        augmented = self._shared.augmented[nodes]
        further = (augmented >= 0) & (d.layer[nodes] == self._number + 1)
        place = np.searchsorted(subgame.next_augmented, augmented)
        return np.where(further, place, self.shape.below - 1)

    def _parents(self, subgame: Subgame) -> np.ndarray:
        """Return i's last table entry before each of its infosets, int64 [m].

        `SubgameTree.parent` describes the entries.
        """
        decisions = self._d.tree.infosets[self._d.player].decisions
        shape, sequence = self.shape, decisions.parent[subgame.infosets]
        above = decisions.owner[sequence]
        place = np.searchsorted(subgame.infosets, above)
        inside = (sequence > 0) & np.isin(above, subgame.infosets)
        entry = (sequence - decisions.first_sequence[above]) * shape.rows + place
        return np.where(inside, entry, shape.width * shape.rows)

    def _fill(
        self,
        tree: SubgameTree,
        nodes: np.ndarray,
        subgame: Subgame,
        player_reach: np.ndarray,
        opponent_values: np.ndarray,
    ) -> tuple[SubgameTree, float]:
        """Add the values of a match to the tables.

        Args:
          tree: Tables of the subgame.
          nodes: Histories of the subgame, int64 [n].
          subgame: The subgame.
          player_reach: Average reach of i at the subgame's roots, float64 [r].
          opponent_values: Counterfactual values of o at the subgame's augmented
            infosets, float64 [g].

        Returns:
          The tables, and the total reach of all roots by chance and i.
        """
        share = np.zeros(self.shape.roots, _DTYPE)
        terminate = np.zeros(self.shape.roots, _DTYPE)
        if self._number == 1:
            share[0] = 1
            return tree._replace(share=share, terminate=terminate), 1.0  # type: ignore[arg-type]
        histories = self._d.tree.histories
        roots = nodes[self._is_root[nodes]]
        opening = np.searchsorted(subgame.roots, histories.infoset[roots])
        reach = histories.chance[roots] * or_ones(player_reach)[opening]
        group = np.searchsorted(subgame.augmented, self._shared.augmented[roots])
        arrive = np.bincount(group, reach, minlength=len(subgame.augmented))
        # A subgame that i never reaches needs no solution.
        values = opponent_values / np.where(arrive > 0, arrive, 1) * (arrive > 0)
        sign = 1.0 if self._d.player == 1 else -1.0
        mass = float(reach.sum())
        share[: len(roots)] = reach / mass
        terminate[: len(roots)] = sign * values[group] / self._shared.scale
        return tree._replace(share=share, terminate=terminate), mass  # type: ignore[arg-type]


def sampled_layers(
    decomposition: Decomposition, config: MCCFRConfig
) -> Sequence[SampledLayer]:
    """Return all layers of a player, from the first, in as few shapes as useful.

    Args:
      decomposition: Result of `decompose`.
      config: Settings of the solves.
    """
    shared = _SharedTables.of(decomposition, config)
    layers = [SampledLayer(shared, k + 1) for k in range(decomposition.num_layers)]
    for members in _together([layer.shape for layer in layers]):
        shape = functools.reduce(SubgameShape.join, [layers[k].shape for k in members])
        for k in members:
            layers[k].shape = shape
    return layers


def _together(shapes: Sequence[SubgameShape]) -> Iterator[list[int]]:
    """Yield lists of layer numbers, from the top, that share a compiled function."""
    group: list[int] = []
    for k, shape in enumerate(shapes):
        if group:
            largest = max(shapes[j].histories for j in group)
            enough = max(_SMALL_HISTORIES, _SMALL_RATIO * shape.histories)
            if largest > enough:
                yield group
                group = []
        group.append(k)
    if group:
        yield group


def _entries(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """List the actions of rows; return the row and the number of each, int64.

    Args:
      counts: Number of actions of each row, int [n].
    """
    return np.repeat(np.arange(len(counts)), counts), ranges(0, counts)


def _padded(
    values: np.ndarray, size: int, padding: int, dtype: Any = np.int32
) -> np.ndarray:
    """Return values [n], followed by padding, as an array [size]."""
    rest = np.full(size - len(values), padding)
    return np.concatenate([values, rest]).astype(dtype)


@functools.lru_cache(maxsize=16)
def _points(rows: int, batch: int) -> jax.Array:
    """Return `SubgameProblem.points` on the device, float32 [rows, B]."""
    return jax.numpy.asarray(spread(rows, batch), _DTYPE)
