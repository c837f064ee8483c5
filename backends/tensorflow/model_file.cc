// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/model_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "backend_kit/config.h"
#include "backend_kit/handles.h"
#include "backend_kit/missing_file.h"
#include "tensorflow_backend/graph_file.h"

namespace nereid::tensorflow {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultSignature = "serving_default";

std::string Joined(const std::vector<std::string>& texts, const char* between) {
  std::string all;
  for (const std::string& text : texts) {
    all += all.empty() ? text : between + text;
  }
  return all;
}

bool HasTags(const MetaGraph& graph, std::vector<std::string> tags) {
  std::vector<std::string> has = graph.tags;
  std::sort(has.begin(), has.end());
  std::sort(tags.begin(), tags.end());
  return has == tags;
}

// Signatures that TensorFlow itself runs when it loads or trains a model.
bool IsInternal(const std::string& name) { return name.starts_with("__saved_model_"); }

// Chooses the signature that the user names; otherwise the default one, or another if there is
// none.
Result<Signature> ChooseSignature(const MetaGraph& graph, const std::string& wanted,
                                  const std::string& model) {
  const auto& all = graph.signatures;
  auto found = all.find(wanted.empty() ? kDefaultSignature : wanted);
  if (found == all.end() && wanted.empty()) {
    found = std::find_if(all.begin(), all.end(),
                         [](const auto& entry) { return !IsInternal(entry.first); });
    if (found != all.end()) {
      backend::LogWarning(StrCat("model '", model, "': unable to find serving signature '",
                                 kDefaultSignature, "', using signature '", found->first, "'"));
    }
  }
  if (found != all.end()) {
    return found->second;
  }
  std::vector<std::string> names;
  for (const auto& [name, signature] : all) {
    if (!IsInternal(name)) {
      names.push_back(name);
    }
  }
  return Error::InvalidArgument(StrCat(
      "unable to load model '", model, "', expected '", wanted.empty() ? kDefaultSignature : wanted,
      "' signature; the file has ", names.empty() ? "none" : Joined(names, ", ")));
}

// A SavedModel that was copied without its folder of variables would load, and no request would
// work, unless operations that are run first give the variables their values.
Error CheckVariables(const MetaGraph& graph, const Signature& signature, const SessionSpec& spec) {
  const fs::path folder = spec.path;
  constexpr const char* kIndex = "variables/variables.index";
  std::error_code ignored;
  const bool has_init_ops = graph.has_init_op || !spec.init_ops.empty();
  if (!graph.has_values || has_init_ops || fs::exists(folder / kIndex, ignored)) {
    return {};
  }
  std::vector<std::string> places;
  for (const auto& [name, info] : signature.outputs) {
    places.push_back(info.place);
  }
  const std::set<std::string> operations = graph.graph.OperationsOf(places);
  for (const char* reads : {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableV2"}) {
    if (operations.contains(reads)) {
      return Error::InvalidArgument(StrCat("'", folder.string(), "' has no ", kIndex,
                                           ", and so no values for the variables of its graph"));
    }
  }
  return {};
}

Result<std::vector<std::string>> ParseInitOps(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) {
    return Error::Unavailable(StrCat("'", path.string(), "' cannot be read"));
  }
  const std::string what = StrCat("file '", path.string(), "'");
  NEREID_KIT_ASSIGN(const rapidjson::Document json, backend::ParseJson(text, what.c_str()));
  const rapidjson::Value* list = backend::Find(json, "init_ops");
  if (list == nullptr || !list->IsArray()) {
    return Error::InvalidArgument(StrCat("the ", what, " has no list 'init_ops'"));
  }
  std::vector<std::string> names;
  for (const rapidjson::Value& name : list->GetArray()) {
    if (!name.IsString()) {
      return Error::InvalidArgument(
          StrCat("the ", what, " has something in 'init_ops' that is no name of an operation"));
    }
    names.emplace_back(name.GetString(), name.GetStringLength());
  }
  return names;
}

// Reads the files of one model. Used once.
class Reader {
 public:
  Reader(const ModelPlace& place, const Settings& settings, const std::string& model)
      : place_(place), settings_(settings), model_(model) {}

  Error ReadFile() {
    const fs::path path = fs::path(place_.version_folder) / settings_.model_filename;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      return Error::Unavailable(StrCat("unable to find '", path.string(), "' for model instance '",
                                       model_, "'.", backend::FoundInstead(path)));
    }
    file_.spec = {.is_graph_def = settings_.is_graph_def,
                  .path = path.string(),
                  .tags = settings_.is_graph_def ? std::vector<std::string>() : settings_.tags,
                  .config = settings_.session_config,
                  .init_ops = {}};
    if (!settings_.init_ops_file.empty()) {
      NEREID_KIT_TRY(ReadInitOps());
    }
    if (!settings_.is_graph_def) {
      return ReadSavedModelGraph();
    }
    auto graph = ReadGraphDef(file_.spec.path);
    if (!graph.ok()) {
      return FailedToLoad(model_, graph.TakeError());
    }
    file_.graph = std::move(graph).value();
    return {};
  }

  ModelFile Take() { return std::move(file_); }

 private:
  Error ReadSavedModelGraph() {
    auto read = ReadSavedModel(file_.spec.path);
    if (!read.ok()) {
      return FailedToLoad(model_, read.TakeError());
    }
    std::vector<MetaGraph>& graphs = read.value();
    std::vector<std::string> known;
    for (MetaGraph& graph : graphs) {
      if (HasTags(graph, settings_.tags)) {
        NEREID_KIT_ASSIGN(file_.signature, ChooseSignature(graph, settings_.signature, model_));
        if (const Error error = CheckVariables(graph, file_.signature, file_.spec); !error.ok()) {
          return FailedToLoad(model_, error);
        }
        file_.graph = std::move(graph.graph);
        return {};
      }
      known.push_back(StrCat("'", Joined(graph.tags, ","), "'"));
    }
    return Error::InvalidArgument(StrCat("unable to load model '", model_, "', expected '",
                                         Joined(settings_.tags, ","), "' tag; the file has ",
                                         Joined(known, ", ")));
  }

  Error ReadInitOps() {
    fs::path path = fs::path(place_.version_folder) / settings_.init_ops_file;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      path = fs::path(place_.folder) / settings_.init_ops_file;
    }
    auto names = ParseInitOps(path);
    if (!names.ok()) {
      return FailedToLoad(model_, names.TakeError());
    }
    file_.spec.init_ops = std::move(names).value();
    return {};
  }

  const ModelPlace& place_;
  const Settings& settings_;
  const std::string& model_;
  ModelFile file_;
};

}  // namespace

Error FailedToLoad(const std::string& model, const Error& error) {
  return Error(error.code(), StrCat("failed to load model '", model, "': ", error.message()));
}

Result<ModelFile> ModelFile::Read(const ModelPlace& place, const Settings& settings,
                                  const std::string& model) {
  Reader reader(place, settings, model);
  NEREID_KIT_TRY(reader.ReadFile());
  return reader.Take();
}

}  // namespace nereid::tensorflow
