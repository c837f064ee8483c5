# SPDX-License-Identifier: Apache-2.0
"""The worker of the Python backend without a server: what it answers when a model goes on with the arrays and the
lists that it gave away or was given."""

import subprocess
import sys

import pytest
from harness import server as servers

pytestmark = pytest.mark.skipif(servers.REFERENCE, reason="about this server's worker")

# A worker of a region without a server. execute() passes it a batch of `count` requests without inputs, and returns
# for each the outputs as the server would read them: name -> (type, shape, bytes), None where a sender is to answer,
# or the text of an error.
HEAD = """
import gc, os, struct, sys, threading
sys.path.insert(0, sys.argv[1])
import numpy as np
import triton_python_backend_utils as pb_utils
from nereid_python import dlpack, protocol as p, tensors
from nereid_python.memory import Memory
from nereid_python.responses import InferenceResponseSender
from nereid_python.session import session
from nereid_python.worker import Runner

fd = os.memfd_create("region")
os.ftruncate(fd, 1 << 30)
os.pwrite(fd, struct.pack("<I", p.VERSION), 0)
memory = Memory(fd)
greeting = dict.fromkeys(["hidden_model", "hidden_environment", "shown_model", "shown_environment"], "")
greeting.update(name="m_0", model_dir="m", model_file="m/1/model.py", is_decoupled=False)
runner = Runner(greeting, memory)
RECORD = p.packed("RequestRecord")

told = []
session.has_calls = True
session.tell = lambda kind, payload: told.append((kind, payload))

def put_batch(count, outputs):
    form = p.FORM.pack(0, len(outputs)) + b"".join(p.sized(name) for name in outputs)
    start = 8 + count * RECORD.size
    records = b"".join(RECORD.pack(100 + i, 0, 0, 0, 0, start, len(form), *[0] * 10) for i in range(count))
    payload = struct.pack("<II", count, 0) + records + form
    return memory.put(payload) + p.HEADER_SIZE, len(payload)

def read_result(count, at):
    answers = []
    for _ in range(count):
        kind, flags, number, size = p.RESPONSE.unpack_from(memory.bytes, at)
        at += p.RESPONSE.size
        if kind == p.NONE:
            answers.append(None)
            continue
        assert kind == p.TENSORS, kind
        outputs = {}
        for _ in range(number):
            name, datatype, shape, data, size, at = tensors.read(memory.bytes, at)
            outputs[name] = (datatype, shape, bytes(memory.bytes[data : data + size]))
        answers.append(outputs)
    return answers

def execute(run, count=2, outputs=("OUT",), is_decoupled=False):
    class Model:
        def execute(self, requests):
            return run(requests)
    session.is_decoupled = is_decoupled
    runner.model, runner.run = Model(), None
    outcome, block, size = runner.execute(*put_batch(count, outputs))
    at = block + p.HEADER_SIZE
    if outcome != p.OK:
        return bytes(memory.bytes[at : at + size]).decode()
    return read_result(count, at)

def respond(*outputs):
    return pb_utils.InferenceResponse(list(outputs))

def texts(answer):
    datatype, shape, data = answer["OUT"]
    assert datatype == 13
    return tensors.deserialize(data).reshape(shape).tolist()
"""


def run(require_server, code):
    done = subprocess.run([sys.executable, "-c", HEAD + code + '\nprint("done")', servers.backends() / "python"],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr


# --- Arrays ---


def test_texts_are_those_of_when_the_tensor_was_made(require_server):
    run(require_server, """
def reuses(requests):
    out, responses = np.empty(1, object), []
    for i, request in enumerate(requests):
        out[0] = "label %d" % i
        responses.append(respond(pb_utils.Tensor("OUT", out)))
    out[0] = "none of them"
    out.shape = (1, 1, 1)
    return responses

assert [texts(answer) for answer in execute(reuses, 3)] == [[b"label 0"], [b"label 1"], [b"label 2"]]
""")


@pytest.mark.parametrize("kind", ["object", "S9"])
@pytest.mark.parametrize("view", ["out", "out.T", "out[::2]", "out[:, 1:]"])
def test_so_are_texts_in_arrays_of_every_make(require_server, kind, view):
    run(require_server, f"""
expected = []
def reuses(requests):
    out, responses = np.empty((4, 3), {kind!r}), []
    for i, request in enumerate(requests):
        for place in np.ndindex(out.shape):
            out[place] = b"%d %d %d" % (i, *place)
        tensor = pb_utils.Tensor("OUT", {view})
        assert tensor.as_numpy().tolist() == {view}.tolist() and tensor.shape() == list({view}.shape)
        expected.append({view}.tolist())
        responses.append(respond(tensor))
    return responses

answers = [texts(answer) for answer in execute(reuses)]
assert answers == expected and answers[0] != answers[1]
""")


@pytest.mark.parametrize("count", [3, 3000])  # below and above what is copied in any case
def test_views_that_are_not_contiguous_are_those_of_when_the_tensor_was_made(require_server, count):
    run(require_server, f"""
def reuses(requests):
    out, responses = np.empty((2, {count}), np.float32), []
    for i, request in enumerate(requests):
        out[:] = np.arange(2 * {count}).reshape(2, {count}) + i
        responses.append(respond(pb_utils.Tensor("OUT", out.T), pb_utils.Tensor("ODD", out.astype(">f4")[::-1])))
    return responses

for i, answer in enumerate(execute(reuses, 2, ("OUT", "ODD"))):
    expected = np.arange(2 * {count}, dtype=np.float32).reshape(2, {count}) + i
    assert answer["OUT"] == (11, ({count}, 2), expected.T.tobytes())
    assert answer["ODD"] == (11, (2, {count}), expected[::-1].tobytes())
""")


def test_contiguous_numbers_are_read_when_the_response_is_written(require_server):
    """As in Triton: nothing of a large array is copied until then."""
    run(require_server, """
def changes(requests):
    out = np.zeros(4, np.int32)
    tensor = pb_utils.Tensor("OUT", out)
    out[:] = 7
    assert tensor.as_numpy() is out
    return [respond(tensor)]

assert execute(changes, 1)[0]["OUT"] == (8, (4,), np.full(4, 7, np.int32).tobytes())
""")


def test_texts_are_encoded_once_and_as_numpy_returns_what_was_given(require_server):
    run(require_server, """
class Text:
    asked = 0
    def __str__(self):
        Text.asked += 1
        return "text"

out = np.array([[Text(), b"bytes"]], object)
tensor = pb_utils.Tensor("OUT", out)
assert tensor.as_numpy() is out and tensor.shape() == [1, 2] and tensor.triton_dtype() == 13
assert texts(execute(lambda requests: [respond(tensor)], 1)[0]) == [[b"text", b"bytes"]]
assert texts(execute(lambda requests: [respond(tensor)], 1)[0]) == [[b"text", b"bytes"]]
assert Text.asked == 1
""")


def test_elements_of_every_kind_are_encoded_in_order(require_server):
    run(require_server, r"""
class Bytes(bytes):
    pass

kinds = [b"bytes", "text", "\u00e9", b"", "", None, 5, 1.5, np.str_("numpy's"), np.bytes_(b"numpy"), Bytes(b"derived")]
expected = [b"bytes", b"text", b"\xc3\xa9", b"", b"", b"None", b"5", b"1.5", b"numpy's"]
# What is derived from bytes is told as any other object.
expected += [str(kind).encode() for kind in kinds[-2:]]
for start in range(len(kinds)):
    for end in range(start, len(kinds) + 1):
        out = np.empty(end - start, object)
        out[:] = kinds[start:end]
        assert texts(execute(lambda requests: [respond(pb_utils.Tensor("OUT", out))], 1)[0]) == expected[start:end]
assert texts(execute(lambda requests: [respond(pb_utils.Tensor("OUT", np.empty(2, object)))], 1)[0]) == [b"None"] * 2
""")


def test_empty_arrays_of_texts_and_a_tensor_made_again(require_server):
    run(require_server, """
tensor = pb_utils.Tensor("OUT", np.array([b"first"], object))
tensor.__init__("OUT", np.ones(2, np.float32))
assert execute(lambda requests: [respond(tensor)], 1)[0]["OUT"] == (11, (2,), np.ones(2, np.float32).tobytes())
for shape in ((0,), (2, 0), (0, 3)):
    tensor.__init__("OUT", np.empty(shape, object))
    assert tensor.shape() == list(shape)
    assert execute(lambda requests: [respond(tensor)], 1)[0]["OUT"] == (13, shape, b"")
tensor.__init__("OUT", np.array(b"alone", object))
assert execute(lambda requests: [respond(tensor)], 1)[0]["OUT"] == (13, (), b"\\x05\\0\\0\\0alone")
""")


def test_what_cannot_be_encoded_is_an_error_where_the_tensor_is_made(require_server):
    run(require_server, r"""
class NoText:
    def __str__(self):
        raise KeyError("no text")

for bad, kind in (("\ud800", UnicodeEncodeError), (NoText(), KeyError)):
    try:
        pb_utils.Tensor("OUT", np.array([bad], object))
    except kind:
        continue
    raise AssertionError("was accepted")
answer = execute(lambda requests: [respond(pb_utils.Tensor("OUT", np.array(["\ud800"], object)))], 1)
assert answer.startswith("Failed to process the request(s) for model 'm_0', message: UnicodeEncodeError: 'utf-8' codec "
                         "can't encode character '\\ud800' in position 0: surrogates not allowed"), answer
""")


def test_names_may_be_of_classes_that_are_derived_from_str(require_server):
    run(require_server, """
class Name(str):
    __hash__ = str.__hash__
    def __eq__(self, other):
        raise AssertionError("compared")
    def __str__(self):
        return "other"

def names(requests):
    made = [pb_utils.Tensor(Name("OUT"), np.ones(2, np.float32)),
            pb_utils.Tensor.from_dlpack(Name("ODD"), np.ones(2, np.float32)),
            pb_utils.Tensor(np.str_("TXT"), np.array([b"a"], object))]
    assert [type(tensor.name()) for tensor in made] == [str] * 3
    return [respond(*made)]

assert sorted(execute(names, 1, ("OUT", "ODD", "TXT"))[0]) == ["ODD", "OUT", "TXT"]
""")


# --- DLPack ---


def test_empty_tensors_are_taken_whatever_their_strides(require_server):
    """PyTorch writes the stride 1 for each dimension of less than two elements, numpy a product."""
    run(require_server, """
import ctypes

def with_strides(array, strides):
    capsule = array.__dlpack__()
    managed = dlpack._Managed.from_address(dlpack._pointer(capsule, dlpack._NAME))
    if strides is None:
        managed.strides = ctypes.POINTER(ctypes.c_int64)()
    elif managed.strides:
        for i, stride in enumerate(strides):
            managed.strides[i] = stride
    return capsule

def take(shape, strides, kind=np.float32):
    return pb_utils.Tensor.from_dlpack("OUT", with_strides(np.zeros(shape, kind), strides))

for shape in ((0,), (0, 4), (4, 0), (2, 0, 4), (0, 0), (1, 0, 1)):
    torch = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        torch[i] = 1 if shape[i] < 2 else max(shape[i + 1], 1) * torch[i + 1]
    for strides in (torch, [1] * len(shape), [0] * len(shape), None):
        for kind, number in ((np.float32, 11), (np.int64, 9), (np.float16, 10)):
            tensor = take(shape, strides, kind)
            assert tensor.shape() == list(shape) and tensor.triton_dtype() == number
            assert tensor.as_numpy().shape == shape and tensor.as_numpy().dtype == kind
            answer = execute(lambda requests: [respond(tensor)], 1)[0]["OUT"]
            assert answer == (number, shape, b"")
            # And back, as the runtime of PyTorch models does with inputs.
            assert np.from_dlpack(tensor).shape == shape
    assert pb_utils.Tensor.from_dlpack("OUT", np.zeros(shape, np.float64)).shape() == list(shape)
    assert pb_utils.Tensor.from_dlpack("OUT", np.zeros(shape, np.float64).T).shape() == list(shape[::-1])

# What has elements must lie in order; the strides of single ones mean nothing, either.
assert take((1, 3, 1), [77, 1, 55]).as_numpy().shape == (1, 3, 1)
assert take((), []).as_numpy().shape == ()
for shape, strides in (((2, 3), [1, 2]), ((2, 3), [6, 2]), ((2,), [0])):
    try:
        take(shape, strides)
    except pb_utils.TritonModelException as error:
        assert "DLPack tensor is not contiguous" in str(error)
        continue
    raise AssertionError("was accepted")
""")


def test_what_must_not_be_written_can_be_exported(require_server):
    run(require_server, """
for value in (np.frombuffer(b"abcd", np.uint8), np.broadcast_to(np.float32(3), (2, 2)), np.ones((), np.bool_),
              np.broadcast_to(np.bool_(1), (0, 3))):
    value.flags.writeable = False
    assert (np.from_dlpack(pb_utils.Tensor("X", value)) == value).all()
    again = pb_utils.Tensor.from_dlpack("X", pb_utils.Tensor("X", value)).as_numpy()
    assert again.shape == value.shape and again.dtype == value.dtype and (again == value).all()
""")


# --- Lists ---


def test_each_request_is_answered_whatever_the_model_makes_of_the_list(require_server):
    run(require_server, """
def pops(requests):
    responses = []
    while requests:
        requests.pop(0)
        responses.append(respond(pb_utils.Tensor("OUT", np.full(1, len(responses), np.int32))))
    return responses

answers = execute(pops, 3)
assert [answer["OUT"][2][0] for answer in answers] == [0, 1, 2]

senders = []
def leaves_to_threads(requests):
    while requests:
        senders.append(requests.pop().get_response_sender())

for change in (leaves_to_threads, list.clear, lambda requests: requests.append(5),
               lambda requests: requests.__setitem__(slice(None), [None] * 7)):
    assert execute(change, 3, is_decoupled=True) == [None] * 3
assert len(senders) == 3 and all(sender._handle in (100, 101, 102) for sender in senders)
del senders[:]

def fails(requests):
    kept.append(requests.pop().get_response_sender())
    requests[:] = [5]
    raise ValueError("odd")
kept = []
assert "ValueError: odd" in execute(fails, 3)
assert kept[0]._is_closed, "the server completes the request"
""")


def test_a_coroutine_may_empty_the_list_too(require_server):
    run(require_server, """
gate = threading.Event()
async def pops(requests):
    senders = []
    while requests:
        senders.append(requests.pop().get_response_sender())
    gate.set()

assert execute(pops, 3, is_decoupled=True) == [None] * 3
assert gate.wait(60)

async def answers(requests):
    responses = []
    while requests:
        requests.pop()
        responses.append(respond(pb_utils.Tensor("OUT", np.zeros(1, np.int32))))
    return responses
assert [sorted(answer) for answer in execute(answers, 3)] == [["OUT"]] * 3
""")


def test_lists_that_were_handed_out_are_the_models_own(require_server):
    run(require_server, """
def changes(requests):
    responses = []
    for request in requests:
        assert request.inputs() == []
        request.inputs().append(5)
        assert request.inputs() == []
        tensor = pb_utils.Tensor("OUT", np.ones(1, np.float32))
        response = respond(tensor)
        assert response.output_tensors() == [tensor]
        response.output_tensors().clear()
        response.output_tensors().append(5)
        assert pb_utils.get_output_tensor_by_name(response, "OUT") is tensor
        responses.append(response)
    return responses

assert [sorted(answer) for answer in execute(changes)] == [["OUT"]] * 2

given = [pb_utils.Tensor("IN", np.ones(1, np.float32))]
made = pb_utils.InferenceRequest(model_name="other", requested_output_names=["OUT"], inputs=given)
made.inputs().clear()
given.clear()
assert [tensor.name() for tensor in made.inputs()] == ["IN"]
assert pb_utils.get_input_tensor_by_name(made, "IN") is made.inputs()[0]
""")


def test_a_request_has_one_sender_though_two_threads_ask_for_it(require_server):
    run(require_server, """
# The second thread asks while the first one is making the sender.
from nereid_python import requests as module
class Slow(InferenceResponseSender):
    request = None
    def __init__(self, *args):
        super().__init__(*args)
        if Slow.request is not None:
            request, Slow.request = Slow.request, None
            Slow.first = request.get_response_sender()
module.InferenceResponseSender = Slow

kept = []
def asks(requests):
    Slow.request = requests[0]
    kept.append(requests[0].get_response_sender())

assert execute(asks, 1, is_decoupled=True) == [None]
gc.collect()
assert kept[0] is Slow.first and not kept[0]._is_closed
assert told == [], "a sender that nobody has got ends no request"
del kept[:], Slow.first
gc.collect()
assert told == [(p.CLOSE, p.U64.pack(100))]
""")
