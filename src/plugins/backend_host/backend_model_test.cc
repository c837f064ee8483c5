// SPDX-License-Identifier: Apache-2.0
// Tests the host with the backends of test_plugin/, used as the engine uses them.
#include "backend_host/backend_model.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend_host/handles.h"
#include "backend_host/testing/server.h"
#include "base/shared_library.h"
#include "config/complete.h"
#include "core/response.h"
#include "core/sequence_states.h"

namespace nereid::backend_host {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::string PluginPath(const std::string& backend) {
  return std::string(TEST_BACKEND_DIRECTORY) + "/" + backend + "/libtriton_" + backend + ".so";
}

// Returns the plug-in's events since the last call.
std::string Events(const std::string& backend) {
  auto library = base::SharedLibrary::Open(PluginPath(backend));
  NEREID_CHECK(library.ok());
  std::string text(4096, '\0');
  (*library)->Find<void(char*, size_t)>("TestEvents")(text.data(), text.size());
  text.resize(std::strlen(text.c_str()));
  return text;
}

// Collects what a client would receive.
class Client final : public core::ResponseSink {
 public:
  struct Received {
    std::string error;
    std::string output;  // of OUTPUT0
    std::vector<int64_t> shape;
    std::string says;
    bool is_final = false;
    bool is_null = false;
  };

  void Send(core::ResponsePtr response, bool is_final) override {
    Received received;
    received.is_final = is_final;
    received.is_null = response == nullptr;
    if (response != nullptr) {
      received.error = response->error().message();
      if (response->output_count() > 0) {
        const core::ResponseOutput& output = response->output(0);
        received.output.assign(reinterpret_cast<const char*>(output.data), output.byte_size);
        received.shape.assign(output.shape.dims().begin(), output.shape.dims().end());
      }
      for (const core::Parameter& parameter : response->parameters()) {
        received.says = std::get<std::string_view>(parameter.value);
      }
    }
    responses.push_back(std::move(received));
  }
  void OnRequestReleased(core::Request&) override { ++released; }
  void OnRequestGone() override { ++gone; }

  std::vector<Received> responses;
  int released = 0;
  int gone = 0;
};

// A scheduler that is never called.
class NoScheduler final : public core::Scheduler {
 public:
  void Enqueue(core::RequestPtr) override {}
  void OnCancelled(core::Request&) override {}
  bool Stop(base::TimePoint) override { return true; }
};

config::ModelConfig MakeConfig(const std::string& backend) {
  config::ModelConfig config;
  config.name = "model";
  config.backend = backend;
  config.max_batch_size = 4;
  config.input.push_back({.name = "INPUT0", .data_type = tensor::DataType::kFp32, .dims = {2}});
  config.output.push_back({.name = "OUTPUT0", .data_type = tensor::DataType::kFp32, .dims = {2}});
  return config::Normalize(std::move(config));
}

class BackendModelTest : public testing::Test {
 protected:
  BackendModelTest() { Restart({.backend_directory = TEST_BACKEND_DIRECTORY}); }
  ~BackendModelTest() override {
    instances_.clear();
    model_.reset();
    core_model_.reset();
    libraries_.reset();
    Events("plain");
    Events("promising");
    std::filesystem::remove_all(directory_);
  }

  void Restart(BackendLibrariesOptions options) {
    libraries_.reset();
    libraries_ = std::make_unique<BackendLibraries>(std::move(options), server_);
    Events("plain");
    Events("promising");
  }

  base::Status Load(config::ModelConfig config) {
    auto loaded = BackendModel::Load(
        {.name = "model", .version = 1, .model_dir = directory_, .config = std::move(config)},
        *libraries_);
    if (!loaded.ok()) return loaded.status();
    model_ = *std::move(loaded);
    return {};
  }

  // Loads a model and makes its instances, initialised on this thread.
  base::Status Start(config::ModelConfig config) {
    NEREID_RETURN_IF_ERROR(Load(std::move(config)));
    core::ModelOptions options;
    options.name = "model";
    options.version = 1;
    options.config = std::make_shared<const config::ModelConfig>(model_->config());
    options.max_batch_size = model_->config().max_batch_size;
    for (const auto& input : model_->config().input) {
      core::ModelTensor tensor;
      tensor.name = input.name;
      options.inputs.push_back(tensor);
    }
    for (const auto& output : model_->config().output) {
      core::ModelTensor tensor;
      tensor.name = output.name;
      tensor.dims = tensor::Shape(output.dims);
      tensor.model_dims = tensor::Shape(output.reshape.value_or(output.dims));
      tensor.has_reshape = output.reshape.has_value();
      options.outputs.push_back(tensor);
    }
    core_model_ = std::make_unique<core::Model>(std::move(options));
    core_model_->SetScheduler(std::make_unique<NoScheduler>());
    NEREID_RETURN_IF_ERROR(model_->CreateInstances(*core_model_));
    for (auto& made : model_->TakeInstances()) instances_.push_back(std::move(made.instance));
    for (auto& instance : instances_) {
      if (!instance->runs_on_any_thread()) NEREID_RETURN_IF_ERROR(instance->InitializeOnThread());
    }
    return {};
  }

  core::RequestPtr MakeRequest(std::string_view id) {
    core::RequestPtr request = core::Request::Create(client_);
    NEREID_CHECK(core_model_->TryPin());
    request->model = core::ModelHandle(*core_model_);
    // Deliberately not zero-terminated.
    const std::string text = std::string(id) + "!";
    request->id = request->arena().Copy(text).substr(0, id.size());
    core::RequestInput& input = request->AddInput("INPUT0", tensor::DataType::kFp32);
    input.shape = {1, 2};
    input.Append({.data = reinterpret_cast<const std::byte*>("abcd"), .size = 4});
    input.Append({.data = reinterpret_cast<const std::byte*>("efgh"), .size = 4});
    request->batch_size = 1;
    return request;
  }

  // Executes one batch of requests with these ids on the first instance.
  void Execute(std::initializer_list<std::string_view> ids) {
    std::vector<core::RequestPtr> batch;
    for (const std::string_view id : ids) batch.push_back(MakeRequest(id));
    instances_.at(0)->Execute(batch);
  }
  const Client::Received& OnlyResponse() {
    NEREID_CHECK(client_.responses.size() == 1);
    return client_.responses[0];
  }

  const std::string directory_ = [] {
    std::string pattern = std::filesystem::temp_directory_path() / "nereid_backend_XXXXXX";
    NEREID_CHECK(mkdtemp(pattern.data()) != nullptr);
    return pattern;
  }();
  Client client_;
  TRITONSERVER_Server server_;
  std::unique_ptr<BackendLibraries> libraries_;
  std::unique_ptr<BackendModel> model_;
  std::unique_ptr<core::Model> core_model_;
  std::vector<std::unique_ptr<core::Instance>> instances_;
};

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

TEST_F(BackendModelTest, InitializesOnTheExecutingThreadWithoutThePromise) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  EXPECT_FALSE(instances_[0]->runs_on_any_thread());
  std::thread([this] { Execute({"echo"}); }).join();
  EXPECT_EQ(OnlyResponse().error, "executed on another thread than initialized");
}

TEST_F(BackendModelTest, RunsOnAnyThreadWithThePromise) {
  ASSERT_TRUE(Start(MakeConfig("promising")).ok());
  EXPECT_TRUE(instances_[0]->runs_on_any_thread());
  std::thread([this] { Execute({"echo"}); }).join();
  EXPECT_EQ(OnlyResponse().error, "");
}

TEST_F(BackendModelTest, MakesInstancesAsTheGroupsSay) {
  config::ModelConfig config = MakeConfig("promising");
  config.instance_group.push_back(
      {.name = "a", .kind = config::InstanceGroup::Kind::kCpu, .count = 2});
  config.instance_group.push_back(
      {.name = "b", .kind = config::InstanceGroup::Kind::kModel, .count = 1, .passive = true});
  ASSERT_TRUE(Start(std::move(config)).ok());
  EXPECT_EQ(instances_.size(), 2u);
  EXPECT_EQ(instances_[1]->name(), "a_1");
  // This backend permits that instances start concurrently, hence in any order.
  const std::string events = Events("promising");
  EXPECT_TRUE(events.starts_with("Initialize\nModelInitialize model 1\nInstanceInitialize "));
  for (const char* line : {"\nInstanceInitialize a_0 CPU 0\n", "\nInstanceInitialize a_1 CPU 0\n",
                           "\nInstanceInitialize b_0 MODEL 0 passive\n"}) {
    EXPECT_NE(events.find(line), std::string::npos) << line;
  }
}

TEST_F(BackendModelTest, InitializesInstancesAtTheSameTimeWhereTheBackendAllowsIt) {
  config::ModelConfig config = MakeConfig("promising");
  config.parameters["meet"] = "meet_two";  // fails unless two are initialised at once
  config.instance_group.push_back(
      {.name = "a", .kind = config::InstanceGroup::Kind::kCpu, .count = 2});
  EXPECT_TRUE(Start(config).ok());
  EXPECT_TRUE(model_->loads_instances_in_parallel());
}

TEST_F(BackendModelTest, TheEnvironmentDecidesAboutInitializingAtTheSameTime) {
  ASSERT_TRUE(Load(MakeConfig("promising")).ok());
  setenv("TRITON_PARALLEL_INSTANCE_LOADING", "0", 1);
  EXPECT_FALSE(model_->loads_instances_in_parallel());
  setenv("TRITON_PARALLEL_INSTANCE_LOADING", "1", 1);
  ASSERT_TRUE(Load(MakeConfig("plain")).ok());
  EXPECT_TRUE(model_->loads_instances_in_parallel());
  setenv("TRITON_PARALLEL_INSTANCE_LOADING", "", 1);
  EXPECT_FALSE(model_->loads_instances_in_parallel());
  unsetenv("TRITON_PARALLEL_INSTANCE_LOADING");
}

TEST_F(BackendModelTest, RefusesInstancesOnGpus) {
  config::ModelConfig config = MakeConfig("plain");
  config.instance_group.push_back(
      {.name = "g", .kind = config::InstanceGroup::Kind::kGpu, .count = 1, .gpus = {0}});
  const base::Status status = Start(std::move(config));
  EXPECT_EQ(status.code(), base::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("GPU"));
}

TEST_F(BackendModelTest, TakesOverTheConfigurationThatTheBackendCompletes) {
  config::ModelConfig config = MakeConfig("plain");
  config.input.clear();
  config.output.clear();
  config.max_batch_size = 0;
  config.parameters["complete"] = "yes";
  const base::Status status = Load(std::move(config));
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(model_->config().max_batch_size, 4);
  EXPECT_EQ(model_->config().input.at(0).name, "INPUT0");
  EXPECT_NE(model_->config().dynamic_batching(), nullptr);
  EXPECT_EQ(model_->explanations().at("batching"), R"({"reason":"made up"})");
}

TEST_F(BackendModelTest, ReportsToTheBackendThatZeroWasWritten) {
  config::ModelConfig config = MakeConfig("plain");
  config.max_batch_size = 0;
  config.gives_max_batch_size = true;
  config.parameters["complete"] = "yes";
  const base::Status status = Load(std::move(config));
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(model_->explanations().at("batching"), R"({"reason":"given"})");
}

TEST_F(BackendModelTest, TheMemoryOfInstancesCountsAsLongAsTheyExist) {
  config::ModelConfig config = MakeConfig("plain");
  config.parameters["memory"] = "report_memory";
  config.instance_group.push_back(
      {.name = "a", .kind = config::InstanceGroup::Kind::kCpu, .count = 2});
  ASSERT_TRUE(Start(std::move(config)).ok());
  const auto reported = [&] {
    std::string text;
    for (const core::MemoryUse& use : core_model_->statistics().Read().memory) {
      text += std::string(memory::MemoryTypeName(use.where.type)) + " " +
              std::to_string(use.where.id) + ": " + std::to_string(use.bytes) + "; ";
    }
    return text;
  };
  // The last report of an instance replaces the one before.
  EXPECT_EQ(reported(), "CPU 1: 1000; GPU 1: 14; ");
  instances_.pop_back();
  EXPECT_EQ(reported(), "CPU 1: 1000; GPU 1: 7; ");
}

TEST_F(BackendModelTest, RefusesAConfigurationAfterInitialization) {
  config::ModelConfig config = MakeConfig("plain");
  config.parameters["set_late"] = "yes";
  ASSERT_TRUE(Start(std::move(config)).ok());
  EXPECT_THAT(Events("plain"), HasSubstr("can only be set while it is being initialized"));
}

TEST_F(BackendModelTest, FailsWithTheErrorOfModelInitialize) {
  config::ModelConfig config = MakeConfig("plain");
  config.parameters["fail"] = "fail_model";
  const base::Status status = Load(std::move(config));
  EXPECT_EQ(status.ToString(), "Unavailable: no such model");
  EXPECT_EQ(Events("plain"), "Initialize\nModelInitialize model 1\n");
}

TEST_F(BackendModelTest, FailsWithTheErrorOfInstanceInitialize) {
  config::ModelConfig config = MakeConfig("promising");
  config.parameters["fail"] = "fail_instance";
  EXPECT_EQ(Start(std::move(config)).ToString(), "Unavailable: no such instance");
}

TEST_F(BackendModelTest, AsksInstancesWhetherTheyAreReady) {
  config::ModelConfig config = MakeConfig("plain");
  ASSERT_TRUE(Start(config).ok());
  EXPECT_TRUE(model_->CheckReady().ok());
  instances_.clear();
  core_model_.reset();
  config.parameters["not_ready"] = "yes";
  ASSERT_TRUE(Start(std::move(config)).ok());
  EXPECT_EQ(model_->CheckReady().ToString(), "Unavailable: still warming up");
}

TEST_F(BackendModelTest, NeedsABackend) {
  EXPECT_EQ(Load(MakeConfig("")).message(), "must specify 'backend' for 'model'");
  EXPECT_EQ(
      Load(MakeConfig("nonesuch")).message(),
      "unable to find backend library for backend 'nonesuch', try specifying runtime on the "
      "model configuration. Searched for 'libtriton_nonesuch.so' in the model's folder, in its "
      "version folder and in '" TEST_BACKEND_DIRECTORY
      "/nonesuch'; the backend directory '" TEST_BACKEND_DIRECTORY
      "' has 'empty', 'plain' and 'promising'");
  EXPECT_THAT(std::string(Load(MakeConfig("plian")).message()),
              EndsWith("; did you mean 'plain'?"));
  EXPECT_EQ(Load(MakeConfig("../plain")).code(), base::StatusCode::kInvalidArgument);
}

TEST_F(BackendModelTest, SaysThatThereIsNoBackendDirectory) {
  const std::string nowhere = directory_ + "/nowhere";
  Restart({.backend_directory = nowhere});
  EXPECT_THAT(std::string(Load(MakeConfig("plain")).message()),
              EndsWith("the backend directory '" + nowhere +
                       "' cannot be read: No such file or directory"));
  std::filesystem::create_directories(nowhere + "/plain");
  EXPECT_THAT(std::string(Load(MakeConfig("plain")).message()),
              EndsWith("the backend directory '" + nowhere + "' has no backends"));
}

TEST_F(BackendModelTest, NeedsAnExecuteFunction) {
  EXPECT_THAT(std::string(Load(MakeConfig("empty")).message()),
              HasSubstr("unable to find required entrypoint 'TRITONBACKEND_ModelInstanceExecute'"));
}

TEST_F(BackendModelTest, SaysWhereItSearchedForARuntime) {
  config::ModelConfig config = MakeConfig("plain");
  config.runtime = "libother.so";
  EXPECT_EQ(Load(std::move(config)).message(),
            "unable to find backend library 'libother.so' for model 'model', searched: '" +
                directory_ + "/1' '" + directory_ + "' '" TEST_BACKEND_DIRECTORY "/plain' ");
}

// A folder of backends that contains a script, and the plain backend under the name of the Python
// backend.
class ScriptBackendTest : public BackendModelTest {
 protected:
  ScriptBackendTest() {
    namespace fs = std::filesystem;
    fs::create_directories(backends_ + "/python");
    fs::create_directories(backends_ + "/scripted");
    fs::copy_file(PluginPath("plain"), backends_ + "/python/libtriton_python.so");
    std::ofstream(backends_ + "/scripted/model.py") << "pass";
    Restart({.backend_directory = backends_});
  }

  const std::string backends_ = directory_ + "/backends";
};

TEST_F(ScriptBackendTest, RunsABackendThatIsAScript) {
  std::ofstream(backends_ + "/scripted/pb_exec_env_model.py.tar.gz") << "";
  ASSERT_TRUE(Load(MakeConfig("scripted")).ok());
  EXPECT_EQ(model_->library().name(), "scripted");
  EXPECT_EQ(model_->library().directory(), backends_ + "/scripted");
  EXPECT_EQ(model_->library().path(), backends_ + "/python/libtriton_python.so");
  EXPECT_EQ(model_->config().runtime, "model.py");
  EXPECT_EQ(model_->config().parameters.at("EXECUTION_ENV_PATH"),
            backends_ + "/scripted/pb_exec_env_model.py.tar.gz");
  // The Python backend itself is another backend, from the same library.
  const BackendLibrary* const scripted = &model_->library();
  ASSERT_TRUE(Load(MakeConfig("python")).ok());
  EXPECT_NE(&model_->library(), scripted);
  EXPECT_EQ(model_->config().runtime, "");
}

TEST_F(ScriptBackendTest, SaysWhichScriptIsMissing) {
  config::ModelConfig config = MakeConfig("nonesuch");
  config.runtime = "model.py";
  EXPECT_EQ(Load(std::move(config)).message(),
            "unable to find Python backend based backend library 'model.py' for model 'model', "
            "searched: '" +
                backends_ + "/nonesuch/model.py'");
  std::filesystem::remove_all(backends_ + "/python");
  EXPECT_EQ(Load(MakeConfig("scripted")).message(),
            "unable to find backend library 'libtriton_python.so' for model 'model', searched: '" +
                directory_ + "/1' '" + directory_ + "' '" + backends_ + "/scripted' '" + backends_ +
                "/python' ");
}

TEST_F(BackendModelTest, RefusesARuntimeOutsideItsFolder) {
  config::ModelConfig config = MakeConfig("plain");
  config.runtime = "../empty/libtriton_empty.so";
  EXPECT_EQ(Load(std::move(config)).message(),
            "backend library name '../empty/libtriton_empty.so' escapes backend directory "
            "'" TEST_BACKEND_DIRECTORY
            "/plain', for model 'model', check model config runtime "
            "field");
}

TEST_F(BackendModelTest, PrefersTheLibraryOfTheVersionFolder) {
  std::filesystem::create_directories(directory_ + "/1");
  std::ofstream(directory_ + "/1/libtriton_plain.so") << "not a library";
  EXPECT_THAT(std::string(Load(MakeConfig("plain")).message()),
              HasSubstr("unable to load shared library: " + directory_ + "/1/libtriton_plain.so"));
  // A failure is not remembered.
  std::filesystem::copy_file(PluginPath("plain"), directory_ + "/1/libtriton_plain.so",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(Load(MakeConfig("plain")).ok());
  EXPECT_EQ(model_->library().directory(), directory_ + "/1");
}

TEST_F(BackendModelTest, GivesTheBackendItsSettings) {
  Restart({.backend_directory = TEST_BACKEND_DIRECTORY,
           .backend_settings = {{"", {{"note-config", "true"}, {"a", "1"}}},
                                {"plain", {{"a", "2"}, {"default-max-batch-size", "9"}}},
                                {"other", {{"b", "3"}}}}});
  ASSERT_TRUE(Load(MakeConfig("plain")).ok());
  EXPECT_THAT(Events("plain"),
              HasSubstr("{\"cmdline\":{\"a\":\"2\",\"auto-complete-config\":\"true\","
                        "\"backend-directory\":\"" TEST_BACKEND_DIRECTORY "\","
                        "\"default-max-batch-size\":\"9\","
                        "\"min-compute-capability\":\"0.000000\",\"note-config\":\"true\"}}\n"));
}

TEST_F(BackendModelTest, InitializesABackendOnceForManyThreads) {
  std::array<std::thread, 8> threads;
  std::array<BackendLibrary*, 8> found{};
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i] = std::thread([this, &found, i] {
      auto library = libraries_->Acquire(
          {.model_name = "m", .model_dir = directory_, .version = 1, .backend = "plain"});
      found[i] = library.ok() ? *library : nullptr;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (BackendLibrary* library : found) EXPECT_EQ(library, found[0]);
  EXPECT_NE(found[0], nullptr);
  EXPECT_EQ(Events("plain"), "Initialize\n");
}

TEST_F(BackendModelTest, TriesAgainAfterABackendFailed) {
  Restart({.backend_directory = TEST_BACKEND_DIRECTORY,
           .backend_settings = {{"plain", {{"fail", "true"}}}}});
  EXPECT_EQ(Load(MakeConfig("plain")).ToString(), "Unavailable: told to fail");
  EXPECT_EQ(Load(MakeConfig("plain")).ToString(), "Unavailable: told to fail");
  EXPECT_EQ(Events("plain"), "Initialize\nInitialize\n");
}

}  // namespace
}  // namespace nereid::backend_host
