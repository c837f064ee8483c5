# SPDX-License-Identifier: Apache-2.0
"""Health that is true: threads and executions that do not get on are noticed, and so is that they do again."""

import json
import re
import select

import pytest
from harness import models, trouble
from harness import server as servers
from harness.notify import NotifySocket

pytestmark = [pytest.mark.usefixtures("require_server"), pytest.mark.newer]

QUICK = 80  # executions after which a reactor runs a model itself


def wait_for_status(connection, path, status):
    """Waits until the path is answered with this status, and returns the body."""

    def ask():
        got, body = trouble.get(connection, path)
        return (body or "empty") if got == status else None

    return servers.wait_until(ask, f"{path} to be {status}", timeout=30)


def metric(server, name, kind):
    for line in server_metrics(server).splitlines():
        if line.startswith(f'{name}{{kind="{kind}"}} '):
            return float(line.split()[-1])
    return None


def server_metrics(server):
    connection = trouble.http.client.HTTPConnection("127.0.0.1", server.metrics_port, timeout=60)
    return trouble.get(connection, "/metrics")[1]


def test_an_execution_beyond_its_limit_makes_its_model_not_ready_and_only_that(start_server, empty_repository):
    trouble.write(empty_repository, "stuck")
    models.write_model(empty_repository, "other", models.identity_config("FP32", [-1]))
    server = start_server(empty_repository, args=["--watchdog-execution-secs=1"])
    asking, blocked = trouble.connect(server), trouble.connect(server)
    assert trouble.get(asking, "/v2/models/stuck/ready") == (200, "")
    with trouble.closed_gate(empty_repository, "stuck"):
        trouble.send(blocked, "stuck", trouble.WAIT, "the-request")
        assert wait_for_status(asking, "/v2/models/stuck/ready", 400) == '{"error":"Model version not ready"}'
        status, body = trouble.get(asking, "/v2/models/stuck/ready?verbose")
        assert status == 400 and json.loads(body)["ready"] is False
        (problem,) = trouble.problems(body)["instances"]
        assert re.fullmatch(r"the execution 'stuck_0(_0)?' has not got on for \d+ s", problem)
        # The server is not ready, because a model is not; it is live, because a restart is not called for.
        assert trouble.get(asking, "/v2/health/ready") == (400, "")
        status, body = trouble.get(asking, "/v2/health/ready?verbose")
        assert status == 400 and problem[:30] in trouble.problems(body)["models"][0]
        assert trouble.get(asking, "/v2/health/live") == (200, "")
        assert trouble.get(asking, "/v2/models/other/ready") == (200, "")
        assert metric(server, "nereid_stuck_threads", "execution") == 1
        page = server.scrape()
        assert [page["nereid_model_ready", model] for model in ("stuck", "other")] == [0, 1]
        assert page["nereid_server_ready", ""] == 0 and page["nereid_server_live", ""] == 1
        # What it was at: the request, and the function of the backend that waits.
        server.wait_for_log("executing model 'stuck' version 1")
        server.wait_for_log("request: 'the-request'")
        function = re.compile(r"libtriton_trouble\.so\+0x[0-9a-f]+ \(TRITONBACKEND_ModelInstanceExecute")
        if servers.sanitizers() != "thread":  # which holds signals back from a thread that waits
            servers.wait_until(lambda: function.search(server.log), "a log with the function of the backend")
    assert blocked.getresponse().status == 200
    wait_for_status(asking, "/v2/models/stuck/ready", 200)
    assert trouble.get(asking, "/v2/health/ready") == (200, "")
    server.wait_for_log("gets on again")
    servers.wait_until(lambda: metric(server, "nereid_stuck_threads", "execution") == 0, "no stuck thread")
    assert metric(server, "nereid_watchdog_alarms_total", "execution") == 1


def test_a_model_with_an_instance_left_stays_ready(start_server, empty_repository):
    trouble.write(empty_repository, "two", extra="instance_group [ { kind: KIND_CPU count: 2 } ]\n")
    server = start_server(empty_repository, args=["--watchdog-execution-secs=1"])
    asking, blocked = trouble.connect(server), trouble.connect(server)
    with trouble.closed_gate(empty_repository, "two"):
        trouble.send(blocked, "two", trouble.WAIT)
        servers.wait_until(lambda: metric(server, "nereid_stuck_threads", "execution") == 1, "an alarm")
        assert trouble.get(asking, "/v2/models/two/ready") == (200, "")
        assert trouble.infer(asking, "two")[0] == 200
    assert blocked.getresponse().status == 200


def test_a_reactor_that_is_blocked_makes_the_server_not_live(start_server, empty_repository):
    trouble.write(empty_repository, "blocks", "trouble_inline")
    server = start_server(
        empty_repository,
        args=["--watchdog-secs=1", "--http-thread-count=2", "--inline-exec-budget-us=1000000"],
    )
    # Each reactor has some of them; those of the blocked one are not answered.
    connections = [trouble.connect(server) for _ in range(6)]
    for _ in range(QUICK):
        assert trouble.infer(connections[0], "blocks")[0] == 200
    with trouble.closed_gate(empty_repository, "blocks"):
        trouble.send(connections[0], "blocks", trouble.WAIT, "blocks-the-loop")
        server.wait_for_log("watchdog: the reactor 'nereid-net-")
        server.wait_for_log("request: 'blocks-the-loop'")
        for connection in connections[1:]:
            connection.request("GET", "/v2/health/live?verbose")
        answered = select.select([connection.sock for connection in connections[1:]], [], [], 60)[0]
        replies = [connection.getresponse() for connection in connections[1:] if connection.sock in answered]
        assert replies and {reply.status for reply in replies} == {400}
        # On a slow machine the others may be late as well.
        for problem in trouble.problems(replies[0].read().decode())["reactors"]:
            assert re.fullmatch(r"the reactor 'nereid-net-\d' has not got on for \d+ s", problem)
    assert connections[0].getresponse().status == 200
    wait_for_status(trouble.connect(server), "/v2/health/live", 200)
    server.wait_for_log("gets on again")


def test_systemd_is_not_told_that_a_server_with_a_stuck_instance_is_alive(start_server, empty_repository, tmp_path):
    trouble.write(empty_repository, "stuck")
    manager = NotifySocket(tmp_path / "notify")
    environment = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "300000"}
    server = start_server(empty_repository, args=["--watchdog-execution-secs=1"], env=environment)
    assert manager.receive().startswith("READY=1")
    assert manager.receive() == "WATCHDOG=1"
    blocked = trouble.connect(server)
    complaint = "the service manager is not told that the server is alive"
    with trouble.closed_gate(empty_repository, "stuck"):
        trouble.send(blocked, "stuck", trouble.WAIT)
        server.wait_for_log(complaint)
        manager.waiting()
        servers.wait_until(lambda: server.log.count(complaint) >= 3, "more checks that fail")
        assert manager.waiting() == []
    assert blocked.getresponse().status == 200
    assert manager.receive() == "WATCHDOG=1"


def test_reasons_are_given_to_those_who_ask_for_them_alone(start_server, empty_repository):
    trouble.write(empty_repository, "fine")
    models.write_model(empty_repository, "broken", 'backend: "there_is_none"\n')
    server = start_server(empty_repository, args=["--exit-on-error=false"], wait=False)
    connection = servers.wait_until(lambda: server.is_live() and trouble.connect(server), "a server")
    servers.wait_until(lambda: trouble.get(connection, "/v2/models/fine/ready")[0] == 200, "the model")
    for path in ("/v2/health/live", "/v2/models/fine/ready"):
        assert trouble.get(connection, path) == (200, "")
        for query in ("?verbose", "?verbose=true", "?a=b&verbose=1"):
            status, body = trouble.get(connection, path + query)
            assert status == 200 and trouble.problems(body) == {}, body
        assert trouble.get(connection, path + "?verbose=false") == (200, "")
    assert trouble.get(connection, "/v2/health/ready") == (400, "")
    status, body = trouble.get(connection, "/v2/health/ready?verbose")
    assert status == 400
    assert trouble.problems(body) == {"models": ["model 'broken' version 1 is UNAVAILABLE"]}
    status, body = trouble.get(connection, "/v2/models/broken/versions/1/ready?verbose")
    assert (status, json.loads(body)["ready"]) == (400, False) and trouble.problems(body)["state"]
    assert trouble.get(connection, "/v2/models/nobody/ready?verbose")[0] == 404
