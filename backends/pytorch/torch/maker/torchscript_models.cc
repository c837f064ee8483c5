// SPDX-License-Identifier: Apache-2.0
// Writes TorchScript models from their source, for tests and examples: no PyTorch for Python is
// needed.
//
//   torchscript_models --model OUT.pt --code FILE [--parameter NAME SHAPE FILE]...
//                      [--element NAME SHAPE FILE]... [--model ...]
//
// The code is the definition of `forward` and of other methods. Parameters are FP32 tensors,
// SHAPE is like 64x10, and FILE has their bytes; in the code they are self.NAME. Elements are such
// tensors, too: those of one NAME are the list self.NAME.
#include <ATen/ops/empty.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot read " + path);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

at::Tensor ReadParameter(const std::string& shape_text, const std::string& path) {
  std::vector<int64_t> shape;
  std::istringstream parts(shape_text);
  for (std::string part; std::getline(parts, part, 'x');) {
    shape.push_back(std::stoll(part));
  }
  const std::string bytes = ReadFile(path);
  at::Tensor tensor = at::empty(shape, at::kFloat);
  if (bytes.size() != tensor.nbytes()) {
    throw std::runtime_error(path + " does not have the size of " + shape_text);
  }
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(tensor.mutable_data_ptr()));
  return tensor;
}

// A model in the making.
struct Draft {
  std::string path;
  std::string code;
  torch::jit::Module module{"m"};
  std::map<std::string, c10::List<at::Tensor>> lists;

  void Save() {
    for (const auto& [name, list] : lists) {
      module.register_attribute(name, c10::ListType::ofTensors(), list);
    }
    module.define(code);
    module.eval();
    module.save(path);
  }
};

void Run(const std::vector<std::string>& words) {
  std::optional<Draft> draft;
  const auto word = [&](size_t i) -> const std::string& { return words.at(i); };
  for (size_t i = 0; i < words.size();) {
    if (word(i) == "--model") {
      if (draft) draft->Save();
      draft.emplace();
      draft->path = word(i + 1);
      i += 2;
    } else if (draft && word(i) == "--code") {
      draft->code = ReadFile(word(i + 1));
      i += 2;
    } else if (draft && word(i) == "--parameter") {
      draft->module.register_parameter(word(i + 1), ReadParameter(word(i + 2), word(i + 3)), false);
      i += 4;
    } else if (draft && word(i) == "--element") {
      draft->lists[word(i + 1)].push_back(ReadParameter(word(i + 2), word(i + 3)));
      i += 4;
    } else {
      throw std::runtime_error("unexpected argument " + word(i));
    }
  }
  if (draft) draft->Save();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torchscript_models: %s\n", error.what());
    return 1;
  }
  return 0;
}
