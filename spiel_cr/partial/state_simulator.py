"""Plays a game from any of its histories by OpenSpiel's states, one by one."""

from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cr.compilation import game_checks
from spiel_cr.compilation.tree import CHANCE, TERMINAL
from spiel_cr.partial.simulator import Nodes, Simulator


class StateSimulator(Simulator):
    """OpenSpiel's states."""

    def root(self) -> Nodes:
        return self._nodes([self.game.new_initial_state()], [-1], [1.0])

    def children(
        self, states: np.ndarray, player: np.ndarray, only: int | None = None
    ) -> tuple[Nodes, np.ndarray]:
        children: list[pyspiel.State] = []
        actions: list[int] = []
        factors: list[float] = []
        counts = np.empty(len(states), np.int64)
        for k, (state, actor) in enumerate(zip(states, player.tolist(), strict=True)):
            moves: Sequence[int]
            odds: Sequence[float]
            if actor == CHANCE:
                moves, odds = zip(*game_checks.chance_outcomes(state), strict=True)
            else:
                moves = state.legal_actions() if only is None else [only]
                odds = [1.0] * len(moves)
            children += map(state.child, moves)
            actions += moves
            factors += odds
            counts[k] = len(moves)
        parents = np.repeat(np.arange(len(states)), counts)
        return self._nodes(children, actions, factors), parents

    def strings(self, states: np.ndarray, player: int) -> Sequence[str]:
        return [state.information_state_string(player) for state in states]

    def _nodes(
        self, states: list[pyspiel.State], actions: list[int], factors: list[float]
    ) -> Nodes:
        count = len(states)
        array = np.empty(count, object)
        array[:] = states
        player = [state.current_player() for state in states]
        label, observation, num_actions = [-1] * count, [-1] * count, [0] * count
        utility = np.zeros(count)
        for k, (state, actor) in enumerate(zip(states, player, strict=True)):
            if actor in (0, 1):
                key = state.information_state_string(actor)
                label[k] = self.acting_labels[actor][key]
                num_actions[k] = len(state.legal_actions())
                observation[k] = self._observe(state, 1 - actor)
                if not num_actions[k]:
                    raise game_checks.no_action(state, actor)
            elif actor == TERMINAL:
                utility[k] = game_checks.player_return(state, 0)
            elif actor == CHANCE:
                num_actions[k] = len(game_checks.chance_outcomes(state))
            else:
                raise game_checks.wrong_player(state, actor)
        return Nodes(
            *(array, np.array(actions, np.int32), np.array(player, np.int8)),
            *(np.array(label, np.int32), np.array(observation, np.int32)),
            *(np.array(factors), utility, np.array(num_actions, np.int32)),
        )

    def _observe(self, state: pyspiel.State, player: int) -> int:
        """The label of what the player who does not act has observed, or -1."""
        if not self.observations:
            return -1
        try:
            key = state.information_state_string(player)
        except pyspiel.SpielError:  # the game does not provide that
            self.observations = False
            return -1
        return self.other_labels[player][key]
