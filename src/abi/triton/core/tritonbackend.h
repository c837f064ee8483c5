// SPDX-License-Identifier: Apache-2.0
// The C API between the server and a backend: a shared library libtriton_<name>.so that runs
// models.
//
// The first part is what the server offers to backends, the second what a backend may export. The
// rules at the top of tritonserver.h hold here too. Further:
// - The server loads a backend once. Its life: TRITONBACKEND_Initialize; for each model version
//   ModelInitialize, for each of its instances ModelInstanceInitialize, many times
//   ModelInstanceExecute, ModelInstanceFinalize, ModelFinalize; at the end Finalize.
// - An error that a backend returns or passes to a function that takes one over belongs to the
//   server; where the backend keeps it, that is said.
// - Timestamps are nanoseconds of the steady clock (std::chrono::steady_clock, CLOCK_MONOTONIC).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

#ifdef __cplusplus
extern "C" {
#endif

// TRITONBACKEND_DECLSPEC: what the server exports to a backend.
// TRITONBACKEND_ISPEC: what a backend may export to the server.
// The server is compiled with _COMPILING_TRITONBACKEND defined, plug-ins without.
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

// The objects of this API. All are opaque: only pointers to them cross the boundary.
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

// Version of this header. The minor number grows with additions, the major number with anything
// that can break a backend.
#define TRITONBACKEND_API_VERSION_MAJOR 1
#define TRITONBACKEND_API_VERSION_MINOR 19

// Gives the version of this API that the server speaks. A backend can run when `*major` equals the
// TRITONBACKEND_API_VERSION_MAJOR it was compiled with and `*minor` is not below its
// TRITONBACKEND_API_VERSION_MINOR; otherwise its TRITONBACKEND_Initialize should fail. Never fails.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major,
                                                                           uint32_t* minor);

// How files reach the backend. FILESYSTEM: as a folder that can be opened.
typedef enum TRITONBACKEND_artifacttype_enum {
  TRITONBACKEND_ARTIFACT_FILESYSTEM = 0
} TRITONBACKEND_ArtifactType;

// Memory manager: the server's pools of page-locked and GPU memory, shared with backends. May be
// used by any thread.

// Allocates `byte_size` contiguous bytes; the backend frees them with
// TRITONBACKEND_MemoryManagerFree. UNSUPPORTED when this kind of memory can never be had,
// UNAVAILABLE when there is not enough of it now.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_MemoryManagerAllocate(
    struct TRITONBACKEND_MemoryManager* manager, void** buffer,
    const TRITONSERVER_MemoryType memory_type, const int64_t memory_type_id,
    const uint64_t byte_size);

// Frees a buffer. Type and id must be those it was allocated with.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_MemoryManagerFree(
    struct TRITONBACKEND_MemoryManager* manager, void* buffer,
    const TRITONSERVER_MemoryType memory_type, const int64_t memory_type_id);

// Inputs. An input and all it hands out live until its request is released.

// Gives what is known of an input; any out-parameter may be null. The data are `*byte_size` bytes
// in `*buffer_count` buffers, to be read with TRITONBACKEND_InputBuffer. The shape includes the
// batch dimension where the model batches.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputProperties(
    struct TRITONBACKEND_Input* input, const char** name, TRITONSERVER_DataType* datatype,
    const int64_t** shape, uint32_t* dims_count, uint64_t* byte_size, uint32_t* buffer_count);

// As TRITONBACKEND_InputProperties, for the buffers that `host_policy_name` was given. Without such
// buffers, and for a null name, it describes the ordinary ones.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputPropertiesForHostPolicy(
    struct TRITONBACKEND_Input* input, const char* host_policy_name, const char** name,
    TRITONSERVER_DataType* datatype, const int64_t** shape, uint32_t* dims_count,
    uint64_t* byte_size, uint32_t* buffer_count);

// Gives buffer `index`, counted from 0. On entry `*memory_type` and `*memory_type_id` hold the
// backend's preference, on return the actual place; the server does not copy to meet a preference.
// INVALID_ARG when the index is out of range.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputBuffer(
    struct TRITONBACKEND_Input* input, const uint32_t index, const void** buffer,
    uint64_t* buffer_byte_size, TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);

// As TRITONBACKEND_InputBuffer, for the buffers that `host_policy_name` was given, or else the
// ordinary ones.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputBufferForHostPolicy(
    struct TRITONBACKEND_Input* input, const char* host_policy_name, const uint32_t index,
    const void** buffer, uint64_t* buffer_byte_size, TRITONSERVER_MemoryType* memory_type,
    int64_t* memory_type_id);

// Gives buffer `index`, counted from 0, and its attributes, which belong to the input. INVALID_ARG
// when the index is out of range.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InputBufferAttributes(
    struct TRITONBACKEND_Input* input, const uint32_t index, const void** buffer,
    struct TRITONSERVER_BufferAttributes** buffer_attributes);

// Outputs. An output and its buffer live until its response is sent or deleted.

// Allocates the output's buffer, to be filled before the response is sent. On entry `*memory_type`
// and `*memory_type_id` hold the backend's preference, on return the actual place; the backend must
// support any place. The buffer belongs to the output. Call it once for each output. Fails when the
// allocator of the request's owner does.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(
    struct TRITONBACKEND_Output* output, void** buffer, const uint64_t buffer_byte_size,
    TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);

// Gives the attributes of the output's buffer, which belong to the output. Valid after
// TRITONBACKEND_OutputBuffer.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_OutputBufferAttributes(
    struct TRITONBACKEND_Output* output, struct TRITONSERVER_BufferAttributes** buffer_attributes);

// Requests. While a backend owns a request (from a successful ModelInstanceExecute until
// TRITONBACKEND_RequestRelease) any of its threads may use it, one at a time. Everything these
// functions return belongs to the request.

// Gives the request's id, empty if it has none.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestId(
    struct TRITONBACKEND_Request* request, const char** id);

// Whether the client gave up on the request. A backend that checks this should then stop and
// respond with TRITONSERVER_ERROR_CANCELLED.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(
    struct TRITONBACKEND_Request* request, bool* is_cancelled);

// As TRITONBACKEND_RequestIsCancelled, for the request that the factory was made for, also after
// its release.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryIsCancelled(
    struct TRITONBACKEND_ResponseFactory* factory, bool* is_cancelled);

// Gives the number of the request's sequence, 0 for none. INVALID_ARG when the correlation id is a
// string.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationId(
    struct TRITONBACKEND_Request* request, uint64_t* id);

// Gives the timeout that the request asked for, in microseconds; 0 for none.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InferenceRequestTimeoutMicroseconds(
    struct TRITONBACKEND_Request* request, uint64_t* timeout);

// Gives the name of the request's sequence, empty for none. INVALID_ARG when the correlation id is
// a number.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationIdString(
    struct TRITONBACKEND_Request* request, const char** id);

// Gives the request's flags, TRITONSERVER_RequestFlag values or-ed together.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestFlags(
    struct TRITONBACKEND_Request* request, uint32_t* flags);

// Gives the number of parameters of the request.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(
    struct TRITONBACKEND_Request* request, uint32_t* count);

// Gives parameter `index`, counted from 0. `*vvalue` points to what TRITONSERVER_ParameterType says
// for `*type`. The order may differ from request to request. INVALID_ARG when the index is out of
// range.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestParameter(
    struct TRITONBACKEND_Request* request, const uint32_t index, const char** key,
    TRITONSERVER_ParameterType* type, const void** vvalue);

// Gives the number of inputs of the request, those added by the server included.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(
    struct TRITONBACKEND_Request* request, uint32_t* count);

// Gives the name of input `index`, counted from 0. INVALID_ARG when the index is out of range.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestInputName(
    struct TRITONBACKEND_Request* request, const uint32_t index, const char** input_name);

// Gives the input called `name`. INVALID_ARG when there is none.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestInput(
    struct TRITONBACKEND_Request* request, const char* name, struct TRITONBACKEND_Input** input);

// Gives input `index`, counted from 0. The order may differ from request to request, also within a
// batch. INVALID_ARG when the index is out of range.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(
    struct TRITONBACKEND_Request* request, const uint32_t index,
    struct TRITONBACKEND_Input** input);

// Gives the number of outputs that the request wants. Those and no others should be in its
// responses.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(
    struct TRITONBACKEND_Request* request, uint32_t* count);

// Gives the name of wanted output `index`, counted from 0. INVALID_ARG when the index is out of
// range.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(
    struct TRITONBACKEND_Request* request, const uint32_t index, const char** output_name);

// Predicts, without allocating, where an output's buffer would be placed. `name` and `byte_size`
// may be null when not yet known. On entry `*memory_type` and `*memory_type_id` hold the
// preference, on return the likely place; TRITONBACKEND_OutputBuffer may still decide otherwise.
// UNAVAILABLE when no prediction is possible.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestOutputBufferProperties(
    struct TRITONBACKEND_Request* request, const char* name, size_t* byte_size,
    TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);

// Returns the request to the server. On success the backend must not use it or anything that it
// handed out; on failure the backend still owns it. `release_flags` is a
// TRITONSERVER_RequestReleaseFlag: ALL when done, RESCHEDULE to have it executed again (INVALID_ARG
// unless the model's sequences are iterative).
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestRelease(
    struct TRITONBACKEND_Request* request, uint32_t release_flags);

// Gives the request's trace, or null when it is not traced. The trace belongs to the request.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_RequestTrace(
    struct TRITONBACKEND_Request* request, struct TRITONSERVER_InferenceTrace** trace);

// Response factories: they make responses for a request that is released already. One is not needed
// to respond before the release.

// Makes the factory of `request`. The backend owns it.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(
    struct TRITONBACKEND_ResponseFactory** factory, struct TRITONBACKEND_Request* request);

// Frees a factory. Responses made by it are not affected.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(
    struct TRITONBACKEND_ResponseFactory* factory);

// Sends flags without a response. A decoupled backend that has sent all responses ends the request
// with TRITONSERVER_RESPONSE_COMPLETE_FINAL.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseFactorySendFlags(
    struct TRITONBACKEND_ResponseFactory* factory, const uint32_t send_flags);

// Responses. The outputs of a response and their buffers must be made, by one thread at a time,
// before the request's next response is made: the allocator of the request's owner sees them in
// that order. Sending is free of order, and responses of different requests are independent.

// Makes a response to `request`. The backend owns it until it is sent.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseNew(
    struct TRITONBACKEND_Response** response, struct TRITONBACKEND_Request* request);

// Makes a response to the factory's request. The backend owns it until it is sent.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseNewFromFactory(
    struct TRITONBACKEND_Response** response, struct TRITONBACKEND_ResponseFactory* factory);

// Frees a response that is not to be sent. Not for responses that were.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(
    struct TRITONBACKEND_Response* response);

// Adds a parameter for the client: text, which is copied.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSetStringParameter(
    struct TRITONBACKEND_Response* response, const char* name, const char* value);

// Adds a parameter for the client: an integer.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSetIntParameter(
    struct TRITONBACKEND_Response* response, const char* name, const int64_t value);

// Adds a parameter for the client: a boolean.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSetBoolParameter(
    struct TRITONBACKEND_Response* response, const char* name, const bool value);

// Adds a parameter for the client: a floating-point number.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSetDoubleParameter(
    struct TRITONBACKEND_Response* response, const char* name, const double value);

// Adds an output without a buffer; get it with TRITONBACKEND_OutputBuffer. `shape` has `dims_count`
// entries, the batch dimension first where the model batches. The output belongs to the response.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(
    struct TRITONBACKEND_Response* response, struct TRITONBACKEND_Output** output, const char* name,
    const TRITONSERVER_DataType datatype, const int64_t* shape, const uint32_t dims_count);

// Sends a response, which belongs to the server from this call on, also when it fails. `send_flags`
// are TRITONSERVER_ResponseCompleteFlag values; each request needs exactly one response, or sending
// of flags, with FINAL. `error` is null for success; otherwise it is what the client is told, and
// the backend keeps and deletes it.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ResponseSend(
    struct TRITONBACKEND_Response* response, const uint32_t send_flags,
    struct TRITONSERVER_Error* error);

// States: tensors that the server keeps from one request of a sequence to the next.

// Makes the new value of state `name`; `shape` has `dims_count` entries. It belongs to the request
// and ends with it or with TRITONBACKEND_StateUpdate. INVALID_ARG when the model's configuration
// has no such state.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_StateNew(
    struct TRITONBACKEND_State** state, struct TRITONBACKEND_Request* request, const char* name,
    const TRITONSERVER_DataType datatype, const int64_t* shape, const uint32_t dims_count);

// Makes this value the one that the sequence's next request receives. The state must not be used
// afterwards. A state that is not updated keeps its old value.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_StateUpdate(
    struct TRITONBACKEND_State* state);

// Allocates the state's buffer, to be filled before TRITONBACKEND_StateUpdate. On entry
// `*memory_type` and `*memory_type_id` hold the backend's preference, on return the actual place.
// The buffer belongs to the state.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_StateBuffer(
    struct TRITONBACKEND_State* state, void** buffer, const uint64_t buffer_byte_size,
    TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);

// Gives the attributes of the state's buffer, which belong to the state. Valid after
// TRITONBACKEND_StateBuffer.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_StateBufferAttributes(
    struct TRITONBACKEND_State* state, struct TRITONSERVER_BufferAttributes** buffer_attributes);

// When the server may execute instances of a backend.
typedef enum TRITONBACKEND_execpolicy_enum {
  // An instance may execute again once its last TRITONBACKEND_ModelInstanceExecute has returned.
  TRITONBACKEND_EXECUTION_BLOCKING = 0,
  // Like BLOCKING, and only one of the instances on a device executes at a time.
  TRITONBACKEND_EXECUTION_DEVICE_BLOCKING = 1
} TRITONBACKEND_ExecutionPolicy;

// The backend. Its object lives from TRITONBACKEND_Initialize to TRITONBACKEND_Finalize, and what
// it returns belongs to it.

// Gives the name the backend was loaded under.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendName(
    struct TRITONBACKEND_Backend* backend, const char** name);

// Gives the backend's settings as a message, which belongs to the server: {"cmdline": {"<setting>":
// "<value>", ...}}.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendConfig(
    struct TRITONBACKEND_Backend* backend, struct TRITONSERVER_Message** backend_config);

// Gives the backend's execution policy. Default TRITONBACKEND_EXECUTION_BLOCKING.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendExecutionPolicy(
    struct TRITONBACKEND_Backend* backend, TRITONBACKEND_ExecutionPolicy* policy);

// Sets the backend's execution policy. Counts only within TRITONBACKEND_Initialize. Models with a
// sequence batcher are always executed as BLOCKING.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendSetExecutionPolicy(
    struct TRITONBACKEND_Backend* backend, TRITONBACKEND_ExecutionPolicy policy);

// Gives the folder that the backend's library lies in, as an absolute path.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendArtifacts(
    struct TRITONBACKEND_Backend* backend, TRITONBACKEND_ArtifactType* artifact_type,
    const char** location);

// Gives the memory manager, which belongs to the server.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendMemoryManager(
    struct TRITONBACKEND_Backend* backend, struct TRITONBACKEND_MemoryManager** manager);

// Gives the pointer last set with TRITONBACKEND_BackendSetState, null at first.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendState(
    struct TRITONBACKEND_Backend* backend, void** state);

// Stores a pointer of the backend's own; the server never follows it.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_BackendSetState(
    struct TRITONBACKEND_Backend* backend, void* state);

// Models. The object stands for one version and lives from TRITONBACKEND_ModelInitialize to
// TRITONBACKEND_ModelFinalize. What is returned belongs to it unless said otherwise.

// Gives the model's name.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelName(
    struct TRITONBACKEND_Model* model, const char** name);

// Gives the model's version.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelVersion(
    struct TRITONBACKEND_Model* model, uint64_t* version);

// Gives the model's folder, which holds the version folders, as an absolute path. Its files must
// not be changed.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelRepository(
    struct TRITONBACKEND_Model* model, TRITONBACKEND_ArtifactType* artifact_type,
    const char** location);

// Gives the model's configuration as a message, which the backend owns. `config_version` must be 1,
// otherwise UNSUPPORTED.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelConfig(
    struct TRITONBACKEND_Model* model, const uint32_t config_version,
    struct TRITONSERVER_Message** model_config);

// Whether the server wants the backend to complete the configuration from the model file, within
// TRITONBACKEND_ModelInitialize: inputs, outputs and maximal batch size where they are missing.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(
    struct TRITONBACKEND_Model* model, bool* auto_complete_config);

// Sets the completed configuration; allowed only within TRITONBACKEND_ModelInitialize. Inputs,
// outputs and maximal batch size are used, and a scheduling choice if there was none; the rest is
// ignored. The server may complete the configuration further: read it again with
// TRITONBACKEND_ModelConfig. `config_version` must be 1, otherwise UNSUPPORTED; the backend keeps
// the ownership of `model_config`.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(
    struct TRITONBACKEND_Model* model, const uint32_t config_version,
    struct TRITONSERVER_Message* model_config);

// Gives the server that serves the model.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelServer(
    struct TRITONBACKEND_Model* model, struct TRITONSERVER_Server** server);

// Gives the backend of the model.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBackend(
    struct TRITONBACKEND_Model* model, struct TRITONBACKEND_Backend** backend);

// Gives the pointer last set with TRITONBACKEND_ModelSetState, null at first.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelState(
    struct TRITONBACKEND_Model* model, void** state);

// Stores a pointer of the backend's own; the server never follows it.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelSetState(
    struct TRITONBACKEND_Model* model, void* state);

// Reports how much memory the model itself holds until TRITONBACKEND_ModelFinalize: `usage_size`
// entries, one for each memory type and id, which replace an earlier report. The backend keeps
// `usage`.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelReportMemoryUsage(
    struct TRITONBACKEND_Model* model, struct TRITONSERVER_BufferAttributes** usage,
    uint32_t usage_size);

// Model instances. The object lives from TRITONBACKEND_ModelInstanceInitialize to
// TRITONBACKEND_ModelInstanceFinalize, and what it returns belongs to it.

// Gives the instance's name, made from the group's name and a number.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(
    struct TRITONBACKEND_ModelInstance* instance, const char** name);

// Gives the kind of device that the instance runs on: CPU, GPU or MODEL.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(
    struct TRITONBACKEND_ModelInstance* instance, TRITONSERVER_InstanceGroupKind* kind);

// Gives the number of the GPU that the instance runs on; 0 for the CPU.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(
    struct TRITONBACKEND_ModelInstance* instance, int32_t* device_id);

// Gives the instance's host policy as a message, which belongs to the server: {"<policy>":
// {"<setting>": "<value>", ...}}.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceHostPolicy(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONSERVER_Message** host_policy);

// Whether the instance is passive: made, but never executed by the server.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceIsPassive(
    struct TRITONBACKEND_ModelInstance* instance, bool* is_passive);

// Gives the number of optimization profiles configured for the instance.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileCount(
    struct TRITONBACKEND_ModelInstance* instance, uint32_t* count);

// Gives the name of profile `index`, counted from 0. INVALID_ARG when the index is out of range.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceProfileName(
    struct TRITONBACKEND_ModelInstance* instance, const uint32_t index, const char** profile_name);

// Gives how many secondary devices the instance has.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSecondaryDeviceCount(
    struct TRITONBACKEND_ModelInstance* instance, uint32_t* count);

// Gives kind and number of secondary device `index`, counted from 0. INVALID_ARG when the index is
// out of range.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(struct TRITONBACKEND_ModelInstance* instance,
                                                     uint32_t index, const char** kind,
                                                     int64_t* id);

// Gives the model of the instance.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Model** model);

// Gives the pointer last set with TRITONBACKEND_ModelInstanceSetState, null at first.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(
    struct TRITONBACKEND_ModelInstance* instance, void** state);

// Stores a pointer of the backend's own; the server never follows it.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(
    struct TRITONBACKEND_ModelInstance* instance, void* state);

// As TRITONBACKEND_ModelReportMemoryUsage, for what the instance itself holds until
// TRITONBACKEND_ModelInstanceFinalize.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportMemoryUsage(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONSERVER_BufferAttributes** usage,
    uint32_t usage_size);

// Statistics. Metrics and the statistics protocols show what backends report here. The four
// timestamps of an execution are taken when it starts, when inputs are in place and the computation
// starts, when the computation ends and outputs are about to be moved, and when everything is sent.

// Counts one request, which must not be released yet. With `success` false the timestamps do not
// matter.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Request* request,
    const bool success, const uint64_t exec_start_ns, const uint64_t compute_start_ns,
    const uint64_t compute_end_ns, const uint64_t exec_end_ns);

// Makes statistics of one response, for decoupled models. The backend owns them, fills them with
// the functions below and may use them again.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    struct TRITONBACKEND_ModelInstanceResponseStatistics** response_statistics);

// Frees the statistics; the objects set in them stay the backend's.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics);

// Sets which instance made the response. Required.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    struct TRITONBACKEND_ModelInstance* model_instance);

// Sets the factory of the request that was responded to. Required.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    struct TRITONBACKEND_ResponseFactory* response_factory);

// Sets when the work on the response started. Required.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    uint64_t response_start);

// Sets when its outputs were about to be moved into their buffers; 0, the default, for a response
// without outputs.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    uint64_t compute_output_start);

// Sets when the response was done. Required.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    uint64_t response_end);

// Sets the error that the response was sent with, null for none. It stays the backend's and must
// live until the statistics are reported.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics,
    struct TRITONSERVER_Error* error);

// Counts one response. The statistics stay the backend's. INVALID_ARG when something required is
// missing.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceReportResponseStatistics(
    struct TRITONBACKEND_ModelInstanceResponseStatistics* response_statistics);

// Counts one execution. `batch_size` adds up those of its requests. Report only executions that
// succeeded.
TRITONBACKEND_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    struct TRITONBACKEND_ModelInstance* instance, const uint64_t batch_size,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns);

// What a backend exports. Only TRITONBACKEND_ModelInstanceExecute is required. The server never
// calls one of these for the same object on two threads at once, except where said.

// Called once, after the library is loaded. An error unloads it and fails the models that need it.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_Initialize(
    struct TRITONBACKEND_Backend* backend);

// Called once, before the library is unloaded. All memory must be freed and all threads joined on
// return.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_Finalize(
    struct TRITONBACKEND_Backend* backend);

// Called when a model version is loaded. An error fails the load; TRITONBACKEND_ModelFinalize is
// then not called.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(
    struct TRITONBACKEND_Model* model);

// Called when a model version is unloaded, after its instances are finalized. Everything of the
// model must be freed and its threads joined on return.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(
    struct TRITONBACKEND_Model* model);

// Called when an instance is made. Instances are made one after the other unless the backend
// allowed otherwise with TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading. An error
// fails the load of the model.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(
    struct TRITONBACKEND_ModelInstance* instance);

// Called when an instance goes, after its last execution. Everything of the instance must be freed
// and its threads joined on return.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(
    struct TRITONBACKEND_ModelInstance* instance);

// Executes a batch of `request_count` requests. Called for one instance by one thread at a time,
// for different instances in parallel. On success the backend owns the requests, though not the
// array: it must respond to each and release each, now or later. On failure the server keeps them,
// and sends the error for each; the backend must not have responded to or released any.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    struct TRITONBACKEND_ModelInstance* instance, struct TRITONBACKEND_Request** requests,
    const uint32_t request_count);

// Whether the instance can execute; an error makes its model not ready. Optional; without it,
// instances are ready.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(
    struct TRITONBACKEND_ModelInstance* instance);

// Called when the server wants to know the backend's preferences, which it sets in
// `backend_attributes` with the functions below. Optional; may be called several times. An error
// discards what was set.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(
    struct TRITONBACKEND_Backend* backend,
    struct TRITONBACKEND_BackendAttribute* backend_attributes);

// Backend attributes, for use within TRITONBACKEND_GetBackendAttribute. The server exports these.

// Adds a group that models without `instance_group` should get, the most wanted first. `count`
// instances for each device, 0 for the server's default; the `id_count` entries of `device_ids`
// name GPUs, null for all.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    struct TRITONBACKEND_BackendAttribute* backend_attributes,
    const TRITONSERVER_InstanceGroupKind kind, const uint64_t count, const uint64_t* device_ids,
    const uint64_t id_count);

// With true, TRITONBACKEND_ModelInstanceInitialize may be called for several instances at once.
// Default false.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    struct TRITONBACKEND_BackendAttribute* backend_attributes, bool enabled);

// Custom batching: the functions of a backend that decides which requests form a batch. All five or
// none. They run in the scheduler and must be quick. `userp` is the backend's own data about the
// batch being formed.

// Makes the data about the model that the other functions need; called when it is loaded. The
// backend owns `*batcher`, which must not change afterwards.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatcherInitialize(
    struct TRITONBACKEND_Batcher** batcher, struct TRITONBACKEND_Model* model);

// Frees a batcher; called when the model is unloaded.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatcherFinalize(
    struct TRITONBACKEND_Batcher* batcher);

// Whether `request` may join the batch. It is only lent, and must not be released. If it joins, the
// data about the batch must be updated.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatchIncludeRequest(
    struct TRITONBACKEND_Request* request, void* userp, bool* should_include);

// Called when a new batch begins: stores the data about it in `*userp`.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatchInitialize(
    const struct TRITONBACKEND_Batcher* batcher, void** userp);

// Called when the batch is formed: frees the data about it.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_ModelBatchFinalize(void* userp);

// Outputs of a response that is not sent yet. The server exports these two.

// Gives type and shape of the output called `name`; the shape has `*dim_count` entries and belongs
// to the response. NOT_FOUND when there is none.
TRITONBACKEND_ISPEC struct TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutputByName(
    struct TRITONBACKEND_Response* response, const char* name, TRITONSERVER_DataType* datatype,
    const int64_t** shape, uint64_t* dim_count);

// Gives name, type and shape of output `index`, counted from 0; name and shape belong to the
// response. INVALID_ARG when the index is out of range.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONBACKEND_InferenceResponseOutput(
    struct TRITONBACKEND_Response* response, const uint32_t index, const char** name,
    TRITONSERVER_DataType* datatype, const int64_t** shape, uint64_t* dim_count);

#ifdef __cplusplus
}  // extern "C"
#endif
