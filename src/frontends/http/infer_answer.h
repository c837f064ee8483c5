// SPDX-License-Identifier: Apache-2.0
// From a core::Response to the body of an infer reply: the JSON head is printed, binary outputs are
// sent from where they lie.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "core/response.h"
#include "http/infer_request.h"
#include "http1/http_server.h"

namespace nereid::http {

// The body is `json` followed by `parts`. Kept from request to request for its capacity.
struct InferAnswer {
  std::string json;
  // Point into the response, which must outlive the sending.
  std::vector<http1::HttpBodyPart> parts;

  // Empties it; a capacity that one large answer made is given back.
  void Clear();
};

// Writes a response without an error into `answer`, which is empty. Errors are those of outputs
// that cannot be printed as the client asked.
base::Status WriteInferAnswer(const core::Response& response, const AnswerOptions& options,
                              InferAnswer& answer);

// The elements of an output, or the value of a parameter, as JSON values with commas between them.
// Errors as above.
base::Status AppendJsonElements(const core::ResponseOutput& output, uint64_t count,
                                std::string& json);
using ParameterValue = decltype(core::Parameter::value);
void AppendJsonParameter(const ParameterValue& value, std::string& json);

}  // namespace nereid::http
