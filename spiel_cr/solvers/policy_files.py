"""Policies in files: of compiled games, of signal games, of others; of networks."""

from collections.abc import Mapping
from typing import Any, cast

from open_spiel.python import policy as openspiel_policy

from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.common import atomic
from spiel_cr.games.opening.identity import other_game
from spiel_cr.games.opening.opened import Openable, open_game
from spiel_cr.games.phantom.game import PhantomGame, shared_phantom_game
from spiel_cr.games.public_tree import public_tree_loading as loading
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.policies import behaviour_files
from spiel_cr.policies.phantom_policy import PhantomPolicy
from spiel_cr.policies.public_tree_policy import PublicTreePolicy
from spiel_cr.solvers.deep import network_policy as deep_policy
from spiel_cr.solvers.deep.network_policy import DeepPolicy
from spiel_cr.solvers.mccfr.table import table_policy
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

# Of files of games that are not compiled: what refuses bad ones, by their kinds.
_CHECKS = {
    table_policy.TABLE: table_policy.check_table_file,
    deep_policy.KIND: deep_policy.check_file,
    behaviour_files.PUBLIC_TREE_POLICY: behaviour_files.check_policy_file,
    behaviour_files.PHANTOM_POLICY: behaviour_files.check_policy_file,
}


def needs_tree(path: atomic.Path) -> bool:
    """Whether a file holds a policy of a compiled game.

    Raises:
      OSError: there is no such file, or it cannot be read.
      CorruptFileError: the file is no file of ours, or was changed since.
    """
    return behaviour_files.read_metadata(path).get("kind") not in _CHECKS


def is_of_public_tree(path: atomic.Path) -> bool:
    """Whether a file holds a policy of a signal game.

    Raises:
      OSError, CorruptFileError: as `needs_tree`.
    """
    return (
        behaviour_files.read_metadata(path).get("kind")
        == behaviour_files.PUBLIC_TREE_POLICY
    )


def check_policy_file(path: atomic.Path) -> None:
    """Refuses what `load_policy` refuses whatever the game; nothing is compiled.

    Args:
      path: the file.

    Raises:
      OSError, CorruptFileError, ValueError: as `load_policy`.
    """
    kind = str(behaviour_files.read_metadata(path).get("kind"))
    _CHECKS.get(kind, behaviour_files.check_tabular_file)(path)


def load_policy(
    path: atomic.Path, game: Openable | None = None
) -> (
    openspiel_policy.TabularPolicy
    | PublicTreePolicy
    | PhantomPolicy
    | TablePolicy
    | DeepPolicy
):
    """Reads a policy from a file.

    Args:
      path: of a result's `save`, or --save.
      game: the game it must be for: string, game, compiled game or signal game; None:
        the one named in the file.

    Returns:
      A table by information-state strings over every infoset, for which the game is
      compiled; or, where the game was solved in the form of signals, a policy that is
      read state by state, as in that of worlds; or, where it was sampled without
      compiling, a table by hashes that is uniform at infosets that were never met, and
      counts these; or networks that are asked state by state.

    Raises:
      OSError: there is no such file, or it cannot be read.
      CorruptFileError: the file is no file of ours, was changed since, or its numbers
        are no probabilities.
      ValueError: the file holds no policy, or one for another game; or OpenSpiel cannot
        load its game by name.
    """
    metadata = behaviour_files.read_metadata(path)
    named_kind = metadata.get("kind")
    if named_kind == behaviour_files.PUBLIC_TREE_POLICY:
        return _load_signals(path, metadata, game)
    if named_kind == behaviour_files.PHANTOM_POLICY:
        return _load_worlds(path, metadata, game)
    if isinstance(game, PublicTreeGame | PhantomGame):
        game = game.game
    if named_kind == deep_policy.KIND:
        plain = None if game is None else open_game(game).game
        return deep_policy.load_deep_policy(path, plain)
    if named_kind != table_policy.TABLE:
        return behaviour_files.load_tabular_policy(path, game)
    return table_policy.load_table_policy(
        path, None if game is None else open_game(game).game
    )


def _load_worlds(
    path: atomic.Path, metadata: Mapping[str, Any], game: Openable | None
) -> PhantomPolicy:
    """Reads a policy of a game of hidden boards; metadata are those of the file."""
    if game is None:
        game = behaviour_files.named_game(
            behaviour_files.text_of(metadata, "game", path), path
        )
    if not isinstance(game, PhantomGame):
        plain = game.game if isinstance(game, PublicTreeGame) else game
        game = shared_phantom_game(open_game(plain))
    return cast(PhantomPolicy, behaviour_files.read_policy(path, game))


def _load_signals(
    path: atomic.Path, metadata: Mapping[str, Any], game: Openable | None
) -> PublicTreePolicy:
    """Reads a policy of a signal game; metadata are those of the file."""
    named = behaviour_files.text_of(metadata, "game", path)
    if game is None:
        game = behaviour_files.named_game(named, path)
    if not isinstance(game, PublicTreeGame):
        opened = open_game(game)
        if not loading.declared(opened):
            raise other_game(f"{path}: a policy", named, opened.game)
        found = loading.public_tree_game(opened)
        game = merged(found)
        # A `PublicTreeGame` is solved as it is, without merging.
        if found.decisions_id == metadata.get("decisions") or (
            found.game_id == metadata.get("fingerprint")
        ):
            game = found
    return cast(PublicTreePolicy, behaviour_files.read_policy(path, game))
