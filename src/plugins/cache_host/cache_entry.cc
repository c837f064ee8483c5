// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/cache_manager.cc and cache_entry.cc.
#include "cache_host/cache_entry.h"

#include "cache_host/packed_response.h"

namespace nereid::cache_host {
namespace {

std::string Mismatch(const char* what, size_t expected, size_t received) {
  return std::string(what) + " does not match. Expected: " + std::to_string(expected) +
         ", received: " + std::to_string(received);
}

base::Status CheckOneBuffer(const CacheEntry& entry) {
  if (entry.buffers.size() != 1) {
    return base::InternalError(
        Mismatch("Expected number of responses in cache", 1, entry.buffers.size()));
  }
  if (entry.buffers[0].base == nullptr) return base::InternalError("buffer was nullptr");
  return base::OkStatus();
}

std::span<std::byte> Bytes(const CacheEntry::Buffer& buffer) {
  return {static_cast<std::byte*>(buffer.base), buffer.byte_size};
}

}  // namespace

base::Status ResponsePacker::Copy(const CacheEntry& entry) {
  NEREID_RETURN_IF_ERROR(CheckOneBuffer(entry));
  if (entry.buffers[0].byte_size != byte_size_) {
    return base::InternalError(
        Mismatch("Expected size of buffer in cache", byte_size_, entry.buffers[0].byte_size));
  }
  PackResponse(key_, response_, Bytes(entry.buffers[0]), integrity_);
  return base::OkStatus();
}

base::Status ResponseUnpacker::Copy(const CacheEntry& entry) {
  if (is_done_) return base::InternalError("the entry has been copied already");
  if (base::Status status = CheckOneBuffer(entry); !status.ok()) {
    defect_ = status;
    return status;
  }
  const std::span<const std::byte> packed = Bytes(entry.buffers[0]);
  defect_ = CheckPackedResponse(key_, packed, *response_.request().model, integrity_);
  if (!defect_.ok()) return defect_;
  NEREID_RETURN_IF_ERROR(UnpackResponse(packed, response_));
  is_done_ = true;
  return base::OkStatus();
}

}  // namespace nereid::cache_host
