"""The rules of `scotland_yard`: constants of a map, and moves as pure functions."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from game_defs.base import Shared

KINDS = ("taxi", "bus", "underground")
STAY = 0  # the action of a detective that has no move
FUGITIVE_TICKETS: tuple[int, ...] = (1, 0, 0)  # The fugitive's tickets are unlimited.

_Int = TypeVar("_Int", int, np.ndarray)


@dataclasses.dataclass(frozen=True)
class ScotlandYardRules(Shared):
    """Constants of a game. Nodes are numbered from 1, as in the map.

    Attributes:
      rounds: Number of rounds; after these the fugitive has won.
      targets: [actions], the node that an action leads to; 0 for `STAY`.
      kinds: [actions], the index in `KINDS` of its edge and ticket; -1 for `STAY`.
      names: [actions], readable names.
      moves: [nodes + 1], the actions along the edges from each node, ascending; the
        entry of index 0 is unused.
      starts: Nodes from which chance draws the fugitive's start.
      detectives: Start node of each detective.
      tickets: [kinds], the number of tickets of each detective at the start.
      shown: Rounds after which the fugitive's node is public; 0 is the start.
    """

    rounds: int
    targets: tuple[int, ...]
    kinds: tuple[int, ...]
    names: tuple[str, ...]
    moves: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    detectives: tuple[int, ...]
    tickets: tuple[int, ...]
    shown: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Position(Shared):
    """Current and earlier nodes of all pieces.

    Attributes:
      path: Nodes of the fugitive, the start first; empty before the start is drawn.
      trips: Actions of the detectives, in turn.
      trail: Start nodes of the detectives, and then the nodes that their actions led
        to. The last entries, one per detective, are their current nodes, beginning with
        the detective that moves next.
    """

    path: tuple[int, ...]
    trips: tuple[int, ...]
    trail: tuple[int, ...]


def make_rules(
    data: Mapping[str, Any], rounds: int, detectives: int
) -> ScotlandYardRules:
    """Return the rules of a game, given the contents of a map file.

    Raises:
      ValueError: If the fugitive has a single start that is occupied or from which it
        has no legal move.
    """
    arcs = set()  # (target, kind, source)
    for kind, name in enumerate(KINDS):
        for node, other in data[name]:
            arcs |= {(node, kind, other), (other, kind, node)}
    actions = sorted({(target, kind) for target, kind, _ in arcs})
    starts = tuple(data["fugitive"])
    shown = {0} if data["start_public"] or len(starts) == 1 else set()
    rules = ScotlandYardRules(
        rounds=rounds,
        targets=(0, *(target for target, _ in actions)),
        kinds=(-1, *(kind for _, kind in actions)),
        names=("Stay", *(f"{KINDS[k].capitalize()} to {node}" for node, k in actions)),
        moves=tuple(
            tuple(i for i, pair in enumerate(actions, 1) if (*pair, node) in arcs)
            for node in range(data["nodes"] + 1)
        ),
        starts=starts,
        detectives=tuple(data["detectives"][:detectives]),
        tickets=tuple(data["tickets"][name] for name in KINDS),
        shown=tuple(n for n in sorted(shown | set(data["reveal"])) if n <= rounds),
    )
    # Later positions are checked after each move or draw; this one follows neither.
    if len(starts) == 1 and utility(rules, first_position(rules)):
        raise ValueError(
            f"the map's fugitive={list(starts)} is caught before the first move; "
            f"choose a free node with a taxi edge to a free node"
        )
    return rules


def first_position(rules: ScotlandYardRules) -> Position:
    """Return the position before the first move, or before the draw of the start."""
    path = rules.starts if len(rules.starts) == 1 else ()
    return Position(path, (), rules.detectives)


def is_teams_turn(num_nodes: _Int, num_trips: _Int, team: int) -> bool | np.ndarray:
    """Return whether it is the turn of a detective; arrays are compared elementwise.

    Args:
      num_nodes: Number of nodes on the fugitive's path, including the start.
      num_trips: Number of moves of detectives so far.
      team: Number of detectives.
    """
    return num_trips < (num_nodes - 1) * team


def next_detective(rules: ScotlandYardRules, position: Position) -> int | None:
    """Return the detective that moves next; None if it is the fugitive's turn."""
    num_trips, team = len(position.trips), len(rules.detectives)
    turn = is_teams_turn(len(position.path), num_trips, team)
    return num_trips % team if turn else None


def tickets_left(
    rules: ScotlandYardRules, position: Position, number: int
) -> tuple[int, ...]:
    """Return the number of remaining tickets of each kind of a detective."""
    trips = position.trips[number :: len(rules.detectives)]
    used = [rules.kinds[action] for action in trips]
    return tuple(had - used.count(kind) for kind, had in enumerate(rules.tickets))


def legal_actions(rules: ScotlandYardRules, position: Position) -> list[int]:
    """Return the legal actions, ascending; a trapped fugitive has none."""
    number = next_detective(rules, position)
    occupied = position.trail[-len(rules.detectives) :]
    if number is None:
        node, tickets = position.path[-1], FUGITIVE_TICKETS
    else:
        node, tickets = occupied[0], tickets_left(rules, position, number)
    free = [
        action
        for action in rules.moves[node]
        if tickets[rules.kinds[action]] and rules.targets[action] not in occupied
    ]
    return free if free or number is None else [STAY]


def play(rules: ScotlandYardRules, position: Position, action: int) -> Position:
    """Return the position after a legal action, or the draw of a start."""
    path, trips, trail = position.path, position.trips, position.trail
    if not path:
        return Position((rules.starts[action],), trips, trail)
    # STAY has no target, so the detective's current node replaces it.
    target = rules.targets[action] or trail[-len(rules.detectives)]
    if next_detective(rules, position) is None:
        return Position((*path, target), trips, trail)
    return Position(path, (*trips, action), (*trail, target))


def utility(rules: ScotlandYardRules, position: Position) -> int:
    """Return the fugitive's utility: 1 or -1 at the end, 0 before."""
    if position.path[-1] in position.trail[-len(rules.detectives) :]:
        return -1
    if next_detective(rules, position) is not None:
        return 0
    if len(position.path) > rules.rounds:
        return 1
    return 0 if legal_actions(rules, position) else -1
