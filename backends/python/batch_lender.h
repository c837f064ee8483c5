// SPDX-License-Identifier: Apache-2.0
// Lends the blocks of a batch to the server, instead of copying large outputs.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "python_backend/decode.h"
#include "python_backend/encode.h"
#include "python_backend/worker.h"

namespace nereid::python {

// Lends the blocks of a batch to the server: those of its inputs, once nothing in the worker refers
// to them, and that of its result. Confined to the thread that executes.
class BatchLender final : public Lender {
 public:
  // `batch` and `result` outlive this; what is lent is taken from them.
  BatchLender(std::shared_ptr<Worker> worker, BatchEncoder::Encoded& batch, WorkResult& result)
      : worker_(std::move(worker)), batch_(batch), result_(result) {}

  std::shared_ptr<const void> Lend(std::span<const char> bytes) override;

 private:
  struct Kept {
    std::shared_ptr<Worker> worker;  // destroyed last
    BlockPool::Block inputs;
    std::vector<BlockPool::Block> received;
    std::unique_ptr<BlockHeader, ReleaseBlock> result;
  };

  const std::shared_ptr<Worker> worker_;
  BatchEncoder::Encoded& batch_;
  WorkResult& result_;
  std::shared_ptr<Kept> kept_;
};

}  // namespace nereid::python
