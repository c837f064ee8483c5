# SPDX-License-Identifier: Apache-2.0
"""Three replicas, and clients that ask them through a balancer, whose every answer is checked.

Each replica serves `number`, which answers a number with itself and the replica's own, and `sum`, a model of sequences
that answers with the sum of the sequence's numbers and the replica's own. Both write what they execute to a file, so
that one can see whether a request was executed twice.
"""

import collections
import itertools
import threading
import time

import numpy as np
import tritonclient.grpc
import tritonclient.http
from harness import models, python_models
from harness import server as servers

DRAIN_S = 2
STEPS = 8  # of a sequence
HEADER = "x-sequence-id"
EXECUTING = """
class TritonPythonModel:
    def initialize(self, args):
        self.replica = int(os.environ["REPLICA"])
        self.file = os.open(os.environ["EXECUTED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.sums = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        value = int(pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy().ravel()[0])
        os.write(self.file, f"{self.replica} {request.request_id()}\\n".encode())
        result = np.array([self.result(request, value), self.replica], np.int64).reshape(SHAPE)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", result)])

"""
NUMBER = """
    def result(self, request, value):
        return value
"""
SUM = """
    def result(self, request, value):
        sequence = request.correlation_id()
        if request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START:
            self.sums[sequence] = 0
        self.sums[sequence] += value
        return self.sums[sequence]
"""
TENSORS = (
    f"input [ {models.tensor_config('INPUT0', 'INT64', [1])} ]\noutput [ {models.tensor_config('OUTPUT0', 'INT64', [2])} ]\n"
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
)
SEQUENCES = (
    "sequence_batching { oldest { max_candidate_sequences: 256 } max_sequence_idle_microseconds: 20000000\n"
    'control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] } ] }\n'
)


def write_models(path):
    python_models.write(path, "number", EXECUTING.replace("SHAPE", "2") + NUMBER, "max_batch_size: 0\n" + TENSORS)
    python_models.write(path, "sum", EXECUTING.replace("SHAPE", "1, 2") + SUM, "max_batch_size: 1\n" + TENSORS + SEQUENCES)


class Replicas:
    """Three servers on ports of their own, of which each can be ended and started again."""

    def __init__(self, folder):
        self._folder = folder
        write_models(folder / "models")
        self.executed_path = folder / "executed"
        self.executed_path.touch()
        self.servers = [self._start(number) for number in (1, 2, 3)]
        self.ports = [(server.http_port, server.grpc_port) for server in self.servers]

    def _start(self, number, ports=None):
        environment = {**python_models.ENVIRONMENT, "REPLICA": str(number), "EXECUTED": str(self.executed_path)}
        return servers.start(
            self._folder / "models", args=[f"--drain-secs={DRAIN_S}", "--exit-timeout-secs=30"], env=environment,
            log_dir=self._folder, ports=ports)  # fmt: skip

    def __getitem__(self, number):
        return self.servers[number - 1]

    def replace(self, number):
        """Starts a replica again, on the ports of the one that has ended."""
        old = self[number]
        assert old.process.poll() is not None
        ports = (old.http_port, old.grpc_port, old.metrics_port)
        self.servers[number - 1] = self._start(number, ports)

    def executed(self):
        """The replicas that executed each request, by its id."""
        found = collections.defaultdict(list)
        for line in self.executed_path.read_text().splitlines():
            replica, key = line.split(" ", 1)
            found[key].append(int(replica))
        return found

    def stop(self):
        for server in self.servers:
            # All of them drain at the same time.
            server.signal()
        for server in self.servers:
            server.wait()


class Caller:
    """A client of the balancer over one protocol, which sends one request at a time."""

    def __init__(self, kind, balancer):
        self.module = {"http": tritonclient.http, "grpc": tritonclient.grpc}[kind]
        self.client = self.module.InferenceServerClient(balancer.http if kind == "http" else balancer.grpc)

    def tensor(self, value, shape):
        made = self.module.InferInput("INPUT0", shape, "INT64")
        made.set_data_from_numpy(np.array([value], np.int64).reshape(shape))
        return made

    def number(self, value, request_id=""):
        """The replica that answered."""
        result = self.client.infer("number", [self.tensor(value, [1])], request_id=request_id)
        answer, replica = result.as_numpy("OUTPUT0").ravel().tolist()
        assert answer == value
        return replica

    def step(self, sequence, value, request_id="", start=False, end=False):
        """The sum of the sequence, and the replica that has it."""
        result = self.client.infer(
            "sum", [self.tensor(value, [1, 1])], request_id=request_id, sequence_id=sequence, sequence_start=start,
            sequence_end=end, headers={HEADER: str(sequence)})  # fmt: skip
        return result.as_numpy("OUTPUT0").ravel().tolist()

    def close(self):
        self.client.close()


class Worker(threading.Thread):
    """Sends requests, or sequences, until told to end."""

    _sequences = itertools.count(1000 + int(time.time()) % 1_000_000 * 1000)

    def __init__(self, name, kind, balancer, end):
        super().__init__(name=name, daemon=True)
        self.caller = Caller(kind, balancer)
        self.end = end
        self.answered = []  # (id, replica)
        self.failures = []  # texts
        self.failed = []  # ids
        self.broken = []  # the replicas on which sequences that failed had begun; None if they had not begun
        self.wrong = []  # answers that must not be
        self.sequences = 0  # whole ones

    def run(self):
        work = self.one_sequence if "sequence" in self.name else self.one_request
        for n in itertools.count():
            if self.end.is_set():
                break
            work(n)
        self.caller.close()

    def note(self, key, error):
        self.failed.append(key)
        (self.wrong if isinstance(error, AssertionError) else self.failures).append(f"{self.name}: {type(error).__name__} {error}")

    def one_request(self, n):
        key = f"{self.name}-{n}"
        try:
            self.answered.append((key, self.caller.number(n, key)))
        except Exception as error:  # whatever the client raises
            self.note(key, error)

    def one_sequence(self, n):
        sequence, began_on, total = next(self._sequences), None, 0
        for step in range(STEPS):
            key = f"{self.name}-{n}-{step}"
            try:
                total += step + 1
                said, replica = self.caller.step(sequence, step + 1, key, step == 0, step == STEPS - 1)
                self.answered.append((key, replica))
                began_on = began_on or replica
                assert (said, replica) == (total, began_on), (said, total, replica, began_on)
            except Exception as error:  # whatever the client raises
                self.note(key, error)
                self.broken.append(began_on)
                return
        self.sequences += 1


class Traffic:
    """Requests and sequences over both protocols, for the length of a with block."""

    def __init__(self, balancer, workers=2):
        self._end = threading.Event()
        self._names = f"{balancer.kind}-{time.monotonic_ns()}"
        self.workers = [
            Worker(f"{self._names}-{kind}-{what}-{number}", kind, balancer, self._end)
            for kind in ("http", "grpc")
            for what in ("request", "sequence")
            for number in range(workers)
        ]

    def __enter__(self):
        for worker in self.workers:
            worker.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        for worker in self.workers:
            worker.join(120)
            assert not worker.is_alive(), f"{worker.name} waits for an answer"

    def all(self, what):
        return list(itertools.chain.from_iterable(getattr(worker, what) for worker in self.workers))

    def by_replica(self):
        """How many were answered by each, by the end of a name: request or sequence of http or grpc."""
        counts = collections.Counter()
        for worker in self.workers:
            kind = "-".join(worker.name.split("-")[2:4])
            counts.update((kind, replica) for _, replica in list(worker.answered))
        return counts

    def go_on(self, count=20, without=None):
        """Waits until every kind of worker has got so many more answers from each replica but that one."""
        before = self.by_replica()
        kinds = {f"{kind}-{what}" for kind in ("http", "grpc") for what in ("request", "sequence")}
        expected = {(kind, replica) for kind in kinds for replica in (1, 2, 3) if replica != without}

        def have_got():
            now = self.by_replica()
            return all(now[key] - before[key] >= count for key in expected)

        try:
            servers.wait_until(have_got, "answers", timeout=60)
        except AssertionError:
            after = self.by_replica()
            raise AssertionError(f"{ {key: after[key] - before[key] for key in sorted(expected)} } "
                                 f"{self.all('failures')[:3]}") from None  # fmt: skip

    def check_answers(self, replicas):
        """That no answer is wrong, that each was executed, and that nothing was executed twice."""
        assert self.all("wrong") == []
        executed = replicas.executed()
        twice = [key for key, where in executed.items() if len(where) > 1 and key.startswith(self._names)]
        assert twice == []
        assert [key for key, replica in self.all("answered") if executed[key] != [replica]] == []

    def lost_by_others(self, replicas, number):
        """The ids of requests that failed, although another replica than this one executed them."""
        executed = replicas.executed()
        return [key for key in self.all("failed") if set(executed[key]) - {number}]


def drained(replicas, number):
    """Ends a replica as an orchestrator does, and waits for it."""
    replicas[number].signal()
    assert replicas[number].wait() == 0, replicas[number].tail()


def killed(replicas, number):
    replicas[number].process.kill()
    replicas[number].process.wait()


_probes = itertools.count(1)


def returns(balancer, number):
    """Waits until both protocols reach this replica again, with requests and with new sequences: balancers learn of each by
    itself, and a sequence that begins before moves when the hash gives it back."""
    for kind in ("http", "grpc"):
        caller = Caller(kind, balancer)
        servers.wait_until(lambda c=caller: c.number(7) == number, f"replica {number} to be asked again")
        servers.wait_until(
            lambda c=caller: c.step(next(_probes), 1, start=True, end=True)[1] == number, f"replica {number} to get sequences")
        caller.close()
