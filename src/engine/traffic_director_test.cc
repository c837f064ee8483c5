// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic_director.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "engine/testing/traffic_fixture.h"

namespace nereid::engine {
namespace {

using testing::HasSubstr;

class ADirector : public TrafficFixture {};

std::string Key(int i) { return "user-" + std::to_string(i); }

// --- Shares ---

TEST_F(ADirector, DividesRequestsThatNameNoVersion) {
  ASSERT_EQ(LoadVersions({1, 2}, {{"version_labels", "stable=1,next=2"}}), "OK");
  ASSERT_EQ(SetCanary(2, 20), "OK");
  EXPECT_NEAR(Count(2, 1000, {}), 200, 3);
  EXPECT_EQ(Count(1, 100, {.version = "1"}), 100);
  EXPECT_EQ(Count(2, 100, {.version = "2"}), 100);
  EXPECT_EQ(Count(1, 100, {.version = "stable"}), 100);
}

TEST_F(ADirector, DividesTheLabelOfTheCanaryAsWell) {
  ASSERT_EQ(LoadVersions({1, 2}, {{"version_labels", "stable=1,old=1"}}), "OK");
  ASSERT_EQ(SetCanary(2, 20, "stable"), "OK");
  EXPECT_NEAR(Count(2, 1000, {.version = "stable"}), 200, 3);
  EXPECT_EQ(Count(1, 100, {.version = "old"}), 100);
}

TEST_F(ADirector, KeepsTheShareWhileOtherRulesChange) {
  ASSERT_EQ(LoadVersions({1, 2, 3}), "OK");
  ASSERT_EQ(SetCanary(2, 1), "OK");
  int at_canary = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(SetLabels({{"a", 1 + i % 3}}), "OK");
    at_canary += Count(2, 10, {});
  }
  EXPECT_NEAR(at_canary, 10, 3);
}

TEST_F(ADirector, KeepsClientsTogetherWhateverElseChanges) {
  constexpr int kKeys = 200;
  ASSERT_EQ(LoadVersions({1, 2, 3}), "OK");
  std::vector<bool> had_canary(kKeys, false);
  for (const double percent : {0.0, 5.0, 5.0, 40.0, 100.0}) {
    ASSERT_EQ(SetCanary(3, percent), "OK");
    ASSERT_EQ(SetLabels({{"a", percent > 5 ? 1 : 2}}), "OK");
    for (int i = 0; i < kKeys; ++i) {
      const bool has_canary = Request({.key = Key(i)}).version == 3;
      EXPECT_EQ(Request({.key = Key(i)}).version == 3, has_canary);
      EXPECT_TRUE(has_canary || !had_canary[static_cast<size_t>(i)]) << Key(i);
      had_canary[static_cast<size_t>(i)] = has_canary;
    }
  }
  EXPECT_THAT(had_canary, testing::Each(true));
}

TEST_F(ADirector, LeavesTheShareOfACanaryThatIsGoneOrFullToTheOtherVersion) {
  ASSERT_EQ(LoadVersions({1, 2}), "OK");
  ASSERT_EQ(SetCanary(2, 100), "OK");
  EXPECT_EQ(Request({}).version, 2);
  {
    std::vector<core::ModelHandle> full;
    for (uint64_t i = 0; i < kRequestsPerModel; ++i) {
      full.push_back(Pin("m", "2"));
      ASSERT_TRUE(full.back().CountAsRequest(kRequestsPerModel, 5));
    }
    ReplySink sink;
    core::RequestPtr request = Make({}, sink);
    ASSERT_TRUE(request->model.CountAsRequest(kRequestsPerModel, 5));
    Direct(*request);
    EXPECT_EQ(request->model->version(), 1);
    Submit(std::move(request));
    ASSERT_TRUE(sink.WaitForGone(1));
  }
  ASSERT_EQ(LoadVersions({1}), "OK");
  ASSERT_TRUE(WaitUntilGone("m:2"));
  EXPECT_EQ(Count(1, 20, {}), 20);
}

TEST_F(ADirector, CountsARequestWhereItGoes) {
  ASSERT_EQ(LoadVersions({1, 2}), "OK");
  ASSERT_EQ(SetCanary(2, 100), "OK");
  ReplySink sink;
  core::RequestPtr request = Make({}, sink);
  ASSERT_TRUE(request->model.CountAsRequest(kRequestsPerModel, 5));
  Direct(*request);
  EXPECT_EQ(Pin("m", "1")->request_count(), 0u);
  EXPECT_EQ(Pin("m", "1")->request_bytes(), 0u);
  EXPECT_EQ(Pin("m", "2")->request_count(), 1u);
  EXPECT_EQ(Pin("m", "2")->request_bytes(), 5u);
  Submit(std::move(request));
  ASSERT_TRUE(sink.WaitForGone(1));
  EXPECT_EQ(Pin("m", "2")->request_count(), 0u);
}

// --- Sequences ---

TEST_F(ADirector, KeepsASequenceWhereItBegan) {
  FakeModel model(PlainConfig("m"));
  model.config.scheduling_choice = config::SequenceBatching();
  model.config.parameters = {{"version_labels", "stable=1"}};
  ASSERT_EQ(Load(model.With(AllVersions()).With({{1, 1}, {2, 1}, {3, 1}})), "OK");
  answers_.SetSequence("m:1", 7, true);
  EXPECT_EQ(Request({.sequence = 7}).version, 1);
  ASSERT_EQ(SetCanary(2, 100), "OK");
  ASSERT_EQ(SetLabels({{"stable", 3}}), "OK");
  EXPECT_EQ(Request({.sequence = 7}).version, 1);
  EXPECT_EQ(Request({.version = "stable", .sequence = 7}).version, 1);
  // One that begins now follows the rules, and so does the id of one that has ended.
  EXPECT_EQ(Request({.sequence = 8}).version, 2);
  answers_.SetSequence("m:1", 7, false);
  EXPECT_EQ(Request({.sequence = 7}).version, 2);
  service::TrafficChange none;
  none.removes_canary = true;
  none.labels = {{"stable", std::nullopt}};
  answers_.SetSequence("m:2", 8, true);
  ASSERT_EQ(Change(none), "OK");
  EXPECT_EQ(Request({.sequence = 8}).version, 2);
  EXPECT_EQ(Request({.sequence = 9}).version, 3);
}

TEST_F(ADirector, KeepsASequenceWhereItBeganAtTheLimit) {
  FakeModel model(PlainConfig("m"));
  model.config.scheduling_choice = config::SequenceBatching();
  ASSERT_EQ(Load(model.With(AllVersions()).With({{1, 1}, {2, 1}})), "OK");
  answers_.SetSequence("m:1", 7, true);
  ASSERT_EQ(SetCanary(2, 100), "OK");
  std::vector<core::ModelHandle> full;
  for (uint64_t i = 0; i < kRequestsPerModel; ++i) {
    full.push_back(Pin("m", "1"));
    ASSERT_TRUE(full.back().CountAsRequest(kRequestsPerModel, 5));
  }
  ASSERT_EQ(SetLabels({{"stable", 2}}), "OK");
  ReplySink sink;
  core::RequestPtr request = Make({.version = "stable", .sequence = 7}, sink);
  ASSERT_EQ(request->model->version(), 2);
  ASSERT_TRUE(request->model.CountAsRequest(kRequestsPerModel, 5));
  Direct(*request);
  EXPECT_EQ(request->model->version(), 1);
  EXPECT_EQ(Pin("m", "1")->request_count(), kRequestsPerModel + 1);
  EXPECT_EQ(Pin("m", "2")->request_count(), 0u);
  Submit(std::move(request));
  ASSERT_TRUE(sink.WaitForGone(1));
}

// --- Changes while requests ask ---

TEST_F(ADirector, MovesLabelsInOneStepWhileRequestsAsk) {
  constexpr int kVersions = 8;
  std::vector<int64_t> versions;
  for (int i = 1; i <= kVersions; ++i) versions.push_back(i);
  ASSERT_EQ(LoadVersions(versions, {{"version_labels", "a=1,b=1"}}), "OK");
  std::atomic<bool> is_over{false};
  // Whoever asks for one label and then for the other never gets an older version second.
  const auto ask = [&](const std::string& first, const std::string& second) {
    int64_t before = 0;
    while (!is_over.load()) {
      const Reply one = Request({.version = first});
      const Reply two = Request({.version = second});
      EXPECT_EQ(one.error + two.error, "");
      EXPECT_LE(before, one.version);
      EXPECT_LE(one.version, two.version);
      before = two.version;
    }
  };
  std::thread forward(ask, "a", "b");
  std::thread backward(ask, "b", "a");
  for (int i = 2; i <= kVersions; ++i) {
    EXPECT_EQ(SetLabels({{"a", i}, {"b", i}}), "OK");
    EXPECT_EQ(Request({.version = "b"}).version, i);
  }
  is_over.store(true);
  forward.join();
  backward.join();
}

TEST_F(ADirector, ServesWhatHasFoundItsModelBeforeThatIsUnloaded) {
  ASSERT_EQ(LoadVersions({1, 2}, {{"canary_version", "2"}, {"canary_percent", "50"}}), "OK");
  ASSERT_EQ(SetCanary(2, 100), "OK");
  ReplySink sink;
  core::RequestPtr request = Make({}, sink);
  life_cycle_->Unload({{"", "m"}});
  Direct(*request);
  EXPECT_EQ(request->model->version(), 1);
  Submit(std::move(request));
  ASSERT_TRUE(sink.WaitForGone(1));
  EXPECT_EQ(sink.replies().at(0).error, "");
  EXPECT_THAT(Request({}).error, HasSubstr("has no available versions"));
  // The rules are those of the configuration again.
  ASSERT_TRUE(life_cycle_->WaitUntilGone({{"", "m"}}, InAMinute()));
  ASSERT_EQ(LoadVersions({1, 2}, {{"canary_version", "2"}, {"canary_percent", "50"}}), "OK");
  EXPECT_NEAR(Count(2, 100, {}), 50, 3);
}

// --- Everything at random ---

// The specification in docs/versions.md, in its simplest form.
class SimpleRules {
 public:
  std::set<int64_t> ready;
  std::map<std::string, int64_t> labels;
  std::string default_label;
  int64_t canary = 0;  // 0: none
  double percent = 0;
  std::string canary_label;

  // Returns the version without the canary's share; 0: there is none.
  int64_t Base(const std::string& label) const {
    const std::string& followed = label.empty() ? default_label : label;
    if (!followed.empty()) return IsReady(labels.at(followed)) ? labels.at(followed) : 0;
    int64_t highest = 0;
    for (const int64_t version : ready) {
      if (version != canary) highest = version;
    }
    return highest == 0 && IsReady(canary) ? canary : highest;
  }
  // Whether the canary gets a share of such requests.
  bool Divides(const std::string& label) const {
    return canary != 0 && percent > 0 && IsReady(canary) &&
           (label.empty() || label == canary_label);
  }
  bool IsReady(int64_t version) const { return ready.contains(version); }
};

class ADirectorAtRandom : public ADirector {
 protected:
  static constexpr int kKeys = 30;

  int Number(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  // A version that is ready.
  int64_t Version() {
    return *std::next(rules_.ready.begin(), Number(0, static_cast<int>(rules_.ready.size()) - 1));
  }
  std::string Label() { return Number(0, 1) == 0 ? "a" : "b"; }

  void ChangeCanary() {
    service::TrafficChange change;
    if (Number(0, 4) == 0) {
      change.removes_canary = true;
      rules_.canary = 0;
      rules_.canary_label.clear();
      rules_.percent = 0;
    } else {
      rules_.canary = Version();
      rules_.percent = Number(0, 4) * 25;
      rules_.canary_label = Number(0, 2) == 0 ? Label() : "";
      change.canary = service::CanaryChange{.version = rules_.canary,
                                            .percent = rules_.percent,
                                            .header = "x-user",
                                            .label = rules_.canary_label};
    }
    ASSERT_EQ(Change(change), "OK");
  }
  void ChangeLabels() {
    service::TrafficChange change;
    for (const std::string label : {"a", "b"}) {
      if (Number(0, 1) == 0) continue;
      rules_.labels[label] = Version();
      change.labels[label] = rules_.labels[label];
    }
    rules_.default_label = Number(0, 1) == 0 ? Label() : "";
    change.default_label = rules_.default_label;
    ASSERT_EQ(Change(change), "OK");
  }
  // Loads the model again, with other versions.
  void ChangeVersions() {
    const std::set<int64_t> before = std::exchange(rules_.ready, {});
    for (int64_t version = 1; version <= 4; ++version) {
      if (Number(0, 3) != 0) rules_.ready.insert(version);
    }
    if (rules_.ready.empty()) rules_.ready = {1};
    ASSERT_EQ(LoadVersions({rules_.ready.begin(), rules_.ready.end()}, kConfigured), "OK");
    ASSERT_TRUE(life_cycle_->WaitUntilGone({{"", "m"}}, InAMinute()));
  }

  // Sends requests without a key, of which the canary gets its share, and with keys, each of which
  // has one place among the shares for the whole test.
  void CheckRequests(const std::string& label) {
    const int64_t base = rules_.Base(label);
    const bool divides = rules_.Divides(label);
    if (base == 0) {
      EXPECT_EQ(Request({.version = label}).version, -1);
      return;
    }
    constexpr int kRequests = 40;
    const int at_canary = Count(rules_.canary, kRequests, {.version = label});
    if (base == rules_.canary) {
      EXPECT_EQ(at_canary, kRequests);
      return;
    }
    EXPECT_NEAR(at_canary, divides ? kRequests * rules_.percent / 100 : 0, divides ? 3 : 0);
    for (int i = 0; i < kKeys; ++i) CheckKey(i, label, base, divides);
  }
  void CheckKey(int i, const std::string& label, int64_t base, bool divides) {
    const int64_t version = Request({.version = label, .key = Key(i)}).version;
    if (!divides) {
      EXPECT_EQ(version, base);
      return;
    }
    auto& [least, most] = places_[i];
    if (version == rules_.canary) {
      most = std::min(most, rules_.percent);
    } else {
      EXPECT_EQ(version, base);
      least = std::max(least, rules_.percent);
    }
    EXPECT_LT(least, most) << Key(i) << " has left the canary although its share has not shrunk";
  }

  const std::map<std::string, std::string> kConfigured = {{"version_labels", "a=1,b=2"}};
  std::mt19937 random_{20240229};
  SimpleRules rules_;
  std::map<int, std::pair<double, double>> places_;  // of keys: at least, and below
};

TEST_F(ADirectorAtRandom, DoesWhatTheSpecificationSays) {
  rules_.ready = {1, 2, 3, 4};
  rules_.labels = {{"a", 1}, {"b", 2}};
  ASSERT_EQ(LoadVersions({1, 2, 3, 4}, kConfigured), "OK");
  for (int i = 0; i < kKeys; ++i) places_[i] = {0, 100.5};
  for (int step = 0; step < 200 && !HasFailure(); ++step) {
    const int kind = Number(0, 3);
    SCOPED_TRACE(testing::Message() << "step " << step << " of kind " << kind);
    if (kind <= 1) ChangeCanary();
    if (kind == 2) ChangeLabels();
    if (kind == 3) ChangeVersions();
    for (const std::string label : {"", "a", "b"}) CheckRequests(label);
    const int64_t number = Version();
    EXPECT_EQ(Request({.version = std::to_string(number), .key = Key(0)}).version, number);
  }
}

}  // namespace
}  // namespace nereid::engine
