"""A match looked at afterwards: what the bot could have held, what each move was worth.

Both are of the person's decisions, and exact. The *range* is what the bot could have
held at that time, by chance and by how the bot plays: Bayes' rule with the bot's own
probabilities, no matter what the person does. The *values* are what the person can
expect after a move who plays a best response from there on, once against the bot, where
its whole strategy is known, and once against a solution of the game. No model of the
person is needed for any of it.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common import errors
from spiel_cr.evaluation.aivat import TreeValues
from spiel_cr.evaluation.referee import Match
from spiel_cr.evaluation.traversal import Interview
from spiel_cr.games.histories import moves_along
from spiel_cr.games.tree.compiler import build_tree
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.beliefs import tree_posterior
from spiel_cr.policies.bot_base import Learns
from spiel_cr.solvers.solve import solve

from ..common.infosets import members
from . import families

# What is compiled for a review, though no bot needs it.
MOST_HISTORIES = 400_000
# Seconds for questions to a bot: about the ranges of a match, and about all the rest.
_SECONDS_FOR_RANGE, _SECONDS_FOR_REST = 20.0, 10.0
_SOLVER, _ITERATIONS = "cfr+", 1000
# Histories of an infoset that are looked at one by one; lines of a range.
_MOST_SHOWN, _MOST_LINES = 600, 12

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Strategy:
    """A strategy of the bot's seat.

    Attributes:
      behaviour: float64 [S], action probabilities by logical sequence.
      known: bool [I], the infosets at which it is the bot's.
      values: float64 [S'], of the person's sequences, conditional on their infosets,
        in the person's utility; None: not computed. NaN where the strategy never comes.
    """

    behaviour: np.ndarray
    known: np.ndarray
    values: np.ndarray | None = None


class Reviewer:
    """Looks at matches of one game; keeps what all of them need."""

    def __init__(self, game: GameTree | pyspiel.Game) -> None:
        """Takes the game; compiling and solving is done at the first review.

        Args:
          game: compiled with `observations=True`, or OpenSpiel's.
        """
        self._game = game
        self._refused = ""
        self._tree: GameTree | None = None
        self._nash_conv = 0.0
        self._luck: TreeValues | None = None
        # By the seat of the person.
        self._members: dict[int, dict[str, np.ndarray]] = {}
        self._of_solution: dict[int, _Strategy] = {}

    def review(
        self,
        match: Match,
        person: int,
        bot: pyspiel.Bot,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Json:
        """What a page shows of a match.

        Args:
          match: that is over.
          person: the seat of the person.
          bot: who sat in the other one; it is asked again, and begins a new match.
          stopped: asked now and then; True ends the work early.

        Returns:
          "decisions": of the person, each with "parts" (see `drawing`), "moves" and
          "range"; "notes": sentences on where the figures come from; "aivat": what the
          person got, without luck, where the game is compiled.
        """
        game = self._game.game if isinstance(self._game, GameTree) else self._game
        states = _decisions(game, match, person)
        shown = [_shown(state, match.actions[len(state.history())]) for state in states]
        tree = self._compiled()
        if tree is None:
            return {"decisions": shown, "notes": [self._refused]}
        if person not in self._members:
            self._members[person] = members(tree, person)
        keys = [state.information_state_string(person) for state in states]
        at = [self._members[person][key] for key in keys]
        of_bot = self._ask(tree, bot, at, stopped)
        of_solution = self._solved(tree, person)
        for_range = of_bot if of_bot.known.any() else of_solution
        for decision, state, histories in zip(shown, states, at, strict=True):
            if stopped():
                break
            infoset = int(tree.histories.infoset[histories[0]])
            start = int(tree.infosets[person].decisions.first_sequence[infoset])
            for name, strategy in (("bot", of_bot), ("solution", of_solution)):
                if strategy.values is not None:
                    for place, move in enumerate(decision["moves"], start):
                        value = float(strategy.values[place])
                        move[name] = None if np.isnan(value) else round(value, 6)
            decision["range"] = _range(
                tree, state, histories, 1 - person, for_range.behaviour
            )
        assert self._luck is not None  # the game was solved
        worth = self._luck.estimate(match) * (-1 if person else 1)
        notes = self._notes(of_bot, bot)
        notes.append(
            f"You got {match.returns[person]:+g}: {worth:+.3f} without the luck of "
            f"chance, and of the bot where it tells its probabilities (AIVAT, by the "
            f"values of the solution)."
        )
        return {"decisions": shown, "notes": notes, "aivat": worth}

    def _compiled(self) -> GameTree | None:
        """The compiled game; None: it cannot be, and `_refused` says why."""
        if self._tree is None and not self._refused:
            why = f"the game has more than {MOST_HISTORIES:,} histories"
            try:
                tree = self._game
                if not isinstance(tree, GameTree):
                    tree = build_tree(
                        tree, observations=True, max_histories=MOST_HISTORIES
                    )
                if len(tree.histories) <= MOST_HISTORIES:
                    self._tree = tree
            except errors.ImperfectRecallError:
                why = "the game's players forget something"
            except errors.InvalidGameError as error:
                why = str(error)
            except (errors.TooManyHistoriesError, errors.GameTooLargeError):
                pass
            if self._tree is None:
                self._refused = f"There are no ranges and no exact values: {why}."
        return self._tree

    def _ask(
        self,
        tree: GameTree,
        bot: pyspiel.Bot,
        at: list[np.ndarray],
        stopped: Callable[[], bool],
    ) -> _Strategy:
        """The bot's strategy where the ranges need it, and elsewhere if time allows."""
        player = bot.player_id()
        infosets = tree.infosets[player]
        decisions = infosets.decisions
        behaviour = conversions.uniform_behaviour(decisions)
        known = np.zeros(len(infosets), bool)
        if not bot.provides_policy():
            return _Strategy(behaviour, known)
        # What a bot that learns is asked here must not teach it.
        memory = bot.memory if isinstance(bot, Learns) else None
        bot.restart()
        levels = decisions.levels()
        needed = _on_the_way(tree, player, at)
        first = sorted(needed, key=lambda infoset: (levels[infoset], infoset))
        rest = [int(i) for i in np.argsort(levels, kind="stable") if i not in needed]
        interview = Interview(bot)
        for wanted, seconds in ((first, _SECONDS_FOR_RANGE), (rest, _SECONDS_FOR_REST)):
            begun, done = time.perf_counter(), 0
            for infoset in wanted:
                spent = time.perf_counter() - begun
                # The first questions tell whether there is time for all.
                late = done >= 3 and spent / done * len(wanted) > seconds
                if late or spent > seconds or stopped():
                    break
                state = tree.state_at(int(infosets.history[infoset]))
                start = int(decisions.first_sequence[infoset])
                answer = interview.ask(state)
                behaviour[start : start + len(answer)] = answer
                known[infoset] = True
                done += 1
            if done < len(wanted):
                break
        if isinstance(bot, Learns):
            bot.remember(memory)
        if not known[first].all():
            known[:] = False
        values = _values(tree, player, behaviour) if known.all() else None
        return _Strategy(behaviour, known, values)

    def _solved(self, tree: GameTree, person: int) -> _Strategy:
        """The bot's part of a solution, and what moves are worth against it."""
        if not self._of_solution:
            result = solve(tree, _SOLVER, _ITERATIONS)
            self._nash_conv = result.nash_conv()
            behaviours = result.laid_out()[1]
            values = conversions.history_values(tree, behaviours)
            self._luck = TreeValues(tree, values)
            for player, behaviour in enumerate(behaviours):
                known = np.ones(len(tree.infosets[player]), bool)
                values = _values(tree, player, behaviour)
                self._of_solution[1 - player] = _Strategy(behaviour, known, values)
        return self._of_solution[person]

    def _notes(self, of_bot: _Strategy, bot: pyspiel.Bot) -> list[str]:
        """Where the figures come from."""
        notes = []
        if not of_bot.known.any():
            notes.append(
                "The bot gives no probabilities, or not in time: the range is that of "
                "a solution of the game."
            )
        else:
            learns = "; it learns, so it may have played a little differently"
            notes.append(
                "The range is what the bot could have held at your turn, by chance and "
                "by its own probabilities, which it was asked for after the match"
                f"{learns if isinstance(bot, Learns) else ''}."
            )
        if of_bot.values is not None:
            notes.append(
                "Against this bot: what you could expect after the move with a best "
                "response from there on."
            )
        elif of_bot.known.any():
            notes.append(
                f"The bot was asked at {int(of_bot.known.sum()):,} of its "
                f"{len(of_bot.known):,} information states; for values against it, it "
                f"would have to be asked at all."
            )
        notes.append(
            f"In a solution: the same against {_SOLVER} after {_ITERATIONS:,} "
            f"iterations (NashConv {self._nash_conv:.1e}). Values are your utility, in "
            f"the game's units."
        )
        return notes


def _decisions(game: pyspiel.Game, match: Match, player: int) -> list[pyspiel.State]:
    """The states of a match at which a player acted."""
    return [
        state.clone()
        for state, _ in moves_along(game, match.actions)
        if state.current_player() == player
    ]


def _shown(state: pyspiel.State, chosen: int) -> Json:
    """A decision as a page shows it, without figures."""
    moves = [
        {"name": families.name_of(state, action), "chosen": action == chosen}
        for action in state.legal_actions()
    ]
    player = state.current_player()
    # The range beside it says what the bot had, so nothing is left face down.
    parts = families.draw(state, player, reveal=True, over=True).parts
    return {"parts": parts, "moves": moves, "range": None}


def _on_the_way(tree: GameTree, player: int, at: list[np.ndarray]) -> set[int]:
    """The player's infosets on the ways to some histories."""
    decisions = tree.infosets[player].decisions
    found: set[int] = set()
    for histories in at:
        sequences = np.unique(tree.histories.sequence[player][histories])
        while len(sequences := sequences[sequences > 0]):
            owners = np.unique(decisions.owner[sequences])
            found.update(owners.tolist())
            sequences = np.unique(decisions.parent[owners])
    return found


def _values(tree: GameTree, player: int, behaviour: np.ndarray) -> np.ndarray:
    """What the opponent's sequences are worth against a strategy, best play below.

    Args:
      tree: the compiled game.
      player: whose strategy is given.
      behaviour: float64 [S].

    Returns:
      float64 [S'], the other player's expected utility after each of its sequences,
      given that its infoset is reached; NaN where the strategy never leads there.
    """
    other = 1 - player
    reach = conversions.reach_from_behaviour(tree.infosets[player].decisions, behaviour)
    best = best_responses.best_response(tree.sequence_form, other, reach)
    pair = (best, behaviour) if other == 0 else (behaviour, best)
    counterfactual, _ = conversions.action_values(tree, pair)
    weights = tree_posterior.weights(tree, other, behaviour)
    own = np.flatnonzero(tree.histories.player == other)
    decisions = tree.infosets[other].decisions
    total = np.bincount(
        tree.histories.infoset[own], weights[own], minlength=len(decisions)
    )
    of = np.where(decisions.owner >= 0, total[decisions.owner], 1.0)
    never = np.full(len(of), np.nan)
    return np.divide(counterfactual[other], of, out=never, where=of > 0)


def _range(
    tree: GameTree,
    state: pyspiel.State,
    histories: np.ndarray,
    player: int,
    behaviour: np.ndarray,
) -> Json | None:
    """What a player could have held at a state of the opponent's.

    Args:
      tree: the compiled game.
      state: where the opponent acts.
      histories: int [n], of the infoset there.
      player: whose range it is.
      behaviour: float64 [S], the player's strategy.

    Returns:
      "lines": each with "holds", "probability", and whether it is "true"; "others":
      the probability of all that is not listed. None: the strategy never leads there.
    """
    weight = tree_posterior.weights(tree, 1 - player, behaviour)[histories]
    if not weight.sum() > 0:
        return None
    weight = weight / weight.sum()
    true = families.draw(state, player).holds
    found: dict[str, float] = {}
    for place in np.argsort(-weight, kind="stable")[:_MOST_SHOWN]:
        if weight[place] > 0:
            held = families.draw(tree.state_at(int(histories[place])), player).holds
            found[held] = found.get(held, 0.0) + float(weight[place])
    best = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    lines: list[Json] = [
        {"holds": held, "probability": round(share, 6), "true": held == true}
        for number, (held, share) in enumerate(best)
        if number < _MOST_LINES or held == true
    ]
    others = 1.0 - sum(line["probability"] for line in lines)
    return {"lines": lines, "others": round(max(others, 0.0), 6)}


def story(state: pyspiel.State, names: tuple[str, str]) -> list[list[str]]:
    """Who did what in a match that is over, chance included.

    Args:
      state: at its end.
      names: what players 0 and 1 are called.

    Returns:
      [who, what] for each move.
    """
    return [
        [names[player] if player >= 0 else "chance", name]
        for player, name in families.moves_of(state)
    ]
