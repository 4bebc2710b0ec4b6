"""Compiled functions of a full-width iteration that processes one board after another.

The functions compute reach, values and regrets on one board, call themselves for the
boards of the next round, and use the same working memory for each. An iteration
therefore needs the memory of the solver's state and of one board of each round, which
stays in the processor's cache. Sums of the opponent's reach over hands replace payoff
matrices; see `games.public_tree.hand_operators` for the formula. For boards, their
tables and the legend for shapes see `board_tables`.

All compiled functions are in this file, because numba compiles a function that is in
its cache again only if the file of this function has changed.
"""

import numpy as np

from spiel_cr.common.compilation_cache import compiled, compiled_part, inlined
from spiel_cr.solvers.cfr.board_tables import LANES, MOST_CARDS


@inlined
def _matrix(memory, start, count, n):
    """Return a part of working memory as rows of n numbers."""
    return memory[start : start + count * n].reshape(count, n)


@compiled_part
def _fill(array, value):
    """Set all numbers of an array; assignments to slices take long to compile."""
    for i in range(len(array)):
        array[i] = value


@compiled_part
def _load(array, i):
    i *= 8
    return (
        *(array[i], array[i + 1], array[i + 2], array[i + 3]),
        *(array[i + 4], array[i + 5], array[i + 6], array[i + 7]),
    )


@compiled_part
def _store(array, i, x):
    i *= 8
    array[i], array[i + 1], array[i + 2], array[i + 3] = x[0], x[1], x[2], x[3]
    array[i + 4], array[i + 5], array[i + 6], array[i + 7] = x[4], x[5], x[6], x[7]


@compiled_part
def _plus(x, y, f):
    """Return x + f · y."""
    return (
        *(x[0] + f * y[0], x[1] + f * y[1], x[2] + f * y[2], x[3] + f * y[3]),
        *(x[4] + f * y[4], x[5] + f * y[5], x[6] + f * y[6], x[7] + f * y[7]),
    )


@compiled_part
def _add_hand(others, h, x, held, total):
    """Add the opponent's hand h to the sums by card, and return the sum of all."""
    hand = others[h]
    reach, weight = _load(x, np.int64(hand.state)), hand.weight
    a, b = np.int64(hand.first_card), np.int64(hand.second_card)
    _store(held, a, _plus(_load(held, a), reach, weight))
    _store(held, b, _plus(_load(held, b), reach, weight))
    return _plus(total, reach, weight)


@compiled_part
def _add_value(hands, h, out, held, total, sign):
    """Add the reach of the opponent's hands so far that are compatible with hand h."""
    hand = hands[h]
    a, b = np.int64(hand.first_card), np.int64(hand.second_card)
    one, s = out.dtype.type(1), np.int64(hand.state)
    value = _plus(_plus(total, _load(held, a), -one), _load(held, b), -one)
    _store(out, s, _plus(_load(out, s), value, sign * hand.weight))


@compiled_part
def _add_board(hands, others, places, showdown, scratch):
    """Add the values of the player's hands on a board of a matrix.

    The opponent's hands are added up in the order of strengths, from both ends, and
    each of the player's hands reads the sums between two of them.

    Args:
      hands, others: Tables of the player's and the opponent's hands.
      places: First hand on the board and end, for both, int64.
      showdown: Whether the matrix compares strengths.
      scratch: The opponent's reach and the player's values, [states, LANES]; memory for
        sums by card.
    """
    x, out, held = scratch[0], scratch[1], scratch[2, : LANES * MOST_CARDS]
    zero, one = x.dtype.type(0), x.dtype.type(1)
    begin, end, first, last = places
    _fill(held, zero)
    total = nothing = _load(held, 0)
    if not showdown:
        for i in range(first, last):
            total = _add_hand(others, i, x, held, total)
        for h in range(begin, end):
            _add_value(hands, h, out, held, total, one)
            if hands[h].twin:
                twin, s = others[first + hands[h].twin - 1], np.int64(hands[h].state)
                reach = _load(x, np.int64(twin.state))
                factor = twin.weight * hands[h].weight
                _store(out, s, _plus(_load(out, s), reach, factor))
        return
    i = first
    for h in range(begin, end):
        while i < first + hands[h].weaker:
            total = _add_hand(others, i, x, held, total)
            i += 1
        _add_value(hands, h, out, held, total, one)
    _fill(held, zero)
    total, i = nothing, last
    for h in range(end - 1, begin - 1, -1):
        while i > last - hands[h].stronger:
            i -= 1
            total = _add_hand(others, i, x, held, total)
        _add_value(hands, h, out, held, total, -one)


@inlined
def _source(leaves, terms, i, last, reach):
    """Return the reach and the stake of a row's first term; none after the last row."""
    t = leaves[min(i, last)].first_term
    stake = terms[t].stake if i <= last else reach.dtype.type(0)
    return reach[terms[t].row], stake


@compiled_part
def _fill_sums(leaves, terms, i, last, reach, x, m):
    """Fill in sums of the opponent's reach for the rows of leaf values i to last."""
    a, f0 = _source(leaves, terms, i, last, reach)
    b, f1 = _source(leaves, terms, i + 1, last, reach)
    c, f2 = _source(leaves, terms, i + 2, last, reach)
    d, f3 = _source(leaves, terms, i + 3, last, reach)
    e, f4 = _source(leaves, terms, i + 4, last, reach)
    f, f5 = _source(leaves, terms, i + 5, last, reach)
    g, f6 = _source(leaves, terms, i + 6, last, reach)
    h, f7 = _source(leaves, terms, i + 7, last, reach)
    for s in range(m):
        first = a[s] * f0, b[s] * f1, c[s] * f2, d[s] * f3
        second = e[s] * f4, f[s] * f5, g[s] * f6, h[s] * f7
        _store(x, s, first + second)
    for j in range(last + 1 - i):
        for t in range(leaves[i + j].first_term + 1, leaves[i + j + 1].first_term):
            source, stake = reach[terms[t].row], terms[t].stake
            for s in range(m):
                x[LANES * s + j] += source[s] * stake


@compiled_part
def _add_sums(leaves, i, last, values, out, n):
    """Add the rows of leaf values i to last to the values of sequences."""
    # One after another, because rows after the last one are the last one again.
    a, b = values[leaves[i].row], values[leaves[min(i + 1, last)].row]
    c, d = values[leaves[min(i + 2, last)].row], values[leaves[min(i + 3, last)].row]
    e, f = values[leaves[min(i + 4, last)].row], values[leaves[min(i + 5, last)].row]
    g, h = values[leaves[min(i + 6, last)].row], values[leaves[min(i + 7, last)].row]
    for s in range(n):
        y = _load(out, s)
        a[s] += y[0]
        b[s] += y[1]
        c[s] += y[2]
        d[s] += y[3]
        e[s] += y[4]
        f[s] += y[5]
        g[s] += y[6]
        h[s] += y[7]


@inlined
def _add_leaves(sweep, g, reach, values, scratch):
    """Add the leaf values on a board to the values of the player's sequences."""
    boards, player, opponent = sweep.boards, sweep.player, sweep.opponent
    r = boards.round[g]
    n, m = player.boards[g].size, opponent.boards[g].size
    for k in range(boards.first_matrix[r], boards.first_matrix[r + 1]):
        place = boards.first_place[k] + g - boards.first_board[r]
        end = player.first_leaf[k + 1]
        for i in range(player.first_leaf[k], end, LANES):
            last = min(i + LANES, end) - 1
            _fill(scratch[1, : n * LANES], scratch.dtype.type(0))
            _fill_sums(player.leaves, player.terms, i, last, reach, scratch[0], m)
            for f in range(boards.matrix_board[place], boards.matrix_board[place + 1]):
                places = (
                    *(player.first_hand[f], player.first_hand[f + 1]),
                    *(opponent.first_hand[f], opponent.first_hand[f + 1]),
                )
                showdown = boards.is_showdown[k]
                _add_board(player.hands, opponent.hands, places, showdown, scratch)
            _add_sums(player.leaves, i, last, values, scratch[1], n)


@compiled_part
def _match(weights, locks, at, strategy, total):
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
    _fill(total, zero)
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
        _matrix(memory, start, rows, n),
        _matrix(memory, start + rows * n, rows, n),
        _matrix(memory, start + 2 * rows * n, rows, n),
        _matrix(memory, start + 3 * rows * n, other_rows, m),
        _matrix(memory, end, 3, (len(memory) - end) // 3),
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
        rows = _matrix(spare[0], 0, count, n)
        if len(strategy):
            rows = strategy[child : child + count]
        _match(weights, side.locks, origin + decision.offset * n, rows, spare[1, :n])
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
    """Compute reach, averages and leaf values on a board with filled carried rows."""
    player, r = sweep.player, sweep.boards.round[g]
    reach, values, strategy, other_reach, scratch = _views(sweep, g, workspace)
    weights = sweep.opponent_weights
    _reach_below(sweep.opponent, r, g, weights, other_reach, strategy[:0], scratch)
    if not sweep.best or len(player.locks):
        _reach_below(player, r, g, sweep.weights, reach, strategy, scratch)
    if sweep.update:
        # The sequences of a round have consecutive rows and positions.
        row, board = player.rounds[r], player.boards[g]
        at = row.base + board.start * row.num_actions
        size = row.num_actions * board.size
        part = reach.reshape(reach.size)[reach.size - size :]
        _add_average(sweep.average[at : at + size], part, sweep.numbers[3])
    _fill(values.reshape(values.size), values.dtype.type(0))
    _add_leaves(sweep, g, other_reach, values, scratch)


@inlined
def _finish(sweep, g, workspace):
    """Compute the values of a board's infosets, and update regrets."""
    player, matrices = sweep.player, sweep.boards.first_matrix
    _, values, strategy, _, scratch = _views(sweep, g, workspace)
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
        if not sweep.update or count == 1:
            continue
        _fill(tolerance, means.dtype.type(0))
        for k in range(matrices[r], matrices[-1]):
            bounds = player.bounds[k, first : first + n]
            _add_times(tolerance, bounds, player.payoffs[d, k] * sweep.numbers[2])
        for a in range(count):
            regrets = sweep.weights[at + a * n : at + a * n + n]
            _add_regrets(
                sweep.numbers, sweep.positive, regrets, rows[a], means, tolerance
            )


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
        total = _matrix(totals[p], 0, rows, n)
        _fill(totals[p], totals.dtype.type(0))
        part = cuts[p], cuts[p + 1]
        _process_below(sweep, g, part, workspace, other, total)


@compiled
def process_root(sweep, g, workspace, totals, before, after):
    """Process a board of the first round before and after the boards below it.

    Args:
      sweep, g, workspace: As in `_process_below`.
      totals: Values of the rows that the boards below add, float [parts, M].
      before, after: Whether to do the work before the boards below, and after them.

    Returns:
      The value of the player's empty sequence on the board; 0 if `after` is false.
    """
    player, opponent, result = sweep.player, sweep.opponent, 0.0
    reach, values, _, other_reach, _ = _views(sweep, g, workspace)
    rows, n = values.shape
    if before:
        for i in range(player.rounds[1].first_carried):
            _fill(reach[i], reach.dtype.type(1))
        for i in range(opponent.rounds[1].first_carried):
            _fill(other_reach[i], reach.dtype.type(1))
        _begin(sweep, g, workspace)
    if after:
        for p in range(len(totals)):
            total = _matrix(totals[p], 0, rows, n)
            for i in range(rows):
                _add_times(values[i], total[i], values.dtype.type(1))
        _finish(sweep, g, workspace)
        for i in range(player.rounds[1].first_carried):
            for s in range(n):
                result += np.float64(values[i, s])
    return result


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
            strategy = _matrix(memory[0], 0, count, n)
            _match(weights, side.locks, at, strategy, memory[1, :n])
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


@compiled
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
        side, other = player.boards[g], opponent.boards[g]
        _fill(x[: other.size * LANES], x.dtype.type(0))
        _fill(out[: side.size * LANES], out.dtype.type(0))
        for s in range(other.size):
            x[LANES * s] = reach[other.start + s]
        for f in range(boards.matrix_board[place], boards.matrix_board[place + 1]):
            places = (
                *(player.first_hand[f], player.first_hand[f + 1]),
                *(opponent.first_hand[f], opponent.first_hand[f + 1]),
            )
            _add_board(player.hands, opponent.hands, places, showdown, scratch)
        for s in range(side.size):
            values[side.start + s] += out[LANES * s]
