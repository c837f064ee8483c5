// SPDX-License-Identifier: Apache-2.0
// The settings of OpenVINO in a model configuration, from Triton's parameters.
#pragma once

#include <map>
#include <string>

#include "backend_kit/config.h"

namespace nereid::openvino {

// The settings of a model. Immutable.
struct Settings {
  std::string model_filename;  // "model.xml" unless default_model_filename is set
  std::string device;          // OpenVINO's name of the device; empty: as the instance group says
  std::map<std::string, std::string> properties;  // of OpenVINO, for compiling the model
  std::string extension_path;                     // a library with operations; may be empty
  // Whether the model is compiled for exactly max_batch_size rows, and smaller batches are filled
  // up.
  bool fixed_batch = false;
  // Whether the shapes of inputs in the configuration replace those of the model.
  bool reshape_inputs = false;

  // `cache_dir` is the server's default folder for compiled models; may be empty. Fails, with
  // Triton's texts, for values that a parameter cannot have.
  static backend::Result<Settings> FromConfig(const backend::ModelConfig& config,
                                              const std::string& cache_dir);
};

}  // namespace nereid::openvino
