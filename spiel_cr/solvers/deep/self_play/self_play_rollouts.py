"""Matches of self-play, side by side, and how good each decision in them was."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from spiel_cr.common import draws
from spiel_cr.common.draws import choose
from spiel_cr.games.stepping import simulator
from spiel_cr.games.stepping.simulator import Positions, Simulator


class Answer(NamedTuple):
    """What a player's network sees and says at m decisions.

    Attributes:
      seen: what the network is asked about: float32 [m, F], or int32 [m].
      legal: bool [m, A], by OpenSpiel's action.
      log_policy: float32 [m, A], very low where not legal.
      value: float32 [m], what the acting player gets, in the unit of values.
    """

    seen: np.ndarray
    legal: np.ndarray
    log_policy: np.ndarray
    value: np.ndarray


class Actor(Protocol):
    """Says how to play and what that is worth."""

    def __call__(self, positions: Positions, at: np.ndarray, player: int) -> Answer:
        """Asks at some decisions of one player.

        Args:
          positions: of a source.
          at: int64 [m], where among them.
          player: who acts at all of these.
        """


class Episodes(NamedTuple):
    """The n decisions of some matches, those of a depth one after another.

    Decisions of players who do not learn are no part of them.

    Attributes:
      player: int8 [n], who acted.
      match: int64 [n], in which match.
      answer: what was seen and said.
      action: int32 [n], OpenSpiel's action that was taken.
      depth_start: int64 [D + 1], decisions of depth d are
        `depth_start[d]:depth_start[d + 1]`; no match has two of them.
      utility: float64 [matches], player 0's.
      joint: rows [n, ...] of what both players knew; None: nobody asked.
    """

    player: np.ndarray
    match: np.ndarray
    answer: Answer
    action: np.ndarray
    depth_start: np.ndarray
    utility: np.ndarray
    joint: np.ndarray | None = None


def play(
    source: Simulator,
    actor: Actor,
    count: int,
    random: np.random.Generator,
    *,
    stratified: bool = False,
    joint: Callable[[Positions, np.ndarray], np.ndarray] | None = None,
) -> Episodes:
    """Plays matches to their ends.

    Args:
      source: of the game.
      actor: for both players.
      count: how many matches.
      random: advanced, by chance and by the players' draws.
      stratified: the players' draws at one infoset are spread evenly, see
        `draws.points`.
      joint: gives rows of what both players know, see `Knowledge.joint`.

    Raises:
      ValueError: nobody decides anything in the game.
    """
    depths: list[tuple[np.ndarray, np.ndarray, Answer, np.ndarray]] = []
    known: list[np.ndarray] = []

    def act(positions: Positions, live: np.ndarray, match: np.ndarray) -> np.ndarray:
        player = positions.player[live]
        answer = _ask(positions, live, player, actor)
        action = _draw(answer, positions.key[live], random, stratified)
        depths.append((player, match, answer, action.astype(np.int32)))
        if joint is not None:
            known.append(joint(positions, live))
        # Simulators count the legal actions, in ascending order.
        before = np.arange(answer.legal.shape[1]) < action[:, None]
        return np.count_nonzero(answer.legal & before, axis=1)

    utility = simulator.play(source, count, random, act)
    if not depths:
        raise ValueError(
            f"{source.game}: nobody decides anything in it; choose a game with "
            f"decisions"
        )
    episodes = _episodes(depths, utility)
    return episodes._replace(joint=np.concatenate(known) if known else None)


def _episodes(
    depths: list[tuple[np.ndarray, np.ndarray, Answer, np.ndarray]], utility: np.ndarray
) -> Episodes:
    """All decisions one after another.

    Args:
      depths: of each depth players, matches, answers and actions.
      utility: float64 [matches], player 0's.
    """
    player, match, answers, action = zip(*depths, strict=True)
    sizes = [len(one) for one in action]
    return Episodes(
        np.concatenate(player),
        np.concatenate(match),
        Answer(*(np.concatenate(parts) for parts in zip(*answers, strict=True))),
        np.concatenate(action),
        np.cumsum([0, *sizes]),
        utility,
    )


def policy_of(answer: Answer) -> np.ndarray:
    """float64 [n, A], what was played."""
    return np.where(answer.legal, np.exp(answer.log_policy, dtype=np.float64), 0)


def joint_advantages(
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
    policy, rows = policy_of(episodes.answer), np.arange(len(episodes.action))
    values = np.where(episodes.answer.legal, values, 0).astype(np.float64)
    mean, said = (policy * values).sum(axis=1), values[rows, episodes.action]
    target, worth = np.zeros(len(rows)), episodes.utility / scale
    ends = episodes.depth_start.tolist()
    for begin, end in zip(ends[-2::-1], ends[:0:-1], strict=True):
        match = episodes.match[begin:end]
        target[begin:end] = worth[match]
        worth[match] = mean[begin:end] + trace * (worth[match] - said[begin:end])
    gain = values - mean[:, None]
    gain[rows, episodes.action] += (target - said) / policy[rows, episodes.action]
    sign = np.where(episodes.player == 0, 1.0, -1.0)[:, None]
    return np.where(episodes.answer.legal, sign * gain, 0), target


def advantages(
    episodes: Episodes, trace: float, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Generalised advantage estimates (Schulman et al. 2016, eq. 16), undiscounted.

    Each player has a chain of its own decisions in a match; nothing is paid before the
    end. What the other player and chance do in between is part of the dynamics, so it
    does not matter how often somebody acts in a row.

    Args:
      episodes: of both players.
      trace: lambda.
      scale: of utilities; values are in these units.

    Returns:
      float64 [n], advantages of the actions taken; float64 [n], what values are to be:
      advantage and value together.
    """
    value = episodes.answer.value.astype(np.float64)
    advantage = np.zeros(len(value))
    # Of each match and player: the value of what comes next, and its advantage.
    worth = np.stack([episodes.utility, -episodes.utility], axis=1) / scale
    after = np.zeros_like(worth)
    ends = episodes.depth_start.tolist()
    for begin, end in zip(ends[-2::-1], ends[:0:-1], strict=True):
        own = episodes.match[begin:end], episodes.player[begin:end]
        now = value[begin:end]
        found = worth[own] - now + trace * after[own]
        advantage[begin:end] = found
        worth[own], after[own] = now, found
    return advantage, advantage + value


def _ask(
    positions: Positions, live: np.ndarray, player: np.ndarray, actor: Actor
) -> Answer:
    """The answers at all decisions, in their order."""
    parts, places = [], []
    for acts in range(2):
        mine = np.flatnonzero(player == acts)
        if len(mine):
            parts.append(actor(positions, live[mine], acts))
            places.append(mine)
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate(places), kind="stable")
    return Answer(*(np.concatenate(pair)[order] for pair in zip(*parts, strict=True)))


def _draw(
    answer: Answer, key: np.ndarray, random: np.random.Generator, stratified: bool
) -> np.ndarray:
    """int64 [m], an action of each decision, by keys, uint64 [m, 2]."""
    points = draws.points(draws.labels(key), random, stratified=stratified)
    return choose(policy_of(answer), points)
