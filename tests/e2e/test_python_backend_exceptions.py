# SPDX-License-Identifier: Apache-2.0
"""Whatever a Python model raises, its clients are told, nobody waits for ever, and the worker goes on."""

import queue

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from harness import python_models
from harness import server as servers
from tritonclient.utils import InferenceServerException

LENIENT = ("--exit-on-error=false", "--strict-readiness=false")

READY = """
class TritonPythonModel:
    def is_ready(self):
        what = open(os.path.join(os.path.dirname(__file__), "ready")).read()
        if what != "yes":
            raise {"exit": SystemExit, "cancelled": asyncio.CancelledError, "interrupt": KeyboardInterrupt}[what]
        return True
""" + python_models.IDENTITY.split(":\n", 1)[1]


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for is_async in (False, True):
        for is_decoupled in (False, True):
            name = ("async" if is_async else "plain") + ("_stream" if is_decoupled else "")
            python_models.write_runner(folder, name, is_async, is_decoupled)
    with servers.running(folder, log_dir=tmp_path_factory.mktemp("server"), env=python_models.ENVIRONMENT) as running:
        yield running


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m").mkdir()
    return tmp_path / "m"


@pytest.fixture(autouse=True)
def no_worker_ends(request):
    """Where the models of this file run, the same workers are there after each test."""
    if "server" not in request.fixturenames:
        yield
        return
    server = request.getfixturevalue("server")
    before = {worker.pid for worker in python_models.workers(server)}
    yield
    assert {worker.pid for worker in python_models.workers(server)} == before


def error_of(server, model, code):
    with pytest.raises(InferenceServerException) as raised:
        python_models.run(server, model, code)
    return raised.value.message()


def stream(server, model, code):
    """The texts of the responses, and the error with which they end or None."""
    answers = queue.Queue()
    texts = []
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        tensor = grpcclient.InferInput("INPUT0", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([code.encode()], object))
        client.async_stream_infer(model, [tensor], enable_empty_final_response=True)
        try:
            while True:
                result, error = answers.get(timeout=60)
                if error is not None:
                    return texts, error.message()
                if result.get_response().outputs:
                    texts.append(result.as_numpy("OUTPUT0")[0].decode())
                if result.get_response().parameters["triton_final_response"].bool_param:
                    return texts, None
        finally:
            client.stop_stream(cancel_requests=True)


# --- Texts ---

SURROGATE = r"""text = json.loads('"\ud800 is no text"')"""


@pytest.mark.parametrize("code", [
    "raise ValueError(text)",
    "return pb_utils.InferenceResponse(error=pb_utils.TritonError(text))",
    "raise pb_utils.TritonModelException(text)",
])
@pytest.mark.parametrize("model", ["plain", "async"])
def test_an_error_with_half_a_surrogate_pair_is_told(server, model, code):
    assert r"\ud800 is no text" in error_of(server, model, SURROGATE + "\n" + code)


@pytest.mark.parametrize("code", [
    "raise ValueError(text)",
    "request.get_response_sender().send(pb_utils.InferenceResponse(error=pb_utils.TritonError(text)), 1)",
])
@pytest.mark.parametrize("model", ["plain_stream", "async_stream"])
def test_so_is_one_in_a_stream(server, model, code):
    texts, error = stream(server, model, SURROGATE + "\n" + code)
    assert texts == [] and r"\ud800 is no text" in error


def test_a_log_message_and_a_description_with_half_a_surrogate_pair_are_written(server):
    code = SURROGATE + """
pb_utils.Logger.log_error("logged: " + text)
pb_utils.MetricFamily("py_odd", text, pb_utils.MetricFamily.GAUGE)
return say("done")"""
    assert python_models.run(server, "plain", code) == "done"
    servers.wait_until(lambda: r"logged: \\ud800 is no text" in server.log, "the message")


def test_a_name_with_half_a_surrogate_pair_is_an_error_of_its_request(server):
    code = SURROGATE + """
return pb_utils.InferenceRequest(model_name=text, requested_output_names=["OUTPUT0"],
                                 inputs=request.inputs()).exec()"""
    assert "UnicodeEncodeError" in error_of(server, "plain", code)
    assert "UnicodeEncodeError" in error_of(server, "plain", SURROGATE + "\nreturn say(text)")


@pytest.mark.parametrize("model", ["plain", "async"])
def test_an_exception_without_a_text_is_told_by_its_type(server, model):
    assert "NoText: (its text cannot be told: RuntimeError)" in error_of(server, model, "raise NoText")
    assert "SyntaxError: " in error_of(server, model, 'raise SyntaxError("odd", ("file", "x", "y", b"z"))')


def test_a_model_that_cannot_start_says_why_whatever_the_text(start_server, folder):
    for name, raised in (("surrogate", r'ValueError("cannot read \ud800")'), ("exits", "SystemExit(3)")):
        python_models.write(folder, name, f"""
class TritonPythonModel:
    def initialize(self, args):
        raise {raised}
""")
    python_models.write(folder, "completes", """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        sys.exit("not complete")
""")
    server = python_models.start(start_server, folder, *LENIENT)
    with httpclient.InferenceServerClient(server.http) as client:
        reasons = {e["name"]: e["reason"] for e in client.get_model_repository_index()}
    assert r"ValueError: cannot read \ud800" in reasons["surrogate"]
    assert "SystemExit: 3\n\nAt:\n" in reasons["exits"]
    assert "SystemExit: not complete" in reasons["completes"]


# --- Coroutines of decoupled models ---


@pytest.mark.parametrize("code, expected", [
    ("raise ValueError('odd')", "ValueError: odd"),
    # The second error refers to the first, whose frames refer to the senders.
    ("""
last = None
for attempt in range(2):
    try:
        raise OSError("cannot reach the database")
    except OSError as error:
        last = error
raise RuntimeError("gave up") from last""", "RuntimeError: gave up"),
    ("await asyncio.sleep(0)\nraise TimeoutError('late')", "TimeoutError: late"),
    ("asyncio.current_task().cancel()\nawait asyncio.sleep(3600)", "CancelledError: the coroutine was cancelled"),
    ("sys.exit(4)", "SystemExit: 4"),
])
@pytest.mark.parametrize("before", [0, 1])
def test_a_coroutine_that_fails_tells_the_client_of_its_stream(server, code, expected, before):
    sends = "request.get_response_sender().send(say('one'))\n" * before
    texts, error = stream(server, "async_stream", sends + code)
    assert texts == ["one"] * before
    assert error is not None and expected in error
    assert "Failed to process the request(s) for model 'async_stream_0" in error
    assert stream(server, "async_stream", "request.get_response_sender().send(say('next'), 1)") == (["next"], None)


def test_what_a_coroutine_has_completed_stays_so_when_it_fails(server):
    code = "request.get_response_sender().send(say('all'), 1)\nraise ValueError('after the last')"
    assert stream(server, "async_stream", code) == (["all"], None)
    servers.wait_until(lambda: "ValueError: after the last" in server.log, "the error in the log")


def test_a_response_that_cannot_be_written_leaves_no_client_waiting(server):
    code = SURROGATE + """
sender = request.get_response_sender()
def send():
    try:
        sender.send(say(text), 1)
    except UnicodeEncodeError as error:
        sender.send(say("instead"))
thread = threading.Thread(target=send)
thread.start()"""
    assert stream(server, "plain_stream", code)[0] == ["instead"]


# --- What ends a process or a task elsewhere ---


@pytest.mark.parametrize("model", ["plain", "async"])
@pytest.mark.parametrize("raised, expected", [
    ("sys.exit(3)", "SystemExit: 3"),
    ("raise KeyboardInterrupt('odd')", "KeyboardInterrupt: odd"),
    ("raise asyncio.CancelledError('odd')", "CancelledError"),
    ("raise GeneratorExit('odd')", "GeneratorExit: odd"),
])
def test_an_exception_of_any_kind_is_an_error_of_its_request(server, model, raised, expected):
    assert expected in error_of(server, model, raised)
    assert python_models.run(server, model, "return say('well')") == "well"


@pytest.mark.parametrize("ends", ["sys.exit(5)", "asyncio.get_running_loop().stop()"])
def test_a_task_that_ends_the_event_loop_does_not_end_it_for_others(server, ends):
    code = f"""
async def end():
    {ends}
task = asyncio.get_running_loop().create_task(end())
await asyncio.sleep(0.01)
return say("went on")"""
    assert python_models.run(server, "async", code) == "went on"
    assert python_models.run(server, "async", "await asyncio.sleep(0.01)\nreturn say('well')") == "well"


def test_a_request_list_that_the_model_has_filled_with_something_else_ends_nothing(server):
    code = """
frame = sys._getframe()
while frame.f_code.co_name != "execute":
    frame = frame.f_back
frame.f_locals["requests"][:] = [5]
raise ValueError("odd")"""
    assert "ValueError: odd" in error_of(server, "plain", code)


def test_readiness_that_raises_anything_is_no_and_the_next_answer_counts(start_server, folder):
    says = python_models.write(folder, "ready", READY) / "1" / "ready"
    says.write_text("yes")
    server = python_models.start(start_server, folder, "--strict-readiness=false")
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        for what in ("yes", "exit", "yes", "cancelled", "yes", "interrupt", "yes"):
            says.write_text(what)
            assert client.is_model_ready("ready") is (what == "yes"), what
    assert len(python_models.workers(server)) == 1


def test_a_model_that_exits_in_finalize_is_unloaded(start_server, folder):
    python_models.write(folder, "exits", python_models.IDENTITY + """
    def finalize(self):
        sys.exit(3)
""")
    server = python_models.start(start_server, folder, "--model-control-mode=explicit", "--load-model=*")
    with httpclient.InferenceServerClient(server.http, network_timeout=60) as client:
        client.unload_model("exits")
        servers.wait_until(lambda: python_models.workers(server) == [], "the worker to end")
    servers.wait_until(lambda: "SystemExit: 3" in server.log, "the error in the log")
