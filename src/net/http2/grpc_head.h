// SPDX-License-Identifier: Apache-2.0
// The headers of one gRPC request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/compression.h"

namespace nereid::http2 {

// Immutable once it has been read.
class GrpcHead {
 public:
  // For example "/inference.GRPCInferenceService/ModelInfer".
  std::string_view path() const { return View(path_); }
  // The fields that are not pseudo-fields. Without grpc-timeout, which differs from call to call.
  size_t count() const { return fields_.size(); }
  std::pair<std::string_view, std::string_view> at(size_t i) const {
    return {View(fields_[i].name), View(fields_[i].value)};
  }
  // Returns the first value of that lower-case name, empty if absent.
  std::string_view Find(std::string_view name) const;

  bool is_post() const { return is_post_; }
  bool has_grpc_type() const { return has_grpc_type_; }
  int64_t content_length() const { return content_length_; }  // -1: not given
  // The compression of the request's messages; nothing if it is unknown here.
  std::optional<net::Compression> encoding() const { return encoding_; }
  // The compression that the client accepts for responses.
  net::Compression accepted() const { return accepted_; }
  // Whether the client asks for the server's load (endpoint-load-metrics-format).
  bool wants_load() const { return wants_load_; }

 private:
  friend class GrpcHeadReader;

  struct Span {
    uint32_t offset = 0;
    uint32_t size = 0;
  };
  struct Field {
    Span name;
    Span value;
  };

  std::string_view View(Span span) const {
    return std::string_view(text_).substr(span.offset, span.size);
  }
  Span Keep(std::string_view text);

  std::string text_;
  std::vector<Field> fields_;
  Span path_;
  bool is_post_ = false;
  bool has_grpc_type_ = false;
  bool wants_load_ = false;
  int64_t content_length_ = -1;
  std::optional<net::Compression> encoding_ = net::Compression::kIdentity;
  net::Compression accepted_ = net::Compression::kIdentity;
};

}  // namespace nereid::http2
