"""A missing server is seen: said to people, fatal in CI."""

from __future__ import annotations

from pathlib import Path

import pytest

REASON = "needs a Redis server: start one on this machine"
IN_A_TEST = f"import pytest\ndef test_there(): pytest.skip({REASON!r})\n"
IN_A_MODULE = f"import pytest\npytest.skip({REASON!r}, allow_module_level=True)\n"
AS_ROOT = "import pytest\n@pytest.mark.skipif(True, reason='root may write everywhere')\ndef test_there(): pass\n"


@pytest.fixture
def copied(pytester: pytest.Pytester, root: Path) -> pytest.Pytester:
    """A run of its own with the project's conftest.py."""
    text = (root / "conftest.py").read_text("utf-8").replace('pytest_plugins = ["pytester"]', "")
    pytester.makeconftest(text)
    return pytester


@pytest.mark.parametrize("module", [IN_A_TEST, IN_A_MODULE])
def test_people_are_told_what_is_missing(copied: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Without ``CI=true`` the test is skipped, and the run's last lines say why."""
    monkeypatch.delenv("CI", raising=False)
    copied.makepyfile(module)
    result = copied.runpytest_inprocess("-q")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"SKIPPED*{REASON}"])


def test_a_missing_server_fails_in_ci(copied: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``CI=true`` the same test fails, and says why."""
    monkeypatch.setenv("CI", "true")
    copied.makepyfile(IN_A_TEST)
    result = copied.runpytest_inprocess("-q")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{REASON} (CI=true*"])


def test_a_module_without_its_server_fails_in_ci(copied: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``CI=true`` a module that skips itself is an error."""
    monkeypatch.setenv("CI", "true")
    copied.makepyfile(IN_A_MODULE)
    result = copied.runpytest_inprocess("-q")
    result.assert_outcomes(errors=1)
    assert result.ret != 0


def test_other_skips_stay_skips_in_ci(copied: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``CI=true`` a test that makes no sense for root is still skipped."""
    monkeypatch.setenv("CI", "true")
    copied.makepyfile(AS_ROOT)
    copied.runpytest_inprocess("-q").assert_outcomes(skipped=1)
