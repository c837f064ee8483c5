// SPDX-License-Identifier: Apache-2.0
#include "cache_host/packed_response.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

namespace nereid::cache_host {
namespace {

using base::Status;
using core::Response;
using core::ResponseOutput;

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::string_view kMagic = "NRDRESP1";
// The header: magic, total size, checksum.
constexpr size_t kHeaderBytes = 24;
constexpr uint32_t kMaxRank = 64;
constexpr uint32_t kMaxParameters = 4096;

// The alternatives of core::Parameter::value, in their order.
enum class ParameterKind : uint8_t { kText = 0, kInteger = 1, kBool = 2, kDouble = 3 };

// Writes values or, without a target, only counts their bytes, so that both use the same code.
class Writer {
 public:
  explicit Writer(std::byte* to) : to_(to) {}

  void Bytes(const void* data, size_t size) {
    if (to_ != nullptr && size > 0) std::memcpy(to_ + at_, data, size);
    at_ += size;
  }
  template <typename Value>
  void Number(Value number) {
    Bytes(&number, sizeof number);
  }
  void Text(std::string_view text) {
    Number(static_cast<uint32_t>(text.size()));
    Bytes(text.data(), text.size());
  }
  size_t size() const { return at_; }

 private:
  std::byte* const to_;
  size_t at_ = 0;
};

// Reads values from the front. Once something is missing, all further values are missing, too.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  std::optional<std::span<const std::byte>> Bytes(uint64_t size) {
    if (size > left_.size()) return std::nullopt;
    const auto taken = left_.first(static_cast<size_t>(size));
    left_ = left_.subspan(static_cast<size_t>(size));
    return taken;
  }
  template <typename Value>
  std::optional<Value> Take() {
    const auto bytes = Bytes(sizeof(Value));
    if (!bytes) return std::nullopt;
    Value number;
    std::memcpy(&number, bytes->data(), sizeof number);
    return number;
  }
  std::optional<std::string_view> Text() {
    const auto size = Take<uint32_t>();
    const auto bytes = size ? Bytes(*size) : std::nullopt;
    if (!bytes) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
  std::span<const std::byte> left() const { return left_; }

 private:
  std::span<const std::byte> left_;
};

void WriteOutput(Writer& writer, const ResponseOutput& output) {
  writer.Text(output.name);
  writer.Number(static_cast<uint8_t>(output.type));
  writer.Number(static_cast<uint32_t>(output.shape.rank()));
  for (const int64_t dim : output.shape.dims()) writer.Number(dim);
  writer.Number(static_cast<uint64_t>(output.byte_size));
  writer.Bytes(output.data, output.byte_size);
}

void WriteParameter(Writer& writer, const core::Parameter& parameter) {
  writer.Text(parameter.name);
  writer.Number(static_cast<uint8_t>(parameter.value.index()));
  if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
    writer.Text(*text);
  } else if (const auto* integer = std::get_if<int64_t>(&parameter.value)) {
    writer.Number(*integer);
  } else if (const auto* flag = std::get_if<bool>(&parameter.value)) {
    writer.Number(static_cast<uint64_t>(*flag));
  } else {
    writer.Number(std::get<double>(parameter.value));
  }
}

void WriteBody(Writer& writer, const core::CacheKey& key, const Response& response) {
  writer.Text(key.view());
  writer.Number(static_cast<uint32_t>(response.output_count()));
  writer.Number(static_cast<uint32_t>(response.parameters().size()));
  for (size_t i = 0; i < response.output_count(); ++i) WriteOutput(writer, response.output(i));
  for (const core::Parameter& parameter : response.parameters()) WriteParameter(writer, parameter);
}

// An output or parameter in the packed bytes.
struct PackedOutput {
  std::string_view name;
  tensor::DataType type = tensor::DataType::kInvalid;
  tensor::Shape shape;
  std::span<const std::byte> data;
};

std::optional<PackedOutput> ReadOutput(Reader& reader) {
  PackedOutput output;
  const auto name = reader.Text();
  const auto type = reader.Take<uint8_t>();
  const auto rank = reader.Take<uint32_t>();
  if (!name || !type || *type >= tensor::kDataTypeCount || !rank || *rank > kMaxRank) {
    return std::nullopt;
  }
  output.name = *name;
  output.type = static_cast<tensor::DataType>(*type);
  for (uint32_t i = 0; i < *rank; ++i) {
    const auto dim = reader.Take<int64_t>();
    if (!dim || *dim < 0) return std::nullopt;
    output.shape.PushBack(*dim);
  }
  const auto size = reader.Take<uint64_t>();
  const auto data = size ? reader.Bytes(*size) : std::nullopt;
  if (!data) return std::nullopt;
  output.data = *data;
  return output;
}

std::optional<core::Parameter> ReadParameter(Reader& reader) {
  core::Parameter parameter;
  const auto name = reader.Text();
  const auto kind = reader.Take<uint8_t>();
  if (!name || !kind) return std::nullopt;
  parameter.name = *name;
  const auto take = [&parameter](const auto& value) {
    if (value) parameter.value = *value;
    return value.has_value();
  };
  switch (static_cast<ParameterKind>(*kind)) {
    case ParameterKind::kText:
      return take(reader.Text()) ? std::optional(parameter) : std::nullopt;
    case ParameterKind::kInteger:
      return take(reader.Take<int64_t>()) ? std::optional(parameter) : std::nullopt;
    case ParameterKind::kBool: {
      const auto flag = reader.Take<uint64_t>();
      if (!flag || *flag > 1) return std::nullopt;
      parameter.value = *flag == 1;
      return parameter;
    }
    case ParameterKind::kDouble:
      return take(reader.Take<double>()) ? std::optional(parameter) : std::nullopt;
  }
  return std::nullopt;
}

// Whether `data` is `count` elements of BYTES, each after its length.
bool IsElements(std::span<const std::byte> data, int64_t count) {
  Reader reader(data);
  for (int64_t i = 0; i < count; ++i) {
    if (!reader.Text()) return false;
  }
  return reader.left().empty();
}

Status CheckOutput(const PackedOutput& output, const core::Model& model) {
  const std::string name = "output '" + std::string(output.name) + "' ";
  const int index = model.FindOutput(output.name);
  if (index < 0) return base::InternalError(name + "is none of the model's");
  if (model.outputs()[static_cast<size_t>(index)].type != output.type) {
    return base::InternalError(name + "has another type than the model's");
  }
  if (output.type == tensor::DataType::kBytes) {
    const auto count = tensor::ElementCount(output.shape.dims());
    if (count && IsElements(output.data, *count)) return base::OkStatus();
  } else {
    const auto size = tensor::ByteSize(output.type, output.shape.dims());
    if (size && *size == output.data.size()) return base::OkStatus();
  }
  return base::InternalError(name + "does not have the bytes that its shape says");
}

Status Damaged(const char* what) {
  return base::InternalError(std::string("the entry is damaged: ") + what);
}

// Returns the part after the header, after validating size and checksum.
base::Result<std::span<const std::byte>> OpenHeader(std::span<const std::byte> packed,
                                                    Integrity integrity) {
  Reader reader(packed);
  const auto magic = reader.Bytes(kMagic.size());
  if (!magic || std::memcmp(magic->data(), kMagic.data(), kMagic.size()) != 0) {
    return Status(Damaged("it does not begin as entries of this server do"));
  }
  const auto size = reader.Take<uint64_t>();
  const auto checksum = reader.Take<uint64_t>();
  if (!size || !checksum || *size != packed.size()) return Status(Damaged("its size is wrong"));
  if (integrity == Integrity::kChecksum &&
      XXH3_64bits(reader.left().data(), reader.left().size()) != *checksum) {
    return Status(Damaged("its checksum is wrong"));
  }
  return reader.left();
}

// How many outputs and parameters follow.
struct Counts {
  uint32_t outputs = 0;
  uint32_t parameters = 0;
};

std::optional<Counts> ReadCounts(Reader& reader) {
  const auto outputs = reader.Take<uint32_t>();
  const auto parameters = reader.Take<uint32_t>();
  if (!outputs || !parameters || *outputs > Response::kMaxOutputs || *parameters > kMaxParameters) {
    return std::nullopt;
  }
  return Counts{*outputs, *parameters};
}

Status AddOutput(const PackedOutput& packed, Response& response) {
  ResponseOutput* const output = response.AddOutput(packed.name, packed.type, packed.shape.dims());
  if (output == nullptr) return base::UnavailableError("out of memory");
  NEREID_RETURN_IF_ERROR(response.AllocateBuffer(*output, packed.data.size(), {}, false));
  if (!packed.data.empty()) std::memcpy(output->data, packed.data.data(), packed.data.size());
  return response.MoveStagedOutputs();
}

}  // namespace

base::Result<size_t> PackedSize(const core::CacheKey& key, const Response& response) {
  if (!response.error().ok()) return base::InternalError("a failed response is not kept");
  if (response.parameters().size() > kMaxParameters) {
    return base::InternalError("the response has too many parameters");
  }
  for (size_t i = 0; i < response.output_count(); ++i) {
    const ResponseOutput& output = response.output(i);
    if (output.where.type == memory::MemoryType::kGpu) {
      return base::InvalidArgumentError(
          "Only input buffers in CPU memory are allowed in cache currently");
    }
    if (!output.has_buffer || (output.data == nullptr && output.byte_size > 0)) {
      return base::InternalError("Response buffer from output was nullptr");
    }
    if (output.shape.rank() > kMaxRank) return base::InternalError("an output has too many dims");
  }
  Writer writer(nullptr);
  WriteBody(writer, key, response);
  return kHeaderBytes + writer.size();
}

void PackResponse(const core::CacheKey& key, const Response& response, std::span<std::byte> to,
                  Integrity integrity) {
  Writer body(to.data() + kHeaderBytes);
  WriteBody(body, key, response);
  NEREID_CHECK(kHeaderBytes + body.size() == to.size());
  Writer header(to.data());
  header.Bytes(kMagic.data(), kMagic.size());
  header.Number(static_cast<uint64_t>(to.size()));
  header.Number(integrity == Integrity::kChecksum
                    ? static_cast<uint64_t>(XXH3_64bits(to.data() + kHeaderBytes, body.size()))
                    : uint64_t{0});
}

Status CheckPackedResponse(const core::CacheKey& key, std::span<const std::byte> packed,
                           const core::Model& model, Integrity integrity) {
  NEREID_ASSIGN_OR_RETURN(const std::span<const std::byte> body, OpenHeader(packed, integrity));
  Reader reader(body);
  const auto kept_under = reader.Text();
  if (!kept_under || *kept_under != key.view()) return Damaged("it belongs to another key");
  const auto counts = ReadCounts(reader);
  if (!counts) return Damaged("its counts are impossible");
  for (uint32_t i = 0; i < counts->outputs; ++i) {
    const auto output = ReadOutput(reader);
    if (!output) return Damaged("an output is incomplete");
    NEREID_RETURN_IF_ERROR(CheckOutput(*output, model));
  }
  for (uint32_t i = 0; i < counts->parameters; ++i) {
    if (!ReadParameter(reader)) return Damaged("a parameter is incomplete");
  }
  return reader.left().empty() ? base::OkStatus() : Damaged("bytes are left over");
}

Status UnpackResponse(std::span<const std::byte> packed, Response& response) {
  Reader reader(packed.subspan(kHeaderBytes));
  if (!reader.Text()) return Damaged("no key");
  const auto counts = ReadCounts(reader);
  if (!counts) return Damaged("its counts are impossible");
  for (uint32_t i = 0; i < counts->outputs; ++i) {
    const auto output = ReadOutput(reader);
    if (!output) return Damaged("an output is incomplete");
    NEREID_RETURN_IF_ERROR(AddOutput(*output, response));
  }
  for (uint32_t i = 0; i < counts->parameters; ++i) {
    const auto parameter = ReadParameter(reader);
    if (!parameter) return Damaged("a parameter is incomplete");
    response.AddParameter(*parameter);
  }
  return base::OkStatus();
}

}  // namespace nereid::cache_host
