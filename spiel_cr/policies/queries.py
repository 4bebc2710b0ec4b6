"""Queries of policies at many infosets, and the checks of all answers.

`query` computes the strategy of a policy on a form of a game: its answer at every
infoset, as arrays. Policies are queried for arrays of states where they and the game's
batched rules support that, and state by state otherwise. An answer must be a
distribution over the legal actions, and must not depend on more than the infoset.
"""

import contextlib
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.arrays import ranges
from spiel_cr.common.checks import check_choice
from spiel_cr.common.errors import (
    GameTooLargeError,
    InvalidPolicyError,
    MoreKnowledgeError,
)
from spiel_cr.common.executor import IN_PROCESS, Executor, in_order
from spiel_cr.common.messages import progress_bar
from spiel_cr.games.game_form import GameForm
from spiel_cr.games.opening.identity import other_game
from spiel_cr.games.phantom import phantom_queries
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.public_tree import public_tree_queries
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.query_batch import QueryBatch
from spiel_cr.games.tree import tree_queries
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.array_queries import (
    answers_rows,
    member,
    named,
    row_answers,
)
from spiel_cr.policies.conversions import (
    SUM_TOLERANCE,
    Behaviours,
    behaviour_from_reach,
)

# How thoroughly `query` checks that answers depend on the infoset alone.
Check = Literal["sample", "full"]
# Number of infosets of a worker's task. Games with fewer infosets are queried in this
# process, because starting workers takes about 20 s.
_TASK, _FEWEST_IN_WORKERS = 16, 2000

_QUERIES: Mapping[type, Any] = {
    GameTree: tree_queries,
    PublicTreeGame: public_tree_queries,
    PhantomGame: phantom_queries,
}


def query(
    form: GameForm,
    policy: openspiel_policy.Policy,
    *,
    check: Check = "sample",
    seed: int = 0,
    fill: bool = False,
    deadline: float = math.inf,
    executor: Executor = IN_PROCESS,
    progress: bool | None = None,
) -> Behaviours:
    """Query a policy at every infoset of both players.

    Args:
      form: The game in a form that enumerates infosets.
      policy: A policy of both players.
      check: "sample" queries a policy whose attribute `by_information_state` is False
        (adapted policies of users) at a second history, chosen at random, of each
        infoset that has several; in phantom games it queries every policy at a second
        history of a few infosets. "full" queries any policy at all histories of a game
        tree; other forms do not support it.
      seed: Seed for the choice of second histories.
      fill: Whether the policy is replaced by uniform play at infosets where it has no
        answer. Otherwise that is an error, except where batched rules were used.
      deadline: The value of `time.perf_counter()` at which to stop.
      executor: Executor whose workers query a bot on a large game tree, if the bot can
        be made again there.
      progress: Whether to show a progress bar on stderr.

    Returns:
      Probability of each sequence's last action for each player, float64 [S].

    Raises:
      GameTooLargeError: If the deadline passes.
      InvalidPolicyError: If an answer is not a distribution over the legal actions, or
        two answers at one information state differ.
      MoreKnowledgeError: If the policy depends on more than the form's infosets.
      OtherGameError: If the policy belongs to a form with other decisions.
    """
    if not executor.is_in_process:
        _query_in_workers(form, policy, executor, deadline)
    strategy_of = functools.partial(
        query_player,
        form,
        policy,
        check=check,
        seed=seed,
        fill=fill,
        deadline=deadline,
        progress=progress,
    )
    return strategy_of(0), strategy_of(1)


def query_player(
    form: GameForm,
    policy: openspiel_policy.Policy,
    player: int,
    *,
    check: Check = "sample",
    seed: int = 0,
    fill: bool = False,
    deadline: float = math.inf,
    progress: bool | None = None,
) -> np.ndarray:
    """Query a policy at every infoset of one player; see `query`.

    Returns:
      Probability of each sequence's last action, float64 [S].
    """
    check_choice(check, "check", get_args(Check))
    policy = member(policy, player)
    queries = _QUERIES[type(form)]
    options: dict[str, Any] = {"full": check == "full"}
    if getattr(queries, "MERGES_DEALS", False):
        inner = getattr(policy, "of_representatives", None)
        by_actions = getattr(policy, "by_legal_actions", False)
        options["merged"] = inner is not None or by_actions
        policy = inner or policy
    counts = form.decisions[player].num_actions
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        return np.append(1.0, np.repeat(1.0 / counts, counts))
    if (strategy := _strategy_on(form, policy, player)) is not None:
        return behaviour_from_reach(form.decisions[player], strategy)
    behaviour = np.ones(1 + int(counts.sum(dtype=np.int64)))
    repeats = not getattr(policy, "by_information_state", True)
    random = np.random.default_rng(seed) if repeats else None
    answered = 0
    with progress_bar(total=len(counts), desc="infosets", progress=progress) as bar:
        for batch in queries.queries(form, player, random, **options):
            states = functools.partial(_timed, batch, deadline, bar)
            timed = dataclasses.replace(batch, states=states)
            answers = query_batch(policy, timed, fill=fill)
            if batch.original is not None:
                _compare(policy, batch, behaviour[batch.sequences], answers)
                continue
            behaviour[batch.sequences] = answers
            answered += len(batch)
            bar.update(answered - bar.n)
    return behaviour


def _timed(batch: QueryBatch, deadline: float, bar: Any) -> Iterator[pyspiel.State]:
    """Yield the states of a batch, unless the deadline passes before."""
    for state in batch.states():
        _check_time(deadline)
        yield state
        bar.update(batch.original is None)


def _check_time(deadline: float) -> None:
    if time.perf_counter() > deadline:
        raise GameTooLargeError("querying the policy would exceed the time limit")


def _strategy_on(form: Any, policy: Any, player: int) -> np.ndarray | None:
    """Return the strategy of a policy of the same form; None if its form is another.

    Raises:
      OtherGameError: If the policy's form has other decisions.
    """
    policy_form: Any = getattr(policy, "form", None)
    if type(policy_form) is not type(form):
        return None
    if policy_form is not form and policy_form.decisions_id != form.decisions_id:
        raise other_game(f"policy: a {named(policy)}", policy_form.game, form.game)
    strategy: np.ndarray = policy.behaviour[player]
    return strategy


def _query_in_workers(
    form: GameForm, policy: Any, executor: Executor, deadline: float
) -> None:
    """Query copies of a bot in workers, and let the bot's policy keep their answers."""
    recipe, tree = getattr(policy, "recipe", None), form.tree
    if recipe is None or tree is None:
        return
    histories = np.concatenate([infosets.history for infosets in tree.infosets])
    if len(histories) < _FEWEST_IN_WORKERS:
        return
    paths = tree.histories.paths_to(histories)
    tasks = {i: paths[i : i + _TASK] for i in range(0, len(paths), _TASK)}
    results = executor.map(_bot_in_worker, recipe, tasks)
    bar = progress_bar(total=len(paths), desc="infosets")
    with bar, contextlib.closing(results):
        for answers in in_order(results, tasks):
            policy.take(answers)
            bar.update(len(answers))
            _check_time(deadline)


def _bot_in_worker(make: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Make a bot's policy again, and return how it answers after paths."""
    answers: Callable[..., Any] = make(*arguments).answers
    return answers


def query_batch(
    policy: openspiel_policy.Policy, batch: QueryBatch, *, fill: bool = False
) -> np.ndarray:
    """Query a policy at a batch of infosets.

    Args:
      policy: The policy.
      batch: The infosets.
      fill: Whether infosets without an answer are uniform; if the batch has batched
        rules, they always are.

    Returns:
      The probabilities of the batch's actions, float64 [m].

    Raises:
      InvalidPolicyError: If an answer is not a distribution over the legal actions.
    """
    answers, counts = _answers(policy, batch), batch.num_actions
    negative = np.bincount(batch.owner[answers < -SUM_TOLERANCE], minlength=len(batch))
    silent = np.zeros(len(batch), bool)
    played = np.maximum(answers, 0)
    total = np.bincount(batch.owner, played, minlength=len(batch))
    if fill:
        silent = ~(total > 0)
    elif batch.rules is not None:
        silent = np.bincount(batch.owner, answers != 0, minlength=len(batch)) == 0
    if silent.any():
        played[silent[batch.owner]] = 1.0 / np.repeat(counts[silent], counts[silent])
        total[silent] = 1.0
    # Written so that NaN fails.
    valid = (np.abs(total - 1) <= SUM_TOLERANCE) & (negative == 0)
    if not valid.all():
        place = int(np.argmin(valid))
        rows = batch.owner == place
        raise InvalidPolicyError(
            f"{named(policy)}: {place_of(batch.state(place), batch.player)} it has the "
            f"probabilities {answers[rows].tolist()} of the actions "
            f"{batch.actions[rows].tolist()}; they must be at least 0 and sum to 1"
        )
    # Forms with batched rules keep strategies in float32, too.
    return played if batch.rules is None else played / total[batch.owner]


def _answers(policy: openspiel_policy.Policy, batch: QueryBatch) -> np.ndarray:
    """Return the policy's unchecked answers, float64 [m]."""
    policy = member(policy, batch.player)
    if getattr(policy, "by_legal_actions", False):
        return _answers_by_legal_actions(policy, batch)
    if batch.rows is not None and answers_rows(policy, batch.rules):
        assert batch.rules is not None
        try:
            rows = row_answers(policy, batch.rules, batch.rows(), batch.player)
        except InvalidPolicyError:
            raise
        except ValueError:  # queried state by state
            pass
        else:
            answers = np.zeros(len(batch.actions))
            inside = batch.actions < rows.shape[1]
            answers[inside] = rows[batch.owner[inside], batch.actions[inside]]
            return answers
    answers, begin = np.empty(len(batch.actions)), 0
    counts = batch.num_actions.tolist()
    for state, count in zip(batch.states(), counts, strict=True):
        by_action = policy.action_probabilities(state)
        legal = batch.actions[begin : begin + count].tolist()
        played = np.asarray([by_action.get(action, 0.0) for action in legal])
        is_number = played.dtype.kind in "biuf"
        answers[begin : begin + count] = played if is_number else np.nan
        begin += count
    return answers


def _answers_by_legal_actions(
    policy: openspiel_policy.Policy, batch: QueryBatch
) -> np.ndarray:
    """Return the answers of a policy that depends on the legal actions alone."""
    column = ranges(np.zeros(len(batch), np.int64), batch.num_actions)
    legal = np.full((len(batch), int(batch.num_actions.max(initial=0))), -1)
    legal[batch.owner, column] = batch.actions
    _, first, same = np.unique(legal, axis=0, return_index=True, return_inverse=True)
    answers = np.zeros((len(first), legal.shape[1]))
    for number, place in enumerate(first.tolist()):
        played = policy.action_probabilities(batch.state(place), batch.player)
        actions = legal[place][legal[place] >= 0].tolist()
        answers[number, : len(actions)] = [played.get(a, 0.0) for a in actions]
    return answers[same.reshape(-1)[batch.owner], column]


def _compare(
    policy: openspiel_policy.Policy,
    batch: QueryBatch,
    before: np.ndarray,
    answers: np.ndarray,
) -> None:
    """Compare answers at the same infosets.

    Args:
      policy: The policy.
      batch: The histories of the second answers.
      before: The first answers, float64 [m].
      answers: The second answers, float64 [m].

    Raises:
      InvalidPolicyError: If answers at one information state differ.
      MoreKnowledgeError: If answers at one infoset of several information states do.
    """
    difference = np.abs(answers - before)
    if not len(difference) or difference.max() <= SUM_TOLERANCE:
        return
    assert batch.original is not None
    place = int(batch.owner[np.argmax(difference)])
    rows, player = batch.owner == place, batch.player
    first, second = batch.original.state(place), batch.state(place)
    keys = [state.information_state_string(player) for state in (first, second)]
    one, other = (_answers(policy, batch.original)[rows] for _ in range(2))
    is_random = not np.allclose(one, other, rtol=0, atol=SUM_TOLERANCE)
    if keys[0] == keys[1] or is_random:
        raise contradiction(
            named(policy),
            first if is_random else second,
            player,
            (one if is_random else before[rows]).tolist(),
            first.history(),
            (other if is_random else answers[rows]).tolist(),
        )
    raise MoreKnowledgeError(
        f"{named(policy)} of {first.get_game()} answers differently after the actions "
        f"{second.history()} and {first.history()}, which only differ in rejected "
        f"moves of the other player (the information states of dark_hex contain the "
        f"number of turns), so it is not a strategy of this form; use approximate best "
        f"responses"
    )


def contradiction(
    name: str,
    state: pyspiel.State,
    player: int,
    before: Sequence[float],
    earlier: Sequence[int],
    played: Sequence[float],
) -> InvalidPolicyError:
    """Return the error to raise after two answers at one information state.

    Args:
      name: The policy's name.
      state: The state of the second answer.
      player: The acting player.
      before: The first answer, probabilities of the legal actions.
      earlier: The actions that lead to its state.
      played: The second answer.
    """
    key = state.information_state_string(player)
    return InvalidPolicyError(
        f"{name}: at the information state {key!r} of player {player} it "
        f"answers {short_text(before)} after the actions {list(earlier)} and "
        f"{short_text(played)} after {state.history()}; a strategy must depend on the "
        f"player's information state alone (if its answers are random, give a "
        f"function of (player, seed) that makes a bot)"
    )


def place_of(state: pyspiel.State, player: int) -> str:
    """Return the description of a decision in messages."""
    key = state.information_state_string(player)
    return (
        f"at the information state {key!r} of player {player} (after the actions "
        f"{state.history()})"
    )


def short_text(value: Any) -> str:
    """Return a value for an error, shortened to 200 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else f"{text[:190]} …"


def distribution(
    answer: Any,
    legal: Sequence[int],
    num_actions: int,
    where: Callable[[], str],
    *,
    tolerance: float = SUM_TOLERANCE,
) -> list[float]:
    """Return the probabilities of the legal actions in a policy's answer, checked.

    Args:
      answer: A mapping from actions to probabilities, pairs of these, or an array with
        a probability for each of the game's actions. Legal actions that a mapping
        leaves out have probability 0.
      legal: The legal actions.
      num_actions: The game's number of distinct actions.
      where: Returns the policy and the place of its answer, for the error.
      tolerance: Largest deviation of the sum from 1.

    Raises:
      InvalidPolicyError: If the answer is not a distribution over the legal actions.
    """
    try:
        by_action = _as_mapping(answer, num_actions)
        played = [float(by_action.get(action, 0.0)) for action in legal]
        others = [
            action
            for action, p in by_action.items()
            if action not in legal and not abs(float(p)) <= SUM_TOLERANCE
        ]
    except (TypeError, ValueError, AttributeError):
        others, played = [], [float("nan")]
    # Written so that NaN fails.
    if not others and all(p >= -SUM_TOLERANCE for p in played):
        if abs(sum(played) - 1) <= tolerance:
            return [max(p, 0.0) for p in played]
    problem = f"the actions {others} are illegal; " if others else ""
    raise InvalidPolicyError(
        f"{where()} answers {short_text(answer)}: {problem}give the legal actions "
        f"{short_text(list(legal))} probabilities that are at least 0 and sum to 1"
    )


def distribution_at(
    answer: Any, state: pyspiel.State, name: str, *, tolerance: float = SUM_TOLERANCE
) -> list[float]:
    """Return `distribution` of an answer at a state, by a policy with this name."""
    return distribution(
        answer,
        state.legal_actions(),
        state.num_distinct_actions(),
        lambda: f"{name} after the actions {state.history()}",
        tolerance=tolerance,
    )


def shares(
    answer: Any, legal: Sequence[int], num_actions: int, where: Callable[[], str]
) -> list[float]:
    """Return the answer of `distribution`, divided by its sum."""
    played = np.array(distribution(answer, legal, num_actions, where))
    return (played / played.sum()).tolist()


def shares_at(answer: Any, state: pyspiel.State, name: str) -> list[float]:
    """Return the answer of `distribution_at`, divided by its sum."""
    played = np.array(distribution_at(answer, state, name))
    return (played / played.sum()).tolist()


def _as_mapping(answer: Any, num_actions: int) -> Mapping[int, Any]:
    """Return an answer as a mapping; raises TypeError or ValueError if it cannot be."""
    if isinstance(answer, Mapping):
        return answer
    if isinstance(answer, str | bytes) or not isinstance(answer, Sequence | np.ndarray):
        answer = np.asarray(answer)
    if len(answer) and all(np.ndim(each) == 1 for each in answer):
        pairs = [(int(action), p) for action, p in answer]
        if len(dict(pairs)) != len(pairs):
            raise ValueError("an action occurs twice")
        return dict(pairs)
    if np.shape(answer) != (num_actions,):
        raise ValueError("neither pairs nor a probability for each action")
    return dict(enumerate(answer))
