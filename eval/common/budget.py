"""Budgets of runs."""

from typing import NamedTuple

from spiel_cr.common.arrays import round_numbers
from spiel_cr.common.checks import COUNT, Wanted, check_settings

from .plurals import counted

_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Budget(NamedTuple):
    """Budget of an algorithm, in time or in iterations; the other one is None.

    Attributes:
      seconds: Time budget in seconds.
      iterations: Number of iterations, in the unit of each algorithm.
    """

    seconds: float | None
    iterations: int | None

    def check(self) -> None:
        """Raise ValueError unless exactly one of the two is given, and positive."""
        if (self.seconds is None) == (self.iterations is None):
            raise ValueError(
                f"seconds={self.seconds}, iterations={self.iterations}: a run needs "
                f"one budget; set one of the two"
            )
        wanted: Wanted = {"seconds": "(0, inf)", "iterations": COUNT}
        check_settings(self, wanted, optional=True)

    def points(self) -> list[float]:
        """Return the seconds or iterations after which NashConv is computed."""
        if self.seconds is not None:
            return [share * self.seconds for share in _SHARES]
        assert self.iterations is not None
        return [float(number) for number in round_numbers(self.iterations)]

    def text(self) -> str:
        """Return the budget in words."""
        if self.seconds is not None:
            return f"{self.seconds:g} second{'' if self.seconds == 1 else 's'}"
        assert self.iterations is not None
        return counted(self.iterations, "iteration")
