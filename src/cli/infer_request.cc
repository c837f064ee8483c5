// SPDX-License-Identifier: Apache-2.0
#include "cli/infer_request.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "cli/files.h"
#include "cli/json.h"
#include "cli/npy.h"
#include "tensor/shape.h"

namespace nereid::cli {
namespace {

constexpr const char* kHeaderLength = "inference-header-content-length";
constexpr int64_t kAnySize = -1;

// An input that is ready to be sent: as JSON or as bytes.
struct Input {
  const TensorMetadata* metadata;
  std::vector<int64_t> shape;
  std::optional<rapidjson::Document> json;
  std::string bytes;
};

base::Status Refused(std::string_view argument, std::string_view why) {
  return base::InvalidArgumentError(fmt::format("{}: {}", argument, why));
}

template <typename List>
std::string Suggest(std::string_view name, const List& list) {
  std::vector<std::string_view> names;
  for (const auto& one : list) names.push_back(one.name);
  return fmt::format("the model has {}{}", base::QuotedList(names), base::DidYouMean(name, names));
}

// Finds what `text` ("NAME=...") is about, and takes the name and the equals sign from it. The name
// may be left out in front of a file or an array if the model has one input only.
base::Result<const TensorMetadata*> TakeInput(std::string_view option, std::string_view& text,
                                              const ModelMetadata& model) {
  if (model.inputs.size() == 1 && (text.starts_with('@') || text.starts_with('['))) {
    return &model.inputs.front();
  }
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Refused(fmt::format("{} '{}'", option, text), "expected NAME=...");
  }
  const std::string_view name = text.substr(0, equals);
  const auto found = std::ranges::find(model.inputs, name, &TensorMetadata::name);
  if (found == model.inputs.end()) {
    return Refused(fmt::format("{} '{}'", option, text),
                   fmt::format("there is no input '{}'; {}", name, Suggest(name, model.inputs)));
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
      return Refused(fmt::format("{} '{}'", option, whole), "expected sizes such as 1,28,28");
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

  base::Result<std::vector<Input>> Read() {
    for (std::string_view text : arguments_.shapes) {
      NEREID_ASSIGN_OR_RETURN(const TensorMetadata* const tensor,
                              TakeInput("--shape", text, model_));
      NEREID_ASSIGN_OR_RETURN(shapes_[tensor], ReadShape("--shape", text));
    }
    std::vector<Input> inputs;
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

  base::Result<Input> FromJson(const TensorMetadata& tensor, std::string_view text) {
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
    return Input{&tensor, std::move(shape), std::move(document), {}};
  }

  base::Result<Input> FromNpy(const TensorMetadata& tensor, std::string_view content) {
    NEREID_ASSIGN_OR_RETURN(NpyArray array, ReadNpy(content));
    const std::string_view type = tensor::ProtocolName(array.type);
    if (type != tensor.datatype) {
      return base::InvalidArgumentError(
          fmt::format("it holds {}, and the model takes {}", type, tensor.datatype));
    }
    std::vector<int64_t> shape = ShapeFor(tensor, array.shape);
    return Input{&tensor, std::move(shape), std::nullopt, std::move(array.bytes)};
  }

  base::Result<Input> FromRaw(const TensorMetadata& tensor, std::string content) {
    const size_t size =
        tensor::ElementSize(tensor::FromProtocolName(tensor.datatype).value_or(tensor::DataType()));
    if (const auto given = shapes_.find(&tensor); given != shapes_.end()) {
      return Input{&tensor, given->second, std::nullopt, std::move(content)};
    }
    if (size == 0) return base::InvalidArgumentError("it needs --shape");
    auto shape = FitShape(tensor.shape, static_cast<int64_t>(content.size() / size));
    if (!shape || content.size() % size != 0) {
      return base::InvalidArgumentError(fmt::format("its {} bytes do not make a tensor {} {}",
                                                    content.size(), tensor.datatype,
                                                    ShapeText(tensor.shape)));
    }
    return Input{&tensor, *std::move(shape), std::nullopt, std::move(content)};
  }

  base::Result<Input> FromFile(const TensorMetadata& tensor, const std::string& path) {
    NEREID_ASSIGN_OR_RETURN(std::string content, ReadFile(path));
    base::Result<Input> input = [&]() -> base::Result<Input> {
      if (path.ends_with(".npy")) return FromNpy(tensor, content);
      if (path.ends_with(".json") || path == "-") return FromJson(tensor, content);
      if (path.ends_with(".raw")) return FromRaw(tensor, std::move(content));
      return base::InvalidArgumentError("expected a file .npy, .json or .raw");
    }();
    if (!input.ok()) return input.status().WithPrefix(fmt::format("{}: ", path));
    return input;
  }

  base::Status Generate(std::vector<Input>& inputs) {
    for (const TensorMetadata& tensor : model_.inputs) {
      if (std::ranges::find(inputs, &tensor, &Input::metadata) != inputs.end()) continue;
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

// A number or a boolean where the text is one, else a text.
rapidjson::Value ParameterValue(std::string_view text, rapidjson::Document& document) {
  rapidjson::Document parsed;
  if (ParseJson(text, parsed) && (parsed.IsNumber() || parsed.IsBool() || parsed.IsString())) {
    return {parsed, document.GetAllocator()};
  }
  return TextValue(text, document);
}

base::Status AddParameters(const InferArguments& arguments, rapidjson::Document& document) {
  rapidjson::Value parameters(rapidjson::kObjectType);
  for (const std::string_view text : arguments.parameters) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return Refused(fmt::format("--parameter '{}'", text), "expected NAME=VALUE");
    }
    parameters.AddMember(TextValue(text.substr(0, equals), document),
                         ParameterValue(text.substr(equals + 1), document),
                         document.GetAllocator());
  }
  AddMember(document, parameters, "binary_data_output", rapidjson::Value(true));
  AddMember(document, document, "parameters", std::move(parameters));
  return base::OkStatus();
}

rapidjson::Value InputValue(Input& input, rapidjson::Document& document) {
  auto& allocator = document.GetAllocator();
  rapidjson::Value value(rapidjson::kObjectType);
  AddMember(document, value, "name", TextValue(input.metadata->name, document));
  AddMember(document, value, "datatype", TextValue(input.metadata->datatype, document));
  rapidjson::Value shape(rapidjson::kArrayType);
  for (const int64_t size : input.shape) shape.PushBack(size, allocator);
  AddMember(document, value, "shape", std::move(shape));
  if (input.json) {
    AddMember(document, value, "data", rapidjson::Value(*input.json, allocator));
  } else {
    rapidjson::Value parameters(rapidjson::kObjectType);
    AddMember(document, parameters, "binary_data_size",
              rapidjson::Value(uint64_t{input.bytes.size()}));
    AddMember(document, value, "parameters", std::move(parameters));
  }
  return value;
}

base::Status AddOutputs(const InferArguments& arguments, const ModelMetadata& model,
                        rapidjson::Document& document) {
  std::vector<std::string> names = arguments.outputs;
  for (const std::string& name : names) {
    if (std::ranges::find(model.outputs, name, &TensorMetadata::name) == model.outputs.end()) {
      return Refused(fmt::format("--output '{}'", name),
                     fmt::format("there is no such output; {}", Suggest(name, model.outputs)));
    }
  }
  // Classes are asked for by output.
  if (names.empty() && arguments.classes > 0) {
    for (const TensorMetadata& tensor : model.outputs) names.push_back(tensor.name);
  }
  if (names.empty()) return base::OkStatus();
  rapidjson::Value outputs(rapidjson::kArrayType);
  for (const std::string& name : names) {
    rapidjson::Value parameters(rapidjson::kObjectType);
    AddMember(document, parameters, "binary_data", rapidjson::Value(true));
    if (arguments.classes > 0) {
      AddMember(document, parameters, "classification", rapidjson::Value(arguments.classes));
    }
    rapidjson::Value output(rapidjson::kObjectType);
    AddMember(document, output, "name", TextValue(name, document));
    AddMember(document, output, "parameters", std::move(parameters));
    outputs.PushBack(output, document.GetAllocator());
  }
  AddMember(document, document, "outputs", std::move(outputs));
  return base::OkStatus();
}

// Splits the body into the JSON in front and the binary data of outputs.
std::pair<std::string_view, std::string_view> SplitBody(const ServerReply& reply) {
  const std::string_view body = reply.body;
  const auto header = reply.headers.find(kHeaderLength);
  size_t length = body.size();
  if (header != reply.headers.end()) {
    const std::string& text = header->second;
    std::from_chars(text.data(), text.data() + text.size(), length);
  }
  length = std::min(length, body.size());
  return {body.substr(0, length), body.substr(length)};
}

}  // namespace

base::Result<InferBody> MakeInferBody(const InferArguments& arguments, const ModelMetadata& model) {
  NEREID_ASSIGN_OR_RETURN(std::vector<Input> inputs, InputReader(arguments, model).Read());
  rapidjson::Document document;
  document.SetObject();
  if (!arguments.id.empty()) {
    AddMember(document, document, "id", TextValue(arguments.id, document));
  }
  NEREID_RETURN_IF_ERROR(AddParameters(arguments, document));
  rapidjson::Value values(rapidjson::kArrayType);
  for (Input& input : inputs) {
    values.PushBack(InputValue(input, document), document.GetAllocator());
  }
  AddMember(document, document, "inputs", std::move(values));
  NEREID_RETURN_IF_ERROR(AddOutputs(arguments, model, document));
  InferBody result{.body = WriteJson(document), .headers = {}};
  result.headers = {{"content-type", "application/octet-stream"},
                    {kHeaderLength, fmt::format("{}", result.body.size())}};
  for (const Input& input : inputs) result.body += input.bytes;
  return result;
}

base::Result<InferReply> ReadInferReply(const ServerReply& reply) {
  auto [json, data] = SplitBody(reply);
  NEREID_ASSIGN_OR_RETURN(const rapidjson::Document document, ParseReply(json));
  InferReply result{.model = std::string(TextOf(document, "model_name")),
                    .version = std::string(TextOf(document, "model_version")),
                    .id = std::string(TextOf(document, "id")),
                    .parameters = {},
                    .outputs = {}};
  if (const rapidjson::Value* const parameters = MemberOf(document, "parameters")) {
    result.parameters = WriteJson(*parameters);
  }
  for (const rapidjson::Value& value : ListOf(document, "outputs")) {
    InferOutput output{.name = std::string(TextOf(value, "name")),
                       .datatype = std::string(TextOf(value, "datatype"))};
    for (const rapidjson::Value& size : ListOf(value, "shape")) {
      output.shape.push_back(size.IsInt64() ? size.GetInt64() : kAnySize);
    }
    if (const rapidjson::Value* const list = MemberOf(value, "data")) {
      output.json = WriteJson(*list);
    } else {
      const rapidjson::Value* const parameters = MemberOf(value, "parameters");
      const uint64_t size = parameters == nullptr ? 0 : NumberOf(*parameters, "binary_data_size");
      if (size > data.size()) return UnknownReply();
      output.bytes = data.substr(0, size);
      data.remove_prefix(size);
    }
    result.outputs.push_back(std::move(output));
  }
  return result;
}

}  // namespace nereid::cli
