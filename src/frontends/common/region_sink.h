// SPDX-License-Identifier: Apache-2.0
// The sink in front of a request's own sink if tensors lie in shared memory: it places outputs,
// keeps the regions, and reports an error if a region's memory was lost. Private to
// request_regions.
#pragma once

#include <atomic>
#include <optional>
#include <string_view>
#include <vector>

#include "core/forwarding_sink.h"
#include "memory/region_table.h"

namespace nereid::common {

// Pooled.
class RegionSink final : public core::ForwardingSink {
 public:
  void AddInput(memory::RegionUse use) { inputs_.push_back(std::move(use)); }
  // Keeps the copy of an input.
  void AddCopy(memory::GpuBlock copy) { copies_.push_back(std::move(copy)); }
  void AddOutput(std::string_view name, memory::RegionUse use) {
    outputs_.push_back({name, std::move(use)});
  }

  base::Result<std::optional<memory::Placement>> PredictPlacement(
      const core::Request& request, const char* name, size_t* byte_size,
      memory::Placement preferred) override;
  base::Result<std::optional<core::OutputPlacement>> PlaceOutput(
      const core::Request& request, const core::ResponseOutput& output, size_t byte_size,
      memory::Placement preferred) override;
  void ReleasePlacement(const core::OutputPlacement& placement, size_t byte_size) override;
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestReleased(core::Request& request) override;

  // For ObjectPool.
  void Recycle();

 private:
  // An output that is written to a client's region.
  struct Output {
    std::string_view name;
    memory::RegionUse use;
  };
  // Both must have happened before the last response is sent.
  enum Event : uint8_t { kReleased = 1, kCompleted = 2 };

  void Retire() override;
  const memory::RegionUse* Find(std::string_view output) const;
  static std::optional<core::OutputPlacement> PlaceInBlock(const memory::RegionUse& use,
                                                           size_t byte_size, int64_t device);
  base::Status CheckRegions() const;
  base::Status FillRegions(const core::Response& response) const;
  // Returns true for the second of the two events, whichever it is.
  bool IsSecond(Event event) { return events_.fetch_or(event) != 0; }
  void SendLast();

  std::vector<memory::RegionUse> inputs_;
  std::vector<Output> outputs_;
  std::vector<memory::GpuBlock> copies_;  // of inputs, on GPUs
  std::atomic<uint8_t> events_{0};
  core::ResponsePtr last_;  // the final response, until it may be sent
};

}  // namespace nereid::common
