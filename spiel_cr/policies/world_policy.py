"""Strategies of hidden-board games: as OpenSpiel policies, in files, of any policy."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import DamagedFileError
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.worlds.game import WorldGame
from spiel_cr.policies.conversions import SUM_TOLERANCE
from spiel_cr.policies.result import Behaviours, text_of

# What files say that they hold, and what checkpoints say of the form.
KIND, FORM = "world policy", "worlds"
_DTYPES = ("float32", "float64")


class WorldPolicy(openspiel_policy.Policy):
    """Action probabilities by what a player did and was told, for both players.

    OpenSpiel's tools and all that takes a policy accept it. A state is looked up by its
    history, so also where its strings forget.

    Attributes:
      worlds: the game.
      behaviour: for each player float64 or float32 [S], by logical sequence.
    """

    def __init__(self, worlds: WorldGame, behaviour: Sequence[np.ndarray]) -> None:
        """Takes the probabilities as they are, without a copy.

        Raises:
          ValueError: they are of another size or type, or no probabilities.
        """
        super().__init__(worlds.game, [0, 1])
        self.worlds = worlds
        for player, side in enumerate(worlds.sides):
            _check(side.decisions, behaviour[player], f"behaviour of player {player}")
        self.behaviour = behaviour[0], behaviour[1]

    def action_probabilities(
        self, state: pyspiel.State, player_id: int | None = None
    ) -> dict[int, float]:
        """Probabilities of all legal actions of the player who acts.

        Args:
          state: at a decision.
          player_id: who acts; may be left out.

        Raises:
          ValueError: another player acts, or none; or the state is of another game.
        """
        player, infoset = self.worlds.infoset_of(state.history())
        if player_id not in (None, player):
            raise ValueError(
                f"player_id={player_id!r}: after the actions {state.history()} player "
                f"{player} acts; ask for the player who acts, at decisions"
            )
        actions = self.worlds.actions(player, infoset)
        first = int(self.worlds.first_sequences[player][infoset])
        played = self.behaviour[player][first : first + len(actions)]
        odds = played.astype(np.float64)
        return dict(zip(actions.tolist(), (odds / odds.sum()).tolist(), strict=True))


def _check(decisions: Decisions, given: np.ndarray, whose: str) -> None:
    """Raises ValueError where a player's numbers are no strategy."""
    if given.shape != (decisions.num_sequences,) or given.dtype.name not in _DTYPES:
        raise ValueError(
            f"{whose} has shape {given.shape} and dtype {given.dtype}; the game needs "
            f"{decisions.num_sequences} numbers of float32 or float64"
        )
    if len(decisions):
        starts = decisions.first_sequence - 1
        total = np.add.reduceat(given[1:], starts, dtype=np.float64)
        # Written so that NaN fails.
        fine = (np.abs(total - 1) <= SUM_TOLERANCE).all() and (given >= 0).all()
        if not fine or given[0] != 1:
            raise ValueError(
                f"{whose}: at some infoset the probabilities are negative or do not "
                f"sum to 1"
            )


def normalised(decisions: Decisions, behaviour: np.ndarray) -> np.ndarray:
    """float64 [S], probabilities that sum to 1 also where they were kept in float32.

    Infosets without any are uniform.
    """
    owner, played = decisions.owner[1:], behaviour[1:].astype(np.float64)
    total = np.bincount(owner, played, minlength=len(decisions))
    silent = total == 0
    if silent.any():
        played[silent[owner]] = 1.0
        total[silent] = decisions.num_actions[silent]
    return np.append(1.0, played / total[owner])


def behaviour_from_policy(
    worlds: WorldGame, policy: openspiel_policy.Policy, *, progress: bool = False
) -> Behaviours:
    """Asks a policy at every infoset, many at once where it can.

    It is asked after a history in which the other player's attempts never failed. So a
    policy that depends on more than what its player did and was told, such as the
    number of turns in the strings of `dark_hex`, is taken as it plays there.

    Args:
      worlds: the game.
      policy: of both players. One with `array_probabilities` (tables and networks of
        ours) is asked for arrays of states, any other one state by state.
      progress: show a bar on stderr.

    Returns:
      For each player float64 [S], action probabilities by logical sequence.

    Raises:
      ValueError: its answers are no probabilities of the legal actions.
    """
    if isinstance(policy, WorldPolicy) and policy.worlds is worlds:
        first, second = (
            normalised(side.decisions, own)
            for side, own in zip(worlds.sides, policy.behaviour, strict=True)
        )
        return first, second
    total = sum(len(side.decisions) for side in worlds.sides)
    result = []
    with tqdm(total=total, desc="infosets", disable=not progress) as bar:
        for player, side in enumerate(worlds.sides):
            behaviour = np.ones(side.decisions.num_sequences)
            first = worlds.first_sequences[player]
            for part, actions in worlds.histories(player):
                begin = int(first[part.start])
                end = int(first[part.stop - 1] + side.decisions.num_actions[part.stop - 1])
                owner = np.repeat(
                    np.arange(part.stop - part.start), side.decisions.num_actions[part]
                )
                asked = _ask(worlds, policy, player, actions)
                behaviour[begin:end] = asked[owner, side.actions[begin - 1 : end - 1]]
                bar.update(len(actions))
            played = normalised(side.decisions, np.maximum(behaviour, 0))
            if not np.allclose(played, behaviour, rtol=0, atol=SUM_TOLERANCE):
                silent = np.bincount(side.decisions.owner[1:], behaviour[1:]) == 0
                odd = np.abs(played - behaviour)[1:] > SUM_TOLERANCE
                if not silent[side.decisions.owner[1:][odd]].all():
                    raise ValueError(
                        f"{type(policy).__name__}: at some infoset of player {player} "
                        f"its probabilities are negative or do not sum to 1"
                    )
            result.append(played)
    return result[0], result[1]


def _ask(
    worlds: WorldGame, policy: openspiel_policy.Policy, player: int, actions: np.ndarray
) -> np.ndarray:
    """float64 [n, A], a policy's answers after histories int16 [n, L]."""
    ask = getattr(policy, "array_probabilities", None)
    if ask is not None:
        rules = worlds.rules
        states = np.repeat(rules.new_initial_states(), len(actions), axis=0)
        for step in actions.T:
            going = np.flatnonzero(step >= 0)
            states[going] = rules.child(states[going], step[going].astype(np.int64))
        answers: np.ndarray = ask(rules, states, player)
        return answers
    found = np.zeros((len(actions), worlds.game.num_distinct_actions()))
    for row, history in zip(found, actions.tolist(), strict=True):
        state = worlds.game.new_initial_state()
        for action in history:
            if action >= 0:
                state.apply_action(action)
        for action, odds in policy.action_probabilities(state, player).items():
            row[action] = odds
    return found


@dataclasses.dataclass(frozen=True)
class HeldByWorlds:
    """Strategies of a hidden-board game; see `result.Held`.

    Attributes:
      worlds: the game.
      dtype: of the arithmetic, and so of the strategies and their file.
    """

    worlds: WorldGame
    dtype: np.dtype

    @property
    def game(self) -> pyspiel.Game:
        """The OpenSpiel game."""
        return self.worlds.game

    @property
    def form(self) -> SequenceForm:
        """The game in sequence form."""
        return self.worlds.form

    def identity(self) -> tuple[str | None, str]:
        """See `result.Held`."""
        return FORM, self.worlds.fingerprint

    def policy(self, behaviour: Behaviours | None) -> WorldPolicy:
        """A policy that is read state by state, and is no table."""
        assert behaviour is not None
        first, second = (own.astype(self.dtype, copy=False) for own in behaviour)
        return WorldPolicy(self.worlds, (first, second))

    def write(
        self, path: atomic.Path, average: Behaviours | None, metadata: Mapping[str, Any]
    ) -> None:
        """See `result.Held`."""
        described = {
            "kind": KIND,
            "game": str(self.game),
            "fingerprint": self.worlds.fingerprint,
            **metadata,
            "versions": storage.versions(),
        }
        behaviour = self.policy(average).behaviour
        arrays = {f"player{p}": own for p, own in enumerate(behaviour)}
        storage.save(path, arrays, described)


def check_file(path: atomic.Path) -> None:
    """Refuses what `read_policy` refuses whatever the game.

    Raises:
      OSError, DamagedFileError: as `read_policy`.
    """
    _read(path)


def read_policy(path: atomic.Path, worlds: WorldGame) -> WorldPolicy:
    """Reads what `HeldByWorlds.write` wrote.

    Raises:
      OSError: there is no such file, or it cannot be read.
      DamagedFileError: the file was changed since, or its numbers are no probabilities.
      ValueError: it is for another game.
    """
    behaviour, named, seal = _read(path)
    if seal != worlds.fingerprint:
        raise ValueError(
            f"{path} holds a policy for {named}, not for {worlds.game}, or the game's "
            f"rules have changed since; give the policy's own game, or solve this one "
            f"anew"
        )
    try:
        return WorldPolicy(worlds, behaviour)
    except ValueError as error:
        raise DamagedFileError(f"{path} is a damaged policy file: {error}") from error


def _read(path: atomic.Path) -> tuple[list[np.ndarray], str, str]:
    """Both players' probabilities, the game's name and its fingerprint."""
    arrays, metadata = storage.load(path)
    named, seal = (text_of(metadata, n, path) for n in ("game", "fingerprint"))
    if set(arrays) != {"player0", "player1"}:
        raise DamagedFileError(
            f"{path} is a damaged policy file: it must have both players' probabilities"
        )
    return [arrays["player0"], arrays["player1"]], named, seal
