"""Play on OpenSpiel states: policies asked once, moves drawn, rollouts to the end.

The loop that plays everybody but a searching responder stands here once, for ISMCTS-BR,
for local best response and for the episodes of learning.
"""

import bisect
import itertools
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.game_checks import chance_outcomes
from spiel_cr.policies.conversions import check_probabilities

# Information states whose answers are remembered, of one player.
REMEMBERED = 200_000


class Answer(NamedTuple):
    """A policy at one information state.

    Attributes:
      actions: those that it may take, of positive probability.
      probabilities: of each; sum to 1.
      ends: cumulative probabilities, for drawing: u in [0, 1) draws the first action
        whose end is above u. The last one is 1.
      by_action: the probabilities again; not to be changed.
    """

    actions: list[int]
    probabilities: list[float]
    ends: list[float]
    by_action: dict[int, float]


def by_legal_actions(policy: openspiel_policy.Policy) -> bool:
    """Whether a policy depends on the legal actions alone, as uniform ones and chumps.

    Args:
      policy: any; one of ours says so by an attribute of this name.
    """
    uniform = type(policy) is openspiel_policy.UniformRandomPolicy
    return bool(getattr(policy, "by_legal_actions", uniform))


class Answers:
    """A policy asked at states, once for each information state of its player.

    Policies that depend on the legal actions alone (uniform ones and chumps) are known
    by these, without making a string of the state.
    """

    def __init__(self, policy: openspiel_policy.Policy, player: int) -> None:
        """Asks nothing yet.

        Args:
          policy: any that depends on the player's information states only.
          player: whose policy.
        """
        self._policy = policy
        self._player = player
        self._by_legal_actions = by_legal_actions(policy)
        self._known: dict[str | tuple[int, ...], Answer] = {}

    def __call__(self, state: pyspiel.State) -> Answer:
        """The policy where its player is to act."""
        if self._by_legal_actions:
            key: str | tuple[int, ...] = tuple(state.legal_actions())
        else:
            key = state.information_state_string(self._player)
        answer = self._known.get(key)
        if answer is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            answer = self._known[key] = self._ask(state)
        return answer

    def draw(self, state: pyspiel.State, number: float) -> int:
        """The action that a number in [0, 1) draws."""
        actions, _, ends, _ = self(state)
        return actions[bisect.bisect_right(ends, number)]

    def _ask(self, state: pyspiel.State) -> Answer:
        if type(self._policy) is openspiel_policy.UniformRandomPolicy:
            # Where legal actions are hardly ever the same, this is asked often.
            legal = state.legal_actions()
            count = len(legal)
            same = [1 / count] * count
            ends = [(place + 1) / count for place in range(count)]
            return Answer(legal, same, ends, dict.fromkeys(legal, 1 / count))
        given = self._policy.action_probabilities(state, self._player)
        legal = state.legal_actions()
        shares = normalised(
            [given.get(action, 0.0) for action in legal],
            f"opponent: its policy at {state.information_state_string(self._player)!r}",
            legal,
        )
        chosen = [(a, p) for a, p in zip(legal, shares, strict=True) if p > 0]
        probabilities = [p for _, p in chosen]
        ends = list(itertools.accumulate(probabilities))
        # Numbers drawn are below 1, whatever the sum was rounded to.
        ends[-1] = 1.0
        return Answer([a for a, _ in chosen], probabilities, ends, dict(chosen))


def normalised(
    probabilities: Sequence[float], whose: str, actions: list[int]
) -> list[float]:
    """Probabilities divided by their sum.

    Args:
      probabilities: of the actions.
      whose: they are, for the error.
      actions: OpenSpiel's, for the error.

    Raises:
      ValueError: see `conversions.check_probabilities`.
    """
    shares = check_probabilities(probabilities, whose, actions)
    return (shares / shares.sum()).tolist()


def moves(state: pyspiel.State, answers: Answers) -> dict[int, float]:
    """Possible actions and their probabilities where chance or a known policy acts.

    Not to be changed.
    """
    if state.is_chance_node():
        return dict(chance_outcomes(state))
    return answers(state).by_action


def first_decision(game: pyspiel.Game) -> pyspiel.State:
    """The state after the first possible outcomes of chance, as many as come first."""
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(chance_outcomes(state)[0][0])
    return state


def play_on(
    state: pyspiel.State, answers: Mapping[int, Answers], number: Callable[[], float]
) -> int:
    """Plays chance and some players until another player is to act, or to the end.

    Args:
      state: changed.
      answers: policies by player; who has none stops the play.
      number: gives uniform numbers in [0, 1), one for each move.

    Returns:
      The player to act, or `TERMINAL`.
    """
    while True:
        mover: int = state.current_player()
        if mover >= 0:
            if mover not in answers:
                return mover
            actions, _, ends, _ = answers[mover](state)
            state.apply_action(actions[bisect.bisect_right(ends, number())])
        elif mover == TERMINAL:
            return mover
        else:
            # Not checked: in games of cards that would take as long as the drawing.
            state.apply_action(draw_outcome(state.chance_outcomes(), number()))


def uniform_numbers(random: np.random.Generator) -> Callable[[], float]:
    """Uniform numbers in [0, 1), one per call, drawn in blocks, which is faster.

    Args:
      random: consumed, a block at a time.
    """

    blocks = (random.random(1024).tolist() for _ in itertools.count())
    return itertools.chain.from_iterable(blocks).__next__


def draw_outcome(outcomes: Sequence[tuple[int, float]], number: float) -> int:
    """The action of (action, probability) that a number in [0, 1) draws.

    Never one of probability zero.
    """
    for action, probability in outcomes:
        number -= probability
        if number < 0:
            return action
    # The probabilities may round to less than 1.
    return max(outcomes, key=lambda outcome: outcome[1])[0]


def generator_at(seed: int, state: pyspiel.State, player: int) -> np.random.Generator:
    """The generator of one decision, the same whenever it is met."""
    key = state.information_state_string(player).encode()
    return np.random.default_rng([seed, player, 0, zlib.crc32(key)])
