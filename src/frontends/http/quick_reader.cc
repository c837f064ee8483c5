// SPDX-License-Identifier: Apache-2.0
// Whatever is accepted here must have the same meaning for the exact reader (infer_request_test and
// the fuzzer compare them). A known member that is given twice, a key with escapes, a number beyond
// its type and a contradiction are therefore left to the exact reader.
#include "http/quick_reader.h"

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/infer_request_builder.h"
#include "http/json_cursor.h"

namespace nereid::http {
namespace {

using tensor::DataType;

// At most so much memory for strings is kept for the next request.
constexpr size_t kMaxKeptBytes = size_t{256} << 10;

// Marks the member in `seen`; returns false if it was marked already.
bool SeeOnce(unsigned& seen, int member) {
  const unsigned bit = 1u << member;
  if ((seen & bit) != 0) return false;
  seen |= bit;
  return true;
}

// The JSON type of the elements of a tensor's `data`.
template <typename Json>
std::optional<Json> ReadElement(JsonCursor& cursor) {
  if constexpr (std::is_same_v<Json, bool>) {
    return cursor.Flag();
  } else if constexpr (std::is_same_v<Json, double>) {
    return cursor.Double();
  } else if constexpr (std::is_same_v<Json, int64_t>) {
    return cursor.Signed();
  } else {
    return cursor.Unsigned();
  }
}

// Reads one head.
class HeadReader {
 public:
  HeadReader(std::string_view json, std::string_view binary, size_t max_input_bytes,
             core::Request& request, ResponseOptions& response_options, std::string& scratch)
      : json_(json),
        binary_(binary),
        max_input_bytes_(max_input_bytes),
        builder_(common::Protocol::kHttp, common::TextKind::kPlain, request,
                 response_options.regions),
        request_(request),
        response_options_(response_options),
        scratch_(scratch) {}

  bool Read();

 private:
  // An input while its members are read.
  struct Input {
    enum Member { kName, kShape, kDatatype, kParameters, kData };
    static constexpr unsigned kNeeded = 1u << kName | 1u << kShape | 1u << kDatatype;

    unsigned seen = 0;
    std::string_view name;
    DataType type = DataType::kInvalid;
    std::array<int64_t, tensor::Shape::kInlineRank> dims;  // a higher rank is rare
    size_t rank = 0;
    std::optional<uint64_t> binary_size;
    common::RegionParameters region;
    std::optional<JsonCursor> unread_data;  // `data` that preceded the members needed to read it
    core::DataChunk chunk;

    std::span<const int64_t> shape() const { return {dims.data(), rank}; }
    bool has(Member member) const { return (seen & 1u << member) != 0; }
  };

  bool ReadId(JsonCursor& cursor);
  bool ReadParameters(JsonCursor& cursor);
  bool ReadInput(JsonCursor& cursor);
  bool ReadName(JsonCursor& cursor, std::string_view& name);
  bool ReadDataType(JsonCursor& cursor, DataType& type);
  bool ReadInputParameters(JsonCursor& cursor, Input& input);
  bool ReadShape(JsonCursor& cursor, Input& input);
  bool AddInput(Input& input);
  bool ReadData(JsonCursor& data, Input& input);
  template <typename Json, typename Element>
  bool ReadNumbers(JsonCursor& data, Input& input);
  template <typename Json, typename Element>
  bool ReadElements(JsonCursor& data, std::span<Element> out, size_t& done, int depth);
  bool ReadBytes(JsonCursor& data, Input& input);
  bool ReadStrings(JsonCursor& data, int depth);
  bool ReadOutput(JsonCursor& cursor);
  bool ReadOutputParameters(JsonCursor& cursor, common::OutputParameters& parameters);

  // Reads a string without a zero byte, which then lives as long as the request.
  std::optional<std::string_view> ReadText(JsonCursor& cursor) {
    JsonCursor after = cursor;
    if (const auto text = after.Text()) [[likely]] {
      cursor = after;
      return text;
    }
    return cursor.Aside([this](JsonCursor& begin) { return ReadEscapedText(begin); });
  }
  std::optional<std::string_view> ReadEscapedText(JsonCursor& cursor);
  // Reads the value of a parameter that has none yet.
  bool ReadValue(JsonCursor& cursor, std::optional<common::ParameterValue>& value) {
    if (value) return false;
    return cursor.Aside([&](JsonCursor& begin) { return ReadAnyValue(begin, value); });
  }
  bool ReadAnyValue(JsonCursor& cursor, std::optional<common::ParameterValue>& value);

  const std::string_view json_;
  std::string_view binary_;  // the part that no input has taken yet
  const size_t max_input_bytes_;
  common::InferRequestBuilder builder_;
  core::Request& request_;
  ResponseOptions& response_options_;
  std::string& scratch_;
};

bool HeadReader::Read() {
  enum Member { kId, kInputs, kOutputs, kParameters };
  JsonCursor cursor(json_);
  unsigned seen = 0;
  const bool is_taken = cursor.Object<"id", "inputs", "outputs", "parameters">(
      [&](int member, std::string_view /*key*/) {
        if (member < 0) return cursor.Skip();
        if (!SeeOnce(seen, member)) return false;
        switch (member) {
          case kId:
            return ReadId(cursor);
          case kInputs:
            return cursor.Array([&] {
              return cursor.Aside([this](JsonCursor& place) { return ReadInput(place); });
            });
          case kOutputs:
            return cursor.Array([&] {
              return cursor.Aside([this](JsonCursor& place) { return ReadOutput(place); });
            });
          default:
            return cursor.Aside([this](JsonCursor& place) { return ReadParameters(place); });
        }
      });
  response_options_.is_binary_by_default = builder_.is_binary_by_default();
  return is_taken && (seen & 1u << kInputs) != 0 && binary_.empty() && cursor.IsAtEnd();
}

std::optional<std::string_view> HeadReader::ReadEscapedText(JsonCursor& cursor) {
  scratch_.clear();
  if (!cursor.AppendText(scratch_) || scratch_.find('\0') != scratch_.npos) return std::nullopt;
  return request_.arena().Copy(scratch_);
}

bool HeadReader::ReadAnyValue(JsonCursor& cursor, std::optional<common::ParameterValue>& value) {
  switch (cursor.Peek()) {
    case '"': {
      const auto text = ReadText(cursor);
      if (text) value.emplace(*text);
      return text.has_value();
    }
    case 't':
    case 'f': {
      const auto flag = cursor.Flag();
      if (flag) value.emplace(*flag);
      return flag.has_value();
    }
    default:
      break;
  }
  const JsonCursor begin = cursor;
  if (const auto integer = cursor.Signed(); integer && cursor.IsAtEndOfNumber()) {
    value.emplace(*integer);
    return true;
  }
  cursor = begin;
  if (const auto integer = cursor.Unsigned(); integer && cursor.IsAtEndOfNumber()) {
    value.emplace(*integer);
    return true;
  }
  cursor = begin;
  const auto number = cursor.Double();
  if (number) value.emplace(*number);
  return number.has_value();
}

bool HeadReader::ReadId(JsonCursor& cursor) {
  const auto text = ReadText(cursor);
  if (!text) return false;
  builder_.SetId(*text);
  return true;
}

bool HeadReader::ReadParameters(JsonCursor& place) {
  JsonCursor cursor = place;
  using common::ParameterKey;
  static constexpr std::pair<ParameterKey, std::string_view> kUsual[] = {
      {ParameterKey::kBinaryDataOutput, "binary_data_output"},
      {ParameterKey::kSequenceId, "sequence_id"},
      {ParameterKey::kSequenceStart, "sequence_start"},
      {ParameterKey::kSequenceEnd, "sequence_end"}};
  const bool are_taken =
      cursor.Object<"binary_data_output", "sequence_id", "sequence_start", "sequence_end">(
          [&](int member, std::string_view key) {
            std::optional<common::ParameterValue> value;
            if (!ReadValue(cursor, value)) return false;
            if (member < 0) return builder_.SetParameter(key, *value).ok();
            const auto& [usual_key, name] = kUsual[member];
            return builder_.SetParameter(usual_key, name, *value).ok();
          });
  place = cursor;
  return are_taken && !builder_.has_parameter_twice();
}

bool HeadReader::ReadInput(JsonCursor& place) {
  JsonCursor cursor = place;
  Input input;
  const bool is_taken = cursor.Object<"name", "shape", "datatype", "parameters", "data">(
      [&](int member, std::string_view /*key*/) {
        if (member < 0) return cursor.Skip();
        if (!SeeOnce(input.seen, member)) return false;
        switch (member) {
          case Input::kName:
            return ReadName(cursor, input.name);
          case Input::kShape:
            return ReadShape(cursor, input);
          case Input::kDatatype:
            return ReadDataType(cursor, input.type);
          case Input::kParameters:
            return ReadInputParameters(cursor, input);
          default:
            break;
        }
        if (input.has(Input::kShape) && input.has(Input::kDatatype)) {
          return cursor.Aside([&](JsonCursor& data) { return ReadData(data, input); });
        }
        input.unread_data = cursor;
        return cursor.Skip();
      });
  place = cursor;
  if (!is_taken || (input.seen & Input::kNeeded) != Input::kNeeded) return false;
  if (input.unread_data && !ReadData(*input.unread_data, input)) return false;
  return AddInput(input);
}

bool HeadReader::ReadName(JsonCursor& cursor, std::string_view& name) {
  const auto text = ReadText(cursor);
  if (text) name = *text;
  return text.has_value();
}

bool HeadReader::ReadDataType(JsonCursor& cursor, DataType& type) {
  const auto text = ReadText(cursor);
  if (text) type = tensor::FromProtocolName(*text).value_or(DataType::kInvalid);
  return text.has_value();
}

bool HeadReader::ReadShape(JsonCursor& cursor, Input& input) {
  return cursor.Array([&] {
    const auto dim = cursor.Unsigned();
    if (!dim || *dim > INT64_MAX || input.rank == input.dims.size()) return false;
    input.dims[input.rank++] = static_cast<int64_t>(*dim);
    return true;
  });
}

bool HeadReader::ReadInputParameters(JsonCursor& cursor, Input& input) {
  return cursor.Object<"binary_data_size", "shared_memory_region", "shared_memory_offset",
                       "shared_memory_byte_size">([&](int member, std::string_view /*key*/) {
    switch (member) {
      case 0:
        if (input.binary_size) return false;
        input.binary_size = cursor.Unsigned();
        return input.binary_size.has_value();
      case 1:
        return ReadValue(cursor, input.region.region);
      case 2:
        return ReadValue(cursor, input.region.offset);
      case 3:
        return ReadValue(cursor, input.region.byte_size);
      default:
        return cursor.Skip();
    }
  });
}

bool HeadReader::AddInput(Input& input) {
  const int contents = int{input.has(Input::kData)} + int{input.binary_size.has_value()} +
                       int{input.region.region.has_value()};
  if (contents != 1) return false;
  core::RequestInput* const added = builder_.TryAddInput(input.name, input.type, input.shape());
  if (added == nullptr) return false;
  if (input.binary_size) {
    if (*input.binary_size > binary_.size()) return false;
    const auto size = static_cast<size_t>(*input.binary_size);
    input.chunk = {reinterpret_cast<const std::byte*>(binary_.data()), size, {}};
    binary_.remove_prefix(size);
  } else {
    const auto region = builder_.ReadRegion(input.name, input.region);
    if (!region.ok()) return false;
    if (*region) return response_options_.regions.AddInput(request_, *added, **region).ok();
  }
  if (input.chunk.size > 0) added->Append(input.chunk);
  return true;
}

bool HeadReader::ReadData(JsonCursor& data, Input& input) {
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
bool HeadReader::ReadNumbers(JsonCursor& data, Input& input) {
  const auto count = tensor::ElementCount(input.shape());
  // A text has no more elements than bytes, so a false shape cannot cause a large allocation. A
  // tensor without elements ignores its data, which is rare.
  if (!count || *count == 0 || static_cast<uint64_t>(*count) > json_.size()) return false;
  const auto elements = static_cast<size_t>(*count);
  const size_t bytes = elements * sizeof(Element);
  if (bytes > max_input_bytes_) return false;
  std::byte* const memory = request_.arena().Allocate(bytes, base::kBufferAlignment);
  if (memory == nullptr) return false;
  size_t done = 0;
  const std::span out(reinterpret_cast<Element*>(memory), elements);
  if (!ReadElements<Json>(data, out, done, 0) || done != elements) return false;
  input.chunk = {memory, bytes, {}};
  return true;
}

template <typename Json, typename Element>
bool HeadReader::ReadElements(JsonCursor& data, std::span<Element> out, size_t& done, int depth) {
  // The elements count as one level too.
  if (depth + 1 >= kMaxDataDepth) return false;
  JsonCursor cursor = data;
  Element* next = out.data() + done;
  Element* const end = out.data() + out.size();
  const bool are_taken = cursor.Array([&] {
    if (cursor.Peek() == '[') {
      return cursor.Aside([&](JsonCursor& inner) {
        done = static_cast<size_t>(next - out.data());
        const bool is_taken = ReadElements<Json>(inner, out, done, depth + 1);
        next = out.data() + done;
        return is_taken;
      });
    }
    const std::optional<Json> json = ReadElement<Json>(cursor);
    if (next == end || !json) return false;
    // Numbers that the type cannot hold wrap around, as they do in Triton.
    *next++ = static_cast<Element>(*json);
    return true;
  });
  data = cursor;
  done = static_cast<size_t>(next - out.data());
  return are_taken;
}

bool HeadReader::ReadBytes(JsonCursor& data, Input& input) {
  const auto count = tensor::ElementCount(input.shape());
  if (!count || *count == 0 || static_cast<uint64_t>(*count) > json_.size()) return false;
  scratch_.clear();
  if (!ReadStrings(data, 0)) return false;
  // An empty array is an error; a wrong number of strings is detected later.
  if (scratch_.empty() || scratch_.size() > max_input_bytes_) return false;
  std::byte* const memory = request_.arena().Allocate(scratch_.size(), base::kBufferAlignment);
  if (memory == nullptr) return false;
  std::memcpy(memory, scratch_.data(), scratch_.size());
  input.chunk = {memory, scratch_.size(), {}};
  return true;
}

// Appends the strings of nested arrays to `scratch_`, each after its length.
bool HeadReader::ReadStrings(JsonCursor& data, int depth) {
  // The elements count as one level too.
  if (depth + 1 >= kMaxDataDepth) return false;
  return data.Array([&] {
    if (data.Peek() == '[') return ReadStrings(data, depth + 1);
    const size_t place = scratch_.size();
    scratch_.append(sizeof(uint32_t), '\0');
    if (!data.AppendText(scratch_)) return false;
    const auto length = static_cast<uint32_t>(scratch_.size() - place - sizeof(uint32_t));
    std::memcpy(scratch_.data() + place, &length, sizeof(length));
    return true;
  });
}

bool HeadReader::ReadOutput(JsonCursor& cursor) {
  enum Member { kName, kParameters };
  unsigned seen = 0;
  std::string_view name;
  common::OutputParameters parameters;
  const bool is_taken =
      cursor.Object<"name", "parameters">([&](int member, std::string_view /*key*/) {
        if (member < 0) return cursor.Skip();
        if (!SeeOnce(seen, member)) return false;
        if (member == kParameters) return ReadOutputParameters(cursor, parameters);
        return ReadName(cursor, name);
      });
  return is_taken && (seen & 1u << kName) != 0 &&
         infer_internal::AddOutput(builder_, name, parameters, response_options_).ok();
}

bool HeadReader::ReadOutputParameters(JsonCursor& cursor, common::OutputParameters& parameters) {
  return cursor.Object<"binary_data", "classification", "shared_memory_region",
                       "shared_memory_offset", "shared_memory_byte_size">(
      [&](int member, std::string_view /*key*/) {
        switch (member) {
          case 0:
            return ReadValue(cursor, parameters.binary_data);
          case 1:
            return ReadValue(cursor, parameters.classification);
          case 2:
            return ReadValue(cursor, parameters.region.region);
          case 3:
            return ReadValue(cursor, parameters.region.offset);
          case 4:
            return ReadValue(cursor, parameters.region.byte_size);
          default:
            return cursor.Skip();
        }
      });
}

}  // namespace

bool QuickReader::Read(std::string_view json, std::string_view binary, core::Request& request,
                       ResponseOptions& response_options) {
  const bool is_taken =
      HeadReader(json, binary, max_input_bytes_, request, response_options, scratch_).Read();
  if (scratch_.capacity() > kMaxKeptBytes) std::string().swap(scratch_);
  return is_taken;
}

}  // namespace nereid::http
