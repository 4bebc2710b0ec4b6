"""Values of public-tree games, from their forms and from OpenSpiel's states.

Policies here are a table for each public node: float64 [H, A], one row per private
state of the player who acts, its actions in ascending order.
"""

import numpy as np
import pyspiel

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.public_tree.game import PublicTreeGame

Policy = dict[int, np.ndarray]


def random_policy(game: PublicTreeGame, rng: np.random.Generator) -> Policy:
    """Return a random policy for each public node and private state."""
    policy = {}
    for node in np.flatnonzero(game.betting.player != TERMINAL):
        player, round = game.betting.player[node], game.betting.round[node]
        shape = game.num_private_states(player)[round], len(children(game, node))
        policy[int(node)] = rng.dirichlet(np.ones(shape[1]), size=shape[0])
    return policy


def children(game: PublicTreeGame, node: int) -> np.ndarray:
    """Return the public nodes after each action."""
    return np.flatnonzero(game.betting.parent == node)


def reaches(game: PublicTreeGame, policy: Policy, player: int) -> list[np.ndarray]:
    """Return a player's reach of each public node, by private state."""
    betting = game.betting
    own: list[np.ndarray] = []
    for node, (above, round) in enumerate(
        zip(betting.parent, betting.round, strict=True)
    ):
        if above < 0:
            own.append(np.ones(game.num_private_states(player)[round]))
            continue
        reach = own[above]
        if betting.player[above] == player:
            choice = np.flatnonzero(children(game, above) == node)[0]
            reach = reach * policy[int(above)][:, choice]
        own.append(reach[game.ancestors(player, round, betting.round[above])])
    return own


def dense_payoff_matrix(game: PublicTreeGame, payoff_matrix: int) -> np.ndarray:
    """Return a payoff matrix as float64 [H0, H1], for small games."""
    matrix = np.zeros(game.payoff_matrices[payoff_matrix].shape)
    rows, columns, values = game.payoff_matrices[payoff_matrix].coordinates()
    np.add.at(matrix, (rows, columns), values)
    return matrix


def value_of_form(game: PublicTreeGame, policy: Policy) -> float:
    """Return player 0's value from the stakes and payoff matrices of the form."""
    first, second = (reaches(game, policy, player) for player in range(2))
    matrices = [
        dense_payoff_matrix(game, payoff_matrix)
        for payoff_matrix in range(len(game.payoff_matrices))
    ]
    return sum(
        stake * (first[leaf] @ matrices[payoff_matrix] @ second[leaf])
        for leaf, payoff_matrix, stake in zip(*game.terms, strict=True)
    )


def value_of_states(
    game: PublicTreeGame, policy: Policy, state: pyspiel.State, node: int = 0
) -> float:
    """Return player 0's value from a state on, by OpenSpiel's rules.

    The game's reader returns the private state of a player.

    Args:
      game: The public-tree game.
      policy: Policy of both players.
      state: The state to start from.
      node: Public node of the state. Deals are not public nodes, so at a chance node it
        is the next one.
    """
    if state.is_terminal():
        assert game.betting.player[node] == TERMINAL
        return state.returns()[0]
    if state.is_chance_node():
        return sum(
            chance * value_of_states(game, policy, state.child(action), node)
            for action, chance in state.chance_outcomes()
            if chance > 0
        )
    player = state.current_player()
    assert player == game.betting.player[node]
    below = children(game, node)
    assert state.legal_actions() == game.betting.action[below].tolist()
    chances = policy[node][game.reader.private_state(state, player)]
    return sum(
        chance * value_of_states(game, policy, state.child(action), int(after))
        for action, chance, after in zip(
            state.legal_actions(), chances, below, strict=True
        )
    )
