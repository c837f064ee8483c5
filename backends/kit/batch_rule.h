// SPDX-License-Identifier: Apache-2.0
// Decides from a model's description of its tensors whether their first dimension can be a batch:
// all first dimensions are variable and have the same name, and that name does not mean anything
// else. If the names do not decide, batch_probe.h runs the model.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/batch_verdict.h"

namespace nereid::backend {

namespace batch_rule {

inline bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
inline bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline char Lower(char c) { return IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return Lower(c); });
  return lower;
}

// Returns the words of a name in lower case: three for each of "maxSeqLen", "max_seq_len" and
// "Max-Seq-Len".
inline std::vector<std::string> WordsOf(std::string_view symbol) {
  std::vector<std::string> words;
  char before = '\0';
  for (const char c : symbol) {
    const bool is_letter = IsUpper(c) || IsLower(c);
    const bool begins = !(IsUpper(before) || IsLower(before)) || (IsUpper(c) && IsLower(before));
    if (is_letter && begins) {
      words.emplace_back();
    }
    if (is_letter) {
      words.back() += Lower(c);
    }
    before = c;
  }
  return words;
}

// Whether `text` is `prefix`, alone or followed by digits: "x" or "x12" for the prefix "x".
inline bool IsNumbered(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(prefix.size()), text.end(),
                     IsDigit);
}

}  // namespace batch_rule

// Whether a converter generated the name for one dimension of one tensor, so that it has no meaning
// and even differs for equal dimensions: "unk__12" (TensorFlow), "y_dim_0" (PyTorch's outputs),
// "p2o.DynamicDimension.3" (Paddle), "Resize_o0__d2" (ONNX Runtime).
inline bool IsGeneratedSymbol(std::string_view symbol) {
  const size_t digits =
      symbol.size() -
      static_cast<size_t>(std::find_if_not(symbol.rbegin(), symbol.rend(), batch_rule::IsDigit) -
                          symbol.rbegin());
  const std::string_view stem = symbol.substr(0, digits);
  return symbol.empty() || symbol == "?" || symbol == "None" || symbol == "-1" ||
         batch_rule::IsNumbered(symbol, "unk_") || batch_rule::IsNumbered(symbol, "unk__") ||
         (stem.size() < symbol.size() && (stem.ends_with("_dim_") || stem.ends_with("__d") ||
                                          stem.ends_with("DynamicDimension.")));
}

// Whether two names differ only in a number, such as "var_0" and "var_1". Numbers per tensor do not
// mean that the dimensions are different, except after a single letter ("s0" and "s1" of PyTorch).
inline bool DifferByNumberOnly(std::string_view left, std::string_view right) {
  const auto stem = [](std::string_view symbol) {
    while (!symbol.empty() && batch_rule::IsDigit(symbol.back())) {
      symbol.remove_suffix(1);
    }
    return symbol;
  };
  return stem(left) == stem(right) && stem(left).size() > 1 && stem(left) != left &&
         stem(right) != right;
}

// Whether a name means a batch.
inline bool IsBatchSymbol(std::string_view symbol) {
  for (const std::string& word : batch_rule::WordsOf(symbol)) {
    if (word.starts_with("batch") || word == "bs" || word == "bsz" || word == "nbatch") {
      return true;
    }
  }
  return false;
}

// Whether a name means something other than a batch: time, a position in a text or picture, or a
// part of one item.
inline bool IsNameOfSomethingElse(std::string_view symbol) {
  static constexpr std::array kBeginnings = {
      "seq",   "time",   "step", "token", "frame",  "len",   "word",  "char",
      "posi",  "node",   "edge", "point", "vert",   "box",   "roi",   "anchor",
      "patch", "pixel",  "feat", "chan",  "height", "width", "class", "vocab",
      "embed", "hidden", "head", "layer", "past",   "audio", "depth"};
  static constexpr std::array kAlone = {"t", "l", "s", "h", "w"};
  if (IsBatchSymbol(symbol)) {
    return false;
  }
  const std::string whole = batch_rule::Lower(symbol);
  if (std::find(kAlone.begin(), kAlone.end(), whole) != kAlone.end()) {
    return true;
  }
  for (const std::string& word : batch_rule::WordsOf(symbol)) {
    if (word.ends_with("len") || word.ends_with("length") ||
        std::any_of(kBeginnings.begin(), kBeginnings.end(),
                    [&word](std::string_view beginning) { return word.starts_with(beginning); })) {
      return true;
    }
  }
  return false;
}

namespace batch_rule {

inline std::optional<BatchVerdict> RefuseFixed(std::span<const ModelTensor> tensors) {
  for (const ModelTensor& tensor : tensors) {
    if (tensor.dims.empty()) {
      return BatchVerdict::No(kFixedDimension, StrCat(tensor.Describe(), " has no dimensions"));
    }
    if (tensor.dims[0] != -1) {
      return BatchVerdict::No(kFixedDimension, StrCat("the first dimension of ", tensor.Describe(),
                                                      " is ", tensor.dims[0]));
    }
  }
  return std::nullopt;
}

// Refuses if a batch dimension appears elsewhere. `symbol` is the name of the first dimensions, or
// empty if they have no meaningful one.
inline std::optional<BatchVerdict> RefuseElsewhere(std::span<const ModelTensor> tensors,
                                                   std::string_view symbol) {
  for (const ModelTensor& tensor : tensors) {
    for (size_t d = 1; d < tensor.dims.size(); ++d) {
      const std::string_view other = tensor.symbol(d);
      if (!symbol.empty() && other == symbol) {
        return BatchVerdict::No("symbol_elsewhere",
                                StrCat("dimension ", d, " of ", tensor.Describe(), " is '", symbol,
                                       "', as the first ones are"));
      }
      if (IsBatchSymbol(other) && !IsBatchSymbol(symbol)) {
        return BatchVerdict::No(
            "batch_elsewhere",
            StrCat("dimension ", d, " of ", tensor.Describe(), " is called '", other, "'"));
      }
    }
  }
  return std::nullopt;
}

}  // namespace batch_rule

// Returns why the first dimension cannot be a batch according to the model's description of its
// tensors, or nothing if it can.
inline std::optional<BatchVerdict> RefuseByDescription(std::span<const ModelTensor> tensors) {
  if (auto refusal = batch_rule::RefuseFixed(tensors)) {
    return refusal;
  }
  const ModelTensor* named = nullptr;
  for (const ModelTensor& tensor : tensors) {
    const std::string_view symbol = tensor.symbol(0);
    if (IsGeneratedSymbol(symbol)) {
      continue;
    }
    if (IsNameOfSomethingElse(symbol)) {
      return BatchVerdict::No("symbol_name", StrCat("the first dimension of ", tensor.Describe(),
                                                    " is called '", symbol, "'"));
    }
    if (named != nullptr && named->symbol(0) != symbol &&
        !DifferByNumberOnly(named->symbol(0), symbol)) {
      return BatchVerdict::No(
          "symbols_differ",
          StrCat("the first dimension of ", named->Describe(), " is called '", named->symbol(0),
                 "', that of ", tensor.Describe(), " '", symbol, "'"));
    }
    named = &tensor;
  }
  return batch_rule::RefuseElsewhere(tensors,
                                     named == nullptr ? std::string_view() : named->symbol(0));
}

}  // namespace nereid::backend
