# SPDX-License-Identifier: Apache-2.0
"""States that the server keeps between the requests of a sequence."""

import itertools

import numpy as np
import pytest
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

from harness import models, stateful
from harness import server as servers

pytestmark = pytest.mark.usefixtures("onnx")

DIRECT = "direct { }"
OLDEST = "oldest { max_candidate_sequences: 4 }"
SETUPS = {
    "direct": dict(strategy=DIRECT),
    "oldest": dict(strategy=OLDEST),
    "nobatch": dict(strategy=DIRECT, slots=0),
}
ZERO = stateful.initial_state("INT32", [1], "zero_data: true")
# Test backend's cases; see backends/implicit_state.
UNDEFINED, NO_UPDATE, SHARED_BUFFER, GROWING = range(4)


def write_backend_model(repository, name, state):
    controls = ", ".join(
        f'{{ name: "{control}" control [ {{ kind: CONTROL_SEQUENCE_{control} fp32_false_true: [ 0, 1 ] }} ] }}'
        for control in ("START", "END", "READY")
    )
    config = (
        'backend: "implicit_state"\nmax_batch_size: 0\n'
        f"input [ {models.tensor_config('INPUT', 'INT32', [1])}, "
        f"{models.tensor_config('TEST_CASE', 'INT32', [1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT', 'INT32', [1])}, "
        f"{models.tensor_config('OUTPUT_STATE', 'INT8', [-1])} ]\n"
        f"sequence_batching {{ max_sequence_idle_microseconds: 60000000 control_input [ {controls} ] {state} }}\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
    )
    models.write_model(repository, name, config)


def backend_state(datatype, dims, extra=""):
    return stateful.state_config(datatype, dims, extra).replace("STATE_IN", "INPUT_STATE").replace(
        "STATE_OUT", "OUTPUT_STATE"
    )


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("states")
    for name, setup in SETUPS.items():
        batching = setup.get("slots", 4) > 0
        accumulate = stateful.onnx_accumulate("INT32", batching, True)
        stateful.write(
            repository, f"accumulate_{name}", accumulate, controls=[stateful.START, ],
            state=stateful.state_config("INT32", [1]), shows_state=[1], **setup,
        )
        stateful.write(
            repository, f"collect_{name}", stateful.onnx_collect(batching),
            state=stateful.state_config("INT32", [-1], ZERO), shows_state=[-1], **setup,
        )
        stateful.write(
            repository, f"controls_{name}", stateful.onnx_controls(batching),
            controls=[stateful.START, stateful.READY], **setup,
        )
    stateful.write(
        repository, "hidden", stateful.onnx_accumulate("INT32", True, True), controls=[stateful.START],
        state=stateful.state_config("INT32", [1]),
    )
    stateful.write(
        repository, "remember", stateful.onnx_remember(), "BYTES", state=stateful.state_config("BYTES", [1])
    )
    plain = stateful.onnx_accumulate("FP32", True, False)
    stateful.write(
        repository, "first_default", stateful.onnx_collect(True),
        state=stateful.state_config("INT32", [-1]), shows_state=[-1],
    )
    for name, first, files in (
        ("zero", stateful.initial_state("FP32", [1], "zero_data: true"), None),
        ("file", stateful.initial_state("FP32", [1], 'data_file: "five"'), {"five": np.float32(5).tobytes()}),
    ):
        stateful.write(
            repository, f"first_{name}", plain, "FP32", state=stateful.state_config("FP32", [1], first), files=files
        )
    write_backend_model(repository, "backend_plain", backend_state("INT32", [1], ZERO))
    write_backend_model(repository, "backend_none", "")
    shared = "use_same_buffer_for_input_output: true"
    write_backend_model(repository, "backend_shared", backend_state("INT32", [1], shared))
    growing = shared + " use_growable_memory: true"
    write_backend_model(repository, "backend_growing", backend_state("INT8", [1024, 1024], growing))
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("log")) as running:
        yield running


@pytest.fixture
def client(server):
    with http.InferenceServerClient(server.http) as made:
        yield made


_ids = itertools.count(1)


class Sequence:
    """Sends the requests of one sequence, the first one with START."""

    def __init__(self, client, model, datatype="INT32", batching=True):
        self.client, self.model, self.datatype, self.batching = client, model, datatype, batching
        self.id = next(_ids)
        self.is_new = True

    def send(self, value, outputs=None, end=False, start=None, **inputs):
        given = []
        for name, one in {"INPUT": value, **inputs}.items():
            tensor = np.array([[one]] if self.batching else [one], models.TYPES[self.datatype][1])
            given.append(http.InferInput(name, list(tensor.shape), self.datatype))
            given[-1].set_data_from_numpy(tensor)
        wanted = None if outputs is None else [http.InferRequestedOutput(name) for name in outputs]
        start, self.is_new = self.is_new if start is None else start, False
        return self.client.infer(
            self.model, given, outputs=wanted, sequence_id=self.id, sequence_start=start, sequence_end=end
        )

    def ask(self, value, output="OUTPUT", **options):
        return self.send(value, **options).as_numpy(output).ravel().tolist()


@pytest.mark.parametrize("setup", SETUPS)
def test_state_is_kept_from_request_to_request(client, setup):
    sequence = Sequence(client, f"accumulate_{setup}", batching=setup != "nobatch")
    assert [sequence.ask(value) for value in (1, 2, 3)] == [[1], [3], [6]]
    assert sequence.ask(4, end=True) == [10]


@pytest.mark.parametrize("setup", SETUPS)
def test_start_begins_anew(client, setup):
    sequence = Sequence(client, f"accumulate_{setup}", batching=setup != "nobatch")
    assert sequence.ask(7) == [7]
    assert sequence.ask(1, start=True) == [1]
    assert sequence.ask(1, end=True) == [2]
    # An id that was used before begins anew, too.
    assert sequence.ask(5, start=True, end=True) == [5]


@pytest.mark.parametrize("setup", ["direct", "oldest"])
def test_sequences_have_each_their_own_state(client, setup):
    many = [Sequence(client, f"accumulate_{setup}") for _ in range(4)]
    for turn in range(1, 4):
        for i, sequence in enumerate(many):
            assert sequence.ask(10**i, end=turn == 3) == [turn * 10**i]


@pytest.mark.parametrize("setup", SETUPS)
def test_state_may_grow(client, setup):
    sequence = Sequence(client, f"collect_{setup}", batching=setup != "nobatch")
    assert sequence.ask(1, output="STATE_OUT") == [0, 1]
    assert sequence.ask(2, output="STATE_OUT") == [0, 1, 2]
    assert sequence.ask(3, end=True) == [6]


@pytest.mark.parametrize("setup", ["direct", "oldest"])
def test_states_of_different_size_share_a_batch_without_harm(client, setup):
    old, young = (Sequence(client, f"collect_{setup}") for _ in range(2))
    assert [old.ask(value) for value in (1, 1, 1)] == [[1], [2], [3]]
    assert young.ask(10) == [10]
    assert old.ask(1, end=True) == [4]
    assert young.ask(10, output="STATE_OUT", end=True) == [0, 10, 10]


def test_state_is_an_output_for_those_who_ask(client):
    sequence = Sequence(client, "accumulate_direct")
    both = sequence.send(3, outputs=["OUTPUT", "STATE_OUT"])
    assert both.as_numpy("STATE_OUT").tolist() == [[3]] and both.as_numpy("OUTPUT").tolist() == [[3]]
    only = sequence.send(4, outputs=["OUTPUT"])
    assert only.as_numpy("STATE_OUT") is None
    assert sequence.ask(1, output="STATE_OUT", outputs=["STATE_OUT"], end=True) == [8]


def test_state_that_is_no_output_cannot_be_asked_for(client):
    sequence = Sequence(client, "hidden")
    with pytest.raises(InferenceServerException, match="unexpected inference output 'STATE_OUT'"):
        sequence.send(1, outputs=["STATE_OUT"], end=True)


def test_state_cannot_be_sent(client):
    sequence = Sequence(client, "accumulate_direct")
    with pytest.raises(InferenceServerException, match="STATE_IN"):
        sequence.send(1, STATE_IN=100, end=True)


def test_strings_are_states_too(client):
    sequence = Sequence(client, "remember", "BYTES")
    assert sequence.ask(b"one") == [b""]
    assert sequence.ask(b"a longer one") == [b"one"]
    assert sequence.ask(b"", end=True) == [b"a longer one"]


@pytest.mark.parametrize("name,first", [("zero", 0), ("file", 5)])
def test_first_state_is_as_configured(client, name, first):
    for _ in range(2):
        sequence = Sequence(client, f"first_{name}", "FP32")
        assert sequence.ask(1) == [first + 1]
        assert sequence.ask(1, end=True) == [first + 2]


@pytest.mark.newer  # the reference begins with whatever is in memory
def test_state_without_a_first_value_begins_with_zeros(client):
    # A variable dimension has one element.
    assert Sequence(client, "first_default").ask(1, output="STATE_OUT", end=True) == [0, 1]


@pytest.mark.parametrize("setup", SETUPS)
def test_controls_are_inputs_of_the_model(client, setup):
    sequence = Sequence(client, f"controls_{setup}", batching=setup != "nobatch")
    assert [sequence.ask(value, end=value == 30) for value in (10, 20, 30)] == [[11], [20], [30]]


@pytest.mark.parametrize(
    "state,files,error",
    [
        ('data_file: "short"', {"short": b"ab"}, "initial_state setting expects 4 bytes"),
        ('data_file: "absent"', {"other": b"abcd"}, "failed to open text file for read"),
        pytest.param('data_file: "../../other"', {"other": b"abcd"}, "outside", marks=pytest.mark.newer),
        ("", None, "to have state_data set"),
    ],
)
def test_first_state_that_cannot_be_read_refuses_the_model(start_server, empty_repository, state, files, error):
    first = stateful.initial_state("FP32", [1], state)
    stateful.write(
        empty_repository, "broken", stateful.onnx_accumulate("FP32", True, False), "FP32",
        state=stateful.state_config("FP32", [1], first), files=files,
    )
    server = start_server(empty_repository, args=["--exit-on-error=false"], wait=False)
    servers.wait_until(server.is_live, "a live server")
    servers.wait_until(lambda: error in server.log, error)


def test_state_that_the_model_has_not_refuses_the_model(start_server, empty_repository):
    state = stateful.state_config("INT32", [1]).replace("STATE_IN", "NO_STATE")
    stateful.write(
        empty_repository, "broken", stateful.onnx_accumulate("INT32", True, False), state=state
    )
    server = start_server(empty_repository, args=["--exit-on-error=false"], wait=False)
    servers.wait_until(server.is_live, "a live server")
    servers.wait_until(lambda: "unexpected inference input 'NO_STATE'" in server.log, "the refusal")


def test_backend_is_told_of_a_state_that_there_is_not(client):
    with pytest.raises(InferenceServerException, match="state 'undefined_state' is not a valid state name."):
        Sequence(client, "backend_plain", batching=False).send(1, TEST_CASE=UNDEFINED, end=True)
    with pytest.raises(
        InferenceServerException,
        match="unable to add state 'undefined_state'. State configuration is missing for model 'backend_none'.",
    ):
        Sequence(client, "backend_none", batching=False).send(1, TEST_CASE=UNDEFINED, end=True)


def test_state_that_is_not_updated_stays(client):
    sequence = Sequence(client, "backend_plain", batching=False)
    assert sequence.ask(3, TEST_CASE=NO_UPDATE) == [3]
    assert sequence.ask(4, TEST_CASE=NO_UPDATE, end=True) == [4]


def test_shared_buffer_is_one(client):
    sequence = Sequence(client, "backend_shared", batching=False)
    for turn in range(3):
        sequence.send(turn, TEST_CASE=SHARED_BUFFER, end=turn == 2)


@pytest.mark.newer  # the reference lets states grow on GPUs alone
def test_growing_state_keeps_what_was_written(client):
    sequence = Sequence(client, "backend_growing", batching=False)
    for turn in range(3):
        state = sequence.send(1, TEST_CASE=GROWING, end=turn == 2).as_numpy("OUTPUT_STATE")
        assert state.size == (turn + 1) << 20
        assert [int(part.max()) for part in np.split(state, turn + 1)] == list(range(turn + 1))
