"""Responses to a target, in the form that it allows.

On a compiled game or a signal form a response is a strategy, whose value is exact. On
OpenSpiel's states it looks ahead in matches; where the target is known on a form it is
asked wherever it comes, as in a match, so that its value is exact as well.
"""

import dataclasses
import time
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common.checks import check_seed
from spiel_cr.common.executor import IN_PROCESS, Executor, in_order
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce, is_wanted, listening, short_repr
from spiel_cr.evaluation import response_matches
from spiel_cr.evaluation.opponent import (
    Again,
    Target,
    load_target,
    made_again,
)
from spiel_cr.evaluation.response_config import ResponseConfig, SearchConfig
from spiel_cr.evaluation.response_matches import Played, ResponseMatches
from spiel_cr.evaluation.responses import ismcts_search
from spiel_cr.evaluation.responses.ismcts_bot import ISMCTSBRBot, Predictor
from spiel_cr.evaluation.responses.learned_response import (
    LearningConfig,
    learn_response,
)
from spiel_cr.evaluation.responses.local_best_response import BoardResponse, LBRBot, lbr
from spiel_cr.evaluation.responses.state_responder import StateResponder
from spiel_cr.evaluation.result import Seat, seated
from spiel_cr.games.histories import moves_along
from spiel_cr.games.tree.compiler import Game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players import bots
from spiel_cr.players.player_specs import (
    PlayerLike,
    check_order,
)
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.beliefs import tree_posterior
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.bot_policies import BotPolicy
from spiel_cr.solvers.locks import Locks
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy


def respond(
    target: Target,
    player: int,
    config: ResponseConfig,
    *,
    states: bool = False,
    executor: Executor = IN_PROCESS,
) -> Seat:
    """Finds a response, and measures it.

    Where the target's policy is an estimate of a bot, the value is what the response
    gets in matches against that, and no exact one is known.

    Args:
      target: to whom.
      player: the responder.
      config: how.
      states: search on states though there is a form.
      executor: where matches are played; elsewhere than in this process the target is
        loaded again by its name.

    Raises:
      ValueError: a bad argument, or a method that needs the whole tree.
      ImportError: "learned" without the extra [deep].
    """
    if config.method == "exact" and target.streamed is not None and not states:
        return target.streamed.seats[player]
    if config.method == "exact" and (states or not target.form and not target.rivals):
        raise ValueError(
            f"method='exact' needs the whole tree, and "
            f"{target.too_large or 'the game was not compiled'}; choose ismcts, lbr or "
            f"learned, or allow more memory"
        ) from target.too_large
    # Learned in matches; what it then plays is judged on the form all the same.
    in_matches = states or config.method == "learned"
    if in_matches or config.method != "exact" and target.tree is None:
        return _on_states(target, player, config, executor)
    return _on_form(target, player, config, executor)


def _on_form(
    target: Target, player: int, config: ResponseConfig, executor: Executor
) -> Seat:
    """A response on a compiled game or the form of signals."""
    other = target.strategy()[1 - player]
    announce(f"{config.method} response of player {player}")
    begun = time.perf_counter()
    found, simulations = _strategy(target, player, other, config)
    seconds = time.perf_counter() - begun
    returns = np.zeros(0)
    if target.rivals is not None:
        policy = target.as_policy(seated(player, found, other))
        bot = bots.PolicyBot(player, policy, seed=config.seed)
        played = _matches(target, player, config, executor, bot)
        returns, _ = response_matches.returns_of(target, played)
    return response_matches.seat_of(
        target, player, returns, found, simulations=simulations, seconds=seconds
    )


def _strategy(
    target: Target, player: int, other: np.ndarray, config: ResponseConfig
) -> tuple[np.ndarray, int]:
    """float64 [S], a response's action probabilities; and how many simulations."""
    form, tree = target.form, target.tree
    assert form is not None
    if not len(form.decisions[player]):
        # Who never decides has one strategy.
        return np.ones(1), 0
    if config.method == "exact":
        reach = conversions.reach_from_behaviour(form.decisions[1 - player], other)
        return best_responses.best_response(form, player, reach), 0
    assert tree is not None
    if config.method == "lbr":
        return lbr(tree, player, other, leaf=config.leaf_for(tree.game)), 0
    response = ismcts_search.search_response(
        tree, player, other, config.search, seed=config.seed, progress=is_wanted()
    )
    return response.behaviour, response.simulations


def _on_states(
    target: Target, player: int, config: ResponseConfig, executor: Executor
) -> Seat:
    """A response that looks ahead in matches.

    Its value stays the mean of matches where the infosets that it comes to are more
    than these.
    """
    begun = time.perf_counter()
    if config.method == "lbr" and config.leaf in (None, "call"):
        if (response := _on_boards(target, player, config)) is not None:
            returns = response.values(config.matches)
            seconds = time.perf_counter() - begun
            return response_matches.seat_of(
                target, player, returns, None, simulations=0, seconds=seconds
            )
    announce(f"{config.method} response of player {player}, on states")
    responder, simulations = state_responder(target, player, config)
    found, returns, half = None, np.zeros(0), None
    if target.behaviour is not None:
        found = played_strategy(target, responder, most=config.matches)
    beliefs, count = responder.beliefs, responder.simulations
    if found is None:
        played = _matches(target, player, config, executor, responder)
        returns, half = response_matches.returns_of(target, played)
        for match in played:
            assert match.beliefs is not None
            beliefs, count = beliefs.plus(match.beliefs), count + match.simulations
    return response_matches.seat_of(
        target,
        player,
        returns,
        found,
        simulations=simulations + count,
        seconds=time.perf_counter() - begun,
        plain_half_width=half,
        beliefs=beliefs,
    )


def _on_boards(
    target: Target, player: int, config: ResponseConfig
) -> BoardResponse | None:
    """A response to bets and buckets, on boards; None: the policy is no such one."""
    policy = target.policy
    rules: Any = getattr(getattr(policy, "source", None), "rules", None)
    if not isinstance(policy, TablePolicy) or not hasattr(rules, "draw_board"):
        return None
    announce(f"{config.method} response of player {player}, on boards with all hands")
    return BoardResponse(rules, policy.strategy, player, seed=config.seed)


def _matches(
    target: Target,
    player: int,
    config: ResponseConfig,
    executor: Executor,
    responder: pyspiel.Bot,
) -> list[Played]:
    """Matches of a responder, who is made again in workers; those on forms stay."""
    if not isinstance(responder, StateResponder):
        executor = IN_PROCESS
    sent = target.sent(executor, config.seed)
    setup = sent, player, config, responder if executor.is_in_process else None
    tasks = {number: number for number in range(config.matches)}
    played = []
    for match in tqdm(
        in_order(executor.map(_made, setup, tasks), tasks),
        total=config.matches,
        desc=f"matches, player {player}",
        unit="match",
        disable=not is_wanted(),
    ):
        played.append(match)
        if not executor.is_in_process and isinstance(target.policy, TablePolicy):
            target.policy.asked += match.asked[0]
            target.policy.unmet += match.asked[1]
    return played


def _made(
    sent: Target | Again,
    player: int,
    config: ResponseConfig,
    responder: pyspiel.Bot | None,
) -> ResponseMatches:
    """Where matches are played; a target by its name is loaded, as is a responder."""
    target = made_again(sent)
    takes_luck = responder is None or isinstance(responder, StateResponder)
    if responder is None:
        responder, _ = state_responder(target, player, config)
    return ResponseMatches(target, player, responder, config, takes_luck=takes_luck)


def state_responder(
    target: Target, player: int, config: ResponseConfig
) -> tuple[StateResponder, int]:
    """Who looks ahead in matches, and the simulations that it learned from before.

    Args:
      target: whose policy it knows.
      player: the responder.
      config: "ismcts", "lbr" or "learned", and settings of beliefs.
    """
    game, opponent, seed = target.game, target.policy, config.seed
    belief = StatePosterior(
        game,
        player,
        opponent,
        max_histories=config.max_histories,
        particles=config.particles,
        seed=seed,
    )
    if config.method == "lbr":
        local = LBRBot(
            game,
            player,
            opponent,
            leaf=config.leaf_for(game),
            rollouts=config.rollouts,
            seed=seed,
            belief=belief,
        )
        return local, 0
    predictor, simulations = Predictor(rollout=rollout_of(opponent, config.search)), 0
    if config.method == "learned":
        settings = LearningConfig(search=config.search, rounds=config.rounds)
        learned = learn_response(
            game, player, opponent, settings, seed=seed, progress=is_wanted()
        )
        predictor = predictor._replace(prior_and_value=learned.prior_and_value)
        simulations = learned.simulations
    responder = ISMCTSBRBot(
        game,
        player,
        opponent,
        config.search,
        seed=seed,
        predictor=predictor,
        belief=belief,
    )
    return responder, simulations


def rollout_of(
    opponent: openspiel_policy.Policy, search: SearchConfig
) -> openspiel_policy.Policy | None:
    """How a searching response plays in rollouts: as the policy does in its seat.

    At random where the search is to be the paper's, and where a bot's moves would have
    to be counted for it at many information states.

    Args:
      opponent: the policy, of both seats.
      search: of the response.
    """
    counted = isinstance(opponent, BotPolicy)
    return opponent if search.histories == "all" and not counted else None


def played_strategy(
    target: Target, responder: StateResponder, *, most: int
) -> np.ndarray | None:
    """What a responder plays at each infoset that it comes to.

    Each is reached as in a match: the responder is restarted, and asked at all its
    decisions before. Its draws are made from its seed and what it knows, so it answers
    as it does in matches.

    Args:
      target: whose behaviour is known.
      responder: what it answers must be pure.
      most: infosets with a choice at which it is asked.

    Returns:
      float64 [S], action probabilities, uniform where it never comes; None if it comes
      to more than `most` infosets with a choice, or the game is not compiled.
    """
    tree, player = target.tree, responder.player_id()
    if tree is None:
        return None
    other = target.strategy()[1 - player]
    infosets, histories = tree.infosets[player], tree.histories
    decisions = infosets.decisions
    first, counts = decisions.first_sequence, decisions.num_actions
    odds = tree_posterior.weights(tree, player, other)
    own = np.flatnonzero(histories.player == player)
    # The likeliest history of each infoset: the opponent does lead there.
    own = own[np.argsort(odds[own], kind="stable")]
    likeliest = np.zeros(len(infosets), np.int64)
    likeliest[histories.infoset[own]] = own
    possible = odds[likeliest] > 0
    behaviour = conversions.uniform_behaviour(decisions)
    comes = np.zeros(decisions.num_sequences, bool)
    comes[0] = True
    asked = 0
    for infoset in np.argsort(decisions.levels(), kind="stable"):
        if not (possible[infoset] and comes[decisions.parent[infoset]]):
            continue
        place, count = 0, int(counts[infoset])
        if count > 1:
            asked += 1
            if asked > most:
                return None
            answer = _asked_at(tree, responder, int(likeliest[infoset]))
            place = int(np.argmax(answer))
        begin = int(first[infoset])
        behaviour[begin : begin + count] = 0.0
        behaviour[begin + place] = 1.0
        comes[begin + place] = True
    return behaviour


def _asked_at(tree: GameTree, responder: StateResponder, history: int) -> list[float]:
    """Probabilities at a history of the responder, in a match that leads there."""
    responder.restart()
    for state, _ in moves_along(tree.game, tree.histories.actions_to(history)):
        if state.current_player() == responder.player_id():
            responder.get_policy(state)
    policy = responder.get_policy(tree.state_at(history))
    return [probability for _, probability in policy]


@dataclasses.dataclass(frozen=True, repr=False)
class BestResponse:
    """A response to a player, and what it gets.

    Attributes:
      player: the responder's seat.
      value: the responder's expected utility, in the game's units.
      half_width: of the 95 % confidence interval around it; 0 where it is exact.
      is_exact: whether `value` is exact, and no response gets more.
      policy: of both players: the response in its seat, in the other one the policy
        that it responds to; None where it is known by its matches alone.
      seat: all that was measured.
    """

    player: int
    value: float
    half_width: float
    is_exact: bool
    policy: openspiel_policy.Policy | None
    seat: Seat

    __repr__ = short_repr


def best_response(
    game: Game,
    policy_or_bot: PlayerLike,
    player: int,
    config: ResponseConfig | None = None,
    *,
    seed: int = 0,
    memory_limit: Limit = None,
    locks: Locks | None = None,
    progress: bool = False,
) -> BestResponse:
    """What can be won against a player.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      policy_or_bot: to respond to: an OpenSpiel policy; a result of `solve`; a string
        such as "cfr+(iterations=10)" or "resolving(iterations=100)"; a bot of the other
        seat; or a function of (player, seed) that makes one. Bots are asked at each
        infoset, see `BotPolicy`.
      player: the responder's seat, 0 or 1.
      config: how a response is searched (`ResponseConfig`, with a `SearchConfig`);
        None: an exact best response on the compiled game, or ISMCTS-BR in 1000 matches
        where that does not fit.
      seed: of what bots draw.
      memory_limit: compile the game if it needs no more, as in `solve`.
      locks: what an exact response may not change, see `GameOptions`.
      progress: show progress bars on stderr.

    Raises:
      ValueError: a bad argument, or a bot of the responder's own seat.
    """
    check_order(game, policy_or_bot, "best_response(game, policy_or_bot, player)")
    check_seed(seed)
    _check_player(player)
    with listening(progress):
        target = load_target(
            policy_or_bot,
            game,
            seat=1 - player,
            seed=seed,
            signals=config is None or config.method == "exact",
            memory_limit=memory_limit,
            progress=progress,
        )
        if config is None and (target.form or target.streamed):
            config = ResponseConfig("exact")
        if locks is not None:
            if config is not None and config.method != "exact":
                raise ValueError(
                    f"locks: method={config.method!r} searches without them; leave "
                    f"them out, or take the method 'exact'"
                )
            target = target.with_locks(locks)
        seat = respond(target, player, config or ResponseConfig())
    policy = None
    if seat.behaviour is not None and target.behaviour is not None:
        policy = target.answered(player, seat.behaviour)
    return BestResponse(
        player, seat.value, seat.half_width, seat.is_exact, policy, seat
    )


def _check_player(player: int) -> None:
    if isinstance(player, bool) or player not in (0, 1):
        raise ValueError(f"player={player!r} must be 0 or 1, the responder's seat")
