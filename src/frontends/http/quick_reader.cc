// SPDX-License-Identifier: Apache-2.0
#include "http/quick_reader.h"

#include <algorithm>
#include <cstring>

#include "base/arithmetic.h"
#include "common/parameters.h"

namespace nereid::http {
namespace {

namespace ondemand = simdjson::ondemand;
using common::ParameterKey;
using tensor::DataType;

// Parsers keep memory in proportion to the largest text they read; beyond this they are not kept.
constexpr size_t kKeptBytes = size_t{256} << 10;
// More tensors than this are not searched one by one for a name: the exact reader takes over.
constexpr size_t kMaxSearchedTensors = 64;
constexpr std::string_view kRegionPrefix = "shared_memory_";

// Marks `bit` in `seen`; false when it was there already.
bool SeeOnce(unsigned& seen, unsigned bit) {
  if ((seen & bit) != 0) return false;
  seen |= bit;
  return true;
}

// The first character of a value.
char Kind(ondemand::value& value) {
  const std::string_view token = value.raw_json_token();
  return token.empty() ? '\0' : token.front();
}

}  // namespace

// The parameters of a tensor in shared memory.
struct QuickReader::Region {
  enum Member : unsigned { kName = 1, kOffset = 2, kByteSize = 4 };
  unsigned seen = 0;
  common::RegionTensor where;

  bool is_named() const { return (seen & kName) != 0; }
};

struct QuickReader::Input {
  enum Member : unsigned { kName = 1, kType = 2, kShape = 4, kData = 8, kParameters = 16 };
  unsigned seen = 0;
  std::string_view name;
  DataType type = DataType::kInvalid;
  tensor::Shape shape;
  bool is_data_read = false;
  std::optional<uint64_t> binary_size;
  Region region;
  core::DataChunk chunk;
};

bool QuickReader::Read(std::string_view json, std::string_view binary, core::Request& request,
                       AnswerOptions& answer) {
  json_ = json;
  binary_ = binary;
  request_ = &request;
  answer_ = &answer;
  seen_ = 0;
  if (json.size() <= kKeptBytes) return ReadDocument(parser_, json);
  ondemand::parser parser;
  const bool taken = ReadDocument(parser, json);
  if (strings_.capacity() > kKeptBytes) std::string().swap(strings_);
  return taken;
}

bool QuickReader::ReadDocument(ondemand::parser& parser, std::string_view json) {
  ondemand::document document;
  if (parser
          .iterate(simdjson::padded_string_view(json.data(), json.size(),
                                                json.size() + simdjson::SIMDJSON_PADDING))
          .get(document)) {
    return false;
  }
  Object root;
  if (document.get_object().get(root)) return false;
  for (auto member : root) {
    ondemand::field field;
    if (std::move(member).get(field)) return false;
    const auto key = PlainKey(field);
    if (!key || !ReadMember(*key, field.value())) return false;
  }
  constexpr unsigned kInputsSeen = 4;
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS &&
         (seen_ & kInputsSeen) != 0 && binary_.empty();
}

bool QuickReader::ReadMember(std::string_view key, Value value) {
  if (key == "id") {
    const auto text = Text(value);
    if (!text || !SeeOnce(seen_, 1) || text->find('\0') != text->npos) return false;
    request_->id = request_->arena().Copy(*text);
    return true;
  }
  if (key == "parameters") {
    Object parameters;
    return SeeOnce(seen_, 2) && !value.get_object().get(parameters) && ReadParameters(parameters);
  }
  if (key == "inputs" || key == "outputs") {
    const bool is_input = key == "inputs";
    Array array;
    if (!SeeOnce(seen_, is_input ? 4 : 8) || value.get_array().get(array)) return false;
    for (auto element : array) {
      Object object;
      if (element.get_object().get(object)) return false;
      if (is_input ? !ReadInput(object) : !ReadOutput(object)) return false;
    }
    return true;
  }
  return Skip(value, 0);
}

bool QuickReader::ReadParameters(Object parameters) {
  for (auto member : parameters) {
    ondemand::field field;
    if (std::move(member).get(field)) return false;
    const auto key = PlainKey(field);
    if (!key || !ReadParameter(*key, field.value())) return false;
  }
  return true;
}

bool QuickReader::ReadParameter(std::string_view key, Value value) {
  const ParameterKey kind = common::ClassifyParameter(key);
  // Bits above those of ReadMember; all server parameters are known by now.
  const unsigned bit = 16u << static_cast<unsigned>(kind);
  bool flag = false;
  switch (kind) {
    case ParameterKey::kSequenceId: {
      if (!SeeOnce(seen_, bit)) return false;
      if (Kind(value) == '"') {
        const auto text = Text(value);
        if (!text || text->size() > common::kMaxCorrelationIdBytes ||
            text->find('\0') != text->npos) {
          return false;
        }
        request_->correlation_id = request_->arena().Copy(*text);
        return true;
      }
      uint64_t id = 0;
      if (value.get(id)) return false;
      request_->correlation_id = id;
      return true;
    }
    case ParameterKey::kSequenceStart:
    case ParameterKey::kSequenceEnd:
      if (!SeeOnce(seen_, bit) || value.get(flag)) return false;
      if (flag) {
        request_->flags |=
            kind == ParameterKey::kSequenceStart ? core::kSequenceStart : core::kSequenceEnd;
      }
      return true;
    case ParameterKey::kPriority:
      return SeeOnce(seen_, bit) && !value.get(request_->priority);
    case ParameterKey::kTimeout:
      return SeeOnce(seen_, bit) && !value.get(request_->timeout_us);
    case ParameterKey::kBinaryDataOutput:
      return SeeOnce(seen_, bit) && !value.get(answer_->is_binary_by_default);
    case ParameterKey::kReserved:
      return false;
    case ParameterKey::kHeaders:
    case ParameterKey::kForwarded:
      break;
  }
  if (request_->parameters.size() >= common::kMaxParameters ||
      std::ranges::find(request_->parameters, key, &core::Parameter::name) !=
          request_->parameters.end()) {
    return false;
  }
  core::Parameter parameter{.name = key, .value = {}};
  const char first = Kind(value);
  if (first == '"') {
    const auto text = PlainText(value);
    if (!text) return false;
    parameter.value = *text;
  } else if (first == 't' || first == 'f') {
    if (value.get(flag)) return false;
    parameter.value = flag;
  } else {
    int64_t integer = 0;
    double number = 0;
    if (!value.get(integer)) {
      parameter.value = integer;
    } else if (!value.get(number)) {
      parameter.value = number;
    } else {
      return false;
    }
  }
  request_->parameters.push_back(parameter);
  return true;
}

bool QuickReader::ReadInput(Object object) {
  Input input;
  for (auto member : object) {
    ondemand::field field;
    if (std::move(member).get(field)) return false;
    const auto key = PlainKey(field);
    if (!key || !ReadInputMember(*key, field.value(), input)) return false;
  }
  constexpr unsigned kNeeded = Input::kName | Input::kType | Input::kShape;
  const bool has_data = (input.seen & Input::kData) != 0;
  if ((input.seen & kNeeded) != kNeeded ||
      has_data + input.binary_size.has_value() + input.region.is_named() != 1) {
    return false;
  }
  if (has_data && !input.is_data_read) {
    // The data came before the members that say how to read it.
    bool is_empty = true;
    if (object.reset().get(is_empty)) return false;
    for (auto member : object) {
      ondemand::field field;
      if (std::move(member).get(field)) return false;
      if (PlainKey(field) != "data") continue;
      Array data;
      if (field.value().get_array().get(data) || !ReadData(data, input)) return false;
    }
  }
  if (input.binary_size) {
    if (*input.binary_size > binary_.size()) return false;
    const size_t size = static_cast<size_t>(*input.binary_size);
    input.chunk = {reinterpret_cast<const std::byte*>(binary_.data()), size, {}};
    binary_.remove_prefix(size);
  }
  if (request_->inputs.size() >= kMaxSearchedTensors ||
      request_->FindInput(input.name) != nullptr) {
    return false;
  }
  core::RequestInput& added = request_->AddInput(input.name, input.type);
  added.shape = std::move(input.shape);
  if (input.region.is_named()) {
    return answer_->regions.AddInput(*request_, added, input.region.where).ok();
  }
  if (input.chunk.size > 0) added.Append(input.chunk);
  return true;
}

bool QuickReader::ReadInputMember(std::string_view key, Value value, Input& input) {
  if (key == "name") {
    const auto text = PlainText(value);
    if (!text || !SeeOnce(input.seen, Input::kName)) return false;
    input.name = *text;
    return true;
  }
  if (key == "datatype") {
    const auto text = PlainText(value);
    if (!text || !SeeOnce(input.seen, Input::kType)) return false;
    const auto type = tensor::FromProtocolName(*text);
    if (!type) return false;
    input.type = *type;
    return true;
  }
  if (key == "shape") {
    Array dims;
    if (!SeeOnce(input.seen, Input::kShape) || value.get_array().get(dims)) return false;
    for (auto element : dims) {
      uint64_t dim = 0;
      if (element.get(dim) || dim > INT64_MAX) return false;
      input.shape.PushBack(static_cast<int64_t>(dim));
    }
    return true;
  }
  if (key == "parameters") {
    Object parameters;
    return SeeOnce(input.seen, Input::kParameters) && !value.get_object().get(parameters) &&
           ReadInputParameters(parameters, input);
  }
  if (key == "data") {
    if (!SeeOnce(input.seen, Input::kData)) return false;
    constexpr unsigned kNeeded = Input::kType | Input::kShape;
    if ((input.seen & kNeeded) != kNeeded) return true;  // skipped now, read later
    Array data;
    return !value.get_array().get(data) && ReadData(data, input);
  }
  return Skip(value, 0);
}

bool QuickReader::ReadInputParameters(Object parameters, Input& input) {
  for (auto member : parameters) {
    ondemand::field field;
    if (std::move(member).get(field)) return false;
    const auto key = PlainKey(field);
    if (!key) return false;
    if (key->starts_with(kRegionPrefix)) {
      if (!ReadRegionParameter(*key, field.value(), input.region)) return false;
    } else if (*key == "binary_data_size") {
      uint64_t size = 0;
      if (input.binary_size || field.value().get(size)) return false;
      input.binary_size = size;
    } else if (!Skip(field.value(), 0)) {
      return false;
    }
  }
  // Without a region the others are looked at all the same, which is rare.
  return input.region.seen == 0 || input.region.is_named();
}

bool QuickReader::ReadRegionParameter(std::string_view key, Value value, Region& region) {
  key.remove_prefix(kRegionPrefix.size());
  if (key == "region") {
    const auto text = PlainText(value);
    if (!text || !SeeOnce(region.seen, Region::kName)) return false;
    region.where.region = *text;
    return true;
  }
  if (key == "offset") {
    return SeeOnce(region.seen, Region::kOffset) && !value.get(region.where.offset);
  }
  if (key == "byte_size") {
    return SeeOnce(region.seen, Region::kByteSize) && !value.get(region.where.byte_size);
  }
  return Skip(value, 0);
}

bool QuickReader::ReadData(Array data, Input& input) {
  input.is_data_read = true;
  switch (input.type) {
    case DataType::kBool:
      return ReadNumbers<bool, uint8_t>(data, input);
    case DataType::kUint8:
      return ReadNumbers<uint64_t, uint8_t>(data, input);
    case DataType::kUint16:
      return ReadNumbers<uint64_t, uint16_t>(data, input);
    case DataType::kUint32:
      return ReadNumbers<uint64_t, uint32_t>(data, input);
    case DataType::kUint64:
      return ReadNumbers<uint64_t, uint64_t>(data, input);
    case DataType::kInt8:
      return ReadNumbers<int64_t, int8_t>(data, input);
    case DataType::kInt16:
      return ReadNumbers<int64_t, int16_t>(data, input);
    case DataType::kInt32:
      return ReadNumbers<int64_t, int32_t>(data, input);
    case DataType::kInt64:
      return ReadNumbers<int64_t, int64_t>(data, input);
    case DataType::kFp32:
      return ReadNumbers<double, float>(data, input);
    case DataType::kFp64:
      return ReadNumbers<double, double>(data, input);
    case DataType::kBytes:
      return ReadBytes(data, input);
    default:
      return false;
  }
}

template <typename Json, typename Element>
bool QuickReader::ReadNumbers(Array data, Input& input) {
  const auto count = tensor::ElementCount(input.shape.dims());
  // No text holds more elements than bytes, so nothing large is allocated for a shape that lies. A
  // tensor without elements ignores its data, which is rare.
  if (!count || *count == 0 || static_cast<uint64_t>(*count) > json_.size()) return false;
  const size_t elements = static_cast<size_t>(*count);
  const size_t bytes = elements * sizeof(Element);
  if (bytes > max_input_bytes_) return false;
  std::byte* const memory = request_->arena().Allocate(bytes, base::kBufferAlignment);
  if (memory == nullptr) return false;
  size_t done = 0;
  const std::span out(reinterpret_cast<Element*>(memory), elements);
  if (!ReadElements<Json>(data, out, done, 0) || done != elements) return false;
  input.chunk = {memory, bytes, {}};
  return true;
}

template <typename Json, typename Element>
bool QuickReader::ReadElements(Array array, std::span<Element> out, size_t& done, int depth) {
  // Elements count as one level too.
  if (depth + 1 >= kMaxDataDepth) return false;
  for (auto element : array) {
    Value value;
    if (std::move(element).get(value)) return false;
    if (Kind(value) == '[') {
      Array inner;
      if (value.get_array().get(inner) || !ReadElements<Json>(inner, out, done, depth + 1)) {
        return false;
      }
      continue;
    }
    Json json{};
    if (done == out.size() || value.get(json)) return false;
    // Numbers that the type cannot hold wrap around, as they do in Triton.
    out[done++] = static_cast<Element>(json);
  }
  return true;
}

bool QuickReader::ReadBytes(Array data, Input& input) {
  const auto count = tensor::ElementCount(input.shape.dims());
  if (!count || *count == 0 || static_cast<uint64_t>(*count) > json_.size()) return false;
  strings_.clear();
  if (!ReadStrings(data, 0)) return false;
  // An empty array is an error, a wrong number of strings is the model's check to make.
  if (strings_.empty() || strings_.size() > max_input_bytes_) return false;
  std::byte* const memory = request_->arena().Allocate(strings_.size(), base::kBufferAlignment);
  if (memory == nullptr) return false;
  std::memcpy(memory, strings_.data(), strings_.size());
  input.chunk = {memory, strings_.size(), {}};
  return true;
}

bool QuickReader::ReadStrings(Array array, int depth) {
  // Elements count as one level too.
  if (depth + 1 >= kMaxDataDepth) return false;
  for (auto element : array) {
    Value value;
    if (std::move(element).get(value)) return false;
    if (Kind(value) == '[') {
      Array inner;
      if (value.get_array().get(inner) || !ReadStrings(inner, depth + 1)) return false;
      continue;
    }
    const auto text = Text(value);
    if (!text) return false;
    const uint32_t length = static_cast<uint32_t>(text->size());
    strings_.append(reinterpret_cast<const char*>(&length), sizeof(length));
    strings_.append(*text);
  }
  return true;
}

bool QuickReader::ReadOutput(Object object) {
  enum Member : unsigned { kName = 1, kParameters = 2 };
  unsigned seen = 0;
  std::string_view name;
  OutputOptions options;
  Region region;
  for (auto member : object) {
    ondemand::field field;
    if (std::move(member).get(field)) return false;
    const auto key = PlainKey(field);
    if (!key) return false;
    if (*key == "name") {
      Value value = field.value();
      const auto text = PlainText(value);
      if (!text || !SeeOnce(seen, kName)) return false;
      name = *text;
    } else if (*key == "parameters") {
      Object parameters;
      if (!SeeOnce(seen, kParameters) || field.value().get_object().get(parameters) ||
          !ReadOutputParameters(parameters, options, region)) {
        return false;
      }
    } else if (!Skip(field.value(), 0)) {
      return false;
    }
  }
  if ((seen & kName) == 0 || request_->outputs.size() >= kMaxSearchedTensors ||
      std::ranges::find(request_->outputs, name, &core::RequestedOutput::name) !=
          request_->outputs.end()) {
    return false;
  }
  core::RequestedOutput& output = request_->outputs.emplace_back();
  // Read again when the answer is written, after the body is gone.
  output.name = request_->arena().Copy(name);
  output.tag = static_cast<uint32_t>(answer_->outputs.size());
  options.is_in_region = region.is_named();
  answer_->outputs.push_back(options);
  return !region.is_named() || answer_->regions.AddOutput(output.name, region.where).ok();
}

bool QuickReader::ReadOutputParameters(Object parameters, OutputOptions& options, Region& region) {
  enum Member : unsigned { kBinary = 1, kClasses = 2 };
  unsigned seen = 0;
  for (auto member : parameters) {
    ondemand::field field;
    if (std::move(member).get(field)) return false;
    const auto key = PlainKey(field);
    if (!key) return false;
    if (key->starts_with(kRegionPrefix)) {
      if (!ReadRegionParameter(*key, field.value(), region)) return false;
    } else if (*key == "binary_data") {
      if (!SeeOnce(seen, kBinary) || field.value().get(options.is_binary)) return false;
    } else if (*key == "classification") {
      uint64_t classes = 0;
      if (!SeeOnce(seen, kClasses) || field.value().get(classes)) return false;
      options.class_count = ClassCount(classes);
    } else if (!Skip(field.value(), 0)) {
      return false;
    }
  }
  // What is both in a region and somewhere else is an error; numbers without a region are rare.
  return region.is_named() ? !options.is_binary && (seen & kClasses) == 0 : region.seen == 0;
}

bool QuickReader::Skip(Value value, int depth) {
  if (depth >= kMaxDataDepth) return false;
  switch (Kind(value)) {
    case '{': {
      Object object;
      if (value.get_object().get(object)) return false;
      for (auto member : object) {
        ondemand::field field;
        if (std::move(member).get(field)) return false;
        if (!PlainKey(field) || !Skip(field.value(), depth + 1)) return false;
      }
      return true;
    }
    case '[': {
      Array array;
      if (value.get_array().get(array)) return false;
      for (auto element : array) {
        Value inner;
        if (std::move(element).get(inner) || !Skip(inner, depth + 1)) return false;
      }
      return true;
    }
    case '"':
      return PlainText(value).has_value();
    case 't':
    case 'f': {
      bool flag = false;
      return !value.get(flag);
    }
    case 'n': {
      std::string_view token = value.raw_json_token();
      token = token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
      // Asked for its side effect, see PlainText.
      const auto is_null = value.is_null();
      static_cast<void>(is_null);
      return token == "null";
    }
    default: {
      double number = 0;
      return !value.get(number);
    }
  }
}

std::optional<std::string_view> QuickReader::PlainKey(ondemand::field& field) const {
  const char* const begin = field.key().raw();
  const char* const end = json_.data() + json_.size();
  const auto* quote =
      static_cast<const char*>(std::memchr(begin, '"', static_cast<size_t>(end - begin)));
  if (quote == nullptr) return std::nullopt;
  const std::string_view key(begin, static_cast<size_t>(quote - begin));
  if (std::memchr(key.data(), '\\', key.size()) != nullptr) return std::nullopt;
  return key;
}

std::optional<std::string_view> QuickReader::PlainText(Value& value) {
  const std::string_view token = value.raw_json_token();
  if (token.size() < 2 || token.front() != '"') return std::nullopt;
  const size_t quote = token.find('"', 1);
  if (quote == token.npos) return std::nullopt;
  const std::string_view text = token.substr(1, quote - 1);
  if (text.find('\\') != text.npos) return std::nullopt;
  // simdjson checks what follows a value only if the value was taken, not if it was looked at.
  ondemand::raw_json_string taken;
  if (value.get_raw_json_string().get(taken)) return std::nullopt;
  return text;
}

std::optional<std::string_view> QuickReader::Text(Value& value) {
  if (auto text = PlainText(value)) return text;
  std::string_view text;
  if (value.get_string().get(text)) return std::nullopt;
  return text;
}

}  // namespace nereid::http
