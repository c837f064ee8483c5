# SPDX-License-Identifier: Apache-2.0
"""The backends for trying out sequence batchers: accumulators for positions and for correlation ids."""

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

from harness import models
from harness import server as servers


def control(name, kind=None, extra="int32_false_true: [ 0, 1 ]"):
    return f'{{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{kind or name} {extra} }} ] }}'


def config(backend, slots, controls, strategy=""):
    return (
        f'backend: "{backend}"\nmax_batch_size: {slots}\n'
        f"input [ {models.tensor_config('INPUT', 'INT32', [-1])} ]\n"
        f"output [ {models.tensor_config('OUTPUT', 'INT32', [-1])} ]\n"
        f"sequence_batching {{ {strategy} max_sequence_idle_microseconds: 60000000 "
        f"control_input [ {', '.join(controls)} ] }}\n"
        "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
    )


@pytest.fixture(scope="module")
def server(require_server, tmp_path_factory):
    repository = tmp_path_factory.mktemp("sequences")
    plain = [control("START"), control("READY")]
    for slots in (0, 4):
        models.write_model(repository, f"sequence_{slots}", config("sequence", slots, plain))
    full = plain + [control("END")]
    oldest = "oldest { max_candidate_sequences: 4 }"
    for datatype in ("UINT64", "BYTES"):
        id_control = control("CORRID", "CORRID", f"data_type: {models.CONFIG_TYPE[datatype]}")
        models.write_model(
            repository, f"dyna_{datatype}", config("dyna_sequence", 4, full + [id_control], oldest)
        )
    with servers.running(repository, log_dir=tmp_path_factory.mktemp("log")) as running:
        yield running


@pytest.fixture
def ask(server):
    with http.InferenceServerClient(server.http) as client:

        def send(model, sequence, values, start=False, end=False, batching=True):
            tensor = np.array([values] if batching else values, np.int32)
            given = http.InferInput("INPUT", list(tensor.shape), "INT32")
            given.set_data_from_numpy(tensor)
            answer = client.infer(
                model, [given], sequence_id=sequence, sequence_start=start, sequence_end=end
            )
            return answer.as_numpy("OUTPUT").ravel().tolist()

        yield send


@pytest.mark.parametrize("slots", [0, 4])
def test_sequence_accumulates_all_elements(ask, slots):
    model, batching = f"sequence_{slots}", slots > 0
    assert ask(model, 7, [1, 2], start=True, batching=batching) == [3, 3]
    assert ask(model, 7, [10], batching=batching) == [13]
    assert ask(model, 7, [5], end=True, batching=batching) == [18]
    assert ask(model, 7, [5], start=True, end=True, batching=batching) == [5]


def test_sequences_have_a_position_each(ask):
    for turn in range(1, 4):
        for sequence in range(1, 5):
            seen = ask("sequence_4", sequence, [sequence], start=turn == 1, end=turn == 3)
            assert seen == [turn * sequence]


@pytest.mark.parametrize("datatype,ids", [("UINT64", (11, 12)), ("BYTES", ("11", "12"))])
def test_dyna_sequence_adds_the_correlation_id_at_the_end(ask, datatype, ids):
    model = f"dyna_{datatype}"
    for sequence in ids:
        assert ask(model, sequence, [1], start=True) == [1]
    for sequence in ids:
        assert ask(model, sequence, [2]) == [3]
    assert [ask(model, sequence, [3], end=True)[0] for sequence in ids] == [6 + 11, 6 + 12]


def test_dyna_sequence_wants_an_id_that_is_a_number(server):
    with grpc.InferenceServerClient(server.grpc) as client:
        given = grpc.InferInput("INPUT", [1, 1], "INT32")
        given.set_data_from_numpy(np.array([[1]], np.int32))
        with pytest.raises(InferenceServerException, match="to be decodable into an integer"):
            client.infer("dyna_BYTES", [given], sequence_id="x", sequence_start=True, sequence_end=True)
