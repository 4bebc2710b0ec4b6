"""What a value network sees at a cut, and which public states are alike.

Two public states are alike where the games below them are the same, history by history:
moves in the same order, equal chances, equal payoffs, the same infosets. They then have
the same counterfactual values at the same ranges, whatever was played before: in liar's
dice all states with the same last bid, in poker all with the same pot and board.
"""

import hashlib
import zlib

import numpy as np
import pyspiel

from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.resolving.leaves.public_states import PublicStates

# Chances and utilities are compared up to this many decimals.
_DECIMALS = 9
_NO_TENSORS = (
    "{}: the game has no information_state_tensor, or several of different sizes; read "
    "its information_state_string"
)
# Of characters of information state strings.
_PLACES = 256


def infoset_features(
    tree: CompiledGame, states: PublicStates, *, strings: bool
) -> tuple[np.ndarray, np.ndarray]:
    """What is known at each infoset at a cut, as numbers.

    What the game says of a root of the infoset to the player, then the player's last
    own action, its seat and whether it acts.

    Args:
      tree: the compiled game.
      states: at the cut.
      strings: of the information state take the characters of its string, each with its
        position hashed to one of 256 places, and not its tensor.

    Returns:
      float32 [J0, F] and [J1, F], in the order of `states.infosets`.

    Raises:
      ValueError: the game has no information state tensors of one size.
    """
    histories = tree.histories
    actions = tree.game.num_distinct_actions()
    # OpenSpiel writes to stderr where it is asked for what a game has not.
    tensors = tree.game.get_type().provides_information_state_tensor
    if not (strings or tensors):
        raise ValueError(_NO_TENSORS.format(tree.game))
    known: dict[int, pyspiel.State] = {}
    found = []
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
        said = []
        for root in roots.tolist():
            if root not in known:
                known[root] = tree.state_at(root)
            state = known[root]
            said.append(_hashed(state, p) if strings else _tensor(state, p))
        if {len(row) for row in said} != {len(said[0])} or not len(said[0]):
            raise ValueError(_NO_TENSORS.format(tree.game))
        found.append(np.hstack([np.array(said, np.float32), extra]))
    return found[0], found[1]


def _tensor(state: pyspiel.State, player: int) -> np.ndarray:
    """The player's tensor; float32."""
    return np.asarray(state.information_state_tensor(player), np.float32)


def _hashed(state: pyspiel.State, player: int) -> np.ndarray:
    """The player's string; how many of its characters fall on each place."""
    row = np.zeros(_PLACES, np.float32)
    for place, character in enumerate(state.information_state_string(player)):
        row[zlib.crc32(f"{place}:{character}".encode()) % _PLACES] += 1
    return row


def tell_apart(features: tuple[np.ndarray, np.ndarray], states: PublicStates) -> bool:
    """Whether no two infosets of a player and a public state have equal features."""
    for rows, state in zip(features, states.state, strict=True):
        full = np.hstack([rows, state[:, None].astype(np.float32)])
        if len(np.unique(full, axis=0)) < len(full):
            return False
    return True


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
