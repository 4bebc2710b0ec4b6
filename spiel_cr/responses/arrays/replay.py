"""Histories of a game by its rules on arrays, played again side by side."""

from typing import NamedTuple, Protocol

import numpy as np

from spiel_cr.compilation.tree import CHANCE, TERMINAL
from spiel_cr.compilation.vectorised import VectorisedGame

# In `Histories.mover`, after the end of a history.
NOBODY = -100


class OddsOf(Protocol):
    """A policy that is known at many states of a game's rules at once."""

    def __call__(
        self, states: np.ndarray, player: int, legal: np.ndarray
    ) -> np.ndarray:
        """float64 [n, A], probabilities of the legal actions, bool [n, A]."""


def uniform_odds(states: np.ndarray, player: int, legal: np.ndarray) -> np.ndarray:
    """All legal actions alike; an `OddsOf`."""
    del states, player
    found: np.ndarray = legal / legal.sum(axis=1, keepdims=True)
    return found


class View(NamedTuple):
    """What the responder knows of a match.

    Attributes:
      seen: integers [decisions, k], its information states at its decisions.
      done: its actions there, one less.
    """

    seen: np.ndarray
    done: list[int]


class Histories(NamedTuple):
    """n histories with the same view.

    Attributes:
      states: of the rules, at their ends, [n, ...].
      action: int32 [n, T], all moves, those of chance and of both players.
      mover: int32 [n, T], who made them; `NOBODY` after the end.
      odds: float64 [n, T], the probabilities of hidden moves; 1 elsewhere.
      length: int64 [n], moves.
    """

    states: np.ndarray
    action: np.ndarray
    mover: np.ndarray
    odds: np.ndarray
    length: np.ndarray

    def take(self, places: np.ndarray) -> "Histories":
        """Some of them; a copy."""
        return Histories(*(part[places] for part in self))

    def moved(
        self,
        rules: VectorisedGame,
        action: np.ndarray,
        mover: np.ndarray,
        odds: np.ndarray,
    ) -> "Histories":
        """These histories, which are changed, one move further."""
        rows = np.arange(len(action))
        self.action[rows, self.length] = action
        self.mover[rows, self.length] = mover
        self.odds[rows, self.length] = odds
        return self._replace(
            states=rules.child(self.states, action), length=self.length + 1
        )


def joined(parts: list[Histories]) -> Histories:
    """All of several."""
    return Histories(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def root(rules: VectorisedGame, longest: int) -> Histories:
    """The one history without moves; `longest` is the most moves of any."""
    return Histories(
        rules.new_initial_states(),
        np.zeros((1, longest), np.int32),
        np.full((1, longest), NOBODY, np.int32),
        np.ones((1, longest)),
        np.zeros(1, np.int64),
    )


def hidden_odds(
    rules: VectorisedGame, states: np.ndarray, mover: np.ndarray, odds_of: OddsOf
) -> np.ndarray:
    """float64 [n, A], where chance or the opponent acts.

    Args:
      rules: of the game.
      states: some.
      mover: int [n], `CHANCE` or the opponent.
      odds_of: the opponent's policy.
    """
    found = np.zeros((len(states), 0))
    for who in np.unique(mover).tolist():
        at = np.flatnonzero(mover == who)
        if who == CHANCE:
            odds = rules.chance_probabilities(states[at])
        else:
            odds = odds_of(states[at], who, rules.legal_actions_mask(states[at]))
        if not found.shape[1]:
            found = np.zeros((len(states), odds.shape[1]))
        found[at] = odds
    return found


def replayed(
    rules: VectorisedGame,
    given: Histories,
    view: View,
    player: int,
    odds_of: OddsOf,
) -> tuple[np.ndarray, Histories]:
    """Plays the moves of histories, those that may be and that give a view.

    Args:
      rules: of the game.
      given: moves and movers; states and odds are not looked at.
      view: of the player, to its last decision.
      player: whose view.
      odds_of: the opponent's policy.

    Returns:
      int64 [m], which of them can be played with the same movers, and look so at every
      decision of the player; and these histories, with their states and odds.
    """
    left = np.arange(len(given.action))
    states = np.repeat(rules.new_initial_states(), len(left), axis=0)
    odds = np.ones(given.odds.shape)
    decision = np.zeros(len(left), np.int64)
    finished: list[tuple[np.ndarray, np.ndarray]] = []
    for step in range(given.action.shape[1] + 1):
        mover = rules.current_player(states)
        keep = mover != TERMINAL
        over = given.length[left] == step
        if step < len(given.mover.T):
            keep &= over | (mover == given.mover[left, step])
        keep &= ~over | (mover == player)
        mine = np.flatnonzero(keep & (mover == player))
        if len(mine):
            seen = rules.information_state(states[mine], player)
            wanted = view.seen[np.minimum(decision[mine], len(view.seen) - 1)]
            keep[mine] = (seen == wanted).all(axis=1)
            decision[mine] += 1
        hidden = np.flatnonzero(keep & ~over & (mover != player))
        action = np.zeros(len(left), np.int64)
        if step < given.action.shape[1]:
            action = given.action[left, step].astype(np.int64)
        if len(hidden):
            shares = hidden_odds(rules, states[hidden], mover[hidden], odds_of)
            share = shares[np.arange(len(hidden)), action[hidden]]
            odds[left[hidden], step] = share
            keep[hidden] = share > 0
        ended = np.flatnonzero(keep & over)
        if len(ended):
            finished.append((left[ended], states[ended]))
        goes_on = np.flatnonzero(keep & ~over)
        left, decision = left[goes_on], decision[goes_on]
        if not len(left):
            break
        states = rules.child(states[goes_on], action[goes_on])
    if not finished:
        return np.zeros(0, np.int64), given.take(np.zeros(0, np.int64))
    which = np.concatenate([places for places, _ in finished])
    order = np.argsort(which)
    ends = np.concatenate([part for _, part in finished])[order]
    found = given.take(which[order])
    return which[order], found._replace(states=ends, odds=odds[which[order]])
