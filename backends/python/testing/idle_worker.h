// SPDX-License-Identifier: Apache-2.0
// A worker whose process does nothing, for tests that make its calls themselves.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "python_backend/testing/fake_worker.h"
#include "python_backend/wait.h"
#include "python_backend/worker.h"

namespace nereid::python {

// A fixture with a worker and its end of the shared memory.
class IdleWorkerTest : public testing::Test {
 protected:
  IdleWorkerTest() : worker_(Start(supervisor_)), end_(worker_->region()) {}
  ~IdleWorkerTest() override { worker_->Stop(std::chrono::steady_clock::now()); }

  // Makes a call of the worker with this payload.
  CallBlock NewCall(Call kind, const std::string& payload) {
    BlockHeader& header = end_.Header(end_.Put(payload));
    return {&header, kind, {reinterpret_cast<const char*>(&header + 1), payload.size()}};
  }
  // IsReplied returns whether a call has a reply, IsReleased whether its block is the worker's
  // again.
  static bool IsReplied(const CallBlock& call) { return call.header->state == kBlockReplied; }
  static bool IsReleased(const CallBlock& call) { return call.header->state == kBlockFree; }
  // Waits for the reply to a call: "ok: …" or "error: …".
  std::string AwaitReply(const CallBlock& call) {
    while (WaitWhile(call.header->state, call.header->sleeping, kBlockInUse,
                     std::chrono::nanoseconds(0)) == kBlockInUse) {
    }
    const bool is_ok = call.header->outcome == static_cast<uint32_t>(Outcome::kOk);
    const auto offset = static_cast<uint64_t>(reinterpret_cast<const char*>(call.header) -
                                              worker_->region().base());
    return (is_ok ? "ok: " : "error: ") + end_.ReplyTo(offset);
  }
  // Returns why the worker was ended; empty if it was not.
  std::string Condemned() const {
    const std::string begin = "Stub process 'm_0' is not healthy: ";
    return worker_->is_alive() ? "" : worker_->DeathMessage().substr(begin.size());
  }

  Supervisor supervisor_;
  const std::shared_ptr<Worker> worker_;
  FakeWorker end_;

 private:
  static std::shared_ptr<Worker> Start(Supervisor& supervisor) {
    WorkerOptions options{
        .command = {.arguments = {"/bin/sh", "-c", "read greeting <&3; read forever <&3"},
                    .environment = {}},
        .greeting = "hello\n",
        .name = "m_0"};
    auto started =
        Worker::Start(supervisor, std::move(options), [](const auto&, const CallBlock&) {}, [] {});
    return std::move(started).value();
  }
};

}  // namespace nereid::python
