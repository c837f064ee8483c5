// SPDX-License-Identifier: Apache-2.0
// The Oldest strategy: of the sequences of an instance, those whose next requests have been ready
// longest run together. At most one request of a sequence runs at a time.
#pragma once

#include <memory>
#include <vector>

#include "schedule/ordered_responses.h"
#include "schedule/sequence_source.h"

namespace nereid::schedule {

// Confined to the lock of its scheduler.
class OldestSource final : public SequenceSource {
 public:
  explicit OldestSource(SequenceSourceOptions options);

  BatchDecision Decide(size_t instance, uint64_t now_ns) override;
  void Take(size_t instance, const BatchDecision& decision,
            std::vector<core::RequestPtr>& batch) override;

 protected:
  void Grow() override;

 private:
  const size_t max_preferred_;
  // By instance; empty: responses are sent as they come.
  std::vector<std::unique_ptr<OrderedResponses>> orders_;
};

}  // namespace nereid::schedule
