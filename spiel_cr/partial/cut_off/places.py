"""The public states at which a tree ends, and where a gadget game is cut off there."""

import numpy as np

from spiel_cr.lookahead.frontier import Frontier
from spiel_cr.lookahead.public_states import PublicStates
from spiel_cr.partial import growth
from spiel_cr.partial.cut_off.reading import StateReader
from spiel_cr.partial.cut_off.shapes import CutPlace
from spiel_cr.partial.knowledge_limited import LimitedGame, reach_at
from spiel_cr.partial.nodes import NodeTable
from spiel_cr.partial.simulator import Simulator
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.gadget import (
    Forest,
    opponent_side,
    reach_above,
    renumbered_sequences,
    top_infosets,
)


def frontier_of(
    table: NodeTable, simulator: Simulator, rows: np.ndarray, chance: np.ndarray
) -> Frontier:
    """Some decisions as public states.

    Args:
      table: the histories.
      simulator: of the game.
      rows: int64 [R], all histories of some public states.
      chance: float64 [R], probability of chance, in any units.

    Raises:
      ValueError: the game does not say what players have observed who do not act.
    """
    state = growth.public_states(table, rows)
    known = [table.known(rows, p) for p in range(2)]
    if min(own.min(initial=0) for own in known) < 0:
        raise ValueError(
            f"{simulator.game}: it does not say what players have observed while the "
            f"other one acts, so a network cannot be told; take another leaf"
        )
    order = np.argsort(state, kind="stable")
    rows, state, chance = rows[order], state[order], chance[order]
    infosets, states, place = [], [], []
    for own in known:
        pairs = np.stack([state, own[order]])
        found, index = np.unique(pairs, axis=1, return_inverse=True)
        infosets.append(np.arange(found.shape[1], dtype=np.int32))
        states.append(found[0].astype(np.int32))
        place.append(index.reshape(-1).astype(np.int32))
    public = PublicStates(
        player=int(table.player[rows[0]]),
        numbers=np.arange(int(state[-1]) + 1, dtype=np.int32),
        infosets=(infosets[0], infosets[1]),
        state=(states[0], states[1]),
        history=rows,
        place=np.stack(place),
        chance=chance,
    )
    return Frontier(
        public, table.states[rows], table.player[rows], StateReader(simulator)
    )


def cut_place(solved: SolvedTree, game: Forest | LimitedGame) -> CutPlace | None:
    """Where a gadget game of a tree is cut off; None: nowhere.

    Args:
      solved: the tree, solved down to the layer before the game's.
      game: of its next layer, with the gadget "cfrd" or none.
    """
    d, cut = solved.decomposition, solved.snapshot.cut
    i, layer = d.player, solved.solved + 1
    cut = cut[d.layer[cut] > layer] if len(game.augmented) else cut
    other_sequence = _extended(d, layer, game)[d.extended[cut]]
    if len(game.augmented):
        cut, other_sequence = (
            cut[other_sequence > 0],
            other_sequence[other_sequence > 0],
        )
    if not len(cut):
        return None
    table, histories = solved.partial.table, solved.snapshot.tree.histories
    rows = solved.partial.rows(solved.snapshot.ids[cut])
    frontier = frontier_of(table, solved.partial.simulator, rows, histories.chance[cut])
    public = frontier.public
    # From rows of the table back to histories.
    back = np.argsort(rows)
    at = back[np.searchsorted(rows[back], public.history)]
    own_sequence = renumbered_sequences(d.decisions, game.own)[
        histories.sequence[i][cut]
    ]
    weight = _own_weights(solved, game, cut, own_sequence)
    first = []
    for p in range(2):
        found = np.zeros(len(public.infosets[p]), np.int64)
        found[public.place[p][::-1]] = at[::-1]
        first.append(found)
    o = 1 - i
    sequences, weights = [np.zeros(0)] * 2, [np.zeros(0)] * 2
    sequences[i], weights[i] = own_sequence[first[i]], weight[first[i]]
    sequences[o] = other_sequence[first[o]]
    weights[o] = np.ones(len(first[o]))
    return CutPlace(frontier, (sequences[0], sequences[1]), (weights[0], weights[1]))


def _own_weights(
    solved: SolvedTree, game: Forest | LimitedGame, cut: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """float64 [n], i's reach of the roots above histories at a cut.

    Args:
      solved, game: as of `cut_place`.
      cut: int64 [n], the histories.
      rows: int32 [n], i's sequences in the game there.
    """
    d = solved.decomposition
    behaviour = solved.behaviour[d.player]
    if isinstance(game, LimitedGame):
        return reach_at(d, game.own, behaviour, cut)
    if not solved.solved:
        return np.ones(len(cut))
    side = game.decisions[d.player]
    reach = reach_above(d, game.own, reach_from_behaviour(d.decisions, behaviour))
    return reach[top_infosets(side)[side.owner[rows]]]


def _extended(d: Decomposition, layer: int, game: Forest | LimitedGame) -> np.ndarray:
    """int32, o's extended sequences in a game of a layer."""
    if isinstance(game, LimitedGame):
        return game.extended
    _, extended = opponent_side(
        d, layer, game.augmented, game.other, game.next_augmented
    )
    return extended
