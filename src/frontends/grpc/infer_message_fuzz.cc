// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parser of ModelInferRequest: it accepts exactly what protobuf accepts, and the result
// becomes a request or an error.
#include "grpc/infer_message.h"

#include "base/check.h"
#include "core/model.h"
#include "core/testing/fakes.h"
#include "fuzz/fuzz.h"
#include "grpc/infer_request.h"
#include "grpc_service.pb.h"

namespace {

namespace core = nereid::core;
namespace grpc = nereid::grpc;

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr, bool) override {}
};

}  // namespace

std::vector<std::string> FuzzSeeds() {
  inference::ModelInferRequest raw;
  raw.set_model_name("model");
  raw.set_model_version("1");
  raw.set_id("id");
  (*raw.mutable_parameters())["sequence_id"].set_int64_param(7);
  (*raw.mutable_parameters())["sequence_start"].set_bool_param(true);
  (*raw.mutable_parameters())["text"].set_string_param("value");
  auto* input = raw.add_inputs();
  input->set_name("INPUT0");
  input->set_datatype("FP32");
  input->add_shape(1);
  input->add_shape(4);
  raw.add_raw_input_contents(std::string(16, '\1'));
  auto* output = raw.add_outputs();
  output->set_name("OUTPUT0");
  (*output->mutable_parameters())["classification"].set_int64_param(3);

  inference::ModelInferRequest typed = raw;
  typed.clear_raw_input_contents();
  auto* contents = typed.mutable_inputs(0)->mutable_contents();
  for (int i = 0; i < 4; ++i) contents->add_fp32_contents(static_cast<float>(i));

  inference::ModelInferRequest mixed = typed;
  mixed.mutable_inputs(0)->set_datatype("BYTES");
  contents = mixed.mutable_inputs(0)->mutable_contents();
  contents->clear_fp32_contents();
  for (int i = 0; i < 4; ++i)
    contents->add_bytes_contents(std::string(static_cast<size_t>(i), 'x'));
  contents->add_int64_contents(-1);
  contents->add_uint_contents(300);

  inference::ModelInferRequest region = raw;
  region.clear_raw_input_contents();
  auto& parameters = *region.mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_region"].set_string_param("r");
  parameters["shared_memory_byte_size"].set_int64_param(16);
  parameters["shared_memory_offset"].set_int64_param(-1);
  return {raw.SerializeAsString(), typed.SerializeAsString(), mixed.SerializeAsString(),
          region.SerializeAsString()};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static core::Model* const model = core::MakeFakeModel(8, {4}).release();
  static NoSink sink;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  grpc::InferMessage message;
  const bool is_taken = message.Parse(bytes);
  inference::ModelInferRequest theirs;
  NEREID_CHECK(is_taken == theirs.ParseFromArray(data, static_cast<int>(size)));
  if (!is_taken) return 0;
  NEREID_CHECK(message.model_name == theirs.model_name() && message.id == theirs.id());
  NEREID_CHECK(message.inputs.size() == static_cast<size_t>(theirs.inputs_size()));
  NEREID_CHECK(message.raw_input_contents.size() ==
               static_cast<size_t>(theirs.raw_input_contents_size()));
  core::RequestPtr request = core::Request::Create(sink);
  NEREID_CHECK(model->TryPin());
  request->model = core::ModelHandle(*model);
  const auto options = grpc::FillRequest(message, *request);
  NEREID_CHECK(options.ok() || !options.status().message().empty());
  return 0;
}
