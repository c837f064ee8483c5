// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "check/testing/kind_cases.h"

namespace nereid::check {
namespace {

std::vector<KindCase> AllCases() {
  std::vector<KindCase> all;
  for (const auto& cases : {FolderCases(), TextCases(), TensorCases(), SchedulerCases(),
                            EnsembleCases(), BackendCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

// A server's folders of backends and agents, without libraries that could be opened.
const RepositoryFolder& Installation() {
  static const RepositoryFolder folder({
      {"backends/identity/libtriton_identity.so", ""},
      {"backends/onnxruntime/libtriton_onnxruntime.so", ""},
      {"backends/python/libtriton_python.so", ""},
      {"backends/pytorch/libtriton_pytorch.so", ""},
      {"backends/openvino/libtriton_openvino.so", ""},
      {"backends/scripted/model.py", ""},
      {"agents/checksum/libtritonrepoagent_checksum.so", ""},
  });
  return folder;
}

CheckOptions OptionsFor(const std::string& repository) {
  CheckOptions options;
  options.repositories = {repository};
  options.backend_directory = Installation().path() + "/backends";
  options.agent_directory = Installation().path() + "/agents";
  options.cpus = 2;
  return options;
}

std::string PlaceOf(const Finding& finding, const std::string& repository) {
  std::string file = finding.file;
  if (file.starts_with(repository)) file = file.substr(repository.size());
  if (file.starts_with('/')) file = file.substr(1);
  return finding.line == 0 ? file : fmt::format("{}:{}:{}", file, finding.line, finding.column);
}

std::string Listed(const Report& report, const std::string& repository) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += fmt::format("{} at {}: {} | {} | {} | {}\n", finding.code, PlaceOf(finding, repository),
                        finding.text, finding.found, finding.expected, finding.suggestion);
  }
  return text;
}

// Takes the right to read something away, also from a user who may read everything.
class Locked {
 public:
  Locked(const RepositoryFolder& repository, const std::string& locked)
      : path_(std::filesystem::path(repository.path()) / locked) {
    if (locked.empty()) return;
    rights_ = std::filesystem::status(path_).permissions();
    std::filesystem::permissions(path_, std::filesystem::perms::none);
    EXPECT_EQ(seteuid(geteuid() == 0 ? kNobody : geteuid()), 0);
  }
  ~Locked() {
    EXPECT_EQ(seteuid(user_), 0);
    if (rights_) std::filesystem::permissions(path_, *rights_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;

  const std::filesystem::path path_;
  const uid_t user_ = geteuid();
  std::optional<std::filesystem::perms> rights_;
};

Report CheckFiles(const KindCase& wrong, const RepositoryFolder& repository) {
  CheckOptions options = OptionsFor(repository.path());
  const Locked locked(repository, wrong.locked);
  options.disable_auto_complete = wrong.setting == Setting::kStrict;
  if (wrong.setting == Setting::kNoSuchRepository) {
    options.repositories = {repository.path() + "/nowhere"};
  }
  if (wrong.setting != Setting::kTwoRepositories) return CheckRepositories(options);
  const RepositoryFolder other(wrong.files);
  options.repositories.push_back(other.path());
  return CheckRepositories(options);
}

TEST(Check, NamesKindPlaceAndSuggestionOfEachMistake) {
  for (const KindCase& wrong : AllCases()) {
    const RepositoryFolder repository(wrong.files);
    const Report report = CheckFiles(wrong, repository);
    const bool is_found = std::ranges::any_of(report.findings, [&](const Finding& finding) {
      return finding.code == wrong.code && PlaceOf(finding, repository.path()) == wrong.place &&
             finding.suggestion.find(wrong.suggestion) != std::string::npos;
    });
    EXPECT_TRUE(is_found) << wrong.code << " at " << wrong.place << ": "
                          << Listed(report, repository.path());
  }
}

TEST(Check, SaysNothingElseOfWhatCannotBeRead) {
  for (const KindCase& wrong : AllCases()) {
    if (wrong.locked.empty()) continue;
    const RepositoryFolder repository(wrong.files);
    const Report report = CheckFiles(wrong, repository);
    EXPECT_EQ(report.findings.size(), 1) << Listed(report, repository.path());
    EXPECT_THAT(report.findings.front().text, testing::HasSubstr("Permission denied"));
  }
}

TEST(Check, HasACaseForEachKind) {
  std::set<std::string_view> covered = {
      // What remains if the server refuses a model for a reason that no rule knows, and what only
      // a load can tell.
      "refused", "load-failed", "batch-strategy-missing"};
  for (const KindCase& wrong : AllCases()) covered.insert(wrong.code);
  for (const Kind& kind : Kinds()) EXPECT_TRUE(covered.contains(kind.code)) << kind.code;
}

TEST(Check, FollowsARuntimeAsTheServerDoes) {
  const std::string config = "backend: \"identity\"\nruntime: \"../other/libtriton_identity.so\"\n";
  const std::string tensors = Plain("").substr(Plain("").find('\n') + 1);
  // The server finds the file from the model's folder, and refuses it for where it is.
  const RepositoryFolder repository({{"other/libtriton_identity.so", ""},
                                     {"other/1/", ""},
                                     {"other/config.pbtxt", Plain("")},
                                     {"m/1/", ""},
                                     {"m/config.pbtxt", config + tensors}});
  const Report report = CheckRepositories(OptionsFor(repository.path()));
  ASSERT_EQ(report.findings.size(), 1) << Listed(report, repository.path());
  EXPECT_EQ(report.findings[0].code, "path-outside");
  EXPECT_EQ(PlaceOf(report.findings[0], repository.path()), "m/config.pbtxt:2:10");
}

TEST(Check, LeavesFilesThatAnAgentBringsToTheAgent) {
  const std::string agents = "model_repository_agents { agents { name: \"fetch\" } }\n";
  const auto codes = [&](const std::string& config) {
    const RepositoryFolder repository(Files{{"m/1/notes.txt", ""}, {"m/config.pbtxt", config}});
    CheckOptions options = OptionsFor(repository.path());
    options.agent_directory.clear();
    std::set<std::string_view> found;
    for (const Finding& finding : CheckRepositories(options).findings) found.insert(finding.code);
    return found;
  };
  EXPECT_THAT(codes(agents), testing::IsEmpty());
  EXPECT_THAT(codes("backend: \"onnxruntime\"\n" + agents), testing::IsEmpty());
  EXPECT_THAT(codes("backend: \"its_own\"\n" + agents), testing::IsEmpty());
  EXPECT_THAT(codes("backend: \"python\"\nparameters { key: \"EXECUTION_ENV_PATH\" value { "
                    "string_value: \"$$TRITON_MODEL_DIRECTORY/env.tar.gz\" } }\n" +
                    agents),
              testing::IsEmpty());
  // What is written is checked all the same, and checksums are of the files that are there.
  EXPECT_THAT(codes(agents + "max_batch_size: -1\nbackend: \"onnxruntime\"\n"),
              testing::ElementsAre("batch-size-negative"));
  EXPECT_THAT(codes("model_repository_agents { agents { name: \"checksum\" } }\n"),
              testing::ElementsAre("backend-unidentified"));
}

// The path of a batching library is absolute, so it is known only when the repository is there.
TEST(Check, MissesABatchingLibrary) {
  const std::string name = "strategy.so";
  const RepositoryFolder repository(PlainModel("", {{"m/notes.txt", ""}}));
  const std::string path = repository.path() + "/m/" + name;
  std::ofstream(repository.path() + "/m/config.pbtxt")
      << Plain("parameters { key: \"TRITON_BATCH_STRATEGY_PATH\" value { string_value: \"" + path +
               "\" } }\n");
  const Report report = CheckRepositories(OptionsFor(repository.path()));
  ASSERT_EQ(report.findings.size(), 1) << Listed(report, repository.path());
  EXPECT_EQ(report.findings[0].code, "batch-strategy-missing");
  EXPECT_EQ(PlaceOf(report.findings[0], repository.path()), "m/config.pbtxt:5:19");
}

TEST(Check, FindsNothingInACorrectModel) {
  const RepositoryFolder repository(
      PlainModel("dynamic_batching { max_queue_delay_microseconds: 100 }\n"));
  const Report report = CheckRepositories(OptionsFor(repository.path()));
  EXPECT_EQ(Listed(report, repository.path()), "");
  EXPECT_EQ(report.models, 1);
}

TEST(Check, FindsAllMistakesOfOneModel) {
  const RepositoryFolder repository(
      PlainModel("max_batch_sise: 3\ninput { name: 7 }\ninstance_group { kind: KIND_TPU }\n"));
  const Report report = CheckRepositories(OptionsFor(repository.path()));
  std::vector<std::string> places;
  for (const Finding& finding : report.findings) {
    places.push_back(fmt::format("{}:{}", finding.line, finding.code));
  }
  EXPECT_THAT(places, testing::ElementsAre("5:field-unknown", "6:value-type", "7:value-unknown"));
}

}  // namespace
}  // namespace nereid::check
