# SPDX-License-Identifier: Apache-2.0
"""Tensors and their memory, which need no server."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import nereid


def test_memory_is_shared_both_ways_and_held():
    owner = np.arange(6, dtype=np.float32).reshape(2, 3)
    count = sys.getrefcount(owner)
    tensor = nereid.Tensor.from_dlpack(owner)
    assert sys.getrefcount(owner) == count + 1
    assert (tensor.data_ptr, tensor.size) == (owner.ctypes.data, owner.nbytes)
    view = np.from_dlpack(tensor)
    assert view.ctypes.data == owner.ctypes.data
    gone = weakref.ref(tensor)
    del tensor
    gc.collect()
    assert gone() is not None
    owner[0, 0] = 9
    assert view[0, 0] == 9
    del view
    gc.collect()
    assert gone() is None and sys.getrefcount(owner) == count


def test_unused_and_used_capsules_end_once():
    tensor = nereid.Tensor.from_dlpack(np.ones(3))
    count = sys.getrefcount(tensor)
    for version in (None, (1, 0)):
        capsule = tensor.__dlpack__(max_version=version)
        assert sys.getrefcount(tensor) == count + 1
        del capsule
        assert sys.getrefcount(tensor) == count
        nereid.Tensor.from_dlpack(tensor)
        assert sys.getrefcount(tensor) == count


def test_read_only_memory_stays_so():
    owner = np.ones(3)
    owner.flags.writeable = False
    assert not np.from_dlpack(nereid.Tensor.from_dlpack(owner)).flags.writeable
    assert np.from_dlpack(nereid.Tensor.from_dlpack(np.ones(3))).flags.writeable


def test_copies_are_copies():
    owner = np.ones(3)
    copy = np.from_dlpack(nereid.Tensor.from_dlpack(owner), copy=True)
    owner[:] = 2
    assert copy.tolist() == [1, 1, 1]


def test_shapes_can_be_changed():
    tensor = nereid.Tensor.from_dlpack(np.arange(6))
    tensor.shape = [2, 3]
    assert np.from_dlpack(tensor).shape == (2, 3) and tensor.to_list() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("obj", [5, "text", np.ones((4, 4))[:, 1], np.ones(2, dtype=complex), np.array(["a"])])
def test_what_dlpack_cannot_lend_is_refused(obj):
    with pytest.raises(nereid.InvalidArgumentError):
        nereid.Tensor.from_dlpack(obj)
    with pytest.raises(nereid.InvalidArgumentError):
        np.from_dlpack(nereid.Tensor.from_string_array(["a"]))


def test_a_false_capsule_is_refused():
    class Liar:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            return "no capsule"

    with pytest.raises(nereid.InvalidArgumentError):
        nereid.MemoryBuffer.from_dlpack(Liar())


def test_texts_go_to_memory_and_back():
    tensor = nereid.Tensor.from_bytes_array([["a", "bc"], ["", "ß"]])
    assert tensor.data_type == nereid.DataType.BYTES and tuple(tensor.shape) == (2, 2)
    assert tensor.to_string_array().tolist() == [["a", "bc"], ["", "ß"]]
    assert tensor.to_bytes_array().tolist() == [[b"a", b"bc"], [b"", "ß".encode()]]
    assert np.asarray(tensor).shape == (2, 2)
    assert nereid.Tensor.from_string_array(np.array([["x"]])).to_list() == [[b"x"]]
    with pytest.raises(nereid.InvalidArgumentError):
        nereid.Tensor.from_bytes_array([1, 2])
    with pytest.raises(nereid.InvalidArgumentError):
        nereid.Tensor.from_dlpack(np.ones(2)).to_bytes_array()


ENDS = [b"\0", b"ab\0", b"ab\0\0", b"", b"\0ab"]


@pytest.mark.parametrize(
    "given",
    [
        ENDS,
        [[one] for one in ENDS],
        tuple(ENDS),
        [one.decode() for one in ENDS],
        [np.bytes_(one) for one in ENDS],
        [np.str_(one.decode()) for one in ENDS],
        np.array(ENDS, dtype=object),
        [np.array([one], dtype=object) for one in ENDS],
        [b"\0", *(one.decode() for one in ENDS[1:])],
    ],
)
def test_nulls_at_the_end_of_a_text_stay(given):
    tensor = nereid.Tensor.from_bytes_array(given)
    assert tensor.to_bytes_array().ravel().tolist() == ENDS
    assert tensor.to_string_array().ravel().tolist() == [one.decode() for one in ENDS]
    assert nereid.Tensor.from_string_array(given).to_list() == tensor.to_list()
    tensor.shape = [5, 1]
    assert tensor.to_string_array().shape == (5, 1)


def test_texts_without_nulls_at_the_end_have_numpys_type_of_texts():
    assert nereid.Tensor.from_bytes_array(["a", "bc", "d\0e"]).to_string_array().dtype == np.dtype("U3")
    assert nereid.Tensor.from_bytes_array(["a", "b\0"]).to_string_array().dtype == np.dtype(object)


@pytest.mark.parametrize(
    "given, texts",
    [([1, "a\0"], [b"1", b"a\0"]), ([2.5, True, b"a\0"], [b"2.5", b"True", b"a\0"]), (["a\0", None], [b"a\0", b"None"])],
)
def test_what_stands_beside_texts_becomes_one(given, texts):
    assert nereid.Tensor.from_bytes_array(given).to_list() == texts


@pytest.mark.parametrize(
    "given", [["a", ["b"]], [["a"], ["b", "c"]], [["a", "b"], ["c", ["d"]]], ["a", np.array(["b", "c"])], [["a"], 1]]
)
def test_lists_of_texts_of_different_lengths_are_refused(given):
    with pytest.raises(nereid.InvalidArgumentError):
        nereid.Tensor.from_bytes_array(given)


def test_one_long_text_does_not_make_the_others_long():
    """Each of a million texts would have room for the longest, which are 4 TB."""
    tensor = nereid.Tensor.from_bytes_array([""] * 999_999 + ["a" * 1_000_000])
    assert tensor.size == 4 * 1_000_000 + 1_000_000


@pytest.mark.parametrize("data", [b"\x01", b"\x05\0\0\0abc", b"\xff\xff\xff\xffabc", b"\x01\0\0\0ab"])
def test_texts_that_are_cut_off_are_refused(data):
    memory = nereid.MemoryBuffer.from_dlpack(np.frombuffer(bytearray(data), dtype=np.uint8))
    with pytest.raises(nereid.InvalidArgumentError):
        nereid.Tensor(nereid.DataType.BYTES, [1], memory).to_bytes_array()


def test_as_many_texts_as_the_shape_says_are_needed():
    tensor = nereid.Tensor.from_bytes_array(["a", "b"])
    tensor.shape = [3]
    with pytest.raises(nereid.InvalidArgumentError, match="2 elements"):
        tensor.to_string_array()


@pytest.mark.parametrize(
    "device", ["cpu", "CPU:0", nereid.MemoryType.CPU, (nereid.MemoryType.CPU, 0), (nereid.DLDeviceType.kDLCPU, 0)]
)
def test_a_tensor_on_the_host_is_there(device):
    tensor = nereid.Tensor.from_dlpack(np.ones(3))
    assert tensor.to_device(device) is tensor and tensor.to_host() is tensor


@pytest.mark.parametrize("device", ["tpu", "gpu:", "gpu:-1", "cpu:0:0", 3, ("cpu", 0), (nereid.MemoryType.GPU, "a")])
def test_devices_that_there_are_not(device):
    with pytest.raises(nereid.InvalidArgumentError):
        nereid.Tensor.from_dlpack(np.ones(3)).to_device(device)


def test_everything_but_arrays_works_without_numpy(repository):
    program = f"""
import sys
sys.modules["numpy"] = None
sys.path[:] = {sys.path!r}
import nereid
with nereid.Server(model_repository={str(repository)!r}) as server:
    def identity(model, value):
        (response,) = server.model(model).infer(inputs={{"INPUT0": value}})
        return response.outputs["OUTPUT0"]
    assert identity("identity_int64", [1, 2]).to_list() == [1, 2]
    assert identity("identity_fp64", [1, 2.5]).to_list() == [1, 2.5]
    assert identity("identity_bool", [True, False]).to_list() == [True, False]
    assert identity("identity_bytes", ["a", "b"]).to_list() == [b"a", b"b"]
    for wrong in ([[1], [1, 2]], [1, "a"], [1 << 70], [None]):
        try:
            identity("identity_int64", wrong)
            raise SystemExit(f"{{wrong}} was accepted")
        except nereid.InvalidArgumentError:
            pass
    try:
        identity("identity_bytes", ["a"]).to_bytes_array()
        raise SystemExit("an array without numpy")
    except nereid.UnsupportedError:
        pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
