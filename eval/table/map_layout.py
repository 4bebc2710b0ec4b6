"""Where the nodes of a small map are drawn: by the lengths of ways between them."""

import functools
from collections.abc import Sequence

import numpy as np

_ROUNDS = 2000


def positions(
    count: int, edges: Sequence[tuple[int, int]]
) -> list[tuple[float, float]]:
    """A place for every node, such that distances are like those on the map.

    Stress majorisation (Gansner, Koren and North 2004) from a circle: the same map is
    always drawn alike.

    Args:
      count: of nodes.
      edges: pairs of nodes, numbered from 0; the map is connected.

    Returns:
      x and y from 0 to 1 for each node; the wider extent is that of x.
    """
    return list(_positions(count, tuple(edges)))


@functools.lru_cache(maxsize=8)
def _positions(
    count: int, edges: tuple[tuple[int, int], ...]
) -> tuple[tuple[float, float], ...]:
    far = np.full((count, count), float(count))
    np.fill_diagonal(far, 0.0)
    for a, b in edges:
        far[a, b] = far[b, a] = 1.0
    for via in range(count):
        far = np.minimum(far, far[:, via : via + 1] + far[via : via + 1])
    weight = np.where(far > 0, 1.0 / np.maximum(far, 1.0) ** 2, 0.0)
    angles = 2 * np.pi * np.arange(count) / count
    place = np.stack([np.cos(angles), np.sin(angles)], axis=1) * count / 6
    for _ in range(_ROUNDS):
        apart = place[:, None] - place[None]
        length = np.linalg.norm(apart, axis=2)
        pull = np.divide(far, length, out=np.zeros_like(far), where=length > 1e-9)
        wanted = place[None] + apart * pull[:, :, None]
        total = weight.sum(axis=1, keepdims=True)
        place = (weight[:, :, None] * wanted).sum(axis=1) / np.maximum(total, 1e-12)
    place -= place.mean(axis=0)
    # The longest extent lies flat.
    _, _, axes = np.linalg.svd(place, full_matrices=False)
    place = place @ axes.T
    low, extent = place.min(axis=0), np.ptp(place, axis=0)
    place = (place - low) / np.maximum(extent.max(), 1e-9)
    return tuple((float(x), float(y)) for x, y in place)
