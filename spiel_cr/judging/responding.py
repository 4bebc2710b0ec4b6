"""Responses to a player that is given by a string, in the form that it allows.

A policy of a file that was solved in the form of signals is answered on that form, any
other one on the compiled game, or where this does not fit on OpenSpiel's states.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import memory
from spiel_cr.common.announcing import announce
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.memory import Limit
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.signals import signal_footprint as footprint
from spiel_cr.games.tree.compiler import Game, as_compiled
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.response_config import ResponseConfig
from spiel_cr.judging.response_matches import Known
from spiel_cr.judging.response_seats import Seat
from spiel_cr.judging.state_responses import on_states
from spiel_cr.judging.tree_responses import on_signals, on_tree, opponent_behaviour
from spiel_cr.players import opponent_strings
from spiel_cr.policies import conversions
from spiel_cr.policies.signal_policy import SignalPolicy
from spiel_cr.solvers.policy_files import load_policy

Form = Literal["compiled", "signals", "states"]

# Strategies, reach and responses: float64 vectors over sequences, at the peak, besides
# what solving in float32 takes. Fitted to Rhode Island Hold'em, 1.38 GB.
_VECTORS = 6


class Responses(NamedTuple):
    """Responses to one player.

    Attributes:
      form: of the game, on which they were found.
      method: by which, see `ResponseConfig`.
      seats: one for each seat of a response.
      opponent: the policy that was asked; None where its strategy was known.
    """

    form: Form
    method: str
    seats: list[Seat]
    opponent: openspiel_policy.Policy | None = None


@dataclasses.dataclass(frozen=True)
class Given:
    """To whom responses are to be found.

    Attributes:
      game: OpenSpiel game string.
      policy: a string for `opponent_strings.load_opponent`.
      seed: of what it draws.
      memory_limit: compile the game if it needs no more; of the whole process.
    """

    game: str
    policy: str
    seed: int = 0
    memory_limit: Limit = None


def respond(
    given: Given,
    players: Sequence[int],
    config: ResponseConfig,
    *,
    states: bool = False,
    otherwise: str | None = None,
    tell: Callable[[str], object] = announce,
) -> Responses:
    """Finds responses, and measures them.

    Args:
      given: to whom.
      players: the seats of responses.
      config: how.
      states: search on states though the game would fit.
      otherwise: the method where the game is not compiled; None: that of `config`.
      tell: called with why the game is not compiled.

    Raises:
      GameTooLargeError: a best response on the signal form takes too much memory.
      ValueError: a bad policy, or a method that needs the compiled game without it.
    """
    game = open_game(given.game).game
    opponent_strings.check_opponent(given.policy, game)
    announce(f"looking at {given.game}")
    if config.method == "exact" and not states:
        path = opponent_strings.signal_file(given.policy)
        if path:
            seats = _on_signals(given, game, path, config, players)
            return Responses("signals", config.method, seats)
    tree = None
    try:
        tree = as_compiled(
            game,
            observations=True,
            memory_limit=given.memory_limit,
            progress=True,
        )
    except GameTooLargeError as error:
        tell(f"searching on states: {error}")
    if tree is None or states:
        method = otherwise or config.method
        config = dataclasses.replace(config, method=method)
        return _on_states(given, players, config, game if tree is None else tree)
    return _on_tree(given, players, config, tree)


def _on_tree(
    given: Given, players: Sequence[int], config: ResponseConfig, tree: CompiledGame
) -> Responses:
    """Responses on the compiled game; the policy of a file, asked at each infoset."""
    opponent = None
    announce(f"taking the policy {given.policy}")
    if given.policy.strip().endswith(".npz"):
        opponent = opponent_strings.load_opponent(given.policy, tree)
        behaviour = conversions.behaviour_from_policy(tree, opponent)
    else:
        behaviour = opponent_behaviour(tree, given.policy, seed=given.seed)
    rivals = [_rival(given, tree, player) for player in players]
    seats = [
        on_tree(tree, player, behaviour, config, rival=rival)
        for player, rival in zip(players, rivals, strict=True)
    ]
    return Responses("compiled", config.method, seats, opponent)


def _rival(given: Given, game: Game, player: int) -> pyspiel.Bot | None:
    """The bot itself where its policy is estimated, with a seed of its own."""
    # Another one than the estimate's: what that happened to draw is not its style.
    # Each seat has its own, so that no match draws as another match of the other seat.
    mixed = np.random.SeedSequence([given.seed, 2, player]).generate_state(1)
    seed = int(mixed[0] >> 1)
    return opponent_strings.load_rival(given.policy, game, 1 - player, seed=seed)


def _on_signals(
    given: Given,
    game: pyspiel.Game,
    path: str,
    config: ResponseConfig,
    players: Sequence[int],
) -> list[Seat]:
    """Best responses to a policy of a signal game, by its file."""
    announce(f"taking the policy {path}")
    policy = load_policy(path, game)
    assert isinstance(policy, SignalPolicy)
    need = footprint.peak_bytes(policy.signals, np.float32)
    sizes = [footprint.size_of(policy.signals, player) for player in range(2)]
    need += 8 * _VECTORS * sum(size.sequences for size in sizes)
    what = f"a best response on {policy.game} in the form of signals"
    remedy = "choose ismcts, lbr or learned"
    memory.check_need(what, need, given.memory_limit, remedy)
    return on_signals(policy, players, config)


def _on_states(
    given: Given,
    players: Sequence[int],
    config: ResponseConfig,
    game: CompiledGame | pyspiel.Game,
) -> Responses:
    """Searches in matches; where the game fits, best responses are known."""
    announce(f"taking the policy {given.policy}")
    opponent = opponent_strings.load_opponent(
        given.policy, game, seed=given.seed, memory_limit=given.memory_limit
    )
    rivals = {player: _rival(given, game, player) for player in players}
    judged = None
    if isinstance(game, CompiledGame) and not any(rivals.values()):
        judged = Known(game, conversions.behaviour_from_policy(game, opponent))
    seats = [
        on_states(
            open_game(game).game, p, opponent, config, rival=rivals[p], known=judged
        )
        for p in players
    ]
    return Responses("states", config.method, seats, opponent)
