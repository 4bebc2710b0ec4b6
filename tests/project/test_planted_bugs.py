"""Each bug of `planted_bugs` can still be planted at exactly one place."""

import pytest

from tests.support.planted_bugs import BUGS, ROOT


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.file)
def test_replaced_code_of_each_bug_occurs_once(bug):
    assert (ROOT / bug.file).read_text("utf-8").count(bug.right) == 1
    assert (ROOT / bug.tests).is_dir()
