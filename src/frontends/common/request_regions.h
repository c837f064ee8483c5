// SPDX-License-Identifier: Apache-2.0
// The tensors of one request that lie in clients' shared memory, for all protocols: inputs become
// views of the region, outputs are written into it by the model itself, where that is safe.
//
//   common::RequestRegions regions(&service.regions());
//   ... regions.AddInput(request, input, {.region = "r", .offset = 0, .byte_size = 64}) ...
//   ... regions.AddOutput("OUTPUT0", where) ...
//   regions.Attach(*request);  // when nothing is wrong with the request
//
// What clients may rely on: when an answer has arrived, the server neither reads nor writes the
// regions of its request any more, and a region that was unregistered meanwhile is gone. So the
// last answer waits until the request is released, and gives the regions back before it leaves.
//
// A client can write its regions at any time. What somebody checks and believes later is copied
// first: the lengths inside a BYTES tensor, a question and its answer in the response cache, and
// all tensors of models whose backend does not say that it stands changes
// (NEREIDBACKEND_TRAIT_STANDS_CHANGES). An operator that checks indices and then reads them again,
// or sorts by values that move, reads and writes anywhere otherwise. Operators who trust their
// clients can say so (--trust-shared-memory).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "core/request.h"
#include "memory/region_table.h"

namespace nereid::common {

class RegionSink;

// What a client says about a tensor in shared memory.
struct RegionTensor {
  std::string_view region;
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

// Collects the tensors of one request while it is read. Empty, it is a pointer that nobody looks
// at. Movable; thread-compatible.
class RequestRegions {
 public:
  // `table` outlives the request; null: there are no regions.
  explicit RequestRegions(memory::RegionTable* table = nullptr) : table_(table) {}
  RequestRegions(RequestRegions&& other) noexcept
      : table_(other.table_), sink_(std::exchange(other.sink_, nullptr)) {}
  RequestRegions& operator=(RequestRegions&& other) noexcept {
    table_ = other.table_;
    std::swap(sink_, other.sink_);
    return *this;
  }
  ~RequestRegions() { Clear(); }

  // Gives `input`, which has a type but no data, the data of `where`. Errors are those of
  // RegionTable::Use.
  base::Status AddInput(core::Request& request, core::RequestInput& input,
                        const RegionTensor& where);
  // The output `name` is to be written to `where`. `name` lives as long as the request.
  base::Status AddOutput(std::string_view name, const RegionTensor& where);
  // Nothing has been added. After Attach it is empty, too.
  bool empty() const { return sink_ == nullptr; }
  // From here on the regions belong to `request`, which nobody has answered yet.
  void Attach(core::Request& request) {
    if (sink_ != nullptr) [[unlikely]]
      AttachSink(request);
  }
  // Forgets what was added.
  void Clear() {
    if (sink_ != nullptr) [[unlikely]]
      DropSink();
  }

 private:
  base::Result<memory::RegionUse> Use(const RegionTensor& where) const;
  RegionSink& sink();
  void AttachSink(core::Request& request);
  void DropSink();

  memory::RegionTable* table_;
  RegionSink* sink_ = nullptr;
};

}  // namespace nereid::common
