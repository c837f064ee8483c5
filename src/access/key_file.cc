// SPDX-License-Identifier: Apache-2.0
#include "access/key_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "access/crypto.h"
#include "access/json_reader.h"
#include "access/key_sources.h"
#include "access/rules.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace nereid::access {
namespace {

using rapidjson::Document;
using rapidjson::Value;

base::Status CheckRules(const std::string& file, std::string_view text) {
  CallerTable callers;
  return ParseRules(text, callers).status().WithPrefix(fmt::format("'{}': ", file));
}

base::Result<Document> ReadDocument(const std::string& file) {
  NEREID_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(file, kMaxKeyFile));
  NEREID_RETURN_IF_ERROR(CheckRules(file, text));
  return std::move(*ParseObject(text));
}

Value TextValue(std::string_view text, Document& document) {
  return Value(text.data(), static_cast<rapidjson::SizeType>(text.size()), document.GetAllocator());
}

Value ListValue(const std::vector<std::string>& texts, Document& document) {
  Value list(rapidjson::kArrayType);
  for (const std::string& text : texts) {
    list.PushBack(TextValue(text, document), document.GetAllocator());
  }
  return list;
}

std::vector<std::string> TextsOf(const Value& object, std::string_view name) {
  std::vector<std::string> texts;
  const Value* const value = Find(object, name);
  if (value == nullptr) return texts;
  if (value->IsString()) return {std::string(ViewOf(*value))};
  for (const Value& each : value->GetArray()) texts.emplace_back(ViewOf(each));
  return texts;
}

base::Status SystemError(const std::string& file) {
  return base::InternalError(fmt::format("'{}': {}", file, std::strerror(errno)));
}

// A link stays a link: what it points to is replaced.
base::Status Replace(const std::string& file, std::string_view text) {
  std::error_code error;
  std::string target = std::filesystem::weakly_canonical(file, error).string();
  if (error) target = file;
  struct stat old{};
  const bool is_there = ::stat(target.c_str(), &old) == 0;
  std::string temporary = target + ".XXXXXX";
  const base::UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) return SystemError(target);
  const mode_t mode = is_there ? old.st_mode & 07777 : S_IRUSR | S_IWUSR;
  // A file of another user, which only root can write, should stay readable to that user.
  const bool is_owned = !is_there || (old.st_uid == ::geteuid() && old.st_gid == ::getegid()) ||
                        ::fchown(fd.get(), old.st_uid, old.st_gid) == 0;
  if (!is_owned || ::fchmod(fd.get(), mode) != 0 || !base::WriteAll(fd.get(), text) ||
      ::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), target.c_str()) != 0) {
    const base::Status failure = SystemError(target);
    ::unlink(temporary.c_str());
    return failure;
  }
  return base::OkStatus();
}

base::Status WriteDocument(const std::string& file, const Document& document) {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer(buffer);
  writer.SetIndent(' ', 2);
  writer.SetFormatOptions(rapidjson::kFormatSingleLineArray);
  document.Accept(writer);
  const std::string text = std::string(buffer.GetString(), buffer.GetSize()) + "\n";
  NEREID_RETURN_IF_ERROR(CheckRules(file, text));
  return Replace(file, text);
}

}  // namespace

base::Result<std::string> AddKey(const std::string& file, const KeyEntry& entry) {
  Document document(rapidjson::kObjectType);
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    NEREID_ASSIGN_OR_RETURN(document, ReadDocument(file));
  }
  auto& allocator = document.GetAllocator();
  if (!document.HasMember("keys")) {
    document.AddMember("keys", Value(rapidjson::kArrayType), allocator);
  }
  Value& keys = document["keys"];
  for (const Value& key : keys.GetArray()) {
    if (FindText(key, "id") == entry.id) {
      return base::AlreadyExistsError(fmt::format("there is a key '{}' already", entry.id));
    }
  }
  NEREID_ASSIGN_OR_RETURN(std::string secret, MakeKey());
  Value key(rapidjson::kObjectType);
  key.AddMember("id", TextValue(entry.id, document), allocator);
  key.AddMember("sha256", TextValue(ToHex(HashOf(secret)), document), allocator);
  key.AddMember("scopes", ListValue(entry.scopes, document), allocator);
  if (!entry.models.empty()) {
    key.AddMember("models", ListValue(entry.models, document), allocator);
  }
  if (!entry.expires.empty()) {
    key.AddMember("expires", TextValue(entry.expires, document), allocator);
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::string created =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  key.AddMember("created", TextValue(created, document), allocator);
  keys.PushBack(key, allocator);
  NEREID_RETURN_IF_ERROR(WriteDocument(file, document));
  return secret;
}

base::Status RevokeKey(const std::string& file, std::string_view id) {
  NEREID_ASSIGN_OR_RETURN(Document document, ReadDocument(file));
  if (document.HasMember("keys")) {
    Value& keys = document["keys"];
    for (auto* key = keys.Begin(); key != keys.End(); ++key) {
      if (FindText(*key, "id") != id) continue;
      keys.Erase(key);
      return WriteDocument(file, document);
    }
  }
  return base::NotFoundError(fmt::format("there is no key '{}'", id));
}

base::Result<std::vector<KeyEntry>> ListKeys(const std::string& file) {
  NEREID_ASSIGN_OR_RETURN(const Document document, ReadDocument(file));
  std::vector<KeyEntry> entries;
  const Value* const keys = Find(document, "keys");
  if (keys == nullptr) return entries;
  for (const Value& key : keys->GetArray()) {
    entries.push_back({.id = std::string(FindText(key, "id").value_or("")),
                       .scopes = TextsOf(key, "scopes"),
                       .models = TextsOf(key, "models"),
                       .expires = std::string(FindText(key, "expires").value_or("")),
                       .created = std::string(FindText(key, "created").value_or(""))});
  }
  return entries;
}

}  // namespace nereid::access
