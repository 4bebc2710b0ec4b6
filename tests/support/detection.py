"""Public-tree games from game trees: public nodes, deals, private states, matrices.

Histories with the same actions of the players are one public node, and chance outcomes
are deals. A player's private state is the information of its infosets about the deal,
which must be the same at all nodes of a round. Leaves with proportional payoffs share a
payoff matrix. The code is plain Python for small games; an assertion fails if a game
has no public-tree form.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import SparseMatrix
from spiel_cr.games.public_tree.public_nodes import Betting, LeafTerms
from spiel_cr.games.sequence_form.decisions import Payoffs
from spiel_cr.games.tree.tree import GameTree

# The chance outcomes and the players' actions so far.
Actions = tuple[int, ...]
# Matrices share a matrix if their entries (largest entry 1) agree to this tolerance.
_SAME = 1e-9


class Detected(NamedTuple):
    """A public-tree game, with the mapping of the game tree's infosets to it.

    Attributes:
      game: The public-tree game.
      infosets: For each player int32 [I], the public-tree form's infoset of each
        infoset of the game tree. The public-tree form numbers a player's infosets by
        its public decisions in order of nodes, then by private states.
      sequences: For each player int32 [S], the same for sequences.
    """

    game: PublicTreeGame
    infosets: tuple[np.ndarray, np.ndarray]
    sequences: tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class DealReader:
    """A `PrivateStateReader` for listed deals and their private states by player."""

    private_states: tuple[dict[Actions, int], dict[Actions, int]]

    def private_state(self, state: pyspiel.State, player: int) -> int:
        moves = state.full_history()
        return self.private_states[player][
            tuple(m.action for m in moves if m.player < 0)
        ]

    def name(self, player: int, round: int, private_state: int) -> str:
        return f"private_state {private_state}"


class _Sorted:
    """The histories of a game by public node and deal.

    Attributes:
      nodes: Public nodes as sequences of the players' actions, sorted by length and
        then lexicographically.
      round: Round of each node, from 0.
      sizes: Number of chance outcomes until each round.
      deals: Deals of each round.
      at: History of a node and a deal.
    """

    def __init__(self, tree: GameTree) -> None:
        h = tree.histories
        self.moves: list[Actions] = [()]
        dealt: list[Actions] = [()]
        for parent, action in zip(
            h.parent[1:].tolist(), h.action[1:].tolist(), strict=True
        ):
            move, chance = (action,), h.player[parent] == CHANCE
            self.moves.append(self.moves[parent] + (() if chance else move))
            dealt.append(dealt[parent] + (move if chance else ()))
        places = np.flatnonzero(h.player != CHANCE).tolist()
        self.at = {(self.moves[i], dealt[i]): i for i in places}
        size = {self.moves[i]: len(dealt[i]) for i in places}
        self.nodes = sorted(size, key=lambda node: (len(node), node))
        self.sizes = sorted(set(size.values()))
        self.round = {node: self.sizes.index(size[node]) for node in self.nodes}
        every = {dealt[i] for i in places}
        self.deals = [sorted(d for d in every if len(d) == n) for n in self.sizes]
        whole = sum(len(self.deals[self.round[node]]) for node in self.nodes)
        assert len(self.at) == whole, "what chance deals depends on players"

    def histories(self, node: Actions) -> list[int]:
        """Return the histories of a node, one for each deal of its round."""
        return [self.at[node, deal] for deal in self.deals[self.round[node]]]


def detect(tree: GameTree) -> PublicTreeGame:
    """Return the public-tree form of a game tree."""
    return locate(tree).game


def locate(tree: GameTree) -> Detected:
    """Return the public-tree form of a game tree, with the mapping between them."""
    table, h = _Sorted(tree), tree.histories
    number = {node: k for k, node in enumerate(table.nodes)}
    betting = Betting(
        np.array([h.player[table.histories(n)[0]] for n in table.nodes], np.int8),
        np.array([number[n[:-1]] if n else -1 for n in table.nodes], np.int32),
        np.array([n[-1] if n else -1 for n in table.nodes], np.int32),
        np.array([table.round[n] for n in table.nodes], np.int8),
    )
    private_states, parents = zip(
        *(_private_states(tree, table, p) for p in range(2)), strict=True
    )
    payoff_matrices, terms = _factors(tree, table, private_states)
    reader = DealReader((private_states[0], private_states[1]))
    game = PublicTreeGame(
        tree.game, betting, (parents[0], parents[1]), payoff_matrices, terms, reader
    )
    game.check()
    infosets, sequences = [], []
    for player, own in enumerate(tree.infosets):
        decisions, theirs = game.public_decisions[player], own.decisions
        node = [number[table.moves[i]] for i in own.history]
        private_state = [
            reader.private_state(tree.state_at(i), player) for i in own.history
        ]
        place = np.searchsorted(decisions.node, node)
        infosets.append(
            (decisions.first_infoset[place] + private_state).astype(np.int32)
        )
        first = (
            decisions.first_sequence[place]
            + private_state * decisions.num_actions[place]
        )
        owner = theirs.owner[1:]
        rank = np.arange(1, theirs.num_sequences) - theirs.first_sequence[owner]
        sequences.append(np.append(0, first[owner] + rank).astype(np.int32))
    return Detected(game, (infosets[0], infosets[1]), (sequences[0], sequences[1]))


def _private_states(
    tree: GameTree, table: _Sorted, player: int
) -> tuple[dict[Actions, int], tuple[np.ndarray, ...]]:
    """Return the private state of each deal by its known outcomes, and `parents`."""
    h = tree.histories
    found: dict[Actions, int] = {}
    parents = []
    for number, deals in enumerate(table.deals):
        size = table.sizes[number - 1] if number else 0
        above = [found[deal[:size]] if number else 0 for deal in deals]
        told = [
            h.infoset[histories].tolist()
            for histories in (
                table.histories(n) for n in table.nodes if table.round[n] == number
            )
            if h.player[histories[0]] == player
        ] or [above]
        groups: dict[int, list[Actions]] = {}
        for deal, infoset in zip(deals, told[0], strict=True):
            groups.setdefault(infoset, []).append(deal)
        for other in (*told, above):
            pairs = len(set(zip(told[0], other, strict=True)))
            assert pairs == len(groups), f"player {player} forgets what it was dealt"
            assert other is above or len(set(other)) == len(groups)
        ordered = sorted(groups.values(), key=lambda same: (_sure(same), same[0]))
        found |= {deal: k for k, same in enumerate(ordered) for deal in same}
        before = dict(zip(deals, above, strict=True))
        parents.append(np.array([before[same[0]] for same in ordered], np.int32))
    return found, tuple(parents)


def _sure(deals: list[Actions]) -> Actions:
    """Return the outcomes that all of these deals share, and -1 elsewhere."""
    columns = zip(*deals, strict=True)
    return tuple(one[0] if len(set(one)) == 1 else -1 for one in columns)


def _factors(
    tree: GameTree, table: _Sorted, private_states: tuple[Any, ...]
) -> tuple[tuple[SparseMatrix, ...], LeafTerms]:
    """Factor the payoff matrices of leaves into matrices and stakes."""
    h = tree.histories
    chance = np.broadcast_to(h.chance, len(h))
    payoff_matrices: list[SparseMatrix] = []
    shapes: list[tuple[np.ndarray, float]] = []
    terms = []
    for place, node in sorted(
        enumerate(table.nodes), key=lambda pair: table.round[pair[1]]
    ):
        histories, number = table.histories(node), table.round[node]
        if h.player[histories[0]] != TERMINAL:
            continue
        pairs = [[own[deal] for deal in table.deals[number]] for own in private_states]
        matrix = np.zeros([max(own) + 1 for own in pairs])
        np.add.at(matrix, tuple(pairs), chance[histories] * h.utility[histories])
        size = float(np.abs(matrix).max())
        if not size:
            continue
        normal = matrix / size
        normal *= (sign := np.sign(normal.flat[np.argmax(np.abs(normal) > _SAME)]))
        payoff_matrix = next(
            (
                k
                for k, (other, _) in enumerate(shapes)
                if payoff_matrices[k].round == number
                and np.abs(other - normal).max() < _SAME
            ),
            len(payoff_matrices),
        )
        if payoff_matrix == len(payoff_matrices):
            # Entries are in units of the largest payoff.
            unit = float(np.abs(h.utility[histories]).max())
            shapes.append((normal, unit / size))
            first, second = (own.astype(np.int32) for own in np.nonzero(matrix))
            values = sign * matrix[first, second] / unit
            entries = Payoffs(first, second, values)
            payoff_matrices.append(SparseMatrix(number, matrix.shape, entries))
        terms.append((place, payoff_matrix, sign * size * shapes[payoff_matrix][1]))
    leaf, payoff_matrix, stake = zip(*sorted(terms), strict=True)
    return tuple(payoff_matrices), LeafTerms(
        np.array(leaf, np.int32), np.array(payoff_matrix, np.int32), np.array(stake)
    )
