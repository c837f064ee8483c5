// SPDX-License-Identifier: Apache-2.0
// Tests the exporter against a local collector that accepts spans, refuses them or hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "http_client/testing/http_stub.h"
#include "observe/otlp_exporter.h"

namespace nereid::observe {
namespace {

using http_client::HttpStub;
using http_client::StubReply;
using http_client::StubRequest;

// Counts the received spans and lets a test wait for a number of them.
class Counter {
 public:
  void Add() {
    base::MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  void WaitFor(int count) {
    base::MutexLock lock(mutex_);
    while (count_ < count) changed_.Wait(mutex_);
  }
  int count() const {
    base::MutexLock lock(mutex_);
    return count_;
  }

 private:
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  int count_ NEREID_GUARDED_BY(mutex_) = 0;
};

Span MakeSpan(const std::string& name) {
  Span span;
  span.name = name;
  return span;
}

// The exporter sends after every `batch` spans, and the rest when it ends.
std::unique_ptr<OtlpExporter> StartExporter(const HttpStub& collector, uint32_t batch = 1) {
  OtlpOptions options;
  options.url = collector.endpoint() + "/v1/traces";
  options.schedule_delay = std::chrono::hours(1);
  options.max_export_batch_size = batch;
  auto exporter = OtlpExporter::Start(std::move(options));
  EXPECT_TRUE(exporter.ok());
  return std::move(*exporter);
}

TEST(AnOtlpExporter, SendsSpansAsTheProtocolSays) {
  Counter requests;
  std::atomic<bool> is_right{false};
  const HttpStub collector([&](const StubRequest& request) {
    is_right = request.method == "POST" && request.target == "/v1/traces" &&
               request.headers.at("content-type") == "application/x-protobuf" &&
               request.body.find("a-span") != std::string::npos;
    requests.Add();
    return StubReply{};
  });
  const auto exporter = StartExporter(collector);
  exporter->Add(MakeSpan("a-span"));
  requests.WaitFor(1);
  EXPECT_TRUE(is_right);
}

TEST(AnOtlpExporter, RetriesABatchThatTheCollectorCannotAcceptNow) {
  Counter requests;
  const HttpStub collector([&](const StubRequest&) {
    const bool is_first = requests.count() == 0;
    requests.Add();
    return StubReply{.status = is_first ? 503 : 200};
  });
  const auto exporter = StartExporter(collector);
  exporter->Add(MakeSpan("a-span"));
  requests.WaitFor(2);
}

TEST(AnOtlpExporter, DoesNotRetryABatchThatTheCollectorRefuses) {
  Counter requests;
  const HttpStub collector([&](const StubRequest& request) {
    requests.Add();
    return StubReply{.status = request.body.find("bad") != std::string::npos ? 400 : 200};
  });
  auto exporter = StartExporter(collector);
  exporter->Add(MakeSpan("bad"));
  requests.WaitFor(1);
  exporter->Add(MakeSpan("good"));
  requests.WaitFor(2);
  exporter.reset();
  EXPECT_EQ(requests.count(), 2);
}

TEST(AnOtlpExporter, SendsWhatIsLeftWhenItEnds) {
  Counter requests;
  const HttpStub collector([&](const StubRequest&) {
    requests.Add();
    return StubReply{};
  });
  auto exporter = StartExporter(collector, 100);
  exporter->Add(MakeSpan("last"));
  exporter.reset();
  EXPECT_EQ(requests.count(), 1);
}

TEST(AnOtlpExporter, DoesNotRepeatWhatFailsWhenItEnds) {
  Counter requests;
  const HttpStub collector([&](const StubRequest&) {
    requests.Add();
    return StubReply{.status = 503};
  });
  auto exporter = StartExporter(collector, 100);
  exporter->Add(MakeSpan("last"));
  exporter.reset();
  EXPECT_EQ(requests.count(), 1);
}

TEST(AnOtlpExporter, IsNotStartedWithAnInvalidUrl) {
  OtlpOptions options;
  options.url = "http://h:x/";
  EXPECT_FALSE(OtlpExporter::Start(options).ok());
  options.url = "https://127.0.0.1:1/x";
  EXPECT_TRUE(OtlpExporter::Start(options).ok());
}

}  // namespace
}  // namespace nereid::observe
