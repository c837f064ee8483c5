// SPDX-License-Identifier: Apache-2.0
// The Direct strategy: a sequence keeps its position in the batches of one instance from its first
// request to its last. Positions with nothing to run get padding, so that every other sequence
// stays where the model expects it.
#pragma once

#include "base/buffer.h"
#include "schedule/sequence_source.h"

namespace nereid::schedule {

// Confined to the lock of its scheduler.
class DirectSource final : public SequenceSource {
 public:
  explicit DirectSource(SequenceSourceOptions options);

  BatchDecision Decide(size_t instance, uint64_t now_ns) override;
  void Take(size_t instance, const BatchDecision& decision,
            std::vector<core::RequestPtr>& batch) override;

 protected:
  void Grow() override;

 private:
  // Returns the first ready sequence, which determines the shapes of the batch.
  Sequence* Representative(size_t instance) const;
  core::RequestPtr MakePadding(const core::Request& like, size_t slot);
  void CopyAsZeros(const core::RequestInput& from, core::Request& padding);
  // Returns at least so many zero bytes.
  base::BufferRef Zeros(size_t size);

  base::BufferRef zeros_;
  size_t zeros_size_ = 0;
  // The states of padding, by slot; made when first needed.
  std::vector<std::unique_ptr<core::SequenceStates>> padding_states_;
};

}  // namespace nereid::schedule
