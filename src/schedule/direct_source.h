// SPDX-License-Identifier: Apache-2.0
// The Direct strategy: a sequence keeps its position in the batches of one instance from its first
// request to its last. Positions with nothing to run get padding, so that every other sequence
// stays where the model expects it.
#pragma once

#include <memory>
#include <vector>

#include "base/buffer.h"
#include "base/inbox.h"
#include "schedule/sequence_source.h"

namespace nereid::schedule {

// Confined to the lock of its scheduler.
class DirectSource final : public SequenceSource {
 public:
  explicit DirectSource(SequenceSourceOptions options);
  ~DirectSource() override;

  BatchDecision Decide(size_t instance, uint64_t now_ns) override;
  void Take(size_t instance, const BatchDecision& decision,
            std::vector<core::RequestPtr>& batch) override;

 private:
  class StatefulPadding;

  // Returns the first ready sequence, which determines the shapes of the batch.
  Sequence* Representative(size_t instance) const;
  core::RequestPtr MakePadding(const core::Request& like);
  // Returns one that no request uses.
  StatefulPadding& TakeStatefulPadding();
  void CopyAsZeros(const core::RequestInput& from, core::Request& padding);
  // Returns at least so many zero bytes.
  base::BufferRef Zeros(size_t size);

  base::BufferRef zeros_;
  size_t zeros_size_ = 0;
  // Sinks of padding of a model with states: as many as the backend ever had at the same time.
  std::vector<std::unique_ptr<StatefulPadding>> paddings_;
  base::Queue<StatefulPadding> unused_;
  base::Inbox<StatefulPadding> returned_;  // from any thread, to be moved to unused_
};

}  // namespace nereid::schedule
