// SPDX-License-Identifier: Apache-2.0
// A connection without a socket, for this module's tests: orders wait until the test takes them.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "http2/call_host.h"
#include "http2/grpc_stream.h"

namespace nereid::http2 {

class TestHost final : public CallHost {
 public:
  ~TestHost() {
    for (GrpcMessagePtr& message : Take()) message->order.stream->Unreference();
  }

  void Submit(GrpcMessagePtr message) override {
    base::MutexLock lock(mutex_);
    orders_.push_back(std::move(message));
  }
  void Hold() override { ++holds; }
  void Release() override { --holds; }
  bool is_crowded() const override { return false; }
  base::TaskPool& workers() const override { return workers_; }

  // Returns the orders, each of which has a reference to its stream.
  std::vector<GrpcMessagePtr> Take() {
    base::MutexLock lock(mutex_);
    return std::exchange(orders_, {});
  }
  // Lets the workers do their work.
  void Work() {
    ASSERT_TRUE(workers_.WaitUntilIdle(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  }

  std::atomic<int> holds{0};

 private:
  mutable base::TaskPool workers_{"test", 1};
  base::Mutex mutex_;
  std::vector<GrpcMessagePtr> orders_ NEREID_GUARDED_BY(mutex_);
};

// Records the events of a call.
class TestEvents final : public GrpcCallEvents {
 public:
  void OnMessage(base::BufferRef, std::string_view message) override {
    Add(message.size() > 20 ? std::to_string(message.size()) + " bytes" : std::string(message));
  }
  bool IsHeavy(std::string_view) const override { return is_heavy; }
  void OnHalfClose() override { Add("half-close"); }
  void OnSent() override { Add("sent"); }
  void OnDrain() override { Add("drain"); }
  void OnCancelled() override { Add("cancelled"); }
  void OnDone() override { Add("done"); }

  // Returns the events since the last call.
  std::vector<std::string> Take() {
    base::MutexLock lock(mutex_);
    return std::exchange(events_, {});
  }

  bool is_heavy = false;

 private:
  void Add(std::string event) {
    base::MutexLock lock(mutex_);
    events_.push_back(std::move(event));
  }

  base::Mutex mutex_;
  std::vector<std::string> events_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::http2
