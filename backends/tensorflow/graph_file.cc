// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/graph_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "backend_kit/wire_reader.h"

namespace nereid::tensorflow {

using backend::Error;
using backend::Result;
using backend::StrCat;
using backend::WireField;
using backend::WireRange;
using backend::WireReader;

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = uint64_t{2} << 30;  // what a protobuf message can be
constexpr const char* kPlaceholder = "Placeholder";

// Numbers of fields in TensorFlow's .proto files.
namespace saved_model_field {
constexpr uint32_t kMetaGraph = 2;
}
namespace meta_graph_field {
constexpr uint32_t kInfo = 1, kGraph = 2, kSaver = 3, kSignature = 5;
constexpr uint32_t kTagOfInfo = 4, kRestoreOfSaver = 3;
}  // namespace meta_graph_field
namespace signature_field {
constexpr uint32_t kInput = 1, kOutput = 2;
}
namespace tensor_info_field {
constexpr uint32_t kName = 1, kType = 2, kShape = 3;
}
namespace shape_field {
constexpr uint32_t kDim = 2, kUnknownRank = 3, kSizeOfDim = 1;
}
namespace graph_field {
constexpr uint32_t kNode = 1, kLibrary = 2, kFunctionOfLibrary = 1;
}
namespace function_field {
constexpr uint32_t kSignature = 1, kNode = 3, kNameOfSignature = 1;
}
namespace node_field {
constexpr uint32_t kName = 1, kOperation = 2, kInput = 3, kAttribute = 5;
}
namespace attribute_field {
constexpr uint32_t kList = 1, kType = 6, kShape = 7, kFunction = 10, kFunctionOfList = 9;
}
namespace map_field {
constexpr uint32_t kKey = 1, kValue = 2;
}

// Closes the file at the end of its scope.
struct OpenFile {
  explicit OpenFile(const std::string& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd >= 0) {
      ::close(fd);
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  const int fd;
};

// Reads the messages of one file.
class Parser {
 public:
  explicit Parser(WireReader& reader) : reader_(reader) {}

  std::vector<MetaGraph> SavedModel() {
    std::vector<MetaGraph> graphs;
    ForEach(reader_.whole(), [&](const WireField& field) {
      if (field.number == saved_model_field::kMetaGraph && IsMessage(field)) {
        graphs.push_back(ReadMetaGraph(field.range));
      }
    });
    return graphs;
  }

  Graph ReadGraph(WireRange range) {
    Graph graph;
    ForEach(range, [&](const WireField& field) {
      if (field.number == graph_field::kNode && IsMessage(field)) {
        graph.nodes.push_back(ReadNode(field.range));
      } else if (field.number == graph_field::kLibrary && IsMessage(field)) {
        ForEach(field.range, [&](const WireField& function) {
          if (function.number == graph_field::kFunctionOfLibrary && IsMessage(function)) {
            ReadFunction(function.range, &graph);
          }
        });
      }
    });
    return graph;
  }

  WireRange whole() const { return reader_.whole(); }
  bool ok() const { return reader_.ok() && !has_wrong_type_; }

 private:
  template <typename Visit>
  void ForEach(WireRange message, Visit&& visit) {
    while (const auto field = reader_.Next(message)) {
      visit(*field);
    }
  }

  // A field that should be a message and is a number shows that the file is something else.
  bool IsMessage(const WireField& field) {
    has_wrong_type_ = has_wrong_type_ || !field.is_bytes;
    return field.is_bytes;
  }

  // Calls visit(key, value) for an entry of a map whose values are messages.
  void ReadEntry(WireRange entry, const std::function<void(std::string, WireRange)>& visit) {
    std::string key;
    WireRange value;
    ForEach(entry, [&](const WireField& field) {
      if (field.number == map_field::kKey) {
        key = reader_.Text(field.range);
      } else if (field.number == map_field::kValue) {
        value = field.range;
      }
    });
    visit(std::move(key), value);
  }

  MetaGraph ReadMetaGraph(WireRange range) {
    MetaGraph meta;
    ForEach(range, [&](const WireField& field) {
      if (field.number == meta_graph_field::kInfo) {
        ForEach(field.range, [&](const WireField& info) {
          if (info.number == meta_graph_field::kTagOfInfo) {
            meta.tags.push_back(reader_.Text(info.range));
          }
        });
      } else if (field.number == meta_graph_field::kSaver) {
        ForEach(field.range, [&](const WireField& saver) {
          if (saver.number == meta_graph_field::kRestoreOfSaver) {
            meta.has_values = !reader_.Text(saver.range).empty();
          }
        });
      } else if (field.number == meta_graph_field::kGraph && IsMessage(field)) {
        meta.graph = ReadGraph(field.range);
      } else if (field.number == meta_graph_field::kSignature && IsMessage(field)) {
        ReadEntry(field.range, [&](std::string name, WireRange value) {
          meta.signatures[std::move(name)] = ReadSignature(value);
        });
      }
    });
    return meta;
  }

  Signature ReadSignature(WireRange range) {
    Signature signature;
    ForEach(range, [&](const WireField& field) {
      if (field.number == signature_field::kInput || field.number == signature_field::kOutput) {
        auto& tensors =
            field.number == signature_field::kInput ? signature.inputs : signature.outputs;
        ReadEntry(field.range, [&](std::string name, WireRange value) {
          tensors[std::move(name)] = ReadTensorInfo(value);
        });
      }
    });
    return signature;
  }

  TensorInfo ReadTensorInfo(WireRange range) {
    TensorInfo info;
    ForEach(range, [&](const WireField& field) {
      if (field.number == tensor_info_field::kName) {
        info.place = reader_.Text(field.range);
      } else if (field.number == tensor_info_field::kType) {
        info.type = static_cast<int>(field.value);
      } else if (field.number == tensor_info_field::kShape) {
        ReadShape(field.range, &info);
      }
    });
    return info;
  }

  void ReadShape(WireRange range, TensorInfo* info) {
    info->has_rank = true;
    ForEach(range, [&](const WireField& field) {
      if (field.number == shape_field::kUnknownRank && field.value != 0) {
        info->has_rank = false;
      } else if (field.number == shape_field::kDim) {
        int64_t size = 0;
        ForEach(field.range, [&](const WireField& dim) {
          if (dim.number == shape_field::kSizeOfDim) {
            size = static_cast<int64_t>(dim.value);
          }
        });
        info->dims.push_back(size);
      }
    });
  }

  void ReadFunction(WireRange range, Graph* graph) {
    std::string name;
    std::set<std::string> uses;
    ForEach(range, [&](const WireField& field) {
      if (field.number == function_field::kSignature) {
        ForEach(field.range, [&](const WireField& signature) {
          if (signature.number == function_field::kNameOfSignature) {
            name = reader_.Text(signature.range);
          }
        });
      } else if (field.number == function_field::kNode) {
        const Node node = ReadNode(field.range);
        uses.insert(node.operation);
        uses.insert(node.functions.begin(), node.functions.end());
      }
    });
    graph->functions[std::move(name)] = std::move(uses);
  }

  Node ReadNode(WireRange range) {
    Node node;
    ForEach(range, [&](const WireField& field) {
      if (field.number == node_field::kName) {
        node.name = reader_.Text(field.range);
      } else if (field.number == node_field::kOperation) {
        node.operation = reader_.Text(field.range);
      } else if (field.number == node_field::kInput) {
        node.inputs.push_back(reader_.Text(field.range));
      } else if (field.number == node_field::kAttribute) {
        ReadEntry(field.range, [&](const std::string& name, WireRange value) {
          ReadAttribute(name, value, &node);
        });
      }
    });
    node.info.place = node.name;
    return node;
  }

  void ReadAttribute(const std::string& name, WireRange range, Node* node) {
    ForEach(range, [&](const WireField& field) {
      if (field.number == attribute_field::kFunction) {
        AddFunction(field.range, node);
      } else if (field.number == attribute_field::kList) {
        ForEach(field.range, [&](const WireField& element) {
          if (element.number == attribute_field::kFunctionOfList) {
            AddFunction(element.range, node);
          }
        });
      } else if (field.number == attribute_field::kType && name == "dtype") {
        node->info.type = static_cast<int>(field.value);
      } else if (field.number == attribute_field::kShape && name == "shape") {
        ReadShape(field.range, &node->info);
      }
    });
  }

  void AddFunction(WireRange range, Node* node) {
    ForEach(range, [&](const WireField& field) {
      if (field.number == map_field::kKey) {  // the name, in NameAttrList
        node->functions.push_back(reader_.Text(field.range));
      }
    });
  }

  WireReader& reader_;
  bool has_wrong_type_ = false;
};

// What a file is that begins like this and that is no model of TensorFlow; empty if unknown.
std::string_view Mistaken(std::string_view beginning) {
  const auto begins = [&](std::string_view text) { return beginning.starts_with(text); };
  if (begins("version https://git-lfs")) {
    return "it is a pointer of Git LFS: fetch the file itself with 'git lfs pull'";
  }
  if (begins("<!DOCTYPE") || begins("<!doctype") || begins("<html") || begins("<HTML")) {
    return "it is a web page: the download went wrong";
  }
  if (begins("PK\x03\x04")) {
    return "it is an archive, as PyTorch and Keras make them: TensorFlow serves SavedModels "
           "(model.export(FOLDER) of Keras, tf.saved_model.save)";
  }
  if (begins("\x89HDF")) {
    return "it is an HDF5 file of Keras: save the model as a SavedModel with model.export(FOLDER)";
  }
  if (beginning.size() >= 8 && beginning.substr(4, 4) == "TFL3") {
    return "it is a TensorFlow Lite model, which the openvino backend serves";
  }
  if (begins("node {") || begins("saved_model_schema_version")) {
    return "it is text: write it with as_text=False";
  }
  if (beginning.find_first_not_of('\0') == std::string_view::npos) {
    return "it begins with nothing but zeros";
  }
  return "it is damaged, cut off, or something else";
}

// Opens the file and calls parse(Parser&), which says whether the file is what it should be.
Error Parse(const std::string& path, const char* what, const std::function<bool(Parser&)>& parse) {
  const OpenFile file(path);
  struct stat facts = {};
  if (file.fd < 0 || ::fstat(file.fd, &facts) != 0) {
    return Error::Unavailable(StrCat("'", path, "' cannot be read: ", std::strerror(errno)));
  }
  const auto refuse = [&](std::string_view reason) {
    return Error::InvalidArgument(StrCat("'", path, "' is not ", what, ": ", reason));
  };
  if (!S_ISREG(facts.st_mode)) {
    return refuse(S_ISDIR(facts.st_mode) ? "it is a folder" : "it is no regular file");
  }
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (size == 0) {
    return refuse("it is empty");
  }
  if (size > kMaxBytes) {
    return refuse("it is larger than 2 GiB, which this format cannot be");
  }
  WireReader reader(file.fd, size);
  Parser parser(reader);
  if (!parse(parser) || !parser.ok()) {
    std::array<char, 512> head{};
    const ssize_t got = ::pread(file.fd, head.data(), head.size(), 0);
    return refuse(Mistaken({head.data(), got > 0 ? static_cast<size_t>(got) : 0}));
  }
  return {};
}

bool IsPlaceholder(const Node& node) { return node.operation.starts_with(kPlaceholder); }

}  // namespace

std::string NodeOf(const std::string& place) {
  const size_t first = place.starts_with('^') ? 1 : 0;
  return place.substr(first, place.find(':') - first);
}

std::map<std::string, TensorInfo> Graph::Placeholders() const {
  std::map<std::string, TensorInfo> found;
  for (const Node& node : nodes) {
    if (IsPlaceholder(node)) {
      found[node.name] = node.info;
    }
  }
  return found;
}

std::set<std::string> Graph::OtherNodes() const {
  std::set<std::string> names;
  for (const Node& node : nodes) {
    if (!IsPlaceholder(node)) {
      names.insert(node.name);
    }
  }
  return names;
}

std::set<std::string> Graph::LastNodes() const {
  std::set<std::string> names = OtherNodes();
  for (const Node& node : nodes) {
    for (const std::string& input : node.inputs) {
      names.erase(NodeOf(input));
    }
  }
  return names;
}

std::set<std::string> Graph::OperationsOf(const std::vector<std::string>& places) const {
  std::map<std::string_view, const Node*> by_name;
  for (const Node& node : nodes) {
    by_name[node.name] = &node;
  }
  std::set<std::string> operations;
  std::set<const Node*> seen;
  std::vector<std::string> next = places;
  std::vector<std::string> used;
  while (!next.empty()) {
    const std::string name = NodeOf(next.back());
    next.pop_back();
    const auto node = by_name.find(name);
    if (node != by_name.end() && seen.insert(node->second).second) {
      next.insert(next.end(), node->second->inputs.begin(), node->second->inputs.end());
      used.push_back(node->second->operation);
      used.insert(used.end(), node->second->functions.begin(), node->second->functions.end());
    }
  }
  // Names that are functions stand for what these use.
  std::set<std::string> called;
  while (!used.empty()) {
    const std::string name = std::move(used.back());
    used.pop_back();
    const auto function = functions.find(name);
    if (function == functions.end()) {
      operations.insert(name);
    } else if (called.insert(name).second) {
      used.insert(used.end(), function->second.begin(), function->second.end());
    }
  }
  return operations;
}

Result<std::vector<MetaGraph>> ReadSavedModel(const std::string& folder) {
  std::error_code ignored;
  const fs::path path = fs::path(folder) / "saved_model.pb";
  if (!fs::is_directory(folder, ignored)) {
    return Error::InvalidArgument(StrCat(
        "'", folder, "' is not a SavedModel: it is a file, and a SavedModel is a folder with ",
        "saved_model.pb (for a frozen graph: platform \"tensorflow_graphdef\")"));
  }
  if (!fs::exists(path, ignored)) {
    return Error::InvalidArgument(
        StrCat("'", folder, "' is not a SavedModel: the folder has no saved_model.pb",
               fs::exists(fs::path(folder) / "saved_model.pbtxt", ignored)
                   ? ", only saved_model.pbtxt: save it with as_text=False"
                   : ""));
  }
  std::vector<MetaGraph> graphs;
  NEREID_KIT_TRY(Parse(path.string(), "the graph of a SavedModel", [&](Parser& parser) {
    graphs = parser.SavedModel();
    return !graphs.empty();
  }));
  return graphs;
}

Result<Graph> ReadGraphDef(const std::string& path) {
  Graph graph;
  NEREID_KIT_TRY(Parse(path, "a GraphDef", [&](Parser& parser) {
    graph = parser.ReadGraph(parser.whole());
    // Other files of protobuf have something else where GraphDef has nodes.
    return std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
      return !node.name.empty() && !node.operation.empty();
    });
  }));
  return graph;
}

}  // namespace nereid::tensorflow
