"""Commands of `spiel-cr`, run in this process."""

import json

import pytest

from spiel_cr.eval.cli import main


def run(*words):
    """Run a command, which prints as usual."""
    main._run(main._parse(["spiel-cr", *map(str, words)]))


def report(capsys, *words):
    """Run a command and return the parsed last line of its stdout."""
    found, _, _ = outputs(capsys, *words)
    return found


def outputs(capsys, *words):
    """Run a command and return its report, its stdout and its stderr."""
    run(*words, "--json")
    out, err = capsys.readouterr()
    return json.loads(out.splitlines()[-1]), out, err


def rejection(capsys, *words, code=2):
    """Run a command that must fail, and return the last line of its stderr."""
    with pytest.raises(SystemExit) as stopped:
        run(*words)
    out, err = capsys.readouterr()
    assert stopped.value.code == code, err
    last = err.strip().splitlines()[-1]
    assert last.startswith("spiel-cr") and "Traceback" not in err
    if code == 2:
        assert not out
    return last
