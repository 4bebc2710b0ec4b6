"""What a value network sees at a cut, and which public states are alike.

Two public states are alike where the games below them are the same, history by history:
moves in the same order, equal chances, equal payoffs, the same infosets. They then have
the same counterfactual values at the same ranges, whatever was played before: in liar's
dice all states with the same last bid, in poker all with the same pot and board.
"""

import hashlib

import numpy as np
import pyspiel

from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.lookahead.public_states import PublicStates

# Chances and utilities are compared up to this many decimals.
_DECIMALS = 9


def infoset_features(
    tree: CompiledGame, states: PublicStates
) -> tuple[np.ndarray, np.ndarray]:
    """What is known at each infoset at a cut, as numbers.

    The game's information state tensor at a root of the infoset, where the game gives
    one and it tells the infosets of every state apart; otherwise the characters of the
    information state string, one-hot by position. Then the player's last own action,
    its seat and whether it acts.

    Args:
      tree: the compiled game.
      states: at the cut.

    Returns:
      float32 [J0, F] and [J1, F], in the order of `states.infosets`.
    """
    histories = tree.histories
    actions = tree.game.num_distinct_actions()
    known: dict[int, pyspiel.State] = {}
    tensors: list[list[np.ndarray]] = [[], []]
    strings: list[list[str]] = [[], []]
    extras = []
    for p in range(2):
        roots = np.full(len(states.infosets[p]), -1, np.int64)
        roots[states.place[p][::-1]] = states.history[::-1]
        sequence = histories.sequence[p][roots]
        own = tree.infosets[p].actions
        last = np.where(sequence > 0, own[np.maximum(sequence, 1) - 1], -1)
        extra = np.zeros((len(roots), actions + 2), np.float32)
        rows = np.flatnonzero((last >= 0) & (last < actions))
        extra[rows, last[rows]] = 1
        extra[:, -2] = p
        extra[:, -1] = states.player == p
        extras.append(extra)
        for root in roots.tolist():
            if root not in known:
                known[root] = tree.state_at(root)
            state = known[root]
            tensors[p].append(_tensor(state, p))
            strings[p].append(state.information_state_string(p))
    found = []
    sizes = {len(row) for rows in tensors for row in rows}
    if len(sizes) == 1 and sizes != {0}:
        found = [
            np.hstack([np.array(rows, np.float32).reshape(len(extra), -1), extra])
            for rows, extra in zip(tensors, extras, strict=True)
        ]
        pairs = zip(found, states.state, strict=True)
        if all(_distinct(rows, state) for rows, state in pairs):
            return found[0], found[1]
    encoded = _encode(strings)
    first, second = (
        np.hstack([rows, extra]) for rows, extra in zip(encoded, extras, strict=True)
    )
    return first, second


def _tensor(state: pyspiel.State, player: int) -> np.ndarray:
    """The player's tensor; empty where there is none."""
    try:
        return np.asarray(state.information_state_tensor(player), np.float32)
    except (pyspiel.SpielError, AttributeError, NotImplementedError, ValueError):
        return np.zeros(0, np.float32)


def _distinct(rows: np.ndarray, state: np.ndarray) -> bool:
    """Whether no two infosets of a public state have equal rows."""
    full = np.hstack([rows, state[:, None].astype(np.float32)])
    return len(np.unique(full, axis=0)) == len(full)


def _encode(strings: list[list[str]]) -> list[np.ndarray]:
    """Characters of strings, one-hot by position; constant places are left out."""
    codes = [[np.frombuffer(s.encode(), np.uint8) for s in own] for own in strings]
    width = max((len(code) for own in codes for code in own), default=0)
    table = np.zeros((sum(map(len, codes)), width), np.uint8)
    for row, code in enumerate(code for own in codes for code in own):
        table[row, : len(code)] = code
    columns = [
        (table[:, place] == value)
        for place in range(width)
        for value in np.unique(table[:, place])[1:]
    ]
    joined = np.array(columns, np.float32).reshape(len(columns), len(table)).T
    return [joined[: len(strings[0])], joined[len(strings[0]) :]]


def alike(tree: CompiledGame, states: PublicStates) -> np.ndarray:
    """For each public state a hash of the game below it.

    Args:
      tree: the compiled game.
      states: of one player.

    Returns:
      uint8 [P, 16]; equal where the games below are the same.
    """
    nested = np.zeros(len(tree.histories), np.int32)
    is_root = np.zeros(len(tree.histories), bool)
    is_root[states.history] = True
    for level in tree.histories.by_depth:
        if level.start:
            nested[level] = nested[tree.histories.parent[level]]
        nested[level] += is_root[level]
    found = np.zeros((len(states), 16), np.uint8)
    order = np.zeros(len(states), np.int32)
    order[states.root_state] = nested[states.history]
    for number in np.unique(order):
        chosen = np.flatnonzero(order == number)
        found[chosen] = _hashes(tree, states.select(states.numbers[chosen]))
    return found


def _hashes(tree: CompiledGame, states: PublicStates) -> np.ndarray:
    """`alike` where no state is below another."""
    h = tree.histories
    root = np.full(len(h), -1, np.int32)
    root[states.history] = np.arange(len(states.history))
    is_root = root >= 0
    for level in h.by_depth[1:]:
        above = root[h.parent[level]]
        root[level] = np.where(above >= 0, above, root[level])
    below = np.flatnonzero(root >= 0)
    state = states.root_state[root[below]]
    order = np.argsort(state, kind="stable")
    below, state = below[order], state[order]
    begins = np.searchsorted(state, np.arange(len(states) + 1))
    local = np.full(len(h), -1, np.int64)
    local[below] = np.arange(len(below)) - begins[state]
    # Infosets by where they are first met: their numbers say what was before.
    decides = h.infoset[below] >= 0
    infoset = np.where(decides, 2 * h.infoset[below].astype(np.int64), -1)
    infoset += np.where(decides, h.player[below], 0)
    pairs = np.stack([state, infoset], axis=1)
    _, first, back = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    columns = [
        np.where(is_root[below], -1, local[np.maximum(h.parent[below], 0)]),
        h.player[below],
        np.where(decides, local[below][first[back.reshape(-1)]], -1),
    ]
    for p in range(2):
        place = states.place[p] - states.bounds(p)[states.root_state]
        columns.append(np.where(is_root[below], place[root[below]], -1))
    chance = np.broadcast_to(h.chance, len(h))[below]
    scale = np.maximum.reduceat(chance, begins[:-1])
    for numbers in (chance / scale[state], h.utility[below]):
        columns.append(np.round(numbers * 10**_DECIMALS))
    table = np.stack([column.astype(np.int64) for column in columns], axis=1)
    hashes = [
        hashlib.blake2b(
            bytes([states.player]) + table[begin:end].tobytes(), digest_size=16
        ).digest()
        for begin, end in zip(begins[:-1], begins[1:], strict=True)
    ]
    return np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 16)
