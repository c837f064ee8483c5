// SPDX-License-Identifier: Apache-2.0
// The functions of TensorFlow's C API that this backend calls. The library is opened at run time,
// so that the plug-in is built without TensorFlow, and only who serves its models needs it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend_kit/error.h"

namespace nereid::tensorflow {

// Objects of TensorFlow, as its C API declares them (TF_Status and so on).
namespace c {

struct Status;
struct Graph;
struct Operation;
struct Session;
struct SessionOptions;
struct ImportOptions;
struct Tensor;
struct Library;

// Laid out as TF_Buffer.
struct Buffer {
  const void* data = nullptr;
  size_t length = 0;
  void (*deallocator)(void*, size_t) = nullptr;
};

// Laid out as TF_Output.
struct Output {
  Operation* operation = nullptr;
  int index = 0;
};

// As large as TF_TString, an element of a tensor of texts.
struct alignas(8) Text {
  unsigned char bytes[24];
};

}  // namespace c

// The table of functions, under their names in TensorFlow without "TF_".
struct Library {
  const char* (*Version)();

  c::Status* (*NewStatus)();
  void (*DeleteStatus)(c::Status*);
  int (*GetCode)(const c::Status*);
  const char* (*Message)(const c::Status*);

  c::Buffer* (*NewBuffer)();
  void (*DeleteBuffer)(c::Buffer*);

  c::Graph* (*NewGraph)();
  void (*DeleteGraph)(c::Graph*);
  c::ImportOptions* (*NewImportGraphDefOptions)();
  void (*DeleteImportGraphDefOptions)(c::ImportOptions*);
  void (*GraphImportGraphDef)(c::Graph*, const c::Buffer*, const c::ImportOptions*, c::Status*);
  c::Operation* (*GraphOperationByName)(c::Graph*, const char* name);
  int (*OperationNumOutputs)(c::Operation*);
  int (*OperationOutputType)(c::Output);
  int (*GraphGetTensorNumDims)(c::Graph*, c::Output, c::Status*);
  void (*GraphGetTensorShape)(c::Graph*, c::Output, int64_t* dims, int count, c::Status*);
  void (*GraphGetOpDef)(c::Graph*, const char* name, c::Buffer*, c::Status*);

  c::SessionOptions* (*NewSessionOptions)();
  void (*DeleteSessionOptions)(c::SessionOptions*);
  void (*SetConfig)(c::SessionOptions*, const void* proto, size_t size, c::Status*);
  c::Session* (*NewSession)(c::Graph*, const c::SessionOptions*, c::Status*);
  c::Session* (*LoadSessionFromSavedModel)(const c::SessionOptions*, const c::Buffer* run_options,
                                           const char* folder, const char* const* tags,
                                           int tag_count, c::Graph*, c::Buffer* meta_graph,
                                           c::Status*);
  void (*CloseSession)(c::Session*, c::Status*);
  void (*DeleteSession)(c::Session*, c::Status*);
  void (*SessionRun)(c::Session*, const c::Buffer* run_options, const c::Output* inputs,
                     c::Tensor* const* input_values, int input_count, const c::Output* outputs,
                     c::Tensor** output_values, int output_count,
                     const c::Operation* const* targets, int target_count, c::Buffer* run_metadata,
                     c::Status*);

  c::Tensor* (*NewTensor)(int type, const int64_t* dims, int rank, void* data, size_t size,
                          void (*deallocator)(void* data, size_t size, void* argument),
                          void* argument);
  c::Tensor* (*AllocateTensor)(int type, const int64_t* dims, int rank, size_t size);
  void (*DeleteTensor)(c::Tensor*);
  int (*NumDims)(const c::Tensor*);
  int64_t (*Dim)(const c::Tensor*, int index);
  size_t (*TensorByteSize)(const c::Tensor*);
  void* (*TensorData)(const c::Tensor*);

  void (*StringInit)(c::Text*);
  void (*StringCopy)(c::Text* to, const char* from, size_t size);
  const char* (*StringGetDataPointer)(const c::Text*);
  size_t (*StringGetSize)(const c::Text*);
  void (*StringDealloc)(c::Text*);

  c::Library* (*LoadLibrary)(const char* path, c::Status*);
  void (*DeleteLibraryHandle)(c::Library*);
};

// For std::unique_ptr.
struct DeleteGraph {
  const Library* library;
  void operator()(c::Graph* graph) const { library->DeleteGraph(graph); }
};

// Returns the library, which is opened at the first call and stays. Fails if it is not there; a
// later call tries again.
backend::Result<const Library*> OpenLibrary();

}  // namespace nereid::tensorflow
