# SPDX-License-Identifier: Apache-2.0
"""The repository of the server that most tests share.

| model | what it is |
| --- | --- |
| id_TYPE | identity, no batches, dims [-1,-1] |
| idb_TYPE | identity, batches up to 8, dims [-1] |
| id_pair | identity, two FP32 pairs, dims [-1] |
| id_scalar | identity in batches, whose elements of shape [1] the backend sees as scalars |
| id_slow | identity that takes 300 ms |
| onnx_id_TYPE | ONNX Identity, dims [-1,-1] |
| onnx_add_TYPE | ONNX add and subtract, batches, [16] |
| simple, simple_string, simple_int8, simple_identity, digits | the examples |
"""

from harness import models

ONNX_IDENTITY_TYPES = [t for t in models.TYPES if t != "BF16"]
ONNX_ADD_TYPES = ["INT32", "INT64", "FP32", "FP64"]


def write(path, with_onnx):
    for datatype in models.TYPES:
        models.write_model(path, f"id_{datatype}", models.identity_config(datatype, [-1, -1]))
        models.write_model(
            path, f"idb_{datatype}", models.identity_config(datatype, [-1], max_batch_size=8)
        )
    models.write_model(path, "id_pair", models.identity_config("FP32", [-1], count=2))
    scalar = models.identity_config("FP32", [1], max_batch_size=4, tensor_extra="reshape { shape: [ ] }")
    models.write_model(path, "id_scalar", scalar)
    slow = 'parameters { key: "execute_delay_ms" value: { string_value: "300" } }'
    models.write_model(path, "id_slow", models.identity_config("FP32", [-1], extra=slow))
    models.copy_example(path, "simple_identity")
    if with_onnx:
        write_onnx(path)


def write_onnx(path):
    for datatype in ONNX_IDENTITY_TYPES:
        files = {"model.onnx": models.onnx_identity(datatype, ["rows", "columns"])}
        config = (
            'platform: "onnxruntime_onnx"\nmax_batch_size: 0\n'
            f"input [ {models.tensor_config('INPUT0', datatype, [-1, -1])} ]\n"
            f"output [ {models.tensor_config('OUTPUT0', datatype, [-1, -1])} ]\n"
        )
        models.write_model(path, f"onnx_id_{datatype}", config, {"1": files})
    for datatype in ONNX_ADD_TYPES:
        # No configuration file: the server completes it from the model.
        models.write_model(
            path,
            f"onnx_add_{datatype}",
            None,
            {"1": {"model.onnx": models.onnx_add_sub(datatype, ["n", 16])}},
        )
    for name in ("simple", "simple_string", "simple_int8", "digits"):
        models.copy_example(path, name)
