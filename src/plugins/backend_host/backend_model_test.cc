// SPDX-License-Identifier: Apache-2.0
// How requests are executed by the backends of test_plugin/, used as the engine uses them.
#include "backend_host/backend_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend_host/handles.h"
#include "backend_host/testing/backend_model_fixture.h"
#include "core/sequence_states.h"

namespace nereid::backend_host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(BackendModelTest, RespondsToARequestAndReleasesIt) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"echo"});
  EXPECT_EQ(OnlyResponse().error, "");
  EXPECT_EQ(OnlyResponse().output, "abcdefgh");
  EXPECT_THAT(OnlyResponse().shape, ElementsAre(1, 2));
  EXPECT_TRUE(OnlyResponse().is_final);
  EXPECT_EQ(client_.released, 1);
  EXPECT_EQ(client_.gone, 1);
  EXPECT_EQ(core_model_->pin_count(), 0u);
}

TEST_F(BackendModelTest, RunsTheWholeLifeInOrder) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"echo", "echo"});
  instances_.clear();
  core_model_.reset();
  model_.reset();
  libraries_.reset();
  EXPECT_EQ(Events("plain"),
            "Initialize\nModelInitialize model 1\nInstanceInitialize model_0 CPU 0\n"
            "InstanceInitialize model_1 CPU 0\nInstanceFinalize\nInstanceFinalize\n"
            "ModelFinalize\nFinalize\n");
}

TEST_F(BackendModelTest, TellsTheBackendWhichServerItBelongsTo) {
  ASSERT_TRUE(Load(MakeConfig("plain")).ok());
  TRITONSERVER_Server* server = nullptr;
  EXPECT_EQ(TRITONBACKEND_ModelServer(ToHandle(model_.get()), &server), nullptr);
  EXPECT_EQ(server, &server_);
}

TEST_F(BackendModelTest, CountsWhatTheBackendReports) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"echo", "error", "echo"});
  const core::StatisticsSnapshot statistics = core_model_->statistics().Read();
  EXPECT_EQ(statistics.inference_count, 2u);
  EXPECT_EQ(statistics.success.count, 2u);
  EXPECT_EQ(statistics.fail.count, 1u);
  EXPECT_EQ(statistics.execution_count, 1u);
  EXPECT_EQ(statistics.batches.at(3).compute_infer.ns, 10u);
}

TEST_F(BackendModelTest, SendsTheErrorToEveryRequestOfARefusedBatch) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"echo", "refuse"});
  ASSERT_EQ(client_.responses.size(), 2u);
  for (const Client::Received& received : client_.responses) {
    EXPECT_EQ(received.error, "refused");
    EXPECT_TRUE(received.is_final);
  }
  EXPECT_EQ(client_.gone, 2);
  EXPECT_EQ(core_model_->statistics().Read().failures[2], 2u);
}

TEST_F(BackendModelTest, CountsNoFailureOfTheServersOwnRequests) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  std::vector<core::RequestPtr> batch;
  batch.push_back(MakeRequest("refuse"));
  batch[0]->is_counted = false;  // a warm-up
  batch.push_back(MakeRequest("refuse"));
  batch[1]->is_padding = true;
  batch.push_back(MakeRequest("refuse"));
  instances_[0]->Execute(batch);
  EXPECT_EQ(client_.responses.size(), 3u);
  EXPECT_EQ(core_model_->statistics().Read().failures[2], 1u);
}

TEST_F(BackendModelTest, TurnsAnExceptionIntoAnError) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"throw"});
  EXPECT_EQ(OnlyResponse().error, "exception from plug-in: thrown");
  EXPECT_EQ(client_.gone, 1);
}

TEST_F(BackendModelTest, PassesOnTheErrorOfAResponse) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"error"});
  EXPECT_EQ(OnlyResponse().error, "as you wished");
}

TEST_F(BackendModelTest, DropsASecondFinalResponse) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Events("plain");
  Execute({"twice"});
  EXPECT_EQ(client_.responses.size(), 1u);
  EXPECT_EQ(Events("plain"),
            "[request id: twice] the final response of the request has been sent already\n");
  EXPECT_EQ(client_.gone, 1);
}

TEST_F(BackendModelTest, SendsManyResponsesAfterTheRelease) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Events("plain");
  Execute({"many"});
  ASSERT_EQ(client_.responses.size(), 4u);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(client_.responses[i].is_final);
  EXPECT_TRUE(client_.responses[3].is_null);
  EXPECT_TRUE(client_.responses[3].is_final);
  EXPECT_EQ(client_.released, 1);
  EXPECT_EQ(client_.gone, 1);
  EXPECT_EQ(Events("plain"), "");
}

TEST_F(BackendModelTest, AReleasedRequestCanBeReadUntilTheEndOfTheExecution) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Events("plain");
  std::vector<core::RequestPtr> batch;
  batch.push_back(MakeRequest("late"));
  batch[0]->correlation_id = std::string_view("sequence");
  batch[0]->parameters.push_back({.name = "p", .value = int64_t{1}});
  batch.push_back(MakeRequest("echo"));
  instances_[0]->Execute(batch);
  ASSERT_EQ(client_.responses.size(), 2u);
  EXPECT_EQ(client_.responses[1].output, "abcdefgh");
  EXPECT_EQ(client_.released, 2);
  EXPECT_EQ(client_.gone, 2);
  EXPECT_EQ(core_model_->statistics().Read().success.count, 2u);
  const std::string released = "the request has been released already\n";
  EXPECT_EQ(Events("plain"),
            "[request id: late] correlation ID in request is not an unsigned int\n" + released +
                released + released + released +
                "unable to add state 'STATE'. State configuration is missing for model 'model'.\n" +
                released + released);
}

TEST_F(BackendModelTest, AReleasedRequestMayGetAResponseUntilTheEndOfTheExecution) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Events("plain");
  Execute({"late_response", "late_factory"});
  ASSERT_EQ(client_.responses.size(), 2u);
  for (const Client::Received& received : client_.responses) EXPECT_EQ(received.output.size(), 8u);
  EXPECT_EQ(client_.gone, 2);
  EXPECT_EQ(Events("plain"), "");
}

TEST_F(BackendModelTest, AnErrorOfExecuteFailsOnlyRequestsThatWereNotReleased) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"late_refusal", "echo"});
  ASSERT_EQ(client_.responses.size(), 1u);
  EXPECT_EQ(OnlyResponse().error, "refused too late");
  EXPECT_EQ(client_.released, 2);
  EXPECT_EQ(client_.gone, 2);
}

TEST_F(BackendModelTest, CountsEachResponseByItsPosition) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"many", "many"});
  const auto responses = core_model_->statistics().Read().responses;
  ASSERT_EQ(responses.size(), 5u);
  EXPECT_EQ(responses.at(0).success.count, 2u);
  EXPECT_EQ(responses.at(2).success.ns, 40u);
  EXPECT_EQ(responses.at(2).compute_infer.ns, 10u);
  EXPECT_EQ(responses.at(2).compute_output.ns, 30u);
  EXPECT_EQ(responses.at(3).cancel.count, 2u);
  EXPECT_EQ(responses.at(3).compute_infer.count, 0u);
  EXPECT_EQ(responses.at(4).empty_response.count, 2u);
  EXPECT_EQ(responses.at(4).compute_output.count, 0u);
}

TEST_F(BackendModelTest, KeepsAStateFromRequestToRequest) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  config::SequenceBatching batching;
  batching.state.push_back({.input_name = "STATE",
                            .output_name = "STATE",
                            .data_type = tensor::DataType::kInt32,
                            .dims = {1}});
  const auto plan = core::StatePlan::Compile(batching, 4, {});
  ASSERT_TRUE(plan.ok());
  core::SequenceStates states(*plan);
  for (const std::string_view wish : {"count", "count", "count_in_vain", "count"}) {
    core::RequestPtr request = MakeRequest(wish);
    states.AttachInputs(*request);
    instances_[0]->Execute(std::span(&request, 1));
    EXPECT_EQ(client_.responses.back().error, "");
  }
  std::vector<std::string> said;
  for (const Client::Received& received : client_.responses) said.push_back(received.says);
  EXPECT_THAT(said, ElementsAre("1", "2", "3", "3"));
}

TEST_F(BackendModelTest, RefusesAStateWhereTheModelKeepsNone) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"count"});
  EXPECT_EQ(OnlyResponse().error,
            "unable to add state 'STATE'. State configuration is missing for model 'model'.");
}

TEST_F(BackendModelTest, NotifiesTheSinkOfARequestWithoutResponse) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"silent"});
  EXPECT_TRUE(client_.responses.empty());
  EXPECT_EQ(client_.released, 1);
  EXPECT_EQ(client_.gone, 1);
}

TEST_F(BackendModelTest, RefusesToReschedule) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"reschedule"});
  EXPECT_THAT(OnlyResponse().error, HasSubstr("TRITONSERVER_REQUEST_RELEASE_RESCHEDULE"));
  EXPECT_EQ(client_.gone, 1);
}

// S-31
TEST_F(BackendModelTest, EndsARequestOfTheServersOwnThatIsGivenBack) {
  config::ModelConfig config = MakeConfig("plain");
  config.scheduling_choice = config::SequenceBatching{.iterative_sequence = true};
  ASSERT_TRUE(Start(std::move(config)).ok());
  Events("plain");
  std::vector<core::RequestPtr> batch;
  batch.push_back(MakeRequest("give_back"));
  batch[0]->runs_once = true;
  instances_[0]->Execute(batch);
  EXPECT_EQ(Events("plain"), "given back\n");
  EXPECT_TRUE(client_.responses.empty());
  EXPECT_EQ(client_.gone, 1);
}

TEST_F(BackendModelTest, RefusesToTakeBackARequestOfTheServersOwn) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Events("plain");
  std::vector<core::RequestPtr> batch;
  batch.push_back(MakeRequest("give_back"));
  batch[0]->runs_once = true;
  instances_[0]->Execute(batch);
  EXPECT_THAT(Events("plain"), HasSubstr("TRITONSERVER_REQUEST_RELEASE_RESCHEDULE"));
  EXPECT_EQ(client_.gone, 1);
}

TEST_F(BackendModelTest, RefusesAnOutputThatTheModelLacks) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"unknown_output"});
  EXPECT_EQ(OnlyResponse().error, "unexpected inference output 'OUTPUT9' for model 'model'");
}

TEST_F(BackendModelTest, GivesAnOutputOfNoBytes) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"no_bytes"});
  EXPECT_EQ(OnlyResponse().error, "");
  EXPECT_EQ(OnlyResponse().output, "");
  EXPECT_THAT(OnlyResponse().shape, ElementsAre(1, 0));
}

TEST_F(BackendModelTest, ClearsOutputsOfABackendThatDoesNotPromiseToWriteThem) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  // Leaves data behind in the memory that the second response will get.
  Execute({"echo"});
  client_.responses.clear();
  Execute({"partial"});
  EXPECT_EQ(OnlyResponse().output, "x" + std::string(63, '\0'));
}

TEST_F(BackendModelTest, RefusesASecondBufferForAnOutput) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"two_buffers"});
  EXPECT_THAT(OnlyResponse().error, HasSubstr("OUTPUT0"));
}

TEST_F(BackendModelTest, RefusesIndicesOutOfBounds) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"bad_index"});
  EXPECT_EQ(OnlyResponse().error,
            "[request id: bad_index] out of bounds index 99: request has 1 inputs");
}

TEST_F(BackendModelTest, PredictsThePlacementOfAnOutput) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  Execute({"properties"});
  EXPECT_EQ(OnlyResponse().error, "");
  EXPECT_EQ(OnlyResponse().says, "CPU 0, 8 bytes");
}

TEST_F(BackendModelTest, DescribesARequestInCStrings) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  core::RequestPtr request = MakeRequest("describe");
  const std::string_view texts = "seqkeyvaluenumberflagratio";
  request->correlation_id = texts.substr(0, 3);
  request->parameters.push_back({.name = texts.substr(3, 3), .value = texts.substr(6, 5)});
  request->parameters.push_back({.name = texts.substr(11, 6), .value = int64_t{-7}});
  request->parameters.push_back({.name = texts.substr(17, 4), .value = true});
  request->parameters.push_back({.name = texts.substr(21, 5), .value = 0.5});
  instances_[0]->Execute(std::span(&request, 1));
  EXPECT_EQ(OnlyResponse().error, "");
  EXPECT_EQ(OnlyResponse().says,
            "id=describe input=INPUT0 outputs=1 output=OUTPUT0 correlation=seq key=value "
            "number=-7 flag=true ratio=0.500000 bytes=4");
}

TEST_F(BackendModelTest, ShowsClientsTheReshapedOutput) {
  config::ModelConfig config = MakeConfig("plain");
  config.output[0].dims = {2, 1};
  config.output[0].reshape = {2};
  ASSERT_TRUE(Start(std::move(config)).ok());
  Execute({"echo"});
  EXPECT_THAT(OnlyResponse().shape, ElementsAre(1, 2, 1));
}

}  // namespace
}  // namespace nereid::backend_host
