"""Settings of the whole test suite."""

import pytest
from absl import flags

# OpenSpiel's test helpers read absl flags, which only an absl program parses.
flags.FLAGS.mark_as_parsed()

# Failed assertions in the shared checks are to show their values, as in tests.
pytest.register_assert_rewrite(
    "tests.support.game_contract", "tests.support.game_trees"
)
