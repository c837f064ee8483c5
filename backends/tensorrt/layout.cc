// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/layout.h"

namespace nereid::tensorrt {
namespace {

constexpr Slots kVersion10 = {
    .runtime = {.deserialize = 3, .set_dla_core = 5, .dla_core_count = 7, .allow_host_code = 21},
    .engine = {.create_context = 5,
               .is_refittable = 8,
               .profile_count = 10,
               .profile_values = 11,
               .profile_values_64 = -1,  // at 54, but only in the later ones
               .tensor_shape = 19,
               .tensor_type = 20,
               .is_shape_tensor = 22,
               .io_mode = 23,
               .tensor_format = 26,
               .format_description = 27,
               .profile_shape = 29,
               .tensor_count = 30,
               .tensor_name = 31},
    .context = {.set_profile = 17,
                .set_input_shape = 21,
                .tensor_shape = 22,
                .set_address = 24,
                .set_input_address = 26,
                .infer_shapes = 28,
                .set_output_allocator = 32,
                .max_output_size = 34,
                .enqueue = 37},
};

constexpr Slots kVersion11 = {
    .runtime = {.deserialize = 3, .set_dla_core = 4, .dla_core_count = 6, .allow_host_code = 20},
    .engine = {.create_context = 5,
               .is_refittable = 6,
               .profile_count = 8,
               .profile_values = -1,
               .profile_values_64 = 46,
               .tensor_shape = 15,
               .tensor_type = 16,
               .is_shape_tensor = 18,
               .io_mode = 19,
               .tensor_format = 22,
               .format_description = 23,
               .profile_shape = 25,
               .tensor_count = 26,
               .tensor_name = 27},
    .context = {.set_profile = 16,
                .set_input_shape = 20,
                .tensor_shape = 21,
                .set_address = 23,
                .set_input_address = 25,
                .infer_shapes = 27,
                .set_output_allocator = 31,
                .max_output_size = 33,
                .enqueue = 36},
};

}  // namespace

const Slots* SlotsOf(int major) {
  switch (major) {
    case 10:
      return &kVersion10;
    case 11:
      return &kVersion11;
    default:
      return nullptr;
  }
}

int MajorOf(int version) { return version >= 100000 ? version / 10000 : version / 1000; }

std::string VersionText(int version) {
  const int scale = version >= 100000 ? 10000 : 1000;
  return std::to_string(version / scale) + "." + std::to_string(version % scale / 100) + "." +
         std::to_string(version % 100);
}

void Delete(Object* object) {
  constexpr int kDeletingDestructor = 1;
  reinterpret_cast<void (*)(Object*)>(object->functions[kDeletingDestructor])(object);
}

}  // namespace nereid::tensorrt
