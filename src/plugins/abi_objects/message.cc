// SPDX-License-Identifier: Apache-2.0
#include "abi_objects/message.h"

#include "abi_objects/error.h"

namespace nereid::abi_objects {

std::string QuoteJson(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20) {
      quoted += "\\u00";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string ObjectJson(const std::map<std::string, std::string>& values) {
  std::string json = "{";
  const char* separator = "";
  for (const auto& [key, value] : values) {
    json += separator + QuoteJson(key) + ":" + QuoteJson(value);
    separator = ",";
  }
  return json + "}";
}

std::string SettingsJson(std::string_view name,
                         const std::map<std::string, std::string>& settings) {
  return "{" + QuoteJson(name) + ":" + ObjectJson(settings) + "}";
}

}  // namespace nereid::abi_objects

using nereid::abi_objects::RunApiCall;
using nereid::base::OkStatus;

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message,
                                                              const char* base, size_t byte_size) {
  return RunApiCall([&] {
    *message = nullptr;
    *message = new TRITONSERVER_Message{std::string(base, byte_size)};
    return OkStatus();
  });
}

TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  delete message;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message,
                                                        const char** base, size_t* byte_size) {
  *base = message->json.data();
  *byte_size = message->json.size();
  return nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
