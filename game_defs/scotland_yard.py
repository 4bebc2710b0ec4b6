"""Scotland Yard, small: detectives hunt a fugitive whose moves they do not see.

Rules. A map is an undirected graph, whose edges are for taxis, buses or the
underground. Player 0 is the fugitive, player 1 the team of detectives. In a round the
fugitive moves along a taxi edge, unseen; then each detective in turn moves along an
edge of any kind and gives a ticket of that kind, of which it has a limited number.
Nobody may move to a node where a detective is, and nobody may stay; only a detective
that has no move stays where it is. Moves and tickets of detectives are public.

Payoffs. The detectives win 1 as soon as one of them moves to the fugitive's node, or
when the fugitive has no move at its turn; the fugitive wins 1 when all rounds are over.

What a map settles, besides the graph: where detectives start, with which tickets each;
where the fugitive starts (of several nodes chance draws one) and whether that is seen;
after which rounds, before its next move, the node where it is then is shown.

Parameters.
  map: the name of a file in `maps/`, without the ending (default glasses).
  rounds: from 1 to 50 (default 4).
  detectives: how many take part, the first of the map's list (default 2).

The maps are drawn up for this project; those of the paper are only shown as pictures.
  glasses: 11 nodes, all kinds of edges; the fugitive starts on 6, the detectives on 1
    and 11; it is seen at the start and after round 3. In 4 rounds 197 746 histories
    (nodes of the tree), 7 750 and 12 425 infosets, value -1/3; in 3 rounds 13 377
    histories, 496 and 329 infosets, value 0.
  square: a ring of 4. One detective guesses left or right in each round, as long as it
    has tickets, of which it has 4: the value is 2^(1 - rounds) - 1 in up to 4 rounds.
  tripod: three arms of 2 nodes; chance draws at which of two tips the fugitive starts,
    unseen. One detective or two: value 0 in one or two rounds, -1 in more.

Source: Timbers et al., "Approximate exploitability: learning a best response" (2022),
with maps after the board game, in which the fugitive is shown right after its own move.

The rules themselves are in `scotland_yard_rules`.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
import pyspiel

from game_defs import (
    observation,
    parameters,
    scotland_yard_rules,
    scotland_yard_vectorised,
    zero_sum,
)
from game_defs.scotland_yard_rules import KINDS, Rules

__all__ = [
    "MAPS",
    "ScotlandYardGame",
    "ScotlandYardObserver",
    "ScotlandYardState",
    "map_names",
]

_NAME = "python_scotland_yard"
_PARAMETERS: dict[str, int | str] = {"map": "glasses", "rounds": 4, "detectives": 2}
_GAME_TYPE, _DRAWN_TYPE = (
    zero_sum.game_type(_NAME, "Python Scotland Yard", _PARAMETERS, chance=chance)
    for chance in (False, True)
)
_FUGITIVE, _TEAM = 0, 1

MAPS = resources.files("game_defs") / "maps"


def map_names() -> list[str]:
    """Returns the names of the bundled maps."""
    names = (path.name.split(".") for path in MAPS.iterdir())
    return sorted(name for name, *ending in names if ending == ["json"])


class ScotlandYardGame(pyspiel.Game):
    """Scotland Yard; the module's docstring has its rules and parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        merged = parameters.merge(_GAME_TYPE, params)
        name, rounds, detectives = (merged[key] for key in _PARAMETERS)
        parameters.check_choice(_NAME, "map", name, map_names())
        parameters.check_range(_NAME, "rounds", rounds, 1, 50)
        data = json.loads((MAPS / f"{name}.json").read_text(encoding="utf-8"))
        most = len(data["detectives"])
        parameters.check_range(_NAME, "detectives", detectives, 1, most)
        rules = scotland_yard_rules.make_rules(data, rounds, detectives)
        num_draws = int(len(rules.starts) > 1)
        info = zero_sum.game_info(
            num_distinct_actions=len(rules.targets),
            max_chance_outcomes=len(rules.starts) * num_draws,
            max_utility=1.0,
            max_game_length=rounds * (1 + detectives),
        )
        super().__init__(_DRAWN_TYPE if num_draws else _GAME_TYPE, info, merged)
        self.rules, self._num_draws = rules, num_draws

    def max_chance_nodes_in_history(self) -> int:
        """Returns 1 if the fugitive's start is drawn, else 0."""
        return self._num_draws

    def new_initial_state(self) -> "ScotlandYardState":
        """Returns the state before the first move, or before the draw of the start."""
        return ScotlandYardState(self)

    def vectorised(self) -> scotland_yard_vectorised.VectorisedScotlandYard:
        """Returns the rules on arrays of states."""
        return scotland_yard_vectorised.VectorisedScotlandYard(self.rules)

    def make_py_observer(
        self,
        iig_obs_type: pyspiel.IIGObservationType | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> "ScotlandYardObserver":
        """Returns an observer; without a type, that of the observation tensor."""
        shows = observation.type_to_show(_NAME, iig_obs_type, params)
        return ScotlandYardObserver(shows, self.rules)


class ScotlandYardState(pyspiel.State):
    """A state of Scotland Yard.

    Attributes:
      rules: of its game.
      position: where everybody is and has been.
      utility: the fugitive's, 1 or -1 at the end; 0 before.
    """

    def __init__(self, game: ScotlandYardGame) -> None:
        """Use `game.new_initial_state()` instead."""
        super().__init__(game)
        self.rules = game.rules
        self.position = scotland_yard_rules.first_position(game.rules)
        self.utility = 0

    def current_player(self) -> int:
        """Returns the player to move, CHANCE before the draw, or TERMINAL."""
        if self.utility:
            return pyspiel.PlayerId.TERMINAL
        if not self.position.path:
            return pyspiel.PlayerId.CHANCE
        return (
            _FUGITIVE
            if scotland_yard_rules.next_detective(self.rules, self.position) is None
            else _TEAM
        )

    def _legal_actions(self, player: int) -> list[int]:
        return scotland_yard_rules.legal_actions(self.rules, self.position)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Returns the numbers of the fugitive's starts, all equally likely."""
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
        """Returns True if the fugitive is caught or all rounds are over."""
        return self.utility != 0

    def returns(self) -> list[float]:
        """Returns both players' utilities; 0 before the end."""
        return zero_sum.returns(self.utility)

    def __str__(self) -> str:
        trips = _text(self.position.trips, self.rules.names)
        return f"fugitive {_text(self.position.path)} detectives {trips}"


# Its name, its part of the tensor [rows, columns], and the numbers in it.
_Piece = tuple[str, np.ndarray, Sequence[int]]


class ScotlandYardObserver:
    """Observer: private is where the own pieces were; public are trips and sightings.

    Each piece is a list of numbers; the tensor has a row for each number, with a 1 in
    its column (column 0 of nodes stays empty). Private: for perfect recall `path`, the
    nodes of the own pieces in turn, starts first; otherwise `nodes`, where they are.
    (The detectives' are public, too.) Public: `steps`, how many moves and draws were
    made; `caught`, 0 or 1; `seen`, where the fugitive was seen, without perfect recall
    only the last time; for perfect recall `trips`, the detectives' actions; otherwise
    `detectives`, where each is, and `tickets`, what each has left of each kind. When
    the private piece of one player is shown, `player` [2] says whose; when both are, it
    has a leading axis of players.
    """

    def __init__(self, iig_obs_type: pyspiel.IIGObservationType, rules: Rules) -> None:
        self._rules = rules
        self._recall = iig_obs_type.perfect_recall
        self._owners = observation.owners_shown(iig_obs_type.private_info)
        columns, team = len(rules.moves), len(rules.detectives)
        most_trips, num_draws = team * rules.rounds, int(len(rules.starts) > 1)
        self._own = "path" if self._recall else "nodes"
        self._own_rows = team + most_trips if self._recall else team
        shapes = observation.private_shapes(
            iig_obs_type.private_info, {self._own: (self._own_rows, columns)}
        )
        if iig_obs_type.public_info:
            shapes["steps"] = (1, num_draws + rules.rounds + most_trips + 1)
            shapes["caught"] = (1, 2)
            if rules.shown:
                shapes["seen"] = (len(rules.shown) if self._recall else 1, columns)
            if self._recall:
                shapes["trips"] = (most_trips, len(rules.targets))
            else:
                shapes["detectives"] = (team, columns)
                shapes["tickets"] = (team * len(KINDS), max(rules.tickets) + 1)
        self.tensor, self.dict = observation.allocate(shapes)

    def set_from(self, state: ScotlandYardState, player: int) -> None:
        """Writes what `player` observes at `state` to `tensor` and so to `dict`."""
        observation.clear(self.tensor, self.dict, player)
        for _, rows, numbers in self._pieces(state, player):
            rows[range(len(numbers)), numbers] = 1

    def string_from(self, state: ScotlandYardState, player: int) -> str:
        """Returns what `player` observes at `state`."""
        texts = []
        for name, _, numbers in self._pieces(state, player):
            names = self._rules.names if name == "trips" else ()
            texts.append(f"{name} {_text(numbers, names)}")
        return " ".join(texts)

    def _pieces(self, state: ScotlandYardState, player: int) -> list[_Piece]:
        """The pieces to show."""
        rules, position, owners = self._rules, state.position, self._owners[player]
        path, trips, trail = position.path, position.trips, position.trail
        team = range(len(rules.detectives))
        nodes = [trail[number :: len(team)][-1] for number in team]
        own = (path, trail) if self._recall else (path[-1:], nodes)
        pieces: list[_Piece] = []
        for i, owner in enumerate(owners):
            rows = self.dict[self._own].reshape(len(owners), self._own_rows, -1)[i]
            pieces.append((f"p{owner} {self._own}", rows, own[owner]))
        over = len(trips) // len(team)
        seen = [path[number] for number in rules.shown if path and number <= over]
        left = [
            scotland_yard_rules.tickets_left(rules, position, number) for number in team
        ]
        public: dict[str, Sequence[int]] = {
            "steps": [len(path) + len(trips) - (len(rules.starts) == 1)],
            "caught": [int(state.utility < 0)],
            "seen": seen if self._recall else seen[-1:],
            "trips": trips,
            "detectives": nodes,
            "tickets": [count for counts in left for count in counts],
        }
        shown = [name for name in public if name in self.dict]
        return pieces + [(name, self.dict[name], public[name]) for name in shown]


def _text(numbers: Sequence[int], names: Sequence[str] = ()) -> str:
    """A list as a readable string, of numbers or of what they are the numbers of."""
    return ", ".join([names[n] if names else str(n) for n in numbers]) or "-"


pyspiel.register_game(_GAME_TYPE, ScotlandYardGame)
