# SPDX-License-Identifier: Apache-2.0
"""The balancers' files of deploy/proxies, with three replicas behind each of the real programs. proxies_run.py does the
same for as long as it is told."""

import concurrent.futures
import http.server
import itertools
import queue
import re
import resource
import socketserver
import threading
import urllib.error
import urllib.request

import balancers
import pytest
import tritonclient.grpc
import traffic
from harness import server as servers

pytestmark = pytest.mark.newer


@pytest.fixture(scope="module")
def replicas(require_server, tmp_path_factory):
    if servers.is_sanitized():
        pytest.skip("what is killed and drained at full load must not be slowed down")
    if not servers.has_backend("python"):
        pytest.skip("the build has no Python backend")
    if all(map(balancers.missing, balancers.KINDS)):
        pytest.skip(f"deploy/proxies is NOT tested: {balancers.missing('haproxy')}")
    made = traffic.Replicas(tmp_path_factory.mktemp("replicas"))
    yield made
    made.stop()


@pytest.fixture(scope="module", params=balancers.KINDS)
def kind(request):
    if reason := balancers.missing(request.param):
        pytest.skip(f"deploy/proxies is NOT tested with it: {reason}")
    return request.param


@pytest.fixture(scope="module")
def balancer(kind, replicas, tmp_path_factory):
    made = balancers.Balancer(kind, tmp_path_factory.mktemp(kind), replicas.ports)
    try:
        # Those that ask for health do so first.
        for number in (1, 2, 3):
            traffic.returns(made, number)
        yield made
    finally:
        made.stop()


def test_the_program_accepts_the_file_as_it_is(kind, tmp_path):
    accepted, said = balancers.check(kind, tmp_path, balancers.placed(kind, balancers.shipped(kind), tmp_path))
    assert accepted, said


def test_the_program_refuses_a_file_with_a_mistake(kind, tmp_path):
    text = balancers.placed(kind, balancers.shipped(kind), tmp_path)
    wrong = text.replace({"haproxy": "leastconn", "nginx": "least_conn", "envoy": "LEAST_REQUEST"}[kind], "least_of_all")
    assert not balancers.check(kind, tmp_path, wrong)[0]


def test_nginx_has_a_descriptor_for_every_connection(tmp_path):
    if reason := balancers.missing("nginx"):
        pytest.skip(f"deploy/proxies is NOT tested with it: {reason}")
    text = balancers.placed("nginx", balancers.shipped("nginx"), tmp_path)
    said = "worker_connections exceed open file resource limit"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # As a shell or a container may start it.
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        accepted, words = balancers.check("nginx", tmp_path, text)
        assert accepted and said not in words, words
        # What nginx says where there are too few.
        fewer = re.sub(r"worker_rlimit_nofile \d+;", "", text)
        assert said in balancers.check("nginx", tmp_path, fewer)[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_requests_of_one_connection_reach_all_replicas(balancer):
    for protocol in ("http", "grpc"):
        caller = traffic.Caller(protocol, balancer)
        assert {caller.number(n) for n in range(60)} == {1, 2, 3}, protocol
        caller.close()


def test_a_sequence_stays_with_its_replica_and_others_go_elsewhere(balancer):
    for protocol in ("http", "grpc"):
        callers = [traffic.Caller(protocol, balancer) for _ in range(2)]
        used = set()
        for sequence in range(901, 931):
            # As if a client had lost its connection in between.
            answers = [callers[n % 2].step(sequence, n, start=n == 1, end=n == 4) for n in range(1, 5)]
            assert [total for total, _ in answers] == [1, 3, 6, 10]
            assert len({replica for _, replica in answers}) == 1
            used.add(answers[0][1])
        assert used == {1, 2, 3}, protocol
        for caller in callers:
            caller.close()


def test_the_sequences_of_a_stream_stay_with_one_replica(balancer):
    """A stream is one request for a balancer; its metadata are those with which it was opened."""
    answers = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(balancer.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)), headers={traffic.HEADER: "977"})
        caller = traffic.Caller("grpc", balancer)
        # The second half comes by other means and finds the sequence.
        for n in range(1, 4):
            client.async_stream_infer("sum", [caller.tensor(n, [1, 1])], sequence_id=977, sequence_start=n == 1)
        got = [answers.get(timeout=30) for _ in range(3)]
        assert [error for _, error in got] == [None] * 3
        totals = [result.as_numpy("OUTPUT0").ravel().tolist() for result, _ in got]
        assert [total for total, _ in totals] == [1, 3, 6] and len({replica for _, replica in totals}) == 1
        assert caller.step(977, 4, end=True) == [10, totals[0][1]]
        caller.close()


def test_a_replica_that_drains_loses_no_request(balancer, replicas):
    with traffic.Traffic(balancer) as load:
        load.go_on()
        traffic.drained(replicas, 1)
        load.go_on(without=1)
    load.check_answers(replicas)
    # No sequence in progress is lost. The others than HAProxy do not know that a replica begins no new ones while it finishes
    # those that it has: it refuses them.
    refused = [] if balancer.kind == "haproxy" else load.all("broken")
    assert set(refused) <= {None}, load.all("failures")
    assert len(load.all("failures")) == len(refused), load.all("failures")
    assert all("-sequence-" in failure and "503" in failure or "UNAVAILABLE" in failure for failure in load.all("failures"))
    replicas.replace(1)
    traffic.returns(balancer, 1)


def test_a_killed_replica_loses_what_it_had_in_flight_and_nothing_else(balancer, replicas):
    with traffic.Traffic(balancer) as load:
        load.go_on()
        traffic.killed(replicas, 2)
        load.go_on(without=2)
    load.check_answers(replicas)
    assert load.lost_by_others(replicas, 2) == []
    # Each worker has one request in flight, and may send one more before the balancer sees that the connection is gone.
    assert [worker.failures for worker in load.workers if len(worker.failures) > 2] == []
    assert set(load.all("broken")) <= {2, None}, load.all("failures")
    replicas.replace(2)
    traffic.returns(balancer, 2)


class Vanishing(http.server.BaseHTTPRequestHandler):
    """Is ready, and closes the connection on which a request has arrived."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.arrived.put(self.path)
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def vanishing():
    """Three replicas that do not answer, and the queue of what they were sent."""
    arrived, running = queue.Queue(), []
    for _ in range(3):
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Vanishing)
        server.daemon_threads, server.arrived = True, arrived
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        running.append(server)
    yield running, arrived
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("sequence", ["", "7"], ids=["request", "sequence"])
def test_a_request_that_was_sent_is_not_sent_again(kind, vanishing, tmp_path, sequence):
    running, arrived = vanishing
    made = balancers.Balancer(kind, tmp_path, [(server.server_address[1], 1) for server in running])
    try:
        headers = {traffic.HEADER: sequence} if sequence else {}
        numbers = itertools.count()

        def fails(_=None):
            url = f"http://{made.http}/v2/models/{next(numbers)}/infer"
            request = urllib.request.Request(url, b"{}", headers, method="POST")
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request, timeout=30)
            return caught.value.code >= 500

        # Until health was asked for, there is nobody to send to.
        servers.wait_until(lambda: fails() and not arrived.empty(), "a request to arrive")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert all(pool.map(fails, range(12)))
        paths = [arrived.get() for _ in range(arrived.qsize())]
        assert len(paths) == len(set(paths))
    finally:
        made.stop()
