// SPDX-License-Identifier: Apache-2.0
// Where a thread is: its stack, read by the thread itself in a signal handler, and written as
// "library+offset (function+offset)". Functions are named where the library exports them; for the
// others, `addr2line -e LIBRARY OFFSET` reads a file with debugging information.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace nereid::base {

// The return addresses on a thread's stack, the innermost first.
struct StackTrace {
  static constexpr size_t kMaxFrames = 64;

  std::array<void*, kMaxFrames> addresses;
  size_t size = 0;

  std::span<void* const> frames() const { return {addresses.data(), size}; }
};

// The longest text of DescribeFrame; longer names are cut.
inline constexpr size_t kFrameTextSize = 512;

// Loads what the functions below need. They are of no use before the first call. Takes a free
// real-time signal for ReadStackOf. Thread-safe; later calls do nothing.
void PrepareStackTraces();

// Reads the stack of the calling thread. Safe in a signal handler.
void ReadOwnStack(StackTrace& stack);

// Reads the stack of another thread of this process, which it interrupts by a signal. Empty if the
// thread does not answer within a second: it blocks signals, or waits in the kernel for a device.
// System calls that no signal handler lets continue (poll, nanosleep) return EINTR in that thread.
StackTrace ReadStackOf(pid_t thread);

// Writes the library and function of `address` into `text`, without a zero byte, and returns the
// length. Safe in a signal handler: takes no lock and no memory.
size_t DescribeFrame(const void* address, std::span<char, kFrameTextSize> text);

// Returns a line for each frame.
std::vector<std::string> DescribeStack(const StackTrace& stack);

}  // namespace nereid::base
