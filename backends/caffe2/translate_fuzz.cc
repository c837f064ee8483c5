// SPDX-License-Identifier: Apache-2.0
// Fuzzes the way from two files to an ONNX model: reading and translating networks. The first two
// bytes are the length of the init network, which the other follows.
#include "caffe2_backend/translate.h"

#include "caffe2_backend/wire.h"
#include "fuzz/fuzz.h"

namespace {

using nereid::caffe2::Border;
using nereid::caffe2::NetDef;
using nereid::caffe2::Source;
using nereid::caffe2::Translate;
using nereid::caffe2::WireWriter;

std::string MakeArgument(std::string_view name, const std::vector<int64_t>& values) {
  WireWriter argument;
  argument.Bytes(1, name);
  if (values.size() == 1) {
    argument.Number(3, values.front());
  }
  for (const int64_t value : values) {
    argument.Number(6, value);
  }
  return argument.Take();
}

std::string MakeOperator(std::string_view type, const std::vector<std::string_view>& inputs,
                         const std::vector<std::string_view>& outputs,
                         const std::vector<std::string>& arguments = {}) {
  WireWriter operation;
  for (const std::string_view input : inputs) {
    operation.Bytes(1, input);
  }
  for (const std::string_view output : outputs) {
    operation.Bytes(2, output);
  }
  operation.Bytes(4, type);
  for (const std::string& argument : arguments) {
    operation.Bytes(5, argument);
  }
  return operation.Take();
}

std::string MakeNet(const std::vector<std::string>& operators) {
  WireWriter net;
  for (const std::string& operation : operators) {
    net.Bytes(2, operation);
  }
  net.Bytes(8, "y");
  return net.Take();
}

std::string MakePair(const std::string& init, const std::string& net) {
  return std::string{static_cast<char>(init.size() & 0xFF), static_cast<char>(init.size() >> 8)} +
         init + net;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string weights =
      MakeNet({MakeOperator("ConstantFill", {}, {"w"}, {MakeArgument("shape", {4, 3, 3, 3})}),
               MakeOperator("GivenTensorInt64Fill", {}, {"i"},
                            {MakeArgument("shape", {2}), MakeArgument("values", {0, 1})})});
  const std::vector<std::vector<std::string>> nets = {
      {MakeOperator("Conv", {"x", "w"}, {"y"},
                    {MakeArgument("kernel", {3}), MakeArgument("pads", {1, 1, 1, 1}),
                     MakeArgument("stride", {2})})},
      {MakeOperator("MaxPool", {"x"}, {"y"},
                    {MakeArgument("kernel", {2}), MakeArgument("legacy_pad", {3})})},
      {MakeOperator("Reshape", {"x"}, {"y", "old"}, {MakeArgument("shape", {0, -1})})},
      {MakeOperator("Concat", {"x", "x"}, {"c", "info"}, {MakeArgument("axis", {1})}),
       MakeOperator("Split", {"c", "info"}, {"y", "z"}, {MakeArgument("axis", {1})})},
      {MakeOperator("Slice", {"x"}, {"y"},
                    {MakeArgument("starts", {0, 1}), MakeArgument("ends", {-1, -2})})},
      {MakeOperator("Transpose", {"x"}, {"t"}, {MakeArgument("axes", {0, 2, 3, 1})}),
       MakeOperator("Tile", {"t"}, {"y"}, {MakeArgument("tiles", {2}), MakeArgument("axis", {1})})},
      {MakeOperator("FC", {"x", "w", "w"}, {"y"}, {MakeArgument("axis", {2})})},
      {MakeOperator("Add", {"x", "i"}, {"y"},
                    {MakeArgument("broadcast", {1}), MakeArgument("axis", {1})})},
      {MakeOperator("ConstantFill", {"i"}, {"y"}, {MakeArgument("input_as_shape", {1})})},
      {MakeOperator("ExpandDims", {"x"}, {"e"}, {MakeArgument("dims", {0, 2})}),
       MakeOperator("Squeeze", {"e"}, {"y"}, {MakeArgument("dims", {0, 2})})},
      {MakeOperator("TopK", {"x"}, {"y", "at"},
                    {MakeArgument("k", {2}), MakeArgument("axis", {1})})},
      {MakeOperator("Int8Quantize", {"x"}, {"q"}, {MakeArgument("Y_zero_point", {9})}),
       MakeOperator("Int8Slice", {"q"}, {"r"},
                    {MakeArgument("starts", {0}), MakeArgument("ends", {1})}),
       MakeOperator("Int8Dequantize", {"r"}, {"y"})},
      {MakeOperator("SparseLengthsSum", {"w", "i", "i"}, {"y"})},
  };
  std::vector<std::string> seeds;
  for (const auto& net : nets) {
    seeds.push_back(MakePair(weights, MakeNet(net)));
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() < 2) {
    return 0;
  }
  const size_t length = std::min<size_t>(data[0] | data[1] << 8, bytes.size() - 2);
  auto init = NetDef::Parse(bytes.substr(2, length), "init");
  auto net = NetDef::Parse(bytes.substr(2 + length), "net");
  if (init.ok() && net.ok()) {
    const Source source{
        .init = init.value(), .net = net.value(), .init_name = "init", .net_name = "net"};
    const std::vector<Border> inputs{{.name = "x", .dims = {-1, 3, 8, 8}}};
    auto onnx = Translate(source, inputs, {{.name = "y", .dims = {-1, -1}}});
    if (!onnx.ok()) {
      onnx.TakeError().Ignore();
    }
    return 0;
  }
  for (auto* parsed : {&init, &net}) {
    if (!parsed->ok()) {
      parsed->TakeError().Ignore();
    }
  }
  return 0;
}
