// SPDX-License-Identifier: Apache-2.0
// What the generation files of all repositories ask for, and what has changed since the last look.
#pragma once

#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "repository/generation.h"
#include "repository/store.h"

namespace nereid::engine {

// Remembers the files as they were. Thread-compatible.
class GenerationWatch {
 public:
  // What a look has found.
  struct News {
    // What is asked for one model.
    struct Asked {
      std::string model;
      bool is_loaded = false;
    };
    bool is_changed = false;   // some file, or what all of them ask for together
    std::vector<Asked> asked;  // anew, or for the first time
  };

  // A file that could not be read is left out of so many looks, because each may take long.
  static constexpr int kPause = 9;

  // `store` outlives this.
  explicit GenerationWatch(const repository::Store& store) : store_(store) {}

  // Reads the files of these repositories. A file that cannot be read, or is no whole one, counts
  // as unchanged. Blocks, until `stop` at most.
  News Look(const std::vector<std::string>& repositories, const std::stop_token& stop);
  // Returns the models that are to be unloaded.
  std::set<std::string> Unwanted() const;

 private:
  // A wish, and the repository whose file has it.
  struct Source {
    std::string repository;
    repository::Wish wish;
    bool operator==(const Source&) const = default;
  };
  // The file of a repository as it was when it could be read.
  struct File {
    repository::Generation generation;
    int pause = 0;  // how many looks are to leave it out
  };
  using Sources = std::map<std::string, Source>;  // by the model's name

  // Of several repositories that name a model, the first counts.
  Sources Merge(const std::vector<std::string>& repositories) const;
  // Logs an error of a file once, and its end.
  void Tell(const std::string& repository, const base::Status& status);

  const repository::Store& store_;
  std::map<std::string, File> known_;  // by repository
  Sources merged_;
  std::map<std::string, std::string> told_;  // the last error by repository
};

}  // namespace nereid::engine
