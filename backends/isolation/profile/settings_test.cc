// SPDX-License-Identifier: Apache-2.0
#include "isolation_profile/settings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "isolation_profile/confinement_text.h"

namespace nereid::isolation {
namespace {

using backend::ModelConfig;
using backend::Result;

Result<Settings> Parse(const std::string& key, const std::string& value) {
  auto config = ModelConfig::Parse("{\"parameters\": {\"" + key + "\": {\"string_value\": \"" +
                                   value + "\"}}}");
  return Settings::Parse(config.value());
}

std::string ErrorOf(const std::string& key, const std::string& value) {
  auto settings = Parse(key, value);
  return settings.ok() ? "" : settings.TakeError().message();
}

// With the separators made visible.
std::string Shown(std::string text) {
  std::ranges::replace(text, kSeparator, '|');
  return text;
}

TEST(Settings, HaveNoLimitsByDefault) {
  const Settings settings = Settings::Parse(ModelConfig::Parse("{}").value()).value();
  EXPECT_FALSE(settings.timeout);
  EXPECT_EQ(settings.memory_bytes, 0);
  EXPECT_EQ(settings.ConfinementFor({}), "");
}

TEST(Settings, ReadLimits) {
  EXPECT_EQ(Parse("isolation_timeout_secs", "0.25").value().timeout,
            std::chrono::milliseconds(250));
  EXPECT_EQ(Parse("isolation_memory_mb", "3").value().memory_bytes, 3u << 20);
}

TEST(Settings, RefuseWhatIsNoLimit) {
  EXPECT_EQ(ErrorOf("isolation_timeout_secs", "0"),
            "parameter 'isolation_timeout_secs' must be a number above 0, not '0'");
  EXPECT_EQ(ErrorOf("isolation_memory_mb", "1GB"),
            "parameter 'isolation_memory_mb' must be a number above 0, not '1GB'");
  EXPECT_EQ(ErrorOf("isolation_network", "maybe"),
            "parameter 'isolation_network' must be true or false, not 'maybe'");
  EXPECT_EQ(ErrorOf("isolation_read_paths", "/a:b"),
            "parameter 'isolation_read_paths' must list absolute paths, not 'b'");
}

TEST(Settings, SayWhatAProcessMayDo) {
  const Settings settings = Parse("isolation_read_paths", "/a::/b").value();
  const ModelPlaces places{.model = "/model",
                           .readable = {"/lib/x", ""},
                           .libraries = {"/backend.so"},
                           .temporary = "/tmp/x"};
  EXPECT_EQ(Shown(settings.ConfinementFor(places)),
            "m|/model|r|/lib/x|r|/a|r|/b|w|/tmp/x|l|/backend.so|");
  EXPECT_EQ(Shown(Parse("isolation_network", "true").value().ConfinementFor({})), "net|1|");
  EXPECT_EQ(Shown(Parse("isolation_files", "all").value().ConfinementFor({})), "files|1|");
}

}  // namespace
}  // namespace nereid::isolation
