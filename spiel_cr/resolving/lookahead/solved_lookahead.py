"""A lookahead tree with its incumbent strategy, constraints and solution."""

import dataclasses
import functools

import numpy as np

from spiel_cr.common.errors import UncountableTurnsError
from spiel_cr.games.simulation.labelled import Nodes
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.constraints import OpponentResponses
from spiel_cr.resolving.decomposition import Decomposition, decompose
from spiel_cr.resolving.gadget import Forest, build_forest
from spiel_cr.resolving.gadget_infosets import Gadget
from spiel_cr.resolving.lookahead.below_lookahead import walk_below
from spiel_cr.resolving.lookahead.blueprint import Blueprint
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree
from spiel_cr.resolving.lookahead.snapshot import TreeSnapshot
from spiel_cr.solvers.cfr.solver import Solver


@dataclasses.dataclass
class SolvedLookahead:
    """A lookahead tree and the player's incumbent strategy there.

    `constraints.py` describes the constraints and which solutions satisfy them. Best
    responses are exact if the game below the tree can be enumerated
    (`below_lookahead.py`), and if the opponent remembers its observations and which of
    the player's moves they followed. (Otherwise the opponent may confuse the subgame
    with another one that was dropped before it was expanded.) If the game below the
    tree cannot be enumerated, the opponent is limited to its continuation strategies at
    the tree's leaves. Such a tree is not solved, because these are only some of the
    opponent's options: on 6-card II-goofspiel a tree of 20,000 histories that improved
    on its blueprint against such responses was nine times as exploitable.

    Attributes:
      lookahead: The tree.
      incumbent: The incumbent strategy before this tree, which is also followed below
        it: earlier solutions, and the blueprint.
      snapshot: The tree as a game in tree form.
      decomposition: Layers of that game.
      layer: The layer that is solved.
      full_game: Whether it is solved from the start of the game, without a gadget.
      behaviour: The incumbent strategy in the tree, float64 [S of i].
      constraints: Values of the opponent's best responses to it, float64 [G + 1].
      responses: Best responses of the opponent.
      exact: Whether best responses extend to the end of the game.
      accepted: Whether the solution of the layer satisfies all constraints, and is the
        incumbent strategy now.
      solver: Solver of the accepted solution.
      after: The next solutions on top of this one, by the number of their roots. None:
        the subgame cannot be solved.
    """

    lookahead: LookaheadTree
    incumbent: "SolvedLookahead | Blueprint"
    snapshot: TreeSnapshot
    decomposition: Decomposition
    layer: int
    full_game: bool
    behaviour: np.ndarray
    constraints: np.ndarray
    responses: OpponentResponses
    exact: bool
    accepted: bool = False
    solver: Solver | None = None
    after: dict[int, "SolvedLookahead | None"] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        lookahead: LookaheadTree,
        player: int,
        incumbent: "SolvedLookahead | Blueprint",
        roots: np.ndarray | None = None,
        walk: int = 0,
    ) -> "SolvedLookahead | None":
        """Prepare a tree for a solve.

        Args:
          lookahead: The tree.
          player: The re-solving player i, 0 or 1.
          incumbent: Incumbent strategy of the player.
          roots: Ids of the player's decisions in one public state, whose subgame will
            be solved, int64 [n]. None: the complete tree.
          walk: Maximum number of histories to enumerate below the tree.

        Returns:
          The tree. None if the subgame cannot be re-solved: because the opponent cannot
          distinguish the player's turns, or confuses histories of the subgame with
          histories outside the tree, or because not all roots are expanded.

        Raises:
          ImperfectRecallError: If a player has imperfect recall.
          UncountableTurnsError: If the complete tree has no layers.
        """
        snapshot = lookahead.snapshot()
        try:
            d = decompose(snapshot.tree, player)
        except UncountableTurnsError:
            if roots is None:
                raise
            return None
        layer = 1
        if roots is not None:
            rows = find_numbers(snapshot.ids, roots)[1]
            layer = int(d.layer[rows[0]])
            at = d.roots_of(layer)
            below = snapshot.labels[1 - player][d.other_layer >= layer]
            shared = np.isin(below, lookahead.dropped).any()
            if shared or not np.array_equal(at, np.sort(rows)):
                return None
        infosets = snapshot.tree.infosets[player]
        behaviour = np.ones(1)
        if len(infosets):
            nodes = lookahead.nodes(snapshot.ids[infosets.history])
            behaviour = np.append(1.0, incumbent.play(nodes, player))
        game_below = walk_below(lookahead, snapshot, d, incumbent, walk)
        responses = OpponentResponses(d, game_below)
        return cls(
            *(lookahead, incumbent, snapshot, d, layer, roots is None, behaviour),
            *(responses.values(behaviour), responses, game_below is not None),
        )

    @property
    def player(self) -> int:
        return self.decomposition.player

    def play(self, nodes: Nodes, player: int) -> np.ndarray:
        """Return the incumbent strategy's probabilities, see `Blueprint.play`."""
        inside, at = find_numbers(self.snapshot.labels[player], nodes.label)
        actions = np.repeat(inside, nodes.num_actions)
        played = np.empty(len(actions))
        sequences = self.decomposition.decisions.sequences_of(at[inside])
        played[actions] = self.behaviour[sequences]
        if not inside.all():
            played[~actions] = self.incumbent.play(nodes.select(~inside), player)
        return played

    def reset(self) -> None:
        """Drop all later solutions, which refer to this one, to free memory."""
        for solved in filter(None, self.after.values()):
            solved.reset()
        self.after.clear()

    @functools.cached_property
    def _keys(self) -> dict[str, int]:
        keys = self.snapshot.tree.infosets[self.player].keys
        return {key: number for number, key in enumerate(keys)}

    def find(self, key: str) -> int:
        """Return the player's infoset of an information-state string, or -1."""
        return self._keys.get(key, -1)

    def is_solved(self, infoset: int) -> bool:
        """Return whether an infoset is in the solved layer or above it."""
        return bool(self.decomposition.player_layer[infoset] <= self.layer)

    def has_public_state(self, infoset: int) -> bool:
        """Return whether the tree has the complete public state of a solved infoset."""
        d, frontier = self.decomposition, self.snapshot.tree.frontier
        if not self.accepted or d.player_layer[infoset] != self.layer:
            return False
        return frontier is None or bool((d.layer[frontier] >= self.layer).all())

    def strategy(self, infoset: int) -> tuple[list[int], np.ndarray]:
        """Return the actions at an infoset, and their probabilities, float64 [A]."""
        sequences = self.decomposition.decisions.sequences_of(np.array([infoset]))
        actions = self.snapshot.tree.infosets[self.player].actions[sequences - 1]
        return actions.tolist(), self.behaviour[sequences]

    def forest(self, gadget: Gadget) -> Forest:
        """Return the gadget game of the layer, or the complete tree."""
        reach = reach_from_behaviour(self.decomposition.decisions, self.behaviour)
        return build_forest(
            self.decomposition,
            self.layer,
            reach,
            self.constraints[:-1],
            gadget=gadget,
            full_game=self.full_game,
        )

    def accept_if_safe(self, game: Forest, solver: Solver) -> None:
        """Accept a solution if it satisfies all constraints."""
        d, new = self.decomposition, self.behaviour.copy()
        sequences = d.decisions.sequences_of(game.infosets)
        new[sequences] = solver.average_behaviour(self.player)[1:]
        reach = reach_from_behaviour(d.decisions, self.behaviour)
        # In the complete game there are no augmented infosets; every root is reached.
        reached = reach[d.decisions.parent[game.infosets]].any()
        self.accepted = bool(reached) and self.responses.are_satisfied(
            self.constraints, new, game.augmented
        )
        if self.accepted:
            self.behaviour, self.solver = new, solver


def find_numbers(keys: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find numbers in an array.

    Args:
      keys: Different numbers, [m].
      query: Numbers to find, [n].

    Returns:
      Whether each number was found, bool [n]; and its index in `keys`, int64 [n].
    """
    if not len(keys):
        return np.zeros(len(query), bool), np.zeros(len(query), np.int64)
    order = np.argsort(keys)
    places = np.searchsorted(keys[order], query)
    index = order[np.minimum(places, len(keys) - 1)]
    return keys[index] == query, index
