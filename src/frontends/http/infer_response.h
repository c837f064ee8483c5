// SPDX-License-Identifier: Apache-2.0
// From a core::Response to the body of an infer reply: the JSON head is printed, and binary outputs
// are sent from where they lie.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "core/response.h"
#include "http/infer_request.h"
#include "http1/http_server.h"

namespace nereid::http {

// The body is `json` followed by `parts`. Reused from request to request for its capacity.
struct InferResponseBody {
  std::string json;
  // These point into the response, which must outlive the sending.
  std::vector<http1::HttpBodyPart> parts;

  // Empties the body, and frees the capacity after a large one.
  void Clear();
};

// Writes a response without an error into `body`, which is empty. Fails if an output cannot be
// printed as the client requested.
base::Status WriteInferResponse(const core::Response& response, const ResponseOptions& options,
                                InferResponseBody& body);

// AppendJsonElements appends the elements of an output as JSON values with commas between them, and
// fails as above; AppendJsonParameter appends the value of a parameter.
base::Status AppendJsonElements(const core::ResponseOutput& output, uint64_t count,
                                std::string& json);
using ParameterValue = decltype(core::Parameter::value);
void AppendJsonParameter(const ParameterValue& value, std::string& json);

}  // namespace nereid::http
