// SPDX-License-Identifier: Apache-2.0
#include "observe/otlp_exporter.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/log.h"
#include "http_client/retry.h"
#include "http_client/url.h"

namespace nereid::observe {
namespace {

// The time limit of one request, and of all remaining requests when the exporter ends.
constexpr std::chrono::seconds kTimeout{10};

// Whether OTLP permits a retry after this reply.
bool MayPass(const http_client::HttpReply& reply) {
  if (!reply.failure.empty()) return !reply.is_final;
  return reply.status == 429 || (reply.status >= 502 && reply.status <= 504);
}

}  // namespace

base::Result<std::unique_ptr<OtlpExporter>> OtlpExporter::Start(OtlpOptions options) {
  NEREID_ASSIGN_OR_RETURN(const http_client::Url url, http_client::ParseUrl(options.url));
  return std::unique_ptr<OtlpExporter>(new OtlpExporter(std::move(options), url.ToString()));
}

OtlpExporter::OtlpExporter(OtlpOptions options, std::string url)
    : options_(std::move(options)), url_(std::move(url)), client_({.ca_file = options_.ca_file}) {
  resource_ = {{"service.name", "triton-inference-server"},
               {"telemetry.sdk.language", "cpp"},
               {"telemetry.sdk.name", "nereid"}};
  for (const auto& [key, value] : options_.resource) {
    const auto known = std::ranges::find(resource_, key, &decltype(resource_)::value_type::first);
    if (known != resource_.end()) {
      known->second = value;
    } else {
      resource_.emplace_back(key, value);
    }
  }
  thread_ = base::Thread("otlp", [this] {
    Run();
    base::MutexLock lock(mutex_);
    is_done_ = true;
    done_.NotifyOne();
  });
}

OtlpExporter::~OtlpExporter() {
  retries_.request_stop();
  {
    base::MutexLock lock(mutex_);
    is_ending_ = true;
    wake_.NotifyOne();
  }
  {
    const base::TimePoint deadline = std::chrono::steady_clock::now() + kTimeout;
    base::MutexLock lock(mutex_);
    while (!is_done_ && done_.WaitUntil(mutex_, deadline)) {
    }
  }
  requests_.request_stop();
  thread_.Join();
}

void OtlpExporter::Add(Span span) {
  base::MutexLock lock(mutex_);
  if (queue_.size() >= options_.max_queue_size) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(span));
  if (queue_.size() >= options_.max_export_batch_size) wake_.NotifyOne();
}

void OtlpExporter::Run() {
  base::TimePoint due = std::chrono::steady_clock::now() + options_.schedule_delay;
  while (true) {
    std::deque<Span> batch;
    uint64_t dropped = 0;
    bool is_ending = false;
    {
      base::MutexLock lock(mutex_);
      while (!is_ending_ && queue_.size() < options_.max_export_batch_size) {
        if (!wake_.WaitUntil(mutex_, due)) break;
      }
      is_ending = is_ending_;
      const size_t count = std::min<size_t>(queue_.size(), options_.max_export_batch_size);
      for (size_t i = 0; i < count; ++i) {
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      dropped = std::exchange(dropped_, 0);
    }
    if (dropped > 0) {
      // The first sentence is OpenTelemetry's, because users search for it.
      NEREID_LOG(kWarning,
                 "BatchSpanProcessor queue is full - dropping span. {} were dropped: the collector "
                 "is too slow",
                 dropped);
    }
    if (!batch.empty()) Send(batch);
    if (is_ending && (batch.empty() || has_failed_)) return;
    due = std::chrono::steady_clock::now() + options_.schedule_delay;
  }
}

void OtlpExporter::Send(const std::deque<Span>& spans) {
  const base::Status status = Post(EncodeSpans(resource_, spans));
  const bool had_failed = std::exchange(has_failed_, !status.ok());
  // The error is logged once, not for every batch.
  if (!status.ok() && !had_failed) {
    NEREID_LOG(kError, "failed to export {} spans to {}: {}", spans.size(), options_.url,
               status.message());
  }
}

base::Status OtlpExporter::Post(std::string body) {
  http_client::HttpRequest request;
  request.method = http_client::Method::kPost;
  request.url = url_;
  request.headers = {{"content-type", "application/x-protobuf"}};
  request.body = std::move(body);
  request.timeout = kTimeout;
  request.stop = requests_.get_token();
  http_client::Attempts attempts({}, retries_.get_token());
  while (true) {
    const http_client::HttpReply reply = client_.Send(request);
    if (reply.is_success()) return base::OkStatus();
    if (MayPass(reply) && attempts.Next()) {
      attempts.Pause();
      continue;
    }
    return base::UnavailableError(
        reply.failure.empty() ? fmt::format("the collector replied with status {}", reply.status)
                              : reply.failure);
  }
}

}  // namespace nereid::observe
