# SPDX-License-Identifier: Apache-2.0
"""Requests and responses."""

import array
import gc
import queue
import threading
import time

import numpy as np
import pytest
from harness import models

import nereid

ONES = np.ones((1, 16), dtype=np.int32)


def add(server, a=ONES, b=ONES, **options):
    """The one response of the model that adds and subtracts."""
    (response,) = server.model("simple").infer(inputs={"INPUT0": a, "INPUT1": b}, **options)
    return response


def the_output(server, model, value, **options):
    (response,) = server.model(model).infer(inputs={"INPUT0": value}, **options)
    return response.outputs["OUTPUT0"]


def test_a_response_has_the_outputs_and_says_where_it_comes_from(server):
    response = add(server, ONES * 3, request_id="seven")
    np.testing.assert_array_equal(np.from_dlpack(response.outputs["OUTPUT0"]), ONES * 4)
    np.testing.assert_array_equal(np.asarray(response.outputs["OUTPUT1"]), ONES * 2)
    assert response.outputs["OUTPUT0"].data_type == nereid.DataType.INT32
    assert response.outputs["OUTPUT0"].memory_type == nereid.MemoryType.CPU
    assert tuple(response.outputs["OUTPUT0"].shape) == (1, 16)
    assert (response.request_id, response.error, response.final) == ("seven", None, True)
    assert (response.model.name, response.model.version) == ("simple", 1)


def test_a_response_does_not_bind_the_model_to_its_version(server):
    model = server.model("simple")
    list(model.infer(inputs={"INPUT0": ONES, "INPUT1": ONES}))
    assert model.version == -1


@pytest.mark.parametrize("datatype", models.TYPES)
def test_every_data_type_comes_back_as_it_went(server, datatype):
    sent = models.random_tensor(np.random.default_rng(1), datatype, (37,))
    output = the_output(server, f"identity_{datatype.lower()}", sent)
    assert output.data_type == nereid.DataType[datatype]
    if datatype == "BYTES":
        np.testing.assert_array_equal(output.to_bytes_array(), sent)
        assert output.to_list() == sent.tolist()
    elif datatype == "BF16":
        assert output.to_list() == [float(value) for value in sent]
    else:
        np.testing.assert_array_equal(np.from_dlpack(output), sent)
        assert output.to_list() == sent.tolist()


@pytest.mark.parametrize(
    "value",
    [
        [1, -2, 3],
        np.array([1, -2, 3]),
        nereid.Tensor.from_dlpack(np.array([1, -2, 3])),
        array.array("q", [1, -2, 3]),
        memoryview(array.array("q", [1, -2, 3])),
        np.array([1, 0, -2, 0, 3, 0])[::2],
        np.array([1, -2, 3], dtype=">i8"),
    ],
    ids=["list", "array", "tensor", "array.array", "memoryview", "strided", "big-endian"],
)
def test_inputs_of_many_kinds(server, value):
    assert the_output(server, "identity_int64", value).to_list() == [1, -2, 3]


@pytest.mark.parametrize(
    "value", [["a", "bß"], [b"a", "bß".encode()], np.array(["a", "bß"]), np.array(["a", "bß"], dtype=object)]
)
def test_texts_of_many_kinds(server, value):
    assert the_output(server, "identity_bytes", value).to_string_array().tolist() == ["a", "bß"]


def test_memory_in_use_cannot_be_resized(server):
    memory = bytearray(8)
    view = memoryview(memory).cast("i")
    sent = server.model("slow").infer(inputs={"INPUT0": view})
    view.release()
    with pytest.raises(BufferError):
        memory.append(1)
    list(sent)
    while True:  # the request may be released a moment after its response
        try:
            memory.append(1)
            return
        except BufferError:
            time.sleep(0)


def test_outputs_outlive_the_response(server):
    sent = np.arange(1_000_000, dtype=np.int64)
    output = np.from_dlpack(the_output(server, "identity_int64", sent))
    gc.collect()
    np.testing.assert_array_equal(output, sent)


@pytest.mark.parametrize(
    "value",
    [
        b"abc",
        "abc",
        5j,
        object(),
        {"a": 1},
        [object()],
        np.array([1j]),
        np.array(["2001-01-01"], dtype="M8[D]"),
        [[1], [1, 2]],
    ],
)
def test_inputs_of_no_kind_are_refused(server, value):
    with pytest.raises(nereid.InvalidArgumentError):
        server.model("identity_int64").infer(inputs={"INPUT0": value})


def test_a_request_may_be_sent_again(server):
    request = server.model("simple").create_request(inputs={"INPUT0": ONES, "INPUT1": ONES}, request_id="again")
    for _ in range(3):
        (response,) = request.model.infer(request)
        assert response.request_id == "again"
    request.inputs["INPUT0"] = ONES * 5
    (response,) = request.model.infer(request)
    assert response.outputs["OUTPUT0"].to_list()[0][0] == 6


def test_only_requested_outputs_come(server):
    assert list(add(server, requested_outputs=["OUTPUT1"]).outputs) == ["OUTPUT1"]
    with pytest.raises(nereid.InvalidArgumentError, match="NONE"):
        add(server, requested_outputs=["NONE"])


def test_classes_have_values_indices_and_labels(server):
    image = np.zeros((2, 64), dtype=np.float32)
    model = server.model("digits")
    (response,) = model.infer(inputs={"pixels": image}, classification={"probabilities": 3})
    probabilities = np.from_dlpack(response.outputs["probabilities"])
    labels = (models.EXAMPLES / "digits" / "labels.txt").read_text().split()
    for row, classes in zip(probabilities, response.classes["probabilities"], strict=True):
        assert [best.index for best in classes] == np.argsort(-row, kind="stable")[:3].tolist()
        assert [best.value for best in classes] == pytest.approx(np.sort(row)[::-1][:3].tolist())
        assert [best.label for best in classes] == [labels[best.index] for best in classes]
    assert response.classification_label == response.classes["probabilities"][0][0].label
    assert add(server).classes == {} and add(server).classification_label is None


def test_parameters_of_every_type_are_accepted_and_others_are_not(server):
    add(server, parameters={"a": "text", "b": 1, "c": True, "d": 0.5, "e": np.int32(3)})
    for wrong in ({"a": 1}, None, [1], b"x"):
        with pytest.raises(nereid.InvalidArgumentError, match="'wrong'"):
            add(server, parameters={"wrong": wrong})
    with pytest.raises(nereid.InvalidArgumentError, match="64 bits"):
        add(server, parameters={"big": 1 << 70})
    with pytest.raises(nereid.InvalidArgumentError, match="null"):
        add(server, parameters={"text": "a\0b"})


def test_sequences_are_told_by_number_or_name(server):
    model = server.model("sequence")
    for sequence in (7, "a name"):
        # The model answers with what its sequence began with.
        for step, flags in enumerate((nereid.RequestFlag.SEQUENCE_START, 0, nereid.RequestFlag.SEQUENCE_END)):
            inputs = {"INPUT": np.array([[step + 5]])}
            (response,) = model.infer(inputs=inputs, correlation_id=sequence, flags=flags)
            assert response.outputs["OUTPUT"].to_list() == [[5]]
    for wrong in (-1, 1 << 64):
        with pytest.raises(nereid.InvalidArgumentError, match="correlation"):
            model.infer(inputs={}, correlation_id=wrong)


def test_errors_before_a_response_are_raised_at_once(server):
    with pytest.raises(nereid.NotFoundError, match="'nothing'"):
        server.model("nothing").infer()
    with pytest.raises(nereid.InvalidArgumentError, match="expected 2 inputs"):
        server.model("simple").infer(inputs={"INPUT0": ONES})
    with pytest.raises(nereid.InvalidArgumentError):
        add(server, output_memory_type="unsupported")
    with pytest.raises(TypeError):
        add(server, request_id=5)
    with pytest.raises(TypeError):
        server.model("simple").infer(no_such_field=1)


def test_errors_of_responses_are_raised_or_returned(server):
    # The queue's policy of the slow model is the default, so only cancelling makes it fail.
    def cancelled(**options):
        model = server.model("slow")
        running = model.infer(inputs={"INPUT0": np.array([1], dtype=np.int32)})
        waiting = model.infer(inputs={"INPUT0": np.array([2], dtype=np.int32)}, request_id="waits", **options)
        waiting.cancel()
        return running, waiting

    running, waiting = cancelled()
    with pytest.raises(nereid.CancelledError) as raised:
        next(waiting)
    assert isinstance(raised.value, nereid.UnknownError)
    assert str(raised.value) == raised.value.args[0]
    assert raised.value.args[1].request_id == "waits"
    list(running)
    running, waiting = cancelled(raise_on_error=False)
    (response,) = waiting
    assert isinstance(response.error, nereid.CancelledError) and response.outputs == {} and response.final
    list(running)
    waiting.cancel()  # too late, and no harm


def test_decoupled_models_answer_many_times(server):
    inputs = {
        "IN": np.array([4, 5, 6], dtype=np.int32),
        "DELAY": np.zeros(3, dtype=np.uint32),
        "WAIT": np.zeros(1, dtype=np.uint32),
    }
    model = server.model("repeat")
    assert model.transaction_properties() == nereid.ModelTxnPropertyFlag.DECOUPLED
    responses = list(model.infer(inputs=inputs, request_id="stream"))
    assert [r.outputs["OUT"].to_list()[0] for r in responses if r.outputs] == [4, 5, 6]
    assert [r.final for r in responses] == [False] * (len(responses) - 1) + [True]
    assert {r.request_id for r in responses} == {"stream"}
    none = list(server.model("square").infer(inputs={"IN": np.array([0], dtype=np.int32)}))
    assert len(none) == 1 and none[0].final and none[0].outputs == {} and none[0].error is None


def test_a_queue_gets_responses_besides_the_iterator(server):
    responses = queue.SimpleQueue()
    inputs = {"IN": np.array([3], dtype=np.int32)}
    iterators = [server.model("square").infer(inputs=inputs, response_queue=responses) for _ in range(5)]
    finals = 0
    outputs = 0
    while finals < 5:
        response = responses.get(timeout=30)
        finals += response.final
        outputs += len(response.outputs)
    assert outputs == 15
    for iterator in iterators:
        assert sum(len(response.outputs) for response in iterator) == 3
    assert responses.empty()


def test_many_threads_share_a_server(server):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            a, b = rng.integers(-1000, 1000, (2, 1, 16), dtype=np.int32)
            response = add(server, a, b)
            if not np.array_equal(np.from_dlpack(response.outputs["OUTPUT0"]), a + b):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_responses_that_nobody_waits_for_do_no_harm(server):
    for _ in range(200):
        server.model("simple").infer(inputs={"INPUT0": ONES.copy(), "INPUT1": ONES.copy()})
    server.model("slow").infer(inputs={"INPUT0": np.array([1], dtype=np.int32)})
    assert add(server).outputs["OUTPUT0"].to_list()[0][0] == 2
