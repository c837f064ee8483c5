// SPDX-License-Identifier: Apache-2.0
#include "gcs/gcs_protocol.h"

#include <gtest/gtest.h>

namespace nereid::gcs {
namespace {

using object_store::Object;

class AGoogleBucket : public testing::Test {
 protected:
  http_client::HttpClient client_;
  GcsProtocol bucket_{"http://host:1", "my-bucket", {Anonymous{}, "", ""}, client_};
};

TEST_F(AGoogleBucket, IsListedInPages) {
  EXPECT_EQ(bucket_.ListRequest("a b/", "")->url,
            "http://host:1/storage/v1/b/my-bucket/o"
            "?fields=items(name%2Cgeneration%2Csize%2Cmd5Hash%2Cupdated)%2CnextPageToken"
            "&maxResults=1000&prettyPrint=false&prefix=a%20b%2F");
  const auto next = bucket_.ListRequest("", "to/ken=");
  EXPECT_TRUE(next->url.ends_with("&prefix=&pageToken=to%2Fken%3D"));
  EXPECT_FALSE(next->headers.contains("authorization"));
}

TEST_F(AGoogleBucket, IsReadInPartsOfOneGeneration) {
  const Object object{.key = "m/1/a+b", .etag = "17", .size = 100};
  const auto request = bucket_.ReadRequest(object, {10, 5});
  EXPECT_EQ(request->url,
            "http://host:1/storage/v1/b/my-bucket/o/m%2F1%2Fa%2Bb?alt=media&ifGenerationMatch=17");
  EXPECT_EQ(request->headers.at("range"), "bytes=10-14");
  EXPECT_EQ(request->headers.at("accept-encoding"), "gzip");
}

TEST_F(AGoogleBucket, SaysWhatGoogleSays) {
  const auto denied = bucket_.Explain(
      {.status = 403,
       .body = R"({"error": {"message": "denied", "errors": [{"reason": "forbidden"}]}})"});
  EXPECT_EQ(bucket_.ListError("m/", denied).message(),
            "Could not list contents of directory at gs://my-bucket/m/ : forbidden: denied (HTTP "
            "status 403) (bucket 'my-bucket' at http://host:1)");
  EXPECT_FALSE(denied.may_pass);
  const auto busy = bucket_.Explain({.status = 503, .body = "<html>"});
  EXPECT_EQ(bucket_.ReadError({.key = "m/x"}, busy).message(),
            "Failed to get object at gs://my-bucket/m/x : HTTP status 503");
  EXPECT_TRUE(busy.may_pass);
}

TEST_F(AGoogleBucket, AsksForNoOtherTokenWhereItHasJustGotOne) {
  ASSERT_TRUE(bucket_.ListRequest("", "").ok());
  EXPECT_FALSE(bucket_.Learn({.status = 401}));
  EXPECT_FALSE(bucket_.Learn({.status = 403}));
}

}  // namespace
}  // namespace nereid::gcs
