// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/translate.h"

#include <algorithm>
#include <unordered_map>

#include "caffe2_backend/tables.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

// A content of a blob, by its position among all that are written.
using Id = size_t;
constexpr Id kNothing = SIZE_MAX;

// An operator with the contents that it reads and writes.
struct Step {
  const Operator* operation = nullptr;
  size_t position = 0;  // in its network
  bool is_init = false;
  std::vector<Id> inputs;  // kNothing for a blob that nothing has written
  std::vector<Id> outputs;
  bool is_needed = false;
};

// One translation of a model. Used once.
class Translator {
 public:
  Translator(const Source& source, const std::vector<Border>& inputs,
             const std::vector<Border>& outputs)
      : source_(source),
        inputs_(inputs),
        outputs_(outputs),
        graph_(NamesOf(source, inputs, outputs)) {}

  Result<std::string> Run() {
    AddSteps(source_.init, true);
    AddInputs();
    AddSteps(source_.net, false);
    NEREID_KIT_TRY(FindOutputs());
    MarkNeeded();
    for (const Step& step : steps_) {
      if (step.is_needed) {
        NEREID_KIT_TRY(TranslateStep(step));
      }
    }
    NEREID_KIT_TRY(AddOutputs());
    return graph_.Serialize();
  }

 private:
  static std::unordered_set<std::string> NamesOf(const Source& source,
                                                 const std::vector<Border>& inputs,
                                                 const std::vector<Border>& outputs) {
    std::unordered_set<std::string> names;
    for (const std::string_view name : source.net.external_outputs) {
      names.emplace(name);
    }
    for (const auto* list : {&inputs, &outputs}) {
      for (const Border& border : *list) {
        names.insert(border.name);
      }
    }
    return names;
  }

  Id NewId() {
    values_.emplace_back();
    return values_.size() - 1;
  }

  Id Current(std::string_view blob) const {
    const auto found = current_.find(blob);
    return found == current_.end() ? kNothing : found->second;
  }

  void AddSteps(const NetDef& net, bool is_init) {
    for (size_t i = 0; i < net.operators.size(); ++i) {
      const Operator& operation = net.operators[i];
      Step step{
          .operation = &operation, .position = i, .is_init = is_init, .inputs = {}, .outputs = {}};
      for (const std::string_view blob : operation.inputs) {
        step.inputs.push_back(Current(blob));
      }
      for (const std::string_view blob : operation.outputs) {
        const Id id = NewId();
        step.outputs.push_back(id);
        writers_[id] = steps_.size();
        current_[blob] = id;
      }
      steps_.push_back(std::move(step));
    }
  }

  // Requests replace what the init network leaves in the blobs of inputs.
  void AddInputs() {
    for (const Border& input : inputs_) {
      graph_.AddInput(input.name, input.type, input.dims);
      const Id id = NewId();
      values_[id] = Value{.name = input.name, .type = input.type, .dims = input.dims};
      current_[input.name] = id;
    }
  }

  Error FindOutputs() {
    const auto find = [this](std::string_view name, const Border* border) -> Error {
      const Id id = Current(name);
      if (id == kNothing) {
        return Error::InvalidArgument(
            StrCat("nothing in ", source_.net_name, " makes its output '", name, "'"));
      }
      for (const Border& input : inputs_) {
        if (input.name == name) {
          return Error::Unsupported(
              StrCat("'", name, "' is an input and an output of ", source_.net_name,
                     ", which ONNX does not have: give the output of the last operator that writes "
                     "it (or of a Copy) another name"));
        }
      }
      results_.push_back({std::string(name), id, border});
      return {};
    };
    for (const Border& output : outputs_) {
      NEREID_KIT_TRY(find(output.name, &output));
    }
    if (outputs_.empty()) {
      for (const std::string_view name : source_.net.external_outputs) {
        NEREID_KIT_TRY(find(name, nullptr));
      }
    }
    return results_.empty() ? Error::InvalidArgument(StrCat(source_.net_name, " has no outputs"))
                            : Error();
  }

  void MarkNeeded() {
    std::vector<Id> open;
    for (const Output& result : results_) {
      open.push_back(result.id);
    }
    while (!open.empty()) {
      const Id id = open.back();
      open.pop_back();
      const auto writer = id == kNothing ? writers_.end() : writers_.find(id);
      if (writer == writers_.end()) {
        continue;
      }
      needed_.insert(id);
      Step& step = steps_[writer->second];
      if (!step.is_needed) {
        step.is_needed = true;
        open.insert(open.end(), step.inputs.begin(), step.inputs.end());
      }
    }
  }

  Error TranslateStep(const Step& step) {
    const Operator& operation = *step.operation;
    const std::string& file = step.is_init ? source_.init_name : source_.net_name;
    const Translation* const translation = FindTranslation(operation.type);
    std::vector<const Value*> inputs;
    for (const Id id : step.inputs) {
      inputs.push_back(id == kNothing || !values_[id] ? nullptr : &*values_[id]);
    }
    Scope scope(operation, step.position, file,
                translation == nullptr ? std::string_view() : translation->target, inputs,
                filled_bytes_, graph_);
    if (translation == nullptr) {
      return Error::Unsupported(StrCat(scope.Describe(), " has no translation to ONNX"));
    }
    if (inputs.size() < translation->min_inputs || inputs.size() > translation->max_inputs) {
      return scope.Refuse("has ", inputs.size(), " inputs");
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr) {
        return scope.Refuse("reads '", Shown(operation.inputs[i]),
                            "', which is not there: ", source_.init_name,
                            " does not make it, and it is not an input of the ", "configuration");
      }
    }
    NEREID_KIT_TRY(translation->translate(scope));
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      std::optional<Value>& result = scope.results()[o];
      if (!result && needed_.contains(step.outputs[o])) {
        return scope.Refuse("has a second result, '", Shown(operation.outputs[o]),
                            "', which is needed, but has no translation to ONNX");
      }
      values_[step.outputs[o]] = std::move(result);
    }
    return {};
  }

  Error AddOutputs() {
    for (const Output& result : results_) {
      const Value& value = *values_[result.id];
      std::optional<Dims> dims = value.dims;
      if (result.border != nullptr) {
        const Dims& wanted = result.border->dims;
        if (!dims) {
          dims = wanted;
        } else if (dims->size() == wanted.size()) {
          for (size_t d = 0; d < wanted.size(); ++d) {
            (*dims)[d] = (*dims)[d] < 0 ? wanted[d] : (*dims)[d];
          }
        }
      }
      if (!dims) {
        return Error::InvalidArgument(StrCat("the number of dimensions of output '", result.name,
                                             "' depends on data: write the output into the "
                                             "configuration"));
      }
      graph_.AddOutput(result.name, value.name, value.type, dims);
    }
    return {};
  }

  struct Output {
    std::string name;
    Id id = kNothing;
    const Border* border = nullptr;  // null if it is not in the configuration
  };

  const Source& source_;
  const std::vector<Border>& inputs_;
  const std::vector<Border>& outputs_;
  Graph graph_;
  std::vector<Step> steps_;
  std::vector<std::optional<Value>> values_;  // by Id; filled as operators are translated
  std::unordered_map<Id, size_t> writers_;    // the steps that write contents
  std::unordered_map<std::string_view, Id> current_;
  std::unordered_set<Id> needed_;
  std::vector<Output> results_;
  uint64_t filled_bytes_ = 0;
};

}  // namespace

Result<std::string> Translate(const Source& source, const std::vector<Border>& inputs,
                              const std::vector<Border>& outputs) {
  return Translator(source, inputs, outputs).Run();
}

}  // namespace nereid::caffe2
