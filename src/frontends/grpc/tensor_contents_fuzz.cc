// SPDX-License-Identifier: Apache-2.0
// The same tensor as typed contents and as raw contents must become the same request. The first
// byte chooses the type; the others are the tensor.
#include <array>
#include <cstring>

#include "base/check.h"
#include "core/model.h"
#include "core/testing/fakes.h"
#include "fuzz/fuzz.h"
#include "grpc/infer_message.h"
#include "grpc/infer_request.h"
#include "grpc_service.pb.h"

namespace {

namespace core = nereid::core;
namespace grpc = nereid::grpc;
using Contents = inference::InferTensorContents;

// Adds an element with these bytes to the contents, and returns its bytes as raw contents.
using Add = std::string (*)(Contents&, const char* from);

template <typename Value, auto kAdd>
std::string AddValue(Contents& contents, const char* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  (contents.*kAdd)(value);
  return {from, sizeof value};
}

std::string AddBool(Contents& contents, const char* from) {
  contents.add_bool_contents((*from & 1) != 0);
  return {static_cast<char>(*from & 1)};
}

struct Type {
  const char* name;
  size_t size;  // of an element; 0: texts
  Add add;
};
constexpr std::array<Type, 12> kTypes{{
    {"BOOL", 1, AddBool},
    {"INT8", 1, AddValue<int8_t, &Contents::add_int_contents>},
    {"INT16", 2, AddValue<int16_t, &Contents::add_int_contents>},
    {"INT32", 4, AddValue<int32_t, &Contents::add_int_contents>},
    {"INT64", 8, AddValue<int64_t, &Contents::add_int64_contents>},
    {"UINT8", 1, AddValue<uint8_t, &Contents::add_uint_contents>},
    {"UINT16", 2, AddValue<uint16_t, &Contents::add_uint_contents>},
    {"UINT32", 4, AddValue<uint32_t, &Contents::add_uint_contents>},
    {"UINT64", 8, AddValue<uint64_t, &Contents::add_uint64_contents>},
    {"FP32", 4, AddValue<float, &Contents::add_fp32_contents>},
    {"FP64", 8, AddValue<double, &Contents::add_fp64_contents>},
    {"BYTES", 0, nullptr},
}};

// Adds texts whose lengths are in the data, too; returns them as raw contents.
std::string AddTexts(Contents& contents, std::string_view data, int64_t& count) {
  std::string raw;
  for (; !data.empty(); ++count) {
    const auto length = std::min<uint32_t>(static_cast<unsigned char>(data[0]) % 32,
                                           static_cast<uint32_t>(data.size() - 1));
    const std::string text(data.substr(1, length));
    contents.add_bytes_contents(text);
    raw.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
    data.remove_prefix(1 + length);
  }
  return raw;
}

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr, bool) override {}
};

// Reads the message and returns the bytes of its input.
std::string Read(const inference::ModelInferRequest& from) {
  static core::Model* const model = core::MakeFakeModel(8, {4}).release();
  static NoSink sink;
  const std::string bytes = from.SerializeAsString();
  grpc::InferMessage message;
  NEREID_CHECK(message.Parse(bytes));
  core::RequestPtr request = core::Request::Create(sink);
  NEREID_CHECK(model->TryPin());
  request->model = core::ModelHandle(*model);
  NEREID_CHECK(grpc::FillRequest(message, *request).ok());
  NEREID_CHECK(request->inputs.size() == 1);
  const core::RequestInput& input = request->inputs[0];
  std::string data;
  for (size_t i = 0; i < input.chunk_count(); ++i) {
    const auto& chunk = input.chunk(i);
    data.append(reinterpret_cast<const char*>(chunk.data), chunk.size);
  }
  return data;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds;
  for (size_t type = 0; type < kTypes.size(); ++type) {
    seeds.push_back(
        static_cast<char>(type) +
        std::string("\3abc\2\x7f\0\0\x80\x3f\xff\xff\xff\xff\1\2\3\4\5\6\7\0\0\xc0", 24));
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  const Type& type = kTypes[data[0] % kTypes.size()];
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  inference::ModelInferRequest typed;
  auto* input = typed.add_inputs();
  input->set_name("INPUT0");
  input->set_datatype(type.name);
  std::string raw;
  int64_t count = 0;
  if (type.add == nullptr) {
    raw = AddTexts(*input->mutable_contents(), bytes, count);
  } else {
    for (; bytes.size() >= type.size; bytes.remove_prefix(type.size), ++count) {
      raw += type.add(*input->mutable_contents(), bytes.data());
    }
  }
  if (count == 0) return 0;
  input->add_shape(count);
  inference::ModelInferRequest binary = typed;
  binary.mutable_inputs(0)->clear_contents();
  binary.add_raw_input_contents(raw);
  NEREID_CHECK(Read(binary) == raw);
  NEREID_CHECK(Read(typed) == raw);
  return 0;
}
