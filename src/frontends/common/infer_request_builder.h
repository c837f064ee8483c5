// SPDX-License-Identifier: Apache-2.0
// The rules for the head of an inference request, for all protocols: names and limits, the types of
// parameters, contradictions, and the error texts. Each reader parses its own grammar (JSON,
// protobuf) and passes what it finds to a builder.
//
//   InferRequestBuilder builder(Protocol::kHttp, TextKind::kPlain, request, regions);
//   builder.SetId("7");
//   ... builder.SetParameter("priority", int64_t{2}) ...
//   ... builder.AddInput("INPUT0", tensor::DataType::kFp32, dims) ...
//
// Names, ids and texts end at a zero byte, as they do for every client of the C API.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "common/parameters.h"
#include "common/request_regions.h"
#include "core/request.h"
#include "tensor/data_type.h"

namespace nereid::common {

// A parameter's value as the client wrote it. A number in JSON is an int64_t if it fits, else a
// uint64_t if it fits, else a double. monostate: none of these types.
using ParameterValue =
    std::variant<std::monostate, bool, int64_t, std::string_view, double, uint64_t>;

// Protocols differ in the types that they accept for a parameter, and in their error texts.
enum class Protocol : uint8_t { kHttp, kGrpc };

// The texts that a reader passes.
enum class TextKind : uint8_t {
  kPlain,      // without zero bytes; they live as long as the request
  kOfMessage,  // any; they live as long as the request
  kOfReader,   // any; the builder copies what it keeps
};

// The parameters that place a tensor in shared memory, as far as the client gave them.
struct RegionParameters {
  std::optional<ParameterValue> region;
  std::optional<ParameterValue> offset;
  std::optional<ParameterValue> byte_size;
};

// The parameters of a requested output, as far as the client gave them.
struct OutputParameters {
  RegionParameters region;
  std::optional<ParameterValue> classification;
  std::optional<ParameterValue> binary_data;  // known to HTTP only
};

// How the client wants one output.
struct OutputOptions {
  bool is_binary = false;
  uint32_t class_count = 0;   // 0: the tensor itself
  bool is_in_region = false;  // shared memory: the response has only its type and shape
};

// Returns `text` up to its first zero byte.
std::string_view CutAtZero(std::string_view text);

// Returns kInvalid if `name` is not a data type.
tensor::DataType ParseDataType(std::string_view name);

// Fills one request, whose model is set. An error leaves the request partly filled.
// Thread-compatible.
class InferRequestBuilder {
 public:
  // `regions` collects the tensors in shared memory; the reader's caller attaches them.
  InferRequestBuilder(Protocol protocol, TextKind texts, core::Request& request,
                      RequestRegions& regions)
      : request_(request), regions_(regions), protocol_(protocol), texts_(texts) {}

  // Must precede everything that can fail, because errors contain the id.
  void SetId(std::string_view id) {
    // Copied even if the text outlives the request, because responses refer to it, and some are
    // sent later.
    request_.id = request_.arena().Copy(Cut(id));
  }

  // Sets a parameter of the request. One that the server understands takes effect; any other is for
  // the model.
  base::Status SetParameter(std::string_view name, const ParameterValue& value) {
    const std::string_view key = Cut(name);
    return SetParameter(ClassifyParameter(key), key, value);
  }
  // The same for a reader that knows which key `name` is.
  base::Status SetParameter(ParameterKey key, std::string_view name, const ParameterValue& value);
  // Sets a parameter for the model, of any name that is not reserved.
  base::Status ForwardParameter(std::string_view name, const ParameterValue& value);
  // Whether a parameter has been set more than once, for readers that do not know which value
  // applies.
  bool has_parameter_twice() const {
    return repeats_parameter_ || (forwarded_count_ > 1 && RepeatsForwardedParameter());
  }

  // Adds an input without data. InvalidArgument if there is one of that name.
  base::Result<core::RequestInput*> AddInput(std::string_view name, tensor::DataType type,
                                             std::span<const int64_t> dims);
  // Like AddInput, but returns null instead of an error.
  core::RequestInput* TryAddInput(std::string_view name, tensor::DataType type,
                                  std::span<const int64_t> dims);
  // Returns where the tensor `name` lies in shared memory; nothing if its parameters name no
  // region.
  base::Result<std::optional<RegionTensor>> ReadRegion(std::string_view name,
                                                       const RegionParameters& parameters) const;

  // Checks whether the parameters of an output contradict each other, for protocols that check this
  // before the output's name. ReadOutputOptions checks it, too.
  base::Status CheckOutputParameters(const OutputParameters& parameters) const;
  // Adds an output. InvalidArgument if there is one of that name.
  base::Result<core::RequestedOutput*> AddOutput(std::string_view name);
  // Reads the parameters of an output that AddOutput made.
  base::Result<OutputOptions> ReadOutputOptions(const core::RequestedOutput& output,
                                                const OutputParameters& parameters);

  core::Request& request() { return request_; }
  RequestRegions& regions() { return regions_; }
  // Set by `binary_data_output` (HTTP): outputs that the request does not list are binary.
  bool is_binary_by_default() const { return is_binary_by_default_; }
  // Set by `triton_enable_empty_final_response` (gRPC).
  bool wants_empty_final_response() const { return wants_empty_final_response_; }

 private:
  bool RepeatsForwardedParameter() const;
  base::Status SetSequenceId(const ParameterValue& value);
  base::Status SetSequenceFlag(std::string_view name, core::RequestFlag flag,
                               const ParameterValue& value);
  base::Status SetPriority(const ParameterValue& value);
  base::Status SetTimeout(const ParameterValue& value);
  base::Status SetReserved(std::string_view name, const ParameterValue& value);
  base::Status AppendParameter(std::string_view name, const ParameterValue& value);
  base::Result<uint32_t> ReadClassCount(const ParameterValue& value) const;
  // Makes an error about a value's type, in the words of the protocol: `json` and `grpc` say which
  // type it should have. `tensor` is empty for a parameter of the request.
  base::Status WrongType(std::string_view name, std::string_view json, std::string_view grpc,
                         std::string_view tensor = {}) const;
  // Like WrongType for HTTP only, beginning with `context`.
  static base::Status WrongJsonType(std::string_view context, std::string_view name,
                                    std::string_view json);
  base::Status AlreadyExists(std::string_view kind, std::string_view name) const;
  // Returns `text` up to its first zero byte.
  std::string_view Cut(std::string_view text) const {
    return texts_ == TextKind::kPlain ? text : CutAtZero(text);
  }
  // Returns `text`, which then lives as long as the request.
  std::string_view Kept(std::string_view text) {
    return texts_ == TextKind::kOfReader ? request_.arena().Copy(text) : text;
  }

  core::Request& request_;
  RequestRegions& regions_;
  const Protocol protocol_;
  const TextKind texts_;
  bool is_binary_by_default_ = false;
  bool wants_empty_final_response_ = false;
  bool repeats_parameter_ = false;  // one that the server understands
  uint32_t known_parameters_ = 0;   // a bit for each ParameterKey that has been set
  size_t parameter_count_ = 0;
  size_t forwarded_count_ = 0;
};

}  // namespace nereid::common
