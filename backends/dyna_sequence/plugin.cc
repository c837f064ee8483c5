// SPDX-License-Identifier: Apache-2.0
// The dyna_sequence backend, for trying out the Oldest sequence batcher: an accumulator for each
// correlation id. Controls START, END, READY and CORRID (UINT64, or STRING holding a number); input
// INPUT and output OUTPUT of the same shape and type INT32. While READY is set, the elements of
// INPUT are added to the accumulator, which START clears first; END adds the correlation id. Every
// element of OUTPUT is the value. Models are those of Triton's test backend of the same name;
// parameter execute_delay_ms delays each execution.
#include <set>
#include <thread>
#include <unordered_map>

#include "backend_kit/batch.h"
#include "backend_kit/controls.h"
#include "backend_kit/entry_points.h"
#include "backend_kit/expect.h"

namespace nereid::dyna_sequence {
namespace {

using backend::Error;
using backend::InputView;
using backend::Result;

// A model. Immutable.
struct Model {
  static Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                               backend::NoBackendState&) {
    NEREID_KIT_ASSIGN(const backend::ModelConfig config, backend::ModelConfig::Load(handle));
    NEREID_KIT_TRY(backend::ExpectControls(config, {"START", "END", "READY", "CORRID"}));
    NEREID_KIT_TRY(backend::ExpectTensors(config, "input", {{"INPUT", "TYPE_INT32", {}}}));
    NEREID_KIT_TRY(backend::ExpectTensors(config, "output", {{"OUTPUT", "TYPE_INT32", {}}}));
    NEREID_KIT_TRY(CheckCorrelationId(config));
    NEREID_KIT_ASSIGN(const int delay_ms, config.IntParameter("execute_delay_ms", 0));
    auto model = std::make_unique<Model>();
    model->delay = std::chrono::milliseconds(delay_ms);
    model->batching = config.max_batch_size() > 0;
    return model;
  }

  std::chrono::milliseconds delay{0};
  bool batching = false;

 private:
  static Error CheckCorrelationId(const backend::ModelConfig& config) {
    const rapidjson::Value& sequences = *backend::Find(config.json(), "sequence_batching");
    for (const rapidjson::Value& input : backend::ArrayOf(sequences, "control_input")) {
      if (backend::StringMember(input, "name") != "CORRID") continue;
      for (const rapidjson::Value& control : backend::ArrayOf(input, "control")) {
        const std::string_view type = backend::StringMember(control, "data_type");
        if (type == "TYPE_UINT64" || type == "TYPE_STRING") return {};
      }
    }
    return Error::InvalidArgument(
        "model CORRID control input must have TYPE_UINT64 or TYPE_STRING data-type");
  }
};

// An instance. Confined to the thread that executes.
class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                  Model& model) {
    return std::make_unique<Instance>(handle, model);
  }
  Instance(TRITONBACKEND_ModelInstance* handle, const Model& model)
      : handle_(handle), model_(model) {}

  void Execute(TRITONBACKEND_Request** requests, uint32_t count) {
    batch_.Process(handle_, requests, count, [&]() -> uint64_t {
      batch_.MarkComputeStart();
      std::this_thread::sleep_for(model_.delay);
      seen_.clear();
      for (uint32_t r = 0; r < count; ++r) {
        if (!batch_.live(r)) continue;
        if (Error error = Accumulate(r); !error.ok()) batch_.Fail(r, std::move(error));
      }
      batch_.MarkComputeEnd();
      return count;
    });
  }

 private:
  static Result<uint64_t> CorrelationId(TRITONBACKEND_Request* request) {
    NEREID_KIT_ASSIGN(const std::string text, backend::ReadCorrelationId(request, "CORRID"));
    char* end = nullptr;
    const uint64_t id = std::strtoull(text.c_str(), &end, 10);
    if (end == text.c_str()) {
      return Error::InvalidArgument(
          "dyna sequence backend expects correlation ID to be decodable into an integer");
    }
    return id;
  }

  Error Accumulate(uint32_t r) {
    TRITONBACKEND_Request* const request = batch_.request(r);
    NEREID_KIT_ASSIGN(const bool ready, backend::ReadControl(request, "READY"));
    // Without READY the other controls are meaningless.
    if (!ready) return {};
    NEREID_KIT_ASSIGN(const bool start, backend::ReadControl(request, "START"));
    NEREID_KIT_ASSIGN(const bool end, backend::ReadControl(request, "END"));
    NEREID_KIT_ASSIGN(const uint64_t id, CorrelationId(request));
    if (!seen_.insert(id).second) {
      return Error::Unsupported(
          "Execute() called with batch containing multiple inferences "
          "requests for the same Correlation ID");
    }
    TRITONBACKEND_Input* handle = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_RequestInput(request, "INPUT", &handle));
    NEREID_KIT_ASSIGN(const InputView input, backend::ReadInput(handle));
    if (model_.batching && !input.shape.empty() && input.shape[0] != 1) {
      return Error::Unsupported("unable to execute more than one timestep at a time");
    }
    values_.resize(input.byte_size / sizeof(int32_t));
    const size_t size = values_.size() * sizeof(int32_t);
    NEREID_KIT_TRY(backend::CopyInput(input, {reinterpret_cast<char*>(values_.data()), size}));
    uint32_t& accumulator = accumulators_[id];
    if (start) accumulator = 0;
    for (const uint32_t value : values_) accumulator += value;
    if (end) accumulator += static_cast<uint32_t>(id);
    std::fill(values_.begin(), values_.end(), accumulator);
    if (end) accumulators_.erase(id);
    uint32_t outputs = 0;
    NEREID_KIT_TRY(TRITONBACKEND_RequestOutputCount(request, &outputs));
    if (outputs == 0) return {};
    NEREID_KIT_ASSIGN(char* const to,
                      backend::AddOutput(batch_.response(r), "OUTPUT", TRITONSERVER_TYPE_INT32,
                                         input.shape, size));
    if (size > 0) std::memcpy(to, values_.data(), size);
    return {};
  }

  TRITONBACKEND_ModelInstance* const handle_;
  const Model& model_;
  backend::Batch batch_;
  std::unordered_map<uint64_t, uint32_t> accumulators_;  // INT32, whose sums may wrap
  std::set<uint64_t> seen_;                              // in the current batch
  std::vector<uint32_t> values_;
};

}  // namespace
}  // namespace nereid::dyna_sequence

NEREID_KIT_ENTRY_POINTS(nereid::backend::NoBackendState, nereid::dyna_sequence::Model,
                        nereid::dyna_sequence::Instance,
                        NEREIDBACKEND_TRAIT_ANY_THREAD | NEREIDBACKEND_TRAIT_WRITES_OUTPUTS)
