"""Reports of comparisons have no pictures here, which take a second each."""

import pytest

from spiel_cr.eval.reporting import report_text


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    monkeypatch.setattr(report_text, "available", lambda: False)
