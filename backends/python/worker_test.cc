// SPDX-License-Identifier: Apache-2.0
// A worker as a whole: a process whose few lines of Python play the worker's part.
#include "python_backend/worker.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace nereid::python {
namespace {

using Clock = std::chrono::steady_clock;

// Maps the shared memory; the test's script follows.
constexpr const char* kPrelude = R"(
import array, ctypes, mmap, os, socket, sys, time
sys.path.insert(0, sys.argv[1])
from nereid_python import native, protocol as p
channel = socket.socket(fileno=3)
greeting, ancillary, _, _ = channel.recvmsg(65536, socket.CMSG_LEN(4))
file = array.array('i', ancillary[0][2])[0]
memory = mmap.mmap(file, os.fstat(file).st_size)
native.open(ctypes.addressof(ctypes.c_char.from_buffer(memory)), len(memory), 0)
def put(block, kind, text):
    p.HEADER.pack_into(memory, block, p.BLOCK_IN_USE, 0, kind, 0, len(text), 0, 0, 0, 0)
    memory[block + p.HEADER_SIZE : block + p.HEADER_SIZE + len(text)] = text
def hang():
    channel.recv(1)
ours = len(memory) // 2
)";

class WorkerTest : public testing::Test {
 protected:
  // Stops the workers first, because their threads use the other members.
  ~WorkerTest() override {
    for (const auto& worker : workers_) worker->Stop(Clock::now());
  }

  // Starts a worker that runs this script after the prelude.
  std::shared_ptr<Worker> Start(const std::string& script,
                                std::chrono::seconds timeout = std::chrono::seconds(60)) {
    WorkerOptions options{
        .command = {.arguments = {NEREID_TEST_PYTHON, "-c", std::string(kPrelude) + script,
                                  NEREID_TEST_WORKER},
                    .environment = CurrentEnvironment()},
        .greeting = "hello",
        .name = "m_0",
        .start_timeout = timeout};
    auto started = Worker::Start(
        supervisor_, std::move(options),
        [this](const std::shared_ptr<Worker>&, const CallBlock& call) {
          calls_.emplace_back(call.payload.data(), call.payload.size());
          Release(call.header);
        },
        [this] { died_.set_value(calls_.size()); });
    EXPECT_TRUE(started.ok());
    workers_.push_back(started.value());
    return started.value();
  }

  Supervisor supervisor_;
  std::vector<std::shared_ptr<Worker>> workers_;
  std::vector<std::string> calls_;  // confined to the thread of calls until died_ is set
  std::promise<size_t> died_;       // the number of calls
};

TEST_F(WorkerTest, ExecutesItsWork) {
  const auto worker = Start(R"(
_, ticket, at, size = native.finish(p.OK, 0, 0, 0)
text = greeting + b' and ' + memory[at : at + size]
put(ours, 0, text)
native.finish(p.OK, ticket, ours, len(text))
)");
  ASSERT_TRUE(worker->WaitForHello().ok());
  auto result = worker->work().RunText(Work::kComplete, "good morning");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value(), "hello and good morning");
  EXPECT_TRUE(worker->is_alive());
  worker->Stop(Clock::now());
  EXPECT_FALSE(worker->is_alive());
}

TEST_F(WorkerTest, FailsWithTheReasonOfAProcessThatCannotStart) {
  const auto worker = Start("channel.send(b'there is no numpy')");
  const backend::Error error = worker->WaitForHello();
  EXPECT_STREQ(error.message(), "Stub process 'm_0' is not healthy: there is no numpy");
}

TEST_F(WorkerTest, FailsIfItsProcessEndsBeforeItIsReady) {
  const auto worker = Start("sys.exit(7)");
  const backend::Error error = worker->WaitForHello();
  EXPECT_STREQ(error.message(), "Stub process 'm_0' is not healthy: it exited with status 7");
}

TEST_F(WorkerTest, ThatIsNotThereInTimeFails) {
  const auto worker = Start("hang()", std::chrono::seconds(0));
  const backend::Error error = worker->WaitForHello();
  EXPECT_STREQ(error.message(), "Stub process 'm_0' is not healthy: it did not start in 0 seconds");
}

TEST_F(WorkerTest, HandlesItsLastCallsBeforeItReportsItsDeath) {
  const auto worker = Start(R"(
for i in range(3):
    put(ours + 4096 * i, p.LOG, b'call %d' % i)
    native.append(ours + 4096 * i)
)");
  EXPECT_EQ(died_.get_future().get(), 3u);
  EXPECT_EQ(calls_, (std::vector<std::string>{"call 0", "call 1", "call 2"}));
  worker->WaitForLastCalls();
  EXPECT_EQ(worker->DeathMessage(), "Stub process 'm_0' is not healthy: it exited with status 0");
}

TEST_F(WorkerTest, ThatMakesACallOfNoSenseIsEnded) {
  const auto worker = Start("native.append(12345)\nhang()");
  died_.get_future().get();
  EXPECT_EQ(worker->DeathMessage(),
            "Stub process 'm_0' is not healthy: it corrupted the memory shared with the server");
  worker->Stop(Clock::time_point::max());
}

TEST_F(WorkerTest, ThatIsCondemnedEndsThoughItHangs) {
  const auto worker = Start("native.finish(p.OK, 0, 0, 0)\nhang()");
  ASSERT_TRUE(worker->WaitForHello().ok());
  auto result =
      std::async(std::launch::async, [&] { return worker->work().RunText(Work::kInitialize, ""); });
  worker->Condemn("it takes too long");
  auto ended = result.get();
  ASSERT_FALSE(ended.ok());
  EXPECT_STREQ(ended.TakeError().message(), "Stub process 'm_0' is not healthy: it takes too long");
  worker->Stop(Clock::time_point::max());
}

TEST_F(WorkerTest, HasTheCallsOfTheOwnerThatAdoptedIt) {
  const auto worker = Start(R"(
_, ticket, at, size = native.finish(p.OK, 0, 0, 0)
put(ours, p.LOG, b'for the second')
native.append(ours)
native.finish(p.OK, ticket, 0, 0)
)");
  ASSERT_TRUE(worker->WaitForHello().ok());
  std::promise<std::string> second;
  worker->Adopt(
      "m_1",
      [&](const std::shared_ptr<Worker>&, const CallBlock& call) {
        second.set_value({call.payload.data(), call.payload.size()});
        Release(call.header);
      },
      [] {});
  ASSERT_TRUE(worker->work().RunText(Work::kInitialize, "").ok());
  worker->calls().WaitForCalls();
  EXPECT_EQ(second.get_future().get(), "for the second");
  worker->Condemn("it is no longer needed");
  EXPECT_EQ(worker->DeathMessage(), "Stub process 'm_1' is not healthy: it is no longer needed");
  worker->Stop(Clock::time_point::max());
  EXPECT_TRUE(calls_.empty());
}

}  // namespace
}  // namespace nereid::python
