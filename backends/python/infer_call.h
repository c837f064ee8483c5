// SPDX-License-Identifier: Apache-2.0
// One inference request to another model that is in progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "backend_kit/mutex.h"
#include "python_backend/worker.h"

namespace nereid::python {

class Pending;

// A response in the form that a worker gets: a ReplyRecord and what follows it, and the blocks that
// have the tensors' data. What is not passed on is freed.
class Encoded {
 public:
  // A response for which there is no memory.
  Encoded() = default;
  Encoded(BlockPool::Block block, uint64_t size, std::vector<BlockHeader*> data)
      : block_(std::move(block)), size_(size), data_(std::move(data)) {}
  Encoded(Encoded&& other) noexcept
      : block_(std::move(other.block_)),
        size_(other.size_),
        data_(std::exchange(other.data_, {})) {}
  Encoded& operator=(Encoded&&) = delete;
  ~Encoded() {
    for (BlockHeader* const block : data_) Release(block);
  }

  // Replies to the call with it. From then on the data belongs to the worker.
  void PassTo(BlockHeader* call);

 private:
  BlockPool::Block block_;
  uint64_t size_ = 0;
  std::vector<BlockHeader*> data_;  // shared with the worker, which does not know of them yet
};

// One request in progress, for the server's callbacks. Keeps itself alive until the last of them.
struct InferCall : std::enable_shared_from_this<InferCall> {
  // `made` is the call that made the request, with its inputs. It waits for the response, unless
  // there is a stream of them.
  InferCall(std::shared_ptr<std::atomic<uint32_t>> counter, std::shared_ptr<Worker> from,
            BlockHeader* made, bool has_stream)
      : worker(std::move(from)),
        block(made),
        is_stream(has_stream),
        open(std::move(counter)),
        waiting(has_stream ? nullptr : made) {
    ++*open;
  }
  // A released request may still get responses, and can be cancelled until it has completed.
  ~InferCall();

  const std::shared_ptr<Worker> worker;
  BlockHeader* const block;
  const bool is_stream;
  const std::shared_ptr<std::atomic<uint32_t>> open;  // how many requests the worker has open
  // Set once it is sent. Confined to the thread of the worker's calls.
  TRITONSERVER_InferenceRequest* request = nullptr;

  backend::Mutex mutex;
  // Reset after the last response and the release of the request.
  std::shared_ptr<InferCall> self NEREID_KIT_GUARDED_BY(mutex);
  std::shared_ptr<InferCall> while_held NEREID_KIT_GUARDED_BY(mutex);
  BlockHeader* waiting NEREID_KIT_GUARDED_BY(mutex);  // the call that waits for a response
  std::deque<Encoded> responses NEREID_KIT_GUARDED_BY(mutex);
  bool is_abandoned NEREID_KIT_GUARDED_BY(mutex) = false;

  // Replies to the call that waits, or keeps the response until one does.
  void Deliver(Encoded encoded);
  // Tells the worker that the server does not read the request any more.
  void NoteReleased() const { block->is_released.store(1, std::memory_order_release); }
};

// Sends a filled request. From then on it belongs to the server. `parent`, which may be null, is
// the request whose trace it belongs to.
backend::Error Submit(TRITONSERVER_Server* server, TRITONSERVER_InferenceRequest* request,
                      const std::shared_ptr<InferCall>& call, Pending* parent);

}  // namespace nereid::python
