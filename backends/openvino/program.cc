// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/program.h"

#include <algorithm>

namespace nereid::openvino {

int FindTensor(const std::vector<TensorInfo>& tensors, std::string_view name) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<std::string>& names = tensors[i].names;
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::string PlainText(std::string_view what) {
  std::string text;
  while (!what.empty()) {
    const size_t end = std::min(what.find('\n'), what.size());
    std::string_view line = what.substr(0, end);
    what.remove_prefix(std::min(end + 1, what.size()));
    const size_t first = line.find_first_not_of(" \t\r");
    line = first == std::string_view::npos ? std::string_view() : line.substr(first);
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    // "Exception from FILE:92:" and "Check 'x' failed at FILE:12:"
    const bool is_place = line.starts_with("Exception from ") ||
                          (line.starts_with("Check '") && line.ends_with(':') &&
                           line.find("' failed at ") != std::string_view::npos);
    if (!line.empty() && !is_place) {
      text += text.empty() ? "" : " ";
      text += line;
    }
  }
  return text.empty() ? std::string("OpenVINO gives no reason") : text;
}

}  // namespace nereid::openvino
