"""Comparison of a public-tree game with the game tree built from OpenSpiel's states.

This is for tests of declarations; the package itself does not use it.
"""

import numpy as np

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.public_tree import public_terms
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form.decisions import Payoffs, sum_payoffs
from spiel_cr.games.tree.tree import GameTree

# Largest difference of two payoffs, summed over deals, relative to the largest payoff.
_TOLERANCE = 1e-12


def check_tree(public_tree_game: PublicTreeGame, tree: GameTree) -> None:
    """Raise InvalidGameError if a public-tree game and a game tree pay differently.

    The reader maps each infoset of the game tree to a public node and a private state.
    Payoffs of infosets that share a private state are added. The sums, which include
    the probabilities of chance outcomes, must agree to 1e-12 of the largest payoff of a
    pair of sequences of the game tree.

    Args:
      public_tree_game: The public-tree game to check.
      tree: The complete game tree of the same game.

    Raises:
      GameTooLargeError: If there are too many payoffs to list them.
      InvalidGameError: If the payoffs differ. The message names the sequences.
    """
    public_tree_game.check()
    maps = [sequence_map(public_tree_game, tree, player) for player in range(2)]
    payoffs = tree.sequence_form.payoffs
    expected = sum_payoffs(
        maps[0][payoffs.rows], maps[1][payoffs.columns], payoffs.values
    )
    sides, terms = public_terms.public_form(
        public_tree_game.betting, public_tree_game.terms
    )
    declared = public_terms.list_payoffs(
        sides, public_tree_game.parents, public_tree_game.payoff_matrices, terms
    )
    difference = sum_payoffs(
        np.concatenate([declared.rows, expected.rows]),
        np.concatenate([declared.columns, expected.columns]),
        np.concatenate([declared.values, -expected.values]),
    )
    largest = np.abs(payoffs.values).max(initial=0.0)
    off = np.abs(difference.values)
    if off.max(initial=0.0) > _TOLERANCE * largest:
        worst = int(np.argmax(off))
        pair = int(difference.rows[worst]), int(difference.columns[worst])
        places = [_place(public_tree_game, player, pair[player]) for player in range(2)]
        raise InvalidGameError(
            f"{public_tree_game.game}: after {places[0]} and {places[1]}, player 0 "
            f"gets {_entry(declared, pair)} in the public-tree game and "
            f"{_entry(expected, pair)} in the game tree; correct the declaration"
        )


def _entry(payoffs: Payoffs, pair: tuple[int, int]) -> float:
    chosen = (payoffs.rows == pair[0]) & (payoffs.columns == pair[1])
    return float(payoffs.values[chosen].sum())


def sequence_map(
    public_tree_game: PublicTreeGame, tree: GameTree, player: int
) -> np.ndarray:
    """Map each sequence of a game tree to a sequence of the public-tree game.

    Args:
      public_tree_game: The public-tree game.
      tree: The complete game tree of the same game.
      player: Player whose sequences are mapped.

    Returns:
      int32 [S].

    Raises:
      InvalidGameError: If legal actions differ, or the game tree has no infoset for
        some private state.
    """
    infosets, betting = tree.infosets[player], public_tree_game.betting
    decisions = public_tree_game.public_decisions[player]
    sequences = np.zeros(infosets.decisions.num_sequences, np.int32)
    visited = np.zeros(int(decisions.first_infoset[-1]), bool)
    for infoset, first in enumerate(infosets.decisions.first_sequence.tolist()):
        state = tree.state_at(int(infosets.history[infoset]))
        node = betting.node_of(state)
        private_state = public_tree_game.reader.private_state(state, player)
        if betting.actions(node) != state.legal_actions():
            raise InvalidGameError(
                f"{public_tree_game.game}: after {state.history()} player {player} has "
                f"the actions {state.legal_actions()}, but {betting.actions(node)} in "
                f"the public-tree game; correct the declaration"
            )
        j, count = decisions.place(node), len(state.legal_actions())
        begin = decisions.first_sequence[j] + private_state * count
        sequences[first : first + count] = begin + np.arange(count)
        visited[decisions.first_infoset[j] + private_state] = True
    if not visited.all():
        infoset = int(np.argmin(visited))
        j = int(np.searchsorted(decisions.first_infoset, infoset, side="right")) - 1
        private_state = infoset - int(decisions.first_infoset[j])
        raise InvalidGameError(
            f"{public_tree_game.game}: player {player} never has private state "
            f"{private_state} after actions {betting.path(int(decisions.node[j]))}; "
            f"correct the declaration"
        )
    return sequences


def _place(public_tree_game: PublicTreeGame, player: int, sequence: int) -> str:
    """Return a description of a sequence."""
    if not sequence:
        return f"no action of player {player}"
    decisions = public_tree_game.public_decisions[player]
    betting = public_tree_game.betting
    j = int(np.searchsorted(decisions.first_sequence, sequence, side="right")) - 1
    node, count = int(decisions.node[j]), int(decisions.num_actions[j])
    private_state, action = divmod(sequence - int(decisions.first_sequence[j]), count)
    r = int(betting.round[node])
    name = public_tree_game.reader.name(player, r, private_state)
    return (
        f"action {betting.actions(node)[action]} of player {player} with {name!r} "
        f"after actions {betting.path(node)}"
    )
