// SPDX-License-Identifier: Apache-2.0
// How a cloud's entry point speaks of inference differently from the v2 API.
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
  // Errors of inference are 400, or 507 where memory ran out, whatever their code.
  bool has_plain_statuses = false;
};

inline constexpr Dialect kTritonDialect{};
inline constexpr Dialect kSagemakerDialect{
    .binary_mime = "application/vnd.sagemaker-triton.binary+json;json-header-size=",
    .has_mime_in_replies = true,
    .compresses_replies = false};
// Of the models that SageMaker loads and invokes by name.
inline constexpr Dialect kSagemakerModelDialect{.binary_mime = kSagemakerDialect.binary_mime,
                                                .has_mime_in_replies = true,
                                                .compresses_replies = false,
                                                .has_plain_statuses = true};
inline constexpr Dialect kVertexAiDialect{
    .binary_mime = "application/vnd.vertex-ai-triton.binary+json;json-header-size=",
    .compresses_replies = false};

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
