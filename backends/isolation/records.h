// SPDX-License-Identifier: Apache-2.0
// What the server and the process of an isolated model tell each other beyond the protocol of
// workers (backends/python/protocol.h), which carries it. Texts are preceded by their length in 8
// bytes and padded to 8.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nereid::isolation {

// Keys of the greeting, which consists of keys and values that each end with a zero byte.
namespace key {
inline constexpr const char* kServerPid = "server_pid";
inline constexpr const char* kModel = "model";
inline constexpr const char* kVersion = "version";
inline constexpr const char* kFolder = "folder";      // of the model
inline constexpr const char* kBackend = "backend";    // its name
inline constexpr const char* kSettings = "settings";  // of the backend: keys and values, like this
inline constexpr const char* kVerbosity = "verbosity";
}  // namespace key

// The payload of a refusal (Outcome::kError): the code of the error as one letter from 'A' on, then
// its text.
inline constexpr char kFirstCode = 'A';

// What became of a request when an execution ended, or later.
enum class Ending : uint32_t {
  kHeld = 0,         // the backend goes on with it
  kReleased = 1,     // its inputs are not read any more
  kRescheduled = 2,  // to be executed once more
};

// What the backend has reported of a request's execution.
enum class Report : uint32_t {
  kNone = 0,
  kSuccess = 1,
  kFailure = 2,
};

// For each request of a batch, in the result of the batch (with a ResponseRecord and what belongs
// to it), or in a call (after the request's handle, without a response). The new values of the
// request's states follow as TensorRecords.
struct EndingRecord {
  uint32_t ending;  // Ending
  uint32_t states;
  uint32_t report;  // Report
  uint32_t reserved;
  uint64_t exec_start_ns;  // these if it is a success
  uint64_t compute_start_ns;
  uint64_t compute_end_ns;
  uint64_t exec_end_ns;
};
static_assert(sizeof(EndingRecord) == 48);

}  // namespace nereid::isolation
