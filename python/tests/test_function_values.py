# SPDX-License-Identifier: Apache-2.0
"""The values of functions as models: those that come as they went, and those that their types cannot hold."""

import math
import pathlib
import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest

import nereid

OFF = {"http_port": None, "grpc_port": None, "metrics_port": None, "log_error": False}


@pytest.fixture
def serve():
    """Serves functions of a test's own in this process only."""
    started = []

    def start(*functions):
        started.append(nereid.serve(*functions, block=False, **OFF))
        return started[-1]

    yield start
    for server in started:
        if server.is_running():
            server.stop()


# --- Texts ----------------------------------------------------------------------------------------


@nereid.model
def same_text(x: str) -> str:
    return x


@nereid.model
def same_bytes(x: bytes) -> bytes:
    return x


@nereid.model
def same_texts(x: list[str]) -> list[str]:
    return x


@nereid.model
def same_array(x: (str, (-1, 2))) -> (str, (-1, 2)):
    return x


@nereid.model(max_batch_size=4)
def same_rows(x: list[str]) -> list[str]:
    return x


def test_nulls_at_the_end_of_a_text_stay(serve, repository):
    server = serve(same_text, same_bytes, same_texts, same_array, same_rows)
    assert server.infer(same_text, x="ab\0") == "ab\0"
    assert server.infer(same_bytes, x=b"ab\0\0") == b"ab\0\0"
    assert server.infer(same_texts, x=["a\0", "", "\0"]) == ["a\0", "", "\0"]
    assert server.infer(same_array, x=[["a\0", "b"]]).tolist() == [["a\0", "b"]]
    assert server.infer(same_rows, x=["a\0", "b\0\0"]) == ["a\0", "b\0\0"]
    for given in (["a\0", "b\0\0"], [b"a\0", b"b\0\0"]):
        (response,) = server.model("same_texts").infer(inputs={"x": given})
        assert response.outputs["output"].to_list() == [b"a\0", b"b\0\0"]
    with nereid.serve(str(repository), block=False, startup_models=["identity_bytes"], **OFF) as other:
        assert other.infer("identity_bytes", INPUT0=["a\0"])["OUTPUT0"].tolist() == [b"a\0"]


@pytest.mark.parametrize(
    "output, value, wrong",
    [
        (str, None, "None"),
        (list[str], ["a", None], "None"),
        ((str, (-1,)), [["a"], ["b", "c"]], "list"),
        ((str, (-1,)), ["a", ("b", "c")], "tuple"),
        (bytes, {}, "dict"),
    ],
)
def test_what_is_no_text_is_not_sent_as_its_representation(serve, output, value, wrong):
    @nereid.model(outputs={"text": output})
    def other(x: int):
        return {"text": value}

    with pytest.raises(nereid.TritonError, match=f"model 'other': output 'text' has {wrong} in the place of texts"):
        serve(other).infer("other", x=1)


def test_numbers_and_paths_are_sent_as_their_texts(serve):
    @nereid.model
    def texts(x: int) -> list[str]:
        return [x, 2.5, np.int8(3), pathlib.PurePosixPath("a/b")]

    assert serve(texts).infer("texts", x=1) == ["1", "2.5", "3", "a/b"]


# --- bfloat16 -------------------------------------------------------------------------------------


def test_bfloat16_comes_and_goes(serve):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16

    @nereid.model(inputs={"x": (bfloat16, (-1,))}, outputs=(bfloat16, (-1,)))
    def twice(x):
        assert x.dtype == bfloat16
        return x * 2

    @nereid.model(inputs={"x": (bfloat16, (-1,))}, outputs=np.float32)
    def widened(x):
        return x

    @nereid.model(inputs={"x": (np.float32, (-1,))}, outputs=(bfloat16, (-1,)))
    def narrowed(x):
        return x

    server = serve(twice, widened, narrowed)
    for count in (3, 100_000):  # copied, and sent from where they are
        given = (np.arange(count) % 100).astype(bfloat16)
        result = server.infer("twice", x=given)
        assert result.dtype == bfloat16
        assert (result == given * 2).all()
    wide = server.infer("widened", x=np.array([1.5, -2], bfloat16))
    assert (wide.dtype, wide.tolist()) == (np.float32, [1.5, -2])
    assert server.infer("narrowed", x=np.array([1.5, np.inf], np.float32)).tolist() == [1.5, np.inf]
    with pytest.raises(nereid.TritonError, match="output 'output' has the value 3.4.*, which bfloat16 cannot hold"):
        server.infer("narrowed", x=np.array([3.4e38], np.float32))


# --- Numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "output, value, wrong",
    [
        (int, 2**63 + 1, 2**63 + 1),
        (list[int], [2**63, 2**63 + 2], 2**63 + 2),
        (np.int8, np.array([300, -129]), 300),
        (np.int8, np.array([1, -129]), -129),
        (np.uint8, np.array([256], np.uint16), 256),
        (np.int32, np.array([2**31]), 2**31),
        (np.float16, np.array([70000]), 70000),
        # Those that would become infinite.
        (np.float32, np.array([1.0, 1e300]), "1e\\+300"),
        (np.float32, np.array([math.nan, -1e39, math.inf]), "-1e\\+39"),
        (np.float16, np.array([[65520.0]], np.float32).ravel(), "65520.0"),
        (list[float], np.array([np.finfo(np.longdouble).max]), "1.18973.*"),
        ((np.float32, (2, 2)), np.asfortranarray([[1.0, 2.0], [-1e200, 3.0]]), "-1e\\+200"),
    ],
)
def test_a_number_that_the_type_cannot_hold_is_refused(serve, output, value, wrong):
    @nereid.model
    def large(x: int) -> output:
        return value

    with pytest.raises(nereid.InternalError, match=f"output 'output' has the value {wrong}, which .* cannot hold"):
        serve(large).infer(large, x=1)


def test_infinite_numbers_of_the_functions_own_and_rounded_ones_stay(serve):
    @nereid.model
    def odd(x: npt.NDArray[np.float32]) -> [np.float32, np.float16, (np.float32, (2, 2))]:
        most = float(np.finfo(np.float32).max)
        matrix = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
        return np.array([math.inf, -math.inf, math.nan, most * (1 + 1e-9), 1e-300]), np.array([65519.0]), matrix

    server = serve(odd)
    single, half, matrix = server.infer(odd, x=np.zeros(1))
    assert single[:2].tolist() == [math.inf, -math.inf] and math.isnan(single[2])
    assert single[3:].tolist() == [np.finfo(np.float32).max, 0] and half.tolist() == [65504]
    assert matrix.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(nereid.InvalidArgumentError, match="input 'x' has the value 1e\\+39, which float32 cannot hold"):
        server.infer(odd, x=[1e39])


# --- Memory ---------------------------------------------------------------------------------------

# Whether a result is sent from where it is depends on how many references to it there are; how many references the
# counting itself makes depends on Python's version.
COUNTED = """
import sys

count = sys.getrefcount
# The call and this function each make one; since Python 3.14 the call makes none.
sys.getrefcount = lambda thing: count(thing) - {less}

sys.path.insert(0, {path!r})
import nereid
import numpy as np

kept = np.zeros(100_000, np.int64)

@nereid.model
def fill(x: int) -> np.int64:
    kept[:] = x
    return kept

@nereid.model
def make(x: int) -> np.int64:
    return np.full(100_000, x)

from nereid._functions import _run
lent = []
pack = _run.Runner._pack
def noted(*arguments):
    packed = pack(*arguments)
    lent.append(packed[0][-1])
    return packed
_run.Runner._pack = noted

with nereid.serve(fill, make, block=False, http_port=None, grpc_port=None, metrics_port=None) as server:
    responses = [next(server.model("fill").infer(inputs={{"x": np.array([i])}})) for i in range(3)]
    print([sorted(set(response.outputs["output"].to_list())) for response in responses], set(lent))
    lent.clear()
    responses = [next(server.model("make").infer(inputs={{"x": np.array([i])}})) for i in range(3)]
    print([sorted(set(response.outputs["output"].to_list())) for response in responses], set(lent))
"""


@pytest.mark.parametrize("less", [1, 2], ids=["until Python 3.13", "since Python 3.14"])
def test_only_a_result_that_nothing_else_refers_to_is_sent_from_where_it_is(less):
    program = COUNTED.format(less=less, path=str(sys.modules["nereid"].__path__[0]).rsplit("/", 1)[0])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[[0], [1], [2]] {False}\n[[0], [1], [2]] {True}\n", done.stdout + done.stderr
