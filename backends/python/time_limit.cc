// SPDX-License-Identifier: Apache-2.0
#include "python_backend/time_limit.h"

#include <string>

#include "backend_kit/batch.h"

namespace nereid::python {
namespace {

std::string SecondsText(std::chrono::milliseconds time) {
  std::string text = std::to_string(static_cast<double>(time.count()) / 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

void CheckTime(Worker& worker, std::optional<std::chrono::milliseconds> limit,
               uint64_t last_activity_ns) {
  if (!limit) return;
  const auto limit_ns = static_cast<uint64_t>(std::chrono::nanoseconds(*limit).count());
  const uint64_t now = backend::NowNs();
  if (now < last_activity_ns || now - last_activity_ns <= limit_ns) return;
  worker.Condemn(backend::StrCat("it did not respond within isolation_timeout_secs, which is ",
                                 SecondsText(*limit)));
}

}  // namespace nereid::python
