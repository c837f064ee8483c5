// SPDX-License-Identifier: Apache-2.0
#include "check/testing/kind_cases.h"

namespace nereid::check {

std::vector<KindCase> TensorCases() {
  const auto with = [](const std::string& input) {
    return PlainModel("input { " + input + " }\n" +
                      "output { name: \"OUTPUT1\" data_type: TYPE_FP32 dims: 2 }\n");
  };
  const std::string one = "name: \"INPUT1\" data_type: TYPE_FP32 ";
  const std::string big = "dims: [ 4294967296, 4294967296 ]";
  const std::string labels =
      "backend: \"identity\"\n"
      "input { name: \"INPUT0\" data_type: TYPE_FP32 dims: 2 }\n"
      "output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: 2 label_filename: \"labels.txt\" }\n";
  return {
      {"tensor-name", "m/config.pbtxt:5:7", "name", with("data_type: TYPE_FP32 dims: 2")},
      {"tensor-twice", "m/config.pbtxt:5:15", "Remove",
       with("name: \"INPUT0\" data_type: TYPE_FP32 dims: 2")},
      {"tensor-type", "m/config.pbtxt:5:7", "TYPE_FP32", with("name: \"INPUT1\" dims: 2")},
      {"tensor-dims", "m/config.pbtxt:5:7", "Write its dimensions", with(one)},
      {"tensor-missing",
       "m/config.pbtxt:1:1",
       "config.pbtxt",
       {{"m/1/model.pt", "x"}, {"m/config.pbtxt", "platform: \"pytorch_libtorch\"\n"}}},
      {"tensor-size", "m/config.pbtxt:5:45", "Correct", with(one + big + " reshape { shape: 1 }")},
      {"dims-range", "m/config.pbtxt:5:45", "-1", with(one + "dims: [ 0, 2 ]")},
      {"dims-batch", "m/config.pbtxt:4:3", "remove it",
       Model(
           "backend: \"identity\"\nmax_batch_size: 4\ninput {\n  dims: [ -1, 2 ] name: \"INPUT0\" "
           "data_type: TYPE_FP32 }\n"
           "output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1, 2 ] }\n")},
      {"reshape-empty", "m/config.pbtxt:2:63", "at least one",
       Model(
           "backend: \"identity\"\ninput { name: \"INPUT0\" data_type: TYPE_FP32 dims: 1 reshape { "
           "shape: [ ] } }\n"
           "output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: 1 }\n")},
      {"reshape-size", "m/config.pbtxt:5:63", "same number",
       with(one + "dims: 2 reshape { shape: 3 }")},
      {"reshape-variable", "m/config.pbtxt:5:64", "same number of -1",
       with(one + "dims: -1 reshape { shape: [ -1, -1 ] }")},
      {"format-dims", "m/config.pbtxt:5:65", "remove format",
       with(one + "format: FORMAT_NHWC dims: 2")},
      {"shape-tensor-platform", "m/config.pbtxt:5:70", "Remove",
       with(one + "dims: 2 is_shape_tensor: true")},
      {"non-linear-format", "m/config.pbtxt:5:78", "Remove",
       with(one + "dims: 2 is_non_linear_format_io: true")},
      {"batch-kind", "m/config.pbtxt:5:21", "BATCH_ELEMENT_COUNT",
       PlainModel("batch_input { kind: 9 target_name: \"B\" data_type: TYPE_FP32 source_input: "
                  "\"INPUT0\" }\n")},
      {"batch-source-count", "m/config.pbtxt:5:13", "one input",
       PlainModel("batch_input { target_name: \"B\" data_type: TYPE_FP32 }\n")},
      {"batch-source-unknown", "m/config.pbtxt:5:67", "an input",
       PlainModel("batch_input { target_name: \"B\" data_type: TYPE_FP32 source_input: \"X\" }\n")},
      {"batch-input-type", "m/config.pbtxt:5:43", "one of the two",
       PlainModel(
           "batch_input { target_name: \"B\" data_type: TYPE_INT8 source_input: \"INPUT0\" }\n")},
      {"batch-output-unknown", "m/config.pbtxt:5:29", "an output",
       PlainModel("batch_output { target_name: \"X\" source_input: \"INPUT0\" }\n")},
      {"batch-output-twice", "m/config.pbtxt:5:16", "once",
       PlainModel("batch_output { target_name: [ \"OUTPUT0\", \"OUTPUT0\" ] source_input: "
                  "\"INPUT0\" }\n")},
      {"label-file", "m/config.pbtxt:3:71", "relative", Model(labels)},
      {"label-count",
       "m/config.pbtxt:3:71",
       "one line",
       {{"m/1/", ""}, {"m/config.pbtxt", labels}, {"m/labels.txt", "a\nb\nc\n"}}},
      {"path-outside", "m/config.pbtxt:5:71", "into the model's folder",
       PlainModel("output { name: \"OUTPUT1\" data_type: TYPE_FP32 dims: 2 label_filename: "
                  "\"../../labels.txt\" }\n")},
  };
}

}  // namespace nereid::check
