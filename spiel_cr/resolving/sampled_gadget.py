"""A layer's gadget games as histories, for sampled solvers.

Chance first chooses an augmented infoset of the layer, in proportion to the reach of
its roots by the player and chance; there the opponent terminates or follows; after
*follow* chance chooses a root. Every trajectory follows both of the opponent's choices
(`branch`), or sampling would hardly ever learn the one that is not taken. All subgames
of the layer stand side by side, so one program serves all; a match makes the augmented
infosets of its own subgame likely, and all others impossible. Aimed trajectories end at
*terminate* too.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from spiel_cr.cfr.config import MCCFRConfig
from spiel_cr.cfr.solver import Solver
from spiel_cr.common.arrays import ranges
from spiel_cr.compilation.tree import (
    CHANCE,
    TERMINAL,
    CompiledGame,
    Histories,
    Infosets,
)
from spiel_cr.mccfr import mccfr, sample_tree
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.gadget import Forest, build_forest
from spiel_cr.resolving.subgame_games import Subgame, or_ones


class _Level(NamedTuple):
    """The histories of one depth on the way down.

    Attributes:
      source: int64 [n], histories of the whole game; -1 at the gadget's own.
      parent: int64 [n], index in the level above.
      chance: float64 [n], chance's share from the root.
    """

    source: np.ndarray
    parent: np.ndarray
    chance: np.ndarray


def gadget_histories(
    decomposition: Decomposition, number: int
) -> tuple[CompiledGame, np.ndarray]:
    """The histories of a layer's gadget games, by chance alone; terminating pays 0.

    Args:
      decomposition: from `decompose`.
      number: the layer, from 2.

    Returns:
      The gadget games as one compiled game, whose infosets have no strings: those of
      the forest (`build_forest`); and bool [N], the opponent's choices between
      terminating (first) and following. The root's children are the augmented infosets,
      in the forest's order; three levels below it are the roots, by augmented infoset.
    """
    d, histories = decomposition, decomposition.tree.histories
    ones = np.ones(d.tree.infosets[d.player].decisions.num_sequences)
    # What terminating is worth is not known yet. Zeros: any other number would enter
    # the tolerances of regrets, whatever the game's payoffs are.
    forest = build_forest(d, number, ones, np.zeros(len(d.augmented_layer)))
    count = len(forest.augmented)
    place = np.full(len(d.augmented_layer), -1, np.int64)
    place[forest.augmented] = np.arange(count)
    mine = np.flatnonzero(d.augmented_layer[d.root_augmented] == number)
    mine = mine[np.argsort(place[d.root_augmented[mine]], kind="stable")]
    roots, owner = d.roots[mine], place[d.root_augmented[mine]]
    share = histories.chance[roots] / histories.chance[roots].sum()
    arrive = np.bincount(owner, share, minlength=count)
    nothing = np.full(2 * count, -1)
    levels = [
        _Level(nothing[:1], nothing[:1], np.ones(1)),
        _Level(nothing[:count], np.zeros(count, np.int64), arrive),
        _Level(nothing, np.repeat(np.arange(count), 2), np.repeat(arrive, 2)),
        _Level(roots, 1 + 2 * owner, share),
    ]
    num_children = np.bincount(histories.parent[1:], minlength=len(histories))
    first = np.searchsorted(histories.parent, np.arange(len(histories)))
    while num_children[levels[-1].source].any():
        above = levels[-1]
        counts = num_children[above.source]
        parent = np.repeat(np.arange(len(counts)), counts)
        source = ranges(first[above.source], counts)
        ratio = histories.chance[source] / histories.chance[above.source[parent]]
        levels.append(_Level(source, parent, above.chance[parent] * ratio))
    arrays = _join(d, forest, levels)
    infosets = [
        Infosets(
            keys=(),
            decisions=decisions,
            actions=np.zeros(decisions.num_sequences - 1, np.int32),
            history=np.zeros(len(decisions), np.int32),
        )
        for decisions in forest.decisions
    ]
    branch = np.zeros(len(arrays), bool)
    branch[1 : 1 + count] = True
    compiled = CompiledGame(
        d.tree.game, arrays, (infosets[0], infosets[1]), forest.form
    )
    return compiled, branch


def _join(d: Decomposition, forest: Forest, levels: list[_Level]) -> Histories:
    """All levels as the histories of one game."""
    histories, count = d.tree.histories, len(forest.augmented)
    sizes = np.array([len(level.source) for level in levels])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    source, parent, chance = (np.concatenate(c) for c in zip(*levels, strict=True))
    parent += np.repeat(starts[:-1] - np.append(0, sizes[:-1]), sizes)
    parent[0] = -1
    real = source >= 0
    player = np.where(real, histories.player[source], CHANCE).astype(np.int8)
    player[1 : 1 + count] = 1 - d.player
    player[1 + count : 1 + 3 * count : 2] = TERMINAL
    infoset = np.full(len(source), -1, np.int32)
    infoset[1 : 1 + count] = np.arange(count)
    for p, numbers, before in (
        (d.player, forest.own, 0),
        (1 - d.player, forest.other, count),
    ):
        local = np.full(len(d.tree.infosets[p]), -1, np.int32)
        local[numbers] = before + np.arange(len(numbers))
        acts = real & (player == p)
        infoset[acts] = local[histories.infoset[source[acts]]]
    return Histories(
        parent=parent.astype(np.int32),
        action=np.full(len(source), -1, np.int32),
        player=player,
        infoset=infoset,
        observations=None,
        # Nobody who samples asks for the last sequences.
        sequence=np.zeros((2, len(source)), np.int32),
        chance=chance,
        utility=np.where(real, histories.utility[source], 0.0),
        level_start=starts,
    )


@dataclasses.dataclass(frozen=True)
class SampledLayer:
    """A layer that sampled solvers solve, one subgame at a time.

    Attributes:
      player: i, the resolving player.
      tree: the layer's gadget games, or the whole game for layer 1.
      samples: its histories as solvers take them, by chance alone.
      plan: their shapes.
      augmented: int32 [g], all augmented infosets of the layer; empty for layer 1.
      mass: chance's reach of all roots of the layer.
    """

    player: int
    tree: CompiledGame
    samples: sample_tree.SampleTree
    plan: sample_tree.Plan
    augmented: np.ndarray
    mass: float

    @classmethod
    def of(cls, decomposition: Decomposition, number: int) -> "SampledLayer":
        """Lays out a layer, from 1."""
        d, tree, branch = decomposition, decomposition.tree, None
        augmented = np.flatnonzero((d.augmented_layer == number) & (number > 1))
        if number > 1:
            tree, branch = gadget_histories(d, number)
        everywhere: np.ndarray = np.ones(len(tree.histories), bool)
        samples, plan = sample_tree.build(tree, target=everywhere, branch=branch)
        roots = d.roots[d.layer[d.roots] == number]
        mass = float(d.tree.histories.chance[roots].sum())
        return cls(d.player, tree, samples, plan, augmented, mass)

    def solver(
        self,
        subgame: Subgame,
        own_reach: np.ndarray,
        opponent_values: np.ndarray,
        config: MCCFRConfig,
        *,
        infosets: np.ndarray | None,
        seed: int,
    ) -> Solver:
        """A solver of one subgame.

        Args:
          subgame: the subgame.
          own_reach: float64 [r], i's average reach of the subgame's roots.
          opponent_values: float64 [g of the subgame], o's counterfactual values at its
            augmented infosets.
          config: sampled algorithm; a share `delta` of the trajectories is led to
            `infosets`.
          infosets: int [k], i's infosets in the forest to aim at; None: anywhere.
          seed: of all random numbers.
        """
        samples, count = self.samples, len(self.augmented)
        if infosets is not None:
            histories = self.tree.histories
            wanted = np.isin(histories.infoset, infosets)
            wanted &= histories.player == self.player
            samples = sample_tree.retarget(samples, self.tree, wanted)
            if count:
                # What terminating is worth is learned on the way, too.
                allowed = np.array(samples.levels[2].target)
                allowed[0 : 2 * count : 2] = np.array(samples.levels[1].target)[:count]
                samples = _replace_terminate(samples, target=allowed)
        if count:
            samples = self._fill(samples, subgame, own_reach, opponent_values)
        layout = samples, self.plan
        return mccfr.make_solver(self.tree, config=config, seed=seed, layout=layout)

    def _fill(
        self,
        samples: sample_tree.SampleTree,
        subgame: Subgame,
        own_reach: np.ndarray,
        opponent_values: np.ndarray,
    ) -> sample_tree.SampleTree:
        """Puts in what the match decided: chances of the gadget, o's values."""
        histories, count = self.tree.histories, len(self.augmented)
        reach = np.zeros(len(self.tree.form.decisions[self.player]))
        opening = subgame.in_forest[0][np.isin(subgame.own, subgame.roots)]
        reach[opening] = or_ones(own_reach)
        # Roots are three levels below the root, by augmented infoset; their chances
        # follow those of the augmented infosets in the table.
        begin, end = histories.level_start[3:5]
        owner = (histories.parent[begin:end] - (1 + count)) // 2
        by_chance = histories.chance[begin:end]
        share = by_chance * reach[histories.infoset[begin:end]]
        arrive = np.bincount(owner, share, minlength=count)
        # Where i never comes there is nothing to solve; chance alone will do.
        never = arrive == 0
        share = np.where(never[owner], by_chance, share)
        total = np.bincount(owner, share, minlength=count)
        chance = np.array(samples.chance)
        chance[:count] = arrive / arrive.sum()
        chance[count : count + len(owner)] = share / total[owner]
        mine = np.searchsorted(self.augmented, subgame.augmented)
        sign = 1.0 if self.player == 1 else -1.0
        utility = np.array(samples.levels[2].utility)
        utility[0 : 2 * count : 2] = 0
        utility[2 * mine] = (
            sign * opponent_values / np.where(never[mine], 1, self.mass * arrive[mine])
        )
        samples = _replace_terminate(samples, utility=utility)
        return samples._replace(chance=chance)  # type: ignore[arg-type]


def _replace_terminate(
    samples: sample_tree.SampleTree, **columns: np.ndarray
) -> sample_tree.SampleTree:
    """Other columns of the level where the opponent has terminated or followed."""
    levels = list(samples.levels)
    levels[2] = levels[2]._replace(**columns)  # type: ignore[arg-type]
    return samples._replace(levels=tuple(levels))
