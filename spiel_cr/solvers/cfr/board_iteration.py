"""Compiled functions of a full-width iteration that processes one board after another.

A *board* is a set of public cards at the beginning of a round. Both players' private
states of a round belong to one board each. The functions compute reach, values and
regrets on one board, call themselves for the boards of the next round, and use the same
working memory for each. An iteration therefore needs the memory of the solver's state
and of one board of each round, which stays in the processor's cache.

On each board, the rows of working memory belong to a player's public sequences: those
that were *carried* from the round before, and then those of the round.

Legend for shapes: R rounds, B boards of all rounds, D public decisions of a player, in
the order of rounds, K payoff matrices, in the order of rounds, F boards of all payoff
matrices, T terms of leaf values, N hands of a player on all boards, S positions of a
player's sequences, n private states of a player on one board, A actions.
"""

from typing import NamedTuple

import numpy as np

from spiel_cr.common.compilation_cache import numba_jit

# Rows of leaf values that are computed together, so that the indices of hands are read
# once for all of them. The functions on tuples below have this length.
LANES = 8
# Largest number of different cards of the hands of a matrix.
MOST_CARDS = 64


class BoardSide(NamedTuple):
    """One player's decisions, private states and hands.

    Attributes:
      first_decision: First decision of each round, int64 [R + 1].
      parent: Row of the sequence before each decision, uint32 [D].
      child: Row of the first action of each decision, uint32 [D].
      num_actions: Number of actions of each decision, uint32 [D].
      offset: Number of actions of earlier decisions of the round, int64 [D].
      round_actions: Number of actions of all decisions of each round, int64 [R].
      num_rows: Number of rows of a board of each round, int64 [R].
      first_carried: First carried row of each round, int64 [R + 1].
      carried: Row of each carried row on the board of the round before, uint32.
      base: Position of the first sequence of each round, int64 [R].
      start: First private state of each board in its round, int64 [B].
      size: Number of private states of each board, int64 [B].
      first_state: Number of private states of earlier rounds, int64 [R].
      above: Place of the earlier private state on its board, for the private states of
        all rounds, uint32.
      payoffs: Sums of absolute stakes below each decision, times the relative rounding
        error, float [D, K].
      bounds: Bounds on the values of private states of all rounds per unit of stake,
        float [K, states].
      first_row: First row of leaf values of each matrix, int64 [K + 1].
      leaf_row: Row of the sequence to which each row of leaf values belongs, uint32.
      first_term: First term of each row of leaf values, int64.
      term_row: The opponent's row of each term, uint32 [T].
      stake: The player's stake of each term, float [T].
      first_hand: First hand on each board of a matrix, int64 [F + 1].
      state: Place of the hand's private state on the board of its round, uint32 [N].
      weight: Weight of each hand, float [N].
      cards: Places of the hand's cards among those of its matrix, uint8 [N, 2].
      weaker, stronger: Numbers of the opponent's hands on the board that are weaker
        and stronger, uint16 [N].
      twin: One more than the place of the opponent's hand with the same cards on the
        board, uint16 [N]; 0 if there is none.
      locks: Locked probabilities, negative at free infosets, float [S]; empty if no
        infoset is locked.
    """

    first_decision: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    num_actions: np.ndarray
    offset: np.ndarray
    round_actions: np.ndarray
    num_rows: np.ndarray
    first_carried: np.ndarray
    carried: np.ndarray
    base: np.ndarray
    start: np.ndarray
    size: np.ndarray
    first_state: np.ndarray
    above: np.ndarray
    payoffs: np.ndarray
    bounds: np.ndarray
    first_row: np.ndarray
    leaf_row: np.ndarray
    first_term: np.ndarray
    term_row: np.ndarray
    stake: np.ndarray
    first_hand: np.ndarray
    state: np.ndarray
    weight: np.ndarray
    cards: np.ndarray
    weaker: np.ndarray
    stronger: np.ndarray
    twin: np.ndarray
    locks: np.ndarray


class BoardTree(NamedTuple):
    """Boards of all rounds, and the boards of payoff matrices.

    Attributes:
      round: Round of each board, int64 [B].
      first_board: First board of each round, int64 [R + 1].
      first_child: First board of the next round below each board, int64 [B + 1].
      first_matrix: First matrix of each round, int64 [R + 1].
      is_showdown: Whether each matrix compares strengths, bool [K].
      first_place: First place of each matrix in `matrix_board`, int64 [K].
      matrix_board: First board of the matrix for each board of the matrix's round, for
        each matrix, followed by the end, int64.
    """

    round: np.ndarray
    first_board: np.ndarray
    first_child: np.ndarray
    first_matrix: np.ndarray
    is_showdown: np.ndarray
    first_place: np.ndarray
    matrix_board: np.ndarray


class Sweep(NamedTuple):
    """Arguments of the update or evaluation of one player.

    Attributes:
      boards: The boards.
      player, opponent: Both players' sides.
      weights: Numbers whose positive parts are proportional to the player's strategy,
        float [S]: regrets, or average reach.
      average: The player's average reach, float [S].
      opponent_weights: As `weights`, for the opponent.
      numbers: Discounts of positive and negative regrets, factor of tolerances, and
        weight of the iteration in the average, float [4].
      best: Whether the player responds best instead.
      update: Whether regrets and averages are updated.
      positive: Whether negative regrets are set to zero.
      recorded: First decision whose action values are recorded, their end, and the
        number of their actions, int64 [3].
      record: Recorded values, float: for each board, decision and action [n].
    """

    boards: BoardTree
    player: BoardSide
    opponent: BoardSide
    weights: np.ndarray
    average: np.ndarray
    opponent_weights: np.ndarray
    numbers: np.ndarray
    best: bool
    update: bool
    positive: bool
    recorded: np.ndarray
    record: np.ndarray


class Workspace(NamedTuple):
    """Working memory of one thread.

    Attributes:
      memory: Arrays of one board of each round, and three arrays for the leaf values of
        one board, float [M].
      starts: Place of the arrays of each round, and of the three, int64 [R + 1].
    """

    memory: np.ndarray
    starts: np.ndarray


@numba_jit
def _matrix(memory, start, count, n):
    return memory[start : start + count * n].reshape(count, n)


@numba_jit
def _views(sweep, g, workspace):
    """Return the working memory of a board.

    Returns:
      The player's reach, values and strategy, float [rows, n]; the opponent's reach,
      float [rows', n']; three arrays for leaf values, float [3, size].
    """
    player, opponent, memory = sweep.player, sweep.opponent, workspace.memory
    r = sweep.boards.round[g]
    start, end, rows = workspace.starts[r], workspace.starts[-1], player.num_rows[r]
    n, m = player.size[g], opponent.size[g]
    return (
        _matrix(memory, start, rows, n),
        _matrix(memory, start + rows * n, rows, n),
        _matrix(memory, start + 2 * rows * n, rows, n),
        _matrix(memory, start + 3 * rows * n, opponent.num_rows[r], m),
        _matrix(memory, end, 3, (len(memory) - end) // 3),
    )


@numba_jit
def match(weights, locks, at, strategy):
    """Fill in a strategy [A, n], proportional to the positive weights at a position.

    It is uniform at infosets without positive weights.
    """
    count, n = strategy.shape
    zero, one = strategy.dtype.type(0), strategy.dtype.type(1)
    even = one / strategy.dtype.type(count)
    total = np.zeros(n, strategy.dtype)
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


@numba_jit
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
      spare: Memory for the strategy at one decision.
    """
    n = side.size[g]
    origin = side.base[r] + side.start[g] * side.round_actions[r]
    for d in range(side.first_decision[r], side.first_decision[r + 1]):
        child, count = side.child[d], side.num_actions[d]
        if len(strategy):
            rows = strategy[child : child + count]
        else:
            rows = _matrix(spare, 0, count, n)
        match(weights, side.locks, origin + side.offset[d] * n, rows)
        above = reach[side.parent[d]]
        for a in range(count):
            below, row = reach[child + a], rows[a]
            for s in range(n):
                below[s] = above[s] * row[s]


@numba_jit
def _load(array, i):
    i *= 8
    return (
        *(array[i], array[i + 1], array[i + 2], array[i + 3]),
        *(array[i + 4], array[i + 5], array[i + 6], array[i + 7]),
    )


@numba_jit
def _store(array, i, x):
    i *= 8
    array[i], array[i + 1], array[i + 2], array[i + 3] = x[0], x[1], x[2], x[3]
    array[i + 4], array[i + 5], array[i + 6], array[i + 7] = x[4], x[5], x[6], x[7]


@numba_jit
def _plus(x, y, f):
    """Return x + f · y."""
    return (
        *(x[0] + f * y[0], x[1] + f * y[1], x[2] + f * y[2], x[3] + f * y[3]),
        *(x[4] + f * y[4], x[5] + f * y[5], x[6] + f * y[6], x[7] + f * y[7]),
    )


@numba_jit
def _add_hand(opponent, h, x, held, total):
    """Add the opponent's hand h to the sums by card, and return the sum of all."""
    reach, weight = _load(x, np.int64(opponent.state[h])), opponent.weight[h]
    a, b = np.int64(opponent.cards[h, 0]), np.int64(opponent.cards[h, 1])
    _store(held, a, _plus(_load(held, a), reach, weight))
    _store(held, b, _plus(_load(held, b), reach, weight))
    return _plus(total, reach, weight)


@numba_jit
def _add_value(player, h, out, held, total, sign):
    """Add the reach of the opponent's hands so far that are compatible with hand h."""
    a, b = np.int64(player.cards[h, 0]), np.int64(player.cards[h, 1])
    one, s = out.dtype.type(1), np.int64(player.state[h])
    value = _plus(_plus(total, _load(held, a), -one), _load(held, b), -one)
    _store(out, s, _plus(_load(out, s), value, sign * player.weight[h]))


@numba_jit
def _add_board(player, opponent, f, showdown, scratch):
    """Add the values of the player's hands on board f of a matrix.

    The opponent's hands are added up in the order of strengths, from both ends, and
    each of the player's hands reads the sums between two of them. See
    `games.public_tree.hand_operators` for the formula.
    """
    x, out, held = scratch[0], scratch[1], scratch[2]
    zero, one = x.dtype.type(0), x.dtype.type(1)
    begin, end = player.first_hand[f], player.first_hand[f + 1]
    first, last = opponent.first_hand[f], opponent.first_hand[f + 1]
    held[: LANES * MOST_CARDS] = zero
    total = nothing = _load(held, 0)
    if not showdown:
        for i in range(first, last):
            total = _add_hand(opponent, i, x, held, total)
        for h in range(begin, end):
            _add_value(player, h, out, held, total, one)
            if player.twin[h]:
                i, s = first + player.twin[h] - 1, np.int64(player.state[h])
                reach = _load(x, np.int64(opponent.state[i]))
                factor = opponent.weight[i] * player.weight[h]
                _store(out, s, _plus(_load(out, s), reach, factor))
        return
    i = first
    for h in range(begin, end):
        while i < first + player.weaker[h]:
            total = _add_hand(opponent, i, x, held, total)
            i += 1
        _add_value(player, h, out, held, total, one)
    held[: LANES * MOST_CARDS] = zero
    total, i = nothing, last
    for h in range(end - 1, begin - 1, -1):
        while i > last - player.stronger[h]:
            i -= 1
            total = _add_hand(opponent, i, x, held, total)
        _add_value(player, h, out, held, total, -one)


@numba_jit
def _source(player, i, last, reach):
    """Return the reach and the stake of a row's first term; none after the last row."""
    t = player.first_term[min(i, last)]
    stake = player.stake[t] if i <= last else reach.dtype.type(0)
    return reach[player.term_row[t]], stake


@numba_jit
def _fill_sums(player, i, last, reach, x, m):
    """Fill in sums of the opponent's reach for the rows of leaf values i to last."""
    a, b = _source(player, i, last, reach), _source(player, i + 1, last, reach)
    c, d = _source(player, i + 2, last, reach), _source(player, i + 3, last, reach)
    e, f = _source(player, i + 4, last, reach), _source(player, i + 5, last, reach)
    g, h = _source(player, i + 6, last, reach), _source(player, i + 7, last, reach)
    for s in range(m):
        first = a[0][s] * a[1], b[0][s] * b[1], c[0][s] * c[1], d[0][s] * d[1]
        second = e[0][s] * e[1], f[0][s] * f[1], g[0][s] * g[1], h[0][s] * h[1]
        _store(x, s, first + second)
    for j in range(last + 1 - i):
        for t in range(player.first_term[i + j] + 1, player.first_term[i + j + 1]):
            source, stake = reach[player.term_row[t]], player.stake[t]
            for s in range(m):
                x[LANES * s + j] += source[s] * stake


@numba_jit
def _add_sums(player, i, last, values, out, n):
    """Add the rows of leaf values i to last to the values of sequences."""
    a, b, c, d = _four_rows(values, player.leaf_row, i, last)
    e, f, g, h = _four_rows(values, player.leaf_row, i + 4, last)
    for s in range(n):
        y = _load(out, s)
        # One after another, because rows after the last one are the last one again.
        a[s] += y[0]
        b[s] += y[1]
        c[s] += y[2]
        d[s] += y[3]
        e[s] += y[4]
        f[s] += y[5]
        g[s] += y[6]
        h[s] += y[7]


@numba_jit
def _four_rows(values, row, i, last):
    """Return the rows of i to i + 3; the last one instead of those after it."""
    a, b = values[row[min(i, last)]], values[row[min(i + 1, last)]]
    c, d = values[row[min(i + 2, last)]], values[row[min(i + 3, last)]]
    return a, b, c, d


@numba_jit
def _add_leaves(sweep, g, reach, values, scratch):
    """Add the leaf values on a board to the values of the player's sequences."""
    boards, player, opponent = sweep.boards, sweep.player, sweep.opponent
    r = boards.round[g]
    n, m = player.size[g], opponent.size[g]
    x, out = scratch[0], scratch[1]
    for k in range(boards.first_matrix[r], boards.first_matrix[r + 1]):
        place = boards.first_place[k] + g - boards.first_board[r]
        showdown, end = boards.is_showdown[k], player.first_row[k + 1]
        for i in range(player.first_row[k], end, LANES):
            rows = min(LANES, end - i)
            out[: n * LANES] = x.dtype.type(0)
            _fill_sums(player, i, i + rows - 1, reach, x, m)
            for f in range(boards.matrix_board[place], boards.matrix_board[place + 1]):
                _add_board(player, opponent, f, showdown, scratch)
            _add_sums(player, i, i + rows - 1, values, out, n)


@numba_jit
def _means(values, strategy, locks, at, best, means):
    """Fill in the values of infosets [n] from those of actions [A, n]."""
    zero = means.dtype.type(0)
    count, n = values.shape
    means[:] = zero
    if best:
        means[:] = values[0]
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


@numba_jit
def _add_regrets(sweep, regrets, values, means, tolerance):
    """Update the regrets [n] of an action; see `regret_matching.update`."""
    up, down = sweep.numbers[0], sweep.numbers[1]
    zero = regrets.dtype.type(0)
    if sweep.positive:
        for s in range(len(means)):
            y = regrets[s] + (values[s] - means[s])
            regrets[s] = y * up if y > tolerance[s] else zero
    else:
        for s in range(len(means)):
            y = regrets[s] + (values[s] - means[s])
            size, kept = (y, y * up) if y > zero else (-y, y * down)
            regrets[s] = kept if size > tolerance[s] else zero


@numba_jit
def _add_times(into, row, factor):
    for s in range(len(row)):
        into[s] += factor * row[s]


@numba_jit
def _add_average(average, reach, share):
    for s in range(len(reach)):
        average[s] += share * (reach[s] - average[s])


@numba_jit
def _begin(sweep, g, workspace):
    """Compute reach and leaf values on a board whose carried rows are filled in."""
    player, r = sweep.player, sweep.boards.round[g]
    reach, values, strategy, other_reach, scratch = _views(sweep, g, workspace)
    weights, spare = sweep.opponent_weights, scratch[0]
    _reach_below(sweep.opponent, r, g, weights, other_reach, strategy[:0], spare)
    if not sweep.best or len(player.locks):
        _reach_below(player, r, g, sweep.weights, reach, strategy, spare)
    values[:] = values.dtype.type(0)
    _add_leaves(sweep, g, other_reach, values, scratch)


@numba_jit
def _finish(sweep, g, workspace):
    """Compute the values of a board's infosets; update regrets and averages."""
    player, matrices = sweep.player, sweep.boards.first_matrix
    reach, values, strategy, _, scratch = _views(sweep, g, workspace)
    r, n = sweep.boards.round[g], player.size[g]
    means, tolerance = scratch[0, :n], scratch[1, :n]
    one = means.dtype.type(1)
    origin = player.base[r] + player.start[g] * player.round_actions[r]
    first = player.first_state[r] + player.start[g]
    for d in range(player.first_decision[r + 1] - 1, player.first_decision[r] - 1, -1):
        child, count = player.child[d], player.num_actions[d]
        at = origin + player.offset[d] * n
        rows = values[child : child + count]
        played = strategy[child : child + count]
        _means(rows, played, player.locks, at, sweep.best, means)
        _add_times(values[player.parent[d]], means, one)
        if sweep.recorded[0] <= d < sweep.recorded[1]:
            actions = player.offset[d] - player.offset[sweep.recorded[0]]
            begins = player.start[g] * sweep.recorded[2] + actions * n
            for a in range(count):
                sweep.record[begins + a * n : begins + a * n + n] = rows[a]
        if not sweep.update:
            continue
        tolerance[:] = means.dtype.type(0)
        for k in range(matrices[r], matrices[-1]):
            bounds = player.bounds[k, first : first + n]
            _add_times(tolerance, bounds, player.payoffs[d, k] * sweep.numbers[2])
        for a in range(count):
            part = slice(at + a * n, at + a * n + n)
            if count > 1:
                _add_regrets(sweep, sweep.weights[part], rows[a], means, tolerance)
            _add_average(sweep.average[part], reach[child + a], sweep.numbers[3])


@numba_jit
def _carry(side, r, below, reach, into):
    """Copy the reach of a board's carried rows from the board above."""
    first = side.first_state[r] + side.start[below]
    for i in range(side.first_carried[r + 1] - side.first_carried[r]):
        source = reach[side.carried[side.first_carried[r] + i]]
        for s in range(side.size[below]):
            into[i, s] = source[side.above[first + s]]


@numba_jit
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
        first = player.first_state[r] + player.start[below]
        for i in range(player.first_carried[r + 1] - player.first_carried[r]):
            row = total[player.carried[player.first_carried[r] + i]]
            for s in range(player.size[below]):
                row[player.above[first + s]] += values[i, s]


@numba_jit
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
        total = _matrix(totals[p], 0, rows, n)
        total[:] = total.dtype.type(0)
        part = cuts[p], cuts[p + 1]
        _process_below(sweep, g, part, workspace, other, total)


@numba_jit
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
        reach[: player.first_carried[1]] = reach.dtype.type(1)
        other_reach[: opponent.first_carried[1]] = reach.dtype.type(1)
        _begin(sweep, g, workspace)
    if after:
        for p in range(len(totals)):
            total = _matrix(totals[p], 0, rows, n)
            for i in range(rows):
                _add_times(values[i], total[i], values.dtype.type(1))
        _finish(sweep, g, workspace)
        for i in range(player.first_carried[1]):
            for s in range(n):
                result += np.float64(values[i, s])
    return result


@numba_jit
def fill_behaviour(side, boards, weights, starts, behaviour):
    """Fill in action probabilities by logical sequence.

    Args:
      side: The player's side.
      boards: The boards.
      weights: Numbers by position whose positive parts are proportional to them.
      starts: Logical number of the first sequence of each decision, int64 [D].
      behaviour: The result, float [logical sequences].
    """
    behaviour[0] = behaviour.dtype.type(1)
    for g in range(len(boards.round)):
        r, n = boards.round[g], side.size[g]
        origin = side.base[r] + side.start[g] * side.round_actions[r]
        for d in range(side.first_decision[r], side.first_decision[r + 1]):
            count = np.int64(side.num_actions[d])
            strategy = np.empty((count, n), behaviour.dtype)
            match(weights, side.locks, origin + side.offset[d] * n, strategy)
            first = starts[d] + side.start[g] * count
            for s in range(n):
                for a in range(count):
                    behaviour[first + s * count + a] = strategy[a, s]


@numba_jit
def fill_positions(side, boards, behaviour, starts, positions):
    """Fill in numbers by position, the inverse of `fill_behaviour`.

    Args:
      side: The player's side.
      boards: The boards.
      behaviour: Numbers by logical sequence, float [logical sequences]; NaN is
        replaced by -1.
      starts: Logical number of the first sequence of each decision, int64 [D].
      positions: The result, float [S].
    """
    positions[0] = -1 if np.isnan(behaviour[0]) else behaviour[0]
    for g in range(len(boards.round)):
        r, n = boards.round[g], side.size[g]
        origin = side.base[r] + side.start[g] * side.round_actions[r]
        for d in range(side.first_decision[r], side.first_decision[r + 1]):
            count = np.int64(side.num_actions[d])
            at, first = origin + side.offset[d] * n, starts[d] + side.start[g] * count
            for a in range(count):
                for s in range(n):
                    x = behaviour[first + s * count + a]
                    positions[at + a * n + s] = -1 if np.isnan(x) else x


@numba_jit
def add_matrix(boards, player, opponent, k, showdown, reach, values, scratch):
    """Add the values of a matrix, per unit of stake, on all boards.

    Args:
      boards: The boards.
      player, opponent: Both players' sides.
      k: The matrix, one of showdowns.
      showdown: Whether to compare strengths: the opponent's reach that a private state
        beats minus the reach that beats it. Otherwise all reach counts that shares no
        card with it.
      reach: The opponent's reach in the matrix's round, float [private states].
      values: The sums, float [private states of the player].
      scratch: Three arrays, float [3, size].
    """
    x, out = scratch[0], scratch[1]
    r = 0
    while boards.first_matrix[r + 1] <= k:
        r += 1
    for g in range(boards.first_board[r], boards.first_board[r + 1]):
        place = boards.first_place[k] + g - boards.first_board[r]
        start, first = player.start[g], opponent.start[g]
        x[: opponent.size[g] * LANES] = x.dtype.type(0)
        out[: player.size[g] * LANES] = out.dtype.type(0)
        for s in range(opponent.size[g]):
            x[LANES * s] = reach[first + s]
        for f in range(boards.matrix_board[place], boards.matrix_board[place + 1]):
            _add_board(player, opponent, f, showdown, scratch)
        for s in range(player.size[g]):
            values[start + s] += out[LANES * s]
