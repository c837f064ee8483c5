// SPDX-License-Identifier: Apache-2.0
// The workers of a model into whose memory the server receives the inputs of requests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "backend_kit/mutex.h"
#include "nereid/backend_inputs.h"
#include "python_backend/worker.h"

namespace nereid::python {

// Thread-safe.
class InputLenders {
 public:
  // Offers the server memory for inputs of `model`, which this outlives, if it can use it.
  backend::Error Offer(TRITONBACKEND_Model* model);
  // From now on requests may be received into the memory shared with the worker of `instance`.
  void Add(const std::string& instance, const std::shared_ptr<Worker>& worker);

 private:
  // Returns false if there is no memory to lend.
  bool Lend(uint64_t size, NEREIDBACKEND_LentInput* lent);
  // Returns the worker that most likely gets a request: the first one with the fewest on their way.
  std::shared_ptr<Worker> Find();

  backend::Mutex mutex_;
  // The workers by the names of their instances.
  std::map<std::string, std::weak_ptr<Worker>> lenders_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::python
