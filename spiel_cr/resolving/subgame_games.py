"""One layer's subgames, each ready to be solved alone, in one shape.

A forest (`gadget.py`) holds all subgames of a layer. A player in a match meets one of
them, so a `Layer` cuts the forest up once, and `Layer.game` fills in what the match
decided: the player's own reach of the roots and the opponent's values at the augmented
infosets. All games of a layer have the same shape, so they share one compiled program.

What stands between the roots and the subgame is the gadget:

  cfrd       at each augmented infoset the opponent chooses to *terminate*, worth what
             it would have had, or to *follow* (Burch et al. 2014).
  maxmargin  the opponent chooses among its augmented infosets, and is charged what it
             would have got there, so the player maximises the least margin (Moravčík et
             al. 2016, "Refining subgames in large imperfect information games").
             Margins are differences of counterfactual values: what the opponent gains
             by coming that way, weighted by the player's and chance's reach.
  unsafe     nothing: the opponent comes as its average strategy says.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, get_args

import numpy as np

from spiel_cr.common.arrays import Groups, ranges
from spiel_cr.common.checks import check_choice
from spiel_cr.games.sequence_form import packing
from spiel_cr.games.sequence_form.decisions import Decisions, Payoffs
from spiel_cr.games.sequence_form.layout import PaddedShape, SequenceForm, build
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.cuts import LayerCut, SubgameCut
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.gadget import Gadget, Lookahead, build_forest, top_infosets


class Subgame(NamedTuple):
    """One subgame of a layer in logical numbers of its own.

    Attributes:
      decisions: each player's decision points, in the order of players.
      rows, columns: int32 [P], the payoffs' sequences of player 0 and 1.
      base: float64 [P], player 0's utility times chance; at the gadget's own payoffs
        the sign of the opponent's utility.
      root: int32 [P], index into `roots` whose reach weighs a payoff; -1 at the
        gadget's own.
      behind: int32 [P], index into `augmented` of the one that it lies behind; -1
        without.
      own: int32 [m], i's infosets, numbers of the whole game.
      in_layer: bool [m], whether they belong to this layer.
      roots: int32 [r], i's opening infosets, numbers of the whole game.
      augmented: int32 [g], augmented infosets of o, numbers of the decomposition.
      next_augmented: int32 [n], those of the next layer; o's last infosets, in this
        order.
      next_behind: int32 [n], index into `augmented` of the one that each lies behind.
      in_forest: for i and for o, int32, the infosets' numbers in the layer's forest.
      cut: where values that know the players' ranges end it; None: nowhere in the
        layer.
    """

    decisions: tuple[Decisions, Decisions]
    rows: np.ndarray
    columns: np.ndarray
    base: np.ndarray
    root: np.ndarray
    behind: np.ndarray
    own: np.ndarray
    in_layer: np.ndarray
    roots: np.ndarray
    augmented: np.ndarray
    next_augmented: np.ndarray
    next_behind: np.ndarray
    in_forest: tuple[np.ndarray, np.ndarray]
    cut: SubgameCut | None = None


class GadgetGame(NamedTuple):
    """A subgame as a solver takes it.

    Attributes:
      form: the gadget game.
      subgame: what its numbers mean.
      first: who updates first where updates alternate. The mean values of who does
        belong exactly to the average strategy of the other (`cfr.step`). In the
        max-margin gadget that is o, whose values the next layer needs: its NashConv
        after 2000 iterations is lower or the same on five of six games, by up to a
        factor of 100 (docs/playing.md). Elsewhere it is i, as good as o or better.
    """

    form: SequenceForm
    subgame: Subgame
    first: int


class Layer(Mapping[int, Subgame]):
    """The subgames of one layer by their numbers, each cut out when first asked for.

    Attributes:
      player: i, the resolving player.
      gadget: the kind of gadget.
      capacity: padded shapes in which each of the subgames fits.
      widest: the first of those with the most augmented infosets of the next layer.
    """

    def __init__(
        self,
        decomposition: Decomposition,
        number: int,
        gadget: Gadget = "cfrd",
        lookahead: Lookahead | None = None,
    ) -> None:
        """Finds out what belongs to which subgame.

        Args:
          decomposition: from `decompose`.
          number: the layer, from 1; layer 1 is one subgame, the whole game without
            gadget.
          gadget: of all other layers.
          lookahead: where the subgames are cut off, and what they are worth there.

        Raises:
          ValueError: an unknown gadget.
        """
        d = self._d = decomposition
        self.gadget: Gadget = check_choice(gadget, "gadget", get_args(Gadget))
        self.player, self._number = d.player, number
        ones = np.ones(d.tree.infosets[d.player].decisions.num_sequences)
        given = np.ones(len(d.augmented_layer))
        forest = self._forest = build_forest(d, number, ones, given, lookahead)
        i, o, count = d.player, 1 - d.player, len(forest.augmented)
        own, other = forest.decisions[i], forest.decisions[o]
        own_ends, other_ends = forest.payoffs[i], forest.payoffs[o]
        self._own = Side(own, d.own_subgame[forest.own] if count else None)
        other_side = Side(
            other, d.augmented_subgame[forest.augmented] if count else None
        )
        labels = np.zeros(len(forest.payoffs.values), np.int32)
        self._behind = np.full(len(labels), -1, np.int32)
        self._next_behind = np.full(len(forest.next_augmented), -1, np.int32)
        if count:
            # Every sequence of o but the empty one lies behind an augmented infoset.
            self._behind = other_side.top[other_side.owner[other_ends]]
            labels = other_side.labels[self._behind]
            self._next_behind = other_side.top[len(other) - len(self._next_behind) :]
        self._augmented = Groups(other_side.labels[:count])
        cut = forest.cut
        if cut is not None:
            own_cut, other_cut = cut.sequences[i], cut.sequences[o]
            self._cut_behind = other_side.top[other_side.owner[other_cut]]
            cut_labels = (
                self._own.labels[self._own.owner[own_cut]],
                other_side.labels[other_side.owner[other_cut]],
            )
        if count and gadget != "cfrd":
            other_side, change = with_gadget(other_side, count, gadget)
            other_ends = change[other_ends]
            if cut is not None:
                other_cut = change[other_cut]
        self._other, self._ends = other_side, (own_ends, other_ends)
        self._payoffs = Groups(labels)
        fragments = (self._own.groups, other_side.groups, self._payoffs)
        numbers = np.unique(np.concatenate([groups.numbers for groups in fragments]))
        self._known: dict[int, Subgame | None] = dict.fromkeys(numbers.tolist())
        shapes = (
            _capacity(self._own, own_ends, labels),
            _capacity(other_side, other_ends, labels),
        )
        self.capacity = shapes if i == 0 else (shapes[1], shapes[0])
        self._cut_off: LayerCut | None = None
        if cut is not None:
            self._cut_off = LayerCut(
                *(cut, i, list(self._known), (own_cut, other_cut), cut_labels),
                (self._own.decisions, other_side.decisions),
            )
        last = other_side.labels[len(other_side.labels) - len(self._next_behind) :]
        widths = np.bincount(last, minlength=int(numbers[-1]) + 1)
        self.widest = int(numbers[widths[numbers].argmax()])

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __getitem__(self, number: int) -> Subgame:
        subgame = self._known[number]
        if subgame is None:
            subgame = self._known[number] = self._cut(number)
        return subgame

    def game(
        self,
        number: int,
        own_reach: np.ndarray,
        opponent_values: np.ndarray,
        opponent_reach: np.ndarray,
    ) -> GadgetGame:
        """A subgame with what the match decided before it.

        Args:
          number: the subgame.
          own_reach: float64 [r], i's average reach of the subgame's roots. Where it is
            zero throughout, all roots weigh the same: a valid game, though i itself
            never plays it.
          opponent_values: float64 [g], o's counterfactual values at the subgame's
            augmented infosets.
          opponent_reach: float64 [g], o's average reach of them; "unsafe" only.
        """
        subgame = self[number]
        constant = subgame.root < 0
        factor = np.where(constant, 1.0, np.append(or_ones(own_reach), 1)[subgame.root])
        if len(subgame.augmented) and self.gadget == "unsafe":
            reach = or_ones(opponent_reach)
            factor *= (reach / reach.sum())[subgame.behind]
            factor[constant] = 0
        elif len(subgame.augmented):
            values = opponent_values[subgame.behind[constant]]
            factor[constant] *= values if self.gadget == "cfrd" else -values
        payoffs = Payoffs(subgame.rows, subgame.columns, subgame.base * factor)
        form = build(subgame.decisions, payoffs, capacity=self.capacity)
        if self._cut_off is not None and subgame.cut is not None:
            other = np.ones(len(subgame.cut.behind))
            if len(subgame.augmented) and self.gadget == "unsafe":
                other = (reach / reach.sum())[subgame.cut.behind]
            own = or_ones(own_reach)[subgame.cut.root]
            form = self._cut_off.attach(form, subgame.cut, own, other)
        other_first = self.gadget == "maxmargin" and len(subgame.augmented) > 0
        return GadgetGame(form, subgame, self.player ^ other_first)

    def _cut(self, number: int) -> Subgame:
        forest, own_side, other_side = self._forest, self._own, self._other
        own_kept = own_side.groups.of(number)
        other_kept = other_side.groups.of(number)
        augmented, entries = self._augmented.of(number), self._payoffs.of(number)
        own, own_rows = own_side.restrict(own_kept, self._ends[0][entries])
        other, other_rows = other_side.restrict(other_kept, self._ends[1][entries])
        opening = own_kept[own_side.decisions.parent[own_kept] == 0]
        last_own = own_side.owner[self._ends[0][entries]]
        root = np.full(len(entries), -1, np.int32)
        owned = last_own >= 0
        root[owned] = np.searchsorted(opening, own_side.top[last_own[owned]])
        first_next = len(other_side.decisions) - len(self._next_behind)
        following = other_kept[other_kept >= first_next] - first_next
        behind, next_behind = self._behind[entries], self._next_behind[following]
        if len(augmented):
            behind = np.searchsorted(augmented, behind).astype(np.int32)
            next_behind = np.searchsorted(augmented, next_behind).astype(np.int32)
        sides = [(own, own_rows), (other, other_rows)]
        (first, rows), (second, columns) = sides if self.player == 0 else sides[::-1]
        cut = None
        if self._cut_off is not None:
            mine, others = (groups.of(number) for groups in self._cut_off.groups)
            _, own_cut = own_side.restrict(own_kept, self._cut_off.sequences[0][mine])
            _, other_cut = other_side.restrict(
                other_kept, self._cut_off.sequences[1][others]
            )
            above = own_side.top[own_side.owner[self._cut_off.sequences[0][mine]]]
            cut = self._cut_off.of(
                number,
                (own_cut, other_cut),
                np.searchsorted(opening, above).astype(np.int32),
                np.searchsorted(augmented, self._cut_behind[others]).astype(np.int32),
            )
        own_infosets = forest.own[own_kept]
        return Subgame(
            decisions=(first, second),
            rows=rows,
            columns=columns,
            base=forest.payoffs.values[entries],
            root=root,
            behind=behind,
            own=own_infosets,
            in_layer=self._d.own_layer[own_infosets] == self._number,
            roots=forest.own[opening],
            augmented=forest.augmented[augmented],
            next_augmented=forest.next_augmented[following],
            next_behind=next_behind,
            in_forest=(own_kept, other_kept),
            cut=cut,
        )


def best_response_values(
    subgame: Subgame, player: int, own_reach: np.ndarray, behaviour: np.ndarray
) -> np.ndarray:
    """What o's best responses get from the augmented infosets of the next layer on.

    For solvers that need no `GadgetGame`: without a program to compile.

    Args:
      subgame: the subgame.
      player: i, the resolving player.
      own_reach: float64 [r], as of `Layer.game`.
      behaviour: float64 [S of i in the subgame], i's action probabilities.

    Returns:
      float64 [n], o's counterfactual values, in the order of `next_augmented`.
    """
    own, other = subgame.decisions[player], subgame.decisions[1 - player]
    sequences = subgame.rows, subgame.columns
    gain = subgame.base * np.append(or_ones(own_reach), 1.0)[subgame.root]
    gain *= reach_from_behaviour(own, behaviour)[sequences[player]]
    gain *= 2 * player - 1
    count = other.num_sequences
    # What terminating is worth is no concern here: it lies below none of them.
    total = np.bincount(sequences[1 - player], gain, minlength=count)
    values, levels = np.zeros(len(other)), other.levels()
    owner = other.owner
    for level in range(int(levels.max(initial=-1)), -1, -1):
        infosets = np.flatnonzero(levels == level)
        mine = 1 + np.flatnonzero(levels[owner[1:]] == level)
        begin = np.flatnonzero(np.diff(owner[mine], prepend=-1))
        values[infosets] = np.maximum.reduceat(total[mine], begin)
        np.add.at(total, other.parent[infosets], values[infosets])
    return values[len(values) - len(subgame.next_augmented) :]


def or_ones(reach: np.ndarray) -> np.ndarray:
    """A reach, or ones where it is zero throughout."""
    return reach if reach.any() else np.ones_like(reach)


class Side:
    """One player's infosets in a forest, by subgame.

    Attributes:
      decisions: all of them.
      top: int32 [I], the infoset of the first level above each infoset, or itself.
      labels: int32 [I], their subgames.
      owner: int32 [S], see `Decisions`.
      groups: by subgame.
    """

    def __init__(self, decisions: Decisions, subgame_of: np.ndarray | None) -> None:
        """From the subgames of the first level's infosets; None: one subgame."""
        self.decisions, self.top = decisions, top_infosets(decisions)
        self.owner, self._first = decisions.owner, decisions.first_sequence
        self.labels = np.zeros(len(decisions), np.int32)
        if subgame_of is not None:
            self.labels = subgame_of[self.top]
        self.groups = Groups(self.labels)

    def restrict(
        self, kept: np.ndarray, ends: np.ndarray
    ) -> tuple[Decisions, np.ndarray]:
        """Some infosets, renumbered, and int32, some of their sequences."""
        counts = self.decisions.num_actions[kept]
        mine = np.append(0, ranges(self._first[kept], counts))
        parents = np.searchsorted(mine, self.decisions.parent[kept]).astype(np.int32)
        return Decisions(parents, counts), np.searchsorted(mine, ends).astype(np.int32)


def with_gadget(side: Side, count: int, gadget: Gadget) -> tuple[Side, np.ndarray]:
    """o's side with another gadget in place of the CFR-D one, its first infosets.

    Args:
      side: o's infosets, the first of them augmented ones.
      count: how many are augmented.
      gadget: "unsafe": they are left out; "maxmargin": all of a subgame become the
        actions of one infoset.

    Returns:
      That side; int32 [S], o's sequences in its numbers.
    """
    decisions, labels = side.decisions, side.labels[:count]
    subgames, widths = np.unique(labels, return_counts=True)
    choice = np.zeros(count, np.int64)
    choice[np.argsort(labels, kind="stable")] = 1 + np.arange(count)
    if gadget == "unsafe":
        subgames, widths, choice = subgames[:0], widths[:0], 0 * choice
    # Sequences 2g + 1 and 2g + 2 are *terminate* and *follow* at augmented infoset g.
    rest = 1 + widths.sum() + np.arange(decisions.num_sequences - 1 - 2 * count)
    change = np.concatenate([[0], np.repeat(choice, 2), rest]).astype(np.int32)
    parents = [np.zeros(len(subgames), np.int32), change[decisions.parent[count:]]]
    num_actions = np.append(widths, decisions.num_actions[count:]).astype(np.int32)
    changed = Decisions(np.concatenate(parents), num_actions)
    return Side(changed, np.append(subgames, side.labels[count:])), change


def _capacity(side: Side, ends: np.ndarray, labels: np.ndarray) -> PaddedShape:
    """The least padded shape in which one player's side of each subgame fits.

    Args:
      side: the player's infosets.
      ends: int32 [P], the payoffs' sequences of the player.
      labels: int32 [P], the payoffs' subgames.
    """
    levels, sizes = side.decisions.levels(), side.decisions.num_actions
    infosets = [
        packing.cover(side.labels[levels == level], sizes[levels == level])
        for level in range(int(levels.max(initial=-1)) + 1)
    ]
    # The empty sequence alone is part of every subgame.
    sequence = np.where(ends > 0, ends, len(side.owner) + labels)
    lengths = np.bincount(sequence)
    owner = np.zeros(len(lengths), np.int64)
    owner[sequence] = labels
    used = np.flatnonzero(lengths)
    return PaddedShape(tuple(infosets), packing.cover(owner[used], lengths[used]))
