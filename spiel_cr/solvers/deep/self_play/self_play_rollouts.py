"""Parallel matches of self-play, and advantages of all actions at their decisions."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cr.common import draws
from spiel_cr.common.draws import choose
from spiel_cr.games.simulation import simulator
from spiel_cr.games.simulation.simulator import Positions, Simulator


class NetworkDecisions(NamedTuple):
    """Input and output of a player's network at m decisions.

    Attributes:
      seen: Input of the network, float32 or bool [m, F], or int32 [m].
      legal: Mask of legal actions, numbered as in OpenSpiel, bool [m, A].
      log_policy: Log probabilities, float32 [m, A]; very low at illegal actions.
    """

    seen: np.ndarray
    legal: np.ndarray
    log_policy: np.ndarray


# Function that returns the policy at some decisions of one player, from the positions
# of a simulator, the indices of the decisions among them, int64 [m], and the player.
Actor: TypeAlias = Callable[[Positions, np.ndarray, int], NetworkDecisions]


class Episodes(NamedTuple):
    """The n decisions of some matches, depth by depth.

    Attributes:
      player: Player who acted, int8 [n].
      match: Number of the match, int64 [n].
      answer: Input and output of the player's network.
      action: Action that was played, numbered as in OpenSpiel, int32 [n].
      depth_start: First decision of each depth, int64 [D + 1]; decisions of depth d are
        `depth_start[d]:depth_start[d + 1]`, at most one of each match.
      utility: Player 0's utility, float64 [matches].
      joint: Information of both players, [n, ...].
    """

    player: np.ndarray
    match: np.ndarray
    answer: NetworkDecisions
    action: np.ndarray
    depth_start: np.ndarray
    utility: np.ndarray
    joint: np.ndarray


# Players, matches, answers, actions and joint information of one depth.
_Depth: TypeAlias = tuple[
    np.ndarray, np.ndarray, NetworkDecisions, np.ndarray, np.ndarray
]


def play(
    source: Simulator,
    actor: Actor,
    count: int,
    random: np.random.Generator,
    *,
    joint: Callable[[Positions, np.ndarray], np.ndarray],
    stratified: bool = False,
) -> Episodes:
    """Play matches to their ends.

    Args:
      source: Simulator of the game.
      actor: Policy of both players.
      count: Number of matches.
      random: Random number generator for chance and the players, which is advanced.
      joint: Function that returns the information of both players at m decisions,
        [m, ...].
      stratified: True to spread the players' random numbers evenly at each infoset, see
        `draws.points`.

    Raises:
      ValueError: If no player decides anything in the game.
    """
    depths: list[_Depth] = []

    def act(positions: Positions, live: np.ndarray, match: np.ndarray) -> np.ndarray:
        player = positions.player[live]
        answer = _ask(positions, live, player, actor)
        action = _draw(answer, positions.key[live], random, stratified)
        joint_rows = joint(positions, live)
        depths.append((player, match, answer, action.astype(np.int32), joint_rows))
        # Simulators number the legal actions in ascending order.
        before = np.arange(answer.legal.shape[1]) < action[:, None]
        return np.count_nonzero(answer.legal & before, axis=1)

    utility = simulator.play(source, count, random, act)
    if not depths:
        raise ValueError(
            f"{source.game}: the game has no decisions; choose a game with decisions"
        )
    return _episodes(depths, utility)


def _episodes(depths: list[_Depth], utility: np.ndarray) -> Episodes:
    """Return all decisions, depth by depth.

    Args:
      depths: Decisions of each depth.
      utility: Player 0's utility, float64 [matches].
    """
    player, match, answers, action, joint = zip(*depths, strict=True)
    sizes = [len(one) for one in action]
    return Episodes(
        np.concatenate(player),
        np.concatenate(match),
        NetworkDecisions(*map(np.concatenate, zip(*answers, strict=True))),
        np.concatenate(action),
        np.cumsum([0, *sizes]),
        utility,
        np.concatenate(joint),
    )


def policy_of(legal: np.ndarray, log_policy: np.ndarray) -> np.ndarray:
    """Return probabilities up to rounding, float64 [n, A].

    Args:
      legal: Mask of legal actions as in `NetworkDecisions`, bool [n, A].
      log_policy: Log probabilities as in `NetworkDecisions`, float32 [n, A].
    """
    return np.where(legal, np.exp(log_policy, dtype=np.float64), 0)


def advantages(
    episodes: Episodes, values: np.ndarray, trace: float, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return advantages of all actions, from a critic with joint information.

    The value of an action is the critic's estimate. For the action that was played, the
    error of the critic, divided by the probability of playing the action, is added.
    Estimates are thus a baseline, as in VR-MCCFR (Schmid et al. 2019, eq. 8), and do
    not bias the result if `trace` is 1. The target of the critic is the utility at the
    end of the match. Otherwise it is the mean of the critic's estimates at the next
    decision, of either player, plus `trace` times the critic's error there: expected
    SARSA(lambda).

    Args:
      episodes: Matches of both players.
      values: Critic's estimates of player 0's utility after each action, float [n, A].
      trace: Parameter lambda.
      scale: Scale of utilities; estimates are in this unit.

    Returns:
      Advantages of all actions for the player who decides, float64 [n, A]; targets of
      the critic for the actions that were played, player 0's utility, float64 [n].
    """
    legal, rows = episodes.answer.legal, np.arange(len(episodes.action))
    policy = policy_of(legal, episodes.answer.log_policy)
    values = np.where(legal, values, 0).astype(np.float64)
    mean, predicted = (policy * values).sum(axis=1), values[rows, episodes.action]
    target, future = np.zeros(len(rows)), episodes.utility / scale
    ends = episodes.depth_start.tolist()
    for begin, end in zip(ends[-2::-1], ends[:0:-1], strict=True):
        match = episodes.match[begin:end]
        target[begin:end] = future[match]
        future[match] = mean[begin:end] + trace * (future[match] - predicted[begin:end])
    gain = values - mean[:, None]
    gain[rows, episodes.action] += (target - predicted) / policy[rows, episodes.action]
    sign = np.where(episodes.player == 0, 1.0, -1.0)[:, None]
    return np.where(legal, sign * gain, 0), target


def _ask(
    positions: Positions, live: np.ndarray, player: np.ndarray, actor: Actor
) -> NetworkDecisions:
    """Return the answers at all decisions, in their order."""
    parts, places = [], []
    for acts in range(2):
        acting = np.flatnonzero(player == acts)
        if len(acting):
            parts.append(actor(positions, live[acting], acts))
            places.append(acting)
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate(places), kind="stable")
    return NetworkDecisions(
        *(np.concatenate(pair)[order] for pair in zip(*parts, strict=True))
    )


def _draw(
    answer: NetworkDecisions,
    key: np.ndarray,
    random: np.random.Generator,
    stratified: bool,
) -> np.ndarray:
    """Return a sampled action for each decision, int64 [m].

    Args:
      answer: Policies at the decisions.
      key: Keys of the decisions' infosets, uint64 [m, 2].
      random: Random number generator, which is advanced.
      stratified: True to spread random numbers evenly at each infoset.
    """
    points = draws.points(draws.labels(key), random, stratified=stratified)
    return choose(policy_of(answer.legal, answer.log_policy), points)
