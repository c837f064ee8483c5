// SPDX-License-Identifier: Apache-2.0
// What the check says of files that no rule foresees: cut off, damaged, or not configurations at
// all.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "check/check.h"
#include "check/testing/kind_cases.h"

namespace nereid::check {
namespace {

// A configuration with a bit of everything.
const std::string kConfig = Plain(
    "dynamic_batching { preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 100 }\n"
    "instance_group [ { count: 1 kind: KIND_CPU name: \"group\" } ]\n"
    "version_policy { latest { num_versions: 2 } }\n"
    "parameters { key: \"a\" value { string_value: \"text \\\"quoted\\\"\" } }\n"
    "# the end\n");

Report Check(const Files& files) {
  const RepositoryFolder repository(files);
  CheckOptions options;
  options.repositories = {repository.path()};
  options.cpus = 2;
  Report report = CheckRepositories(options);
  // The folder has another name each time.
  for (Finding& finding : report.findings) {
    for (std::string* const text : {&finding.file, &finding.text, &finding.suggestion}) {
      for (size_t at = text->find(repository.path()); at != std::string::npos;
           at = text->find(repository.path())) {
        text->replace(at, repository.path().size(), "REPOSITORY");
      }
    }
  }
  return report;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

// Editors jump to the place of a finding, and scripts look for its code.
void ExpectUsable(const Report& report, const std::string& config) {
  const std::vector<std::string> lines = LinesOf(config);
  for (const Finding& finding : report.findings) {
    EXPECT_EQ(FindKind(finding.code).code, finding.code);
    EXPECT_FALSE(finding.text.empty()) << finding.code;
    if (finding.line == 0) continue;
    ASSERT_GE(finding.line, 1) << finding.text;
    ASSERT_LE(finding.line, std::ssize(lines)) << finding.text;
    EXPECT_GE(finding.column, 1) << finding.text;
    EXPECT_LE(finding.column, std::ssize(lines[static_cast<size_t>(finding.line) - 1]) + 1)
        << finding.text;
  }
}

TEST(DamagedConfig, ThatIsCutOffAnywhereHasPlacesWithinWhatIsLeft) {
  for (size_t size = 0; size < kConfig.size(); size += 3) {
    const std::string config = kConfig.substr(0, size);
    ExpectUsable(Check(Model(config)), config);
  }
}

TEST(DamagedConfig, WithWrongBytesIsCheckedInTheSameWayEachTime) {
  std::mt19937 random(1);
  using namespace std::string_view_literals;
  constexpr std::string_view kBytes = "{}[]:,\"'#\\\n\r\t 09-.eaZ_\x00\x7f\xff\xc3"sv;
  for (int round = 0; round < 150; ++round) {
    std::string config = kConfig;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      config[random() % config.size()] = kBytes[random() % kBytes.size()];
    }
    const Report report = Check(Model(config));
    ExpectUsable(report, config);
    EXPECT_EQ(report.models, 1u);
    EXPECT_EQ(Check(Model(config)).findings, report.findings) << config;
  }
}

TEST(DamagedConfig, ThatIsNoTextAtAllIsAnError) {
  std::string binary(4096, '\0');
  std::mt19937 random(2);
  for (char& c : binary) c = static_cast<char>(random());
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "dynamic_batching {";
  for (const std::string& config :
       {binary, deep, std::string(100'000, '{'), std::string("\0\0\0", 3), std::string("\xff\xfe"),
        std::string("<html></html>"), "input { name: \"" + std::string(1 << 20, 'x')}) {
    const Report report = Check(Model(config));
    ExpectUsable(report, config);
    EXPECT_GE(report.Count(Severity::kError), 1u) << config.substr(0, 20);
  }
}

TEST(DamagedConfig, WithWindowsLineEndsIsFine) {
  std::string config;
  for (const char c : kConfig) config += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(Check(Model(config)).findings, Check(Model(kConfig)).findings);
}

TEST(DamagedConfig, OfOneModelChangesNothingAboutAnother) {
  const std::string other = Plain("max_batch_sise: 3\n");
  const auto of_other = [](const Report& report) {
    std::vector<Finding> findings;
    for (const Finding& finding : report.findings) {
      if (finding.file.find("/other") != std::string::npos) findings.push_back(finding);
    }
    return findings;
  };
  const auto with = [&](const std::string& config) {
    Files files = Model(config);
    files.emplace_back("other/1/", "");
    files.emplace_back("other/config.pbtxt", other);
    return Check(files);
  };
  const std::vector<Finding> expected = of_other(with(kConfig));
  ASSERT_FALSE(expected.empty());
  for (size_t size = 0; size < kConfig.size(); size += 29) {
    const Report report = with(kConfig.substr(0, size));
    EXPECT_EQ(report.models, 2u);
    EXPECT_EQ(of_other(report), expected) << size;
  }
}

}  // namespace
}  // namespace nereid::check
