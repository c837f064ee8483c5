// SPDX-License-Identifier: Apache-2.0
#include "python_backend/settings.h"

#include <gtest/gtest.h>

#include "backend_kit/testing/fake_host.h"

namespace nereid::python {
namespace {

// Parses the settings of --backend-config=python,KEY=VALUE as the server passes them.
backend::Result<Settings> Parse(const std::string& members) {
  return Settings::Parse("{\"cmdline\": {" + members + "}}");
}

std::string ErrorOf(const std::string& members) {
  auto settings = Parse(members);
  return settings.ok() ? "" : settings.TakeError().message();
}

TEST(Settings, HaveDefaults) {
  for (const char* const json : {"{}", "{\"cmdline\": {}}"}) {
    auto settings = Settings::Parse(json);
    ASSERT_TRUE(settings.ok()) << json;
    EXPECT_EQ(settings.value().start_timeout, std::chrono::seconds(30));
    EXPECT_EQ(settings.value().interpreter, "");
    EXPECT_TRUE(settings.value().checks_outputs);
  }
}

TEST(Settings, AreReadFromTheCommandLine) {
  auto settings = Parse(R"("stub-timeout-seconds": "120", "python-runtime": "/opt/python3",
      "backend-directory": "/opt/backends", "check-outputs": "false")");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().start_timeout, std::chrono::seconds(120));
  EXPECT_EQ(settings.value().interpreter, "/opt/python3");
  EXPECT_EQ(settings.value().backend_directory, "/opt/backends");
  EXPECT_FALSE(settings.value().checks_outputs);
}

TEST(Settings, RefuseNumbersThatAreNone) {
  EXPECT_EQ(ErrorOf(R"("stub-timeout-seconds": "soon")"),
            "stub-timeout-seconds must be a number, not 'soon'");
  EXPECT_EQ(ErrorOf(R"("stub-timeout-seconds": "")"),
            "stub-timeout-seconds must be a number, not ''");
  EXPECT_EQ(ErrorOf(R"("stub-timeout-seconds": "99999999999999999999")"),
            "stub-timeout-seconds must be a number, not '99999999999999999999'");
  EXPECT_EQ(ErrorOf(R"("stub-timeout-seconds": "0")"),
            "stub-timeout-seconds can't be smaller than or equal to zero.");
  EXPECT_EQ(ErrorOf(R"("stub-timeout-seconds": "-1")"),
            "stub-timeout-seconds can't be smaller than or equal to zero.");
}

// Triton's keys about its shared memory have no effect here, but their values are checked as there.
TEST(Settings, CheckKeysThatHaveNoEffect) {
  EXPECT_EQ(ErrorOf(R"("shm-default-byte-size": "1048576", "shm-growth-byte-size": "64",
                       "thread-pool-size": "4", "shm_message_queue_size": "10",
                       "shm-region-prefix-name": "mine")"),
            "");
  EXPECT_EQ(ErrorOf(R"("shm-default-byte-size": "1000")"),
            "shm-default-byte-size can't be smaller than 4 MiBs");
  EXPECT_EQ(ErrorOf(R"("shm-growth-byte-size": "0")"),
            "shm-growth-byte-size can't be smaller than or equal to zero.");
  EXPECT_EQ(ErrorOf(R"("thread-pool-size": "0")"), "thread-pool-size can't be less than 1.");
  EXPECT_EQ(ErrorOf(R"("shm_message_queue_size": "0")"),
            "shm_message_queue_size can't be less than 1.");
  EXPECT_EQ(ErrorOf(R"("shm-region-prefix-name": "")"),
            "shm-region-prefix-name must at least contain one character.");
}

TEST(Settings, RefuseInvalidBooleansAndMalformedJson) {
  EXPECT_NE(ErrorOf(R"("check-outputs": "perhaps")"), "");
  EXPECT_FALSE(Settings::Parse("{\"cmdline\": ").ok());
}

}  // namespace
}  // namespace nereid::python
