// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_request.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "base/trim.h"
#include "base/unix_address.h"
#include "cli/grpc_message.h"
#include "cli/infer_request.h"
#include "cli/json.h"
#include "cli/json_elements.h"
#include "http_client/url.h"
#include "tensor/shape.h"

namespace nereid::cli {
namespace {

constexpr std::string_view kInferMethod = "/inference.GRPCInferenceService/ModelInfer";
// All prepared requests together.
constexpr size_t kMaxBytes = size_t{4} << 30;

// The values of --input by input, in the order in which they were given. The name is empty where it
// was left out.
std::map<std::string, std::vector<std::string>> ByName(const std::vector<std::string>& inputs) {
  std::map<std::string, std::vector<std::string>> values;
  for (const std::string& input : inputs) {
    const bool has_name = !input.starts_with('@') && !input.starts_with('[');
    values[has_name ? input.substr(0, input.find('=')) : ""].push_back(input);
  }
  return values;
}

// Makes a batch of an input with one row, if that is what is missing.
base::Status FitBatch(InferInput& input, int64_t batch_size) {
  if (batch_size == 1) return base::OkStatus();
  const std::vector<int64_t>& expected = input.metadata->shape;
  if (expected.empty() || expected.front() != kAnySize || input.shape.empty()) {
    return base::InvalidArgumentError(
        fmt::format("--batch-size {}: input {} has no dimension for a batch; its shape is {}",
                    batch_size, input.metadata->name, ShapeText(expected)));
  }
  if (input.shape.front() == batch_size) return base::OkStatus();
  if (input.shape.front() != 1) {
    return base::InvalidArgumentError(
        fmt::format("--batch-size {}: input {} has {} rows, expected 1 or {}", batch_size,
                    input.metadata->name, input.shape.front(), batch_size));
  }
  const std::string row = input.bytes;
  if (row.size() > kMaxBytes / static_cast<uint64_t>(batch_size)) {
    return base::InvalidArgumentError("--batch-size: the request would be too large");
  }
  for (int64_t i = 1; i < batch_size; ++i) input.bytes += row;
  input.shape.front() = batch_size;
  return base::OkStatus();
}

base::Status MakeBytes(InferInput& input) {
  if (!input.json) return base::OkStatus();
  const auto type =
      tensor::FromProtocolName(input.metadata->datatype).value_or(tensor::DataType::kInvalid);
  auto bytes = BytesOfJson(type, *input.json);
  if (!bytes.ok()) {
    return bytes.status().WithPrefix(fmt::format("input {}: ", input.metadata->name));
  }
  input.bytes = *std::move(bytes);
  input.json.reset();
  return base::OkStatus();
}

// A shape with holes, or with another number of elements than there are, is refused before a server
// is asked.
base::Status CheckSize(const InferInput& input) {
  const auto type =
      tensor::FromProtocolName(input.metadata->datatype).value_or(tensor::DataType::kInvalid);
  const size_t size = tensor::ElementSize(type);
  const int64_t count = tensor::ElementCount(input.shape).value_or(-1);
  const bool is_wrong =
      type == tensor::DataType::kBytes
          ? SplitBytes(input.bytes).value_or(std::vector<std::string_view>()).size() !=
                static_cast<size_t>(std::max<int64_t>(count, 0))
          : count < 0 || static_cast<uint64_t>(count) * size != input.bytes.size();
  if (!is_wrong) return base::OkStatus();
  return base::InvalidArgumentError(fmt::format("input {}: {} bytes do not make a tensor {} {}",
                                                input.metadata->name, input.bytes.size(),
                                                input.metadata->datatype, ShapeText(input.shape)));
}

std::string Describe(const std::vector<InferInput>& inputs) {
  std::string text;
  for (const InferInput& input : inputs) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", input.metadata->name,
                        input.metadata->datatype, ShapeText(input.shape));
  }
  return text;
}

std::string HostOf(const http_client::Url& url) {
  return fmt::format(
      "{}:{}", url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]", url.port);
}

base::Result<http_client::Url> UrlOf(std::string_view option, std::string_view text) {
  auto url = http_client::ParseUrl(text);
  if (!url.ok()) {
    return RefuseArgument(fmt::format("{} '{}'", option, text), "expected [https://]HOST:PORT");
  }
  return url;
}

// A whole request of HTTP/1.1.
base::Result<std::string> HttpRequestOf(const BenchAddress& address,
                                        const InferArguments& arguments, const ModelMetadata& model,
                                        std::vector<InferInput> inputs) {
  std::string host = "localhost";
  std::string base_path;
  if (!address.server.url.starts_with(base::kUnixPrefix)) {
    NEREID_ASSIGN_OR_RETURN(const http_client::Url url, UrlOf("--url", address.server.url));
    host = HostOf(url);
    base_path = url.path;
    while (base_path.ends_with('/')) base_path.pop_back();
  }
  NEREID_ASSIGN_OR_RETURN(const InferBody body, MakeInferBody(arguments, model, std::move(inputs)));
  std::string request = fmt::format("POST {} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n",
                                    base_path + ModelPath(address.model, address.version, "/infer"),
                                    host, body.body.size());
  for (const auto& [name, value] : body.headers) request += fmt::format("{}: {}\r\n", name, value);
  for (const std::string& line : address.server.headers) request += line + "\r\n";
  return request + "\r\n" + body.body;
}

}  // namespace

base::Result<BenchTensors> MakeBenchTensors(const BenchInputs& inputs, const ModelMetadata& model,
                                            int64_t max_batch_size) {
  if (max_batch_size > 0 && inputs.batch_size > max_batch_size) {
    return base::InvalidArgumentError(fmt::format(
        "--batch-size {}: the model takes batches of up to {}", inputs.batch_size, max_batch_size));
  }
  const auto values = ByName(inputs.arguments.inputs);
  size_t count = static_cast<size_t>(inputs.distinct);
  for (const auto& [name, list] : values) count = std::max(count, list.size());
  BenchTensors tensors;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    InferArguments arguments = inputs.arguments;
    arguments.inputs.clear();
    for (const auto& [name, list] : values) arguments.inputs.push_back(list[i % list.size()]);
    arguments.seed += static_cast<int64_t>(i);
    NEREID_ASSIGN_OR_RETURN(std::vector<InferInput> request, ReadInferInputs(arguments, model));
    for (InferInput& input : request) {
      NEREID_RETURN_IF_ERROR(MakeBytes(input));
      NEREID_RETURN_IF_ERROR(FitBatch(input, inputs.batch_size));
      NEREID_RETURN_IF_ERROR(CheckSize(input));
      total += input.bytes.size();
    }
    if (total > kMaxBytes) {
      return base::InvalidArgumentError("the requests would take more than 4 GiB together");
    }
    tensors.requests.push_back(std::move(request));
  }
  tensors.description = Describe(tensors.requests.front());
  if (count > 1) tensors.description += fmt::format("; {} different requests", count);
  return tensors;
}

base::Result<loadgen::Target> MakeBenchTarget(const BenchAddress& address) {
  loadgen::Target target;
  const bool is_grpc = !address.grpc_url.empty();
  const std::string_view option = is_grpc ? "--grpc-url" : "--url";
  const std::string& where = is_grpc ? address.grpc_url : address.server.url;
  target.protocol = is_grpc ? loadgen::Protocol::kGrpc : loadgen::Protocol::kHttp;
  target.grpc.method = kInferMethod;
  target.grpc.authority = "localhost";
  for (const std::string& line : address.server.headers) {
    const size_t colon = std::min(line.find(':'), line.size());
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    target.grpc.metadata.emplace_back(
        std::move(name),
        base::Trim(std::string_view(line).substr(std::min(colon + 1, line.size())), " \t"));
  }
  if (where.starts_with(base::kUnixPrefix)) {
    NEREID_ASSIGN_OR_RETURN(target.address,
                            loadgen::Address::Unix(where.substr(base::kUnixPrefix.size())));
    return target;
  }
  NEREID_ASSIGN_OR_RETURN(const http_client::Url url, UrlOf(option, where));
  NEREID_ASSIGN_OR_RETURN(target.address, loadgen::Address::Tcp(url.host, url.port));
  target.grpc.authority = HostOf(url);
  target.grpc.is_tls = url.is_tls;
  if (url.is_tls) {
    NEREID_ASSIGN_OR_RETURN(target.tls,
                            loadgen::TlsSettings::Create({.ca = address.server.ca_file,
                                                          .cert = address.server.cert_file,
                                                          .key = address.server.key_file},
                                                         is_grpc ? "h2" : "http/1.1", url.host));
  }
  return target;
}

base::Result<std::vector<std::string>> MakeBenchRequests(const BenchAddress& address,
                                                         const InferArguments& arguments,
                                                         const ModelMetadata& model,
                                                         BenchTensors tensors) {
  std::vector<std::string> requests;
  for (std::vector<InferInput>& inputs : tensors.requests) {
    if (!address.grpc_url.empty()) {
      requests.push_back(loadgen::GrpcFrame(
          GrpcInferMessage(address.model, address.version, arguments.parameters, inputs)));
      continue;
    }
    NEREID_ASSIGN_OR_RETURN(std::string request,
                            HttpRequestOf(address, arguments, model, std::move(inputs)));
    requests.push_back(std::move(request));
  }
  return requests;
}

base::Result<PreparedBench> PrepareBench(ServerClient& client, const BenchAddress& address,
                                         const BenchInputs& inputs) {
  for (const std::string& parameter : inputs.arguments.parameters) {
    if (parameter.find('=') == std::string::npos || parameter.starts_with('=')) {
      return RefuseArgument(fmt::format("--parameter '{}'", parameter), "expected NAME=VALUE");
    }
  }
  NEREID_ASSIGN_OR_RETURN(const rapidjson::Document document,
                          client.GetJson(ModelPath(address.model, address.version, "")));
  NEREID_ASSIGN_OR_RETURN(const ModelMetadata model, ReadModelMetadata(document));
  // A server that keeps its configurations to itself is measured all the same.
  const auto config = client.GetJson(ModelPath(address.model, address.version, "/config"));
  int64_t max_batch_size = 0;
  if (config.ok()) {
    max_batch_size = static_cast<int64_t>(NumberOf(*config, "max_batch_size"));
    const rapidjson::Value* const policy = MemberOf(*config, "model_transaction_policy");
    const rapidjson::Value* const decoupled =
        policy == nullptr ? nullptr : MemberOf(*policy, "decoupled");
    if (decoupled != nullptr && decoupled->IsTrue()) {
      return base::UnsupportedError(
          fmt::format("{} is decoupled: requests with any number of responses are not measured",
                      address.model));
    }
  }
  NEREID_ASSIGN_OR_RETURN(BenchTensors tensors, MakeBenchTensors(inputs, model, max_batch_size));
  PreparedBench prepared;
  prepared.description = tensors.description;
  NEREID_ASSIGN_OR_RETURN(prepared.target, MakeBenchTarget(address));
  NEREID_ASSIGN_OR_RETURN(prepared.requests,
                          MakeBenchRequests(address, inputs.arguments, model, std::move(tensors)));
  return prepared;
}

void AddBenchInputs(Command& command, BenchInputs& inputs, bool& wants_zeros) {
  const std::string heading = "Inputs";
  command
      .Option(
          "--input", "NAME=VALUE", inputs.arguments.inputs,
          "An input, as for 'nereid infer': JSON, or @FILE with a .npy, .json or .raw file. "
          "Given several times for the same input, the values are sent in turn. Inputs that are "
          "not given are random.")
      .Names(Hint::kFile)
      .In(heading);
  command
      .Option("--shape", "NAME=SIZES", inputs.arguments.shapes,
              "The shape of an input whose model leaves sizes open, such as image=1,28,28; 1 "
              "otherwise.")
      .In(heading);
  command
      .Option("--batch-size,-b", "N", inputs.batch_size,
              "Rows in each request. An input with one row is repeated.")
      .In(heading);
  command
      .Option("--distinct", "N", inputs.distinct,
              "How many requests with different random inputs are sent in turn: more than one if "
              "the server has a response cache.")
      .In(heading);
  command.Flag("--zeros", wants_zeros, "Fills inputs that are not given with zeros.").In(heading);
  command.Option("--seed", "N", inputs.arguments.seed, "Another seed gives other random inputs.")
      .In(heading);
  command
      .Option("--parameter,-p", "NAME=VALUE", inputs.arguments.parameters,
              "A parameter of each request, such as priority=1.")
      .In(heading);
}

}  // namespace nereid::cli
