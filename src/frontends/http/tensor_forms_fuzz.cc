// SPDX-License-Identifier: Apache-2.0
// The same tensor as JSON, flat and nested, and as binary data must become the same request. The
// first byte chooses the type, the second the shape; the others are the tensor.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "core/model.h"
#include "core/testing/fakes.h"
#include "fuzz/fuzz.h"
#include "http/infer_request.h"

namespace {

namespace core = nereid::core;
namespace http = nereid::http;

constexpr size_t kLimit = 1 << 16;
constexpr size_t kPadding = 64;  // readable bytes that readers need after the text

// Types whose elements can be written in JSON.
enum class Kind { kBool, kUnsigned, kSigned, kReal, kText };
struct Type {
  const char* name;
  Kind kind;
  size_t size;
};
constexpr std::array<Type, 12> kTypes{{{"BOOL", Kind::kBool, 1},
                                       {"UINT8", Kind::kUnsigned, 1},
                                       {"UINT16", Kind::kUnsigned, 2},
                                       {"UINT32", Kind::kUnsigned, 4},
                                       {"UINT64", Kind::kUnsigned, 8},
                                       {"INT8", Kind::kSigned, 1},
                                       {"INT16", Kind::kSigned, 2},
                                       {"INT32", Kind::kSigned, 4},
                                       {"INT64", Kind::kSigned, 8},
                                       {"FP32", Kind::kReal, 4},
                                       {"FP64", Kind::kReal, 8},
                                       {"BYTES", Kind::kText, 0}}};

// A tensor in both forms.
struct Tensor {
  std::vector<std::string> texts;  // its elements in JSON
  std::string bytes;
};

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// Adds an element of this many bytes, or what JSON can say of it.
void AddNumber(Tensor& tensor, const Type& type, const char* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, type.size);
  switch (type.kind) {
    case Kind::kBool:
      bits &= 1;
      tensor.texts.push_back(bits != 0 ? "true" : "false");
      break;
    case Kind::kUnsigned:
      tensor.texts.push_back(fmt::format("{}", bits));
      break;
    case Kind::kSigned: {
      const auto shift = static_cast<int>(64 - 8 * type.size);
      tensor.texts.push_back(fmt::format("{}", static_cast<int64_t>(bits << shift) >> shift));
      break;
    }
    default: {
      double value = type.size == 4 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                                    : std::bit_cast<double>(bits);
      if (!std::isfinite(value)) value = 0;
      bits = type.size == 4 ? std::bit_cast<uint32_t>(static_cast<float>(value))
                            : std::bit_cast<uint64_t>(value);
      // "-0" would be an integer, which has no sign.
      tensor.texts.push_back(value == 0 ? fmt::format("{:.1f}", value) : fmt::format("{}", value));
    }
  }
  tensor.bytes.append(reinterpret_cast<const char*>(&bits), type.size);
}

// Adds texts whose lengths are in the data, too.
void AddTexts(Tensor& tensor, std::string_view data) {
  while (!data.empty()) {
    const auto length = std::min<uint32_t>(static_cast<unsigned char>(data[0]) % 32,
                                           static_cast<uint32_t>(data.size() - 1));
    const std::string_view text = data.substr(1, length);
    tensor.texts.push_back(Quoted(text));
    tensor.bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
    data.remove_prefix(1 + length);
  }
}

Tensor MakeTensor(const Type& type, std::string_view data) {
  Tensor tensor;
  if (type.kind == Kind::kText) {
    AddTexts(tensor, data);
  } else {
    for (; data.size() >= type.size; data.remove_prefix(type.size)) {
      AddNumber(tensor, type, data.data());
    }
  }
  return tensor;
}

// The elements as an array of rows of `width`, or of elements if that is 0.
std::string MakeArray(const std::vector<std::string>& texts, size_t width) {
  std::string array = "[";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) array += ',';
    if (width > 0 && i % width == 0) array += '[';
    array += texts[i];
    if (width > 0 && i % width == width - 1) array += ']';
  }
  return array + "]";
}

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr, bool) override {}
};

// Reads a request with one input and returns the bytes of that input.
std::string Read(const std::string& head, const std::string& binary) {
  static core::Model* const model = core::MakeFakeModel(8, {4}).release();
  static NoSink sink;
  const auto memory = std::make_unique<char[]>(head.size() + binary.size() + kPadding);
  std::memcpy(memory.get(), head.data(), head.size());
  std::memcpy(memory.get() + head.size(), binary.data(), binary.size());
  core::RequestPtr request = core::Request::Create(sink);
  NEREID_CHECK(model->TryPin());
  request->model = core::ModelHandle(*model);
  http::ResponseOptions options;
  http::InferRequestReader reader(kLimit);
  const auto status =
      reader.Read({std::string_view(memory.get(), head.size() + binary.size()), head.size()},
                  *request, options);
  NEREID_CHECK(status.ok());
  NEREID_CHECK(request->inputs.size() == 1 && request->inputs[0].more.empty());
  const auto& chunk = request->inputs[0].first;
  return {reinterpret_cast<const char*>(chunk.data), chunk.size};
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  using std::string_literals::operator""s;
  std::vector<std::string> seeds;
  for (size_t type = 0; type < kTypes.size(); ++type) {
    for (const char shape : {'\0', '\2'}) {
      seeds.push_back(std::string{static_cast<char>(type), shape} +
                      "\3a\"\n\2\\\x7f\0\0\x80\x3f\xff\xff\xff\xff\1\2\3\4\5\6\7"s);
    }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 2048) return 0;
  const Type& type = kTypes[data[0] % kTypes.size()];
  const Tensor tensor = MakeTensor(type, {reinterpret_cast<const char*>(data) + 2, size - 2});
  const size_t count = tensor.texts.size();
  const size_t width = data[1] % 8;
  const bool has_rows = width > 0 && count > 0 && count % width == 0;
  const std::string shape =
      has_rows ? fmt::format("[{},{}]", count / width, width) : fmt::format("[{}]", count);
  const auto head = [&](const std::string& rest) {
    return fmt::format(R"({{"inputs":[{{"name":"I","shape":{},"datatype":"{}",{}}}]}})", shape,
                       type.name, rest);
  };
  const std::string binary =
      Read(head(fmt::format(R"("parameters":{{"binary_data_size":{}}})", tensor.bytes.size())),
           tensor.bytes);
  NEREID_CHECK(binary == tensor.bytes);
  NEREID_CHECK(Read(head("\"data\":" + MakeArray(tensor.texts, 0)), "") == tensor.bytes);
  // Blanks, and another order, are read by the same rules.
  NEREID_CHECK(Read(head("\"data\" : " + MakeArray(tensor.texts, has_rows ? width : 0) + " "),
                    "") == tensor.bytes);
  return 0;
}
