// SPDX-License-Identifier: Apache-2.0
// Weak definitions of the server-side functions of tritonbackend.h; see unsupported.h.
#include "capi/unsupported.h"
#include "triton/core/tritonbackend.h"

using nereid::capi::Unsupported;

extern "C" {
#pragma GCC visibility push(default)
// clang-format off: a listing, one function after the other.

[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager*,
    void**, TRITONSERVER_MemoryType, int64_t, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager*,
    void*, TRITONSERVER_MemoryType, int64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input*, const char**,
    TRITONSERVER_DataType*, const int64_t**, uint32_t*, uint64_t*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_InputPropertiesForHostPolicy(TRITONBACKEND_Input*,
    const char*, const char**, TRITONSERVER_DataType*, const int64_t**, uint32_t*, uint64_t*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input*, uint32_t,
    const void**, uint64_t*, TRITONSERVER_MemoryType*, int64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_InputBufferForHostPolicy(TRITONBACKEND_Input*,
    const char*, uint32_t, const void**, uint64_t*, TRITONSERVER_MemoryType*,
    int64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_InputBufferAttributes(TRITONBACKEND_Input*,
    uint32_t, const void**, TRITONSERVER_BufferAttributes**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output*, void**,
    uint64_t, TRITONSERVER_MemoryType*, int64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_OutputBufferAttributes(TRITONBACKEND_Output*,
    TRITONSERVER_BufferAttributes**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestId(TRITONBACKEND_Request*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request*,
    bool*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryIsCancelled(
    TRITONBACKEND_ResponseFactory*, bool*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request*,
    uint64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
    TRITONBACKEND_Request*, uint64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestFlags(TRITONBACKEND_Request*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestParameter(TRITONBACKEND_Request*, uint32_t,
    const char**, TRITONSERVER_ParameterType*, const void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestInputName(TRITONBACKEND_Request*, uint32_t,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request*, const char*,
    TRITONBACKEND_Input**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request*,
    uint32_t, TRITONBACKEND_Input**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request*, uint32_t,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestOutputBufferProperties(
    TRITONBACKEND_Request*, const char*, size_t*, TRITONSERVER_MemoryType*,
    int64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request*,
    uint32_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_RequestTrace(TRITONBACKEND_Request*,
    TRITONSERVER_InferenceTrace**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory**,
    TRITONBACKEND_Request*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(
    TRITONBACKEND_ResponseFactory*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseFactorySendFlags(
    TRITONBACKEND_ResponseFactory*, uint32_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response**,
    TRITONBACKEND_Request*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response**,
    TRITONBACKEND_ResponseFactory*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(
    TRITONBACKEND_Response*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response*,
    const char*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response*,
    const char*, int64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response*,
    const char*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response*,
    const char*, double) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response*,
    TRITONBACKEND_Output**, const char*, TRITONSERVER_DataType, const int64_t*,
    uint32_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response*, uint32_t,
    TRITONSERVER_Error*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_StateNew(TRITONBACKEND_State**,
    TRITONBACKEND_Request*, const char*, TRITONSERVER_DataType, const int64_t*,
    uint32_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_StateUpdate(
    TRITONBACKEND_State*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_StateBuffer(TRITONBACKEND_State*, void**, uint64_t,
    TRITONSERVER_MemoryType*, int64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_StateBufferAttributes(TRITONBACKEND_State*,
    TRITONSERVER_BufferAttributes**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendName(TRITONBACKEND_Backend*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend*,
    TRITONSERVER_Message**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend*,
    TRITONBACKEND_ExecutionPolicy*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend*,
    TRITONBACKEND_ExecutionPolicy) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend*,
    TRITONBACKEND_ArtifactType*, const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend*,
    TRITONBACKEND_MemoryManager**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendState(TRITONBACKEND_Backend*,
    void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend*,
    void*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model*,
    uint64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model*,
    TRITONBACKEND_ArtifactType*, const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model*, uint32_t,
    TRITONSERVER_Message**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model*,
    bool*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model*, uint32_t,
    TRITONSERVER_Message*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelServer(TRITONBACKEND_Model*,
    TRITONSERVER_Server**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelBackend(TRITONBACKEND_Model*,
    TRITONBACKEND_Backend**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model*,
    void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model*,
    void*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model*,
    TRITONSERVER_BufferAttributes**, uint32_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance*,
    TRITONSERVER_InstanceGroupKind*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance*,
    int32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceHostPolicy(
    TRITONBACKEND_ModelInstance*, TRITONSERVER_Message**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance*,
    bool*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileCount(
    TRITONBACKEND_ModelInstance*, uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileName(
    TRITONBACKEND_ModelInstance*, uint32_t, const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSecondaryDeviceCount(
    TRITONBACKEND_ModelInstance*, uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance*, uint32_t, const char**,
    int64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance*,
    TRITONBACKEND_Model**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance*,
    void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance*,
    void*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportMemoryUsage(
    TRITONBACKEND_ModelInstance*, TRITONSERVER_BufferAttributes**,
    uint32_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request*, bool, uint64_t, uint64_t, uint64_t,
    uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics*,
    TRITONBACKEND_ModelInstance*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics*,
    TRITONBACKEND_ResponseFactory*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics*,
    TRITONSERVER_Error*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance*, uint64_t, uint64_t, uint64_t, uint64_t,
    uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute*, TRITONSERVER_InstanceGroupKind, uint64_t, const uint64_t*,
    uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutputByName(
    TRITONBACKEND_Response*, const char*, TRITONSERVER_DataType*, const int64_t**,
    uint64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutput(TRITONBACKEND_Response*,
    uint32_t, const char**, TRITONSERVER_DataType*, const int64_t**,
    uint64_t*) { return Unsupported(__func__); }

// clang-format on
#pragma GCC visibility pop
}  // extern "C"
