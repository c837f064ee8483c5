// SPDX-License-Identifier: Apache-2.0
// Reads the headers of gRPC requests: checks the rules of HTTP/2 (RFC 9113, 8.2 and 8.3) and
// extracts what gRPC needs. Clients repeat themselves: a request with the same headers as the
// previous one shares its GrpcHead, and costs one comparison of pointers for each header.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "http2/grpc_head.h"

namespace nereid::http2 {

// Reads the header blocks of one connection, one after the other. Confined to the holder of the
// connection; its fields refer to the session's memory, which outlives it.
class GrpcHeadReader {
 public:
  // Heads that are larger, by HTTP/2's definition, are not read to their end.
  explicit GrpcHeadReader(size_t max_list_bytes) : max_list_bytes_(max_list_bytes) {}
  ~GrpcHeadReader();
  GrpcHeadReader(const GrpcHeadReader&) = delete;
  GrpcHeadReader& operator=(const GrpcHeadReader&) = delete;

  void Begin();
  void Add(nghttp2_rcbuf* name, nghttp2_rcbuf* value);
  // Returns null if the request is malformed.
  std::shared_ptr<const GrpcHead> End();

  // Begins a block of trailers, whose fields are passed to AddTrailer.
  void BeginTrailers() { has_bad_trailers_ = false; }
  void AddTrailer(nghttp2_rcbuf* name, nghttp2_rcbuf* value);
  // Whether the block has a field that must not follow the data of a request.
  bool has_bad_trailers() const { return has_bad_trailers_; }

  // Whether the last head was too large.
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
    kRegular = 32,  // no pseudo-fields may follow
    kConnect = 64,
    kOptions = 128,
    kHttpScheme = 256,
    kPlainPath = 512,
    kAsteriskPath = 1024,
  };
  // Larger heads are not kept for the next request.
  static constexpr size_t kMaxKeptBytes = 2048;

  static void Release(std::vector<Field>& fields);
  bool IsTimeout(nghttp2_rcbuf* name, nghttp2_rcbuf* value);
  // Stops comparing with the last head, and copies what was equal so far.
  void LeaveKnown();
  void AddNew(nghttp2_rcbuf* name, nghttp2_rcbuf* value);
  // Returns false if the field is malformed.
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

  // The current head: equal to the last one up to cursor_, or new_.
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

  bool has_bad_trailers_ = false;
};

}  // namespace nereid::http2
