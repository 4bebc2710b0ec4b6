"""A walked game is asked again, at a sample of its terminals: is it still the same?

A game that draws its payoffs while it is walked is another game in each walk, and an
equilibrium of one is none of the other. Batched rules may differ from the states
that bots are asked at.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.histories import CHANCE, TERMINAL, Histories
from spiel_cr.games.opening import game_checks
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.opening.origins import is_python

# Terminals that are asked again.
_SAMPLE = 6


def check(
    opened: Opened, walked: Histories, strings: Sequence[Sequence[str]] | None
) -> None:
    """Plays to some terminals again, by states of the game as it is loaded anew.

    Args:
      opened: the game.
      walked: all histories as a walk gives them.
      strings: each player's information-state string of each label in `walked.infoset`,
        asked again of games written in Python only, since the first string of a new
        game in C++ is slow; None: the game was walked by its batched rules, which
        give none.

    Raises:
      InvalidGameError: something is not as it was; names the history.
    """
    over = np.flatnonzero(walked.player == TERMINAL)
    # Those that were met last come first, as what is drawn depends on the order.
    chosen = over[np.random.default_rng(0).integers(len(over), size=_SAMPLE)]
    for terminal in -np.unique(-chosen):
        look = _Look(opened.game, strings, opened.again.new_initial_state())
        look.follow(_path(walked, int(terminal)))


class _Step(NamedTuple):
    """What a walk said of a history on the way to a terminal.

    Attributes:
      player, label, utility: as in `Histories`, `label` as `infoset`.
      action: that leads to the next step; -1: there is none.
      probability: Probability of the outcome at a chance node; otherwise 1.
    """

    player: int
    label: int
    utility: float
    action: int
    probability: float


def _path(walked: Histories, terminal: int) -> list[_Step]:
    """The steps from the root to a terminal."""
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
        steps.append(
            _Step(player, label, float(walked.utility[node]), action, probability)
        )
        below = node
    return steps[::-1]


@dataclasses.dataclass
class _Look:
    """One terminal, played to again.

    Attributes:
      game: for messages.
      strings: as of `check`.
      state: where the play is.
    """

    game: pyspiel.Game
    strings: Sequence[Sequence[str]] | None
    state: pyspiel.State

    def follow(self, path: list[_Step]) -> None:
        """Plays to a terminal and compares all on the way."""
        state = self.state
        for step in path:
            if state.current_player() != step.player:
                raise self._differs(
                    "current_player", state.current_player(), step.player
                )
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

    def _compare_chance(self, step: _Step) -> None:
        probability = dict(game_checks.chance_outcomes(self.state)).get(
            step.action, 0.0
        )
        if abs(probability - step.probability) > game_checks.CHANCE_TOLERANCE:
            raise self._differs(
                f"the probability of outcome {step.action}",
                probability,
                step.probability,
            )

    def _compare_decision(self, step: _Step) -> None:
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
                "spiel_cr.games.tree.batched_check, or compile by states "
                "(batched_rules=False)",
            )
        return game_checks.invalid(
            self.state,
            f"{property_name} is {now!r} now and was {was!r} before",
            "a game must be the same each time that it is walked; draw nothing outside "
            "of chance nodes, and leave out wrappers such as add_noise",
        )
