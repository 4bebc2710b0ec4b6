"""Signal games in sequence form, as solvers of compiled games take them.

An infoset is a public decision and a signal. In the solvers' arrays the infosets of one
public decision lie side by side, signal by signal, so whole *slices* of them move
between levels (`treeplex.Slices`), and a leaf's values are a kernel applied to a slice
of the opponent's reach. All else (regrets, averages, checkpoints, best responses) is
the code that solves compiled games.

Logical numbers: a player's public decisions come in the order of their nodes; infoset =
first of its decision + signal; sequences are numbered as `Decisions` does, infoset by
infoset. A *public sequence* is the empty one, 0, or an action at a public decision, in
the same order.

Legend for shapes: J public decisions, H signals, T terms, L rows of leaf values.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.sequence_form import layout, packing, treeplex
from spiel_cr.sequence_form.decisions import Decisions, Payoffs, sum_payoffs
from spiel_cr.sequence_form.treeplex import Slices
from spiel_cr.signals import kernels as kernel_forms
from spiel_cr.signals.game import HandKernel, Kernel, SignalGame

# Narrower slices are moved element by element, and all at once.
_NARROW = 8
# What one more block costs, in array elements; as in `sequence_form.layout`. In large
# games it is the compiler's time that counts: this share of all elements.
_BLOCK_OVERHEAD = 4000
_BLOCK_SHARE = 1 / 300
# As many entries of a coupling are listed.
_MOST_LISTED = 50_000_000
# As many entries are faster one by one than as products of kernels.
_FEW_PAYOFFS = 100_000
_ROUNDING = 16 * float(np.finfo(np.float64).eps)

# For each player and round int32 [H], the signal before (see `SignalGame.parents`).
Parents = tuple[Sequence[np.ndarray], Sequence[np.ndarray]]


class PublicSide(NamedTuple):
    """One player's public decisions.

    Attributes:
      parent: int32 [J], the own public sequence before; 0 where there is none.
      num_actions: int32 [J].
      round: int8 [J], whose signals the player has there.
    """

    parent: np.ndarray
    num_actions: np.ndarray
    round: np.ndarray

    @property
    def decisions(self) -> Decisions:
        """The same without signals."""
        return Decisions(self.parent, self.num_actions)

    @property
    def sequence_rounds(self) -> np.ndarray:
        """int64, the round of each public sequence; -1 of the empty one."""
        rounds = np.repeat(self.round.astype(np.int64), self.num_actions)
        return np.append(np.int64(-1), rounds)


class PublicTerms(NamedTuple):
    """What is paid, by the players' last public sequences: stake · kernel.

    Attributes:
      sequences: for each player int32 [T], public sequences; their rounds are not later
        than that of the kernel.
      kernel: int32 [T].
      stake: float64 [T], player 0's utility.
      weights: for each player None, or what its reach is multiplied by before the
        opponent's values are taken: T arrays [H of the sequence's round]. The player's
        own values stay as they are.
    """

    sequences: tuple[np.ndarray, np.ndarray]
    kernel: np.ndarray
    stake: np.ndarray
    weights: tuple[Sequence[np.ndarray] | None, Sequence[np.ndarray] | None] = (
        None,
        None,
    )


class Constants(NamedTuple):
    """What one player gets at some of its sequences, whatever the opponent does.

    Attributes:
      player: who gets it.
      sequences: int32 [C], public sequences.
      values: C arrays float64 [H of the sequence's round], the player's utility.
    """

    player: int
    sequences: np.ndarray
    values: Sequence[np.ndarray]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Product:
    """The terms of one kernel for one player; see `treeplex.Coupling`.

    Attributes:
      kernel: laid out for the player.
      reach: the opponent's reach at each term.
      stake: float [T, 1], or [T, H'] where the opponent's reach is weighted.
      rows: the row of leaf values of each term, [L, H'] of them; None where each term
        has its own.
      other: int32 [H of the kernel's round], the opponent's earlier signal, where its
        last decision is of an earlier round; else None.
      own: the same of the player.
      zeros: float [L · H', or none where `rows` is None].
      own_zeros: float [L, H], where `own` is given.
    """

    kernel: kernel_forms.LaidOut
    reach: Slices
    stake: jax.Array
    rows: Slices | None
    other: jax.Array | None
    own: jax.Array | None
    zeros: jax.Array | None
    own_zeros: jax.Array | None

    def leaf_values(self, other_reach: jax.Array) -> jax.Array:
        """float [L · H]; see `Coupling`."""
        x = self.reach.take(other_reach).reshape(self.stake.shape[0], -1) * self.stake
        if self.rows is not None and self.zeros is not None:
            width = x.shape[1]
            x = self.rows.add_to(self.zeros, x.reshape(-1)).reshape(-1, width)
        if self.other is not None:
            x = x[:, self.other]
        y = self.kernel.apply(x)
        if self.own is not None and self.own_zeros is not None:
            y = self.own_zeros.at[:, self.own].add(y)
        return y.reshape(-1)

    def largest(self) -> float:
        """The largest |payoff|."""
        return float(np.abs(self.stake).max(initial=0)) * self.kernel.largest()

    def rescaled(self, exponent: int) -> "Product":
        """The same with payoffs over 2^exponent."""
        return dataclasses.replace(self, stake=treeplex.divide(self.stake, exponent))

    @property
    def num_payoffs(self) -> int:
        return self.stake.shape[0] * self.kernel.nbytes // 8

    @property
    def written_out_rows(self) -> int:
        return 1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ConstantRows:
    """Leaf values that do not depend on the opponent; see `treeplex.Coupling`.

    Attributes:
      values: float [r].
    """

    values: jax.Array

    def leaf_values(self, other_reach: jax.Array) -> jax.Array:
        """float [r]; see `Coupling`."""
        # The reach of the opponent's empty sequence is 1.
        return self.values * other_reach[0]

    def largest(self) -> float:
        """The largest |payoff|."""
        return float(np.abs(self.values).max(initial=0))

    def rescaled(self, exponent: int) -> "ConstantRows":
        """The same with payoffs over 2^exponent."""
        return ConstantRows(treeplex.divide(self.values, exponent))

    @property
    def num_payoffs(self) -> int:
        return self.values.size

    @property
    def written_out_rows(self) -> int:
        return 1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ConstantTotal:
    """What the other player's constants cost; see `treeplex.Coupling`.

    Attributes:
      sequences: the opponent's.
      values: float [r], this player's utility at each of them.
    """

    sequences: Slices
    values: jax.Array

    def leaf_values(self, other_reach: jax.Array) -> jax.Array:
        """float [1], a value of the empty sequence; see `Coupling`."""
        return (self.sequences.take(other_reach) * self.values).sum()[None]

    def largest(self) -> float:
        """The largest |payoff|."""
        return float(np.abs(self.values).max(initial=0))

    def rescaled(self, exponent: int) -> "ConstantTotal":
        """The same with payoffs over 2^exponent."""
        values = treeplex.divide(self.values, exponent)
        return dataclasses.replace(self, values=values)

    @property
    def num_payoffs(self) -> int:
        return self.values.size

    @property
    def written_out_rows(self) -> int:
        return 1


def form_of(game: SignalGame, *, products: bool | None = None) -> layout.SequenceForm:
    """A signal game in sequence form.

    Args:
      game: the game.
      products: whether leaf values are products of kernels; else the entries of the
        coupling are listed one by one, as those of compiled games. None: what is
        faster.

    Raises:
      GameTooLargeError: the entries are to be listed, and there are too many.
    """
    sides, terms = public_form(game)
    if products is None:
        pairs = np.array([_num_entries(kernel) for kernel in game.kernels])
        products = bool(pairs[terms.kernel].sum() > _FEW_PAYOFFS)
    if products:
        return build(sides, game.parents, game.kernels, terms)
    decisions = tuple(
        logical_decisions(side, parents)
        for side, parents in zip(sides, game.parents, strict=True)
    )
    payoffs = list_payoffs(sides, game.parents, game.kernels, terms)
    return layout.build((decisions[0], decisions[1]), payoffs)


def _num_entries(kernel: Kernel) -> float:
    """How many entries a kernel has, or at most has."""
    if isinstance(kernel, HandKernel):
        return float(np.prod(kernel.shape))
    return float(len(kernel.coordinates().values))


def public_form(
    game: SignalGame,
) -> tuple[tuple[PublicSide, PublicSide], PublicTerms]:
    """Both players' public decisions, and the terms by their last public sequences."""
    betting = game.betting
    size = len(betting)
    counts = np.bincount(betting.parent[1:], minlength=size).astype(np.int32)
    # The number of each node among the children of its parent.
    order = np.argsort(betting.parent[1:], kind="stable") + 1
    within = np.zeros(size, np.int32)
    within[order] = ranges(0, counts[counts > 0])
    depth = Decisions(betting.parent + 1, np.ones(size, np.int32)).levels()
    by_depth = np.split(
        np.argsort(depth, kind="stable"), np.cumsum(np.bincount(depth))[:-1]
    )
    sides, last = [], []
    for player in range(2):
        acts = betting.player == player
        nodes = np.flatnonzero(acts)
        num_actions = counts[nodes]
        first = np.zeros(size, np.int32)
        first[nodes] = 1 + np.cumsum(num_actions) - num_actions
        sequence = np.zeros(size, np.int32)
        for at_depth in by_depth[1:]:
            above = betting.parent[at_depth]
            own = first[above] + within[at_depth]
            sequence[at_depth] = np.where(acts[above], own, sequence[above])
        sides.append(PublicSide(sequence[nodes], num_actions, betting.round[nodes]))
        last.append(sequence[game.terms.leaf])
    terms = PublicTerms((last[0], last[1]), game.terms.kernel, game.terms.stake)
    return (sides[0], sides[1]), terms


def build(
    sides: tuple[PublicSide, PublicSide],
    parents: Parents,
    kernels: Sequence[Kernel],
    terms: PublicTerms,
    constants: Sequence[Constants] = (),
) -> layout.SequenceForm:
    """Lays out both players' public decisions by signals, with kernels as coupling.

    Args:
      sides: the players' public decisions; parents may come in any order.
      parents: of signals, for each player and round.
      kernels: how signals compare.
      terms: what is paid.
      constants: what is paid besides.
    """
    plans = [_plan(side, above) for side, above in zip(sides, parents, strict=True)]
    arrays = []
    for player, plan in enumerate(plans):
        other = plans[1 - player]
        arrays.append(_couple(player, plan, other, kernels, terms, constants))
    decisions = tuple(
        logical_decisions(side, above)
        for side, above in zip(sides, parents, strict=True)
    )
    listing = functools.partial(list_payoffs, sides, parents, kernels, terms, constants)
    return layout.SequenceForm(
        (decisions[0], decisions[1]),
        listing,
        (_layout(plans[0]), _layout(plans[1])),
        (arrays[0], arrays[1]),
    )


def list_payoffs(
    sides: tuple[PublicSide, PublicSide],
    parents: Parents,
    kernels: Sequence[Kernel],
    terms: PublicTerms,
    constants: Sequence[Constants] = (),
) -> Payoffs:
    """The coupling in coordinates of logical sequences; arguments as of `build`.

    Raises:
      GameTooLargeError: there are more than 50 million entries.
    """
    entries = [kernel.coordinates() for kernel in kernels]
    sizes = np.array([len(entry.values) for entry in entries], np.int64)
    count = int(sizes[terms.kernel].sum())
    if count > _MOST_LISTED:
        raise GameTooLargeError(
            f"the payoff coupling has {count:,} entries, more than the {_MOST_LISTED:,}"
            f" that are listed; use what works by kernels, such as cfr+ instead of lp"
        )
    starts = [
        _logical_starts(side, above) for side, above in zip(sides, parents, strict=True)
    ]
    rounds = [side.sequence_rounds for side in sides]
    parts: list[list[np.ndarray]] = [[], [], []]
    for t, k in enumerate(terms.kernel):
        values = terms.stake[t] * entries[k].values
        for p in range(2):
            public = terms.sequences[p][t]
            signal = entries[k][p]
            above = _ancestors(parents[p], kernels[k].round, int(rounds[p][public]))
            signal = above[signal]
            start, stride = starts[p][public]
            parts[p].append((start + signal * stride).astype(np.int32))
            weights = terms.weights[p]
            if weights is not None:
                values = values * weights[t][signal]
        parts[2].append(values)
    for given in constants:
        p = given.player
        for public, own in zip(given.sequences, given.values, strict=True):
            start, stride = starts[p][public]
            parts[p].append(start + stride * np.arange(len(own), dtype=np.int32))
            parts[1 - p].append(np.zeros(len(own), np.int32))
            parts[2].append(own if p == 0 else -own)
    rows, columns, values = (
        np.concatenate(part) if part else np.zeros(0, kind)
        for part, kind in zip(parts, (np.int32, np.int32, np.float64), strict=True)
    )
    return sum_payoffs(rows, columns, values)


def _ancestors(parents: Sequence[np.ndarray], round: int, above: int) -> np.ndarray:
    """int32 [H], the signal of an earlier round (-1: none) behind each of a round."""
    signal = np.arange(len(parents[round]), dtype=np.int32)
    for r in range(round, above, -1):
        signal = parents[r][signal].astype(np.int32)
    return signal


def _logical_starts(side: PublicSide, parents: Sequence[np.ndarray]) -> np.ndarray:
    """int64 [public sequences, 2]: the logical sequence of signal 0, and the step from
    one signal to the next."""
    sizes = np.array([len(parent) for parent in parents], np.int64)
    totals = sizes[side.round] * side.num_actions
    first = 1 + np.cumsum(totals) - totals
    starts = np.repeat(first, side.num_actions) + ranges(0, side.num_actions)
    table = np.stack([starts, np.repeat(side.num_actions, side.num_actions)], axis=1)
    return np.concatenate([np.zeros((1, 2), np.int64), table])


def logical_decisions(side: PublicSide, parents: Sequence[np.ndarray]) -> Decisions:
    """A player's decision points with signals, in logical numbers."""
    sizes = np.array([len(parent) for parent in parents], np.int64)
    counts = sizes[side.round]
    first = np.cumsum(counts) - counts
    starts, rounds = _logical_starts(side, parents), side.sequence_rounds
    result = np.zeros(int(counts.sum()), np.int32)
    before = rounds[side.parent]
    for round in np.unique(side.round):
        for above in np.unique(before[side.round == round]):
            mine = np.flatnonzero((side.round == round) & (before == above))
            behind = _ancestors(parents, int(round), int(above))
            start, stride = starts[side.parent[mine]].T
            places = first[mine, None] + np.arange(len(behind))
            result[places] = start[:, None] + stride[:, None] * behind
    return Decisions(result, np.repeat(side.num_actions, counts).astype(np.int32))


class _Block(NamedTuple):
    """Public decisions that lie in one block.

    Attributes:
      members: int64 [n], public decisions.
      num_actions: of the block; more than those of some members where it is padded.
      hands: H.
      parent: where the parents' slices begin in the level above.
      start: place of the block in its level.
    """

    members: np.ndarray
    num_actions: int
    hands: int
    parent: tuple[Slices, ...]
    start: int


class _Plan(NamedTuple):
    """Where one player's public decisions lie.

    Attributes:
      side: the player's public decisions.
      parents: of its signals.
      levels: the blocks of each level.
      position: int64 [public sequences], where the slice of each one begins.
      infoset: int64 [J], where the slice of each decision's infosets begins.
      size: of vectors over positions.
    """

    side: PublicSide
    parents: Sequence[np.ndarray]
    levels: list[list[_Block]]
    position: np.ndarray
    infoset: np.ndarray
    size: int


def _plan(side: PublicSide, parents: Sequence[np.ndarray]) -> _Plan:
    """Chooses levels, blocks and positions."""
    decisions = side.decisions
    depth, first = decisions.levels(), decisions.first_sequence
    rounds = side.sequence_rounds
    before = rounds[side.parent]
    position = np.zeros(decisions.num_sequences, np.int64)
    in_level = np.zeros(decisions.num_sequences, np.int64)
    infoset = np.zeros(len(decisions), np.int64)
    offset, infoset_offset = 1, 0
    levels = []
    sizes = np.array([len(parent) for parent in parents], np.int64)
    total = int((sizes[side.round] * side.num_actions).sum())
    block_overhead = max(_BLOCK_OVERHEAD, total * _BLOCK_SHARE)
    for level in range(int(depth.max(initial=-1)) + 1):
        blocks: list[_Block] = []
        size = 0
        at_level = np.flatnonzero(depth == level)
        new_in_level: list[tuple[np.ndarray, np.ndarray]] = []
        for round in np.unique(side.round[at_level]):
            hands = len(parents[round])
            mine = at_level[side.round[at_level] == round]
            ranked = mine[np.argsort(-side.num_actions[mine], kind="stable")]
            overhead = block_overhead / max(hands, 1)
            counts = side.num_actions[ranked]
            for places, high in packing.groups(counts, overhead):
                members = ranked[places]
                same = before[members] == round
                keys = (in_level[side.parent[members]], ~same)
                members = members[np.lexsort(keys)]
                blocks.append(
                    _Block(
                        members,
                        high,
                        hands,
                        _parent_slices(side, parents, members, before, in_level),
                        size,
                    )
                )
                number = np.arange(len(members))
                infoset[members] = infoset_offset + number * hands
                infoset_offset += len(members) * hands
                for a in range(high):
                    has = side.num_actions[members] > a
                    starts = size + (a * len(members) + number[has]) * hands
                    new_in_level.append((first[members[has]] + a, starts))
                size += high * len(members) * hands
        for sequences, starts in new_in_level:
            in_level[sequences] = starts
            position[sequences] = offset + starts
        levels.append(blocks)
        offset += size
    return _Plan(side, parents, levels, position, infoset, offset)


def _parent_slices(
    side: PublicSide,
    parents: Sequence[np.ndarray],
    members: np.ndarray,
    before: np.ndarray,
    in_level: np.ndarray,
) -> tuple[Slices, ...]:
    """Where the parent sequences of a block's infosets are in the level above."""
    round = int(side.round[members[0]])
    hands = len(parents[round])
    found = []
    # Members of one parent round stand together.
    begins = np.flatnonzero(np.diff(before[members], prepend=-2))
    for part in np.split(members, begins[1:]):
        above = int(before[part[0]])
        starts = in_level[side.parent[part]]
        if above == round:
            found.append(_slices(starts, hands))
        else:
            behind = _ancestors(parents, round, above)
            found.append(_slices((starts[:, None] + behind).reshape(-1), 1))
    return tuple(found)


def _slices(starts: np.ndarray, width: int) -> Slices:
    """Slices; narrow ones element by element."""
    if 1 < width < _NARROW:
        starts, width = (starts[:, None] + np.arange(width)).reshape(-1), 1
    return Slices(_host(starts.astype(np.int32)), width)


def _joined(slices: Sequence[Slices]) -> tuple[Slices, ...]:
    """The same slices in fewer objects."""
    result: list[Slices] = []
    for some in slices:
        if result and result[-1].width == some.width:
            both = np.concatenate([result[-1].starts, some.starts])
            result[-1] = Slices(_host(both), some.width)
        else:
            result.append(some)
    return tuple(result)


def _couple(
    player: int,
    plan: _Plan,
    other: _Plan,
    kernels: Sequence[Kernel],
    terms: PublicTerms,
    constants: Sequence[Constants],
) -> treeplex.Treeplex:
    """One player's levels with their leaf values."""
    rounds, other_rounds = plan.side.sequence_rounds, other.side.sequence_rounds
    own_sequence, other_sequence = terms.sequences[player], terms.sequences[1 - player]
    # The empty sequence is of round -1.
    base = 1 + len(plan.parents)
    keys = np.asarray(terms.kernel, np.int64) * base + 1 + rounds[own_sequence]
    keys = keys * base + 1 + other_rounds[other_sequence]
    coupling: list[Any] = []
    # Of each row of leaf values: its public sequence, and where it begins.
    rows_of: list[np.ndarray] = []
    starts_of: list[np.ndarray] = []
    size = 0
    below = np.zeros(plan.size)
    for key in np.unique(keys).tolist():
        number, own_round = divmod(key // base, base)
        own_round, other_round = own_round - 1, key % base - 1
        mine = np.flatnonzero(keys == key)
        mine = mine[np.argsort(own_sequence[mine], kind="stable")]
        kernel = kernels[number]
        made = _product(player, plan, other, kernel, terms, mine, other_round)
        sequences = np.unique(own_sequence[mine])
        hands = _num_signals(plan.parents, own_round)
        own = None
        if own_round != kernel.round:
            own = _ancestors(plan.parents, kernel.round, own_round)
            made = dataclasses.replace(
                made,
                own=_host(own),
                own_zeros=_host(np.zeros((len(sequences), hands))),
            )
        coupling.append(made)
        rows_of.append(sequences)
        starts_of.append(size + hands * np.arange(len(sequences), dtype=np.int64))
        size += hands * len(sequences)
        _add_scale(below, plan, kernel, player, own, sequences, mine, terms)
    for given in constants:
        values = [np.asarray(v, np.float64) for v in given.values]
        flat = np.concatenate([*values, np.zeros(0)])
        widths = np.array([len(v) for v in values], np.int64)
        if given.player == player:
            coupling.append(ConstantRows(_host(flat)))
            rows_of.append(np.asarray(given.sequences))
            starts_of.append(size + np.cumsum(widths) - widths)
            size += len(flat)
            places = np.repeat(plan.position[given.sequences], widths)
            np.add.at(below, places + ranges(0, widths), np.abs(flat))
        else:
            places = np.repeat(other.position[given.sequences], widths)
            places = places + ranges(0, widths)
            coupling.append(ConstantTotal(_slices(places, 1), _host(-flat)))
            rows_of.append(np.zeros(1, np.int64))
            starts_of.append(np.array([size]))
            size += 1
            below[0] += np.abs(flat).sum()
    rows = np.concatenate([*rows_of, np.zeros(0, np.int64)])
    starts = np.concatenate([*starts_of, np.zeros(0, np.int64)])
    order = np.argsort(rows, kind="stable")
    rows, starts = rows[order], starts[order]
    rank = ranges(0, np.unique(rows, return_counts=True)[1])
    at_root = rows == 0
    root = starts[at_root] if at_root.any() else np.array([size])
    sources = []
    for r in range(int(rank[~at_root].max(initial=-1)) + 1):
        chosen = ~at_root & (rank == r)
        source = np.full(len(plan.position), -1, np.int64)
        source[rows[chosen]] = starts[chosen]
        sources.append(source)
    widest = max([1, *(len(parent) for parent in plan.parents)])
    scales = _infoset_scales(plan, below)
    levels = [
        _level(plan, number, sources, size, scales)
        for number in range(len(plan.levels))
    ]
    return treeplex.Treeplex(
        tuple(levels),
        tuple(coupling),
        _host(root.astype(np.int32)),
        _host(np.zeros(widest)),
    )


def _product(
    player: int,
    plan: _Plan,
    other: _Plan,
    kernel: Kernel,
    terms: PublicTerms,
    mine: np.ndarray,
    other_round: int,
) -> Product:
    """The terms of a kernel, sorted by own sequence, all of one pair of rounds."""
    own_sequence, other_sequence = terms.sequences[player], terms.sequences[1 - player]
    width = _num_signals(other.parents, other_round)
    stake = terms.stake[mine, None]
    weights = terms.weights[1 - player]
    if weights is not None:
        stake = stake * np.stack([weights[t] for t in mine.tolist()])
    sequences, row = np.unique(own_sequence[mine], return_inverse=True)
    rows, zeros = None, None
    if len(sequences) < len(mine):
        rows = _slices(row * width, width)
        zeros = _host(np.zeros(len(sequences) * width))
    behind = None
    if other_round != kernel.round:
        behind = _host(_ancestors(other.parents, kernel.round, other_round))
    return Product(
        kernel=kernel_forms.lay_out(kernel, player),
        reach=_slices(other.position[other_sequence[mine]], width),
        stake=_host(stake),
        rows=rows,
        other=behind,
        own=None,
        zeros=zeros,
        own_zeros=None,
    )


def _num_signals(parents: Sequence[np.ndarray], round: int) -> int:
    return 1 if round < 0 else len(parents[round])


def _level(
    plan: _Plan,
    number: int,
    sources: Sequence[np.ndarray],
    zero: int,
    scales: Sequence[Sequence[np.ndarray]],
) -> treeplex.Level:
    """One level's arrays.

    Args:
      plan: of the player.
      number: of the level.
      sources: one or more int64 [public sequences], where leaf values begin; -1: none.
      zero: where the zeros begin.
      scales: for each level and block float64 [N], see `_infoset_scales`.
    """
    side, first = plan.side, plan.side.decisions.first_sequence
    source, uniform, tolerance = [], [], []
    into: list[list[Slices]] = [[] for _ in sources[1:]]
    taken: list[list[Slices]] = [[] for _ in sources[1:]]
    for block, scale in zip(plan.levels[number], scales[number], strict=True):
        members, hands = block.members, block.hands
        n = len(members)
        actions = np.arange(block.num_actions)[:, None]
        legal = actions < side.num_actions[members]
        sequence = np.where(legal, first[members] + actions, 0).reshape(-1)
        begin = sources[0][sequence] if sources else np.full(len(sequence), -1)
        begin = np.where((begin < 0) | ~legal.reshape(-1), zero, begin)
        source.append(_slices(begin, hands))
        for r, further in enumerate(sources[1:]):
            there = np.flatnonzero((further[sequence] >= 0) & legal.reshape(-1))
            into[r].append(_slices(block.start + there * hands, hands))
            taken[r].append(_slices(further[sequence[there]], hands))
        small = _ROUNDING * scale[None]
        even = legal / legal.sum(axis=0)
        if legal.all():
            uniform.append(_host(np.full((block.num_actions, 1), 1 / len(legal))))
            tolerance.append(_host(small))
        else:
            full = np.repeat(legal, hands, axis=1)
            uniform.append(_host(np.repeat(even, hands, axis=1)))
            tolerance.append(_host(np.where(full, small, np.inf)))
        assert tolerance[-1].shape[1] == n * hands
    more = [
        (a, b)
        for to, come in zip(into, taken, strict=True)
        for a, b in zip(_joined(to), _joined(come), strict=True)
        if len(a)
    ]
    parent = [some for block in plan.levels[number] for some in block.parent]
    return treeplex.Level(
        parent=_joined(parent),
        source=_joined(source),
        uniform=tuple(uniform),
        tolerance=tuple(tolerance),
        more=tuple(more),
    )


def _add_scale(
    below: np.ndarray,
    plan: _Plan,
    kernel: Kernel,
    player: int,
    own: np.ndarray | None,
    sequences: np.ndarray,
    mine: np.ndarray,
    terms: PublicTerms,
) -> None:
    """Adds up |payoff| by own sequence and signal, at positions."""
    sums = absolute_row_sums(kernel, player)
    if own is not None:
        round = int(plan.side.sequence_rounds[sequences[0]])
        sums = np.bincount(own, sums, minlength=_num_signals(plan.parents, round))
    stakes = np.bincount(
        np.searchsorted(sequences, terms.sequences[player][mine]),
        np.abs(terms.stake[mine]),
    )
    # A few rows at a time: there may be very many.
    step = max(1, 1_000_000 // len(sums))
    for begin in range(0, len(sequences), step):
        part = slice(begin, begin + step)
        places = plan.position[sequences[part], None] + np.arange(len(sums))
        below[places] += stakes[part, None] * sums


def absolute_row_sums(kernel: Kernel, player: int) -> np.ndarray:
    """float64 [H], sums of |entry| of one player's rows of a kernel.

    Of hands that tie at a showdown it counts the pairs, too: an upper bound.
    """
    if not isinstance(kernel, HandKernel):
        entries = kernel.coordinates()
        sums: np.ndarray = np.bincount(
            entries[player], np.abs(entries.values), minlength=kernel.shape[player]
        )
        return sums
    own, other = kernel.hands[player], kernel.hands[1 - player]
    boards = 1 + max(own.board.max(initial=0), other.board.max(initial=0))
    total = np.bincount(other.board, other.weight, minlength=boards)
    # All hands of the board; a bound is all that is asked for.
    sums = np.bincount(
        own.signal, own.weight * total[own.board], minlength=kernel.shape[player]
    )
    return sums


def _infoset_scales(plan: _Plan, below: np.ndarray) -> list[list[np.ndarray]]:
    """For each level and block float64 [N], sum of |payoff| below each infoset.

    Args:
      plan: of the player.
      below: float64 [positions], of the payoffs at each sequence; is changed.
    """
    scales: list[list[np.ndarray]] = []
    end = plan.size
    starts = [1]
    for blocks in plan.levels:
        sizes = [b.num_actions * len(b.members) * b.hands for b in blocks]
        starts.append(starts[-1] + sum(sizes))
    for number in range(len(plan.levels) - 1, -1, -1):
        begin = starts[number]
        mine = []
        for block in plan.levels[number]:
            width = len(block.members) * block.hands
            start = begin + block.start
            size = block.num_actions * width
            scale = below[start : start + size].reshape(-1, width).sum(axis=0)
            mine.append(scale)
            if number:
                above = below[starts[number - 1] : begin]
                done = 0
                for some in block.parent:
                    places = np.asarray(some.starts)[:, None] + np.arange(some.width)
                    part = scale[done : done + len(some)]
                    np.add.at(above, places.reshape(-1), part)
                    done += len(some)
        scales.append(mine)
        end = begin
    assert end == 1
    return scales[::-1]


def _layout(plan: _Plan) -> layout.Layout:
    """Where logical sequences and infosets lie."""
    side = plan.side
    sizes = np.array([len(parent) for parent in plan.parents], np.int64)
    hands = sizes[side.round]
    infosets = np.repeat(plan.infoset, hands) + ranges(0, hands)
    sequences = np.zeros(1 + int((hands * side.num_actions).sum()), np.int32)
    starts = _logical_starts(side, plan.parents)
    rounds = side.sequence_rounds
    for round in np.unique(side.round):
        own = np.flatnonzero(rounds == round)
        count = int(sizes[round])
        step = max(1, 1_000_000 // max(count, 1))
        signal = np.arange(count)
        for begin in range(0, len(own), step):
            part = own[begin : begin + step]
            start, stride = starts[part].T
            logical = start[:, None] + stride[:, None] * signal
            sequences[logical] = plan.position[part, None] + signal
    return layout.Layout(sequences, infosets.astype(np.int32), plan.size)


def _host(array: np.ndarray) -> jax.Array:
    """Types a numpy array as what it becomes when a solver puts it on a device."""
    return cast(jax.Array, array)
