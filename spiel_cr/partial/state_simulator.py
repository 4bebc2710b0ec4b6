"""Second stage, games too large to be walked whole, played by OpenSpiel's states."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyspiel

from spiel_cr.compilation import numbering
from spiel_cr.partial.simulator import EdgeValue, Labels, Nodes, Rollouts, check_values


class StateSource:
    """OpenSpiel's states, one by one."""

    def __init__(
        self, game: pyspiel.Game, value: Rollouts | EdgeValue, *, observations: bool
    ) -> None:
        self._game = game
        self.tells = observations
        self.labels = Labels(), Labels(), Labels(), Labels()
        self._labels, self._told = self.labels[:2], self.labels[2:]
        self._value = value
        self._rollouts: _Playouts | None = None
        if isinstance(value, Rollouts):
            self._rollouts = _Playouts(game, value)

    def root(self) -> Nodes:
        return self._describe([self._game.new_initial_state()], [-1], [1.0])

    def children(
        self, handles: np.ndarray, player: np.ndarray, only: int | None = None
    ) -> tuple[Nodes, np.ndarray]:
        if only is not None:
            count = len(handles)
            after = [state.child(only) for state in handles]
            nodes = self._describe(after, [only] * count, [1.0] * count)
            return nodes, np.arange(count)
        states: list[pyspiel.State] = []
        actions: list[int] = []
        factors: list[float] = []
        counts = np.empty(len(handles), np.int64)
        for k, (state, mover) in enumerate(zip(handles, player.tolist(), strict=True)):
            child, before = state.child, len(states)
            if mover == numbering.CHANCE:
                for action, probability in state.chance_outcomes():
                    states.append(child(action))
                    actions.append(action)
                    factors.append(probability)
            else:
                legal = state.legal_actions()
                states += [child(action) for action in legal]
                actions += legal
                factors += [1.0] * len(legal)
            counts[k] = len(states) - before
        where = np.repeat(np.arange(len(handles)), counts)
        return self._describe(states, actions, factors), where

    def values(self, handles: np.ndarray, player: np.ndarray) -> np.ndarray:
        if self._rollouts is None:
            assert not isinstance(self._value, Rollouts)
            return check_values(self._value(handles), len(handles))
        pairs = zip(handles, player.tolist(), strict=True)
        return np.array([self._rollouts(state, mover) for state, mover in pairs])

    def strings(self, handles: np.ndarray, player: int) -> Sequence[str]:
        return [state.information_state_string(player) for state in handles]

    def _describe(
        self,
        states: list[pyspiel.State],
        actions: Iterable[int],
        factors: Iterable[float],
    ) -> Nodes:
        count = len(states)
        handles = np.empty(count, object)
        handles[:] = states
        players, labels, tolds, legals = [], [], [], []
        utility = np.zeros(count)
        for k, state in enumerate(states):
            player, label, told, legal = state.current_player(), -1, -1, 0
            if player >= 0:
                label = self._labels[player].of(state.information_state_string(player))
                legal = len(state.legal_actions())
                if self.tells:
                    told = self._tell(state, 1 - player)
                if not legal:
                    raise ValueError(
                        f"{self._game}: player {player} has no legal action at "
                        f"information state {state.information_state_string(player)!r}"
                        f"; a game without moves must be terminal there"
                    )
            elif player == numbering.TERMINAL:
                utility[k] = state.player_return(0)
            elif player == numbering.CHANCE:
                legal = len(state.chance_outcomes())
            else:
                raise ValueError(
                    f"{self._game}: a state has current player {player}; only "
                    f"players 0 and 1, chance and terminal states are supported"
                )
            players.append(player)
            labels.append(label)
            tolds.append(told)
            legals.append(legal)
        return Nodes(
            handles,
            np.array(actions, np.int32),
            np.array(players, np.int8),
            np.array(labels, np.int32),
            np.array(tolds, np.int32),
            np.array(factors, np.float64),
            utility,
            np.array(legals, np.int32),
        )

    def _tell(self, state: pyspiel.State, other: int) -> int:
        try:
            return self._told[other].of(state.information_state_string(other))
        except pyspiel.SpielError:
            self.tells = False
            return -1


class _Playouts:
    """Random rollouts of single states."""

    def __init__(self, game: pyspiel.Game, rollouts: Rollouts) -> None:
        self._number = rollouts.number
        self._random = np.random.default_rng(rollouts.seed)
        self._search: pyspiel.MCTSBot | None = None
        if "python_" not in str(game) and type(game) is pyspiel.Game:
            # OpenSpiel's evaluator cannot be called from Python by itself: a search of
            # one simulation is one call. It crashes on games written in Python.
            evaluator = pyspiel.RandomRolloutEvaluator(self._number, rollouts.seed)
            self._search = pyspiel.MCTSBot(
                game, evaluator, 1.0, 1, 1, False, rollouts.seed, False
            )

    def __call__(self, state: pyspiel.State, player: int) -> float:
        """Player 0's mean utility."""
        if player >= 0 and self._search is not None:
            total = self._search.mcts_search(state).total_reward
            return float(-total if player else total)
        return sum(self._play(state) for _ in range(self._number)) / self._number

    def _play(self, state: pyspiel.State) -> float:
        state = state.clone()
        while not state.is_terminal():
            if state.is_chance_node():
                moves, odds = zip(*state.chance_outcomes(), strict=True)
                ends = np.cumsum(odds)
                at = np.searchsorted(ends, self._random.random() * ends[-1], "right")
                move = moves[min(int(at), len(moves) - 1)]
            else:
                legal = state.legal_actions()
                move = legal[int(self._random.integers(len(legal)))]
            state.apply_action(move)
        return float(state.player_return(0))
