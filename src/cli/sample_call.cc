// SPDX-License-Identifier: Apache-2.0
#include "cli/sample_call.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"

namespace nereid::cli {
namespace {

using tensor::DataType;

// Inputs with more elements are sent as bytes, which need not be printed.
constexpr int64_t kMaxPrinted = 64;

int64_t ElementCount(const SampleCall::Tensor& tensor) {
  int64_t count = 1;
  for (const int64_t dim : tensor.shape) count *= dim;
  return count;
}

// JSON has no numbers of these types in this protocol.
bool IsBinaryOnly(DataType type) { return type == DataType::kFp16 || type == DataType::kBf16; }

std::string JsonText(std::string_view text) {
  std::string json;
  base::AppendJsonString(json, text);
  return json;
}

// Returns `text` as one word of a shell.
std::string ShellWord(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// Returns `text` as a literal of Python, which understands all that JSON escapes.
std::string PythonText(std::string_view text) { return JsonText(text); }

std::string UrlPart(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
  std::string part;
  for (const char c : text) {
    part += kPlain.find(c) != std::string_view::npos
                ? std::string(1, c)
                : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return part;
}

std::string DataJson(const SampleCall::Tensor& input, int64_t count) {
  const char* element = "0";
  if (input.type == DataType::kBytes) element = "\"1\"";
  if (input.type == DataType::kBool) element = "false";
  return fmt::format("[{}]",
                     fmt::join(std::vector<const char*>(static_cast<size_t>(count), element), ","));
}

// The body of a request: JSON, and the number of zeros behind it.
struct Body {
  std::string json;
  int64_t zeros = 0;
  bool has_binary = false;  // also if there are no bytes
};

Body MakeBody(const SampleCall& call) {
  Body body;
  std::vector<std::string> inputs;
  for (const SampleCall::Tensor& input : call.inputs) {
    const int64_t count = ElementCount(input);
    std::string json =
        fmt::format(R"({{"name":{},"datatype":"{}","shape":[{}],)", JsonText(input.name),
                    tensor::ProtocolName(input.type), fmt::join(input.shape, ","));
    if (count > kMaxPrinted || IsBinaryOnly(input.type)) {
      // An empty text is its length, four zeros.
      const bool is_text = input.type == DataType::kBytes;
      const int64_t size =
          count * (is_text ? 4 : static_cast<int64_t>(tensor::ElementSize(input.type)));
      json += fmt::format(R"("parameters":{{"binary_data_size":{}}}}})", size);
      body.zeros += size;
      body.has_binary = true;
    } else {
      json += fmt::format(R"("data":{}}})", DataJson(input, count));
    }
    inputs.push_back(std::move(json));
  }
  body.json = fmt::format(R"({{"inputs":[{}])", fmt::join(inputs, ","));
  if (std::ranges::any_of(call.outputs, IsBinaryOnly, &SampleCall::Tensor::type)) {
    std::vector<std::string> outputs;
    for (const SampleCall::Tensor& output : call.outputs) {
      outputs.push_back(fmt::format(R"({{"name":{},"parameters":{{"binary_data":{}}}}})",
                                    JsonText(output.name), IsBinaryOnly(output.type)));
    }
    body.json += fmt::format(R"(,"outputs":[{}])", fmt::join(outputs, ","));
  }
  if (call.is_sequence) {
    body.json += R"(,"parameters":{"sequence_id":1,"sequence_start":true,"sequence_end":true})";
  }
  body.json += '}';
  return body;
}

// A model with many responses is called by a protocol of its own, in which all values are JSON.
std::optional<std::string> GenerateCommand(const SampleCall& call, const std::string& url) {
  std::vector<std::string> members;
  for (const SampleCall::Tensor& input : call.inputs) {
    if (IsBinaryOnly(input.type)) return std::nullopt;
    const int64_t count = ElementCount(input);
    if (count > 16 * kMaxPrinted) return std::nullopt;
    members.push_back(JsonText(input.name) + ":" + DataJson(input, count));
  }
  return fmt::format("curl -sN {}/generate_stream -d {}", url,
                     ShellWord(fmt::format("{{{}}}", fmt::join(members, ","))));
}

std::string NumpyType(DataType type) {
  switch (type) {
    case DataType::kBool:
      return "np.bool_";
    case DataType::kBytes:
      return "np.object_";
    case DataType::kFp16:
      return "np.float16";
    case DataType::kBf16:  // the client converts
    case DataType::kFp32:
      return "np.float32";
    case DataType::kFp64:
      return "np.float64";
    default: {
      std::string name(tensor::ProtocolName(type));
      for (char& c : name) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      }
      return "np." + name;
    }
  }
}

std::string PythonInputs(const SampleCall& call) {
  std::string text = "inputs = [\n";
  for (const SampleCall::Tensor& input : call.inputs) {
    text += fmt::format("    triton.InferInput({}, {}, \"{}\"),\n", PythonText(input.name),
                        input.shape, tensor::ProtocolName(input.type));
  }
  text += "]\n";
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const SampleCall::Tensor& input = call.inputs[i];
    text += fmt::format("inputs[{}].set_data_from_numpy(", i);
    text += input.type == DataType::kBytes
                ? fmt::format("np.full({}, b\"1\", np.object_))\n", input.shape)
                : fmt::format("np.zeros({}, {}))\n", input.shape, NumpyType(input.type));
  }
  return text;
}

// The programs close their client, also after an error: gRPC's, left open, may keep the
// interpreter from ending.
std::string StreamProgram(const SampleCall& call, const std::string& address) {
  return fmt::format(
      R"(import queue

import numpy as np
import tritonclient.grpc as triton

{}
responses = queue.Queue()
with triton.InferenceServerClient("{}") as client:
    client.start_stream(lambda result, error: responses.put(error or result))
    client.async_stream_infer({}, inputs, enable_empty_final_response=True{})
    is_final = False
    while not is_final:
        result = responses.get()
        if isinstance(result, Exception):
            raise result
        for output in result.get_response().outputs:
            print(output.name, result.as_numpy(output.name))
        is_final = result.get_response().parameters["triton_final_response"].bool_param
)",
      PythonInputs(call), address, PythonText(call.model),
      call.is_sequence ? ", sequence_id=1, sequence_start=True, sequence_end=True" : "");
}

}  // namespace

SampleCall MakeSampleCall(const config::ModelConfig& config, int64_t free_size) {
  SampleCall call{.model = config.name,
                  .is_sequence = config.sequence_batching() != nullptr,
                  .is_decoupled = config.is_decoupled()};
  const bool has_required = std::ranges::any_of(
      config.input, [](const config::ModelInput& input) { return !input.optional; });
  for (const config::ModelInput& input : config.input) {
    if (input.optional && has_required) continue;
    SampleCall::Tensor tensor{.name = input.name, .type = input.data_type};
    if (config.max_batch_size > 0) tensor.shape.push_back(1);
    for (const int64_t dim : input.dims) {
      const bool is_first = tensor.shape.empty();
      tensor.shape.push_back(dim != config::kWildcardDim ? dim : is_first ? 1 : free_size);
    }
    call.inputs.push_back(std::move(tensor));
  }
  for (const config::ModelOutput& output : config.output) {
    call.outputs.push_back({.name = output.name, .type = output.data_type});
  }
  return call;
}

bool HasFreeSizes(const config::ModelConfig& config) {
  const SampleCall small = MakeSampleCall(config, 1);
  const SampleCall large = MakeSampleCall(config, 2);
  for (size_t i = 0; i < small.inputs.size(); ++i) {
    if (small.inputs[i].shape != large.inputs[i].shape) return true;
  }
  return false;
}

std::optional<std::string> CurlCommand(const SampleCall& call, const ServerAddresses& addresses) {
  if (!addresses.http) return std::nullopt;
  const std::string url = fmt::format("{}/v2/models/{}", *addresses.http, UrlPart(call.model));
  if (call.is_decoupled) return GenerateCommand(call, url);
  const Body body = MakeBody(call);
  std::string command = body.has_binary
                            ? fmt::format(
                                  "{{ printf %s {}; head -c {} /dev/zero; }} |\n"
                                  "  curl -s {}/infer -H 'Inference-Header-Content-Length: {}' "
                                  "--data-binary @-",
                                  ShellWord(body.json), body.zeros, url, body.json.size())
                            : fmt::format("curl -s {}/infer -d {}", url, ShellWord(body.json));
  // Bytes would be noise on a terminal.
  if (std::ranges::any_of(call.outputs, IsBinaryOnly, &SampleCall::Tensor::type)) {
    command += " | od -c | head";
  }
  return command;
}

std::optional<std::string> PythonProgram(const SampleCall& call, const ServerAddresses& addresses) {
  if (call.is_decoupled) {
    if (!addresses.grpc) return std::nullopt;
    return StreamProgram(call, *addresses.grpc);
  }
  if (!addresses.http && !addresses.grpc) return std::nullopt;
  std::string text = fmt::format(
      "import numpy as np\nimport tritonclient.{} as triton\n\n{}"
      "with triton.InferenceServerClient(\"{}\") as client:\n"
      "    result = client.infer({}, inputs{})\n",
      addresses.http ? "http" : "grpc", PythonInputs(call),
      addresses.http ? *addresses.http : *addresses.grpc, PythonText(call.model),
      call.is_sequence ? ", sequence_id=1, sequence_start=True, sequence_end=True" : "");
  for (const SampleCall::Tensor& output : call.outputs) {
    text += fmt::format("print({0}, result.as_numpy({0}))\n", PythonText(output.name));
  }
  return text;
}

}  // namespace nereid::cli
