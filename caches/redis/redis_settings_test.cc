// SPDX-License-Identifier: Apache-2.0
#include "redis_cache/redis_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace nereid::redis_cache {
namespace {

std::string ErrorOf(const char* json) {
  const auto read = ReadSettings(json);
  const auto* error = std::get_if<std::string>(&read);
  return error == nullptr ? "" : *error;
}

TEST(RedisSettings, NeedHostAndPort) {
  for (const char* json : {"{}", "", "[]", R"({"host":"h"})", R"({"port":"1"})"}) {
    EXPECT_NE(ErrorOf(json).find("Must at a minimum specify 'host' and 'port'"), std::string::npos)
        << json;
  }
}

TEST(RedisSettings, AreReadFromTexts) {
  const auto read = ReadSettings(
      R"({"host":"h","port":"6380","user":"u","password":"p","db":"3","connect_timeout":"5",)"
      R"("socket_timeout":"6","wait_timeout":"7","pool_size":"8","tls_enabled":"true","sni":"s"})");
  const auto& settings = std::get<RedisSettings>(read);
  EXPECT_EQ(settings.host, "h");
  EXPECT_EQ(settings.port, 6380);
  EXPECT_EQ(settings.user, "u");
  EXPECT_EQ(settings.password, "p");
  EXPECT_EQ(settings.database, 3);
  EXPECT_EQ(settings.connect_timeout.count(), 5);
  EXPECT_EQ(settings.socket_timeout.count(), 6);
  EXPECT_EQ(settings.wait_timeout.count(), 7);
  EXPECT_EQ(settings.pool_size, 8u);
  EXPECT_TRUE(settings.tls.is_enabled);
  EXPECT_EQ(settings.tls.server_name, "s");
}

TEST(RedisSettings, APortThatIsNoNumberIsZeroAndOtherNumbersAreErrors) {
  EXPECT_EQ(std::get<RedisSettings>(ReadSettings(R"({"host":"h","port":"nonexistent"})")).port, 0);
  EXPECT_NE(ErrorOf(R"({"host":"h","port":"1","pool_size":"many"})").find("'pool_size'"),
            std::string::npos);
}

// A setting that is not understood must not mean a connection in the clear.
TEST(RedisSettings, TlsIsTrueOrFalse) {
  for (const char* text : {"1", "yes", "True", ""}) {
    const std::string json =
        std::string(R"({"host":"h","port":"1","tls_enabled":")") + text + "\"}";
    EXPECT_NE(ErrorOf(json.c_str()).find("'tls_enabled' expects true or false"), std::string::npos)
        << json;
  }
  const auto off = ReadSettings(R"({"host":"h","port":"1","tls_enabled":"false"})");
  EXPECT_FALSE(std::get<RedisSettings>(off).tls.is_enabled);
}

TEST(RedisSettings, CredentialsComeFromTheEnvironmentUnlessGiven) {
  ::setenv("TRITONCACHE_REDIS_USERNAME", "env-user", 1);
  ::setenv("TRITONCACHE_REDIS_PASSWORD", "env-password", 1);
  const auto settings =
      std::get<RedisSettings>(ReadSettings(R"({"host":"h","port":"1","password":"given"})"));
  EXPECT_EQ(settings.user, "env-user");
  EXPECT_EQ(settings.password, "given");
  ::unsetenv("TRITONCACHE_REDIS_USERNAME");
  ::unsetenv("TRITONCACHE_REDIS_PASSWORD");
}

}  // namespace
}  // namespace nereid::redis_cache
