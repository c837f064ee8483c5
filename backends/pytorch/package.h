// SPDX-License-Identifier: Apache-2.0
// A package compiled by AOTInductor (.pt2), read without PyTorch and before any of its code is
// loaded: whether this machine can run it, and where its files are.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "pytorch_backend/program.h"
#include "pytorch_backend/zip_directory.h"

namespace nereid::pytorch {

// Immutable.
struct Package {
  std::string path;
  std::string model;                            // its name in the package, mostly "model"
  std::vector<ZipEntry> files;                  // what running it needs
  std::vector<std::string> places;              // of each file below the folder for unpacking
  std::map<std::string, std::string> metadata;  // AOTI_DEVICE_KEY, AOTI_CPU_ISA, ...
  std::string source;                           // the generated C++; empty if it was left out

  // Fails, with a sentence about the file and what to do, for what is no such package, names files
  // outside of it, or would fill the disk.
  static backend::Result<Package> Read(const std::string& path);

  // Fails if it was compiled for a GPU, or `device` is one: the code is for the device that it was
  // compiled for, and the CPU is the only one that we serve it on.
  backend::Error CheckDevice(const Device& device) const;

  // Fails if it was compiled for another processor or another system. `cpu_flags` are those
  // of /proc/cpuinfo, with a space on each side.
  backend::Error CheckMachine(std::string_view cpu_flags) const;

  // Writes the files into an existing folder.
  backend::Error Unpack(const std::string& folder) const;

  // Returns a value of the metadata; empty if there is none.
  std::string ValueOf(const std::string& key) const;
};

}  // namespace nereid::pytorch
