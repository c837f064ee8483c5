// SPDX-License-Identifier: Apache-2.0
// Weak definitions of the server-side functions of tritonserver.h; see unsupported.h.
#include "capi/unsupported.h"
#include "triton/core/tritonserver.h"

using nereid::capi::Unsupported;

extern "C" {
#pragma GCC visibility push(default)
// clang-format off: a listing, one function after the other.

[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ApiVersion(uint32_t*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] const char* TRITONSERVER_DataTypeString(TRITONSERVER_DataType) { return nullptr; }
[[gnu::weak]] TRITONSERVER_DataType TRITONSERVER_StringToDataType(
    const char*) { return TRITONSERVER_TYPE_INVALID; }
[[gnu::weak]] uint32_t TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType) { return 0; }
[[gnu::weak]] const char* TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType) { return nullptr; }
[[gnu::weak]] const char* TRITONSERVER_ParameterTypeString(
    TRITONSERVER_ParameterType) { return nullptr; }
[[gnu::weak]] TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char*,
    TRITONSERVER_ParameterType, const void*) { return nullptr; }
[[gnu::weak]] TRITONSERVER_Parameter* TRITONSERVER_ParameterBytesNew(const char*, const void*,
    uint64_t) { return nullptr; }
[[gnu::weak]] void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter*) {}
[[gnu::weak]] const char* TRITONSERVER_InstanceGroupKindString(
    TRITONSERVER_InstanceGroupKind) { return nullptr; }
[[gnu::weak]] bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel) { return false; }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel, const char*, int,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorNew(
    TRITONSERVER_ResponseAllocator**, TRITONSERVER_ResponseAllocatorAllocFn_t,
    TRITONSERVER_ResponseAllocatorReleaseFn_t,
    TRITONSERVER_ResponseAllocatorStartFn_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator*,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorSetQueryFunction(
    TRITONSERVER_ResponseAllocator*,
    TRITONSERVER_ResponseAllocatorQueryFn_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorDelete(
    TRITONSERVER_ResponseAllocator*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message**,
    const char*, size_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MessageDelete(
    TRITONSERVER_Message*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message*,
    const char**, size_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricsDelete(
    TRITONSERVER_Metrics*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricsFormatted(TRITONSERVER_Metrics*,
    TRITONSERVER_MetricFormat, const char**, size_t*) { return Unsupported(__func__); }
[[gnu::weak]] const char* TRITONSERVER_InferenceTraceLevelString(
    TRITONSERVER_InferenceTraceLevel) { return nullptr; }
[[gnu::weak]] const char* TRITONSERVER_InferenceTraceActivityString(
    TRITONSERVER_InferenceTraceActivity) { return nullptr; }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceNew(TRITONSERVER_InferenceTrace**,
    TRITONSERVER_InferenceTraceLevel, uint64_t, TRITONSERVER_InferenceTraceActivityFn_t,
    TRITONSERVER_InferenceTraceReleaseFn_t, void*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceTensorNew(
    TRITONSERVER_InferenceTrace**, TRITONSERVER_InferenceTraceLevel, uint64_t,
    TRITONSERVER_InferenceTraceActivityFn_t, TRITONSERVER_InferenceTraceTensorActivityFn_t,
    TRITONSERVER_InferenceTraceReleaseFn_t, void*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceReportActivity(
    TRITONSERVER_InferenceTrace*, uint64_t, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceDelete(
    TRITONSERVER_InferenceTrace*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace*,
    uint64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace*,
    uint64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceModelVersion(
    TRITONSERVER_InferenceTrace*, int64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceSpawnChildTrace(
    TRITONSERVER_InferenceTrace*, TRITONSERVER_InferenceTrace**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceSetContext(
    TRITONSERVER_InferenceTrace*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestNew(TRITONSERVER_InferenceRequest**,
    TRITONSERVER_Server*, const char*, int64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestDelete(
    TRITONSERVER_InferenceRequest*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestId(TRITONSERVER_InferenceRequest*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetId(TRITONSERVER_InferenceRequest*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestFlags(TRITONSERVER_InferenceRequest*,
    uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetFlags(
    TRITONSERVER_InferenceRequest*, uint32_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestCorrelationId(
    TRITONSERVER_InferenceRequest*, uint64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestCorrelationIdString(
    TRITONSERVER_InferenceRequest*, const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetCorrelationId(
    TRITONSERVER_InferenceRequest*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestCancel(
    TRITONSERVER_InferenceRequest*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestIsCancelled(
    TRITONSERVER_InferenceRequest*, bool*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestPriority(
    TRITONSERVER_InferenceRequest*, uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestPriorityUInt64(
    TRITONSERVER_InferenceRequest*, uint64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetPriority(
    TRITONSERVER_InferenceRequest*, uint32_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetPriorityUInt64(
    TRITONSERVER_InferenceRequest*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest*, uint64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddInput(
    TRITONSERVER_InferenceRequest*, const char*, TRITONSERVER_DataType, const int64_t*,
    uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddRawInput(
    TRITONSERVER_InferenceRequest*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveInput(
    TRITONSERVER_InferenceRequest*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllInputs(
    TRITONSERVER_InferenceRequest*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest*, const char*, const void*, size_t, TRITONSERVER_MemoryType,
    int64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest*, const char*, const void*, size_t, TRITONSERVER_MemoryType,
    int64_t, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest*, const char*, const void*,
    TRITONSERVER_BufferAttributes*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllInputData(
    TRITONSERVER_InferenceRequest*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddRequestedOutput(
    TRITONSERVER_InferenceRequest*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveRequestedOutput(
    TRITONSERVER_InferenceRequest*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest*, TRITONSERVER_InferenceRequestReleaseFn_t,
    void*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest*, TRITONSERVER_ResponseAllocator*, void*,
    TRITONSERVER_InferenceResponseCompleteFn_t, void*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetStringParameter(
    TRITONSERVER_InferenceRequest*, const char*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetIntParameter(
    TRITONSERVER_InferenceRequest*, const char*, int64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetBoolParameter(
    TRITONSERVER_InferenceRequest*, const char*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetDoubleParameter(
    TRITONSERVER_InferenceRequest*, const char*, double) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceResponseDelete(
    TRITONSERVER_InferenceResponse*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceResponseError(
    TRITONSERVER_InferenceResponse*) { return nullptr; }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceResponseModel(
    TRITONSERVER_InferenceResponse*, const char**, int64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceResponseId(TRITONSERVER_InferenceResponse*,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameterCount(
    TRITONSERVER_InferenceResponse*, uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameter(
    TRITONSERVER_InferenceResponse*, uint32_t, const char**, TRITONSERVER_ParameterType*,
    const void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutputCount(
    TRITONSERVER_InferenceResponse*, uint32_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse*, uint32_t, const char**, TRITONSERVER_DataType*,
    const int64_t**, uint64_t*, const void**, size_t*, TRITONSERVER_MemoryType*, int64_t*,
    void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutputClassificationLabel(
    TRITONSERVER_InferenceResponse*, uint32_t, size_t,
    const char**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesNew(
    TRITONSERVER_BufferAttributes**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesDelete(
    TRITONSERVER_BufferAttributes*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetMemoryTypeId(
    TRITONSERVER_BufferAttributes*, int64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetMemoryType(
    TRITONSERVER_BufferAttributes*, TRITONSERVER_MemoryType) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetCudaIpcHandle(
    TRITONSERVER_BufferAttributes*, void*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetByteSize(
    TRITONSERVER_BufferAttributes*, size_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesMemoryTypeId(
    TRITONSERVER_BufferAttributes*, int64_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesMemoryType(
    TRITONSERVER_BufferAttributes*, TRITONSERVER_MemoryType*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesCudaIpcHandle(
    TRITONSERVER_BufferAttributes*, void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_BufferAttributesByteSize(
    TRITONSERVER_BufferAttributes*, size_t*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsNew(
    TRITONSERVER_ServerOptions**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsDelete(
    TRITONSERVER_ServerOptions*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetServerId(TRITONSERVER_ServerOptions*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelRepositoryPath(
    TRITONSERVER_ServerOptions*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelControlMode(
    TRITONSERVER_ServerOptions*, TRITONSERVER_ModelControlMode) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetStartupModel(
    TRITONSERVER_ServerOptions*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetStrictModelConfig(
    TRITONSERVER_ServerOptions*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelConfigName(
    TRITONSERVER_ServerOptions*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetRateLimiterMode(
    TRITONSERVER_ServerOptions*, TRITONSERVER_RateLimitMode) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsAddRateLimiterResource(
    TRITONSERVER_ServerOptions*, const char*, size_t, int) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(
    TRITONSERVER_ServerOptions*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(
    TRITONSERVER_ServerOptions*, int, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
    TRITONSERVER_ServerOptions*, int, size_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetResponseCacheByteSize(
    TRITONSERVER_ServerOptions*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCacheConfig(
    TRITONSERVER_ServerOptions*, const char*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCacheDirectory(
    TRITONSERVER_ServerOptions*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(
    TRITONSERVER_ServerOptions*, double) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetExitOnError(
    TRITONSERVER_ServerOptions*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetStrictReadiness(
    TRITONSERVER_ServerOptions*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetExitTimeout(
    TRITONSERVER_ServerOptions*, unsigned int) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(
    TRITONSERVER_ServerOptions*, unsigned int) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelLoadThreadCount(
    TRITONSERVER_ServerOptions*, unsigned int) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelLoadRetryCount(
    TRITONSERVER_ServerOptions*, unsigned int) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelNamespacing(
    TRITONSERVER_ServerOptions*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetEnablePeerAccess(
    TRITONSERVER_ServerOptions*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogFile(TRITONSERVER_ServerOptions*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogInfo(TRITONSERVER_ServerOptions*,
    bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogWarn(TRITONSERVER_ServerOptions*,
    bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogError(TRITONSERVER_ServerOptions*,
    bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogFormat(
    TRITONSERVER_ServerOptions*, TRITONSERVER_LogFormat) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogVerbose(
    TRITONSERVER_ServerOptions*, int) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMetrics(TRITONSERVER_ServerOptions*,
    bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetGpuMetrics(
    TRITONSERVER_ServerOptions*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCpuMetrics(
    TRITONSERVER_ServerOptions*, bool) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMetricsInterval(
    TRITONSERVER_ServerOptions*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetBackendDirectory(
    TRITONSERVER_ServerOptions*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetRepoAgentDirectory(
    TRITONSERVER_ServerOptions*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
    TRITONSERVER_ServerOptions*, TRITONSERVER_InstanceGroupKind, int,
    double) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetBackendConfig(
    TRITONSERVER_ServerOptions*, const char*, const char*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetHostPolicy(
    TRITONSERVER_ServerOptions*, const char*, const char*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMetricsConfig(
    TRITONSERVER_ServerOptions*, const char*, const char*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerNew(TRITONSERVER_Server**,
    TRITONSERVER_ServerOptions*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerDelete(
    TRITONSERVER_Server*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerStop(
    TRITONSERVER_Server*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerSetExitTimeout(TRITONSERVER_Server*,
    unsigned int) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerRegisterModelRepository(TRITONSERVER_Server*,
    const char*, const TRITONSERVER_Parameter**, uint32_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerUnregisterModelRepository(TRITONSERVER_Server*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerPollModelRepository(
    TRITONSERVER_Server*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerIsLive(TRITONSERVER_Server*,
    bool*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerIsReady(TRITONSERVER_Server*,
    bool*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server*, const char*,
    int64_t, bool*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server*,
    const char*, int64_t, uint32_t*, void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerModelTransactionProperties(
    TRITONSERVER_Server*, const char*, int64_t, uint32_t*, void**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerMetadata(TRITONSERVER_Server*,
    TRITONSERVER_Message**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server*,
    const char*, int64_t, TRITONSERVER_Message**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerModelStatistics(TRITONSERVER_Server*,
    const char*, int64_t, TRITONSERVER_Message**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerModelConfig(TRITONSERVER_Server*, const char*,
    int64_t, uint32_t, TRITONSERVER_Message**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerModelIndex(TRITONSERVER_Server*, uint32_t,
    TRITONSERVER_Message**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerLoadModel(TRITONSERVER_Server*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerLoadModelWithParameters(TRITONSERVER_Server*,
    const char*, const TRITONSERVER_Parameter**, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server*,
    const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerMetrics(TRITONSERVER_Server*,
    TRITONSERVER_Metrics**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_ServerInferAsync(TRITONSERVER_Server*,
    TRITONSERVER_InferenceRequest*, TRITONSERVER_InferenceTrace*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily**,
    TRITONSERVER_MetricKind, const char*, const char*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricFamilyDelete(
    TRITONSERVER_MetricFamily*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily*,
    TRITONSERVER_MetricKind*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricArgsNew(
    TRITONSERVER_MetricArgs**) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs*,
    const double*, uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricArgsDelete(
    TRITONSERVER_MetricArgs*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricNew(TRITONSERVER_Metric**,
    TRITONSERVER_MetricFamily*, const TRITONSERVER_Parameter**,
    uint64_t) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric**,
    TRITONSERVER_MetricFamily*, const TRITONSERVER_Parameter**, uint64_t,
    const TRITONSERVER_MetricArgs*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricDelete(
    TRITONSERVER_Metric*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricValue(TRITONSERVER_Metric*,
    double*) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricIncrement(TRITONSERVER_Metric*,
    double) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricSet(TRITONSERVER_Metric*,
    double) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_MetricObserve(TRITONSERVER_Metric*,
    double) { return Unsupported(__func__); }
[[gnu::weak]] TRITONSERVER_Error* TRITONSERVER_GetMetricKind(TRITONSERVER_Metric*,
    TRITONSERVER_MetricKind*) { return Unsupported(__func__); }

// clang-format on
#pragma GCC visibility pop
}  // extern "C"
