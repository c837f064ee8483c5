// SPDX-License-Identifier: Apache-2.0
#include "http2/response_head.h"

#include <span>
#include <string>
#include <vector>

#include "http2/grpc_wire.h"

namespace nereid::http2 {
namespace {

// Clients refuse trailers beyond 8 KiB. Counted as they are sent, where most bytes take three.
constexpr size_t kMaxStatusText = 4096;

nghttp2_nv StaticHeader(std::string_view name, std::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

// grpc-status and, if there is a text, grpc-message.
class StatusHeaders {
 public:
  StatusHeaders(int code, std::string_view text)
      : code_(std::to_string(code)), text_(PercentEncode(text, kMaxStatusText)) {}

  // Returns the number of headers, at most two.
  size_t AddTo(nghttp2_nv* headers) const {
    headers[0] = StaticHeader("grpc-status", code_);
    headers[0].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
    if (text_.empty()) return 1;
    headers[1] = StaticHeader("grpc-message", text_);
    headers[1].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX;
    return 2;
  }

 private:
  std::string code_;
  std::string text_;
};

constexpr std::string_view kOkStatus = "0";

// Appends `more`, which is not null, to the first fields of a block.
std::vector<nghttp2_nv> WithTrailers(std::span<const nghttp2_nv> first, const GrpcTrailers& more) {
  std::vector<nghttp2_nv> fields(first.begin(), first.end());
  for (const auto& [name, value] : more) {
    nghttp2_nv& field = fields.emplace_back(StaticHeader(name, value));
    field.flags = NGHTTP2_NV_FLAG_NO_INDEX;
  }
  return fields;
}

}  // namespace

int SubmitStatus(nghttp2_session* session, int32_t stream_id, int code, std::string_view text,
                 const GrpcTrailers* more) {
  const StatusHeaders status(code, text);
  nghttp2_nv headers[4] = {StaticHeader(":status", "200"),
                           StaticHeader("content-type", "application/grpc")};
  const size_t count = 2 + status.AddTo(headers + 2);
  if (more != nullptr) [[unlikely]] {
    const std::vector<nghttp2_nv> all = WithTrailers({headers, count}, *more);
    return nghttp2_submit_response(session, stream_id, all.data(), all.size(), nullptr);
  }
  return nghttp2_submit_response(session, stream_id, headers, count, nullptr);
}

int SubmitHead(nghttp2_session* session, int32_t stream_id, net::Compression encoding,
               const nghttp2_data_provider& provider) {
  nghttp2_nv headers[4] = {StaticHeader(":status", "200"),
                           StaticHeader("content-type", "application/grpc"),
                           StaticHeader("grpc-accept-encoding", "identity, deflate, gzip")};
  size_t count = 3;
  if (encoding != net::Compression::kIdentity) {
    const bool is_gzip = encoding == net::Compression::kGzip;
    headers[count++] = StaticHeader("grpc-encoding", is_gzip ? "gzip" : "deflate");
  }
  return nghttp2_submit_response(session, stream_id, headers, count, &provider);
}

int SubmitTrailers(nghttp2_session* session, int32_t stream_id, int code, std::string_view text,
                   const GrpcTrailers* more) {
  if (code == 0 && text.empty() && more == nullptr) {
    const nghttp2_nv ok = StaticHeader("grpc-status", kOkStatus);
    return nghttp2_submit_trailer(session, stream_id, &ok, 1);
  }
  const StatusHeaders status(code, text);
  nghttp2_nv headers[2];
  const size_t count = status.AddTo(headers);
  if (more != nullptr) [[unlikely]] {
    const std::vector<nghttp2_nv> all = WithTrailers({headers, count}, *more);
    return nghttp2_submit_trailer(session, stream_id, all.data(), all.size());
  }
  return nghttp2_submit_trailer(session, stream_id, headers, count);
}

int SubmitHttpStatus(nghttp2_session* session, int32_t stream_id, int status) {
  const std::string text = std::to_string(status);
  nghttp2_nv header = StaticHeader(":status", text);
  header.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
  return nghttp2_submit_response(session, stream_id, &header, 1, nullptr);
}

}  // namespace nereid::http2
