"""Compiled functions of a full-width iteration that processes one board after another.

The functions compute reach, values and regrets on one board, call themselves for the
boards of the next round, and use the same working memory for each. An iteration
therefore needs the memory of the solver's state and of one board of each round, which
stays in the processor's cache. For boards, their tables and the legend for shapes see
`board_tables`.
"""

import numpy as np

from spiel_cr.common.compilation_cache import compiled, compiled_part, inlined
from spiel_cr.solvers.cfr.board_leaves import add_leaves, fill, matrix
from spiel_cr.solvers.cfr.board_positions import match


@inlined
def _views(sweep, g, workspace):
    """Return the working memory of a board.

    Returns:
      The player's reach, values and strategy, float [rows, n]; the opponent's reach,
      float [rows', n']; three arrays for leaf values, float [3, size].
    """
    player, opponent, memory = sweep.player, sweep.opponent, workspace.memory
    r = sweep.boards.round[g]
    start, end = workspace.starts[r], workspace.starts[-1]
    rows, other_rows = player.rounds[r].num_rows, opponent.rounds[r].num_rows
    n, m = player.boards[g].size, opponent.boards[g].size
    return (
        matrix(memory, start, rows, n),
        matrix(memory, start + rows * n, rows, n),
        matrix(memory, start + 2 * rows * n, rows, n),
        matrix(memory, start + 3 * rows * n, other_rows, m),
        matrix(memory, end, 3, (len(memory) - end) // 3),
    )


@compiled_part
def _reach_below(side, r, g, weights, reach, strategy, spare):
    """Fill in the reach of the sequences of a round on a board.

    Args:
      side: The side of the player whose reach it is.
      r: The round.
      g: The board.
      weights: As in `match`.
      reach: The reach, float [rows, n].
      strategy: The strategy, float [rows, n]; or, if it is not needed afterwards, an
        array of no rows.
      spare: Memory for the strategy at one decision and for its sums, float [2, size].
    """
    n = side.boards[g].size
    origin = side.rounds[r].base + side.boards[g].start * side.rounds[r].num_actions
    for d in range(side.rounds[r].first_decision, side.rounds[r + 1].first_decision):
        decision = side.decisions[d]
        child, count = decision.child, decision.num_actions
        rows = matrix(spare[0], 0, count, n)
        if len(strategy):
            rows = strategy[child : child + count]
        match(weights, side.locks, origin + decision.offset * n, rows, spare[1, :n])
        above = reach[decision.parent]
        for a in range(count):
            below, row = reach[child + a], rows[a]
            for s in range(n):
                below[s] = above[s] * row[s]


@compiled_part
def _means(values, strategy, locks, at, best, means):
    """Fill in the values of infosets [n] from those of actions [A, n]."""
    zero = means.dtype.type(0)
    count, n = values.shape
    for s in range(n):
        means[s] = values[0, s] if best else zero
    for a in range(count):
        row, played = values[a], strategy[a]
        if best:
            for s in range(n):
                means[s] = row[s] if row[s] > means[s] else means[s]
        else:
            for s in range(n):
                means[s] += played[s] * row[s]
    if best and len(locks):
        for s in range(n):
            if locks[at + s] >= zero:
                means[s] = zero
                for a in range(count):
                    means[s] += strategy[a, s] * values[a, s]


@compiled_part
def _add_regrets(numbers, positive, regrets, values, means, tolerance):
    """Update the regrets [n] of an action; see `regret_matching.update`."""
    up, down = numbers[0], numbers[1]
    zero = regrets.dtype.type(0)
    if positive:
        for s in range(len(means)):
            y = regrets[s] + (values[s] - means[s])
            regrets[s] = y * up if y > tolerance[s] else zero
    else:
        for s in range(len(means)):
            y = regrets[s] + (values[s] - means[s])
            size, kept = (y, y * up) if y > zero else (-y, y * down)
            regrets[s] = kept if size > tolerance[s] else zero


@compiled_part
def _copy(into, row):
    for s in range(len(row)):
        into[s] = row[s]


@compiled_part
def _add_times(into, row, factor):
    for s in range(len(row)):
        into[s] += factor * row[s]


@compiled_part
def _add_average(average, reach, share):
    for s in range(len(reach)):
        average[s] += share * (reach[s] - average[s])


@inlined
def _begin(sweep, g, workspace):
    """Compute reach and leaf values on a board whose carried rows are filled in."""
    player, r = sweep.player, sweep.boards.round[g]
    reach, values, strategy, other_reach, scratch = _views(sweep, g, workspace)
    weights = sweep.opponent_weights
    _reach_below(sweep.opponent, r, g, weights, other_reach, strategy[:0], scratch)
    if not sweep.best or len(player.locks):
        _reach_below(player, r, g, sweep.weights, reach, strategy, scratch)
    for i in range(len(values)):
        fill(values[i], values.dtype.type(0))
    add_leaves(sweep, g, other_reach, values, scratch)


@inlined
def _finish(sweep, g, workspace):
    """Compute the values of a board's infosets; update regrets and averages."""
    player, matrices = sweep.player, sweep.boards.first_matrix
    reach, values, strategy, _, scratch = _views(sweep, g, workspace)
    r, board = sweep.boards.round[g], player.boards[g]
    row, n = player.rounds[r], board.size
    means, tolerance = scratch[0, :n], scratch[1, :n]
    one = means.dtype.type(1)
    origin = row.base + board.start * row.num_actions
    first = row.first_state + board.start
    end = player.rounds[r + 1].first_decision
    for d in range(end - 1, row.first_decision - 1, -1):
        decision = player.decisions[d]
        child, count = decision.child, decision.num_actions
        at = origin + decision.offset * n
        rows = values[child : child + count]
        played = strategy[child : child + count]
        _means(rows, played, player.locks, at, sweep.best, means)
        _add_times(values[decision.parent], means, one)
        if sweep.recorded[0] <= d < sweep.recorded[1]:
            actions = decision.offset - player.decisions[sweep.recorded[0]].offset
            begins = board.start * sweep.recorded[2] + actions * n
            for a in range(count):
                _copy(sweep.record[begins + a * n : begins + a * n + n], rows[a])
        if not sweep.update:
            continue
        fill(tolerance, means.dtype.type(0))
        for k in range(matrices[r], matrices[-1]):
            bounds = player.bounds[k, first : first + n]
            _add_times(tolerance, bounds, player.payoffs[d, k] * sweep.numbers[2])
        for a in range(count):
            part = slice(at + a * n, at + a * n + n)
            if count > 1:
                regrets = sweep.weights[part]
                _add_regrets(
                    sweep.numbers, sweep.positive, regrets, rows[a], means, tolerance
                )
            _add_average(sweep.average[part], reach[child + a], sweep.numbers[3])


@compiled_part
def _carry(side, r, below, reach, into):
    """Copy the reach of a board's carried rows from the board above."""
    first = side.rounds[r].first_state + side.boards[below].start
    begin = side.rounds[r].first_carried
    for i in range(side.rounds[r + 1].first_carried - begin):
        source = reach[side.carried[begin + i]]
        for s in range(side.boards[below].size):
            into[i, s] = source[side.above[first + s]]


@compiled_part
def _process_below(sweep, g, part, workspace, other, total):
    """Process some boards below a board, and add their values.

    Args:
      sweep: The sweep.
      g: The board, after `_begin`.
      part: First board and end of the boards below it.
      workspace: Working memory of the board.
      other: Working memory of the boards below it, which may be the same.
      total: Values of the rows of the board, to which those of the carried rows are
        added, float [rows, n].
    """
    player = sweep.player
    reach, _, _, other_reach, _ = _views(sweep, g, workspace)
    for below in range(part[0], part[1]):
        r = sweep.boards.round[below]
        into, values, _, other_into, _ = _views(sweep, below, other)
        _carry(player, r, below, reach, into)
        _carry(sweep.opponent, r, below, other_reach, other_into)
        _begin(sweep, below, other)
        boards = sweep.boards.first_child[below], sweep.boards.first_child[below + 1]
        _process_below(sweep, below, boards, other, other, values)
        _finish(sweep, below, other)
        first = player.rounds[r].first_state + player.boards[below].start
        begin = player.rounds[r].first_carried
        for i in range(player.rounds[r + 1].first_carried - begin):
            row = total[player.carried[begin + i]]
            for s in range(player.boards[below].size):
                row[player.above[first + s]] += values[i, s]


@compiled
def process_parts(sweep, g, cuts, parts, workspace, other, totals):
    """Process some parts of the boards below a board of the first round.

    Args:
      sweep, g, workspace, other: As in `_process_below`.
      cuts: First boards of all parts, and the end, int64.
      parts: First part and end.
      totals: Memory for the values of each part, float [parts, M].
    """
    _, values, _, _, _ = _views(sweep, g, workspace)
    rows, n = values.shape
    for p in range(parts[0], parts[1]):
        total = matrix(totals[p], 0, rows, n)
        fill(totals[p], totals.dtype.type(0))
        part = cuts[p], cuts[p + 1]
        _process_below(sweep, g, part, workspace, other, total)


@compiled
def process_root(sweep, g, workspace, totals, before, after):
    """Process a board of the first round before and after the boards below it.

    Args:
      sweep, g, workspace: As in `_process_below`.
      totals: Values of the rows that the boards below add, float [parts, M].
      before, after: Whether to do what comes before the boards below, and after them.

    Returns:
      The value of the player's empty sequence on the board; 0 if `after` is false.
    """
    player, opponent, result = sweep.player, sweep.opponent, 0.0
    reach, values, _, other_reach, _ = _views(sweep, g, workspace)
    rows, n = values.shape
    if before:
        for i in range(player.rounds[1].first_carried):
            fill(reach[i], reach.dtype.type(1))
        for i in range(opponent.rounds[1].first_carried):
            fill(other_reach[i], reach.dtype.type(1))
        _begin(sweep, g, workspace)
    if after:
        for p in range(len(totals)):
            total = matrix(totals[p], 0, rows, n)
            for i in range(rows):
                _add_times(values[i], total[i], values.dtype.type(1))
        _finish(sweep, g, workspace)
        for i in range(player.rounds[1].first_carried):
            for s in range(n):
                result += np.float64(values[i, s])
    return result
