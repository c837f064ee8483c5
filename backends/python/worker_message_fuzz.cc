// SPDX-License-Identifier: Apache-2.0
// Fuzzes what the process of a Python model writes for the server: responses with their tensors
// and parameters, and configurations. All of it may be anything at all. The first two bytes are the
// length of a JSON text, which a message follows.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "backend_kit/testing/fake_host.h"
#include "fuzz/fuzz.h"
#include "python_backend/decode.h"
#include "python_backend/json.h"

namespace {

using nereid::backend::Error;
using nereid::python::ForEachParameter;
using nereid::python::kBlocksBegin;
using nereid::python::kConfigJson;
using nereid::python::kFlatJson;
using nereid::python::kMaxTensors;
using nereid::python::kMaxText;
using nereid::python::ParseObject;
using nereid::python::Reader;
using nereid::python::ReadResponse;
using nereid::python::Region;
using nereid::python::ResponseRecord;
using nereid::python::Tensor;
using nereid::python::TensorRecord;

template <typename Value>
std::string Bytes(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string Pair(const std::string& json, const std::string& message) {
  return std::string{static_cast<char>(json.size() & 0xFF), static_cast<char>(json.size() >> 8)} +
         json + message;
}

const Region& TheRegion() {
  static const Region* const region = std::move(Region::Create()).value().release();
  return *region;
}

void UseMessage(std::span<const char> message) {
  const Region& region = TheRegion();
  Reader reader(message);
  const auto response = ReadResponse(reader, region);
  if (!response) return;
  if (response->text.size() > kMaxText || response->tensors.size() > kMaxTensors) std::abort();
  for (const Tensor& tensor : response->tensors) {
    if (tensor.data.empty()) continue;
    const char* const begin = tensor.data.data();
    if (begin < region.At(kBlocksBegin) || begin + tensor.data.size() > region.At(region.size())) {
      std::abort();
    }
  }
}

void UseJson(const std::string& json) {
  size_t count = 0;
  const auto take = [&count](const char*, const auto&) {
    ++count;
    return Error();
  };
  ForEachParameter(json, "parameters", take, take, take).Ignore();
  if (count > kFlatJson.values) std::abort();
  auto config = ParseObject(json, "the configuration", kConfigJson);
  if (!config.ok()) {
    const Error error = config.TakeError();
    if (*error.message() == '\0') std::abort();
  } else if (!config.value().IsObject()) {
    std::abort();
  }
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string tensor =
      Bytes(TensorRecord{
          .datatype = 11, .dims = 1, .name_size = 8, .data = kBlocksBegin, .byte_size = 16}) +
      Bytes(int64_t{4}) + std::string("OUTPUT0\0", 8);
  return {
      Pair(R"({"a":"text","b":7,"c":true})",
           Bytes(ResponseRecord{.kind = 1, .release_flags = 1, .tensors = 1, .text_size = 2}) +
               tensor + "{}"),
      Pair(R"({"input":[{"name":"I","dims":[-1],"data_type":"TYPE_FP32"}],"max_batch_size":0})",
           Bytes(ResponseRecord{.kind = 2, .release_flags = 1, .tensors = 3, .text_size = 5}) +
               "wrong"),
      Pair(R"({"a":null,"b":1e400,"c":[[]],"d":{"e":"\ud83d\ude00"}})", Bytes(ResponseRecord{}))};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t length = std::min<size_t>(data[0] | data[1] << 8, size - 2);
  const auto* const text = reinterpret_cast<const char*>(data) + 2;
  UseJson(std::string(text, length));
  // A copy of exactly this size, for AddressSanitizer.
  const size_t rest = size - 2 - length;
  const auto copy = std::make_unique<char[]>(rest);
  std::copy_n(text + length, rest, copy.get());
  UseMessage({copy.get(), rest});
  return 0;
}
