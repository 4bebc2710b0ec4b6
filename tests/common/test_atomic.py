"""Atomic writes: valid paths, permissions, failures, and concurrent writers."""

import concurrent.futures
import errno
import json
import os
import pathlib
import socket
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import CorruptFileError, FileInUseError
from tests.support.full_disk import file_size


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def invalid_paths(tmp_path):
    """Return invalid paths of all kinds, with patterns of their error messages."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        # The path of a socket must be short.
        here = os.open(tmp_path, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
    (tmp_path / "file").write_text("old")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "to pipe").symlink_to("pipe")
    (tmp_path / "to folder").symlink_to("folder")
    (tmp_path / "to nowhere").symlink_to("/proc/no/such/place")
    return {
        "": "it does not name a file",
        "a\0b": "it does not name a file",
        "\ud800": "it is not text",
        f"{tmp_path}/new/": "it does not name a file",
        tmp_path / "folder": "it is a folder",
        tmp_path / "to folder": "it is a folder",
        tmp_path / "pipe": "it is a FIFO",
        tmp_path / "to pipe": "it is a FIFO",
        tmp_path / "socket": "it is a socket",
        tmp_path / "circle": "symbolic links",
        tmp_path / "to nowhere": "No such file",
        tmp_path / "file" / "below": "Not a directory",
        tmp_path / ("n" * 300): "name too long",
        tmp_path / "new" / ("n" * 300) / "below": "name too long",
        "/proc/new": "No such file",
    }


def test_rejects_unwritable_paths(invalid_paths, tmp_path):
    """`check_writable` and all write functions raise and change no files."""
    before = listing(tmp_path)
    for path, why in invalid_paths.items():
        given = os.fspath(path)
        with pytest.raises(ValueError, match=rf"--save=.*{why}.*use the path") as said:
            atomic.check_writable(path, "--save")
        assert repr(given) in str(said.value)
        for write in (
            lambda path: atomic.write_text(path, "new"),
            lambda path: storage.save(path, {}, {}),
            lambda path: atomic.lock(path).__enter__(),
        ):
            with pytest.raises(OSError):
                write(path)
    assert [name for name in listing(tmp_path) if name not in before] in ([], ["new"])
    assert (tmp_path / "file").read_text() == "old"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_rejects_devices(tmp_path):
    """The device is a copy of /dev/null, so that a failure cannot replace it."""
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices can be made by root only")
    with pytest.raises(ValueError, match="it is a device"):
        atomic.check_writable(path)
    with pytest.raises(OSError, match="it is a device"):
        atomic.write_text(path, "new")
    with pytest.raises(CorruptFileError, match="null is not a regular file"):
        storage.load(path)
    assert stat.S_ISCHR(path.stat().st_mode)


def test_loading_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CorruptFileError, match="pipe is not a regular file"):
        storage.load(tmp_path / "pipe")


def test_check_writable_does_not_change_files(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("later")
    before = listing(tmp_path)
    for path in ("file", "link", "new", "n" * 255, "folder/below/new"):
        atomic.check_writable(tmp_path / path)
    assert listing(tmp_path) == before
    for path in ("file", "link", "n" * 255, "folder/below/new"):
        atomic.write_text(tmp_path / path, "new")
        assert (tmp_path / path).read_text() == "new"
    assert len(listing(tmp_path)) == 7  # with two folders and the target of the link


def test_check_writable_detects_a_full_disk(tmp_path, monkeypatch):
    with file_size(0), pytest.raises(ValueError, match="--save=.*File too large"):
        atomic.check_writable(tmp_path / "new", "--save")
    assert listing(tmp_path) == []


def test_symlinks_and_permissions_are_preserved(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("chain")
    (tmp_path / "chain").symlink_to("there/file")
    for write in (
        lambda: atomic.write_text(link, "new"),
        lambda: storage.save(link, {"a": np.ones(2)}, {}),
    ):
        write()
        assert link.is_symlink() and (tmp_path / "chain").is_symlink()
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert listing(tmp_path) == ["chain", "link", "there", "there/file"]
    storage.load(target)


def test_full_disk_keeps_the_previous_file(tmp_path):
    """The disk becomes full at many positions in the file."""
    path = tmp_path / "file"
    arrays = {"a": np.arange(3000.0), "b": np.ones(7), "c": np.zeros((2, 600))}
    storage.save(path, arrays, {"kind": "old"})
    content = path.read_bytes()
    sizes = [
        *range(0, len(content), 1999),
        *range(len(content) - 600, len(content), 37),
    ]
    for size in sizes:
        with (
            file_size(size),
            pytest.raises(OSError, match=f"File too large: '{path}'") as error,
        ):
            storage.save(path, arrays, {"kind": "new"})
        assert error.value.errno == errno.EFBIG
        assert listing(tmp_path) == ["file"] and path.read_bytes() == content
    with file_size(50), pytest.raises(OSError, match=f"File too large: '{path}'"):
        atomic.write_text(path, "x" * 100)
    assert listing(tmp_path) == ["file"] and path.read_bytes() == content


def test_errors_of_other_files_keep_their_paths(tmp_path):
    other = tmp_path / "other"
    with pytest.raises(FileNotFoundError) as error, atomic.replacing(tmp_path / "x"):
        other.read_bytes()
    assert error.value.filename == str(other)
    assert listing(tmp_path) == []


_WRITE = """
import os, sys, numpy as np
from spiel_cr.common import atomic, storage
path, own = sys.argv[1], int(sys.argv[2])
number = 0
while os.path.exists(path + ".on"):
    number += 1
    size = 1 + (number * 7919) % 5000
    storage.save(path, {"own": np.full(size, own), "number": np.full(size, number)},
                 {"own": own, "number": number, "size": size}, durable=False)
"""


_LOCK = """
import sys
from spiel_cr.common import atomic, storage
atomic.lock(sys.argv[1]).__enter__()
"""


def read_whole(path):
    """Read a file and check that all of its content comes from one write."""
    arrays, metadata = storage.load(path)
    for name in ("own", "number"):
        assert arrays[name].shape == (metadata["size"],)
        assert (arrays[name] == metadata[name]).all()
    return metadata["own"], metadata["number"]


def write(path, own, rounds):
    for number in range(rounds):
        arrays = {
            name: np.full(300, own if name == "own" else number)
            for name in ("own", "number")
        }
        metadata = {"own": own, "number": number, "size": 300}
        storage.save(path, arrays, metadata, durable=False)


def test_readers_see_complete_files_of_concurrent_writers(tmp_path):
    path = tmp_path / "file"
    write(path, 0, 1)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, path, own, 40) for own in (1, 2)]
        while not all(writer.done() for writer in writers):
            read_whole(path)
    assert all(writer.exception() is None for writer in writers)
    assert listing(tmp_path) == ["file"]


@pytest.mark.slow
def test_readers_see_complete_files_if_writers_are_killed(tmp_path):
    """Two processes write continuously, and each is killed once."""
    path, on = tmp_path / "file", tmp_path / "file.on"
    on.touch()
    write(path, 0, 1)

    def start(own):
        return subprocess.Popen([sys.executable, "-c", _WRITE, path, str(own)])

    writers = {own: start(own) for own in (1, 2)}
    last, total, deadline = None, 0, time.monotonic() + 600
    try:
        for killed in (1, 2, None):
            seen, reads, changes = set(), 0, 0
            while reads < 2000 or changes < 200:
                assert time.monotonic() < deadline
                assert all(w.poll() is None for w in writers.values()), "one died"
                found = read_whole(path)
                seen.add(found[0])
                if seen >= {1, 2}:  # both have written
                    reads += 1
                    changes += found != last
                last = found
            total += reads
            if killed is not None:
                writers[killed].kill()
                writers[killed].wait()
                writers[killed] = start(killed)
    finally:
        on.unlink()
        for writer in writers.values():
            writer.wait()
    print(f"{total} reads of whole files")
    assert total >= 6000
    atomic.write_text(path, "")  # removes temporary files of killed writers
    assert listing(tmp_path) == ["file"]


def test_temporary_files_of_killed_writers_are_removed(tmp_path):
    """Those of this machine go at once, others after a time, those in use never."""
    path = tmp_path / "f[ile"

    def leave(name, age=0.0):
        left = tmp_path / name
        left.write_bytes(b"half")
        os.utime(left, (time.time() - age,) * 2)
        return left

    with atomic.replacing(path) as file:
        own = os.path.basename(file.name).removeprefix(".f[ile.").partition("-")[0]
        os.utime(file.name, (time.time() - 7200,) * 2)
        gone = [leave(f".f[ile.{own}-1.part"), leave(".f[ile.other-2.part", 7200)]
        stay = [leave(".f[ile.other-3.part"), leave(f".file2.{own}-4.part", 7200)]
        atomic.write_text(path, "faster")
        assert not any(left.exists() for left in gone)
        assert all(left.exists() for left in stay)
        file.write(b"slower")
    assert path.read_text() == "slower"
    # `check_writable` also removes them if the folder does not exist yet.
    left = leave(f".f[ile.{own}-5.part")
    atomic.check_writable(tmp_path / "new" / path.name)
    assert not left.exists()


def test_locks_are_exclusive(tmp_path):
    path = tmp_path / "new" / "file"
    (tmp_path / "link").symlink_to("new/file")
    with atomic.lock(path):
        for same in (path, tmp_path / "link", f"{tmp_path}/new/../new/file"):
            with (
                pytest.raises(FileInUseError, match="--out=.*in use by another run"),
                atomic.lock(same, "--out"),
            ):
                raise AssertionError("locked twice")
        with atomic.lock(tmp_path / "new" / "file2"):
            pass
        other = subprocess.run(
            [sys.executable, "-c", _LOCK, path], capture_output=True, text=True
        )
        assert "FileInUseError: path=" in other.stderr
    # The lock file and its folder are removed.
    assert listing(tmp_path) == ["link"]
    with atomic.lock(path):
        atomic.write_text(path, "kept")
    assert listing(tmp_path) == ["link", "new", "new/file"]


def test_removed_folders_are_created_again(tmp_path, monkeypatch):
    """Another run that created the folder for its lock may remove it."""
    folder, opened = tmp_path / "new", pathlib.Path.open

    def open_late(path, *given, **more):
        if path.parent == folder and path.name not in late:
            late.add(path.name)
            folder.rmdir()
        return opened(path, *given, **more)

    monkeypatch.setattr(atomic, "_temporary", lambda target: target.parent / "part")
    monkeypatch.setattr(pathlib.Path, "open", open_late)
    late = set()
    with atomic.lock(folder / "file"):
        assert late == {".file.lock"}
    assert listing(tmp_path) == []
    atomic.write_text(folder / "file", "new")
    assert late == {".file.lock", "part"} and listing(folder) == ["file"]
    (folder / "file").unlink()
    late.clear()
    atomic.check_writable(folder / "file")
    assert late == {"part"} and listing(tmp_path) == []


def test_file_systems_without_locks_are_supported(tmp_path, monkeypatch):
    import fcntl

    def raise_no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", raise_no_locks)
    with atomic.lock(tmp_path / "file"), atomic.lock(tmp_path / "file"):
        atomic.write_text(tmp_path / "file", "new")
    left = tmp_path / ".file.other-1.part"
    left.write_bytes(b"half")
    atomic.write_text(tmp_path / "file", "newer")
    assert left.exists()


def test_metadata_values_keep_their_types(tmp_path):
    metadata = {"a": 1, "b": 0.1, "c": None, "d": [True, "ü"], "e": {"f": -1e-300}}
    storage.save(tmp_path / "file", {}, metadata)
    assert storage.load(tmp_path / "file") == ({}, json.loads(json.dumps(metadata)))
