// SPDX-License-Identifier: Apache-2.0
// The inputs and outputs that a configuration gives a Caffe2 network, whose files say nothing of
// types and shapes.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/config.h"
#include "caffe2_backend/netdef.h"
#include "caffe2_backend/translate.h"

namespace nereid::caffe2 {

// The tensors of a configuration as the translation needs them, all names checked against those of
// the network.
struct Borders {
  std::vector<Border> inputs;
  std::vector<Border> outputs;

  static backend::Result<Borders> FromConfig(const std::string& model_name,
                                             const backend::ModelConfig& config, const NetDef& net,
                                             const NetDef& init);
};

}  // namespace nereid::caffe2
