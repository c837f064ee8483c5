// SPDX-License-Identifier: Apache-2.0
// Conversion between the plain ModelConfig and the protobuf message. Private to this module: the
// generated header is not visible outside it.
#pragma once

#include "config/model_config.h"
#include "model_config.pb.h"

namespace nereid::config {

// Both directions are lossless: FromProto(ToProto(c)) == c for every field of the message. Unknown
// enumerators of a newer message keep their number.
ModelConfig FromProto(const inference::ModelConfig& message);
inference::ModelConfig ToProto(const ModelConfig& config);

}  // namespace nereid::config
