"""An agent for Leduc poker that follows a small language model of characters.

The model is the network of the package textgenrnn 2.0.0 (MIT licence; two LSTM layers
with 128 units and an attention layer, trained on titles of web pages). It completes a
sentence about the cards with the name of an action. Install it without TensorFlow,
which it would need for training, and evaluate the agent:

  pip install h5py && pip install --no-deps textgenrnn==2.0.0
  spiel-cr exploit --game leduc_poker \\
    --policy 'process(command="python examples/agents/language_model.py")'

With the argument "sample", the agent answers with actions in place of probabilities.
"""

import functools
import importlib.util
import json
import pathlib
import random
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

_RANKS = ("a jack", "a queen", "a king")


class CharacterModel:
    """The network, in numpy.

    Args:
      folder: Folder with `textgenrnn_weights.hdf5` and `textgenrnn_vocab.json`.
    """

    length = 40  # characters that the network sees

    def __init__(self, folder: pathlib.Path) -> None:
        import h5py

        text = (folder / "textgenrnn_vocab.json").read_text("utf-8")
        self._numbers: dict[str, int] = json.loads(text)
        with h5py.File(folder / "textgenrnn_weights.hdf5") as file:
            self._embedding = file["embedding/embedding/embeddings:0"][:]
            self._layers = [_layer(file[f"rnn_{k}/rnn_{k}"]) for k in (1, 2)]
            self._attention = file["attention/attention/attention_W:0"][:, 0]
            output = file["output/output"]
            self._kernel, self._bias = output["kernel:0"][:], output["bias:0"][:]

    def log_probabilities(self, text: str) -> np.ndarray:
        """Return the log-probabilities of the next character, float [characters]."""
        known = [self._numbers.get(character, 0) for character in text]
        row = ([0] * self.length + known)[-self.length :]
        parts = [self._embedding[row]]
        for kernel, recurrent, bias in self._layers:
            parts.append(_lstm(parts[-1], kernel, recurrent, bias))
        features = np.concatenate(parts, axis=1)
        logits = features @ self._attention
        weights = np.exp(logits - logits.max())
        mean = weights @ features / weights.sum()
        scores = mean @ self._kernel + self._bias
        scores -= scores.max()
        return scores - np.log(np.exp(scores).sum())

    def log_likelihood(self, text: str, continuation: str) -> float:
        """Return the log-likelihood of a continuation of a text."""
        total = 0.0
        for place, character in enumerate(continuation):
            scores = self.log_probabilities(text + continuation[:place])
            total += float(scores[self._numbers[character]])
        return total


def _layer(group: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return kernel, recurrent kernel and bias of an LSTM layer with four gates.

    The file has the layout of cuDNN: kernels of the gates are transposed, those of the
    inputs column by column, and there is a second bias.
    """
    gates = np.split(group["kernel:0"][:], 4, axis=1)
    kernel = [gate.ravel().reshape(gate.shape, order="F") for gate in gates]
    gates = np.split(group["recurrent_kernel:0"][:], 4, axis=1)
    recurrent = [gate.T for gate in gates]
    bias = group["bias:0"][:].reshape(2, -1).sum(axis=0)
    return np.hstack(kernel), np.hstack(recurrent), bias


def _lstm(
    inputs: np.ndarray, kernel: np.ndarray, recurrent: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """Return the outputs of an LSTM layer, float [characters, units]."""
    state = cell = np.zeros(recurrent.shape[0])
    outputs = []
    for given in inputs @ kernel:
        enter, forget, candidate, leave = np.split(given + state @ recurrent + bias, 4)
        cell = _sigmoid(forget) * cell + _sigmoid(enter) * np.tanh(candidate)
        state = _sigmoid(leave) * np.tanh(cell)
        outputs.append(state)
    return np.array(outputs)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def prompt(information_state: str) -> str:
    """Return the beginning of a sentence about the cards of Leduc poker."""
    hand, board = (
        [_RANKS[int(part.split("]")[0]) // 2] for part in parts[1:]]
        for parts in map(information_state.split, ("Private: ", "Public: "))
    )
    table = f" and see {board[0]}" if board else ""
    return f"I have {hand[0]}{table}, so I "


def main() -> None:
    """Answer questions from standard input."""
    package = importlib.util.find_spec("textgenrnn")
    if package is None or package.origin is None:
        sys.exit("no package textgenrnn; see the first lines of this program")
    model = CharacterModel(pathlib.Path(package.origin).parent)
    samples = sys.argv[1:] == ["sample"]
    score = functools.cache(model.log_likelihood)
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "hello":
            generator = random.Random(message["seed"])
            facts = {"name": "textgenrnn", "version": "2.0.0"}
            answer: dict[str, object] = {**facts, "probabilities": not samples}
        elif message["type"] == "act":
            text = prompt(message["information_state"])
            legal = message["legal_actions"]
            scores = [score(text, one["name"].lower()) for one in legal]
            weights = np.exp(np.array(scores) - max(scores))
            shares = (weights / weights.sum()).tolist()
            actions = [one["action"] for one in legal]
            if samples:
                answer = {"action": generator.choices(actions, shares)[0]}
            else:
                answer = {
                    "probabilities": dict(zip(map(str, actions), shares, strict=True))
                }
        else:
            continue
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
