"""The conditions of a run: machine, versions, source code."""

import contextlib
import datetime
import functools
import os
import pathlib
import platform
from collections.abc import Iterable
from importlib import metadata
from typing import Any

from spiel_cr.common import plugins, storage

# Packages that determine which algorithms can run.
_OPTIONAL = "jaxlib flax optax chex cvxpy ecos ray".split()


def facts() -> dict[str, Any]:
    """Return the conditions of a run, except the versions of required packages.

    The load is the mean number of runnable processes in the minute before.
    """
    return {
        "machine": machine(),
        "load": round(os.getloadavg()[0], 1),
        "source": source(),
        "optional_versions": optional_versions(),
        "finished": now(),
    }


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@functools.cache
def machine() -> str:
    """Return this machine in one line: processor, cores, system."""
    return (
        f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}"
    )


def versions() -> dict[str, str]:
    """Return the versions of everything that can change a result."""
    return {"python": platform.python_version(), **storage.versions()}


def source() -> str:
    """Return a fingerprint of the project's code."""
    return plugins.source(__name__)


@functools.cache
def optional_versions() -> dict[str, str]:
    """Return the versions of optional packages that are installed."""
    return versions_of(_OPTIONAL)


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    versions_by_package = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions_by_package[package] = metadata.version(package)
    return versions_by_package


def cpu_model() -> str:
    """Return the processor's name, as the system reports it."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
