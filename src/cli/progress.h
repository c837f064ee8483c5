// SPDX-License-Identifier: Apache-2.0
// A progress bar on the standard error, where that is a terminal; otherwise nothing is shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/output.h"

namespace nereid::cli {

// The bar is removed when this is destroyed, or before other messages by Clear. Confined to one
// thread.
class Progress {
 public:
  // `label` is what is being done.
  Progress(Output& output, std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws the bar with `fraction` of it full, from 0 to 1, and `text` behind it. Drawing what is
  // there already costs nothing, so this may be called often.
  void Show(double fraction, std::string_view text = {});
  void Clear();

 private:
  Output& output_;
  const std::string label_;
  std::string drawn_;  // the line on the terminal; empty if there is none
};

}  // namespace nereid::cli
