// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/library.h"

#include <array>
#include <cstdint>

#include "backend_kit/handles.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

// The full library first, then those that only run plans: the lean one runs all version-compatible
// plans of its major version, the dispatch one only plans that carry their own lean library.
std::vector<std::string> NamesOf(int major) {
  return {StrCat("libnvinfer.so.", major), StrCat("libnvinfer_lean.so.", major),
          StrCat("libnvinfer_dispatch.so.", major)};
}

constexpr std::array<int, 2> kMajors = {11, 10};

std::string MadeBy(const PlanHeader& plan) {
  return StrCat("the plan was made by TensorRT ", plan.major, ".", plan.minor, ".", plan.patch);
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::Open(const std::string& name) {
  NEREID_KIT_ASSIGN(const OpenedLibrary opened, OpenedLibrary::Open(name));
  int32_t (*version)() = nullptr;
  std::shared_ptr<Library> library(new Library());
  library->name_ = name;
  NEREID_KIT_TRY(opened.Find("getInferLibVersion", &version));
  NEREID_KIT_TRY(opened.Find("createInferRuntime_INTERNAL", &library->create_runtime_));
  library->version_ = version();
  library->slots_ = SlotsOf(library->major());
  if (library->slots_ == nullptr) {
    return Error::Unsupported(StrCat(name, " is TensorRT ", library->version(),
                                     ", but only TensorRT 10 and 11 are supported"));
  }
  return std::shared_ptr<const Library>(library);
}

Object* Library::NewRuntime(void* logger) const {
  // The library compares the version that a caller was compiled for with its own.
  void* const made = create_runtime_(logger, version_);
  // Where CUDA does not start, the lean library returns a small number instead of null.
  constexpr uintptr_t kFirstPage = 4096;
  return reinterpret_cast<uintptr_t>(made) < kFirstPage ? nullptr : static_cast<Object*>(made);
}

std::shared_ptr<const Library> Libraries::OpenFirst(const std::vector<std::string>& names,
                                                    std::string* failures) {
  for (const std::string& name : names) {
    for (const auto& library : open_) {
      if (library->name() == name) {
        return library;
      }
    }
    auto opened = Library::Open(name);
    if (opened.ok()) {
      open_.push_back(opened.value());
      return open_.back();
    }
    *failures += StrCat(failures->empty() ? "" : "; ", opened.TakeError().message());
  }
  return nullptr;
}

Result<std::shared_ptr<const Library>> Libraries::For(const PlanHeader& plan) {
  const backend::MutexLock lock(mutex_);
  std::string failures;
  std::shared_ptr<const Library> found;
  if (!name_.empty()) {
    found = OpenFirst({name_}, &failures);
  } else {
    if (SlotsOf(plan.major) != nullptr) {
      found = OpenFirst(NamesOf(plan.major), &failures);
    }
    for (size_t i = 0; found == nullptr && i < kMajors.size(); ++i) {
      if (kMajors[i] != plan.major) {
        found = OpenFirst(NamesOf(kMajors[i]), &failures);
      }
    }
  }
  if (found == nullptr) {
    return Error::Unavailable(StrCat(
        "TensorRT's library cannot be opened; ", MadeBy(plan),
        ", so install that version where the loader finds it (LD_LIBRARY_PATH), or name it with "
        "--backend-config=tensorrt,library=FILE. The loader said: ",
        failures));
  }
  if (found->major() != plan.major && !is_version_compatible_) {
    return Error::Unsupported(StrCat(
        MadeBy(plan), ", and the library here is TensorRT ", found->version(), " (", found->name(),
        "). Plans are tied to their version: make the plan again, install TensorRT ", plan.major,
        ", or, if it was built to be version compatible, allow that with "
        "--backend-config=tensorrt,version-compatible=true"));
  }
  return found;
}

Result<backend::Framework> FindFramework() {
  std::string failures;
  for (const int major : kMajors) {
    for (const std::string& name : NamesOf(major)) {
      auto opened = Library::Open(name);
      if (opened.ok()) {
        return backend::Framework{opened.value()->version(), opened.value()->path()};
      }
      failures += StrCat(failures.empty() ? "" : "; ", opened.TakeError().message());
    }
  }
  return Error::Unavailable(StrCat(
      "TensorRT's library cannot be opened; install TensorRT 10 or 11 where the loader finds "
      "it (LD_LIBRARY_PATH). The loader said: ",
      failures));
}

std::string Logger::TakeError() {
  const backend::MutexLock lock(mutex_);
  std::string text = std::move(last_error_);
  last_error_.clear();
  return text.empty() ? "TensorRT gives no reason" : text;
}

void Logger::Write(Severity severity, const char* text) noexcept {
  try {
    const bool is_error = severity <= Severity::kError;
    if (is_error) {
      const backend::MutexLock lock(mutex_);
      last_error_ = text;
    }
    backend::Log(is_error                         ? TRITONSERVER_LOG_ERROR
                 : severity == Severity::kWarning ? TRITONSERVER_LOG_WARN
                 : severity == Severity::kInfo    ? TRITONSERVER_LOG_INFO
                                                  : TRITONSERVER_LOG_VERBOSE,
                 StrCat("TensorRT: ", text));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // Only memory can be lacking; TensorRT allows no exception here.
  }
}

}  // namespace nereid::tensorrt
