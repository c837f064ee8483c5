// SPDX-License-Identifier: Apache-2.0
#include "redis_cache/redis_settings.h"

#include <cstdlib>
#include <limits>
#include <optional>

#include "cache_kit/settings.h"

namespace nereid::redis_cache {
namespace {

using cache::Settings;

// Reads settings and keeps the first error; later settings are still read.
class SettingsReader {
 public:
  explicit SettingsReader(const Settings& settings) : settings_(settings) {}

  void Read(const char* name, std::string& value) {
    if (const auto text = settings_.Text(name)) value = *text;
  }
  void Read(const char* name, bool& value) {
    const auto text = settings_.Text(name);
    if (!text) return;
    value = *text == "true";
    if (!value && *text != "false") Refuse(name, "true or false", *text);
  }
  template <typename Number>
  void Read(const char* name, Number& value) {
    const auto text = settings_.Text(name);
    if (!text) return;
    const auto number = cache::ParseNumber(*text);
    if (number && *number <= static_cast<uint64_t>(std::numeric_limits<int>::max())) {
      value = Number(static_cast<int>(*number));
    } else {
      Refuse(name, "a whole number", *text);
    }
  }
  const std::string& error() const { return error_; }

 private:
  void Refuse(const char* name, const char* expected, const std::string& text) {
    if (!error_.empty()) return;
    error_ = "Failed to initialize RedisCache: '" + std::string(name) + "' expects " + expected +
             ", got '" + text + "'";
  }

  const Settings& settings_;
  std::string error_;
};

void ReadEnvironment(const char* name, std::string& value) {
  if (const char* text = std::getenv(name); text != nullptr) value = text;
}

// As in Triton, an invalid number is 0; connecting then fails with an error that contains it.
int ReadPort(const Settings& settings) {
  const auto number = cache::ParseNumber(settings.Text("port").value_or(""));
  return number && *number <= 65535 ? static_cast<int>(*number) : 0;
}

}  // namespace

std::variant<RedisSettings, std::string> ReadSettings(const char* json) {
  const Settings settings(json);
  if (!settings.Has("host") || !settings.Has("port")) {
    // Users of Triton know this text.
    return std::string(
        "Failed to initialize RedisCache, didn't specify address. Must at a minimum specify 'host' "
        "and 'port' in the configuration - e.g. tritonserver --cache-config redis,host=redis "
        "--cache-config redis,port=6379 --model-repository=/models ...");
  }
  RedisSettings to;
  ReadEnvironment("TRITONCACHE_REDIS_USERNAME", to.user);
  ReadEnvironment("TRITONCACHE_REDIS_PASSWORD", to.password);
  SettingsReader reader(settings);
  reader.Read("host", to.host);
  to.port = ReadPort(settings);
  reader.Read("user", to.user);
  reader.Read("password", to.password);
  reader.Read("db", to.database);
  reader.Read("connect_timeout", to.connect_timeout);
  reader.Read("socket_timeout", to.socket_timeout);
  reader.Read("wait_timeout", to.wait_timeout);
  reader.Read("pool_size", to.pool_size);
  if (to.pool_size == 0) to.pool_size = 1;
  reader.Read("tls_enabled", to.tls.is_enabled);
  reader.Read("cert", to.tls.certificate);
  reader.Read("key", to.tls.key);
  reader.Read("cacert", to.tls.ca_certificate);
  reader.Read("cacert_dir", to.tls.ca_folder);
  reader.Read("sni", to.tls.server_name);
  if (!reader.error().empty()) return reader.error();
  return to;
}

}  // namespace nereid::redis_cache
