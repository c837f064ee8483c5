// SPDX-License-Identifier: Apache-2.0
// Tests a server in this process: its options, its models and its metadata.
#include "embedding.h"

#include <string>
#include <thread>

namespace embedding {
namespace {

void UseExplicitControl(TRITONSERVER_ServerOptions* options) {
  EXPECT_OK(
      TRITONSERVER_ServerOptionsSetModelControlMode(options, TRITONSERVER_MODEL_CONTROL_EXPLICIT));
}

std::string Index(const Server& server, uint32_t flags = 0) {
  TRITONSERVER_Message* message = nullptr;
  EXPECT_OK(TRITONSERVER_ServerModelIndex(server.get(), flags, &message));
  return Text(message);
}

bool IsReady(const Server& server, const char* model, int64_t version = -1) {
  bool ready = false;
  EXPECT_OK(TRITONSERVER_ServerModelIsReady(server.get(), model, version, &ready));
  return ready;
}

TEST(Server, SaysWhatItIs) {
  Repository repository;
  Server server(repository.AddIdentity("model").path(), [](TRITONSERVER_ServerOptions* options) {
    EXPECT_OK(TRITONSERVER_ServerOptionsSetServerId(options, "mine"));
  });
  bool yes = false;
  EXPECT_OK(TRITONSERVER_ServerIsLive(server.get(), &yes));
  EXPECT_TRUE(yes);
  EXPECT_OK(TRITONSERVER_ServerIsReady(server.get(), &yes));
  EXPECT_TRUE(yes);
  TRITONSERVER_Message* message = nullptr;
  EXPECT_OK(TRITONSERVER_ServerMetadata(server.get(), &message));
  EXPECT_EQ(Text(message).rfind(R"({"name":"mine","version":"2.73.0","extensions":[)", 0), 0u);
  EXPECT_OK(TRITONSERVER_ServerModelMetadata(server.get(), "model", 1, &message));
  EXPECT_EQ(Text(message), R"({"name":"model","versions":["1"],"platform":"identity",)"
                           R"("inputs":[{"name":"INPUT0","datatype":"FP32","shape":[-1,-1]}],)"
                           R"("outputs":[{"name":"OUTPUT0","datatype":"FP32","shape":[-1,-1]}]})");
  EXPECT_OK(TRITONSERVER_ServerModelConfig(server.get(), "model", -1, 1, &message));
  EXPECT_NE(Text(message).find(R"("backend":"identity")"), std::string::npos);
  EXPECT_OK(TRITONSERVER_ServerModelStatistics(server.get(), "model", -1, &message));
  EXPECT_NE(Text(message).find(R"("inference_count":0)"), std::string::npos);
  uint32_t flags = 0;
  EXPECT_OK(TRITONSERVER_ServerModelBatchProperties(server.get(), "model", -1, &flags, nullptr));
  EXPECT_EQ(flags, static_cast<uint32_t>(TRITONSERVER_BATCH_FIRST_DIM));
  EXPECT_EQ(Index(server), R"([{"name":"model","version":"1","state":"READY"}])");
}

TEST(Server, DoesNotKnowOtherModels) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  TRITONSERVER_InferenceRequest* request = nullptr;
  EXPECT_EQ(Take(TRITONSERVER_InferenceRequestNew(&request, server.get(), "other", -1)),
            "Not found: Request for unknown model: 'other' is not found");
  EXPECT_EQ(request, nullptr);
}

TEST(Server, WithoutARepositoryThereIsNone) {
  Server server("/nowhere/at/all");
  EXPECT_EQ(server.get(), nullptr);
  EXPECT_NE(server.error(), "");
}

TEST(Server, AModelThatDoesNotLoadEndsTheStart) {
  Repository repository;
  repository.AddIdentity("good").Add("bad", R"(backend: "no_such_backend")");
  const Server strict(repository.path());
  EXPECT_EQ(strict.get(), nullptr);
  EXPECT_NE(strict.error(), "");
  Server patient(repository.path(), [](TRITONSERVER_ServerOptions* options) {
    EXPECT_OK(TRITONSERVER_ServerOptionsSetExitOnError(options, false));
  });
  EXPECT_EQ(patient.error(), "");
  EXPECT_TRUE(IsReady(patient, "good"));
  bool ready = true;
  EXPECT_OK(TRITONSERVER_ServerIsReady(patient.get(), &ready));
  EXPECT_FALSE(ready);
}

TEST(Server, LoadsAndUnloadsWhatItIsTold) {
  Repository repository;
  Server server(repository.AddIdentity("model").path(), UseExplicitControl);
  EXPECT_EQ(Index(server), R"([{"name":"model"}])");
  OK(TRITONSERVER_ServerLoadModel(server.get(), "model"));
  EXPECT_TRUE(IsReady(server, "model"));
  OK(TRITONSERVER_ServerUnloadModel(server.get(), "model"));
  EXPECT_EQ(Index(server, TRITONSERVER_INDEX_FLAG_READY), "[]");
  EXPECT_EQ(Take(TRITONSERVER_ServerLoadModel(server.get(), "other")),
            "Internal: failed to load 'other', failed to poll from model repository: "
            "model not found in any model repository");
  EXPECT_EQ(Take(TRITONSERVER_ServerPollModelRepository(server.get())),
            "Unavailable: polling is disabled");
}

TEST(Server, ALoadMayBringItsConfiguration) {
  Repository repository;
  Server server(repository.AddIdentity("model").path(), UseExplicitControl);
  TRITONSERVER_Parameter* parameter =
      TRITONSERVER_ParameterNew("config", TRITONSERVER_PARAMETER_STRING,
                                R"({"backend":"identity","max_batch_size":3,
          "input":[{"name":"INPUT0","data_type":"TYPE_FP32","dims":[-1]}],
          "output":[{"name":"OUTPUT0","data_type":"TYPE_FP32","dims":[-1]}]})");
  const TRITONSERVER_Parameter* parameters[] = {parameter};
  OK(TRITONSERVER_ServerLoadModelWithParameters(server.get(), "model", parameters, 1));
  TRITONSERVER_ParameterDelete(parameter);
  TRITONSERVER_Message* message = nullptr;
  EXPECT_OK(TRITONSERVER_ServerModelConfig(server.get(), "model", -1, 1, &message));
  EXPECT_NE(Text(message).find(R"("max_batch_size":3)"), std::string::npos);
  const int64_t number = 1;
  parameter = TRITONSERVER_ParameterNew("what", TRITONSERVER_PARAMETER_INT, &number);
  parameters[0] = parameter;
  EXPECT_EQ(Take(TRITONSERVER_ServerLoadModelWithParameters(server.get(), "model", parameters, 1)),
            "Invalid argument: Unrecognized load parameter 'what' with type 'INT'");
  TRITONSERVER_ParameterDelete(parameter);
}

TEST(Server, RepositoriesComeAndGoAndMayNameTheirModelsOtherwise) {
  Repository first, second;
  first.AddIdentity("model");
  second.AddIdentity("model").AddIdentity("plain");
  Server server(first.path(), UseExplicitControl);
  TRITONSERVER_Parameter* const name =
      TRITONSERVER_ParameterNew("model", TRITONSERVER_PARAMETER_STRING, "renamed");
  const TRITONSERVER_Parameter* names[] = {name};
  OK(TRITONSERVER_ServerRegisterModelRepository(server.get(), second.path().c_str(), names, 1));
  EXPECT_EQ(Take(TRITONSERVER_ServerRegisterModelRepository(server.get(), second.path().c_str(),
                                                            nullptr, 0)),
            "Already exists: model repository '" + second.path() + "' has already been registered");
  EXPECT_EQ(Index(server), R"([{"name":"model"},{"name":"plain"},{"name":"renamed"}])");
  OK(TRITONSERVER_ServerLoadModel(server.get(), "model"));
  OK(TRITONSERVER_ServerLoadModel(server.get(), "renamed"));
  EXPECT_TRUE(IsReady(server, "renamed"));
  TRITONSERVER_Message* message = nullptr;
  OK(TRITONSERVER_ServerModelConfig(server.get(), "renamed", -1, 1, &message));
  EXPECT_NE(Text(message).find(R"("name":"renamed")"), std::string::npos);
  OK(TRITONSERVER_ServerUnregisterModelRepository(server.get(), second.path().c_str()));
  EXPECT_EQ(Take(TRITONSERVER_ServerUnregisterModelRepository(server.get(), second.path().c_str())),
            "Invalid argument: failed to unregister '" + second.path() + "', repository not found");
  EXPECT_TRUE(IsReady(server, "renamed"));  // until it is unloaded
  EXPECT_EQ(Take(TRITONSERVER_ServerRegisterModelRepository(server.get(), "/nowhere", nullptr, 0)),
            "Invalid argument: failed to register '/nowhere', repository not found");
  TRITONSERVER_ParameterDelete(name);
}

TEST(Server, PollingFollowsTheRepository) {
  Repository repository;
  Server server(repository.AddIdentity("first").path(), [](TRITONSERVER_ServerOptions* options) {
    EXPECT_OK(
        TRITONSERVER_ServerOptionsSetModelControlMode(options, TRITONSERVER_MODEL_CONTROL_POLL));
  });
  repository.AddIdentity("second");
  OK(TRITONSERVER_ServerPollModelRepository(server.get()));
  EXPECT_TRUE(IsReady(server, "second"));
  EXPECT_EQ(
      Take(TRITONSERVER_ServerLoadModel(server.get(), "first")),
      "Unavailable: explicit model load / unload is not allowed if polling is enabled; it needs "
      "the model control mode 'explicit'");
}

TEST(Server, AStoppedServerSaysSo) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  OK(TRITONSERVER_ServerStop(server.get()));
  bool live = true;
  EXPECT_EQ(Take(TRITONSERVER_ServerIsLive(server.get(), &live)), "Unavailable: Server exiting");
  EXPECT_FALSE(live);
}

TEST(Server, AStopGivesUpALoadInProgress) {
  Repository repository;
  repository.AddIdentity("long", R"(
      max_batch_size: 8
      parameters { key: "execute_delay_ms" value: { string_value: "50" } }
      model_warmup { name: "w" batch_size: 1 count: 100000
        inputs { key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } }
    )");
  Server server(repository.path(), UseExplicitControl);
  std::thread loader([&] {
    EXPECT_NE(Take(TRITONSERVER_ServerLoadModel(server.get(), "long")).find("given up"),
              std::string::npos);
  });
  while (Index(server).find("LOADING") == std::string::npos) std::this_thread::yield();
  OK(TRITONSERVER_ServerStop(server.get()));
  loader.join();
}

TEST(Server, ShowsItsMetrics) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  TRITONSERVER_Metrics* metrics = nullptr;
  OK(TRITONSERVER_ServerMetrics(server.get(), &metrics));
  const char* base = nullptr;
  size_t size = 0;
  OK(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &base, &size));
  EXPECT_NE(std::string(base, size).find("nv_inference_request_success{model=\"model\""),
            std::string::npos);
  OK(TRITONSERVER_MetricsDelete(metrics));
}

TEST(Server, RefusesOptionsThatMakeNoSense) {
  TRITONSERVER_ServerOptions* options = nullptr;
  OK(TRITONSERVER_ServerOptionsNew(&options));
  EXPECT_EQ(Take(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
                options, TRITONSERVER_INSTANCEGROUPKIND_GPU, 0, 1.5)),
            "Invalid argument: expects limit fraction to be in range [0.0, 1.0], got 1.500000");
  EXPECT_EQ(Take(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
                options, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, 0.5)),
            "Invalid argument: given device kind is not supported, got: CPU");
  EXPECT_EQ(Take(TRITONSERVER_ServerOptionsSetHostPolicy(options, "policy", "colour", "red")),
            "Unsupported: Unsupported host policy setting 'colour' is specified, supported "
            "settings are 'numa-node', 'cpu-cores'");
  EXPECT_EQ(Take(TRITONSERVER_ServerOptionsSetModelControlMode(
                options, static_cast<TRITONSERVER_ModelControlMode>(3))),
            "Invalid argument: unknown control mode '3'");
  OK(TRITONSERVER_ServerOptionsDelete(options));
}

}  // namespace
}  // namespace embedding
