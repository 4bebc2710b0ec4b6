"""Bots as policies: their probabilities, or estimates from their moves."""

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.games.histories import moves_along, states_along
from spiel_cr.policies import rollouts
from spiel_cr.policies.bot_base import as_learner, gives_policy, inherits, policy_at
from spiel_cr.policies.conversions import StatePolicy
from spiel_cr.policies.queries import shares_at

# Probabilities of legal actions, by player and information state string.
BotAnswers: TypeAlias = dict[tuple[int, str], dict[int, float]]


class BotPolicy(StatePolicy):
    """A bot as a policy: its probabilities, or an estimate from its moves.

    Answers are cached by information state string: the bot is queried at the first
    history of an information state that occurs. A bot that looks at more than its
    information is therefore not described correctly.

    An estimate is not the bot: a response can also exploit the moves that were drawn by
    chance, so the value of a response to the estimate is not a lower bound on the bot's
    exploitability. The mean of matches of that response against the bot itself is one.

    A bot that `Learns` is reset before each query, and then queried at its decisions on
    the way, as in its first match.

    Attributes:
      asks_bots: True, because each answer takes the time of one or many moves.
      queries: Number of queries of bots.
      recipe: A function and its arguments that make the policy again in a worker; None
        if it cannot be made again.
    """

    asks_bots = True
    recipe: tuple[Any, ...] | None = None

    def __init__(
        self,
        game: pyspiel.Game,
        make_bot: Callable[[int, int], pyspiel.Bot],
        *,
        queries: int = 100,
        seed: int = 0,
    ) -> None:
        """Keep the settings; bots are made when they are first needed.

        Args:
          game: A sequential game.
          make_bot: Function of a player and a seed, such as
            `pyspiel.make_uniform_random_bot`; called at most once per player.
          queries: Moves that are drawn at an information state, each after
            `restart_at`, from a bot that does not provide its policy.
          seed: Seed from which a different one is derived for each player's bot.

        Raises:
          ValueError: If `queries` is not a positive whole number, or the seed is bad.
        """
        super().__init__(game)
        self._moves_per_state = check_iterations(queries, name="queries")
        self._seed = check_seed(seed)
        self._make_bot = make_bot
        self._bots: dict[int, pyspiel.Bot] = {}
        self._cache: BotAnswers = {}
        self.queries = 0

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the answer at a state; see `StatePolicy`."""
        key = player, state.information_state_string(player)
        if key not in self._cache:
            if len(self._cache) >= rollouts.REMEMBERED:
                self._cache.clear()
            self._cache[key] = self._query(state, self.bot(player))
        return dict(self._cache[key])

    @property
    def is_foreign(self) -> bool:
        """Whether the bot is an object of the caller, and not made from a string."""
        return self.recipe is None

    def answers(self, paths: np.ndarray) -> BotAnswers:
        """Return the answers after paths, for `take`; see `states_along`."""
        answers = {}
        for _, state in states_along(self.game, paths):
            key = state.current_player(), state.information_state_string()
            answers[key] = self.action_probabilities(state)
        return answers

    def take(self, answers: BotAnswers) -> None:
        """Cache the answers of a copy of the bot in another process."""
        self._cache |= answers
        self.queries += len(answers)

    def bot(self, player: int) -> pyspiel.Bot:
        """Return the bot of a player."""
        if player not in self._bots:
            sequence = np.random.SeedSequence(self._seed, spawn_key=(player,))
            # Some bots accept seeds of 31 bits only.
            seed = int(sequence.generate_state(1)[0] >> 1)
            self._bots[player] = self._make_bot(player, seed)
        return self._bots[player]

    def _restart_at(self, bot: Any, state: pyspiel.State) -> None:
        """Restart a bot in the middle of a match, as in its first one."""
        learner = as_learner(bot)
        if learner is None:
            restart_at(bot, state)
            return
        learner.reset()
        bot.restart()
        for before, action in moves_along(state.get_game(), state.history()):
            if before.current_player() == state.current_player():
                policy_at(bot, before)
            else:
                bot.inform_action(before, before.current_player(), action)

    def _query(self, state: pyspiel.State, bot: pyspiel.Bot) -> dict[int, float]:
        legal = state.legal_actions()
        name = f"make_bot: a {type(bot).__name__}"
        if gives_policy(bot):
            self.queries += 1
            self._restart_at(bot, state)
            played = shares_at(policy_at(bot, state), state, name)
            return dict(zip(legal, played, strict=True))
        self.queries += self._moves_per_state
        counts: Counter[int] = Counter()
        for _ in range(self._moves_per_state):
            self._restart_at(bot, state)
            counts[int(bot.step(state))] += 1
        if wrong := counts.keys() - set(legal):
            raise ValueError(
                f"{name} chose the illegal action {min(wrong)} after the actions "
                f"{state.history()}; correct the bot, which must choose from {legal}"
            )
        return {action: counts[action] / self._moves_per_state for action in legal}


def restart_at(bot: pyspiel.Bot, state: pyspiel.State) -> None:
    """Restart a bot in the middle of a match.

    A bot that does not support that is informed of the moves so far.

    Args:
      bot: Any bot.
      state: The state of the match.
    """
    try:
        if not inherits(bot, "restart_at"):
            bot.restart_at(state)
            return
    except pyspiel.SpielError:
        pass
    bot.restart()
    for before, action in moves_along(state.get_game(), state.history()):
        bot.inform_action(before, before.current_player(), action)
