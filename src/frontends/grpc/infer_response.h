// SPDX-License-Identifier: Apache-2.0
// From a core::Response to the bytes of a ModelInferResponse or ModelStreamInferResponse: the heads
// are written by hand into the message, and output tensors are sent from where the model left them.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "core/response.h"
#include "http2/grpc_message.h"

namespace nereid::grpc {

// Encodes a response that is not an error. Takes `response` only if the message refers to its
// tensors: while there is the one or the other, the request is not gone. Internal if the message
// would exceed gRPC's limit.
base::Result<http2::GrpcMessagePtr> EncodeInferResponse(core::ResponsePtr& response);

// Like EncodeInferResponse, inside a ModelStreamInferResponse, with `triton_final_response` among
// the parameters.
base::Result<http2::GrpcMessagePtr> EncodeStreamResponse(core::ResponsePtr& response,
                                                         bool is_final);

// A message of a stream without tensors: an error, or an empty last response.
struct StreamNotice {
  std::string_view error;
  std::string_view id;
  std::string_view model_name;
  std::string_view model_version;
  std::optional<bool> is_final;  // triton_final_response
};
http2::GrpcMessagePtr EncodeStreamNotice(const StreamNotice& notice);

}  // namespace nereid::grpc
