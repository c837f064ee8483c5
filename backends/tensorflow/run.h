// SPDX-License-Identifier: Apache-2.0
// Runs of a session: the tensors that go in and come out, without copies where that is possible.
#pragma once

#include <memory>
#include <semaphore>
#include <vector>

#include "tensorflow_backend/library.h"
#include "tensorflow_backend/program.h"

namespace nereid::tensorflow {

// What all runs of a request have in common. `library` and `session` outlive it.
struct RunPlan {
  const Library* library = nullptr;
  c::Session* session = nullptr;
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  std::vector<c::Output> feeds;           // where the inputs go
  std::vector<c::Output> fetches;         // where the outputs come from
  bool changes_state = false;             // as in Bound; such runs copy inputs and outputs
  std::binary_semaphore* turn = nullptr;  // where requests of the session take turns
};

std::unique_ptr<Request> MakeRequest(RunPlan plan);

}  // namespace nereid::tensorflow
