// SPDX-License-Identifier: Apache-2.0
// A loaded model as the rest of the backend sees it, without PyTorch's types. The classes behind it
// are in torch/, which is the only part that includes PyTorch's headers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "pytorch_backend/binding.h"
#include "pytorch_backend/settings.h"
#include "pytorch_backend/signature.h"

namespace nereid::pytorch {

// The input of a call. Everything is a view that stays valid until the call returns.
struct CallInput {
  std::string_view name;  // for messages
  bool is_present = false;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::span<const int64_t> shape;
  const char* data = nullptr;                 // of fixed-size elements, aligned for them
  std::span<const std::string_view> strings;  // of BYTES
};

// One tensor of a result. Its memory is that of the Results.
struct ResultTensor {
  // TRITONSERVER_TYPE_INVALID for what no response can carry; `type` then says what it is.
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::string type;
  std::span<const int64_t> shape;
  const char* data = nullptr;
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
  std::vector<ResultTensor> tensors;
};

// A model, ready to be called. Thread-safe: may be called concurrently, unless its signature says
// that it writes to its attributes.
class Program {
 public:
  virtual ~Program() = default;
  virtual const Signature& signature() const = 0;
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

// Loads a TorchScript file onto the CPU. `model` is for error texts.
backend::Result<std::unique_ptr<const Program>> LoadTorchScript(const std::string& path,
                                                                const Settings& settings,
                                                                const std::string& model);

}  // namespace nereid::pytorch
