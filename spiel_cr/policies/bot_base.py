"""Base class of bots that play by a policy, and queries of any bot."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_seed
from spiel_cr.games.opening.game_checks import check_state


@runtime_checkable
class Learns(Protocol):
    """A bot whose answers depend on earlier queries, even in other matches."""

    @property
    def memory(self) -> Any:
        """The learned strategy and the state of the random numbers, for `remember`."""

    def remember(self, memory: Any) -> None:
        """Restore a memory, so that the bot answers as it did with that memory."""

    def reset(self, seed: int | None = None) -> None:
        """Restore the strategy that the bot had when it was made.

        Args:
          seed: Seed of further random numbers. If None, they start again from the state
            in which the bot was made.
        """


def as_learner(bot: pyspiel.Bot) -> Learns | None:
    """Return the bot if it learns during matches (see `Learns`), otherwise None."""
    return bot if isinstance(bot, Learns) else None


def as_bot(player: object) -> pyspiel.Bot | None:
    """Return a player if it is a bot, which plays for one player of a game, or None."""
    return player if isinstance(player, pyspiel.Bot) else None


def inherits(bot: pyspiel.Bot, method: str) -> bool:
    """Return whether a bot written in Python inherits a method of `pyspiel.Bot`."""
    return hasattr(bot, "__dict__") and (
        getattr(type(bot), method) is getattr(pyspiel.Bot, method)
    )


def gives_policy(bot: pyspiel.Bot) -> bool:
    """Return whether a bot provides its probabilities, and not only its moves."""
    methods = "get_policy", "step_with_policy"
    return bot.provides_policy() and not all(inherits(bot, name) for name in methods)


def policy_at(bot: pyspiel.Bot, state: pyspiel.State) -> Any:
    """Return the probabilities with which a bot plays at a state.

    Some bots, such as OpenSpiel's `UniformRandomBot`, have `step_with_policy` and no
    `get_policy`.

    Args:
      bot: A bot for which `gives_policy` is true.
      state: A state at which the bot acts.

    Returns:
      Pairs of action and probability, as the bot gives them.
    """
    if inherits(bot, "get_policy"):
        return bot.step_with_policy(state)[0]
    return bot.get_policy(state)


def check_seat(bot: pyspiel.Bot, seat: int, name: str) -> None:
    """Raise an error if a bot reports the other player; many bots report none.

    Args:
      bot: Any bot.
      seat: The player whose moves the bot is to make, 0 or 1.
      name: Name of the argument, for the error.

    Raises:
      ValueError: If the bot is one of the other player.
    """
    bot_player = getattr(bot, "player_id", lambda: seat)()
    if bot_player != seat:
        raise ValueError(
            f"{name}: a {type(bot).__name__} for seat {bot_player} was given for seat "
            f"{seat}; make one for player {seat}, or exchange the bots"
        )


class PolicyPlayer(pyspiel.Bot):
    """A bot that samples its actions from `get_policy`, which subclasses define."""

    def __init__(self, player: int, *, seed: int = 0) -> None:
        """Initialise the bot of a player.

        Args:
          player: The player, 0 or 1.
          seed: Seed of the sampled actions.

        Raises:
          ValueError: If the player or the seed is invalid.
        """
        pyspiel.Bot.__init__(self)
        if isinstance(player, bool) or player not in (0, 1):
            raise ValueError(f"player={player!r} must be 0 or 1")
        self._player = int(player)
        self._random = np.random.default_rng(check_seed(seed))

    def player_id(self) -> int:
        return self._player

    def provides_policy(self) -> bool:
        return True

    def restart(self) -> None:
        """Begin a match; subclasses drop the state of the last match here."""

    def restart_at(self, state: pyspiel.State) -> None:
        """Begin in the middle of a match; earlier decisions are solved when needed."""
        self.restart()

    def end_match(self, state: pyspiel.State) -> None:
        """Receive the terminal state of a match; subclasses may report its returns."""

    def inform_action(self, state: pyspiel.State, player: int, action: int) -> None:
        """Do nothing: information states contain all that the player observes."""

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        """Return the legal actions and their probabilities at a decision.

        Raises:
          ValueError: If the bot's player does not act; subclasses call `check_turn`.
        """
        raise NotImplementedError

    def check_turn(self, state: pyspiel.State) -> None:
        """Raise ValueError if the bot's player does not act in a state."""
        acts = state.current_player()
        if acts != self._player:
            check_state(state)
            actor = f"player {acts} acts" if acts >= 0 else "no player acts"
            raise ValueError(
                f"state: {actor} after the actions {state.history()}, and the bot is "
                f"player {self._player}; query it where its player acts, or make a "
                f"bot for the other player"
            )

    def choose(self, state: pyspiel.State, policy: list[tuple[int, float]]) -> int:
        """Sample an action from the policy."""
        probabilities = np.array([probability for _, probability in policy])
        return policy[
            self._random.choice(len(policy), p=probabilities / probabilities.sum())
        ][0]

    def step_with_policy(
        self, state: pyspiel.State
    ) -> tuple[list[tuple[int, float]], int]:
        policy = self.get_policy(state)
        return policy, self.choose(state, policy)

    def step(self, state: pyspiel.State) -> int:
        return self.step_with_policy(state)[1]
