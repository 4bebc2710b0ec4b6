"""Third stage: how many histories there is time for, learnt from what others took."""

import numpy as np

# Work that is remembered.
_REMEMBERED = 24
# A plan holds for such a share of what was measured before.
_CAUTION = 0.8


class Cost:
    """Seconds for work on n histories, a + b n, fitted to what was measured."""

    def __init__(self) -> None:
        """Nothing was measured."""
        # The first one stays: it is of a large part.
        self._known: list[tuple[int, float]] = []

    def add(self, histories: int, seconds: float) -> None:
        """Takes a measurement in."""
        self._known.append((histories, seconds))
        del self._known[1:-_REMEMBERED]

    @property
    def line(self) -> tuple[float, float]:
        """a and b, in seconds; zeros as long as nothing is known."""
        if not self._known:
            return 0.0, 0.0
        n, seconds = np.array(self._known).T
        slope = float(seconds.sum() / n.sum())
        spread = float(((n - n.mean()) ** 2).sum())
        if spread > 0:
            fitted = ((n - n.mean()) * (seconds - seconds.mean())).sum() / spread
            # No line through few points must promise that more costs less.
            slope = float(np.clip(fitted, slope / 4, slope))
        rest = seconds - slope * n
        return max(0.0, float(np.quantile(rest, _CAUTION))), slope
