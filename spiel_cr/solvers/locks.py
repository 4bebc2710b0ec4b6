"""Node locks: strategies that are fixed by infoset, by node and hand, or by policy."""

import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.common.json_records import read_object
from spiel_cr.games.game_form import HasSequenceForm
from spiel_cr.games.opening.identity import other_game
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.sequence_form.locking import locked
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.array_queries import member
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.policy_adapters import as_policy
from spiel_cr.policies.public_node_names import action_names, find_actions, names_at
from spiel_cr.policies.queries import query_player
from spiel_cr.policies.result import Result, SolvedForm
from spiel_cr.solvers.policy_files import load_policy
from spiel_cr.solvers.representation import PUBLIC_TREE, TREE

# Probabilities by infoset: in game trees by information-state string, in public trees
# by the actions that lead to the node, or by these and then by hands. Or for each
# player a full strategy, or None.
Locks: TypeAlias = (
    Mapping[str, Any] | Sequence[openspiel_policy.Policy | Result | atomic.Path | None]
)

# Tolerance of the sum of probabilities.
_TOLERANCE = 1e-6
# Number of names that an error message lists.
_SHOWN = 4


def lock(
    form: SequenceForm, game_form: HasSequenceForm, locks: Locks | None
) -> SequenceForm:
    """Return a game with node locks.

    Args:
      form: The game in sequence form.
      game_form: The same game.
      locks: Strategies that are kept as they are, in a format of `Locks`.

    Raises:
      OSError, CorruptFileError: If a policy file cannot be read.
      ValueError: If an infoset does not exist, numbers are not probabilities of its
        actions, or a policy is for another game or form.
    """
    if locks is None:
        return form
    by_player: Mapping[Any, Any] = locks if isinstance(locks, Mapping) else {}
    if by_player and set(by_player) <= {0, 1}:
        locks = [by_player.get(player) for player in range(2)]
    if not isinstance(locks, Mapping):
        if len(locks) != 2 or all(each is None for each in locks):
            raise ValueError(
                f"locks={reprlib.repr(locks)}: expected a policy for each player; use "
                f"a pair such as (policy, None)"
            )
        return locked(
            form,
            (
                _full_strategy(game_form, 0, locks[0]),
                _full_strategy(game_form, 1, locks[1]),
            ),
        )
    if not locks:
        raise ValueError("locks={}: no infoset is locked; name one, or leave locks out")
    first, second = (
        np.full(decisions.num_sequences, np.nan) for decisions in form.decisions
    )
    if (lock_key := _LOCK_KEYS.get(game_form.kind)) is None:
        raise ValueError(
            f"locks={reprlib.repr(locks)}: infosets have no names in the "
            f"{game_form.kind} form; use complete strategies, such as (policy, None)"
        )
    for key, strategy in locks.items():
        lock_key(game_form, (first, second), key, strategy)
    return locked(form, (first, second))


def solved_form(
    game_form: HasSequenceForm, locks: Locks | None, dtype: np.dtype
) -> SolvedForm:
    """Return a represented game with its locks.

    Args:
      game_form: The represented game.
      locks: Strategies that are kept as they are, in a format of `Locks`.
      dtype: Arithmetic of the solver. Policies have it, too, except those of game
        trees, which are in double precision.

    Raises:
      OSError, CorruptFileError, ValueError: See `lock`.
    """
    form = lock(game_form.sequence_form, game_form, locks)
    kept = dtype if game_form.keeps_dtype else np.dtype(float)
    return SolvedForm(game_form, form, kept)


def read_locks(path: atomic.Path, player: int | None = None) -> Locks:
    """Read node locks from a policy file, or from JSON.

    Args:
      path: Path of an `.npz` file that `Result.save` or --save wrote, path of a JSON
        file, or JSON itself.
      player: The player whose strategy is read from a policy file; None for JSON.

    Raises:
      OSError: If the file cannot be read.
      ValueError: If the text is neither a policy file nor JSON, or the player is
        missing.
    """
    name = os.fspath(path)
    if name.endswith(".npz") != (player is not None):
        raise ValueError(
            f"--lock {name} --lock-player {player}: a policy file (.npz) needs a "
            f"player and JSON does not; add --lock-player, or leave it out"
        )
    if player is not None:
        return [path if p == player else None for p in range(2)]
    try:
        if name.startswith("{"):
            return read_object(name)
        with open(path, "rb") as file:
            return read_object(file.read())
    except OSError as error:
        raise type(error)(
            f"--lock {name}: {error.strerror}; use JSON such as "
            f'{{"0pb": [1, 0]}}, a JSON file, or a policy file (.npz)'
        ) from error
    except ValueError as error:
        raise ValueError(
            f"--lock {reprlib.repr(name)} is not a JSON object ({error}); use a value "
            f'such as {{"check bet-100": {{"AA": [0, 1, 0]}}}}, or a policy file '
            f"(.npz)"
        ) from error


def _full_strategy(
    game_form: HasSequenceForm, player: int, policy: Any
) -> np.ndarray | None:
    """Return all probabilities of a player, float64 [S], or None if it has no locks."""
    if policy is None:
        return None
    if isinstance(policy, str | os.PathLike):
        try:
            policy = load_policy(policy, game_form)
        except CorruptFileError as error:
            raise CorruptFileError(f"locks[{player}] (--lock): {error}") from error
    name = f"locks[{player}]"
    adapted = as_policy(policy, game_form.game, name)
    if adapted is None:
        raise ValueError(
            f"{name}={policy!r}: not a policy; use an OpenSpiel policy, a result, "
            f"the path of a policy file, or None"
        )
    source = member(adapted, player)
    if isinstance(game_form, PublicTreeGame) and isinstance(source, FormPolicy):
        if source.form.decisions_id != game_form.decisions_id:
            raise other_game(f"{name}: a FormPolicy", source.game, game_form.game)
        return np.asarray(source.behaviour[player], np.float64)
    return query_player(game_form, adapted, player)


def _lock_infoset(
    tree: GameTree, rows: Sequence[np.ndarray], key: str, strategy: Any
) -> None:
    """Lock an infoset of a game tree."""
    players = [p for p in range(2) if key in tree.infosets[p].keys]
    if len(players) != 1:
        some = ", ".join(repr(k) for k in tree.infosets[0].keys[:_SHOWN])
        problem = "is an infoset of both players; lock a complete policy"
        if not players:
            problem = f"is not an infoset of {tree.game}; use one such as {some}"
        raise ValueError(f"locks: {key!r} {problem}")
    infosets = tree.infosets[players[0]]
    infoset = infosets.keys.index(key)
    names = action_names(tree.state_at(infosets.history[infoset]))
    first = infosets.decisions.first_sequence[infoset]
    rows[players[0]][first : first + len(names)] = _row(strategy, names, f"at {key!r}")


def _lock_node(
    game: PublicTreeGame, rows: Sequence[np.ndarray], words: str, strategy: Any
) -> None:
    """Lock a public node of a public-tree game, or some of its hands."""
    actions, _ = find_actions(game.game, words)
    node = game.betting.node_after(actions)
    player = int(game.betting.player[node])
    block = game.public_decisions[player].block(rows[player], node)
    names = names_at(game, node)
    where = f"after {words or 'the deal'!r}"
    numbers = strategy.values() if isinstance(strategy, Mapping) else ()
    if all(isinstance(each, int | float) for each in numbers):
        block[:] = _row(strategy, names, where)
        return
    for hands, each in strategy.items():
        where_hands = f"{where} with {hands!r}"
        block[_hands(game, node, hands, where_hands)] = _row(each, names, where_hands)


# For each form, the function that locks the infosets that a key names.
_LOCK_KEYS: Mapping[str, Callable[..., None]] = {
    TREE: _lock_infoset,
    PUBLIC_TREE: _lock_node,
}


def _row(strategy: Any, names: Mapping[int, str], where: str) -> list[float]:
    """Return the probabilities of an infoset's actions, in ascending order of actions.

    Args:
      strategy: A number for each action, or numbers by names; missing names mean 0.
      names: Names of the actions.
      where: Text that names the infoset in error messages.
    """
    row = strategy
    if isinstance(strategy, Mapping):
        row = [strategy.get(name, 0.0) for name in names.values()]
        if not set(strategy) <= set(names.values()):
            row = None
    try:
        probabilities = np.array(row, np.float64)
        is_good = probabilities.shape == (len(names),) and (probabilities >= 0).all()
        is_good = is_good and abs(probabilities.sum() - 1) <= _TOLERANCE
    except (TypeError, ValueError):
        is_good = False
    if not is_good:
        raise ValueError(
            f"locks: {where}: invalid strategy {reprlib.repr(strategy)}; use "
            f"nonnegative probabilities of {', '.join(names.values())} with sum 1"
        )
    return probabilities.tolist()


def _hands(game: PublicTreeGame, node: int, text: str, where: str) -> np.ndarray:
    """Return the private states that a text names at a public node, bool [H].

    The text is the name of a private state, of a hand on all boards, or a range if the
    game's reader supports ranges.
    """
    player, round = int(game.betting.player[node]), int(game.betting.round[node])
    reader: Any = game.reader
    count = game.num_private_states(player)[round]
    names = np.array(
        [reader.name(player, round, private_state) for private_state in range(count)]
    )
    chosen = names == text
    if not chosen.any() and hasattr(reader, "chosen"):
        try:
            chosen = reader.chosen(player, round, text)
        except ValueError as error:
            raise ValueError(f"locks: {where}: {error}") from error
    elif not chosen.any():
        chosen = np.array([name.partition(" | ")[0] == text for name in names])
    if not chosen.any():
        raise ValueError(
            f"locks: {where}: player {player} cannot have this hand there; use one of "
            f"{', '.join(names[:_SHOWN])}, …"
        )
    return chosen
