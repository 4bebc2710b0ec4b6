"""Layers, augmented infosets and subgames of a game tree.

To re-solve for player i against opponent o, the game is cut at i's decisions. A *layer*
consists of the histories between two consecutive cuts; the histories at the top of
layer l are its roots. At the roots the opponent has *augmented infosets* (Burch,
Johanson & Bowling 2014, "Solving imperfect information games using decomposition"),
which combine its last own sequence with its observation there, if the game has
observations.
"""

import dataclasses

import numpy as np

from spiel_cr.common.arrays import joint_components, places_in
from spiel_cr.common.errors import UncountableTurnsError
from spiel_cr.games.histories import CHANCE, TERMINAL, Histories
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import GameTree


@dataclasses.dataclass(frozen=True)
class Decomposition:
    """Layers and augmented infosets of a game for one re-solving player.

    Extended sequences of the opponent are its own sequences 0 .. S - 1, and then S + g
    for augmented infoset g: the opponent has passed g and has not acted since.

    Attributes:
      tree: The game tree.
      player: The re-solving player, i.
      player_layer: Layer of each of i's infosets, from 1, int32 [I of i].
      opens: Whether an infoset's histories are roots of its layer, bool [I of i].
      other_layer: Layer of each of o's infosets, int32 [I of o]; 0 above i's first
        decision.
      other_parent: Extended parent sequence of each of o's infosets, int32 [I of o].
      augmented_layer: Layer to whose roots each augmented infoset belongs, int32 [G].
      augmented_parent: Extended parent sequence of each augmented infoset, int32 [G].
      augmented_subgame: Subgame of the roots of each augmented infoset, int32 [G].
      player_subgame: Subgame of each opening infoset, int32 [I of i]; -1 at others.
        Subgames are numbered through all layers.
      terminals: Terminal histories, int64 [T].
      layer: Layer of each history, 0 above i's first decision, int32 [N].
      extended: Extended sequence of o at each history, int32 [N].
      roots: Histories at the top of layers, int64 [R].
      root_augmented: Augmented infoset of each root, int32 [R].
    """

    tree: GameTree
    player: int
    player_layer: np.ndarray
    opens: np.ndarray
    other_layer: np.ndarray
    other_parent: np.ndarray
    augmented_layer: np.ndarray
    augmented_parent: np.ndarray
    augmented_subgame: np.ndarray
    player_subgame: np.ndarray
    terminals: np.ndarray
    layer: np.ndarray
    extended: np.ndarray
    roots: np.ndarray
    root_augmented: np.ndarray

    @property
    def decisions(self) -> Decisions:
        """Decision points of i."""
        return self.tree.infosets[self.player].decisions

    @property
    def num_layers(self) -> int:
        return int(self.player_layer.max(initial=0))

    def roots_of(self, layer: int) -> np.ndarray:
        """Return the histories that are roots of a layer, ascending, int64."""
        return self.roots[self.layer[self.roots] == layer]


def decompose(tree: GameTree, player: int) -> Decomposition:
    """Cut a game tree at every decision of a player, or at every turn.

    If the opponent does not observe how many decisions the player has made (for
    example, because the player may retry after a rejected move), a layer starts only at
    the first of the player's decisions after a decision of the opponent.

    Args:
      tree: The game tree.
      player: The re-solving player, i.

    Raises:
      UncountableTurnsError: If the opponent does not observe the number of turns,
        either.
    """
    acts = tree.histories.player == player
    previous = _last_decider(tree.histories)
    for opening in (acts, acts & (previous != player)):
        layer, anchor = _layers(tree.histories, opening)
        if _layers_are_observable(tree, layer, opening):
            return _decompose(tree, player, opening, layer, anchor)
    raise UncountableTurnsError(
        f"{tree.game}: player {1 - player} does not observe the number of turns of "
        f"player {player}, so the game has no layers to re-solve; use solve instead"
    )


def _last_decider(histories: Histories) -> np.ndarray:
    """Return the last player that decided before each history, or CHANCE, int8 [N]."""
    last = np.full(len(histories), CHANCE, np.int8)
    for level in histories.by_depth[1:]:
        parent = histories.parent[level]
        decider = histories.player[parent]
        last[level] = np.where(decider >= 0, decider, last[parent])
    return last


def _layers(histories: Histories, opening: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return layers and roots of histories.

    Args:
      histories: Histories of the game tree.
      opening: Whether a history is the root of a layer, bool [N].

    Returns:
      The number of roots at or above each history, int32 [N]; and the last of these
      roots, or -1, int64 [N].
    """
    layer = opening.astype(np.int32)
    anchor = np.where(opening, np.arange(len(histories)), -1)
    for level in histories.by_depth[1:]:
        parent = histories.parent[level]
        layer[level] += layer[parent]
        anchor[level] = np.where(opening[level], anchor[level], anchor[parent])
    return layer, anchor


def _layers_are_observable(
    tree: GameTree, layer: np.ndarray, opening: np.ndarray
) -> bool:
    """Return whether both players know their layer at each infoset."""
    histories = tree.histories
    for p, infosets in enumerate(tree.infosets):
        decisions = np.flatnonzero(histories.player == p)
        first = infosets.history[histories.infoset[decisions]]
        if (layer[decisions] != layer[first]).any():
            return False
        if (opening[decisions] != opening[first]).any():
            return False
    return True


def _decompose(
    tree: GameTree,
    player: int,
    opening: np.ndarray,
    layer: np.ndarray,
    anchor: np.ndarray,
) -> Decomposition:
    histories, other = tree.histories, 1 - player
    infosets = tree.infosets[player]
    roots = np.flatnonzero(opening)
    above = np.where(histories.parent[roots] >= 0, anchor[histories.parent[roots]], -1)
    root_augmented = _augmented_infosets(tree, player, roots, above, layer, anchor)
    count = int(root_augmented.max(initial=-1)) + 1
    augmented_at = np.full(len(histories), -1, np.int32)
    augmented_at[roots] = root_augmented
    sequence = histories.sequence[other]
    num_opponent_sequences = tree.infosets[other].decisions.num_sequences

    def extend(at: np.ndarray, anchor: np.ndarray) -> np.ndarray:
        """Return o's extended sequences at histories `at` with last roots `anchor`."""
        unmoved = (anchor >= 0) & (sequence[at] == sequence[anchor])
        passed = num_opponent_sequences + augmented_at[anchor]
        return np.where(unmoved, passed, sequence[at]).astype(np.int32)

    extended = extend(np.arange(len(histories)), anchor)
    augmented_layer, augmented_parent = np.zeros((2, count), np.int32)
    augmented_layer[root_augmented] = layer[roots]
    augmented_parent[root_augmented] = extend(roots, above)
    # Roots that share i's or o's information belong to the same subgame.
    infoset = histories.infoset[roots]
    subgame = _components(root_augmented, infoset, count)
    player_subgame = np.full(len(infosets), -1, np.int32)
    player_subgame[infoset] = subgame[root_augmented]
    return Decomposition(
        tree=tree,
        player=player,
        player_layer=layer[infosets.history],
        opens=opening[infosets.history],
        other_layer=layer[tree.infosets[other].history],
        other_parent=extended[tree.infosets[other].history],
        augmented_layer=augmented_layer,
        augmented_parent=augmented_parent,
        augmented_subgame=subgame,
        player_subgame=player_subgame,
        terminals=np.flatnonzero(histories.player == TERMINAL),
        layer=layer,
        extended=extended,
        roots=roots,
        root_augmented=root_augmented,
    )


def _augmented_infosets(
    tree: GameTree,
    player: int,
    roots: np.ndarray,
    above: np.ndarray,
    layer: np.ndarray,
    anchor: np.ndarray,
) -> np.ndarray:
    """Return the augmented infoset of every root, int32 [roots].

    At first, augmented infosets are the combinations of layer, o's sequence and o's
    observation. Those that o does not distinguish at its next own decision, or at the
    next augmented infoset, are then merged: in some games a player that does not act
    observes more than it remembers later.
    """
    histories = tree.histories
    sequence = histories.sequence[1 - player]
    keys = [layer[roots], sequence[roots]]
    if histories.observations is not None:
        keys.append(histories.observations[roots])
    _, augmented = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    augmented = augmented.reshape(-1).astype(np.int32)
    root_index = places_in(roots, len(histories))
    decisions = np.flatnonzero(histories.player == 1 - player)
    for number in range(int(layer.max(initial=0)), 0, -1):
        # The next own infosets of o, or further roots, below a root of this layer.
        meets = decisions[layer[decisions] == number]
        meets = meets[sequence[meets] == sequence[anchor[meets]]]
        further = np.flatnonzero((layer[roots] == number + 1) & (above >= 0))
        further = further[sequence[roots[further]] == sequence[above[further]]]
        source = root_index[np.concatenate([anchor[meets], above[further]])]
        target = np.concatenate(
            [histories.infoset[meets], len(decisions) + augmented[further]]
        )
        count = int(augmented.max(initial=-1)) + 1
        augmented = _components(augmented[source], target, count)[augmented]
    return augmented


def _components(left: np.ndarray, right: np.ndarray, count: int) -> np.ndarray:
    """Return numbers in which elements with a common partner are merged, int32 [count].

    Args:
      left: Left elements of pairs, from 0 to count - 1, int [n].
      right: Right elements of pairs, int [n].
      count: Number of left elements.
    """
    _, right = np.unique(right, return_inverse=True)
    joined = joint_components(left, right, (count, int(right.max(initial=-1)) + 1)).rows
    _, numbers = np.unique(joined, return_inverse=True)
    return numbers.reshape(-1).astype(np.int32)
