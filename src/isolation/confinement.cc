// SPDX-License-Identifier: Apache-2.0
#include "isolation/confinement.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "isolation/landlock.h"
#include "isolation/system_calls.h"
#include "isolation_profile/confinement_text.h"

namespace nereid::isolation {
namespace {

namespace fs = std::filesystem;

// What programs and libraries read on any system; none of it is a user's.
constexpr const char* kSystemFiles[] = {
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/proc",
    "/sys",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/group",
    "/etc/OpenCL",
    "/etc/ssl/openssl.cnf",
};
constexpr const char* kNetworkFiles[] = {"/etc/resolv.conf", "/etc/hosts",    "/etc/host.conf",
                                         "/etc/gai.conf",    "/etc/services", "/etc/ssl/certs"};
constexpr const char* kDevices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                    "/dev/urandom", "/dev/dri",  "/dev/kfd",  "/dev/dxg"};
// Variables of the environment that name files or folders of libraries.
constexpr const char* kPathVariables[] = {"LD_LIBRARY_PATH", "NEREID_ONNXRUNTIME_LIBRARY",
                                          "PYTHONHOME",      "PYTHONPATH",
                                          "VIRTUAL_ENV",     "CONDA_PREFIX"};

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Adds the folders where a library looks for others, after opening it.
void AddLibrary(const std::string& path, std::vector<std::string>& readable) {
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return;  // loading the backend says why
  Dl_serinfo sizes{};
  if (dlinfo(library, RTLD_DI_SERINFOSIZE, &sizes) != 0) return;
  std::vector<Dl_serinfo> memory(sizes.dls_size / sizeof(Dl_serinfo) + 1);
  Dl_serinfo* const info = memory.data();
  if (dlinfo(library, RTLD_DI_SERINFOSIZE, info) != 0) return;
  if (dlinfo(library, RTLD_DI_SERINFO, info) != 0) return;
  for (unsigned i = 0; i < info->dls_cnt; ++i) readable.emplace_back(info->dls_serpath[i].dls_name);
}

void AddVariables(std::vector<std::string>& readable) {
  for (const char* const name : kPathVariables) {
    const char* const value = std::getenv(name);
    std::string_view rest = value == nullptr ? "" : value;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(':'), rest.size());
      const fs::path path(rest.substr(0, end));
      std::error_code error;
      if (path.is_absolute()) {
        readable.push_back((fs::is_directory(path, error) ? path : path.parent_path()).string());
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
}

void AddDevices(std::vector<std::string>& writable) {
  for (const char* const device : kDevices) writable.emplace_back(device);
  std::error_code error;
  for (auto entry = fs::directory_iterator("/dev", error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("nvidia")) writable.push_back(entry->path().string());
  }
}

// The paths of `folder` itself and of what links in it lead to.
void AddLinkTargets(const std::string& folder, std::vector<std::string>& paths) {
  constexpr int kMaxEntries = 100'000;
  constexpr int kMaxDepth = 8;
  std::error_code error;
  int entries = 0;
  auto entry = fs::recursive_directory_iterator(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator() && entries < kMaxEntries;
       entry.increment(error), ++entries) {
    if (entry.depth() >= kMaxDepth) entry.disable_recursion_pending();
    if (!entry->is_symlink(error)) continue;
    std::error_code broken;
    const fs::path target = fs::canonical(entry->path(), broken);
    if (!broken) paths.push_back(target.string());
  }
}

base::Status LimitData(uint64_t bytes) {
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  if (bytes == 0 || setrlimit(RLIMIT_DATA, &limit) == 0) return {};
  return base::UnavailableError(std::string("the kernel does not limit its memory: ") +
                                std::strerror(errno));
}

FileRights RightsOf(const Confinement& confinement) {
  FileRights rights{.readable = confinement.readable, .writable = confinement.writable};
  for (const std::string& path : confinement.models) {
    rights.readable.push_back(path);
    AddLinkTargets(path, rights.readable);
  }
  for (const char* const path : kSystemFiles) rights.readable.emplace_back(path);
  if (confinement.may_use_network) {
    for (const char* const path : kNetworkFiles) rights.readable.emplace_back(path);
  }
  for (const std::string& library : confinement.libraries) AddLibrary(library, rights.readable);
  AddVariables(rights.readable);
  AddDevices(rights.writable);
  std::erase_if(rights.readable, [](const std::string& path) { return !Exists(path); });
  std::erase_if(rights.writable, [](const std::string& path) { return !Exists(path); });
  return rights;
}

}  // namespace

Confinement Confinement::Read(std::string_view text) {
  Confinement confinement;
  const auto next = [&text] {
    const size_t end = std::min(text.find(kSeparator), text.size());
    std::string taken(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return taken;
  };
  while (!text.empty()) {
    const std::string key = next();
    std::string value = next();
    if (key == confine::kModel)
      confinement.models.push_back(std::move(value));
    else if (key == confine::kReadable)
      confinement.readable.push_back(std::move(value));
    else if (key == confine::kWritable)
      confinement.writable.push_back(std::move(value));
    else if (key == confine::kLibrary)
      confinement.libraries.push_back(std::move(value));
    else if (key == confine::kNetwork)
      confinement.may_use_network = value == "1";
    else if (key == confine::kFiles)
      confinement.may_use_all_files = value == "1";
    else if (key == confine::kStrict)
      confinement.is_strict = value == "1";
    else if (key == confine::kMemory) {
      confinement.data_bytes = std::strtoull(value.c_str(), nullptr, 10);
    }
  }
  return confinement;
}

base::Result<std::vector<std::string>> Confine(const Confinement& confinement) {
  std::vector<std::string> lacking;
  if (const base::Status limited = LimitData(confinement.data_bytes); !limited.ok()) {
    lacking.emplace_back(limited.message());
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    lacking.emplace_back("the process may gain rights by programs that it starts");
  }
  Landlock landlock;
  if (!confinement.may_use_all_files) landlock.files = RightsOf(confinement);
  landlock.may_use_network = confinement.may_use_network;
  const base::Result<LandlockResult> done = Restrict(landlock);
  bool confines_signals = false;
  if (done.ok()) {
    confines_signals = done->confines_signals;
  } else {
    lacking.emplace_back(done.status().message());
  }
  const base::Status filtered = FilterSystemCalls(
      {.may_use_network = confinement.may_use_network, .confines_signals = !confines_signals});
  if (!filtered.ok()) lacking.emplace_back(filtered.message());
  if (confinement.is_strict && !lacking.empty()) {
    return base::UnavailableError("isolation_strict: " + lacking.front());
  }
  return lacking;
}

}  // namespace nereid::isolation
