// SPDX-License-Identifier: Apache-2.0
// Command lines for the tests of this module.
#pragma once

#include <stdlib.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/options.h"

namespace nereid::app {

// Parses command lines as the program does, in an environment without the variables of clouds.
class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    for (const char* name :
         {"AIP_MODE", "AIP_HTTP_PORT", "AIP_PREDICT_ROUTE", "AIP_HEALTH_ROUTE", "AIP_STORAGE_URI",
          "SAGEMAKER_BIND_TO_PORT", "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME",
          "SAGEMAKER_TRITON_INFERENCE_TYPE", "SAGEMAKER_TRITON_PING_MODE",
          "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
          "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"}) {
      unsetenv(name);
    }
  }
  ~CommandLineTest() override {
    for (const std::string& name : changed_) unsetenv(name.c_str());
  }

  // Sets an environment variable until the end of the test.
  void SetVariable(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    changed_.push_back(name);
  }

  // Returns the options of a server with the repository /r and these arguments.
  base::Result<Options> Parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--model-repository=/r");
    return ParseWhole(std::move(arguments));
  }
  static base::Result<Options> ParseWhole(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "nereid");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    return ParseCommandLine(static_cast<int>(arguments.size()), argv.data());
  }
  // Returns the line with which the program fails; empty if it does not.
  std::string WhyNot(std::vector<std::string> arguments) {
    return std::string(Parse(std::move(arguments)).status().message());
  }

 private:
  std::vector<std::string> changed_;
};

}  // namespace nereid::app
