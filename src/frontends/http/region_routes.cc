// SPDX-License-Identifier: Apache-2.0
// The order of checks and the texts are those of Triton's src/http_server.cc, built with CUDA if
// there is a GPU and without it otherwise.
#include "http/region_routes.h"

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include <openssl/evp.h>

#include "common/json_text.h"
#include "http/json_dom.h"

namespace nereid::http {
namespace {

using base::InvalidArgumentError;
using memory::RegionKind;

std::string StatusJson(const std::vector<memory::RegionStatus>& list) {
  std::string json = "[";
  for (const memory::RegionStatus& region : list) {
    if (json.size() > 1) json += ',';
    json += "{\"name\":";
    common::AppendJsonString(json, region.name);
    if (region.kind == RegionKind::kSystem) {
      json += ",\"key\":";
      common::AppendJsonString(json, region.key);
      json += ",\"offset\":";
      common::AppendJsonInteger(json, region.offset);
    } else {
      json += ",\"device_id\":";
      common::AppendJsonInteger(json, region.device);
    }
    json += ",\"byte_size\":";
    common::AppendJsonInteger(json, region.byte_size);
    json += '}';
  }
  return json + "]";
}

base::Result<uint64_t> UnsignedMember(const JsonValue& object, const char* name) {
  const JsonValue* const member = FindMember(object, name);
  if (member != nullptr) return JsonUnsigned(*member, "");
  return base::InternalError(std::string("attempt to access non-existing object member '") + name +
                             "'");
}

base::Status RegisterSystem(memory::RegionTable& regions, std::string_view name,
                            std::string_view body) {
  NEREID_RETURN_IF_ERROR(regions.CheckAllowed());
  if (name.empty()) {
    return InvalidArgumentError(
        "'region name' is necessary to register system shared memory region");
  }
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(ParseJson(body, document));
  const JsonValue* const key = FindMember(document, "key");
  if (key == nullptr) {
    return InvalidArgumentError("Shared memory register request has no 'key' field");
  }
  memory::SystemRegionSpec spec{.name = std::string(name), .key = {}};
  NEREID_ASSIGN_OR_RETURN(const std::string_view key_text, JsonText(*key, ""));
  spec.key = key_text.substr(0, key_text.find('\0'));
  if (const JsonValue* offset = FindMember(document, "offset")) {
    NEREID_ASSIGN_OR_RETURN(spec.offset, JsonUnsigned(*offset, ""));
  }
  const JsonValue* const byte_size = FindMember(document, "byte_size");
  if (byte_size == nullptr) {
    return InvalidArgumentError("Shared memory register request has no 'byte_size' field");
  }
  NEREID_ASSIGN_OR_RETURN(spec.byte_size, JsonUnsigned(*byte_size, ""));
  return regions.RegisterSystem(spec);
}

// Decodes the handle in `text` from base64; nothing if it is invalid.
std::optional<memory::CudaIpcHandle> DecodeHandle(std::string_view text) {
  memory::CudaIpcHandle handle;
  constexpr size_t kTextSize = (sizeof handle.bytes + 2) / 3 * 4;
  constexpr size_t kPadding = kTextSize / 4 * 3 - sizeof handle.bytes;
  std::array<unsigned char, kTextSize / 4 * 3> bytes;
  static_assert(kPadding == 2);
  if (text.size() != kTextSize || !text.ends_with("==") ||
      EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size())) != static_cast<int>(bytes.size())) {
    return std::nullopt;
  }
  std::memcpy(handle.bytes.data(), bytes.data(), handle.bytes.size());
  return handle;
}

base::Status RegisterCuda(memory::RegionTable& regions, std::string_view name,
                          std::string_view body) {
  NEREID_RETURN_IF_ERROR(regions.CheckAllowed());
  if (name.empty()) {
    return InvalidArgumentError("'region name' is necessary to register cuda shared memory region");
  }
  NEREID_RETURN_IF_ERROR(regions.CheckCuda(name));
  rapidjson::Document document;
  NEREID_RETURN_IF_ERROR(ParseJson(body, document));
  const JsonValue* const raw_handle = FindMember(document, "raw_handle");
  if (raw_handle == nullptr) {
    return InvalidArgumentError("Shared memory register request has no 'raw_handle' field");
  }
  NEREID_ASSIGN_OR_RETURN(const std::string_view text, TextMember(*raw_handle, "b64", ""));
  memory::CudaRegionSpec spec{.name = std::string(name), .handle = {}};
  NEREID_ASSIGN_OR_RETURN(spec.byte_size, UnsignedMember(document, "byte_size"));
  NEREID_ASSIGN_OR_RETURN(const uint64_t device, UnsignedMember(document, "device_id"));
  spec.device = static_cast<int64_t>(device);
  const auto handle = DecodeHandle(text);
  if (!handle) {
    return InvalidArgumentError("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t");
  }
  spec.handle = *handle;
  return regions.RegisterCuda(spec);
}

}  // namespace

base::Result<std::string> HandleRegionRequest(memory::RegionTable& regions, const Route& route,
                                              std::string_view body) {
  base::Status status;
  switch (route.kind) {
    case RouteKind::kSystemRegionStatus:
    case RouteKind::kCudaRegionStatus: {
      const bool is_cuda = route.kind == RouteKind::kCudaRegionStatus;
      NEREID_ASSIGN_OR_RETURN(
          const auto list,
          regions.ReadStatus(is_cuda ? RegionKind::kCuda : RegionKind::kSystem, route.region));
      return StatusJson(list);
    }
    case RouteKind::kSystemRegionRegister:
      status = RegisterSystem(regions, route.region, body);
      break;
    case RouteKind::kCudaRegionRegister:
      status = RegisterCuda(regions, route.region, body);
      break;
    case RouteKind::kSystemRegionUnregister:
      status = regions.Unregister(RegionKind::kSystem, route.region);
      break;
    default:
      status = regions.Unregister(RegionKind::kCuda, route.region);
      break;
  }
  if (!status.ok()) return status;
  return std::string();
}

}  // namespace nereid::http
