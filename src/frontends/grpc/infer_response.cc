// SPDX-License-Identifier: Apache-2.0
// Field numbers are those of proto/grpc_service.proto. Sizes are computed first, then bytes are
// written: the head of a message needs one contiguous buffer, and the length of a nested message
// precedes it.
#include "grpc/infer_response.h"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "common/classification.h"
#include "core/model.h"
#include "grpc/infer_request.h"
#include "grpc/wire_writer.h"

namespace nereid::grpc {
namespace {

using http2::GrpcMessage;
using http2::GrpcMessagePtr;

// Smaller tensors are copied, so that the response can be released at once.
constexpr size_t kReferFrom = 512;
constexpr size_t kMaxMessage = INT32_MAX;
constexpr std::string_view kFinalResponse = "triton_final_response";

// One output as it will be sent: the tensor itself or its classes.
struct OutgoingOutput {
  std::string_view name;
  std::string_view datatype;
  std::span<const int64_t> shape;
  const std::byte* data = nullptr;
  size_t size = 0;
  size_t head_size = 0;  // size of the InferOutputTensor
};

// Classification results of one response; empty in the usual case.
struct Classes {
  std::vector<std::string> data;
  std::vector<tensor::Shape> shapes;
};

size_t ParameterValueSize(const core::Parameter& parameter) {
  if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
    return BytesFieldSize(text->size());
  }
  if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
    return 1 + VarintSize(static_cast<uint64_t>(*number));
  }
  return std::holds_alternative<bool>(parameter.value) ? 2 : 9;
}

// A map entry: key = 1, value = 2.
size_t ParameterSize(const core::Parameter& parameter) {
  return BytesFieldSize(parameter.name.size()) + BytesFieldSize(ParameterValueSize(parameter));
}

void WriteParameter(WireWriter& writer, const core::Parameter& parameter) {
  writer.BytesHead(4, ParameterSize(parameter));
  writer.BytesField(1, parameter.name);
  writer.BytesHead(2, ParameterValueSize(parameter));
  if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
    writer.BytesField(3, *text);
  } else if (const auto* number = std::get_if<int64_t>(&parameter.value)) {
    writer.VarintField(2, static_cast<uint64_t>(*number));
  } else if (const auto* on = std::get_if<bool>(&parameter.value)) {
    writer.VarintField(1, *on ? 1 : 0);
  } else {
    writer.Fixed64Field(4, std::bit_cast<uint64_t>(std::get<double>(parameter.value)));
  }
}

// Returns a class count, or kInRegionTag.
uint32_t TagOf(const core::Response& response, const core::ResponseOutput& output) {
  for (const core::RequestedOutput& requested : response.request().outputs) {
    if (requested.name == output.name) return requested.tag;
  }
  return 0;
}

// The classes of each batch entry, serialised as a BYTES tensor.
base::Status Classify(const core::Response& response, const core::ResponseOutput& output,
                      uint32_t count, Classes& classes) {
  const core::Model& model = *response.request().model;
  const std::span<const int64_t> dims = output.shape.dims();
  const bool is_batched = model.max_batch_size() > 0 && !dims.empty();
  const auto batch = static_cast<size_t>(is_batched ? dims[0] : 1);
  const size_t row_size = batch > 0 ? output.byte_size / batch : 0;
  std::span<const std::string> labels;
  if (output.model_index < model.outputs().size()) {
    labels = model.outputs()[output.model_index].labels;
  }
  std::string data;
  size_t per_row = 0;
  for (size_t row = 0; row < batch; ++row) {
    NEREID_ASSIGN_OR_RETURN(
        const std::vector<std::string> texts,
        common::TopClasses({output.data + row * row_size, row_size}, output.type, count, labels));
    per_row = texts.size();
    for (const std::string& text : texts) {
      const auto size = static_cast<uint32_t>(text.size());
      data.append(reinterpret_cast<const char*>(&size), sizeof(size));
      data += text;
    }
  }
  tensor::Shape shape;
  if (is_batched) shape.PushBack(dims[0]);
  shape.PushBack(static_cast<int64_t>(per_row));
  classes.data.push_back(std::move(data));
  classes.shapes.push_back(std::move(shape));
  return base::OkStatus();
}

class Encoder {
 public:
  // Takes `response`, which outlives this, if the message refers to its tensors.
  explicit Encoder(core::ResponsePtr& response) : response_(response) {}

  base::Status Prepare(const core::Parameter* extra);
  base::Result<GrpcMessagePtr> Write(bool in_stream);

 private:
  bool WriteHead(GrpcMessage& message, bool in_stream);
  bool WriteTensors(GrpcMessage& message, bool* refers);

  core::ResponsePtr& response_;
  const core::Parameter* extra_ = nullptr;
  Classes classes_;
  OutgoingOutput inline_outputs_[8];
  std::vector<OutgoingOutput> more_outputs_;
  std::span<OutgoingOutput> outputs_;
  size_t head_size_ = 0;  // up to the first raw_output_contents
  size_t body_size_ = 0;  // size of the ModelInferResponse
};

base::Status Encoder::Prepare(const core::Parameter* extra) {
  extra_ = extra;
  const core::Response& response = *response_;
  const core::Model& model = *response.request().model;
  const size_t count = response.output_count();
  if (count > std::size(inline_outputs_)) more_outputs_.resize(count);
  outputs_ = {more_outputs_.empty() ? inline_outputs_ : more_outputs_.data(), count};
  head_size_ = TextFieldSize(model.name()) + TextFieldSize(model.version_text()) +
               TextFieldSize(response.request().id);
  for (const core::Parameter& parameter : response.parameters()) {
    head_size_ += BytesFieldSize(ParameterSize(parameter));
  }
  if (extra != nullptr) head_size_ += BytesFieldSize(ParameterSize(*extra));
  size_t raw_size = 0;
  for (size_t i = 0; i < count; ++i) {
    const core::ResponseOutput& output = response.output(i);
    OutgoingOutput& out = outputs_[i];
    out = {.name = output.name,
           .datatype = tensor::ProtocolName(output.type),
           .shape = output.shape.dims(),
           .data = output.data,
           .size = output.byte_size};
    const uint32_t tag = TagOf(response, output);
    if (tag == kInRegionTag) {
      out.data = nullptr;
      out.size = 0;
    } else if (tag > 0) {
      classes_.data.reserve(count);  // outputs point into it
      classes_.shapes.reserve(count);
      NEREID_RETURN_IF_ERROR(Classify(response, output, tag, classes_));
      out.datatype = tensor::ProtocolName(tensor::DataType::kBytes);
      out.shape = classes_.shapes.back().dims();
      out.data = reinterpret_cast<const std::byte*>(classes_.data.back().data());
      out.size = classes_.data.back().size();
    }
    const size_t packed = PackedSize(out.shape);
    out.head_size = TextFieldSize(out.name) + TextFieldSize(out.datatype) +
                    (out.shape.empty() ? 0 : BytesFieldSize(packed));
    head_size_ += BytesFieldSize(out.head_size);
    raw_size += BytesFieldSize(out.size);
  }
  body_size_ = head_size_ + raw_size;
  if (body_size_ > kMaxMessage - 16) {
    return base::InternalError("Response has byte size " + std::to_string(body_size_) +
                               " which exceeds gRPC's byte size limit " +
                               std::to_string(kMaxMessage));
  }
  return base::OkStatus();
}

bool Encoder::WriteHead(GrpcMessage& message, bool in_stream) {
  const core::Response& response = *response_;
  const core::Model& model = *response.request().model;
  const size_t outer = in_stream ? 1 + VarintSize(body_size_) : 0;
  std::byte* const place = message.Extend(outer + head_size_);
  if (place == nullptr) return false;
  WireWriter writer(place);
  if (in_stream) writer.BytesHead(2, body_size_);
  writer.TextField(1, model.name());
  writer.TextField(2, model.version_text());
  writer.TextField(3, response.request().id);
  for (const core::Parameter& parameter : response.parameters()) WriteParameter(writer, parameter);
  if (extra_ != nullptr) WriteParameter(writer, *extra_);
  for (const OutgoingOutput& output : outputs_) {
    writer.BytesHead(5, output.head_size);
    writer.TextField(1, output.name);
    writer.TextField(2, output.datatype);
    if (output.shape.empty()) continue;
    writer.BytesHead(3, PackedSize(output.shape));
    for (const int64_t dim : output.shape) writer.Varint(static_cast<uint64_t>(dim));
  }
  return true;
}

bool Encoder::WriteTensors(GrpcMessage& message, bool* refers) {
  for (const OutgoingOutput& output : outputs_) {
    const bool refer = output.size >= kReferFrom;
    const size_t head = 1 + VarintSize(output.size);
    std::byte* const place = message.Extend(head + (refer ? 0 : output.size));
    if (place == nullptr) return false;
    WireWriter writer(place);
    writer.BytesHead(6, output.size);
    if (refer) {
      message.Refer(output.data, output.size);
      *refers = true;
    } else {
      writer.Bytes({reinterpret_cast<const char*>(output.data), output.size});
    }
  }
  return true;
}

base::Result<GrpcMessagePtr> Encoder::Write(bool in_stream) {
  GrpcMessagePtr message = GrpcMessage::Create();
  bool refers = false;
  if (!WriteHead(*message, in_stream) || !WriteTensors(*message, &refers)) {
    return base::UnavailableError("no memory for the response");
  }
  if (!refers) return message;
  if (classes_.data.empty()) {
    message->Keep(response_.release(), [](void* response) {
      core::ResponsePtr(static_cast<core::Response*>(response)).reset();
    });
  } else {
    struct Kept {
      core::ResponsePtr response;
      Classes classes;
    };
    message->Keep(new Kept{std::move(response_), std::move(classes_)},
                  [](void* kept) { delete static_cast<Kept*>(kept); });
  }
  return message;
}

}  // namespace

base::Result<GrpcMessagePtr> EncodeInferResponse(core::ResponsePtr& response) {
  Encoder encoder(response);
  NEREID_RETURN_IF_ERROR(encoder.Prepare(nullptr));
  return encoder.Write(false);
}

base::Result<GrpcMessagePtr> EncodeStreamResponse(core::ResponsePtr& response, bool is_final) {
  const core::Parameter final_response{.name = kFinalResponse, .value = is_final};
  Encoder encoder(response);
  NEREID_RETURN_IF_ERROR(encoder.Prepare(&final_response));
  return encoder.Write(true);
}

GrpcMessagePtr EncodeStreamNotice(const StreamNotice& notice) {
  size_t body = TextFieldSize(notice.model_name) + TextFieldSize(notice.model_version) +
                TextFieldSize(notice.id);
  core::Parameter final_response{.name = kFinalResponse, .value = false};
  if (notice.is_final) {
    final_response.value = *notice.is_final;
    body += BytesFieldSize(ParameterSize(final_response));
  }
  GrpcMessagePtr message = GrpcMessage::Create();
  std::byte* const place = message->Extend(TextFieldSize(notice.error) + BytesFieldSize(body));
  if (place == nullptr) return message;  // out of memory: nothing but an empty message is possible
  WireWriter writer(place);
  writer.TextField(1, notice.error);
  writer.BytesHead(2, body);
  writer.TextField(1, notice.model_name);
  writer.TextField(2, notice.model_version);
  writer.TextField(3, notice.id);
  if (notice.is_final) WriteParameter(writer, final_response);
  return message;
}

}  // namespace nereid::grpc
