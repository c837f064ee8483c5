// SPDX-License-Identifier: Apache-2.0
// Requests to Azure Storage and the meaning of the replies.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "azure/account.h"
#include "object_store/provider.h"
#include "object_store/renewed.h"

namespace nereid::azure {

// The protocol for one container. Thread-safe.
class AzureProtocol final : public object_store::Protocol {
 public:
  // `client`, which asks for tokens, outlives this.
  AzureProtocol(std::string container, Account account, http_client::HttpClient& client);

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
  std::string Describe() const override;
  base::Status ListError(const std::string& prefix,
                         const object_store::Failure& failure) const override;
  base::Status ReadError(const object_store::Object& object,
                         const object_store::Failure& failure) const override;

 private:
  // Returns a request that the account permits. `query` has decoded values.
  base::Result<http_client::HttpRequest> Authorized(const std::string& key,
                                                    const std::map<std::string, std::string>& query,
                                                    std::map<std::string, std::string> headers,
                                                    std::string_view method = "GET");

  const std::string container_;
  const Account account_;
  const std::string path_;  // of the endpoint: that of an emulator has the account in it
  object_store::Renewed<std::string> token_;
};

}  // namespace nereid::azure
