"""The opponent of a response, with the form of the game on which it is known.

A policy that was solved on the public-tree form is evaluated on that form, and any
policy of a large phantom game on the phantom form. Any other policy is evaluated on the
game tree or, if the tree is too large, on OpenSpiel's states.
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
from spiel_cr.players.player_strings import PlayerSpec
from spiel_cr.policies import conversions
from spiel_cr.policies.bot_policies import BotPolicy
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.policy_adapters import AdaptedPolicy, JointPolicy, probe
from spiel_cr.policies.queries import normalised, query, rules_for
from spiel_cr.policies.result import Result
from spiel_cr.solvers.locks import Locks, lock
from spiel_cr.solvers.representation import (
    PHANTOM,
    GameOptions,
    Need,
    SimulatedGame,
    choose_form,
)

# Largest number of float64 vectors over sequences (strategies, reach, responses) at a
# time, in addition to the memory of solving in float32. Fitted to Rhode Island Hold'em,
# 1.38 GB.
_VECTORS = 6
# Cautious numbers of histories built per second, for game trees by batched rules and by
# OpenSpiel's states, and of worlds of phantom games (dark hex and phantom tic-tac-toe,
# 5 x 10^5 worlds: 37 to 53 s on two busy cores).
_RULES_A_SECOND, _STATES_A_SECOND, _WORLDS_A_SECOND = 5e5, 5e4, 1.5e4
# Infosets of a public-tree form at which a policy is queried state by state, at most.
_MOST_QUERIED = 1_000_000


class Opponent(NamedTuple):
    """A player to respond to, and the form of the game on which it is known.

    Attributes:
      name: Name of the player, as users write it.
      game: The sequential game.
      policy: Policy of both players; an estimate if there are `bots`.
      tree: The game tree; None if it is too large, or the policy has another form.
      form: Sequence form of the tree, or of the policy's public-tree or phantom form;
        None if no form fits into memory.
      behaviour: Action probabilities of both players on the form, each float64 [S]. The
        responder's give the value of the policy itself. None if there is no form, or
        the policy is an estimate.
      bots: The bots of players 0 and 1, if the policy is an estimate of them; otherwise
        None.
      too_large: The error that explains why there is no form; None if there is one.
      abrupt: Exact evaluation of an abrupt phantom game, which has no form; None for
        other games.
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
        """Return the policy on the form, each float64 [S]; an estimate if it has bots.

        Raises:
          GameTooLargeError: If there is no form.
          MoreKnowledgeError: See `query`.
        """
        if self.behaviour is not None:
            return self.behaviour
        if self.tree is None:
            raise self.too_large or GameTooLargeError(f"{self.game} is not compiled")
        return query(self.tree, self.policy)

    def with_locks(self, locks: Locks) -> "Opponent":
        """Return the opponent on a game with node locks of the responder.

        Raises:
          ValueError: If the game has no form, or see `locks.lock`.
        """
        represented: HasSequenceForm | None = self.tree
        if represented is None and isinstance(self.policy, FormPolicy):
            represented = self.policy.form
        if self.form is None or represented is None or self.bots is not None:
            raise ValueError(
                f"locks: {self.name} on {self.game} is evaluated in matches, which do "
                f"not support node locks; give a policy, and memory for the game tree"
            )
        return self._replace(form=lock(self.form, represented, locks))

    def as_policy(self, behaviours: Behaviours) -> openspiel_policy.Policy:
        """Return strategies on the form as a policy of both players."""
        if self.tree is not None:
            return conversions.tabular_policy(self.tree, behaviours)
        assert isinstance(self.policy, FormPolicy)
        return FormPolicy(self.policy.form, behaviours)

    def response_policy(
        self, player: int, response: np.ndarray
    ) -> openspiel_policy.Policy:
        """Return a policy that plays the response against the opponent's strategy.

        Args:
          player: The responder.
          response: float64 [S], the response's action probabilities.
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
        """Return the bot that plays as a player: its own bot, or one of its policy."""
        if self.bots is not None:
            return self.bots[seat]
        return PolicyBot(seat, self.policy, seed=seed)


def open_opponent(
    player: PlayerLike,
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
    """Open a game and a player of it.

    A player that is a solution of a sampled algorithm is solved on the simulated game
    if the game tree is too large.

    Args:
      player: The player: a string for `read_player`, a policy, a result, a function
        that makes bots, or a bot.
      game: OpenSpiel game string, game, or game tree. The tree is built if it fits.
      seat: Player of the game that a bot for one player plays as.
      seed: Seed of sampled algorithms and of bots.
      signals: Whether to evaluate a policy that was solved on the public-tree form on
        that form, and large phantom games on the phantom form.
      memory_limit: Largest memory for the game tree and other forms.
      seconds: Time for building the form and querying the policy on it. If that would
        take longer, the game counts as too large, unless the policy needs its tree.
      progress: Whether to show progress bars on stderr.
      executor: Where a bot is queried at every infoset of the game tree, if it has a
        string and its strategy does not depend on earlier queries.

    Raises:
      OSError, ValueError, pyspiel.SpielError: See `read_player` and `open_game`.
    """
    until = time.perf_counter() + seconds
    opened = open_game(game)
    loaded = opened.game
    spec = read_player(player, loaded, seat=seat)
    is_object, policy = not isinstance(player, str), None
    if is_object and not spec.needs_tree:
        # What belongs to another game is rejected before any work.
        policy = as_policy_source(spec, loaded, seed=seed)
    of_signals = _is_of_public_tree(policy)
    if spec.file is not None:
        of_signals = spec.file.is_of_public_tree
    needs_tree = spec.needs_tree
    represented: GameTree | PhantomGame | None = None
    too_large = None
    try:
        if isinstance(game, GameTree):
            memory.parse_limit(memory_limit)
            represented = game
        elif not (signals and of_signals):
            represented = build_for_evaluation(
                opened,
                memory_limit,
                worlds=signals and not needs_tree,
                seconds=math.inf if needs_tree else seconds,
                progress=progress,
            )
    except GameTooLargeError as error:
        too_large = error
        if needs_tree and not spec.simulates:
            raise
    tree = represented if isinstance(represented, GameTree) else None
    if is_object:
        _check_belongs(player, tree)
    else:
        announce(f"taking the policy {player}")
    game_form = _form_for(spec, loaded) if tree is None else tree
    rivals = spec.bots_behind(game_form, seed)
    if policy is None:
        lazy = not executor.is_in_process
        policy = as_policy_source(spec, game_form, seed=seed, lazy=lazy)
    if is_object and tree is None:
        probe(policy, loaded)
    name = player if isinstance(player, str) else type(player).__name__
    form = None if tree is None else tree.sequence_form
    target = Opponent(name, loaded, policy, tree, form, None, rivals, too_large)
    if rivals is not None:
        return target
    try:
        if represented is not None:
            behaviour = query(
                represented,
                policy,
                deadline=until,
                executor=executor,
                progress=progress,
            )
            if isinstance(represented, PhantomGame):
                target = target._replace(policy=FormPolicy(represented, behaviour))
            return target._replace(form=represented.sequence_form, behaviour=behaviour)
        bot = not is_object and isinstance(policy, BotPolicy)
        if signals and seconds == math.inf and not bot:
            queried = _query_private_states(opened, policy, memory_limit, progress)
            policy = policy if queried is None else queried
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


# An opponent's name, its game tree or otherwise its game, and the seed of
# `open_opponent`.
OpponentSource: TypeAlias = tuple[str, GameTree | pyspiel.Game, int]


def rebuild_opponent(target: Opponent | OpponentSource) -> Opponent:
    """Make an opponent again in another process, from its string and without a form."""
    if isinstance(target, Opponent):
        return target
    name, game, seed = target
    loaded = game.game if isinstance(game, GameTree) else game
    spec = read_player(name, loaded)
    form = game if isinstance(game, GameTree) else _form_for(spec, game)
    policy = as_policy_source(spec, form, seed=seed)
    return Opponent(name, loaded, policy, bots=spec.bots_behind(form, seed))


def _form_for(spec: PlayerSpec, game: pyspiel.Game) -> SimulatedGame | pyspiel.Game:
    """Return the form on which a player plays if there is no game tree."""
    return SimulatedGame(game) if spec.needs_tree and spec.simulates else game


def build_for_evaluation(
    opened: Opened,
    memory_limit: Limit = None,
    *,
    worlds: bool = True,
    seconds: float = math.inf,
    progress: bool = False,
) -> GameTree | PhantomGame:
    """Build the form on which policies of a game are evaluated.

    Args:
      opened: The game.
      memory_limit: Memory limit of the whole process.
      worlds: Whether to build the phantom form of phantom games that are large or have
        imperfect recall.
      seconds: Time for building the form.
      progress: Whether to show progress bars on stderr.

    Raises:
      GameTooLargeError: If the form takes more memory than the limit, or building it
        would take clearly longer than `seconds`.
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
                f"building {opened.game} would take about {need:.2g} s, and there "
                f"are {seconds:.2g} s for that"
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


def _check_belongs(policy: object, tree: GameTree | None) -> None:
    """Raise an error if a result's game tree has other decisions than the game.

    Args:
      policy: What a user gave as a policy.
      tree: The game tree; None: the game has another form, which checks by itself.

    Raises:
      OtherGameError: If the infosets or actions differ.
    """
    if tree is None or not isinstance(policy, Result) or policy.tree is None:
        return
    solved_tree = policy.tree
    if solved_tree is not tree and solved_tree.decisions_id != tree.decisions_id:
        raise other_game("policy: a result", solved_tree.game, tree.game)


def _query_private_states(
    opened: Opened,
    policy: openspiel_policy.Policy,
    memory_limit: Limit,
    progress: bool,
) -> FormPolicy | None:
    """Query a policy at all private states.

    None if the game declares no public-tree form, or is too large to query the policy
    state by state.
    """
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
    what = f"a best response on the public-tree form of {policy.game}"
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
