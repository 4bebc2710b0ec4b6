"""Second stage: information-state strings of many infosets, packed or made on demand.

A string object for each infoset would take more memory than all arrays of a large game.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import pyspiel


class Strings(Sequence[str]):
    """Strings by number, which are made when they are asked for, then kept as bytes.

    A single string is made alone as long as nobody has run through all of them; then
    all are made at once and stay, packed.
    """

    def __init__(
        self,
        length: int,
        one: Callable[[int], str],
        every: Callable[[], Iterable[str]],
    ) -> None:
        """Use `Strings.packed` for strings that are already there.

        Args:
          length: how many there are.
          one: makes the string of a number, 0 to length - 1.
          every: makes all of them, in order.
        """
        self._length = length
        self._one = one
        self._every = every
        # All strings in UTF-8, one after the other, and int64 [length], their ends.
        self._text: bytes | None = None
        self._ends = np.zeros(0, np.int64)

    @classmethod
    def packed(cls, strings: Sequence[str]) -> "Strings":
        """Strings that are already there, in less memory."""
        result = cls(len(strings), strings.__getitem__, lambda: strings)
        result._pack()
        return result

    @classmethod
    def of_utf8(cls, text: np.ndarray, ends: np.ndarray) -> "Strings":
        """Strings from what `utf8` gave."""
        result = cls(len(ends), _nothing, tuple)
        result._text, result._ends = text.tobytes(), ends
        return result

    def utf8(self) -> tuple[np.ndarray, np.ndarray]:
        """All strings, one after the other, uint8, and where each ends, int64 [I]."""
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
        """All strings in order; those that are not there yet are not kept."""
        return iter(self._every()) if self._text is None else iter(self)

    @property
    def nbytes(self) -> int:
        """Bytes held now; none as long as strings are made one by one."""
        return 0 if self._text is None else len(self._text) + self._ends.nbytes

    def _pack(self) -> None:
        """Makes all strings and forgets how that is done."""
        text = bytearray()
        ends = np.zeros(self._length, np.int64)
        for number, string in enumerate(self._every()):
            text += string.encode("utf-8", "surrogatepass")
            ends[number] = len(text)
        self._text, self._ends = bytes(text), ends
        del self._one, self._every


def _nothing(number: int) -> str:
    raise AssertionError(f"string {number} is there already")


def string_at(game: pyspiel.Game, actions: Iterable[int], player: int) -> str:
    """What OpenSpiel tells a player after some actions, chance included."""
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(int(action))
    return state.information_state_string(player)


def strings_along(game: pyspiel.Game, paths: np.ndarray, player: int) -> list[str]:
    """What OpenSpiel tells a player after each of many paths.

    Args:
      game: a sequential game.
      paths: integers [paths, D], actions from the root, chance included, then -1.
      player: who has observed.
    """
    strings = [""] * len(paths)
    for number, state in states_along(game, paths):
        strings[number] = state.information_state_string(player)
    return strings


def states_along(
    game: pyspiel.Game, paths: np.ndarray
) -> Iterator[tuple[int, pyspiel.State]]:
    """Plays each of many paths.

    Paths with a common beginning share the states there, so each state on the way is
    made once.

    Args:
      game: a sequential game.
      paths: integers [paths, D], actions from the root, chance included, then -1.

    Yields:
      The index of each path, in any order, and the state after it; do not change it.
    """
    states = [game.new_initial_state()]
    last = np.full(paths.shape[1], -1)
    for number in np.lexsort(paths.T[::-1]) if len(paths) else ():
        path = paths[number]
        differs = np.flatnonzero(np.append(path != last, True))[0]
        del states[differs + 1 :]
        for action in path[differs : np.count_nonzero(path >= 0)].tolist():
            states.append(states[-1].child(action))
        yield int(number), states[-1]
        last = path
