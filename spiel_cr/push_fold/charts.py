"""Push/fold charts: the hands to jam, in a grid of 13 by 13 ranks."""

import numpy as np

from spiel_cr.push_fold.hand_classes import NUM_RANKS, RANKS, class_sizes

# Mixed strategies of fictitious play are never exactly pure.
_PURE = 0.005


def text_chart(jams: np.ndarray) -> str:
    """Return a push/fold chart as text.

    Args:
      jams: Probabilities of jamming by class of hands, [169]. Suited hands are above
        the diagonal of pairs.

    Returns:
      Text of 14 lines. J: always; a dot: never; a digit: tenths of the time.
    """
    grid = np.asarray(jams).reshape(NUM_RANKS, NUM_RANKS)
    lines = ["   " + " ".join(RANKS)]
    for rank, row in zip(RANKS, grid, strict=True):
        lines.append(f" {rank} " + " ".join(_sign(p) for p in row))
    return "\n".join(lines)


def share(jams: np.ndarray) -> float:
    """Return the share of all deals that are jammed, from [169] probabilities."""
    return float(jams @ class_sizes() / class_sizes().sum())


def _sign(jam: float) -> str:
    if jam >= 1 - _PURE:
        return "J"
    if jam <= _PURE:
        return "."
    return str(min(9, int(10 * jam)))
