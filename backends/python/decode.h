// SPDX-License-Identifier: Apache-2.0
// Reads what a worker has written. All of it is checked before it is used.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "python_backend/region.h"

namespace nereid::python {

// The longest name, configuration, parameters or message that the server takes from a worker.
// Without a limit a worker could send huge ones at no cost: untouched memory reads as zeros.
inline constexpr uint64_t kMaxText = uint64_t{16} << 20;
inline constexpr uint64_t kMaxMessage = uint64_t{1} << 20;
// The limit for one response, or for one request to another model.
inline constexpr uint32_t kMaxTensors = 1 << 16;

// Takes values from the front of a byte range. After the end every value is zero and ok() returns
// false. Thread-compatible.
class Reader {
 public:
  explicit Reader(std::span<const char> bytes) : rest_(bytes) {}

  bool ok() const { return is_ok_; }
  template <typename Value>
  Value Read() {
    Value value{};
    const std::span<const char> bytes = Take(sizeof(value));
    if (bytes.size() == sizeof(value)) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  // Reads a text of this length and the padding after it.
  std::string_view Text(uint64_t size) {
    const std::span<const char> bytes = Take(size);
    Take(std::min<uint64_t>(Padded(size) - size, rest_.size()));
    return {bytes.data(), bytes.size()};
  }
  // Reads a text after its length, which has 8 bytes. The limit is kMaxText, or none.
  std::string_view SizedText() {
    const std::string_view text = SizedBytes();
    if (text.size() > kMaxText) is_ok_ = false;
    return is_ok_ ? text : std::string_view();
  }
  std::string_view SizedBytes() { return Text(Read<uint64_t>()); }

 private:
  std::span<const char> Take(uint64_t size) {
    if (size > rest_.size()) {
      is_ok_ = false;
      rest_ = {};
      return {};
    }
    const std::span<const char> taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  std::span<const char> rest_;
  bool is_ok_ = true;
};

// A tensor in the region.
struct Tensor {
  std::string name;
  TRITONSERVER_DataType datatype;
  std::vector<int64_t> shape;
  std::span<const char> data;
};

// A response of the model to one request.
struct ModelResponse {
  ResponseKind kind = ResponseKind::kNone;
  uint32_t release_flags = TRITONSERVER_REQUEST_RELEASE_ALL;
  std::vector<Tensor> tensors;
  TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_INTERNAL;
  std::string text;  // the error's message, or the parameters as JSON

  // Turns any response into one with this error.
  void Refuse(const backend::Error& error);
};

// Returns nothing if the record is not as protocol.h describes it.
std::optional<Tensor> ReadTensor(Reader& reader, const Region& region);
std::optional<ModelResponse> ReadResponse(Reader& reader, const Region& region);

// Decides which bytes of a worker the server may keep reading after the execution.
class Lender {
 public:
  virtual ~Lender() = default;
  // Returns an object that keeps these bytes unchanged; null if they have to be copied.
  virtual std::shared_ptr<const void> Lend(std::span<const char> bytes) = 0;
};

// Adds outputs and parameters to a response of the server. Large outputs are passed by reference if
// the lender, which may be null, and the server allow it; others are copied.
backend::Error FillResponse(TRITONBACKEND_Response* response, const ModelResponse& from,
                            Lender* lender);

}  // namespace nereid::python
