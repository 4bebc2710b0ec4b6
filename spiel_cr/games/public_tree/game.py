"""Games in public-tree form: public actions, private states, and their payoffs.

In many games every action is public and private information is only dealt. A player's
*private state* in a round is all card information that the player has received so far,
public cards included. An infoset is then a public node and a private state, and the
payoffs factor into A = sum over k of S_k ⊗ K_k: S_k contains the stakes at the public
leaves, and the *payoff matrix* K_k compares two private states. Public cards are only
block structure of a payoff matrix (Johanson et al. 2011, "Accelerating best response
calculation in large extensive games"; Farina & Sandholm 2022, "Fast payoff matrix
sparsification techniques").

Legend for shapes: P public nodes, R rounds, H private states of one player in one
  round,
T terms, K payoff matrices.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pyspiel

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.common.messages import short_repr
from spiel_cr.common.pairs import map_pair
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.public_tree import form
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix, PayoffMatrix
from spiel_cr.games.public_tree.public_nodes import (
    Betting,
    LeafTerms,
    PrivateStateReader,
    PublicDecisions,
    ancestors,
)
from spiel_cr.games.public_tree.public_terms import (
    list_payoffs,
    logical_decisions,
    public_form,
)
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.sequence_form.layout import SequenceForm

# Private states of a player and round whose names enter a fingerprint, at most.
_NAMES = 256


@dataclasses.dataclass(frozen=True, repr=False)
class PublicTreeGame:
    """A two-player game with public actions and dealt private information.

    Attributes:
      game: The OpenSpiel game.
      betting: The public tree.
      parents: Parents of private states, for each player and round int32 [H]: the
        private state of the round before that each one refines. In round 0 they are
        zeros, because there is one private state before it.
      payoff_matrices: Payoffs of pairs of private states.
      terms: Stakes and payoff matrices at the leaves.
      reader: Function object that finds the private states of OpenSpiel states.
      rake: Payments at the leaves: each player loses stake · matrix, in addition to the
        terms. None: the game is zero-sum.
    """

    __repr__ = short_repr
    kind: ClassVar[str] = "public-tree"
    tree: ClassVar[None] = None
    keeps_dtype: ClassVar[bool] = True

    game: pyspiel.Game
    betting: Betting
    parents: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    payoff_matrices: tuple[PayoffMatrix, ...]
    terms: LeafTerms
    reader: PrivateStateReader
    rake: LeafTerms | None = None

    @property
    def num_rounds(self) -> int:
        """R, the number of rounds."""
        return len(self.parents[0])

    @functools.cached_property
    def sequence_form(self) -> SequenceForm:
        """The game in sequence form."""
        return self.build_sequence_form()

    def build_sequence_form(self, *, products: bool | None = None) -> SequenceForm:
        """Build the game in sequence form.

        Args:
          products: Whether leaf values are products of payoff matrices. If False, the
            entries of the coupling are listed one by one, as those of a built game
            tree; if None, the faster of the two is chosen. With rake they are products.

        Raises:
          GameTooLargeError: If the entries are to be listed, and there are too many.
        """
        sides, terms = public_form(self.betting, self.terms)
        parts = sides, self.parents, self.payoff_matrices, terms
        if self.rake is not None:
            _, payments = public_form(self.betting, self.rake)
            return form.build(*parts, rake=payments)
        if products is None:
            products = not form.are_few(self.payoff_matrices, terms)
        if products:
            return form.build(*parts)
        return layout.build(self.decisions, list_payoffs(*parts))

    @functools.cached_property
    def decisions(self) -> tuple[Decisions, Decisions]:
        """Infosets of both players, one public decision after another."""
        sides, _ = public_form(self.betting, self.terms)
        return map_pair(logical_decisions, sides, self.parents)

    @functools.cached_property
    def public_decisions(self) -> tuple[PublicDecisions, PublicDecisions]:
        """Places of both players' infosets and sequences, by public decision."""
        return map_pair(self._public_decisions, range(2))

    def _public_decisions(self, player: int) -> PublicDecisions:
        betting = self.betting
        node = np.flatnonzero(betting.player == player).astype(np.int32)
        num_actions = betting.num_actions[node]
        sizes = np.array(self.num_private_states(player), np.int32)
        num_private_states = sizes[betting.round[node]]
        infosets = np.cumsum(num_private_states, dtype=np.int64)
        sequences = np.cumsum(num_private_states.astype(np.int64) * num_actions)
        return PublicDecisions(
            node=node,
            num_actions=num_actions,
            num_private_states=num_private_states,
            first_infoset=np.concatenate([[0], infosets]),
            first_sequence=np.concatenate([[1], 1 + sequences]),
        )

    def _located(self, player: int, infoset: int) -> tuple[int, int]:
        """Return the public node and the private state of an infoset."""
        decisions = self.public_decisions[player]
        j = int(np.searchsorted(decisions.first_infoset, infoset, "right")) - 1
        return int(decisions.node[j]), infoset - int(decisions.first_infoset[j])

    def actions(self, player: int, infoset: int) -> np.ndarray:
        """Return OpenSpiel's legal actions at an infoset, integers [A], ascending."""
        node, _ = self._located(player, infoset)
        return np.array(self.betting.actions(node))

    def sequence_actions(self, player: int) -> np.ndarray:
        """Return OpenSpiel's action of each sequence but the empty one, [S - 1]."""
        decisions, action = self.public_decisions[player], self.betting.action
        blocks = zip(decisions.node, decisions.num_private_states, strict=True)
        parts = [np.tile(action[self.betting.children(x)], n) for x, n in blocks]
        return np.concatenate([np.zeros(0, action.dtype), *parts])

    def label(self, player: int, infoset: int) -> str:
        """Return the players' actions before an infoset, and the private state."""
        node, private_state = self._located(player, infoset)
        round = int(self.betting.round[node])
        name = self.reader.name(player, round, private_state)
        return f"{' '.join(map(str, self.betting.path(node)))}: {name}"

    def infoset_of(self, state: pyspiel.State) -> tuple[int, int]:
        """Return the acting player at a state, and the number of its infoset.

        Raises:
          ValueError: If no player acts there, or the state is of another game.
        """
        node = self.betting.node_of(state)
        player, legal = state.current_player(), sorted(state.legal_actions())
        actions = self.betting.actions(node)
        if player < 0 or self.betting.player[node] != player or actions != legal:
            raise ValueError(
                f"state: after the actions {state.history()} player {player} has the "
                f"actions {legal}, and the game has {actions} there; give a state of "
                f"{self.game}"
            )
        decisions = self.public_decisions[player]
        first = int(decisions.first_infoset[decisions.place(node)])
        return player, first + self.reader.private_state(state, player)

    @property
    def payoff_range(self) -> tuple[float, float]:
        """OpenSpiel's bounds of player 0's payoffs."""
        return self.game.min_utility(), self.game.max_utility()

    @functools.cached_property
    def game_id(self) -> str:
        """A hash of the public tree, private states, payoff matrices and payoffs.

        The reader is not part of it: two games of equal hash have the same strategies.
        """
        digest = hashlib.sha256()
        for part in (self.betting, self.parents, self.payoff_matrices, self.terms):
            _feed(digest, part)
        if self.rake is not None:
            _feed(digest, self.rake)
        return digest.hexdigest()

    @functools.cached_property
    def decisions_id(self) -> str:
        """A hash of public actions and private states, whatever they pay.

        Names of private states are part of it, of many only some, evenly spaced.
        """
        digest = hashlib.sha256()
        _feed(digest, self.betting)
        _feed(digest, self.parents)
        for player in range(2):
            for round, count in enumerate(self.num_private_states(player)):
                for private_state in range(0, count, 1 + count // _NAMES):
                    name = self.reader.name(player, round, private_state)
                    digest.update(f"{name}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def num_private_states(self, player: int) -> list[int]:
        """Return the number of a player's private states in each round."""
        return [len(parent) for parent in self.parents[player]]

    def matrices_in(self, round: int) -> dict[int, PayoffMatrix]:
        """Return the payoff matrices of a round by their numbers."""
        matrices = enumerate(self.payoff_matrices)
        return {k: matrix for k, matrix in matrices if matrix.round == round}

    def ancestors(self, player: int, round: int, above: int) -> np.ndarray:
        """Return the earlier private state behind each private state of a round.

        Args:
          player: Player whose private states they are.
          round: The later round.
          above: The earlier round; -1: before all rounds, where there is one private
            state.

        Returns:
          int32 [H].
        """
        return ancestors(self.parents[player], round, above)

    def reach_at(
        self, player: int, node: int, strategy_at: Callable[[int], np.ndarray]
    ) -> np.ndarray:
        """Return a player's reach of a public node by its private state, float64 [H].

        Args:
          player: The player.
          node: The public node.
          strategy_at: Returns the action probabilities at a public node of the player,
            float64 [H, A].
        """
        betting, round_ = self.betting, int(self.betting.round[node])
        reach = np.ones(self.num_private_states(player)[round_])
        while betting.parent[node] >= 0:
            above = int(betting.parent[node])
            if betting.player[above] == player:
                state = self.ancestors(player, round_, int(betting.round[above]))
                reach *= strategy_at(above)[state, betting.index[node]]
            node = above
        return reach

    def check(self) -> None:
        """Raise InvalidGameError if the parts of the game do not fit each other.

        The parts are not compared with the OpenSpiel game.
        """
        for problems in (self._public_problems, self._private_state_problems):
            for problem, is_wrong in problems():
                if is_wrong:
                    raise InvalidGameError(
                        f"{self.game}: {problem}; correct the declaration"
                    )

    def _public_problems(self) -> Iterator[tuple[str, bool]]:
        """Yield possible faults of the public tree, and whether each is present."""
        betting, size = self.betting, len(self.betting)
        yield "there is no public node", size == 0
        general_sum = pyspiel.GameType.Utility.GENERAL_SUM
        is_general = self.game.get_type().utility == general_sum
        problem = "the game is general-sum, and its declaration has no rake"
        yield problem, is_general and self.rake is None
        above, action, nodes = betting.parent[1:], betting.action[1:], np.arange(size)
        root = betting.parent[0] == -1 and betting.round[0] == 0
        yield "node 0 is not a root in round 0", not root
        yield "a node comes before its parent", _outside(above, nodes[1:])
        acts = np.isin(betting.player, (0, 1))
        valid = acts | (betting.player == TERMINAL)
        yield "a public node's player is not 0, 1 or TERMINAL", not valid.all()
        counts = np.bincount(above, minlength=size)
        yield "a terminal node has actions", bool((counts[~acts] > 0).any())
        yield "a decision has no actions", (counts[acts] == 0).any()
        order = np.argsort(above, kind="stable")
        same = above[order][1:] == above[order][:-1]
        rises = np.diff(action[order]) > 0
        yield "a node's actions do not ascend", not rises[same].all()
        rounds = betting.round
        yield "a round ends before it begins", (rounds[1:] < rounds[above]).any()
        yield "a node's round has no private states", _outside(rounds, self.num_rounds)

    def _private_state_problems(self) -> Iterator[tuple[str, bool]]:
        """Yield possible faults of private states, payoff matrices and terms."""
        betting, terms = self.betting, self.terms
        for player in range(2):
            counts = [1, *self.num_private_states(player)]
            yield "players have different rounds", len(counts) - 1 != self.num_rounds
            for r, parent in enumerate(self.parents[player]):
                problem = (
                    f"a state of player {player} in round {r} has an invalid parent"
                )
                yield problem, _outside(parent, counts[r])
        for number, matrix in enumerate(self.payoff_matrices):
            name = f"payoff matrix {number}"
            yield f"{name} has no round", not 0 <= matrix.round < self.num_rounds
            shape = tuple(len(side[matrix.round]) for side in self.parents)
            problem = f"{name} does not match the private states of its round"
            yield problem, tuple(matrix.shape) != shape
            if isinstance(matrix, HandMatrix):
                numbers = [side.private_state for side in matrix.hands]
                values = [side.weight for side in matrix.hands]
            else:
                rows, columns, entries = matrix.coordinates()
                numbers, values = [rows, columns], [entries]
            for side, count in zip(numbers, shape, strict=True):
                yield f"{name} has unknown private states", _outside(side, count)
            finite = all(np.isfinite(part).all() for part in values)
            yield f"{name} has entries that are not finite", not finite
        unknown = _outside(terms.leaf, len(betting))
        yield "a term's leaf is not a public node", unknown
        unknown = _outside(terms.matrix, len(self.payoff_matrices))
        yield "a term's payoff matrix does not exist", unknown
        ends = betting.player[terms.leaf] == TERMINAL
        yield "a payoff is at a decision", not ends.all()
        rounds = np.array([matrix.round for matrix in self.payoff_matrices], int)
        other = rounds[terms.matrix] != betting.round[terms.leaf]
        yield "a matrix is of another round than its leaf", other.any()
        yield "a stake is not finite", not np.isfinite(terms.stake).all()


def _feed(digest: Any, part: Any) -> None:
    """Feed arrays, numbers, tuples and dataclasses of them to a hash."""
    if isinstance(part, np.ndarray):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).data)
    elif dataclasses.is_dataclass(part):
        digest.update(type(part).__name__.encode())
        for field in dataclasses.fields(part):
            _feed(digest, getattr(part, field.name))
    elif isinstance(part, tuple):
        digest.update(f"{type(part).__name__}{len(part)}".encode())
        for item in part:
            _feed(digest, item)
    else:
        digest.update(f"{part!r};".encode())


def _outside(numbers: np.ndarray, counts: np.ndarray | int) -> bool:
    """Return whether a number is negative or not below its count."""
    return bool(((numbers < 0) | (numbers >= counts)).any())
