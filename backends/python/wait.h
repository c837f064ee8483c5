// SPDX-License-Identifier: Apache-2.0
// Waits for words in memory that another process shares. worker/native/waits.c is the worker's
// side.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace nereid::python {

// How long to poll before sleeping: about as long as the execution of a small model, because waking
// up would cost more. Zero with one core, where polling would keep the worker from working.
std::chrono::nanoseconds SpinTime();

// Polls `word` while it equals `seen`, for `time` at most, and returns its value.
uint32_t LookWhile(const std::atomic<uint32_t>& word, uint32_t seen, std::chrono::nanoseconds time);

// Waits while `word` equals `seen`, polling for `spin` before sleeping, at most until `deadline`,
// and returns its value. May return `seen` early.
uint32_t WaitWhile(
    std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping, uint32_t seen,
    std::chrono::nanoseconds spin,
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());

// Adds one to `word`, after everything written before, and wakes threads that sleep on it.
void Signal(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping);

// Sets `word` and wakes threads that sleep on it.
void Publish(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping, uint32_t value);

}  // namespace nereid::python
