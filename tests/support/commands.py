"""Commands of `spiel-cr`, run in this process."""

import json

import pytest

from spiel_cr.eval.cli import main


def run(*words):
    """Runs a command; it prints as it does."""
    main._run(main._parse(["spiel-cr", *map(str, words)]))


def report(capsys, *words):
    """What a command gives to programs, the last line of its stdout, parsed."""
    found, _, _ = told(capsys, *words)
    return found


def told(capsys, *words):
    """The same, and all that it said on stdout and on stderr."""
    run(*words, "--json")
    out, err = capsys.readouterr()
    return json.loads(out.splitlines()[-1]), out, err


def refused(capsys, *words, code=2):
    """The last line on stderr of a command that ends with a code."""
    with pytest.raises(SystemExit) as stopped:
        run(*words)
    out, err = capsys.readouterr()
    assert stopped.value.code == code, err
    last = err.strip().splitlines()[-1]
    assert last.startswith("spiel-cr") and "Traceback" not in err
    if code == 2:
        assert not out
    return last
