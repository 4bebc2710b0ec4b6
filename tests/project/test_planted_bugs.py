"""The bugs that `planted_bugs` plants still have one place each."""

import pytest

from tests.support.planted_bugs import BUGS, ROOT


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.file)
def test_what_a_bug_replaces_occurs_once(bug):
    assert (ROOT / bug.file).read_text("utf-8").count(bug.right) == 1
    assert (ROOT / bug.tests).is_dir()
