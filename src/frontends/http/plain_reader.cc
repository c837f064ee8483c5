// SPDX-License-Identifier: Apache-2.0
// Whatever is taken here must mean the same to the other readers (infer_request_test and the fuzzer
// compare them): no escapes, only visible ASCII, each member once, no member that is not known.
#include "http/plain_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

namespace nereid::http {
namespace {

// More tensors than this are not searched one by one for a name.
constexpr size_t kMostTensors = 16;

// A position in the text. Every method that cannot go on answers false or nothing; the text then is
// for somebody else.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool IsAtEnd() {
    SkipSpace();
    return at_ == end_;
  }

  // Takes `c`, and space before it.
  bool Take(char c) {
    if (at_ != end_ && *at_ == c) [[likely]] {
      ++at_;
      return true;
    }
    SkipSpace();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  std::optional<std::string_view> Text() {
    if (!Take('"')) return std::nullopt;
    const char* const begin = at_;
    for (; at_ != end_; ++at_) {
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') return std::string_view(begin, static_cast<size_t>(at_++ - begin));
      if (c < ' ' || c > '~' || c == '\\') return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<uint64_t> Number() {
    SkipSpace();
    const char* const begin = at_;
    uint64_t number = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') {
      number = number * 10 + static_cast<uint64_t>(*at_++ - '0');
    }
    const ptrdiff_t digits = at_ - begin;
    if (digits == 0 || digits > 18 || (digits > 1 && *begin == '0')) return std::nullopt;
    // What else may follow makes it another number, or none.
    if (at_ == end_ || (*at_ != ',' && *at_ != ']' && *at_ != '}' && *at_ != ' ')) {
      return std::nullopt;
    }
    return number;
  }

  std::optional<bool> Flag() {
    SkipSpace();
    const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
    const bool flag = rest.starts_with("true");
    if (!flag && !rest.starts_with("false")) return std::nullopt;
    at_ += flag ? 4 : 5;
    return flag;  // what must follow is looked for by who asked
  }

  // Takes a key with its quotes and its colon, if it is that one.
  template <size_t size>
  bool TakeKey(const char (&quoted)[size]) {
    constexpr size_t kLength = size - 1;
    if (static_cast<size_t>(end_ - at_) < kLength) return false;
    if (std::memcmp(at_, quoted, kLength) != 0) return false;
    at_ += kLength;
    return true;
  }

  // Calls `member()`, which takes key and value, for each member of an object.
  template <typename Member>
  bool Object(const Member& member) {
    if (!Take('{')) return false;
    if (Take('}')) return true;
    do {
      SkipSpace();
      if (!member()) return false;
    } while (Take(','));
    return Take('}');
  }

  // Calls `element()`, which takes it, for each element of an array.
  template <typename Element>
  bool Array(const Element& element) {
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      if (!element()) return false;
    } while (Take(','));
    return Take(']');
  }

 private:
  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  const char* at_;
  const char* const end_;
};

// Marks `bit` in `seen`; false when it was there already.
bool SeeOnce(unsigned& seen, unsigned bit) {
  if ((seen & bit) != 0) return false;
  seen |= bit;
  return true;
}

class PlainReader {
 public:
  PlainReader(std::string_view json, std::string_view binary, core::Request& request,
              AnswerOptions& answer)
      : cursor_(json), binary_(binary), request_(request), answer_(answer) {}

  bool Read() {
    unsigned seen = 0;
    const bool taken = cursor_.Object([&] {
      if (cursor_.TakeKey("\"inputs\":")) {
        return SeeOnce(seen, 1) && cursor_.Array([this] { return ReadInput(); });
      }
      if (cursor_.TakeKey("\"outputs\":")) {
        return SeeOnce(seen, 2) && cursor_.Array([this] { return ReadOutput(); });
      }
      if (cursor_.TakeKey("\"parameters\":")) return SeeOnce(seen, 4) && ReadParameters();
      return cursor_.TakeKey("\"id\":") && SeeOnce(seen, 8) && ReadId();
    });
    return taken && (seen & 1) != 0 && binary_.empty() && cursor_.IsAtEnd();
  }

 private:
  bool ReadId() {
    const auto text = cursor_.Text();
    if (!text) return false;
    request_.id = request_.arena().Copy(*text);
    return true;
  }

  bool ReadParameters() {
    unsigned seen = 0;
    return cursor_.Object([&] {
      if (cursor_.TakeKey("\"binary_data_output\":")) {
        const auto flag = cursor_.Flag();
        answer_.is_binary_by_default = flag.value_or(false);
        return SeeOnce(seen, 1) && flag.has_value();
      }
      if (cursor_.TakeKey("\"sequence_id\":")) {
        const auto id = cursor_.Number();
        request_.correlation_id = id.value_or(0);
        return SeeOnce(seen, 2) && id.has_value();
      }
      const bool is_start = cursor_.TakeKey("\"sequence_start\":");
      if (!is_start && !cursor_.TakeKey("\"sequence_end\":")) return false;
      const auto flag = cursor_.Flag();
      if (flag.value_or(false)) {
        request_.flags |= is_start ? core::kSequenceStart : core::kSequenceEnd;
      }
      return SeeOnce(seen, is_start ? 4 : 8) && flag.has_value();
    });
  }

  bool ReadInput() {
    enum Member : unsigned { kName = 1, kType = 2, kShape = 4, kParameters = 8, kSize = 16 };
    constexpr unsigned kAll = kName | kType | kShape | kParameters | kSize;
    unsigned seen = 0;
    std::string_view name;
    tensor::DataType type = tensor::DataType::kInvalid;
    tensor::Shape shape;
    uint64_t size = 0;
    const auto read_size = [&] {
      if (!cursor_.TakeKey("\"binary_data_size\":")) return false;
      const auto number = cursor_.Number();
      size = number.value_or(0);
      return SeeOnce(seen, kSize) && number.has_value();
    };
    const bool taken = cursor_.Object([&] {
      if (cursor_.TakeKey("\"name\":")) {
        const auto text = cursor_.Text();
        name = text.value_or("");
        return SeeOnce(seen, kName) && text.has_value();
      }
      if (cursor_.TakeKey("\"shape\":")) {
        return SeeOnce(seen, kShape) && cursor_.Array([&] {
          const auto dim = cursor_.Number();
          if (dim) shape.PushBack(static_cast<int64_t>(*dim));
          return dim.has_value();
        });
      }
      if (cursor_.TakeKey("\"datatype\":")) {
        const auto text = cursor_.Text();
        const auto known = text ? tensor::FromProtocolName(*text) : std::nullopt;
        type = known.value_or(tensor::DataType::kInvalid);
        return SeeOnce(seen, kType) && known.has_value();
      }
      return cursor_.TakeKey("\"parameters\":") && SeeOnce(seen, kParameters) &&
             cursor_.Object(read_size);
    });
    if (!taken || seen != kAll || size > binary_.size()) return false;
    if (request_.inputs.size() >= kMostTensors || request_.FindInput(name) != nullptr) return false;
    core::RequestInput& input = request_.AddInput(name, type);
    input.shape = std::move(shape);
    if (size > 0) {
      input.Append(
          {reinterpret_cast<const std::byte*>(binary_.data()), static_cast<size_t>(size), {}});
    }
    binary_.remove_prefix(static_cast<size_t>(size));
    return true;
  }

  bool ReadOutput() {
    unsigned seen = 0;
    std::string_view name;
    OutputOptions options;
    const auto read_parameter = [&] {
      if (!cursor_.TakeKey("\"binary_data\":")) return false;
      const auto flag = cursor_.Flag();
      options.is_binary = flag.value_or(false);
      return SeeOnce(seen, 4) && flag.has_value();
    };
    const bool taken = cursor_.Object([&] {
      if (cursor_.TakeKey("\"parameters\":")) {
        return SeeOnce(seen, 2) && cursor_.Object(read_parameter);
      }
      if (!cursor_.TakeKey("\"name\":")) return false;
      const auto text = cursor_.Text();
      name = text.value_or("");
      return SeeOnce(seen, 1) && text.has_value();
    });
    if (!taken || (seen & 1) == 0 || request_.outputs.size() >= kMostTensors ||
        std::ranges::find(request_.outputs, name, &core::RequestedOutput::name) !=
            request_.outputs.end()) {
      return false;
    }
    core::RequestedOutput& output = request_.outputs.emplace_back();
    // Read again when the answer is written, after the body is gone.
    output.name = request_.arena().Copy(name);
    output.tag = static_cast<uint32_t>(answer_.outputs.size());
    answer_.outputs.push_back(options);
    return true;
  }

  Cursor cursor_;
  std::string_view binary_;  // what no input has taken yet
  core::Request& request_;
  AnswerOptions& answer_;
};

}  // namespace

bool ReadPlainHead(std::string_view json, std::string_view binary, core::Request& request,
                   AnswerOptions& answer) {
  return PlainReader(json, binary, request, answer).Read();
}

}  // namespace nereid::http
