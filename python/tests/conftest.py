# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the package, which tests/e2e/test_python_package.py runs in a process of their own."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
sys.path.insert(0, str(pathlib.Path(os.environ.get("NEREID_BUILD", ROOT / "build" / "release")) / "python"))

from harness import decoupled, models, sequences  # noqa: E402

import nereid  # noqa: E402


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """The example models, decoupled ones, and an identity model for each data type."""
    path = tmp_path_factory.mktemp("models")
    for name in ("simple", "simple_string", "digits", "identity"):
        models.copy_example(path, name)
    decoupled.write_repeat(path)
    decoupled.write_square(path)
    for datatype in models.TYPES:
        models.write_model(path, f"identity_{datatype.lower()}", models.identity_config(datatype, [-1]))
    slow = models.identity_config(
        "INT32", [-1], extra='parameters { key: "execute_delay_ms" value: { string_value: "300" } }'
    )
    models.write_model(path, "slow", slow)
    sequences.write_keep(path, "sequence")
    return path


@pytest.fixture(scope="module")
def server(repository):
    with nereid.Server(model_repository=str(repository), server_id="embedded", exit_timeout=10) as running:
        yield running


@pytest.fixture
def start(repository):
    """Starts servers of a test's own, which end with it."""
    started = []

    def start_one(**options):
        options = {"model_repository": str(repository), "exit_timeout": 10, **options}
        started.append(nereid.Server(**options).start())
        return started[-1]

    yield start_one
    for one in started:
        try:
            one.stop()
        except nereid.InvalidArgumentError:
            pass  # the test has stopped it
