"""An agent for any game that plays its first legal action, or a random one.

The argument is the probability of a random action. The seed of "hello" makes the agent
reproducible, and each session starts from it.
"""

import json
import random
import sys

noise = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
generator = random.Random()
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        generator.seed(message["seed"])
        description = {"name": "noisy", "version": "1", "settings": {"noise": noise}}
        print(json.dumps(description), flush=True)
    elif message["type"] == "act":
        legal = [each["action"] for each in message["legal_actions"]]
        action = generator.choice(legal) if generator.random() < noise else legal[0]
        print(json.dumps({"action": action}), flush=True)
