// SPDX-License-Identifier: Apache-2.0
// Fields that HTTP/2 forbids make a request malformed; regular fields whose name or value only has
// invalid characters are skipped, as nghttp2 does when it checks by itself.
#include "http2/grpc_head_reader.h"

#include <algorithm>
#include <cstring>

#include "http2/grpc_wire.h"
#include "net/ascii.h"

namespace nereid::http2 {
namespace {

constexpr size_t kFieldBytes = 32;  // HTTP/2 adds this for each field
constexpr std::pair<std::string_view, net::Compression> kEncodings[] = {
    {"identity", net::Compression::kIdentity},
    {"gzip", net::Compression::kGzip},
    {"deflate", net::Compression::kDeflate},
};

std::string_view View(nghttp2_rcbuf* buffer) {
  const nghttp2_vec bytes = nghttp2_rcbuf_get_buf(buffer);
  return {reinterpret_cast<const char*>(bytes.base), bytes.len};
}

const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

bool IsLetter(char c) { return net::IsCapital(c) || (c >= 'a' && c <= 'z'); }

bool IsScheme(std::string_view value) {
  return !value.empty() && IsLetter(value.front()) && std::ranges::all_of(value, [](char c) {
    return IsLetter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

bool IsValue(std::string_view value) {
  // gRPC treats blanks at the ends as part of a value, although RFC 9113 forbids them.
  return nghttp2_check_header_value(Bytes(value), value.size()) != 0;
}

bool IsOfConnection(std::string_view name) {
  return name == "connection" || name == "keep-alive" || name == "proxy-connection" ||
         name == "transfer-encoding" || name == "upgrade";
}

// Returns whether a field may follow the data of a request.
bool IsTrailerAllowed(std::string_view name, std::string_view value) {
  if (name.starts_with(':') || std::ranges::any_of(name, net::IsCapital)) return false;
  if (IsOfConnection(name) || name == "content-length") return false;
  return name != "te" || net::EqualsIgnoringCase(value, "trailers");
}

// Returns -1 if `text` is not a number.
int64_t ParseLength(std::string_view value) {
  int64_t length = 0;
  for (const char c : value) {
    if (c < '0' || c > '9') return -1;
    if (__builtin_mul_overflow(length, int64_t{10}, &length)) return -1;
    if (__builtin_add_overflow(length, int64_t{c - '0'}, &length)) return -1;
  }
  return value.empty() ? -1 : length;
}

}  // namespace

GrpcHeadReader::~GrpcHeadReader() {
  Release(known_fields_);
  Release(new_fields_);
}

void GrpcHeadReader::Release(std::vector<Field>& fields) {
  for (const Field& field : fields) {
    nghttp2_rcbuf_decref(field.name);
    nghttp2_rcbuf_decref(field.value);
  }
  fields.clear();
}

void GrpcHeadReader::Begin() {
  is_as_known_ = known_ != nullptr;
  cursor_ = 0;
  seen_ = 0;
  list_bytes_ = timeout_bytes_ = 0;
  is_malformed_ = is_too_large_ = has_timeout_ = false;
  timeout_.reset();
  if (new_ == nullptr) return;
  // The previous block never ended.
  new_.reset();
  Release(new_fields_);
}

void GrpcHeadReader::Add(nghttp2_rcbuf* name, nghttp2_rcbuf* value) {
  if (is_as_known_) {
    if (cursor_ < known_fields_.size()) {
      const Field& known = known_fields_[cursor_];
      // A field in the client's compression table is the same object again.
      if ((known.name == name || View(known.name) == View(name)) &&
          (known.value == value || View(known.value) == View(value))) {
        if (has_timeout_ && cursor_ < known_pseudo_fields_) is_malformed_ = true;
        ++cursor_;
        return;
      }
    }
    if (IsTimeout(name, value)) return;
    LeaveKnown();
  } else if (IsTimeout(name, value)) {
    return;
  }
  AddNew(name, value);
}

void GrpcHeadReader::AddTrailer(nghttp2_rcbuf* name, nghttp2_rcbuf* value) {
  if (!IsTrailerAllowed(View(name), View(value))) has_bad_trailers_ = true;
}

bool GrpcHeadReader::IsTimeout(nghttp2_rcbuf* name, nghttp2_rcbuf* value) {
  const std::string_view text = View(name);
  if (text.size() != 12 || text != "grpc-timeout") return false;
  has_timeout_ = true;
  const std::string_view time = View(value);
  timeout_bytes_ += text.size() + time.size() + kFieldBytes;
  if (const auto timeout = ParseGrpcTimeout(time)) timeout_ = timeout;
  return true;
}

void GrpcHeadReader::LeaveKnown() {
  is_as_known_ = false;
  const bool had_timeout = std::exchange(has_timeout_, false);
  for (size_t i = 0; i < cursor_; ++i) AddNew(known_fields_[i].name, known_fields_[i].value);
  has_timeout_ = had_timeout;
}

void GrpcHeadReader::AddNew(nghttp2_rcbuf* name_buffer, nghttp2_rcbuf* value_buffer) {
  if (is_malformed_) return;
  const std::string_view name = View(name_buffer);
  const std::string_view value = View(value_buffer);
  list_bytes_ += name.size() + value.size() + kFieldBytes;
  if (list_bytes_ > max_list_bytes_) is_too_large_ = true;
  if (is_too_large_) return;
  if (new_ == nullptr) {
    new_ = std::make_shared<GrpcHead>();
    new_pseudo_fields_ = 0;
  }
  nghttp2_rcbuf_incref(name_buffer);
  nghttp2_rcbuf_incref(value_buffer);
  new_fields_.push_back({name_buffer, value_buffer});
  if (name.starts_with(':')) {
    is_malformed_ = !CheckPseudo(name, value);
    ++new_pseudo_fields_;
  } else {
    is_malformed_ = !Check(name, value);
    seen_ |= kRegular;
  }
}

bool GrpcHeadReader::See(Seen field, std::string_view value) {
  if ((seen_ & field) || value.empty()) return false;
  seen_ |= field;
  return true;
}

bool GrpcHeadReader::CheckPseudo(std::string_view name, std::string_view value) {
  if ((seen_ & kRegular) || has_timeout_) return false;
  if (name == ":method") {
    if (value == "CONNECT") seen_ |= kConnect;
    if (value == "OPTIONS") seen_ |= kOptions;
    new_->is_post_ = value == "POST";
    return nghttp2_check_method(Bytes(value), value.size()) != 0 && See(kMethod, value);
  }
  if (name == ":path") {
    if (value.starts_with('/')) seen_ |= kPlainPath;
    if (value == "*") seen_ |= kAsteriskPath;
    new_->path_ = new_->Keep(value);
    return nghttp2_check_path(Bytes(value), value.size()) != 0 && See(kPath, value);
  }
  if (name == ":scheme") {
    if (net::EqualsIgnoringCase(value, "http") || net::EqualsIgnoringCase(value, "https")) {
      seen_ |= kHttpScheme;
    }
    return IsScheme(value) && See(kScheme, value);
  }
  return name == ":authority" && nghttp2_check_authority(Bytes(value), value.size()) != 0 &&
         See(kAuthority, value);
}

bool GrpcHeadReader::Check(std::string_view name, std::string_view value) {
  if (nghttp2_check_header_name(Bytes(name), name.size()) == 0) {
    return std::ranges::none_of(name, net::IsCapital);
  }
  if (name == "host") {
    if (nghttp2_check_authority(Bytes(value), value.size()) == 0) return true;
    if (!See(kHost, value)) return false;
  } else if (!IsValue(value)) {
    return true;
  }
  if (IsOfConnection(name)) return false;
  if (name == "te" && !net::EqualsIgnoringCase(value, "trailers")) return false;
  if (name == "content-length") {
    if (new_->content_length_ >= 0) return false;
    new_->content_length_ = ParseLength(value);
    if (new_->content_length_ < 0) return false;
  }
  Note(name, value);
  const GrpcHead::Span kept_name = new_->Keep(name);
  new_->fields_.push_back({kept_name, new_->Keep(value)});
  return true;
}

void GrpcHeadReader::Note(std::string_view name, std::string_view value) {
  if (name == "content-type") {
    if (IsGrpcContentType(value)) new_->has_grpc_type_ = true;
  } else if (name == "grpc-encoding") {
    new_->encoding_.reset();
    for (const auto& [text, encoding] : kEncodings) {
      if (value == text) new_->encoding_ = encoding;
    }
  } else if (name == "grpc-accept-encoding") {
    new_->accepted_ = ListContains(value, "gzip")      ? net::Compression::kGzip
                      : ListContains(value, "deflate") ? net::Compression::kDeflate
                                                       : net::Compression::kIdentity;
  } else if (name == "endpoint-load-metrics-format") {
    new_->wants_load_ = true;
  }
}

bool GrpcHeadReader::IsComplete() const {
  if (seen_ & kConnect) return !(seen_ & (kScheme | kPath)) && (seen_ & kAuthority);
  constexpr uint32_t kNeeded = kMethod | kScheme | kPath;
  if ((seen_ & kNeeded) != kNeeded || !(seen_ & (kAuthority | kHost))) return false;
  return !(seen_ & kHttpScheme) || (seen_ & kPlainPath) ||
         ((seen_ & kOptions) && (seen_ & kAsteriskPath));
}

std::shared_ptr<const GrpcHead> GrpcHeadReader::End() {
  if (is_as_known_ && cursor_ < known_fields_.size()) LeaveKnown();
  if (is_malformed_) return nullptr;
  if (is_as_known_) {
    is_too_large_ = known_bytes_ + timeout_bytes_ > max_list_bytes_;
    return known_;
  }
  if (list_bytes_ + timeout_bytes_ > max_list_bytes_) is_too_large_ = true;
  if (is_too_large_) return std::make_shared<const GrpcHead>();
  if (!IsComplete()) return nullptr;
  std::shared_ptr<const GrpcHead> head = std::move(new_);
  known_.reset();
  Release(known_fields_);
  if (list_bytes_ > kMaxKeptBytes) {
    Release(new_fields_);
    return head;
  }
  known_ = head;
  known_fields_.swap(new_fields_);
  known_bytes_ = list_bytes_;
  known_pseudo_fields_ = new_pseudo_fields_;
  return head;
}

}  // namespace nereid::http2
