// SPDX-License-Identifier: Apache-2.0
#include "azure/azure_protocol.h"

#include <gtest/gtest.h>

namespace nereid::azure {
namespace {

using object_store::Object;

class AContainer : public testing::Test {
 protected:
  AzureProtocol Open(Access access, std::string endpoint = "https://acc.blob.core.windows.net") {
    return {"models", {"acc", std::move(endpoint), std::move(access), ""}, client_};
  }

  http_client::HttpClient client_;
};

TEST_F(AContainer, IsListedInPages) {
  AzureProtocol container = Open(Anonymous{});
  const auto first = container.ListRequest("", "");
  EXPECT_EQ(
      first->url,
      "https://acc.blob.core.windows.net/models?comp=list&include=metadata&restype=container");
  EXPECT_FALSE(first->headers.contains("authorization"));
  EXPECT_TRUE(first->headers.contains("x-ms-version"));
  EXPECT_EQ(container.ListRequest("a b/", "2!x=")->url,
            "https://acc.blob.core.windows.net/models?comp=list&include=metadata&marker=2%21x%3D"
            "&prefix=a%20b%2F&restype=container");
}

TEST_F(AContainer, IsReadInPartsOfOneState) {
  AzureProtocol container = Open(SharedKey{"key"}, "http://127.0.0.1:1/acc");
  const Object blob{.key = "m/1/a b", .etag = "0x8D", .size = 100};
  const auto request = container.ReadRequest(blob, {10, 5});
  EXPECT_EQ(request->url, "http://127.0.0.1:1/acc/models/m/1/a%20b");
  EXPECT_EQ(request->headers.at("if-match"), "\"0x8D\"");
  EXPECT_EQ(request->headers.at("x-ms-range"), "bytes=10-14");
  EXPECT_TRUE(request->headers.at("authorization").starts_with("SharedKey acc:"));
}

TEST_F(AContainer, IsWrittenOnlyWhereItIsAsItWas) {
  AzureProtocol container = Open(SharedKey{"key"});
  const auto changed = container.WriteRequest("m/x", "text", "0x8D");
  EXPECT_EQ(changed->method, http_client::Method::kPut);
  EXPECT_EQ(changed->body, "text");
  EXPECT_EQ(changed->headers.at("if-match"), "\"0x8D\"");
  EXPECT_EQ(changed->headers.at("x-ms-blob-type"), "BlockBlob");
  const auto made = container.WriteRequest("m/x", "text", "");
  EXPECT_EQ(made->headers.at("if-none-match"), "*");
  EXPECT_FALSE(made->headers.contains("if-match"));
}

TEST_F(AContainer, HasASharedAccessSignatureInItsAddressesAndInNoMessage) {
  AzureProtocol container = Open(SharedAccessSignature{"sv=1&sig=secret"});
  EXPECT_TRUE(container.ListRequest("", "")->url.ends_with("&restype=container&sv=1&sig=secret"));
  EXPECT_TRUE(container.ReadRequest({.key = "m", .etag = "e"}, {0, 1})
                  ->url.ends_with("/models/m?sv=1&sig=secret"));
  EXPECT_EQ(container.Describe(), "Azure container 'models' at https://acc.blob.core.windows.net");
}

TEST_F(AContainer, SaysWhatAzureSays) {
  const AzureProtocol container = Open(Anonymous{});
  const auto denied = container.Explain(
      {.status = 403,
       .body = "<Error><Code>AuthenticationFailed</Code><Message>No.\nTime:1</Message></Error>"});
  EXPECT_EQ(
      container.ListError("m/", denied).message(),
      "Failed to get contents of directory as://acc/models/m/: AuthenticationFailed: No. (HTTP "
      "status 403) (container 'models' at https://acc.blob.core.windows.net; no keys were "
      "found)");
  EXPECT_FALSE(denied.may_pass);
  const auto busy = container.Explain(
      {.status = 503, .headers = {{"x-ms-error-code", "ServerBusy"}}, .body = ""});
  EXPECT_EQ(container.ReadError({.key = "m/x"}, busy).message(),
            "Failed to get object at as://acc/models/m/x: ServerBusy: HTTP status 503");
  EXPECT_TRUE(busy.may_pass);
}

TEST_F(AContainer, AsksForAnotherTokenOnlyWhereItHasTokens) {
  AzureProtocol container = Open(SharedKey{"key"});
  ASSERT_TRUE(container.ListRequest("", "").ok());
  EXPECT_FALSE(container.Learn({.status = 401}));
}

}  // namespace
}  // namespace nereid::azure
