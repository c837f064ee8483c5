// SPDX-License-Identifier: Apache-2.0
#include "doctor/plugins.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "backend_host/framework.h"
#include "base/shared_library.h"
#include "doctor/child.h"

namespace nereid::doctor {
namespace {

namespace fs = std::filesystem;

// Libraries of frameworks have hundreds of megabytes, which a slow disk takes its time for.
constexpr std::chrono::seconds kLimit{60};

// A kind of plug-in: libtritonPREFIX_NAME.so in the folder NAME.
struct Kind {
  const char* area;      // of findings
  const char* plural;    // for people
  const char* prefix;    // in the names of libraries
  const char* required;  // a function that each must have
  const char* flag;      // of the server, which names the folder
};

constexpr Kind kBackends = {"backends", "backends", "", "TRITONBACKEND_ModelInstanceExecute",
                            "--backend-directory"};
constexpr Kind kCaches = {"caches", "caches", "cache", "TRITONCACHE_CacheInitialize",
                          "--cache-directory"};
constexpr Kind kAgents = {"repoagents", "repository agents", "repoagent",
                          "TRITONREPOAGENT_ModelAction", "--repoagent-directory"};

// What became of a plug-in that was opened, as it travels from the child.
enum Part : size_t { kError, kFramework, kVersion, kPath, kPartCount };
using Opened = std::vector<std::string>;

// Opens a plug-in. There is a framework if the plug-in is a backend that knows one.
Opened OpenPlugin(const std::string& path, const Kind& kind) {
  Opened opened(kPartCount);
  if (&kind == &kBackends) {
    auto facts = backend_host::AskAboutFramework(path);
    if (!facts.ok()) {
      opened[kError] = facts.status().message();
    } else if (*facts) {
      opened = {(*facts)->error, (*facts)->name, (*facts)->version, (*facts)->path};
    }
    return opened;
  }
  const auto library = base::SharedLibrary::Open(path);
  if (!library.ok()) {
    opened[kError] = library.status().message();
  } else if ((*library)->FindSymbol(kind.required) == nullptr) {
    opened[kError] = fmt::format("it has no function {}", kind.required);
  }
  return opened;
}

// What is not installed is no mistake: nobody needs all frameworks.
bool IsMissing(std::string_view error) {
  return error.find("cannot open shared object file: No such file") != std::string_view::npos ||
         error.find("no Python interpreter found") != std::string_view::npos ||
         error.find("cannot import numpy") != std::string_view::npos;
}

// Says how a framework that is missing can be had.
std::string HowToInstall(const std::string& backend) {
  std::string text = "Only its models need it; docs/platforms.md says how to install it.";
  for (const char* extra : {"pytorch", "tensorflow", "openvino"}) {
    if (backend == extra) text += fmt::format(" With the wheel: pip install 'nereid[{}]'.", extra);
  }
  return text;
}

void ExaminePlugin(const Kind& kind, const std::string& name, const std::string& path,
                   Report& report) {
  const std::string id = fmt::format("{}.{}", kind.area, name);
  const auto result = TryInChild([&] { return OpenPlugin(path, kind); }, kLimit);
  if (!result.ok() || result->size() != kPartCount) {
    report.Problem(id,
                   fmt::format("{} cannot be opened: {}", name,
                               result.ok() ? "it ends the process" : result.status().message()),
                   fmt::format("{} does not fit this machine, or is damaged.", path));
    return;
  }
  const Opened& opened = *result;
  const std::string& error = opened[kError];
  if (error.empty() && opened[kFramework].empty()) {
    report.Ok(id, fmt::format("{} opens", name));
  } else if (error.empty()) {
    report.Ok(id, fmt::format("{} opens: {} {} ({})", name, opened[kFramework], opened[kVersion],
                              opened[kPath]));
    report.versions.emplace_back(opened[kFramework],
                                 fmt::format("{} ({})", opened[kVersion], opened[kPath]));
  } else if (IsMissing(error)) {
    report.Note(id, fmt::format("{} cannot be used: {}", name, error), HowToInstall(name));
  } else if (opened[kFramework].empty()) {
    report.Problem(id, fmt::format("{} cannot be opened: {}", name, error),
                   fmt::format("{} is damaged, not a plug-in, or made for other versions of "
                               "libraries than this machine has.",
                               path));
  } else {
    report.Problem(id, fmt::format("{} cannot be used: {}", name, error),
                   fmt::format("Repair {}, or install another version.", opened[kFramework]));
  }
}

std::vector<std::string> FoldersIn(const std::string& folder, std::error_code& error) {
  std::vector<std::string> names;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    if (entry->is_directory(error)) names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  std::ranges::sort(names);
  return names;
}

void ExamineFolder(const Kind& kind, const std::string& folder, Report& report) {
  const std::string id = fmt::format("{}.folder", kind.area);
  std::error_code error;
  const std::vector<std::string> names = FoldersIn(folder, error);
  if (error) {
    const std::string text = fmt::format("{}: {}", folder, error.message());
    const std::string advice =
        fmt::format("Name the folder of {} with {}.", kind.plural, kind.flag);
    if (&kind == &kBackends) {
      report.Problem(id, text, advice);
    } else {
      report.Note(id, text, advice);
    }
    return;
  }
  report.Ok(id, fmt::format("{} in {}", kind.plural, folder));
  for (const std::string& name : names) {
    const fs::path inside = fs::path(folder) / name;
    const fs::path library = inside / fmt::format("libtriton{}_{}.so", kind.prefix, name);
    if (fs::exists(library, error)) {
      ExaminePlugin(kind, name, library.string(), report);
    } else if (fs::exists(inside / "model.py", error)) {
      report.Ok(fmt::format("{}.{}", kind.area, name), fmt::format("{} is run by Python", name));
    }
    // Other folders, such as those of a build, are none of the server's business.
  }
}

}  // namespace

void ExaminePlugins(const PluginFolders& folders, Report& report) {
  ExamineFolder(kBackends, folders.backends, report);
  ExamineFolder(kCaches, folders.caches, report);
  ExamineFolder(kAgents, folders.repository_agents, report);
}

}  // namespace nereid::doctor
