"""Reproductions of published results: a table of rows, their measurements and verdicts.

The rows are data, `studies.toml`. A row names a computation, a function of one of this
package's modules that yields measurements, and lists its cases, which are arguments of
the function, and the published claims. To add a reproduction, add a row.
"""

import dataclasses
import fnmatch
import importlib
import itertools
import pathlib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from spiel_cr.common.executor import IN_PROCESS, Executor, in_order
from spiel_cr.common.messages import number_text
from spiel_cr.common.statistics import mean_and_half_width

# Fields of cases that are not arguments of the computation.
_OF_FRAME = ("compute", "exact", "from_size")
REPRODUCED, DIFFERS, NOT_COMPARABLE = "reproduced", "differs", "not comparable"


class Measurement(NamedTuple):
    """One measured number.

    Attributes:
      series: Name of the measured quantity, the same for all seeds and budgets.
      value: Measured number.
      x: Budget or setting of the measurement, in the unit of the row's `x_label`.
      error: Known bound on the error of the number, such as NashConv for a value.
    """

    series: str
    value: float
    x: float = 0.0
    error: float = 0.0


class MeanPoint(NamedTuple):
    """The mean of a quantity over seeds, at one budget.

    Attributes:
      series: Name of the quantity.
      x: Budget or setting.
      mean: Mean over the seeds.
      half_width: Half width of its 95% confidence interval; None for a single seed.
      error: Largest bound on the errors of the numbers.
      seeds: Number of seeds.
    """

    series: str
    x: float
    mean: float
    half_width: float | None
    error: float
    seeds: int


class Finding(NamedTuple):
    """A published claim and the measurement of its quantity.

    Attributes:
      quantity: Quantity and budget.
      published: Published number, bound or order.
      measured: Measured number, and the one that it is compared with.
      verdict: One of `REPRODUCED`, `DIFFERS` and `NOT_COMPARABLE`.
      reason: Known reason if the two differ or cannot be compared.
    """

    quantity: str
    published: str
    measured: str
    verdict: str
    reason: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A published number of a quantity, or a bound, or an order of two quantities.

    Exactly one of `equals`, `at_most` and `at_least` is given.

    Attributes:
      series: Name of the quantity, or a pattern such as "*: value" for all quantities
        that match it. In the name of another quantity, "{*}" is replaced by the text
        that a single "*" at the end matched.
      x: Budget at which the claim is made, "mean" for the mean over all budgets, or
        None for the largest one.
      equals: Published number.
      at_most: Largest number, or another quantity as `find_point` names it.
      at_least: Smallest number, or another quantity.
      factor: Factor of the other quantity.
      tolerance: Largest difference from the published number.
      slack: Additional tolerance at small sizes, times 1 / sqrt(size) - 1.
      full_size: Whether the claim is about runs of full size only.
      text: Published claim in words; by default the number.
      reason: Known reason for a difference.
    """

    series: str
    x: float | str | None = None
    equals: float | None = None
    at_most: float | str | None = None
    at_least: float | str | None = None
    factor: float = 1.0
    tolerance: float = 0.0
    slack: float = 0.0
    full_size: bool = False
    text: str = ""
    reason: str = ""

    def findings(self, points: Sequence[MeanPoint], size: float) -> Iterator[Finding]:
        """Yield a finding for each measured quantity that the claim is about.

        Args:
          points: Means of all quantities.
          size: Share of the full size.

        Raises:
          ValueError: If the quantity that it is compared with was not measured.
        """
        names = dict.fromkeys(point.series for point in points)
        matching = fnmatch.filter(names, self.series)
        for name in [self.series] if self.series in names else matching:
            yield self._finding(name, points, size)

    def _finding(self, name: str, points: Sequence[MeanPoint], size: float) -> Finding:
        at = "" if self.x is None else f"@{self.x}"
        bounds = {"=": self.equals, "≤": self.at_most, "≥": self.at_least}
        sign, bound = next((s, b) for s, b in bounds.items() if b is not None)
        published = self.text or f"{sign} {bound}"
        if self.full_size and size < 1:
            reason = "This is a claim about full size."
            return Finding(f"{name}{at}", published, "–", NOT_COMPARABLE, reason)
        measured = find_point(f"{name}{at}", points)
        text = number_text(measured.mean, ".7g")
        if isinstance(bound, str):
            bound = bound.replace("{*}", name[self.series.find("*") :])
            factor = "" if self.factor == 1 else f"{self.factor:g} × "
            published = self.text or f"{sign} {factor}{bound}"
            other = find_point(bound, points).mean
            bound = self.factor * other
            text = f"{measured.mean:.4g}, compared with {factor}{other:.4g}"
        assert bound is not None
        difference = measured.mean - bound
        excess = {"=": abs(difference), "≤": difference, "≥": -difference}[sign]
        slack = self.slack * max(0.0, size**-0.5 - 1)
        verdict, reason = REPRODUCED, ""
        if excess > self.tolerance + slack + measured.error:
            verdict, reason = DIFFERS, self.reason
        return Finding(f"{name}{at}", published, text, verdict, reason)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """A reproduction of published results: a row of the table.

    Attributes:
      name: Name of the study.
      title: One line of help.
      sources: Names of the sources, with their keys in the bibliography; an empty key
        if they have no entry there.
      protocol: The published experiment, and ours as far as it differs, or an
        introduction for learners.
      published: Published claim in one line, for the page *Reproductions*.
      finding: Template of our finding for that page: "{name@x}" is the mean of a
        quantity at a budget, and "{name}" that at the largest one.
      compute: Module and function, joined by a dot. The function's arguments are the
        share of the full size, the seed, and a case. A case may name another function
        by `compute`.
      cases: Arguments of independent parts. A case with `exact` has one seed, and a
        case with `from_size` is measured from this share of the full size on. In the
        table, `each` lists values of arguments; each combination of them is a case.
      claims: Published claims; without any, the study is not comparable.
      seeds: Number of seeds of each case.
      x_label: Unit of budgets, for plots.
      y_label: Unit of measurements, for plots.
      linear: Whether the axes of plots are linear; otherwise logarithmic.
      small: Share of the full size at which the study takes less than a minute.
      reason: Reason why the study is not comparable.
    """

    name: str
    title: str
    sources: Mapping[str, str]
    protocol: str
    published: str
    finding: str
    compute: str
    cases: Sequence[Mapping[str, Any]]
    claims: Sequence[Claim] = ()
    seeds: int = 1
    x_label: str = ""
    y_label: str = "NashConv"
    linear: bool = False
    small: float = 0.1
    reason: str = ""

    def measure(
        self, size: float, seeds: int | None = None, executor: Executor = IN_PROCESS
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield the seeds and measurements of all cases.

        Args:
          size: Share of the full size.
          seeds: Number of seeds of each case that depends on chance; None: `seeds`.
          executor: Executor of the cases; each seed of a case is a task.
        """
        tasks = {
            (number, seed): (seed, {"compute": self.compute, **case})
            for number, case in enumerate(self.cases)
            if size >= case.get("from_size", 0)
            for seed in range(
                1 if self.seeds == 1 or "exact" in case else seeds or self.seeds
            )
        }
        computed = executor.map(_computation, (size,), tasks)
        for (_, seed), lines in zip(tasks, in_order(computed, tasks), strict=True):
            yield from ((seed, line) for line in lines)

    def findings(self, points: Sequence[MeanPoint], size: float) -> list[Finding]:
        """Return the findings of all claims."""
        return [f for claim in self.claims for f in claim.findings(points, size)]

    def verdict(self, findings: Iterable[Finding]) -> tuple[str, str]:
        """Return the verdict on the study, and the reason if it is not reproduced."""
        by_verdict: dict[str, list[str]] = {}
        for finding in findings:
            by_verdict.setdefault(finding.verdict, []).append(finding.reason)
        if DIFFERS in by_verdict:
            return DIFFERS, " ".join(dict.fromkeys(filter(None, by_verdict[DIFFERS])))
        if REPRODUCED in by_verdict:
            return REPRODUCED, ""
        reasons = by_verdict.get(NOT_COMPARABLE, [""])
        return NOT_COMPARABLE, self.reason or reasons[0]


def mean_points(measurements: Iterable[Measurement]) -> list[MeanPoint]:
    """Return the means over seeds, in the order in which they were first measured."""
    groups: dict[tuple[str, float], list[Measurement]] = {}
    for line in measurements:
        groups.setdefault((line.series, line.x), []).append(line)
    return [
        MeanPoint(
            *key,
            *mean_and_half_width([line.value for line in lines]),
            error=max(line.error for line in lines),
            seeds=len(lines),
        )
        for key, lines in groups.items()
    ]


def find_point(name: str, points: Iterable[MeanPoint]) -> MeanPoint:
    """Return the point with a name.

    Args:
      name: "name@x", a quantity at a budget; "name@first", at the smallest budget;
        "name@mean", its mean over all budgets; or "name" for the largest budget.
      points: Means of all quantities.

    Raises:
      ValueError: If there is no such point.
    """
    series, _, x = name.partition("@")
    curve = sorted((p for p in points if p.series == series), key=lambda p: p.x)
    if x not in ("", "first", "mean"):
        curve = [point for point in curve if point.x == float(x)]
    if not curve:
        raise ValueError(f"studies: there is no measurement of {name!r}")
    if x == "first":
        return curve[0]
    if x == "mean":
        mean = sum(point.mean for point in curve) / len(curve)
        return curve[-1]._replace(mean=mean, half_width=None)
    return curve[-1]


def _computation(size: float) -> Callable[..., list[Measurement]]:
    def compute(task: tuple[int, dict[str, Any]]) -> list[Measurement]:
        seed, case = task
        module, _, name = case["compute"].rpartition(".")
        function = getattr(importlib.import_module(f".{module}", __package__), name)
        arguments = {k: v for k, v in case.items() if k not in _OF_FRAME}
        return list(function(size, seed, **arguments))

    return compute


def read_studies(text: str) -> dict[str, Study]:
    """Read the table of studies.

    Args:
      text: TOML with a table for each study.
    """
    studies = {}
    for name, row in tomllib.loads(text).items():
        claims = tuple(Claim(**claim) for claim in row.pop("claims", ()))
        cases = [case for listed in row.pop("cases") for case in _combinations(listed)]
        studies[name] = Study(name=name, claims=claims, cases=cases, **row)
    return studies


def _combinations(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    each = case.pop("each", {})
    for values in itertools.product(*each.values()):
        yield case | dict(zip(each, values, strict=True))


STUDIES = read_studies(
    pathlib.Path(__file__).with_name("studies.toml").read_text("utf-8")
)
