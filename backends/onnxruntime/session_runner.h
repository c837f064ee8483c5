// SPDX-License-Identifier: Apache-2.0
// Runs a session on generated rows within limits, for batch_probe.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend_kit/row_runner.h"
#include "onnxruntime_backend/arena_meter.h"
#include "onnxruntime_backend/probe_limits.h"
#include "onnxruntime_backend/session.h"
#include "onnxruntime_backend/watchdog.h"

namespace nereid::onnxruntime {

// The runs of one probe. Confined to the thread that made it.
class SessionRunner final : public backend::RowRunner {
 public:
  // Both outlive this. Time is counted from here.
  static backend::Result<std::unique_ptr<SessionRunner>> Create(const Session& session,
                                                                const ProbeLimits& limits);

  backend::Result<std::vector<backend::HostTensor>> Run(
      std::span<const backend::HostTensor> inputs) override;
  std::optional<backend::BatchVerdict> Exhausted() const override;

  // Frees the arena's memory. ONNX Runtime does that at the end of a run, for memory that is not in
  // use, such as that of outputs, unless they are in our memory. So this run places one output in
  // our memory and requests no others.
  backend::Error GiveBack();

 private:
  SessionRunner(const Session& session, const ProbeLimits& limits, Owned<OrtMemoryInfo> memory_info,
                Owned<OrtRunOptions> options);

  // Sets values_ to the inputs.
  backend::Error FillValues(std::span<const backend::HostTensor> inputs);
  backend::Error RunOnce(std::span<const backend::HostTensor> inputs,
                         const std::vector<const char*>& output_names,
                         std::vector<OrtValue*>& outputs);
  // Remembers the first run, which shows the memory of a row and is repeated in GiveBack.
  void Learn(std::span<const backend::HostTensor> inputs,
             const std::vector<backend::HostTensor>& outputs);
  backend::Result<std::vector<backend::HostTensor>> ReadAll(
      const std::vector<Owned<OrtValue>>& values);
  backend::Result<backend::HostTensor> ReadOne(const TensorInfo& info, const OrtValue* value);

  const Session& session_;
  const ProbeLimits& limits_;
  const Owned<OrtMemoryInfo> memory_info_;
  const Owned<OrtRunOptions> options_;
  const ArenaMeter meter_;
  const uint64_t arena_before_;
  uint64_t arena_per_row_ = 0;
  std::vector<backend::HostTensor> first_inputs_;
  backend::HostTensor last_output_;      // of the first run; empty if all its outputs are strings
  std::string too_large_;                // empty while memory suffices
  std::vector<Owned<OrtValue>> values_;  // of the inputs of a run
  Watchdog watchdog_;
};

}  // namespace nereid::onnxruntime
