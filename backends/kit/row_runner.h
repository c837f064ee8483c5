// SPDX-License-Identifier: Apache-2.0
// Runs a model on generated rows, for batch_probe.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_kit/batch_verdict.h"
#include "backend_kit/row_samples.h"
#include "backend_kit/shape.h"

namespace nereid::backend {

// Runs a model. Not thread-safe.
class RowRunner {
 public:
  virtual ~RowRunner() = default;
  // Runs the model once and returns all its outputs, in the same order each time.
  virtual Result<std::vector<HostTensor>> Run(std::span<const HostTensor> inputs) = 0;
  // Returns why no more runs are allowed (time, memory), or nothing. A run that fails for this
  // reason does not count as a failure of the model.
  virtual std::optional<BatchVerdict> Exhausted() const = 0;
};

// A runner for frameworks that cannot stop a run: no run begins after kMaxTime, and no output of a
// run is larger than kMaxOutputBytes.
class TimedRunner : public RowRunner {
 public:
  static constexpr std::chrono::seconds kMaxTime{10};
  static constexpr uint64_t kMaxOutputBytes = uint64_t{128} << 20;

  Result<std::vector<HostTensor>> Run(std::span<const HostTensor> inputs) final {
    if (Exhausted()) {
      return Error::Unavailable("the limits of the probe are reached");
    }
    return RunInTime(inputs);
  }

  std::optional<BatchVerdict> Exhausted() const final {
    if (std::chrono::steady_clock::now() < end_) {
      return std::nullopt;
    }
    return BatchVerdict::No(
        "too_slow", StrCat("running a few rows took more than ", kMaxTime.count(), " seconds"));
  }

 protected:
  // Runs the model, like Run.
  virtual Result<std::vector<HostTensor>> RunInTime(std::span<const HostTensor> inputs) = 0;

  // Copies an output of the model: texts from `strings`, other elements from `data`.
  static Result<HostTensor> Copy(std::string name, TRITONSERVER_DataType type,
                                 std::span<const int64_t> shape, const char* data,
                                 std::span<const std::string_view> strings) {
    HostTensor tensor{.name = std::move(name),
                      .type = type,
                      .shape = {shape.begin(), shape.end()},
                      .bytes = {},
                      .strings = {}};
    if (tensor.is_string()) {
      tensor.strings.assign(strings.begin(), strings.end());
      return tensor;
    }
    NEREID_KIT_ASSIGN(const uint64_t size, TensorByteSize(type, shape));
    if (size > kMaxOutputBytes) {
      return Error::Unavailable(
          StrCat("output '", tensor.name, "' of a few rows has ", size, " bytes"));
    }
    tensor.bytes.assign(data, data + size);
    return tensor;
  }

 private:
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kMaxTime;
};

}  // namespace nereid::backend
