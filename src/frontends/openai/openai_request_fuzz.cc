// SPDX-License-Identifier: Apache-2.0
// Fuzzes the readers of requests of OpenAI's API, up to the inputs of a model that takes fields of
// every type, and the filter of texts.
#include <algorithm>
#include <memory>

#include "base/check.h"
#include "core/model.h"
#include "fuzz/fuzz.h"
#include "openai/fields.h"
#include "openai/inputs.h"
#include "openai/text_filter.h"
#include "tensor/shape.h"

namespace {

namespace core = nereid::core;
namespace openai = nereid::openai;
using nereid::tensor::DataType;
using openai::Task;

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr, bool) override {}
};

std::unique_ptr<core::Model> MakeModel() {
  core::ModelOptions options;
  options.name = "m";
  options.config = std::make_shared<nereid::config::ModelConfig>();
  const auto add = [&](std::string name, DataType type, int64_t dim) {
    core::ModelTensor tensor;
    tensor.name = std::move(name);
    tensor.type = type;
    tensor.dims = tensor.model_dims = nereid::tensor::Shape({dim});
    options.inputs.push_back(std::move(tensor));
  };
  add("text_input", DataType::kBytes, 1);
  add("stop", DataType::kBytes, -1);
  add("tools", DataType::kBytes, 1);
  add("max_tokens", DataType::kInt8, 1);
  add("seed", DataType::kInt64, 1);
  add("n", DataType::kUint32, 1);
  add("temperature", DataType::kFp32, 1);
  add("stream", DataType::kBool, 1);
  return std::make_unique<core::Model>(std::move(options));
}

void Read(const openai::JsonValue& body, Task task, core::Model& model) {
  if (!openai::CheckFields(body, task).ok()) return;
  NEREID_CHECK(openai::ModelName(body).data() != nullptr);
  // A request for embeddings may have any field of this name: it stops nothing.
  if (task != Task::kEmbeddings) NEREID_CHECK(openai::StopSequences(body).size() <= 4);
  std::string prompt;
  if (task == Task::kChat) {
    if (!openai::AppendPrompt(body, prompt).ok()) return;
  } else {
    const openai::Texts read = openai::ReadTexts(body, task);
    if (!read.error.ok()) return;
    prompt = read.texts.front();
  }
  static NoSink sink;
  core::RequestPtr request = core::Request::Create(sink);
  NEREID_CHECK(model.TryPin());
  request->model = core::ModelHandle(model);
  const std::string_view text = prompt;
  nereid::config::OpenAiContract contract;
  contract.text_input = "text_input";
  const openai::ApiError error =
      openai::FillRequest(body, contract, {contract.text_input, {&text, 1}}, false, *request);
  for (const core::RequestInput& input : request->inputs) {
    if (!error.ok() || input.type == DataType::kBytes) continue;
    const auto size = nereid::tensor::ByteSize(input.type, input.shape.dims());
    NEREID_CHECK(size && *size == input.byte_size);
  }
}

// Cut anywhere, a text comes out the same.
void Filter(std::string_view text) {
  openai::TextFilter filter({"ab", "]]"});
  std::string out;
  filter.Push(text.substr(0, text.size() / 2), out);
  filter.Push(text.substr(text.size() / 2), out);
  if (!filter.stopped()) filter.Finish(out);
  openai::TextFilter whole({"ab", "]]"});
  std::string expected;
  whole.Push(text, expected);
  if (!whole.stopped()) whole.Finish(expected);
  NEREID_CHECK(out == expected);
  NEREID_CHECK(openai::CleanText(out) == out);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {R"({"model":"m","messages":[{"role":"user","content":"hi"}],"stop":["a","b"],"seed":-3,)"
          R"("tools":[{"type":"function","function":{"name":"f"}}],"max_tokens":9,"stream":true,)"
          R"("stream_options":{"include_usage":true},"temperature":0.5})",
          R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]})",
          R"({"model":"m","prompt":"hi","stop":"ab","n":1,"top_p":1})",
          R"({"model":"m","input":["a","b"],"encoding_format":"base64","dimensions":2})"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static core::Model* const model = MakeModel().release();
  // A copy of exactly this size, for AddressSanitizer.
  const auto copy = std::make_unique<char[]>(size);
  std::copy_n(reinterpret_cast<const char*>(data), size, copy.get());
  const std::string_view text(copy.get(), size);
  Filter(text);
  rapidjson::Document body;
  if (!openai::ParseBody(text, body).ok()) return 0;
  std::string json;
  openai::AppendJson(body, json);
  for (const Task task : {Task::kChat, Task::kCompletions, Task::kEmbeddings}) {
    Read(body, task, *model);
  }
  return 0;
}
