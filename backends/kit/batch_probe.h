// SPDX-License-Identifier: Apache-2.0
// Determines whether a model gives the same results for rows that run together as for rows that run
// alone, by running it on generated rows. A backend uses this for models whose configuration does
// not say whether they may be batched. This header is independent of frameworks; a RowRunner runs
// the model.
//
//   BatchVerdict verdict = ProbeBatching(inputs, {.max_rows = 4}, runner);
//
// First each row is run alone, one of them twice. Then rows are run together: in different numbers,
// in another order, one of them twice, beside a row of huge values and one of zeros. Each row must
// give the same result as alone, and the number of rows must stay the same. This is repeated with
// two sizes of the other variable dimensions, or twice if there are none. A model that cannot be
// run is not batched.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend_kit/batch_rule.h"
#include "backend_kit/row_compare.h"
#include "backend_kit/row_samples.h"

namespace nereid::backend {

// Runs a model. Not thread-safe.
class RowRunner {
 public:
  virtual ~RowRunner() = default;
  // Runs the model once and returns all its outputs, in the same order each time.
  virtual Result<std::vector<HostTensor>> Run(std::span<const HostTensor> inputs) = 0;
  // Returns why no more runs are allowed (time, memory), or nothing. A run that fails for this
  // reason does not count as a failure of the model.
  virtual std::optional<BatchVerdict> Exhausted() const = 0;
};

// Limits of a probe.
struct ProbeOptions {
  // The largest batch. At most kMaxProbeRows rows are run together, and at least kMinProbeRows even
  // if the largest batch is one: whether a dimension is a batch also decides how long it may be.
  int64_t max_rows = 4;
  // The limit of the input bytes of one row; larger sizes are not tried.
  uint64_t max_row_bytes = uint64_t{16} << 20;
};

inline constexpr int64_t kMinProbeRows = 4;
inline constexpr int64_t kMaxProbeRows = 8;

namespace batch_probe {

// Sizes of the variable dimensions except the first. The probe uses the first ones that the model
// can run with. The second number is for pictures, in sizes that vision networks expect, and no
// size equals a number of rows.
inline constexpr std::array<std::array<int64_t, 2>, 8> kSizes = {
    {{8, 32}, {16, 64}, {32, 48}, {64, 96}, {128, 224}, {512, 256}, {1024, 320}, {4096, 640}}};

inline constexpr std::array<SampleStyle, 3> kStyles = {
    {{.min = 1, .max = 9}, {.min = 0, .max = 1}, {.min = 0, .max = 1, .is_unit = true}}};

using Outputs = std::vector<HostTensor>;
using Group = std::vector<RowKind>;

// A row is identified by its kind; the rows of a group are run together.
inline std::vector<Group> FullGroups() {
  using enum RowKind;
  return {{kPlain, kWide, kNarrow},
          {kNarrow, kPlain},
          {kWide, kHuge, kPlain, kPlain, kZero, kNarrow, kPlain, kWide}};
}
inline std::vector<Group> BriefGroups() {
  using enum RowKind;
  return {{kWide, kPlain}, {kPlain, kZero, kWide}};
}

// Rows of one shape and style, and the model's results for each alone. Everything that it refers to
// outlives it.
class Trial {
 public:
  Trial(std::span<const ModelTensor> inputs, const ProbeOptions& options, RowRunner& runner,
        std::array<int64_t, 2> size, SampleStyle style, uint64_t seed)
      : inputs_(inputs),
        options_(options),
        runner_(runner),
        size_(size),
        style_(style),
        seed_(seed) {}

  // Whether a row of this size is small enough.
  bool Fits() const {
    uint64_t bytes = 0;
    for (const ModelTensor& input : inputs_) {
      auto size = TensorByteSize(
          input.type == TRITONSERVER_TYPE_BYTES ? TRITONSERVER_TYPE_FP64 : input.type,
          ShapeOf(input, 1));
      if (!size.ok() || size.value() > options_.max_row_bytes - bytes) {
        return false;
      }
      bytes += size.value();
    }
    return true;
  }

  // Runs a row alone, which must succeed before it can be part of a group.
  Error RunAlone(RowKind kind) {
    NEREID_KIT_ASSIGN(Outputs outputs, Run({kind}));
    alone_[kind] = std::move(outputs);
    return {};
  }

  // Whether any output depends on the row; otherwise a comparison is meaningless.
  bool HasEffect() const {
    for (const auto& [kind, outputs] : alone_) {
      if (Differ(alone_.begin()->second, outputs)) {
        return true;
      }
    }
    return false;
  }

  // Returns why one input row is not one output row, or nothing if it is.
  std::optional<BatchVerdict> JudgeAlone() const {
    for (const auto& [kind, outputs] : alone_) {
      if (auto refusal = JudgeCounts(outputs, 1)) {
        return refusal;
      }
    }
    return std::nullopt;
  }

  // Returns why rows that were run alone must not be run together, or nothing if they may.
  std::optional<BatchVerdict> JudgeTogether(const std::vector<Group>& groups) {
    if (auto refusal = JudgeRepetition()) {
      return refusal;
    }
    for (const Group& group : groups) {
      if (auto refusal = JudgeGroup(group)) {
        return refusal;
      }
    }
    return std::nullopt;
  }

 private:
  std::vector<int64_t> ShapeOf(const ModelTensor& input, int64_t rows) const {
    std::vector<int64_t> shape = input.dims;
    for (size_t d = 1; d < shape.size(); ++d) {
      shape[d] = shape[d] == -1 ? size_[IsOfPicture(input, d) ? 1 : 0] : shape[d];
    }
    shape[0] = rows;
    return shape;
  }

  // A named dimension has the same size in all tensors.
  bool IsOfPicture(const ModelTensor& tensor, size_t d) const {
    const std::string_view symbol = tensor.symbol(d);
    if (symbol.empty()) {
      return tensor.dims.size() >= 4;
    }
    for (const ModelTensor& input : inputs_) {
      for (size_t other = 1; input.dims.size() >= 4 && other < input.dims.size(); ++other) {
        if (input.symbol(other) == symbol) {
          return true;
        }
      }
    }
    return false;
  }

  Result<Outputs> Run(const Group& group) {
    std::vector<HostTensor> tensors;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      HostTensor tensor{.name = inputs_[i].name,
                        .type = inputs_[i].type,
                        .shape = ShapeOf(inputs_[i], static_cast<int64_t>(group.size())),
                        .bytes = {},
                        .strings = {}};
      NEREID_KIT_ASSIGN(const int64_t elements, ElementCount(ShapeOf(inputs_[i], 1)));
      for (const RowKind kind : group) {
        AppendRow(tensor, static_cast<uint64_t>(elements), static_cast<uint64_t>(kind), kind,
                  style_, seed_ + i);
      }
      tensors.push_back(std::move(tensor));
    }
    return runner_.Run(tensors);
  }

  static uint64_t RowElements(const HostTensor& output) {
    auto count = ElementCount(std::span(output.shape).subspan(1));
    return count.ok() ? static_cast<uint64_t>(count.value()) : 0;
  }

  // Whether two runs of one row each gave different outputs.
  static bool Differ(const Outputs& left, const Outputs& right) {
    for (size_t o = 0; o < left.size(); ++o) {
      if (left[o].shape != right[o].shape ||
          (!left[o].shape.empty() && left[o].shape[0] == 1 &&
           CompareRows(left[o], 0, right[o], 0, RowElements(left[o])))) {
        return true;
      }
    }
    return false;
  }

  static std::optional<BatchVerdict> JudgeCounts(const Outputs& outputs, size_t rows) {
    for (const HostTensor& output : outputs) {
      if (output.shape.empty() || output.shape[0] != static_cast<int64_t>(rows)) {
        return BatchVerdict::No("row_count", StrCat("output '", output.name, "' has shape ",
                                                    ShapeToString(output.shape), " for inputs of ",
                                                    rows, rows == 1 ? " row" : " rows"));
      }
    }
    return std::nullopt;
  }

  // Runs a row again, which must give the same result.
  std::optional<BatchVerdict> JudgeRepetition() {
    const auto& [kind, before] = *alone_.begin();
    auto again = Run({kind});
    if (!again.ok()) {
      return Failed(again.TakeError(), 1);
    }
    if (Differ(before, again.value())) {
      return BatchVerdict::No("not_deterministic",
                              "the same row run twice does not give the same: the model draws "
                              "random numbers or keeps a state");
    }
    return std::nullopt;
  }

  std::optional<BatchVerdict> JudgeGroup(Group group) {
    const auto rows =
        static_cast<size_t>(std::clamp(options_.max_rows, kMinProbeRows, kMaxProbeRows));
    group.resize(std::min(group.size(), rows));
    for (RowKind& kind : group) {
      kind = alone_.contains(kind) ? kind : RowKind::kWide;
    }
    auto outputs = Run(group);
    if (!outputs.ok()) {
      return Failed(outputs.TakeError(), group.size());
    }
    if (auto refusal = JudgeCounts(outputs.value(), group.size())) {
      return refusal;
    }
    for (size_t row = 0; row < group.size(); ++row) {
      if (auto refusal = JudgeRow(outputs.value(), row, group)) {
        return refusal;
      }
    }
    return std::nullopt;
  }

  std::optional<BatchVerdict> JudgeRow(const Outputs& together, size_t row,
                                       const Group& group) const {
    const Outputs& alone = alone_.at(group[row]);
    for (size_t o = 0; o < together.size(); ++o) {
      const std::span shape = std::span(together[o].shape).subspan(1);
      const std::span alone_shape = std::span(alone[o].shape).subspan(1);
      if (!std::equal(shape.begin(), shape.end(), alone_shape.begin(), alone_shape.end())) {
        return BatchVerdict::No(
            "row_shape", StrCat("output '", together[o].name, "' of ", group.size(),
                                " rows has shape ", ShapeToString(together[o].shape),
                                ", that of one of them alone ", ShapeToString(alone[o].shape)));
      }
      const uint64_t elements = RowElements(alone[o]);
      if (const auto difference = CompareRows(alone[o], 0, together[o], row, elements)) {
        return BatchVerdict::No(
            "row_values",
            StrCat("element ", difference->element, " of a row of output '", together[o].name,
                   "' is ", difference->left, " when the row is run alone and ", difference->right,
                   " when it is row ", row, " of ", group.size()));
      }
    }
    return std::nullopt;
  }

  BatchVerdict Failed(Error error, size_t rows) const {
    if (auto exhausted = runner_.Exhausted()) {
      return *std::move(exhausted);
    }
    return BatchVerdict::No("batch_fails",
                            StrCat("a row runs alone, but ", rows, rows == 1 ? " row" : " rows",
                                   " later fail: ", error.message()));
  }

  const std::span<const ModelTensor> inputs_;
  const ProbeOptions& options_;
  RowRunner& runner_;
  const std::array<int64_t, 2> size_;
  const SampleStyle style_;
  const uint64_t seed_;
  std::map<RowKind, Outputs> alone_;
};

// Tries styles and sizes until two sizes have been judged.
class Search {
 public:
  Search(std::span<const ModelTensor> inputs, const ProbeOptions& options, RowRunner& runner)
      : inputs_(inputs), options_(options), runner_(runner) {
    for (const ModelTensor& input : inputs) {
      has_open_sizes_ = has_open_sizes_ || std::any_of(input.dims.begin() + 1, input.dims.end(),
                                                       [](int64_t dim) { return dim == -1; });
    }
  }

  BatchVerdict Find() {
    for (const ModelTensor& input : inputs_) {
      if (input.type == TRITONSERVER_TYPE_INVALID) {
        return BatchVerdict::No("unsupported_type",
                                StrCat("no rows can be made for ", input.Describe()));
      }
    }
    for (const SampleStyle& style : kStyles) {
      if (auto verdict = Try(style)) {
        return *std::move(verdict);
      }
    }
    return noted_.value_or(BatchVerdict::No("does_not_run", "nothing could be tried"));
  }

 private:
  // Returns nothing if another style may have a better result.
  std::optional<BatchVerdict> Try(const SampleStyle& style) {
    size_t judged = 0;
    for (size_t s = 0; s < (has_open_sizes_ ? kSizes.size() : 2); ++s) {
      Trial trial(inputs_, options_, runner_, kSizes[s], style, 100 * s + 1);
      if (!Begin(trial)) {
        if (auto exhausted = runner_.Exhausted()) {
          return exhausted;
        }
        continue;
      }
      RunOthers(trial, judged == 0);
      if (auto refusal = trial.JudgeAlone()) {
        return refusal;
      }
      if (judged == 0 && !trial.HasEffect()) {
        Note(BatchVerdict::No("no_effect", "all rows that were tried give the same outputs"));
        return std::nullopt;
      }
      if (auto refusal = trial.JudgeTogether(judged == 0 ? FullGroups() : BriefGroups())) {
        return refusal;
      }
      if (++judged == 2) {
        return BatchVerdict::Yes("probed", "rows run together come out as they do alone");
      }
    }
    if (judged == 1 && has_open_sizes_) {
      // The model does not run with any other size that was tried.
      Note(BatchVerdict::Yes("probed",
                             "rows run together come out as they do alone, in the one size "
                             "that the model runs with"));
    }
    return std::nullopt;
  }

  // Runs the rows that the model must accept.
  bool Begin(Trial& trial) {
    if (!trial.Fits()) {
      Note(BatchVerdict::No(
          "too_large", StrCat("one row takes more than ", options_.max_row_bytes >> 20, " MiB")));
      return false;
    }
    Error error = trial.RunAlone(RowKind::kPlain);
    if (error.ok()) {
      error = trial.RunAlone(RowKind::kWide);
    }
    if (!error.ok()) {
      Note(BatchVerdict::No(
          "does_not_run",
          StrCat("the model runs on none of the rows that were tried: ", error.message())));
    }
    return error.ok();
  }

  // Runs rows that the model may refuse.
  static void RunOthers(Trial& trial, bool is_first) {
    if (is_first) {
      trial.RunAlone(RowKind::kNarrow).Ignore();
      trial.RunAlone(RowKind::kHuge).Ignore();
    }
    trial.RunAlone(RowKind::kZero).Ignore();
  }

  // Keeps the most informative verdict in case there is no better one: in order, that rows may run
  // together, that outputs do not depend on rows, why the first row could not be run.
  void Note(BatchVerdict verdict) {
    const auto weight = [](const BatchVerdict& noted) {
      return noted.is_batched ? 3 : noted.reason == "no_effect" ? 2 : 1;
    };
    if (!noted_ || weight(verdict) > weight(*noted_)) {
      noted_ = std::move(verdict);
    }
  }

  const std::span<const ModelTensor> inputs_;
  const ProbeOptions& options_;
  RowRunner& runner_;
  bool has_open_sizes_ = false;
  std::optional<BatchVerdict> noted_;
};

}  // namespace batch_probe

// Runs the probe. REQUIRES: RefuseByDescription does not refuse `inputs`.
inline BatchVerdict ProbeBatching(std::span<const ModelTensor> inputs, const ProbeOptions& options,
                                  RowRunner& runner) {
  if (inputs.empty()) {
    return BatchVerdict::No("no_effect", "the model has no inputs");
  }
  return batch_probe::Search(inputs, options, runner).Find();
}

}  // namespace nereid::backend
