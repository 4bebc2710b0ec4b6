"""Who is to be responded to: a player, opened once in the form that it allows.

A policy that was solved in the form of signals is answered on that form, any policy of
large hidden boards on that of worlds, any other one on the compiled game, or where this
does not fit on OpenSpiel's states.
"""

import math
import time
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import memory
from spiel_cr.common.announcing import announce
from spiel_cr.common.errors import GameTooLargeError, ImperfectRecallError
from spiel_cr.common.memory import Limit
from spiel_cr.games.opening.estimate import estimate_histories
from spiel_cr.games.opening.opened import Opened, open_game
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.signals import signal_footprint as footprint
from spiel_cr.games.signals.form import form_of
from spiel_cr.games.tree.compiler import Game, as_compiled
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.games.worlds.abrupt import abrupt_game
from spiel_cr.games.worlds.game import WorldGame, shared_worlds
from spiel_cr.games.worlds.hidden import estimate_worlds, hidden_board
from spiel_cr.judging.response_config import Behaviours
from spiel_cr.judging.streamed import Streamed
from spiel_cr.players import opponent_strings
from spiel_cr.players.bot_strings import NamedBot
from spiel_cr.players.bots import PolicyBot, uniform_bot
from spiel_cr.players.given_players import GivenPlayer, seat_bot
from spiel_cr.players.opponents import BotPolicy
from spiel_cr.policies import conversions
from spiel_cr.policies.bot_base import check_seat
from spiel_cr.policies.result import Result
from spiel_cr.policies.signal_policy import SignalPolicy
from spiel_cr.policies.world_policy import (
    MoreKnowledgeError,
    WorldPolicy,
    behaviour_from_policy,
    normalised,
)
from spiel_cr.solvers.laying_out import WORLDS, prefer

# Histories and worlds that are laid out in a second, with care: compiled games by rules
# on arrays and by OpenSpiel's states, and hidden boards (dark hex and phantom
# tic-tac-toe, 5 x 10^5 worlds: 37 to 53 s on two busy cores).
_RULES_A_SECOND, _STATES_A_SECOND, _WORLDS_A_SECOND = 5e5, 5e4, 1.5e4
# Strategies, reach and responses: float64 vectors over sequences, at the peak, besides
# what solving in float32 takes. Fitted to Rhode Island Hold'em, 1.38 GB.
_VECTORS = 6


class Target(NamedTuple):
    """A player to respond to, and the form of the game on which it is known.

    Attributes:
      name: as users write it.
      game: sequential.
      policy: of both seats; an estimate where there are rivals.
      tree: the compiled game; None: it is too large, or the policy has another form.
      form: of the compiled game or of the policy's signals or worlds; None: none fits.
      behaviour: of the policy on that, each float64 [S]; the responder's tell what the
        policy itself gets in its seat. None: there is no form, or an estimate.
      rivals: the bots themselves, of player 0 and of player 1, where the policy is an
        estimate; else None.
      too_large: why there is no form; None: there is one.
      streamed: judges it exactly where there is no form; None: nobody does.
    """

    name: str
    game: pyspiel.Game
    policy: openspiel_policy.Policy
    tree: CompiledGame | None = None
    form: SequenceForm | None = None
    behaviour: Behaviours | None = None
    rivals: tuple[pyspiel.Bot, pyspiel.Bot] | None = None
    too_large: GameTooLargeError | MoreKnowledgeError | None = None
    streamed: Streamed | None = None

    def strategy(self) -> Behaviours:
        """The policy on the form, each float64 [S]; estimated where there are rivals.

        Raises:
          GameTooLargeError: there is no form.
          MoreKnowledgeError: see `world_policy.behaviour_from_policy`.
        """
        if self.behaviour is not None:
            return self.behaviour
        if self.tree is None:
            raise self.too_large or GameTooLargeError(f"{self.game} is not compiled")
        return conversions.behaviour_from_policy(self.tree, self.policy)

    def as_policy(self, behaviours: Behaviours) -> openspiel_policy.Policy:
        """Strategies on the form as a policy of both players."""
        if isinstance(self.policy, SignalPolicy):
            return SignalPolicy(self.policy.signals, behaviours)
        if isinstance(self.policy, WorldPolicy):
            return WorldPolicy(self.policy.worlds, behaviours)
        assert self.tree is not None
        return conversions.tabular_policy(self.tree, behaviours)

    def bot(self, seat: int, seed: int) -> pyspiel.Bot:
        """Who plays matches in a seat: the bot itself, or the policy."""
        if self.rivals is not None:
            return self.rivals[seat]
        return PolicyBot(seat, self.policy, seed=seed)


def load_target(
    given: GivenPlayer,
    game: Game,
    *,
    seat: int = 0,
    seed: int = 0,
    signals: bool = True,
    memory_limit: Limit = None,
    seconds: float = math.inf,
    progress: bool = False,
) -> Target:
    """Opens a game and a player of it.

    Args:
      given: a string for `opponent_strings.load_opponent`, a policy, a result, a
        function that makes bots, or a bot.
      game: OpenSpiel game string, game, or compiled game; compiled where it fits.
      seat: of a bot that has one.
      seed: of sampled algorithms and of bots.
      signals: take a policy that was solved in the form of signals on that form, and
        large hidden boards by worlds.
      memory_limit: do not compile larger games, nor lay out larger forms.
      seconds: for laying the game out and asking the policy there; where that would
        take longer it is as if it did not fit, unless the policy needs it.
      progress: show progress bars on stderr.

    Raises:
      OSError, ValueError, pyspiel.SpielError: as `load_opponent` and `open_game`.
    """
    until = time.perf_counter() + seconds
    opened = open_game(game)
    loaded = opened.game
    named = None
    if isinstance(given, str):
        named = opponent_strings.read_opponent(given, loaded)
    elif isinstance(given, Result):
        given = given.average_policy()
    whole = named is not None and named.whole
    of_signals = isinstance(given, SignalPolicy) or (
        isinstance(given, str) and opponent_strings.signal_file(given) is not None
    )
    worlds, tree, too_large = None, None, None
    try:
        if not whole and not isinstance(game, CompiledGame):
            _check_seconds(opened, seconds)
        if signals and not whole:
            worlds = worlds_of(game, memory_limit)
        if worlds is None and not (signals and of_signals):
            tree = as_compiled(
                game if isinstance(game, CompiledGame) else loaded,
                observations=True,
                memory_limit=memory_limit,
                progress=progress,
            )
    except GameTooLargeError as error:
        too_large = error
        if whole:
            raise
    known = loaded if tree is None else tree
    if named is None:
        policy = _asked(given, loaded, seat, seed)
        rivals = _silent(given, loaded, seat, seed)
    else:
        announce(f"taking the policy {given}")
        policy = opponent_strings.policy_of(named, known, seed)
        rivals = _rivals(named, known, seed)
    name = given if isinstance(given, str) else type(given).__name__
    target = Target(name, loaded, policy, tree, rivals=rivals, too_large=too_large)
    try:
        if worlds is not None:
            return _in_worlds(target, worlds, until, progress)
        if tree is not None:
            target = target._replace(form=tree.form)
            if rivals is None:
                behaviour = _behaviour(tree, _InTime(policy, until))
                target = target._replace(behaviour=behaviour)
        elif signals and isinstance(policy, SignalPolicy):
            return _on_signals(target, policy, memory_limit)
        elif signals and rivals is None and seconds == math.inf:
            return _streamed(target, memory_limit, progress)
    except _TimeError as error:
        too_large = GameTooLargeError(str(error))
        return target._replace(tree=None, form=None, too_large=too_large)
    return target


class _TimeError(Exception):
    """A policy is not asked further."""


class _InTime(openspiel_policy.Policy):
    """A policy until some time."""

    def __init__(self, policy: openspiel_policy.Policy, until: float) -> None:
        super().__init__(policy.game, [0, 1])
        self.policy, self._until = policy, until

    def action_probabilities(
        self, state: pyspiel.State, player_id: int | None = None
    ) -> dict[int, float]:
        """As the policy; raises `_TimeError` when the time is over."""
        if time.perf_counter() > self._until:
            raise _TimeError("there was no time to ask the policy everywhere")
        odds: dict[int, float] = self.policy.action_probabilities(state, player_id)
        return odds


def _check_seconds(opened: Opened, seconds: float) -> None:
    """Raises GameTooLargeError if laying a game out clearly takes longer."""
    if seconds == math.inf:
        return
    board = hidden_board(opened.rules)
    if board is not None and prefer(opened).form == WORLDS:
        need = estimate_worlds(opened.game, board) / _WORLDS_A_SECOND
    else:
        speed = _STATES_A_SECOND if opened.rules is None else _RULES_A_SECOND
        need = estimate_histories(opened.game, room=speed * seconds) / speed
    if need > seconds:
        raise GameTooLargeError(
            f"laying {opened.game} out would take about {need:.2g} s, and there are "
            f"{seconds:.2g} for that"
        )


def worlds_of(game: Game, memory_limit: Limit = None) -> WorldGame | None:
    """The worlds by which policies of a game are judged; None: it is compiled instead.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      memory_limit: of the whole process.

    Raises:
      GameTooLargeError: they take more memory than the limit.
    """
    if isinstance(game, CompiledGame):
        return None
    opened = open_game(game)
    if hidden_board(opened.rules) is None:
        return None
    if prefer(opened, memory_limit).form != WORLDS:
        try:
            as_compiled(opened.game, memory_limit=memory_limit)
            return None
        except ImperfectRecallError:
            pass
    return shared_worlds(opened, memory_limit)


def _in_worlds(
    target: Target, worlds: WorldGame, until: float, progress: bool
) -> Target:
    """A target that is asked at all infosets of hidden boards, where that is known."""
    if target.rivals is not None:
        return target
    try:
        asked = target.policy
        if not hasattr(asked, "array_probabilities"):
            asked = _InTime(asked, until)
        behaviour = behaviour_from_policy(worlds, asked, progress=progress)
    except MoreKnowledgeError as error:
        return target._replace(too_large=error)
    policy = WorldPolicy(worlds, behaviour)
    return target._replace(policy=policy, form=worlds.form, behaviour=behaviour)


def _streamed(target: Target, memory_limit: Limit, progress: bool) -> Target:
    """A target on an abrupt hidden board, where that fits."""
    try:
        game = abrupt_game(open_game(target.game), memory_limit)
    except GameTooLargeError as error:
        return target._replace(too_large=error)
    if game is None:
        return target
    return target._replace(streamed=Streamed(game, target.policy, progress=progress))


def _asked(
    given: GivenPlayer, game: pyspiel.Game, seat: int, seed: int
) -> openspiel_policy.Policy:
    """A policy as it is; a bot by what it answers, uniform in the seat it has not."""
    if isinstance(given, openspiel_policy.Policy):
        return given
    if isinstance(given, pyspiel.Bot):
        check_seat(given, seat, "policy_or_bot")
    return BotPolicy(
        game, lambda player, own: _made(given, game, player, seat, own), seed=seed
    )


def _made(
    given: GivenPlayer, game: pyspiel.Game, player: int, seat: int, seed: int
) -> pyspiel.Bot:
    """A bot in a seat; a uniform one in the seat that a bot has not."""
    if isinstance(given, pyspiel.Bot) and player != seat:
        return uniform_bot(game, player)
    return seat_bot(given, game, player, seed=seed, name="policy_or_bot")


def _silent(
    given: GivenPlayer, game: pyspiel.Game, seat: int, seed: int
) -> tuple[pyspiel.Bot, pyspiel.Bot] | None:
    """The bots themselves, where they are known by their moves alone."""
    if isinstance(given, openspiel_policy.Policy):
        return None
    bots = [_made(given, game, player, seat, seed + 1 + player) for player in (0, 1)]
    if all(bot.provides_policy() for bot in bots):
        return None
    return bots[0], bots[1]


def _behaviour(tree: CompiledGame, policy: _InTime) -> Behaviours:
    """A policy on a compiled game; uniform play need not be asked."""
    if type(policy.policy) is openspiel_policy.UniformRandomPolicy:
        first, second = (
            conversions.uniform_behaviour(own.decisions) for own in tree.infosets
        )
        return first, second
    return conversions.behaviour_from_policy(tree, policy)


def _rivals(
    named: NamedBot, game: Game, seed: int
) -> tuple[pyspiel.Bot, pyspiel.Bot] | None:
    """The bots themselves where their policy is estimated, with seeds of their own."""
    bots = []
    for seat in (0, 1):
        # Another seed than the estimate's: what that happened to draw is not its style.
        mixed = np.random.SeedSequence([seed, 2, 1 - seat]).generate_state(1)
        own = int(mixed[0] >> 1)
        bots.append(opponent_strings.rival_of(named, game, seat, seed=own))
    first, second = bots
    return None if first is None or second is None else (first, second)


def _on_signals(target: Target, policy: SignalPolicy, memory_limit: Limit) -> Target:
    """On the form of the policy's signals, where that fits. Nothing is compiled."""
    sizes = [footprint.size_of(policy.signals, player) for player in range(2)]
    need = footprint.peak_bytes(policy.signals, np.float32)
    need += 8 * _VECTORS * sum(size.sequences for size in sizes)
    what = f"a best response on {policy.game} in the form of signals"
    remedy = "choose ismcts, lbr or learned"
    try:
        memory.check_need(what, need, memory_limit, remedy)
    except GameTooLargeError as error:
        return target._replace(too_large=error)
    form = form_of(policy.signals)
    first, second = map(normalised, form.decisions, policy.behaviour)
    return target._replace(form=form, behaviour=(first, second))
