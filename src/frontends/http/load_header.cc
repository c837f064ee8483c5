// SPDX-License-Identifier: Apache-2.0
#include "http/load_header.h"

#include "common/load_report.h"

namespace nereid::http {

std::string MakeLoadHeader(std::string_view format, service::Service& service) {
  const std::string text = common::ReadLoadText(format, service);
  return text.empty() ? text : std::string(common::kLoadHeader) + ": " + text + "\r\n";
}

}  // namespace nereid::http
