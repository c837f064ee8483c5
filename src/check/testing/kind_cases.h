// SPDX-License-Identifier: Apache-2.0
// A small wrong repository for each kind of mistake. The files kind_cases_*.cc have the cases.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/testing/repository_folder.h"

namespace nereid::check {

// What the check is told besides the repository.
enum class Setting { kDefault, kStrict, kTwoRepositories, kNoSuchRepository };

// One case.
struct KindCase {
  std::string_view code;
  std::string place;       // of the finding: "m/config.pbtxt:5:3", or a path
  std::string suggestion;  // a part of it
  Files files;
  Setting setting = Setting::kDefault;
  std::string locked = {};  // what may not be read; empty: nothing
};

// The beginning of a correct configuration of model "m", four lines long. A case adds to it from
// line 5 on.
inline std::string Plain(std::string_view more = {}) {
  return std::string(
             "backend: \"identity\"\n"
             "max_batch_size: 4\n"
             "input { name: \"INPUT0\" data_type: TYPE_FP32 dims: 2 }\n"
             "output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: 2 }\n") +
         std::string(more);
}

// A model "m" with this configuration and an empty version.
inline Files Model(std::string config) {
  return {{"m/1/", ""}, {"m/config.pbtxt", std::move(config)}};
}

// A correct repository of "m" with `more` in its configuration and other files.
inline Files PlainModel(std::string_view more, const Files& others = {}) {
  Files files = Model(Plain(more));
  files.insert(files.end(), others.begin(), others.end());
  return files;
}

std::vector<KindCase> FolderCases();
std::vector<KindCase> TextCases();
std::vector<KindCase> TensorCases();
std::vector<KindCase> SchedulerCases();
std::vector<KindCase> EnsembleCases();
std::vector<KindCase> BackendCases();

}  // namespace nereid::check
