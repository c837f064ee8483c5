// SPDX-License-Identifier: Apache-2.0
// The tensors of one request that lie in clients' shared memory, for all protocols: inputs become
// views of the region, and outputs are written into it by the model itself if that is safe.
//
//   common::RequestRegions regions(&service.regions());
//   ... regions.AddInput(request, input, {.region = "r", .offset = 0, .byte_size = 64}) ...
//   ... regions.AddOutput("OUTPUT0", where) ...
//   regions.Attach(*request);  // if nothing is wrong with the request
//
// Clients may rely on this: when a response has arrived, the server neither reads nor writes the
// regions of its request any more, and a region that was unregistered meanwhile is gone. So the
// last response waits until the request is released, and releases the regions before it is sent.
//
// A client can write its regions at any time. Data that is first checked and then trusted is
// therefore copied: the lengths inside a BYTES tensor, a request and its response in the response
// cache, and all tensors of models whose backend does not declare that it tolerates changes
// (NEREIDBACKEND_TRAIT_STANDS_CHANGES). A model that checks indices and then reads them again, or
// sorts by values that change, would otherwise read and write anywhere. Operators who trust their
// clients can say so (--trust-shared-memory).
//
// Regions on a GPU are given to models with instances on GPUs as they are, or as a copy on the same
// GPU, by the same rule. All other models get copies in host memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "core/request.h"
#include "memory/region_table.h"

namespace nereid::common {

class RegionSink;

// The place of a tensor in shared memory, as the client gave it.
struct RegionTensor {
  std::string_view region;
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

// Collects the tensors of one request while it is read. If empty, it is a pointer that is never
// followed. Movable; thread-compatible.
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

  // Sets the data of `input`, which has a type but no data, to `where`. Errors are those of
  // RegionTable::Use.
  base::Status AddInput(core::Request& request, core::RequestInput& input,
                        const RegionTensor& where);
  // Places the output `name` at `where`. `name` lives as long as the request.
  base::Status AddOutput(std::string_view name, const RegionTensor& where);
  // Whether nothing has been added, or everything has been attached.
  bool empty() const { return sink_ == nullptr; }
  // Passes the regions to `request`. REQUIRES: it has no response yet.
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
  // Adds memory of a GPU; returns false if no copy of it can be made there although one is needed.
  base::Result<bool> AddGpuInput(core::Request& request, core::RequestInput& input,
                                 memory::RegionUse& use);
  RegionSink& sink();
  void AttachSink(core::Request& request);
  void DropSink();

  memory::RegionTable* table_;
  RegionSink* sink_ = nullptr;
};

}  // namespace nereid::common
