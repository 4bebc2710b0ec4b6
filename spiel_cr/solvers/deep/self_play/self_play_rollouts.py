"""Matches of self-play, side by side, and how good each decision in them was."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from spiel_cr.common import draws
from spiel_cr.common.draws import choose
from spiel_cr.games.simulation import simulator
from spiel_cr.games.simulation.simulator import Positions, Simulator


class Answer(NamedTuple):
    """What a player's network sees and says at m decisions.

    Attributes:
      seen: what the network is asked about: float32 or bool [m, F], or int32 [m].
      legal: bool [m, A], by OpenSpiel's action.
      log_policy: float32 [m, A], very low where not legal.
    """

    seen: np.ndarray
    legal: np.ndarray
    log_policy: np.ndarray


class Actor(Protocol):
    """Says how to play."""

    def __call__(self, positions: Positions, at: np.ndarray, player: int) -> Answer:
        """Asks at some decisions of one player.

        Args:
          positions: of a source.
          at: int64 [m], where among them.
          player: who acts at all of these.
        """


class Episodes(NamedTuple):
    """The n decisions of some matches, those of a depth one after another.

    Attributes:
      player: int8 [n], who acted.
      match: int64 [n], in which match.
      answer: what was seen and said.
      action: int32 [n], OpenSpiel's action that was taken.
      depth_start: int64 [D + 1], decisions of depth d are
        `depth_start[d]:depth_start[d + 1]`; no match has two of them.
      utility: float64 [matches], player 0's.
      joint: [n, ...], what both players knew.
    """

    player: np.ndarray
    match: np.ndarray
    answer: Answer
    action: np.ndarray
    depth_start: np.ndarray
    utility: np.ndarray
    joint: np.ndarray


# Players, matches, answers, actions, and what both knew, at decisions of one depth.
_Depth: TypeAlias = tuple[np.ndarray, np.ndarray, Answer, np.ndarray, np.ndarray]


def play(
    source: Simulator,
    actor: Actor,
    count: int,
    random: np.random.Generator,
    *,
    joint: Callable[[Positions, np.ndarray], np.ndarray],
    stratified: bool = False,
) -> Episodes:
    """Plays matches to their ends.

    Args:
      source: of the game.
      actor: for both players.
      count: how many matches.
      random: advanced, by chance and by the players' draws.
      joint: gives [m, ...], what both players know at m decisions.
      stratified: the players' draws at one infoset are spread evenly, see
        `draws.points`.

    Raises:
      ValueError: nobody decides anything in the game.
    """
    depths: list[_Depth] = []

    def act(positions: Positions, live: np.ndarray, match: np.ndarray) -> np.ndarray:
        player = positions.player[live]
        answer = _ask(positions, live, player, actor)
        action = _draw(answer, positions.key[live], random, stratified)
        joint_rows = joint(positions, live)
        depths.append((player, match, answer, action.astype(np.int32), joint_rows))
        # Simulators count the legal actions, in ascending order.
        before = np.arange(answer.legal.shape[1]) < action[:, None]
        return np.count_nonzero(answer.legal & before, axis=1)

    utility = simulator.play(source, count, random, act)
    if not depths:
        raise ValueError(
            f"{source.game}: nobody decides anything in it; choose a game with "
            f"decisions"
        )
    return _episodes(depths, utility)


def _episodes(depths: list[_Depth], utility: np.ndarray) -> Episodes:
    """All decisions one after another.

    Args:
      depths: of each depth.
      utility: float64 [matches], player 0's.
    """
    player, match, answers, action, joint = zip(*depths, strict=True)
    sizes = [len(one) for one in action]
    return Episodes(
        np.concatenate(player),
        np.concatenate(match),
        Answer(*(np.concatenate(parts) for parts in zip(*answers, strict=True))),
        np.concatenate(action),
        np.cumsum([0, *sizes]),
        utility,
        np.concatenate(joint),
    )


def policy_of(legal: np.ndarray, log_policy: np.ndarray) -> np.ndarray:
    """float64 [n, A], probabilities, to rounding; see `Answer`."""
    return np.where(legal, np.exp(log_policy, dtype=np.float64), 0)


def advantages(
    episodes: Episodes, values: np.ndarray, trace: float, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages of all actions, by a critic that knows what both players know.

    An action is worth what the critic says, and the one that was taken also what the
    critic was wrong by, over the probability of taking it. So values are a baseline,
    as in VR-MCCFR (Schmid et al. 2019, eq. 8), and do not bias it where `trace` is 1.
    What the critic is to say is the utility at the end, else the mean of its values at
    the next decision, whoever decides, and `trace` of its error there: expected
    SARSA(lambda).

    Args:
      episodes: of both players.
      values: float [n, A], player 0's of each action, by the critic.
      trace: lambda.
      scale: of utilities; values are in these units.

    Returns:
      float64 [n, A], advantages of all actions to the player who decides; float64 [n],
      what the critic is to say of the action that was taken, player 0's.
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
) -> Answer:
    """The answers at all decisions, in their order."""
    parts, places = [], []
    for acts in range(2):
        acting = np.flatnonzero(player == acts)
        if len(acting):
            parts.append(actor(positions, live[acting], acts))
            places.append(acting)
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate(places), kind="stable")
    return Answer(*(np.concatenate(pair)[order] for pair in zip(*parts, strict=True)))


def _draw(
    answer: Answer, key: np.ndarray, random: np.random.Generator, stratified: bool
) -> np.ndarray:
    """int64 [m], an action of each decision, by keys, uint64 [m, 2]."""
    points = draws.points(draws.labels(key), random, stratified=stratified)
    return choose(policy_of(answer.legal, answer.log_policy), points)
