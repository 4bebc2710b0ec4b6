"""The worlds of a phantom game, from its batched rules.

A phantom game declares itself by one more method of its batched rules (see
`opening.batched_rules`):

    def move_outcomes(self, states) -> tuple[np.ndarray, np.ndarray] | None: ...

For n states without any rejected move before, the method returns two arrays: bool
[n, A], whether each attempt of the acting player would succeed, and integers [n, A],
from 0, the answer that only this player would receive. It returns None if the game is
not a phantom game with its parameters. The rules must satisfy these conditions:

- There are no chance nodes. After a success, `child` determines the acting player;
  after a rejected move the same player continues, and nothing has changed for the other
  player.
- A player may make each attempt once in a game, at any of its decisions.
- Players only observe the answers to their own attempts, and that it is their turn.

Legend for shapes: W worlds, A attempts, n some of them.
"""

from typing import NamedTuple, Protocol, cast

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.batched_rules import BatchedRules

# A player's attempts are bits of an int64.
MOST_ATTEMPTS = 62
# Bytes of a world for each attempt, and other bytes of a world.
_ENTRY, _WORLD = 5, 64
# Number of passes of an estimate (its standard error is some percent), and its ratio to
# the limit that is an error.
_PASSES, _CLEARLY = 200, 2.0


class PhantomRules(BatchedRules, Protocol):
    """Batched rules of a phantom game; see the module's documentation."""

    def move_outcomes(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return whether each attempt would succeed, and the answer to it."""


def phantom_rules(rules: BatchedRules | None) -> PhantomRules | None:
    """Return the rules if they are those of a phantom game; otherwise None."""
    move_outcomes = getattr(rules, "move_outcomes", None)
    if rules is None or not callable(move_outcomes):
        return None
    if move_outcomes(rules.new_initial_states()) is None:
        return None
    return cast(PhantomRules, rules)


class Worlds(NamedTuple):
    """All sequences of successful moves; each one precedes its continuations.

    Attributes:
      player: The acting player, or TERMINAL, int8 [W].
      utility: Player 0's utility in terminal worlds, otherwise 0, float64 [W].
      parent: The world before the last success, int32 [W]; -1 at the first one.
      action: The last success, int16 [W]; -1 at the first one.
      child: The world after each attempt, int32 [A, W]; -1 if it is rejected, or if the
        world is terminal.
      answer: Answer to the player that makes the attempt, int8 [A, W].
    """

    player: np.ndarray
    utility: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    child: np.ndarray
    answer: np.ndarray

    def __len__(self) -> int:
        return len(self.player)

    @property
    def num_answers(self) -> int:
        """Number of different answers."""
        return 1 + int(self.answer.max(initial=0))


def walk_worlds(
    game: pyspiel.Game, rules: PhantomRules, memory_limit: memory.Limit = None
) -> Worlds:
    """Enumerate all worlds, level by level.

    Args:
      game: OpenSpiel game, for messages.
      rules: Batched rules of the game.
      memory_limit: Memory limit; see `build_tree`.

    Raises:
      GameTooLargeError: If the worlds need more memory than the limit.
      InvalidGameError: If the rules are not those of a phantom game.
    """
    room = memory.parse_limit(memory_limit)

    def check(count: float, clearly: float = 1.0) -> None:
        size = count * (_WORLD + _ENTRY * game.num_distinct_actions())
        if size > clearly * room or count >= clearly * 2**31:
            raise memory.too_large(
                game,
                f"has more than {min(count, 1e15):,.0f} worlds, which need "
                f"{memory.describe_bytes(size)}",
                *(memory_limit, room),
            )

    check(estimate_phantom_worlds(game, rules), _CLEARLY)
    states = rules.new_initial_states()
    parents, actions = np.full(1, -1), np.full(1, -1)
    levels: list[Worlds] = []
    begin = 0
    while len(states):
        player = np.asarray(rules.current_player(states)).astype(np.int8)
        if not np.isin(player, (0, 1, TERMINAL)).all():
            raise InvalidGameError(
                f"{game}: a phantom game must not have chance nodes; remove "
                f"`move_outcomes` from its batched rules"
            )
        over = player == TERMINAL
        utility = np.zeros(len(states))
        if over.any():
            utility[over] = rules.returns(states[over])
        succeeds, learnt = _move_outcomes(game, rules, states[~over])
        shape = succeeds.shape[1], len(states)
        answer, child = np.zeros(shape, np.int8), np.full(shape, -1, np.int32)
        answer[:, ~over] = learnt.T
        number, action = np.nonzero(succeeds)
        number = np.flatnonzero(~over)[number]
        after = begin + len(states)
        child[action, number] = after + np.arange(len(number))
        last = parents.astype(np.int32), actions.astype(np.int16)
        levels.append(Worlds(player, utility, *last, child, answer))
        check(after + len(number))
        parents, actions = begin + number, action
        states, begin = states[number], after
        if len(states):
            states = rules.child(states, action)
    return Worlds(*(np.concatenate(f, axis=-1) for f in zip(*levels, strict=True)))


def estimate_phantom_worlds(
    game: pyspiel.Game, rules: PhantomRules, player: int | None = None
) -> float:
    """Return an unbiased estimate of the number of worlds (Knuth 1975).

    Args:
      game: OpenSpiel game, for messages.
      rules: Batched rules of the game.
      player: Player of the pairs to count instead: a terminal world and a last sequence
        of this player, which includes rejected attempts.
    """
    random = np.random.default_rng(0)
    states = np.repeat(rules.new_initial_states(), _PASSES, axis=0)
    weight, total = np.full(_PASSES, 1 / _PASSES), 0.0
    tried = np.zeros((_PASSES, game.num_distinct_actions()), bool)
    while len(states):
        acting = np.asarray(rules.current_player(states))
        goes_on = np.isin(acting, (0, 1)) & (weight > 0)
        total += float(weight[~goes_on if player is not None else slice(None)].sum())
        states, weight, tried = states[goes_on], weight[goes_on], tried[goes_on]
        succeeds, _ = _move_outcomes(game, rules, states)
        is_player = acting[goes_on] == player
        options = np.where(is_player[:, None], ~tried, succeeds)
        weight = weight * options.sum(axis=1)
        action = (options * (1 - random.random(options.shape))).argmax(axis=1)
        tried[np.flatnonzero(is_player), action[is_player]] = True
        moved = succeeds[np.arange(len(states)), action]
        states[moved] = rules.child(states[moved], action[moved])
    return total


def _move_outcomes(
    game: pyspiel.Game, rules: PhantomRules, states: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the checked result of `move_outcomes`."""
    most = min(MOST_ATTEMPTS, game.num_distinct_actions())
    shape = len(states), game.num_distinct_actions()
    if not len(states):
        return np.zeros(shape, bool), np.zeros(shape, np.int8)
    answer = rules.move_outcomes(states)
    assert answer is not None
    succeeds, learnt = map(np.asarray, answer)
    if succeeds.shape != shape or succeeds.dtype != bool or shape[1] > most:
        raise InvalidGameError(
            f"{game}: move_outcomes of the batched rules returns {succeeds.dtype} "
            f"{list(succeeds.shape)}; it must return bool {list(shape)}, with at most "
            f"{MOST_ATTEMPTS} attempts"
        )
    if learnt.shape != shape or learnt.dtype.kind not in "iub" or (learnt < 0).any():
        raise InvalidGameError(
            f"{game}: move_outcomes of the batched rules returns answers "
            f"{learnt.dtype} {list(learnt.shape)}; they must be integers "
            f"{list(shape)}, at least 0"
        )
    if (learnt > np.iinfo(np.int8).max).any():
        raise InvalidGameError(
            f"{game}: move_outcomes returns answers above 127; number the answers "
            f"from 0"
        )
    return succeeds, learnt
