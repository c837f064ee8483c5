// SPDX-License-Identifier: Apache-2.0
// The headers of gRPC requests: what HTTP/2 demands of them (RFC 9113, 8.2 and 8.3) is checked, and
// what gRPC needs is picked out. Clients repeat themselves: a request whose headers are those of
// the one before shares its GrpcHead, and costs a comparison of pointers for each.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "net/compression.h"

namespace nereid::http2 {

// Immutable once it has been read.
class GrpcHead {
 public:
  // "/inference.GRPCInferenceService/ModelInfer"
  std::string_view path() const { return View(path_); }
  // The fields that are not pseudo-fields. Without grpc-timeout, which is of one call.
  size_t count() const { return fields_.size(); }
  std::pair<std::string_view, std::string_view> at(size_t i) const {
    return {View(fields_[i].name), View(fields_[i].value)};
  }
  // The first value of that lower-case name, empty when absent.
  std::string_view Find(std::string_view name) const;

  bool is_post() const { return is_post_; }
  bool has_grpc_type() const { return has_grpc_type_; }
  int64_t content_length() const { return content_length_; }  // -1: not said
  // What its messages may be compressed by; nothing when that is not known here.
  std::optional<net::Compression> encoding() const { return encoding_; }
  // What the answers may be compressed by.
  net::Compression accepted() const { return accepted_; }

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
  int64_t content_length_ = -1;
  std::optional<net::Compression> encoding_ = net::Compression::kIdentity;
  net::Compression accepted_ = net::Compression::kIdentity;
};

// Whether a field may come behind the data of a request.
bool IsTrailerAllowed(nghttp2_rcbuf* name, nghttp2_rcbuf* value);

// Reads the header blocks of one connection, one after the other. Confined to the holder of the
// connection; what its fields refer to is the session's memory, which outlives it.
class GrpcHeadReader {
 public:
  // Heads that are larger, as HTTP/2 counts, are read no further.
  explicit GrpcHeadReader(size_t max_list_bytes) : max_list_bytes_(max_list_bytes) {}
  ~GrpcHeadReader();
  GrpcHeadReader(const GrpcHeadReader&) = delete;
  GrpcHeadReader& operator=(const GrpcHeadReader&) = delete;

  void Begin();
  void Add(nghttp2_rcbuf* name, nghttp2_rcbuf* value);
  // Null: the request is malformed.
  std::shared_ptr<const GrpcHead> End();

  // Of the head that ended last.
  bool is_too_large() const { return is_too_large_; }
  std::optional<std::chrono::nanoseconds> timeout() const { return timeout_; }

 private:
  struct Field {
    nghttp2_rcbuf* name;
    nghttp2_rcbuf* value;
  };
  enum Seen : uint32_t {
    kAuthority = 1,
    kMethod = 2,
    kPath = 4,
    kScheme = 8,
    kHost = 16,
    kRegular = 32,  // pseudo-fields must not follow
    kConnect = 64,
    kOptions = 128,
    kHttpScheme = 256,
    kPlainPath = 512,
    kAsteriskPath = 1024,
  };
  // Larger heads are not kept for the next request.
  static constexpr size_t kMostKeptBytes = 2048;

  static void Release(std::vector<Field>& fields);
  bool IsTimeout(nghttp2_rcbuf* name, nghttp2_rcbuf* value);
  // Reads on by itself what so far was as in the last head.
  void LeaveKnown();
  void AddNew(nghttp2_rcbuf* name, nghttp2_rcbuf* value);
  // False: malformed.
  bool Check(std::string_view name, std::string_view value);
  bool CheckPseudo(std::string_view name, std::string_view value);
  void Note(std::string_view name, std::string_view value);
  bool See(Seen field, std::string_view value);
  bool IsComplete() const;

  const size_t max_list_bytes_;
  // The last head, and its fields in their order.
  std::shared_ptr<const GrpcHead> known_;
  std::vector<Field> known_fields_;
  size_t known_bytes_ = 0;
  size_t known_pseudo_fields_ = 0;  // those come first

  // The one being read: as the last one up to cursor_, or new_.
  bool is_as_known_ = false;
  size_t cursor_ = 0;
  std::shared_ptr<GrpcHead> new_;
  std::vector<Field> new_fields_;
  size_t new_pseudo_fields_ = 0;
  uint32_t seen_ = 0;
  size_t list_bytes_ = 0;
  bool is_malformed_ = false;
  bool is_too_large_ = false;
  bool has_timeout_ = false;
  size_t timeout_bytes_ = 0;
  std::optional<std::chrono::nanoseconds> timeout_;
};

}  // namespace nereid::http2
