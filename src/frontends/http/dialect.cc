// SPDX-License-Identifier: Apache-2.0
#include "http/dialect.h"

#include <string>

#include "common/json_text.h"
#include "common/status_codes.h"
#include "http/header_length.h"

namespace nereid::http {
namespace {

constexpr std::string_view kContentType = "Content-Type";

}  // namespace

std::optional<std::string_view> HeaderLengthField(const http1::HttpHead& head,
                                                  const Dialect& dialect) {
  if (dialect.binary_mime.empty()) return head.FindHeader(kInferenceHeaderLength);
  const std::string_view type = head.Header(kContentType);
  if (!type.starts_with(dialect.binary_mime)) return std::nullopt;
  return type.substr(dialect.binary_mime.size());
}

base::Result<size_t> HeaderLength(const http1::HttpHead& head, const Dialect& dialect,
                                  uint64_t body_size) {
  const auto field = HeaderLengthField(head, dialect);
  if (dialect.binary_mime.empty()) return InferenceHeaderLength(field, body_size);
  const std::string_view type = head.Header(kContentType);
  if (!field && type.find(dialect.binary_mime) != std::string_view::npos) {
    return base::InvalidArgumentError("expect MIME type for binary data starts with '" +
                                      std::string(dialect.binary_mime) +
                                      "', got: " + std::string(type));
  }
  if (!field || ParseInferenceHeaderLength(*field).ok()) {
    return InferenceHeaderLength(field, body_size);
  }
  // A number may have more digits than fit.
  const size_t digit = field->find_first_not_of(" \t+-");
  const bool is_number =
      digit != std::string_view::npos && (*field)[digit] >= '0' && (*field)[digit] <= '9';
  return base::InvalidArgumentError(std::string("Unable to parse inference header size, ") +
                                    (is_number ? "value is out of range, got: " : "got: ") +
                                    std::string(*field));
}

size_t HeaderSplit(const http1::HttpHead& head, const Dialect& dialect) {
  const auto field = HeaderLengthField(head, dialect);
  if (!field) return http1::HttpBodyPlan::kNoSplit;
  const base::Result<int32_t> length = ParseInferenceHeaderLength(*field);
  return length.ok() && *length >= 0 ? static_cast<size_t>(*length) : http1::HttpBodyPlan::kNoSplit;
}

http1::HttpBodyPlan PlanInferBody(const http1::HttpHead& head, const Dialect& dialect,
                                  size_t max_bytes) {
  const size_t split = HeaderSplit(head, dialect);
  const bool is_limited = split == http1::HttpBodyPlan::kNoSplit || split == 0;
  return {.max_bytes = is_limited ? max_bytes : size_t{INT32_MAX}, .split = split};
}

int ErrorStatus(const base::Status& error, const Dialect& dialect) {
  return dialect.error_status == nullptr ? common::HttpStatus(error.code())
                                         : dialect.error_status(error);
}

std::string ErrorJson(int status, std::string_view message, const Dialect& dialect) {
  return dialect.error_body == nullptr ? common::JsonError(message)
                                       : dialect.error_body(status, message);
}

}  // namespace nereid::http
