// SPDX-License-Identifier: Apache-2.0
// A program that embeds a server: it starts a server in this process, loads the model "simple" of
// examples/models, sends one request and prints the response. No socket is opened.
//
//   embed MODEL_REPOSITORY BACKEND_DIRECTORY
//
// docs/embedding.md explains ownership, and on which threads callbacks run.
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "triton/core/tritonserver.h"

enum { kNumbers = 16 };

// Every function of the API returns null, or an error that the caller must delete.
static void Check(struct TRITONSERVER_Error* error, const char* what) {
  if (error == NULL) return;
  fprintf(stderr, "%s: %s: %s\n", what, TRITONSERVER_ErrorCodeString(error),
          TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  exit(1);
}
#define CHECK(call) Check(call, #call)

// Outputs are written straight into memory that the program provides, here from malloc.
static struct TRITONSERVER_Error* Allocate(struct TRITONSERVER_ResponseAllocator* allocator,
                                           const char* tensor_name, size_t byte_size,
                                           TRITONSERVER_MemoryType memory_type,
                                           int64_t memory_type_id, void* userp, void** buffer,
                                           void** buffer_userp,
                                           TRITONSERVER_MemoryType* actual_memory_type,
                                           int64_t* actual_memory_type_id) {
  (void)allocator, (void)memory_type, (void)memory_type_id, (void)userp;
  *actual_memory_type = TRITONSERVER_MEMORY_CPU;
  *actual_memory_type_id = 0;
  *buffer_userp = NULL;
  *buffer = byte_size == 0 ? NULL : malloc(byte_size);
  if (byte_size == 0 || *buffer != NULL) return NULL;
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, tensor_name);
}

static struct TRITONSERVER_Error* Free(struct TRITONSERVER_ResponseAllocator* allocator,
                                       void* buffer, void* buffer_userp, size_t byte_size,
                                       TRITONSERVER_MemoryType memory_type,
                                       int64_t memory_type_id) {
  (void)allocator, (void)buffer_userp, (void)byte_size, (void)memory_type, (void)memory_type_id;
  free(buffer);
  return NULL;
}

// Passes the results of callbacks to the main thread.
struct Mailbox {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool is_released;
  bool is_completed;
  struct TRITONSERVER_InferenceResponse* response;
};

// Called when the server no longer needs the request and its input buffers.
static void OnRelease(struct TRITONSERVER_InferenceRequest* request, const uint32_t flags,
                      void* userp) {
  struct Mailbox* const box = userp;
  (void)request;
  if ((flags & TRITONSERVER_REQUEST_RELEASE_ALL) == 0) return;
  pthread_mutex_lock(&box->mutex);
  box->is_released = true;
  pthread_cond_signal(&box->changed);
  pthread_mutex_unlock(&box->mutex);
}

// A model that is not decoupled sends one response, which we own from here on.
static void OnResponse(struct TRITONSERVER_InferenceResponse* response, const uint32_t flags,
                       void* userp) {
  struct Mailbox* const box = userp;
  pthread_mutex_lock(&box->mutex);
  box->response = response;
  box->is_completed = (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
  pthread_cond_signal(&box->changed);
  pthread_mutex_unlock(&box->mutex);
}

static void Wait(struct Mailbox* box) {
  pthread_mutex_lock(&box->mutex);
  while (!box->is_released || !box->is_completed) pthread_cond_wait(&box->changed, &box->mutex);
  pthread_mutex_unlock(&box->mutex);
}

static struct TRITONSERVER_Server* StartServer(const char* repository, const char* backends) {
  struct TRITONSERVER_ServerOptions* options = NULL;
  struct TRITONSERVER_Server* server = NULL;
  CHECK(TRITONSERVER_ServerOptionsNew(&options));
  CHECK(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, repository));
  CHECK(TRITONSERVER_ServerOptionsSetBackendDirectory(options, backends));
  // Load only the models that we name.
  CHECK(
      TRITONSERVER_ServerOptionsSetModelControlMode(options, TRITONSERVER_MODEL_CONTROL_EXPLICIT));
  CHECK(TRITONSERVER_ServerOptionsSetStartupModel(options, "simple"));
  CHECK(TRITONSERVER_ServerOptionsSetLogInfo(options, false));
  CHECK(TRITONSERVER_ServerNew(&server, options));
  CHECK(TRITONSERVER_ServerOptionsDelete(options));
  return server;
}

static void AddInput(struct TRITONSERVER_InferenceRequest* request, const char* name,
                     const int32_t* numbers) {
  const int64_t shape[] = {1, kNumbers};  // a batch of one
  CHECK(TRITONSERVER_InferenceRequestAddInput(request, name, TRITONSERVER_TYPE_INT32, shape, 2));
  // The data is not copied: it must stay unchanged until the request is released.
  CHECK(TRITONSERVER_InferenceRequestAppendInputData(
      request, name, numbers, kNumbers * sizeof(*numbers), TRITONSERVER_MEMORY_CPU, 0));
}

static void PrintOutputs(struct TRITONSERVER_InferenceResponse* response) {
  uint32_t count = 0;
  CHECK(TRITONSERVER_InferenceResponseError(response));
  CHECK(TRITONSERVER_InferenceResponseOutputCount(response, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = NULL;
    const int64_t* shape = NULL;
    const void* base = NULL;
    void* userp = NULL;
    uint64_t rank = 0;
    size_t byte_size = 0;
    int64_t memory_type_id = 0;
    TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    CHECK(TRITONSERVER_InferenceResponseOutput(response, i, &name, &type, &shape, &rank, &base,
                                               &byte_size, &memory_type, &memory_type_id, &userp));
    const int32_t* const numbers = base;
    printf("%s:", name);
    for (size_t n = 0; n < byte_size / sizeof(*numbers); ++n) printf(" %" PRId32, numbers[n]);
    printf("\n");
  }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL_REPOSITORY BACKEND_DIRECTORY\n", argv[0]);
    return 2;
  }
  struct TRITONSERVER_Server* const server = StartServer(argv[1], argv[2]);
  struct TRITONSERVER_ResponseAllocator* allocator = NULL;
  struct TRITONSERVER_InferenceRequest* request = NULL;
  struct Mailbox box = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false, NULL};
  int32_t ascending[kNumbers], ones[kNumbers];
  for (int i = 0; i < kNumbers; ++i) {
    ascending[i] = i;
    ones[i] = 1;
  }

  CHECK(TRITONSERVER_ResponseAllocatorNew(&allocator, Allocate, Free, NULL));
  CHECK(TRITONSERVER_InferenceRequestNew(&request, server, "simple", -1));
  AddInput(request, "INPUT0", ascending);
  AddInput(request, "INPUT1", ones);
  CHECK(TRITONSERVER_InferenceRequestSetReleaseCallback(request, OnRelease, &box));
  CHECK(
      TRITONSERVER_InferenceRequestSetResponseCallback(request, allocator, NULL, OnResponse, &box));
  CHECK(TRITONSERVER_ServerInferAsync(server, request, NULL));
  Wait(&box);
  PrintOutputs(box.response);

  CHECK(TRITONSERVER_InferenceResponseDelete(box.response));
  CHECK(TRITONSERVER_InferenceRequestDelete(request));
  CHECK(TRITONSERVER_ResponseAllocatorDelete(allocator));
  CHECK(TRITONSERVER_ServerDelete(server));
  return 0;
}
