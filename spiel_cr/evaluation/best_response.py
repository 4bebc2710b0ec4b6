"""Best responses to a policy or bot: exact, searched, local or learned; NashConv.

On a represented game, a response is a strategy, and its value is exact. Otherwise the
responder looks ahead during matches on OpenSpiel's states. If the opponent's strategy
is known on a represented game, the responder is queried at every infoset that it
reaches, as in a match, so that the value is exact again.
"""

import time
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_seed
from spiel_cr.common.executor import IN_PROCESS, Executor, in_order
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce, listening, progress_bar
from spiel_cr.evaluation.opponent import Opponent, open_opponent
from spiel_cr.evaluation.response_config import ResponseConfig
from spiel_cr.evaluation.response_matches import (
    ResponseMatch,
    ResponseMatches,
    returns_of,
    state_responder,
    value_of_response,
)
from spiel_cr.evaluation.responses import ismcts_search
from spiel_cr.evaluation.responses.local_best_response import BoardResponse, lbr
from spiel_cr.evaluation.responses.state_responder import StateResponder
from spiel_cr.evaluation.result import (
    Evaluation,
    ResponseValue,
    from_same_deals,
)
from spiel_cr.games.histories import moves_along
from spiel_cr.games.opening.identity import same_game
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players import bots
from spiel_cr.players.player_specs import PlayerLike, PolicyLike, check_order
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.beliefs import tree_posterior
from spiel_cr.policies.result import Result
from spiel_cr.solvers.locks import Locks
from spiel_cr.solvers.mccfr.table.table_policy import as_table


def best_response(
    game: Game,
    policy: PlayerLike,
    player: int,
    config: ResponseConfig | None = None,
    *,
    seed: int = 0,
    memory_limit: Limit = None,
    locks: Locks | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Compute a best response to a policy or bot, or search for an approximate one.

    Args:
      game: OpenSpiel game string, game, or game tree.
      policy: The opponent: an OpenSpiel policy, a result of `solve`, a string such as
        "cfr+(iterations=10)" or "resolving(iterations=100)", a bot of the other player,
        or a function of (player, seed) that makes one. Bots are queried at each
        infoset, see `BotPolicy`.
      player: The responder, 0 or 1.
      config: Method and settings. By default the response is exact if the game fits
        into memory; otherwise ISMCTS-BR responds in 1000 matches.
      seed: Seed for the bots' random choices.
      memory_limit: Largest memory for the representation of the game, as in `solve`.
      locks: Strategies that an exact response must not change, see `GameOptions`.
      progress: Whether to show progress on stderr. If None, after ten seconds if stderr
        is a terminal.

    Returns:
      The evaluation. Its only response is a policy of both players, or None if the
      response is only known by its matches.

    Raises:
      ValueError: If an argument is invalid, or the bot plays for the responder.

    Example:
      >>> import spiel_cr
      >>> response = spiel_cr.best_response("kuhn_poker", "uniform", 0)
      >>> response.value
      0.5
    """
    check_order(game, policy, "best_response(game, policy, player)")
    check_seed(seed)
    if isinstance(player, bool) or player not in (0, 1):
        raise ValueError(f"player={player!r}: not a player; give the responder, 0 or 1")
    with listening(progress):
        opponent = open_opponent(
            policy,
            game,
            seat=1 - player,
            seed=seed,
            other_forms=config is None or config.method == "exact",
            memory_limit=memory_limit,
        )
        if config is None and (opponent.form or opponent.abrupt):
            config = ResponseConfig("exact")
        if locks is not None:
            if config is not None and config.method != "exact":
                raise ValueError(
                    f"locks: method={config.method!r} does not support node locks; "
                    f"leave locks out, or use method='exact'"
                )
            opponent = opponent.with_locks(locks)
        value = respond(opponent, player, config or ResponseConfig())
    response = None
    if value.behaviour is not None and opponent.behaviour is not None:
        response = opponent.response_policy(player, value.behaviour)
    return from_same_deals(
        [value],
        responses=(response,),
        game=str(opponent.game),
        policy=opponent.name,
    )


def nash_conv(
    game: Game,
    policy: PolicyLike,
    *,
    memory_limit: Limit = None,
    progress: bool | None = None,
) -> float:
    """Compute the exact NashConv of a policy of both players.

    NashConv is the sum of what both players gain by exact best responses, in the game's
    units; exploitability in most papers is half of it. OpenSpiel's
    `exploitability.nash_conv` returns the same number. Node locks of a result are
    lifted; `Result.nash_conv_with_locks` returns the loss at unlocked infosets alone.

    Args:
      game: OpenSpiel game string, game, or game tree.
      policy: An OpenSpiel policy, a result of `solve` or `resolve`, or a string such as
        "uniform", "cfr+(iterations=10)" or the path of a file.
      memory_limit: Largest memory for the representation of the game, as in `solve`.
      progress: Whether to show progress on stderr. If None, after ten seconds if stderr
        is a terminal.

    Raises:
      GameTooLargeError: If the game does not fit into memory; see `best_response`.
      ValueError: If it is not a policy of the game, or the arguments are exchanged.

    Example:
      >>> import spiel_cr
      >>> round(spiel_cr.nash_conv("kuhn_poker", "uniform"), 6)
      0.916667
    """
    check_order(game, policy, "nash_conv(game, policy)")
    if isinstance(policy, Result) and policy.form is not None:
        if same_game(policy.game, open_game(game).game):
            return policy.nash_conv()
    with listening(progress):
        return open_opponent(policy, game, memory_limit=memory_limit).nash_conv()


def respond(
    opponent: Opponent,
    player: int,
    config: ResponseConfig,
    *,
    states: bool = False,
    executor: Executor = IN_PROCESS,
) -> ResponseValue:
    """Find a response and evaluate it.

    If the opponent's policy is an estimate of a bot, the value is that of matches
    against the bot, and the best-response value is not known.

    Args:
      opponent: The opponent.
      player: The responder.
      config: Method and settings.
      states: Whether to search on OpenSpiel's states even if the game is represented.
      executor: Executor that plays the matches. Other processes load the opponent again
        from its name.

    Raises:
      ValueError: If an argument is invalid, or the method needs a represented game.
      ImportError: If the method is "learned" and the extra [deep] is missing.
    """
    exact = config.method == "exact"
    if exact and opponent.abrupt is not None and not states:
        return opponent.abrupt.values[player]
    if exact and (states or not opponent.form and not opponent.bots):
        raise ValueError(
            f"method='exact' needs the game tree: "
            f"{opponent.too_large or 'the game tree was not built'}; choose ismcts, "
            f"lbr or learned, or allow more memory"
        ) from opponent.too_large
    # A response is learned during matches even if it is then evaluated on the tree.
    if states or config.method == "learned" or not exact and opponent.tree is None:
        return _respond_on_states(opponent, player, config, executor)
    return _respond_on_form(opponent, player, config, executor)


def _respond_on_form(
    opponent: Opponent, player: int, config: ResponseConfig, executor: Executor
) -> ResponseValue:
    """Respond on a represented game."""
    strategy = opponent.strategy()[1 - player]
    announce(f"{config.method} response of player {player}")
    start = time.perf_counter()
    response, simulations = _strategy(opponent, player, strategy, config)
    seconds = time.perf_counter() - start
    returns = None
    if opponent.bots is not None:
        policy = opponent.response_policy(player, response)
        bot = bots.PolicyBot(player, policy, seed=config.seed)
        matches = _play_matches(opponent, player, config, executor, bot)
        returns, _ = returns_of(opponent, matches)
    return value_of_response(
        opponent,
        player,
        config.method,
        returns,
        response,
        simulations=simulations,
        seconds=seconds,
    )


def _strategy(
    opponent: Opponent, player: int, strategy: np.ndarray, config: ResponseConfig
) -> tuple[np.ndarray, int]:
    """Return the response's action probabilities, and the number of simulations.

    Args:
      opponent: The opponent.
      player: The responder.
      strategy: The opponent's action probabilities, float64 [S'].
      config: Method and settings.

    Returns:
      The response's action probabilities, float64 [S], and the number of simulations.
    """
    form, tree = opponent.sequence_form, opponent.tree
    assert form is not None
    if not len(form.decisions[player]):
        # A player without decisions has a single strategy.
        return np.ones(1), 0
    if config.method == "exact":
        reach = conversions.reach_from_behaviour(form.decisions[1 - player], strategy)
        return best_responses.best_response(form, player, reach), 0
    assert tree is not None
    if config.method == "lbr":
        return lbr(tree, player, strategy, leaf=config.leaf_for(tree.game)), 0
    response = ismcts_search.search_response(
        tree, player, strategy, config.search, seed=config.seed
    )
    return response.behaviour, response.simulations


def _respond_on_states(
    opponent: Opponent, player: int, config: ResponseConfig, executor: Executor
) -> ResponseValue:
    """Respond by lookahead on OpenSpiel's states.

    The value is a mean of matches, unless the opponent's strategy is known and the
    response reaches at most `config.matches` infosets.
    """
    start = time.perf_counter()
    if config.method == "lbr" and config.leaf in (None, "call"):
        if (boards := _on_boards(opponent, player, config)) is not None:
            means = boards.values(config.matches)
            seconds = time.perf_counter() - start
            return value_of_response(
                opponent, player, "lbr", means, None, seconds=seconds
            )
    announce(f"{config.method} response of player {player}, on states")
    responder = state_responder(opponent, player, config)
    behaviour: np.ndarray | None = None
    returns: np.ndarray | None = None
    half_width = None
    if opponent.behaviour is not None:
        behaviour = played_strategy(opponent, responder, limit=config.matches)
    beliefs, count = responder.beliefs, responder.simulations
    if behaviour is None:
        matches = _play_matches(opponent, player, config, executor, responder)
        returns, half_width = returns_of(opponent, matches)
        for match in matches:
            assert match.beliefs is not None
            beliefs, count = beliefs.plus(match.beliefs), count + match.simulations
    return value_of_response(
        opponent,
        player,
        config.method,
        returns,
        behaviour,
        simulations=count,
        seconds=time.perf_counter() - start,
        plain_half_width=half_width,
        beliefs=beliefs,
    )


def _on_boards(
    opponent: Opponent, player: int, config: ResponseConfig
) -> BoardResponse | None:
    """Return a local best response that evaluates all hands of a board together.

    The result is None unless the opponent's policy is a table whose game deals boards
    (`BoardRules`), such as limit hold'em with hand buckets.
    """
    table = as_table(opponent.policy)
    rules: Any = None if table is None else getattr(table.source, "rules", None)
    if table is None or getattr(rules, "draw_board", None) is None:
        return None
    announce(f"{config.method} response of player {player}, on boards with all hands")
    return BoardResponse(rules, table.strategy, player, seed=config.seed)


def _play_matches(
    opponent: Opponent,
    player: int,
    config: ResponseConfig,
    executor: Executor,
    responder: pyspiel.Bot,
) -> list[ResponseMatch]:
    """Play the matches of a responder.

    Worker processes make responders on states again; responders on a represented game
    stay in this process.
    """
    if not isinstance(responder, StateResponder):
        executor = IN_PROCESS
    setup = opponent, player, config, responder if executor.is_in_process else None
    tasks = {number: number for number in range(config.matches)}
    table = None if executor.is_in_process else as_table(opponent.policy)
    matches = []
    for match in progress_bar(
        in_order(executor.map(ResponseMatches, setup, tasks), tasks),
        total=config.matches,
        desc=f"matches, player {player}",
        unit="match",
    ):
        matches.append(match)
        if table is not None:
            table.queried += match.queries[0]
            table.unvisited += match.queries[1]
    return matches


def played_strategy(
    opponent: Opponent, responder: StateResponder, *, limit: int
) -> np.ndarray | None:
    """Return a responder's strategy at each infoset that it reaches.

    Each infoset is reached as in a match: the responder is restarted, and queried at
    all its earlier decisions. Its random numbers depend on its seed and its
    information, so it answers as in matches.

    Args:
      opponent: The opponent, whose strategy is known.
      responder: A responder with deterministic answers.
      limit: Largest number of infosets with several actions.

    Returns:
      Action probabilities, uniform at infosets that it does not reach, float64 [S];
      None if it reaches more than `limit` infosets with several actions, or the game
      tree was not built.
    """
    tree, player = opponent.tree, responder.player_id()
    if tree is None:
        return None
    strategy = opponent.strategy()[1 - player]
    infosets, histories = tree.infosets[player], tree.histories
    decisions = infosets.decisions
    weights = tree_posterior.weights(tree, player, strategy)
    nodes = np.flatnonzero(histories.player == player)
    # The most probable history of each infoset; the opponent reaches it for certain.
    nodes = nodes[np.argsort(weights[nodes], kind="stable")]
    likeliest = np.zeros(len(infosets), np.int64)
    likeliest[histories.infoset[nodes]] = nodes
    possible = weights[likeliest] > 0
    chosen = np.zeros(decisions.num_sequences, bool)
    chosen[0] = True
    queries = 0
    for infoset in np.argsort(decisions.levels(), kind="stable"):
        if not (possible[infoset] and chosen[decisions.parent[infoset]]):
            continue
        place = 0
        if decisions.num_actions[infoset] > 1:
            queries += 1
            if queries > limit:
                return None
            answer = _answer_at(tree, responder, int(likeliest[infoset]))
            place = int(np.argmax(answer))
        chosen[decisions.first_sequence[infoset] + place] = True
    return conversions.pure_behaviour(decisions, chosen)


def _answer_at(tree: GameTree, responder: StateResponder, history: int) -> list[float]:
    """Return a responder's probabilities at a history, in a match that leads there."""
    responder.restart()
    for state, _ in moves_along(tree.game, tree.histories.actions_to(history)):
        if state.current_player() == responder.player_id():
            responder.get_policy(state)
    policy = responder.get_policy(tree.state_at(history))
    return [probability for _, probability in policy]
