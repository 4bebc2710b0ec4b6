"""Third stage: a layer's gadget games as histories, for sampled solvers.

Chance first chooses a gate of the layer, in proportion to the reach of its roots by the
player and chance; there the opponent terminates or follows; after *follow* chance
chooses a root. Every trajectory follows both of the opponent's choices (`branch`), or
sampling would hardly ever learn the one that is not taken. All subgames of the layer
stand side by side, so one program serves all; a match makes the gates of its own
subgame likely, and all others impossible. Aimed trajectories end at *terminate* too.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.cfr import solver as driver
from spiel_cr.compilation.tree import (
    CHANCE,
    TERMINAL,
    CompiledGame,
    Histories,
    Infosets,
)
from spiel_cr.mccfr import mccfr, sample_tree
from spiel_cr.resolving import decomposition as subgame
from spiel_cr.resolving import gadget, subgame_games


class _Below(NamedTuple):
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
    decomposition: subgame.Decomposition, number: int
) -> tuple[CompiledGame, np.ndarray]:
    """The histories of a layer's gadget games, all gates alike and worth nothing.

    Args:
      decomposition: from `subgame.decompose`.
      number: the layer, from 2.

    Returns:
      The gadget games as one compiled game, whose infosets have no strings: those of
      the forest (`gadget.build_forest`); and bool [N], the opponent's choices between
      terminating (first) and following. The root's children are the gates, in the
      forest's order; three levels below it are the roots, gate by gate.
    """
    d, histories = decomposition, decomposition.tree.histories
    decisions = d.tree.infosets[d.player].decisions
    ones = np.ones(decisions.num_sequences)
    forest = gadget.build_forest(d, number, ones, np.ones(len(d.gate_layer)))
    gates = len(forest.gates)
    at = np.full(len(d.gate_layer), -1, np.int64)
    at[forest.gates] = np.arange(gates)
    gate = at[d.root_gate]
    mine = np.flatnonzero(gate >= 0)
    mine = mine[np.argsort(gate[mine], kind="stable")]
    roots, gate = d.roots[mine], gate[mine]
    mass = np.bincount(gate, histories.chance[roots], minlength=gates)
    share = histories.chance[roots] / mass[gate] / gates
    nothing = np.full(2 * gates, -1)
    levels = [
        _Below(nothing[:1], nothing[:1], np.ones(1)),
        _Below(nothing[:gates], np.zeros(gates, np.int64), np.full(gates, 1 / gates)),
        _Below(nothing, np.repeat(np.arange(gates), 2), np.full(2 * gates, 1 / gates)),
        _Below(roots, 1 + 2 * gate, share),
    ]
    counts = np.bincount(histories.parent[1:], minlength=len(histories))
    first = np.searchsorted(histories.parent, np.arange(len(histories)))
    while len(levels[-1].source):
        above = levels[-1]
        parent = np.repeat(np.arange(len(above.source)), counts[above.source])
        if not len(parent):
            break
        step = np.arange(len(parent)) - np.searchsorted(parent, parent)
        source = first[above.source[parent]] + step
        ratio = histories.chance[source] / histories.chance[above.source[parent]]
        levels.append(_Below(source, parent, above.chance[parent] * ratio))
    arrays = _join(d, forest, levels)
    infosets = [
        Infosets(
            keys=(),
            decisions=form_decisions,
            actions=np.zeros(form_decisions.num_sequences - 1, np.int32),
            history=np.zeros(len(form_decisions), np.int32),
        )
        for form_decisions in forest.form.decisions
    ]
    branch = np.zeros(len(arrays), bool)
    branch[1 : 1 + gates] = True
    compiled = CompiledGame(
        d.tree.game, arrays, (infosets[0], infosets[1]), forest.form
    )
    return compiled, branch


def _join(
    d: subgame.Decomposition, forest: gadget.Forest, levels: list[_Below]
) -> Histories:
    """All levels as the histories of one game."""
    histories, gates = d.tree.histories, len(forest.gates)
    sizes = np.array([len(level.source) for level in levels])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    source = np.concatenate([level.source for level in levels])
    offsets = np.repeat(starts[:-1] - np.append(0, sizes[:-1]), sizes)
    parent = np.concatenate([level.parent for level in levels]) + offsets
    parent[0] = -1
    chance = np.concatenate([level.chance for level in levels])
    real = source >= 0
    player = np.full(len(source), CHANCE, np.int8)
    player[real] = histories.player[source[real]]
    player[1 : 1 + gates] = 1 - d.player
    player[1 + gates : 1 + 3 * gates : 2] = TERMINAL
    infoset = np.full(len(source), -1, np.int32)
    infoset[1 : 1 + gates] = np.arange(gates)
    for p, numbers, before in (
        (d.player, forest.own, 0),
        (1 - d.player, forest.other, gates),
    ):
        local = np.full(len(d.tree.infosets[p]), -1, np.int32)
        local[numbers] = before + np.arange(len(numbers))
        here = real & (player == p)
        infoset[here] = local[histories.infoset[source[here]]]
    utility = np.zeros(len(source))
    utility[real] = histories.utility[source[real]]
    # Nobody who samples asks for the last sequences.
    nowhere = np.zeros((2, len(source)), np.int32)
    return Histories(
        parent=parent.astype(np.int32),
        action=np.full(len(source), -1, np.int32),
        player=player,
        infoset=infoset,
        observations=None,
        sequence=nowhere,
        chance=chance,
        utility=utility,
        level_start=starts,
    )


@dataclasses.dataclass(frozen=True)
class SampledLayer:
    """A layer that sampled solvers solve, one subgame at a time.

    Attributes:
      player: i, the resolving player.
      tree: the layer's gadget games, or the whole game for layer 1.
      samples: its histories as solvers take them, all gates alike.
      plan: their shapes.
      gates: int32 [g], all gates of the layer; empty for layer 1.
    """

    player: int
    tree: CompiledGame
    samples: sample_tree.SampleTree
    plan: sample_tree.Plan
    gates: np.ndarray

    @classmethod
    def of(cls, decomposition: subgame.Decomposition, number: int) -> "SampledLayer":
        """Lays out a layer, from 1."""
        d = decomposition
        everywhere: np.ndarray
        branch = None
        tree, gates = d.tree, np.zeros(0, np.int64)
        if number > 1:
            tree, branch = gadget_histories(d, number)
            gates = np.flatnonzero(d.gate_layer == number)
        everywhere = np.ones(len(tree.histories), bool)
        samples, plan = sample_tree.build(tree, target=everywhere, branch=branch)
        return cls(d.player, tree, samples, plan, gates)

    def solver(
        self,
        piece: subgame_games.Piece,
        own_reach: np.ndarray,
        gate_values: np.ndarray,
        config: algorithm_lib.MCCFRConfig,
        *,
        infosets: np.ndarray | None,
        seed: int,
    ) -> driver.Solver:
        """A solver of one subgame.

        Args:
          piece: the subgame.
          own_reach: float64 [r], i's average reach of the piece's roots.
          gate_values: float64 [g of the piece], o's counterfactual values at its gates.
          config: sampled algorithm; a share `delta` of the trajectories is led to
            `infosets`.
          infosets: int [k], i's infosets in the forest to aim at; None: anywhere.
          seed: of all random numbers.
        """
        samples = self.samples
        histories = self.tree.histories
        if infosets is not None:
            wanted = (histories.player == self.player) & np.isin(
                histories.infoset, infosets
            )
            samples = sample_tree.retarget(samples, self.tree, wanted)
            # What terminating is worth is learned on the way, too.
            gates, levels = len(self.gates), list(samples.levels)
            if gates:
                allowed = np.array(levels[2].target)
                allowed[0 : 2 * gates : 2] = np.asarray(levels[1].target)[:gates]
                levels[2] = levels[2]._replace(target=allowed)  # type: ignore[arg-type]
                samples = samples._replace(levels=tuple(levels))
        if len(self.gates):
            samples = self._fill(samples, piece, own_reach, gate_values)
        problem = mccfr.make_problem(
            self.tree.form, samples, self.plan, config, dtype=np.float32
        )
        return mccfr.solver_of(
            self.tree.form,
            lambda: problem,
            self.plan,
            config=config,
            dtype=np.float32,
            seed=seed,
        )

    def _fill(
        self,
        samples: sample_tree.SampleTree,
        piece: subgame_games.Piece,
        own_reach: np.ndarray,
        gate_values: np.ndarray,
    ) -> sample_tree.SampleTree:
        """Puts in what the match decided: chances of gates and roots, values."""
        weight = own_reach if own_reach.any() else np.ones_like(own_reach)
        mass = weight @ piece.mass
        gates = len(self.gates)
        at = np.searchsorted(self.gates, piece.gates)
        histories = self.tree.histories
        # Roots are three levels below the root, gate by gate; their chances follow
        # those of the gates in the table.
        begin, end = histories.level_start[3:5]
        owner = (histories.parent[begin:end] - (1 + gates)) // 2
        infoset = histories.infoset[begin:end]
        reach = np.zeros(len(self.tree.form.decisions[self.player]))
        opening = piece.at[0][np.isin(piece.own, piece.roots)]
        reach[opening] = weight
        structure = histories.chance[begin:end]
        roots = structure * reach[infoset]
        totals = np.bincount(owner, roots, minlength=gates)
        uniform = structure / np.bincount(owner, structure, minlength=gates)[owner]
        safe = np.where(totals > 0, totals, 1)
        chance = np.array(samples.chance)
        chance[:gates] = 0
        # Where i never comes there is nothing to solve; any gate will do.
        chance[at] = mass / mass.sum()
        chance[gates : gates + len(roots)] = np.where(
            totals[owner] > 0, roots / safe[owner], uniform
        )
        ends = np.zeros(gates)
        sign = 1.0 if self.player == 1 else -1.0
        ends[at] = sign * gate_values / np.where(mass > 0, mass, 1)
        utility = np.array(samples.levels[2].utility)
        utility[0 : 2 * gates : 2] = ends
        levels = list(samples.levels)
        levels[2] = levels[2]._replace(utility=utility)  # type: ignore[arg-type]
        return samples._replace(levels=tuple(levels), chance=chance)  # type: ignore[arg-type]
