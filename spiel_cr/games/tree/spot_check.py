"""Second visit to a sample of a game's terminal histories, to detect differences.

A game that draws random payoffs while it is enumerated is a different game in each
walk, and an equilibrium of one is not an equilibrium of the other. Batched rules may
differ from the states at which bots are queried.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.histories import CHANCE, TERMINAL, Histories
from spiel_cr.games.opening import game_checks
from spiel_cr.games.opening.origins import is_python, load_again

# Number of terminal histories that are visited again.
_SAMPLE = 6


def check(
    game: pyspiel.Game, walked: Histories, strings: Sequence[Sequence[str]] | None
) -> None:
    """Play to some terminal histories again, with states of a newly loaded game.

    Args:
      game: The game.
      walked: All histories as a walk returns them.
      strings: Information-state strings of the labels in `walked.infoset`, for each
        player. They are compared for games written in Python only, because
        the first string of a new game in C++ is slow. None if batched rules enumerated
        the game.

    Raises:
      InvalidGameError: If anything differs. The message names the history.
    """
    again = load_again(game) or game
    over = np.flatnonzero(walked.player == TERMINAL)
    # In reverse order, because random draws of the game depend on the order of visits.
    chosen = over[np.random.default_rng(0).integers(len(over), size=_SAMPLE)]
    for terminal in -np.unique(-chosen):
        look = _Look(game, strings, again.new_initial_state())
        look.follow(_path(walked, int(terminal)))


class _RecordedStep(NamedTuple):
    """Values that a walk recorded for a history on the path to a terminal history.

    Attributes:
      player, label, utility: Values as in `Histories`, `label` as `infoset`.
      action: Action that leads to the next step; -1 at the last step.
      probability: Probability of the outcome at a chance node; otherwise 1.
    """

    player: int
    label: int
    utility: float
    action: int
    probability: float


def _path(walked: Histories, terminal: int) -> list[_RecordedStep]:
    """Return the steps from the root to a terminal history."""
    nodes = [terminal]
    while nodes[-1]:
        nodes.append(int(walked.parent[nodes[-1]]))
    steps, below = [], -1
    for node in nodes:
        action, probability = -1, 1.0
        if below >= 0:
            action = int(walked.action[below])
            probability = float(walked.chance[below] / walked.chance[node])
        player, label = int(walked.player[node]), int(walked.infoset[node])
        utility = float(walked.utility[node])
        steps.append(_RecordedStep(player, label, utility, action, probability))
        below = node
    return steps[::-1]


@dataclasses.dataclass
class _Look:
    """Comparison along the path to one terminal history.

    Attributes:
      game: OpenSpiel game, for messages.
      strings: Information-state strings; see `check`.
      state: Current state.
    """

    game: pyspiel.Game
    strings: Sequence[Sequence[str]] | None
    state: pyspiel.State

    def follow(self, path: list[_RecordedStep]) -> None:
        """Play to a terminal history and compare all values on the path."""
        state = self.state
        for step in path:
            if (player := state.current_player()) != step.player:
                raise self._differs("current_player", player, step.player)
            if step.player == CHANCE:
                self._compare_chance(step)
            elif step.player != TERMINAL:
                self._compare_decision(step)
            if state.is_terminal() != (step.player == TERMINAL):
                raise game_checks.invalid(
                    state,
                    f"current_player gives {step.player} and is_terminal gives "
                    f"{state.is_terminal()}",
                    f"the player is {TERMINAL} exactly where the game is over; correct "
                    f"one of them",
                )
            if step.action >= 0:
                state.apply_action(step.action)
        utility, was = game_checks.returns(state)[0], path[-1].utility
        if abs(utility - was) > game_checks.sum_tolerance(self.game, utility, was):
            raise self._differs("the utility, histories.utility", utility, was)

    def _compare_chance(self, step: _RecordedStep) -> None:
        outcomes, was = game_checks.chance_outcomes(self.state), step.probability
        now = dict(outcomes).get(step.action, 0.0)
        if abs(now - was) > game_checks.CHANCE_TOLERANCE:
            name = f"the probability of outcome {step.action}"
            raise self._differs(name, now, was)

    def _compare_decision(self, step: _RecordedStep) -> None:
        legal = self.state.legal_actions()
        if step.action not in legal:
            raise self._differs("legal_actions", legal, f"with {step.action} in it")
        if self.strings is not None and is_python(self.game):
            now = self.state.information_state_string(step.player)
            if now != (was := self.strings[step.player][step.label]):
                raise self._differs("information_state_string", now, was)

    def _differs(self, property_name: str, now: Any, was: Any) -> InvalidGameError:
        if self.strings is None:
            return game_checks.invalid(
                self.state,
                f"{property_name} by the batched rules is {was!r}, and {now!r} by the "
                f"states",
                "both must play the same game; compare them with "
                "spiel_cr.games.tree.batched_check, or build the tree by states "
                "(batched_rules=False)",
            )
        return game_checks.invalid(
            self.state,
            f"{property_name} is {now!r} now and was {was!r} before",
            "a game must be the same each time that it is walked; draw nothing outside "
            "of chance nodes, and leave out wrappers such as add_noise",
        )
