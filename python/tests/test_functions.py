# SPDX-License-Identifier: Apache-2.0
"""Python functions as models: what is written about them, and how they run."""

import asyncio
import collections.abc
import gc
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import typing
import weakref

import numpy as np
import numpy.typing as npt
import psutil
import pytest

import nereid

QUIET = {"http_port": None, "grpc_port": None, "metrics_port": None, "log_error": False}


@pytest.fixture
def serve():
    """Serves functions of a test's own in this process only."""
    started = []

    def start(*functions, **settings):
        started.append(nereid.serve(*functions, block=False, **{**QUIET, **settings}))
        return started[-1]

    yield start
    for server in started:
        if server.is_running():
            server.stop()


# --- What is written ------------------------------------------------------------------------------


def test_annotations_with_pythons_types_make_a_model_of_single_values(serve):
    @nereid.model
    def repeat(text: str, times: int, loud: bool = False) -> str:
        return (text.upper() if loud else text) * times

    server = serve(repeat)
    assert server.infer(repeat, text="ab", times=2) == "abab"
    assert server.infer("repeat", text="ab", times=1, loud=True) == "AB"
    assert repeat("x", 3) == "xxx"
    inputs = server.model("repeat").metadata()["inputs"]
    assert [(one["name"], one["datatype"], one["shape"]) for one in inputs] == [
        ("text", "BYTES", [1]),
        ("times", "INT64", [1]),
        ("loud", "BOOL", [1]),
    ]


def test_a_plain_function_is_served_by_its_annotations(serve):
    def double(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return x * 2

    result = serve(double).infer("double", x=[1, 2])
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [2, 4])


@pytest.mark.parametrize(
    "inputs, outputs",
    [
        ({"x": (np.float32, (-1, 4))}, {"y": (np.float32, (-1, 4))}),
        ([nereid.TensorSpec(np.float32, (-1, 4))], [nereid.TensorSpec(np.float32, (-1, 4), name="y")]),
        ((np.float32, (-1, 4)), nereid.TensorSpec("f4", [-1, 4], "y")),
    ],
)
def test_inputs_and_outputs_are_said_by_name_in_order_or_alone(serve, inputs, outputs):
    @nereid.model(inputs=inputs, outputs=outputs)
    def negate(x):
        return -x

    server = serve(negate)
    (response,) = server.model("negate").infer(inputs={"x": np.ones((2, 4), np.float32)})
    np.testing.assert_array_equal(np.from_dlpack(response.outputs["y"]), -np.ones((2, 4)))


def test_several_outputs_come_as_a_dictionary_or_a_tuple(serve):
    class Parts(typing.TypedDict):
        quotient: int
        remainder: int

    @nereid.model
    def divide(a: int, b: int) -> Parts:
        return {"remainder": a % b, "quotient": a // b}

    @nereid.model
    def swap(a: int, b: str) -> tuple[str, int]:
        return b, a

    server = serve(divide, swap)
    assert server.infer(divide, a=17, b=5) == {"quotient": 3, "remainder": 2}
    assert server.infer(swap, a=1, b="one") == ("one", 1)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: nereid.model(lambda x: x), "say what 'x' is"),
        (lambda: nereid.model(inputs={"x": int})(lambda x: x), "say what the function returns"),
        (lambda: nereid.model(inputs={"y": int}, outputs=int)(lambda x: x), "no argument 'y'"),
        (lambda: nereid.model(inputs={"x": object()}, outputs=int)(lambda x: x), "not a type of tensors"),
        (lambda: nereid.model(inputs={"x": "M8[s]"}, outputs=int)(lambda x: x), "cannot have the type"),
        (lambda: nereid.model(inputs={"x": (int, ())}, outputs=int)(lambda x: x), "at least one size"),
        (lambda: nereid.model(inputs={"x": (int, (0,))}, outputs=int)(lambda x: x), "each positive or -1"),
        (lambda: nereid.model(inputs=[int, int], outputs=int)(lambda x: x), "2 inputs, and the function 1"),
        (lambda: nereid.model(inputs={"x": str}, outputs=str, max_batch_size=2)(lambda x: x), "list[str]"),
        (lambda: nereid.model(outputs=int)(lambda: 1), "no inputs"),
        (lambda: nereid.model(inputs={"x": int}, outputs={})(lambda x: x), "no outputs"),
        (lambda: nereid.model(inputs={"x": int}, outputs=int)(lambda *x: x), "by name"),
        (lambda: nereid.model(inputs={"x": int}, outputs=int, instances=0)(lambda x: x), "instances"),
        (lambda: nereid.serve(3, **QUIET), "takes functions"),
    ],
)
def test_mistakes_in_what_is_written_are_explained(make, text):
    with pytest.raises(nereid.InvalidArgumentError, match=text.replace("[", "\\[")):
        make()


def test_the_configuration_can_be_overridden(serve):
    @nereid.model(
        max_batch_size=4,
        max_queue_delay_us=7,
        instances=2,
        config={
            "dynamic_batching": {"priority_levels": 3, "default_priority_level": 2},
            "parameters": {"note": {"string_value": 'a "quoted"\nline ü'}},
        },
    )
    def same(x: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        return x

    config = serve(same).model("same").config()
    assert config["max_batch_size"] == 4
    assert config["instance_group"][0]["count"] == 2
    batching = config["dynamic_batching"]
    assert (int(batching["priority_levels"]), int(batching["max_queue_delay_microseconds"])) == (3, 7)
    assert config["parameters"]["note"]["string_value"] == 'a "quoted"\nline ü'


# --- Batches --------------------------------------------------------------------------------------


def counting(sizes, gate):
    @nereid.model(max_batch_size=8)
    def add_one(x: (np.float32, (2,))) -> {"y": (np.float32, (2,))}:
        sizes.append(len(x))
        gate.wait()
        return {"y": x + 1}

    return add_one


def test_requests_that_wait_run_as_one_batch_and_each_gets_its_rows(serve):
    sizes, gate = [], threading.Event()
    model = serve(counting(sizes, gate)).model("add_one")
    first = model.infer(inputs={"x": np.zeros((1, 2), np.float32)})
    while not sizes:
        pass
    others = [model.infer(inputs={"x": np.full((1 + i % 2, 2), i, np.float32)}) for i in range(4)]
    gate.set()
    list(first)
    for i, responses in enumerate(others):
        (response,) = responses
        np.testing.assert_array_equal(np.from_dlpack(response.outputs["y"]), np.full((1 + i % 2, 2), i + 1))
    assert sizes == [1, 6]
    statistics = model.statistics()["model_stats"][0]
    assert (statistics["inference_count"], statistics["execution_count"]) == (7, 2)


def test_texts_are_batched_as_lists(serve):
    sizes, gate = [], threading.Event()

    @nereid.model(max_batch_size=8)
    def lengths(texts: list[str]) -> list[int]:
        sizes.append(len(texts))
        gate.wait()
        return [len(text) for text in texts]

    @nereid.model(max_batch_size=8)
    def reverse(texts: list[str]) -> list[str]:
        return [text[::-1] for text in texts]

    server = serve(lengths, reverse)
    started = [server.model("lengths").infer(inputs={"texts": [["ab"]]})]
    while not sizes:
        pass
    for texts in ([["ä"]], [["abc"], [""]]):
        started.append(server.model("lengths").infer(inputs={"texts": texts}))
    gate.set()
    results = [next(responses).outputs["output"].to_list() for responses in started]
    assert results == [[[2]], [[1]], [[3], [0]]]
    assert sizes == [1, 3]
    assert server.infer(reverse, texts=["abc", "ß"]) == ["cba", "ß"]


def test_an_argument_with_a_default_is_an_optional_input(serve):
    @nereid.model(max_batch_size=4)
    def scale(x: npt.NDArray[np.float32], factor: (np.float32, (1,)) = None) -> npt.NDArray[np.float32]:
        return x if factor is None else x * factor

    server = serve(scale)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(server.infer(scale, x=x), x)
    np.testing.assert_array_equal(server.infer(scale, x=x, factor=np.full((2, 1), 3.0)), x * 3)


# --- Classes, contexts ----------------------------------------------------------------------------


def test_each_instance_of_a_class_has_an_object_made_when_it_is_loaded(serve):
    made = []

    @nereid.model(instances=2)
    class Adder:
        def __init__(self):
            made.append(threading.get_ident())

        def __call__(self, a: int, b: int = 1) -> int:
            return a + b

    server = serve(Adder)
    assert len(made) == 2
    assert server.infer(Adder, a=1) == 2
    assert Adder(1, b=5) == 6


def test_an_object_that_cannot_be_made_fails_the_load_with_its_error(serve):
    @nereid.model
    class Broken:
        def __init__(self):
            raise RuntimeError("no weights")

        def __call__(self, a: int) -> int:
            return a

    with pytest.raises(nereid.TritonError, match="no weights"):
        serve(Broken)


def test_the_context_tells_what_the_client_sent_besides(serve):
    @nereid.model
    def tell(x: int, context: nereid.RequestContext) -> str:
        return json.dumps([context.id, context.parameters, context.correlation_id])

    server = serve(tell)
    (response,) = server.model("tell").infer(
        inputs={"x": np.array([1])}, request_id="seven", parameters={"a": 1, "b": "two"}, correlation_id=9
    )
    assert json.loads(response.outputs["output"].to_list()[0]) == ["seven", {"a": 1, "b": "two"}, 9]


def test_a_sequence_keeps_its_state_in_the_object_of_its_instance(serve):
    start = {"name": "START", "control": [{"kind": "CONTROL_SEQUENCE_START", "int32_false_true": [0, 1]}]}

    oldest = {"max_candidate_sequences": 4}

    @nereid.model(max_batch_size=2, config={"sequence_batching": {"control_input": [start], "oldest": oldest}})
    class Total:
        def __init__(self):
            self.totals = {}

        def __call__(self, x: list[int], contexts: list[nereid.RequestContext], **controls) -> list[int]:
            results = []
            for value, context, begins in zip(x, contexts, controls["START"].ravel()):
                so_far = 0 if begins else self.totals[context.correlation_id]
                self.totals[context.correlation_id] = so_far + value
                results.append(so_far + value)
            return results

    model = serve(Total).model("Total")
    results = []
    for flags, sequence, value in [(1, 5, 1), (1, 6, 10), (0, 5, 2), (2, 5, 3), (2, 6, 20), (1, 5, 7)]:
        (response,) = model.infer(inputs={"x": [[value]]}, correlation_id=sequence, flags=flags)
        results.append(response.outputs["output"].to_list())
    assert results == [[[1]], [[10]], [[3]], [[6]], [[30]], [[7]]]


# --- Streams and asyncio --------------------------------------------------------------------------


def test_what_a_generator_yields_are_responses(serve):
    @nereid.model
    def count(n: int) -> collections.abc.Iterator[int]:
        yield from range(n)

    server = serve(count)
    assert list(server.stream(count, n=3)) == [0, 1, 2]
    assert list(server.stream(count, n=0)) == []
    assert server.infer(count, n=3) == 2
    assert count.is_stream and list(count(2)) == [0, 1]


def test_a_generator_that_fails_sends_what_it_had_and_then_the_error(serve):
    @nereid.model
    def two(n: int) -> typing.Iterator[int]:
        yield 1
        raise nereid.UnavailableError("no more")

    stream = serve(two).stream(two, n=1)
    assert next(stream) == 1
    with pytest.raises(nereid.UnavailableError, match="no more"):
        next(stream)


def test_a_generator_is_closed_when_its_client_is_gone(serve):
    closed = threading.Event()

    @nereid.model
    def forever(n: int) -> typing.Iterator[int]:
        try:
            while True:
                yield n
        finally:
            closed.set()

    responses = serve(forever).model("forever").infer(inputs={"n": np.array([1])})
    next(responses)
    responses.cancel()
    assert closed.wait(60)


def test_async_functions_run_many_at_a_time(serve):
    started, everyone = [], asyncio.Event()

    @nereid.model
    async def meet(n: int) -> int:
        started.append(n)
        if len(started) == 50:
            everyone.set()
        await everyone.wait()
        return n

    model = serve(meet).model("meet")
    responses = [model.infer(inputs={"n": np.array([i])}) for i in range(50)]
    assert [next(one).outputs["output"].to_list() for one in responses] == [[i] for i in range(50)]


def test_no_more_async_functions_run_than_concurrency_says(serve):
    running, most, release = 0, 0, threading.Event()

    @nereid.model(concurrency=3)
    async def busy(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while not release.is_set():
            await asyncio.sleep(0)
        running -= 1
        return n

    model = serve(busy).model("busy")
    responses = [model.infer(inputs={"n": np.array([i])}) for i in range(10)]
    while most < 3:
        pass
    release.set()
    for one in responses:
        list(one)
    assert most == 3


def test_async_generators_stream_side_by_side(serve):
    turn = asyncio.Event()

    @nereid.model
    async def talk(n: int) -> typing.AsyncIterator[int]:
        yield n
        if n == 1:
            await turn.wait()
        else:
            turn.set()
        yield -n

    server = serve(talk)
    first, second = server.stream(talk, n=1), server.stream(talk, n=2)
    assert next(first) == 1
    assert list(second) == [2, -2]
    assert list(first) == [-1]


# --- Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [nereid.NotFoundError, nereid.InvalidArgumentError, nereid.UnavailableError, nereid.UnsupportedError]
)
@pytest.mark.parametrize("is_async", [False, True])
def test_errors_of_the_package_keep_their_code_and_text(serve, error, is_async):
    def plain(x: int) -> int:
        raise error("as I say")

    async def waiting(x: int) -> int:
        plain(x)

    function = nereid.model(waiting if is_async else plain)
    with pytest.raises(error, match="^as I say$"):
        serve(function).infer(function, x=1)


@pytest.mark.parametrize("error", [ValueError("odd"), SystemExit("odd"), KeyboardInterrupt("odd")])
def test_other_exceptions_become_internal_errors_with_the_models_name(serve, error):
    @nereid.model
    def fail(x: int) -> int:
        raise error

    @nereid.model
    async def fail_later(x: int) -> int:
        raise error

    server = serve(fail, fail_later)
    for function in (fail, fail_later, fail):
        with pytest.raises(nereid.InternalError, match=f"model '{function.name}': {type(error).__name__}: odd"):
            server.infer(function, x=1)


class NoText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "error, text",
    [
        (ValueError("\ud800 is odd"), "ValueError: \\\\ud800 is odd"),
        (nereid.InvalidArgumentError("\ud800 is odd"), "\\\\ud800 is odd"),
        (NoText(), "NoText: \\(its text cannot be told: RuntimeError\\)"),
    ],
)
def test_an_exception_is_told_whatever_its_text(serve, is_async, error, text):
    def plain(x: int) -> int:
        raise error

    async def waiting(x: int) -> int:
        raise error

    function = nereid.model(waiting if is_async else plain)
    with pytest.raises((nereid.InternalError, nereid.InvalidArgumentError), match=text):
        serve(function).infer(function, x=1)


@pytest.mark.parametrize("end", [sys.exit, lambda: asyncio.get_running_loop().stop()])
def test_a_task_that_ends_the_event_loop_does_not_end_it_for_other_functions(serve, end):
    @nereid.model
    async def ends(x: int) -> int:
        async def task():
            end()

        kept = asyncio.ensure_future(task())
        await asyncio.sleep(0.01)
        return x + kept.done()

    @nereid.model
    async def goes_on(x: int) -> int:
        await asyncio.sleep(0.01)
        return x

    server = serve(ends, goes_on)
    assert server.infer(ends, x=1) == 2
    assert server.infer(goes_on, x=2) == 2


@pytest.mark.parametrize(
    "result, text",
    [
        (lambda x: np.zeros((2, 5), np.float32), "output 'y' has shape \\[2, 5\\], expected \\[1, 3\\] for 1 row"),
        (lambda x: np.zeros(3, np.float32), "output 'y' has shape \\[3\\]"),
        (lambda x: np.zeros((1, 3), np.complex64), "output 'y' has type complex64, expected float32"),
        (lambda x: [["a", "b", "c"]], "output 'y' has type <U1, expected float32"),
        (lambda x: None, "output 'y' has type object"),
        (lambda x: {"z": x}, "returned \\['z'\\], expected \\['y'\\]"),
        (lambda x: [[1], [2, 3]], "output 'y' cannot become an array"),
    ],
)
def test_a_wrong_result_is_explained_with_the_outputs_name(serve, result, text):
    made = nereid.model(
        result, name="wrong", inputs={"x": (np.float32, (3,))}, outputs={"y": (np.float32, (3,))}, max_batch_size=4
    )
    with pytest.raises(nereid.InternalError, match="model 'wrong': " + text):
        serve(made).infer(made, x=np.zeros((1, 3)))


def test_a_wider_type_of_the_same_kind_is_converted(serve):
    @nereid.model
    def pi(x: int) -> {"y": (np.float32, (2,)), "z": (np.int32, (1,))}:
        return {"y": np.array([3.14, 1.0]), "z": np.array([7])}

    result = serve(pi).infer(pi, x=1)
    assert (result["y"].dtype, result["z"].dtype) == (np.float32, np.int32)


def test_a_value_that_the_type_can_hold_is_narrowed(serve):
    @nereid.model
    def small(x: np.int8) -> [np.int8, np.int64, np.float16]:
        return np.array([127, -128]), np.array([2**63 - 1], np.uint64), np.array([-65504])

    server = serve(small)
    narrow, signed, half = server.infer(small, x=np.array([100], np.int64))
    assert (narrow.tolist(), signed.tolist(), half.tolist()) == ([127, -128], [2**63 - 1], [-65504])
    with pytest.raises(nereid.InvalidArgumentError, match="input 'x' has the value 128, which int8 cannot hold"):
        server.infer(small, x=np.array([128]))


def test_a_text_that_is_not_utf8_is_the_clients_mistake(serve):
    @nereid.model
    def read(text: str) -> int:
        return len(text)

    model = serve(read).model("read")
    with pytest.raises(nereid.InvalidArgumentError, match="'text' is not UTF-8"):
        list(model.infer(inputs={"text": [b"\xff"]}))


# --- Memory ---------------------------------------------------------------------------------------


def test_an_input_may_be_kept_and_changed(serve):
    kept = []

    @nereid.model
    def keep(x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        kept.append(x)
        x += 1
        return x

    server = serve(keep)
    results = [server.infer(keep, x=np.full(10_000, i)) for i in range(3)]
    server.stop()
    for i in range(3):
        kept[i] += 1
        np.testing.assert_array_equal(results[i], np.full(10_000, i + 1))


def test_an_array_that_the_function_uses_again_is_copied(serve):
    buffer = np.zeros(100_000, np.int64)

    @nereid.model
    def fill(x: int) -> npt.NDArray[np.int64]:
        buffer[:] = x
        return buffer

    model = serve(fill).model("fill")
    responses = [next(model.infer(inputs={"x": np.array([i])})) for i in range(3)]
    for i, response in enumerate(responses):
        assert set(response.outputs["output"].to_list()) == {i}


def test_results_and_functions_are_let_go(serve):
    class Result(np.ndarray):
        pass

    seen = []

    @nereid.model
    def make(x: int) -> npt.NDArray[np.int64]:
        array = np.ndarray.__new__(Result, (100_000,), np.int64)
        seen.append(weakref.ref(array))
        return array

    server = serve(make)
    server.infer(make, x=1)
    while seen[0]() is not None:
        server.infer(make, x=1)
    gone = weakref.ref(make)
    server.stop()
    del make
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", ["plain", "async", "stream", "error"])
def test_ten_thousand_calls_leave_nothing_behind(serve, kind):
    @nereid.model
    def plain(x: npt.NDArray[np.float32], text: str) -> npt.NDArray[np.float32]:
        return x + len(text)

    async def waiting(x: npt.NDArray[np.float32], text: str) -> npt.NDArray[np.float32]:
        return x + len(text)

    def stream(x: npt.NDArray[np.float32], text: str) -> typing.Iterator[npt.NDArray[np.float32]]:
        yield x
        yield x

    def error(x: npt.NDArray[np.float32], text: str) -> npt.NDArray[np.float32]:
        raise nereid.NotFoundError("nothing")

    function = {"plain": plain, "async": nereid.model(waiting), "stream": nereid.model(stream)}.get(kind)
    function = function or nereid.model(error)
    model = serve(function).model(function.name)
    x = np.zeros(5000, np.float32)

    def call(count):
        for _ in range(count):
            for _ in model.infer(inputs={"x": x, "text": ["abc"]}, raise_on_error=False):
                pass

    call(1000)
    gc.collect()
    objects, memory = len(gc.get_objects()), psutil.Process().memory_info().rss
    call(10_000)
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
    # 10,000 calls pass 400 MB. AddressSanitizer keeps what was freed.
    assert "libasan" in os.environ.get("LD_PRELOAD", "") or psutil.Process().memory_info().rss - memory < 30 << 20


# --- Life -----------------------------------------------------------------------------------------


def test_serving_again_with_a_changed_function_replaces_it_in_the_same_server(serve):
    def version(value):
        @nereid.model
        def answer(x: int) -> int:
            return value

        return answer

    first = serve(version(1))
    assert first.infer("answer", x=0) == 1
    second = serve(version(2))
    assert second is first and second.infer("answer", x=0) == 2
    third = serve(nereid.model(lambda y: y, name="other", inputs={"y": int}, outputs=int))
    assert third is first
    assert (third.infer("other", y=5), third.infer("answer", x=0)) == (5, 2)


def test_functions_that_were_replaced_are_let_go_with_their_threads(serve):
    def version(value):
        return nereid.model(lambda x: value, name="answer", inputs={"x": int}, outputs=int)

    server, gone = serve(version(0)), []
    server.infer("answer", x=0)
    threads = psutil.Process().num_threads()
    for value in range(1, 20):
        function = version(value)
        gone.append(weakref.ref(function))
        server.update(function)
        assert server.infer("answer", x=0) == value
    del function
    while any(one() is not None for one in gone[:-1]) or psutil.Process().num_threads() > threads:
        server.infer("answer", x=0)
        gc.collect()


def test_a_request_is_finished_by_the_function_that_it_came_for(serve):
    began, gate = threading.Event(), threading.Event()

    @nereid.model(name="answer")
    def old(x: int) -> int:
        began.set()
        gate.wait()
        return 1

    @nereid.model(name="answer")
    def new(x: int) -> int:
        return 2

    server = serve(old)
    waiting = server.model("answer").infer(inputs={"x": np.array([0])})
    began.wait()
    server.update(new)
    assert server.infer("answer", x=0) == 2
    gate.set()
    assert next(waiting).outputs["output"].to_list() == [1]


def test_a_function_that_cannot_be_loaded_leaves_the_one_before_it(serve):
    server = serve(nereid.model(lambda x: x, name="answer", inputs={"x": int}, outputs=int))

    @nereid.model(name="answer")
    class Broken:
        def __init__(self):
            raise RuntimeError("not today")

        def __call__(self, x: int) -> int:
            return x

    with pytest.raises(nereid.TritonError, match="not today"):
        server.update(Broken)
    assert server.infer("answer", x=3) == 3


def test_functions_and_a_repository_are_served_together(serve, repository):
    @nereid.model
    def same(x: int) -> int:
        return x

    server = serve(same, repository)
    ones = np.ones((1, 16), np.int32)
    assert server.infer(same, x=1) == 1
    np.testing.assert_array_equal(server.infer("simple", INPUT0=ones, INPUT1=ones)["OUTPUT0"], ones * 2)


SCRIPT = """
import os, signal, sys, threading, time, typing
import numpy as np
sys.path.insert(0, {path!r})
import nereid
OFF = dict(http_port=0, grpc_port=0, metrics_port=0)

@nereid.model
def same(x: int) -> int:
    return x

@nereid.model
async def later(x: int) -> int:
    return x

@nereid.model
def endless(x: int) -> int:
    started.set()
    while True:
        time.sleep(0.01)

started = threading.Event()
"""


def run(body, **kwargs):
    script = SCRIPT.format(path=os.path.dirname(os.path.dirname(nereid.__file__))) + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, **kwargs)


def test_a_program_that_ends_while_serving_ends_well():
    done = run("""
        server = nereid.serve(same, later, block=False, **OFF)
        assert server.infer(same, x=1) == 1 and server.infer(later, x=1) == 1
        server.model("same").infer(inputs={"x": np.array([1])})
        """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_program_that_ends_while_a_function_hangs_ends_soon():
    done = run("""
        server = nereid.serve(endless, block=False, exit_timeout=1, **OFF)
        server.model("endless").infer(inputs={"x": np.array([1])})
        started.wait()
        """)
    assert done.returncode == 1
    assert "a function did not return in time" in done.stderr


def test_a_request_over_http_that_hangs_has_the_exit_timeout_once():
    done = run("""
        import urllib.error
        import urllib.request
        server = nereid.serve(endless, block=False, exit_timeout=3, http_port=0, grpc_port=None, metrics_port=None, log_info=True)

        def ask():
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/v2/models/endless/generate", b'{"x": 1}')
            except OSError:
                pass

        threading.Thread(target=ask, daemon=True).start()
        started.wait()
        try:
            server.stop()
        except nereid.InternalError:
            print("unfinished")
        """)
    assert done.returncode == 1 and "unfinished\n" in done.stdout, done.stdout + done.stderr
    # The service has the whole time, and the server what is left when that has given up.
    assert "Timeout 3: Found 1 HTTP service connections" in done.stdout
    assert re.findall(r"Timeout (\d): Found 1 model versions", done.stdout)[0] in "01", done.stdout


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer's locks do not survive a fork")
def test_a_forked_process_ends_without_touching_the_server():
    done = run("""
        server = nereid.serve(same, later, block=False, **OFF)
        folder = server._repository.path
        child = os.fork()
        if child == 0:
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert os.path.isdir(folder)
        assert server.infer(same, x=1) == 1 and server.infer(later, x=2) == 2
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
        server.stop()
        assert not os.path.exists(folder)
        print("done")
        """)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_blocking_serve_ends_with_a_signal(number):
    done = run(f"""
        # Shells start programs in the background with SIGINT ignored, and this may be one of them.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def end():
            while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL: time.sleep(0.01)
            os.kill(os.getpid(), signal.{number})
        threading.Thread(target=end, daemon=True).start()
        server = nereid.serve(same, block=True, **OFF)
        print(server)
        """)
    assert (done.returncode, done.stdout) == (0, "<nereid server, not running>\n"), done.stderr
    assert "nereid server: HTTP 127.0.0.1:" in done.stderr
