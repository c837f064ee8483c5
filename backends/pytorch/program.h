// SPDX-License-Identifier: Apache-2.0
// A loaded model as the rest of the backend sees it, without PyTorch's types. The classes behind it
// are in torch/, which is the only part that includes PyTorch's headers.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "backend_kit/memory_use.h"
#include "pytorch_backend/binding.h"
#include "pytorch_backend/settings.h"
#include "pytorch_backend/signature.h"

namespace nereid::pytorch {

// Where a model runs.
struct Device {
  // kAsSaved (KIND_MODEL): the parameters stay where the file says, which may be several GPUs.
  enum class Kind : uint8_t { kCpu, kGpu, kAsSaved };
  Kind kind = Kind::kCpu;
  int32_t index = 0;  // of a kGpu
  bool operator==(const Device&) const = default;
};

// The input of a call. Everything is a view that stays valid until the call returns.
struct CallInput {
  std::string_view name;  // for messages
  bool is_present = false;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::span<const int64_t> shape;
  const char* data = nullptr;                 // of fixed-size elements, aligned for them
  bool is_on_gpu = false;                     // `data` is on the program's GPU
  std::span<const std::string_view> strings;  // of BYTES
};

// One tensor of a result. Its memory is that of the Results.
struct ResultTensor {
  // TRITONSERVER_TYPE_INVALID for what no response can carry; `type` then says what it is.
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::string type;
  std::span<const int64_t> shape;
  const char* data = nullptr;
  bool is_on_gpu = false;  // `data` is on the program's GPU
  uint64_t byte_size = 0;
  std::vector<std::string_view> strings;
  // Whether nothing else can change or free the memory as long as the Results are there.
  bool is_lendable = false;
  // "a[0]" for a result that is a dictionary with a list; only if paths were asked for.
  std::string path;
};

// The result of a call, flattened: elements of tuples and lists and values of dictionaries in their
// order. Immutable.
struct Results {
  virtual ~Results() = default;
  // Copies the data of tensor `index` to `to`, which is on the program's GPU or in host memory.
  virtual backend::Error CopyTo(size_t /*index*/, char* /*to*/, bool /*is_on_gpu*/) const {
    return backend::Error::Internal("these results cannot be copied");
  }
  // Returns a copy of the results in host memory.
  virtual backend::Result<std::shared_ptr<const Results>> OnHost() const {
    return backend::Error::Internal("these results cannot be copied");
  }
  std::vector<ResultTensor> tensors;
};

// A dimension that a compiled model was compiled for.
struct DimRule {
  int64_t fixed = -1;  // -1: variable
  int64_t least = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
  int symbol = -1;  // variable dimensions with the same number have the same size

  // PyTorch writes 2 where nothing was said, because it compiles no special case for 1. That works
  // for 1 as well, as its documentation of aot_inductor.check_lowerbound says.
  int64_t smallest() const { return least == 2 ? 1 : least; }
};

// How many different variable dimensions the inputs of a model may have.
inline constexpr int kMaxSymbols = 32;

// An input that a compiled model was compiled for.
struct InputRule {
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::vector<DimRule> dims;  // with the batch dimension
  bool is_written = false;    // whether the model may write to its memory
};

// A model, ready to be called. Thread-safe: may be called concurrently, unless its signature says
// that it writes to its attributes.
class Program {
 public:
  virtual ~Program() = default;
  virtual const Signature& signature() const = 0;
  // Where it was loaded to.
  virtual Device device() const { return {}; }
  // The weights and other constants: one entry for each memory that has some.
  virtual std::vector<backend::MemoryUse> weights() const = 0;
  // Returns a compiled model's rules, one for each tensor that it takes; null if they are not
  // known.
  virtual const std::vector<InputRule>* input_rules() const { return nullptr; }
  // Calls the model. `arguments` are those of BindInputs, whose inputs are numbers in `inputs`.
  virtual backend::Result<std::shared_ptr<const Results>> Run(std::span<const ValueNode> arguments,
                                                              std::span<const CallInput> inputs,
                                                              bool with_paths) const = 0;
};

// Prepares PyTorch for this process: its warnings go to `log`, the server's log. Call it once.
void InitializeTorch(void (*log)(const std::string& text));

// Applies the settings that count for the process; only the first call for each of them has an
// effect.
void ApplyThreadCounts(const Settings& settings);

// Returns how many GPUs PyTorch can use: 0 without a driver, or if the library was installed
// without its part for GPUs.
int GpuCount();

// Loads a TorchScript file onto a device. `model` is for error texts.
backend::Result<std::unique_ptr<const Program>> LoadTorchScript(const std::string& path,
                                                                const Settings& settings,
                                                                const Device& device,
                                                                const std::string& model);

// Loads a package of AOTInductor, which runs on the CPU; fails if `device` is a GPU. Its files are
// unpacked into a folder that is gone when this returns.
backend::Result<std::unique_ptr<const Program>> LoadCompiled(const std::string& path,
                                                             const Settings& settings,
                                                             const Device& device,
                                                             const std::string& model);

}  // namespace nereid::pytorch
