// SPDX-License-Identifier: Apache-2.0
// Between the plain ModelConfig and the protobuf message that files and wires carry. Private to
// this module: the generated header is not visible outside it.
#pragma once

#include "config/model_config.h"
#include "model_config.pb.h"

namespace nereid::config {

// Both directions lose nothing: FromProto(ToProto(c)) == c for every field the message has.
// Enumerators of a newer message that this server does not know keep their number.
ModelConfig FromProto(const inference::ModelConfig& message);
inference::ModelConfig ToProto(const ModelConfig& config);

}  // namespace nereid::config
