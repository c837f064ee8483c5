// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/package.h"

#include <rapidjson/document.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "pytorch_backend/library_file.h"
#include "pytorch_backend/model_file.h"
#include "pytorch_backend/processor.h"
#include "pytorch_backend/zip_file.h"

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

constexpr std::string_view kModels = "data/aotinductor/";
constexpr std::string_view kMetadata = "wrapper_metadata.json";
constexpr std::string_view kSource = ".wrapper.cpp";
// More than the largest generated sources have.
constexpr uint64_t kMaxTextBytes = 64 << 20;

constexpr std::string_view kCompile =
    "compile it again with torch._inductor.aoti_compile_and_package on a machine like this one";

Error Refuse(const std::string& path, const std::string& what, std::string_view advice) {
  return Error::InvalidArgument(StrCat("'", path, "' ", what, ": ", advice));
}

// The name below the archive's own root folder, which has the name of the file that it was saved
// as.
std::string_view BelowRoot(std::string_view name) {
  const size_t at = name.find("data/");
  const bool is_whole = at == 0 || (at != name.npos && name[at - 1] == '/');
  return is_whole ? name.substr(at) : std::string_view();
}

// "data/aotinductor/model/x.so" → "model".
std::string_view ModelOf(std::string_view name) {
  if (!name.starts_with(kModels)) {
    return {};
  }
  name.remove_prefix(kModels.size());
  return name.substr(0, std::min(name.find('/'), name.size()));
}

// Sources are not needed, and must not be compiled in a server.
bool IsNeeded(std::string_view name) {
  return !name.ends_with('/') && !name.ends_with(".cpp") && !name.ends_with(".h") &&
         !name.ends_with(".py");
}

Error ReadMetadata(const std::string& text, const std::string& path,
                   std::map<std::string, std::string>* metadata) {
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (json.HasParseError() || !json.IsObject()) {
    return Refuse(path, "has metadata that is not JSON", "the package is damaged");
  }
  for (const auto& member : json.GetObject()) {
    if (member.value.IsString()) {
      (*metadata)[member.name.GetString()] = member.value.GetString();
    }
  }
  return {};
}

// The model to serve: the one that Triton serves, or the only one.
Result<std::string> ChooseModel(const std::vector<ZipEntry>& entries, const std::string& path) {
  std::set<std::string> models;
  for (const ZipEntry& entry : entries) {
    if (const std::string_view model = ModelOf(BelowRoot(entry.name)); !model.empty()) {
      models.emplace(model);
    }
  }
  if (models.count("model") > 0 || models.size() == 1) {
    return models.count("model") > 0 ? std::string("model") : *models.begin();
  }
  std::string names;
  for (const std::string& model : models) {
    names += (names.empty() ? "" : ", ") + model;
  }
  return Refuse(path, StrCat("has several models (", names, ")"),
                "call the one to serve 'model', or save it alone");
}

}  // namespace

Result<Package> Package::Read(const std::string& path) {
  NEREID_KIT_ASSIGN(const std::vector<ZipEntry> entries, ReadCompiledEntries(path));
  Package package{.path = path};
  NEREID_KIT_ASSIGN(package.model, ChooseModel(entries, path));
  const std::string folder = StrCat(kModels, package.model, "/");
  bool has_library = false;
  for (const ZipEntry& entry : entries) {
    if (!IsInsideArchive(entry.name)) {
      return Refuse(path, "is an archive with files that would be written outside of its folder",
                    "it is damaged or hostile");
    }
    const std::string_view name = BelowRoot(entry.name);
    const bool is_own = name.starts_with(folder);
    if (is_own && (name.ends_with(kMetadata) || name.ends_with(kSource))) {
      auto text = ReadZipFile(path, entry, kMaxTextBytes);
      if (!text.ok()) {
        return Refuse(path, "cannot be read", text.TakeError().message());
      }
      if (name.ends_with(kSource)) {
        package.source = std::move(text).value();
      } else {
        NEREID_KIT_TRY(ReadMetadata(text.value(), path, &package.metadata));
      }
    }
    const bool is_other_model = name.starts_with(kModels) && !is_own;
    if (!name.empty() && !is_other_model && IsNeeded(name)) {
      has_library = has_library || (is_own && name.ends_with(".so"));
      package.files.push_back(entry);
      package.places.emplace_back(name);
    }
  }
  if (!has_library) {
    return Refuse(path, "has the sources of a model, but not its library",
                  "compile it without the option aot_inductor.package_cpp_only");
  }
  return package;
}

std::string Package::ValueOf(const std::string& key) const {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : found->second;
}

Error Package::CheckDevice(const Device& device) const {
  const std::string compiled_for = ValueOf("AOTI_DEVICE_KEY");
  if (!compiled_for.empty() && compiled_for != "cpu") {
    return Error::Unsupported(
        StrCat("'", path, "' was compiled for the device '", compiled_for,
               "', and compiled models are served on the CPU only: compile the model with its "
               "weights and examples on the CPU, or save it as TorchScript"));
  }
  if (device.kind == Device::Kind::kGpu) {
    return Error::Unsupported(
        StrCat("'", path, "' was compiled for the CPU, and an instance is to run on GPU ",
               device.index, ": use KIND_CPU, or save the model as TorchScript"));
  }
  return {};
}

Error Package::CheckMachine(std::string_view cpu_flags) const {
  const std::string platform = ValueOf("AOTI_PLATFORM");
  const std::string machine = ValueOf("AOTI_MACHINE");
  utsname here{};
  uname(&here);
  if ((!platform.empty() && platform != "linux") ||
      (!machine.empty() && machine != std::string_view(here.machine))) {
    return Refuse(
        path,
        StrCat("was compiled for ", platform, " on ", machine, ", this is linux on ", here.machine),
        kCompile);
  }
  const std::string instructions = ValueOf("AOTI_CPU_ISA");
  if (const std::string lacking = LackingInstructions(instructions, cpu_flags); !lacking.empty()) {
    return Refuse(path,
                  StrCat("was compiled for a processor with ", instructions,
                         ", and this one has no ", lacking),
                  kCompile);
  }
  return {};
}

Error Package::Unpack(const std::string& folder) const {
  for (size_t f = 0; f < files.size(); ++f) {
    const std::filesystem::path place = std::filesystem::path(folder) / places[f];
    std::error_code error;
    std::filesystem::create_directories(place.parent_path(), error);
    if (error) {
      return Error::Internal(
          StrCat("cannot make a folder for the files of '", path, "': ", error.message()));
    }
    if (Error failed = ExtractZipFile(path, files[f], place.string()); !failed.ok()) {
      return Error(failed.code(), StrCat("'", path, "' cannot be unpacked: ", failed.message()));
    }
    const bool is_library = place.extension() == ".so";
    if (Error wrong = is_library ? CheckLibraryFile(place.string()) : Error(); !wrong.ok()) {
      return Refuse(path, "is damaged", wrong.message());
    }
  }
  return {};
}

}  // namespace nereid::pytorch
