// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/context.h"

namespace nereid::tensorrt {

bool Context::SetProfile(int profile, StreamHandle stream) {
  return Call<bool>(object_, slots_.set_profile, int32_t{profile}, stream);
}

bool Context::SetInputShape(const char* tensor, const Dims& dims) {
  return Call<bool>(object_, slots_.set_input_shape, tensor, &dims);
}

Dims Context::ShapeOf(const char* tensor) const {
  return Call<Dims>(object_, slots_.tensor_shape, tensor);
}

bool Context::SetAddress(const char* tensor, void* memory) {
  return Call<bool>(object_, slots_.set_address, tensor, memory);
}

bool Context::SetInputAddress(const char* tensor, const void* memory) {
  return Call<bool>(object_, slots_.set_input_address, tensor, memory);
}

bool Context::SetOutputAllocator(const char* tensor, OutputAllocator* allocator) {
  return Call<bool>(object_, slots_.set_output_allocator, tensor, allocator);
}

int Context::InferShapes() {
  return Call<int32_t>(object_, slots_.infer_shapes, int32_t{0},
                       static_cast<const char**>(nullptr));
}

int64_t Context::MaxOutputSize(const char* tensor) const {
  return Call<int64_t>(object_, slots_.max_output_size, tensor);
}

bool Context::Enqueue(StreamHandle stream) { return Call<bool>(object_, slots_.enqueue, stream); }

}  // namespace nereid::tensorrt
