// SPDX-License-Identifier: Apache-2.0
// Signed S3 requests and the meaning of the replies.
#pragma once

#include <atomic>
#include <map>
#include <string>

#include "base/mutex.h"
#include "object_store/provider.h"
#include "s3/credentials.h"
#include "s3/location.h"

namespace nereid::s3 {

// The protocol for one bucket. Learns the region of a bucket at Amazon. Thread-safe.
class S3Protocol final : public object_store::Protocol {
 public:
  // The key of `location` is ignored. `client`, which asks for temporary keys, outlives this.
  S3Protocol(Location location, Account account, http_client::HttpClient& client);

  base::Result<http_client::HttpRequest> ListRequest(const std::string& prefix,
                                                     const std::string& token) override;
  base::Result<http_client::HttpRequest> ReadRequest(const object_store::Object& object,
                                                     object_store::Range range) override;
  base::Result<http_client::HttpRequest> CurrentRequest(const std::string& key) override;
  base::Result<http_client::HttpRequest> WriteRequest(const std::string& key,
                                                      const std::string& text,
                                                      const std::string& etag) override;
  base::Result<object_store::ListPage> ParseList(std::string_view body) const override;
  object_store::Failure Explain(const http_client::HttpReply& reply) const override;
  bool Learn(const http_client::HttpReply& reply) override;
  bool HasOtherMd5(const http_client::HttpReply& reply) const override;
  std::string Describe() const override;
  base::Status ListError(const std::string& prefix,
                         const object_store::Failure& failure) const override;
  base::Status ReadError(const object_store::Object& object,
                         const object_store::Failure& failure) const override;

 private:
  base::Result<http_client::HttpRequest> Sign(
      const std::string& key, const std::string& query, std::map<std::string, std::string> headers,
      http_client::Method method = http_client::Method::kGet, const std::string& body = {});
  std::string region() const;

  const Location location_;
  const bool has_temporary_keys_;
  std::atomic<bool> is_unsigned_{false};    // the last request was
  std::atomic<bool> writes_always_{false};  // the store knows no writes on condition
  object_store::Renewed<Credentials> keys_;
  mutable base::Mutex mutex_;
  std::string region_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::s3
