// SPDX-License-Identifier: Apache-2.0
#include "object_store/endpoint.h"

#include <gtest/gtest.h>

namespace nereid::object_store {
namespace {

TEST(AnEndpoint, IsConfidentialWithEncryptionOrOnThisMachine) {
  for (const char* endpoint : {"https://example.test", "http://127.0.0.1:9023/account",
                               "http://localhost", "http://[::1]:80"}) {
    EXPECT_TRUE(IsConfidential(endpoint)) << endpoint;
  }
  for (const char* endpoint : {"http://example.test", "http://127.0.0.1.example.test/x", "http://",
                               "http://localhost.example.test", "http://10.0.0.1"}) {
    EXPECT_FALSE(IsConfidential(endpoint)) << endpoint;
  }
}

}  // namespace
}  // namespace nereid::object_store
