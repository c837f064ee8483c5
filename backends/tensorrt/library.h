// SPDX-License-Identifier: Apache-2.0
// The run-time libraries of TensorRT, opened when the first plan needs one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend_kit/framework.h"
#include "backend_kit/mutex.h"
#include "tensorrt_backend/layout.h"
#include "tensorrt_backend/opened_library.h"
#include "tensorrt_backend/plan_header.h"

namespace nereid::tensorrt {

// An open library of TensorRT, of a version whose layout is known. Immutable.
class Library {
 public:
  // Opens the library without calling anything that needs the driver. Fails if its version is not
  // supported.
  static backend::Result<std::shared_ptr<const Library>> Open(const std::string& name);

  const std::string& name() const { return name_; }
  int major() const { return MajorOf(version_); }
  std::string version() const { return VersionText(version_); }
  // Of the file that was found.
  std::string path() const {
    return backend::LibraryOf(reinterpret_cast<const void*>(create_runtime_));
  }
  const Slots& slots() const { return *slots_; }

  // Returns a runtime, owned by the caller, or null. Without a driver TensorRT's function does not
  // fail, but returns what crashes when it is used. REQUIRES: a driver, and a current device.
  Object* NewRuntime(void* logger) const;

 private:
  Library() = default;

  std::string name_;
  int version_ = 0;
  const Slots* slots_ = nullptr;
  void* (*create_runtime_)(void* logger, int32_t version) = nullptr;
};

// The libraries that plans have needed so far. Thread-safe.
class Libraries {
 public:
  // `name` is a library that all plans use (backend-config `library`); empty: those of TensorRT.
  // With `is_version_compatible` a library runs plans of other versions, too.
  Libraries(std::string name, bool is_version_compatible)
      : name_(std::move(name)), is_version_compatible_(is_version_compatible) {}

  // Returns the library for a plan. Fails, naming both versions, if only others are there.
  backend::Result<std::shared_ptr<const Library>> For(const PlanHeader& plan);
  bool is_version_compatible() const { return is_version_compatible_; }

 private:
  // Opens the first of `names` that is there; appends to `failures` what the others said.
  std::shared_ptr<const Library> OpenFirst(const std::vector<std::string>& names,
                                           std::string* failures) NEREID_KIT_REQUIRES(mutex_);

  const std::string name_;
  const bool is_version_compatible_;
  backend::Mutex mutex_;
  std::vector<std::shared_ptr<const Library>> open_ NEREID_KIT_GUARDED_BY(mutex_);
};

// Passes what TensorRT logs on to the server's log, and keeps the last error for an error text.
// Thread-safe.
class Logger {
 public:
  Logger() : plain_(*this), versioned_(*this) {}
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // The object that a library of this major version takes.
  void* ForMajor(int major) {
    return major >= 11 ? static_cast<void*>(&versioned_) : static_cast<void*>(&plain_);
  }
  // Returns the last error since the last call, or a text that there was none.
  std::string TakeError();

 private:
  void Write(Severity severity, const char* text) noexcept;

  struct Plain : PlainLogger {
    explicit Plain(Logger& to) : logger(to) {}
    void Log(Severity severity, const char* text) noexcept override {
      logger.Write(severity, text);
    }
    Logger& logger;
  };
  struct Versioned : VersionedLogger {
    explicit Versioned(Logger& to) : logger(to) {}
    void Log(Severity severity, const char* text) noexcept override {
      logger.Write(severity, text);
    }
    Logger& logger;
  };

  Plain plain_;
  Versioned versioned_;
  backend::Mutex mutex_;
  std::string last_error_ NEREID_KIT_GUARDED_BY(mutex_);
};

// Opens the newest library that is there, and tells its version and place. Needs no driver.
backend::Result<backend::Framework> FindFramework();

}  // namespace nereid::tensorrt
