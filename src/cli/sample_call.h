// SPDX-License-Identifier: Apache-2.0
// A request that fits a model, and the commands that send it: for people who want to see a model's
// first response, and to have something that they can change into their own program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/model_config.h"
#include "service/service.h"
#include "tensor/data_type.h"

namespace nereid::cli {

// The inputs are zeros, and texts "1", which is a text and a number. Long inputs are sent as bytes,
// whose texts are empty.
struct SampleCall {
  // An input or output with its name.
  struct Tensor {
    std::string name;
    tensor::DataType type = tensor::DataType::kInvalid;
    std::vector<int64_t> shape;  // only of inputs
  };
  std::string model;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  bool is_sequence = false;   // the request begins and ends a sequence
  bool is_decoupled = false;  // there may be any number of responses
};

// Where the server listens, as clients write it ("localhost:8000"). A protocol that is off has
// none.
struct ServerAddresses {
  std::optional<std::string> http;
  std::optional<std::string> grpc;
  std::optional<std::string> metrics;
};

// Makes a request of one row for a model. Dimensions of any size, other than the first one of an
// input, become `free_size`.
SampleCall MakeSampleCall(const config::ModelConfig& config, int64_t free_size = 1);

// Whether `free_size` makes a difference.
bool HasFreeSizes(const config::ModelConfig& config);

// Executes the call in this process, uncounted in the statistics, and waits for the end; the error
// is the model's.
base::Status Try(service::Service& service, const SampleCall& call);

// Returns a command line for a shell, or nothing if HTTP is off. `addresses` as for clients.
std::optional<std::string> CurlCommand(const SampleCall& call, const ServerAddresses& addresses);

// Returns a program that uses NumPy and Triton's client, over HTTP if possible; nothing if no
// protocol is on that suits the model.
std::optional<std::string> PythonProgram(const SampleCall& call, const ServerAddresses& addresses);

}  // namespace nereid::cli
