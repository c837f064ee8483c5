// SPDX-License-Identifier: Apache-2.0
// Encodes responses of other models for the worker that asked: a ReplyRecord and what follows it.
#pragma once

#include <string>
#include <vector>

#include "python_backend/region.h"
#include "python_backend/worker.h"

namespace nereid::python {

// Encodes the tensors and parameters of a response. Adds to `blocks` those that have its data,
// which must be shared when the text is delivered. Fails with the response's error if it has one.
backend::Result<std::string> EncodeTensors(const Region& region,
                                           TRITONSERVER_InferenceResponse* response, bool is_last,
                                           std::vector<BlockPool::Block*>& blocks);
std::string EncodeError(const backend::Error& error, bool is_last);
// Encodes the end of a stream.
std::string EncodeNothing();

}  // namespace nereid::python
