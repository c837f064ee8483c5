// SPDX-License-Identifier: Apache-2.0
// The worker's end of the memory that it shares with the server: work and questions arrive, results
// and calls go back. The server's end is in backends/python (mailboxes.h, call_ring.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "python_backend/region.h"

namespace nereid::isolation {

// Bytes for the server in the making: records, and the blocks with the tensors that they refer to.
struct Message {
  std::vector<char> records;
  std::vector<python::BlockPool::Block> tensors;

  template <typename Value>
  void Append(const Value& value) {
    const auto* const bytes = reinterpret_cast<const char*>(&value);
    records.insert(records.end(), bytes, bytes + sizeof(value));
  }
  void Append(std::span<const int64_t> values) {
    const auto* const bytes = reinterpret_cast<const char*>(values.data());
    records.insert(records.end(), bytes, bytes + values.size_bytes());
  }
  // The text and the padding after it.
  void AppendText(std::string_view text) {
    records.insert(records.end(), text.begin(), text.end());
    records.resize(python::Padded(records.size()));
  }
  void AppendSized(std::string_view text) {
    Append(uint64_t{text.size()});
    AppendText(text);
  }
};

// Thread-safe, except that one thread takes work and one takes questions.
class Channel {
 public:
  // Takes the descriptor of the memory.
  static base::Result<std::unique_ptr<Channel>> Open(int memory);

  // What the server wants: the kind, the number that the result must bear, and the payload.
  struct Item {
    python::Work kind;
    uint32_t ticket;
    uint64_t offset;  // of the payload; 0 for none
    uint64_t size;
  };
  // Says that the worker is ready, and waits for the first work.
  Item FirstWork();
  // Says how the current work ended, and waits for the next.
  Item NextWork(const Item& current, python::Outcome outcome, Message result);
  // Says how the last work ended.
  void EndWork(const Item& current, python::Outcome outcome, Message result);

  // Waits for a question. `ticket` is that of the last one, 0 at first.
  Item NextQuestion(uint32_t ticket);
  void Answer(const Item& question, python::Outcome outcome, Message result);

  // Makes a call that has no reply.
  void Call(python::Call kind, Message payload);
  // Waits until the clients of a request have taken enough of what was sent for it.
  void AwaitSent(uint64_t request);

  // The payload of an item. What the server writes is trusted.
  std::span<const char> Payload(const Item& item) const;
  const char* At(uint64_t offset) const { return region_->At(offset); }
  // Returns the offset of bytes in a block.
  uint64_t OffsetOf(const void* data) const {
    return static_cast<uint64_t>(static_cast<const char*>(data) - region_->base());
  }
  // Lets the server use the block of an item's payload again.
  void LetGo(uint64_t payload_offset) const;

  // Returns a block for a tensor of `size` bytes.
  base::Result<python::BlockPool::Block> Allocate(uint64_t size);

 private:
  explicit Channel(std::unique_ptr<python::Region> region);

  // A message on its way. It stays until the server has released its first block.
  struct Sent {
    python::BlockPool::Block records;
    std::vector<python::BlockPool::Block> tensors;
  };

  // Writes the message to the shared memory, and returns its header; null for an empty message.
  // `kind` is that of a call.
  python::BlockHeader* Write(Message message, uint32_t kind = 0);
  void Finish(const Item& current, python::Outcome outcome, Message result);
  // Makes a call; null for an empty message, which makes none.
  python::BlockHeader* Post(python::Call kind, Message payload);

  const std::unique_ptr<python::Region> region_;
  python::BlockPool blocks_;
  base::Mutex sent_mutex_;
  std::vector<Sent> sent_ NEREID_GUARDED_BY(sent_mutex_);
  base::Mutex ring_mutex_;
  // How often polling for work failed, and how often it was left out since; see NextWork.
  uint32_t misses_ = 0;
  uint32_t skipped_ = 0;
};

}  // namespace nereid::isolation
