// SPDX-License-Identifier: Apache-2.0
// How the protocol of an entry point with its own clients, such as a cloud's, differs from the v2
// API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "http1/http_server.h"

namespace nereid::http {

// Constant; lives as long as the program.
struct Dialect {
  // Content types that begin with this text end with the number of JSON bytes in front of binary
  // tensors. Empty: the field Inference-Header-Content-Length has that number.
  std::string_view binary_mime;
  // Replies with binary tensors state that number in the same way.
  bool has_mime_in_replies = false;
  // Replies are compressed if the client asks for it.
  bool compresses_replies = true;
  // Returns the status of a reply that reports an error of an inference. Null: the status that
  // belongs to the error's code.
  int (*error_status)(const base::Status& error) = nullptr;
  // Returns the JSON of a reply with this status. Null: {"error":"<message>"}.
  std::string (*error_body)(int status, std::string_view message) = nullptr;
};

inline constexpr Dialect kTritonDialect{};

// Returns the text of the number of JSON bytes, as the client wrote it; nothing if there is none.
std::optional<std::string_view> HeaderLengthField(const http1::HttpHead& head,
                                                  const Dialect& dialect);

// Returns where the JSON of a body of `body_size` bytes ends. Errors are those of Triton.
base::Result<size_t> HeaderLength(const http1::HttpHead& head, const Dialect& dialect,
                                  uint64_t body_size);

// Returns the same position for a body that may not have arrived yet; HttpBodyPlan::kNoSplit if the
// client did not state it.
size_t HeaderSplit(const http1::HttpHead& head, const Dialect& dialect);

// Implements HttpHandler::PlanBody for inferences: binary tensors are aligned in place. As in
// Triton, the configured limit applies to JSON, to requests of one raw tensor and to decompressed
// bodies; tensors after a JSON head may be as large as the protocols allow.
http1::HttpBodyPlan PlanInferBody(const http1::HttpHead& head, const Dialect& dialect,
                                  size_t max_bytes);

int ErrorStatus(const base::Status& error, const Dialect& dialect);
std::string ErrorJson(int status, std::string_view message, const Dialect& dialect);

}  // namespace nereid::http
