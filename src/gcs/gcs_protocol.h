// SPDX-License-Identifier: Apache-2.0
// Requests to Google Cloud Storage, by its JSON API, and the meaning of the replies.
#pragma once

#include <string>
#include <string_view>

#include "gcs/account.h"
#include "object_store/provider.h"
#include "object_store/renewed.h"

namespace nereid::gcs {

// The protocol for one bucket. Thread-safe.
class GcsProtocol final : public object_store::Protocol {
 public:
  // `endpoint` is https://storage.googleapis.com or that of an emulator. `client`, which asks for
  // tokens, outlives this.
  GcsProtocol(std::string endpoint, std::string bucket, const Account& account,
              http_client::HttpClient& client);

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
  std::string EtagHeader() const override { return "x-goog-generation"; }
  std::string Describe() const override;
  base::Status ListError(const std::string& prefix,
                         const object_store::Failure& failure) const override;
  base::Status ReadError(const object_store::Object& object,
                         const object_store::Failure& failure) const override;

 private:
  // Returns a request with the token. `resource` follows the bucket's address, and `service` is in
  // front of that.
  base::Result<http_client::HttpRequest> Authorized(const std::string& resource,
                                                    std::string_view service = "");

  const std::string endpoint_;
  const std::string bucket_;
  object_store::Renewed<std::string> token_;
};

}  // namespace nereid::gcs
