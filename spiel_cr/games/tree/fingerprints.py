"""A hash that tells compiled games apart."""

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.infostate_strings import Strings
from spiel_cr.games.tree.tree import CompiledGame

# Strings of a game in a hash: held at a time; the most of which all are made (a few
# microseconds each); and how many are, evenly spaced, of more.
_STRINGS_AT_ONCE = 1 << 14
_MOST_STRINGS = 1 << 20
_SOME_STRINGS = 1 << 12


def fingerprint(game: CompiledGame | SequenceForm) -> str:
    """A hash that tells games apart: trees, payoffs, and keys where there are any.

    Of a player with more than a million infosets, some thousand keys are looked at.
    """
    form = game.form if isinstance(game, CompiledGame) else game
    digest = hashlib.sha256()
    for decisions in form.decisions:
        digest.update(decisions.parent.tobytes())
        digest.update(decisions.num_actions.tobytes())
    for array in form.payoffs:
        digest.update(array.tobytes())
    if isinstance(game, CompiledGame):
        for infosets in game.infosets:
            _digest_strings(digest, infosets.keys)
    return digest.hexdigest()


def _digest_strings(digest: Any, keys: Sequence[str]) -> None:
    """Feeds strings to a hash, zeros between them; they are not kept in memory."""
    strings = keys.once() if isinstance(keys, Strings) else iter(keys)
    if len(keys) > _MOST_STRINGS:
        strings = iter(keys[:: len(keys) // _SOME_STRINGS])
    between = b""
    while some := list(itertools.islice(strings, _STRINGS_AT_ONCE)):
        digest.update(between)
        digest.update("\0".join(some).encode("utf-8", "surrogatepass"))
        between = b"\0"
