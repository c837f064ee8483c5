// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/graph_parser.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "backend_kit/shape.h"
#include "tensorflow_backend/proto_fields.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {

using backend::Result;
using backend::WireField;
using backend::WireRange;
using backend::WireReader;

namespace {

// Texts up to this size are inside their element of a tensor.
constexpr uint64_t kMaxInlineText = 22;

bool IsVariable(std::string_view operation) {
  return operation == "VarHandleOp" || operation == "VariableV2" || operation == "Variable";
}

// Returns 0 if the file does not say how large the tensor is.
uint64_t BytesOf(const TensorInfo& tensor) {
  auto count = tensor.has_rank ? backend::ElementCount(tensor.dims) : Result<int64_t>(0);
  uint64_t bytes = 0;
  const bool is_too_large =
      !count.ok() || __builtin_mul_overflow(static_cast<uint64_t>(count.value()),
                                            BytesOfElement(tensor.type), &bytes);
  return is_too_large ? 0 : bytes;
}

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
        graph.weight_bytes += graph.nodes.back().weight_bytes;
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
          meta.has_init_op = meta.has_init_op || name == "__saved_model_init_op";
          meta.signatures[std::move(name)] = ReadSignature(value);
        });
      } else if (field.number == meta_graph_field::kCollection && IsMessage(field)) {
        ReadEntry(field.range, [&](const std::string& name, WireRange) {
          meta.has_init_op =
              meta.has_init_op || name == "saved_model_main_op" || name == "legacy_init_op";
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
        graph->weight_bytes += node.weight_bytes;
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
    if (IsVariable(node.operation)) {
      node.weight_bytes = BytesOf(node.info);
    } else if (node.operation != "Const") {
      node.weight_bytes = 0;
    }
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
      } else if (field.number == attribute_field::kTensor && name == "value") {
        node->weight_bytes = BytesOfTensor(field.range);
      }
    });
  }

  uint64_t BytesOfTensor(WireRange range) {
    TensorInfo info{.has_rank = true, .dims = {}};
    uint64_t texts = 0;
    ForEach(range, [&](const WireField& field) {
      if (field.number == tensor_field::kType) {
        info.type = static_cast<int>(field.value);
      } else if (field.number == tensor_field::kShape) {
        ReadShape(field.range, &info);
      } else if (field.number == tensor_field::kText) {
        const uint64_t size = field.range.end - field.range.begin;
        texts += size > kMaxInlineText ? size : 0;
      }
    });
    return BytesOf(info) + texts;
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

}  // namespace

std::optional<std::vector<MetaGraph>> ParseSavedModel(WireReader& reader) {
  Parser parser(reader);
  std::vector<MetaGraph> graphs = parser.SavedModel();
  return parser.ok() && !graphs.empty() ? std::optional(std::move(graphs)) : std::nullopt;
}

std::optional<Graph> ParseGraphDef(WireReader& reader) {
  Parser parser(reader);
  Graph graph = parser.ReadGraph(reader.whole());
  // Other files of protobuf have something else where GraphDef has nodes.
  const bool is_graph = std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return !node.name.empty() && !node.operation.empty();
  });
  return parser.ok() && is_graph ? std::optional(std::move(graph)) : std::nullopt;
}

}  // namespace nereid::tensorflow
