"""Commands give the same results with and without workers, except for times."""

import json

import pytest

from tests.fuzz.interruptions import PASSING
from tests.support.commands import outputs
from tests.support.results import lasting

LINES = {
    "study": "study kuhn --size=0.001",
    "tournament": "tournament --game=kuhn_poker --bots=uniform;resolving(iterations=5) "
    "--matches=8 --out=DIR",
    "traversing": "evaluate --game=kuhn_poker --bot=resolving(iterations=5) --out=DIR",
    "playing": "evaluate --game=kuhn_poker --bot=resolving(iterations=5) --out=DIR "
    "--method=matches --matches=8",
    # Information states are made on demand, by objects that other processes lack.
    "response": "best-response --game=liars_dice(numdice=1,dice_sides=3) --states "
    "--policy=uniform --method=ismcts --simulations=20 --matches=8",
    "push-fold": "push-fold --stacks=600/600 --prizes=100/0 --blinds=300/600 "
    "--rounds=1 --steps=5 --boards=25600 --cache=DIR",
}
QUICK = [("playing", "--workers=2")]
CHANGING = {*PASSING, "crc", "min_ms", "mean_ms", "think_seconds", "longest"}
CASES = [
    pytest.param(
        *(name, words),
        marks=[] if (name, words) in QUICK else pytest.mark.slow,
        id=f"{name} {words}",
    )
    for name in LINES
    for words in ("--workers=1", "--workers=2", "--ray --workers=2")
]


@pytest.mark.parametrize(("name", "workers"), CASES)
def test_workers_change_only_times(name, workers, capsys, tmp_path):
    found = []
    for words in ("--workers=0", workers):
        folder = tmp_path / str(len(found))
        line = LINES[name].replace("DIR", str(folder))
        said, _, _ = outputs(capsys, *line.split(), *words.split())
        files = {}
        for path in sorted(folder.iterdir()) if folder.exists() else ():
            if path.suffix == ".jsonl":
                lines = path.read_text().splitlines()
                files[path.name] = [lasting(json.loads(x), CHANGING) for x in lines]
            else:
                files[path.name] = path.suffix != ".npz" or path.read_bytes()
        found.append((lasting(said, CHANGING), files))
    assert found[0] == found[1]
