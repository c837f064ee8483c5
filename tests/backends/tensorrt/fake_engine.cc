// SPDX-License-Identifier: Apache-2.0
#include "fake_engine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string_view>

namespace fake_tensorrt {
namespace {

constexpr size_t kHeaderBytes = 64;

struct Driver {
  int (*enqueue)(void* stream, void (*work)(void*), void* user);
  void* (*resolve)(void* address, size_t size);
  int (*has_context)();
  int (*synchronize)(void* stream);
};

const Driver& TheDriver() {
  static const Driver driver = [] {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    Driver found = {};
    found.enqueue = reinterpret_cast<decltype(found.enqueue)>(dlsym(library, "fakeCudaEnqueue"));
    found.resolve = reinterpret_cast<decltype(found.resolve)>(dlsym(library, "fakeCudaResolve"));
    found.has_context =
        reinterpret_cast<decltype(found.has_context)>(dlsym(library, "fakeCudaHasContext"));
    found.synchronize =
        reinterpret_cast<decltype(found.synchronize)>(dlsym(library, "cuStreamSynchronize"));
    return found;
  }();
  return driver;
}

std::vector<int64_t> ParseDims(const std::string& text) {
  std::vector<int64_t> dims;
  if (text == "scalar") return dims;
  std::istringstream stream(text);
  std::string part;
  while (std::getline(stream, part, 'x')) dims.push_back(std::stoll(part));
  return dims;
}

Range ParseRange(const std::string& text) {
  std::istringstream stream(text);
  std::string min;
  std::string opt;
  std::string max;
  std::getline(stream, min, '/');
  std::getline(stream, opt, '/');
  std::getline(stream, max, '/');
  return {ParseDims(min), ParseDims(opt), ParseDims(max)};
}

bool ParseType(const std::string& text, Tensor* tensor) {
  struct Type {
    std::string_view name;
    int type;
    size_t element;
  };
  // Constants of the program: a table that the first caller fills is unsafe in the eyes of TSan,
  // which does not see how a library without it waits for that caller.
  static constexpr Type kTypes[] = {{"FP32", 0, 4},  {"FP16", 1, 2}, {"INT8", 2, 1},
                                    {"INT32", 3, 4}, {"BOOL", 4, 1}, {"UINT8", 5, 1},
                                    {"FP8", 6, 1},   {"BF16", 7, 2}, {"INT64", 8, 8}};
  for (const Type& known : kTypes) {
    if (known.name != text) continue;
    tensor->type = known.type;
    tensor->element = known.element;
    return true;
  }
  return false;
}

bool ParseLine(const std::string& line, Engine* engine) {
  std::istringstream words(line);
  std::string kind;
  if (!(words >> kind)) return true;
  if (kind == "option") {
    std::string name;
    std::string value;
    words >> name >> value;
    engine->options[name] = value;
    return true;
  }
  Tensor tensor;
  std::string type;
  std::string dims;
  words >> tensor.name >> type >> dims;
  tensor.is_input = kind == "input" || kind == "shape_input";
  tensor.is_shape = kind == "shape_input" || kind == "shape_output";
  tensor.dims = ParseDims(dims);
  std::string rest;
  while (words >> rest) {
    if (tensor.is_input) {
      tensor.profiles.push_back(ParseRange(rest));
    } else if (tensor.operation.empty()) {
      tensor.operation = rest;
    } else {
      tensor.arguments.push_back(rest);
    }
  }
  engine->tensors.push_back(tensor);
  return ParseType(type, &engine->tensors.back());
}

size_t CountOf(const std::vector<int64_t>& shape) {
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  return count;
}

template <typename T>
void AddElements(const void* a, const void* b, void* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    static_cast<T*>(to)[i] =
        static_cast<T>(static_cast<const T*>(a)[i] + static_cast<const T*>(b)[i]);
  }
}

// One operation with everything that it needs.
struct Step {
  std::string operation;
  int32_t type = 0;
  size_t element = 4;
  std::vector<int64_t> shape;  // of the result
  std::vector<std::vector<int64_t>> argument_shapes;
  std::vector<void*> arguments;
  void* result = nullptr;

  void* On(void* address, size_t bytes) const {
    return bytes == 0 ? nullptr : TheDriver().resolve(address, bytes);
  }

  void Run() const {
    const size_t count = CountOf(shape);
    void* const to = On(result, count * element);
    if (count == 0) return;
    if (operation == "copy") {
      std::memcpy(to, On(arguments[0], count * element), count * element);
    } else if (operation == "add") {
      const void* const a = On(arguments[0], count * element);
      const void* const b = On(arguments[1], count * element);
      if (type == 0) AddElements<float>(a, b, to, count);
      if (type == 3) AddElements<int32_t>(a, b, to, count);
      if (type == 8) AddElements<int64_t>(a, b, to, count);
    } else if (operation == "fill") {
      for (size_t i = 0; i < count; ++i) static_cast<float*>(to)[i] = 1;
    } else if (operation == "mean") {
      const size_t all = CountOf(argument_shapes[0]);
      const auto* const from = static_cast<const float*>(On(arguments[0], all * element));
      for (size_t row = 0; row < count; ++row) {
        float sum = 0;
        for (size_t i = 0; i < all / count; ++i) sum += from[row * (all / count) + i];
        static_cast<float*>(to)[row] = sum / static_cast<float>(all / count);
      }
    }
  }
};

// Holds the steps of executions until the process ends.
void Keep(std::unique_ptr<std::vector<Step>> steps) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<std::vector<Step>>>();
  const std::lock_guard<std::mutex> lock(mutex);
  kept->push_back(std::move(steps));
}

}  // namespace

void Note(const std::string& line) {
  const char* const path = std::getenv("FAKE_CUDA_LOG");
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t written = write(file, text.data(), text.size());
  close(file);
}

Dims ToDims(const std::vector<int64_t>& sizes) {
  Dims dims;
  dims.count = static_cast<int32_t>(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) dims.sizes[i] = sizes[i];
  return dims;
}

const Tensor* Engine::Find(const char* name) const {
  for (const Tensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

int32_t Engine::ProfileCount() const {
  size_t count = 1;
  for (const Tensor& tensor : tensors) count = std::max(count, tensor.profiles.size());
  return static_cast<int32_t>(count);
}

namespace {

const std::vector<int64_t>& AtPoint(const Range& range, int32_t point) {
  return point == 0 ? range.min : point == 1 ? range.opt : range.max;
}

}  // namespace

Dims Engine::ProfileShape(const char* name, int32_t profile, int32_t point) const {
  const Tensor& tensor = *Find(name);
  if (tensor.is_shape || tensor.profiles.empty()) return ToDims(tensor.dims);
  return ToDims(AtPoint(tensor.profiles.at(static_cast<size_t>(profile)), point));
}

const std::vector<int64_t>& Engine::ProfileValues(const char* name, int32_t profile,
                                                  int32_t point) const {
  return AtPoint(Find(name)->profiles.at(static_cast<size_t>(profile)), point);
}

bool Engine::Fails(const char* function) const {
  const auto found = options.find("fails");
  return found != options.end() && found->second == function;
}

std::shared_ptr<Engine> Deserialize(const void* data, size_t size, int version, const Log& log) {
  if (TheDriver().has_context() == 0) {
    log(1, "no device is the current one");
    return nullptr;
  }
  const auto* const bytes = static_cast<const unsigned char*>(data);
  if (size < kHeaderBytes || std::memcmp(bytes, "ftrt", 4) != 0) {
    log(1,
        "IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Magic tag does not match)");
    return nullptr;
  }
  if (bytes[24] * 10000 + bytes[25] * 100 != version / 100 * 100) {
    log(1, "The engine plan file is not compatible with this version of TensorRT");
    return nullptr;
  }
  auto engine = std::make_shared<Engine>();
  std::istringstream lines(
      std::string(reinterpret_cast<const char*>(bytes) + kHeaderBytes, size - kHeaderBytes));
  std::string line;
  while (std::getline(lines, line)) {
    if (!ParseLine(line, engine.get())) {
      log(1, "the plan is damaged");
      return nullptr;
    }
  }
  return engine;
}

bool Context::SetProfile(int32_t index) {
  if (index < 0 || index >= engine->ProfileCount() || engine->Fails("set_profile")) return false;
  profile = index;
  return true;
}

bool Context::SetInputShape(const char* name, const Dims& dims) {
  const Tensor* const tensor = engine->Find(name);
  if (tensor == nullptr || engine->Fails("set_input_shape")) return false;
  if (!tensor->profiles.empty() && !tensor->is_shape) {
    const Range& range = tensor->profiles.at(static_cast<size_t>(profile));
    if (static_cast<size_t>(dims.count) != range.max.size()) return false;
    for (size_t d = 0; d < range.max.size(); ++d) {
      if (dims.sizes[d] < range.min[d] || dims.sizes[d] > range.max[d]) {
        log(1, "IExecutionContext::setInputShape: Error Code 3: API Usage Error");
        return false;
      }
    }
  }
  shapes[name] = std::vector<int64_t>(dims.sizes, dims.sizes + dims.count);
  return true;
}

std::vector<int64_t> Context::InputShape(const Tensor& tensor) const {
  const auto found = shapes.find(tensor.name);
  return found != shapes.end() ? found->second : tensor.dims;
}

std::vector<int64_t> Context::Values(const std::string& name) const {
  const Tensor& tensor = *engine->Find(name.c_str());
  const size_t count = CountOf(tensor.dims);
  std::vector<int64_t> values(count, 1);
  const auto address = addresses.find(name);
  if (address == addresses.end() || address->second == nullptr) return values;
  for (size_t v = 0; v < count; ++v) {
    values[v] = tensor.element == 4 ? static_cast<const int32_t*>(address->second)[v]
                                    : static_cast<const int64_t*>(address->second)[v];
  }
  return values;
}

std::vector<int64_t> Context::OutputShape(const Tensor& tensor) const {
  if (tensor.is_shape) return tensor.dims;
  if (tensor.operation == "fill") return Values(tensor.arguments[0]);
  if (tensor.operation == "nonzero") return {-1};
  std::vector<int64_t> shape = InputShape(*engine->Find(tensor.arguments[0].c_str()));
  if (tensor.operation == "mean") shape = {shape[0], 1};
  return shape;
}

Dims Context::ShapeOf(const char* name) const {
  const Tensor& tensor = *engine->Find(name);
  return ToDims(tensor.is_input ? InputShape(tensor) : OutputShape(tensor));
}

int32_t Context::InferShapes() {
  if (engine->Fails("infer_shapes")) return 1;
  int32_t missing = 0;
  for (const Tensor& tensor : engine->tensors) {
    if (!tensor.is_input) continue;
    for (const int64_t size : InputShape(tensor)) missing += size < 0 ? 1 : 0;
  }
  return missing;
}

int64_t Context::MaxOutputSize(const char* name) const {
  const Tensor& tensor = *engine->Find(name);
  if (engine->Fails("max_output_size")) return -1;
  return static_cast<int64_t>(CountOf(OutputShape(tensor)) * tensor.element);
}

bool Context::Enqueue(void* stream) {
  if (engine->Fails("enqueue")) {
    log(1, "IExecutionContext::enqueueV3: Error Code 1: Cuda Runtime");
    return false;
  }
  std::string noted = "enqueue profile " + std::to_string(profile);
  auto made = std::make_unique<std::vector<Step>>();
  std::vector<Step>* const steps = made.get();
  for (const Tensor& tensor : engine->tensors) {
    if (tensor.is_input) {
      noted += " " + tensor.name + "[";
      for (const int64_t size : InputShape(tensor)) noted += std::to_string(size) + ",";
      noted += "]";
      continue;
    }
    if (tensor.operation == "values") {
      const std::vector<int64_t> values = Values(tensor.arguments[0]);
      for (size_t v = 0; v < values.size(); ++v) {
        if (tensor.element == 8) static_cast<int64_t*>(addresses[tensor.name])[v] = values[v];
        if (tensor.element == 4) {
          static_cast<int32_t*>(addresses[tensor.name])[v] = static_cast<int32_t>(values[v]);
        }
      }
      continue;
    }
    if (tensor.operation == "nonzero") {
      // As in TensorRT, this waits for the inputs.
      TheDriver().synchronize(stream);
      const Tensor& from = *engine->Find(tensor.arguments[0].c_str());
      const size_t count = CountOf(InputShape(from));
      std::vector<float> found;
      const auto* const data =
          static_cast<const float*>(TheDriver().resolve(addresses[from.name], count * 4));
      for (size_t i = 0; i < count; ++i) {
        if (data[i] != 0) found.push_back(data[i]);
      }
      const Allocator& allocator = allocators[tensor.name];
      void* const memory = allocator.allocate(tensor.name.c_str(), found.size() * 4 + 1);
      if (memory == nullptr) return false;
      if (!found.empty()) {
        std::memcpy(TheDriver().resolve(memory, found.size() * 4), found.data(), found.size() * 4);
      }
      allocator.notify(tensor.name.c_str(), ToDims({static_cast<int64_t>(found.size())}));
      continue;
    }
    Step step{.operation = tensor.operation, .type = tensor.type, .element = tensor.element};
    step.shape = OutputShape(tensor);
    step.result = addresses[tensor.name];
    for (const std::string& argument : tensor.arguments) {
      step.arguments.push_back(addresses[argument]);
      step.argument_shapes.push_back(InputShape(*engine->Find(argument.c_str())));
    }
    steps->push_back(step);
  }
  Note(noted);
  // Kept, because a graph replays them.
  Keep(std::move(made));
  return TheDriver().enqueue(
             stream,
             [](void* user) {
               for (const Step& step : *static_cast<const std::vector<Step>*>(user)) step.Run();
             },
             steps) == 0;
}

}  // namespace fake_tensorrt
