// SPDX-License-Identifier: Apache-2.0
// The request that `nereid infer` sends, made from its arguments and what the server says about the
// model; and the response. Usable for other commands that send requests.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/infer_inputs.h"
#include "cli/model_metadata.h"
#include "cli/server_client.h"

namespace nereid::cli {

// The body of a request and its headers.
struct InferBody {
  std::string body;
  std::map<std::string, std::string> headers;
};

// Reads the files that the arguments name. INVALID_ARGUMENT says what is wrong with the arguments.
base::Result<InferBody> MakeInferBody(const InferArguments& arguments, const ModelMetadata& model);
// Makes the body with inputs that were read already.
base::Result<InferBody> MakeInferBody(const InferArguments& arguments, const ModelMetadata& model,
                                      std::vector<InferInput> inputs);

// An output of a response. Either `bytes` are its elements, as elements.h describes them, or `json`
// is the array of them, from servers that send no binary data.
struct InferOutput {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;
  std::optional<std::string> bytes;
  std::string json;
};

struct InferReply {
  std::string model;
  std::string version;
  std::string id;
  std::string parameters;  // as JSON; empty if there are none
  std::vector<InferOutput> outputs;
};

base::Result<InferReply> ReadInferReply(const ServerReply& reply);

}  // namespace nereid::cli
