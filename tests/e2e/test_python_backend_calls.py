# SPDX-License-Identifier: Apache-2.0
"""What Python models do beside answering at once: many responses, requests to other models, metrics,
model control."""

import json
import queue
import re

import numpy as np
import psutil
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import models, python_models, wire
from harness import server as servers
from tritonclient.utils import InferenceServerException

DECOUPLED = "model_transaction_policy { decoupled: true }\n"

# IN says how many responses; a thread sends them after execute has returned.
REPEAT = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            count = int(request.inputs()[0].as_numpy()[0])
            threading.Thread(target=self.send, args=(request.get_response_sender(), count)).start()
        return None

    def send(self, sender, count):
        for i in range(count):
            sender.send(pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUTPUT0", np.full(2000, i, np.float32))], parameters={"i": i}))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# What happens to a decoupled request, by number.
ENDS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            what = int(request.inputs()[0].as_numpy()[0])
            sender = request.get_response_sender()
            one = pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.ones(1, np.float32))])
            if what == 0:
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            elif what == 1:
                sender.send(one, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
                try:
                    sender.send(one)
                except pb_utils.TritonModelException as error:
                    assert "Response sender has been closed" in str(error)
                    pb_utils.Logger.log_info("refused as it should")
            elif what == 2:
                sender.send(one)
                raise ValueError("after one")
            elif what == 3:
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("no", pb_utils.TritonError.NOT_FOUND)))
                sender.send(one, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            elif what == 4:
                sender.send(one)  # and forgets to say that this was all
            elif what == 5:
                threading.Thread(target=self.until_cancelled, args=(sender,)).start()
            elif what == 6:
                sender.send(one)
                os._exit(4)
        return None

    def until_cancelled(self, sender):
        one = pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.ones(1, np.float32))])
        sender.send(one)
        while not sender.is_cancelled():
            time.sleep(0.01)
        pb_utils.Logger.log_info("it was cancelled")
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

COROUTINE = """
class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            await asyncio.sleep(0.01)
            value = request.inputs()[0].as_numpy()
            request.get_response_sender().send(
                pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value + 1)]),
                pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# A model that is not decoupled and answers through its sender, now and after execute.
SENDER = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            value = request.inputs()[0].as_numpy().copy()
            response = pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value)])
            if value[0] == 0:
                responses.append(response)
                continue
            sender = request.get_response_sender()
            if value[0] == 1:
                sender.send(response, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
                try:
                    sender.send(response)
                    return 5
                except pb_utils.TritonModelException:
                    pass
            elif value[0] == 3:
                threading.Thread(target=self.until_cancelled, args=(sender, response)).start()
            else:
                threading.Timer(0.2, sender.send, (response, 1)).start()
            responses.append(None)
        return responses

    def until_cancelled(self, sender, response):
        pb_utils.Logger.log_info("the sender waits")
        while not sender.is_cancelled():
            time.sleep(0.01)
        pb_utils.Logger.log_info("the sender was cancelled")
        sender.send(response, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

BLS = """
class TritonPythonModel:
    def ask(self, request, model="id", name="INPUT0", **more):
        value = pb_utils.get_input_tensor_by_name(request, "INPUT0")
        return pb_utils.InferenceRequest(
            model_name=model, requested_output_names=["OUTPUT0"],
            inputs=[pb_utils.Tensor(name, value.as_numpy())], **more)

    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        what = int(request.inputs()[0].as_numpy()[0])
        if what == 1:
            response = self.ask(request, model="nobody").exec()
        elif what == 2:
            response = self.ask(request, name="WRONG").exec()
        elif what == 3:
            response = self.ask(request, model="errors").exec()
        elif what == 4:
            response = self.ask(request, model="repeat").exec()
        else:
            # Names often come out of BYTES tensors.
            response = self.ask(request, model=b"id", request_id="inner", correlation_id=3, timeout=9000000,
                                model_version=1, trace=request.trace(),
                                preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0)).exec()
        if response.has_error():
            assert response.output_tensors() == []
            return pb_utils.InferenceResponse(error=response.error())
        value = pb_utils.get_output_tensor_by_name(response, "OUTPUT0")
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", value.as_numpy() + 1)])
"""

BLS_ASYNC = """
class TritonPythonModel:
    async def execute(self, requests):
        responses = []
        for request in requests:
            value = request.inputs()[0].as_numpy()
            asked = [pb_utils.InferenceRequest(model_name="id", requested_output_names=["OUTPUT0"],
                                               inputs=[pb_utils.Tensor("INPUT0", value * i)]).async_exec()
                     for i in range(5)]
            total = sum(r.output_tensors()[0].as_numpy() for r in await asyncio.gather(*asked))
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", total)]))
        return responses
"""

BLS_STREAM = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            what = int(request.inputs()[0].as_numpy()[0])
            if what < 0:  # many that wait for the other model at the same time
                streams = [pb_utils.InferenceRequest(
                    model_name="repeat", requested_output_names=["OUTPUT0"],
                    inputs=[pb_utils.Tensor("INPUT0", np.array([count], np.float32))]
                ).exec(decoupled=True) for count in range(-what)]
                out = [sum(1 for r in stream if r.output_tensors()) for stream in streams]
                responses.append(pb_utils.InferenceResponse(
                    [pb_utils.Tensor("OUTPUT0", np.array(out, np.float32))]))
                continue
            ask = pb_utils.InferenceRequest(
                model_name="repeat" if what < 100 else "ends", requested_output_names=["OUTPUT0"],
                inputs=[pb_utils.Tensor("INPUT0", np.array([what if what < 100 else 5], np.float32))])
            answers = ask.exec(decoupled=True)
            if what >= 100:
                assert next(answers).output_tensors()[0].as_numpy()[0] == 1
                answers.cancel()
                rest = list(answers)
                out = [len(rest)]
            else:
                seen = [r.output_tensors()[0].as_numpy()[0] for r in answers if r.output_tensors()]
                again = [r.output_tensors()[0].as_numpy()[0] for r in answers if r.output_tensors()]
                assert seen == again
                out = seen
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", np.array(out, np.float32))]))
        return responses
"""

BLS_EARLY = """
class TritonPythonModel:
    def initialize(self, args):
        try:
            pb_utils.InferenceRequest(model_name="id", requested_output_names=["OUTPUT0"],
                inputs=[pb_utils.Tensor("INPUT0", np.ones(1, np.float32))]).exec()
        except pb_utils.TritonModelException as error:
            self.text = str(error)

    def execute(self, requests):
        ok = np.array([self.text == "BLS is only supported during the 'execute' function."], np.float32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", ok)]) for r in requests]
"""

METRICS = """
class TritonPythonModel:
    def initialize(self, args):
        make = pb_utils.MetricFamily
        self.families = [make("py_counter", "counts", make.COUNTER), make("py_gauge", "gauges", make.GAUGE),
                         make("py_histogram", "is one", make.HISTOGRAM)]
        counter, gauge, histogram = self.families
        self.counter = counter.Metric(labels={"a": "b"})
        self.gauge = gauge.Metric(labels={"a": "b"})
        self.histogram = histogram.Metric(labels={"a": "b"}, buckets=[1.0, 10.0])
        for bad in (lambda: counter.Metric(buckets=[1.0]), lambda: histogram.Metric(),
                    lambda: counter.Metric(labels=5), lambda: self.counter.increment(-1),
                    lambda: self.counter.set(3), lambda: self.gauge.observe(1)):
            try:
                bad()
            except pb_utils.TritonModelException as error:
                continue
            raise RuntimeError("was accepted")

    def execute(self, requests):
        responses = []
        for request in requests:
            value = float(request.inputs()[0].as_numpy()[0])
            self.counter.increment(value)
            self.gauge.set(-value)
            self.histogram.observe(value)
            out = np.array([self.counter.value(), self.gauge.value()], np.float32)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", out)]))
        return responses
"""

CONTROL = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            what = request.inputs()[0].as_numpy()[0].decode()
            try:
                if what == "ready":
                    out = pb_utils.is_model_ready("late")
                elif what == "version":
                    out = pb_utils.is_model_ready("late", "7")
                elif what == "load":
                    out = pb_utils.load_model("late")
                elif what == "unload":
                    out = pb_utils.unload_model("late", unload_dependents=True)
                elif what == "config":
                    out = pb_utils.load_model("late", config=json.dumps({
                        "backend": "python", "max_batch_size": 4,
                        "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
                        "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}))
                elif what == "missing":
                    out = pb_utils.load_model("nobody")
            except pb_utils.TritonModelException as error:
                out = str(error)
            responses.append(pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUTPUT0", np.array([str(out).encode()], object))]))
        return responses
"""

RESCHEDULED = """
class TritonPythonModel:
    def initialize(self, args):
        self.seen = 0

    def execute(self, requests):
        responses = []
        for request in requests:
            self.seen += 1
            if self.seen % 3:
                request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                responses.append(None)
            else:
                out = np.full((1, 1), self.seen, np.float32)
                responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", out)]))
        return responses
"""


# Processes that a model forks make requests, each at the same time as the others.
FORKS = """
import multiprocessing

def ask(number):
    value = np.full(5000, number, np.float32)
    for _ in range(20):
        request = pb_utils.InferenceRequest(model_name="id", requested_output_names=["OUTPUT0"],
            inputs=[pb_utils.Tensor("INPUT0", value)])
        result = pb_utils.get_output_tensor_by_name(request.exec(), "OUTPUT0").as_numpy()
        if not (result == value).all():
            return 0
    return number

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            count = int(request.inputs()[0].as_numpy()[0])
            with multiprocessing.get_context("fork").Pool(count) as pool:
                result = pool.map(ask, range(1, 2 * count + 1), 1)
            responses.append(pb_utils.InferenceResponse(
                [pb_utils.Tensor("OUTPUT0", np.array(result + [ask(77)], np.float32))]))
        return responses
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    path = tmp_path_factory.mktemp("python")
    python_models.write(path, "id", python_models.IDENTITY)
    python_models.write(path, "errors", "class TritonPythonModel:\n    def execute(self, requests):\n"
                                        "        raise ValueError('inner trouble')\n")
    for name, code in (("repeat", REPEAT), ("ends", ENDS), ("coroutine", COROUTINE)):
        python_models.write(path, name, code, extra=DECOUPLED)
    for name, code in (("sender", SENDER), ("bls", BLS), ("bls_async", BLS_ASYNC), ("early", BLS_EARLY),
                       ("bls_stream", BLS_STREAM), ("metrics", METRICS)):
        python_models.write(path, name, code)
    python_models.write(path, "once", RESCHEDULED)
    python_models.write(path, "forks", FORKS)
    python_models.write(path, "rescheduled", RESCHEDULED, dims=(1,), max_batch_size=1,
                        extra="sequence_batching { iterative_sequence: true }\n")
    return path


@pytest.fixture(scope="module")
def python_server(require_server, repository, tmp_path_factory):
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("server"),
                         env=python_models.ENVIRONMENT) as running:
        yield running


@pytest.fixture
def client(python_server):
    with grpcclient.InferenceServerClient(python_server.grpc) as made:
        yield made


def inputs(value, datatype="FP32"):
    tensor = grpcclient.InferInput("INPUT0", list(value.shape), datatype)
    tensor.set_data_from_numpy(value)
    return [tensor]


def number(value):
    return np.array([value], np.float32)


def infer(client, model, value, **options):
    return client.infer(model, inputs(value), **options).as_numpy("OUTPUT0")


class Stream:
    """A stream's responses of one request, until the one that is marked as final."""

    def __init__(self, client):
        self.client = client
        self.answers = queue.Queue()
        client.start_stream(callback=lambda result, error: self.answers.put((result, error)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop_stream(cancel_requests=True)

    def send(self, model, value):
        self.client.async_stream_infer(model, inputs(number(value)), enable_empty_final_response=True)

    def next(self):
        return self.answers.get(timeout=60)

    def all(self, model, value):
        self.send(model, value)
        results, errors = [], []
        while True:
            result, error = self.next()
            if error is not None:
                errors.append(error.message())
                # In a stream, an error does not say whether it was the last.
                return results, errors
            response = result.get_response()
            if response.outputs:
                results.append(result.as_numpy("OUTPUT0"))
            if response.parameters["triton_final_response"].bool_param:
                return results, errors


@pytest.mark.parametrize("count", [0, 1, 500])
def test_decoupled_responses_come_in_order_and_end(client, count):
    with Stream(client) as stream:
        results, errors = stream.all("repeat", count)
    assert errors == [] and [r[0] for r in results] == list(range(count))
    assert all(r.shape == (2000,) for r in results)


@pytest.mark.parametrize("what, count, error", [
    (0, 0, None), (1, 1, None), (2, 1, "ValueError: after one"), (3, 0, "no"), (4, 1, None)])
def test_how_decoupled_requests_end(client, what, count, error):
    with Stream(client) as stream:
        results, errors = stream.all("ends", what)
    assert len(results) == count
    assert (errors == []) if error is None else (error in errors[0])


def test_a_decoupled_worker_that_dies_ends_its_requests_and_comes_back(client):
    with Stream(client) as stream:
        results, errors = stream.all("ends", 6)
        assert len(results) == 1
        assert re.search(r"Stub process 'ends_0(_0)?' is not healthy: it exited with status 4", errors[0])
        assert stream.all("ends", 1)[1] == []


def test_a_client_that_leaves_is_noticed(client, python_server):
    with Stream(client) as stream:
        stream.send("ends", 5)
        assert stream.next()[1] is None
    servers.wait_until(lambda: "it was cancelled" in python_server.log, "the model to notice")


def test_coroutines_answer_while_others_wait(client):
    with Stream(client) as stream:
        for i in range(50):
            stream.send("coroutine", i)
        seen = set()
        while len(seen) < 50:
            result, error = stream.next()
            assert error is None
            if result.get_response().outputs:
                seen.add(result.as_numpy("OUTPUT0")[0])
    assert seen == {float(i + 1) for i in range(50)}


@pytest.mark.parametrize("way", ["infer", "generate", "unary", "stream"])
def test_a_sender_notices_a_client_that_leaves(client, python_server, way):
    """Also when the model has returned from execute, which releases the request."""
    counts = {line: python_server.log.count(line) for line in ("the sender waits", "the sender was cancelled")}

    def is_logged(line):
        return python_server.log.count(line) > counts[line]

    def wait_for_model():
        # A request that is cancelled before the model has it never gets there.
        servers.wait_until(lambda: is_logged("the sender waits"), "the request to be executed")

    if way == "unary":
        call = client.async_infer("sender", inputs(number(3)), lambda result, error: None)
        wait_for_model()
        call.cancel()
    elif way == "stream":
        with Stream(client) as stream:
            stream.send("sender", 3)
            wait_for_model()
            client.stop_stream(cancel_requests=True)
    else:
        body = '{"INPUT0": [3]}' if way == "generate" else json.dumps(
            {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [3]}]})
        with wire.Connection(python_server) as connection:
            connection.send(connection.encode("POST", f"/v2/models/sender/{way}", body.encode()))
            wait_for_model()
    servers.wait_until(lambda: is_logged("the sender was cancelled"), "the model to notice")


@pytest.mark.parametrize("what", [0, 1, 2])
def test_a_model_that_is_not_decoupled_may_answer_through_its_sender(client, what):
    assert infer(client, "sender", number(what))[0] == what


def test_requests_to_other_models(client):
    value = np.arange(10, 50010, dtype=np.float32)
    np.testing.assert_array_equal(infer(client, "bls", value), value + 1)


@pytest.mark.parametrize("what, expected", [
    (1, r"Model nobody - Error when running inference: Request for unknown model: 'nobody' is not found"),
    (2, r"unexpected inference input 'WRONG' for model 'id'"),
    (3, r"ValueError: inner trouble"),
    (4, r"Model repeat is using the decoupled. The current BLS request call doesn't support"),
])
def test_what_goes_wrong_in_another_model_is_told(client, what, expected):
    with pytest.raises(InferenceServerException, match=expected):
        infer(client, "bls", number(what))


def test_requests_to_other_models_in_parallel(client):
    np.testing.assert_array_equal(infer(client, "bls_async", number(3)), number(30))


def test_responses_of_decoupled_models_can_be_gone_through(client):
    np.testing.assert_array_equal(infer(client, "bls_stream", number(7)), np.arange(7, dtype=np.float32))
    assert infer(client, "bls_stream", number(0)).size == 0


def test_requests_to_decoupled_models_can_be_cancelled(client):
    assert infer(client, "bls_stream", number(100))[0] <= 1


def test_requests_to_other_models_are_only_for_execute(client):
    assert infer(client, "early", number(1))[0] == 1


def test_metrics_of_a_model(client, python_server):
    np.testing.assert_array_equal(infer(client, "metrics", number(5)), [5, -5])
    np.testing.assert_array_equal(infer(client, "metrics", number(2)), [7, -2])
    page = httpclient_get(python_server, "/metrics")
    assert 'py_counter{a="b"} 7' in page and 'py_gauge{a="b"} -2' in page
    assert 'py_histogram_bucket{a="b",le="1"} 0' in page and 'py_histogram_count{a="b"} 2' in page


def httpclient_get(server, path):
    import urllib.request

    with urllib.request.urlopen(f"http://{server.metrics}{path}", timeout=10) as reply:
        return reply.read().decode()


def test_an_iterative_sequence_comes_back_until_it_is_done(python_server):
    with httpclient.InferenceServerClient(python_server.http) as client:
        tensor = httpclient.InferInput("INPUT0", [1, 1], "FP32")
        tensor.set_data_from_numpy(np.ones((1, 1), np.float32))
        for turn in (1, 2):
            result = client.infer("rescheduled", [tensor], sequence_id=turn, sequence_start=True,
                                  sequence_end=True)
            assert result.as_numpy("OUTPUT0")[0, 0] == 3 * turn


def test_inputs_of_streams_stay_until_the_other_model_has_read_them(client):
    for _ in range(5):
        result = client.infer("bls_stream", inputs(np.array([-40], np.float32)))
        assert list(result.as_numpy("OUTPUT0")) == list(range(40))


def test_processes_that_a_model_forks_make_requests(client):
    for count in (4, 1, 8):
        result = client.infer("forks", inputs(np.array([count], np.float32)), client_timeout=60)
        assert list(result.as_numpy("OUTPUT0")) == [*range(1, 2 * count + 1), 77]


# Nothing would answer the request otherwise.
def test_a_request_that_cannot_come_again_is_answered_with_the_reason(client):
    with pytest.raises(InferenceServerException, match="RESCHEDULE"):
        client.infer("once", inputs(np.ones(1, np.float32)))


def test_a_model_controls_others(start_server, tmp_path):
    folder = tmp_path / "m"
    python_models.write(folder, "late", python_models.IDENTITY)
    python_models.write(folder, "control", CONTROL, datatype="BYTES")
    server = start_server(folder, env=python_models.ENVIRONMENT,
                          args=["--model-control-mode=explicit", "--load-model=control"])
    with grpcclient.InferenceServerClient(server.grpc) as client:
        def ask(what):
            value = np.array([what.encode()], object)
            return client.infer("control", inputs(value, "BYTES")).as_numpy("OUTPUT0")[0].decode()

        assert ask("load") == "None" and ask("ready") == "True" and client.is_model_ready("late")
        assert "Failed to check model readiness" in ask("version")
        assert ask("unload") == "None"
        servers.wait_until(lambda: not client.is_model_ready("late"), "the model to go")
        assert ask("config") == "None"
        assert client.get_model_config("late", as_json=True)["config"]["max_batch_size"] == 4
        assert "Failed to load model" in ask("missing")
        assert psutil.Process(server.pid).is_running()
