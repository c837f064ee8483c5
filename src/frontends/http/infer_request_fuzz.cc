// SPDX-License-Identifier: Apache-2.0
// Fuzzes bodies of inference requests: the header field that says where the JSON ends (the first
// line of the input), JSON, and tensors after it. What the quick reader accepts, the exact reader
// accepts too, with the same result.
#include "http/infer_request.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "core/model.h"
#include "core/testing/fakes.h"
#include "fuzz/fuzz.h"
#include "http/header_length.h"
#include "http/quick_reader.h"

namespace {

namespace base = nereid::base;
namespace core = nereid::core;
namespace http = nereid::http;

constexpr size_t kLimit = 1 << 16;
constexpr size_t kPadding = 64;  // readable bytes that readers need after the text

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr, bool) override {}
};

core::RequestPtr NewRequest(core::ResponseSink& sink) {
  static core::Model* const model = core::MakeFakeModel(8, {4}).release();
  core::RequestPtr request = core::Request::Create(sink);
  NEREID_CHECK(model->TryPin());
  request->model = core::ModelHandle(*model);
  return request;
}

// Returns the bytes of an input, from its chunk.
std::string_view Data(const core::RequestInput& input) {
  NEREID_CHECK(input.more.empty());
  return {reinterpret_cast<const char*>(input.first.data), input.first.size};
}

// Checks that the exact reader reads the same from the text.
void CheckIsExact(std::string_view json, std::string_view binary, const core::Request& taken,
                  const http::ResponseOptions& response_options) {
  static NoSink sink;
  core::RequestPtr exactly = NewRequest(sink);
  http::ResponseOptions exact_options;
  NEREID_CHECK(
      http::infer_internal::ReadExactly(json, binary, kLimit, *exactly, exact_options).ok());
  NEREID_CHECK(taken.id == exactly->id && taken.flags == exactly->flags);
  NEREID_CHECK(taken.correlation_id == exactly->correlation_id);
  NEREID_CHECK(taken.priority == exactly->priority && taken.timeout_us == exactly->timeout_us);
  NEREID_CHECK(std::ranges::equal(taken.parameters, exactly->parameters,
                                  [](const core::Parameter& a, const core::Parameter& b) {
                                    return a.name == b.name && a.value == b.value;
                                  }));
  NEREID_CHECK(response_options.is_binary_by_default == exact_options.is_binary_by_default);
  NEREID_CHECK(taken.inputs.size() == exactly->inputs.size());
  for (size_t i = 0; i < taken.inputs.size(); ++i) {
    NEREID_CHECK(taken.inputs[i].name == exactly->inputs[i].name);
    NEREID_CHECK(taken.inputs[i].type == exactly->inputs[i].type);
    NEREID_CHECK(Data(taken.inputs[i]) == Data(exactly->inputs[i]));
    NEREID_CHECK(std::ranges::equal(taken.inputs[i].shape.dims(), exactly->inputs[i].shape.dims()));
  }
  NEREID_CHECK(taken.outputs.size() == exactly->outputs.size());
  for (size_t i = 0; i < taken.outputs.size(); ++i) {
    NEREID_CHECK(taken.outputs[i].name == exactly->outputs[i].name);
    NEREID_CHECK(response_options.outputs[i].is_binary == exact_options.outputs[i].is_binary);
    NEREID_CHECK(response_options.outputs[i].class_count == exact_options.outputs[i].class_count);
  }
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string json =
      R"({"id":"a\u00e9","parameters":{"sequence_id":7,"sequence_start":true,"priority":1,"x":1.5},)"
      R"("inputs":[{"name":"INPUT0","shape":[1,4],"datatype":"FP32","data":[1,-2.5,3e2,4]}],)"
      R"("outputs":[{"name":"OUTPUT0","parameters":{"classification":2,"binary_data":true}}]})";
  const std::string binary =
      R"({"inputs":[{"name":"INPUT0","shape":[1,4],"datatype":"FP32",)"
      R"("parameters":{"binary_data_size":16}}],"parameters":{"binary_data_output":true}})";
  const std::string full =
      R"({"id": "7", "inputs": [{"name": "A", "shape": [], "datatype": "INT32", "parameters": )"
      R"({"binary_data_size": 4}}, {"name": "B", "shape": [1, 2], "datatype": "FP32", "parameters": )"
      R"({"binary_data_size": 8}}], "outputs": [{"name": "C", "parameters": {"binary_data": true}}, )"
      R"({"name": "D"}], "parameters": {"sequence_id": 9, "sequence_start": true, "sequence_end": false}})";
  const std::string nested =
      R"({"inputs":[{"datatype":"BYTES","data":[["a","\ud83d\ude00"],["","\\"]],"shape":[2,2],)"
      R"("name":"INPUT0"},{"name":"B","shape":[3],"datatype":"BOOL","data":[true,false,true]},)"
      R"({"name":"U","shape":[2],"datatype":"UINT64","data":[18446744073709551615,0]}]})";
  const std::string region =
      R"({"inputs":[{"name":"INPUT0","shape":[4],"datatype":"INT64","parameters":{)"
      R"("shared_memory_region":"r","shared_memory_offset":8,"shared_memory_byte_size":32}}]})";
  return {"\n" + json,
          std::to_string(binary.size()) + "\n" + binary + std::string(16, '\2'),
          std::to_string(full.size()) + "\n" + full + std::string(12, '\2'),
          "\n" + nested,
          "\n" + region,
          "0\n" + std::string(64, '\3'),
          " +12abc\n" + json};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static NoSink sink;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t line = all.find('\n');
  if (line == std::string_view::npos) return 0;
  const std::string_view field = all.substr(0, line);
  const std::string_view text = all.substr(line + 1);
  const auto length =
      http::InferenceHeaderLength(field.empty() ? std::nullopt : std::optional(field), text.size());
  if (!length.ok()) return 0;
  NEREID_CHECK(*length <= text.size());

  // Allocated on the heap, with nothing readable after the padding, for AddressSanitizer.
  const auto memory = std::make_unique<char[]>(text.size() + kPadding);
  std::memcpy(memory.get(), text.data(), text.size());
  const std::string_view body(memory.get(), text.size());

  core::RequestPtr request = NewRequest(sink);
  http::ResponseOptions response_options;
  http::InferRequestReader reader(kLimit);
  const base::Status status = reader.Read({body, *length}, *request, response_options);
  NEREID_CHECK(status.ok() || !status.message().empty());

  if (*length == 0) return 0;
  const std::string_view json = body.substr(0, *length);
  const std::string_view binary = body.substr(*length);
  http::QuickReader quick(kLimit);
  core::RequestPtr quickly = NewRequest(sink);
  http::ResponseOptions quick_options;
  if (quick.Read(json, binary, *quickly, quick_options)) {
    CheckIsExact(json, binary, *quickly, quick_options);
  }
  return 0;
}
