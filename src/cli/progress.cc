// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace nereid::cli {
namespace {

constexpr size_t kBarWidth = 24;
// To the beginning of the line, and erase it.
constexpr std::string_view kErase = "\r\x1b[K";

// Returns the first `width` columns of `text`.
std::string_view Cut(std::string_view text, size_t width) {
  while (DisplayWidth(text) > width) text.remove_suffix(1);
  return text;
}

}  // namespace

Progress::Progress(Output& output, std::string label) : output_(output), label_(std::move(label)) {}

Progress::~Progress() { Clear(); }

void Progress::Show(double fraction, std::string_view text) {
  const StreamTraits& traits = output_.err();
  if (!traits.is_terminal) return;
  const double share = std::clamp(fraction, 0.0, 1.0);
  const auto full = static_cast<size_t>(std::lround(share * kBarWidth));
  std::string bar;
  for (size_t i = 0; i < kBarWidth; ++i) bar += i < full ? "█" : "░";
  std::string line = fmt::format("{} {} {:3.0f} % {}", label_, bar, share * 100, text);
  // The last column stays empty, as some terminals begin a new line otherwise.
  if (traits.width > 0) line = Cut(line, traits.width - 1);
  if (line == drawn_) return;
  drawn_ = std::move(line);
  output_.WriteMessage(fmt::format("{}{}", kErase, drawn_));
  std::fflush(output_.err_);
}

void Progress::Clear() {
  if (drawn_.empty()) return;
  drawn_.clear();
  output_.WriteMessage(kErase);
  std::fflush(output_.err_);
}

}  // namespace nereid::cli
