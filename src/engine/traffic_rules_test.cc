// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic_rules.h"

#include <limits>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace nereid::engine {
namespace {

using service::TrafficChange;
using service::TrafficRules;

config::ModelConfig ConfigWith(std::map<std::string, std::string> parameters) {
  config::ModelConfig config;
  config.name = "m";
  config.parameters.insert(parameters.begin(), parameters.end());
  return config;
}

std::string ErrorOf(std::map<std::string, std::string> parameters) {
  return std::string(TrafficRulesOf(ConfigWith(std::move(parameters))).status().message());
}

TEST(TrafficRulesOf, NothingIsConfiguredByDefault) {
  EXPECT_EQ(*TrafficRulesOf(ConfigWith({})), TrafficRules());
}

TEST(TrafficRulesOf, ReadsAllParameters) {
  const TrafficRules rules = *TrafficRulesOf(ConfigWith({{"version_labels", "stable=3, next=4"},
                                                         {"default_version_label", "stable"},
                                                         {"canary_version", "4"},
                                                         {"canary_percent", "0.5"},
                                                         {"canary_header", "X-User"},
                                                         {"canary_label", "stable"},
                                                         {"shadow_model", "n"},
                                                         {"shadow_version", "7"},
                                                         {"shadow_percent", "10"},
                                                         {"shadow_tolerance", "0.01"},
                                                         {"shadow_in_flight", "3"}}));
  EXPECT_EQ(rules.labels.at("stable"), 3);
  EXPECT_EQ(rules.labels.at("next"), 4);
  EXPECT_EQ(rules.default_label, "stable");
  EXPECT_EQ(rules.canary, (service::Canary{4, 0.5, "x-user", "stable"}));
  EXPECT_EQ(rules.shadow, (service::Shadow{"n", 7, 10, 0.01, 3}));
}

TEST(TrafficRulesOf, NamesTheParameterThatIsWrong) {
  EXPECT_EQ(ErrorOf({{"version_labels", "stable"}}),
            "model 'm': parameter 'version_labels' is 'stable'; expected labels and numbers of "
            "versions, such as 'stable=3,next=4'");
  EXPECT_EQ(ErrorOf({{"version_labels", "a=1,a=2"}}),
            "model 'm': parameter 'version_labels' is 'a=1,a=2'; expected the label 'a' only once");
  EXPECT_EQ(ErrorOf({{"canary_version", "4"}, {"canary_percent", "5%"}}),
            "model 'm': parameter 'canary_percent' is '5%'; expected a number");
  EXPECT_EQ(ErrorOf({{"canary_version", "4"}, {"canary_percent", "101"}}),
            "model 'm': the percent of the canary is 101; expected a number from 0 to 100");
  EXPECT_EQ(ErrorOf({{"canary_version", "4"}, {"canary_percent", "nan"}}),
            "model 'm': the percent of the canary is nan; expected a number from 0 to 100");
  EXPECT_EQ(ErrorOf({{"canary_percent", "5"}}), "model 'm': the canary has no version");
  EXPECT_EQ(ErrorOf({{"shadow_percent", "5"}}),
            "model 'm': the shadow has neither a model nor a version");
  EXPECT_EQ(ErrorOf({{"shadow_version", "1"}, {"shadow_in_flight", "0"}}),
            "model 'm': in_flight of the shadow is 0; expected a number from 1 to 4096");
  EXPECT_EQ(ErrorOf({{"shadow_version", "1"}, {"shadow_tolerance", "-1"}}),
            "model 'm': the tolerance of the shadow is -1; expected a number from 0 on");
  EXPECT_EQ(ErrorOf({{"default_version_label", "x"}, {"version_labels", "a=1"}}),
            "model 'm': the default label is 'x', which is no label of the model; labels: 'a'");
  EXPECT_EQ(ErrorOf({{"canary_version", "1"}, {"canary_header", "a b"}}),
            "model 'm': the header of the canary is 'a b'; expected the name of a header, of "
            "letters, digits, '-', '_' and '.'");
}

TEST(IsVersionLabel, NoNumberIsALabel) {
  for (const char* const text : {"stable", "_", "a1", "v1.2-rc_3"})
    EXPECT_TRUE(IsVersionLabel(text));
  for (const char* const text : {"", "1", "1a", "-1", "+1", " a", "a b", "a/b", "a\n", "ä"}) {
    EXPECT_FALSE(IsVersionLabel(text)) << text;
  }
  EXPECT_TRUE(IsVersionLabel(std::string(64, 'a')));
  EXPECT_FALSE(IsVersionLabel(std::string(65, 'a')));
}

TEST(ChangedRules, LeavesWhatTheChangeDoesNotName) {
  TrafficRules rules;
  rules.labels = {{"a", 1}, {"b", 2}};
  rules.canary = service::Canary{.version = 2, .percent = 5, .header = "x-user", .label = ""};
  TrafficChange change;
  change.labels = {{"a", 3}, {"b", std::nullopt}};
  change.canary = service::CanaryChange{.version = {}, .percent = 10, .header = {}, .label = {}};
  const TrafficRules changed = *ChangedRules(rules, change);
  EXPECT_EQ(changed.labels, (decltype(rules.labels){{"a", 3}}));
  EXPECT_EQ(changed.canary, (service::Canary{2, 10, "x-user", ""}));
}

TEST(ChangedRules, ALabelInUseCannotBeRemoved) {
  TrafficRules rules;
  rules.labels = {{"a", 1}};
  rules.default_label = "a";
  TrafficChange change;
  change.labels = {{"a", std::nullopt}};
  EXPECT_EQ(ChangedRules(rules, change).status().message(),
            "the default label is 'a', which is no label of the model; labels: none");
  change.default_label = "";
  EXPECT_TRUE(ChangedRules(rules, change).ok());
}

TEST(ChangedRules, AnotherModelOfTheShadowNeedsItsOwnVersion) {
  TrafficRules rules;
  rules.shadow = service::Shadow{.model = "a", .version = 5};
  TrafficChange change;
  change.shadow = service::ShadowChange{
      .model = "b", .version = {}, .percent = {}, .tolerance = {}, .in_flight = {}};
  EXPECT_EQ(ChangedRules(rules, change)->shadow->version, std::nullopt);
}

}  // namespace
}  // namespace nereid::engine
