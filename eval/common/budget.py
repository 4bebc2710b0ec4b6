"""How long a run may take."""

from typing import NamedTuple

_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Budget(NamedTuple):
    """How long an algorithm may work: one of the two is None.

    Attributes:
      seconds: of working.
      iterations: of each algorithm, whatever one is to it.
    """

    seconds: float | None
    iterations: int | None

    def looks(self) -> list[float]:
        """Where NashConv is computed: seconds, or iterations."""
        if self.seconds is not None:
            return [share * self.seconds for share in _SHARES]
        assert self.iterations is not None
        most, looks, step = self.iterations, [], 1
        while step < most:
            looks += [float(n * step) for n in (1, 2, 5) if n * step < most]
            step *= 10
        return [*looks, float(most)]

    def text(self) -> str:
        """For people."""
        if self.seconds is not None:
            return f"{self.seconds:g} second{'' if self.seconds == 1 else 's'}"
        return f"{self.iterations:,} iteration{'' if self.iterations == 1 else 's'}"
