"""The conditions of a run: facts for its rows, and a sentence for its tables."""

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Mapping
from typing import Any

from spiel_cr.eval.common import conditions

_PACKAGES = ("open_spiel", "jax", "jaxlib", "numpy", "scipy", "flax", "LiteEFG")


def facts() -> dict[str, Any]:
    """What is the same for all rows of a run: date, versions, machine and its load."""
    now = datetime.datetime.now(datetime.UTC)
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": now.isoformat(timespec="seconds"),
        "versions": versions,
        "cpu": conditions.cpu_model(),
        "cpu_count": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def sentence(facts: Mapping[str, Any], devices: Iterable[str]) -> str:
    """The facts in words.

    Args:
      facts: as `facts` gave them, or a row that has them.
      devices: where the rows of the run iterated, as JAX names it.
    """
    versions = ", ".join(f"{k} {v}" for k, v in facts["versions"].items())
    return (
        f"Measured {facts['date'][:10]} on {facts['cpu']}, {facts['cpu_count']} cores, "
        f"device {', '.join(sorted(set(devices))) or 'none'}, load {facts['load']:.1f} "
        f"at the start; {versions}."
    )
