// SPDX-License-Identifier: Apache-2.0
#include "doctor/versions.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace nereid::doctor {
namespace {

using Versions = std::vector<std::pair<std::string, std::string>>;

// Returns a function of a library that the program has loaded, or null.
template <typename Function>
Function* Find(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

// The libraries that decide how the server behaves, and that systems exchange.
void ListLibraries(Versions& versions) {
  versions.emplace_back("glibc", ::gnu_get_libc_version());
  if (const auto openssl = Find<const char*(int)>("OpenSSL_version")) {
    versions.emplace_back("OpenSSL", openssl(0));
  }
  // The struct of nghttp2 begins with an int, the number, and the text.
  struct Nghttp2 {
    int age;
    int number;
    const char* text;
  };
  if (const auto nghttp2 = Find<const Nghttp2*(int)>("nghttp2_version")) {
    versions.emplace_back("nghttp2", nghttp2(0)->text);
  }
  const char* jemalloc = nullptr;
  size_t size = sizeof jemalloc;
  if (const auto control = Find<int(const char*, void*, size_t*, void*, size_t)>("mallctl");
      control != nullptr &&
      control("version", static_cast<void*>(&jemalloc), &size, nullptr, 0) == 0) {
    versions.emplace_back("jemalloc", jemalloc);
  }
}

std::string ContainerText(const base::SystemFiles& files) {
  if (files.Exists("/run/.containerenv")) return "podman";
  if (files.Exists("/.dockerenv")) return "docker";
  if (files.Exists("/var/run/secrets/kubernetes.io")) return "Kubernetes";
  return "none seen";
}

std::string Unquoted(std::string text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

std::string SystemName(const base::SystemFiles& files) {
  const std::string text = files.Text("/etc/os-release").value_or("");
  constexpr std::string_view kName = "PRETTY_NAME=";
  for (const std::string_view line : base::Lines(text)) {
    if (line.starts_with(kName)) return Unquoted(std::string(line.substr(kName.size())));
  }
  return "a system without /etc/os-release";
}

}  // namespace

void ListVersions(const base::SystemFiles& files, const std::string& version, Report& report) {
  Versions versions;
  std::error_code error;
  versions.emplace_back(
      "Nereid", fmt::format("{} ({})", version,
                            std::filesystem::read_symlink("/proc/self/exe", error).string()));
  versions.emplace_back("System", SystemName(files));
  utsname kernel{};
  ::uname(&kernel);
  versions.emplace_back("Kernel",
                        fmt::format("{} {} {}", kernel.sysname, kernel.release, kernel.machine));
  versions.emplace_back("Container", ContainerText(files));
  if (const auto product = files.Text("/sys/class/dmi/id/product_name")) {
    versions.emplace_back("Machine", *product);
  }
  versions.emplace_back("Processor", files.Field("/proc/cpuinfo", "model name").value_or("?"));
  ListLibraries(versions);
  // A framework that several backends use is listed once.
  for (auto& found : report.versions) {
    if (std::ranges::find(versions, found) == versions.end()) versions.push_back(std::move(found));
  }
  report.versions = std::move(versions);
}

}  // namespace nereid::doctor
