"""Locks as users give them: by infoset, by node and hand, or all of a policy."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.sequence_form.locking import Rows, locked
from spiel_cr.games.signals import public_nodes
from spiel_cr.games.signals.game import SignalGame
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies import conversions, world_policy
from spiel_cr.policies.result import LaidGame, Result
from spiel_cr.policies.signal_nodes import action_names, after_deals, find_actions
from spiel_cr.policies.signal_policy import SignalPolicy
from spiel_cr.solvers.policy_files import load_policy

# Probabilities by infoset: of compiled games by information-state string, of signal
# games by the node's actions, or by these and then by hands. Or, for each player, a
# whole strategy or None.
Locks: TypeAlias = (
    Mapping[str, Any]
    | Sequence[openspiel_policy.Policy | Result | np.ndarray | atomic.Path | None]
)

# How far from 1 probabilities may sum up to.
_TOLERANCE = 1e-6
# How many names an error lists.
_SHOWN = 4


def lock(form: SequenceForm, laid: LaidGame, locks: Locks | None) -> SequenceForm:
    """A game with the locks that somebody asked for.

    Args:
      form: the game in sequence form.
      laid: the same game.
      locks: see `Locks`.

    Raises:
      OSError, DamagedFileError: a policy file cannot be read.
      ValueError: an infoset that is not there, or what are no probabilities of its
        actions; or a policy of another game or form.
    """
    if locks is None:
        return form
    rows: list[np.ndarray | None]
    if isinstance(locks, Mapping):
        rows = _by_key(form, laid, locks)
    else:
        if len(locks) != 2:
            raise ValueError(
                f"locks: {len(locks)} were given; give two, of player 0 and of player "
                f"1, of which one may be None"
            )
        rows = [_whole(form, laid, player, each) for player, each in enumerate(locks)]
    if all(row is None for row in rows):
        raise ValueError("locks: nothing is locked; leave them out, or name an infoset")
    kept: Rows = (rows[0], rows[1])
    for player, own in enumerate(kept):
        if own is not None:
            _check(form, player, own)
    return locked(form, kept)


def read_locks(path: atomic.Path, player: int | None = None) -> Locks:
    """Reads locks from a policy file, or from JSON.

    Args:
      path: of an `.npz` file that `Result.save` or --save wrote, or else of JSON.
      player: whose strategy is taken from a policy file; of JSON None.

    Raises:
      OSError: it cannot be read.
      ValueError: it is neither, or the player is missing.
    """
    name = os.fspath(path)
    if name.endswith(".npz"):
        if player is None:
            raise ValueError(
                f"--lock {name}: a policy has both players, and one is locked; say "
                f"which with --lock-player"
            )
        return [path if p == player else None for p in range(2)]
    if player is not None:
        raise ValueError(
            f"--lock-player {player} is for policy files, and infosets of {name} have "
            f"one player each; leave it out"
        )
    try:
        with open(path, encoding="utf-8") as file:
            locks = json.load(file)
    except ValueError as error:
        raise ValueError(
            f"--lock {name} is no JSON ({error}); write such as "
            f'{{"check bet-100": {{"AA": [0, 1, 0]}}}}, or give a policy file (.npz)'
        ) from error
    if not isinstance(locks, dict):
        raise ValueError(f"--lock {name}: write an object, of infosets")
    return locks


def _whole(
    form: SequenceForm, laid: LaidGame, player: int, given: Any
) -> np.ndarray | None:
    """float64 [S], all that a player does; None: it is free."""
    if given is None:
        return None
    if isinstance(given, str | os.PathLike):
        given = load_policy(given, laid)
    if isinstance(given, Result):
        given = given.average_policy()
    if isinstance(given, np.ndarray):
        size = form.decisions[player].num_sequences
        if given.shape != (size,):
            raise ValueError(
                f"locks[{player}] has shape {given.shape}; give {size} numbers, by "
                f"logical sequence, NaN at free infosets"
            )
        return given.astype(np.float64)
    if isinstance(laid, CompiledGame):
        return conversions.behaviour_from_policy(laid, given)[player]
    if not isinstance(laid, SignalGame):
        return world_policy.behaviour_from_policy(laid, given)[player]
    if not isinstance(given, SignalPolicy) or (
        given.signals.fingerprint != laid.fingerprint
    ):
        raise ValueError(
            f"locks[{player}]: a {type(given).__name__} has no rows of this signal "
            f"game; give a policy that was solved on {laid.game} in the form of signals"
        )
    return np.asarray(given.behaviour[player], np.float64)


def _by_key(
    form: SequenceForm, laid: LaidGame, locks: Mapping[str, Any]
) -> list[np.ndarray | None]:
    """Rows of the infosets that are named."""
    rows = [np.full(own.num_sequences, np.nan) for own in form.decisions]
    if isinstance(laid, CompiledGame):
        for key, given in locks.items():
            _lock_infoset(laid, rows, key, given)
    elif isinstance(laid, SignalGame):
        finder = public_nodes.Finder(laid)
        sides = [public_nodes.public_decisions(laid, player) for player in range(2)]
        for words, given in locks.items():
            actions, _ = find_actions(laid.game, words)
            node = finder.after(actions)
            player = int(laid.betting.player[node])
            block = sides[player].block(rows[player], node)
            state = after_deals(laid.game.new_initial_state())
            for action in actions:
                state.apply_action(action)
                after_deals(state)
            names = action_names(state)
            if not _of_hands(given, names):
                block[:] = _row(given, names, f"after {words or 'the deal'!r}")
                continue
            for hands, each in given.items():
                where = f"after {words or 'the deal'!r} with {hands!r}"
                chosen = _hands(laid, node, hands, where)
                block[chosen] = _row(each, names, where)
    else:
        raise ValueError(
            f"locks: infosets of {laid.game} have no names in the form of worlds; give "
            f"whole strategies as (policy, None) or (None, policy)"
        )
    return [row if not np.isnan(row[1:]).all() else None for row in rows]


def _lock_infoset(
    tree: CompiledGame, rows: Sequence[np.ndarray], key: str, given: Any
) -> None:
    """Locks an infoset of a compiled game."""
    found = [
        (p, own.keys.index(key))
        for p, own in enumerate(tree.infosets)
        if key in own.keys
    ]
    if len(found) != 1:
        some = ", ".join(repr(k) for k in tree.infosets[0].keys[:_SHOWN])
        problem = "is an infoset of both players; give (array, None)"
        if not found:
            problem = f"is no infoset of {tree.game}; write one such as {some}"
        raise ValueError(f"locks: {key!r} {problem}")
    player, infoset = found[0]
    infosets = tree.infosets[player]
    names = action_names(tree.state_at(infosets.history[infoset]))
    first = infosets.decisions.first_sequence[infoset]
    rows[player][first : first + len(names)] = _row(given, names, f"at {key!r}")


def _of_hands(given: Any, names: Mapping[int, str]) -> bool:
    """Whether what stands for a node is told hand by hand."""
    return isinstance(given, Mapping) and not all(
        isinstance(each, int | float) for each in given.values()
    )


def _row(given: Any, names: Mapping[int, str], where: str) -> list[float]:
    """The probabilities of an infoset's actions, in ascending order of actions.

    Args:
      given: a number for each action, or numbers by names; what is left out is 0.
      names: of the actions.
      where: it is, for the error.
    """
    row = given
    if isinstance(given, Mapping):
        unknown = [word for word in given if word not in names.values()]
        if unknown:
            raise ValueError(
                f"locks: {where} there is no action {unknown[0]!r}; choose among "
                f"{', '.join(names.values())}"
            )
        row = [given.get(name, 0.0) for name in names.values()]
    numbers = isinstance(row, Sequence | np.ndarray) and all(
        isinstance(x, int | float | np.number) and not isinstance(x, bool) for x in row
    )
    if (
        not numbers
        or len(row) != len(names)
        or not min(row) >= 0
        or not abs(sum(row) - 1) <= _TOLERANCE
    ):
        raise ValueError(
            f"locks: {where} there is {given!r}; give probabilities of "
            f"{', '.join(names.values())}, at least 0 and with the sum 1"
        )
    return [float(x) for x in row]


def _hands(signals: SignalGame, node: int, text: str, where: str) -> np.ndarray:
    """bool [H], the signals that a text means at a public node.

    It is the name of a signal, of a hand on all boards, or a range where the game's
    reader knows of these.
    """
    player, round = int(signals.betting.player[node]), int(signals.betting.round[node])
    reader: Any = signals.reader
    count = signals.num_signals(player)[round]
    names = [reader.name(player, round, signal) for signal in range(count)]
    whole = np.array([name == text for name in names])
    if whole.any():
        return whole
    chosen_by: Callable[[int, int, str], np.ndarray] | None
    chosen_by = getattr(reader, "chosen", None)
    if chosen_by is None:
        chosen = np.array([name.partition(" | ")[0] == text for name in names])
    else:
        try:
            chosen = chosen_by(player, round, text)
        except ValueError as error:
            raise ValueError(f"locks: {where}: {error}") from error
    if not chosen.any():
        raise ValueError(
            f"locks: {where}: player {player} has no such hand there; choose among "
            f"{', '.join(names[:_SHOWN])}, …"
        )
    return chosen


def _check(form: SequenceForm, player: int, rows: np.ndarray) -> None:
    """Raises ValueError where rows are neither free nor probabilities."""
    decisions = form.decisions[player]
    starts = decisions.first_sequence - 1
    is_free = np.isnan(rows[1:])
    filled = np.where(is_free, conversions.uniform_behaviour(decisions)[1:], rows[1:])
    odd = conversions.odd_infoset(filled, starts, tolerance=_TOLERANCE)
    if odd is None:
        parted = np.add.reduceat(is_free, starts) % decisions.num_actions != 0
        odd = int(np.argmax(parted)) if parted.any() else None
    if odd is not None:
        first = decisions.first_sequence[odd]
        row = rows[first : first + decisions.num_actions[odd]].tolist()
        raise ValueError(
            f"locks[{player}]: at infoset {odd} there is {row}; give probabilities, at "
            f"least 0 and with the sum 1, or NaN for all of its actions"
        )
