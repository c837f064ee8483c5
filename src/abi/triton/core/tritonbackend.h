// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

// TRITONBACKEND_DECLSPEC marks what the server exports to a backend, TRITONBACKEND_ISPEC what a backend may
// export to the server. The server is compiled with _COMPILING_TRITONBACKEND defined, plug-ins
// without.
#if defined(_COMPILING_TRITONBACKEND)
#if defined(_MSC_VER)
#define TRITONBACKEND_DECLSPEC __declspec(dllexport)
#define TRITONBACKEND_ISPEC __declspec(dllimport)
#elif defined(__GNUC__)
#define TRITONBACKEND_DECLSPEC __attribute__((__visibility__("default")))
#define TRITONBACKEND_ISPEC
#else
#define TRITONBACKEND_DECLSPEC
#define TRITONBACKEND_ISPEC
#endif
#elif defined(_MSC_VER)
#define TRITONBACKEND_DECLSPEC __declspec(dllimport)
#define TRITONBACKEND_ISPEC __declspec(dllexport)
#else
#define TRITONBACKEND_DECLSPEC
#define TRITONBACKEND_ISPEC
#endif

struct TRITONBACKEND_MemoryManager;
struct TRITONBACKEND_Input;
struct TRITONBACKEND_Output;
struct TRITONBACKEND_State;
struct TRITONBACKEND_Request;
struct TRITONBACKEND_ResponseFactory;
struct TRITONBACKEND_Response;
struct TRITONBACKEND_Backend;
struct TRITONBACKEND_Model;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_ModelInstanceResponseStatistics;
struct TRITONBACKEND_BackendAttribute;
struct TRITONBACKEND_Batcher;

#define TRITONBACKEND_API_VERSION_MAJOR 1
#define TRITONBACKEND_API_VERSION_MINOR 19

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ApiVersion(
    uint32_t* major, uint32_t* minor);

typedef enum TRITONBACKEND_artifacttype_enum {
  TRITONBACKEND_ARTIFACT_FILESYSTEM = 0
} TRITONBACKEND_ArtifactType;

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_MemoryManagerAllocate(
    struct TRITONBACKEND_MemoryManager* manager, void** buffer,
    const TRITONSERVER_MemoryType memory_type, const int64_t memory_type_id,
    const uint64_t byte_size);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_MemoryManagerFree(
    struct TRITONBACKEND_MemoryManager* manager, void* buffer,
    const TRITONSERVER_MemoryType memory_type, const int64_t memory_type_id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputProperties(
    struct TRITONBACKEND_Input* input, const char** name, TRITONSERVER_DataType* datatype,
    const int64_t** shape, uint32_t* dims_count, uint64_t* byte_size, uint32_t* buffer_count);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputPropertiesForHostPolicy(
    struct TRITONBACKEND_Input* input, const char* host_policy_name, const char** name,
    TRITONSERVER_DataType* datatype, const int64_t** shape, uint32_t* dims_count,
    uint64_t* byte_size, uint32_t* buffer_count);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputBuffer(
    struct TRITONBACKEND_Input* input, const uint32_t index, const void** buffer,
    uint64_t* buffer_byte_size, TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputBufferForHostPolicy(
    struct TRITONBACKEND_Input* input, const char* host_policy_name, const uint32_t index,
    const void** buffer, uint64_t* buffer_byte_size, TRITONSERVER_MemoryType* memory_type,
    int64_t* memory_type_id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputBufferAttributes(
    struct TRITONBACKEND_Input* input, const uint32_t index, const void** buffer,
    struct TRITONSERVER_BufferAttributes** buffer_attributes);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(
    struct TRITONBACKEND_Output* output, void** buffer, const uint64_t buffer_byte_size,
    TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_OutputBufferAttributes(
    struct TRITONBACKEND_Output* output, struct TRITONSERVER_BufferAttributes** buffer_attributes);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestId(
    struct TRITONBACKEND_Request* request, const char** id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(
    struct TRITONBACKEND_Request* request, bool* is_cancelled);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryIsCancelled(
    struct TRITONBACKEND_ResponseFactory* factory, bool* is_cancelled);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationId(
    struct TRITONBACKEND_Request* request, uint64_t* id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
    struct TRITONBACKEND_Request* request, uint64_t* timeout);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationIdString(
    struct TRITONBACKEND_Request* request, const char** id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestFlags(
    struct TRITONBACKEND_Request* request, uint32_t* flags);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(
    struct TRITONBACKEND_Request* request, uint32_t* count);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestParameter(
    struct TRITONBACKEND_Request* request, const uint32_t index, const char** key,
    TRITONSERVER_ParameterType* type, const void** vvalue);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(
    struct TRITONBACKEND_Request* request, uint32_t* count);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestInputName(
    struct TRITONBACKEND_Request* request, const uint32_t index, const char** input_name);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestInput(
    struct TRITONBACKEND_Request* request, const char* name, struct TRITONBACKEND_Input** input);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(
    struct TRITONBACKEND_Request* request, const uint32_t index,
    struct TRITONBACKEND_Input** input);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(
    struct TRITONBACKEND_Request* request, uint32_t* count);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(
    struct TRITONBACKEND_Request* request, const uint32_t index, const char** output_name);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestOutputBufferProperties(
    struct TRITONBACKEND_Request* request, const char* name, size_t* byte_size,
    TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestRelease(
    struct TRITONBACKEND_Request* request, uint32_t release_flags);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestTrace(
    struct TRITONBACKEND_Request* request, struct TRITONSERVER_InferenceTrace** trace);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(
    struct TRITONBACKEND_ResponseFactory** factory, struct TRITONBACKEND_Request* request);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(
    struct TRITONBACKEND_ResponseFactory* factory);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactorySendFlags(
    struct TRITONBACKEND_ResponseFactory* factory, const uint32_t send_flags);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseNew(
    struct TRITONBACKEND_Response** response, struct TRITONBACKEND_Request* request);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseNewFromFactory(
    struct TRITONBACKEND_Response** response, struct TRITONBACKEND_ResponseFactory* factory);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(
    struct TRITONBACKEND_Response* response);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSetStringParameter(
    struct TRITONBACKEND_Response* response, const char* name, const char* value);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSetIntParameter(
    struct TRITONBACKEND_Response* response, const char* name, const int64_t value);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSetBoolParameter(
    struct TRITONBACKEND_Response* response, const char* name, const bool value);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSetDoubleParameter(
    struct TRITONBACKEND_Response* response, const char* name, const double value);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(
    struct TRITONBACKEND_Response* response, struct TRITONBACKEND_Output** output,
    const char* name, const TRITONSERVER_DataType datatype, const int64_t* shape,
    const uint32_t dims_count);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSend(
    struct TRITONBACKEND_Response* response, const uint32_t send_flags,
    struct TRITONSERVER_Error* error);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_StateNew(
    struct TRITONBACKEND_State** state, struct TRITONBACKEND_Request* request, const char* name,
    const TRITONSERVER_DataType datatype, const int64_t* shape, const uint32_t dims_count);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_StateUpdate(
    struct TRITONBACKEND_State* state);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_StateBuffer(
    struct TRITONBACKEND_State* state, void** buffer, const uint64_t buffer_byte_size,
    TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_StateBufferAttributes(
    struct TRITONBACKEND_State* state, struct TRITONSERVER_BufferAttributes** buffer_attributes);

typedef enum TRITONBACKEND_execpolicy_enum {
  TRITONBACKEND_EXECUTION_BLOCKING = 0,
  TRITONBACKEND_EXECUTION_DEVICE_BLOCKING = 1
} TRITONBACKEND_ExecutionPolicy;

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendName(
    struct TRITONBACKEND_Backend* backend, const char** name);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendConfig(
    struct TRITONBACKEND_Backend* backend, struct TRITONSERVER_Message** backend_config);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendExecutionPolicy(
    struct TRITONBACKEND_Backend* backend, TRITONBACKEND_ExecutionPolicy* policy);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendSetExecutionPolicy(
    struct TRITONBACKEND_Backend* backend, TRITONBACKEND_ExecutionPolicy policy);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendArtifacts(
    struct TRITONBACKEND_Backend* backend, TRITONBACKEND_ArtifactType* artifact_type,
    const char** location);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendMemoryManager(
    struct TRITONBACKEND_Backend* backend, struct TRITONBACKEND_MemoryManager** manager);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendState(
    struct TRITONBACKEND_Backend* backend, void** state);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendSetState(
    struct TRITONBACKEND_Backend* backend, void* state);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelName(
    struct TRITONBACKEND_Model* model, const char** name);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelVersion(
    struct TRITONBACKEND_Model* model, uint64_t* version);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelRepository(
    struct TRITONBACKEND_Model* model, TRITONBACKEND_ArtifactType* artifact_type,
    const char** location);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelConfig(
    struct TRITONBACKEND_Model* model, const uint32_t config_version,
    struct TRITONSERVER_Message** model_config);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(
    struct TRITONBACKEND_Model* model, bool* auto_complete_config);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(
    struct TRITONBACKEND_Model* model, const uint32_t config_version,
    struct TRITONSERVER_Message* model_config);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelServer(
    struct TRITONBACKEND_Model* model, struct TRITONSERVER_Server** server);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBackend(
    struct TRITONBACKEND_Model* model, struct TRITONBACKEND_Backend** backend);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelState(
    struct TRITONBACKEND_Model* model, void** state);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelSetState(
    struct TRITONBACKEND_Model* model, void* state);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelReportMemoryUsage(
    struct TRITONBACKEND_Model* model, struct TRITONSERVER_BufferAttributes** usage,
    uint32_t usage_size);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(
    struct TRITONBACKEND_ModelInstance* instance, const char** name);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(
    struct TRITONBACKEND_ModelInstance* instance, TRITONSERVER_InstanceGroupKind* kind);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(
    struct TRITONBACKEND_ModelInstance* instance, int32_t* device_id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceHostPolicy(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONSERVER_Message** host_policy);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceIsPassive(
    struct TRITONBACKEND_ModelInstance* instance, bool* is_passive);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileCount(
    struct TRITONBACKEND_ModelInstance* instance, uint32_t* count);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileName(
    struct TRITONBACKEND_ModelInstance* instance, const uint32_t index, const char** profile_name);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSecondaryDeviceCount(
    struct TRITONBACKEND_ModelInstance* instance, uint32_t* count);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    struct TRITONBACKEND_ModelInstance* instance, uint32_t index, const char** kind, int64_t* id);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Model** model);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(
    struct TRITONBACKEND_ModelInstance* instance, void** state);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(
    struct TRITONBACKEND_ModelInstance* instance, void* state);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportMemoryUsage(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONSERVER_BufferAttributes** usage,
    uint32_t usage_size);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Request* request,
    const bool success, const uint64_t exec_start_ns, const uint64_t compute_start_ns,
    const uint64_t compute_end_ns, const uint64_t exec_end_ns);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    struct TRITONBACKEND_ModelInstanceResponseStatistics** response_statistics);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    struct TRITONBACKEND_ModelInstance* model_instance);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    struct TRITONBACKEND_ResponseFactory* response_factory);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    uint64_t response_start);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    uint64_t compute_output_start);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    uint64_t response_end);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    struct TRITONSERVER_Error* error);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceReportResponseStatistics(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics);

TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    struct TRITONBACKEND_ModelInstance* instance, const uint64_t batch_size,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_Initialize(
    struct TRITONBACKEND_Backend* backend);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_Finalize(
    struct TRITONBACKEND_Backend* backend);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(
    struct TRITONBACKEND_Model* model);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(
    struct TRITONBACKEND_Model* model);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(
    struct TRITONBACKEND_ModelInstance* instance);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(
    struct TRITONBACKEND_ModelInstance* instance);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Request** requests,
    const uint32_t request_count);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(
    struct TRITONBACKEND_ModelInstance* instance);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(
    struct TRITONBACKEND_Backend* backend,
    struct TRITONBACKEND_BackendAttribute* backend_attributes);

TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    struct TRITONBACKEND_BackendAttribute* backend_attributes,
    const TRITONSERVER_InstanceGroupKind kind, const uint64_t count, const uint64_t* device_ids,
    const uint64_t id_count);

TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    struct TRITONBACKEND_BackendAttribute* backend_attributes, bool enabled);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatcherInitialize(
    struct TRITONBACKEND_Batcher** batcher, struct TRITONBACKEND_Model* model);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatcherFinalize(
    struct TRITONBACKEND_Batcher* batcher);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatchIncludeRequest(
    struct TRITONBACKEND_Request* request, void* userp, bool* should_include);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatchInitialize(
    const struct TRITONBACKEND_Batcher* batcher, void** userp);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatchFinalize(void* userp);

TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutputByName(
    struct TRITONBACKEND_Response* response, const char* name, TRITONSERVER_DataType* datatype,
    const int64_t** shape, uint64_t* dim_count);

TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutput(
    struct TRITONBACKEND_Response* response, const uint32_t index, const char** name,
    TRITONSERVER_DataType* datatype, const int64_t** shape, uint64_t* dim_count);

#ifdef __cplusplus
}  // extern "C"
#endif
