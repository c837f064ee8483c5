// SPDX-License-Identifier: Apache-2.0
#include "grpc/control_call.h"

#include <optional>
#include <utility>

#include "base/object_pool.h"
#include "base/sleep.h"
#include "common/audit.h"
#include "common/visible_models.h"
#include "config/print.h"
#include "grpc/region_methods.h"
#include "grpc/repository_methods.h"
#include "grpc/settings_methods.h"
#include "grpc/wire_reader.h"
#include "grpc/wire_writer.h"
#include "grpc_service.pb.h"
#include "health.pb.h"

namespace nereid::grpc {
namespace {

// Method `M` of message types Request and Reply: parse, fill, serialise.
template <typename Request, typename Reply,
          base::Status (*Fill)(service::Service&, const Request&, Reply&)>
base::Result<std::string> Method(service::Service& service, std::string_view bytes) {
  Request request;
  if (bytes.size() > INT32_MAX ||
      !request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return base::InternalError(std::string(kUnparsableText));
  }
  Reply reply;
  NEREID_RETURN_IF_ERROR(Fill(service, request, reply));
  return reply.SerializeAsString();
}

base::Status ServerLive(service::Service& service, const inference::ServerLiveRequest&,
                        inference::ServerLiveResponse& reply) {
  reply.set_live(service.IsLive());
  return base::OkStatus();
}

base::Status ServerReady(service::Service& service, const inference::ServerReadyRequest&,
                         inference::ServerReadyResponse& reply) {
  reply.set_ready(service.IsReady());
  return base::OkStatus();
}

base::Status ModelReady(service::Service& service, const inference::ModelReadyRequest& request,
                        inference::ModelReadyResponse& reply) {
  const base::Result<bool> ready = service.IsModelReady(request.name(), request.version());
  // A client that asks about a missing model wants "not ready" as the response, not an error.
  if (!ready.ok() && ready.status().code() != base::StatusCode::kNotFound) return ready.status();
  reply.set_ready(ready.ok() && *ready);
  return base::OkStatus();
}

base::Status ServerMetadata(service::Service& service, const inference::ServerMetadataRequest&,
                            inference::ServerMetadataResponse& reply) {
  const service::ServerMetadata& metadata = service.metadata();
  reply.set_name(metadata.name);
  reply.set_version(metadata.version);
  for (const std::string& extension : metadata.extensions) reply.add_extensions(extension);
  return base::OkStatus();
}

void FillTensor(const service::TensorMetadata& from,
                inference::ModelMetadataResponse::TensorMetadata& to) {
  const std::string_view type = tensor::ProtocolName(from.type);
  to.set_name(from.name);
  to.set_datatype(type.data(), type.size());
  for (const int64_t dim : from.shape.dims()) to.add_shape(dim);
}

base::Status ModelMetadata(service::Service& service,
                           const inference::ModelMetadataRequest& request,
                           inference::ModelMetadataResponse& reply) {
  NEREID_ASSIGN_OR_RETURN(const service::ModelMetadata metadata,
                          service.DescribeModel(request.name(), request.version()));
  reply.set_name(metadata.name);
  for (const std::string& version : metadata.versions) reply.add_versions(version);
  reply.set_platform(metadata.platform);
  for (const auto& input : metadata.inputs) FillTensor(input, *reply.add_inputs());
  for (const auto& output : metadata.outputs) FillTensor(output, *reply.add_outputs());
  return base::OkStatus();
}

void FillDuration(const core::Duration& from, inference::StatisticDuration& to) {
  to.set_count(from.count);
  to.set_ns(from.ns);
}

base::Status ModelStatistics(service::Service& service,
                             const inference::ModelStatisticsRequest& request,
                             inference::ModelStatisticsResponse& reply) {
  NEREID_ASSIGN_OR_RETURN(const std::vector<service::ModelStatistics> list,
                          service.ReadStatistics(request.name(), request.version()));
  for (const service::ModelStatistics& model : list) {
    const core::StatisticsSnapshot& statistics = model.statistics;
    inference::ModelStatistics& to = *reply.add_model_stats();
    to.set_name(model.name);
    to.set_version(model.version);
    to.set_last_inference(statistics.last_inference_ms);
    to.set_inference_count(statistics.inference_count);
    to.set_execution_count(statistics.execution_count);
    inference::InferStatistics& durations = *to.mutable_inference_stats();
    FillDuration(statistics.success, *durations.mutable_success());
    FillDuration(statistics.fail, *durations.mutable_fail());
    FillDuration(statistics.queue, *durations.mutable_queue());
    FillDuration(statistics.compute_input, *durations.mutable_compute_input());
    FillDuration(statistics.compute_infer, *durations.mutable_compute_infer());
    FillDuration(statistics.compute_output, *durations.mutable_compute_output());
    FillDuration(statistics.cache_hit, *durations.mutable_cache_hit());
    FillDuration(statistics.cache_miss, *durations.mutable_cache_miss());
    for (const auto& [size, batch] : statistics.batches) {
      inference::InferBatchStatistics& entry = *to.add_batch_stats();
      entry.set_batch_size(size);
      FillDuration(batch.compute_input, *entry.mutable_compute_input());
      FillDuration(batch.compute_infer, *entry.mutable_compute_infer());
      FillDuration(batch.compute_output, *entry.mutable_compute_output());
    }
    for (const auto& [position, response] : statistics.responses) {
      inference::InferResponseStatistics& entry =
          (*to.mutable_response_stats())[std::to_string(position)];
      FillDuration(response.compute_infer, *entry.mutable_compute_infer());
      FillDuration(response.compute_output, *entry.mutable_compute_output());
      FillDuration(response.success, *entry.mutable_success());
      FillDuration(response.fail, *entry.mutable_fail());
      FillDuration(response.empty_response, *entry.mutable_empty_response());
      FillDuration(response.cancel, *entry.mutable_cancel());
    }
    for (const core::MemoryUse& use : statistics.memory) {
      inference::MemoryUsage& entry = *to.add_memory_usage();
      const std::string_view type = memory::MemoryTypeName(use.where.type);
      entry.set_type(type.data(), type.size());
      entry.set_id(use.where.id);
      entry.set_byte_size(use.bytes);
    }
  }
  return base::OkStatus();
}

base::Status HealthCheck(service::Service& service, const ::grpc::health::v1::HealthCheckRequest&,
                         ::grpc::health::v1::HealthCheckResponse& reply) {
  reply.set_status(service.IsReady() ? ::grpc::health::v1::HealthCheckResponse::SERVING
                                     : ::grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  return base::OkStatus();
}

// The configuration is already serialised, and is the reply's only field.
base::Result<std::string> ModelConfig(service::Service& service, std::string_view bytes) {
  inference::ModelConfigRequest request;
  if (bytes.size() > INT32_MAX ||
      !request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return base::InternalError(std::string(kUnparsableText));
  }
  NEREID_ASSIGN_OR_RETURN(const auto config,
                          service.GetModelConfig(request.name(), request.version()));
  const std::string message = config::SerializeToProto(*config);
  std::string reply(BytesFieldSize(message.size()), '\0');
  WireWriter(reinterpret_cast<std::byte*>(reply.data())).BytesField(1, message);
  return reply;
}

using access::Scope;
using common::Category;

constexpr ControlRoute kRoutes[] = {
    {"/inference.GRPCInferenceService/ServerLive", Category::kHealth, Scope::kHealth,
     ModelField::kNone,
     &Method<inference::ServerLiveRequest, inference::ServerLiveResponse, ServerLive>},
    {"/inference.GRPCInferenceService/ServerReady", Category::kHealth, Scope::kHealth,
     ModelField::kNone,
     &Method<inference::ServerReadyRequest, inference::ServerReadyResponse, ServerReady>,
     MayBlock::kAsReadiness},
    {"/inference.GRPCInferenceService/ModelReady", Category::kHealth, Scope::kHealth,
     ModelField::kFirst,
     &Method<inference::ModelReadyRequest, inference::ModelReadyResponse, ModelReady>,
     MayBlock::kAsReadiness},
    {"/inference.GRPCInferenceService/ServerMetadata", Category::kMetadata, Scope::kMetadata,
     ModelField::kNone,
     &Method<inference::ServerMetadataRequest, inference::ServerMetadataResponse, ServerMetadata>},
    {"/inference.GRPCInferenceService/ModelMetadata", Category::kMetadata, Scope::kMetadata,
     ModelField::kFirst,
     &Method<inference::ModelMetadataRequest, inference::ModelMetadataResponse, ModelMetadata>,
     MayBlock::kUntilLoaded},
    {"/inference.GRPCInferenceService/ModelConfig", Category::kModelConfig, Scope::kMetadata,
     ModelField::kFirst, &ModelConfig, MayBlock::kUntilLoaded},
    {"/inference.GRPCInferenceService/ModelStatistics", Category::kStatistics, Scope::kMetadata,
     ModelField::kFirst,
     &Method<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse,
             ModelStatistics>},
    {"/inference.GRPCInferenceService/RepositoryIndex", Category::kModelRepository,
     Scope::kMetadata, ModelField::kNone, &RepositoryIndex, MayBlock::kYes},
    {"/inference.GRPCInferenceService/RepositoryModelLoad", Category::kModelRepository,
     Scope::kModelControl, ModelField::kSecond, &RepositoryModelLoad, MayBlock::kYes},
    {"/inference.GRPCInferenceService/RepositoryModelUnload", Category::kModelRepository,
     Scope::kModelControl, ModelField::kSecond, &RepositoryModelUnload, MayBlock::kYes},
    {"/inference.GRPCInferenceService/SystemSharedMemoryStatus", Category::kSharedMemory,
     Scope::kSharedMemory, ModelField::kNone,
     &Method<inference::SystemSharedMemoryStatusRequest,
             inference::SystemSharedMemoryStatusResponse, SystemSharedMemoryStatus>},
    {"/inference.GRPCInferenceService/SystemSharedMemoryRegister", Category::kSharedMemory,
     Scope::kSharedMemory, ModelField::kNone,
     &Method<inference::SystemSharedMemoryRegisterRequest,
             inference::SystemSharedMemoryRegisterResponse, SystemSharedMemoryRegister>},
    {"/inference.GRPCInferenceService/SystemSharedMemoryUnregister", Category::kSharedMemory,
     Scope::kSharedMemory, ModelField::kNone,
     &Method<inference::SystemSharedMemoryUnregisterRequest,
             inference::SystemSharedMemoryUnregisterResponse, SystemSharedMemoryUnregister>},
    {"/inference.GRPCInferenceService/CudaSharedMemoryStatus", Category::kSharedMemory,
     Scope::kSharedMemory, ModelField::kNone,
     &Method<inference::CudaSharedMemoryStatusRequest, inference::CudaSharedMemoryStatusResponse,
             CudaSharedMemoryStatus>},
    {"/inference.GRPCInferenceService/CudaSharedMemoryRegister", Category::kSharedMemory,
     Scope::kSharedMemory, ModelField::kNone,
     &Method<inference::CudaSharedMemoryRegisterRequest,
             inference::CudaSharedMemoryRegisterResponse, CudaSharedMemoryRegister>},
    {"/inference.GRPCInferenceService/CudaSharedMemoryUnregister", Category::kSharedMemory,
     Scope::kSharedMemory, ModelField::kNone,
     &Method<inference::CudaSharedMemoryUnregisterRequest,
             inference::CudaSharedMemoryUnregisterResponse, CudaSharedMemoryUnregister>},
    {"/inference.GRPCInferenceService/TraceSetting", Category::kTrace, Scope::kTraceLog,
     ModelField::kSecond,
     &Method<inference::TraceSettingRequest, inference::TraceSettingResponse, TraceSetting>},
    {"/inference.GRPCInferenceService/LogSettings", Category::kLogging, Scope::kTraceLog,
     ModelField::kNone,
     &Method<inference::LogSettingsRequest, inference::LogSettingsResponse, LogSettings>},
    {"/grpc.health.v1.Health/Check", Category::kHealth, Scope::kHealth, ModelField::kNone,
     &Method<::grpc::health::v1::HealthCheckRequest, ::grpc::health::v1::HealthCheckResponse,
             HealthCheck>,
     MayBlock::kAsReadiness},
};

common::AuditedCall CallToAudit(const http2::GrpcCall& call, const access::Grant* grant) {
  return {
      .who = common::WhoIs(grant), .what = std::string(call.path()), .address = call.PeerAddress()};
}

// Logs what came of a request.
void AuditReply(const common::AuditedCall& call, const base::Result<std::string>& reply) {
  common::Audit(call, reply.ok() ? "OK" : reply.status().ToString(), !reply.ok());
}

void SendReply(http2::GrpcCall& call, const base::Result<std::string>& reply) {
  if (!reply.ok()) return FinishWith(call, reply.status());
  http2::GrpcMessagePtr message = http2::GrpcMessage::Create();
  if (!message->Append(*reply)) {
    return call.Finish(http2::GrpcStatus::kResourceExhausted, "no memory for the response");
  }
  call.SendAndFinish(std::move(message));
}

}  // namespace

const ControlRoute* FindControlRoute(std::string_view path) {
  for (const ControlRoute& route : kRoutes) {
    if (route.path == path) return &route;
  }
  return nullptr;
}

// Returns the name of the model in a request; empty if there is none. If the field occurs more than
// once, the last one counts, as for protobuf's own parser.
std::string_view NamedModel(ModelField field, std::string_view request) {
  std::string_view name;
  if (field == ModelField::kNone) return name;
  WireReader reader(request);
  for (WireTag tag; reader.Next(&tag);) {
    if (tag.Is(static_cast<uint32_t>(field), WireType::kBytes)) {
      name = reader.ReadBytes();
    } else {
      reader.Skip(tag);
    }
  }
  return reader.failed() ? std::string_view() : name;
}

http2::GrpcCallEvents* ControlCall::Start(CallContext& context, http2::GrpcCallRef call,
                                          const ControlRoute& route, access::GrantRef grant) {
  ControlCall* const self = base::ObjectPool<ControlCall>::Take();
  self->context_ = &context;
  self->call_ = std::move(call);
  self->route_ = &route;
  self->grant_ = std::move(grant);
  return self;
}

void ControlCall::OnMessage(base::BufferRef buffer, std::string_view message) {
  if (std::exchange(has_message_, true)) return;
  buffer_ = std::move(buffer);
  bytes_ = message;
}

bool ControlCall::MayUseModel() {
  if (grant_ == nullptr || route_->scope == access::Scope::kHealth) return true;
  const std::string_view model = NamedModel(route_->model_field, bytes_);
  if (model.empty() ? !ChangesAllModels() || access::SeesAllModels(grant_.get())
                    : context_->gate->AllowsModel(*grant_, model)) {
    return true;
  }
  const std::string text = model.empty() ? std::string(access::kIsAboutAllModels)
                                         : access::Gate::ModelText(*grant_, model);
  call_->Finish(StatusOf(access::Denial::kModel), text);
  if (IsAudited()) {
    common::Audit(CallToAudit(*call_, grant_.get()), text, /*is_refused=*/true);
  }
  return false;
}

bool ControlCall::ChangesAllModels() const {
  return route_->scope == access::Scope::kTraceLog && route_->model_field != ModelField::kNone &&
         !bytes_.empty();
}

// Requests for a status, and for settings that name no change, only read.
bool ControlCall::IsAudited() const {
  return access::IsAudited(route_->scope) && !route_->path.ends_with("Status") &&
         (route_->scope != access::Scope::kTraceLog || !bytes_.empty());
}

void ControlCall::OnHalfClose() {
  if (!has_message_) return call_->Finish(http2::GrpcStatus::kInternal, kUnparsableText);
  if (!MayUseModel()) return;
  std::optional<common::AuditedCall> audited;
  if (IsAudited()) audited = CallToAudit(*call_, grant_.get());
  service::Service& service = context_->service;
  if (route_->may_block == MayBlock::kUntilLoaded && AwaitModel()) return;
  const bool may_block =
      route_->may_block == MayBlock::kYes ||
      (route_->may_block == MayBlock::kAsReadiness && service.ReadinessMayBlock()) ||
      context_->control_delay.count() > 0;
  if (!may_block) {
    common::VisibleModels visible(service, grant_);
    const base::Result<std::string> reply = route_->method(visible, bytes_);
    if (audited) AuditReply(*audited, reply);
    return SendReply(*call_, reply);
  }
  service.RunBlocking([call = http2::GrpcCallRef(*call_), method = route_->method, &service,
                       grant = grant_, audited = std::move(audited),
                       delay = context_->control_delay, buffer = std::move(buffer_),
                       bytes = bytes_]() mutable {
    common::VisibleModels visible(service, std::move(grant));
    const base::Result<std::string> reply = method(visible, bytes);
    if (audited) AuditReply(*audited, reply);
    buffer.Reset();
    if (delay.count() > 0) [[unlikely]]
      base::SleepFor(delay);
    SendReply(*call, reply);
  });
}

// A missing model, and a request for a version that is not loaded, are left to the method.
bool ControlCall::AwaitModel() {
  service::Service& service = context_->service;
  const std::string model(NamedModel(route_->model_field, bytes_));
  if (!service.LoadsOnDemand(model) || service.FindModel(model, {}).ok()) return false;
  service.AwaitModel(model, {},
                     [call = http2::GrpcCallRef(*call_), method = route_->method, &service,
                      grant = grant_, buffer = std::move(buffer_),
                      bytes = bytes_](const base::Result<core::ModelHandle>& pinned) mutable {
                       if (!pinned.ok()) return FinishWith(*call, pinned.status());
                       common::VisibleModels visible(service, std::move(grant));
                       SendReply(*call, method(visible, bytes));
                     });
  return true;
}

void ControlCall::OnDone() { base::ObjectPool<ControlCall>::Give(this); }

void ControlCall::Recycle() {
  context_ = nullptr;
  call_.Reset();
  grant_.reset();
  route_ = nullptr;
  buffer_.Reset();
  bytes_ = {};
  has_message_ = false;
}

}  // namespace nereid::grpc
