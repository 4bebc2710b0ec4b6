"""Who is to be responded to: a player, opened once in the form that it allows.

A policy that was solved in the form of signals is answered on that form, any policy of
large hidden boards on that of worlds, any other one on the compiled game, or where this
does not fit on OpenSpiel's states.
"""

import math
import time
from typing import NamedTuple, TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.common import memory
from spiel_cr.common.errors import (
    GameTooLargeError,
    ImperfectRecallError,
    MoreKnowledgeError,
)
from spiel_cr.common.executor import IN_PROCESS, Executor
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce
from spiel_cr.evaluation.abrupt_phantom import AbruptEvaluation
from spiel_cr.evaluation.response_config import Behaviours
from spiel_cr.evaluation.result import in_player_order
from spiel_cr.games.game_form import HasSequenceForm
from spiel_cr.games.opening.estimate import estimate_histories
from spiel_cr.games.opening.identity import other_game, same_game
from spiel_cr.games.opening.opened import Opened, open_game
from spiel_cr.games.phantom.abrupt import abrupt_game
from spiel_cr.games.phantom.game import PhantomGame, shared_phantom_game
from spiel_cr.games.phantom.hidden import estimate_phantom_worlds, phantom_rules
from spiel_cr.games.public_tree import public_tree_footprint as footprint
from spiel_cr.games.public_tree.declaration.public_tree_rules import declares
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_tree_loading import declared, public_tree_game
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.compiler import Game, build_tree
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.player_specs import PlayerLike, as_policy_source, read_player
from spiel_cr.policies import conversions
from spiel_cr.policies.bot_policies import BotPolicy
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.policy_adapters import AdaptedPolicy, JointPolicy, probe
from spiel_cr.policies.queries import normalised, query, rules_for
from spiel_cr.policies.result import Result
from spiel_cr.solvers.locks import Locks, lock
from spiel_cr.solvers.representation import PHANTOM, GameOptions, Need, choose_form

# Strategies, reach and responses: float64 vectors over sequences, at the peak, besides
# what solving in float32 takes. Fitted to Rhode Island Hold'em, 1.38 GB.
_VECTORS = 6
# Histories and worlds that are laid out in a second, with care: compiled games by rules
# on arrays and by OpenSpiel's states, and hidden boards (dark hex and phantom
# tic-tac-toe, 5 x 10^5 worlds: 37 to 53 s on two busy cores).
_RULES_A_SECOND, _STATES_A_SECOND, _WORLDS_A_SECOND = 5e5, 5e4, 1.5e4
# Infosets of a public-tree form at which a policy is queried state by state, at most.
_MOST_QUERIED = 1_000_000


class Opponent(NamedTuple):
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
    tree: GameTree | None = None
    form: SequenceForm | None = None
    behaviour: Behaviours | None = None
    bots: tuple[pyspiel.Bot, pyspiel.Bot] | None = None
    too_large: GameTooLargeError | MoreKnowledgeError | None = None
    abrupt: AbruptEvaluation | None = None

    def strategy(self) -> Behaviours:
        """The policy on the form, each float64 [S]; estimated where there are rivals.

        Raises:
          GameTooLargeError: there is no form.
          MoreKnowledgeError: see `query`.
        """
        if self.behaviour is not None:
            return self.behaviour
        if self.tree is None:
            raise self.too_large or GameTooLargeError(f"{self.game} is not compiled")
        return query(self.tree, self.policy)

    def with_locks(self, locks: Locks) -> "Opponent":
        """The game with the responder's infosets locked.

        Raises:
          ValueError: there is no form of the game, or as `locks.lock`.
        """
        laid: HasSequenceForm | None = self.tree
        if laid is None and isinstance(self.policy, FormPolicy):
            laid = self.policy.form
        if self.form is None or laid is None or self.bots is not None:
            raise ValueError(
                f"locks: {self.name} on {self.game} is answered in matches, where "
                f"nothing is locked; give a policy, and memory for the compiled game"
            )
        return self._replace(form=lock(self.form, laid, locks))

    def as_policy(self, behaviours: Behaviours) -> openspiel_policy.Policy:
        """Strategies on the form as a policy of both players."""
        if self.tree is not None:
            return conversions.tabular_policy(self.tree, behaviours)
        assert isinstance(self.policy, FormPolicy)
        return FormPolicy(self.policy.form, behaviours)

    def response_policy(
        self, player: int, response: np.ndarray
    ) -> openspiel_policy.Policy:
        """A response in its seat, and the policy in the other, where that is known.

        Args:
          player: the responder.
          response: float64 [S], its action probabilities.
        """
        return self.as_policy(
            in_player_order(player, response, self.strategy()[1 - player])
        )

    def for_workers(self, executor: Executor, seed: int) -> "Opponent | OpponentSource":
        """Return what `rebuild_opponent` needs in workers."""
        if executor.is_in_process:
            return self
        return self.name, self.tree or self.game, seed

    def bot(self, seat: int, seed: int) -> pyspiel.Bot:
        """Who plays matches in a seat: the bot itself, or the policy."""
        if self.bots is not None:
            return self.bots[seat]
        return PolicyBot(seat, self.policy, seed=seed)


def open_opponent(
    given: PlayerLike,
    game: Game,
    *,
    seat: int = 0,
    seed: int = 0,
    signals: bool = True,
    memory_limit: Limit = None,
    seconds: float = math.inf,
    progress: bool = False,
    executor: Executor = IN_PROCESS,
) -> Opponent:
    """Opens a game and a player of it.

    Args:
      given: a string for `read_player`, a policy, a result, a
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
      executor: where a bot is asked, if it has a string, plays one strategy whatever it
        was asked before, and is asked at every infoset of the compiled game.

    Raises:
      OSError, ValueError, pyspiel.SpielError: as `read_player` and `open_game`.
    """
    until = time.perf_counter() + seconds
    opened = open_game(game)
    loaded = opened.game
    spec = read_player(given, loaded, seat=seat)
    is_object, policy = not isinstance(given, str), None
    if is_object and not spec.needs_tree:
        # What belongs to another game is rejected before any work.
        policy = as_policy_source(spec, loaded, seed=seed)
    of_signals = _is_of_public_tree(policy)
    if spec.file is not None:
        of_signals = spec.file.is_of_public_tree
    whole = spec.needs_tree
    laid: GameTree | PhantomGame | None = None
    too_large = None
    try:
        if isinstance(game, GameTree):
            memory.parse_limit(memory_limit)
            laid = game
        elif not (signals and of_signals):
            laid = build_for_evaluation(
                opened,
                memory_limit,
                worlds=signals and not whole,
                seconds=math.inf if whole else seconds,
                progress=progress,
            )
    except GameTooLargeError as error:
        too_large = error
        if whole:
            raise
    tree = laid if isinstance(laid, GameTree) else None
    if is_object:
        _check_belongs(given, tree)
    else:
        announce(f"taking the policy {given}")
    known = loaded if tree is None else tree
    rivals = spec.bots_behind(known, seed)
    if policy is None:
        lazy = not executor.is_in_process
        policy = as_policy_source(spec, known, seed=seed, lazy=lazy)
    if is_object and tree is None:
        probe(policy, loaded)
    name = given if isinstance(given, str) else type(given).__name__
    form = None if tree is None else tree.sequence_form
    target = Opponent(name, loaded, policy, tree, form, None, rivals, too_large)
    if rivals is not None:
        return target
    try:
        if laid is not None:
            behaviour = query(
                laid, policy, deadline=until, executor=executor, progress=progress
            )
            if isinstance(laid, PhantomGame):
                target = target._replace(policy=FormPolicy(laid, behaviour))
            return target._replace(form=laid.sequence_form, behaviour=behaviour)
        bot = not is_object and isinstance(policy, BotPolicy)
        if signals and seconds == math.inf and not bot:
            asked = _asked_by_signals(opened, policy, memory_limit, progress)
            policy = policy if asked is None else asked
            target = target._replace(policy=policy)
        if signals and _is_of_public_tree(policy):
            assert isinstance(policy, FormPolicy)
            return _on_signals(target, policy, memory_limit)
        if signals and seconds == math.inf:
            abrupt = abrupt_game(opened, memory_limit)
            if abrupt is not None:
                evaluation = AbruptEvaluation(abrupt, policy, progress=progress)
                return target._replace(abrupt=evaluation)
    except (GameTooLargeError, MoreKnowledgeError) as error:
        return target._replace(tree=None, form=None, too_large=error)
    return target


# A target's name, its compiled game or else its game, and the seed of `open_opponent`.
OpponentSource: TypeAlias = tuple[str, GameTree | pyspiel.Game, int]


def rebuild_opponent(target: Opponent | OpponentSource) -> Opponent:
    """A target, elsewhere than where it was loaded, from its string and on no form."""
    if isinstance(target, Opponent):
        return target
    name, known, seed = target
    loaded = known.game if isinstance(known, GameTree) else known
    spec = read_player(name, loaded)
    policy = as_policy_source(spec, known, seed=seed)
    return Opponent(name, loaded, policy, bots=spec.bots_behind(known, seed))


def build_for_evaluation(
    opened: Opened,
    memory_limit: Limit = None,
    *,
    worlds: bool = True,
    seconds: float = math.inf,
    progress: bool = False,
) -> GameTree | PhantomGame:
    """The form in which policies of a game are judged.

    Args:
      opened: the game.
      memory_limit: of the whole process.
      worlds: lay hidden boards out by worlds, where they are large or forget.
      seconds: for laying the game out.
      progress: show progress bars on stderr.

    Raises:
      GameTooLargeError: it takes more memory than the limit, or clearly longer.
    """
    board = phantom_rules(opened.rules) if worlds else None
    options = GameOptions(memory_limit=memory_limit)
    by_worlds = board is not None and (
        choose_form(opened, options, Need({})).form == PHANTOM
    )
    if seconds < math.inf:
        if board is None or not by_worlds:
            speed = _STATES_A_SECOND if opened.rules is None else _RULES_A_SECOND
            need = estimate_histories(opened.game, room=speed * seconds) / speed
        else:
            need = estimate_phantom_worlds(opened.game, board) / _WORLDS_A_SECOND
        if need > seconds:
            raise GameTooLargeError(
                f"laying {opened.game} out would take about {need:.2g} s, and there "
                f"are {seconds:.2g} for that"
            )
    if not by_worlds:
        try:
            return build_tree(
                opened, observations=True, memory_limit=memory_limit, progress=progress
            )
        except ImperfectRecallError:
            if board is None:
                raise
    return shared_phantom_game(opened, memory_limit)


def _check_belongs(given: object, tree: GameTree | None) -> None:
    """Raise an error if a result's game tree has other decisions than the game.

    Args:
      given: What a user gave as a policy.
      tree: The game tree; None: the game has another form, which checks by itself.

    Raises:
      OtherGameError: If the infosets or actions differ.
    """
    if tree is None or not isinstance(given, Result) or given.tree is None:
        return
    own = given.tree
    if own is not tree and own.decisions_id != tree.decisions_id:
        raise other_game("policy: a result", own.game, tree.game)


def _asked_by_signals(
    opened: Opened,
    policy: openspiel_policy.Policy,
    memory_limit: Limit,
    progress: bool,
) -> FormPolicy | None:
    """Query a policy at all private states; None: the game declares none."""
    if opened.rules is None or not declares(opened.rules):
        return None
    foreign = isinstance(policy, AdaptedPolicy | JointPolicy | BotPolicy)
    at_once = rules_for(opened.game, policy) is not None
    if not (at_once or foreign):
        return None
    signals = public_tree_game(opened, progress=progress, memory_limit=memory_limit)
    infosets = sum(
        int(signals.public_decisions[player].first_infoset[-1]) for player in range(2)
    )
    if not at_once and infosets > _MOST_QUERIED:
        return None
    return FormPolicy(signals, query(signals, policy, progress=progress))


def _is_of_public_tree(policy: object) -> bool:
    return isinstance(policy, FormPolicy) and isinstance(policy.form, PublicTreeGame)


def _on_signals(target: Opponent, policy: FormPolicy, memory_limit: Limit) -> Opponent:
    """Evaluate on the public-tree form of the policy's game; no tree is built.

    Raises:
      GameTooLargeError: If that takes more memory than the limit.
      OtherGameError: If the policy belongs to a game with other decisions.
    """
    if not same_game(policy.game, target.game):
        policy = _moved(policy, target.game, memory_limit)
        target = target._replace(policy=policy)
    sizes = [footprint.size_of(policy.form, player) for player in range(2)]
    need = footprint.peak_bytes(policy.form, np.float32)
    need += 8 * _VECTORS * sum(size.sequences for size in sizes)
    what = f"a best response on {policy.game} in the form of signals"
    remedy = "choose ismcts, lbr or learned"
    memory.check_need(what, need, memory_limit, remedy)
    form = policy.form.sequence_form
    first, second = (
        normalised(decisions.num_actions, behaviour)
        for decisions, behaviour in zip(form.decisions, policy.behaviour, strict=True)
    )
    return target._replace(form=form, behaviour=(first, second))


def _moved(policy: FormPolicy, game: pyspiel.Game, memory_limit: Limit) -> FormPolicy:
    """Return the same strategy on another game with equal decisions.

    Raises:
      OtherGameError: If the games differ in public actions or private states.
    """
    error = other_game("policy: a FormPolicy", policy.game, game)
    opened = open_game(game)
    if not declared(opened):
        raise error
    signals = public_tree_game(opened, memory_limit=memory_limit)
    for other in (signals, merged(signals)):
        if other.decisions_id == policy.form.decisions_id:
            return FormPolicy(other, policy.behaviour)
    raise error
