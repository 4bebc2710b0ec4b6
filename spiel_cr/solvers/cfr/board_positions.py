"""Compiled functions that convert numbers of sequences to the order of boards."""

import numpy as np

from spiel_cr.common.compilation_cache import compiled, compiled_part
from spiel_cr.solvers.cfr.board_leaves import fill, matrix


@compiled_part
def match(weights, locks, at, strategy, total):
    """Fill in a strategy [A, n], proportional to the positive weights at a position.

    It is uniform at infosets without positive weights.

    Args:
      weights: The weights, float [S].
      locks: Locked probabilities, see `board_tables.BoardSide`.
      at: The position.
      strategy: The result.
      total: Memory, float [n].
    """
    count, n = strategy.shape
    zero, one = strategy.dtype.type(0), strategy.dtype.type(1)
    even = one / strategy.dtype.type(count)
    fill(total, zero)
    # Loops over parts of arrays are vectorized, because no index can be negative.
    for a in range(count):
        row, part = strategy[a], weights[at + a * n : at + a * n + n]
        for s in range(n):
            x = part[s]
            row[s] = x if x > zero else zero
            total[s] += row[s]
    for a in range(count):
        row = strategy[a]
        for s in range(n):
            share = row[s] / (total[s] if total[s] > zero else one)
            row[s] = share if total[s] > zero else even
    if len(locks):
        for a in range(count):
            row, part = strategy[a], locks[at + a * n : at + a * n + n]
            for s in range(n):
                row[s] = part[s] if part[s] >= zero else row[s]


@compiled
def fill_behaviour(side, round_of, weights, starts, memory, behaviour):
    """Fill in action probabilities by logical sequence.

    Args:
      side: The player's side.
      round_of: Round of each board, int64 [B].
      weights: Numbers by position whose positive parts are proportional to them.
      starts: Logical number of the first sequence of each decision, int64 [D].
      memory: Memory for the strategy at one decision and for its sums, float [2, size].
      behaviour: The result, float [logical sequences].
    """
    behaviour[0] = behaviour.dtype.type(1)
    for g in range(len(round_of)):
        r, board = round_of[g], side.boards[g]
        n = board.size
        origin = side.rounds[r].base + board.start * side.rounds[r].num_actions
        for d in range(
            side.rounds[r].first_decision, side.rounds[r + 1].first_decision
        ):
            decision = side.decisions[d]
            count, at = np.int64(decision.num_actions), origin + decision.offset * n
            strategy = matrix(memory[0], 0, count, n)
            match(weights, side.locks, at, strategy, memory[1, :n])
            first = starts[d] + board.start * count
            for s in range(n):
                for a in range(count):
                    behaviour[first + s * count + a] = strategy[a, s]


@compiled
def fill_positions(side, round_of, behaviour, starts, positions):
    """Fill in numbers by position, the inverse of `fill_behaviour`.

    Args:
      side: The player's side.
      round_of: Round of each board, int64 [B].
      behaviour: Numbers by logical sequence, float [logical sequences]; NaN is
        replaced by -1.
      starts: Logical number of the first sequence of each decision, int64 [D].
      positions: The result, float [S].
    """
    positions[0] = -1 if np.isnan(behaviour[0]) else behaviour[0]
    for g in range(len(round_of)):
        r, board = round_of[g], side.boards[g]
        n = board.size
        origin = side.rounds[r].base + board.start * side.rounds[r].num_actions
        for d in range(
            side.rounds[r].first_decision, side.rounds[r + 1].first_decision
        ):
            decision = side.decisions[d]
            count, at = np.int64(decision.num_actions), origin + decision.offset * n
            first = starts[d] + board.start * count
            for a in range(count):
                for s in range(n):
                    x = behaviour[first + s * count + a]
                    positions[at + a * n + s] = -1 if np.isnan(x) else x
