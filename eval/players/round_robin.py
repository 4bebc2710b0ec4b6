"""Round robins: which matches there are, who sits where, what a folder is of.

The unit is a *deal*: two matches, or sessions of matches, in which chance draws from
the same numbers, and the players swap seats in between.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.compilation.fingerprints import fingerprint
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.players import bot_strings

from ..common.json_log import OtherRunError, Record, same_settings

# Where it is played: compiled where a bot needs that.
Instance: TypeAlias = CompiledGame | pyspiel.Game


class Slot(NamedTuple):
    """A match of the plan: bots by number, `row` in seat 0 unless swapped."""

    deal: int
    row: int
    column: int
    swapped: bool

    @property
    def seats(self) -> tuple[int, int]:
        """The bots in seats 0 and 1."""
        return (self.column, self.row) if self.swapped else (self.row, self.column)


def check_plan(bots: Sequence[str], matches: int, seed: int) -> None:
    """Refuses what no tournament can be made of.

    Args:
      bots: strings.
      matches: of each pair.
      seed: of chance and of all that bots draw.

    Raises:
      ValueError: fewer than two bots, or a bad number.
    """
    if len(bots) < 2:
        raise ValueError(
            f"bots={';'.join(bots)!r}: a tournament needs two bots or more; write 'A;B'"
        )
    check_iterations(matches, name="matches")
    check_seed(seed)


def check_slot(bots: Sequence[str], record: Record) -> None:
    """Raises ValueError where a line is of no slot of these bots."""
    slot = slot_of(record)
    if not slot.row < slot.column < len(bots):
        raise ValueError(f"has no bots {slot.row} and {slot.column} of {len(bots)}")
    if record.get("players") != [bots[number] for number in slot.seats]:
        raise ValueError("has other players than these bots")


def slot_of(record: Record) -> Slot:
    """The slot of a line."""
    return Slot(*(record[name] for name in Slot._fields))


def generator(seed: int, slot: Slot, *stream: int) -> np.random.Generator:
    """Random numbers of a slot, other ones for each stream."""
    key = (slot.deal, slot.row, slot.column, *stream)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def settings_of(instance: Instance, bots: Sequence[str], seed: int) -> Record:
    """What a folder keeps of a tournament."""
    tree = instance if isinstance(instance, CompiledGame) else None
    return {
        "game": str(instance if tree is None else tree.game),
        "bots": list(bots),
        "seed": seed,
        "fingerprint": None if tree is None else fingerprint(tree),
    }


def same_run(found: Record, new: Record) -> Record:
    """Settings of a folder to go on with; for `JsonLog`.

    A game can be written in several ways: its tree is what counts, if known.

    Args:
      found: in the folder.
      new: of this run.

    Raises:
      OtherRunError: they differ, or one run is of sessions and the other of matches.
    """
    same_settings(found, {name: new[name] for name in ("bots", "seed")})
    sessions = found.get("session"), new.get("session")
    if sessions[0] != sessions[1]:
        raise OtherRunError(
            f"holds a tournament with session={sessions[0]}, not {sessions[1]}"
        )
    prints = found.get("fingerprint"), new["fingerprint"]
    if None not in prints and prints[0] == prints[1]:
        return found
    elif None not in prints and found.get("game") == new["game"]:
        raise OtherRunError(f"holds a run with another version of {new['game']}")
    same_settings(found, {"game": new["game"]})
    return found


def plan_slots(num_bots: int, matches: int) -> list[Slot]:
    """Deal by deal, so that a tournament which was stopped has met all pairs alike."""
    pairs = itertools.combinations(range(num_bots), 2)
    return [
        Slot(deal, row, column, swapped)
        for deal, (row, column), swapped in itertools.product(
            range((matches + 1) // 2), pairs, (False, True)
        )
    ]


def make_bots(
    instance: Instance, bots: Sequence[str], seed: int, progress: bool
) -> dict[tuple[int, int], pyspiel.Bot]:
    """Bots by (number, seat)."""
    places = list(itertools.product(range(len(bots)), (0, 1)))
    made = {}
    for number, seat in tqdm(places, desc="warming up", disable=not progress):
        entropy = np.random.SeedSequence(seed, spawn_key=(number, seat))
        # JAX without 64 bits takes 31.
        own = int(entropy.generate_state(1)[0] >> 1)
        made[number, seat] = bot_strings.load_bot(
            bots[number], instance, seat, seed=own
        )
    return made
