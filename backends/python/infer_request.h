// SPDX-License-Identifier: Apache-2.0
// An inference request to another model, as a worker describes it and as the server gets it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "python_backend/decode.h"

namespace nereid::python {

// A request as the worker describes it.
struct Wanted {
  InferRecord record;
  std::string model;
  std::string id;
  std::string correlation_text;
  std::string parameters;  // JSON
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;

  bool is_stream() const { return record.is_stream != 0; }

  // Reads what follows `record`. Returns nothing if that is not as protocol.h describes it.
  static std::optional<Wanted> Read(const InferRecord& record, Reader& reader,
                                    const Region& region);
};

// Sets everything but the callbacks of the server's request. The inputs stay where the worker wrote
// them.
backend::Error Fill(TRITONSERVER_InferenceRequest* request, const Wanted& wanted);

// Checks that the model is ready, and responds as the worker expects.
backend::Error CheckModel(TRITONSERVER_Server* server, const Wanted& wanted);

}  // namespace nereid::python
