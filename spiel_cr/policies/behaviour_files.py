"""Files of action probabilities of represented games, and metadata of policy files."""

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.common.pairs import pair
from spiel_cr.games.game_form import GameForm
from spiel_cr.games.opening.identity import other_game
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game, as_tree
from spiel_cr.policies.conversions import (
    DTYPES,
    Behaviours,
    check_behaviour,
    tabular_policy,
)
from spiel_cr.policies.form_policy import FormPolicy


def _checked_table(
    tree: GameTree, behaviours: Behaviours
) -> openspiel_policy.TabularPolicy:
    """Return a table after a check of its probabilities, as `FormPolicy` makes one."""
    return tabular_policy(
        tree,
        [check_behaviour(tree, p, b, tolerance=1e-6) for p, b in enumerate(behaviours)],
    )


# Policies of the forms of games, by kind: those of this process, and those of files.
_Policies = Mapping[str, Callable[[Any, Behaviours], openspiel_policy.Policy]]
_POLICIES: _Policies = {
    GameTree.kind: tabular_policy,
    PublicTreeGame.kind: FormPolicy,
    PhantomGame.kind: FormPolicy,
}
_READERS: _Policies = {**_POLICIES, GameTree.kind: _checked_table}
# Values of the field `kind` of policy files.
TREE_POLICY, PUBLIC_TREE_POLICY, PHANTOM_POLICY = (f"{k} policy" for k in _POLICIES)
CSV_POLICY = "CSV policy"


def form_policy(game_form: GameForm, behaviours: Behaviours) -> openspiel_policy.Policy:
    """Return action probabilities as an OpenSpiel policy, a table if there is a tree.

    Args:
      game_form: The represented game.
      behaviours: Probability of each sequence's last action for each player, float64 or
        float32 [S].

    Raises:
      ValueError: If these are not probabilities of the game's actions.
    """
    return _POLICIES[game_form.kind](game_form, behaviours)


def save_behaviours(
    path: atomic.Path,
    game_form: GameForm,
    behaviours: Behaviours,
    metadata: Mapping[str, Any],
) -> None:
    """Write action probabilities to an `.npz` file, atomically.

    Args:
      path: Path of the file.
      game_form: The represented game.
      behaviours: Probability of each sequence's last action for each player, float64 or
        float32 [S].
      metadata: Further fields of the file, in addition to kind, game, fingerprints and
        versions, as JSON values.

    Raises:
      OSError: If the file cannot be written; an existing file is unchanged.
    """
    fields = {
        "kind": f"{game_form.kind} policy",
        "game": str(game_form.game),
        "fingerprint": game_form.game_id,
        "decisions": game_form.decisions_id,
        **metadata,
        "versions": storage.versions(),
    }
    arrays = {f"player{p}": part for p, part in enumerate(behaviours)}
    storage.save(path, arrays, fields)


def read_metadata(path: atomic.Path) -> dict[str, Any]:
    """Return the metadata of a policy file without reading its arrays.

    CSV files have no metadata except for their kind.

    Raises:
      OSError: If the file does not exist, or cannot be read.
      CorruptFileError: If the file was not written by spiel_cr, or is corrupt.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"path={os.fspath(path)!r}: the file does not exist; give a file that "
            f"Result.save or --save wrote"
        )
    if os.fspath(path).endswith(".csv"):
        return {"kind": CSV_POLICY}
    return storage.load_metadata(path)


def corrupt(path: object, problem: object) -> CorruptFileError:
    """Return the error to raise for a corrupt policy file."""
    return CorruptFileError(f"{path} is a corrupt policy file: {problem}")


def text_of(metadata: Mapping[str, Any], name: str, path: atomic.Path) -> str:
    """Return a text that the metadata of a policy file must have.

    Args:
      metadata: Metadata of the file.
      name: Name of the field.
      path: Path of the file, for the error.

    Raises:
      CorruptFileError: If the field is missing.
    """
    text = metadata.get(name)
    if not isinstance(text, str):
        raise corrupt(path, f"the field {name} is missing")
    return text


def named_game(name: str, path: atomic.Path) -> pyspiel.Game:
    """Load the game that a policy file names.

    Args:
      name: Game string in the file.
      path: Path of the file, for the error.

    Raises:
      ValueError: If OpenSpiel cannot load the game by that string.
    """
    try:
        return open_game(name, general_sum=True).game
    except (pyspiel.SpielError, ValueError) as error:
        raise ValueError(
            f"path={os.fspath(path)!r}: OpenSpiel cannot load its game {name} by name "
            f"({error}); give the game as an argument"
        ) from error


def read_policy(path: atomic.Path, game_form: GameForm) -> openspiel_policy.Policy:
    """Read a file of action probabilities.

    Args:
      path: Path of the file.
      game_form: The represented game that the file must belong to.

    Raises:
      OSError: If the file does not exist, or cannot be read.
      CorruptFileError: If the file is corrupt, or its numbers are not probabilities.
      OtherGameError: If it belongs to a game with other infosets or actions.
    """
    behaviours, name, game_id = _read(path)
    if game_form.game_id != game_id:
        # Games with equal infosets and other payoffs have the same policies.
        if read_metadata(path).get("decisions") != game_form.decisions_id:
            raise other_game(f"{path}: a policy", name, game_form.game)
    try:
        return _READERS[game_form.kind](game_form, behaviours)
    except ValueError as error:
        raise corrupt(path, error) from error


def check_policy_file(path: atomic.Path) -> None:
    """Raise the errors of `read_policy` that do not depend on the game.

    Raises:
      OSError, CorruptFileError: See `read_policy`.
    """
    _read(path)


def _read(path: atomic.Path) -> tuple[Behaviours, str, str]:
    """Return the probabilities in a file, its game string, and its fingerprint."""
    arrays, metadata = storage.load(path)
    name, game_id = (text_of(metadata, key, path) for key in ("game", "fingerprint"))
    # Solvers of game trees return float64 in any arithmetic.
    dtypes = DTYPES[1:] if metadata.get("kind") == TREE_POLICY else DTYPES
    behaviours = [arrays.get(f"player{p}", np.zeros(())) for p in range(2)]
    for player, behaviour in enumerate(behaviours):
        if behaviour.ndim != 1 or behaviour.dtype.name not in dtypes:
            raise corrupt(
                path, f"the probabilities of player {player} are missing or wrong"
            )
    return pair(behaviours), name, game_id


def check_tabular_file(path: atomic.Path) -> None:
    """Raise the errors of `load_tabular_policy` that do not depend on the game.

    Raises:
      OSError, CorruptFileError, ValueError: See `load_tabular_policy`.
    """
    kind = read_metadata(path).get("kind", "file of another kind")
    if kind != TREE_POLICY:
        raise ValueError(
            f"path={os.fspath(path)!r} holds a {kind}, not a policy of a game tree; "
            f"give a file of a game whose tree was built (--form tree)"
        )
    _read(path)


def load_tabular_policy(
    path: atomic.Path, game: Game | None = None
) -> openspiel_policy.TabularPolicy:
    """Read a policy of a game tree, which `Result.save` wrote.

    Args:
      path: Path of the file.
      game: The game that the file must belong to; None: the game named in the file.

    Returns:
      A table over every infoset; the game's tree is built for it.

    Raises:
      OSError, CorruptFileError: See `read_policy`.
      ValueError: If the file holds another kind of policy or one of another game, or if
        OpenSpiel cannot load its game by name.
    """
    check_tabular_file(path)
    if game is None:
        game = named_game(text_of(read_metadata(path), "game", path), path)
    policy = read_policy(path, as_tree(game))
    return cast(openspiel_policy.TabularPolicy, policy)
