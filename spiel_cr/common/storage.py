"""Files of arrays and JSON metadata, read without unpickling.

`save` writes arrays and JSON metadata to an uncompressed `.npz` file, which
`numpy.load` can read, too. The file ends with a seal: a checksum of the archive's
index. The index contains a checksum of each member. `load` rejects every file that does
not match both.
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
# The archive's comment, which ends the file: the offset of the index, and the SHA-256
# of everything between that offset and the comment, both in hexadecimal digits.
_SEAL = re.compile(rb"spiel_cr ([0-9a-f]{16}) ([0-9a-f]{64})")
_SEAL_BYTES = 9 + 16 + 1 + 64
# Header that `numpy.save` writes for an array without fields. Sizes up to 18 digits.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00.."
    rb"\{'descr': '([<>|][biufcSU][1-9]\d{0,8})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, )*(?:\d{1,18},?)?)\), \} *\n",
    re.DOTALL,
)
_CHUNK = 1 << 22
# Errors of zipfile for bytes that are not an archive; RuntimeError if encrypted.
_BAD_ZIP = (
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError),
    *(struct.error, ValueError, OverflowError),
)


def versions() -> dict[str, str]:
    """Return the versions of all packages that can change a result."""
    packages = ("spiel_cr", "open_spiel", "jax", "numpy", "scipy")
    return {name: importlib_metadata.version(name) for name in packages}


def save(
    path: atomic.Path,
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    *,
    durable: bool = True,
) -> None:
    """Write arrays and metadata so that readers see either the old or the new file.

    Args:
      path: File to write. Its folder is created if it is missing.
      arrays: Arrays by name. The entries are booleans, numbers or strings.
      metadata: JSON-serialisable values by name.
      durable: Whether to wait until the file is on the disk, as in `atomic.replacing`.

    Raises:
      OSError: If the file cannot be written. An old file stays unchanged.
      ValueError: If an array holds Python objects.
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


def load(path: atomic.Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read a file that `save` wrote, and reject every other file.

    Raises:
      OSError: If the file does not exist or cannot be read.
      CorruptFileError: If spiel_cr did not write the file, or it was changed later.
    """
    arrays: dict[str, np.ndarray] = {}
    with _reading(path) as members:
        arrays.update(members)
        metadata = _table_among(arrays)
    return arrays, metadata


def load_metadata(path: atomic.Path) -> dict[str, Any]:
    """Read the metadata of a file that `save` wrote, without its arrays.

    Raises:
      OSError, CorruptFileError: As `load`.
    """
    with _reading(path) as members:
        # `save` writes the metadata first.
        return _table_among(dict(itertools.islice(members, 1)))


@contextlib.contextmanager
def _reading(path: atomic.Path) -> Iterator[Iterator[tuple[str, np.ndarray]]]:
    """Open a file, and yield an iterator that reads its arrays one after the other.

    Raises:
      OSError, CorruptFileError: As `load`.
    """
    with atomic.naming(path):
        # Reading a FIFO would block, and a device might never end.
        if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
            raise CorruptFileError(f"{os.fspath(path)} is not a regular file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            try:
                yield _members(file, size)
            except _BadContent as error:
                raise CorruptFileError(
                    f"{os.fspath(path)} is not a file written by spiel_cr, or it is "
                    f"corrupt ({error}); use another path, or delete it to start again"
                ) from error


class _BadContent(Exception):
    """A problem with the bytes of a file; the error that names the file quotes it."""


def _seal(file: IO[bytes]) -> None:
    """Append the seal to a complete archive that has no comment yet."""
    with zipfile.ZipFile(file) as archive:
        start = archive.start_dir
    file.seek(-2, os.SEEK_END)
    file.write(struct.pack("<H", _SEAL_BYTES))
    file.seek(start)
    digest = hashlib.sha256(file.read()).hexdigest()
    file.write(f"spiel_cr {start:016x} {digest}".encode())


def _members(file: IO[bytes], size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the array of each member of a sealed archive.

    Args:
      file: File to read.
      size: Size of the file in bytes.

    Raises:
      _BadContent: If a checksum is wrong, or the archive is of another kind.
    """
    file.seek(max(size - _SEAL_BYTES, 0))
    seal = _SEAL.fullmatch(file.read())
    if not seal:
        raise _BadContent("the seal at its end is missing")
    start = int(seal[1], 16)
    if start > size - _SEAL_BYTES:
        raise _BadContent("its index is missing")
    file.seek(start)
    digest = hashlib.sha256()
    left = size - _SEAL_BYTES - start
    while left:
        chunk = file.read(min(left, _CHUNK))
        if not chunk:
            raise _BadContent("it is truncated")
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
            raise _BadContent("two members have the same name")
        # Bounds the number of bytes that are read by the length of the file.
        if sum(entry.file_size for entry in entries) > start:
            raise _BadContent("members overlap")
        for entry in entries:
            name = entry.filename
            try:
                yield name.removesuffix(".npy"), _array(archive, entry)
            except _BAD_ZIP as error:
                raise _BadContent(f"{name!r} is corrupt: {error}") from error


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """Read the array in a member of an archive; `zipfile` verifies its checksum.

    Raises:
      _BadContent: If the member is compressed or does not hold an array.
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
                raise _BadContent("it is truncated")
    return array


def _blank(name: str, header: bytes, size: int) -> np.ndarray:
    """Allocate the array that a header describes, before any checksum was compared.

    Args:
      name: Name of the member.
      header: First bytes of the member, as `numpy.save` writes them.
      size: Size of the complete member in bytes.

    Raises:
      _BadContent: If the header is invalid, describes objects or fields, or does not
        match the size.
    """
    match = _HEADER.fullmatch(header)
    if match is None:
        raise _BadContent(f"{name!r} is not an array of numbers or strings")
    shape = tuple(int(number) for number in re.findall(rb"\d+", match[3]))
    try:
        dtype = np.dtype(match[1].decode())
    except TypeError as error:
        raise _BadContent(f"{name!r} is an array of unknown type: {error}") from error
    count = math.prod(shape)
    # This is compared before memory is allocated.
    if len(header) + count * dtype.itemsize != size:
        raise _BadContent(f"{name!r} has {size} bytes and the shape {shape}")
    order: Literal["F", "C"] = "F" if match[2] == b"True" else "C"
    try:
        return np.empty(count, dtype).reshape(shape, order=order)
    except ValueError as error:  # too many axes, or an empty array with a huge one
        raise _BadContent(f"{name!r} has an impossible shape: {error}") from error


def _table_among(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Remove the metadata from a dict of arrays, and return them.

    Raises:
      _BadContent: If the metadata are missing or not a JSON object.
    """
    if _METADATA not in arrays:
        raise _BadContent("it has no metadata")
    text = arrays.pop(_METADATA)
    try:
        return read_object(text.tobytes())
    except ValueError as error:
        raise _BadContent(f"invalid metadata: {error}") from error
