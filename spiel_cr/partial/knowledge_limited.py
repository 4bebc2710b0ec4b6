"""Knowledge-limited subgames: what a decision needs of a subgame that is too large.

The subgame that opens at an infoset I of the resolving player i holds every history
that is reached from I by going on from "i cannot tell it from this" to "the opponent o
cannot tell it from that" without end (common knowledge, see `decomposition.py`). In
many games that is nearly all histories of a layer. Zhang & Sandholm (2021, "Subgame
solving without common knowledge") stop after k steps and hold i's strategy fixed where
they stopped:

  knowledge set   I^1 = I; I^2 = the histories in o's augmented infosets that touch
                  I^1; I^3 = those in i's infosets that touch I^2; and so on.
  free            i's infosets whose histories are all in I^k: there, and at all that
                  comes after, i chooses anew.
  kept            the histories in o's augmented infosets that touch free infosets: I^2
                  for orders 1 and 2, I^4 for orders 3 and 4. At kept histories whose
                  infoset of i is not free, i plays on as before. That is a fixed
                  policy, so it is part of the payoffs, at i's empty sequence.

Kept are whole augmented infosets, so what o gets at each is known in full, and any
further infoset of o below them has all of its histories below them (perfect recall).
Of augmented infosets that no free infoset touches nothing changes, so they are left
out. (Zhang & Sandholm keep I^{k+1} for every k; for even k the histories of I^{k+1}
that are not in I^k are of that kind.)

What is safe. Let v be what o gets at best at each augmented infoset against i's whole
strategy x, and x' what a gadget game of kind "cfrd" or "maxmargin" with these v gives:

  - x' in *one* subgame of any order, x elsewhere: x' is no more exploitable than x. x
    itself is a strategy of the gadget game in which no augmented infoset is worth more
    to o than v, so an optimal one has that property, too; other augmented infosets are
    worth what they were.
  - x' in several subgames *one after the other*, each made with the strategies found
    before it: likewise, step by step. So what i does on the way through one match,
    seen alone, is safe.
  - x' in several subgames, each made with the same x: *not safe*, unless they have no
    augmented infoset in common, which common-knowledge subgames (order None) never
    have. Two infosets of i that share an augmented infoset may each give away there
    what the other one, as it was, made good. tests/partial/test_knowledge_limited.py
    has such a game. A player that solves where a match leads it is of this kind, and
    order 1 spoils good strategies that order 2, with the same roots, mends
    (docs/leaves.md has figures).
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np

from spiel_cr.common.checks import check_choice, check_whole
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.gadget import (
    Gadget,
    in_order,
    opponent_side,
    renumbered_sequences,
    top_infosets,
)
from spiel_cr.sequence_form.decisions import Decisions, Payoffs, sum_payoffs
from spiel_cr.sequence_form.layout import SequenceForm, build


class KnowledgeSet(NamedTuple):
    """What a knowledge-limited subgame has at its top.

    Attributes:
      layer: whose roots these are.
      free: int32 [f], i's opening infosets at which it chooses anew, ascending.
      fixed: int32 [h], its other opening infosets that touch the kept histories.
      cut: int32 [c], those of `fixed` of which some histories are not kept.
      roots: int64 [r], the kept histories.
      augmented: int32 [g], o's augmented infosets: all of their histories are kept.
    """

    layer: int
    free: np.ndarray
    fixed: np.ndarray
    cut: np.ndarray
    roots: np.ndarray
    augmented: np.ndarray


@dataclasses.dataclass(frozen=True)
class LimitedGame:
    """A knowledge-limited subgame as a solver takes it.

    Attributes:
      decisions: each player's decision points, in the order of players.
      payoffs: player 0's utility times chance and i's reach of the root; that of i's
        fixed policy, too, where it does not choose.
      own: int32 [m], i's infosets (numbers of the whole game), in this order.
      gadget_infosets: how many infosets of o the gadget has; they are its first ones,
        with two actions each (terminate, follow), or one with g ("maxmargin").
      augmented: int32 [g], the augmented infosets behind the gadget.
      other: int32 [k], o's infosets (numbers of the whole game), next.
      next_augmented: int32 [n], augmented infosets of the next layer, o's last ones.
      first: who updates first where updates alternate, see
        `subgame_games.GadgetGame`.
      extended: int32, o's extended sequences (see `Decomposition`) in its decisions
        with the gadget "cfrd"; 0: not behind a kept augmented infoset.
    """

    decisions: tuple[Decisions, Decisions]
    payoffs: Payoffs
    own: np.ndarray
    gadget_infosets: int
    augmented: np.ndarray
    other: np.ndarray
    next_augmented: np.ndarray
    first: int
    extended: np.ndarray

    @functools.cached_property
    def form(self) -> SequenceForm:
        """The game that a solver solves, laid out when it is first asked for."""
        return build(self.decisions, self.payoffs)


def knowledge_set(
    d: Decomposition,
    infosets: int | Sequence[int] | np.ndarray,
    order: int | None,
    *,
    held: np.ndarray | None = None,
) -> KnowledgeSet:
    """The knowledge set of some of i's infosets.

    Args:
      d: the layers of a compiled game, or of what is there of one.
      infosets: I, one or several opening infosets of one layer.
      order: k, at least 1; None: common knowledge, the whole subgames that I opens.
      held: bool [I of i], opening infosets that must not be free, although all of their
        histories that are in this tree are within the set: a tree that was cut down to
        a knowledge set no longer shows which of them had others (`KnowledgeSet.cut`,
        and what comes after: `infosets_after`). I itself is always free.

    Raises:
      ValueError: a bad order, or infosets that do not open one layer.
    """
    asked = np.atleast_1d(np.asarray(infosets, np.int64))
    if order is not None:
        check_whole(order, "order", 1)
    if not len(asked) or not d.opens[asked].all():
        raise ValueError(
            "infosets must open a layer each, of player "
            f"{d.player}; see Decomposition.opens"
        )
    layer = int(d.own_layer[asked[0]])
    if (d.own_layer[asked] != layer).any():
        raise ValueError("infosets must be of one layer; ask for one layer at a time")
    here = np.flatnonzero(d.layer[d.roots] == layer)
    own = d.tree.histories.infoset[d.roots[here]]
    other = d.root_augmented[here]
    count, augmented_count = len(d.own_layer), len(d.augmented_layer)
    within = _within(own, other, np.isin(own, asked), order)
    free = _mask(own[within], count) & ~_mask(own[~within], count)
    if held is not None:
        free &= ~held
    free[asked] = True
    augmented = _mask(other[free[own]], augmented_count)
    kept = augmented[other]
    fixed = _mask(own[kept], count) & ~free
    cut = fixed & _mask(own[~kept], count)
    return KnowledgeSet(
        layer,
        free=_numbers(free),
        fixed=_numbers(fixed),
        cut=_numbers(cut),
        roots=d.roots[here[kept]],
        augmented=_numbers(augmented),
    )


def _within(
    own: np.ndarray, other: np.ndarray, asked: np.ndarray, order: int | None
) -> np.ndarray:
    """bool [r], roots that are in a knowledge set.

    Args:
      own, other: int32 [r], i's and o's (augmented) infosets at the roots.
      asked: bool [r], where the set begins: of order 1.
      order: as of `knowledge_set`.
    """
    within = asked
    for step in itertools.count(1) if order is None else range(1, order):
        before = int(within.sum())
        # What o cannot tell from them, and what i cannot tell from these, in turn.
        knowledge = other if step % 2 else own
        within = np.isin(knowledge, knowledge[within])
        if int(within.sum()) == before:
            break
    return within


def infosets_after(d: Decomposition, infosets: np.ndarray) -> np.ndarray:
    """bool [I of i], some of i's infosets and all that come after them."""
    decisions = d.decisions
    above = decisions.owner[decisions.parent]
    after, levels = _mask(infosets, len(decisions)), decisions.levels()
    for level in range(1, int(levels.max(initial=0)) + 1):
        here = np.flatnonzero(levels == level)
        after[here] |= after[above[here]]
    return after


def limited_game(
    d: Decomposition,
    known: KnowledgeSet,
    behaviour: tuple[np.ndarray, np.ndarray],
    opponent_values: np.ndarray,
    gadget: Gadget = "cfrd",
) -> LimitedGame:
    """The gadget game of a knowledge set.

    With a set of order None, that is what `subgame_games.Layer` and a reach of i's give
    for the subgame, but for the padded shape.

    Args:
      d: the layers that the set was found in.
      known: from `knowledge_set`.
      behaviour: for each player float64 [S], action probabilities: i's so far, for its
        reach and for its fixed policy; o's is used by the gadget "unsafe" only.
      opponent_values: float64 [G], o's counterfactual value at each augmented infoset:
        what it was promised. The values of a best response to i's strategy so far, or
        what it got in the solve that found that strategy (docs/resolving.md).
      gadget: "cfrd", "maxmargin" or "unsafe", see `subgame_games`.

    Where i's own reach of all free infosets is zero, these weigh the same and nothing
    else counts: i never comes there, and should have a sensible strategy all the same.

    Raises:
      ValueError: an unknown gadget.
    """
    check_choice(gadget, "gadget", get_args(Gadget))
    i, layer, histories = d.player, known.layer, d.tree.histories
    own, own_side, own_sequence = _own_side(d, known)
    other, other_side, extended, following = _opponent_side(d, known)
    g = len(known.augmented)
    ends, columns = _ends(d, layer, extended)
    rows = own_sequence[histories.sequence[i][ends]]
    gain = histories.chance[ends] * histories.utility[ends]
    gain *= _own_weights(d, behaviour[i], own, own_side, rows, ends)

    sign = 1.0 if i == 1 else -1.0
    values = sign * opponent_values[known.augmented]
    terminate = 1 + 2 * np.arange(g, dtype=np.int32)
    gadget_infosets = {"cfrd": g, "maxmargin": 1, "unsafe": 0}[gadget]
    if gadget == "unsafe":
        behind = top_infosets(other_side)[other_side.owner[columns]]
        gain *= _opponent_reach(d, known, behaviour[1 - i])[behind]
        other_side, change = _no_choice(other_side, g)
        columns, terminate, values = change[columns], change[terminate], 0 * values
    decisions, payoffs = in_order(
        i,
        (own_side, np.append(rows, np.zeros(g, np.int32))),
        (other_side, np.append(columns, terminate)),
        np.append(gain, values),
    )
    if gadget == "maxmargin":
        decisions, payoffs = max_margin(decisions, payoffs, g, 1 - i)
    return LimitedGame(
        *(decisions, payoffs, own, gadget_infosets),
        augmented=known.augmented,
        other=other,
        next_augmented=following,
        first=i ^ (gadget == "maxmargin"),
        extended=extended,
    )


def _ends(
    d: Decomposition, layer: int, extended: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """int64 [n], terminals with payoffs behind the roots; int32 [n], o's sequences.

    Args:
      d: the layers.
      layer: of the roots.
      extended: from `_opponent_side`.
    """
    ends = d.terminals[d.layer[d.terminals] >= layer]
    ends = ends[d.tree.histories.utility[ends] != 0]
    columns = extended[d.extended[ends]]
    return ends[columns > 0], columns[columns > 0]


def max_margin(
    decisions: tuple[Decisions, Decisions],
    payoffs: Payoffs,
    count: int,
    opponent: int,
) -> tuple[tuple[Decisions, Decisions], Payoffs]:
    """A game of one subgame with the gadget "maxmargin" in place of "cfrd".

    Args:
      decisions: each player's; o's first infosets are its augmented ones, with the
        actions terminate and follow, as in a `gadget.Forest`.
      payoffs: player 0's.
      count: of augmented infosets.
      opponent: o.

    Returns:
      The same, but for o's first infosets: one, at which it chooses among the augmented
      ones, and is charged what terminating there was worth.
    """
    side, change = _one_choice(decisions[opponent], count)
    ends = [payoffs.rows, payoffs.columns]
    terminates = (ends[opponent] <= 2 * count) & (ends[opponent] % 2 == 1)
    values = np.where(terminates, -payoffs.values, payoffs.values)
    ends[opponent] = change[ends[opponent]]
    pair = (decisions[0], side) if opponent else (side, decisions[1])
    return pair, sum_payoffs(ends[0], ends[1], values)


def _mask(numbers: np.ndarray, count: int) -> np.ndarray:
    """bool [count], True at some numbers."""
    mask = np.zeros(count, bool)
    mask[numbers] = True
    return mask


def _numbers(mask: np.ndarray) -> np.ndarray:
    """int32, where a mask is True."""
    return np.flatnonzero(mask).astype(np.int32)


def _own_side(
    d: Decomposition, known: KnowledgeSet
) -> tuple[np.ndarray, Decisions, np.ndarray]:
    """i's infosets that are free, their decisions, and int32 [S], their sequences."""
    decisions = d.decisions
    own = _numbers(infosets_after(d, known.free))
    sequence = renumbered_sequences(decisions, own)
    side = Decisions(sequence[decisions.parent[own]], decisions.num_actions[own])
    return own, side, sequence


def _opponent_side(
    d: Decomposition, known: KnowledgeSet
) -> tuple[np.ndarray, Decisions, np.ndarray, np.ndarray]:
    """o's decisions behind the gadget "cfrd".

    Returns:
      int32 [k], its infosets; the decisions; int32, the extended sequences' numbers in
      them, 0 for what is not behind a kept augmented infoset; int32 [n], the augmented
      infosets of the next layer.
    """
    layer = known.layer
    augmented = np.flatnonzero(d.augmented_layer == layer)
    other = np.flatnonzero(d.other_layer >= layer)
    following = np.flatnonzero(d.augmented_layer == layer + 1)
    side, extended = opponent_side(d, layer, augmented, other, following)
    # Each infoset has one augmented infoset of the layer above it, its top.
    within = np.isin(augmented, known.augmented)[top_infosets(side)]
    kept = _numbers(within)
    sequences = renumbered_sequences(side, kept)
    parents = sequences[side.parent[kept]]
    _, mine, after = np.split(within, np.cumsum([len(augmented), len(other)]))
    return (
        other[mine].astype(np.int32),
        Decisions(parents, side.num_actions[kept]),
        sequences[extended],
        following[after].astype(np.int32),
    )


def reach_at(
    d: Decomposition, own: np.ndarray, behaviour: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """float64 [n], i's reach of the roots above ends; below fixed ones throughout.

    Args:
      d: the layers.
      own: int32 [m], i's infosets in a knowledge-limited game.
      behaviour: float64 [S], i's.
      ends: int64 [n], histories.
    """
    sequence = renumbered_sequences(d.decisions, own)
    side = Decisions(sequence[d.decisions.parent[own]], d.decisions.num_actions[own])
    rows = sequence[d.tree.histories.sequence[d.player][ends]]
    return _own_weights(d, behaviour, own, side, rows, ends)


def _own_weights(
    d: Decomposition,
    behaviour: np.ndarray,
    own: np.ndarray,
    own_side: Decisions,
    rows: np.ndarray,
    ends: np.ndarray,
) -> np.ndarray:
    """float64 [n], i's reach of the roots, and of ends below fixed ones throughout.

    Args:
      d: the layers.
      behaviour: float64 [S], i's.
      own: int32 [m], its infosets that are free.
      own_side: their decisions.
      rows: int32 [n], their sequences at the ends; 0 below fixed infosets.
      ends: int64 [n], histories.
    """
    decisions = d.decisions
    reach = reach_from_behaviour(decisions, behaviour)
    weight = reach[d.tree.histories.sequence[d.player][ends]]
    at_root = reach[decisions.parent[own]]
    unreached = not at_root[own_side.parent == 0].any()
    if unreached:
        at_root = np.ones_like(at_root)
    is_free = rows > 0
    top = top_infosets(own_side)[own_side.owner[rows[is_free]]]
    weight[is_free] = at_root[top]
    if unreached:
        weight[~is_free] = 0
    return weight


def _opponent_reach(
    d: Decomposition, known: KnowledgeSet, behaviour: np.ndarray
) -> np.ndarray:
    """float64 [g], how likely o comes to each augmented infoset; sums to 1."""
    other, o = d.tree.infosets[1 - d.player].decisions, 1 - d.player
    order = np.argsort(d.root_augmented, kind="stable")
    first = order[np.searchsorted(d.root_augmented[order], known.augmented)]
    sequence = d.tree.histories.sequence[o][d.roots[first]]
    reach = reach_from_behaviour(other, behaviour)[sequence]
    if not reach.any():
        reach = np.ones_like(reach)
    return reach / reach.sum()


def _one_choice(side: Decisions, count: int) -> tuple[Decisions, np.ndarray]:
    """o chooses among all augmented infosets at one, and int32, the new sequences."""
    choice = np.repeat(1 + np.arange(count), 2)
    rest = 1 + count + np.arange(side.num_sequences - 1 - 2 * count)
    change = np.concatenate([[0], choice, rest]).astype(np.int32)
    parents = np.append(np.int32(0), change[side.parent[count:]])
    num_actions = np.append(np.int32(count), side.num_actions[count:])
    return Decisions(parents, num_actions), change


def _no_choice(side: Decisions, count: int) -> tuple[Decisions, np.ndarray]:
    """o without the gadget's infosets, and int32, the new sequences."""
    rest = 1 + np.arange(side.num_sequences - 1 - 2 * count)
    change = np.concatenate([np.zeros(1 + 2 * count), rest]).astype(np.int32)
    return Decisions(change[side.parent[count:]], side.num_actions[count:]), change
