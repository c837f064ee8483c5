// SPDX-License-Identifier: Apache-2.0
#include "http/load_header.h"

#include "common/load_report.h"

namespace nereid::http {

std::string MakeLoadHeader(std::string_view format, std::string_view metrics) {
  const std::string text = common::LoadText(format, metrics);
  return text.empty() ? text : std::string(common::kLoadHeader) + ": " + text + "\r\n";
}

}  // namespace nereid::http
