# SPDX-License-Identifier: Apache-2.0
"""Sequences whose requests are executed again and again; each test names its sentences in docs/scheduling.md."""

import concurrent.futures
import queue
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpc
from harness import models, python_models
from harness import server as servers
from harness.isolation import ISOLATED

# Gives a request back until it has been executed as often as its input says. Padding never has enough, and each
# execution lasts as long as the model's parameter says. The file "seen_ID" shows that a request has been executed.
COUNTS = """
class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.delay = float(parameters["delay"]["string_value"])
        self.done, self.folder = {}, args["model_repository"]

    def execute(self, requests):
        responses = []
        time.sleep(self.delay)
        for request in requests:
            name, wanted = request.request_id(), pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy().item()
            open(os.path.join(self.folder, f"seen_{name}"), "w").close()
            self.done[name] = self.done.get(name, 0) + 1
            if wanted == 0 or self.done[name] < wanted:
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                responses.append(None)
            else:
                value = np.full((1, 1), self.done.pop(name), np.int32)
                responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value)]))
        return responses
"""


def write_counts(repository, batching="", delay_s=0):
    extra = f"sequence_batching {{ iterative_sequence: true {batching} }}\n"
    extra += f'parameters {{ key: "delay" value {{ string_value: "{delay_s}" }} }}\n'
    python_models.write(repository, "counts", COUNTS, datatype="INT32", dims=(1,), max_batch_size=4, extra=extra)


@pytest.fixture
def start(start_server, empty_repository):
    if not servers.has_backend("python"):
        pytest.skip("no backend python here")
    return lambda: start_server(empty_repository, args=["--exit-timeout-secs=1"], env=python_models.ENVIRONMENT)


def count(client, name, wanted, **sequence):
    tensor = grpc.InferInput("INPUT0", [1, 1], "INT32")
    tensor.set_data_from_numpy(np.full((1, 1), wanted, np.int32))
    return client.infer("counts", [tensor], request_id=name, **sequence).as_numpy("OUTPUT0").item()


def test_padding_that_is_given_back_is_over(start, empty_repository):
    """S-18, S-31: sequences of different lengths leave idle slots among them, which the model wants again."""
    write_counts(empty_repository, delay_s=0.005)
    server = start()
    with grpc.InferenceServerClient(server.grpc) as client, concurrent.futures.ThreadPoolExecutor(6) as pool:
        wanted = [1, 9, 4, 12, 2, 7, 3, 15, 5, 8]
        counted = [pool.submit(count, client, str(i), times) for i, times in enumerate(wanted)]
        assert [one.result(60 * servers.SLOWNESS) for one in counted] == wanted
    assert server.is_live()


@pytest.mark.parametrize("isolation", ["", ISOLATED], ids=["within", "isolated"])
def test_padding_of_a_backend_is_over(start_server, empty_repository, isolation):
    """S-18, S-31: the backend's own count of padding begins at zero, so it is given back only if it is asked for."""
    if not servers.has_backend("iterative_sequence"):
        pytest.skip("no backend iterative_sequence here")
    models.write_model(empty_repository, "m", (
        'backend: "iterative_sequence"\nmax_batch_size: 4\nmodel_transaction_policy { decoupled: true }\n'
        'input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        'output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
        "sequence_batching { iterative_sequence: true }\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n"
        'model_warmup [ { name: "w" batch_size: 2 count: 3 inputs { key: "INPUT" value { data_type: TYPE_INT32 '
        'dims: [ 1 ] input_data_file: "nine" } } } ]\n'
        'parameters { key: "reschedule_delay_ms" value: { string_value: "1" } }\n' + isolation))
    (empty_repository / "m" / "warmup").mkdir()
    (empty_repository / "m" / "warmup" / "nine").write_bytes(np.int32(9).tobytes())
    server = start_server(empty_repository)
    received = []
    done = threading.Semaphore(0)

    def answered(result, error):
        received.append(error or result.as_numpy("OUTPUT").item())
        done.release()

    with grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(answered)
        # After a warm-up the backend believes that a request of the id 0, which padding has, wants more.
        for wanted in (2, 5, 3):
            tensor = grpc.InferInput("INPUT", [1, 1], "INT32")
            tensor.set_data_from_numpy(np.full((1, 1), wanted, np.int32))
            client.async_stream_infer("m", [tensor])
        for _ in range(2 + 5 + 3):
            assert done.acquire(timeout=60 * servers.SLOWNESS)
        client.stop_stream()
    assert sorted(received) == [0, 0, 0, 1, 1, 1, 2, 2, 3, 4]
    assert server.is_live()


@pytest.mark.parametrize("batching", ["", "max_sequence_idle_microseconds: 100000"], ids=["default", "100 ms"])
def test_an_execution_takes_as_long_as_it_takes(start, empty_repository, batching):
    """S-27, S-36: a sequence with a request at its model is not idle."""
    write_counts(empty_repository, batching, delay_s=1.2 if not batching else 0.3)
    server = start()
    with grpc.InferenceServerClient(server.grpc) as client:
        assert count(client, "slow", 2) == 2


def test_oldest_keeps_the_order_of_answers_of_continued_sequences(start, empty_repository):
    """S-26, S-34: also that of a request without START, which stands in no line before it is executed."""
    write_counts(empty_repository, "oldest { max_candidate_sequences: 4 preserve_ordering: true }", delay_s=0.005)
    server = start()
    with grpc.InferenceServerClient(server.grpc) as client:
        answers = queue.Queue()

        def send(name, wanted, sequence, is_start):
            tensor = grpc.InferInput("INPUT0", [1, 1], "INT32")
            tensor.set_data_from_numpy(np.full((1, 1), wanted, np.int32))
            call = client.async_infer(
                "counts", [tensor], lambda result, error: answers.put((name, result, error)), request_id=name,
                sequence_id=sequence, sequence_start=is_start)
            seen = empty_repository / "counts" / f"seen_{name}"
            servers.wait_until(seen.exists, f"{name} is executed")
            return call

        endless = [send("first", 10**9, 1, True), send("second", 10**9, 2, True)]
        send("continued", 1, 2, False)
        # Once others have been executed twice more, an answer that does not wait is here.
        for _ in range(2):
            seen = empty_repository / "counts" / "seen_first"
            seen.unlink()
            servers.wait_until(seen.exists, "another execution")
        assert client.is_model_ready("counts")
        assert answers.empty(), "an answer overtook one that came first"
        for call in endless:
            call.cancel()
        got = [answers.get(timeout=60 * servers.SLOWNESS) for _ in range(3)]
        answered = {name: error or result for name, result, error in got}
    assert answered["continued"].as_numpy("OUTPUT0").item() == 1
    assert answered["first"].status() == answered["second"].status() == "StatusCode.CANCELLED"
