// SPDX-License-Identifier: Apache-2.0
// An invented kind of object store, for tests of what all kinds share: its lists are lines of text,
// and its requests carry a token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/mutex.h"
#include "object_store/provider.h"

namespace nereid::object_store {

// The protocol. Thread-safe.
class LinesProtocol final : public Protocol {
 public:
  using HttpReply = http_client::HttpReply;
  using HttpRequest = http_client::HttpRequest;

  explicit LinesProtocol(std::string endpoint) : endpoint_(std::move(endpoint)) {}

  base::Result<HttpRequest> ListRequest(const std::string& prefix,
                                        const std::string& token) override {
    return Make("/list/" + prefix + "?" + token, {});
  }
  base::Result<HttpRequest> ReadRequest(const Object& object, Range range) override {
    return Make("/get/" + object.key, {{"range", fmt::format("{}+{}", range.offset, range.size)}});
  }
  base::Result<HttpRequest> CurrentRequest(const std::string& key) override {
    return Make("/now/" + key, {});
  }
  base::Result<HttpRequest> WriteRequest(const std::string& key, const std::string& text,
                                         const std::string& etag) override {
    NEREID_ASSIGN_OR_RETURN(HttpRequest request, Make("/put/" + key, {{"if-match", etag}}));
    request.method = http_client::Method::kPut;
    request.body = text;
    return request;
  }
  // Each line is "key etag size", perhaps with the seconds since 1970 and the MD5; a last line of
  // "> token" says that there is another page.
  base::Result<ListPage> ParseList(std::string_view body) const override {
    ListPage page;
    std::istringstream lines{std::string(body)};
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Object object;
      words >> object.key;
      if (object.key == ">") {
        words >> page.next;
      } else if (words >> object.etag >> object.size) {
        int64_t seconds = 0;
        words >> seconds >> object.md5;
        object.modified_ns = seconds * 1'000'000'000;
        page.objects.push_back(std::move(object));
      } else {
        return base::InternalError("a line is wrong");
      }
    }
    return page;
  }
  Failure Explain(const HttpReply& reply) const override {
    return {std::to_string(reply.status), reply.body, reply.status >= 500};
  }
  bool Learn(const HttpReply& reply) override {
    if (reply.status != 401) return false;
    base::MutexLock lock(mutex_);
    return std::exchange(token_, "new") != "new";
  }
  std::string Describe() const override { return "bucket of lines"; }
  base::Status ListError(const std::string& prefix, const Failure& failure) const override {
    return base::InternalError(
        fmt::format("list {}: {} {}", prefix, failure.name, failure.message));
  }
  base::Status ReadError(const Object& object, const Failure& failure) const override {
    return base::InternalError(
        fmt::format("read {}: {} {}", object.key, failure.name, failure.message));
  }

  void LoseToken() {
    base::MutexLock lock(mutex_);
    token_.clear();
  }

 private:
  base::Result<HttpRequest> Make(const std::string& path,
                                 std::map<std::string, std::string> headers) const {
    base::MutexLock lock(mutex_);
    if (token_.empty()) return base::UnavailableError("there is no token");
    HttpRequest request;
    request.url = endpoint_ + path;
    request.headers = std::move(headers);
    request.headers["token"] = token_;
    return request;
  }

  const std::string endpoint_;
  mutable base::Mutex mutex_;
  std::string token_ NEREID_GUARDED_BY(mutex_) = "old";
};

// Knows the bucket lines://b.
class LinesProvider final : public Provider {
 public:
  explicit LinesProvider(std::string endpoint) : endpoint_(std::move(endpoint)) {}

  base::Result<Location> Parse(std::string_view path) const override {
    if (!path.starts_with("lines://")) return base::InternalError("no lines");
    return Location{"lines://b", "b", std::string(path.substr(std::min<size_t>(10, path.size())))};
  }
  base::Result<Access> Open(const std::string&, http_client::HttpClient&) const override {
    return Access{"b", std::make_unique<LinesProtocol>(endpoint_)};
  }
  std::string CannotOpen() const override { return "Cannot open lines. "; }

 private:
  const std::string endpoint_;
};

}  // namespace nereid::object_store
