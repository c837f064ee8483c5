// SPDX-License-Identifier: Apache-2.0
#include "config/text_diagnosis.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "base/nearest_name.h"
#include "config/text_check.h"
#include "model_config.pb.h"

namespace nereid::config {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::Tokenizer;

constexpr size_t kMaxFaults = 100;
constexpr int kMaxMessageNesting = 100;
// Far more than any real configuration has.
constexpr size_t kMaxPlaces = 100'000;
constexpr std::string_view kSyntax = "syntax";

// Returns "a field of ModelInput, perhaps 'dims'", or the list of all fields if none is similar.
std::string ExpectedField(const Descriptor* message, std::string_view found) {
  std::vector<std::string_view> names;
  for (int i = 0; i < message->field_count(); ++i) names.push_back(message->field(i)->name());
  const std::string_view nearest = base::NearestName(found, names);
  if (!nearest.empty()) return fmt::format("a field of {}, perhaps '{}'", message->name(), nearest);
  return fmt::format("a field of {}: {}", message->name(), fmt::join(names, ", "));
}

// Whether `found` is `name` without the common prefix of its enumeration, such as TYPE_FP32 without
// TYPE_.
bool IsEnding(std::string_view name, std::string_view found) {
  return name.size() > found.size() + 1 && name[name.size() - found.size() - 1] == '_' &&
         std::equal(found.rbegin(), found.rend(), name.rbegin(),
                    [](unsigned char a, char b) { return std::toupper(a) == b; });
}

// Translates the names of data types in clients, NumPy and frameworks.
std::string_view DataTypeOf(std::string_view found) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kNames = {
      {{"FLOAT", "TYPE_FP32"},
       {"FLOAT16", "TYPE_FP16"},
       {"HALF", "TYPE_FP16"},
       {"FLOAT32", "TYPE_FP32"},
       {"FLOAT64", "TYPE_FP64"},
       {"DOUBLE", "TYPE_FP64"},
       {"BFLOAT16", "TYPE_BF16"},
       {"LONG", "TYPE_INT64"},
       {"INT", "TYPE_INT32"},
       {"BYTES", "TYPE_STRING"}}};
  constexpr std::string_view kPrefix = "TYPE_";
  std::string upper(found.substr(found.starts_with(kPrefix) ? kPrefix.size() : 0));
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const auto& [name, type] : kNames) {
    if (name == upper) return type;
  }
  return {};
}

std::string ExpectedEnumerator(const EnumDescriptor* type, std::string_view found) {
  std::vector<std::string_view> names;
  std::string list;
  std::string_view meant;
  for (int i = 0; i < type->value_count(); ++i) {
    const std::string& name = type->value(i)->name();
    if (name.ends_with("_INVALID")) continue;
    names.push_back(name);
    if (IsEnding(name, found)) meant = name;
    list += (list.empty() ? "" : ", ") + name;
  }
  if (meant.empty() && type->name() == "DataType") meant = DataTypeOf(found);
  if (meant.empty()) meant = base::NearestName(found, names);
  if (!meant.empty()) return fmt::format("one of {}, perhaps '{}'", list, meant);
  return "one of " + list;
}

// Reads a text along the message's description and collects its faults.
class Diagnosis final : public google::protobuf::io::ErrorCollector {
 public:
  explicit Diagnosis(std::string_view text)
      : stream_(text.data(), static_cast<int>(text.size())), tokens_(&stream_, this) {
    tokens_.set_allow_f_after_float(true);
    tokens_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    tokens_.set_require_space_after_number(false);
    tokens_.set_allow_multiline_strings(true);
    tokens_.Next();
  }

  std::vector<TextFault> Run() {
    Message(inference::ModelConfig::descriptor(), "", "", 0);
    return std::move(faults_);
  }

  std::map<std::string, TextPlace, std::less<>> Places() && {
    Message(inference::ModelConfig::descriptor(), "", "", 0);
    return std::move(places_);
  }

  // The tokenizer calls this for characters and literals that are not tokens.
  void AddError(int line, int column, const std::string& message) override {
    if (full()) return;
    faults_.push_back(
        {line + 1, column + 1, "", "unreadable text", "a valid token: " + message, kSyntax});
  }
  void AddWarning(int, int, const std::string&) override {}

 private:
  // The fields that one message instance has so far, to find repeated and conflicting ones.
  struct Seen {
    std::map<const FieldDescriptor*, int> counts;
    std::map<const OneofDescriptor*, const FieldDescriptor*> choices;
  };

  const Tokenizer::Token& token() { return tokens_.current(); }
  bool At(std::string_view text) { return token().text == text; }
  bool AtEnd() { return token().type == Tokenizer::TYPE_END; }
  bool full() const { return faults_.size() >= kMaxFaults; }
  bool Take(std::string_view text) {
    if (!At(text)) return false;
    tokens_.Next();
    return true;
  }

  std::string Found() {
    if (AtEnd()) return "the end of the file";
    constexpr size_t kShown = 60;
    return token().text.size() <= kShown ? token().text : token().text.substr(0, kShown) + "...";
  }

  void Fault(std::string field, std::string expected, std::string_view kind = kSyntax) {
    if (full()) return;
    faults_.push_back({token().line + 1, token().column + 1, std::move(field), Found(),
                       std::move(expected), kind});
  }

  // Remembers that the field or message `path` begins at the current token.
  void Note(const std::string& path) {
    if (places_.size() >= kMaxPlaces) return;
    places_.try_emplace(path, TextPlace{.line = token().line + 1, .column = token().column + 1});
  }

  // Remembers that the current token begins the scalar `path`, whose place says more than that of
  // the field's name in front of it.
  void NoteScalar(const std::string& path) {
    places_.erase(path);
    Note(path);
    SetValue(path, token().text);
  }

  void SetValue(const std::string& path, const std::string& text) {
    const auto place = places_.find(path);
    if (place == places_.end()) return;
    place->second.is_scalar = true;
    place->second.value = text;
    if (token().type != Tokenizer::TYPE_STRING) return;
    place->second.value.clear();
    Tokenizer::ParseStringAppend(text, &place->second.value);
  }

  // Lets the entry of a map, "parameters[0].value", be found by its key: "parameters['KEY']".
  void NameEntry(const FieldDescriptor* map, const std::string& path) {
    const auto key = places_.find(path + ".key");
    if (key == places_.end()) return;
    const bool is_text =
        map->message_type()->FindFieldByName("key")->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    const std::string list = path.substr(0, path.rfind('['));
    const std::string& value_of_key = key->second.value;
    const std::string name = is_text ? fmt::format("{}['{}']", list, value_of_key)
                                     : fmt::format("{}[{}]", list, value_of_key);
    const std::string value = path + ".value";
    // The entry itself is where its key is, and what is in its value where that is.
    std::map<std::string, TextPlace> named = {{name, key->second}};
    const auto scalar = places_.find(value);
    named[name].is_scalar = scalar != places_.end() && scalar->second.is_scalar;
    named[name].value = named[name].is_scalar ? scalar->second.value : "";
    for (auto it = places_.upper_bound(value); it != places_.end() && it->first.starts_with(value);
         ++it) {
      named.insert_or_assign(name + it->first.substr(value.size()), it->second);
    }
    if (places_.size() < kMaxPlaces) places_.merge(named);
  }

  // Skips one value of unknown kind: a bracketed group as a whole, or one token. A closing bracket
  // of an enclosing group is not consumed.
  void SkipValue() {
    Take("-");
    if (token().type == Tokenizer::TYPE_STRING) {
      while (token().type == Tokenizer::TYPE_STRING) tokens_.Next();
      return;
    }
    int depth = 0;
    do {
      if (AtEnd()) return;
      if (At("{") || At("[") || At("<")) {
        ++depth;
      } else if (At("}") || At("]") || At(">")) {
        if (depth == 0) return;
        --depth;
      }
      tokens_.Next();
    } while (depth > 0);
  }

  void Message(const Descriptor* type, const std::string& path, std::string_view end, int depth) {
    Seen seen;
    bool reported = false;  // a run of tokens that make no field is reported once
    while (!full()) {
      if (AtEnd()) {
        if (!end.empty()) Fault(path, fmt::format("'{}' closing {}", end, path));
        return;
      }
      if (!end.empty() && Take(end)) return;
      if (token().type == Tokenizer::TYPE_IDENTIFIER) {
        reported = false;
        Field(type, path, seen, depth);
        if (!Take(";")) Take(",");
        continue;
      }
      if (!reported) {
        const bool is_json = At("{") && path.empty() && faults_.empty();
        Fault(path,
              is_json ? "a field name: this file has protobuf's text format, not JSON"
                      : "a field name",
              is_json ? "config-is-json" : kSyntax);
      }
      reported = true;
      // A closing bracket of another kind would otherwise never be consumed.
      if (At("}") || At("]") || At(">")) {
        tokens_.Next();
      } else {
        SkipValue();
      }
    }
  }

  void Field(const Descriptor* type, const std::string& path, Seen& seen, int depth) {
    const FieldDescriptor* field = type->FindFieldByName(token().text);
    if (field == nullptr) {
      Fault(path, ExpectedField(type, token().text), "field-unknown");
      tokens_.Next();
      Take(":");
      SkipValue();
      return;
    }
    std::string name = path.empty() ? field->name() : path + "." + field->name();
    CheckSeen(field, name, seen);
    Note(name);
    tokens_.Next();
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!Take(":") && !is_message) {
      Fault(name, "':'");
      if (!At("{") && !At("[") && !At("<")) return;
    }
    int& count = seen.counts[field];
    if (field->is_repeated() && Take("[")) {
      List(field, name, count, depth);
    } else {
      Value(field, field->is_repeated() ? fmt::format("{}[{}]", name, count) : name, depth);
      ++count;
    }
  }

  void CheckSeen(const FieldDescriptor* field, const std::string& name, Seen& seen) {
    if (field->is_repeated()) return;
    if (seen.counts.count(field) != 0) {
      Fault(name, "this field only once", "field-repeated");
      return;
    }
    if (const OneofDescriptor* choice = field->containing_oneof()) {
      const auto [it, first] = seen.choices.try_emplace(choice, field);
      if (!first) {
        Fault(name, fmt::format("only one of '{}' and '{}'", it->second->name(), field->name()),
              "fields-exclusive");
      }
    }
  }

  void List(const FieldDescriptor* field, const std::string& name, int& count, int depth) {
    if (Take("]")) return;
    while (!full()) {
      Value(field, fmt::format("{}[{}]", name, count), depth);
      ++count;
      if (Take("]")) return;
      if (Take(",")) continue;
      Fault(name, "',' or ']'");
      // Resume at the end of the list, unless the file ends or the list is never closed. In the
      // latter case the bracket of an enclosing group comes first, which SkipValue does not
      // consume.
      while (!AtEnd() && !At("]") && !At("}") && !At(">")) SkipValue();
      Take("]");
      return;
    }
  }

  void Value(const FieldDescriptor* field, const std::string& name, int depth) {
    const bool is_scalar = field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
    if (is_scalar) {
      NoteScalar(name);
      Scalar(field, name);
      return;
    }
    Note(name);
    if (depth >= kMaxMessageNesting) {
      Fault(name, fmt::format("at most {} levels of nesting", kMaxMessageNesting));
      SkipValue();
      return;
    }
    if (Take("{")) {
      Message(field->message_type(), name, "}", depth + 1);
      if (field->is_map()) NameEntry(field, name);
    } else if (Take("<")) {
      Message(field->message_type(), name, ">", depth + 1);
      if (field->is_map()) NameEntry(field, name);
    } else {
      Fault(name, "'{'");
      if (token().type != Tokenizer::TYPE_IDENTIFIER) SkipValue();
    }
  }

  void Scalar(const FieldDescriptor* field, const std::string& name) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return Integer(name, std::numeric_limits<int32_t>::max(), true, "a 32-bit integer");
      case FieldDescriptor::CPPTYPE_INT64:
        return Integer(name, std::numeric_limits<int64_t>::max(), true, "a 64-bit integer");
      case FieldDescriptor::CPPTYPE_UINT32:
        return Integer(name, std::numeric_limits<uint32_t>::max(), false, "a 32-bit integer >= 0");
      case FieldDescriptor::CPPTYPE_UINT64:
        return Integer(name, std::numeric_limits<uint64_t>::max(), false, "a 64-bit integer >= 0");
      case FieldDescriptor::CPPTYPE_FLOAT:
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Number(name);
      case FieldDescriptor::CPPTYPE_BOOL:
        return Boolean(name);
      case FieldDescriptor::CPPTYPE_ENUM:
        return Enumerator(field->enum_type(), name);
      case FieldDescriptor::CPPTYPE_STRING:
        return String(name);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return;
    }
  }

  void Reject(const std::string& name, std::string expected, std::string_view kind = "value-type") {
    Fault(name, std::move(expected), kind);
    SkipValue();
  }

  void Integer(const std::string& name, uint64_t max, bool is_signed, const char* expected) {
    if (At("-")) {
      if (!is_signed) {
        Fault(name, expected, "value-type");
        tokens_.Next();
        SkipValue();
        return;
      }
      tokens_.Next();
      SetValue(name, "-" + token().text);
      ++max;
    }
    uint64_t value = 0;
    if (token().type != Tokenizer::TYPE_INTEGER ||
        !Tokenizer::ParseInteger(token().text, max, &value)) {
      return Reject(name, expected);
    }
    tokens_.Next();
  }

  void Number(const std::string& name) {
    if (Take("-")) SetValue(name, "-" + token().text);
    const bool is_number =
        token().type == Tokenizer::TYPE_INTEGER || token().type == Tokenizer::TYPE_FLOAT;
    std::string word = token().text;
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (!is_number && word != "inf" && word != "infinity" && word != "nan") {
      return Reject(name, "a number");
    }
    tokens_.Next();
  }

  void Boolean(const std::string& name) {
    constexpr std::array<std::string_view, 8> kWords = {"true",  "True",  "t", "1",
                                                        "false", "False", "f", "0"};
    if (std::find(kWords.begin(), kWords.end(), token().text) == kWords.end()) {
      return Reject(name, "true or false");
    }
    tokens_.Next();
  }

  void Enumerator(const EnumDescriptor* type, const std::string& name) {
    if (token().type == Tokenizer::TYPE_IDENTIFIER) {
      if (type->FindValueByName(token().text) == nullptr) {
        return Reject(name, ExpectedEnumerator(type, token().text), "value-unknown");
      }
      tokens_.Next();
      return;
    }
    if (token().type == Tokenizer::TYPE_INTEGER || At("-")) {
      return Integer(name, std::numeric_limits<int32_t>::max(), true,
                     ExpectedEnumerator(type, "").c_str());
    }
    // A quoted name may be a valid enumerator.
    std::string_view text = token().text;
    if (token().type == Tokenizer::TYPE_STRING && text.size() >= 2) {
      text = text.substr(1, text.size() - 2);
    }
    Reject(name,
           ExpectedEnumerator(type, text) +
               (type->FindValueByName(std::string(text)) != nullptr ? " without quotes" : ""),
           "value-unknown");
  }

  void String(const std::string& name) {
    if (token().type != Tokenizer::TYPE_STRING) return Reject(name, "a string in quotes");
    const int line = token().line + 1;
    const int column = token().column + 1;
    std::string value;
    for (; token().type == Tokenizer::TYPE_STRING; tokens_.Next()) {
      Tokenizer::ParseStringAppend(token().text, &value);
    }
    if (IsUtf8(value) || full()) return;
    faults_.push_back(
        {line, column, name, "bytes that are not UTF-8", "UTF-8 text", "text-encoding"});
  }

  ArrayInputStream stream_;
  Tokenizer tokens_;
  std::vector<TextFault> faults_;
  std::map<std::string, TextPlace, std::less<>> places_;
};

}  // namespace

std::vector<TextFault> DiagnoseModelConfigText(std::string_view text) {
  return Diagnosis(text).Run();
}

TextPlaces TextPlaces::Read(std::string_view text) {
  TextPlaces places;
  places.places_ = Diagnosis(text).Places();
  return places;
}

const TextPlace* TextPlaces::Find(std::string_view field, std::string_view found) const {
  if (found.size() >= 2 && found.front() == '\'' && found.back() == '\'') {
    found = found.substr(1, found.size() - 2);
  }
  while (!field.empty()) {
    if (!found.empty()) {
      for (size_t i = 0;; ++i) {
        const auto element = places_.find(fmt::format("{}[{}]", field, i));
        if (element == places_.end()) break;
        if (element->second.value == found) return &element->second;
      }
      found = {};
    }
    const auto place = places_.find(field);
    if (place != places_.end()) return &place->second;
    // Drops the last member, index or key.
    size_t end = field.find_last_of(".[");
    if (field.back() == ']') end = field.rfind('[');
    if (end == std::string_view::npos) return nullptr;
    field = field.substr(0, end);
  }
  return nullptr;
}

}  // namespace nereid::config
