// SPDX-License-Identifier: Apache-2.0
// Writes JSON for a worker.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>

namespace nereid::python {

// A flat JSON object in the making.
class JsonObject {
 public:
  JsonObject() { writer_.StartObject(); }
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;

  void Add(const char* key, const std::string& value) {
    writer_.Key(key);
    writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  }
  // Not for texts, whose pointers would become true.
  void Add(const char* key, const char* value) = delete;
  void Add(const char* key, bool value) {
    writer_.Key(key);
    writer_.Bool(value);
  }
  void Add(const char* key, int value) {
    writer_.Key(key);
    writer_.Int(value);
  }

  // Returns the object, to which no more is added.
  std::string Text() {
    writer_.EndObject();
    return {text_.GetString(), text_.GetSize()};
  }

 private:
  rapidjson::StringBuffer text_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{text_};
};

}  // namespace nereid::python
