// SPDX-License-Identifier: Apache-2.0
// The warm-up of a model: requests made from `model_warmup`, which each instance executes before
// the version becomes ready.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/status.h"
#include "config/model_config.h"
#include "core/model.h"
#include "core/scheduler.h"
#include "core/sequence_states.h"

namespace nereid::engine {

// Returns how many bytes the data of an input has that is made without a file; nothing if a
// dimension is variable. Text is empty then, and an empty string has the four bytes of its length.
std::optional<size_t> WarmUpByteSize(const config::ModelWarmup::Input& input);

// The samples of one version. Immutable; several threads may call Run for different instances.
class WarmUp {
 public:
  // Makes the data of every sample; files are read from the folder `warmup` in `model_folder`.
  // Fails if an input's data cannot be made, or if a client could not send the sample's inputs; the
  // sequence controls and states among them, which only the server sends, are not checked. `states`
  // are the model's; null if it has no sequences. `model` outlives this.
  static base::Result<std::shared_ptr<const WarmUp>> Prepare(
      core::Model& model, std::shared_ptr<const core::StatePlan> states,
      const std::string& model_folder);

  // Executes every sample on `instance`, on the calling thread, and waits for the responses.
  // Returns the error of the first sample that fails, or of `check_wanted`, which is called at
  // least once and before each run.
  base::Status Run(core::Instance& instance,
                   const std::function<base::Status()>& check_wanted) const;

 private:
  // One input of a sample with its data, which all requests of the sample share.
  struct Input {
    std::string name;
    tensor::DataType type;
    tensor::Shape shape;  // with the batch dimension if the model has one
    uint32_t model_index;
    bool is_of_server;  // a sequence control or a state
    base::BufferRef data;
    size_t byte_size;
  };
  // One entry of `model_warmup`: a request, how many of it are executed together, and how often.
  struct Sample {
    std::string name;
    uint32_t request_count;
    uint32_t iterations;
    std::vector<Input> inputs;
  };

  WarmUp(core::Model& model, std::shared_ptr<const core::StatePlan> states)
      : model_(model), state_plan_(std::move(states)) {}
  base::Result<Input> MakeInput(const std::string& name, const config::ModelWarmup::Input& config,
                                const std::string& model_folder) const;
  // Checks the inputs as those of a client's request, and puts them into the model's order.
  base::Status CheckInputs(Sample& sample) const;
  // Makes one of the sample's requests, without the inputs that only the server sends.
  core::RequestPtr MakeRequest(const Sample& sample, core::ResponseSink& sink) const;
  // Adds the states and the sample's inputs that only the server sends. A state that the sample
  // gives a value has that instead of its first one.
  void AddServerInputs(const Sample& sample, core::SequenceStates* states,
                       core::Request& request) const;
  base::Status RunOnce(const Sample& sample, core::Instance& instance) const;

  core::Model& model_;
  const std::shared_ptr<const core::StatePlan> state_plan_;
  std::vector<Sample> samples_;
};

}  // namespace nereid::engine
