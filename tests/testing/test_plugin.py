"""The pytest plugin, in pytest runs of its own: FS-28 (flask-limiter#21, #75; PyrateLimiter#52; evc-team-relay#223)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headway
import headway.testing.isolation

APP = """
    from headway import AsyncLimiter, Limit, Limiter

    limiter = Limiter(Limit("route", "5 per hour", by="ip"))

    def get(ip="192.0.2.1"):
        return 200 if limiter.hit(ip=ip).allowed else 429
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> pytest.Pytester:
    # a run forgets what it has loaded first: else the next one meets half of our modules twice
    for name in headway.__all__:
        getattr(headway, name)
    pytester.makepyfile(app=APP)
    return pytester


def outcomes(run: pytest.Pytester, *args: str) -> dict[str, int]:
    return run.runpytest_inprocess(
        "-p", "no:xdist", "-p", "no:cacheprovider", "--strict-markers", *args
    ).parseoutcomes()


A_AND_B = """
    from app import get

    def test_a({fixture}):
        assert [get() for _ in range(6)] == [200] * 5 + [429]

    def test_b({fixture}):
        assert [get() for _ in range(6)] == [200] * 5 + [429]
"""


@pytest.mark.parametrize("order", [("test_a", "test_b"), ("test_b", "test_a")])
def test_counts_do_not_leak_from_one_test_to_the_next(run: pytest.Pytester, order: tuple[str, str]) -> None:
    """FS-28: A and B each send six requests to the same route; in both orders each sees five admitted and one refused."""
    path = run.makepyfile(test_app=A_AND_B.format(fixture="headway_limits"))
    assert outcomes(run, *(f"{path.name}::{name}" for name in order)) == {"passed": 2}


def test_without_the_fixture_counts_do_leak(run: pytest.Pytester) -> None:
    """The plugin does nothing where nobody asks for it: the second test meets what the first one counted."""
    run.makepyfile(test_app=A_AND_B.format(fixture=""))
    assert outcomes(run) == {"passed": 1, "failed": 1}


def test_a_limiter_can_be_switched_off_after_the_app_was_made(run: pytest.Pytester) -> None:
    """FS-28: switched off, twenty requests pass and nothing is counted; switched on, five of six do."""
    run.makepyfile(
        test_app="""
        import pytest
        from app import get, limiter

        def test_off(headway_limits):
            get()
            headway_limits.off()
            assert [get() for _ in range(20)] == [200] * 20
            headway_limits.on()
            assert limiter.peek(ip="192.0.2.1", cost=0).remaining == 4

        @pytest.mark.headway(off=True)
        def test_off_by_marker():
            assert [get() for _ in range(20)] == [200] * 20

        @pytest.mark.headway(off=True)
        def test_off_by_marker_and_on_by_hand(headway_limits):
            get()
            headway_limits.on()
            assert [get() for _ in range(6)] == [200] * 5 + [429]

        def test_on_again():
            assert [get() for _ in range(6)] == [200] * 5 + [429]
        """
    )
    assert outcomes(run) == {"passed": 4}


def test_an_hour_passes_without_sleeping(run: pytest.Pytester) -> None:
    """FS-28: a test moves a clock on by 3600 s and is admitted again; a nanosecond less is not enough."""
    run.makepyfile(
        test_app="""
        import time
        from app import get, limiter

        def test_travel(headway_limits):
            begun = time.monotonic()
            assert [get() for _ in range(6)] == [200] * 5 + [429]
            wait = limiter.peek(ip="192.0.2.1").retry_after_ns
            headway_limits.clock.advance(ns=wait - 1)
            assert get() == 429
            headway_limits.clock.advance(ns=1)
            assert get() == 200
            headway_limits.travel(3600)
            assert [get() for _ in range(6)] == [200] * 5 + [429]
            assert time.monotonic() - begun < 60
        """
    )
    assert outcomes(run) == {"passed": 1}


def test_one_line_of_configuration_isolates_every_test(run: pytest.Pytester) -> None:
    """With ``headway_isolate = true`` functions, methods, parametrized tests, unittest cases and doctests are isolated."""
    run.makeini("[pytest]\nheadway_isolate = true\naddopts = --doctest-modules")
    run.makepyfile(
        test_app="""
        import unittest
        import pytest
        from app import get

        SIX = [200] * 5 + [429]

        @pytest.fixture(scope="session")
        def early():
            return [get() for _ in range(3)]

        @pytest.fixture
        def late():
            return [get() for _ in range(2)]

        @pytest.mark.parametrize("number", [1, 2])
        def test_parametrized(number):
            assert [get() for _ in range(6)] == SIX

        def test_after_fixtures(early, late):
            assert [get() for _ in range(4)].count(200) == 0

        def test_after_the_session_fixture(early, late):
            assert [get() for _ in range(4)].count(200) == 3

        class TestMethods:
            def setup_method(self):
                self.first = get()

            def test_method(self):
                assert [self.first] + [get() for _ in range(5)] == SIX

        class TestCase(unittest.TestCase):
            def setUp(self):
                self.first = get()

            def test_case(self):
                self.assertEqual([self.first] + [get() for _ in range(5)], SIX)

            def test_case_again(self):
                self.assertEqual([self.first] + [get() for _ in range(5)], SIX)

        def documented():
            '''
            >>> [get() for _ in range(6)]
            [200, 200, 200, 200, 200, 429]
            '''

        @pytest.mark.headway(isolate=False)
        def test_left_alone():
            assert [get() for _ in range(6)] == SIX

        @pytest.mark.headway(isolate=False)
        def test_left_alone_again():
            assert get() == 429
        """
    )
    assert outcomes(run) == {"passed": 10}


def test_a_marker_may_stand_on_one_parameter_a_class_or_a_module(run: pytest.Pytester) -> None:
    """The nearest marker counts, and one on a parameter leaves the other parameters alone."""
    run.makepyfile(
        test_app="""
        import pytest
        from app import get

        @pytest.mark.parametrize("off", [pytest.param(True, marks=pytest.mark.headway(off=True)), False])
        def test_parameter(off):
            assert ([get() for _ in range(6)].count(429) == 0) is off

        @pytest.mark.headway(off=True)
        class TestOff:
            def test_off(self):
                assert [get() for _ in range(20)] == [200] * 20

            @pytest.mark.headway
            def test_on(self):
                assert [get() for _ in range(6)] == [200] * 5 + [429]

            @pytest.mark.headway(isolate=False)
            def test_alone(self):
                assert get() == 429
        """
    )
    assert outcomes(run) == {"passed": 5}


@pytest.mark.parametrize(
    "marker", ["headway('off')", "headway(of=True)", "headway(off=1)", "headway(off=True, isolate=False)"]
)
def test_a_marker_that_says_nothing_known_is_an_error(run: pytest.Pytester, marker: str) -> None:
    """A misspelt option does not silently leave the limiters on: the run stops and names the test and what is known."""
    run.makepyfile(test_app=f"import pytest\n\n@pytest.mark.{marker}\ndef test_it():\n    pass\n")
    result = run.runpytest_inprocess("-p", "no:xdist")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*test_app.py::test_it*expected headway(), headway(off=True) or headway(isolate=False)*"]
    )


def test_an_async_app_is_isolated(run: pytest.Pytester) -> None:
    """An ``AsyncLimiter`` made at module level is isolated across event loops, one a test."""
    run.makepyfile(
        test_app="""
        import asyncio
        from headway import AsyncLimiter, Limit

        limiter = AsyncLimiter(Limit("route", "5 per hour", by="ip"))

        async def get():
            return 200 if (await limiter.hit(ip="a")).allowed else 429

        async def six():
            return [await get() for _ in range(6)]

        def test_a(headway_limits):
            assert asyncio.run(six()) == [200] * 5 + [429]
            headway_limits.reset()
            assert asyncio.run(six()) == [200] * 5 + [429]

        def test_b(headway_limits):
            assert asyncio.run(six()) == [200] * 5 + [429]
        """
    )
    assert outcomes(run) == {"passed": 2}


def test_the_fixture_and_the_option_are_listed(run: pytest.Pytester) -> None:
    """``pytest --fixtures``, ``--markers`` and ``--help`` say what the plugin offers."""
    for option, said in (
        ("--fixtures", "headway_limits*"),
        ("--markers", "@pytest.mark.headway*"),
        ("--help", "*headway_isolate*"),
    ):
        run.runpytest_inprocess("-p", "no:xdist", option).stdout.fnmatch_lines([said])


def test_the_plugin_loads_nothing_before_it_is_used(tmp_path: Path) -> None:
    """In a project that does not use headway a pytest run loads no store beyond memory, no analysis, no clock of ours."""
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_other():\n    loaded = [name for name in sys.modules if name.startswith('headway.testing')]\n"
        "    assert sorted(loaded) == ['headway.testing', 'headway.testing.plugin']\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:hypothesispytest",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["headway_limits", "marker", "option"])
def test_what_other_fixtures_make_and_ask_is_isolated_too(run: pytest.Pytester, how: str) -> None:
    """Wherever ``headway_limits`` stands among a test's fixtures, whatever their scope: no file is made, no count leaks."""
    if how == "option":
        run.makeini("[pytest]\nheadway_isolate = true")
    run.makepyfile(
        test_app=f"""
        import os
        import pytest
        from headway import Limit, Limiter
        from app import get

        pytestmark = [pytest.mark.headway()] if {how == "marker"} else []

        @pytest.fixture(scope="module")
        def made():
            return Limiter(Limit("route", "5 per hour", by="ip"), store="sqlite:///limits.db")

        @pytest.fixture(params=[1, 2])
        def spent(request, made):
            for _ in range(request.param):
                made.hit(ip="a")
                get()
            return request.param

        @pytest.mark.parametrize("number", ["x", "y"])
        def test_it(made, spent, number{", headway_limits" if how == "headway_limits" else ""}):
            assert made.hit(ip="a").remaining == 4 - spent
            assert [get() for _ in range(6 - spent)] == [200] * (5 - spent) + [429]
            assert not os.path.exists("limits.db")
        """
    )
    assert outcomes(run) == {"passed": 4}


def test_asynchronous_tests_and_applications_are_isolated(run: pytest.Pytester) -> None:
    """Under AnyIO's plugin, with an application that was made at import and one that the test makes."""
    run.makepyfile(
        test_app="""
        import httpx
        import pytest
        from fastapi import FastAPI
        from headway import AsyncLimiter, Limit
        from headway.adapters.fastapi import install

        pytestmark = [pytest.mark.anyio, pytest.mark.headway()]

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        def create_app():
            app = FastAPI()
            install(app, AsyncLimiter(Limit("all", "2 per hour", by="address"), store="redis://127.0.0.1:1/0"))
            app.get("/")(lambda: "hello")
            return app

        app = create_app()

        @pytest.mark.parametrize("number", [1, 2])
        @pytest.mark.parametrize("make", [lambda: app, create_app])
        async def test_it(headway_limits, make, number):
            transport = httpx.ASGITransport(make())
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                for _ in range(2):
                    assert [(await client.get("/")).status_code for _ in range(3)] == [200, 200, 429]
                    headway_limits.travel(3600)
        """
    )
    assert outcomes(run) == {"passed": 4}


def test_each_process_of_a_distributed_run_isolates_its_own(run: pytest.Pytester) -> None:
    """With pytest-xdist tests are isolated in whatever process they run."""
    pytest.importorskip("xdist")
    run.makeini("[pytest]\nheadway_isolate = true")
    run.makepyfile(
        test_app="""
        import pytest
        from app import get

        @pytest.mark.parametrize("number", range(3))
        def test_it(number):
            assert [get() for _ in range(6)] == [200] * 5 + [429]
        """
    )
    fewer = [word for name in ("cacheprovider", "hypothesispytest", "faker", "anyio") for word in ("-p", f"no:{name}")]
    assert run.runpytest_subprocess("-n", "1", *fewer).parseoutcomes() == {"passed": 3}
