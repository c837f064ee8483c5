// SPDX-License-Identifier: Apache-2.0
#include "http/repository_control.h"

#include <string>

#include <gtest/gtest.h>

namespace nereid::http {
namespace {

std::string WithFile(std::string_view text) {
  return R"({"parameters":{"config":"{}","file:1/model.onnx":")" + std::string(text) + "\"}}";
}

std::string ErrorOf(std::string_view body, size_t most = INT_MAX) {
  const auto options = ReadLoadOptions(body, most);
  return options.ok() ? "" : std::string(options.status().message());
}

TEST(ReadLoadOptions, ReadsConfigurationAndFiles) {
  const auto options = ReadLoadOptions(WithFile("YWJj"));
  ASSERT_TRUE(options.ok());
  EXPECT_EQ("{}", options->config);
  ASSERT_EQ(1u, options->files.size());
  EXPECT_EQ("1/model.onnx", options->files[0].path);
  EXPECT_EQ("abc", options->files[0].content);
}

TEST(ReadLoadOptions, HasNoneInAnEmptyBody) {
  for (const std::string_view body : {"", "{}", R"({"parameters":{}})"}) {
    const auto options = ReadLoadOptions(body);
    ASSERT_TRUE(options.ok()) << body;
    EXPECT_TRUE(options->files.empty());
  }
}

TEST(ReadLoadOptions, LimitsTheTextOfAFile) {
  EXPECT_EQ("", ErrorOf(WithFile(std::string(100, 'A')), 100));
  EXPECT_EQ("'file:1/model.onnx' exceeds the maximum allowed data size limit INT_MAX",
            ErrorOf(WithFile(std::string(101, 'A')), 100));
}

TEST(ReadLoadOptions, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ("attempt to get members for non-object", ErrorOf(R"({"parameters":[1]})"));
  EXPECT_EQ("unexpected error on creating Triton parameter",
            ErrorOf(R"({"parameters":{"other":"x"}})"));
  EXPECT_NE("", ErrorOf(R"({"parameters":{"file:1/x":7}})"));
  EXPECT_NE("", ErrorOf("{"));
}

}  // namespace
}  // namespace nereid::http
