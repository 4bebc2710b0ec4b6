"""An agent that ends without an answer now and then, to see what an evaluation does."""

import json
import random
import sys

generator = random.Random()
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        generator.seed(message["seed"])
        print(json.dumps({"name": "crashing", "version": "1"}), flush=True)
    elif message["type"] == "act":
        if generator.random() < 0.1:
            sys.exit(1)
        action = message["legal_actions"][0]["action"]
        print(json.dumps({"action": action}), flush=True)
