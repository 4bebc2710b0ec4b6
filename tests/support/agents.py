"""Agents in other programs, for tests.

Run as a program, `python agents.py MODE` is an agent that gives a bad answer of this
kind to "act", or, if MODE begins with "hello-", to "hello".
"""

import json
import os
import pathlib
import sys
import time

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "agents"
BAD = {
    "text": "raise",
    "empty line": "",
    "spaces": "   ",
    "half an object": '{"action": 0',
    "list": "[0]",
    "number": "0",
    "string": '"0"',
    "null": "null",
    "no action": "{}",
    "other key": '{"move": 0}',
    "null action": '{"action": null}',
    "text action": '{"action": "0"}',
    "name of the action": '{"action": "Pass"}',
    "fraction": '{"action": 0.5}',
    "float": '{"action": 0.0}',
    "boolean": '{"action": true}',
    "negative": '{"action": -1}',
    "illegal": '{"action": 7}',
    "huge": '{"action": 1' + "0" * 400 + "}",
    "list of actions": '{"action": [0]}',
    "both": '{"action": 0, "probabilities": {"0": 1}}',
    "list of probabilities": '{"probabilities": [0.5, 0.5]}',
    "empty probabilities": '{"probabilities": {}}',
    "sum below 1": '{"probabilities": {"0": 0.5, "1": 0.4}}',
    "negative probability": '{"probabilities": {"0": 1.5, "1": -0.5}}',
    "not a number": '{"probabilities": {"0": NaN, "1": 1}}',
    "infinite": '{"probabilities": {"0": Infinity}}',
    "sum too large": '{"probabilities": {"0": 1.7e308, "1": 1.7e308}}',
    "illegal in probabilities": '{"probabilities": {"0": 0.5, "9": 0.5}}',
    "text in probabilities": '{"probabilities": {"0": "1"}}',
    "negative cost": '{"action": 0, "cost": -1}',
    "code": "__import__('os')._exit(0)",
    "deep": "[" * 100_000,
    "too long": '{"action": 0, "thought": "' + "x" * 1_000_001 + '"}',
    "binary": "\x00\x01\x02",
}
# Kinds of behaviour other than a line of text.
OTHER = ("exit", "signal", "silent", "slow", "bytes", "closed output", "two answers")


def words(mode: str) -> str:
    """Return the bot string of an agent that gives bad answers."""
    return f"\"{sys.executable} {__file__} '{mode}'\""


def _act(mode: str) -> None:
    if mode == "exit":
        sys.exit(3)
    elif mode == "signal":
        os.kill(os.getpid(), 9)
    elif mode == "silent":
        time.sleep(60)
    elif mode == "slow":
        for letter in '{"action": 0}' * 100:
            print(letter, end="", flush=True)
            time.sleep(0.05)
    elif mode == "bytes":
        os.write(1, b'{"action": "\xff\xfe"}\n')
    elif mode == "closed output":
        os.close(1)
        time.sleep(60)
    elif mode == "two answers":
        print('{"action": 9}\n{"action": 0}', flush=True)
    elif mode == "one answer too many":
        print('{"action": 0}\n{"action": 0}', flush=True)
    else:
        print(BAD[mode], flush=True)


def main(mode: str) -> None:
    kind, _, rest = mode.partition("-")
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == kind == "hello":
            _act(rest)
        elif message["type"] == "hello":
            print(json.dumps({"name": "bad"}), flush=True)
        elif message["type"] == "act":
            _act(mode)


if __name__ == "__main__":
    main(sys.argv[1])
