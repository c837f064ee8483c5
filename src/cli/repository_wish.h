// SPDX-License-Identifier: Apache-2.0
// nereid load and unload with --repository: they write what is wanted into the repository's
// generation file, which all servers of that repository follow, and ask no server.
#pragma once

#include <string>

#include "cli/output.h"

namespace nereid::cli {

// What is asked, and where.
struct RepositoryWish {
  std::string repository;  // a folder, or a place in an object store
  std::string model;
  bool is_loaded = false;
};

ExitCode WriteWish(const RepositoryWish& wish, Output& output);

}  // namespace nereid::cli
