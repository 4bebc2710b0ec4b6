"""Signal games in sequence form, as solvers of compiled games take them.

An infoset is a public decision and a signal. In the solvers' arrays the infosets of one
public decision lie side by side, signal by signal, so whole *slices* of them move
between levels (`treeplex.Slices`), and a leaf's values are a kernel applied to a slice
of the opponent's reach. All else (regrets, averages, checkpoints, best responses) is
the code that solves compiled games.

Logical numbers: a player's public decisions come in the order of their nodes; infoset =
first of its decision + signal; sequences are numbered as `Decisions` does, infoset by
infoset. Public sequences: see `public_terms`.

Legend for shapes: J public decisions, H signals, T terms, L rows of leaf values.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.games.sequence_form import layout, treeplex
from spiel_cr.games.sequence_form.treeplex import Slices
from spiel_cr.games.signals import kernels as kernel_forms
from spiel_cr.games.signals.game import HandKernel, Kernel, SignalGame
from spiel_cr.games.signals.places import (
    Places,
    host,
    join_slices,
    layout_of,
    place,
    slices_of,
)
from spiel_cr.games.signals.products import ConstantRows, ConstantTotal, Product
from spiel_cr.games.signals.public_terms import (
    Constants,
    Parents,
    PublicSide,
    PublicTerms,
    ancestors,
    list_payoffs,
    logical_decisions,
    num_signals,
    public_form,
)

# As many entries are faster one by one than as products of kernels.
_FEW_PAYOFFS = 200_000
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


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
    plans = [place(side, above) for side, above in zip(sides, parents, strict=True)]
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
        (layout_of(plans[0]), layout_of(plans[1])),
        (arrays[0], arrays[1]),
    )


class _Rows:
    """Rows of leaf values, as parts of the coupling are added.

    Attributes:
      coupling: the parts so far.
      sequences: of each part, the public sequences of its rows.
      starts: of each part, where its rows begin among the leaf values.
      size: leaf values so far.
    """

    def __init__(self) -> None:
        self.coupling: list[Any] = []
        self.sequences: list[np.ndarray] = []
        self.starts: list[np.ndarray] = []
        self.size = 0

    def add(self, part: Any, sequences: np.ndarray, widths: np.ndarray) -> None:
        """A part with one row for each sequence, of so many leaf values."""
        self.coupling.append(part)
        self.sequences.append(sequences)
        self.starts.append(self.size + np.cumsum(widths) - widths)
        self.size += int(widths.sum())

    def sources(self, num_public: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Where leaf values begin that are added to sequences.

        Args:
          num_public: public sequences.

        Returns:
          Starts of all rows at the empty sequence, the end of all where there is none;
          and lists int64 [num_public] that have one start, or -1, for each sequence, as
          many as a sequence has rows at most.
        """
        rows = np.concatenate([*self.sequences, np.zeros(0, np.int64)])
        starts = np.concatenate([*self.starts, np.zeros(0, np.int64)])
        order = np.argsort(rows, kind="stable")
        rows, starts = rows[order], starts[order]
        rank = ranges(0, np.unique(rows, return_counts=True)[1])
        at_root = rows == 0
        root = starts[at_root] if at_root.any() else np.array([self.size])
        sources = []
        for r in range(int(rank[~at_root].max(initial=-1)) + 1):
            chosen = ~at_root & (rank == r)
            source = np.full(num_public, -1, np.int64)
            source[rows[chosen]] = starts[chosen]
            sources.append(source)
        return root, sources


def _couple(
    player: int,
    plan: Places,
    other: Places,
    kernels: Sequence[Kernel],
    terms: PublicTerms,
    constants: Sequence[Constants],
) -> treeplex.Treeplex:
    """One player's levels with their leaf values."""
    rounds, other_rounds = plan.side.sequence_rounds, other.side.sequence_rounds
    own_sequence, other_sequence = terms.sequences[player], terms.sequences[1 - player]
    # Terms of one product have one kernel and one round of either sequence, that of the
    # empty one being -1: key = (kernel * base + 1 + own) * base + 1 + other.
    base = 1 + len(plan.parents)
    keys = np.asarray(terms.kernel, np.int64) * base + 1 + rounds[own_sequence]
    keys = keys * base + 1 + other_rounds[other_sequence]
    rows, below = _Rows(), np.zeros(plan.size)
    for key in np.unique(keys).tolist():
        number, own_round = divmod(key // base, base)
        own_round, other_round = own_round - 1, key % base - 1
        chosen = np.flatnonzero(keys == key)
        chosen = chosen[np.argsort(own_sequence[chosen], kind="stable")]
        kernel = kernels[number]
        product = _product(player, plan, other, kernel, terms, chosen, other_round)
        sequences = np.unique(own_sequence[chosen])
        hands = num_signals(plan.parents, own_round)
        above = None
        if own_round != kernel.round:
            above = ancestors(plan.parents, kernel.round, own_round)
            product = dataclasses.replace(
                product,
                own=host(above),
                own_zeros=host(np.zeros((len(sequences), hands))),
            )
        rows.add(product, sequences, np.full(len(sequences), hands, np.int64))
        _add_scale(below, plan, kernel, player, above, sequences, chosen, terms)
    for constant in constants:
        _add_constants(rows, below, constant, player, plan, other)
    root, sources = rows.sources(len(plan.position))
    widest = max([1, *(len(parent) for parent in plan.parents)])
    scales = _infoset_scales(plan, below)
    levels = [
        _level(plan, number, sources, rows.size, scales)
        for number in range(len(plan.levels))
    ]
    return treeplex.Treeplex(
        tuple(levels),
        tuple(rows.coupling),
        host(root.astype(np.int32)),
        host(np.zeros(widest)),
    )


def _add_constants(
    rows: _Rows,
    below: np.ndarray,
    constant: Constants,
    player: int,
    plan: Places,
    other: Places,
) -> None:
    """Adds leaf values that depend on one player's sequence alone.

    Args:
      rows: to which they are added.
      below: float64 [plan.size], sums of absolute payoffs; added to.
      constant: the values.
      player: whose levels are made.
      plan, other: where that player's sequences lie, and the other's.
    """
    values = [np.asarray(v, np.float64) for v in constant.values]
    flat = np.concatenate([*values, np.zeros(0)])
    widths = np.array([len(v) for v in values], np.int64)
    own = constant.player == player
    position = (plan if own else other).position
    places = np.repeat(position[constant.sequences], widths) + ranges(0, widths)
    if own:
        rows.add(ConstantRows(host(flat)), np.asarray(constant.sequences), widths)
        np.add.at(below, places, np.abs(flat))
    else:
        total = ConstantTotal(host(-flat), slices_of(places, 1))
        rows.add(total, np.zeros(1, np.int64), np.ones(1, np.int64))
        below[0] += np.abs(flat).sum()


def _product(
    player: int,
    plan: Places,
    other: Places,
    kernel: Kernel,
    terms: PublicTerms,
    mine: np.ndarray,
    other_round: int,
) -> Product:
    """The terms of a kernel, sorted by own sequence, all of one pair of rounds."""
    own_sequence, other_sequence = terms.sequences[player], terms.sequences[1 - player]
    width = num_signals(other.parents, other_round)
    kernel, exponent = kernel_forms.in_units(kernel)
    stake = np.ldexp(terms.stake[mine, None], exponent)
    weights = terms.weights[1 - player]
    if weights is not None:
        stake = stake * np.stack([weights[t] for t in mine.tolist()])
    sequences, row = np.unique(own_sequence[mine], return_inverse=True)
    rows, zeros = None, None
    if len(sequences) < len(mine):
        rows = slices_of(row * width, width)
        zeros = host(np.zeros(len(sequences) * width))
    behind = None
    if other_round != kernel.round:
        behind = host(ancestors(other.parents, kernel.round, other_round))
    return Product(
        kernel=kernel_forms.lay_out(kernel, player),
        reach=slices_of(other.position[other_sequence[mine]], width),
        stake=host(stake),
        rows=rows,
        other=behind,
        own=None,
        zeros=zeros,
        own_zeros=None,
    )


def _level(
    plan: Places,
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
        source.append(slices_of(begin, hands))
        for r, further in enumerate(sources[1:]):
            there = np.flatnonzero((further[sequence] >= 0) & legal.reshape(-1))
            into[r].append(slices_of(block.start + there * hands, hands))
            taken[r].append(slices_of(further[sequence[there]], hands))
        small = _ROUNDING * scale[None]
        even = legal / legal.sum(axis=0)
        if legal.all():
            uniform.append(host(np.full((block.num_actions, 1), 1 / len(legal))))
            tolerance.append(host(small))
        else:
            full = np.repeat(legal, hands, axis=1)
            uniform.append(host(np.repeat(even, hands, axis=1)))
            tolerance.append(host(np.where(full, small, np.inf)))
        assert tolerance[-1].shape[1] == n * hands
    more = [
        (a, b)
        for to, come in zip(into, taken, strict=True)
        for a, b in zip(join_slices(to), join_slices(come), strict=True)
        if len(a)
    ]
    parent = [some for block in plan.levels[number] for some in block.parent]
    return treeplex.Level(
        parent=join_slices(parent),
        source=join_slices(source),
        uniform=tuple(uniform),
        tolerance=tuple(tolerance),
        more=tuple(more),
    )


def _add_scale(
    below: np.ndarray,
    plan: Places,
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
        sums = np.bincount(own, sums, minlength=num_signals(plan.parents, round))
    most = np.abs(terms.stake[mine])
    weights = terms.weights[1 - player]
    if weights is not None:
        most = most * np.array([weights[t].max(initial=0) for t in mine.tolist()])
    rows = np.searchsorted(sequences, terms.sequences[player][mine])
    stakes = np.bincount(rows, most)
    # A few rows at a time: there may be very many.
    step = max(1, 1_000_000 // max(len(sums), 1))
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


def _infoset_scales(plan: Places, below: np.ndarray) -> list[list[np.ndarray]]:
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
