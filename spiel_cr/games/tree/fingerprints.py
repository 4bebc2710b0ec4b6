"""A hash that tells compiled games apart."""

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.infostate_strings import Strings
from spiel_cr.games.tree.tree import GameTree

# Strings of a game in a hash: held at a time; the most of which all are made (a few
# microseconds each); and how many are, evenly spaced, of more.
_STRINGS_AT_ONCE = 1 << 14
_MOST_STRINGS = 1 << 20
_SOME_STRINGS = 1 << 12


def fingerprint(game: GameTree | SequenceForm) -> str:
    """Return a hash of a game's decisions, chance probabilities and payoffs.

    Information state strings are part of it if there are any. Of a player with more
    than a million infosets, some thousand strings are hashed.
    """
    form = game.form if isinstance(game, GameTree) else game
    digest = hashlib.sha256()
    for decisions in form.decisions:
        digest.update(decisions.parent.tobytes())
        digest.update(decisions.num_actions.tobytes())
    for array in form.payoffs:
        digest.update(array.tobytes())
    if isinstance(game, GameTree):
        for infosets in game.infosets:
            _digest_strings(digest, infosets.keys)
    return digest.hexdigest()


def decisions_fingerprint(game: GameTree) -> str:
    """Return a hash of a game's infosets and legal actions.

    A policy of one game is a policy of another one if the hashes agree. Strings are
    hashed as in `fingerprint`.
    """
    digest = hashlib.sha256()
    for infosets in game.infosets:
        for array in (infosets.decisions.parent, infosets.decisions.num_actions):
            digest.update(array.tobytes())
        digest.update(infosets.actions.astype(np.int32).tobytes())
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
