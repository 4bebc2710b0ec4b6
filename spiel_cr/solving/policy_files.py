"""Policies in files: of compiled games, and of games that never were."""

import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import storage
from spiel_cr.common.errors import DamagedFileError
from spiel_cr.compilation.compiler import Game
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.policies import result
from spiel_cr.uncompiled import key_making
from spiel_cr.uncompiled import policy as table_policy
from spiel_cr.uncompiled.policy import TablePolicy

# What files of policies of games that were not compiled say that they hold.
TABLE = "table policy"


def needs_compiled(path: storage.Path) -> bool:
    """Whether a file holds a policy of a compiled game.

    Raises:
      OSError: there is no such file, or it cannot be read.
      DamagedFileError: the file is no file of ours, or was changed since.
    """
    return result.read_metadata(path).get("kind") != TABLE


def check_policy_file(path: storage.Path) -> None:
    """Refuses what `load_policy` refuses whatever the game; nothing is compiled.

    Args:
      path: the file.

    Raises:
      OSError, DamagedFileError, ValueError: as `load_policy`.
    """
    if needs_compiled(path):
        result.check_tabular_file(path)
    else:
        table_policy.read_strategy(storage.load(path)[0], path)


def load_policy(
    path: storage.Path, game: Game | None = None
) -> openspiel_policy.TabularPolicy | TablePolicy:
    """Reads a policy from a file.

    Args:
      path: of `SolveResult.save`, `SampledResult.save` or --save.
      game: the game it must be for: string, game or compiled game; None: the one named
        in the file.

    Returns:
      A table by information-state strings over every infoset, for which the game is
      compiled; or, where the policy was sampled without compiling, a table by hashes
      that is uniform at infosets that were never met, and counts these.

    Raises:
      OSError: there is no such file, or it cannot be read.
      DamagedFileError: the file is no file of ours, was changed since, or its numbers
        are no probabilities.
      ValueError: the file holds no policy, or one for another game; or OpenSpiel cannot
        load its game by name.
    """
    metadata = result.read_metadata(path)
    if metadata.get("kind") != TABLE:
        return result.load_tabular_policy(path, game)
    named = result.text_of(metadata, "game", path)
    kind = result.text_of(metadata, "keys", path)
    if kind not in key_making.KINDS:
        raise DamagedFileError(
            f"{path} is a damaged policy file: its keys are of the kind {kind!r}"
        )
    print_of_file = result.text_of(metadata, "fingerprint", path)
    loaded = result.named_game(named, path) if game is None else _plain(game)
    if kind == key_making.RULES and key_making.kind_for(loaded) != kind:
        raise ValueError(
            f"{path} was made by the rules on arrays of {named}, and {loaded} has none "
            f"here; install what has them, or solve with --no-vectorised"
        )
    source = key_making.make_source(loaded, kind)
    if key_making.fingerprint(source) != print_of_file:
        raise ValueError(
            f"{path} holds a policy for {named}, not for {loaded}, or the game's rules "
            f"or information states have changed since; give the policy's own game, or "
            f"solve this one anew"
        )
    strategy = table_policy.read_strategy(storage.load(path)[0], path)
    return TablePolicy(loaded, source, strategy)


def _plain(game: Game) -> pyspiel.Game:
    return game.game if isinstance(game, CompiledGame) else load_game(game)
