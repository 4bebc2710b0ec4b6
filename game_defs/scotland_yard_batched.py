"""Scotland Yard on arrays of states, by the tables of `scotland_yard_rules`."""

import numpy as np

from game_defs.base import CHANCE, TERMINAL
from game_defs.scotland_yard_rules import FUGITIVE_TICKETS, STAY, Rules, is_teams_turn

_FUGITIVE, _TEAM = 0, 1
# The first columns: nodes of the fugitive's path, moves of detectives, utility.
_NODES, _TRIPS, _UTILITY, _PATH = range(4)


class BatchedScotlandYard:
    """Many states of Scotland Yard; the methods are those of `pyspiel.State`.

    States are int16 [n, columns]: how many nodes the fugitive's path has, how many
    moves the detectives made, the fugitive's utility, 0 before the end; then the path,
    the detectives' actions in turn, both followed by zeros; the node of each detective;
    the tickets that each has left of each kind.
    """

    def __init__(self, rules: Rules) -> None:
        """Use `game.batched_rules()` instead."""
        self._rules = rules
        self._team = len(rules.detectives)
        self._targets = np.array(rules.targets)
        self._kinds = np.array(rules.kinds)
        self._starts = np.array(rules.starts)
        draws = len(rules.starts) if len(rules.starts) > 1 else 0
        self._width = max(len(rules.targets), draws)
        self._moves = np.zeros((len(rules.moves), len(rules.targets)), bool)
        for node, actions in enumerate(rules.moves):
            self._moves[node, list(actions)] = True
        ends = np.cumsum(
            [_PATH, 1 + rules.rounds, rules.rounds * self._team, self._team]
        )
        self._path, self._trips, self._at = map(slice, ends[:-1], ends[1:])
        self._tickets = slice(ends[-1], ends[-1] + self._team * len(rules.tickets))

    def new_initial_states(self) -> np.ndarray:
        """Return the state before the first move, or before the draw of the start."""
        states = np.zeros((1, self._tickets.stop), np.int16)
        if len(self._starts) == 1:
            states[0, _NODES], states[0, _PATH] = 1, self._starts[0]
        states[0, self._at] = self._rules.detectives
        # Nobody can use more tickets than there are rounds.
        held = [min(count, self._rules.rounds) for count in self._rules.tickets]
        states[0, self._tickets] = held * self._team
        return states

    def _is_teams_turn(self, states: np.ndarray) -> np.ndarray:
        nodes, trips = states[:, _NODES].astype(int), states[:, _TRIPS].astype(int)
        return np.asarray(is_teams_turn(nodes, trips, self._team))

    def _fugitive(self, states: np.ndarray) -> np.ndarray:
        """Return int16 [n], the fugitive's node; 0 before the draw."""
        last = np.maximum(states[:, _NODES], 1) - 1
        return states[np.arange(len(states)), _PATH + last]

    def _mover(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """bool [n], the team's turn; int64 [n], its next detective; [n], who moves: the
        node of that one."""
        turn = self._is_teams_turn(states)
        number = states[:, _TRIPS].astype(int) % self._team
        node = states[np.arange(len(states)), self._at.start + number]
        return turn, number, np.where(turn, node, self._fugitive(states))

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the players to move, CHANCE or TERMINAL; int64 [n]."""
        mover = np.where(self._is_teams_turn(states), _TEAM, _FUGITIVE)
        mover[states[:, _NODES] == 0] = CHANCE
        mover[states[:, _UTILITY] != 0] = TERMINAL
        return mover

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return bool [n, A], the actions of who moves, or the starts to draw."""
        mask = np.zeros((len(states), self._width), bool)
        actions = mask[:, : len(self._targets)]
        actions[:] = self._free(states)
        # A detective without a move stays where it is.
        actions[self._is_teams_turn(states) & ~actions.any(axis=1), STAY] = True
        mask[states[:, _NODES] == 0, : len(self._starts)] = True
        return mask

    def _free(self, states: np.ndarray) -> np.ndarray:
        """bool [n, actions], the moves to free nodes that there are tickets for."""
        turn, number, node = self._mover(states)
        held = states[:, self._tickets].reshape(-1, self._team, len(FUGITIVE_TICKETS))
        tickets = held[np.arange(len(states)), number]
        tickets = np.where(turn[:, None], tickets, FUGITIVE_TICKETS)
        free = self._moves[node] & (tickets[:, self._kinds] > 0)
        for detective in states[:, self._at].T:
            free &= self._targets != detective[:, None]
        return free

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return float64 [n, A]: all starts are equally likely."""
        probabilities = np.zeros((len(states), self._width))
        probabilities[:, : len(self._starts)] = 1.0 / len(self._starts)
        return probabilities

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after a move or a draw each."""
        after = states.copy()
        turn, number, node = self._mover(states)
        moves = states[:, _NODES] > 0
        target = np.empty(len(states), int)
        target[moves] = self._targets[actions[moves]]
        target[~moves] = self._starts[actions[~moves]]
        target = np.where(moves & (actions == STAY), node, target)
        fugitive, team = np.flatnonzero(~turn), np.flatnonzero(turn)
        after[fugitive, _PATH + states[fugitive, _NODES]] = target[fugitive]
        after[fugitive, _NODES] += 1
        after[team, self._trips.start + states[team, _TRIPS]] = actions[team]
        after[team, self._at.start + number[team]] = target[team]
        after[team, _TRIPS] += 1
        paying = np.flatnonzero(turn & (actions != STAY))
        purse = number[paying] * len(FUGITIVE_TICKETS) + self._kinds[actions[paying]]
        after[paying, self._tickets.start + purse] -= 1
        after[:, _UTILITY] = self._judge(after)
        return after

    def _judge(self, states: np.ndarray) -> np.ndarray:
        """Return int64 [n], the fugitive's utility; 0 where the game goes on."""
        caught = (states[:, self._at] == self._fugitive(states)[:, None]).any(axis=1)
        result = np.where(caught, -1, 0)
        left = np.flatnonzero(~caught & ~self._is_teams_turn(states))
        over = states[left, _NODES] > self._rules.rounds
        result[left[over]] = 1
        left = left[~over]
        result[left[~self._free(states[left]).any(axis=1)]] = -1
        return result

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return the fugitive's utilities at the end, int16 [n]."""
        return states[:, _UTILITY]

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int16 [n, k]: all that is public, and the fugitive's path for it."""
        path = states[:, self._path]
        if player == _TEAM:
            numbers = np.arange(path.shape[1])
            rounds_over = states[:, _TRIPS, None] // self._team
            shown = np.isin(numbers, self._rules.shown) & (numbers <= rounds_over)
            path = np.where(shown, path, 0)
        return np.concatenate([states[:, :2], path, states[:, self._trips]], axis=1)
