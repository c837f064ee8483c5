// SPDX-License-Identifier: Apache-2.0
#include "http/traffic_change.h"

#include <string>

#include <gtest/gtest.h>

namespace nereid::http {
namespace {

std::string ChangeError(std::string_view body) {
  return std::string(ReadTrafficChange(body).status().message());
}

TEST(ReadTrafficChange, ReadsWhatIsThere) {
  const service::TrafficChange change = *ReadTrafficChange(
      R"({"labels":{"stable":3,"old":null},"default_label":"stable",)"
      R"("canary":{"version":4,"percent":0.5,"header":"x-user","label":"stable"},)"
      R"("shadow":{"model":"n","version":2,"percent":10,"tolerance":0.01,"in_flight":3}})");
  EXPECT_EQ(change.labels.at("stable"), 3);
  EXPECT_EQ(change.labels.at("old"), std::nullopt);
  EXPECT_EQ(change.default_label, "stable");
  EXPECT_EQ(change.canary->version, 4);
  EXPECT_EQ(change.canary->percent, 0.5);
  EXPECT_EQ(change.canary->header, "x-user");
  EXPECT_EQ(change.canary->label, "stable");
  EXPECT_EQ(change.shadow->model, "n");
  EXPECT_EQ(change.shadow->version, 2);
  EXPECT_EQ(change.shadow->percent, 10);
  EXPECT_EQ(change.shadow->tolerance, 0.01);
  EXPECT_EQ(change.shadow->in_flight, 3);
}

TEST(ReadTrafficChange, NullRemoves) {
  const service::TrafficChange change =
      *ReadTrafficChange(R"({"canary":null,"shadow":null,"default_label":null})");
  EXPECT_TRUE(change.removes_canary);
  EXPECT_TRUE(change.removes_shadow);
  EXPECT_EQ(change.default_label, "");
  EXPECT_FALSE(change.canary);
  EXPECT_FALSE(ReadTrafficChange("{}")->removes_canary);
}

TEST(ReadTrafficChange, SaysWhichMemberIsWrong) {
  EXPECT_EQ(ChangeError("[]"), "the traffic is no JSON object");
  EXPECT_EQ(ChangeError(R"({"canery":{}})"),
            "'canery' is no member of the traffic; expected labels, default_label, canary or "
            "shadow");
  EXPECT_EQ(ChangeError(R"({"canary":{"share":5}})"),
            "'share' is no member of the canary; expected version, percent, header or label");
  EXPECT_EQ(ChangeError(R"({"canary":{"percent":"5"}})"),
            "'canary.percent' of the traffic: expected a number");
  EXPECT_EQ(ChangeError(R"({"canary":{"version":1.5}})"),
            "'canary.version' of the traffic: expected a whole number");
  EXPECT_EQ(ChangeError(R"({"canary":7})"), "'canary' of the traffic: expected an object or null");
  EXPECT_EQ(ChangeError(R"({"labels":[1]})"),
            "'labels' of the traffic: expected an object of labels and versions");
  EXPECT_EQ(ChangeError(R"({"labels":{"a":"1"}})"),
            "'labels.a' of the traffic: expected a whole number");
  EXPECT_EQ(ChangeError(R"({"labels":{"a":1,"a":2}})"),
            "'labels' of the traffic: expected each label once; 'a' is there twice");
  EXPECT_EQ(ChangeError(R"({"shadow":{"in_flight":99999999999999999999}})"),
            "'shadow.in_flight' of the traffic: expected a whole number");
  EXPECT_EQ(ReadTrafficChange("{").status().code(), base::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadTrafficChange("").status().code(), base::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace nereid::http
