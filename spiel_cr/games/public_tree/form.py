"""Sequence form of public-tree games, with the interface that tree solvers use.

An infoset is a public decision and a private state. In the solvers' arrays the infosets
of one public decision are adjacent, in the order of private states. Therefore whole
*slices* of them move between levels (`treeplex.Slices`), and a leaf's values are a
matrix applied to a slice of the opponent's reach. Everything that follows (regrets,
averages, checkpoints, best responses) is the code that also solves game trees.

Logical numbers: a player's public decisions are in the order of their nodes. The number
of an infoset is the first one of its decision plus the private state. Sequences are
numbered as in `Decisions`, infoset by infoset. For public sequences see `public_terms`.

Legend for shapes: J public decisions, H private states, T terms, L rows of leaf values.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from spiel_cr.common.arrays import pieces, ranges
from spiel_cr.common.jax_utils import typed
from spiel_cr.common.pairs import map_pair
from spiel_cr.games.public_tree import matrix_operators
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix, PayoffMatrix
from spiel_cr.games.public_tree.places import (
    PlayerPlaces,
    join_slices,
    place,
    position_map,
    slices_of,
)
from spiel_cr.games.public_tree.products import ConstantRows, ConstantTotal, Product
from spiel_cr.games.public_tree.public_nodes import ancestors
from spiel_cr.games.public_tree.public_terms import (
    Constants,
    Parents,
    PublicSide,
    PublicTerms,
    list_payoffs,
    logical_decisions,
    num_private_states,
)
from spiel_cr.games.sequence_form import layout, treeplex
from spiel_cr.games.sequence_form.treeplex import Slices

# Up to this number, entries are faster one by one than as products of matrices.
_FEW_PAYOFFS = 200_000
# Function that returns the positions of both players' decisions.
Places: TypeAlias = Callable[[], tuple[PlayerPlaces, PlayerPlaces]]
# Rounding error of sums of payoffs, relative to the sum of their absolute values.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


def are_few(payoff_matrices: Sequence[PayoffMatrix], terms: PublicTerms) -> bool:
    """Return whether payoffs are faster one by one than as products of matrices."""
    pairs = np.array([_num_entries(matrix) for matrix in payoff_matrices])
    return bool(pairs[terms.matrix].sum() <= _FEW_PAYOFFS)


def _num_entries(matrix: PayoffMatrix) -> float:
    """Return the number of entries of a matrix, or an upper bound."""
    if isinstance(matrix, HandMatrix):
        return float(np.prod(matrix.shape))
    return float(len(matrix.coordinates().values))


def build(
    sides: tuple[PublicSide, PublicSide],
    parents: Parents,
    payoff_matrices: Sequence[PayoffMatrix],
    terms: PublicTerms,
    constants: Sequence[Constants] = (),
    rake: PublicTerms | None = None,
) -> layout.SequenceForm:
    """Build a sequence form from public decisions, with payoff matrices as coupling.

    Args:
      sides: Both players' public decisions; parents may be in any order.
      parents: Parents of private states, for each player and round.
      payoff_matrices: Payoffs of pairs of private states.
      terms: Payoffs that depend on both players' private states.
      constants: Additional payoffs that depend on one player's sequence alone.
      rake: Payments that both players lose, as terms; None: the game is zero-sum.
    """
    places = layout.Once(functools.partial(map_pair, place, sides, parents))
    arrays = functools.partial(_arrays, places, payoff_matrices, terms, constants, rake)
    return layout.SequenceForm(
        functools.partial(map_pair, logical_decisions, sides, parents),
        functools.partial(
            list_payoffs, sides, parents, payoff_matrices, terms, constants
        ),
        layout.Once(functools.partial(_layouts, places)),
        layout.Once(arrays),
        is_zero_sum=rake is None,
    )


def _layouts(places: Places) -> tuple[layout.PositionMap, layout.PositionMap]:
    """Return the positions of both players' logical numbers."""
    return map_pair(position_map, places())


def _arrays(
    places: Places,
    payoff_matrices: Sequence[PayoffMatrix],
    terms: PublicTerms,
    constants: Sequence[Constants],
    rake: PublicTerms | None,
) -> tuple[treeplex.Treeplex, treeplex.Treeplex]:
    """Return both players' arrays; for the arguments see `build`."""
    arrays = []
    for player in range(2):
        player_terms = terms if rake is None else _raked(terms, rake, player)
        coupling = _Coupling(player, places(), player_terms)
        coupling.add_terms(payoff_matrices)
        for constant in constants:
            coupling.add_constants(constant)
        arrays.append(coupling.build())
    return arrays[0], arrays[1]


def _raked(terms: PublicTerms, rake: PublicTerms, player: int) -> PublicTerms:
    """Return terms of a zero-sum game in which a player has its payoffs with rake."""
    pairs = zip(terms.sequences, rake.sequences, strict=True)
    first, second = map(np.concatenate, pairs)
    # Stakes are utilities of player 0.
    paid = rake.stake if player else -rake.stake
    return PublicTerms(
        (first, second),
        np.concatenate([terms.matrix, rake.matrix]),
        np.concatenate([terms.stake, paid]),
    )


class _Coupling:
    """Builder of one player's leaf values; parts of the coupling are added one by one.

    Attributes:
      places, other: Positions of the player's decisions, and of the opponent's.
      parts: Parts of the coupling that were added so far.
      sequences: Public sequences of the rows of each part.
      starts: Position of the first leaf value of each row, for each part.
      size: Number of leaf values so far.
      below: Sums of absolute payoffs so far, float64 [positions].
    """

    def __init__(
        self,
        player: int,
        both_places: tuple[PlayerPlaces, PlayerPlaces],
        terms: PublicTerms,
    ) -> None:
        self.player, self.terms = player, terms
        self.places, self.other = both_places[player], both_places[1 - player]
        self.parts: list[Any] = []
        self.sequences: list[np.ndarray] = []
        self.starts: list[np.ndarray] = []
        self.size, self.below = 0, np.zeros(self.places.size)

    def _add(self, part: Any, sequences: np.ndarray, widths: np.ndarray) -> None:
        """Add a part in which sequence i has a row of widths[i] leaf values."""
        self.parts.append(part)
        self.sequences.append(sequences)
        self.starts.append(self.size + np.cumsum(widths) - widths)
        self.size += int(widths.sum())

    def add_terms(self, payoff_matrices: Sequence[PayoffMatrix]) -> None:
        """Add the terms, grouped by payoff matrix and rounds of the sequences."""
        player_sequence = self.terms.sequences[self.player]
        opponent_sequence = self.terms.sequences[1 - self.player]
        # The terms of one product share the matrix and the rounds of both sequences (-1
        # for the empty one): key = (matrix * base + 1 + round) * base + 1 + opponent's.
        base = 1 + len(self.places.parents)
        keys = np.asarray(self.terms.matrix, np.int64) * base + 1
        keys = (keys + self.places.side.sequence_rounds[player_sequence]) * base + 1
        keys += self.other.side.sequence_rounds[opponent_sequence]
        for key in np.unique(keys).tolist():
            number, player_round = divmod(key // base, base)
            chosen = np.flatnonzero(keys == key)
            chosen = chosen[np.argsort(player_sequence[chosen], kind="stable")]
            self._add_product(
                payoff_matrices[number], chosen, player_round - 1, key % base - 1
            )

    def _add_product(
        self,
        matrix: PayoffMatrix,
        chosen: np.ndarray,
        player_round: int,
        opponent_round: int,
    ) -> None:
        """Add terms of one matrix and pair of rounds, sorted by player sequence."""
        terms, other = self.terms, self.other
        player_sequence = terms.sequences[self.player][chosen]
        opponent_sequence = terms.sequences[1 - self.player][chosen]
        sequences, row = np.unique(player_sequence, return_inverse=True)
        hands = num_private_states(self.places.parents, player_round)
        width = num_private_states(other.parents, opponent_round)
        scaled, exponent = matrix_operators.in_units(matrix)
        stake = np.ldexp(terms.stake[chosen, None], exponent)
        most = np.abs(terms.stake[chosen])
        weights = terms.weights[1 - self.player]
        if weights is not None:
            stake = stake * np.stack([weights[t] for t in chosen.tolist()])
            most = most * np.array([weights[t].max(initial=0) for t in chosen.tolist()])
        shared = len(sequences) < len(chosen)
        above = behind = None
        if player_round != matrix.round:
            above = ancestors(self.places.parents, matrix.round, player_round)
        if opponent_round != matrix.round:
            behind = typed(ancestors(other.parents, matrix.round, opponent_round))
        zeros_shape = len(sequences), hands
        product = Product(
            matrix=matrix_operators.make_operator(scaled, self.player),
            reach=slices_of(other.position[opponent_sequence], width),
            payoffs=typed(stake),
            rows=slices_of(row * width, width) if shared else None,
            opponent_states=behind,
            player_states=None if above is None else typed(above),
            zeros=typed(np.zeros(len(sequences) * width)) if shared else None,
            player_zeros=None if above is None else typed(np.zeros(zeros_shape)),
        )
        self._add(product, sequences, np.full(len(sequences), hands, np.int64))
        sums = absolute_row_sums(matrix, self.player)
        if above is not None:
            sums = np.bincount(above, sums, minlength=hands)
        stakes = np.bincount(row, most)
        # Some rows at a time, because all of them may not fit in memory.
        step = max(1, 1_000_000 // max(hands, 1))
        for begin in range(0, len(sequences), step):
            part = slice(begin, begin + step)
            places = self.places.position[sequences[part], None] + np.arange(hands)
            self.below[places] += stakes[part, None] * sums

    def add_constants(self, constant: Constants) -> None:
        """Add leaf values that depend on one player's sequence alone."""
        values = [np.asarray(v, np.float64) for v in constant.values]
        flat = np.concatenate([*values, np.zeros(0)])
        widths = np.array([len(v) for v in values], np.int64)
        for_player = constant.player == self.player
        position = (self.places if for_player else self.other).position
        places = np.repeat(position[constant.sequences], widths) + ranges(0, widths)
        if for_player:
            self._add(ConstantRows(typed(flat)), np.asarray(constant.sequences), widths)
            np.add.at(self.below, places, np.abs(flat))
        else:
            total = ConstantTotal(typed(-flat), slices_of(places, 1))
            self._add(total, np.zeros(1, np.int64), np.ones(1, np.int64))
            self.below[0] += np.abs(flat).sum()

    def build(self) -> treeplex.Treeplex:
        """Return the player's levels with the leaf values that were added."""
        root, sources = self._sources()
        scales = _infoset_scales(self.places, self.below)
        levels = [
            _level(self.places, number, sources, self.size, scales)
            for number in range(len(self.places.levels))
        ]
        widest = max([1, *(len(parent) for parent in self.places.parents)])
        return treeplex.Treeplex(
            tuple(levels),
            tuple(self.parts),
            typed(root.astype(np.int32)),
            typed(np.zeros(widest)),
        )

    def _sources(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the positions of the leaf values that are added to each sequence.

        Returns:
          Positions of all rows of the empty sequence (the end of all leaf values if it
          has no row), and a list of int64 [public sequences]: the position of one row
          of each sequence, or -1. The length of the list is the largest number of rows
          of a sequence.
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
            source = np.full(len(self.places.position), -1, np.int64)
            source[rows[chosen]] = starts[chosen]
            sources.append(source)
        return root, sources


def _level(
    places: PlayerPlaces,
    number: int,
    sources: Sequence[np.ndarray],
    zero: int,
    scales: Sequence[Sequence[np.ndarray]],
) -> treeplex.Level:
    """Build the arrays of one level.

    Args:
      places: Positions of the player's decisions.
      number: Number of the level.
      sources: One or more int64 [public sequences], positions of leaf values; -1 if a
        sequence has none.
      zero: Position of the first of the zeros after the leaf values.
      scales: Result of `_infoset_scales`, for each level and block float64 [N].
    """
    side, first = places.side, places.side.decisions.first_sequence
    source, uniform, tolerance = [], [], []
    into: list[list[Slices]] = [[] for _ in sources[1:]]
    taken: list[list[Slices]] = [[] for _ in sources[1:]]
    for block, scale in zip(places.levels[number], scales[number], strict=True):
        members, hands = block.members, block.hands
        actions = np.arange(block.num_actions)[:, None]
        legal = actions < side.num_actions[members]
        sequence = np.where(legal, first[members] + actions, 0).reshape(-1)
        begin = sources[0][sequence] if sources else np.full(len(sequence), -1)
        begin = np.where((begin < 0) | ~legal.reshape(-1), zero, begin)
        source.append(slices_of(begin, hands))
        for r, further in enumerate(sources[1:]):
            rows = np.flatnonzero((further[sequence] >= 0) & legal.reshape(-1))
            into[r].append(slices_of(block.start + rows * hands, hands))
            taken[r].append(slices_of(further[sequence[rows]], hands))
        small = ROUNDING * scale[None]
        even = legal / legal.sum(axis=0)
        if legal.all():
            uniform.append(typed(np.full((block.num_actions, 1), 1 / len(legal))))
            tolerance.append(typed(small))
        else:
            full = np.repeat(legal, hands, axis=1)
            uniform.append(typed(np.repeat(even, hands, axis=1)))
            tolerance.append(typed(np.where(full, small, np.inf)))
    more = [
        (a, b)
        for to, come in zip(into, taken, strict=True)
        for a, b in zip(join_slices(to), join_slices(come), strict=True)
        if len(a)
    ]
    parent = [some for block in places.levels[number] for some in block.parent]
    return treeplex.Level(
        parent=join_slices(parent),
        source=join_slices(source),
        uniform=tuple(uniform),
        tolerance=tuple(tolerance),
        more=tuple(more),
    )


def absolute_row_sums(matrix: PayoffMatrix, player: int) -> np.ndarray:
    """Return sums of absolute entries of one player's rows of a matrix, float64 [H].

    For matrices of hands the result is an upper bound, because it includes pairs that
    tie or that share a card.
    """
    if not isinstance(matrix, HandMatrix):
        entries = matrix.coordinates()
        sums: np.ndarray = np.bincount(
            entries[player], np.abs(entries.values), minlength=matrix.shape[player]
        )
        return sums
    hands, opponent_hands = matrix.hands[player], matrix.hands[1 - player]
    boards = 1 + max(hands.board.max(initial=0), opponent_hands.board.max(initial=0))
    total = np.bincount(opponent_hands.board, opponent_hands.weight, minlength=boards)
    # All hands of the board, compatible or not: an upper bound suffices.
    sums = np.bincount(
        hands.private_state,
        hands.weight * total[hands.board],
        minlength=matrix.shape[player],
    )
    return sums


def _infoset_scales(places: PlayerPlaces, below: np.ndarray) -> list[list[np.ndarray]]:
    """Return the sum of absolute payoffs below each infoset.

    Args:
      places: Positions of the player's decisions.
      below: Absolute payoffs at each sequence, float64 [positions]; modified in place.

    Returns:
      For each level and block float64 [N].
    """
    scales: list[list[np.ndarray]] = []
    starts = [1]
    for blocks in places.levels:
        sizes = [b.num_actions * len(b.members) * b.hands for b in blocks]
        starts.append(starts[-1] + sum(sizes))
    for number in range(len(places.levels) - 1, -1, -1):
        begin = starts[number]
        level_scales = []
        for block in places.levels[number]:
            width = len(block.members) * block.hands
            start = begin + block.start
            size = block.num_actions * width
            scale = below[start : start + size].reshape(-1, width).sum(axis=0)
            level_scales.append(scale)
            if number:
                above = below[starts[number - 1] : begin]
                parts = pieces(scale, map(len, block.parent))
                for some, part in zip(block.parent, parts, strict=True):
                    np.add.at(above, some.positions, part)
        scales.append(level_scales)
    return scales[::-1]
