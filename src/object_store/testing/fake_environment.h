// SPDX-License-Identifier: Apache-2.0
// An environment and a home folder for tests of accounts.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/temporary_folder.h"
#include "object_store/environment.h"

namespace nereid::object_store {

// Variables that a test sets, and files. HOME is an empty folder that goes with the object.
class FakeEnvironment {
 public:
  FakeEnvironment() : folder_(std::move(*base::MakeTemporaryFolder("test"))) {
    variables["HOME"] = folder_.path;
  }
  ~FakeEnvironment() { std::filesystem::remove_all(folder_.path); }
  FakeEnvironment(const FakeEnvironment&) = delete;
  FakeEnvironment& operator=(const FakeEnvironment&) = delete;

  // Writes a file under HOME and returns its path.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(folder_.path) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  std::string home() const { return folder_.path; }
  // This object outlives the result.
  Environment Get() const {
    return [this](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    };
  }

  std::map<std::string, std::string> variables;

 private:
  const base::TemporaryFolder folder_;
};

}  // namespace nereid::object_store
