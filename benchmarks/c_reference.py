"""Reference implementation: CFR+ in C on the same sequence form, compiled on first use.

Only benchmarks use this module; the package itself contains no C.
"""

import ctypes
import pathlib
import shutil
import subprocess
import tempfile
import time
from typing import Any

import numpy as np

from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.sequence_form.layout import SequenceForm, build
from spiel_cr.policies import conversions
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import PRESETS

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")

# Largest difference of two averages from rounding: 50 iterations amplify 1e-16 to about
# 1e-11 on leduc_poker.
TOLERANCE = 1e-9

_ITERATIONS = 50
# Relative size of the noise that breaks ties between payoffs.
_NOISE = 0.01

_SOURCE = pathlib.Path(__file__).with_name("reference.c")
_ARRAYS = "parent first actions row column payoff strategy regret reach sum value"


class _Player(ctypes.Structure):
    """Counterpart of `struct player` in reference.c."""

    _fields_ = [("infosets", ctypes.c_int), ("sequences", ctypes.c_int)] + [
        (name, ctypes.c_void_p) for name in _ARRAYS.split()
    ]


def c_compiler() -> str | None:
    """Return the path of the C compiler; None if it is not installed."""
    return shutil.which("cc")


def _compile() -> ctypes.CDLL:
    """Build the library for this CPU.

    Raises:
      RuntimeError: If the C compiler is missing or failed.
    """
    cc = c_compiler()
    if cc is None:
        raise RuntimeError("no C compiler (cc) found on the path; install one")
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "reference.so"
        command = [cc, *FLAGS, "-o", str(library), str(_SOURCE)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {built.stderr.strip()}")
        loaded = ctypes.CDLL(str(library))
    loaded.cfr_plus.argtypes = [ctypes.POINTER(_Player), ctypes.c_long, ctypes.c_long]
    loaded.cfr_plus.restype = None
    return loaded


class CReference:
    """CFR+ with alternating updates, float64, one thread.

    Attributes:
      iterations: Number of iterations so far.
      compile_seconds: Time spent in the C compiler.
    """

    def __init__(self, form: SequenceForm) -> None:
        """Compile the C code, and convert the game's arrays.

        Raises:
          RuntimeError: If the C compiler is missing or failed.
          ValueError: If an infoset precedes its parent.
        """
        started = time.perf_counter()
        self._library = _compile()
        self.compile_seconds = time.perf_counter() - started
        self.iterations = 0
        rows, columns, values = form.payoffs
        self._decisions = form.decisions
        self._arrays = [
            _arrays_of(form.decisions[0], rows, columns, values),
            _arrays_of(form.decisions[1], columns, rows, -values),
        ]
        self._players = (_Player * 2)(*(structure(_Player, a) for a in self._arrays))

    def run(self, iterations: int) -> None:
        """Run iterations."""
        self._library.cfr_plus(self._players, self.iterations, iterations)
        self.iterations += iterations

    def average(self, player: int) -> np.ndarray:
        """Return the average strategy in sequence form: float64 [S]."""
        total = self._arrays[player]["sum"]
        # The empty sequence is reached with probability 1 in every iteration.
        return total / total[0]

    def average_behaviour(self, player: int) -> np.ndarray:
        """Return the average strategy as action probabilities: float64 [S]."""
        return conversions.behaviour_from_reach(
            self._decisions[player], self.average(player)
        )


def _arrays_of(
    decisions: Decisions,
    sequences: np.ndarray,
    opponent_sequences: np.ndarray,
    values: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return one player's arrays by the names of `struct player`.

    Args:
      decisions: Decision points of the player.
      sequences: int [nnz], the player's sequences in the payoff matrix.
      opponent_sequences: int [nnz], the opponent's sequences.
      values: float64 [nnz], the player's utility times chance.
    """
    first = decisions.first_sequence
    if (decisions.parent >= first).any():
        raise ValueError("form: parents must precede their children")
    order = np.lexsort((opponent_sequences, sequences))
    count = decisions.num_sequences
    row = np.concatenate([[0], np.cumsum(np.bincount(sequences, minlength=count))])
    strategy = conversions.uniform_behaviour(decisions)
    reach = conversions.reach_from_behaviour(decisions, strategy)
    integers = {
        "parent": decisions.parent,
        "first": first,
        "actions": decisions.num_actions,
        "row": row,
        "column": opponent_sequences[order],
    }
    numbers = {"payoff": values[order], "strategy": strategy, "reach": reach}
    return {
        **{name: np.ascontiguousarray(x, np.intc) for name, x in integers.items()},
        **{name: np.ascontiguousarray(x, np.float64) for name, x in numbers.items()},
        **{name: np.zeros(count) for name in ("regret", "sum", "value")},
    }


def structure(kind: type[Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return a C structure that refers to a player's arrays; keep these alive."""
    pointers = {name: array.ctypes.data for name, array in arrays.items()}
    return kind(len(arrays["parent"]), len(arrays["strategy"]), **pointers)


def disagreement(form: SequenceForm) -> dict[str, Any]:
    """Compare the average strategies of the C reference and spiel_cr, both CFR+.

    In a game with exact ties, regrets that should be 0 are ±1e-17, and rounding alone
    chooses an action: after two iterations on five-card goofspiel, two correct
    implementations differ by 0.1. If they differ, the comparison is repeated on the
    same game with noise on its payoffs.

    Returns:
      `disagreement`: largest absolute difference of the average strategies in sequence
      form; `generic`: whether noise was added; `agrees`: whether the difference is
      within TOLERANCE.
    """
    difference, generic = _difference(form), False
    if difference > TOLERANCE:
        noise = np.random.default_rng(0).standard_normal(len(form.payoffs.values))
        values = form.payoffs.values * (1 + _NOISE * noise)
        payoffs = form.payoffs._replace(values=values)
        difference = _difference(build(form.decisions, payoffs))
        generic = True
    agrees = difference <= TOLERANCE
    return {"disagreement": difference, "generic": generic, "agrees": agrees}


def _difference(form: SequenceForm) -> float:
    reference = CReference(form)
    solver = cfr.make_solver(form, config=PRESETS["cfr+"])
    reference.run(_ITERATIONS)
    solver.run(_ITERATIONS)
    differences = [reference.average(p) - solver.average(p) for p in (0, 1)]
    return float(np.abs(np.concatenate(differences)).max())
