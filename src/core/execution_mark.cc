// SPDX-License-Identifier: Apache-2.0
#include "core/execution_mark.h"

#include <algorithm>

#include "base/fixed_text.h"
#include "base/mutex.h"

namespace nereid::core {
namespace {

using Slot = ExecutionMark::Slot;

// A signal handler has access to globals only.
std::atomic<Slot*> first_slot{nullptr};
base::Mutex slots_mutex;  // held while names are written, and while they are read without haste
Slot* free_slots NEREID_GUARDED_BY(slots_mutex) = nullptr;

// The requests that are named at most; a batch may have a thousand.
constexpr size_t kMaxRequests = 8;
// How much of an id is shown.
constexpr size_t kMaxId = 64;

void AddRequest(base::FixedText& text, const Request* request, const base::MemoryReader& reader) {
  std::string_view id;
  std::array<char, kMaxId> copy{};
  if (!reader.Read(&id, &request->id, sizeof(std::string_view))) return text.Add("(unreadable)");
  if (id.empty()) return text.Add("(without an id)");
  const size_t size = std::min(id.size(), copy.size());
  if (!reader.Read(copy.data(), id.data(), size)) return text.Add("(unreadable)");
  text.AddQuoted({copy.data(), size});
}

void AddRequests(base::FixedText& text, const Slot& slot, const base::MemoryReader& reader) {
  const size_t count = slot.request_count.load();
  if (count == 0) return;
  text.Add(count == 1 ? ", request: " : ", requests: ");
  Request* const* const requests = slot.requests.load();
  for (size_t i = 0; i < std::min(count, kMaxRequests); ++i) {
    if (i > 0) text.Add(", ");
    const Request* request = nullptr;
    const void* const place = static_cast<const void*>(requests + i);
    if (!reader.Read(static_cast<void*>(&request), place, sizeof(const Request*))) {
      return text.Add("(unreadable)");
    }
    AddRequest(text, request, reader);
  }
  if (count <= kMaxRequests) return;
  text.Add(" and ");
  text.AddNumber(static_cast<int64_t>(count - kMaxRequests));
  text.Add(" more");
}

}  // namespace

void ExecutionMark::Name::Set(std::string_view name) {
  size = std::min(name.size(), text.size());
  std::copy_n(name.begin(), size, text.begin());
}

ExecutionMark::ExecutionMark(Purpose purpose, std::string_view model, int64_t version,
                             std::string_view instance)
    : slot_(TakeSlot(purpose, model, version, instance)) {}

ExecutionMark::~ExecutionMark() {
  base::MutexLock lock(slots_mutex);
  slot_.is_used.store(false);
  slot_.next_free = free_slots;
  free_slots = &slot_;
}

ExecutionMark::Slot& ExecutionMark::TakeSlot(Purpose purpose, std::string_view model,
                                             int64_t version, std::string_view instance) {
  base::MutexLock lock(slots_mutex);
  Slot* slot = free_slots;
  if (slot != nullptr) {
    free_slots = slot->next_free;
  } else {
    slot = new Slot;
    slot->next = first_slot.load();
    first_slot.store(slot);
  }
  if (slot->heartbeat.is_working()) slot->heartbeat.Rest();
  slot->purpose = purpose;
  slot->model.Set(model);
  slot->instance.Set(instance);
  slot->version = version;
  slot->is_used.store(true);
  return *slot;
}

const Slot* ExecutionMark::FirstSlot() { return first_slot.load(); }

size_t DescribeExecution(const Slot& slot, const base::MemoryReader& reader,
                         std::span<char, kExecutionTextSize> memory) {
  base::FixedText text(memory);
  text.Add(slot.purpose == ExecutionMark::Purpose::kLoading ? "loading" : "executing");
  text.Add(" model ");
  text.AddQuoted(slot.model.view());
  text.Add(" version ");
  text.AddNumber(slot.version);
  if (slot.instance.size > 0) {
    text.Add(", instance ");
    text.AddQuoted(slot.instance.view());
  }
  AddRequests(text, slot, reader);
  return text.size();
}

std::string DescribeExecutionsOf(pid_t thread) {
  const base::MemoryReader reader;
  std::string all;
  base::MutexLock lock(slots_mutex);
  for (const Slot* slot = first_slot.load(); slot != nullptr; slot = slot->next) {
    if (!slot->is_used.load() || !slot->heartbeat.is_working()) continue;
    if (slot->heartbeat.thread() != thread) continue;
    std::array<char, kExecutionTextSize> text;
    if (!all.empty()) all += "; ";
    all.append(text.data(), DescribeExecution(*slot, reader, text));
  }
  return all;
}

}  // namespace nereid::core
