// SPDX-License-Identifier: Apache-2.0
// The requests that `nereid bench` sends, prepared as they go over the wire, and where they go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/infer_inputs.h"
#include "cli/server_client.h"
#include "loadgen/target.h"

namespace nereid::cli {

// What to send. Several values for the same input are sent in turn.
struct BenchInputs {
  InferArguments arguments;  // `filling` is set
  int64_t batch_size = 1;
  int distinct = 1;  // requests with different random inputs
};

// The tensors of requests. The model's metadata outlives them.
struct BenchTensors {
  std::vector<std::vector<InferInput>> requests;  // all inputs as bytes
  std::string description;                        // "x FP32 [8, 784]"
};

// `max_batch_size` is that of the model's configuration; 0: it does not batch, or nobody knows.
base::Result<BenchTensors> MakeBenchTensors(const BenchInputs& inputs, const ModelMetadata& model,
                                            int64_t max_batch_size);

// A server, the model and the protocol.
struct BenchAddress {
  ServerOptions server;  // for HTTP, and for the metadata
  std::string grpc_url;  // [http[s]://]HOST:PORT; empty: HTTP is used
  std::string model;
  std::string version;
};

// INVALID_ARGUMENT if an address or a file of certificates is wrong.
base::Result<loadgen::Target> MakeBenchTarget(const BenchAddress& address);

// Returns a prepared request for each of the tensors.
base::Result<std::vector<std::string>> MakeBenchRequests(const BenchAddress& address,
                                                         const InferArguments& arguments,
                                                         const ModelMetadata& model,
                                                         BenchTensors tensors);

// All that a load on a model needs.
struct PreparedBench {
  loadgen::Target target;
  std::vector<std::string> requests;
  std::string description;  // of the inputs, for people
};

// Asks the server about the model and prepares requests. An error is the server's, or says what is
// wrong with the arguments.
base::Result<PreparedBench> PrepareBench(ServerClient& client, const BenchAddress& address,
                                         const BenchInputs& inputs);

// Adds the options about the inputs of requests.
void AddBenchInputs(Command& command, BenchInputs& inputs, bool& wants_zeros);

}  // namespace nereid::cli
