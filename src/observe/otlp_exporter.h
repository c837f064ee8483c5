// SPDX-License-Identifier: Apache-2.0
// Sends spans to an OpenTelemetry collector, by OTLP over HTTP.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "http_client/http_client.h"
#include "observe/otlp.h"
#include "observe/otlp_options.h"

namespace nereid::observe {

// Sends spans from a thread of its own. A batch that the collector does not accept is retried a few
// times and then dropped. Thread-safe.
class OtlpExporter {
 public:
  // Fails if the URL cannot be used.
  static base::Result<std::unique_ptr<OtlpExporter>> Start(OtlpOptions options);
  // Sends the remaining spans, and drops what the collector has not accepted after ten seconds.
  ~OtlpExporter();

  void Add(Span span);

 private:
  OtlpExporter(OtlpOptions options, std::string url);

  void Run();
  void Send(const std::deque<Span>& spans);
  base::Status Post(std::string body);

  const OtlpOptions options_;
  const std::string url_;
  std::vector<std::pair<std::string, std::string>> resource_;
  http_client::HttpClient client_;
  std::stop_source retries_;   // stopped when the exporter ends: every batch has one more attempt
  std::stop_source requests_;  // stopped when the exporter's time limit has passed
  bool has_failed_ = false;    // confined to the thread
  base::Mutex mutex_;
  base::CondVar wake_;
  base::CondVar done_;
  std::deque<Span> queue_ NEREID_GUARDED_BY(mutex_);
  uint64_t dropped_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_ending_ NEREID_GUARDED_BY(mutex_) = false;
  bool is_done_ NEREID_GUARDED_BY(mutex_) = false;
  base::Thread thread_;  // last, because it uses the members above
};

}  // namespace nereid::observe
