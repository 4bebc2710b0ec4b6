"""Opponents to respond to, as OpenSpiel policies.

Fixed players of poker ("chumps"), and bots that are known by their moves alone.
Strings name them, too: see `players.opponent_strings`.
"""

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_choice, check_iterations, check_seed
from spiel_cr.games.histories import moves_along, states_along
from spiel_cr.players.poker_roles import PokerRoles
from spiel_cr.policies import rollouts
from spiel_cr.policies.bot_base import Learns, gives_policy, policy_at
from spiel_cr.policies.conversions import StatePolicy
from spiel_cr.policies.foreign import distribution

# What each chump would like to do: equally likely wishes, each followed by what it does
# instead where that is illegal.
_WISHES: dict[str, tuple[tuple[str, ...], ...]] = {
    "always_fold": (("fold", "call", "raise"),),
    "always_call": (("call", "fold", "raise"),),
    "always_raise": (("raise", "call", "fold"),),
    "call_raise": (("call", "fold", "raise"), ("raise", "call", "fold")),
}
CHUMPS = tuple(_WISHES)
# Probabilities of legal actions, by player and information state string.
Answered: TypeAlias = dict[tuple[int, str], dict[int, float]]


class ChumpPolicy(StatePolicy):
    """A player of poker that hardly looks; see `chump`.

    Attributes:
      kind: one of `CHUMPS`.
      by_legal_actions: what it does depends on the legal actions alone.
    """

    def __init__(self, game: pyspiel.Game, kind: str) -> None:
        """Use `chump`."""
        check_choice(kind, "kind", CHUMPS)
        super().__init__(game)
        self.kind = kind
        self._roles = PokerRoles(game)
        self.by_legal_actions = not self._roles.two_actions
        self._chosen: dict[tuple[int, ...], dict[int, float]] = {}

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`."""
        legal = tuple(state.legal_actions())
        if self._roles.two_actions:
            return self._choose(legal, self._roles.by_role(state))
        if legal not in self._chosen:
            self._chosen[legal] = self._choose(legal, self._roles.by_role(state))
        return dict(self._chosen[legal])

    def _choose(
        self, legal: tuple[int, ...], roles: dict[str, int]
    ) -> dict[int, float]:
        wishes = _WISHES[self.kind]
        probabilities = dict.fromkeys(legal, 0.0)
        for wish in wishes:
            action = next((roles[role] for role in wish if role in roles), legal[0])
            probabilities[action] += 1 / len(wishes)
        return probabilities


def chump(game: pyspiel.Game, kind: str) -> ChumpPolicy:
    """A fixed player of poker.

    The actions are recognised by their names: fold, call (or check), raise (or bet; of
    several sizes the smallest). In kuhn_poker, which names them pass and bet, a pass is
    a check, or a fold after a bet; a bet is a raise, or a call after a bet.

    always_fold folds wherever that is legal, also where it could check; else it calls
    (checks). always_call calls. always_raise raises, and calls where it may not raise.
    call_raise calls or raises with equal probability, and only calls where it may not
    raise.

    Args:
      game: kuhn_poker, leduc_poker, python_leduc_poker, universal_poker, or another
        whose actions have such names.
      kind: one of `CHUMPS`.

    Raises:
      ValueError: no such kind, or the game is not poker.
    """
    return ChumpPolicy(game, kind)


class BotPolicy(StatePolicy):
    """A bot as a policy: its probabilities, or an estimate from its moves.

    Estimates are cached by information state string: the first history at which an
    information state is met is the one at which the bot is asked. A bot that looks at
    more than its information is therefore not described correctly.

    An estimate is not the bot: what it happens to have drawn can be exploited, too, so
    the value of a response to the estimate is no lower bound on the bot's
    exploitability. Matches of that response against the bot itself are one.

    A bot that `Learns` is asked as in its first match: it forgets what it learned
    elsewhere, and is asked at its decisions before.

    Attributes:
      queries: how often a bot was asked.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        make_bot: Callable[[int, int], pyspiel.Bot],
        *,
        queries: int = 100,
        seed: int = 0,
    ) -> None:
        """Makes no bot yet.

        Args:
          game: a sequential game.
          make_bot: of a seat and a seed, as `pyspiel.make_uniform_random_bot`; called
            once a seat, when it is first needed.
          queries: moves that are drawn at an information state, each after
            `restart_at`, from a bot that does not provide its policy; others are asked
            for that, once.
          seed: the seats' bots get different seeds, made from this one.

        Raises:
          ValueError: `queries` is not a positive whole number, or a bad seed.
        """
        super().__init__(game)
        self._each = check_iterations(queries, name="queries")
        self._seed = check_seed(seed)
        self._make_bot = make_bot
        self._bots: dict[int, pyspiel.Bot] = {}
        self._known: Answered = {}
        self.queries = 0

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`."""
        key = player, state.information_state_string(player)
        if key not in self._known:
            if len(self._known) >= rollouts.REMEMBERED:
                self._known.clear()
            self._known[key] = self._ask(state, self.bot(player))
        return dict(self._known[key])

    def answers(self, game: pyspiel.Game, paths: np.ndarray) -> Answered:
        """What it answers after paths, for `take`; see `states_along`."""
        answered = {}
        for _, state in states_along(game, paths):
            key = state.current_player(), state.information_state_string()
            answered[key] = self.action_probabilities(state)
        return answered

    def take(self, answered: Answered) -> None:
        """Remembers what this bot answered in another process, and is not asked."""
        self._known |= answered
        self.queries += len(answered)

    def bot(self, player: int) -> pyspiel.Bot:
        """The bot of a seat, made when it is first needed."""
        if player not in self._bots:
            own = np.random.SeedSequence(self._seed, spawn_key=(player,))
            # Some bots take 31 bits.
            seed = int(own.generate_state(1)[0] >> 1)
            self._bots[player] = self._make_bot(player, seed)
        return self._bots[player]

    def _restart_at(self, bot: pyspiel.Bot, state: pyspiel.State) -> None:
        """In the middle of a match; a bot that cannot is told what was played."""
        if isinstance(bot, Learns):
            bot.forget()
            self._ask_again(bot, state)
            return
        restart_at(bot, state)

    def _ask_again(self, bot: pyspiel.Bot, state: pyspiel.State) -> None:
        """Restarts a match, and asks the bot at its decisions on the way to a state."""
        bot.restart()
        for before, action in moves_along(state.get_game(), state.history()):
            if before.current_player() == state.current_player():
                policy_at(bot, before)
            else:
                bot.inform_action(before, before.current_player(), action)

    def _ask(self, state: pyspiel.State, bot: pyspiel.Bot) -> dict[int, float]:
        legal = state.legal_actions()
        name = f"make_bot: a {type(bot).__name__}"
        if gives_policy(bot):
            self.queries += 1
            self._restart_at(bot, state)
            played = distribution(
                policy_at(bot, state),
                legal,
                state.num_distinct_actions(),
                lambda: f"{name} after the actions {state.history()}",
            )
            shares = rollouts.normalised(played, name, legal)
            return dict(zip(legal, shares, strict=True))
        self.queries += self._each
        counts: Counter[int] = Counter()
        for _ in range(self._each):
            self._restart_at(bot, state)
            counts[int(bot.step(state))] += 1
        if wrong := counts.keys() - set(legal):
            raise ValueError(
                f"{name} chose {min(wrong)} where {legal} are legal, after the "
                f"actions {state.history()}"
            )
        return {action: counts[action] / self._each for action in legal}


def restart_at(bot: pyspiel.Bot, state: pyspiel.State) -> None:
    """Puts a bot into the middle of a match; one that cannot is told what was played.

    Args:
      bot: any.
      state: of the match.
    """
    if hasattr(bot, "__dict__") and type(bot).restart_at is pyspiel.Bot.restart_at:
        _replay(bot, state)
        return
    try:
        bot.restart_at(state)
    except pyspiel.SpielError:
        _replay(bot, state)


def _replay(bot: pyspiel.Bot, state: pyspiel.State) -> None:
    """Restart a bot and inform it of all moves that lead to a state."""
    bot.restart()
    for before, action in moves_along(state.get_game(), state.history()):
        bot.inform_action(before, before.current_player(), action)
