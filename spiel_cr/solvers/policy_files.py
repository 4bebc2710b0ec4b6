"""Policy files: strategies for represented games, tables, and networks."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from open_spiel.python import policy as openspiel_policy

from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.common import atomic
from spiel_cr.games.opening.identity import other_game
from spiel_cr.games.opening.opened import Openable, Opened, open_game
from spiel_cr.games.phantom.game import PhantomGame, phantom_game
from spiel_cr.games.public_tree import public_tree_loading as loading
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.policies import behaviour_files, csv_files
from spiel_cr.solvers.deep import network_policy
from spiel_cr.solvers.mccfr.table import table_policy


class _Content(NamedTuple):
    """Policy files of one kind.

    Attributes:
      check: Raises an error for files that are invalid whatever the game.
      load: Makes the policy from a path, a game or None, and the file's metadata.
      needs_tree: Whether the files hold policies of game trees.
      form: Class of the represented game of such policies, if it is not a game tree.
    """

    check: Callable[[atomic.Path], object]
    load: Callable[
        [atomic.Path, Openable | None, Mapping[str, Any]], openspiel_policy.Policy
    ]
    needs_tree: bool = False
    form: type | None = None


@dataclasses.dataclass(frozen=True)
class PolicyFile:
    """A policy file whose metadata was read.

    Attributes:
      path: The file.
      metadata: The metadata of the policy.
    """

    path: atomic.Path
    metadata: Mapping[str, Any]

    @property
    def needs_tree(self) -> bool:
        """Whether the file holds a policy of a game tree."""
        return self._content.needs_tree

    @property
    def is_of_public_tree(self) -> bool:
        """Whether the file holds a policy of a public-tree game."""
        return self._content.form is PublicTreeGame

    @property
    def is_of_phantom_game(self) -> bool:
        """Whether the file holds a policy of a phantom game."""
        return self._content.form is PhantomGame

    def check(self) -> None:
        """Raise the errors of `load` that do not depend on the game."""
        self._content.check(self.path)

    def load(self, game: Openable | None = None) -> openspiel_policy.Policy:
        """Return the policy; see `load_policy`."""
        return self._content.load(self.path, game, self.metadata)

    @property
    def _content(self) -> _Content:
        return _CONTENTS.get(str(self.metadata.get("kind")), _TREE_CONTENT)


def read_policy_file(path: atomic.Path) -> PolicyFile:
    """Read the metadata of a policy file.

    Raises:
      OSError: If the file does not exist, or cannot be read.
      CorruptFileError: If the file was not written by spiel_cr, or modified since.
    """
    return PolicyFile(path, behaviour_files.read_metadata(path))


def check_policy_file(path: atomic.Path) -> None:
    """Raise the errors of `load_policy` that do not depend on the game.

    Args:
      path: The file.

    Raises:
      OSError, CorruptFileError, ValueError: As `load_policy`.
    """
    read_policy_file(path).check()


def load_policy(
    path: atomic.Path, game: Openable | None = None
) -> openspiel_policy.Policy:
    """Load a policy from a file.

    Args:
      path: Path of a file that `Result.save` or --save wrote, or of a CSV file with the
        columns information_state, action and probability.
      game: Game for which the policy must be, in any form; None: the game that the file
        names.

    Returns:
      A policy of OpenSpiel's Python interface. For a game tree, a table over every
      information state. For a public-tree or phantom game, a policy that looks up
      states. For a game that was sampled without building its tree, a table of hashes
      that is uniform at infosets that were not visited, and counts them; or networks.

    Raises:
      OSError: If the file does not exist, or cannot be read.
      CorruptFileError: If the file was not written by spiel_cr, was modified since, or
        holds invalid probabilities.
      ValueError: If the file does not hold a policy, or holds one for another game; or
        if OpenSpiel cannot load the game by its name.

    Example:
      >>> import spiel_cr
      >>> spiel_cr.solve("kuhn_poker", "cfr+", 100).save("kuhn.npz")
      >>> policy = spiel_cr.load_policy("kuhn.npz")
      >>> spiel_cr.nash_conv("kuhn_poker", policy) < 0.01
      True
    """
    return read_policy_file(path).load(game)


def _on_form(form: type, make: Callable[[Opened, atomic.Path, Any], Any]) -> _Content:
    """Return the content of files with a policy on a form.

    Args:
      form: Class of the represented game.
      make: Represents an opened game; its further arguments are the file and its
        metadata.
    """

    def load(
        path: atomic.Path, game: Any, metadata: Mapping[str, Any]
    ) -> openspiel_policy.Policy:
        if game is None:
            name = behaviour_files.text_of(metadata, "game", path)
            game = behaviour_files.named_game(name, path)
        if not isinstance(game, form):
            opened = open_game(game, general_sum=True)
            game = make(opened, path, metadata)
        return behaviour_files.read_policy(path, game)

    return _Content(behaviour_files.check_policy_file, load, form=form)


def _public_tree(
    opened: Opened, path: atomic.Path, metadata: Mapping[str, Any]
) -> PublicTreeGame:
    """Represent a policy's game as when the policy was written, merged or not."""
    if not loading.declared(opened):
        raise other_game(f"{path}: a policy", str(metadata.get("game")), opened.game)
    unmerged = loading.public_tree_game(opened)
    # A `PublicTreeGame` is solved as it is, without merging.
    if unmerged.decisions_id == metadata.get("decisions") or (
        unmerged.game_id == metadata.get("fingerprint")
    ):
        return unmerged
    return merged(unmerged)


def _sampled(check: Callable[..., None], load: Callable[..., Any]) -> _Content:
    """Return the content of files with a policy of a game that was simulated."""

    def load_plain(
        path: atomic.Path, game: Openable | None, metadata: Mapping[str, Any]
    ) -> openspiel_policy.Policy:
        return load(path, None if game is None else open_game(game).game)

    return _Content(check, load_plain)


_TREE_CONTENT = _Content(
    behaviour_files.check_tabular_file,
    lambda path, game, _: behaviour_files.load_tabular_policy(path, game),
    needs_tree=True,
)
_CONTENTS: Mapping[str, _Content] = {
    behaviour_files.TREE_POLICY: _TREE_CONTENT,
    behaviour_files.PUBLIC_TREE_POLICY: _on_form(PublicTreeGame, _public_tree),
    behaviour_files.PHANTOM_POLICY: _on_form(
        PhantomGame, lambda opened, *_: phantom_game(opened)
    ),
    behaviour_files.CSV_POLICY: _Content(
        csv_files.read_rows,
        lambda path, game, _: csv_files.load_csv_policy(path, game),
        needs_tree=True,
    ),
    table_policy.TABLE: _sampled(
        table_policy.check_table_file, table_policy.load_table_policy
    ),
    network_policy.KIND: _sampled(
        network_policy.check_file, network_policy.load_deep_policy
    ),
}
