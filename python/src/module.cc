// SPDX-License-Identifier: Apache-2.0
// nereid._core: the C API for the Python code beside it, which is the public interface.
#include <dlfcn.h>

#include <string>

#include <pybind11/pybind11.h>

#include "buffer.h"
#include "call.h"
#include "dlpack.h"
#include "errors.h"
#include "job.h"
#include "server.h"
#include "waker.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

// Refuses a library that is older than the one this was compiled with.
void CheckVersion() {
  uint32_t major = 0;
  uint32_t minor = 0;
  Check(TRITONSERVER_ApiVersion(&major, &minor));
  if (major != TRITONSERVER_API_VERSION_MAJOR || minor < TRITONSERVER_API_VERSION_MINOR) {
    throw py::import_error("libtritonserver.so has API version " + std::to_string(major) + "." +
                           std::to_string(minor) + ", and nereid needs " +
                           std::to_string(TRITONSERVER_API_VERSION_MAJOR) + "." +
                           std::to_string(TRITONSERVER_API_VERSION_MINOR));
  }
}

// Where the server's library was loaded from.
std::string LibraryPath() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&TRITONSERVER_ApiVersion), &info) == 0) return {};
  return info.dli_fname;
}

void LogMessage(int level, const std::string& file, int line, const std::string& message) {
  Check(TRITONSERVER_LogMessage(static_cast<TRITONSERVER_LogLevel>(level),
                                AsCText(file, "a file's name"), line,
                                AsCText(message, "a message")));
}

}  // namespace
}  // namespace nereid::python

PYBIND11_MODULE(_core, module) {
  namespace nrd = nereid::python;
  nrd::RegisterErrors();
  nrd::CheckVersion();
  nrd::RegisterBuffer(module);
  nrd::RegisterDlpack(module);
  nrd::RegisterWaker(module);
  nrd::RegisterOptions(module);
  nrd::RegisterServer(module);
  nrd::RegisterMetrics(module);
  nrd::RegisterCall(module);
  nrd::RegisterJob(module);
  module.attr("__version__") = NEREID_VERSION;
  module.def("library_path", &nrd::LibraryPath);
  module.def("log_message", &nrd::LogMessage);
}
