// SPDX-License-Identifier: Apache-2.0
// Waiting for words in memory that another process shares; worker/native/waits.c is the worker's
// side.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace nereid::python {

// How long to look for what is about to come before sleeping: about what an execution of a small
// model takes, since waking up would cost more. Zero with one core, where looking would keep the
// worker from working.
std::chrono::nanoseconds SpinTime();

// Looks at `word` until it is not `seen` any more, for `time` at most, and returns its value.
uint32_t LookWhile(const std::atomic<uint32_t>& word, uint32_t seen, std::chrono::nanoseconds time);

// Waits until `word` is not `seen` any more, looking for `spin` before sleeping, at most until
// `deadline`, and returns its value. May return `seen` early.
uint32_t WaitWhile(
    std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping, uint32_t seen,
    std::chrono::nanoseconds spin,
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());

// Adds one to `word`, after everything written before, and wakes who sleeps on it.
void Signal(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping);

// Gives `word` a value and wakes who sleeps on it.
void Publish(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping, uint32_t value);

}  // namespace nereid::python
