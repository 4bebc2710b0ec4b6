"""Builds all payoffs again from a signal form and compares them with those given."""

import numpy as np

from spiel_cr.games.sequence_form.decisions import sum_payoffs
from spiel_cr.games.tree.tree import CompiledGame
from tests.support.detecting.located import Detected

# How closely payoffs are rebuilt, in units of the largest one.
_TOLERANCE = 1e-12


def check_payoffs(tree: CompiledGame, detected: Detected) -> None:
    """Compares all payoffs.

    Args:
      tree: the compiled game.
      detected: its signal form.

    Raises:
      ValueError: they differ by more than 1e-12 of the largest one.
    """
    game = detected.game
    rows, columns, values = [], [], []
    for number, kernel in enumerate(game.kernels):
        own = np.flatnonzero(game.terms.kernel == number)
        leaf, stake = game.terms.leaf[own], game.terms.stake[own]
        first, second, entries = kernel.coordinates()
        rows.append(_sequences_at(detected, 0, leaf)[:, first].ravel())
        columns.append(_sequences_at(detected, 1, leaf)[:, second].ravel())
        values.append((stake[:, None] * entries).ravel())
    payoffs = tree.form.payoffs
    back = [np.argsort(sequences) for sequences in detected.sequences]
    difference = sum_payoffs(
        np.concatenate([*(back[0][part] for part in rows), payoffs.rows]),
        np.concatenate([*(back[1][part] for part in columns), payoffs.columns]),
        np.concatenate([*values, -payoffs.values]),
    ).values
    worst = np.abs(difference).max(initial=0)
    if not worst <= _TOLERANCE * np.abs(payoffs.values).max(initial=0):
        raise ValueError(
            f"{tree.game} is no signal game: payoffs that are built from public "
            f"actions and deals are off by {worst:.1e}; solve it in its compiled form"
        )


def _sequences_at(detected: Detected, player: int, leaves: np.ndarray) -> np.ndarray:
    """int64 [T, H], the signal form's last own sequence at leaves of one round."""
    game = detected.game
    betting = game.betting
    counts = np.array(game.num_signals(player))
    hands = np.where(betting.player == player, counts[betting.round], 0)
    children = np.bincount(betting.parent[1:], minlength=len(betting))
    first = 1 + np.cumsum(hands * children) - hands * children
    round_ = int(betting.round[leaves[0]])
    found = np.zeros((len(leaves), counts[round_]), np.int64)
    below, node = leaves, betting.parent[leaves]
    open_ = np.arange(len(leaves))
    while len(open_):
        mine = betting.player[node] == player
        for above in np.unique(betting.round[node[mine]]):
            here = np.flatnonzero(mine & (betting.round[node] == above))
            at, move = node[here], below[here]
            signal = game.ancestors(player, round_, int(above))
            rank = move - 1 - np.searchsorted(betting.parent[1:], at)
            found[open_[here]] = (
                first[at][:, None] + children[at][:, None] * signal + rank[:, None]
            )
        going = np.flatnonzero(~mine & (betting.parent[node] >= 0))
        open_, below = open_[going], node[going]
        node = betting.parent[below]
    return found
