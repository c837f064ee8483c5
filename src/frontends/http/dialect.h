// SPDX-License-Identifier: Apache-2.0
// How an entry point with clients of its own, such as a cloud's, speaks of inference differently
// from the v2 API.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "http1/http_server.h"

namespace nereid::http {

// Constant; lives as long as the program.
struct Dialect {
  // Content types that begin with this go on with the number of JSON bytes in front of binary
  // tensors. Empty: that number is the field Inference-Header-Content-Length.
  std::string_view binary_mime;
  // Replies with binary tensors name their number in the same way.
  bool has_mime_in_replies = false;
  // Replies are compressed for clients that ask for it.
  bool compresses_replies = true;
  // The status of a reply that reports an error of inference. Null: the one that belongs to the
  // error's code.
  int (*error_status)(const base::Status& error) = nullptr;
};

inline constexpr Dialect kTritonDialect{};

// The text of the number of JSON bytes, as the client wrote it; nothing when it wrote none.
std::optional<std::string_view> HeaderLengthField(const http1::HttpHead& head,
                                                  const Dialect& dialect);

// Where the JSON of a body of `body_size` bytes ends. Errors are those of Triton.
base::Result<size_t> HeaderLength(const http1::HttpHead& head, const Dialect& dialect,
                                  uint64_t body_size);

// The same as the client wrote it, however much has come; HttpBodyPlan::kNoSplit when it wrote
// none.
size_t HeaderSplit(const http1::HttpHead& head, const Dialect& dialect);

// HttpHandler::PlanBody of inference: binary tensors are aligned where they lie. As in Triton, the
// configured limit holds for JSON, for requests of one raw tensor and for what decompression makes;
// tensors behind a JSON head may be as large as the protocols can say.
http1::HttpBodyPlan PlanInferBody(const http1::HttpHead& head, const Dialect& dialect,
                                  size_t max_bytes);

int ErrorStatus(const base::Status& error, const Dialect& dialect);

}  // namespace nereid::http
