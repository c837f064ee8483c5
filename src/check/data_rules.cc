// SPDX-License-Identifier: Apache-2.0
// Rules about data that a configuration names: initial states and samples for the warm-up.
#include <filesystem>

#include <fmt/format.h>

#include "check/rules.h"
#include "config/initial_states.h"
#include "config/paths.h"
#include "core/sequence_states.h"
#include "tensor/shape.h"

namespace nereid::check {
namespace {

namespace fs = std::filesystem;
using config::ModelWarmup;
using config::SequenceBatching;

// Checks one state as if the model had no other.
void CheckState(const ModelView& model, size_t index, Findings& findings) {
  const SequenceBatching& batching = *model.config->sequence_batching();
  const SequenceBatching::State& state = batching.state[index];
  const std::string field = fmt::format("sequence_batching.state[{}]", index);
  SequenceBatching alone;
  alone.state = {state};
  config::ModelConfig config;
  config.name = model.name;
  config.scheduling_choice = alone;
  const auto files = config::ReadInitialStates(config, model.folder);
  if (!files.ok()) {
    // A path outside the folder has a finding of its own.
    if (files.status().code() == base::StatusCode::kInvalidArgument) return;
    findings.AtField("state-file", field + ".initial_state[0].data_file",
                     {.text = std::string(files.status().message()),
                      .found = "no file that can be read",
                      .expected = "a file in the folder initial_state"});
    return;
  }
  const auto plan = core::StatePlan::Compile(alone, model.config->max_batch_size, *files);
  if (plan.ok()) return;
  const std::string text(plan.status().message());
  // Mistakes that are left when everything else is right are those of the file.
  const bool is_file = text.find("the data provided from") != std::string::npos;
  findings.AtField(is_file ? "state-file" : "state-setting",
                   is_file ? field + ".initial_state[0].data_file" : field,
                   {.text = text, .found = {}, .expected = {}});
}

// Checks the samples of one model.
class WarmUpCheck {
 public:
  WarmUpCheck(const ModelView& model, Findings& findings)
      : model_(model), config_(*model.config), findings_(findings) {}

  void Run() {
    for (size_t i = 0; i < config_.model_warmup.size(); ++i) {
      field_ = fmt::format("model_warmup[{}]", i);
      Sample(config_.model_warmup[i]);
    }
  }

 private:
  void Add(std::string_view code, const std::string& field, Findings::What what) {
    findings_.AtField(code, field, std::move(what));
  }

  void Sample(const ModelWarmup& sample) {
    if (sample.batch_size == 0) {
      Add("warm-up-unused", field_,
          {.text = fmt::format("sample '{}' is never run", sample.name),
           .found = "batch_size 0",
           .expected = "batch_size of at least 1"});
      return;
    }
    if (config_.max_batch_size > 0 && std::cmp_greater(sample.batch_size, config_.max_batch_size)) {
      Add("warm-up-batch", field_ + ".batch_size",
          {.text = fmt::format("sample '{}' has a larger batch than the model takes", sample.name),
           .found = std::to_string(sample.batch_size),
           .expected = fmt::format("at most max_batch_size {}", config_.max_batch_size)});
    }
    for (const auto& [name, input] : sample.inputs) Input(name, input);
    Missing(sample);
  }

  void Input(const std::string& name, const ModelWarmup::Input& input) {
    const std::string field = fmt::format("{}.inputs['{}']", field_, name);
    const bool is_text = input.data_type == tensor::DataType::kBytes;
    const auto size =
        tensor::ByteSize(is_text ? tensor::DataType::kUint32 : input.data_type, input.dims);
    if (!size) {
      Add("warm-up-dims", field + ".dims",
          {.text = fmt::format("warmup setting expects all variable-size dimensions are specified "
                               "for input '{}'",
                               name),
           .found = tensor::ToString(input.dims),
           .expected = "a type and dimensions of at least 0"});
    } else if (std::holds_alternative<std::monostate>(input.input_data_type)) {
      Add("warm-up-data", field,
          {.text =
               fmt::format("warmup setting expects input '{}' to have input_data_type set", name),
           .found = "nothing",
           .expected = "zero_data, random_data or input_data_file"});
    } else if (const auto* file = std::get_if<ModelWarmup::DataFile>(&input.input_data_type)) {
      DataFile(field + ".input_data_file", file->path, is_text ? 0 : *size);
    }
    if (const config::ModelInput* const declared = config_.FindInput(name)) {
      Compare(field, name, input, *declared);
    } else if (!config_.IsServerInput(name) && !config_.input.empty()) {
      Add("warm-up-input", field,
          {.text = fmt::format("model '{}' has no input '{}'", model_.name, name),
           .found = fmt::format("'{}'", name),
           .expected = "an input of the model"});
    }
  }

  void DataFile(const std::string& field, const std::string& name, size_t expected) {
    const std::string path = config::JoinPath(config::JoinPath(model_.folder, "warmup"), name);
    std::error_code error;
    const bool is_there = fs::is_regular_file(path, error);
    const auto size = is_there ? fs::file_size(path, error) : 0;
    if (is_there && size >= expected) return;
    Add("warm-up-file", field,
        {.text = is_there ? fmt::format("warmup setting expects {} bytes, but the data provided "
                                        "from {} only has {} bytes",
                                        expected, name, size)
                          : fmt::format("failed to open text file for read {}{}", path,
                                        error ? ": " + error.message() : ""),
         .found = is_there ? fmt::format("{} bytes", size) : "no file that can be read",
         .expected = is_there ? fmt::format("{} bytes", expected) : "a file in the folder warmup"});
  }

  void Compare(const std::string& field, const std::string& name, const ModelWarmup::Input& input,
               const config::ModelInput& declared) {
    if (input.data_type != declared.data_type) {
      Add("warm-up-mismatch", field + ".data_type",
          {.text = fmt::format("input '{}' of the sample has another type than the model", name),
           .found = std::string(tensor::ConfigName(input.data_type)),
           .expected = std::string(tensor::ConfigName(declared.data_type))});
    }
    // A sample may have the shape of the backend, which is that of the reshape.
    if (Fits(input.dims, declared.dims) ||
        (declared.reshape && Fits(input.dims, *declared.reshape))) {
      return;
    }
    Add("warm-up-mismatch", field + ".dims",
        {.text = fmt::format("input '{}' of the sample has another shape than the model", name),
         .found = tensor::ToString(input.dims),
         .expected = tensor::ToString(declared.dims)});
  }

  static bool Fits(const std::vector<int64_t>& dims, const std::vector<int64_t>& declared) {
    if (dims.size() != declared.size()) return false;
    for (size_t i = 0; i < dims.size(); ++i) {
      const bool is_known = dims[i] >= 0 && declared[i] >= 0;
      if (is_known && dims[i] != declared[i]) return false;
    }
    return true;
  }

  void Missing(const ModelWarmup& sample) {
    for (const config::ModelInput& input : config_.input) {
      if (input.optional || sample.inputs.contains(input.name)) continue;
      Add("warm-up-input", field_,
          {.text = fmt::format("sample '{}' lacks input '{}'", sample.name, input.name),
           .found = "nothing",
           .expected = fmt::format("an entry of inputs with key '{}'", input.name)});
    }
  }

  const ModelView& model_;
  const config::ModelConfig& config_;
  Findings& findings_;
  std::string field_;
};

}  // namespace

void CheckStates(const ModelView& model, Findings& findings) {
  const SequenceBatching* const batching = model.config->sequence_batching();
  if (batching == nullptr) return;
  for (size_t i = 0; i < batching->state.size(); ++i) CheckState(model, i, findings);
  for (size_t i = 0; i < batching->state.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const SequenceBatching::State& first = batching->state[j];
      const SequenceBatching::State& second = batching->state[i];
      if (first.input_name != second.input_name && first.output_name != second.output_name)
        continue;
      findings.AtField(
          "state-twice", fmt::format("sequence_batching.state[{}]", i),
          {.text =
               fmt::format("State input name '{}' specified more than once.", second.input_name),
           .found = fmt::format("'{}' and '{}'", second.input_name, second.output_name),
           .expected = "names that no other state has"});
      break;
    }
  }
}

void CheckWarmUp(const ModelView& model, Findings& findings) {
  // An ensemble may have no samples at all.
  if (model.config->ensemble_scheduling() == nullptr) WarmUpCheck(model, findings).Run();
}

}  // namespace nereid::check
