// SPDX-License-Identifier: Apache-2.0
// Writes a batch of requests into one block of shared memory, as protocol.h says.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/tensors.h"
#include "python_backend/region.h"

namespace nereid::python {

// One request of a batch and by what the worker calls it.
struct Numbered {
  TRITONBACKEND_Request* request;
  uint64_t handle;
};

// Keeps its memory from batch to batch. Confined to one thread.
class BatchEncoder {
 public:
  // A batch, ready for the worker.
  struct Encoded {
    BlockPool::Block block;
    uint64_t size = 0;
    std::vector<BlockPool::Block> received;  // those that requests are in which are not copied
  };

  // All requests or none, as the worker of these pools gets them. Requests that were received into
  // one of the blocks of `inputs` stay there.
  backend::Result<Encoded> Encode(const std::vector<Numbered>& requests, BlockPool& blocks,
                                  BlockPool& inputs);

 private:
  // An input that has to be copied, and where to.
  struct Copy {
    backend::InputView view;
    uint64_t at;  // from the start of all data
  };

  backend::Error Add(const Numbered& numbered, BlockPool& inputs);
  backend::Error AddForm(TRITONBACKEND_Request* request, RequestRecord& record);
  backend::Error AddInput(TRITONBACKEND_Request* request, uint32_t index,
                          const RequestRecord& record);
  // Where a request lies that need not be copied: `record` says so then.
  backend::Error Find(TRITONBACKEND_Request* request, BlockPool& inputs, RequestRecord& record);
  backend::Error AddTexts(TRITONBACKEND_Request* request, RequestRecord& record);
  template <typename Value>
  void Append(const Value& value);
  void AppendText(std::string_view text);

  std::vector<RequestRecord> records_;
  std::string meta_;  // what the records point to; offsets are from its start until the end
  std::vector<Copy> copies_;
  std::vector<BlockPool::Block> received_;
  const char* received_at_ = nullptr;  // the first byte of inputs of a request that is not copied
  uint64_t data_size_ = 0;
};

// The parameters of a request as JSON; empty when there are none.
backend::Result<std::string> ParametersJson(TRITONBACKEND_Request* request);

}  // namespace nereid::python
