// SPDX-License-Identifier: Apache-2.0
#include "engine/mirrors.h"

#include <gtest/gtest.h>

#include <array>
#include <future>

#include <fmt/format.h>

#include "engine/testing/traffic_fixture.h"

namespace nereid::engine {
namespace {

using service::ShadowChange;

ShadowChange ToVersion(int64_t version, double percent = 100) {
  ShadowChange shadow;
  shadow.version = version;
  shadow.percent = percent;
  return shadow;
}

class AMirror : public TrafficFixture {
 protected:
  // Version 1 answers clients, and version 2 is the shadow.
  void SetUp() override {
    ASSERT_EQ(LoadVersions({1, 2}, {{"version_labels", "stable=1"},
                                    {"default_version_label", "stable"},
                                    {"shadow_version", "2"}}),
              "OK");
  }
  // Returns the counts as "equal different failed dropped", once no copy is on its way.
  std::string Ends() {
    EXPECT_TRUE(WaitForMirrors());
    const service::ShadowCounts counts = Counts();
    return fmt::format("{} {} {} {}", counts.equal, counts.different, counts.failed,
                       counts.dropped);
  }
};

TEST_F(AMirror, IsComparedWithinTheTolerance) {
  Request({});
  EXPECT_EQ(Ends(), "1 0 0 0");
  answers_.SetValue("m:2", 1.01f);
  Request({});
  EXPECT_EQ(Ends(), "1 1 0 0");
  ShadowChange generous = ToVersion(2);
  generous.tolerance = 0.02;
  ASSERT_EQ(SetShadow(generous), "OK");
  Request({});
  // The counts go on, because the shadow is the same.
  EXPECT_EQ(Ends(), "2 1 0 0");
}

TEST_F(AMirror, IsMadeOfRequestsThatNameNoVersionOrALabel) {
  Request({.version = "stable"});
  EXPECT_EQ(Ends(), "1 0 0 0");
  Request({.version = "1"});
  Request({.version = "2"});
  EXPECT_EQ(Ends(), "1 0 0 0");
}

TEST_F(AMirror, IsMadeOfTheShareOfRequestsThatWasAskedFor) {
  ASSERT_EQ(SetShadow(ToVersion(2, 25)), "OK");
  for (int i = 0; i < 400; ++i) {
    Request({});
    ASSERT_TRUE(WaitForMirrors());
  }
  EXPECT_NEAR(static_cast<double>(Counts().equal), 100, 3);
  EXPECT_EQ(Counts().dropped, 0u);
}

TEST_F(AMirror, IsNotMadeOfSequencesNorOfWhatTheShadowAnswersItself) {
  Request({.sequence = 7});
  ASSERT_EQ(SetLabels({{"stable", 2}}), "OK");
  Request({});
  EXPECT_EQ(Ends(), "0 0 0 0");
}

TEST_F(AMirror, ThatIsSlowKeepsItsPlacesAndDelaysNobody) {
  ShadowChange narrow = ToVersion(2);
  narrow.in_flight = 2;
  ASSERT_EQ(SetShadow(narrow), "OK");
  answers_.Hold("m:2");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Request({}).version, 1);
  ASSERT_TRUE(answers_.WaitForHeld("m:2", 2));
  EXPECT_EQ(Counts().dropped, 3u);
  answers_.LetGo("m:2");
  EXPECT_EQ(Ends(), "2 0 0 3");
  Request({});
  EXPECT_EQ(Ends(), "3 0 0 3");
}

TEST_F(AMirror, ThatFailsIsCountedAndNobodyNotices) {
  answers_.SetError("m:2", "broken");
  const Reply reply = Request({});
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.version, 1);
  EXPECT_EQ(Ends(), "0 0 1 0");
}

TEST_F(AMirror, OfAVersionThatIsGoneFails) {
  ASSERT_EQ(LoadVersions({1}, {{"version_labels", "stable=1"},
                               {"default_version_label", "stable"},
                               {"shadow_version", "2"}}),
            "OK");
  ASSERT_TRUE(WaitUntilGone("m:2"));
  EXPECT_EQ(Request({}).error, "");
  EXPECT_EQ(Ends(), "0 0 1 0");
}

TEST_F(AMirror, ThatItsShadowHasWhenThatIsUnloadedEnds) {
  answers_.Hold("m:2");
  EXPECT_EQ(Request({}).error, "");
  ASSERT_TRUE(answers_.WaitForHeld("m:2", 1));
  ASSERT_EQ(LoadVersions({1}, {{"version_labels", "stable=1"},
                               {"default_version_label", "stable"},
                               {"shadow_version", "2"}}),
            "OK");
  EXPECT_EQ(State({"", "m"}, 2), "UNLOADING");
  answers_.LetGo("m:2");
  EXPECT_EQ(Ends(), "1 0 0 0");
}

TEST_F(AMirror, IsNotSentIfTheRequestFailed) {
  answers_.SetError("m:1", "bad input");
  answers_.Inspect("m:2", [](const core::Request&) { ADD_FAILURE() << "a copy was sent"; });
  EXPECT_EQ(Request({}).error, "bad input");
  EXPECT_EQ(Ends(), "0 0 0 1");
}

TEST_F(AMirror, IsWhatTheClientSent) {
  std::promise<std::string> copy;
  answers_.Inspect("m:2", [&copy](const core::Request& request) {
    const core::RequestInput& input = request.inputs.at(0);
    std::array<float, 2> values{};
    ASSERT_EQ(input.byte_size, sizeof(values));
    ASSERT_EQ(input.chunk_count(), 1u);
    std::memcpy(values.data(), input.chunk(0).data, sizeof(values));
    const core::Parameter& number = request.parameters.at(0);
    const core::Parameter& text = request.parameters.at(1);
    copy.set_value(fmt::format(
        "{} {} {} {} {},{} {} {}={} {}={}", request.id, request.priority, request.timeout_us,
        input.name, values[0], values[1], request.outputs.at(0).name, number.name,
        std::get<int64_t>(number.value), text.name, std::get<std::string_view>(text.value)));
  });
  ReplySink sink;
  float later = 6;
  core::RequestPtr request = Make({}, sink);
  request->id = "my id";
  request->priority = 3;
  request->timeout_us = 9;
  request->inputs[0].Append(
      {.data = std::as_bytes(std::span(&later, 1)).data(), .size = sizeof(later), .where = {}});
  request->outputs.push_back({.name = "OUTPUT0"});
  request->parameters.push_back({.name = "n", .value = int64_t{4}});
  request->parameters.push_back({.name = "t", .value = std::string_view("x")});
  Direct(*request);
  later = 0;  // the client may reuse its memory once it has its answer
  Submit(std::move(request));
  ASSERT_TRUE(sink.WaitForGone(1));
  EXPECT_EQ(copy.get_future().get(), "my id 3 9 INPUT0 5,6 OUTPUT0 n=4 t=x");
}

TEST_F(AMirror, MayGoToTheVersionThatAnotherModelServes) {
  ASSERT_EQ(
      LoadVersions({1, 2}, {{"version_labels", "stable=1"}, {"default_version_label", "stable"}},
                   "other"),
      "OK");
  answers_.SetValue("other:2", 3);
  ShadowChange shadow;
  shadow.model = "other";
  ASSERT_EQ(SetShadow(shadow), "OK");
  Request({});
  EXPECT_EQ(Ends(), "1 0 0 0");
}

TEST_F(AMirror, OutlivesItsRulesAndItsModel) {
  answers_.Hold("m:2");
  Request({});
  ASSERT_TRUE(answers_.WaitForHeld("m:2", 1));
  const auto traffic = life_cycle_->Table().TrafficOf("m");
  life_cycle_->Unload({{"", "m"}});
  EXPECT_FALSE(director_->WaitUntilIdle(Passed()));
  answers_.LetGo("m:2");
  ASSERT_TRUE(WaitForMirrors());
  EXPECT_EQ(traffic->tally().Read().equal, 1u);
  EXPECT_EQ(traffic->tally().in_flight.load(), 0u);
}

TEST_F(AMirror, EndsWhenTheServerStopsMeanwhile) {
  constexpr size_t kRequests = 8;
  const auto traffic = life_cycle_->Table().TrafficOf("m");
  answers_.Hold("m:1");
  answers_.Hold("m:2");
  ReplySink sink;
  for (size_t i = 0; i < kRequests; ++i) ASSERT_TRUE(Send({}, sink));
  auto end = std::async(std::launch::async, [this] { return life_cycle_->UnloadAll(InAMinute()); });
  answers_.LetGo("m:1");
  answers_.LetGo("m:2");
  EXPECT_TRUE(end.get().empty());
  ASSERT_TRUE(WaitForMirrors());
  ASSERT_TRUE(sink.WaitForGone(kRequests));
  // A copy whose shadow was gone first has failed, and none is lost.
  const service::ShadowCounts counts = traffic->tally().Read();
  EXPECT_EQ(counts.equal + counts.failed, kRequests);
  EXPECT_EQ(traffic->tally().in_flight.load(), 0u);
}

// A request lets go of its model before its sink hears that it is gone. Who waits for the models
// and then for the mirrors must not miss one in between.
TEST_F(AMirror, IsOnItsWayUntilItsRequestIsGone) {
  core::ModelOptions options;
  options.name = "m";
  options.version = 1;
  options.config = std::make_shared<config::ModelConfig>();
  core::Model model(std::move(options));
  ASSERT_TRUE(model.TryPin());
  ReplySink sink;
  core::RequestPtr request = Make({}, sink);
  Direct(*request);
  request->model = core::ModelHandle(model);
  bool was_idle = true;
  model.Close([this, &was_idle] { was_idle = director_->WaitUntilIdle(Passed()); });
  core::CompleteWithError(std::move(request), base::InternalError("the server stops"));
  ASSERT_TRUE(sink.WaitForGone(1));
  EXPECT_FALSE(was_idle);
  EXPECT_EQ(Ends(), "0 0 0 1");
}

}  // namespace
}  // namespace nereid::engine
