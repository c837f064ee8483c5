// SPDX-License-Identifier: Apache-2.0
#include "python_backend/framework.h"

#include "python_backend/environment.h"

namespace nereid::python {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

// Imports only what every model needs; of the others, versions are read.
constexpr const char* kAsk = R"(
import importlib.metadata, os, sys
import numpy
found = [sys.version.split()[0]]
for name in ("numpy", "torch", "tensorflow", "tensorflow-cpu", "onnxruntime", "onnxruntime-gpu",
             "openvino", "transformers", "vllm", "jax"):
    try:
        found.append(name + " " + importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        pass
os.write(3, ", ".join(found).encode())
)";

}  // namespace

Result<backend::Framework> FindFramework() {
  NEREID_KIT_ASSIGN(const std::string interpreter, DefaultInterpreter({}));
  Supervisor supervisor;
  NEREID_KIT_ASSIGN(const EndedProgram ended, RunToEnd(supervisor, {interpreter, "-c", kAsk}));
  if (ended.output.empty()) {
    return Error::Unavailable(StrCat(interpreter,
                                     " cannot import numpy, which models in Python "
                                     "need, or is older than Python 3.8 (",
                                     ended.how,
                                     "): install numpy for it, or name another interpreter with "
                                     "--backend-config=python,python-runtime=PATH"));
  }
  return backend::Framework{ended.output, interpreter};
}

}  // namespace nereid::python
