// SPDX-License-Identifier: Apache-2.0
// Writes a batch of requests into one block of shared memory, in the format of protocol.h.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/tensors.h"
#include "python_backend/region.h"

namespace nereid::python {

// One request of a batch and the number by which the worker knows it.
struct Numbered {
  TRITONBACKEND_Request* request;
  uint64_t handle;
};

// Encodes batches. Keeps its memory from batch to batch. Confined to one thread.
class BatchEncoder {
 public:
  // A batch, encoded for the worker.
  struct Encoded {
    BlockPool::Block block;
    uint64_t size = 0;
    std::vector<BlockPool::Block> received;  // blocks that contain requests which are not copied
  };

  // Encodes all requests or none, for the worker of these pools. Requests that were received into
  // one of the blocks of `inputs` stay there.
  backend::Result<Encoded> Encode(const std::vector<Numbered>& requests, BlockPool& blocks,
                                  BlockPool& inputs);

 private:
  // An input that has to be copied, and its destination.
  struct Copy {
    backend::InputView view;
    uint64_t at;  // from the start of all data
  };

  backend::Error Add(const Numbered& numbered, BlockPool& inputs);
  backend::Error AddForm(TRITONBACKEND_Request* request, RequestRecord& record);
  backend::Error AddInput(TRITONBACKEND_Request* request, uint32_t index,
                          const RequestRecord& record);
  // Finds where a request lies that need not be copied, and sets this in `record`.
  backend::Error Find(TRITONBACKEND_Request* request, BlockPool& inputs, RequestRecord& record);
  backend::Error AddTexts(TRITONBACKEND_Request* request, RequestRecord& record);
  template <typename Value>
  void Append(const Value& value);
  void AppendText(std::string_view text);

  std::vector<RequestRecord> records_;
  std::string meta_;  // what the records refer to; their offsets are relative to it until the end
  std::vector<Copy> copies_;
  std::vector<BlockPool::Block> received_;
  const char* received_at_ = nullptr;  // the first input byte of a request that is not copied
  uint64_t data_size_ = 0;
};

// Returns the parameters of a request as JSON; empty if there are none.
backend::Result<std::string> ParametersJson(TRITONBACKEND_Request* request);

}  // namespace nereid::python
