// SPDX-License-Identifier: Apache-2.0
// What a path on the command line of `nereid serve` is: a model's file or folder, the folder of a
// model in a repository, or a whole repository. Names decide, because each backend checks the
// content of its own files when it loads them, and says what is wrong with it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace nereid::cli {

// A thing to serve, as it was found on the disk.
struct ModelFile {
  enum class Kind {
    kFile,        // one model without a repository
    kFolder,      // the folder of one model in a repository
    kRepository,  // all models in a repository; its name is empty
  };
  Kind kind = Kind::kFile;
  std::string name;  // of the model
  std::string path;  // absolute, of the file or folder

  // The following are set for kFile only.
  std::string framework;  // for people: "ONNX"
  std::string backend;
  std::string platform;  // as in a configuration; may be empty
  // The names of the model's entries in the folder of `path`, the first of which is `path` itself,
  // and the names that the backend expects. Backends that accept any name get the own one.
  std::vector<std::pair<std::string, std::string>> links;
  // Whether the backend reads other files beside the model's (weights, imported modules), so that
  // it has to see the folder in which the model lies.
  bool needs_folder = false;
  // Whether the file does not say what the inputs are, or the outputs.
  bool lacks_inputs = false;
  bool lacks_outputs = false;

  // Returns the folder that has the file.
  std::string parent() const;
  // Whether an entry of that folder belongs to the model, so that a change of it is a change of the
  // model: the file itself, its weights, modules in Python.
  bool Has(std::string_view entry) const;
};

// Returns what is at `path`. The error says what was found, and what can be served.
base::Result<ModelFile> RecognizeModelFile(const std::string& path);

// Like RecognizeModelFile for an argument NAME=PATH or PATH.
base::Result<ModelFile> RecognizeArgument(const std::string& argument);

// Gives the model another name. Fails if that is none, or if there are several models at its path.
base::Result<ModelFile> WithName(ModelFile model, const std::string& name);

// Fails if two models have one name; the error says how to name one of them.
base::Status CheckNames(const std::vector<ModelFile>& models);

// Makes a name of a model from the name of a file: every character that would have to be escaped in
// a URL becomes '_'.
std::string MakeModelName(std::string_view text);

}  // namespace nereid::cli
