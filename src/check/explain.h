// SPDX-License-Identifier: Apache-2.0
// Explains a model's configuration: every value that is in force, and where it comes from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/model_view.h"
#include "config/model_config.h"

namespace nereid::check {

// Where a value comes from.
enum class Source {
  kFile,       // config.pbtxt
  kFileNames,  // the names of the model's folder and files
  kDefault,    // the server's default
  kModelFile,  // the backend, which has read the model file
  kInstances,  // the server's or the backend's default for instances
};

// "config.pbtxt", "names of the model's files", ...
std::string_view SourceName(Source source);

// One value.
struct ExplainedValue {
  std::string field;  // "input[0].dims[1]"
  std::string value;
  Source source = Source::kFile;
  int line = 0;         // in the configuration, or 0
  std::string written;  // what the configuration says, if the backend has replaced it
};

// Explains every value of `effective`, in the order of the message. `model` has been read as far as
// its `config`.
std::vector<ExplainedValue> ExplainConfig(const ModelView& model,
                                          const config::ModelConfig& effective);

}  // namespace nereid::check
