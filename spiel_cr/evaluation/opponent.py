"""The opponent of a response, with the form of the game on which it is known.

A policy that was solved on the public-tree form is evaluated on that form, and any
policy of a large phantom game on the phantom form. Any other policy is evaluated on the
game tree or, if the tree is too large, on OpenSpiel's states.
"""

import math
import time
from typing import Any, NamedTuple, cast

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.common import memory
from spiel_cr.common.errors import GameTooLargeError, MoreKnowledgeError
from spiel_cr.common.executor import IN_PROCESS, Executor
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce
from spiel_cr.common.pairs import ordered_pair
from spiel_cr.evaluation.abrupt_phantom import AbruptEvaluation
from spiel_cr.evaluation.response_config import Behaviours
from spiel_cr.games.game_form import HasSequenceForm
from spiel_cr.games.opening.estimate import estimate_histories
from spiel_cr.games.opening.identity import other_game, same_game
from spiel_cr.games.opening.opened import Openable, Opened, open_game
from spiel_cr.games.phantom.abrupt import abrupt_game
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.phantom.phantom_rules import estimate_phantom_worlds, phantom_rules
from spiel_cr.games.public_tree import public_tree_footprint as footprint
from spiel_cr.games.public_tree.public_tree_loading import declared, public_tree_game
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.player_specs import PlayerLike, read_player
from spiel_cr.players.player_strings import PlayerSpec
from spiel_cr.policies.array_queries import rules_for
from spiel_cr.policies.behaviour_files import form_policy
from spiel_cr.policies.best_responses import value_bounds
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.policy_adapters import probe
from spiel_cr.policies.queries import query
from spiel_cr.policies.result import Result
from spiel_cr.solvers.cfr import board_arrays, board_solver
from spiel_cr.solvers.cfr.board_values import with_values
from spiel_cr.solvers.locks import Locks, lock
from spiel_cr.solvers.representation import (
    PHANTOM,
    PUBLIC_TREE,
    SIMULATOR,
    TREE,
    FormRequirements,
    GameOptions,
    SimulatedGame,
    choose_form,
    represent,
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
      form: The represented game; None if no form fits into memory.
      sequence_form: The form's payoffs and sequences, with node locks.
      behaviour: Action probabilities of both players on the form, each float64 [S]. The
        responder's give the value of the policy itself. None if `form` is None, or the
        policy is an estimate.
      bots: The bots of players 0 and 1, if the policy is an estimate of them; otherwise
        None.
      too_large: Error that explains why no form could be built; None if `form` is
        given.
      abrupt: Exact evaluation of an abrupt phantom game, which has no form; None for
        other games.
      seed: Seed of `open_opponent`.
    """

    name: str
    game: pyspiel.Game
    policy: openspiel_policy.Policy
    form: HasSequenceForm | None = None
    sequence_form: SequenceForm | None = None
    behaviour: Behaviours | None = None
    bots: tuple[pyspiel.Bot, pyspiel.Bot] | None = None
    too_large: GameTooLargeError | MoreKnowledgeError | None = None
    abrupt: AbruptEvaluation | None = None
    seed: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how worker processes make the opponent, without forms but the tree."""
        return _again, (self.name, self.game, self.tree, self.seed)

    @property
    def tree(self) -> GameTree | None:
        """The game tree; None if it is too large, or the policy has another form."""
        return None if self.form is None else self.form.tree

    def strategy(self) -> Behaviours:
        """Return the policy on the form, each float64 [S]; an estimate if it has bots.

        Raises:
          GameTooLargeError: If no form fits into memory.
          MoreKnowledgeError: See `query`.
        """
        if self.behaviour is not None:
            return self.behaviour
        if self.form is None:
            raise self.too_large or GameTooLargeError(f"{self.game} was not built")
        return query(self.form, self.policy)

    def nash_conv(self) -> float:
        """Compute the exact NashConv of the policy.

        Raises:
          GameTooLargeError, MoreKnowledgeError: See `strategy`.
        """
        if self.abrupt is not None:
            return sum(each.value for each in self.abrupt.values)
        behaviour = self.strategy()
        assert self.sequence_form is not None
        low, high = value_bounds(self.sequence_form, behaviour)
        return high - low

    def with_locks(self, locks: Locks) -> "Opponent":
        """Return the opponent on a game with node locks of the responder.

        Raises:
          ValueError: If the game has no form, or see `locks.lock`.
        """
        if self.form is None or self.sequence_form is None or self.bots is not None:
            raise ValueError(
                f"locks: {self.name} on {self.game} is evaluated in matches, which do "
                f"not support node locks; give a policy, and memory for the game tree"
            )
        return self._replace(sequence_form=lock(self.sequence_form, self.form, locks))

    def response_policy(
        self, player: int, response: np.ndarray
    ) -> openspiel_policy.Policy:
        """Return a policy that plays the response against the opponent's strategy.

        Args:
          player: The responder.
          response: The response's action probabilities, float64 [S].
        """
        assert self.form is not None
        behaviours = ordered_pair(player, response, self.strategy()[1 - player])
        return form_policy(self.form, behaviours)

    def bot(self, seat: int, seed: int) -> pyspiel.Bot:
        """Return the bot that plays as a player: its own bot, or one of its policy."""
        if self.bots is not None:
            return self.bots[seat]
        return PolicyBot(seat, self.policy, seed=seed)


def open_opponent(
    player: PlayerLike,
    game: Game | PhantomGame,
    *,
    seat: int = 0,
    seed: int = 0,
    other_forms: bool = True,
    memory_limit: Limit = None,
    seconds: float = math.inf,
    executor: Executor = IN_PROCESS,
) -> Opponent:
    """Open a game and a player of it.

    A player that is a solution of a sampled algorithm is solved on the simulated game
    if the game tree is too large.

    Args:
      player: The player: a string for `read_player`, a policy, a result, a function
        that makes bots, or a bot.
      game: OpenSpiel game string, game, or represented game. The tree is built if it
        fits into memory.
      seat: Player of the game that a bot for one player plays as.
      seed: Seed of sampled algorithms and of bots.
      other_forms: Whether to evaluate a policy that was solved on the public-tree form
        on that form, and large phantom games on the phantom form.
      memory_limit: Largest memory for the game tree and other forms.
      seconds: Time for building the form and querying the policy on it. If that would
        take longer, the game counts as too large, unless the policy needs its tree.
      executor: Executor whose workers query a bot at every infoset of the game tree, if
        the bot has a string and its strategy does not depend on earlier queries.

    Raises:
      OSError, ValueError, pyspiel.SpielError: See `read_player` and `open_game`.
    """
    until = time.perf_counter() + seconds
    opened = open_game(game)
    loaded = opened.game
    spec = read_player(player, loaded, seat=seat)
    is_object, policy = not isinstance(player, str), None
    if is_object and not spec.needs_tree:
        # A policy of another game is rejected before any work.
        policy = spec.policy(loaded, seed, lazy=False)
    built = _built_form(game)
    of_public_tree = _public_tree_policy(policy) is not None
    if spec.file is not None:
        of_public_tree = spec.file.is_of_public_tree
    form: HasSequenceForm | None = None
    too_large = None
    try:
        if built is not None or not (other_forms and of_public_tree):
            form = build_for_evaluation(
                built or opened,
                memory_limit,
                worlds=other_forms and not spec.needs_tree,
                seconds=math.inf if spec.needs_tree else seconds,
                solved=getattr(policy, "form", None),
            )
    except GameTooLargeError as error:
        too_large = error
        if spec.needs_tree and not spec.simulates:
            raise
    if not is_object:
        announce(f"taking the policy {player}")
    playable = form or _form_for(spec, loaded)
    rivals = spec.bots_behind(playable, seed)
    if policy is None:
        policy = spec.policy(playable, seed, lazy=not executor.is_in_process)
    name = player if isinstance(player, str) else type(player).__name__
    target = Opponent(name, loaded, policy, bots=rivals, too_large=too_large, seed=seed)
    if form is not None:
        target = target._replace(form=form, sequence_form=form.sequence_form)
    if is_object:
        _check_belongs(player, target.tree)
        if target.tree is None:
            probe(policy, loaded)
    if rivals is not None:
        return target
    try:
        if form is not None:
            behaviour = query(form, policy, deadline=until, executor=executor)
            if target.tree is None:
                target = target._replace(policy=form_policy(form, behaviour))
            return target._replace(behaviour=behaviour)
        if not other_forms:
            return target
        return _on_other_form(target, opened, seconds, memory_limit)
    except (GameTooLargeError, MoreKnowledgeError) as error:
        return target._replace(form=None, sequence_form=None, too_large=error)


def _on_other_form(
    target: Opponent, opened: Opened, seconds: float, memory_limit: Limit
) -> Opponent:
    """Evaluate a policy on a form of the game other than its tree, if there is one."""
    policy = target.policy
    if seconds == math.inf:
        policy = _query_private_states(opened, policy, memory_limit) or policy
    of_public_tree = _public_tree_policy(policy)
    if of_public_tree is not None:
        return _on_public_tree(target, of_public_tree, memory_limit)
    if seconds == math.inf:
        abrupt = abrupt_game(opened, memory_limit)
        if abrupt is not None:
            return target._replace(abrupt=AbruptEvaluation(abrupt, policy))
    return target


def _again(name: str, game: pyspiel.Game, tree: GameTree | None, seed: int) -> Opponent:
    """Make an opponent again in another process, from its string."""
    spec = read_player(name, game)
    playable = tree or _form_for(spec, game)
    policy = spec.policy(playable, seed, lazy=False)
    rivals = spec.bots_behind(playable, seed)
    return Opponent(name, game, policy, bots=rivals, seed=seed)


def _form_for(spec: PlayerSpec, game: pyspiel.Game) -> SimulatedGame | pyspiel.Game:
    """Return the form on which a player plays if the game tree is too large."""
    return SimulatedGame(game) if spec.needs_tree and spec.simulates else game


def build_for_evaluation(
    game: Openable,
    memory_limit: Limit = None,
    *,
    worlds: bool = True,
    seconds: float = math.inf,
    solved: HasSequenceForm | None = None,
) -> GameTree | PhantomGame:
    """Build the form on which policies of a game are evaluated.

    Args:
      game: The game; a game tree or phantom game is returned as it is.
      memory_limit: Memory limit of the whole process.
      worlds: Whether to build the phantom form of phantom games that are large or have
        imperfect recall.
      seconds: Time for building the form.
      solved: A form of the game that already exists; it is returned if it is the one
        that would be built.

    Raises:
      GameTooLargeError: If the form takes more memory than the limit, or building it
        would take clearly longer than `seconds`.
    """
    if (built := _built_form(game)) is not None:
        memory.parse_limit(memory_limit)
        return built
    opened = open_game(game)
    options = GameOptions(memory_limit=memory_limit)
    others = (PUBLIC_TREE, SIMULATOR) if worlds else (PUBLIC_TREE, PHANTOM, SIMULATOR)
    need = FormRequirements(dict.fromkeys(others, ""), worlds, observations=True)
    source: Openable = opened
    if seconds < math.inf or solved is not None:
        chosen = choose_form(opened, options, need).form
        if solved is not None and solved.kind == chosen:
            if same_game(solved.game, opened.game):
                source, seconds = solved, math.inf
        if seconds < math.inf:
            _check_seconds(opened, chosen, seconds)
    form, _ = represent(source, options, need)
    return cast(GameTree | PhantomGame, form)


def _built_form(game: object) -> GameTree | PhantomGame | None:
    """Return a form on which policies are evaluated; None if it is to be built."""
    return game if isinstance(game, GameTree | PhantomGame) else None


def _phantom_seconds(opened: Opened, most: float) -> float:
    """Estimate how long building the phantom form takes."""
    rules = phantom_rules(opened.rules)
    assert rules is not None
    return estimate_phantom_worlds(opened.game, rules) / _WORLDS_A_SECOND


def _tree_seconds(opened: Opened, most: float) -> float:
    """Estimate how long building the game tree takes, up to `most` seconds."""
    speed = _STATES_A_SECOND if opened.rules is None else _RULES_A_SECOND
    return estimate_histories(opened.game, threshold=speed * most) / speed


_SECONDS = {PHANTOM: _phantom_seconds, TREE: _tree_seconds}


def _check_seconds(opened: Opened, form: str, seconds: float) -> None:
    """Raise GameTooLargeError if building a form takes clearly longer."""
    need = _SECONDS[form](opened, seconds)
    if need > seconds:
        raise GameTooLargeError(
            f"building {opened.game} would take about {need:.2g} s, longer "
            f"than the limit of {seconds:.2g} s"
        )


def _check_belongs(policy: object, tree: GameTree | None) -> None:
    """Raise an error if a result's game tree has other decisions than the game.

    Args:
      policy: The policy as the caller gave it.
      tree: The game tree; None if the game has another form, which `query` checks.

    Raises:
      OtherGameError: If the infosets or actions differ.
    """
    solved = policy.tree if isinstance(policy, Result) else None
    if solved is None or tree is None or solved is tree:
        return
    if solved.decisions_id != tree.decisions_id:
        raise other_game("policy: a result", solved.game, tree.game)


def _query_private_states(
    opened: Opened, policy: openspiel_policy.Policy, memory_limit: Limit
) -> FormPolicy | None:
    """Query a policy at all private states.

    None if the game declares no public-tree form, or is too large to query the policy
    state by state.
    """
    if opened.rules is None or not declared(opened):
        return None
    inner = getattr(policy, "of_representatives", None) or policy
    at_once = getattr(inner, "by_legal_actions", False)
    at_once = at_once or rules_for(opened.game, inner) is not None
    is_queried = inner is not policy or getattr(inner, "is_foreign", False)
    if not (at_once or is_queried):
        return None
    try:
        form = public_tree_game(opened, memory_limit=memory_limit)
    except GameTooLargeError:
        raise
    except ValueError:  # the game cannot be declared with these parameters
        return None
    if not at_once and sum(map(len, form.decisions)) > _MOST_QUERIED:
        return None
    return FormPolicy(form, query(form, policy))


def _public_tree_policy(policy: object) -> FormPolicy | None:
    """Return a policy if it was solved on a public tree, otherwise None."""
    if isinstance(policy, FormPolicy) and policy.form.kind == PUBLIC_TREE:
        return policy
    return None


def _on_public_tree(
    target: Opponent, policy: FormPolicy, memory_limit: Limit
) -> Opponent:
    """Evaluate on the public-tree form of the policy's game; no tree is built.

    Raises:
      GameTooLargeError: If that takes more memory than the limit.
      OtherGameError: If the policy belongs to a game with other decisions.
    """
    if not same_game(policy.game, target.game):
        policy = _on_equal_game(policy, target.game, memory_limit)
    form = policy.form
    sequences = sum(side.num_sequences for side in form.public_decisions)
    dtype = policy.behaviour[0].dtype
    if board_solver.is_available() and board_arrays.suits(form):
        need = footprint.board_bytes(form, dtype)
    else:
        need = footprint.peak_bytes(form, np.float32) + 8 * _VECTORS * sequences
    purpose = f"a best response on the public-tree form of {policy.game}"
    remedy = "choose ismcts, lbr or learned"
    memory.check_need(purpose, need, memory_limit, remedy)
    sequence_form = with_values(form, form.sequence_form, dtype)
    first, second = policy.behaviour
    if sequence_form.evaluator is None:
        first, second = query(form, policy)
    return target._replace(
        policy=policy,
        form=form,
        sequence_form=sequence_form,
        behaviour=(first, second),
    )


def _on_equal_game(
    policy: FormPolicy, game: pyspiel.Game, memory_limit: Limit
) -> FormPolicy:
    """Return the same strategy on another game with equal decisions.

    Raises:
      OtherGameError: If the games differ in public actions or private states.
    """
    error = other_game("policy: a FormPolicy", policy.game, game)
    opened = open_game(game)
    if not declared(opened):
        raise error
    game_form = public_tree_game(opened, memory_limit=memory_limit)
    for other in (game_form, merged(game_form)):
        if other.decisions_id == policy.form.decisions_id:
            return FormPolicy(other, policy.behaviour)
    raise error
