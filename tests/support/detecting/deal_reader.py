"""Signals read off the chance outcomes of OpenSpiel's states."""

import dataclasses
import functools

import numpy as np
import pyspiel

from spiel_cr.games.histories import CHANCE


@dataclasses.dataclass(frozen=True)
class Deals:
    """All that chance can deal, as a tree: one node for each list of outcomes.

    Attributes:
      parent: int32 [n], the node one outcome before, -1 at node 0, where nothing is
        dealt yet.
      action: int32 [n], the last outcome, -1 at node 0. The children of a node are in
        ascending order of outcomes, and nodes in order of the number of outcomes.
    """

    parent: np.ndarray
    action: np.ndarray

    def outcomes(self, nodes: np.ndarray) -> np.ndarray:
        """int32 [n, m], the m outcomes of each of n nodes that have as many of them."""
        columns: list[np.ndarray] = []
        while len(nodes) and nodes[0]:
            columns.insert(0, self.action[nodes])
            nodes = self.parent[nodes]
        return np.stack(columns, 1) if columns else np.zeros((len(nodes), 0), np.int32)

    @functools.cached_property
    def after(self) -> dict[tuple[int, int], int]:
        """The node after a node and an outcome."""
        pairs = zip(self.parent.tolist(), self.action.tolist(), strict=True)
        return {pair: node for node, pair in enumerate(pairs)}


@dataclasses.dataclass(frozen=True)
class DealReader:
    """The `game.Reader` of a game whose deals have all been listed.

    Attributes:
      game: the OpenSpiel game.
      deals: all deals.
      signals: for each player int32 [n], the signal that each node of `deals` gives it
        in the round that the node belongs to; -1 at deals that nobody acts at.
      rounds: for each round the nodes of `deals`, ascending.
      paths: for each round the players' actions, OpenSpiel's, to a place in it.
    """

    game: pyspiel.Game
    deals: Deals
    signals: tuple[np.ndarray, np.ndarray]
    rounds: tuple[np.ndarray, ...]
    paths: tuple[tuple[int, ...], ...]

    def signal(self, state: pyspiel.State, player: int) -> int:
        """The player's signal at a decision or an end, in the round of the state.

        Raises:
          ValueError: chance has dealt what it never deals, or is about to deal.
        """
        node = 0
        for move in state.full_history():
            if move.player == CHANCE:
                node = self.deals.after.get((node, move.action), -1)
        found = -1 if node < 0 else int(self.signals[player][node])
        if found < 0:
            raise ValueError(
                f"player {player} has no signal at the history {state.history()} of "
                f"{self.game}; ask at decisions and ends that have a probability"
            )
        return found

    def name(self, player: int, round: int, signal: int) -> str:
        """The outcomes that the player knows; those that both know after a bar.

        A signal that pins down no outcome is named after its number.
        """
        nodes, outcomes, public = self._known(round)
        mine = np.flatnonzero(self.signals[player][nodes] == signal)
        known = (outcomes[mine] == outcomes[mine[0]]).all(axis=0)
        texts = self._texts(round, outcomes[mine[0]].tolist())
        private = [texts[k] for k in np.flatnonzero(known & ~public)]
        shared = [texts[k] for k in np.flatnonzero(known & public)]
        name = " ".join(private) or (f"signal {signal}" if not shared else "")
        return f"{name} | {' '.join(shared)}".strip() if shared else name

    def _known(self, round: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The deals of a round, int32 [D] and [D, m], and bool [m]: both know them."""
        nodes = self.rounds[round]
        outcomes = self.deals.outcomes(nodes)
        public = np.ones(outcomes.shape[1], bool)
        for signals in self.signals:
            of = signals[nodes]
            first = np.unique(of, return_index=True)[1]
            public &= (outcomes == outcomes[first][of]).all(axis=0)
        return nodes, outcomes, public

    def _texts(self, round: int, outcomes: list[int]) -> list[str]:
        """What OpenSpiel calls the outcomes, without what stands before a colon."""
        state, texts = self.game.new_initial_state(), []
        left, moves = list(outcomes), list(self.paths[round])
        while left:
            chance = state.is_chance_node()
            action = (left if chance else moves).pop(0)
            if chance:
                text = state.action_to_string(CHANCE, action)
                texts.append(text.rpartition(":")[2].strip())
            state.apply_action(action)
        return texts
