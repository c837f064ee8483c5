// SPDX-License-Identifier: Apache-2.0
// The tensors of a model of OpenVINO in our words, and our types in OpenVINO's.
#pragma once

#include <openvino/openvino.hpp>

#include "openvino_backend/program.h"

namespace nereid::openvino {

Signature DescribeAll(const ov::Model& model);

// Returns OpenVINO's type; `dynamic` if it has none.
ov::element::Type TheirType(TRITONSERVER_DataType type);

}  // namespace nereid::openvino
