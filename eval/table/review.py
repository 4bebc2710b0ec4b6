"""Reviews of matches at the table: the bot's range, and the value of each move.

Both are exact, for each decision of the person. The *range* is the posterior
distribution of the bot's private information, by chance and by the bot's
probabilities. The *values* are the person's expected utility after a move with a best
response from there on: against the bot, if its complete strategy was queried, and
against a solution of the game.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common import errors
from spiel_cr.common.messages import number_text
from spiel_cr.evaluation.aivat import TreeValues
from spiel_cr.evaluation.referee import Match
from spiel_cr.evaluation.traversal import Interview
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.opening.opened import Openable, open_game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import as_tree
from spiel_cr.policies import best_responses, conversions, infoset_reach
from spiel_cr.policies.beliefs import BotBeliefs, tree_posterior
from spiel_cr.policies.beliefs.bot_beliefs import sums_of
from spiel_cr.policies.bot_base import as_learner
from spiel_cr.solvers.solve import solve

from ..common.infosets import members
from . import bot_beliefs, families

# Largest game whose tree is built for a review if no bot needs the tree.
MOST_HISTORIES = 400_000
# Time limits in seconds for queries of a bot: for ranges, and for all other infosets.
_SECONDS_FOR_RANGE, _SECONDS_FOR_REST = 20.0, 10.0
_SOLVER, _ITERATIONS = "cfr+", 1000
# Maximum numbers of histories per range, and of lines per range.
_MOST_SHOWN, _MOST_LINES = 600, 12

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Strategy:
    """A strategy of the bot's seat.

    Attributes:
      behaviour: Probability of each sequence's last action, float64 [S].
      queried: Infosets at which the strategy is the bot's, bool [I].
      values: Values of the person's sequences, conditional on their infosets, in the
        person's utility, float64 [S']; NaN where the strategy never leads; None: not
        computed.
    """

    behaviour: np.ndarray
    queried: np.ndarray
    values: np.ndarray | None = None


class Reviewer:
    """Reviews matches of one game, and caches its tree and solution."""

    def __init__(self, game: Openable) -> None:
        """Create a reviewer; the first review builds the tree and solves the game.

        Args:
          game: Game tree with observations, or the game in any other form.
        """
        self._game: Any = game
        self._unavailable = ""
        self._tree: GameTree | None = None
        self._nash_conv = 0.0
        self._luck: TreeValues | None = None
        # Caches by the seat of the person.
        self._members: dict[int, dict[str, np.ndarray]] = {}
        self._of_solution: dict[int, _Strategy] = {}

    def review(
        self,
        match: Match,
        person: int,
        bot: pyspiel.Bot,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Json:
        """Review a match.

        Args:
          match: Match that is over.
          person: Player index of the person.
          bot: The other player; it is restarted and queried.
          stopped: Called repeatedly; if it returns True, the review ends early.

        Returns:
          "decisions": the person's decisions, each with "parts" (see `drawing`),
          "moves", "range" and "beliefs"; "notes": explanations of the numbers;
          "aivat": the person's luck-adjusted return, if the tree was built.
        """
        game = open_game(self._game).game
        states = bot_beliefs.decisions_of(game, match, person)
        shown = [_shown(state, match.actions[len(state.history())]) for state in states]
        _add_beliefs(shown, states, bot_beliefs.beliefs_during(game, match, bot))
        tree = self._game_tree()
        if tree is None:
            return {"decisions": shown, "notes": [self._unavailable]}
        if person not in self._members:
            self._members[person] = members(tree, person)
        keys = [state.information_state_string(person) for state in states]
        at = [self._members[person][key] for key in keys]
        of_bot = self._bot_strategy(tree, bot, at, stopped)
        of_solution = self._solution(tree, person)
        for_range = of_bot if of_bot.queried.any() else of_solution
        for decision, state, histories in zip(shown, states, at, strict=True):
            if stopped():
                break
            infoset = int(tree.histories.infoset[histories[0]])
            start = int(tree.infosets[person].decisions.first_sequence[infoset])
            for name, strategy in (("bot", of_bot), ("solution", of_solution)):
                if strategy.values is not None:
                    for place, move in enumerate(decision["moves"], start):
                        value = float(strategy.values[place])
                        value += payoff_offset(game)
                        move[name] = None if np.isnan(value) else round(value, 6)
            decision["range"] = _range(
                tree, state, histories, 1 - person, for_range.behaviour
            )
        assert self._luck is not None  # the game has been solved
        offset = payoff_offset(game)
        aivat = self._luck.estimate(match) * (-1 if person else 1) + offset
        notes = self._notes(of_bot, bot)
        notes.append(
            f"Your result: {match.returns[person] + offset:+g}. Without the luck of "
            f"the deal, and of the bot's moves if its probabilities are known: "
            f"{number_text(aivat, '+.3f')} (AIVAT, with the values at equilibrium). "
            f"AIVAT subtracts from the result how much better the cards and the bot's "
            f"random moves were for you than on average."
        )
        return {"decisions": shown, "notes": notes, "aivat": aivat}

    def _game_tree(self) -> GameTree | None:
        """Return the game tree; None if it cannot be built (see `_unavailable`)."""
        if self._tree is None and not self._unavailable:
            reason = f"the game has more than {MOST_HISTORIES:,} histories"
            try:
                limit = MOST_HISTORIES
                tree = as_tree(self._game, observations=True, max_histories=limit)
                if len(tree.histories) <= limit:
                    self._tree = tree
            except errors.ImperfectRecallError:
                reason = "the game has imperfect recall"
            except errors.InvalidGameError as error:
                reason = str(error)
            except (errors.TooManyHistoriesError, errors.GameTooLargeError):
                pass
            if self._tree is None:
                problem = "There are no ranges and no exact values"
                self._unavailable = f"{problem}: {reason}."
        return self._tree

    def _bot_strategy(
        self,
        tree: GameTree,
        bot: pyspiel.Bot,
        at: list[np.ndarray],
        stopped: Callable[[], bool],
    ) -> _Strategy:
        """Query the bot where ranges need it, and elsewhere if time allows."""
        player = bot.player_id()
        infosets = tree.infosets[player]
        decisions = infosets.decisions
        behaviour = conversions.uniform_behaviour(decisions)
        queried = np.zeros(len(infosets), bool)
        if not bot.provides_policy():
            return _Strategy(behaviour, queried)
        # Queries must not change the memory of a bot that learns.
        learner = as_learner(bot)
        memory = None if learner is None else learner.memory
        bot.restart()
        levels = decisions.levels()
        needed = _infosets_above(tree, player, at)
        first = sorted(needed, key=lambda infoset: (levels[infoset], infoset))
        rest = [int(i) for i in np.argsort(levels, kind="stable") if i not in needed]
        interview = Interview(bot)
        for group, seconds in ((first, _SECONDS_FOR_RANGE), (rest, _SECONDS_FOR_REST)):
            time_start, done = time.perf_counter(), 0
            for infoset in group:
                spent = time.perf_counter() - time_start
                # The first queries predict whether there is time for all.
                late = done >= 3 and spent / done * len(group) > seconds
                if late or spent > seconds or stopped():
                    break
                state = tree.state_at(int(infosets.history[infoset]))
                start = int(decisions.first_sequence[infoset])
                answer = interview.ask(state)
                behaviour[start : start + len(answer)] = answer
                queried[infoset] = True
                done += 1
            if done < len(group):
                break
        if learner is not None:
            learner.remember(memory)
        if not queried[first].all():
            queried[:] = False
        values = _values(tree, player, behaviour) if queried.all() else None
        return _Strategy(behaviour, queried, values)

    def _solution(self, tree: GameTree, person: int) -> _Strategy:
        """Return the bot's strategy in a solution, with the values against it."""
        if not self._of_solution:
            result = solve(tree, _SOLVER, _ITERATIONS)
            self._nash_conv = result.nash_conv()
            behaviours = result.sequence_form_and_average()[1]
            values = conversions.history_values(tree, behaviours)
            self._luck = TreeValues(tree, values)
            for player, behaviour in enumerate(behaviours):
                queried = np.ones(len(tree.infosets[player]), bool)
                values = _values(tree, player, behaviour)
                self._of_solution[1 - player] = _Strategy(behaviour, queried, values)
        return self._of_solution[person]

    def _notes(self, of_bot: _Strategy, bot: pyspiel.Bot) -> list[str]:
        """Return explanations of the numbers."""
        notes = []
        if not of_bot.queried.any():
            notes.append(
                "The bot does not provide probabilities, or not in time. The range "
                "therefore comes from a solution of the game."
            )
        else:
            learns = "; the bot learns, so it may have played slightly differently"
            notes.append(
                "The range shows what the bot could have held at your turn. It follows "
                "from the deal and the bot's probabilities, queried after the match"
                f"{'' if as_learner(bot) is None else learns}."
            )
        if of_bot.values is not None:
            notes.append(
                "Column “against this opponent”: your average result if you choose "
                "the move and then play perfectly against this bot."
            )
        elif of_bot.queried.any():
            notes.append(
                f"The bot was queried at {int(of_bot.queried.sum()):,} of its "
                f"{len(of_bot.queried):,} information states. Values against it "
                f"require all of them."
            )
        notes.append(
            f"Column “at equilibrium”: the same against an opponent that plays an "
            f"equilibrium, {_SOLVER} after {_ITERATIONS:,} iterations (NashConv "
            f"{self._nash_conv:.1e}). All values are yours, in the units of the game."
        )
        return notes


def _shown(state: pyspiel.State, chosen: int) -> Json:
    """Return a decision without values and range."""
    moves = [
        {"name": families.name_of(state, action), "chosen": action == chosen}
        for action in state.legal_actions()
    ]
    player = state.current_player()
    # The range shows the bot's private information, so it is revealed.
    parts = families.draw(state, player, reveal=True, over=True).parts
    return {"parts": parts, "moves": moves, "range": None}


def _add_beliefs(
    shown: list[Json],
    states: list[pyspiel.State],
    beliefs: list[tuple[pyspiel.State, BotBeliefs]],
) -> None:
    """Add the beliefs of the bot at its last decision to each one of the person."""
    for decision, state in zip(shown, states, strict=True):
        person, length = state.current_player(), len(state.history())
        earlier = [each for each in beliefs if len(each[0].history()) < length]
        decision["beliefs"] = None
        if earlier and earlier[-1][1].opponent_range is not None:
            at, believed = earlier[-1]
            numbers = believed.opponent_range or {}
            labels = bot_beliefs.labels_of(at, believed, person, numbers)
            weights = np.array(list(numbers.values()))
            shares = sums_of(list(labels.values()), weights)
            true = labels.get(at.information_state_string(person))
            entries = _entries(shares, true or families.draw(at, person).holds)
            decision["beliefs"] = entries | {
                "notes": bot_beliefs.lines(at, believed)[1:]
            }


def _infosets_above(tree: GameTree, player: int, at: list[np.ndarray]) -> set[int]:
    """Return the player's infosets on the paths to histories."""
    decisions = tree.infosets[player].decisions
    infosets: set[int] = set()
    for histories in at:
        sequences = np.unique(tree.histories.sequence[player][histories])
        while len(sequences := sequences[sequences > 0]):
            owners = np.unique(decisions.owner[sequences])
            infosets.update(owners.tolist())
            sequences = np.unique(decisions.parent[owners])
    return infosets


def _values(tree: GameTree, player: int, behaviour: np.ndarray) -> np.ndarray:
    """Compute best-response values of the opponent's sequences against a strategy.

    Args:
      tree: Game tree.
      player: Player of the strategy.
      behaviour: Action probabilities, float64 [S].

    Returns:
      The opponent's expected utility after each of its sequences, conditional on its
      infoset, float64 [S']; NaN if the strategy never leads there.
    """
    other = 1 - player
    reach = conversions.reach_from_behaviour(tree.infosets[player].decisions, behaviour)
    best = best_responses.best_response(tree.sequence_form, other, reach)
    pair = (best, behaviour) if other == 0 else (behaviour, best)
    return infoset_reach.action_values(tree, other, pair)


def _range(
    tree: GameTree,
    state: pyspiel.State,
    histories: np.ndarray,
    player: int,
    behaviour: np.ndarray,
) -> Json | None:
    """Compute a player's range at a decision of the opponent.

    Args:
      tree: Game tree.
      state: Decision of the opponent.
      histories: Histories of its infoset, int [n].
      player: Player whose range it is.
      behaviour: The player's action probabilities, float64 [S].

    Returns:
      "lines": entries with "holds", "probability", and whether it is "true"; "others":
      total probability of unlisted entries. None if the strategy never leads there.
    """
    weight = tree_posterior.weights(tree, 1 - player, behaviour)[histories]
    if not weight.sum() > 0:
        return None
    weight = weight / weight.sum()
    true = families.draw(state, player).holds
    probabilities: dict[str, float] = {}
    for place in np.argsort(-weight, kind="stable")[:_MOST_SHOWN]:
        if weight[place] > 0:
            held = families.draw(tree.state_at(int(histories[place])), player).holds
            probabilities[held] = probabilities.get(held, 0.0) + float(weight[place])
    return _entries(probabilities, true)


def _entries(probabilities: dict[str, float], true: str) -> Json:
    """Return the likeliest entries of a range, and the one that is true.

    Args:
      probabilities: Probability of each piece of private information.
      true: Private information that the player has in the match.
    """
    best = sorted(probabilities.items(), key=lambda item: (-item[1], item[0]))
    lines: list[Json] = [
        {"holds": held, "probability": round(share, 6), "true": held == true}
        for number, (held, share) in enumerate(best)
        if number < _MOST_LINES or held == true
    ]
    others = 1.0 - sum(line["probability"] for line in lines)
    return {"lines": lines, "others": round(max(others, 0.0), 6)}


def story(state: pyspiel.State, names: tuple[str, str]) -> list[list[str]]:
    """Return the moves of a match, chance included.

    Args:
      state: Terminal state.
      names: Names of players 0 and 1.

    Returns:
      [name of the player, name of the action] for each move.
    """
    return [
        [names[player] if player >= 0 else "chance", name]
        for player, name in families.moves_of(state)
    ]
