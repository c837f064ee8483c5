// SPDX-License-Identifier: Apache-2.0
#include "identity_backend/model.h"

#include <thread>

#include "backend_kit/entry_points.h"
#include "backend_kit/model_metric.h"
#include "identity_backend/tracing.h"

namespace nereid::identity {

using backend::Error;
using backend::InputView;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<BackendState>> BackendState::Create(TRITONBACKEND_Backend*) {
  auto state = std::make_unique<BackendState>();
  state->input_bytes_ =
      backend::NewCounterFamily("input_byte_size_counter",
                                "Cumulative input byte size of all requests received by the model");
  return state;
}

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle,
                                             const BackendState& backend) {
  NEREID_KIT_ASSIGN(const backend::ModelConfig config, backend::ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(Settings settings, Settings::FromConfig(config));
  if (settings.creation_delay.count() > 0) {
    backend::LogInfo(StrCat("Creation delay is set to: ", settings.creation_delay.count()));
    std::this_thread::sleep_for(settings.creation_delay);
  }
  std::unique_ptr<Model> model(new Model(std::move(settings)));
  model->input_bytes_ = backend::NewModelCounter(backend.input_bytes(), handle);
  return model;
}

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   Model& model) {
  NEREID_KIT_TRY(backend::RequireCpu(handle, "identity"));
  return std::make_unique<Instance>(handle, model);
}

void Instance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  batch_.Process(handle_, requests, count, [&] { return RespondAll(); });
}

uint64_t Instance::RespondAll() {
  input_bytes_ = 0;
  batch_.MarkComputeStart();
  if (delay_.count() > 0) {
    std::this_thread::sleep_for(delay_);
  }
  uint64_t total_batch_size = 0;
  for (uint32_t r = 0; r < batch_.size(); ++r) {
    if (!batch_.live(r)) {
      continue;
    }
    auto batch_size = Respond(r);
    if (batch_size.ok()) {
      total_batch_size += static_cast<uint64_t>(batch_size.value());
    } else {
      batch_.Fail(r, batch_size.TakeError());
    }
  }
  if (input_bytes_ > 0) {
    backend::Increment(model_.input_bytes(), static_cast<double>(input_bytes_));
  }
  batch_.MarkComputeEnd();
  return total_batch_size;
}

Result<int64_t> Instance::BatchSize(TRITONBACKEND_Request* request) const {
  if (!model_.settings().supports_batching) {
    return int64_t{1};
  }
  NEREID_KIT_ASSIGN(const InputView first, backend::ReadInput(request, 0));
  return first.shape.empty() ? int64_t{1} : first.shape[0];
}

namespace {

Error EchoParameters(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response) {
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONBACKEND_RequestParameterCount(request, &count));
  for (uint32_t i = 0; i < count; ++i) {
    const char* key = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
    const void* value = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_RequestParameter(request, i, &key, &type, &value));
    switch (type) {
      case TRITONSERVER_PARAMETER_STRING:
        NEREID_KIT_TRY(TRITONBACKEND_ResponseSetStringParameter(response, key,
                                                                static_cast<const char*>(value)));
        break;
      case TRITONSERVER_PARAMETER_INT:
        NEREID_KIT_TRY(TRITONBACKEND_ResponseSetIntParameter(response, key,
                                                             *static_cast<const int64_t*>(value)));
        break;
      case TRITONSERVER_PARAMETER_BOOL:
        NEREID_KIT_TRY(TRITONBACKEND_ResponseSetBoolParameter(response, key,
                                                              *static_cast<const bool*>(value)));
        break;
      case TRITONSERVER_PARAMETER_DOUBLE:
        NEREID_KIT_TRY(TRITONBACKEND_ResponseSetDoubleParameter(
            response, key, *static_cast<const double*>(value)));
        break;
      default:
        break;
    }
  }
  return Error();
}

}  // namespace

Result<int64_t> Instance::Respond(uint32_t r) {
  TRITONBACKEND_Request* request = batch_.request(r);
  const Settings& settings = model_.settings();
  if (settings.tracing.has_value()) {
    NEREID_KIT_TRY(ReportSpans(request, *settings.tracing));
  }
  NEREID_KIT_ASSIGN(const int64_t batch_size, BatchSize(request));
  uint32_t outputs = 0;
  NEREID_KIT_TRY(TRITONBACKEND_RequestOutputCount(request, &outputs));
  for (uint32_t o = 0; o < outputs; ++o) {
    const char* name = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_RequestOutputName(request, o, &name));
    NEREID_KIT_TRY(Echo(r, name, batch_size));
  }
  if (settings.echo_parameters) NEREID_KIT_TRY(EchoParameters(request, batch_.response(r)));
  if (settings.response_parameters) {
    TRITONBACKEND_Response* response = batch_.response(r);
    NEREID_KIT_TRY(TRITONBACKEND_ResponseSetStringParameter(response, "param0",
                                                            "an example string parameter"));
    NEREID_KIT_TRY(TRITONBACKEND_ResponseSetIntParameter(response, "param1", 42));
    NEREID_KIT_TRY(TRITONBACKEND_ResponseSetBoolParameter(response, "param2", false));
    NEREID_KIT_TRY(TRITONBACKEND_ResponseSetDoubleParameter(response, "param3", 123.123));
  }
  return batch_size;
}

Error Instance::Echo(uint32_t r, const char* output_name, int64_t batch_size) {
  const Pair* pair = model_.settings().FindOutput(output_name);
  if (pair == nullptr) {
    return Error::InvalidArgument(StrCat("unexpected inference output '", output_name, "'"));
  }
  TRITONBACKEND_Input* input = nullptr;
  if (!Error(TRITONBACKEND_RequestInput(batch_.request(r), pair->input.c_str(), &input)).ok()) {
    return pair->absent_shape.has_value()
               ? AnswerZeros(r, *pair, batch_size)
               : Error::Unsupported(StrCat("failed to get input '", pair->input, "'"));
  }
  NEREID_KIT_ASSIGN(const InputView view, backend::ReadInput(input));
  NEREID_KIT_ASSIGN(char* const buffer,
                    backend::AddOutput(batch_.response(r), output_name, view.datatype, view.shape,
                                       view.byte_size));
  input_bytes_ += view.byte_size;
  return backend::CopyInput(view, {buffer, view.byte_size});
}

Error Instance::AnswerZeros(uint32_t r, const Pair& pair, int64_t batch_size) {
  std::vector<int64_t> shape = *pair.absent_shape;
  if (model_.settings().supports_batching) {
    shape.insert(shape.begin(), batch_size);
  }
  NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(shape));
  // A length prefix of zero is the empty string.
  const uint64_t element_size =
      pair.datatype == TRITONSERVER_TYPE_BYTES ? 4 : backend::ElementByteSize(pair.datatype);
  const uint64_t byte_size = static_cast<uint64_t>(elements) * element_size;
  NEREID_KIT_ASSIGN(char* const buffer, backend::AddOutput(batch_.response(r), pair.output.c_str(),
                                                           pair.datatype, shape, byte_size));
  if (byte_size > 0) {
    std::memset(buffer, 0, byte_size);
  }
  return {};
}

}  // namespace nereid::identity
