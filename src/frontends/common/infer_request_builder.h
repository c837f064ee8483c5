// SPDX-License-Identifier: Apache-2.0
// What a client may say in the head of an inference request, for all protocols: names and limits,
// which types a parameter may have, what contradicts what, and the error texts. Each reader knows
// its grammar (JSON, protobuf) and hands what it finds to a builder.
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

// Protocols differ in the types that they accept for a parameter, and in their words.
enum class Protocol : uint8_t { kHttp, kGrpc };

// What texts a reader hands over.
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

// `text` up to its first zero byte.
std::string_view CutAtZero(std::string_view text);

// kInvalid for a name that is no data type.
tensor::DataType ParseDataType(std::string_view name);

// Fills one request. The request's model is set; an error leaves the request half filled.
// Thread-compatible.
class InferRequestBuilder {
 public:
  // `regions` collects the tensors in shared memory; the reader's caller attaches them.
  InferRequestBuilder(Protocol protocol, TextKind texts, core::Request& request,
                      RequestRegions& regions)
      : request_(request), regions_(regions), protocol_(protocol), texts_(texts) {}

  // Before anything that can fail: errors name the id.
  void SetId(std::string_view id) {
    // Copied even where the text outlives the request: responses carry it, and some leave later.
    request_.id = request_.arena().Copy(Cut(id));
  }

  // A parameter of the request: one that the server understands takes effect, any other becomes
  // the model's.
  base::Status SetParameter(std::string_view name, const ParameterValue& value);
  // A parameter for the model, whatever its name, unless that is reserved.
  base::Status ForwardParameter(std::string_view name, const ParameterValue& value);
  // Whether a parameter has been set more than once, for readers that do not know which of them
  // counts.
  bool has_parameter_twice() const {
    return repeats_parameter_ || (forwarded_count_ > 1 && RepeatsForwardedParameter());
  }

  // Adds an input without data. InvalidArgument when there is one of that name.
  base::Result<core::RequestInput*> AddInput(std::string_view name, tensor::DataType type,
                                             std::span<const int64_t> dims);
  // The same for readers that word no errors: null instead.
  core::RequestInput* TryAddInput(std::string_view name, tensor::DataType type,
                                  std::span<const int64_t> dims);
  // Where the tensor `name` lies in shared memory; nothing when its parameters name no region.
  base::Result<std::optional<RegionTensor>> ReadRegion(std::string_view name,
                                                       const RegionParameters& parameters) const;

  // Whether the parameters of an output contradict each other, for protocols that look at that
  // before the output's name. ReadOutputOptions checks it, too.
  base::Status CheckOutputParameters(const OutputParameters& parameters) const;
  // Adds an output. InvalidArgument when there is one of that name.
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
  // An error about a value's type, in the words of the protocol: `json` and `grpc` say which type
  // it should have. `tensor` is empty for a parameter of the request.
  base::Status WrongType(std::string_view name, std::string_view json, std::string_view grpc,
                         std::string_view tensor = {}) const;
  // The same for HTTP only, beginning with `context`.
  static base::Status WrongJsonType(std::string_view context, std::string_view name,
                                    std::string_view json);
  base::Status AlreadyExists(std::string_view kind, std::string_view name) const;
  // `text` up to its first zero byte.
  std::string_view Cut(std::string_view text) const {
    return texts_ == TextKind::kPlain ? text : CutAtZero(text);
  }
  // `text`, to live as long as the request.
  std::string_view Kept(std::string_view text) {
    return texts_ == TextKind::kOfReader ? request_.arena().Copy(text) : text;
  }

  core::Request& request_;
  RequestRegions& regions_;
  const Protocol protocol_;
  const TextKind texts_;
  bool is_binary_by_default_ = false;
  bool wants_empty_final_response_ = false;
  bool repeats_parameter_ = false;  // that the server understands
  uint32_t known_parameters_ = 0;   // a bit for each ParameterKey that has been set
  size_t parameter_count_ = 0;
  size_t forwarded_count_ = 0;
};

}  // namespace nereid::common
