// SPDX-License-Identifier: Apache-2.0
// The protocol between the server and a worker, the process that runs a Python model. They share
// one piece of anonymous memory:
//
//   control   struct Control: the work, its results, and the ring of the worker's calls
//   blocks    from kBlocksBegin: the server's, up to half of the region, then the worker's;
//             the latter half of the server's is for requests that are received there
//
// All offsets are from the start of the region. A block belongs to the side that made it, and
// starts with a BlockHeader that says whether the other side still uses it. Nothing that a worker
// writes is trusted: every offset, size and count is checked, and read once.
//
// layout.def has the records and their numbers, from which the worker's C and Python code get them
// too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nereid::python {

using Word = std::atomic<uint32_t>;

// clang-format off
#define NEREID_CONSTANT(name, python, value) inline constexpr uint64_t name = value;
#define NEREID_ENUM(type) enum class type : uint32_t {
#define NEREID_VALUE(type, name, python, value) name = value,
#define NEREID_ENUM_END(type) };
#define NEREID_RECORD(record, alignment) struct NEREID_ALIGNED(alignment) record {
#define NEREID_FIELD(record, offset, type, name) type name;
#define NEREID_ARRAY(record, offset, type, name, count) type name[count];
#define NEREID_RECORD_END(record, size) };
// clang-format on
#include "python_backend/layout.def"

#define NEREID_FIELD(record, offset, type, name) static_assert(offsetof(record, name) == offset);
#define NEREID_ARRAY(record, offset, type, name, count) \
  static_assert(offsetof(record, name) == offset);
#define NEREID_RECORD_END(record, size) static_assert(sizeof(record) == size);
#include "python_backend/layout.def"

static_assert(sizeof(Control) <= kBlocksBegin);
static_assert(sizeof(Control::ring) == kRingCapacity * sizeof(uint64_t));
static_assert(sizeof(Control::area_owners) == kAreas * sizeof(uint32_t));

inline constexpr uint64_t Padded(uint64_t size) { return (size + 7) & ~uint64_t{7}; }

}  // namespace nereid::python
