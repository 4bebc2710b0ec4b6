"""Information-state strings of many infosets, packed or computed on demand.

One string object for each infoset would need more memory than all arrays of a large
game.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import pyspiel

from spiel_cr.games.histories import Histories, states_at, string_at
from spiel_cr.games.opening.batched_rules import BatchedRules

# Number of paths played at once; their states should fit in a processor's cache.
_CHUNK = 1 << 14
# Largest number of moves on them: paths of deep games need more memory than states.
_MOVES = 1 << 24


class Strings(Sequence[str]):
    """Strings by number, which are computed on demand and then stored as bytes.

    A single string is computed alone until a caller iterates over all strings. Then all
    of them are computed at once and stored.
    """

    def __init__(
        self, length: int, one: Callable[[int], str], every: Callable[[], Iterable[str]]
    ) -> None:
        """Store the functions; use `Strings.packed` for strings that exist already.

        Args:
          length: Number of strings.
          one: Function that computes the string of a number, 0 to length - 1.
          every: Function that computes all of them, in order.
        """
        self._length = length
        self._one = one
        self._every = every
        # All strings in UTF-8, one after the other, and int64 [length], their ends.
        self._text: bytes | None = None
        self._ends = np.zeros(0, np.int64)

    @classmethod
    def packed(cls, strings: Sequence[str]) -> "Strings":
        """Return existing strings in a form that needs less memory."""
        result = cls(len(strings), strings.__getitem__, lambda: strings)
        result._pack()
        return result

    @classmethod
    def of_utf8(cls, text: np.ndarray, stops: np.ndarray) -> "Strings":
        """Return the strings of a result of `utf8`."""
        result = cls(len(stops), _nothing, tuple)
        result._text, result._ends = text.tobytes(), stops
        return result

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the strings, not the functions that compute them."""
        return Strings.of_utf8, self.utf8()

    def utf8(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the joined strings, uint8, and the end of each string, int64 [I]."""
        if self._text is None:
            self._pack()
        return np.frombuffer(self._text or b"", np.uint8), self._ends

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._length)))
        number = range(self._length)[index]
        if self._text is None:
            return self._one(number)
        start = self._ends[number - 1] if number else 0
        return self._text[start : self._ends[number]].decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        if self._text is None:
            self._pack()
        return (self[i] for i in range(self._length))

    def once(self) -> Iterator[str]:
        """Return an iterator over all strings that does not store computed ones."""
        return iter(self._every()) if self._text is None else iter(self)

    @property
    def nbytes(self) -> int:
        """Size in memory in bytes; 0 if no strings are stored."""
        return 0 if self._text is None else len(self._text) + self._ends.nbytes

    def _pack(self) -> None:
        """Compute and store all strings, and release the functions."""
        text = bytearray()
        ends = np.zeros(self._length, np.int64)
        for number, string in enumerate(self._every()):
            text += string.encode("utf-8", "surrogatepass")
            ends[number] = len(text)
        self._text, self._ends = bytes(text), ends
        del self._one, self._every


def _nothing(number: int) -> str:
    raise AssertionError(f"string {number} exists already")


def lazy_strings(
    game: pyspiel.Game,
    rules: BatchedRules,
    histories: Histories,
    first: np.ndarray,
    player: int,
) -> Strings:
    """Return a player's information-state strings, which are computed on demand.

    Args:
      game: Game whose states provide the strings if the batched rules do not.
      rules: Batched rules.
      histories: All histories.
      first: First history of each of the player's infosets, int32 [I].
      player: Player whose strings they are, 0 or 1.
    """

    def one(infoset: int) -> str:
        path = histories.actions_to(int(first[infoset]))
        return string_at(game, path, player)

    def every() -> Iterator[str]:
        make = getattr(rules, "information_state_strings", None)
        if make is None:
            strings = {
                number: state.information_state_string(player)
                for number, state in states_at(game, histories, first)
            }
            yield from (strings[number] for number in range(len(first)))
            return
        for states in batched_states_at(rules, histories, first):
            yield from make(states, player)

    return Strings(len(first), one, every)


def batched_states_at(
    rules: BatchedRules, histories: Histories, numbers: np.ndarray
) -> Iterator[np.ndarray]:
    """Make the states at many histories by batched rules.

    Args:
      rules: The batched rules.
      histories: The histories of the game.
      numbers: Integers [n], indices of histories.

    Yields:
      The states at these histories, in order, at most some thousands at a time.
    """
    depths = len(histories.level_start)
    step = max(1, min(_CHUNK, _MOVES // depths))
    for start in range(0, len(numbers), step):
        paths = histories.paths_to(numbers[start : start + step]).astype(np.int64)
        states = np.repeat(rules.new_initial_states(), len(paths), axis=0)
        for action in paths.T:
            on = action >= 0
            states[on] = rules.child(states[on], action[on])
        yield states
