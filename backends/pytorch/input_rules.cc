// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/input_rules.h"

#include <algorithm>
#include <array>

#include "pytorch_backend/source_text.h"
#include "pytorch_backend/symbols.h"

namespace nereid::pytorch {

using backend::StrCat;

namespace {

constexpr size_t kMaxInputs = 4096;
constexpr size_t kMaxRank = 64;

constexpr std::array<std::pair<std::string_view, TRITONSERVER_DataType>, 13> kTypes = {{
    {"bool", TRITONSERVER_TYPE_BOOL},
    {"uint8", TRITONSERVER_TYPE_UINT8},
    {"uint16", TRITONSERVER_TYPE_UINT16},
    {"uint32", TRITONSERVER_TYPE_UINT32},
    {"uint64", TRITONSERVER_TYPE_UINT64},
    {"int8", TRITONSERVER_TYPE_INT8},
    {"int16", TRITONSERVER_TYPE_INT16},
    {"int32", TRITONSERVER_TYPE_INT32},
    {"int64", TRITONSERVER_TYPE_INT64},
    {"float16", TRITONSERVER_TYPE_FP16},
    {"float32", TRITONSERVER_TYPE_FP32},
    {"float64", TRITONSERVER_TYPE_FP64},
    {"bfloat16", TRITONSERVER_TYPE_BF16},
}};

// Reads the source line by line. Confined to ReadInputRules.
class Reader {
 public:
  void ReadLine(std::string_view line) {
    if (const auto rest = After(line, "inputs_info_[")) {
      ReadName(*rest);
    } else if (const auto input = Between(line, "static void check_input_", "(")) {
      const std::optional<int64_t> number = Number(*input);
      current_ = number && *number >= 0 && static_cast<size_t>(*number) < inputs_.size()
                     ? &inputs_[static_cast<size_t>(*number)]
                     : nullptr;
    } else if (line.starts_with("void AOTInductorModel::run_impl")) {
      current_ = nullptr;
    } else if (line.starts_with("int64_t ")) {
      symbols_.ReadLine(line);
    } else if (current_ != nullptr) {
      ReadCheck(*current_, line);
    }
    if (line.find("assert_size_stride(") != line.npos) {
      ReadAssertion(line);
    }
    NoteWrites(line);
  }

  std::optional<std::vector<InputRule>> Take() {
    std::vector<InputRule> rules;
    for (Input& input : inputs_) {
      if (!Complete(input)) {
        return std::nullopt;
      }
      rules.push_back(std::move(input.rule));
    }
    return rules.empty() ? std::nullopt : std::optional(std::move(rules));
  }

 private:
  struct Input {
    std::string_view name;
    InputRule rule;
    size_t checked_rank = 0;
    // The sizes that the code expects before it reads the input.
    std::optional<std::vector<std::string_view>> sizes;
  };

  // `0].name = "arg3_1";`
  void ReadName(std::string_view rest) {
    const std::optional<int64_t> number = Number(rest.substr(0, rest.find(']')));
    const std::optional<std::string_view> name = Between(rest, ".name = \"", "\"");
    if (!number || !name || *number < 0 || static_cast<size_t>(*number) >= kMaxInputs) {
      return;
    }
    inputs_.resize(std::max(inputs_.size(), static_cast<size_t>(*number) + 1));
    inputs_[static_cast<size_t>(*number)].name = *name;
    current_ = nullptr;
  }

  Input* Find(std::string_view name) {
    const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const Input& input) { return input.name == name; });
    return found == inputs_.end() ? nullptr : &*found;
  }

  static DimRule* DimOf(Input& input, std::string_view number) {
    const std::optional<int64_t> at = Number(number);
    if (!at || *at < 0 || static_cast<size_t>(*at) >= kMaxRank) {
      return nullptr;
    }
    const auto dim = static_cast<size_t>(*at);
    input.checked_rank = std::max(input.checked_rank, dim + 1);
    input.rule.dims.resize(std::max(input.rule.dims.size(), dim + 1));
    return &input.rule.dims[dim];
  }

  // `if (4 != x_size[1]) {`, `if (x_size[0] > 64) {`, `if (1 != x_stride[1]) {`, and the type.
  static void ReadCheck(Input& input, std::string_view line) {
    if (const auto type = Between(line, "_expected_dtype = aoti_torch_dtype_", "()")) {
      for (const auto& [name, datatype] : kTypes) {
        input.rule.datatype = name == *type ? datatype : input.rule.datatype;
      }
      return;
    }
    const std::optional<std::string_view> condition = Between(line, "if (", ") {");
    if (!condition) {
      return;
    }
    const bool is_size = condition->find("_size[") != condition->npos;
    const std::optional<std::string_view> at =
        Between(*condition, is_size ? "_size[" : "_stride[", "]");
    DimRule* const dim = at ? DimOf(input, *at) : nullptr;
    if (dim == nullptr || !is_size) {
      return;
    }
    const auto number_behind = [&](std::string_view sign) {
      const size_t found = condition->find(sign);
      return found == condition->npos ? std::nullopt
                                      : Number(Trimmed(condition->substr(found + sign.size())));
    };
    if (const size_t unequal = condition->find(" != "); unequal != condition->npos) {
      dim->fixed = Number(condition->substr(0, unequal)).value_or(-1);
    } else if (const std::optional<int64_t> least = number_behind(" < ")) {
      dim->least = *least;
    } else if (const std::optional<int64_t> most = number_behind(" > ")) {
      dim->most = *most;
    }
  }

  // `assert_size_stride(x, {s77, 4L}, {4L, 1L}, "input")`
  void ReadAssertion(std::string_view line) {
    // In front of it is the condition under which it is executed, which has a brace, too.
    line.remove_prefix(line.find("assert_size_stride("));
    const std::optional<std::string_view> name = Between(line, "(", ",");
    const std::optional<std::string_view> sizes = Between(line, "{", "}");
    Input* const input = name && sizes ? Find(*name) : nullptr;
    if (input != nullptr && line.find("\"input\"") != line.npos) {
      input->sizes = Split(*sizes);
    }
  }

  // `(float*)(x.data_ptr())` as an argument of a kernel, and functions that write to their first
  // argument.
  void NoteWrites(std::string_view line) {
    if (line.find(".data_ptr()") == line.npos && line.find("_(") == line.npos &&
        line.find("_out(") == line.npos) {
      return;
    }
    for (Input& input : inputs_) {
      const std::string pointer = StrCat("*)(", input.name, ".data_ptr())");
      for (size_t at = line.find(pointer); at != line.npos; at = line.find(pointer, at + 1)) {
        const size_t open = line.rfind('(', at);
        const bool is_constant =
            open != line.npos && line.substr(open + 1, at - open).starts_with("const ");
        input.rule.is_written = input.rule.is_written || !is_constant;
      }
      for (const char* const call : {"_(", "_out("}) {
        input.rule.is_written = input.rule.is_written ||
                                line.find(StrCat(call, input.name, ",")) != line.npos ||
                                line.find(StrCat(call, input.name, ")")) != line.npos;
      }
    }
  }

  // Adds what the assertion says to what the check says. Returns whether all is known.
  bool Complete(Input& input) {
    InputRule& rule = input.rule;
    if (input.name.empty() || rule.datatype == TRITONSERVER_TYPE_INVALID) {
      return false;
    }
    if (!input.sizes) {
      // Nothing but the check, which does not say what variable dimensions have in common.
      return input.checked_rank > 0 &&
             std::all_of(rule.dims.begin(), rule.dims.end(),
                         [](const DimRule& dim) { return dim.fixed >= 0; });
    }
    if (input.sizes->size() < input.checked_rank) {
      return false;
    }
    rule.dims.resize(input.sizes->size());
    for (size_t d = 0; d < rule.dims.size(); ++d) {
      const std::string_view size = (*input.sizes)[d];
      if (const std::optional<int64_t> fixed = Number(size)) {
        rule.dims[d].fixed = *fixed;
        continue;
      }
      const std::optional<int> symbol = symbols_.NumberOf(size);
      if (!symbol) {
        return false;
      }
      rule.dims[d].symbol = *symbol;
    }
    return true;
  }

  std::vector<Input> inputs_;
  Input* current_ = nullptr;
  Symbols symbols_;
};

}  // namespace

std::optional<std::vector<InputRule>> ReadInputRules(std::string_view source) {
  Reader reader;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    reader.ReadLine(Trimmed(source.substr(0, end)));
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  return reader.Take();
}

}  // namespace nereid::pytorch
