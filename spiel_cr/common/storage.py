"""Files of arrays and JSON metadata, which are never unpickled.

`save` writes arrays and JSON metadata to an uncompressed `.npz`, which `numpy.load`
reads, too. At its end stands a seal: a checksum of the archive's index, which itself
has a checksum of each member. `load` believes nothing that does not fit both.
"""

import contextlib
import hashlib
import itertools
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata as importlib_metadata
from typing import IO, Any, Literal

import numpy as np

from spiel_cr.common import atomic
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.common.json_records import read_object

# The member of the archive that holds the JSON text, as UTF-8 bytes.
_METADATA = "metadata"
# The archive's comment, with which the file ends: where the index begins, and the
# SHA-256 of everything from there to here, both in hexadecimal digits.
_SEAL = re.compile(rb"spiel_cr ([0-9a-f]{16}) ([0-9a-f]{64})")
_SEAL_BYTES = 9 + 16 + 1 + 64
# What `numpy.save` writes before an array without fields. Sizes up to 18 digits.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00.."
    rb"\{'descr': '([<>|][biufcSU][1-9]\d{0,8})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, )*(?:\d{1,18},?)?)\), \} *\n",
    re.DOTALL,
)
_CHUNK = 1 << 22
# What zipfile raises where bytes are no archive; of an encrypted one RuntimeError.
_BAD_ZIP = (
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError),
    *(struct.error, ValueError, OverflowError),
)


def versions() -> dict[str, str]:
    """Versions of everything that can change a result."""
    packages = ("spiel_cr", "open_spiel", "jax", "numpy", "scipy")
    return {name: importlib_metadata.version(name) for name in packages}


def save(
    path: atomic.Path,
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    *,
    durable: bool = True,
) -> None:
    """Writes arrays and metadata so that a reader sees the old file or the new one.

    Args:
      path: the file; its folder is made where it is missing.
      arrays: by name: booleans, numbers or strings.
      metadata: anything that JSON can hold.
      durable: see `atomic.replacing`.

    Raises:
      OSError: the file cannot be written; the old one is as it was.
      ValueError: an array holds Python objects.
    """
    for name, array in arrays.items():
        if np.asarray(array).dtype.kind not in "biufcSU":
            raise ValueError(
                f"array {name!r} has dtype {array.dtype}; files hold booleans, numbers "
                f"and strings"
            )
    text = np.frombuffer(json.dumps(dict(metadata)).encode(), np.uint8)
    with atomic.replacing(path, durable=durable) as file:
        np.savez(file, allow_pickle=False, **{_METADATA: text}, **dict(arrays))
        _seal(file)


@contextlib.contextmanager
def called(label: str) -> Iterator[None]:
    """Refusals of damaged files say what the file is, as its argument is called."""
    try:
        yield
    except CorruptFileError as error:
        raise CorruptFileError(f"{label} {error}") from error


def load(path: atomic.Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Reads what `save` wrote, and nothing else.

    Raises:
      OSError: there is no such file, or it cannot be read.
      CorruptFileError: the file is not one of ours, or was changed since.
    """
    arrays: dict[str, np.ndarray] = {}
    with _reading(path) as members:
        arrays.update(members)
        metadata = _table_among(arrays)
    return arrays, metadata


def load_metadata(path: atomic.Path) -> dict[str, Any]:
    """Reads the metadata of what `save` wrote; the arrays are not looked at.

    Raises:
      OSError, CorruptFileError: as `load`.
    """
    with _reading(path) as members:
        # `save` writes them first.
        return _table_among(dict(itertools.islice(members, 1)))


@contextlib.contextmanager
def _reading(path: atomic.Path) -> Iterator[Iterator[tuple[str, np.ndarray]]]:
    """The arrays in a file, read one after the other.

    Raises:
      OSError, CorruptFileError: as `load`.
    """
    with atomic.naming(path):
        # A FIFO would be waited for, a device might never end.
        if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
            raise CorruptFileError(f"{os.fspath(path)} is not a regular file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            try:
                yield _members(file, size)
            except _BadContent as error:
                raise CorruptFileError(
                    f"{os.fspath(path)} is not a file written by spiel_cr, or it is "
                    f"damaged ({error}); give another path, or delete it to start again"
                ) from error


class _BadContent(Exception):
    """What is wrong with the bytes of a file, for the error that names the file."""


def _seal(file: IO[bytes]) -> None:
    """Ends a whole archive, without a comment so far, with its seal."""
    with zipfile.ZipFile(file) as archive:
        start = archive.start_dir
    file.seek(-2, os.SEEK_END)
    file.write(struct.pack("<H", _SEAL_BYTES))
    file.seek(start)
    digest = hashlib.sha256(file.read()).hexdigest()
    file.write(f"spiel_cr {start:016x} {digest}".encode())


def _members(file: IO[bytes], size: int) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays in a sealed archive, by name.

    Args:
      file: to read.
      size: of the file, bytes.

    Raises:
      _BadContent: a checksum is wrong, or the archive is of another kind.
    """
    file.seek(max(size - _SEAL_BYTES, 0))
    seal = _SEAL.fullmatch(file.read())
    if not seal:
        raise _BadContent("it does not end with a seal")
    start = int(seal[1], 16)
    if start > size - _SEAL_BYTES:
        raise _BadContent("its index is missing")
    file.seek(start)
    digest = hashlib.sha256()
    left = size - _SEAL_BYTES - start
    while left:
        chunk = file.read(min(left, _CHUNK))
        if not chunk:
            raise _BadContent("it ends early")
        digest.update(chunk)
        left -= len(chunk)
    if digest.hexdigest().encode() != seal[2]:
        raise _BadContent("the checksum of its index is wrong")
    try:
        archive = zipfile.ZipFile(file)
    except (*_BAD_ZIP, OSError) as error:
        raise _BadContent(f"its index is invalid: {error}") from error
    with archive:
        entries = archive.infolist()
        if len({entry.filename for entry in entries}) < len(entries):
            raise _BadContent("two members have one name")
        # No more is ever read than the file is long.
        if sum(entry.file_size for entry in entries) > start:
            raise _BadContent("members overlap")
        for entry in entries:
            name = entry.filename
            try:
                yield name.removesuffix(".npy"), _array(archive, entry)
            except _BAD_ZIP as error:
                raise _BadContent(f"{name!r} is damaged: {error}") from error


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """The array in a member of an archive, which compares its checksum.

    Raises:
      _BadContent: it is compressed, or holds no array.
    """
    if entry.compress_type != zipfile.ZIP_STORED:
        raise _BadContent(f"{entry.filename!r} is compressed")
    with archive.open(entry) as member:
        header = member.read(10)
        header += member.read(int.from_bytes(header[8:], "little"))
        array = _blank(entry.filename, header, entry.file_size)
        content = array.reshape(-1, order="A").view(np.uint8)
        for first in range(0, len(content), _CHUNK):
            chunk = content[first : first + _CHUNK].data
            if member.readinto(chunk) < len(chunk):  # type: ignore[attr-defined]
                raise _BadContent("it ends early")
    return array


def _blank(name: str, header: bytes, size: int) -> np.ndarray:
    """An array for what follows a header, which no checksum was compared with yet.

    Args:
      name: of the member.
      header: its first bytes, as `numpy.save` writes them.
      size: of the whole member, bytes.

    Raises:
      _BadContent: it is no header, of objects or fields, or of another size.
    """
    match = _HEADER.fullmatch(header)
    if match is None:
        raise _BadContent(f"{name!r} is not an array of numbers or strings")
    shape = tuple(int(number) for number in re.findall(rb"\d+", match[3]))
    try:
        dtype = np.dtype(match[1].decode())
    except TypeError as error:
        raise _BadContent(f"{name!r} is an array of no known type: {error}") from error
    count = math.prod(shape)
    # Compared before anything is allocated.
    if len(header) + count * dtype.itemsize != size:
        raise _BadContent(f"{name!r} has {size} bytes and the shape {shape}")
    order: Literal["F", "C"] = "F" if match[2] == b"True" else "C"
    try:
        return np.empty(count, dtype).reshape(shape, order=order)
    except ValueError as error:  # too many axes, or an empty array with a huge one
        raise _BadContent(f"{name!r} has an impossible shape: {error}") from error


def _table_among(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The metadata among arrays, from which they are taken out.

    Raises:
      _BadContent: If there are none, or they are not a JSON object.
    """
    if _METADATA not in arrays:
        raise _BadContent("it has no metadata")
    text = arrays.pop(_METADATA)
    try:
        return read_object(text.tobytes())
    except ValueError as error:
        raise _BadContent(f"invalid metadata: {error}") from error
