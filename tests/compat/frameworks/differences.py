# SPDX-License-Identifier: Apache-2.0
"""Where this server differs from the reference on purpose, and what it says instead."""

import dataclasses
import re


@dataclasses.dataclass
class Difference:
    """`parts` are "model: part"; `says` is "status code error" of this server; both are regular expressions
    that must fit the whole. `row` is the first column of a row of docs/differences.md."""

    parts: str
    says: str
    row: str

    def fits(self, part, said):
        return re.fullmatch(self.parts, part, re.DOTALL) and re.fullmatch(self.says, said, re.DOTALL)


def of_load(names, says, row):
    """Models whose load has another end; what follows a load is not compared then."""
    return Difference(rf"({names}): load", says, row)


SERVED = "200"
REFUSED = "400 .*"
FRAMEWORKS = {
    "pytorch": [
        of_load("torch_(echo|batch|sums)_(BF16|UINT16|UINT32|UINT64)", SERVED, "TorchScript: `TYPE_BF16`"),
        of_load("torch_names_(list|optional)", SERVED, "TorchScript models that take or return nested"),
        Difference(r"torch_result_(dictionary|list|nested): three rows", "200 OK", "TorchScript models that take or return nested"),
        Difference(r"torch_result_(nothing|number): three rows", "400 INVALID_ARGUMENT .*OUTPUT__[01]'.*", "TorchScript models that take or return nested"),
        of_load("torch_load_no_outputs", SERVED, "TorchScript: a configuration without outputs"),
        Difference("torch_result_scalar_unbatched: three rows", "200 OK", "TorchScript: an output without dimensions"),
        Difference("torch_result_scalar: three rows", ".* is a scalar which is not supported.", "the beginning `[request id: …]`"),
        Difference("torch_result_(another_rank|transposed): three rows", "501 UNIMPLEMENTED .*failed to split the output.*", "outputs that do not have one row for each row of a batch"),
        of_load("torch_names_number_(beyond|twice)", REFUSED, "TorchScript: names that fit no argument"),
        of_load("torch_names_(output_beyond|three_outputs)", REFUSED, "TorchScript: an output name that the result does not have"),
        of_load("torch_(tensor_to_texts|texts_to_tensor)", REFUSED, "TorchScript: names that fit no argument"),
        of_load("torch_state_.*_without_number", SERVED, "TorchScript: states and inputs of sequences"),
        of_load("torch_load_(empty|text)", REFUSED, "model files that are no models"),
    ],
    "openvino": [
        of_load("openvino_(echo|batch|sums)_(BF16|BYTES|FP64)|openvino_converted", SERVED, "OpenVINO: `TYPE_STRING`"),
        of_load("openvino_(scalar|state|load_kind_model|variable_(1x4|nx4))", SERVED, "OpenVINO: `TYPE_STRING`"),
        Difference("openvino_.*: ((1|2|3|4|two|three) rows|one output|a row)", "200 OK", "OpenVINO: batches of other sizes"),
        Difference("openvino_parameter_ENABLE_BATCH_PADDING_YES: 8 rows", "200 OK", "OpenVINO: batches of other sizes"),
        of_load("openvino_(completed_(batched_|unbatched_)?nx4|completed_outputs|onnx_completed)", SERVED, "OpenVINO: a configuration that leaves out"),
        Difference("openvino_completed_nxn: (config|metadata)", "200", "OpenVINO: a configuration that leaves out"),
        of_load("openvino_load_(flat|narrow)_(input|output)", ".*complete shape \\[-1,.*", "OpenVINO: batches of other sizes"),
        of_load("openvino_load_(empty|text|missing)", REFUSED, "model files that are no models"),
        of_load("openvino_load_text_input", ".*configuration expects datatype TYPE_STRING.*", "OpenVINO: `TYPE_STRING`"),
        of_load("openvino_parameter_CPU_EXTENSION_PATH.*", ".*Cannot add extension.*", "model files that are no models"),
        of_load("openvino_parameter_(ENABLE_BATCH_PADDING|RESHAPE_IO_LAYERS|SKIP_OV_DYNAMIC_BATCHSIZE)_maybe", REFUSED, "OpenVINO: values other than `YES` and `NO`"),
        Difference("openvino_variable_inside: time .*", "200 OK", "OpenVINO: variables inside a model"),
    ],
}
COMMON = [
    of_load(".*", "(400|500) .*(GPU|\n  <repository>).*", "texts of frequent mistakes"),
    Difference(".*: 0 rows", "400 .* batch-size must be >= 1 .*", "HTTP request with an empty batch"),
    Difference(".*: (a dimension (more|less)|no elements|too wide|another type|batches of two sizes|an unknown input|3 rows)",
               "400 INVALID_ARGUMENT .*", "which of several wrong inputs an error names"),
    Difference(".*: an output twice", "400 .*already exists in request", "an output that is requested twice"),
]


def reason(framework, part, said):
    """The difference that is meant; None if there is none."""
    for difference in FRAMEWORKS[framework] + COMMON:
        if difference.fits(part, said):
            return difference
    return None
