// SPDX-License-Identifier: Apache-2.0
// What the translation of one operator works with: its arguments and inputs, the graph that it adds
// nodes to, and the place for its outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "caffe2_backend/graph.h"
#include "caffe2_backend/netdef.h"

namespace nereid::caffe2 {

// How a tensor of Caffe2's Int8 operators relates to numbers: (byte - zero_point) * scale.
struct Quantization {
  float scale = 1;
  int64_t zero_point = 0;
  bool operator==(const Quantization&) const = default;
};

// A tensor in the graph: one content of a blob. Immutable.
struct Value {
  std::string name;  // in the graph
  Element type = Element::kFloat;
  std::optional<Dims> dims;  // nothing where not even their number is known
  std::optional<Quantization> quantization = std::nullopt;
};

// Confined to the translation.
class Scope {
 public:
  // `target` is the ONNX operator that the table of translations has; may be empty. `inputs` are
  // null where the operator names no blob. All outlive the scope.
  Scope(const Operator& operation, size_t position, std::string_view net, std::string_view target,
        std::vector<const Value*> inputs, uint64_t& filled_bytes, Graph& graph);

  std::string_view type() const { return operation_.type; }
  std::string_view target() const { return target_; }
  Graph& graph() { return graph_; }

  // Arguments; the value `otherwise` if there is no such argument.
  bool Has(std::string_view name) const { return operation_.Find(name) != nullptr; }
  int64_t Int(std::string_view name, int64_t otherwise) const;
  bool Flag(std::string_view name, bool otherwise) const { return Int(name, otherwise) != 0; }
  float Real(std::string_view name, float otherwise) const;
  std::string_view Text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> Ints(std::string_view name) const;
  const Argument* Find(std::string_view name) const { return operation_.Find(name); }

  // Inputs. REQUIRES for In: i < inputs().
  size_t inputs() const { return inputs_.size(); }
  const Value& In(size_t i) const { return *inputs_[i]; }
  // The number of dimensions of input i; fails where it is not known.
  backend::Result<int64_t> Rank(size_t i) const;
  // Argument `name` as a dimension of a tensor of that rank, counted from the front; fails if it is
  // none.
  backend::Result<int64_t> Axis(std::string_view name, int64_t otherwise, int64_t rank) const;
  // The integers of a constant input; nothing if it is none.
  std::optional<std::vector<int64_t>> Constants(const Value& value) const;

  // Adds a node with one output and returns its name.
  std::string Node(std::string_view type, std::vector<std::string> inputs,
                   Attributes attributes = {}, std::string_view domain = {});
  std::vector<std::string> Nodes(std::string_view type, std::vector<std::string> inputs,
                                 Attributes attributes, size_t outputs,
                                 std::string_view domain = {});
  // Add constants and return their names.
  std::string Vector(const std::vector<int64_t>& values);
  std::string Scalar(int64_t value);
  std::string Scalar(float value);
  // A number as a constant of a type that numbers can have.
  std::string Scalar(double value, Element type);
  std::string Cast(const std::string& value, Element from, Element to);

  // Counts memory that the file makes us fill. Fails beyond a limit that no real network reaches.
  backend::Error Fill(uint64_t bytes);
  // Counts a tensor of these dimensions, if all are known: ONNX Runtime may make it at load.
  backend::Error Fill(const std::optional<Dims>& dims);

  // Outputs.
  size_t outputs() const { return operation_.outputs.size(); }
  // REQUIRES: i < outputs().
  void Set(size_t i, Value value) { results_[i] = std::move(value); }
  // Sets the first output.
  void Return(std::string name, Element type, std::optional<Dims> dims) {
    Set(0, {.name = std::move(name), .type = type, .dims = std::move(dims)});
  }
  std::vector<std::optional<Value>>& results() { return results_; }

  // An error about this operator: "operator #3 'FC' (output 'fc1') of model.netdef ...".
  template <typename... Parts>
  backend::Error Refuse(const Parts&... parts) const {
    return backend::Error::InvalidArgument(backend::StrCat(Describe(), " ", parts...));
  }
  std::string Describe() const;

 private:
  const Operator& operation_;
  const size_t position_;
  const std::string_view net_;
  const std::string_view target_;
  const std::vector<const Value*> inputs_;
  std::vector<std::optional<Value>> results_;
  uint64_t& filled_bytes_;
  Graph& graph_;
};

// A name from the file for an error, cut where it is longer than any real one.
inline std::string_view Shown(std::string_view name) { return name.substr(0, 200); }

}  // namespace nereid::caffe2
