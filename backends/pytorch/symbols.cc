// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/symbols.h"

#include "pytorch_backend/program.h"
#include "pytorch_backend/source_text.h"

namespace nereid::pytorch {

void Symbols::ReadLine(std::string_view line) {
  const std::optional<std::string_view> symbol = Between(line, "int64_t ", " = ");
  const std::optional<std::string_view> value = Between(line, " = ", ";");
  if (!symbol || !value || !IsName(*symbol)) {
    return;
  }
  if (IsName(*value)) {
    aliases_[*symbol] = *value;
  } else if (value->ends_with("]") && value->find("size") != value->npos) {
    sources_[*symbol] = *value;
  }
}

std::optional<int> Symbols::NumberOf(std::string_view name) {
  for (int step = 0; step < 8 && aliases_.count(name) > 0; ++step) {
    name = aliases_[name];
  }
  // A symbol that is calculated from others is not a dimension of an input by itself.
  if (sources_.count(name) == 0) {
    return std::nullopt;
  }
  const auto [entry, is_new] = numbers_.try_emplace(name, static_cast<int>(numbers_.size()));
  return entry->second < kMaxSymbols ? std::optional(entry->second) : std::nullopt;
}

}  // namespace nereid::pytorch
