// SPDX-License-Identifier: Apache-2.0
// How the server and a worker, the process that runs a Python model, talk. They share one piece of
// anonymous memory:
//
//   control   struct Control: what is to be done, what is done, and the ring of the worker's calls
//   blocks    from kBlocksBegin: the server's, up to half of the region, then the worker's;
//             the latter half of the server's is for requests that are received there
//
// All offsets are from the start of the region. A block belongs to who made it, and starts with a
// BlockHeader that says whether the other side still uses it. Nothing that a worker writes is
// trusted: every offset, size and count is checked, and read once.
//
// worker/nereid_python/protocol.py is the same in Python.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nereid::python {

inline constexpr uint32_t kProtocolVersion = 2;

// What the server wants done, one at a time.
enum class Work : uint32_t {
  kComplete = 1,    // payload: the configuration; answered with the completed one
  kInitialize = 2,  // payload: keys and values of the arguments
  kExecute = 3,     // payload: BatchHeader …
  kFinalize = 4,
  kAskReady = 5,  // through the second mailbox, while others are in progress
};

// How a piece of work, or a call, ended.
enum class Outcome : uint32_t { kOk = 0, kError = 1 };

// What a worker asks of the server. Those with a reply are waited for by the calling thread.
enum class Call : uint32_t {
  kLog = 1,
  kSend = 2,
  kClose = 3,
  kIsCancelled = 4,
  kMetricFamilyNew = 5,
  kMetricFamilyDelete = 6,
  kMetricNew = 7,
  kMetricDelete = 8,
  kMetricIncrement = 9,
  kMetricSet = 10,
  kMetricObserve = 11,
  kMetricValue = 12,
  kLoadModel = 13,
  kUnloadModel = 14,
  kIsModelReady = 15,
  kInfer = 16,
  kStreamNext = 17,
  kStreamCancel = 18,
  kStreamClose = 19,
};

// One thing passed on at a time. The receiver sleeps on `word`, which changes with every one.
struct alignas(64) Mailbox {
  std::atomic<uint32_t> word;
  std::atomic<uint32_t> sleeping;
  uint32_t kind;     // Work, or Outcome
  uint32_t answers;  // of results: the `word` of the work they belong to
  uint64_t offset;   // of a block; 0 for none
  uint64_t size;     // of its payload
};

inline constexpr uint32_t kRingCapacity = 1024;

// The start of the region: mailboxes, the ring of the worker's calls, and who owns its parts.
struct Control {
  alignas(64) uint32_t version;
  uint32_t reserved;
  uint64_t region_size;
  Mailbox work;      // server to worker
  Mailbox done;      // worker to server
  Mailbox question;  // the same again for questions that do not wait for work
  Mailbox reply;
  alignas(64) std::atomic<uint32_t> ring_head;  // worker's
  std::atomic<uint32_t> ring_bell;
  std::atomic<uint32_t> ring_sleeping;
  alignas(64) std::atomic<uint32_t> ring_tail;  // server's
  std::atomic<uint32_t> ring_waiting;           // the worker waits for a place
  alignas(4096) uint64_t ring[kRingCapacity];   // offsets of blocks with calls
  // What the worker and the processes that its model forks settle among themselves: which of them,
  // by number, has which part of the last quarter of the region for its blocks, and who appends.
  alignas(64) uint32_t area_owners[64];
  uint32_t ring_owner;
};
static_assert(offsetof(Control, work) == 64 && offsetof(Control, done) == 128 &&
              offsetof(Control, question) == 192 && offsetof(Control, reply) == 256 &&
              offsetof(Control, ring_head) == 320 && offsetof(Control, ring_tail) == 384 &&
              offsetof(Control, ring) == 4096 && offsetof(Control, area_owners) == 12288);

inline constexpr uint64_t kBlocksBegin = 16384;
static_assert(sizeof(Control) <= kBlocksBegin);

// What every block begins with.
struct alignas(64) BlockHeader {
  // Of the server's: whether the worker still uses it. Of the worker's: 1 until the server has read
  // it, then 0; or 2 once it holds a reply, which the worker waits for.
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> sleeping;
  uint32_t kind;          // Call
  uint32_t outcome;       // of the reply
  uint64_t size;          // of the payload that follows
  uint64_t reply_offset;  // a block of the server's; 0 for an empty reply
  uint64_t reply_size;
};
static_assert(sizeof(BlockHeader) == 64);

// A batch: a count, then that many RequestRecords, then what they point to, relative to the
// payload.
struct BatchHeader {
  uint32_t count;
  uint32_t reserved;
};

// A request of a batch. Offsets without another note are from the start of the payload.
struct RequestRecord {
  uint64_t handle;
  uint64_t correlation_id;
  uint64_t timeout_us;
  uint64_t data;   // where offsets of tensors start, in the region
  uint64_t block;  // the payload of the block that all tensors are in; 0 for the batch's own
  // What describes tensors: the same bytes for requests of the same form, so that the worker need
  // not read them again.
  uint32_t form, form_size;
  uint32_t flags;
  uint32_t has_correlation_text;
  uint32_t id, id_size;
  uint32_t correlation_text, correlation_text_size;
  uint32_t parameters, parameters_size;
  uint32_t trace, trace_size;
};
static_assert(sizeof(RequestRecord) == 88);

// A form: counts of inputs and of requested outputs, then for each input a TensorRecord with its
// dimensions and its name, then for each output its length and its name. Names are padded to 8
// bytes.
struct FormHeader {
  uint32_t inputs;
  uint32_t outputs;
};

// Also how a worker describes outputs; `data` is then in the region, and not relative.
struct TensorRecord {
  uint32_t datatype;
  uint32_t dims;
  uint32_t name_size;
  uint32_t reserved;
  uint64_t data;
  uint64_t byte_size;
};
static_assert(sizeof(TensorRecord) == 32);

// What a worker answers to a batch: for each request a ResponseRecord, followed by its tensors and
// its parameters as JSON, or by a text if it is an error.
enum class ResponseKind : uint32_t { kNone = 0, kTensors = 1, kError = 2 };

// What came of one request.
struct ResponseRecord {
  uint32_t kind;
  uint32_t release_flags;
  uint32_t tensors;    // or the error's code
  uint32_t text_size;  // of the parameters, or of the error's text; padded to 8
};

inline constexpr uint64_t Padded(uint64_t size) { return (size + 7) & ~uint64_t{7}; }

}  // namespace nereid::python
