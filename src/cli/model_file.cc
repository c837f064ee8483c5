// SPDX-License-Identifier: Apache-2.0
#include "cli/model_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "config/versions.h"

namespace nereid::cli {
namespace {

namespace fs = std::filesystem;

using base::InvalidArgumentError;

// A kind of model file, by its ending.
struct Format {
  std::string_view ending;
  std::string_view framework;
  std::string_view backend;
  std::string_view platform;
  bool needs_folder = false;
  bool lacks_inputs = false;
  bool lacks_outputs = false;
};

constexpr std::array<Format, 14> kFormats = {{
    {".onnx", "ONNX", "onnxruntime", "onnxruntime_onnx", true},
    {".pt", "TorchScript", "pytorch", "pytorch_libtorch", false, true},
    {".pth", "TorchScript", "pytorch", "pytorch_libtorch", false, true},
    {".torchscript", "TorchScript", "pytorch", "pytorch_libtorch", false, true},
    {".pt2", "PyTorch, compiled by AOTInductor", "pytorch", "torch_aoti"},
    {".xml", "OpenVINO", "openvino", "", true},
    {".tflite", "TensorFlow Lite, run by OpenVINO", "openvino", ""},
    {".pdmodel", "PaddlePaddle, run by OpenVINO", "openvino", "", true},
    {".graphdef", "TensorFlow GraphDef", "tensorflow", "tensorflow_graphdef", false, true, true},
    {".pb", "TensorFlow GraphDef", "tensorflow", "tensorflow_graphdef", false, true, true},
    {".netdef", "Caffe2", "caffe2", "caffe2_netdef", false, true},
    {".plan", "TensorRT", "tensorrt", "tensorrt_plan"},
    {".engine", "TensorRT", "tensorrt", "tensorrt_plan"},
    {".py", "Python", "python", "", true},
}};

constexpr std::string_view kServed =
    "ONNX (.onnx), TorchScript (.pt), AOTInductor (.pt2), TensorFlow (a SavedModel folder, .pb, "
    ".graphdef), OpenVINO (.xml, .tflite, .pdmodel), Caffe2 (.netdef), TensorRT (.plan), Python "
    "(model.py), and model repositories";

// What to do with files that hold no model that can be run as it is.
struct Refusal {
  std::string_view ending;
  std::string_view advice;
};

constexpr std::string_view kWeights =
    "it has weights without the model that they belong to. Export the model to ONNX "
    "(torch.onnx.export, or optimum-cli for models of Hugging Face)";
constexpr std::string_view kPickle =
    "it is an object of Python. Export it to ONNX (skl2onnx for scikit-learn), or load it in a "
    "model.py";
constexpr std::string_view kKeras =
    "Keras files need Python to be read. Make a SavedModel of it: "
    "keras.saving.load_model(FILE).export(FOLDER)";
constexpr std::array<Refusal, 10> kRefusals = {{
    {".safetensors", kWeights},
    {".bin", kWeights},
    {".ckpt", kWeights},
    {".gguf", kWeights},
    {".pkl", kPickle},
    {".pickle", kPickle},
    {".joblib", kPickle},
    {".h5", kKeras},
    {".hdf5", kKeras},
    {".keras", kKeras},
}};

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

const Format* FormatOf(const fs::path& path) {
  const std::string ending = Lower(path.extension().string());
  const auto found = std::ranges::find(kFormats, ending, &Format::ending);
  return found == kFormats.end() ? nullptr : &*found;
}

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool IsVersion(const fs::path& path) {
  return config::ParseVersionName(path.filename().string()).version.has_value();
}

struct FolderEntry {
  std::string name;
  bool is_folder = false;
};

// Returns the entries of a folder, sorted by name; those that cannot be examined are left out.
std::vector<FolderEntry> List(const fs::path& folder) {
  std::vector<FolderEntry> entries;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    entries.push_back({at->path().filename().string(), at->is_directory(ignored)});
  }
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

// Whether a folder looks like that of a model in a repository: it has a configuration or a version.
bool IsModelFolder(const fs::path& folder) {
  return std::ranges::any_of(List(folder), [&](const FolderEntry& entry) {
    return entry.is_folder ? IsVersion(entry.name) : entry.name == "config.pbtxt";
  });
}

bool IsRepository(const fs::path& folder) {
  return std::ranges::any_of(List(folder), [&](const FolderEntry& entry) {
    return entry.is_folder && IsModelFolder(folder / entry.name);
  });
}

// Whether `version` is the only version of a model that has a configuration, which then counts.
bool IsOnlyConfiguredVersion(const fs::path& version) {
  const fs::path model = version.parent_path();
  if (!IsVersion(version) || !Exists(model / "config.pbtxt")) return false;
  return std::ranges::count_if(List(model), [](const FolderEntry& entry) {
           return entry.is_folder && IsVersion(entry.name);
         }) == 1;
}

bool IsSavedModel(const fs::path& folder) {
  return Exists(folder / "saved_model.pb") || Exists(folder / "saved_model.pbtxt");
}

ModelFile Folder(const fs::path& path) {
  return {
      .kind = ModelFile::Kind::kFolder, .name = path.filename().string(), .path = path.string()};
}

ModelFile File(const fs::path& path, const Format& format) {
  const std::string file = path.filename().string();
  // In a repository, the name is the model's, and the file's always the same.
  const bool is_in_version = IsVersion(path.parent_path()) && path.stem() == "model";
  const fs::path named = is_in_version ? path.parent_path().parent_path() : path.stem();
  return {.name = MakeModelName(named.filename().string()),
          .path = path.string(),
          .framework = std::string(format.framework),
          .backend = std::string(format.backend),
          .platform = std::string(format.platform),
          .links = {{file, file}},
          .needs_folder = format.needs_folder,
          .lacks_inputs = format.lacks_inputs,
          .lacks_outputs = format.lacks_outputs};
}

ModelFile SavedModel(const fs::path& path) {
  constexpr Format kSavedModel = {"", "TensorFlow SavedModel", "tensorflow",
                                  "tensorflow_savedmodel"};
  ModelFile model = File(path, kSavedModel);
  // A dot in the name of a folder begins no ending, but for the usual one.
  if (path.stem() != "model" && path.extension() != ".savedmodel") {
    model.name = MakeModelName(path.filename().string());
  }
  return model;
}

// The names of a Caffe2 network and of the network that fills its weights. The first pair is that
// of repositories.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kCaffe2Names = {{
    {"model.netdef", "init_model.netdef"},
    {"predict_net.pb", "init_net.pb"},
    {"net.pb", "init_net.pb"},
}};

// Returns the Caffe2 network in `folder`, named after it, or nothing.
std::optional<ModelFile> Caffe2In(const fs::path& folder) {
  for (const auto& [network, weights] : kCaffe2Names) {
    if (!Exists(folder / network) || !Exists(folder / weights)) continue;
    constexpr const Format* kNetDef = &*std::ranges::find(kFormats, ".netdef", &Format::ending);
    ModelFile model = File(folder / network, *kNetDef);
    if (!IsVersion(folder)) model.name = MakeModelName(folder.filename().string());
    model.links = {{std::string(network), "model.netdef"},
                   {std::string(weights), "init_model.netdef"}};
    return model;
  }
  return std::nullopt;
}

// Returns the Caffe2 network that the file is a part of, or nothing.
std::optional<ModelFile> Caffe2At(const fs::path& path) {
  const std::string file = path.filename().string();
  const bool is_usual = std::ranges::any_of(
      kCaffe2Names, [&](const auto& names) { return file == names.first || file == names.second; });
  if (is_usual) return Caffe2In(path.parent_path());
  const fs::path weights = path.parent_path() / ("init_" + file);
  const Format* const format = FormatOf(path);
  if (format == nullptr || !Exists(weights)) return std::nullopt;
  if (format->ending != ".netdef" && format->ending != ".pb") return std::nullopt;
  ModelFile model = File(path, *std::ranges::find(kFormats, ".netdef", &Format::ending));
  model.links = {{file, "model.netdef"}, {weights.filename().string(), "init_model.netdef"}};
  return model;
}

base::Result<ModelFile> RecognizeFolder(const fs::path& path, const std::string& shown) {
  if (IsSavedModel(path)) return SavedModel(path);
  if (auto caffe2 = Caffe2In(path)) return *std::move(caffe2);
  if (IsModelFolder(path)) return Folder(path);
  if (IsRepository(path)) return ModelFile{.kind = ModelFile::Kind::kRepository, .path = path};
  std::vector<std::string> files;
  const std::vector<FolderEntry> entries = List(path);
  for (const FolderEntry& entry : entries) {
    if (!entry.is_folder && FormatOf(entry.name) != nullptr) files.push_back(entry.name);
  }
  const auto usual = std::ranges::find(
      files, "model", [](const std::string& file) { return fs::path(file).stem().string(); });
  if (files.size() == 1 || usual != files.end()) {
    const std::string& file = files.size() == 1 ? files[0] : *usual;
    ModelFile model = File(path / file, *FormatOf(file));
    model.name = MakeModelName(path.filename().string());
    return model;
  }
  if (files.size() > 1) {
    return InvalidArgumentError(
        fmt::format("the folder '{}' has several models: {}. Name those to be served, such as '{}'",
                    shown, fmt::join(files, ", "), (fs::path(shown) / files[0]).string()));
  }
  return InvalidArgumentError(
      fmt::format("the folder '{}' {}. What can be served: {}", shown,
                  entries.empty() ? "is empty" : "has no model that is known here", kServed));
}

base::Result<ModelFile> RecognizeFile(const fs::path& path, const std::string& shown) {
  const fs::path folder = path.parent_path();
  const std::string file = path.filename().string();
  if (file == "saved_model.pb" || file == "saved_model.pbtxt") return SavedModel(folder);
  if (path.stem() == "model" && IsOnlyConfiguredVersion(folder)) {
    return Folder(folder.parent_path());
  }
  if (file == "config.pbtxt") return Folder(folder);
  if (auto caffe2 = Caffe2At(path)) return *std::move(caffe2);
  const std::string ending = Lower(path.extension().string());
  // OpenVINO's weights, named instead of the graph that they belong to.
  fs::path graph = path;
  if (ending == ".bin" && Exists(graph.replace_extension(".xml"))) {
    return File(graph, *FormatOf(graph));
  }
  const Format* const format = FormatOf(path);
  if (format == nullptr) {
    const auto refusal = std::ranges::find(kRefusals, ending, &Refusal::ending);
    if (refusal != kRefusals.end()) {
      return InvalidArgumentError(fmt::format("'{}' cannot be served: {}", shown, refusal->advice));
    }
    return InvalidArgumentError(
        fmt::format("'{}' is not a kind of model file that is known here. What can be served: {}",
                    shown, kServed));
  }
  if (format->ending == ".netdef") {
    return InvalidArgumentError(fmt::format(
        "a Caffe2 model has two files, and beside '{}' there is no 'init_{}'", shown, file));
  }
  if (ending == ".xml" && !Exists(fs::path(path).replace_extension(".bin"))) {
    return InvalidArgumentError(fmt::format(
        "an OpenVINO model has two files, and beside '{}' there is no '{}' with its weights", shown,
        fs::path(file).replace_extension(".bin").string()));
  }
  return File(path, *format);
}

// Returns what stands beside the missing `path` and was probably meant, for the message.
std::string Nearest(const fs::path& path) {
  const std::vector<FolderEntry> entries = List(path.parent_path());
  std::vector<std::string_view> names;
  for (const FolderEntry& entry : entries) {
    if (entry.is_folder || FormatOf(entry.name) != nullptr) names.push_back(entry.name);
  }
  return base::DidYouMean(path.filename().string(), names);
}

base::Status CheckName(const std::string& name) {
  if (MakeModelName(name) == name) return base::OkStatus();
  return InvalidArgumentError(fmt::format(
      "'{}' cannot be the name of a model: letters, digits, '.', '_', '-' and '~' can", name));
}

}  // namespace

std::string ModelFile::parent() const { return fs::path(path).parent_path().string(); }

bool ModelFile::Has(std::string_view entry) const {
  for (const auto& [own, expected] : links) {
    if (entry == own) return true;
  }
  if (!needs_folder || links.empty()) return false;
  const std::string& file = links[0].first;
  // Weights of ONNX: model.onnx.data, model.onnx_data. A file that another program is still writing
  // has such a name as well, and is gone at the next look.
  if (entry.starts_with(file) && entry.size() > file.size()) return true;
  const fs::path name(entry);
  if (backend == "python") return name.extension() == ".py";
  return name.stem() == fs::path(file).stem() &&
         (name.extension() == ".bin" || name.extension() == ".data" ||
          name.extension() == ".weights" || name.extension() == ".pdiparams");
}

std::string MakeModelName(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                          c == '-' || c == '.' || c == '~';
    name += is_plain ? c : '_';
  }
  const size_t begin = name.find_first_not_of('.');
  return begin == std::string::npos ? "model" : name.substr(begin);
}

base::Result<ModelFile> RecognizeModelFile(const std::string& path) {
  std::error_code error;
  // Links are kept, because the name of a link may be the one that its user has in mind.
  fs::path whole = fs::absolute(path, error).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const fs::file_status status = fs::status(whole, error);
  if (path.empty() || status.type() == fs::file_type::not_found) {
    return base::NotFoundError(
        fmt::format("there is no file or folder '{}'{}", path, Nearest(whole)));
  }
  if (error)
    return InvalidArgumentError(fmt::format("cannot read '{}': {}", path, error.message()));
  if (fs::is_directory(status)) return RecognizeFolder(whole, path);
  if (!fs::is_regular_file(status)) {
    return InvalidArgumentError(fmt::format("'{}' is neither a file nor a folder", path));
  }
  return RecognizeFile(whole, path);
}

base::Result<ModelFile> RecognizeArgument(const std::string& argument) {
  const size_t equals = argument.find('=');
  const bool has_name =
      equals != std::string::npos && equals > 0 && argument.find('/') > equals && !Exists(argument);
  if (!has_name) return RecognizeModelFile(argument);
  const std::string name = argument.substr(0, equals);
  NEREID_RETURN_IF_ERROR(CheckName(name));
  NEREID_ASSIGN_OR_RETURN(ModelFile model, RecognizeModelFile(argument.substr(equals + 1)));
  return WithName(std::move(model), name);
}

base::Result<ModelFile> WithName(ModelFile model, const std::string& name) {
  NEREID_RETURN_IF_ERROR(CheckName(name));
  if (model.kind == ModelFile::Kind::kRepository) {
    return InvalidArgumentError(
        fmt::format("'{}' is a repository, whose models have their own names", model.path));
  }
  model.name = name;
  return model;
}

base::Status CheckNames(const std::vector<ModelFile>& models) {
  std::map<std::string_view, const ModelFile*> by_name;
  for (const ModelFile& model : models) {
    if (model.kind == ModelFile::Kind::kRepository) continue;
    const auto [at, is_new] = by_name.emplace(model.name, &model);
    if (is_new) continue;
    return InvalidArgumentError(
        fmt::format("'{0}' and '{1}' would both be called '{2}'; give one of them another name: "
                    "{2}_2={1}",
                    at->second->path, model.path, model.name));
  }
  return base::OkStatus();
}

}  // namespace nereid::cli
