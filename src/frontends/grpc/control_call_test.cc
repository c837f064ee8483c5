// SPDX-License-Identifier: Apache-2.0
// Every call without tensors, from the bytes of its request to those of its reply.
#include "grpc/control_call.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "grpc_service.pb.h"
#include "health.pb.h"
#include "service/testing/fake_service.h"

namespace nereid::grpc {
namespace {

using base::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ControlMethods : public testing::Test {
 protected:
  static const ControlRoute& Route(const std::string& method) {
    const std::string prefix = method.starts_with("/") ? "" : "/inference.GRPCInferenceService/";
    const ControlRoute* const route = FindControlRoute(prefix + method);
    EXPECT_NE(route, nullptr) << method;
    return *route;
  }

  // Returns the reply to a request; the test fails if there is an error instead.
  template <typename Reply, typename Request>
  Reply Call(const std::string& method, const Request& request) {
    const auto bytes = Route(method).method(service_, request.SerializeAsString());
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    Reply reply;
    EXPECT_TRUE(bytes.ok() && reply.ParseFromString(*bytes));
    return reply;
  }

  // Returns the error of a request that must fail.
  template <typename Request>
  base::Status Error(const std::string& method, const Request& request) {
    return Route(method).method(service_, request.SerializeAsString()).status();
  }

  service::FakeService service_{service::MakeModel({tensor::DataType::kFp32})};
};

TEST_F(ControlMethods, ServeEveryMethodOfTheProtocolWithoutTensors) {
  const auto* const protocol = inference::ModelInferRequest::descriptor()->file()->service(0);
  ASSERT_GT(protocol->method_count(), 10);
  for (int i = 0; i < protocol->method_count(); ++i) {
    const std::string& name = protocol->method(i)->name();
    const bool carries_tensors = name == "ModelInfer" || name == "ModelStreamInfer";
    const ControlRoute* const route = FindControlRoute("/" + protocol->full_name() + "/" + name);
    EXPECT_EQ(route == nullptr, carries_tensors) << name;
  }
  EXPECT_EQ(FindControlRoute("/inference.GRPCInferenceService/Nothing"), nullptr);
  EXPECT_EQ(FindControlRoute(""), nullptr);
}

// Names of regions of shared memory are the only other names in requests.
TEST_F(ControlMethods, KnowWhichFieldNamesTheModel) {
  const auto* const protocol = inference::ModelInferRequest::descriptor()->file()->service(0);
  for (int i = 0; i < protocol->method_count(); ++i) {
    const auto* const method = protocol->method(i);
    const ControlRoute* const route =
        FindControlRoute("/" + protocol->full_name() + "/" + method->name());
    if (route == nullptr) continue;
    const auto* field = method->input_type()->FindFieldByName("model_name");
    if (field == nullptr && method->name().find("SharedMemory") == std::string::npos) {
      field = method->input_type()->FindFieldByName("name");
    }
    const int number = field == nullptr ? 0 : field->number();
    EXPECT_EQ(static_cast<int>(route->model_field), number) << method->name();
  }
}

TEST(NamedModel, IsTheLastOneAsForTheParser) {
  inference::RepositoryModelLoadRequest request;
  request.set_repository_name("r");
  request.set_model_name("first");
  (*request.mutable_parameters())["config"].set_string_param("{}");
  const std::string bytes = request.SerializeAsString();
  EXPECT_EQ(NamedModel(ModelField::kSecond, bytes), "first");
  EXPECT_EQ(NamedModel(ModelField::kSecond, bytes + "\x12\x04last"), "last");
  EXPECT_EQ(NamedModel(ModelField::kNone, bytes), "");
  EXPECT_EQ(NamedModel(ModelField::kSecond, ""), "");
  EXPECT_EQ(NamedModel(ModelField::kSecond, "\x12\xff"), "");
}

TEST_F(ControlMethods, RefuseBytesThatAreNoMessage) {
  const auto* const protocol = inference::ModelInferRequest::descriptor()->file()->service(0);
  for (int i = 0; i < protocol->method_count(); ++i) {
    const ControlRoute* const route =
        FindControlRoute("/" + protocol->full_name() + "/" + protocol->method(i)->name());
    if (route == nullptr) continue;
    const base::Status status = route->method(service_, "\xff\xff").status();
    EXPECT_EQ(status.code(), StatusCode::kInternal) << route->path;
    EXPECT_EQ(status.message(), "Unable to parse request") << route->path;
  }
}

TEST_F(ControlMethods, ThatReadDisksOrAskBackendsSayThatTheyMayBlock) {
  EXPECT_EQ(Route("ServerLive").may_block, MayBlock::kNo);
  EXPECT_EQ(Route("ServerReady").may_block, MayBlock::kAsReadiness);
  EXPECT_EQ(Route("/grpc.health.v1.Health/Check").may_block, MayBlock::kAsReadiness);
  for (const char* const method :
       {"RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"}) {
    EXPECT_EQ(Route(method).may_block, MayBlock::kYes) << method;
    EXPECT_EQ(Route(method).category, common::Category::kModelRepository) << method;
  }
}

TEST_F(ControlMethods, TellReadinessFromLife) {
  using Health = ::grpc::health::v1::HealthCheckResponse;
  const ::grpc::health::v1::HealthCheckRequest check;
  const std::string health = "/grpc.health.v1.Health/Check";
  EXPECT_TRUE(
      Call<inference::ServerReadyResponse>("ServerReady", inference::ServerReadyRequest()).ready());
  EXPECT_EQ(Call<Health>(health, check).status(), Health::SERVING);
  service_.is_ready = false;
  EXPECT_FALSE(
      Call<inference::ServerReadyResponse>("ServerReady", inference::ServerReadyRequest()).ready());
  EXPECT_EQ(Call<Health>(health, check).status(), Health::NOT_SERVING);
  EXPECT_TRUE(
      Call<inference::ServerLiveResponse>("ServerLive", inference::ServerLiveRequest()).live());
}

TEST_F(ControlMethods, SayNoOfAModelThatIsNotThere) {
  inference::ModelReadyRequest request;
  request.set_name("m");
  EXPECT_TRUE(Call<inference::ModelReadyResponse>("ModelReady", request).ready());
  request.set_name("nothing");
  EXPECT_FALSE(Call<inference::ModelReadyResponse>("ModelReady", request).ready());
}

TEST_F(ControlMethods, DescribeTheServerAndItsModels) {
  const auto server =
      Call<inference::ServerMetadataResponse>("ServerMetadata", inference::ServerMetadataRequest());
  EXPECT_EQ(server.name(), "triton");
  EXPECT_THAT(server.extensions(), ElementsAre("classification", "sequence"));

  inference::ModelMetadataRequest request;
  request.set_name("m");
  const auto model = Call<inference::ModelMetadataResponse>("ModelMetadata", request);
  EXPECT_EQ(model.platform(), "p");
  EXPECT_THAT(model.versions(), ElementsAre("1", "3"));
  ASSERT_EQ(model.inputs_size(), 1);
  EXPECT_EQ(model.inputs(0).name(), "IN0");
  EXPECT_EQ(model.inputs(0).datatype(), "FP32");
  EXPECT_THAT(model.inputs(0).shape(), ElementsAre(-1, 16));

  request.set_name("nothing");
  const base::Status unknown = Error("ModelMetadata", request);
  EXPECT_EQ(unknown.code(), StatusCode::kNotFound);
  EXPECT_EQ(unknown.message(), "Request for unknown model: 'nothing' is not found");
}

TEST_F(ControlMethods, SendTheConfigurationAsItsOwnMessage) {
  inference::ModelConfigRequest request;
  request.set_name("m");
  EXPECT_EQ(Call<inference::ModelConfigResponse>("ModelConfig", request).config().name(), "m");
  request.set_name("nothing");
  EXPECT_EQ(Error("ModelConfig", request).code(), StatusCode::kNotFound);
}

TEST_F(ControlMethods, CountWhatModelsDid) {
  inference::ModelStatisticsRequest request;
  request.set_name("m");
  request.set_version("3");
  const auto reply = Call<inference::ModelStatisticsResponse>("ModelStatistics", request);
  ASSERT_EQ(reply.model_stats_size(), 1);
  const inference::ModelStatistics& model = reply.model_stats(0);
  EXPECT_EQ(model.version(), "3");
  EXPECT_EQ(model.last_inference(), 7u);
  EXPECT_EQ(model.inference_count(), 3u);
  EXPECT_EQ(model.execution_count(), 2u);
  EXPECT_EQ(model.inference_stats().success().count(), 2u);
  EXPECT_EQ(model.inference_stats().success().ns(), 90u);
  EXPECT_EQ(model.inference_stats().fail().count(), 0u);
  ASSERT_EQ(model.batch_stats_size(), 1);
  EXPECT_EQ(model.batch_stats(0).batch_size(), 2u);
  EXPECT_EQ(model.batch_stats(0).compute_infer().ns(), 40u);
  ASSERT_EQ(model.response_stats().count("0"), 1u);
  EXPECT_EQ(model.response_stats().at("0").success().ns(), 15u);
  request.set_name("nothing");
  EXPECT_EQ(Error("ModelStatistics", request).code(), StatusCode::kInvalidArgument);
}

TEST_F(ControlMethods, ListWhatLiesInTheRepositories) {
  inference::RepositoryIndexRequest request;
  const auto all = Call<inference::RepositoryIndexResponse>("RepositoryIndex", request);
  ASSERT_EQ(all.models_size(), 3);
  EXPECT_EQ(all.models(1).name(), "bad");
  EXPECT_EQ(all.models(1).state(), "UNAVAILABLE");
  EXPECT_EQ(all.models(1).reason(), "broken");
  EXPECT_EQ(all.models(2).state(), "");
  request.set_ready(true);
  const auto ready = Call<inference::RepositoryIndexResponse>("RepositoryIndex", request);
  ASSERT_EQ(ready.models_size(), 1);
  EXPECT_EQ(ready.models(0).name(), "m");
  request.set_repository_name("r");
  EXPECT_EQ(Error("RepositoryIndex", request).code(), StatusCode::kUnsupported);
}

TEST_F(ControlMethods, HandTheContentsOfALoadRequestOver) {
  inference::RepositoryModelLoadRequest request;
  request.set_model_name("m");
  (*request.mutable_parameters())["config"].set_string_param("{}");
  (*request.mutable_parameters())["file:1/a"].set_bytes_param(std::string("x\0y", 3));
  Call<inference::RepositoryModelLoadResponse>("RepositoryModelLoad", request);
  EXPECT_THAT(service_.operations,
              ElementsAre("load m config={} file:1/a=" + std::string("x\0y", 3)));
  request.set_model_name("other");
  EXPECT_EQ(Error("RepositoryModelLoad", request).message(), "failed to load 'other'");
}

TEST_F(ControlMethods, RefuseLoadParametersOfAnotherType) {
  const auto refusal = [&](const std::string& name, const inference::ModelRepositoryParameter& is) {
    inference::RepositoryModelLoadRequest request;
    request.set_model_name("m");
    (*request.mutable_parameters())[name] = is;
    const base::Status status = Error("RepositoryModelLoad", request);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    return std::string(status.message());
  };
  inference::ModelRepositoryParameter number;
  number.set_int64_param(1);
  EXPECT_EQ(refusal("config", number),
            "invalid value type for load parameter 'config', expected string_param.");
  EXPECT_EQ(refusal("file:a", number),
            "invalid value type for load parameter 'file:a', expected bytes_param.");
  EXPECT_EQ(refusal("other", number), "unrecognized load parameter 'other'.");
  EXPECT_THAT(service_.operations, IsEmpty());
}

TEST_F(ControlMethods, UnloadAModelAloneOrWithItsParts) {
  inference::RepositoryModelUnloadRequest request;
  request.set_model_name("m");
  Call<inference::RepositoryModelUnloadResponse>("RepositoryModelUnload", request);
  (*request.mutable_parameters())["unload_dependents"].set_bool_param(true);
  Call<inference::RepositoryModelUnloadResponse>("RepositoryModelUnload", request);
  EXPECT_THAT(service_.operations, ElementsAre("unload m", "unload m dependents"));
  (*request.mutable_parameters())["unload_dependents"].set_string_param("yes");
  EXPECT_THAT(Error("RepositoryModelUnload", request).message(), HasSubstr("expected bool_param"));
}

// A named shared memory object of two pages, removed with this object.
class SharedMemory {
 public:
  SharedMemory() : name_("/nereid_grpc_test_" + std::to_string(::getpid())) {
    const int file = ::shm_open(name_.c_str(), O_CREAT | O_RDWR, 0600);
    EXPECT_EQ(::ftruncate(file, 2 * kPage), 0);
    ::close(file);
  }
  ~SharedMemory() { ::shm_unlink(name_.c_str()); }
  const std::string& name() const { return name_; }

  // A region begins at a page boundary.
  static constexpr int kPage = 4096;

 private:
  const std::string name_;
};

TEST_F(ControlMethods, RegisterSharedMemoryAndTellOfIt) {
  const SharedMemory memory;
  inference::SystemSharedMemoryRegisterRequest request;
  request.set_name("region");
  request.set_key(memory.name());
  request.set_offset(SharedMemory::kPage);
  request.set_byte_size(32);
  Call<inference::SystemSharedMemoryRegisterResponse>("SystemSharedMemoryRegister", request);

  inference::SystemSharedMemoryStatusRequest question;
  const auto status =
      Call<inference::SystemSharedMemoryStatusResponse>("SystemSharedMemoryStatus", question);
  ASSERT_EQ(status.regions().count("region"), 1u);
  EXPECT_EQ(status.regions().at("region").key(), memory.name());
  EXPECT_EQ(status.regions().at("region").offset(), uint64_t{SharedMemory::kPage});
  EXPECT_EQ(status.regions().at("region").byte_size(), 32u);

  inference::SystemSharedMemoryUnregisterRequest unregister;
  unregister.set_name("region");
  Call<inference::SystemSharedMemoryUnregisterResponse>("SystemSharedMemoryUnregister", unregister);
  EXPECT_EQ(Call<inference::SystemSharedMemoryStatusResponse>("SystemSharedMemoryStatus", question)
                .regions_size(),
            0);
  question.set_name("region");
  EXPECT_FALSE(Error("SystemSharedMemoryStatus", question).ok());
}

TEST_F(ControlMethods, RefuseSharedMemoryThatIsNotThere) {
  inference::SystemSharedMemoryRegisterRequest request;
  request.set_name("region");
  request.set_key("/nereid_grpc_test_nothing");
  request.set_byte_size(32);
  EXPECT_FALSE(Error("SystemSharedMemoryRegister", request).ok());
  inference::CudaSharedMemoryRegisterRequest cuda;
  cuda.set_name("region");
  cuda.set_raw_handle("short");
  EXPECT_FALSE(Error("CudaSharedMemoryRegister", cuda).ok());
  EXPECT_EQ(Call<inference::CudaSharedMemoryStatusResponse>(
                "CudaSharedMemoryStatus", inference::CudaSharedMemoryStatusRequest())
                .regions_size(),
            0);
  Call<inference::CudaSharedMemoryUnregisterResponse>(
      "CudaSharedMemoryUnregister", inference::CudaSharedMemoryUnregisterRequest());
}

TEST_F(ControlMethods, ChangeTheLogAndSayWhatItIsThen) {
  const base::LogOptions before = base::CurrentLogOptions();
  inference::LogSettingsRequest request;
  auto& settings = *request.mutable_settings();
  settings["log_verbose_level"].set_uint32_param(3);
  settings["log_info"].set_bool_param(false);
  settings["log_format"].set_string_param("ISO8601");
  const auto reply = Call<inference::LogSettingsResponse>("LogSettings", request);
  EXPECT_EQ(reply.settings().at("log_verbose_level").uint32_param(), 3u);
  EXPECT_FALSE(reply.settings().at("log_info").bool_param());
  EXPECT_EQ(reply.settings().at("log_warning").bool_param(), before.warning);
  EXPECT_EQ(reply.settings().at("log_format").string_param(), "ISO8601");
  settings["log_verbose_level"].set_uint32_param(static_cast<uint32_t>(before.verbose_level));
  settings["log_info"].set_bool_param(before.info);
  settings["log_format"].set_string_param(std::string(base::LogFormatName(before.format)));
  Call<inference::LogSettingsResponse>("LogSettings", request);
}

TEST_F(ControlMethods, RefuseLogSettingsAsAWhole) {
  const int before = base::CurrentLogOptions().verbose_level;
  const auto refusal = [&](const std::string& name, const auto& set) {
    inference::LogSettingsRequest request;
    (*request.mutable_settings())["log_verbose_level"].set_uint32_param(9);
    set((*request.mutable_settings())[name]);
    return std::string(Error("LogSettings", request).message());
  };
  using Value = inference::LogSettingsRequest::SettingValue;
  const auto text = [](Value& value) { value.set_string_param("x"); };
  const auto truth = [](Value& value) { value.set_bool_param(true); };
  EXPECT_EQ(refusal("log_error", text), "expect boolean for 'log_error'");
  EXPECT_EQ(refusal("log_format", truth), "expect string for 'log_format'");
  EXPECT_EQ(refusal("log_format", text), "invalid argument for log_format, got: x");
  EXPECT_EQ(refusal("log_verbose_level", truth), "expect int32 for 'log_verbose_level'");
  EXPECT_THAT(refusal("log_file", text), HasSubstr("can not be updated"));
  EXPECT_EQ(base::CurrentLogOptions().verbose_level, before);
}

class TraceMethods : public ControlMethods {
 protected:
  TraceMethods() { service_.traces = &tracing_; }

  // Makes a request that gives one setting these values.
  static inference::TraceSettingRequest Setting(const std::string& name,
                                                std::initializer_list<const char*> values) {
    inference::TraceSettingRequest request;
    auto& setting = (*request.mutable_settings())[name];
    for (const char* const value : values) setting.add_value(value);
    return request;
  }

  observe::Tracing tracing_{{.settings = {.rate = 5}}};
};

TEST_F(TraceMethods, AreRefusedByAServerThatCannotTrace) {
  service_.traces = nullptr;
  EXPECT_EQ(Error("TraceSetting", inference::TraceSettingRequest()).code(),
            StatusCode::kUnavailable);
}

TEST_F(TraceMethods, ShowTheSettings) {
  const auto reply =
      Call<inference::TraceSettingResponse>("TraceSetting", inference::TraceSettingRequest());
  EXPECT_THAT(reply.settings().at("trace_level").value(), ElementsAre("OFF"));
  EXPECT_THAT(reply.settings().at("trace_rate").value(), ElementsAre("5"));
}

TEST_F(TraceMethods, ChangeAndClearASetting) {
  const auto rate = [&](const inference::TraceSettingRequest& request) {
    const auto reply = Call<inference::TraceSettingResponse>("TraceSetting", request);
    return reply.settings().at("trace_rate").value(0);
  };
  EXPECT_EQ(rate(Setting("trace_rate", {"7"})), "7");
  EXPECT_EQ(rate(inference::TraceSettingRequest()), "7");
  EXPECT_EQ(rate(Setting("trace_rate", {})), "5");
}

TEST_F(TraceMethods, RefuseWhatMakesNoSense) {
  EXPECT_EQ(Error("TraceSetting", Setting("trace_rate", {"7", "8"})).message(),
            "expect only 1 value for 'trace_rate'");
  EXPECT_FALSE(Error("TraceSetting", Setting("trace_rate", {"often"})).ok());
  EXPECT_FALSE(Error("TraceSetting", Setting("trace_level", {"OFF", "TENSORS"})).ok());
  EXPECT_EQ(Error("TraceSetting", Setting("trace_file", {"f"})).code(), StatusCode::kUnsupported);
  inference::TraceSettingRequest unknown;
  unknown.set_model_name("nothing");
  EXPECT_EQ(Error("TraceSetting", unknown).message(), "Request for unknown model : nothing");
}

}  // namespace
}  // namespace nereid::grpc
