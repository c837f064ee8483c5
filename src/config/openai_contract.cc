// SPDX-License-Identifier: Apache-2.0
#include "config/openai_contract.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include <fmt/format.h>

#include "tensor/data_type.h"
#include "tensor/shape.h"

namespace nereid::config {
namespace {

using tensor::DataType;

constexpr std::string_view kTasks = "openai";
constexpr std::string_view kTextInput = "openai_text_input";
constexpr std::string_view kMessages = "openai_messages";
constexpr std::string_view kTextOutput = "openai_text_output";
constexpr std::string_view kEmbedding = "openai_embedding";
constexpr std::array kNames = {kTasks, kTextInput, kMessages, kTextOutput, kEmbedding};

// Whether a tensor of these dimensions may have exactly one element.
bool MayHaveOneElement(std::span<const int64_t> dims) {
  return std::ranges::all_of(dims, [](int64_t dim) { return dim == 1 || dim == -1; });
}

// Reads the contract of one configuration.
class OpenAiContractReader {
 public:
  explicit OpenAiContractReader(const ModelConfig& config) : config_(config) {}

  base::Result<std::optional<OpenAiContract>> Read() {
    const auto tasks = config_.parameters.find(std::string(kTasks));
    NEREID_RETURN_IF_ERROR(CheckNames(tasks != config_.parameters.end()));
    if (tasks == config_.parameters.end()) return std::optional<OpenAiContract>();
    NEREID_RETURN_IF_ERROR(ReadTasks(tasks->second));
    NEREID_RETURN_IF_ERROR(FindTensors());
    NEREID_RETURN_IF_ERROR(CheckInputs());
    NEREID_RETURN_IF_ERROR(CheckOutputs());
    return std::optional(contract_);
  }

 private:
  base::Status Error(std::string_view parameter, std::string_view text) const {
    return base::InvalidArgumentError(
        fmt::format("parameter '{}' of model '{}': {}", parameter, config_.name, text));
  }

  base::Status CheckNames(bool has_tasks) const {
    for (const auto& [name, value] : config_.parameters) {
      if (!IsOfOpenAi(name)) continue;
      if (std::ranges::find(kNames, name) == kNames.end()) {
        return Error(name, fmt::format("there is no such parameter; there are '{}'",
                                       fmt::join(kNames, "', '")));
      }
      if (!has_tasks) return Error(name, "it has no effect without the parameter 'openai'");
    }
    return base::OkStatus();
  }

  base::Status ReadTasks(std::string_view list) {
    while (true) {
      const size_t comma = list.find(',');
      std::string_view task = list.substr(0, comma);
      while (task.starts_with(' ')) task.remove_prefix(1);
      while (task.ends_with(' ')) task.remove_suffix(1);
      if (task == "chat") {
        contract_.serves_chat = true;
      } else if (task == "completions") {
        contract_.serves_completions = true;
      } else if (task == "embeddings") {
        contract_.serves_embeddings = true;
      } else {
        return Error(kTasks, fmt::format("'{}' is not one of 'chat', 'completions' and "
                                         "'embeddings', of which it is a list with commas",
                                         task));
      }
      if (comma == std::string_view::npos) return base::OkStatus();
      list.remove_prefix(comma + 1);
    }
  }

  // Returns the name of the tensor that `parameter` names, or else `otherwise` if there is one.
  // Empty if the configuration has neither.
  template <typename Tensor>
  base::Result<std::string_view> Find(const std::vector<Tensor>& tensors, std::string_view kind,
                                      std::string_view parameter,
                                      std::string_view otherwise) const {
    const auto named = config_.parameters.find(std::string(parameter));
    const bool is_named = named != config_.parameters.end();
    const std::string_view name = is_named ? std::string_view(named->second) : otherwise;
    const auto found = std::ranges::find(tensors, name, &Tensor::name);
    if (found != tensors.end()) return std::string_view(found->name);
    if (!is_named) return std::string_view();
    return Error(parameter, fmt::format("the model has no {} '{}'", kind, name));
  }

  base::Status Missing(std::string_view task, std::string_view kind, std::string_view name,
                       std::string_view parameter) const {
    return Error(kTasks,
                 fmt::format("'{}' needs an {} '{}', which the model lacks; the parameter '{}' can "
                             "give it another name",
                             task, kind, name, parameter));
  }

  base::Status FindTensors() {
    NEREID_ASSIGN_OR_RETURN(contract_.text_input,
                            Find(config_.input, "input", kTextInput, "text_input"));
    NEREID_ASSIGN_OR_RETURN(contract_.messages_input,
                            Find(config_.input, "input", kMessages, "messages"));
    NEREID_ASSIGN_OR_RETURN(contract_.text_output,
                            Find(config_.output, "output", kTextOutput, "text_output"));
    NEREID_ASSIGN_OR_RETURN(contract_.embedding_output,
                            Find(config_.output, "output", kEmbedding, "embedding"));
    const OpenAiContract& contract = contract_;
    const std::string_view text_task = contract.serves_completions  ? "completions"
                                       : contract.serves_embeddings ? "embeddings"
                                                                    : "chat";
    const bool needs_text = contract.serves_completions || contract.serves_embeddings ||
                            contract.messages_input.empty();
    if (needs_text && contract.text_input.empty()) {
      return Missing(text_task, "input", "text_input", kTextInput);
    }
    const bool generates = contract.serves_chat || contract.serves_completions;
    if (generates && contract.text_output.empty()) {
      return Missing(contract.serves_chat ? "chat" : "completions", "output", "text_output",
                     kTextOutput);
    }
    if (contract.serves_embeddings && contract.embedding_output.empty()) {
      return Missing("embeddings", "output", "embedding", kEmbedding);
    }
    if (!contract.serves_chat) contract_.messages_input = {};
    if (!generates) contract_.text_output = {};
    if (!contract.serves_embeddings) contract_.embedding_output = {};
    return base::OkStatus();
  }

  base::Status CheckText(std::string_view kind, std::string_view name, DataType type,
                         std::span<const int64_t> dims) const {
    if (type == DataType::kBytes && MayHaveOneElement(dims)) return base::OkStatus();
    return Error(kTasks, fmt::format("the {} '{}' must be of TYPE_STRING with the dims [ 1 ], not "
                                     "of {} with the dims {}",
                                     kind, name, tensor::ConfigName(type), tensor::ToString(dims)));
  }

  // Whether every request of every kind has this input.
  bool IsAlwaysGiven(std::string_view input) const {
    const bool chats_give_text = !contract_.serves_chat || contract_.messages_input.empty();
    if (input == contract_.text_input) return chats_give_text;
    return input == contract_.messages_input && !contract_.serves_completions &&
           !contract_.serves_embeddings;
  }

  base::Status CheckInputs() const {
    for (const ModelInput& input : config_.input) {
      if (input.name == contract_.text_input || input.name == contract_.messages_input) {
        NEREID_RETURN_IF_ERROR(CheckText("input", input.name, input.data_type, input.dims));
      } else if (input.data_type == DataType::kFp16 || input.data_type == DataType::kBf16 ||
                 !(MayHaveOneElement(input.dims))) {
        return Error(kTasks, fmt::format("the input '{}' cannot be given a field of a request: it "
                                         "must have the dims [ 1 ], or [ -1 ] for a list of texts, "
                                         "and neither TYPE_FP16 nor TYPE_BF16",
                                         input.name));
      }
      if (!input.optional && !IsAlwaysGiven(input.name)) {
        return Error(kTasks, fmt::format("the input '{}' must have 'optional: true', because not "
                                         "every request has it",
                                         input.name));
      }
    }
    return base::OkStatus();
  }

  base::Status CheckOutputs() const {
    for (const ModelOutput& output : config_.output) {
      const std::string_view name = output.name;
      if (name == contract_.text_output ||
          (!contract_.text_output.empty() &&
           (name == kFinishReasonOutput || name == kToolCallsOutput))) {
        NEREID_RETURN_IF_ERROR(CheckText("output", name, output.data_type, output.dims));
      } else if (name == kPromptTokensOutput || name == kCompletionTokensOutput) {
        if (output.data_type != DataType::kInt32 && output.data_type != DataType::kInt64) {
          return Error(kTasks,
                       fmt::format("the output '{}' must be of TYPE_INT32 or TYPE_INT64, not of {}",
                                   name, tensor::ConfigName(output.data_type)));
        }
      } else if (name == contract_.embedding_output && output.data_type != DataType::kFp32 &&
                 output.data_type != DataType::kFp64) {
        return Error(kTasks,
                     fmt::format("the output '{}' must be of TYPE_FP32 or TYPE_FP64, not of {}",
                                 name, tensor::ConfigName(output.data_type)));
      }
    }
    return base::OkStatus();
  }

  const ModelConfig& config_;
  OpenAiContract contract_;
};

}  // namespace

base::Result<std::optional<OpenAiContract>> ReadOpenAiContract(const ModelConfig& config) {
  return OpenAiContractReader(config).Read();
}

bool IsOfOpenAi(std::string_view parameter) {
  return parameter == kTasks || parameter.starts_with("openai_");
}

}  // namespace nereid::config
