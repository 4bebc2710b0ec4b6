"""A hidden-board game that is laid out, played on arrays: its worlds are its rules."""

import numpy as np

from spiel_cr.games.phantom.game import PhantomGame


class PhantomWorldRules:
    """A game's vectorised rules by its worlds and infosets.

    States are int32 [n, 3]: the world, and the infosets where the players act next;
    -1 where it never acts again. So who knows a strategy by infosets need not look
    them up, and players know what they did and learnt, whatever OpenSpiel's strings
    say. Methods: see `BatchedRules`.

    Attributes:
      worlds: the game.
    """

    def __init__(self, worlds: PhantomGame) -> None:
        """Makes tables of the infosets: what is open at them, and what comes next."""
        self.worlds = worlds
        count, answers = worlds.game.num_distinct_actions(), worlds.worlds.num_answers
        self._open, self._below = [], []
        for side in worlds.sides:
            decisions = side.decisions
            legal = np.zeros((len(decisions), count), bool)
            legal[decisions.owner[1:], side.actions] = True
            below = np.full((decisions.num_sequences, answers), -1, np.int32)
            below[decisions.parent, side.answer] = np.arange(len(decisions))
            self._open.append(legal)
            self._below.append(below)

    def new_initial_states(self) -> np.ndarray:
        return np.array([[0, *(below[0, 0] for below in self._below)]], np.int32)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        return self.worlds.worlds.player[states[:, 0]]

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        player = self.current_player(states)
        legal = np.zeros((len(states), self._open[0].shape[1]), bool)
        for p, open_attempts in enumerate(self._open):
            rows = np.flatnonzero(player == p)
            legal[rows] = open_attempts[states[rows, 1 + p]]
        return legal

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        worlds, after = self.worlds.worlds, states.copy()
        answer = worlds.answer[actions, states[:, 0]]
        player = self.current_player(states)
        for p, (legal, below) in enumerate(zip(self._open, self._below, strict=True)):
            rows = np.flatnonzero(player == p)
            infosets, action = states[rows, 1 + p], actions[rows]
            rank = _rank(legal[infosets])[np.arange(len(rows)), action]
            sequence = self.worlds.first_sequences[p][infosets] + rank
            after[rows, 1 + p] = below[sequence, answer[rows]]
        following = worlds.child[actions, states[:, 0]]
        after[:, 0] = np.where(following < 0, states[:, 0], following)
        return after

    def returns(self, states: np.ndarray) -> np.ndarray:
        return self.worlds.worlds.utility[states[:, 0]]

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        return states[:, 1 + player]

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        raise NotImplementedError("hidden boards have no chance")

    def probabilities(
        self, behaviour: np.ndarray, states: np.ndarray, player: int
    ) -> np.ndarray:
        """float64 [n, A], what a strategy plays at states where its player acts.

        Args:
          behaviour: float [S], by the player's logical sequence.
          states: of these rules.
          player: who acts at all of them.
        """
        infosets = states[:, 1 + player]
        legal = self._open[player][infosets]
        first = self.worlds.first_sequences[player][infosets]
        played: np.ndarray = behaviour[
            first[:, None] + np.where(legal, _rank(legal), 0)
        ]
        return np.where(legal, played, 0.0).astype(np.float64)


def _rank(legal: np.ndarray) -> np.ndarray:
    """int64 [n, A], which of the legal actions each one is, from 0."""
    return np.cumsum(legal, axis=1) - 1
