"""Variance reduction and costs of decisions for matches that were recorded.

Files are JSON lines: the matches of a tournament, or OpenSpiel's trajectories. The luck
of chance is always removed. The luck of a player's own actions is removed only if its
policy is given, because records hold no probabilities.
"""

import collections
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from open_spiel.python.policy import Policy

from spiel_cr.common import atomic
from spiel_cr.common.json_records import check_fields, is_count, is_list, read_object
from spiel_cr.common.memory import Limit
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation.aivat import TreeValues, baseline
from spiel_cr.evaluation.referee import Match
from spiel_cr.games.histories import moves_along
from spiel_cr.games.opening.game_checks import chance_outcomes, returns, utility_bounds
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.player_specs import PolicyLike, read_player
from spiel_cr.policies import infoset_reach
from spiel_cr.policies.conversions import Behaviours

# Default reference. Unlike an equilibrium of a linear program, it leads everywhere.
REFERENCE = "cfr+(iterations=1000)"


class Habit(NamedTuple):
    """Decisions of a player at one information state that chose the same action.

    Attributes:
      player: The player, 0 or 1.
      information_state: Its information state in one line.
      action: Name of the action.
      times: Number of these decisions.
      loss: Value of the best action minus that of the chosen one, in the game's units.
      best: Name of the best action.
    """

    player: int
    information_state: str
    action: str
    times: int
    loss: float
    best: str


@dataclasses.dataclass(frozen=True)
class RecordedMatches:
    """Results of recorded matches, for the reviewed player.

    Attributes:
      returns: Returns, float64 [matches].
      estimates: Returns after variance reduction, float64 [matches].
      half_width: Half of the 95% interval of the mean of the estimates; None for a
        single match.
      plain_half_width: The same without variance reduction.
      habits: Decisions with a loss, the largest loss in all matches first.
    """

    returns: np.ndarray
    estimates: np.ndarray
    half_width: float | None
    plain_half_width: float | None
    habits: tuple[Habit, ...]


def read_matches(
    path: atomic.Path, bot: str | None = None
) -> tuple[list[list[int]], list[int | None]]:
    """Return the actions of each match in a file, chance included, and a player of it.

    Args:
      path: Path of the file.
      bot: Name of a bot, to whose matches and seats the result is restricted; None: all
        matches, and no player.

    Raises:
      OSError: If the file cannot be read.
      ValueError: If a line is neither a match nor a trajectory, or there are no matches
        (of the bot).
    """
    matches, seats = [], []
    for number, line in enumerate(pathlib.Path(path).read_bytes().splitlines(), 1):
        try:
            record = read_object(line)
            if "transitions" in record:
                record["actions"] = [step["action"] for step in record["transitions"]]
            check_fields(record, {"actions": is_list(is_count)})
            players = record.get("players") or []
            seat = players.index(bot) if bot in players else None
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path}, line {number}: not a match (it {error}); use lines of a "
                f"tournament's matches.jsonl, or of pyspiel.Trajectory.to_string()"
            ) from None
        if seat is not None or bot is None:
            matches.append(record["actions"])
            seats.append(seat)
    if not matches:
        raise ValueError(
            f"{path} has no matches{f' of bot={bot!r}' if bot else ''}; use a file "
            f"with a line for each, and the name of one of its players"
        )
    return matches, seats


def review_matches(
    game: Game,
    matches: Sequence[Sequence[int]],
    reference: PolicyLike = REFERENCE,
    *,
    seats: Sequence[int | None] = (),
    policies: Mapping[int, PolicyLike] | None = None,
    memory_limit: Limit = None,
) -> RecordedMatches:
    """Compute results of recorded matches without luck, and the costs of decisions.

    Args:
      game: OpenSpiel game string, game, or game tree.
      matches: Actions of each match, see `read_matches`.
      reference: Policy of both players whose values are used. Decisions where its
        other player does not lead have no loss.
      seats: The reviewed player of each match. If it is None, and by default, results
        are those of player 0, and habits those of both players.
      policies: Known policies of players, by player.
      memory_limit: Largest memory for the game tree; larger games use rollouts, and
        have no costs of decisions.

    Raises:
      ValueError: If a match does not belong to the game, or is not over.

    Example:
      >>> from spiel_cr.evaluation.recorded_matches import review_matches
      >>> review_matches("kuhn_poker", [(1, 0, 1, 0), (0, 1, 0, 0)]).returns.tolist()
      [1.0, -1.0]
    """
    values = baseline(game, reference, memory_limit=memory_limit, name="reference")
    plain = open_game(values.instance).game
    by_player = {
        player: read_player(policy, plain, name="policies").policy(
            values.instance, 0, lazy=False
        )
        for player, policy in (policies or {}).items()
    }
    players = list(seats) or [None] * len(matches)
    played = [_match(plain, actions, by_player) for actions in matches]
    signs = np.array([-1 if player == 1 else 1 for player in players])
    gains = signs * np.array([match.returns[0] for match in played])
    estimates = signs * np.array([values.estimate(match) for match in played])
    habits: list[Habit] = []
    if isinstance(values, TreeValues) and values.strategy is not None:
        habits = _habits(values.instance, matches, players, values.strategy)
    bounds = utility_bounds(plain)
    half, plain_half = (mean_and_half_width(r, bounds)[1] for r in (estimates, gains))
    return RecordedMatches(gains, estimates, half, plain_half, tuple(habits))


def _match(game: Any, actions: Sequence[int], by_player: Mapping[int, Policy]) -> Match:
    """Return a match with the probabilities of chance and of given policies."""
    state = game.new_initial_state()
    probabilities: list[dict[int, float] | None] = []
    for action in actions:
        if action not in state.legal_actions():
            raise ValueError(
                f"matches: the action {action} is not legal after the actions "
                f"{state.history()} of {game}; use matches of this game"
            )
        policy = by_player.get(state.current_player())
        if state.is_chance_node():
            probabilities.append(dict(chance_outcomes(state)))
        else:
            probabilities.append(policy and policy.action_probabilities(state))
        state.apply_action(action)
    if not state.is_terminal():
        raise ValueError(
            f"matches: {list(actions)} is not over in {game}; leave it out"
        )
    first, second = map(float, returns(state))
    return Match(tuple(actions), (first, second), ((), ()), tuple(probabilities))


def _habits(
    tree: GameTree,
    matches: Sequence[Sequence[int]],
    seats: Sequence[int | None],
    behaviours: Behaviours,
) -> list[Habit]:
    """Return the decisions that lose value, the largest total loss first."""
    counts = collections.Counter(
        (*tree.infoset_of(state), action)
        for actions, seat in zip(matches, seats, strict=True)
        for state, action in moves_along(tree.game, actions)
        if state.current_player() in ((0, 1) if seat is None else (seat,))
    )
    values = [infoset_reach.action_values(tree, p, behaviours) for p in range(2)]
    habits = []
    for (player, infoset, action), count in counts.items():
        name, sequences, names = infoset_reach.described(tree, player, infoset)
        value = values[player][sequences]
        chosen = tree.actions(player, infoset).tolist().index(action)
        loss, best = float(value.max() - value[chosen]), names[value.argmax()]
        # It is NaN where the reference does not lead.
        if loss > 1e-9:
            habits.append(Habit(player, name, names[chosen], count, loss, best))
    return sorted(habits, key=lambda habit: (-habit.times * habit.loss, habit.player))
