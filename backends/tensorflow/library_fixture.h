// SPDX-License-Identifier: Apache-2.0
// Functions in the place of TensorFlow's, for tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tensorflow_backend/library.h"

namespace nereid::tensorflow {

// What the fakes have for TensorFlow's objects.
namespace c {
struct Status {
  int code = 0;
  std::string message;
};
struct Tensor {
  std::vector<int64_t> dims;
  char* data = nullptr;
  size_t size = 0;
  void (*deallocator)(void*, size_t, void*) = nullptr;
  void* argument = nullptr;
  std::string own;
};
}  // namespace c

// What happened since the test began.
struct Calls {
  int open_tensors = 0;
  int open_texts = 0;
  std::vector<std::vector<int>> fetched;           // indexes of places, of each run
  std::vector<std::vector<int64_t>> input_shapes;  // of the last run
  std::vector<const void*> input_data;             // of the last run
  std::string failure;
  std::function<c::Tensor*(c::Tensor* input)> make_output;
};
inline Calls* calls = nullptr;

inline c::Tensor* NewTensor(int, const int64_t* dims, int rank, void* data, size_t size,
                            void (*deallocator)(void*, size_t, void*), void* argument) {
  ++calls->open_tensors;
  return new c::Tensor{.dims = {dims, dims + rank},
                       .data = static_cast<char*>(data),
                       .size = size,
                       .deallocator = deallocator,
                       .argument = argument,
                       .own = {}};
}
inline c::Tensor* AllocateTensor(int type, const int64_t* dims, int rank, size_t size) {
  c::Tensor* const tensor = NewTensor(type, dims, rank, nullptr, size, nullptr, nullptr);
  tensor->own.resize(size);
  tensor->data = tensor->own.data();
  return tensor;
}
inline void DeleteTensor(c::Tensor* tensor) {
  --calls->open_tensors;
  if (tensor->deallocator != nullptr) {
    tensor->deallocator(tensor->data, tensor->size, tensor->argument);
  }
  delete tensor;
}
inline void SessionRun(c::Session*, const c::Buffer*, const c::Output*, c::Tensor* const* values,
                       int input_count, const c::Output* outputs, c::Tensor** results,
                       int output_count, const c::Operation* const*, int, c::Buffer*,
                       c::Status* status) {
  calls->input_shapes.clear();
  calls->input_data.clear();
  for (int i = 0; i < input_count; ++i) {
    calls->input_shapes.push_back(values[i]->dims);
    calls->input_data.push_back(values[i]->data);
  }
  *status = {.code = calls->failure.empty() ? 0 : 3, .message = calls->failure};
  calls->fetched.emplace_back();
  for (int o = 0; calls->failure.empty() && o < output_count; ++o) {
    calls->fetched.back().push_back(outputs[o].index);
    results[o] = calls->make_output(values[0]);
  }
}

// A text owns memory, as large ones of TensorFlow do.
struct FakeText {
  std::string* text = nullptr;
};
inline FakeText& At(c::Text* text) { return *reinterpret_cast<FakeText*>(text); }

inline Library FakeLibrary() {
  Library table{};
  table.NewStatus = [] { return new c::Status; };
  table.DeleteStatus = [](c::Status* status) { delete status; };
  table.GetCode = [](const c::Status* status) { return status->code; };
  table.Message = [](const c::Status* status) { return status->message.c_str(); };
  table.SessionRun = SessionRun;
  table.NewTensor = NewTensor;
  table.AllocateTensor = AllocateTensor;
  table.DeleteTensor = DeleteTensor;
  table.NumDims = [](const c::Tensor* tensor) { return static_cast<int>(tensor->dims.size()); };
  table.Dim = [](const c::Tensor* tensor, int d) { return tensor->dims[static_cast<size_t>(d)]; };
  table.TensorByteSize = [](const c::Tensor* tensor) { return tensor->size; };
  table.TensorData = [](const c::Tensor* tensor) -> void* { return tensor->data; };
  table.StringInit = [](c::Text* text) {
    ++calls->open_texts;
    At(text).text = new std::string;
  };
  table.StringCopy = [](c::Text* text, const char* from, size_t size) {
    At(text).text->assign(from, size);
  };
  table.StringGetDataPointer = [](const c::Text* text) -> const char* {
    return At(const_cast<c::Text*>(text)).text->data();
  };
  table.StringGetSize = [](const c::Text* text) {
    return At(const_cast<c::Text*>(text)).text->size();
  };
  table.StringDealloc = [](c::Text* text) {
    --calls->open_texts;
    delete At(text).text;
  };
  return table;
}

inline const Library kFakes = FakeLibrary();

}  // namespace nereid::tensorflow
