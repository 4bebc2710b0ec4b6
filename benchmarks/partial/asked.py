"""How exploitable a player is at least, by asking it where it matters.

In games with too many infosets to ask at all of them. What is not known of the player
is filled with an equilibrium; a best response to that is where the player loses most if
it loses at all. There it is asked, first where it comes most often, as in a match: at
all of its decisions on the way. Of infosets where it comes about as often those of one
subgame follow each other, since players may keep solutions. The bound does not trust
the filling: a responder gets what it gets against answers that were given, and against
the best replies elsewhere. Where all answers that a best response meets are known, the
player is asked where an equilibrium opponent would lead it: what it says there may
change the best response.
"""

import time
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.eval.players.traversing import Interview, by_subgames
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour

# Infosets are asked together that are met at least this often, beside the first one.
_ABOUT_AS_OFTEN = 0.25


class Bound(NamedTuple):
    """What was found of one seat.

    Attributes:
      gain: what the responder gets for certain, in its own utility, in the game's
        units; the bounds of both seats add up to one of NashConv.
      asked: at how many infosets.
      unasked: share of the player's matches with that responder in which it comes to an
        infoset where it was not asked; 0: `gain` is what that responder gets.
      equilibrium: what a best response gets against the filling.
    """

    gain: float
    asked: int
    unasked: float
    equilibrium: float


class _Asked:
    """What is known of a player in one seat."""

    def __init__(self, tree: CompiledGame, bot: pyspiel.Bot, fill: np.ndarray) -> None:
        """Nothing is known yet; float64 [S], `fill` is taken for it."""
        self.tree, self.player = tree, bot.player_id()
        self._bot, self._interview = bot, Interview(bot)
        self.behaviour = fill.copy()
        self._infosets = tree.infosets[self.player]
        self._decisions = self._infosets.decisions
        self.known = self._decisions.num_actions == 1
        histories = tree.histories
        self._own = np.flatnonzero(histories.player == self.player)
        self._first = self._decisions.first_sequence

    def responder(self) -> np.ndarray:
        """float64 [S'], a pure best response in sequence form."""
        other, form = 1 - self.player, self.tree.form
        reach = reach_from_behaviour(self._decisions, self.behaviour)
        found = best_responses.best_response(form, other, reach)
        return reach_from_behaviour(self.tree.infosets[other].decisions, found)

    def reached(self, responder: np.ndarray) -> np.ndarray:
        """float64 [I], how often each infoset is met."""
        histories, own = self.tree.histories, self._own
        weight = histories.chance[own]
        weight = weight * responder[histories.sequence[1 - self.player][own]]
        met = np.bincount(histories.infoset[own], weight, len(self._decisions))
        reach = reach_from_behaviour(self._decisions, self.behaviour)
        return met * reach[self._decisions.parent]

    def least(self, responder: np.ndarray) -> float:
        """What a responder gets if the player plays best where it was not asked."""
        sign = 1.0 if self.player == 0 else -1.0
        payoffs, decisions = self.tree.form.payoffs, self._decisions
        rows = (payoffs.rows, payoffs.columns)
        gain = sign * payoffs.values * responder[rows[1 - self.player]]
        total = np.bincount(rows[self.player], gain, decisions.num_sequences)
        levels, counts = decisions.levels(), decisions.num_actions
        for level in range(int(levels.max(initial=-1)), -1, -1):
            here = np.flatnonzero(levels == level)
            for width in np.unique(counts[here]):
                some = here[counts[here] == width]
                at = self._first[some][:, None] + np.arange(width)
                played = (self.behaviour[at] * total[at]).sum(axis=1)
                values = np.where(self.known[some], played, total[at].max(axis=1))
                np.add.at(total, decisions.parent[some], values)
        return -float(total[0])

    def ask_on_the_way(self, infoset: int) -> None:
        """Asks at all infosets that lead to one, and there, as in a match."""
        way, owner = [infoset], self._decisions.owner
        while (above := int(owner[self._decisions.parent[way[-1]]])) >= 0:
            way.append(above)
        self._bot.restart()
        histories = self.tree.histories
        history = int(self._infosets.history[infoset])
        on_path = [history]
        while (history := int(histories.parent[history])) >= 0:
            on_path.append(history)
        for at in reversed(on_path):
            if histories.player[at] != self.player:
                continue
            number = int(histories.infoset[at])
            answer = self._interview.ask(self.tree.state_at(at))
            if not self.known[number]:
                place = self._first[number]
                self.behaviour[place : place + len(answer)] = answer
                self.known[number] = True


def bound(
    tree: CompiledGame,
    bot: pyspiel.Bot,
    equilibrium: tuple[np.ndarray, np.ndarray],
    seconds: float,
) -> Bound:
    """Asks a player for some time.

    Args:
      tree: the whole game.
      bot: the player, made for one seat.
      equilibrium: for each player float64 [S], action probabilities.
      seconds: of wall-clock time; the question that is under way is answered.
    """
    begun, player = time.perf_counter(), bot.player_id()
    first, second = (
        reach_from_behaviour(infosets.decisions, behaviour)
        for infosets, behaviour in zip(tree.infosets, equilibrium, strict=True)
    )
    own, other = (first, second) if player == 0 else (second, first)
    asked = _Asked(tree, bot, equilibrium[player])
    trivial = int(asked.known.sum())
    against_it = best_responses.best_response_value(tree.form, 1 - player, own)
    best, unasked, order = -np.inf, 1.0, by_subgames(tree, player)
    while True:
        responder = asked.responder()
        met = np.where(asked.known, 0.0, asked.reached(responder))
        gain = asked.least(responder)
        if gain > best:
            best, unasked = gain, _first_met(asked, met)
        if time.perf_counter() - begun > seconds:
            break
        if not met.any():
            met = np.where(asked.known, 0.0, asked.reached(other))
            if not met.any():
                break
        for infoset in order[met[order] >= _ABOUT_AS_OFTEN * met.max()]:
            if time.perf_counter() - begun > seconds:
                break
            asked.ask_on_the_way(int(infoset))
    return Bound(best, int(asked.known.sum()) - trivial, unasked, against_it)


def _first_met(asked: _Asked, met: np.ndarray) -> float:
    """How often an infoset without an answer is met, none having been met before.

    Args:
      asked: what is known.
      met: float64 [I], how often each infoset without an answer is met.
    """
    decisions = asked.tree.infosets[asked.player].decisions
    above = decisions.owner[decisions.parent]
    after = np.zeros(len(decisions), bool)
    levels = decisions.levels()
    for level in range(1, int(levels.max(initial=0)) + 1):
        here = np.flatnonzero(levels == level)
        after[here] = after[above[here]] | ~asked.known[above[here]]
    return float(met[~after].sum())
