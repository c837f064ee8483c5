// SPDX-License-Identifier: Apache-2.0
#include "check/testing/kind_cases.h"

namespace nereid::check {

std::vector<KindCase> FolderCases() {
  const std::string onnx = "backend: \"onnxruntime\"\n";
  return {
      {"repository-unreadable", "nowhere", "folder that contains", {}, Setting::kNoSuchRepository},
      {"repository-empty", "", "folder that contains", {{"notes.txt", ""}}},
      {"repository-is-model", "", "around this one", {{"1/model.onnx", "x"}}},
      {"folder-hidden", ".git", "Move or delete", {{".git/HEAD", ""}}},
      {"folder-nested", "all", "one level up", {{"all/m/config.pbtxt", Plain()}}},
      {"folder-name", "m/config.pbtxt:5:7", "leave `name` out", PlainModel("name: \"n\"\n")},
      {"model-duplicate", "m", "--model-namespacing", Model(Plain()), Setting::kTwoRepositories},
      {"config-unreadable",
       "m/config.pbtxt",
       "regular file",
       {{"m/1/", ""}, {"m/config.pbtxt/", ""}}},
      {"config-missing", "m", "nereid init", {{"m/1/model.onnx", "x"}}, Setting::kStrict},
      {"config-misplaced", "m", "config.pbtxt", {{"m/1/model.onnx", "x"}, {"m/config.json", ""}}},
      {"version-missing", "m", "m/1/model.onnx", {{"m/model.onnx", "x"}}},
      {"version-name", "m/v1", "a number such as '1'", PlainModel("", {{"m/v1/", ""}})},
      {"version-is-file", "m/2", "Make a folder", PlainModel("", {{"m/2", ""}})},
      {"version-not-there", "m/config.pbtxt:5:44", "Remove the version",
       PlainModel("version_policy { specific { versions: [ 1, 3 ] } }\n")},
      {"version-none-served", "m/config.pbtxt:5:1", "remove version_policy",
       PlainModel("version_policy { specific { versions: 3 } }\n")},
      {"backend-unidentified",
       "m/config.pbtxt:1:1",
       "net.onnx",
       {{"m/1/net.onnx", "x"}, {"m/config.pbtxt", "max_batch_size: 1\n"}}},
      {"model-file-missing", "m/1", "default_model_filename", Model(onnx)},
      {"model-file-name",
       "m/1",
       "Rename 'net.onnx' to 'model.onnx'",
       {{"m/1/net.onnx", "x"}, {"m/config.pbtxt", onnx}}},
      {"model-file-empty",
       "m/1/model.onnx",
       "Copy the file again",
       {{"m/1/model.onnx", ""}, {"m/config.pbtxt", onnx}}},
      {"model-file-is-pointer",
       "m/1/model.onnx",
       "git lfs pull",
       {{"m/1/model.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"}}},
      {"model-file-part-missing", "m/1", "same folder", {{"m/1/model.xml", "<net/>"}}},
      {"model-files-several",
       "m/1",
       "Write `backend`",
       {{"m/1/model.xml", "x"}, {"m/1/model.onnx", "x"}}},
      {"python-class-missing",
       "m/1/model.py",
       "TritonPythonModel",
       {{"m/1/model.py", "print(1)\n"}}},
  };
}

std::vector<KindCase> TextCases() {
  return {
      {"syntax", "m/config.pbtxt:5:16", "Correct", PlainModel("instance_group count: 1\n")},
      {"config-is-json", "m/config.pbtxt:1:1", "outer braces",
       Model("{ \"backend\": \"identity\" }\n")},
      {"text-encoding", "m/config.pbtxt:5:7", "UTF-8", PlainModel("name: \"m\xff\"\n")},
      {"field-unknown", "m/config.pbtxt:5:1", "dynamic_batching",
       PlainModel("dynamic_baching { }\n")},
      {"field-repeated", "m/config.pbtxt:5:1", "one of the two", PlainModel("max_batch_size: 8\n")},
      {"fields-exclusive", "m/config.pbtxt:6:1", "one of the two",
       PlainModel("dynamic_batching { }\nsequence_batching { }\n")},
      {"value-unknown", "m/config.pbtxt:5:35", "TYPE_FP32",
       PlainModel("input { name: \"INPUT1\" data_type: FLOAT32 dims: 1 }\n")},
      {"value-type", "m/config.pbtxt:5:25", "expected type",
       PlainModel("instance_group { count: \"two\" }\n")},
  };
}

}  // namespace nereid::check
