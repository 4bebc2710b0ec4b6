"""Damage to `.npz` files of every kind, and checks of their readers.

There are two kinds of damage. Accidents do not update the seal: bits, blocks and
members change as disks, editors and archivers may change them. Such a file must be
rejected, or its content must be bitwise identical. Forgeries have a valid seal. Further
checks may reject them; forgeries that pass these checks must not cause other errors. In
both cases, damaged caches are built again.

`python -m tests.fuzz damaged_files FIRST LAST` runs many trials over all kinds in turn.
"""

import contextlib
import functools
import hashlib
import io
import json
import pathlib
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import spiel_cr
from spiel_cr import GameOptions, Result
from spiel_cr.common import storage
from spiel_cr.games.opening import batched_rules
from spiel_cr.games.tree import cache
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import build_tree
from tests.games.tree.test_batched_rules import same
from tests.support.kuhn_public_tree import kuhn

Rng = np.random.Generator
Content = tuple[dict[str, np.ndarray], dict[str, Any]]


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
      name: Name of the kind.
      content: Content of an undamaged file.
      read: Function that reads a file as the package does, with its exceptions.
      recovers: Whether damaged files are replaced, so that `read` does not raise.
    """

    name: str
    content: bytes
    read: Callable[[pathlib.Path], Any]
    recovers: bool = False


def check(kind: Kind, path: pathlib.Path, number: int) -> str:
    """Damage a file and read it.

    Args:
      kind: Kind of the file.
      path: Path of the damaged file.
      number: Number that determines the damage.

    Returns:
      A description of the outcome.

    Raises:
      AssertionError: If the outcome is not allowed.
    """
    rng = np.random.default_rng(number)
    path.write_bytes(kind.content)
    true = storage.load(path)
    forged = number % 3 == 0
    change = (FORGERIES if forged else ACCIDENTS)[number // 3 % 8]
    path.write_bytes(change(kind.content, rng))
    what = f"{'forgery' if forged else 'accident'} {change.__name__}"
    again = f"damaged_files.check({kind.name}, path, {number}): {what}"
    content = _loaded(path, again)
    if content is not None and not forged:
        assert _same(content, true), f"{again} reads as another file"
    try:
        kind.read(path)
    except (OSError, ValueError) as error:
        assert not kind.recovers, f"{again} ends in {error!r}"
        _check_refusal(error, path, again)
        assert content is None or forged, f"{again} is refused: {error}"
        return f"{what}: refused by its reader" if content else f"{what}: refused"
    except Exception as error:
        raise AssertionError(f"{again} ends in {error!r}") from error
    if kind.recovers:
        assert _same(storage.load(path), true) or (forged and content), again
        return f"{what}: {'made anew' if content is None else 'read'}"
    assert content is not None, f"{again} is read by the reader only"
    return f"{what}: {'read' if forged else 'the same content'}"


def _loaded(path: pathlib.Path, again: str) -> Content | None:
    """Return the result of `storage.load`; None if it rejects the file correctly."""
    try:
        return storage.load(path)
    except (OSError, storage.CorruptFileError) as error:
        _check_refusal(error, path, again)
        return None
    except Exception as error:
        raise AssertionError(f"{again} ends in {error!r}") from error


def _check_refusal(error: Exception, path: pathlib.Path, again: str) -> None:
    assert str(path) in str(error), f"{again} names no file: {error}"
    assert "allow_pickle" not in str(error), again


def _same(one: Content, other: Content) -> bool:
    """Return whether contents are bitwise identical."""
    arrays, true = one[0], other[0]
    return (
        one[1] == other[1]
        and list(arrays) == list(true)
        and all(
            arrays[name].dtype == true[name].dtype
            and arrays[name].shape == true[name].shape
            and arrays[name].tobytes() == true[name].tobytes()
            for name in true
        )
    )


# Accidents.


def _somewhere(content: bytes, rng: Rng) -> tuple[int, int]:
    """Draw begin and end of a block: short, long, or rarely the whole content."""
    begin = int(rng.integers(len(content)))
    length = int(rng.choice([1, 2, 8, 64, 512, 4096, len(content)]))
    return begin, min(begin + length, len(content))


def flip_bits(content: bytes, rng: Rng) -> bytes:
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def cut_off(content: bytes, rng: Rng) -> bytes:
    return content[: int(rng.integers(len(content)))]


def insert(content: bytes, rng: Rng) -> bytes:
    at, length = int(rng.integers(len(content) + 1)), int(rng.choice([1, 2, 30, 4096]))
    added = bytes(length) if rng.random() < 0.3 else rng.bytes(length)
    return content[:at] + added + content[at:]


def blank(content: bytes, rng: Rng) -> bytes:
    begin, end = _somewhere(content, rng)
    return content[:begin] + bytes(end - begin) + content[end:]


def leave_out(content: bytes, rng: Rng) -> bytes:
    begin, end = _somewhere(content, rng)
    return content[:begin] + content[end:]


def exchange(content: bytes, rng: Rng) -> bytes:
    """Exchange two blocks."""
    a, b, c, d = np.sort(rng.integers(len(content) + 1, size=4)).tolist()
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def other_members(content: bytes, rng: Rng) -> bytes:
    """Write the archive again with changed members and valid checksums of members."""
    return _archive(
        _change_members(_members(content), rng), _comment(content, rng), rng
    )


def other_numbers(content: bytes, rng: Rng) -> bytes:
    """Change a bit of a member and update the checksums of this member."""
    damaged = bytearray(content)
    start = int(_seal_of(content)[:16], 16)
    entry = _pick(_entries(content, start), rng)
    offset, size = struct.unpack("<I", content[entry + 42 : entry + 46])[0], 0
    size = struct.unpack("<I", content[entry + 24 : entry + 28])[0]
    begin = offset + 30 + sum(struct.unpack("<HH", content[offset + 26 : offset + 30]))
    damaged[begin + int(rng.integers(size))] ^= 1 << int(rng.integers(8))
    crc = struct.pack("<I", zlib.crc32(damaged[begin : begin + size]))
    damaged[entry + 16 : entry + 20] = crc
    damaged[offset + 14 : offset + 18] = crc
    return bytes(damaged)


ACCIDENTS = (
    *(flip_bits, cut_off, insert, blank, leave_out, exchange),
    *(other_members, other_numbers),
)


# Archives and their parts.


def _pick(things: list[Any], rng: Rng) -> Any:
    return things[int(rng.integers(len(things)))]


def _seal_of(content: bytes) -> bytes:
    """Return the position of the index and its checksum, in hexadecimal digits."""
    return content[-81:]


def _comment(content: bytes, rng: Rng) -> bytes:
    """Return the unchanged seal, or none."""
    return content[-90:] if rng.random() < 0.5 else b""


def _entries(content: bytes, start: int) -> list[int]:
    """Return the position of each entry of the index."""
    found = []
    while content[start : start + 4] == b"PK\1\2":
        found.append(start)
        start += 46 + sum(struct.unpack("<HHH", content[start + 28 : start + 34]))
    return found


def _members(content: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def _archive(
    members: list[tuple[str, bytes]], comment: bytes, rng: Rng | None = None
) -> bytes:
    """Make an archive of members, which may be compressed if `rng` is given."""
    method = zipfile.ZIP_STORED
    if rng is not None:
        methods = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
        method = _pick([zipfile.ZIP_STORED] * 5 + methods, rng)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            archive.writestr(info, content)
        archive.comment = comment
    return file.getvalue()


def _sealed(archive: bytes) -> bytes:
    """Add a valid seal to an archive without a comment."""
    start = struct.unpack("<I", archive[-6:-2])[0]
    index = archive[start:-2] + struct.pack("<H", 90)
    digest = hashlib.sha256(index).hexdigest()
    return archive[:start] + index + f"spiel_cr {start:016x} {digest}".encode()


def _unsealed(content: bytes) -> bytes:
    return content[:-92] + bytes(2)


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def _change_members(
    members: list[tuple[str, bytes]], rng: Rng
) -> list[tuple[str, bytes]]:
    """Omit, duplicate, rename, exchange, truncate or extend members."""
    at, other = (int(number) for number in rng.choice(len(members), 2, replace=False))
    name, content = members[at]
    changed = list(members)
    way = int(rng.integers(6))
    if way == 0:
        del changed[at]
    elif way == 1:
        changed.append((name + "2", content))
    elif way == 2:
        changed[at] = (name[1:] + name[0], content)
    elif way == 3:  # the contents of two members, which are never equal
        changed[at], changed[other] = (
            (name, members[other][1]),
            (members[other][0], content + b"\0" * (content == members[other][1])),
        )
    elif way == 4:
        changed[at] = (name, content[: int(rng.integers(len(content)))])
    else:
        changed[at] = (name, content + rng.bytes(8))
    return changed


# Forgeries.


def forged_bits(content: bytes, rng: Rng) -> bytes:
    """Flip bits anywhere except in the last record."""
    archive = _unsealed(content)
    return _sealed(flip_bits(archive[:-22], rng) + archive[-22:])


def forged_index(content: bytes, rng: Rng) -> bytes:
    """Change fields of the index: flags, methods, sizes, positions, names."""
    archive = bytearray(_unsealed(content))
    entry = _pick(_entries(content, int(_seal_of(content)[:16], 16)), rng)
    for _ in range(int(rng.integers(1, 4))):
        at = entry + int(_pick([6, 8, 10, 16, 20, 24, 28, 30, 32, 38, 42, 46], rng))
        value = rng.choice([0, 1, 8, 9, 99, 255, int(rng.integers(256))])
        archive[at + int(rng.integers(2))] = int(value)
    return _sealed(bytes(archive))


def forged_members(content: bytes, rng: Rng) -> bytes:
    return _sealed(_archive(_change_members(_members(content), rng), b"", rng))


_HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 999999999999999999), }",
    "{'descr': '<U999999999', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 70 + "), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (8" + "8" * 500 + ",), }",
    "(" * 3000,
    "{'descr': '<f8', 'fortran_order': False, 'shape': (",
    "__import__('os').abort()",
    "",
)


def forged_header(content: bytes, rng: Rng) -> bytes:
    """Replace the numpy header of a member, or one of its characters."""
    members = _members(content)
    at = int(rng.integers(len(members)))
    name, old = members[at]
    length = 10 + struct.unpack("<H", old[8:10])[0]
    if rng.random() < 0.5:
        text = _pick(list(_HEADERS), rng).encode() + b"\n"
        header = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text
    else:
        changed = bytearray(old[:length])
        changed[int(rng.integers(length))] = int(
            rng.choice(list(b"0123456789,()'<|fiO"))
        )
        header = bytes(changed)
    members[at] = name, header + old[length:]
    return _sealed(_archive(members, b""))


_TEXTS = (
    b"[" * 100_000,
    b'{"kind": ' * 5_000 + b"1" + b"}" * 5_000,
    *(b"", b"{", b"[]", b"null", b"1" * 10_000, b"\xff\xfe", b'{"kind": "\\ud800"}'),
    *(b"{}", b'{"kind": NaN}', b'{"kind": 1e999}', b'{"kind": "policy"}'),
)
_VALUES = (None, True, -1, 10**30, 0.5, float("nan"), "", "x" * 500, [], [[]], {}, [1])


def forged_metadata(content: bytes, rng: Rng) -> bytes:
    """Replace the metadata, or one of its values."""
    members = dict(_members(content))
    text = np.lib.format.read_array(io.BytesIO(members["metadata.npy"])).tobytes()
    if rng.random() < 0.3:
        text = _pick(list(_TEXTS), rng)
    else:
        metadata = json.loads(text)
        name = _pick(list(metadata), rng)
        if rng.random() < 0.2:
            del metadata[name]
        else:
            metadata[name] = _pick(list(_VALUES), rng)
        text = json.dumps(metadata).encode()
    members["metadata.npy"] = _npy(np.frombuffer(text, np.uint8))
    return _sealed(_archive(list(members.items()), b""))


def forged_array(content: bytes, rng: Rng) -> bytes:
    """Change the type, the shape or a number of an array, or store objects."""
    members = _members(content)
    at = int(rng.integers(len(members)))
    array = np.lib.format.read_array(io.BytesIO(members[at][1]))
    way = int(rng.integers(6))
    if way == 0:
        kinds = ["f4", "f8", "i1", "i8", "c16", "U5", "S3", "?", "u4", ">f8"]
        array = array.astype(_pick(kinds, rng))
    elif way == 1:
        array = array.astype(object)
    elif way == 2:
        array = _pick([array[None], array[..., None], array.reshape(-1)[:-1]], rng)
    elif array.size:
        array = array.copy()
        flat = array.reshape(-1)
        with np.errstate(all="ignore"):
            wild = np.array(_pick([np.nan, np.inf, -1, -0.5, 2, 1e18, 127], rng))
            flat[int(rng.integers(len(flat)))] = wild.astype(array.dtype)
    members[at] = members[at][0], _npy(array)
    return _sealed(_archive(members, b""))


def forged_numbers(content: bytes, rng: Rng) -> bytes:
    """Flip one bit of a member and update all checksums."""
    return _sealed(_unsealed(other_numbers(content, rng)))


def forged_twice(content: bytes, rng: Rng) -> bytes:
    """Combine two other forgeries."""
    first, second = (int(number) for number in rng.integers(7, size=2))
    once = FORGERIES[first](content, rng)
    try:
        return FORGERIES[second](once, rng)
    except Exception:  # The first forgery can no longer be parsed.
        return once


FORGERIES = (
    *(forged_bits, forged_index, forged_members, forged_header),
    *(forged_metadata, forged_array, forged_numbers, forged_twice),
)


# Kinds of files.


def _solved(folder: pathlib.Path, quick: bool) -> Iterator[Kind]:
    """Yield policies, and checkpoints, which are read by resuming runs."""
    tree, how = build_tree("kuhn_poker"), GameOptions("simulator", memory_limit="3GB")
    small = "sd-cfr(hidden=8,layers=1,traversals=4,steps=2)"
    rows: list[tuple[str, Any, str, dict[str, Any]]] = [
        ("public-tree", kuhn(), "cfr+", {"dtype": "float32"}),
        ("simulator", "kuhn_poker", "os-mccfr(batch=64)", {"options": how}),
        ("tree", tree, "cfr+", {}),
        ("sampled", tree, "evr-mccfr(batch=4)", {"seed": 3}),
        ("first order", tree, "pdhg", {}),
        ("networks", tree, small, {}),
    ]
    for name, game, algorithm, options in rows[: 3 if quick else None]:
        path, state = folder / f"policy of {name}", folder / f"checkpoint of {name}"

        def solve(
            path: pathlib.Path,
            given: tuple = (game, algorithm, 3),
            options: dict[str, Any] = options,
        ) -> Result:
            return spiel_cr.solve(*given, checkpoint=path, **options)

        solve(state).save(path)
        load = functools.partial(spiel_cr.load_policy, game=game)
        yield Kind(path.name, path.read_bytes(), load)
        yield Kind(state.name, state.read_bytes(), solve)


def _caches(folder: pathlib.Path) -> Iterator[Kind]:
    """Yield caches of game trees; a tree is built again if its cache is damaged."""
    for string in ("kuhn_poker", "python_rock_paper_scissors"):
        game = spiel_cr.load_game(string)
        rules, plain = batched_rules.of_game(game), build_tree(string)
        identity = cache.identify(game, rules)

        def read(
            path: pathlib.Path,
            given: tuple = (identity, game, rules),
            plain: GameTree = plain,
        ) -> None:
            if cache.load(path, *given) is None:
                cache.save(path, given[0], plain, strings=given[2] is None)
                same(cache.load(path, *given), plain)

        path = folder / string
        cache.save(path, identity, plain, strings=rules is None)
        yield Kind(f"cache of {string}", path.read_bytes(), read, recovers=True)


@contextlib.contextmanager
def trials(only: Sequence[str]) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Prepare trials of all kinds in turn; "quick" omits slow kinds."""
    quick = "quick" in only
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kinds = [*_solved(folder, quick), *_caches(folder)]

        def trial(number: int) -> dict[str, Any]:
            kind = kinds[number % len(kinds)]
            return {"outcome": check(kind, folder / "damaged", number // len(kinds))}

        yield trial
