// SPDX-License-Identifier: Apache-2.0
#include "cli/server_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

using testing::ElementsAre;

std::string ListError(const std::vector<std::string>& values) {
  return std::string(ReadServerList(values).status().message());
}

TEST(ServerList, CommasAndRepeatedOptionsSeparateAddresses) {
  const auto addresses = ReadServerList({"http://a:8000, https://b", "unix:/run/c.sock"});
  ASSERT_TRUE(addresses.ok());
  EXPECT_THAT(*addresses, ElementsAre("http://a:8000", "https://b", "unix:/run/c.sock"));
}

TEST(ServerList, MissingAndRepeatedAddressesAreErrors) {
  for (const char* value : {"", ",", "a,", ",a", "a,,b", "a, ,b"}) {
    EXPECT_EQ(
        ListError({value}),
        fmt::format("--servers '{}': expected addresses with one comma between each two", value));
  }
  EXPECT_EQ(ListError({"a,b", "a"}), "--servers: 'a' stands there twice");
}

TEST(ServerList, ALongListIsAnError) {
  std::string value = "a0";
  for (int i = 1; i < 256; ++i) value += fmt::format(",a{}", i);
  EXPECT_TRUE(ReadServerList({value}).ok());
  EXPECT_EQ(ListError({value, "b"}), "--servers: expected at most 256 addresses");
}

TEST(ServerList, AWrongAddressIsNamedWithItsOption) {
  EXPECT_EQ(CreateClients({"http://a:8000", "http://"}, {}).status().message(),
            "--servers 'http://': expected http[s]://HOST:PORT or unix:PATH");
  EXPECT_EQ(CreateClients({"unix:"}, {}).status().message(),
            "--servers 'unix:': expected unix:PATH");
}

}  // namespace
}  // namespace nereid::cli
