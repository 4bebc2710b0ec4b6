"""Tasks for workers: sums of random numbers, and several kinds of failures."""

import os
import pathlib
import time

import numpy as np

from spiel_cr.common.checks import check_integer


class Tasks:
    """A worker for tasks (kind, seed): add, wait, stay, die, refuse, fail, tell."""

    def __init__(self, weights, folder):
        self.weights, self.folder = weights, pathlib.Path(folder)
        self.note("made", "")

    def note(self, what, seed):
        """Append a line to a file, and return the number of lines."""
        file = self.folder / f"{what}{seed}"
        with file.open("ab", buffering=0) as out:
            out.write(f"{os.getpid()}\n".encode())
        return file.read_bytes().count(b"\n")

    def __call__(self, task):
        what, seed = task
        begun = self.note(what, "" if what == "tell" else seed)
        if what == "wait":
            time.sleep(60)
        elif what == "stay":
            deadline = time.monotonic() + 200
            while not (self.folder / "go").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
        elif what == "die" and (seed < 0 or begun <= seed):
            os._exit(7)
        elif what == "refuse":
            check_integer(seed, "seed", 6, 9)
        elif what == "fail":
            {}["nothing"]
        elif what == "tell":
            return self.tell(seed, begun)
        random = np.random.default_rng(seed % 1000)
        return (random.normal(size=len(self.weights)) @ self.weights).item()

    def tell(self, told, begun):
        """Yield the missing numbers of 0 to 3; a mortal worker dies at the first 2."""
        mortal, *before = told
        for number in range(len(before), 4):
            if mortal and begun == 1 and number == 2:
                os._exit(7)
            yield number


class Rests:
    """A worker that counts its rests, each of which ends when a file exists."""

    def __init__(self, file):
        self.file, self.rests = pathlib.Path(file), 0

    def __call__(self, request):
        return self.rests

    def rest(self):
        while not self.file.exists():
            time.sleep(0.01)
        self.rests += 1
