// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/engine.h"

#include <algorithm>
#include <fstream>

namespace nereid::tensorrt {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

// More than any network has; a wrong layout shows in numbers beyond this.
constexpr int kMaxTensors = 65536;
constexpr int kMaxProfiles = 65536;
constexpr int64_t kMaxShapeValues = 64;

TRITONSERVER_DataType TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return TRITONSERVER_TYPE_FP32;
    case ElementType::kHalf:
      return TRITONSERVER_TYPE_FP16;
    case ElementType::kInt8:
      return TRITONSERVER_TYPE_INT8;
    case ElementType::kUint8:
      return TRITONSERVER_TYPE_UINT8;
    case ElementType::kBf16:
      return TRITONSERVER_TYPE_BF16;
    case ElementType::kInt32:
      return TRITONSERVER_TYPE_INT32;
    case ElementType::kInt64:
      return TRITONSERVER_TYPE_INT64;
    case ElementType::kBool:
      return TRITONSERVER_TYPE_BOOL;
    case ElementType::kFp8:
    case ElementType::kInt4:
    case ElementType::kFp4:
      break;
  }
  return TRITONSERVER_TYPE_INVALID;
}

Result<std::vector<char>> ReadFile(const std::string& path, uint64_t size) {
  std::vector<char> bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<uint64_t>(file.gcount()) != size) {
    return Error::Unavailable(StrCat("cannot read all of '", path, "'"));
  }
  return bytes;
}

}  // namespace

bool TensorInfo::has_variable_dims() const {
  const auto sizes = dims.span();
  return std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; });
}

int FindTensor(const std::vector<TensorInfo>& tensors, std::string_view name) {
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].name == name) {
      return static_cast<int>(t);
    }
  }
  return -1;
}

Result<std::shared_ptr<const Engine>> Engine::Load(std::shared_ptr<const Library> library,
                                                   const Device& device, int dla_core,
                                                   const Plan& plan, Logger& logger) {
  OnDevice scope(*device.driver, device.id);
  NEREID_KIT_TRY(scope.TakeError());
  std::shared_ptr<Engine> engine(new Engine(std::move(library), device, logger));
  NEREID_KIT_TRY(engine->MakeRuntime(dla_core, plan.is_version_compatible));
  NEREID_KIT_TRY(engine->Deserialize(plan.path, plan.header));
  const Slots::Engine& slots = engine->library_->slots().engine;
  const auto tensors = Call<int32_t>(engine->engine_, slots.tensor_count);
  engine->profile_count_ = Call<int32_t>(engine->engine_, slots.profile_count);
  if (tensors < 0 || tensors > kMaxTensors || engine->profile_count_ < 0 ||
      engine->profile_count_ > kMaxProfiles) {
    return Error::Internal("TensorRT describes the plan in a way that is not understood");
  }
  engine->tensors_.resize(static_cast<size_t>(tensors));
  engine->ReadTensors();
  engine->is_refittable_ = Call<bool>(engine->engine_, slots.is_refittable);
  return std::shared_ptr<const Engine>(engine);
}

Engine::~Engine() {
  const OnDevice scope(*device_.driver, device_.id);
  if (engine_ != nullptr) {
    Delete(engine_);
  }
  if (runtime_ != nullptr) {
    Delete(runtime_);
  }
}

Error Engine::MakeRuntime(int dla_core, bool is_version_compatible) {
  runtime_ = library_->NewRuntime(logger_.ForMajor(library_->major()));
  if (runtime_ == nullptr) {
    return Error::Internal(StrCat("unable to create TensorRT runtime: ", logger_.TakeError()));
  }
  const Slots::Runtime& slots = library_->slots().runtime;
  if (is_version_compatible) {
    Call<void>(runtime_, slots.allow_host_code, true);
  }
  if (dla_core >= 0) {
    const auto cores = Call<int32_t>(runtime_, slots.dla_core_count);
    if (dla_core >= cores) {
      return Error::InvalidArgument(StrCat("unable to create TensorRT runtime with DLA Core ID: ",
                                           dla_core, ", available number of DLA cores: ", cores));
    }
    Call<void>(runtime_, slots.set_dla_core, int32_t{dla_core});
  }
  return {};
}

Error Engine::Deserialize(const std::string& path, const PlanHeader& header) {
  NEREID_KIT_ASSIGN(const std::vector<char> bytes, ReadFile(path, header.file_size));
  engine_ = Call<Object*>(runtime_, library_->slots().runtime.deserialize,
                          static_cast<const void*>(bytes.data()), bytes.size());
  if (engine_ != nullptr) {
    return {};
  }
  std::string text = StrCat("unable to create TensorRT engine: ", logger_.TakeError(),
                            " (the plan was made by TensorRT ", header.major, ".", header.minor,
                            ".", header.patch, ", and this is TensorRT ", library_->version());
  if (header.declared_size > header.file_size) {
    text += StrCat("; its header speaks of ", header.declared_size, " bytes, but the file has ",
                   header.file_size);
  }
  return Error::Internal(text + ")");
}

void Engine::ReadTensors() {
  const Slots::Engine& slots = library_->slots().engine;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    TensorInfo& tensor = tensors_[t];
    const auto* name = Call<const char*>(engine_, slots.tensor_name, static_cast<int32_t>(t));
    tensor.name = name != nullptr ? name : "";
    name = tensor.name.c_str();
    tensor.datatype = TypeOf(Call<ElementType>(engine_, slots.tensor_type, name));
    tensor.is_input = Call<IoMode>(engine_, slots.io_mode, name) == IoMode::kInput;
    tensor.is_shape = Call<bool>(engine_, slots.is_shape_tensor, name);
    tensor.is_linear = Call<int32_t>(engine_, slots.tensor_format, name) == kLinearFormat;
    if (const auto* format = Call<const char*>(engine_, slots.format_description, name);
        format != nullptr) {
      tensor.format = format;
    }
    tensor.dims = Call<Dims>(engine_, slots.tensor_shape, name);
    for (int p = 0; tensor.is_input && p < profile_count_; ++p) {
      tensor.profiles.push_back(ReadProfile(tensor, p));
    }
  }
}

ProfileRange Engine::ReadProfile(const TensorInfo& tensor, int profile) const {
  const auto shape = [&](ProfilePoint point) {
    return Call<Dims>(engine_, library_->slots().engine.profile_shape, tensor.name.c_str(),
                      int32_t{profile}, point);
  };
  ProfileRange range{.min = shape(ProfilePoint::kMin),
                     .opt = shape(ProfilePoint::kOpt),
                     .max = shape(ProfilePoint::kMax)};
  if (range.max.count != tensor.dims.count || range.min.count != tensor.dims.count) {
    range = {.min = tensor.dims, .opt = tensor.dims, .max = tensor.dims};
  }
  // A shape tensor has at most one dimension.
  const auto sizes = range.max.span();
  const int64_t count = sizes.empty() ? 1 : sizes[0];
  if (tensor.is_shape && sizes.size() <= 1 && count >= 0 && count <= kMaxShapeValues) {
    range.min_values = ReadValues(tensor, profile, ProfilePoint::kMin, count);
    range.opt_values = ReadValues(tensor, profile, ProfilePoint::kOpt, count);
    range.max_values = ReadValues(tensor, profile, ProfilePoint::kMax, count);
    if (range.min_values.size() != range.max_values.size()) {
      range.max_values.clear();  // none are known, so none are accepted
    }
  }
  return range;
}

std::vector<int64_t> Engine::ReadValues(const TensorInfo& tensor, int profile, ProfilePoint point,
                                        int64_t count) const {
  const Slots::Engine& slots = library_->slots().engine;
  const char* const name = tensor.name.c_str();
  if (slots.profile_values_64 >= 0) {
    const auto* values =
        Call<const int64_t*>(engine_, slots.profile_values_64, name, int32_t{profile}, point);
    return values != nullptr ? std::vector<int64_t>(values, values + count)
                             : std::vector<int64_t>();
  }
  const auto* values =
      Call<const int32_t*>(engine_, slots.profile_values, name, int32_t{profile}, point);
  return values != nullptr ? std::vector<int64_t>(values, values + count) : std::vector<int64_t>();
}

Result<std::unique_ptr<Context>> Engine::NewContext() const {
  constexpr int32_t kStaticMemory = 0;
  auto* const context =
      Call<Object*>(engine_, library_->slots().engine.create_context, kStaticMemory);
  if (context == nullptr) {
    return Error::Internal(StrCat("unable to create TensorRT context: ", logger_.TakeError()));
  }
  return std::make_unique<Context>(*library_, context);
}

}  // namespace nereid::tensorrt
