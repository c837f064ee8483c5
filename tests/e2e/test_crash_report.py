# SPDX-License-Identifier: Apache-2.0
"""A crash in a backend ends the process as crashes do, and says which model and request it was."""

import re
import resource
import signal

import pytest
from harness import server as servers
from harness import trouble

pytestmark = [
    pytest.mark.usefixtures("require_server"),
    pytest.mark.newer,
    pytest.mark.skipif(servers.is_sanitized(), reason="sanitizers report crashes themselves"),
]



@pytest.fixture(autouse=True)
def no_core_dumps():
    """A server that a test lets crash leaves no file."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


CRASHES = {
    trouble.WRITE_NOWHERE: signal.SIGSEGV,
    trouble.ABORT: signal.SIGABRT,
    trouble.DIVIDE_BY_ZERO: signal.SIGFPE,
    trouble.ILLEGAL_INSTRUCTION: signal.SIGILL,
    trouble.READ_PAST_FILE: signal.SIGBUS,
    trouble.RECURSE: signal.SIGSEGV,
}


def crash(server, model, command, request_id="", **options):
    """Sends a request that ends the server, and returns the exit status and the report."""
    connection = trouble.connect(server)
    with pytest.raises((ConnectionError, trouble.http.client.HTTPException)):
        trouble.infer(connection, model, command, request_id, **options)
    status = server.wait()
    return status, server.log[server.log.index("nereid: the process crashed") :]


@pytest.mark.parametrize("command, number", CRASHES.items(), ids=lambda value: str(value))
def test_the_report_names_signal_model_request_and_place(command, number, start_server, empty_repository):
    trouble.write(empty_repository, "crashes")
    server = start_server(empty_repository)
    status, report = crash(server, "crashes", command, "request-17")
    assert status == -number
    head, what, *stack = report.splitlines()
    assert head.startswith(f"nereid: the process crashed: {signal.Signals(number).name}")
    assert re.fullmatch(
        r"nereid: it was executing model 'crashes' version 1, instance 'crashes_0(_0)?', request: 'request-17'",
        what,
    )
    assert any(re.match(r" +libtriton_trouble\.so\+0x[0-9a-f]+", line) for line in stack)


def test_a_crash_of_a_reactor_that_executes_a_model_names_it(start_server, empty_repository):
    trouble.write(empty_repository, "crashes", "trouble_inline")
    server = start_server(empty_repository, args=["--inline-exec-budget-us=1000000"])
    connection = trouble.connect(server)
    for _ in range(80):
        assert trouble.infer(connection, "crashes")[0] == 200
    status, report = crash(server, "crashes", trouble.WRITE_NOWHERE, "inline")
    assert status == -signal.SIGSEGV
    assert "'nereid-net-" in report.splitlines()[0]
    assert report.splitlines()[1].endswith("request: 'inline'")


@pytest.mark.parametrize(
    "command, number",
    [(trouble.WRITE_NOWHERE_IN_THREAD, signal.SIGSEGV), (trouble.THROW_IN_THREAD, signal.SIGABRT)],
)
def test_a_crash_in_a_thread_of_a_backend_names_what_is_being_executed(
    command, number, start_server, empty_repository
):
    trouble.write(empty_repository, "crashes")
    server = start_server(empty_repository)
    status, report = crash(server, "crashes", command, "request-18")
    assert status == -number
    assert "nereid: that thread was executing no model" in report
    assert re.search(r"another thread is executing model 'crashes' .*request: 'request-18'", report)


def test_an_id_cannot_forge_a_line_of_the_report(start_server, empty_repository):
    trouble.write(empty_repository, "crashes")
    server = start_server(empty_repository)
    _, report = crash(server, "crashes", trouble.ABORT, "a\nnereid: all is well")
    assert "request: 'a?nereid: all is well'" in report
