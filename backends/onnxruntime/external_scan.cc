// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/external_scan.h"

#include <charconv>
#include <utility>

#include "backend_kit/error.h"

namespace nereid::onnxruntime {

using backend::StrCat;
using backend::WireRange;
using backend::WireReader;

namespace {

// Graphs may contain graphs; the limit keeps hostile files from overflowing the stack.
constexpr int kMaxDepth = 64;

// The field numbers of onnx.proto.
namespace model_field {
constexpr uint32_t kGraph = 7, kFunctions = 25;
}
namespace graph_field {
constexpr uint32_t kNode = 1, kInitializer = 5, kSparseInitializer = 15;
}
namespace function_field {
constexpr uint32_t kNode = 7;
}
namespace node_field {
constexpr uint32_t kAttribute = 5;
}
namespace attribute_field {
constexpr uint32_t kTensor = 5, kGraph = 6, kTensors = 10, kGraphs = 11, kSparseTensor = 22,
                   kSparseTensors = 23;
}
namespace sparse_field {
constexpr uint32_t kValues = 1, kIndices = 2;
}
namespace tensor_field {
constexpr uint32_t kName = 8, kExternalData = 13, kDataLocation = 14;
constexpr uint64_t kExternal = 1;
}  // namespace tensor_field

// Collects the external tensors of a model. Stops if the file is not protobuf.
class Scan {
 public:
  Scan(WireReader& reader, std::vector<ExternalTensor>* found) : reader_(reader), found_(*found) {}

  void Model(WireRange model) {
    while (const auto field = reader_.Next(model)) {
      if (field->number == model_field::kGraph) {
        Graph(field->range, 0);
      } else if (field->number == model_field::kFunctions) {
        Nodes(field->range, function_field::kNode, 0);
      }
    }
  }

  // The error, if external data of a tensor has an invalid number, or graphs are nested too deeply.
  const std::string& problem() const { return problem_; }

 private:
  void Graph(WireRange graph, int depth) {
    if (depth > kMaxDepth) {
      problem_ = StrCat("its graphs are nested more than ", kMaxDepth, " deep");
      return;
    }
    WireRange tensors = graph;
    while (const auto field = reader_.Next(tensors)) {
      if (field->number == graph_field::kInitializer) {
        Tensor(field->range);
      } else if (field->number == graph_field::kSparseInitializer) {
        SparseTensor(field->range);
      } else if (field->number == graph_field::kNode) {
        Node(field->range, depth);
      }
    }
  }

  void Nodes(WireRange function, uint32_t number, int depth) {
    while (const auto field = reader_.Next(function)) {
      if (field->number == number) {
        Node(field->range, depth);
      }
    }
  }

  void Node(WireRange node, int depth) {
    while (const auto field = reader_.Next(node)) {
      if (field->number == node_field::kAttribute) {
        Attribute(field->range, depth);
      }
    }
  }

  void Attribute(WireRange attribute, int depth) {
    while (const auto field = reader_.Next(attribute)) {
      switch (field->number) {
        case attribute_field::kTensor:
        case attribute_field::kTensors:
          Tensor(field->range);
          break;
        case attribute_field::kSparseTensor:
        case attribute_field::kSparseTensors:
          SparseTensor(field->range);
          break;
        case attribute_field::kGraph:
        case attribute_field::kGraphs:
          Graph(field->range, depth + 1);
          break;
        default:
          break;
      }
    }
  }

  void SparseTensor(WireRange sparse) {
    while (const auto field = reader_.Next(sparse)) {
      if (field->number == sparse_field::kValues || field->number == sparse_field::kIndices) {
        Tensor(field->range);
      }
    }
  }

  void Tensor(WireRange tensor) {
    ExternalTensor external;
    bool is_external = false;
    while (const auto field = reader_.Next(tensor)) {
      if (field->number == tensor_field::kName) {
        external.name = reader_.Text(field->range);
      } else if (field->number == tensor_field::kDataLocation) {
        is_external = field->value == tensor_field::kExternal;
      } else if (field->number == tensor_field::kExternalData) {
        Entry(field->range, external);
      }
    }
    if (is_external) {
      found_.push_back(std::move(external));
    }
  }

  void Entry(WireRange entry, ExternalTensor& tensor) {
    std::string key;
    std::string value;
    while (const auto field = reader_.Next(entry)) {
      (field->number == 1 ? key : value) = reader_.Text(field->range);
    }
    if (key == "location") {
      tensor.location = value;
    } else if (key == "offset" || key == "length") {
      uint64_t& number = key == "offset" ? tensor.offset : tensor.length;
      const char* const end = value.data() + value.size();
      if (std::from_chars(value.data(), end, number).ptr != end || value.empty()) {
        problem_ = StrCat("the external data of tensor '", tensor.name, "' has the ", key, " '",
                          value, "', which is not a number");
      }
    }
  }

  WireReader& reader_;
  std::vector<ExternalTensor>& found_;
  std::string problem_;
};

}  // namespace

std::string FindExternalTensors(WireReader& reader, std::vector<ExternalTensor>* found) {
  Scan scan(reader, found);
  scan.Model(reader.whole());
  return scan.problem();
}

}  // namespace nereid::onnxruntime
