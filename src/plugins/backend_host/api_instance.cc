// SPDX-License-Identifier: Apache-2.0
// TRITONBACKEND_ModelInstance*: an instance and the statistics that it reports.
#include "abi_objects/error.h"
#include "backend_host/backend_model.h"
#include "backend_host/handles.h"
#include "backend_host/memory_use.h"
#include "backend_host/plugin_instance.h"

using nereid::abi_objects::RunApiCall;
using nereid::backend_host::FromHandle;
using nereid::backend_host::PluginInstance;
using nereid::backend_host::ToHandle;
using nereid::base::InvalidArgumentError;
using nereid::base::Status;

namespace {

Status OutOfBounds(uint32_t index, size_t count, const char* what) {
  return InvalidArgumentError("out of bounds index " + std::to_string(index) +
                              ": instance is configured with " + std::to_string(count) + " " +
                              what);
}

}  // namespace

// A backend's statistics of one response of a decoupled model.
struct TRITONBACKEND_ModelInstanceResponseStatistics {
  const PluginInstance* instance = nullptr;
  nereid::backend_host::ResponseFactory* factory = nullptr;
  uint64_t response_start_ns = 0;
  uint64_t compute_output_start_ns = 0;
  uint64_t response_end_ns = 0;
  TRITONSERVER_Error* error = nullptr;
};

namespace {

using nereid::core::ResponseStatistics;

// Converts the statistics of one response: with outputs it is a success, without them an empty
// response, with an error a failure or a cancellation.
nereid::base::Result<ResponseStatistics> Count(
    const TRITONBACKEND_ModelInstanceResponseStatistics& r) {
  const bool has_outputs = r.compute_output_start_ns > 0;
  if (has_outputs && r.response_start_ns > r.compute_output_start_ns) {
    return InvalidArgumentError("Response start cannot happen after compute output start");
  }
  if (has_outputs && r.compute_output_start_ns > r.response_end_ns) {
    return InvalidArgumentError("Compute output start cannot happen after response end");
  }
  if (r.response_start_ns > r.response_end_ns) {
    return InvalidArgumentError("Response start cannot happen after response end");
  }
  const uint64_t whole = r.response_end_ns - r.response_start_ns;
  ResponseStatistics counted;
  if (r.error != nullptr && TRITONSERVER_ErrorCode(r.error) == TRITONSERVER_ERROR_CANCELLED) {
    counted.cancel = {1, whole};
    return counted;
  }
  counted.compute_infer = {1,
                           has_outputs ? r.compute_output_start_ns - r.response_start_ns : whole};
  if (has_outputs) counted.compute_output = {1, r.response_end_ns - r.compute_output_start_ns};
  nereid::core::Duration& outcome = r.error != nullptr ? counted.fail
                                    : has_outputs      ? counted.success
                                                       : counted.empty_response;
  outcome = {1, whole};
  return counted;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance* instance,
                                                    const char** name) {
  *name = FromHandle(instance)->name().c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance,
                                                    TRITONSERVER_InstanceGroupKind* kind) {
  *kind = FromHandle(instance)->options().kind;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance* instance,
                                                        int32_t* device_id) {
  *device_id = FromHandle(instance)->options().device_id;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance* instance,
                                                          TRITONSERVER_Message** host_policy) {
  *host_policy = &FromHandle(instance)->host_policy_message();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance* instance,
                                                         bool* is_passive) {
  *is_passive = FromHandle(instance)->options().is_passive;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance* instance,
                                                            uint32_t* count) {
  *count = static_cast<uint32_t>(FromHandle(instance)->options().profiles.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance* instance,
                                                           const uint32_t index,
                                                           const char** profile_name) {
  return RunApiCall([&]() -> Status {
    *profile_name = nullptr;
    const auto& profiles = FromHandle(instance)->options().profiles;
    if (index >= profiles.size()) return OutOfBounds(index, profiles.size(), "profiles");
    *profile_name = profiles[index].c_str();
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSecondaryDeviceCount(
    TRITONBACKEND_ModelInstance* instance, uint32_t* count) {
  *count = static_cast<uint32_t>(FromHandle(instance)->options().secondary_devices.size());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance* instance, uint32_t index, const char** kind, int64_t* id) {
  return RunApiCall([&]() -> Status {
    const auto& devices = FromHandle(instance)->options().secondary_devices;
    if (index >= devices.size()) return OutOfBounds(index, devices.size(), "secondary devices");
    *kind = "KIND_NVDLA";  // the only kind
    *id = devices[index].device_id;
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
  *model = ToHandle(&FromHandle(instance)->backend_model());
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance,
                                                     void** state) {
  *state = FromHandle(instance)->state();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance,
                                                        void* state) {
  FromHandle(instance)->set_state(state);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportMemoryUsage(
    TRITONBACKEND_ModelInstance* instance, TRITONSERVER_BufferAttributes** usage,
    uint32_t usage_size) {
  return RunApiCall([&]() -> Status {
    NEREID_ASSIGN_OR_RETURN(auto use, nereid::backend_host::ToMemoryUse({usage, usage_size}));
    FromHandle(instance)->model().statistics().SetMemoryUse(instance, std::move(use));
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request, const bool success,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns) {
  nereid::core::ModelStatistics& statistics = FromHandle(instance)->model().statistics();
  const nereid::core::Request& r = *FromHandle(request);
  // A request without a model was released before this execution, so nothing is known of it.
  if (!r.is_counted || r.is_padding || !r.model) return nullptr;
  if (r.trace != nullptr) [[unlikely]] {
    using nereid::observe::TraceActivity;
    r.trace->Report(TraceActivity::kComputeStart, exec_start_ns);
    r.trace->Report(TraceActivity::kComputeInputEnd, compute_start_ns);
    r.trace->Report(TraceActivity::kComputeOutputStart, compute_end_ns);
    r.trace->Report(TraceActivity::kComputeEnd, exec_end_ns);
  }
  if (success) {
    // The end of the execution counts as the end of the request: it was measured a moment ago.
    const nereid::core::ComputeTimes times{exec_start_ns, compute_start_ns, compute_end_ns,
                                           exec_end_ns};
    statistics.RecordSuccess(r.batch_count(), r.times.request_start_ns, r.times.queue_start_ns,
                             times, exec_end_ns);
    r.sink().OnExecuted(times);
  } else {
    // If a request failed, the backend's timestamps may be unset.
    statistics.RecordFailure(nereid::core::FailureReason::kBackend, r.times.request_start_ns,
                             nereid::base::NowNs());
    r.sink().OnExecutionFailed();
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance* instance, const uint64_t batch_size, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns, const uint64_t exec_end_ns) {
  return RunApiCall([&]() -> Status {
    if (!FromHandle(instance)->counts_batch()) return {};
    FromHandle(instance)->model().statistics().RecordExecution(
        batch_size, {exec_start_ns, compute_start_ns, compute_end_ns, exec_end_ns},
        exec_end_ns != 0 ? exec_end_ns : nereid::base::NowNs());
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics** response_statistics) {
  return RunApiCall([&]() -> Status {
    *response_statistics = nullptr;
    *response_statistics = new TRITONBACKEND_ModelInstanceResponseStatistics;
    return {};
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics) {
  delete response_statistics;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    TRITONBACKEND_ModelInstance* model_instance) {
  response_statistics->instance = FromHandle(model_instance);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    TRITONBACKEND_ResponseFactory* response_factory) {
  response_statistics->factory = FromHandle(response_factory);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics, uint64_t response_start) {
  response_statistics->response_start_ns = response_start;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    uint64_t compute_output_start) {
  response_statistics->compute_output_start_ns = compute_output_start;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics, uint64_t response_end) {
  response_statistics->response_end_ns = response_end;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics, TRITONSERVER_Error* error) {
  response_statistics->error = error;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics) {
  return RunApiCall([&]() -> Status {
    const TRITONBACKEND_ModelInstanceResponseStatistics& r = *response_statistics;
    if (r.instance == nullptr || r.factory == nullptr) {
      return InvalidArgumentError("response statistics need an instance and a response factory");
    }
    const uint64_t position = r.factory->responses_reported++;
    NEREID_ASSIGN_OR_RETURN(const ResponseStatistics counted, Count(r));
    if (!r.factory->request->is_padding) {
      r.instance->model().statistics().RecordResponse(position, counted);
    }
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
