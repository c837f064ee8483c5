// SPDX-License-Identifier: Apache-2.0
// From the body of POST .../infer to a core::Request: the JSON head with the binary tensor
// extension, or raw tensor bytes alone. Binary tensors become views of the body; JSON data is
// written once, into the request's arena.
//
// Two readers are tried in turn (docs/adr/0005). The quick reader (one pass, no allocation in
// steady state) accepts what clients usually send, and rejects anything that is malformed, out of
// range, repeated, or merely unusual. The exact reader (RapidJSON) then decides, with Triton's
// semantics and Triton's texts. Only the exact reader produces errors, and a head that both accept
// has the same meaning for both: they pass what they find to one common::InferRequestBuilder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "common/infer_request_builder.h"
#include "common/request_regions.h"
#include "core/request.h"

namespace nereid::http {

using common::OutputOptions;

// The form of the response that the client requested. Outputs are found by
// core::RequestedOutput::tag.
struct ResponseOptions {
  bool is_binary_by_default = false;  // of outputs that the request does not list
  std::vector<OutputOptions> outputs;
  common::RequestRegions regions;  // collected by the reader, for the code that submits the request

  void Clear() {
    is_binary_by_default = false;
    outputs.clear();
    regions.Clear();
  }
};

// The body of an inference, and where its JSON ends.
struct InferBody {
  // The whole body, followed by at least 64 readable bytes; the request holds it
  // (core::Request::Hold).
  std::string_view bytes;
  // Where the JSON ends and binary tensors begin; 0 if there is no JSON at all.
  size_t header_length = 0;
  // A copy of the JSON, with the same padding, if it must not be read from `bytes` because those
  // lie in memory that others can write (base::BufferRef::is_lent). Views of it live as long as the
  // request.
  std::string_view json_copy = {};
};

// Depth at which nested `data` is refused.
inline constexpr int kMaxDataDepth = 100;

class QuickReader;

// Keeps the parser's memory from request to request. Thread-compatible.
class InferRequestReader {
 public:
  explicit InferRequestReader(size_t max_input_bytes);
  ~InferRequestReader();

  // Fills `request`, whose model is set, and `response_options`. An error leaves both partly
  // filled.
  base::Status Read(const InferBody& body, core::Request& request,
                    ResponseOptions& response_options);

 private:
  const size_t max_input_bytes_;
  const std::unique_ptr<QuickReader> quick_;
};

// The parts, for each other and for tests.
namespace infer_internal {

// Accepts exactly the heads that Triton accepts.
base::Status ReadExactly(std::string_view json, std::string_view binary, size_t max_input_bytes,
                         core::Request& request, ResponseOptions& response_options);

// Reads a body without JSON: the whole body is the model's only input.
base::Status ReadRaw(std::string_view bytes, size_t max_input_bytes, core::Request& request,
                     ResponseOptions& response_options);

// Adds an output with its options, for either reader.
base::Status AddOutput(common::InferRequestBuilder& builder, std::string_view name,
                       const common::OutputParameters& parameters,
                       ResponseOptions& response_options);

// Undoes what a reader did to `request`, except for the arena.
void ResetRequest(core::Request& request, ResponseOptions& response_options);

}  // namespace infer_internal
}  // namespace nereid::http
