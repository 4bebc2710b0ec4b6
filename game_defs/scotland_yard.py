"""Small variant of Scotland Yard: detectives pursue a fugitive that moves unseen.

Rules. A map is an undirected graph with edges for taxis, buses or the underground.
Player 0 is the fugitive, player 1 the team of detectives. In each round the fugitive
moves along a taxi edge, unseen. Then each detective in turn moves along an edge of any
kind and spends a ticket of that kind; the number of tickets is limited. A piece can
neither stay nor move to a node that a detective occupies, but a detective without a
legal move stays on its node. Moves and tickets of detectives are public.

Payoffs. The detectives win 1 as soon as one of them moves to the fugitive's node, or if
the fugitive has no legal move at its turn. The fugitive wins 1 after the last round.

Besides the graph, a map defines the start and the tickets of each detective. It defines
the nodes from which chance draws the fugitive's start, and whether that start is
public. It also lists the rounds after which the fugitive's node is revealed, before its
next move. `places` are the coordinates of the nodes for drawings, from 0 to 1.

Parameters.
  map: the name of a file in `maps/`, without the extension (default glasses).
  rounds: from 1 to 50 (default 4).
  detectives: number of detectives, the first ones in the map's list (default 2).

The maps were designed for this project, because the paper shows its maps only as
pictures.
  glasses: 11 nodes, all kinds of edges; the fugitive starts on 6, the detectives on 1
    and 11; it is seen at the start and after round 3. In 4 rounds 197,746 histories
    (nodes of the tree), 7750 and 12,425 infosets, value -1/3; in 3 rounds 13,377
    histories, 496 and 329 infosets, value 0.
  square: a ring of 4. One detective guesses left or right in each round while it has
    tickets, of which it starts with 4: the value is 2^(1 - rounds) - 1 in up to 4
    rounds.
  tripod: three arms of 2 nodes; chance draws one of two tips as the fugitive's start,
    unseen. One or two detectives: value 0 in one or two rounds, -1 in more.

Source: Timbers et al., "Approximate exploitability: learning a best response" (2022);
the maps imitate the board game, in which the fugitive is revealed right after its own
move.

The module `scotland_yard_rules` implements the rules.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
import pyspiel

from game_defs import base, parameters, scotland_yard_rules
from game_defs.scotland_yard_rules import KINDS, ScotlandYardRules

_NAME = "python_scotland_yard"
_PARAMETERS: dict[str, int | str] = {"map": "glasses", "rounds": 4, "detectives": 2}
_GAME_TYPE, _DRAWN_TYPE = (
    base.game_type(_NAME, "Python Scotland Yard", _PARAMETERS, chance=chance)
    for chance in (False, True)
)
_FUGITIVE, _TEAM = 0, 1

MAPS = resources.files("game_defs") / "maps"


def map_names() -> list[str]:
    """Return the names of the bundled maps."""
    names = (path.name.split(".") for path in MAPS.iterdir())
    return sorted(name for name, *ending in names if ending == ["json"])


class ScotlandYardGame(base.Game):
    """Scotland Yard; the module's docstring has its rules and parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        allowed: dict[str, parameters.Allowed] = {
            "map": map_names(),
            "rounds": range(1, 51),
        }
        merged = parameters.merge(_GAME_TYPE, params, allowed)
        name, rounds, detectives = (merged[key] for key in _PARAMETERS)
        data = json.loads((MAPS / f"{name}.json").read_text(encoding="utf-8"))
        teams = range(1, len(data["detectives"]) + 1)
        parameters.check(_NAME, "detectives", detectives, teams)
        rules = scotland_yard_rules.make_rules(data, rounds, detectives)
        num_draws = int(len(rules.starts) > 1)
        super().__init__(
            _DRAWN_TYPE if num_draws else _GAME_TYPE,
            merged,
            num_distinct_actions=len(rules.targets),
            max_chance_outcomes=len(rules.starts) * num_draws,
            max_utility=1.0,
            max_game_length=rounds * (1 + detectives),
        )
        self.rules, self._num_draws = rules, num_draws

    def max_chance_nodes_in_history(self) -> int:
        """Return 1 if the fugitive's start is drawn, and 0 otherwise."""
        return self._num_draws

    def new_initial_state(self) -> "ScotlandYardState":
        """Return the state before the first move, or before the draw of the start."""
        return ScotlandYardState(self)

    def batched_rules(self) -> "BatchedScotlandYard":
        """Return the batched rules."""
        return BatchedScotlandYard(self.rules)

    def _observer(self, shows: pyspiel.IIGObservationType) -> base.Observer:
        return ScotlandYardObserver(shows, self.rules)


class ScotlandYardState(base.State):
    """A state of Scotland Yard.

    Attributes:
      rules: Rules of the game.
      position: Current and earlier nodes of all pieces.
      utility: Utility of the fugitive, 1 or -1 at the end; 0 before.
    """

    def __init__(self, game: ScotlandYardGame) -> None:
        """Use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.rules = game.rules
        self.position = scotland_yard_rules.first_position(game.rules)
        self.utility = 0

    def current_player(self) -> int:
        """Return the player to move, CHANCE before the draw, or TERMINAL."""
        if self.utility:
            return base.TERMINAL
        if not self.position.path:
            return base.CHANCE
        detective = scotland_yard_rules.next_detective(self.rules, self.position)
        return _FUGITIVE if detective is None else _TEAM

    def _legal_actions(self, player: int) -> list[int]:
        return scotland_yard_rules.legal_actions(self.rules, self.position)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the indices of the fugitive's starts, which are all equally likely."""
        num_starts = len(self.rules.starts)
        return [(number, 1.0 / num_starts) for number in range(num_starts)]

    def _apply_action(self, action: int) -> None:
        self.position = scotland_yard_rules.play(self.rules, self.position, action)
        self.utility = scotland_yard_rules.utility(self.rules, self.position)

    def _action_to_string(self, player: int, action: int) -> str:
        if player < 0:
            return f"Start on {self.rules.starts[action]}"
        return self.rules.names[action]

    def is_terminal(self) -> bool:
        """Return True if the fugitive is caught or all rounds are over."""
        return self.utility != 0

    def _utility(self) -> int:
        return self.utility

    def __str__(self) -> str:
        trips = _text(self.position.trips, self.rules.names)
        return f"fugitive {_text(self.position.path)} detectives {trips}"


class ScotlandYardObserver(base.Observer):
    """Observer: nodes of the player are private; detectives' moves are public.

    Each part is a list of numbers. Its tensor has a one-hot row for each number (column
    0 is not used for nodes). The private part is `path` with perfect recall, the nodes
    of the player's pieces in turn, starting nodes first; otherwise it is `nodes`, their
    current nodes. (Those of the detectives are also public.) Public parts: `steps`, the
    number of moves and draws so far; `caught`, 0 or 1; `seen`, the nodes where the
    fugitive was revealed, without perfect recall only the last one; with perfect recall
    `trips`, the detectives' actions; otherwise `detectives`, their current nodes, and
    `tickets`, the remaining tickets of each detective and kind.
    """

    def __init__(
        self, shows: pyspiel.IIGObservationType, rules: ScotlandYardRules
    ) -> None:
        self._rules = rules
        columns, team = len(rules.moves), len(rules.detectives)
        most_trips, num_draws = team * rules.rounds, int(len(rules.starts) > 1)
        private = {"nodes": (team, columns)}
        public = {
            "steps": (1, num_draws + rules.rounds + most_trips + 1),
            "caught": (1, 2),
        }
        if rules.shown:
            seen = len(rules.shown) if shows.perfect_recall else 1
            public["seen"] = (seen, columns)
        if shows.perfect_recall:
            private = {"path": (team + most_trips, columns)}
            public["trips"] = (most_trips, len(rules.targets))
        else:
            public["detectives"] = (team, columns)
            public["tickets"] = (team * len(KINDS), max(rules.tickets) + 1)
        super().__init__(shows, private, public)

    def _set_private(
        self, pieces: base.Pieces, state: ScotlandYardState, owner: int
    ) -> None:
        for rows in pieces.values():
            base.mark(rows, self._private_pieces(state, owner))

    def _set_public(self, pieces: base.Pieces, state: ScotlandYardState) -> None:
        for name, numbers in self._shown(state).items():
            base.mark(pieces[name], numbers)

    def _private_text(self, state: ScotlandYardState, owner: int) -> str:
        name = "path" if self._recall else "nodes"
        return f"p{owner} {name} {_text(self._private_pieces(state, owner))}"

    def _public_text(self, state: ScotlandYardState) -> str:
        names = {"trips": self._rules.names}
        shown = self._shown(state).items()
        return " ".join(f"{key} {_text(n, names.get(key, ()))}" for key, n in shown)

    def _private_pieces(self, state: ScotlandYardState, owner: int) -> Sequence[int]:
        """Return the nodes of a player's pieces, all of them with perfect recall."""
        path, trail = state.position.path, state.position.trail
        if owner == _FUGITIVE:
            return path if self._recall else path[-1:]
        return trail if self._recall else self._nodes(state)

    def _nodes(self, state: ScotlandYardState) -> list[int]:
        """Return the current node of each detective."""
        team = len(self._rules.detectives)
        return [state.position.trail[number::team][-1] for number in range(team)]

    def _shown(self, state: ScotlandYardState) -> dict[str, Sequence[int]]:
        """Return the numbers of each public part that this observer has."""
        rules, position = self._rules, state.position
        path, trips, team = position.path, position.trips, len(rules.detectives)
        over = len(trips) // team
        seen = [path[number] for number in rules.shown if path and number <= over]
        left = [
            scotland_yard_rules.tickets_left(rules, position, number)
            for number in range(team)
        ]
        public: dict[str, Sequence[int]] = {
            "steps": [len(path) + len(trips) - (len(rules.starts) == 1)],
            "caught": [int(state.utility < 0)],
            "seen": seen if self._recall else seen[-1:],
            "trips": trips,
            "detectives": self._nodes(state),
            "tickets": [count for counts in left for count in counts],
        }
        return {name: public[name] for name in public if name in self.dict}


# First columns of states: numbers of path nodes and of detectives' moves, utility.
_NODES, _TRIPS, _UTILITY, _PATH = range(4)


class BatchedScotlandYard:
    """Batched states of Scotland Yard; the methods are those of `pyspiel.State`.

    States are int16 [n, columns]: the number of nodes on the fugitive's path; the
    number of detectives' moves; the fugitive's utility, 0 before the end; the path, and
    then the detectives' actions in turn, both padded with zeros; the node of each
    detective; the remaining tickets of each detective and kind.
    """

    def __init__(self, rules: ScotlandYardRules) -> None:
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
        # A detective cannot use more tickets than there are rounds.
        held = [min(count, self._rules.rounds) for count in self._rules.tickets]
        states[0, self._tickets] = held * self._team
        return states

    def _is_teams_turn(self, states: np.ndarray) -> np.ndarray:
        nodes, trips = states[:, _NODES].astype(int), states[:, _TRIPS].astype(int)
        return np.asarray(scotland_yard_rules.is_teams_turn(nodes, trips, self._team))

    def _fugitive(self, states: np.ndarray) -> np.ndarray:
        """Return the fugitive's node, int16 [n]; 0 before the draw."""
        last = np.maximum(states[:, _NODES], 1) - 1
        return states[np.arange(len(states)), _PATH + last]

    def _mover(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the piece that moves in each state.

        Returns:
          bool [n], whether it is the team's turn; int64 [n], the detective that is
          next; and [n], the node of the piece that moves.
        """
        turn = self._is_teams_turn(states)
        number = states[:, _TRIPS].astype(int) % self._team
        node = states[np.arange(len(states)), self._at.start + number]
        return turn, number, np.where(turn, node, self._fugitive(states))

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return the players to move, CHANCE or TERMINAL; int64 [n]."""
        mover = np.where(self._is_teams_turn(states), _TEAM, _FUGITIVE)
        mover[states[:, _NODES] == 0] = base.CHANCE
        mover[states[:, _UTILITY] != 0] = base.TERMINAL
        return mover

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return the legal actions or the possible starts, bool [n, A]."""
        mask = np.zeros((len(states), self._width), bool)
        actions = mask[:, : len(self._targets)]
        actions[:] = self._free(states)
        # A detective without a legal move stays on its node.
        actions[
            self._is_teams_turn(states) & ~actions.any(axis=1), scotland_yard_rules.STAY
        ] = True
        mask[states[:, _NODES] == 0, : len(self._starts)] = True
        return mask

    def _free(self, states: np.ndarray) -> np.ndarray:
        """Return moves to free nodes for which a ticket remains, bool [n, actions]."""
        turn, number, node = self._mover(states)
        held = states[:, self._tickets].reshape(
            -1, self._team, len(scotland_yard_rules.FUGITIVE_TICKETS)
        )
        tickets = held[np.arange(len(states)), number]
        tickets = np.where(turn[:, None], tickets, scotland_yard_rules.FUGITIVE_TICKETS)
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
        target = np.where(moves & (actions == scotland_yard_rules.STAY), node, target)
        fugitive, team = np.flatnonzero(~turn), np.flatnonzero(turn)
        after[fugitive, _PATH + states[fugitive, _NODES]] = target[fugitive]
        after[fugitive, _NODES] += 1
        after[team, self._trips.start + states[team, _TRIPS]] = actions[team]
        after[team, self._at.start + number[team]] = target[team]
        after[team, _TRIPS] += 1
        paying = np.flatnonzero(turn & (actions != scotland_yard_rules.STAY))
        purse = (
            number[paying] * len(scotland_yard_rules.FUGITIVE_TICKETS)
            + self._kinds[actions[paying]]
        )
        after[paying, self._tickets.start + purse] -= 1
        after[:, _UTILITY] = self._judge(after)
        return after

    def _judge(self, states: np.ndarray) -> np.ndarray:
        """Return the fugitive's utility, int64 [n]; 0 if the game is not over."""
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
        """Return int16 [n, k]: public information, and the fugitive's path for it."""
        path = states[:, self._path]
        if player == _TEAM:
            numbers = np.arange(path.shape[1])
            rounds_over = states[:, _TRIPS, None] // self._team
            shown = np.isin(numbers, self._rules.shown) & (numbers <= rounds_over)
            path = np.where(shown, path, 0)
        return np.concatenate([states[:, :2], path, states[:, self._trips]], axis=1)


def _text(numbers: Sequence[int], names: Sequence[str] = ()) -> str:
    """Return a list of numbers, or of their names, as a readable string."""
    return ", ".join([names[n] if names else str(n) for n in numbers]) or "-"


pyspiel.register_game(_GAME_TYPE, ScotlandYardGame)
