// SPDX-License-Identifier: Apache-2.0
// Models of OpenVINO as the rest of the backend sees them, without OpenVINO's types: a file that
// was read, the program that a device makes of it, and requests that run the program. The classes
// behind these are in ov/, the only part that includes OpenVINO's headers. None of them throws.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "openvino_backend/settings.h"

namespace nereid::openvino {

// A tensor as the model declares it. Immutable.
struct TensorInfo {
  std::string name;                                            // the first of its names
  std::vector<std::string> names;                              // sorted; a tensor may have several
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;  // INVALID: no such type in Triton
  std::string type;                                            // OpenVINO's name of the type
  bool has_rank = true;
  std::vector<int64_t> dims;      // -1 if variable
  bool has_batch_layout = false;  // the file's layout calls the first dimension the batch
};

// Returns the position of the tensor that has `name` among its names, or -1.
int FindTensor(const std::vector<TensorInfo>& tensors, std::string_view name);

// All inputs and outputs, in the model's order. Immutable.
struct Signature {
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
};

// An input of one run. Everything is a view.
struct CallInput {
  bool is_present = false;
  std::span<const int64_t> shape;
  const char* data = nullptr;                 // aligned for its elements
  std::span<const std::string_view> strings;  // instead of data, for BYTES
};

// An output of one run; views that are valid until the next one.
struct CallOutput {
  std::span<const int64_t> shape;
  const char* data = nullptr;
  std::span<const std::string_view> strings;
  // Keeps `data` as it is for as long as it lives; null for small outputs.
  std::shared_ptr<const void> keeper;
};

// Runs a program, one run at a time. Thread-compatible.
class Request {
 public:
  virtual ~Request() = default;
  // Runs the program on its inputs, in the order of the signature. Fails, before anything is
  // computed, if one is absent or has a shape that the program does not take.
  virtual backend::Error Run(std::span<const CallInput> inputs) = 0;
  // Returns an output of the last run that did not fail.
  virtual backend::Result<CallOutput> Output(size_t o) = 0;
};

// A model compiled for a device. Thread-safe.
class Program {
 public:
  virtual ~Program() = default;
  virtual const Signature& signature() const = 0;
  virtual backend::Result<std::unique_ptr<Request>> NewRequest() = 0;
  // The bytes of the model's constants, before the device gives them the layout that it prefers.
  virtual uint64_t weight_bytes() const = 0;
};

// Changes of a model before it is compiled, in the order of the signature; nothing: as it is.
struct Changes {
  std::vector<std::optional<std::vector<int64_t>>> input_dims;
  std::vector<std::optional<TRITONSERVER_DataType>> input_types;
  std::vector<std::optional<TRITONSERVER_DataType>> output_types;
};

// A model's file that was read. Thread-compatible.
class Source {
 public:
  virtual ~Source() = default;
  virtual const Signature& signature() const = 0;
  // Gives inputs other shapes, and inputs and outputs other types, from and to which the program
  // converts. Changes the signature. Fails if the model cannot have them.
  virtual backend::Error Change(const Changes& changes) = 0;
  virtual backend::Result<std::shared_ptr<Program>> Compile(const std::string& device,
                                                            const Settings& settings) = 0;
};

// What all models share. Thread-safe.
class Runtime {
 public:
  virtual ~Runtime() = default;
  // Reads a file that CheckModelFile has accepted.
  virtual backend::Result<std::unique_ptr<Source>> Read(const std::string& path,
                                                        const Settings& settings) = 0;
};

backend::Result<std::unique_ptr<Runtime>> MakeRuntime();

// Returns what an exception of OpenVINO says, in one line and without places in its sources.
std::string PlainText(std::string_view what);

}  // namespace nereid::openvino
