"""An agent that replays recorded answers, such as a transcript of a language model.

The argument is a file of JSON lines with an information state and an action each. At an
information state with several lines, the session's seed chooses one of them.
"""

import collections
import json
import pathlib
import sys

answers: dict[str, list[int]] = collections.defaultdict(list)
for line in pathlib.Path(sys.argv[1]).read_text("utf-8").splitlines():
    record = json.loads(line)
    answers[record["information_state"]].append(record["action"])
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        seed = message["seed"]
        print(json.dumps({"name": "transcript", "version": "1"}), flush=True)
    elif message["type"] == "act":
        recorded = answers[message["information_state"]]
        print(json.dumps({"action": recorded[seed % len(recorded)]}), flush=True)
