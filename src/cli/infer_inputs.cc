// SPDX-License-Identifier: Apache-2.0
#include "cli/infer_inputs.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "cli/files.h"
#include "cli/json.h"
#include "cli/npy.h"
#include "tensor/shape.h"

namespace nereid::cli {
namespace {

// Finds what `text` ("NAME=...") is about, and takes the name and the equals sign from it. The name
// may be left out in front of a file or an array if the model has one input only.
base::Result<const TensorMetadata*> TakeInput(std::string_view option, std::string_view& text,
                                              const ModelMetadata& model) {
  if (model.inputs.size() == 1 && (text.starts_with('@') || text.starts_with('['))) {
    return &model.inputs.front();
  }
  size_t equals = text.find('=');
  // Others write shapes as NAME:SIZES.
  if (equals == std::string_view::npos && option == "--shape") equals = text.rfind(':');
  if (equals == std::string_view::npos) {
    return RefuseArgument(fmt::format("{} '{}'", option, text), "expected NAME=...");
  }
  const std::string_view name = text.substr(0, equals);
  const auto found = std::ranges::find(model.inputs, name, &TensorMetadata::name);
  if (found == model.inputs.end()) {
    return RefuseArgument(
        fmt::format("{} '{}'", option, text),
        fmt::format("there is no input '{}'; {}", name, KnownNames(name, model.inputs)));
  }
  text.remove_prefix(equals + 1);
  return &*found;
}

// The dimensions of nested arrays, from the first elements.
std::vector<int64_t> ShapeOf(const rapidjson::Value& value) {
  std::vector<int64_t> shape;
  for (const rapidjson::Value* at = &value; at->IsArray(); at = &(*at)[0]) {
    shape.push_back(at->Size());
    if (at->Empty()) break;
  }
  return shape;
}

// Returns the shape that the model expects, with sizes for what it leaves open so that it has
// `count` elements: 1 for the first, and what is needed for the last.
std::optional<std::vector<int64_t>> FitShape(std::vector<int64_t> shape, int64_t count) {
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& size : shape) {
    if (size != kAnySize) {
      if (size <= 0 || known > count / size) return std::nullopt;
      known *= size;
    } else {
      if (open != nullptr) *open = 1;
      open = &size;
    }
  }
  if (open != nullptr) *open = count / known;
  if (tensor::ElementCount(shape) != count) return std::nullopt;
  return shape;
}

// Whether a tensor of this shape is what the model expects.
bool Matches(const std::vector<int64_t>& expected, const std::vector<int64_t>& shape) {
  return std::ranges::equal(expected, shape, [](int64_t wanted, int64_t size) {
    return wanted == kAnySize || wanted == size;
  });
}

// Returns the shape to send for data that has this one: the same, or with a batch dimension of 1 in
// front, or that of the model if the data is a plain list. If nothing fits, the shape of the data,
// about which the server then says what it expects.
std::vector<int64_t> ChooseShape(const std::vector<int64_t>& expected,
                                 const std::vector<int64_t>& shape) {
  if (Matches(expected, shape)) return shape;
  std::vector<int64_t> batch = shape;
  batch.insert(batch.begin(), 1);
  if (Matches(expected, batch)) return batch;
  if (shape.size() <= 1) {
    if (auto fitting = FitShape(expected, shape.empty() ? 1 : shape.front())) return *fitting;
    // A single value, where a list is expected.
    if (shape.empty()) return {1};
  }
  return shape;
}

base::Result<std::vector<int64_t>> ReadShape(std::string_view option, std::string_view text) {
  std::vector<int64_t> shape;
  const std::string_view whole = text;
  while (!text.empty()) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (error != std::errc() || size < 0 || (!text.empty() && text.front() != ',')) {
      return RefuseArgument(fmt::format("{} '{}'", option, whole),
                            "expected sizes such as 1,28,28");
    }
    shape.push_back(size);
    if (!text.empty()) text.remove_prefix(1);
  }
  return shape;
}

// Builds the inputs of a request.
class InputReader {
 public:
  InputReader(const InferArguments& arguments, const ModelMetadata& model)
      : arguments_(arguments), model_(model) {}

  base::Result<std::vector<InferInput>> Read() {
    for (std::string_view text : arguments_.shapes) {
      NEREID_ASSIGN_OR_RETURN(const TensorMetadata* const tensor,
                              TakeInput("--shape", text, model_));
      NEREID_ASSIGN_OR_RETURN(shapes_[tensor], ReadShape("--shape", text));
    }
    std::vector<InferInput> inputs;
    for (const std::string& argument : arguments_.inputs) {
      std::string_view text = argument;
      NEREID_ASSIGN_OR_RETURN(const TensorMetadata* const tensor,
                              TakeInput("--input", text, model_));
      auto input = text.starts_with('@') ? FromFile(*tensor, std::string(text.substr(1)))
                                         : FromJson(*tensor, text);
      if (!input.ok()) {
        return input.status().WithPrefix(fmt::format("input {}: ", tensor->name));
      }
      inputs.push_back(*std::move(input));
    }
    if (arguments_.filling) NEREID_RETURN_IF_ERROR(Generate(inputs));
    return inputs;
  }

 private:
  std::vector<int64_t> ShapeFor(const TensorMetadata& tensor, const std::vector<int64_t>& data) {
    const auto given = shapes_.find(&tensor);
    return given != shapes_.end() ? given->second : ChooseShape(tensor.shape, data);
  }

  base::Result<InferInput> FromJson(const TensorMetadata& tensor, std::string_view text) {
    rapidjson::Document document;
    if (!ParseJson(text, document)) {
      return base::InvalidArgumentError(
          fmt::format("'{}' is not JSON (a text needs quotes) and not @FILE", text));
    }
    std::vector<int64_t> shape = ShapeFor(tensor, ShapeOf(document));
    if (!document.IsArray()) {
      rapidjson::Document list;
      list.SetArray().PushBack(rapidjson::Value(document, list.GetAllocator()),
                               list.GetAllocator());
      document.Swap(list);
    }
    return InferInput{&tensor, std::move(shape), std::move(document), {}};
  }

  base::Result<InferInput> FromNpy(const TensorMetadata& tensor, std::string_view content) {
    NEREID_ASSIGN_OR_RETURN(NpyArray array, ReadNpy(content));
    const std::string_view type = tensor::ProtocolName(array.type);
    if (type != tensor.datatype) {
      return base::InvalidArgumentError(
          fmt::format("it holds {}, and the model takes {}", type, tensor.datatype));
    }
    std::vector<int64_t> shape = ShapeFor(tensor, array.shape);
    return InferInput{&tensor, std::move(shape), std::nullopt, std::move(array.bytes)};
  }

  base::Result<InferInput> FromRaw(const TensorMetadata& tensor, std::string content) {
    const size_t size =
        tensor::ElementSize(tensor::FromProtocolName(tensor.datatype).value_or(tensor::DataType()));
    if (const auto given = shapes_.find(&tensor); given != shapes_.end()) {
      return InferInput{&tensor, given->second, std::nullopt, std::move(content)};
    }
    if (size == 0) return base::InvalidArgumentError("it needs --shape");
    auto shape = FitShape(tensor.shape, static_cast<int64_t>(content.size() / size));
    if (!shape || content.size() % size != 0) {
      return base::InvalidArgumentError(fmt::format("its {} bytes do not make a tensor {} {}",
                                                    content.size(), tensor.datatype,
                                                    ShapeText(tensor.shape)));
    }
    return InferInput{&tensor, *std::move(shape), std::nullopt, std::move(content)};
  }

  base::Result<InferInput> FromFile(const TensorMetadata& tensor, const std::string& path) {
    NEREID_ASSIGN_OR_RETURN(std::string content, ReadFile(path));
    base::Result<InferInput> input = [&]() -> base::Result<InferInput> {
      if (path.ends_with(".npy")) return FromNpy(tensor, content);
      if (path.ends_with(".json") || path == "-") {
        auto input = FromJson(tensor, content);
        // The content may be long.
        return input.ok() ? std::move(input) : base::InvalidArgumentError("it is not JSON");
      }
      if (path.ends_with(".raw")) return FromRaw(tensor, std::move(content));
      return base::InvalidArgumentError("expected a file .npy, .json or .raw");
    }();
    if (!input.ok()) return input.status().WithPrefix(fmt::format("{}: ", path));
    return input;
  }

  base::Status Generate(std::vector<InferInput>& inputs) {
    for (const TensorMetadata& tensor : model_.inputs) {
      if (std::ranges::find(inputs, &tensor, &InferInput::metadata) != inputs.end()) continue;
      std::vector<int64_t> shape = tensor.shape;
      std::ranges::replace(shape, kAnySize, int64_t{1});
      if (const auto given = shapes_.find(&tensor); given != shapes_.end()) shape = given->second;
      auto bytes = GenerateElements(
          tensor::FromProtocolName(tensor.datatype).value_or(tensor::DataType::kInvalid),
          tensor::ElementCount(shape).value_or(-1), *arguments_.filling,
          static_cast<uint64_t>(arguments_.seed));
      if (!bytes.ok()) {
        return bytes.status().WithPrefix(fmt::format("input {}: ", tensor.name));
      }
      inputs.push_back({&tensor, std::move(shape), std::nullopt, *std::move(bytes)});
    }
    return base::OkStatus();
  }

  const InferArguments& arguments_;
  const ModelMetadata& model_;
  std::map<const TensorMetadata*, std::vector<int64_t>> shapes_;  // of --shape
};

}  // namespace

base::Status RefuseArgument(std::string_view argument, std::string_view why) {
  return base::InvalidArgumentError(fmt::format("{}: {}", argument, why));
}

std::string KnownNames(std::string_view name, const std::vector<TensorMetadata>& tensors) {
  std::vector<std::string_view> names;
  for (const TensorMetadata& one : tensors) names.push_back(one.name);
  return fmt::format("the model has {}{}", base::QuotedList(names), base::DidYouMean(name, names));
}

base::Result<std::vector<InferInput>> ReadInferInputs(const InferArguments& arguments,
                                                      const ModelMetadata& model) {
  return InputReader(arguments, model).Read();
}

}  // namespace nereid::cli
