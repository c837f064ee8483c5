// SPDX-License-Identifier: Apache-2.0
// The C API of the server: create one in this process, or talk to it from a plug-in.
//
// Unless a function says otherwise:
// - It returns null on success and an error object on failure; the caller owns the error and passes
//   it to TRITONSERVER_ErrorDelete. On failure the out-parameters are unspecified and nothing
//   changed hands.
// - Pointer arguments must not be null and objects must be live. Strings are null-terminated UTF-8.
//   What is passed in is copied during the call and may be freed after it.
// - A string, shape or buffer that is returned belongs to the object it was asked of. It must not
//   be changed or freed, and is gone when that object is deleted.
// - Sizes are in bytes. A memory type id is the device number for GPU memory and 0 for CPU memory.
// - Any thread may call any function, but one object must not be used by two threads at once unless
//   its description allows it. TRITONSERVER_Server may be shared by all threads.
// - A build without some capability answers TRITONSERVER_ERROR_UNSUPPORTED with the function's
//   name.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Marks what the server exports. A program that provides these functions defines
// _COMPILING_TRITONSERVER; all others only refer to them.
#if defined(_COMPILING_TRITONSERVER)
#if defined(_MSC_VER)
#define TRITONSERVER_DECLSPEC __declspec(dllexport)
#elif defined(__GNUC__)
#define TRITONSERVER_DECLSPEC __attribute__((__visibility__("default")))
#else
#define TRITONSERVER_DECLSPEC
#endif
#elif defined(_MSC_VER)
#define TRITONSERVER_DECLSPEC __declspec(dllimport)
#else
#define TRITONSERVER_DECLSPEC
#endif

// The objects of this API. All are opaque: only pointers to them cross the boundary.
struct TRITONSERVER_BufferAttributes;
struct TRITONSERVER_Error;
struct TRITONSERVER_InferenceRequest;
struct TRITONSERVER_InferenceResponse;
struct TRITONSERVER_InferenceTrace;
struct TRITONSERVER_Message;
struct TRITONSERVER_Metrics;
struct TRITONSERVER_Parameter;
struct TRITONSERVER_ResponseAllocator;
struct TRITONSERVER_Server;
struct TRITONSERVER_ServerOptions;
struct TRITONSERVER_Metric;
struct TRITONSERVER_MetricFamily;
struct TRITONSERVER_MetricArgs;

// Version of this header. The minor number grows with additions, the major number with anything
// that can break a program.
#define TRITONSERVER_API_VERSION_MAJOR 1
#define TRITONSERVER_API_VERSION_MINOR 34

// Gives the API version of the library that is loaded. A program can run when `*major` equals the
// TRITONSERVER_API_VERSION_MAJOR it was compiled with and `*minor` is not below its
// TRITONSERVER_API_VERSION_MINOR. Never fails.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ApiVersion(uint32_t* major,
                                                                         uint32_t* minor);

// Element types of tensors. BYTES elements have a variable size; each is stored as a 4-byte
// little-endian length followed by that many bytes.
typedef enum TRITONSERVER_datatype_enum {
  TRITONSERVER_TYPE_INVALID = 0,
  TRITONSERVER_TYPE_BOOL = 1,
  TRITONSERVER_TYPE_UINT8 = 2,
  TRITONSERVER_TYPE_UINT16 = 3,
  TRITONSERVER_TYPE_UINT32 = 4,
  TRITONSERVER_TYPE_UINT64 = 5,
  TRITONSERVER_TYPE_INT8 = 6,
  TRITONSERVER_TYPE_INT16 = 7,
  TRITONSERVER_TYPE_INT32 = 8,
  TRITONSERVER_TYPE_INT64 = 9,
  TRITONSERVER_TYPE_FP16 = 10,
  TRITONSERVER_TYPE_FP32 = 11,
  TRITONSERVER_TYPE_FP64 = 12,
  TRITONSERVER_TYPE_BYTES = 13,
  TRITONSERVER_TYPE_BF16 = 14
} TRITONSERVER_DataType;

// Name of the type as the protocols write it: "FP32", "BYTES" ... and "<invalid>" for a value
// outside the enumeration. The string is static.
TRITONSERVER_DECLSPEC const char* TRITONSERVER_DataTypeString(TRITONSERVER_DataType datatype);

// The type that TRITONSERVER_DataTypeString would name `dtype`, or TRITONSERVER_TYPE_INVALID when
// there is none. Upper case only.
TRITONSERVER_DECLSPEC TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char* dtype);

// Bytes per element; 0 for BYTES, whose elements vary, and for INVALID.
TRITONSERVER_DECLSPEC uint32_t TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType datatype);

// Where a buffer is: ordinary host memory, page-locked host memory, or memory of a GPU.
typedef enum TRITONSERVER_memorytype_enum {
  TRITONSERVER_MEMORY_CPU = 0,
  TRITONSERVER_MEMORY_CPU_PINNED = 1,
  TRITONSERVER_MEMORY_GPU = 2
} TRITONSERVER_MemoryType;

// Name of the memory type: "CPU", "CPU_PINNED", "GPU", or "<invalid>". The string is static.
TRITONSERVER_DECLSPEC const char* TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype);

// Types of parameter values. A value is passed as `const void*`, to be read as the type says:
// STRING a null-terminated `const char*`, INT an `int64_t`, BOOL a `bool`, DOUBLE a `double`, BYTES
// the first byte of a block.
typedef enum TRITONSERVER_parametertype_enum {
  TRITONSERVER_PARAMETER_STRING = 0,
  TRITONSERVER_PARAMETER_INT = 1,
  TRITONSERVER_PARAMETER_BOOL = 2,
  TRITONSERVER_PARAMETER_DOUBLE = 3,
  TRITONSERVER_PARAMETER_BYTES = 4
} TRITONSERVER_ParameterType;

// Name of the parameter type: "STRING", "INT", "BOOL", "DOUBLE", "BYTES", or "<invalid>". The
// string is static.
TRITONSERVER_DECLSPEC const char* TRITONSERVER_ParameterTypeString(
    TRITONSERVER_ParameterType paramtype);

// Makes a named value, for instance a metric label or a model-load option. `value` points to what
// TRITONSERVER_ParameterType says for `type` and is copied. The caller owns the result. Returns
// null for TRITONSERVER_PARAMETER_BYTES; use TRITONSERVER_ParameterBytesNew for that.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(
    const char* name, const TRITONSERVER_ParameterType type, const void* value);

// Makes a named block of `size` bytes. The block is not copied: it must stay valid and unchanged
// until the parameter is deleted. The caller owns the result.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Parameter* TRITONSERVER_ParameterBytesNew(
    const char* name, const void* byte_ptr, const uint64_t size);

// Frees a parameter. The block behind a BYTES parameter is not freed.
TRITONSERVER_DECLSPEC void TRITONSERVER_ParameterDelete(struct TRITONSERVER_Parameter* parameter);

// What a model instance runs on. The numbers differ from those of ModelInstanceGroup.Kind in
// model_config.proto.
typedef enum TRITONSERVER_instancegroupkind_enum {
  TRITONSERVER_INSTANCEGROUPKIND_AUTO = 0,
  TRITONSERVER_INSTANCEGROUPKIND_CPU = 1,
  TRITONSERVER_INSTANCEGROUPKIND_GPU = 2,
  TRITONSERVER_INSTANCEGROUPKIND_MODEL = 3
} TRITONSERVER_InstanceGroupKind;

// Name of the kind: "AUTO", "CPU", "GPU", "MODEL", or "<invalid>". The string is static.
TRITONSERVER_DECLSPEC const char* TRITONSERVER_InstanceGroupKindString(
    TRITONSERVER_InstanceGroupKind kind);

// Severity of a log line. VERBOSE has levels of its own; see
// TRITONSERVER_ServerOptionsSetLogVerbose.
typedef enum TRITONSERVER_loglevel_enum {
  TRITONSERVER_LOG_INFO = 0,
  TRITONSERVER_LOG_WARN = 1,
  TRITONSERVER_LOG_ERROR = 2,
  TRITONSERVER_LOG_VERBOSE = 3
} TRITONSERVER_LogLevel;

// How a log line starts; the rest of the line is the same.
typedef enum TRITONSERVER_logformat_enum {
  // Level letter, month and day, time with microseconds: I0520 20:03:25.829575 3355 file.cc:441]
  TRITONSERVER_LOG_DEFAULT = 0,
  // UTC date and time, then the level letter: 2024-05-20T20:03:26Z I 3415 file.cc:441]
  TRITONSERVER_LOG_ISO8601 = 1
} TRITONSERVER_LogFormat;

// Whether a line of this level would be written now. Check before building a costly message.
TRITONSERVER_DECLSPEC bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level);

// Writes `msg` to the server's log if `level` is enabled. `filename` and `line` say where it comes
// from; control characters in `msg` are escaped. May be called from any thread. INVALID_ARG when
// `level` is outside the enumeration.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_LogMessage(
    TRITONSERVER_LogLevel level, const char* filename, const int line, const char* msg);

// What kind of failure an error is. Clients see these translated to HTTP and gRPC status codes.
typedef enum TRITONSERVER_errorcode_enum {
  TRITONSERVER_ERROR_UNKNOWN = 0,
  TRITONSERVER_ERROR_INTERNAL = 1,
  TRITONSERVER_ERROR_NOT_FOUND = 2,
  TRITONSERVER_ERROR_INVALID_ARG = 3,
  TRITONSERVER_ERROR_UNAVAILABLE = 4,
  TRITONSERVER_ERROR_UNSUPPORTED = 5,
  TRITONSERVER_ERROR_ALREADY_EXISTS = 6,
  TRITONSERVER_ERROR_CANCELLED = 7
} TRITONSERVER_Error_Code;

// Makes an error with a copy of `msg`. The caller owns it, and passes ownership by returning it.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code,
                                                                       const char* msg);

// Frees an error. Its strings are gone with it.
TRITONSERVER_DECLSPEC void TRITONSERVER_ErrorDelete(struct TRITONSERVER_Error* error);

// Code of the error.
TRITONSERVER_DECLSPEC TRITONSERVER_Error_Code
TRITONSERVER_ErrorCode(struct TRITONSERVER_Error* error);

// Name of the error's code, such as "Invalid argument". Belongs to `error`.
TRITONSERVER_DECLSPEC const char* TRITONSERVER_ErrorCodeString(struct TRITONSERVER_Error* error);

// Text of the error, without its code. Belongs to `error`.
TRITONSERVER_DECLSPEC const char* TRITONSERVER_ErrorMessage(struct TRITONSERVER_Error* error);

// Response allocators: where output tensors are placed. One allocator may serve many requests at
// once, so its callbacks must be thread-safe; a `userp` of its own for each request (see
// TRITONSERVER_InferenceRequestSetResponseCallback) usually makes locks needless. For each response
// the server calls start_fn if there is one, then for each output, when the backend asks for its
// buffer, alloc_fn and, if set, the buffer-attributes function. release_fn is called for each
// buffer when its response is deleted.

// Provides a buffer of `byte_size` bytes for the output `tensor_name`, preferably in `memory_type`
// and `memory_type_id`, and stores its actual place in the `actual_` parameters. `*buffer` may be
// null when `byte_size` is 0. `*buffer_userp` is the allocator's own value for the buffer: it is
// passed to the release function and to TRITONSERVER_InferenceResponseOutput. `userp` is the
// request's allocator pointer. An error, whose ownership passes to the server, fails the response.
typedef struct TRITONSERVER_Error* (*TRITONSERVER_ResponseAllocatorAllocFn_t)(
    struct TRITONSERVER_ResponseAllocator* allocator, const char* tensor_name, size_t byte_size,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, void* userp, void** buffer,
    void** buffer_userp, TRITONSERVER_MemoryType* actual_memory_type,
    int64_t* actual_memory_type_id);

// Called after a successful alloc_fn to describe that buffer further: it fills `buffer_attributes`,
// which the server owns, with memory type, id, byte size and, for GPU memory, the CUDA IPC handle.
// `buffer_userp` is what alloc_fn stored. An error, owned by the server from then on, fails the
// response.
typedef struct TRITONSERVER_Error* (*TRITONSERVER_ResponseAllocatorBufferAttributesFn_t)(
    struct TRITONSERVER_ResponseAllocator* allocator, const char* tensor_name,
    struct TRITONSERVER_BufferAttributes* buffer_attributes, void* userp, void* buffer_userp);

// Reports, without allocating, where the next output would be placed. `*memory_type` and
// `*memory_type_id` hold the caller's preference on entry and the result on return. `tensor_name`
// and `byte_size` are null when not yet known. Only a hint: alloc_fn may decide otherwise.
typedef struct TRITONSERVER_Error* (*TRITONSERVER_ResponseAllocatorQueryFn_t)(
    struct TRITONSERVER_ResponseAllocator* allocator, void* userp, const char* tensor_name,
    size_t* byte_size, TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);

// Takes back a buffer that alloc_fn provided, with the size and place recorded then. The server
// does not access the buffer afterwards, nor calls again if an error is returned; the server
// deletes the error.
typedef struct TRITONSERVER_Error* (*TRITONSERVER_ResponseAllocatorReleaseFn_t)(
    struct TRITONSERVER_ResponseAllocator* allocator, void* buffer, void* buffer_userp,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id);

// Announces that the following allocations belong to a new response of the request with this
// `userp`. Needed only by allocators that serve decoupled models and must distinguish responses.
typedef struct TRITONSERVER_Error* (*TRITONSERVER_ResponseAllocatorStartFn_t)(
    struct TRITONSERVER_ResponseAllocator* allocator, void* userp);

// Makes an allocator from its callbacks; `start_fn` may be null. The caller owns it and must keep
// it until every request that uses it is complete and every response deleted.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorNew(
    struct TRITONSERVER_ResponseAllocator** allocator,
    TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
    TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
    TRITONSERVER_ResponseAllocatorStartFn_t start_fn);

// Adds the function that describes buffers. Call it before the allocator is used by a request.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    struct TRITONSERVER_ResponseAllocator* allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn);

// Adds the function that reports where outputs would be placed. Call it before the allocator is
// used by a request. Without it, backends that ask get UNAVAILABLE.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorSetQueryFunction(
    struct TRITONSERVER_ResponseAllocator* allocator,
    TRITONSERVER_ResponseAllocatorQueryFn_t query_fn);

// Frees an allocator that no request and no response uses any more.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ResponseAllocatorDelete(
    struct TRITONSERVER_ResponseAllocator* allocator);

// Makes a message from JSON text of `byte_size` bytes, which need not be null-terminated and is
// copied. The caller owns the message. The text is not parsed before it is read.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(
    struct TRITONSERVER_Message** message, const char* base, size_t byte_size);

// Frees a message and the text it handed out.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MessageDelete(
    struct TRITONSERVER_Message* message);

// Gives the message as JSON text of `*byte_size` bytes. It belongs to the message.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(
    struct TRITONSERVER_Message* message, const char** base, size_t* byte_size);

// Formats of a metrics report. PROMETHEUS is the text exposition format.
typedef enum tritonserver_metricformat_enum {
  TRITONSERVER_METRIC_PROMETHEUS = 0
} TRITONSERVER_MetricFormat;

// Frees a metrics report and the text it handed out.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricsDelete(
    struct TRITONSERVER_Metrics* metrics);

// Gives the report as text of `*byte_size` bytes in `format`. It belongs to `metrics`. INVALID_ARG
// for an unknown format.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricsFormatted(
    struct TRITONSERVER_Metrics* metrics, TRITONSERVER_MetricFormat format, const char** base,
    size_t* byte_size);

// What a trace records; values may be or-ed together. MIN and MAX are kept for old programs and
// mean TIMESTAMPS.
typedef enum tritonserver_tracelevel_enum {
  // Nothing.
  TRITONSERVER_TRACE_LEVEL_DISABLED = 0,
  TRITONSERVER_TRACE_LEVEL_MIN = 1,
  TRITONSERVER_TRACE_LEVEL_MAX = 2,
  // When each step of the request happened.
  TRITONSERVER_TRACE_LEVEL_TIMESTAMPS = 4,
  // The contents of input and output tensors.
  TRITONSERVER_TRACE_LEVEL_TENSORS = 8
} TRITONSERVER_InferenceTraceLevel;

// Name of a single level, or "<unknown>". The string is static.
TRITONSERVER_DECLSPEC const char* TRITONSERVER_InferenceTraceLevelString(
    TRITONSERVER_InferenceTraceLevel level);

// The steps that a trace reports: first those with a timestamp, in the order in which a request
// takes them, then those that carry a tensor, then those that a backend names itself.
typedef enum tritonserver_traceactivity_enum {
  TRITONSERVER_TRACE_REQUEST_START = 0,
  TRITONSERVER_TRACE_QUEUE_START = 1,
  TRITONSERVER_TRACE_COMPUTE_START = 2,
  TRITONSERVER_TRACE_COMPUTE_INPUT_END = 3,
  TRITONSERVER_TRACE_COMPUTE_OUTPUT_START = 4,
  TRITONSERVER_TRACE_COMPUTE_END = 5,
  TRITONSERVER_TRACE_REQUEST_END = 6,
  TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT = 7,
  TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT = 8,
  TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT = 9,
  TRITONSERVER_TRACE_CUSTOM_ACTIVITY = 10
} TRITONSERVER_InferenceTraceActivity;

// Name of the activity, such as "REQUEST_START", or "<unknown>". The string is static.
TRITONSERVER_DECLSPEC const char* TRITONSERVER_InferenceTraceActivityString(
    TRITONSERVER_InferenceTraceActivity activity);

// Receives a timestamp of a trace, in nanoseconds of the steady clock. Called on the thread that
// takes the step, so it must be quick; calls for a trace and its children may overlap. `trace` is
// lent for the call: copy what is needed from it.
typedef void (*TRITONSERVER_InferenceTraceActivityFn_t)(
    struct TRITONSERVER_InferenceTrace* trace, TRITONSERVER_InferenceTraceActivity activity,
    uint64_t timestamp_ns, void* userp);

// Receives a tensor of a trace. `base`, `shape` and `name` are lent for the call; `base` lies in
// the memory that `memory_type` and `memory_type_id` name.
typedef void (*TRITONSERVER_InferenceTraceTensorActivityFn_t)(
    struct TRITONSERVER_InferenceTrace* trace, TRITONSERVER_InferenceTraceActivity activity,
    const char* name, TRITONSERVER_DataType datatype, const void* base, size_t byte_size,
    const int64_t* shape, uint64_t dim_count, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id, void* userp);

// Receives ownership of a trace, or of a child of it, once nothing more will be reported. The
// function deletes it or keeps it for later.
typedef void (*TRITONSERVER_InferenceTraceReleaseFn_t)(struct TRITONSERVER_InferenceTrace* trace,
                                                       void* userp);

// Makes a trace for one request. `parent_id` is the id of the trace it belongs to, 0 for none.
// `activity_fn` is called for the trace and for its children; `release_fn` once for each of them.
// Both receive `trace_userp`. The caller owns the trace until it is passed to
// TRITONSERVER_ServerInferAsync.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceNew(
    struct TRITONSERVER_InferenceTrace** trace, TRITONSERVER_InferenceTraceLevel level,
    uint64_t parent_id, TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void* trace_userp);

// As TRITONSERVER_InferenceTraceNew, with `tensor_activity_fn` for the tensors that level TENSORS
// records.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceTensorNew(
    struct TRITONSERVER_InferenceTrace** trace, TRITONSERVER_InferenceTraceLevel level,
    uint64_t parent_id, TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void* trace_userp);

// Adds an activity of type TRITONSERVER_TRACE_CUSTOM_ACTIVITY named `activity_name` at `timestamp`,
// in nanoseconds of the steady clock. For backends.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceReportActivity(
    struct TRITONSERVER_InferenceTrace* trace, uint64_t timestamp, const char* activity_name);

// Frees a trace that the caller owns.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceDelete(
    struct TRITONSERVER_InferenceTrace* trace);

// Number of the trace, never 0 and different for every trace of the process.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceId(
    struct TRITONSERVER_InferenceTrace* trace, uint64_t* id);

// Number of the trace that spawned this one, 0 for none.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceParentId(
    struct TRITONSERVER_InferenceTrace* trace, uint64_t* parent_id);

// Name of the model that the traced request runs. Belongs to `trace`.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceModelName(
    struct TRITONSERVER_InferenceTrace* trace, const char** model_name);

// Version of the model that the traced request runs.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceModelVersion(
    struct TRITONSERVER_InferenceTrace* trace, int64_t* model_version);

// Id of the traced request, empty if it has none. Belongs to `trace`.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceRequestId(
    struct TRITONSERVER_InferenceTrace* trace, const char** request_id);

// Makes a trace whose parent is `trace`, with the same level and callbacks, for a request that
// serves the traced one. The caller owns it until it is passed to TRITONSERVER_ServerInferAsync.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceSpawnChildTrace(
    struct TRITONSERVER_InferenceTrace* trace, struct TRITONSERVER_InferenceTrace** child_trace);

// Attaches propagation context, such as an OpenTelemetry carrier as JSON, to the trace. Replaces
// what was there.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceSetContext(
    struct TRITONSERVER_InferenceTrace* trace, const char* trace_context);

// Gives the context attached to the trace, empty if none. Belongs to `trace`.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceTraceContext(
    struct TRITONSERVER_InferenceTrace* trace, const char** trace_context);

// Place of a request in its sequence; values may be or-ed together.
typedef enum tritonserver_requestflag_enum {
  TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1,
  TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
} TRITONSERVER_RequestFlag;

// What happens to a request that is released.
typedef enum tritonserver_requestreleaseflag_enum {
  // The server is done with the request and its input buffers; the receiver owns them.
  TRITONSERVER_REQUEST_RELEASE_ALL = 1,
  // The backend gives the request back to be executed again. Consumed inside the server; release
  // callbacks do not see it.
  TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2
} TRITONSERVER_RequestReleaseFlag;

// What a delivered response means for its request.
typedef enum tritonserver_responsecompleteflag_enum {
  // No response of this request follows.
  TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
} TRITONSERVER_ResponseCompleteFlag;

// Returns a request to its owner. When `flags` has TRITONSERVER_REQUEST_RELEASE_ALL the callee owns
// `request` again and may reuse or delete it and its input buffers; other flags leave ownership
// where it is, so test for it. May be called before, between or after the responses, on any thread.
typedef void (*TRITONSERVER_InferenceRequestReleaseFn_t)(
    struct TRITONSERVER_InferenceRequest* request, const uint32_t flags, void* userp);

// Delivers a response, whose ownership passes to the callee. `flags` with
// TRITONSERVER_RESPONSE_COMPLETE_FINAL marks the end of the request's responses; `response` may
// then be null when the end comes without one. Called on a thread of the server, which waits
// meanwhile. A request's calls do not overlap.
typedef void (*TRITONSERVER_InferenceResponseCompleteFn_t)(
    struct TRITONSERVER_InferenceResponse* response, const uint32_t flags, void* userp);

// Makes a request for `model_name`; `model_version` -1 leaves the choice to the model's version
// policy. The caller owns the request until TRITONSERVER_ServerInferAsync accepts it, and again
// from the release callback on; it can be used for many inferences, one after the other. NOT_FOUND
// when the model is unknown, UNAVAILABLE when it is not ready.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestNew(
    struct TRITONSERVER_InferenceRequest** inference_request, struct TRITONSERVER_Server* server,
    const char* model_name, const int64_t model_version);

// Frees a request that the caller owns. INVALID_ARG while the server is still working on it.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestDelete(
    struct TRITONSERVER_InferenceRequest* inference_request);

// Id of the request, empty if it has none. Belongs to the request.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestId(
    struct TRITONSERVER_InferenceRequest* inference_request, const char** id);

// Sets the id that comes back in responses. The server gives it no meaning.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetId(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* id);

// Gives the request's flags, TRITONSERVER_RequestFlag values or-ed together. Default 0.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestFlags(
    struct TRITONSERVER_InferenceRequest* inference_request, uint32_t* flags);

// Replaces the request's flags by `flags`, TRITONSERVER_RequestFlag values or-ed together.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetFlags(
    struct TRITONSERVER_InferenceRequest* inference_request, uint32_t flags);

// Gives the number of the sequence that the request belongs to, 0 for none. INVALID_ARG when the
// correlation id is a string.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestCorrelationId(
    struct TRITONSERVER_InferenceRequest* inference_request, uint64_t* correlation_id);

// Gives the name of the sequence that the request belongs to, empty for none. Belongs to the
// request. INVALID_ARG when the correlation id is a number.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestCorrelationIdString(
    struct TRITONSERVER_InferenceRequest* inference_request, const char** correlation_id);

// Makes the request part of the sequence with this number; 0 takes it out of any. Replaces a string
// id.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetCorrelationId(
    struct TRITONSERVER_InferenceRequest* inference_request, uint64_t correlation_id);

// Makes the request part of the sequence with this name. Replaces a numeric id.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_InferenceRequestSetCorrelationIdString(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* correlation_id);

// Asks the server to give up on a request that it is working on. Nothing is promised: the request
// may still complete; if not, its response carries TRITONSERVER_ERROR_CANCELLED.
// TRITONSERVER_ServerInferAsync forgets earlier cancellations. May be called from any thread while
// the server works on the request.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestCancel(
    struct TRITONSERVER_InferenceRequest* inference_request);

// Whether TRITONSERVER_InferenceRequestCancel was called since the request was last submitted. May
// be called from any thread while the server works on the request.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestIsCancelled(
    struct TRITONSERVER_InferenceRequest* inference_request, bool* is_cancelled);

// Deprecated: as TRITONSERVER_InferenceRequestPriorityUInt64, cut to 32 bits.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestPriority(
    struct TRITONSERVER_InferenceRequest* inference_request, uint32_t* priority);

// Gives the request's priority. 1 is the most urgent; 0, the default, means the model's default
// level.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestPriorityUInt64(
    struct TRITONSERVER_InferenceRequest* inference_request, uint64_t* priority);

// Deprecated: use TRITONSERVER_InferenceRequestSetPriorityUInt64.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetPriority(
    struct TRITONSERVER_InferenceRequest* inference_request, uint32_t priority);

// Sets the request's priority; 1 is the most urgent, 0 means the model's default level. Models
// without priority levels ignore it.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetPriorityUInt64(
    struct TRITONSERVER_InferenceRequest* inference_request, uint64_t priority);

// Gives how long the request may wait in the queue, in microseconds. 0, the default, means no limit
// of its own.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestTimeoutMicroseconds(
    struct TRITONSERVER_InferenceRequest* inference_request, uint64_t* timeout_us);

// Sets how long the request may wait in the queue, in microseconds; 0 for no limit of its own.
// Counts only where the model's queue policy lets requests override its timeout, and can only
// shorten it.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    struct TRITONSERVER_InferenceRequest* inference_request, uint64_t timeout_us);

// Adds an input tensor without data; append its data afterwards. `shape` has `dim_count` entries,
// the batch dimension first where the model batches. INVALID_ARG when the request has an input of
// that name.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddInput(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* name,
    const TRITONSERVER_DataType datatype, const int64_t* shape, uint64_t dim_count);

// Adds the only input of a request as plain bytes; the server takes type and shape from the model's
// configuration. `name` is just a handle for the functions that append data, not a tensor's name.
// INVALID_ARG when the request has an input.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddRawInput(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* name);

// Removes an input and lets go of its buffers. INVALID_ARG when there is none of that name.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveInput(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* name);

// Removes all inputs and lets go of their buffers.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllInputs(
    struct TRITONSERVER_InferenceRequest* inference_request);

// Appends a buffer to the data of input `name`. The buffer is not copied: it must stay valid and
// unchanged until the input is removed, the request is deleted, or the release callback hands it
// back. INVALID_ARG when there is no input of that name.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestAppendInputData(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* name, const void* base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id);

// As TRITONSERVER_InferenceRequestAppendInputData, but for instances that run under
// `host_policy_name` only. Data added without a policy serves all others, so that must be given
// too.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* name, const void* base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
    const char* host_policy_name);

// As TRITONSERVER_InferenceRequestAppendInputData, with size and place taken from
// `buffer_attributes`, which is copied.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* name, const void* base,
    struct TRITONSERVER_BufferAttributes* buffer_attributes);

// Lets go of every buffer of input `name`, with or without a host policy. INVALID_ARG when there is
// no input of that name.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveAllInputData(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* name);

// Asks for output `name`. A request that asks for none gets all outputs of the model. Whether the
// model has it is checked by TRITONSERVER_ServerInferAsync.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestAddRequestedOutput(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* name);

// Takes back the wish for output `name`. Not asking for it before is no error.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestRemoveRequestedOutput(
    struct TRITONSERVER_InferenceRequest* inference_request, const char* name);

// Takes back all wishes; the request then gets all outputs of the model.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    struct TRITONSERVER_InferenceRequest* inference_request);

// Sets the function that hands the request back, and the pointer it receives. Required before
// TRITONSERVER_ServerInferAsync.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetReleaseCallback(
    struct TRITONSERVER_InferenceRequest* inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn, void* request_release_userp);

// Sets the allocator for outputs, the function that receives responses, and the pointer for each.
// Required before TRITONSERVER_ServerInferAsync. The allocator must outlive the responses; the two
// pointers are not used after the response with TRITONSERVER_RESPONSE_COMPLETE_FINAL was delivered
// and its buffers released.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetResponseCallback(
    struct TRITONSERVER_InferenceRequest* inference_request,
    struct TRITONSERVER_ResponseAllocator* response_allocator, void* response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn, void* response_userp);

// Adds the parameter `key` for the backend: a text, which is copied.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetStringParameter(
    struct TRITONSERVER_InferenceRequest* request, const char* key, const char* value);

// Adds the parameter `key` for the backend: an integer.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetIntParameter(
    struct TRITONSERVER_InferenceRequest* request, const char* key, const int64_t value);

// Adds the parameter `key` for the backend: a boolean.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetBoolParameter(
    struct TRITONSERVER_InferenceRequest* request, const char* key, const bool value);

// Adds the parameter `key` for the backend: a floating-point number.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceRequestSetDoubleParameter(
    struct TRITONSERVER_InferenceRequest* request, const char* key, const double value);

// Responses. The response callback owns what it is given; everything returned here but its error
// belongs to the response.

// Frees a response; its output buffers go to the allocator's release function.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceResponseDelete(
    struct TRITONSERVER_InferenceResponse* inference_response);

// The error of a failed inference, or null when it succeeded. Each call makes a new error, which
// the caller must delete; the same is true of Triton, whatever its header says.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceResponseError(
    struct TRITONSERVER_InferenceResponse* inference_response);

// Gives name and version of the model that made the response.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceResponseModel(
    struct TRITONSERVER_InferenceResponse* inference_response, const char** model_name,
    int64_t* model_version);

// Gives the id of the request, empty if it had none.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceResponseId(
    struct TRITONSERVER_InferenceResponse* inference_response, const char** request_id);

// Gives the number of parameters that the backend added.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameterCount(
    struct TRITONSERVER_InferenceResponse* inference_response, uint32_t* count);

// Gives parameter `index`, counted from 0. `*vvalue` points to what TRITONSERVER_ParameterType says
// for `*type`. INVALID_ARG when the index is out of range.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceResponseParameter(
    struct TRITONSERVER_InferenceResponse* inference_response, const uint32_t index,
    const char** name, TRITONSERVER_ParameterType* type, const void** vvalue);

// Gives the number of output tensors.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutputCount(
    struct TRITONSERVER_InferenceResponse* inference_response, uint32_t* count);

// Gives output `index`, counted from 0: its shape has `*dim_count` entries, its data `*byte_size`
// bytes in the memory that `*memory_type` and `*memory_type_id` name. `*userp` is what the
// allocator stored for the buffer. INVALID_ARG when the index is out of range.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_InferenceResponseOutput(
    struct TRITONSERVER_InferenceResponse* inference_response, const uint32_t index,
    const char** name, TRITONSERVER_DataType* datatype, const int64_t** shape, uint64_t* dim_count,
    const void** base, size_t* byte_size, TRITONSERVER_MemoryType* memory_type,
    int64_t* memory_type_id, void** userp);

// Gives the label of class `class_index` of output `index`, or null when the model has no label for
// it. INVALID_ARG when `index` is out of range.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_InferenceResponseOutputClassificationLabel(
    struct TRITONSERVER_InferenceResponse* inference_response, const uint32_t index,
    const size_t class_index, const char** label);

// Buffer attributes: size and place of a buffer, in a form that can grow. None of these functions
// fails on live objects.

// Makes attributes of an empty buffer in CPU memory. The caller owns them.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesNew(
    struct TRITONSERVER_BufferAttributes** buffer_attributes);

// Frees attributes that the caller made.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesDelete(
    struct TRITONSERVER_BufferAttributes* buffer_attributes);

// Sets the memory type id.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetMemoryTypeId(
    struct TRITONSERVER_BufferAttributes* buffer_attributes, int64_t memory_type_id);

// Sets the memory type.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetMemoryType(
    struct TRITONSERVER_BufferAttributes* buffer_attributes, TRITONSERVER_MemoryType memory_type);

// Sets the CUDA IPC handle of the buffer; the pointer is stored, not what it points to. Null for
// none.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetCudaIpcHandle(
    struct TRITONSERVER_BufferAttributes* buffer_attributes, void* cuda_ipc_handle);

// Sets the size in bytes.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetByteSize(
    struct TRITONSERVER_BufferAttributes* buffer_attributes, size_t byte_size);

// Gives the memory type id.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesMemoryTypeId(
    struct TRITONSERVER_BufferAttributes* buffer_attributes, int64_t* memory_type_id);

// Gives the memory type.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesMemoryType(
    struct TRITONSERVER_BufferAttributes* buffer_attributes, TRITONSERVER_MemoryType* memory_type);

// Gives the CUDA IPC handle as it was set, null for none.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesCudaIpcHandle(
    struct TRITONSERVER_BufferAttributes* buffer_attributes, void** cuda_ipc_handle);

// Gives the size in bytes.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_BufferAttributesByteSize(
    struct TRITONSERVER_BufferAttributes* buffer_attributes, size_t* byte_size);

// What determines which models are loaded.
typedef enum tritonserver_modelcontrolmode_enum {
  // All models of the repositories, once, at start.
  TRITONSERVER_MODEL_CONTROL_NONE = 0,
  // All models; changes of the repositories are followed when they are polled.
  TRITONSERVER_MODEL_CONTROL_POLL = 1,
  // The startup models, then those that load and unload calls name.
  TRITONSERVER_MODEL_CONTROL_EXPLICIT = 2
} TRITONSERVER_ModelControlMode;

// Whether executions wait for resources that models declare.
typedef enum tritonserver_ratelimitmode_enum {
  // Executions start as soon as an instance is free.
  TRITONSERVER_RATE_LIMIT_OFF = 0,
  // Executions start when their resources are free; instances that ran less often go first.
  TRITONSERVER_RATE_LIMIT_EXEC_COUNT = 1
} TRITONSERVER_RateLimitMode;

// Makes options with their defaults. The caller owns them; TRITONSERVER_ServerNew copies what it
// needs.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsNew(
    struct TRITONSERVER_ServerOptions** options);

// Frees options. Servers made from them are not affected.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsDelete(
    struct TRITONSERVER_ServerOptions* options);

// Sets the name that the server reports about itself. Default "triton".
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetServerId(
    struct TRITONSERVER_ServerOptions* options, const char* server_id);

// Adds a model repository. Call it once for each. A model whose name appears in two repositories is
// not served from either, unless model namespacing is on.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelRepositoryPath(
    struct TRITONSERVER_ServerOptions* options, const char* model_repository_path);

// Sets which models are loaded, and when. Default TRITONSERVER_MODEL_CONTROL_POLL.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelControlMode(
    struct TRITONSERVER_ServerOptions* options, TRITONSERVER_ModelControlMode mode);

// Adds a model to load at start in mode EXPLICIT; other modes ignore it. "*" alone means all
// models.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetStartupModel(
    struct TRITONSERVER_ServerOptions* options, const char* model_name);

// With true, models must bring a complete configuration; with false, the server fills in what the
// model file tells. Default true.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetStrictModelConfig(
    struct TRITONSERVER_ServerOptions* options, bool strict);

// Sets which custom configuration to use: models that have `configs/<model_config_name>.pbtxt` are
// configured by it, others by their config.pbtxt. Empty, the default, for config.pbtxt everywhere.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelConfigName(
    struct TRITONSERVER_ServerOptions* options, const char* model_config_name);

// Sets whether executions wait for declared resources. Default TRITONSERVER_RATE_LIMIT_OFF.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetRateLimiterMode(
    struct TRITONSERVER_ServerOptions* options, TRITONSERVER_RateLimitMode mode);

// Sets how many units of a resource device `device` has; -1 for every device. The device is ignored
// for resources that models declare global. By default, a resource has as many units as the largest
// demand of a model.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsAddRateLimiterResource(
    struct TRITONSERVER_ServerOptions* options, const char* resource_name,
    const size_t resource_count, const int device);

// Sets the size of the pool of page-locked host memory, in bytes. Backends share it through their
// memory manager. Default 256 MiB.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(struct TRITONSERVER_ServerOptions* options,
                                                      uint64_t size);

// Sets the size of the memory pool on GPU `gpu_device`, in bytes. Backends share it through their
// memory manager. Default 64 MiB for each GPU.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(struct TRITONSERVER_ServerOptions* options,
                                                    int gpu_device, uint64_t size);

// Sets how much address space, in bytes, is reserved on GPU `gpu_device` for sequence states that
// grow.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(struct TRITONSERVER_ServerOptions* options,
                                                    int gpu_device,
                                                    size_t cuda_virtual_address_size);

// Deprecated: means TRITONSERVER_ServerOptionsSetCacheConfig of cache "local" with this size in
// bytes. 0 for no cache.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetResponseCacheByteSize(
    struct TRITONSERVER_ServerOptions* options, uint64_t size);

// Chooses the response cache `cache_name`, loaded from `<cache
// directory>/<cache_name>/libtritoncache_<cache_name>.so`. `config_json` is handed to it as it is,
// for instance {"size": 1048576}.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCacheConfig(
    struct TRITONSERVER_ServerOptions* options, const char* cache_name, const char* config_json);

// Sets the folder that holds caches. Default /opt/tritonserver/caches.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCacheDirectory(
    struct TRITONSERVER_ServerOptions* options, const char* cache_dir);

// Sets the CUDA compute capability below which GPUs are not used.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(
    struct TRITONSERVER_ServerOptions* options, double cc);

// With true, TRITONSERVER_ServerNew fails when a model fails to load; with false, the server starts
// with the others. Default true.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetExitOnError(
    struct TRITONSERVER_ServerOptions* options, bool exit);

// With true, the server is ready only while all its models are; with false, as soon as it responds.
// Default true.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetStrictReadiness(
    struct TRITONSERVER_ServerOptions* options, bool strict);

// Sets how many seconds TRITONSERVER_ServerStop waits for work in flight. Default 30.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetExitTimeout(
    struct TRITONSERVER_ServerOptions* options, unsigned int timeout);

// Sets how many threads copy tensors that need copying. 0, the default, copies on the thread that
// asks.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error*
TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(struct TRITONSERVER_ServerOptions* options,
                                                      unsigned int thread_count);

// Sets how many models may load at the same time. Default 4.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelLoadThreadCount(
    struct TRITONSERVER_ServerOptions* options, unsigned int thread_count);

// Sets how often a failed load is tried again. Default 0.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelLoadRetryCount(
    struct TRITONSERVER_ServerOptions* options, unsigned int retry_count);

// With true, models of the same name in different repositories can be served side by side. Default
// false.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelNamespacing(
    struct TRITONSERVER_ServerOptions* options, bool enable_namespace);

// With true, GPUs access each other's memory directly where the machine allows it; where not,
// nothing fails. Default true.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetEnablePeerAccess(
    struct TRITONSERVER_ServerOptions* options, bool enable_peer_access);

// Sets the file that log lines are appended to. Empty, the default, for standard error. Log
// settings belong to the process, not to a server, and take effect at once.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogFile(
    struct TRITONSERVER_ServerOptions* options, const char* file);

// Switches log lines of level INFO on or off, for the process and at once.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogInfo(
    struct TRITONSERVER_ServerOptions* options, bool log);

// Switches log lines of level WARN on or off, for the process and at once.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogWarn(
    struct TRITONSERVER_ServerOptions* options, bool log);

// Switches log lines of level ERROR on or off, for the process and at once.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogError(
    struct TRITONSERVER_ServerOptions* options, bool log);

// Sets how log lines start, for the process and at once. Default TRITONSERVER_LOG_DEFAULT.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogFormat(
    struct TRITONSERVER_ServerOptions* options, const TRITONSERVER_LogFormat format);

// Sets up to which level verbose lines are written, for the process and at once. 0, the default,
// writes none.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetLogVerbose(
    struct TRITONSERVER_ServerOptions* options, int level);

// Switches the collection of metrics on or off. Default on.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMetrics(
    struct TRITONSERVER_ServerOptions* options, bool metrics);

// Switches metrics about GPUs on or off; nothing without TRITONSERVER_ServerOptionsSetMetrics.
// Default on.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetGpuMetrics(
    struct TRITONSERVER_ServerOptions* options, bool gpu_metrics);

// Switches metrics about CPU and memory on or off; nothing without
// TRITONSERVER_ServerOptionsSetMetrics. Default on.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetCpuMetrics(
    struct TRITONSERVER_ServerOptions* options, bool cpu_metrics);

// Sets how often GPU and CPU metrics are sampled, in milliseconds. Default 2000.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMetricsInterval(
    struct TRITONSERVER_ServerOptions* options, uint64_t metrics_interval_ms);

// Sets the folder that holds backends. Backend `be` is looked for as libtriton_be.so in the version
// folder, then the model folder, then `<backend_dir>/be`. Default /opt/tritonserver/backends.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetBackendDirectory(
    struct TRITONSERVER_ServerOptions* options, const char* backend_dir);

// Sets the folder that holds repository agents. Agent `ra` is
// `<repoagent_dir>/ra/libtritonrepoagent_ra.so`. Default /opt/tritonserver/repoagents.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetRepoAgentDirectory(
    struct TRITONSERVER_ServerOptions* options, const char* repoagent_dir);

// Refuses to load models onto a device whose memory is in use beyond `fraction`, between 0 and 1.
// For TRITONSERVER_INSTANCEGROUPKIND_GPU only. Without it there is no limit.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
    struct TRITONSERVER_ServerOptions* options, const TRITONSERVER_InstanceGroupKind kind,
    const int device_id, const double fraction);

// Sets a setting of backend `backend_name`, which reads it with TRITONBACKEND_BackendConfig. An
// empty name sets a setting for all backends.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetBackendConfig(
    struct TRITONSERVER_ServerOptions* options, const char* backend_name, const char* setting,
    const char* value);

// Sets a setting of host policy `policy_name`, such as "numa-node" or "cpu-cores". Instances with
// that policy are bound accordingly.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetHostPolicy(
    struct TRITONSERVER_ServerOptions* options, const char* policy_name, const char* setting,
    const char* value);

// Sets a setting of the metrics group `name`; an empty name means metrics in general.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerOptionsSetMetricsConfig(
    struct TRITONSERVER_ServerOptions* options, const char* name, const char* setting,
    const char* value);

// How a model batches.
typedef enum tritonserver_batchflag_enum {
  // In no way that the server can use.
  TRITONSERVER_BATCH_UNKNOWN = 1,
  // Along dimension 0 of all inputs and outputs.
  TRITONSERVER_BATCH_FIRST_DIM = 2
} TRITONSERVER_ModelBatchFlag;

// What a model index lists.
typedef enum tritonserver_modelindexflag_enum {
  // Only models that are ready.
  TRITONSERVER_INDEX_FLAG_READY = 1
} TRITONSERVER_ModelIndexFlag;

// How many responses a request gets.
typedef enum tritonserver_txn_property_flag_enum {
  // Exactly one.
  TRITONSERVER_TXN_ONE_TO_ONE = 1,
  // None, one or many.
  TRITONSERVER_TXN_DECOUPLED = 2
} TRITONSERVER_ModelTxnPropertyFlag;

// The server. A TRITONSERVER_Server may be used by any number of threads at once. Wherever a model
// version is asked for, -1 leaves the choice to the model's version policy.

// Makes a server and loads its models; returns when they are loaded or have failed. The caller owns
// the server. Fails when the options contradict each other, a repository cannot be read, or a model
// fails to load and exit-on-error is set.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerNew(
    struct TRITONSERVER_Server** server, struct TRITONSERVER_ServerOptions* options);

// Stops the server if that has not happened, and frees it. No other call may be running.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerDelete(
    struct TRITONSERVER_Server* server);

// Refuses new work, waits for work in flight up to the exit timeout, and unloads all models. A
// stopped server cannot be started again. An error means that work was left over when time ran out.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerStop(
    struct TRITONSERVER_Server* server);

// Changes how many seconds TRITONSERVER_ServerStop waits, also while the server runs.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerSetExitTimeout(
    struct TRITONSERVER_Server* server, unsigned int timeout);

// Adds a repository to a running server. Each of the `mapping_count` entries of `name_mapping` is a
// STRING parameter that serves the model folder of its name under the model name of its value.
// UNSUPPORTED unless models are controlled explicitly; ALREADY_EXISTS for a repository that is
// there; INVALID_ARG for a bad mapping.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerRegisterModelRepository(
    struct TRITONSERVER_Server* server, const char* repository_path,
    const struct TRITONSERVER_Parameter** name_mapping, const uint32_t mapping_count);

// Removes a repository from a running server; models loaded from it stay until unloaded.
// UNSUPPORTED unless models are controlled explicitly; NOT_FOUND for an unknown repository.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerUnregisterModelRepository(
    struct TRITONSERVER_Server* server, const char* repository_path);

// Looks for changes in the repositories and loads, reloads and unloads models accordingly; returns
// when done. UNAVAILABLE unless the mode is POLL.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerPollModelRepository(
    struct TRITONSERVER_Server* server);

// Whether the server can respond to requests at all.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerIsLive(
    struct TRITONSERVER_Server* server, bool* live);

// Whether the server is ready; what that takes is set by
// TRITONSERVER_ServerOptionsSetStrictReadiness.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerIsReady(
    struct TRITONSERVER_Server* server, bool* ready);

// Whether this version of the model is ready for inference. An unknown model is not ready, which is
// no error.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerModelIsReady(
    struct TRITONSERVER_Server* server, const char* model_name, const int64_t model_version,
    bool* ready);

// Gives the model's batching as TRITONSERVER_ModelBatchFlag values or-ed together. `voidp` may be
// null; otherwise `*voidp` becomes null for the flags there are today.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerModelBatchProperties(
    struct TRITONSERVER_Server* server, const char* model_name, const int64_t model_version,
    uint32_t* flags, void** voidp);

// Gives the model's transaction policy as TRITONSERVER_ModelTxnPropertyFlag values or-ed together.
// `voidp` may be null; otherwise `*voidp` becomes null for the flags there are today.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerModelTransactionProperties(
    struct TRITONSERVER_Server* server, const char* model_name, const int64_t model_version,
    uint32_t* txn_flags, void** voidp);

// Gives name, version and extensions of the server as a message, which the caller owns.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerMetadata(
    struct TRITONSERVER_Server* server, struct TRITONSERVER_Message** server_metadata);

// Gives the model's metadata, as the protocols report it, as a message, which the caller owns.
// NOT_FOUND for an unknown model, UNAVAILABLE for one that is not ready.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerModelMetadata(
    struct TRITONSERVER_Server* server, const char* model_name, const int64_t model_version,
    struct TRITONSERVER_Message** model_metadata);

// Gives the model's statistics as a message, which the caller owns. An empty `model_name` stands
// for all models. INVALID_ARG for an unknown model.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerModelStatistics(
    struct TRITONSERVER_Server* server, const char* model_name, const int64_t model_version,
    struct TRITONSERVER_Message** model_stats);

// Gives the model's configuration, completed with defaults, as a message, which the caller owns.
// `config_version` must be 1, otherwise UNSUPPORTED. NOT_FOUND for an unknown model, UNAVAILABLE
// for one that is not ready.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerModelConfig(
    struct TRITONSERVER_Server* server, const char* model_name, const int64_t model_version,
    const uint32_t config_version, struct TRITONSERVER_Message** model_config);

// Gives every model of the repositories with the state of its versions as a message, which the
// caller owns. `flags` are TRITONSERVER_ModelIndexFlag values or-ed together.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerModelIndex(
    struct TRITONSERVER_Server* server, uint32_t flags, struct TRITONSERVER_Message** model_index);

// Loads a model, or loads it anew when its folder or configuration has changed; returns when it is
// ready or has failed. A failed reload leaves the old one serving. UNAVAILABLE unless models are
// controlled explicitly; INVALID_ARG when the load fails.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerLoadModel(
    struct TRITONSERVER_Server* server, const char* model_name);

// As TRITONSERVER_ServerLoadModel, with `parameter_count` parameters: STRING "config" is a model
// configuration as JSON to use instead of the folder's; BYTES "file:<path>" gives the contents of a
// file of the model, which replaces the folder altogether and needs "config" too. INVALID_ARG for
// other parameters.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerLoadModelWithParameters(
    struct TRITONSERVER_Server* server, const char* model_name,
    const struct TRITONSERVER_Parameter** parameters, const uint64_t parameter_count);

// Starts to unload a model: it gets no new requests and is unloaded after the last one, which this
// call does not wait for. A model that is not loaded is no error. UNAVAILABLE unless models are
// controlled explicitly.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerUnloadModel(
    struct TRITONSERVER_Server* server, const char* model_name);

// As TRITONSERVER_ServerUnloadModel, and also unloads the models that were loaded for its sake
// only, such as the steps of an ensemble.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerUnloadModelAndDependents(
    struct TRITONSERVER_Server* server, const char* model_name);

// Takes a report of all metrics as they are now. The caller owns it. UNSUPPORTED when metrics are
// off.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerMetrics(
    struct TRITONSERVER_Server* server, struct TRITONSERVER_Metrics** metrics);

// Submits a request and returns without waiting. On success the server owns `inference_request`
// until its release callback, and responds through its response callback; on failure the caller
// keeps it and no callback is called. `trace` may be null; if not, the server owns it from this
// call on, also when it fails, until its release callback. INVALID_ARG for inputs or outputs that
// do not fit the model, UNAVAILABLE when the model is not ready, the queue is full or the server is
// stopping.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_ServerInferAsync(
    struct TRITONSERVER_Server* server, struct TRITONSERVER_InferenceRequest* inference_request,
    struct TRITONSERVER_InferenceTrace* trace);

// Kinds of metrics: only growing, freely set, or counting observations into buckets.
typedef enum TRITONSERVER_metrickind_enum {
  TRITONSERVER_METRIC_KIND_COUNTER = 0,
  TRITONSERVER_METRIC_KIND_GAUGE = 1,
  TRITONSERVER_METRIC_KIND_HISTOGRAM = 2
} TRITONSERVER_MetricKind;

// Custom metrics: what backends and embedders add to the server's report. Updates may come from any
// thread.

// Makes the family `name` with its help text. The caller owns it and deletes it after its metrics.
// Making a family that exists with the same kind and help gives another handle to it. INVALID_ARG
// for a name that Prometheus does not allow or that is used otherwise.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(
    struct TRITONSERVER_MetricFamily** family, const TRITONSERVER_MetricKind kind, const char* name,
    const char* description);

// Frees a family. INTERNAL while it still has metrics; nothing is freed then.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricFamilyDelete(
    struct TRITONSERVER_MetricFamily* family);

// Gives the kind of the family's metrics.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_GetMetricFamilyKind(
    struct TRITONSERVER_MetricFamily* family, TRITONSERVER_MetricKind* kind);

// Makes arguments for TRITONSERVER_MetricNewWithArgs. The caller owns them.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricArgsNew(
    struct TRITONSERVER_MetricArgs** args);

// Sets the upper bounds of a histogram's buckets, `buckets_count` values in ascending order; a
// bucket for everything above the last is added. The values are copied.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricArgsSetHistogram(
    struct TRITONSERVER_MetricArgs* args, const double* buckets, const uint64_t buckets_count);

// Frees arguments. Metrics made with them are not affected.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricArgsDelete(
    struct TRITONSERVER_MetricArgs* args);

// Makes the metric of `family` with these `label_count` STRING labels, which are copied. The caller
// owns it. The same labels again give another handle to the same metric. INVALID_ARG for a label of
// another type and for a histogram, which needs arguments.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricNew(
    struct TRITONSERVER_Metric** metric, struct TRITONSERVER_MetricFamily* family,
    const struct TRITONSERVER_Parameter** labels, const uint64_t label_count);

// As TRITONSERVER_MetricNew with further arguments, which are copied. Histograms need their
// buckets; other kinds take null.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricNewWithArgs(
    struct TRITONSERVER_Metric** metric, struct TRITONSERVER_MetricFamily* family,
    const struct TRITONSERVER_Parameter** labels, const uint64_t label_count,
    const struct TRITONSERVER_MetricArgs* args);

// Frees a metric; it leaves the report with its last handle. INTERNAL when its family is gone
// already.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricDelete(
    struct TRITONSERVER_Metric* metric);

// Gives the value of a counter or gauge. UNSUPPORTED for histograms.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricValue(
    struct TRITONSERVER_Metric* metric, double* value);

// Adds `value` to a counter or gauge. INVALID_ARG when it is negative and the metric a counter;
// UNSUPPORTED for histograms.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricIncrement(
    struct TRITONSERVER_Metric* metric, double value);

// Sets a gauge. UNSUPPORTED for other kinds.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricSet(
    struct TRITONSERVER_Metric* metric, double value);

// Counts an observation in a histogram. UNSUPPORTED for other kinds.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_MetricObserve(
    struct TRITONSERVER_Metric* metric, double value);

// Gives the kind of the metric, which is that of its family.
TRITONSERVER_DECLSPEC struct TRITONSERVER_Error* TRITONSERVER_GetMetricKind(
    struct TRITONSERVER_Metric* metric, TRITONSERVER_MetricKind* kind);

#ifdef __cplusplus
}  // extern "C"
#endif
