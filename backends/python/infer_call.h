// SPDX-License-Identifier: Apache-2.0
// One inference request to another model that is in progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "backend_kit/mutex.h"
#include "python_backend/worker.h"

namespace nereid::python {

class Pending;

// A response in the form that a worker gets: a ReplyRecord and what follows it.
struct Encoded {
  BlockPool::Block block;
  uint64_t size = 0;
};

// One request in progress, for the server's callbacks. Keeps itself alive until the last of them.
struct InferCall : std::enable_shared_from_this<InferCall> {
  // `waits` is the call that waits for the response; null for a stream.
  InferCall(std::shared_ptr<std::atomic<uint32_t>> counter, std::shared_ptr<Worker> from,
            BlockHeader* waits)
      : worker(std::move(from)),
        is_stream(waits == nullptr),
        open(std::move(counter)),
        waiting(waits) {
    ++*open;
  }
  // A released request may still get responses, and can be cancelled until it has completed.
  ~InferCall();

  const std::shared_ptr<Worker> worker;
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
};

// Sends a filled request. From then on it belongs to the server. `parent`, which may be null, is
// the request whose trace it belongs to.
backend::Error Submit(TRITONSERVER_Server* server, TRITONSERVER_InferenceRequest* request,
                      const std::shared_ptr<InferCall>& call, Pending* parent);

}  // namespace nereid::python
