"""Speed-up of commands with two workers compared with one, also on a Ray cluster.

    python -m tests.support.worker_ratios [--only NAME ...] [--repeats N] [--share X]

runs `spiel-cr` as users do, and prints a table. Each command is run at two sizes. The
small size measures the time of a start (imports, workers, Ray), which the columns "at
work" exclude. The minimum over repeats counts. The machine should be idle; all
measurements take about eight minutes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

# One worker, two, and two on a Ray cluster of this machine.
ONE, TWO, RAY = "--workers=1", "--workers=2", "--workers=2 --ray"
# By name: the arguments with SIZE, the small size and the large size.
COMMANDS: dict[str, tuple[str, tuple[Any, Any]]] = {
    # Matches of one second.
    "tournament": (
        "tournament --game=leduc_poker --matches=SIZE --out=DIR "
        "--bots=resolving(iterations=80000);uniform",
        (2, 26),
    ),
    # 16 shards of a bot's information states.
    "exploit": (
        "exploit --minutes=60 SIZE",
        (
            "--game=kuhn_poker --policy=uniform --methods=search",
            "--game=liars_dice(numdice=1,dice_sides=5) --player=0 --methods=exact "
            "--policy=resolving(iterations=1)",
        ),
    ),
    "push-fold": (
        "push-fold --stacks=600/600 --prizes=100/0 --blinds=300/600 --rounds=1 "
        "--steps=1 --cache=DIR --boards=SIZE",
        (512, 102400),
    ),
    # The states stay on this machine.
    "solve": (
        "solve --game=leduc_poker --algorithm=os-mccfr --form simulator "
        "--no-batched-rules --memory-limit=4GB --iterations=SIZE",
        (1, 100),
    ),
}
_ENTRY = "from spiel_cr.eval.cli import entry; entry.main()"


def seconds(line: str, size: int | str, where: str) -> float:
    """Return the wall-clock seconds of a command in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        words = line.replace("SIZE", str(size)).replace("DIR", folder).split()
        words = [sys.executable, "-c", _ENTRY, *words, *where.split()]
        began = time.monotonic()
        subprocess.run(words, check=True, capture_output=True)
        return time.monotonic() - began


def main() -> None:
    """Run all measurements and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of large numbers")
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start\n")
    print(
        "| command | start, s: 1, 2, Ray | 1 worker, s | 2 | 1 ÷ 2 | at work "
        "| 2 on Ray, s | Ray ÷ 2 | at work |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in given.only:
        line, (small, large) = COMMANDS[name]
        places = (ONE, TWO) if name == "solve" else (ONE, TWO, RAY)
        # This run fills the compilation cache.
        seconds(line, small, ONE)
        many = large
        if isinstance(large, int):
            many = max(small, round(large * given.share))
        starts, all_of = (
            {
                where: min(seconds(line, size, where) for _ in range(given.repeats))
                for where in places
            }
            for size in (small, many)
        )
        work = {where: all_of[where] - starts[where] for where in places}
        ray = ["–"] * 3
        if RAY in places:
            ratios = [part[RAY] / part[TWO] for part in (all_of, work)]
            ray = [f"{all_of[RAY]:.1f}", *(f"{ratio:.2f}" for ratio in ratios)]
        cells = [
            name,
            " ".join(f"{starts[where]:.1f}" for where in places),
            f"{all_of[ONE]:.1f}",
            f"{all_of[TWO]:.1f}",
            f"{all_of[ONE] / all_of[TWO]:.2f}",
            f"{work[ONE] / work[TWO]:.2f}",
            *ray,
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
