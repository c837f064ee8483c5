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
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend_kit/batch_rule.h"
#include "backend_kit/row_trial.h"

namespace nereid::backend {
namespace batch_probe {

// Sizes of the variable dimensions except the first. The probe uses the first ones that the model
// can run with. The second number is for pictures, in sizes that vision networks expect, and no
// size equals a number of rows.
inline constexpr std::array<std::array<int64_t, 2>, 8> kSizes = {
    {{8, 32}, {16, 64}, {32, 48}, {64, 96}, {128, 224}, {512, 256}, {1024, 320}, {4096, 640}}};

inline constexpr std::array<SampleStyle, 3> kStyles = {
    {{.min = 1, .max = 9}, {.min = 0, .max = 1}, {.min = 0, .max = 1, .is_unit = true}}};

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
      const RowMaker rows(inputs_, kSizes[s], style, 100 * s + 1);
      Trial trial(rows, options_, runner_);
      if (!Begin(rows, trial)) {
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
  bool Begin(const RowMaker& rows, Trial& trial) {
    if (!rows.Fits(options_.max_row_bytes)) {
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
