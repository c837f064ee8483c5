// SPDX-License-Identifier: Apache-2.0
// One trial of batch_probe.h: runs rows of one shape alone and together, and compares the results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend_kit/batch_verdict.h"
#include "backend_kit/row_compare.h"
#include "backend_kit/row_maker.h"
#include "backend_kit/row_runner.h"

namespace nereid::backend {

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

using Outputs = std::vector<HostTensor>;

// The model's results for rows of one shape and style, each alone. Everything that it refers to
// outlives it.
class Trial {
 public:
  Trial(const RowMaker& rows, const ProbeOptions& options, RowRunner& runner)
      : rows_(rows), options_(options), runner_(runner) {}

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
  Result<Outputs> Run(const Group& group) {
    NEREID_KIT_ASSIGN(const std::vector<HostTensor> inputs, rows_.Make(group));
    return runner_.Run(inputs);
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

  const RowMaker& rows_;
  const ProbeOptions& options_;
  RowRunner& runner_;
  std::map<RowKind, Outputs> alone_;
};

}  // namespace batch_probe
}  // namespace nereid::backend
