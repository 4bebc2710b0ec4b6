"""Compiled functions of the values of folds and showdowns on one board.

Sums of the opponent's reach over hands replace payoff matrices; see
`games.public_tree.hand_operators` for the formula.
"""

import numpy as np

from spiel_cr.common.compilation_cache import compiled, compiled_part, inlined
from spiel_cr.solvers.cfr.board_tables import LANES, MOST_CARDS


@inlined
def matrix(memory, start, count, n):
    """Return a part of working memory as rows of n numbers."""
    return memory[start : start + count * n].reshape(count, n)


@compiled_part
def fill(array, value):
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
    fill(held, zero)
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
    fill(held, zero)
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
def add_leaves(sweep, g, reach, values, scratch):
    """Add the leaf values on a board to the values of the player's sequences."""
    boards, player, opponent = sweep.boards, sweep.player, sweep.opponent
    r = boards.round[g]
    n, m = player.boards[g].size, opponent.boards[g].size
    for k in range(boards.first_matrix[r], boards.first_matrix[r + 1]):
        place = boards.first_place[k] + g - boards.first_board[r]
        end = player.first_leaf[k + 1]
        for i in range(player.first_leaf[k], end, LANES):
            last = min(i + LANES, end) - 1
            fill(scratch[1, : n * LANES], scratch.dtype.type(0))
            _fill_sums(player.leaves, player.terms, i, last, reach, scratch[0], m)
            for f in range(boards.matrix_board[place], boards.matrix_board[place + 1]):
                places = (
                    *(player.first_hand[f], player.first_hand[f + 1]),
                    *(opponent.first_hand[f], opponent.first_hand[f + 1]),
                )
                showdown = boards.is_showdown[k]
                _add_board(player.hands, opponent.hands, places, showdown, scratch)
            _add_sums(player.leaves, i, last, values, scratch[1], n)


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
        fill(x[: other.size * LANES], x.dtype.type(0))
        fill(out[: side.size * LANES], out.dtype.type(0))
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
