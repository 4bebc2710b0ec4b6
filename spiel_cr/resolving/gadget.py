"""Gadget game of all subgames of a layer: a forest in sequence form.

  - Infosets of i in the layer follow its empty sequence; payoffs include the reach of
    the root by i and chance.
  - The opponent o first reaches the roots of an augmented infoset through the gadget,
    see `gadget_infosets.py` (augmented infosets: `decomposition.py`).
  - Augmented infosets of the next layer are further infosets of o with a single action:
    they are not decisions, but solvers report values at infosets, and the next
    layer's gadget needs values there.
  - If leaves have several values per history, o has one more decision at each augmented
    infoset there: the choice of a value.

Subgames of one layer are independent, so a solver treats each as if it were alone.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.common.pairs import ordered_pair, pair
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs, sum_payoffs
from spiel_cr.games.sequence_form.layout import SequenceForm, build
from spiel_cr.games.sequence_form.locking import Rows
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.gadget_infosets import (
    Gadget,
    GadgetInfosets,
    make_gadget_infosets,
)


class Choices(NamedTuple):
    """Roots of deeper layers at which o chooses a continuation strategy.

    Attributes:
      histories: All roots of some augmented infosets, int64 [R].
      values: Player 0's utility for each continuation strategy, float64 [R, k].
    """

    histories: np.ndarray
    values: np.ndarray


class Truncation(NamedTuple):
    """The leaves at which a layer's subgames end.

    Attributes:
      histories: Reachable terminals and histories at the depth limit, except those of
        `choices`, int64 [L].
      values: Player 0's utility there, float64 [L].
      kept: Mask of the infosets above the depth limit, bool [I], for each player.
      choices: Histories at the depth limit where o chooses a value, if any.
    """

    histories: np.ndarray
    values: np.ndarray
    kept: tuple[np.ndarray, np.ndarray]
    choices: Choices | None = None


@dataclasses.dataclass(frozen=True)
class Forest:
    """All subgames of a layer as one game in sequence form.

    Attributes:
      decisions: Each player's decision points, in the order of players.
      payoffs: Player 0's utility times chance, with weights and o's values.
      infosets: Infosets of i (numbers of the complete game) in the order of its
        decisions, int32 [m].
      augmented: Augmented infosets of this layer, int32 [g]. Empty for the first layer,
        which is the complete game.
      other: Infosets of o (numbers of the complete game), which follow the gadget's,
        int32 [k].
      next_augmented: Augmented infosets of the next layer, o's last infosets, int32
        [n].
      gadget_infosets: The gadget: o's first infosets.
    """

    decisions: tuple[Decisions, Decisions]
    payoffs: Payoffs
    infosets: np.ndarray
    augmented: np.ndarray
    other: np.ndarray
    next_augmented: np.ndarray
    gadget_infosets: GadgetInfosets

    @property
    def other_first(self) -> bool:
        """Whether o updates before i."""
        return self.gadget_infosets.other_first

    @functools.cached_property
    def form(self) -> SequenceForm:
        """Game for the solver, built at the first access."""
        return build(self.decisions, self.payoffs)

    def rows_of(self, d: Decomposition, rows: Rows) -> Rows:
        """Return the rows of locked infosets of the complete game, in forest order."""
        forest_rows: list[np.ndarray | None] = []
        for player, game_row in enumerate(rows):
            if game_row is None:
                forest_rows.append(None)
                continue
            inside, first = self.infosets, 1
            if player != d.player:
                inside, first = self.other, 1 + self.gadget_infosets.num_sequences
            owner = d.tree.infosets[player].decisions.owner[1:]
            kept = game_row[1:][np.isin(owner, inside)]
            row = np.full(self.decisions[player].num_sequences, np.nan)
            row[first : first + len(kept)] = kept
            forest_rows.append(row)
        return pair(forest_rows)


def build_forest(
    decomposition: Decomposition,
    layer: int,
    player_reach: np.ndarray,
    opponent_values: np.ndarray,
    truncation: Truncation | None = None,
    *,
    gadget: Gadget = "cfrd",
    full_game: bool | None = None,
) -> Forest:
    """Build the gadget game of a layer; the complete game without gadget for layer 1.

    Root weights are not normalised: o's values in the subgames and its old values have
    the scale of the complete game in every layer.

    Args:
      decomposition: Result of `decompose`.
      layer: Number of the layer, 1 .. num_layers.
      player_reach: Average strategy of i in sequence form, float64 [S of i]. Only
        entries above the layer are used. In subgames that i never reaches, all roots
        have equal weight, so that their strategy is a sensible one.
      opponent_values: Counterfactual value of o at each augmented infoset, float64 [G].
        Only those of the layer are used.
      truncation: Leaves at which the game is cut off, with values. None: the game is
        not cut off.
      gadget: Kind of the gadget.
      full_game: Whether to build the complete game without gadget. None: for layer 1.
    """
    d, i = decomposition, decomposition.player
    full_game = layer == 1 if full_game is None else full_game
    inside = _inside(d, layer, full_game, truncation)
    infosets, augmented, *_ = inside
    gadget_infosets = make_gadget_infosets(gadget, d.augmented_subgame[augmented])
    player_decisions = d.tree.infosets[i].decisions
    player_sequence = renumbered_sequences(player_decisions, infosets)
    player_side = Decisions(
        player_sequence[player_decisions.parent[infosets]],
        player_decisions.num_actions[infosets],
    )
    other_side, ends, utility, columns = _opponent_side(
        d, layer, inside, gadget_infosets, truncation
    )
    all_ends = d.tree.histories.sequence[i][ends]
    player_ends = player_sequence[all_ends]
    weights = d.tree.histories.chance[ends]
    if not full_game:
        root_reach = player_reach[all_ends]
        # At these histories i has acted below the root.
        acted = player_ends > 0
        tops = top_infosets(player_side)[player_side.owner[player_ends[acted]]]
        root_reach[acted] = reach_above(d, infosets, player_reach)[tops]
        weights = root_reach * weights
    sign = gadget_infosets.sign if i == 1 else -gadget_infosets.sign
    decisions, payoffs = _in_order(
        i,
        (player_side, np.append(player_ends, np.zeros(len(augmented), np.int32))),
        (other_side, np.append(columns, gadget_infosets.paying)),
        np.append(weights * utility, sign * opponent_values[augmented]),
    )
    return Forest(decisions, payoffs, *inside, gadget_infosets)


def _inside(
    d: Decomposition, layer: int, full_game: bool, truncation: Truncation | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return infosets, augmented, other and next_augmented of a `Forest`, int64."""
    # The complete game includes the histories above its first layer.
    player = d.player_layer >= layer
    other = d.other_layer >= (0 if full_game else layer)
    if truncation is not None:
        player = player & truncation.kept[d.player]
        other = other & truncation.kept[1 - d.player]
    return (
        np.flatnonzero(player),
        np.flatnonzero((d.augmented_layer == layer) & (not full_game)),
        np.flatnonzero(other),
        np.flatnonzero(d.augmented_layer == layer + 1),
    )


def _opponent_side(
    d: Decomposition,
    layer: int,
    inside: Sequence[np.ndarray],
    gadget_infosets: GadgetInfosets,
    truncation: Truncation | None,
) -> tuple[Decisions, np.ndarray, np.ndarray, np.ndarray]:
    """Return o's side of a forest, and its histories with payoffs.

    Returns:
      o's decisions: those of the gadget, o's decisions in the game, its choices of a
      continuation strategy, and those above the next layer. Then histories with
      payoffs, int64 [n], player 0's utility there, float64 [n], not zero, and o's
      sequences in the forest, int32 [n].
    """
    _, augmented, other, next_augmented = inside
    choices = None if truncation is None else truncation.choices
    points, k = np.zeros(0, np.int32), 0
    if choices is not None:
        chosen_at = d.root_augmented[np.searchsorted(d.roots, choices.histories)]
        points, k = np.unique(chosen_at), choices.values.shape[1]
    decisions = d.tree.infosets[1 - d.player].decisions
    count, before = decisions.num_sequences, gadget_infosets.num_sequences
    extended = np.zeros(count + len(d.augmented_layer), np.int32)
    number = renumbered_sequences(decisions, other)
    extended[:count] = np.where(number > 0, number + before, 0)
    extended[count + augmented] = gadget_infosets.entering
    first_choice = 1 + before + int(decisions.num_actions[other].sum())
    last = first_choice + k * len(points)
    extended[count + next_augmented] = last + np.arange(len(next_augmented))
    # All further augmented infosets have no effect: o's sequence there is the one
    # before. Upper layers come first, because a parent may be in the layer above.
    for passed_layer in range(layer, d.num_layers + 1):
        if passed_layer != layer + 1 and not (passed_layer == layer and before):
            passed = np.flatnonzero(d.augmented_layer == passed_layer)
            extended[count + passed] = extended[d.augmented_parent[passed]]
    parents = [
        np.zeros(len(gadget_infosets.num_actions), np.int32),
        extended[d.other_parent[other]],
        extended[count + points],
        extended[d.augmented_parent[next_augmented]],
    ]
    num_actions = [
        gadget_infosets.num_actions,
        decisions.num_actions[other],
        np.full(len(points), k, np.int32),
        np.ones(len(next_augmented), np.int32),
    ]
    side = Decisions(np.concatenate(parents), np.concatenate(num_actions))
    ends, utility = d.terminals, d.tree.histories.utility[d.terminals]
    if truncation is not None:
        ends, utility = truncation.histories, truncation.values
    columns = extended[d.extended[ends]]
    if choices is not None:
        place = np.searchsorted(points, chosen_at)[:, None]
        chosen = first_choice + k * place + np.arange(k)
        ends = np.append(ends, np.repeat(choices.histories, k))
        utility = np.append(utility, choices.values)
        columns = np.append(columns, chosen).astype(np.int32)
    # Leaves with utility 0 are left out, but leaves with weight 0 are not: the shapes
    # of a forest must not depend on strategies, or it would be compiled again.
    used = (d.layer[ends] >= (layer if len(augmented) else 0)) & (utility != 0)
    return side, ends[used], utility[used], columns[used]


def _in_order(
    player: int,
    player_side: tuple[Decisions, np.ndarray],
    opponent_side: tuple[Decisions, np.ndarray],
    values: np.ndarray,
) -> tuple[tuple[Decisions, Decisions], Payoffs]:
    """Return both players' decisions and the payoffs, in the order of players.

    Args:
      player: The re-solving player, i.
      player_side, opponent_side: Decisions of i and of o, and the sequences that lead
        to payoffs, int32 [n].
      values: Player 0's utility, float64 [n].
    """
    (first, rows), (second, columns) = ordered_pair(player, player_side, opponent_side)
    payoffs = sum_payoffs(rows, columns, values)
    if not len(payoffs.values):
        # Solvers need at least one payoff, even if the utility of all leaves is 0.
        nothing = np.zeros(1, np.int32)
        payoffs = Payoffs(nothing, nothing, np.zeros(1))
    return (first, second), payoffs


def top_infosets(decisions: Decisions) -> np.ndarray:
    """Return the first-level infoset above each infoset, or itself, int32 [I]."""
    above, levels = decisions.owner[decisions.parent], decisions.levels()
    top = np.arange(len(decisions), dtype=np.int32)
    for level in range(1, int(levels.max(initial=0)) + 1):
        infosets = np.flatnonzero(levels == level)
        top[infosets] = top[above[infosets]]
    return top


def renumbered_sequences(decisions: Decisions, kept: np.ndarray) -> np.ndarray:
    """Return new numbers of some infosets' sequences, 0 for others, int32 [S]."""
    sequence = np.zeros(decisions.num_sequences, np.int32)
    sequences = 1 + np.flatnonzero(np.isin(decisions.owner[1:], kept))
    sequence[sequences] = 1 + np.arange(len(sequences), dtype=np.int32)
    return sequence


def reach_above(
    d: Decomposition, infosets: np.ndarray, player_reach: np.ndarray
) -> np.ndarray:
    """Return i's reach of infosets at the top of a layer, float64 [m].

    In a subgame that i never reaches, the result is 1 everywhere. Infosets below roots
    where i does not act belong to one subgame.

    Args:
      d: The layers.
      infosets: Infosets of i, int32 [m].
      player_reach: Strategy of i in sequence form, float64 [S of i].
    """
    subgame = np.where(d.opens[infosets], 1 + d.player_subgame[infosets], 0)
    reach = player_reach[d.decisions.parent[infosets]]
    total = np.bincount(subgame, reach)[subgame]
    return np.where(total > 0, reach, 1.0)
