// SPDX-License-Identifier: Apache-2.0
// The embedding program's own metrics, on the server's metrics page.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "errors.h"
#include "server.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

// A metric family. Thread-safe, as the C API is.
class MetricFamily {
 public:
  MetricFamily(int kind, const std::string& name, const std::string& description) {
    Check(TRITONSERVER_MetricFamilyNew(&family_, static_cast<TRITONSERVER_MetricKind>(kind),
                                       AsCText(name, "a metric's name"),
                                       AsCText(description, "a metric's description")));
  }
  MetricFamily(const MetricFamily&) = delete;
  MetricFamily& operator=(const MetricFamily&) = delete;
  ~MetricFamily() { Ignore(TRITONSERVER_MetricFamilyDelete(family_)); }
  TRITONSERVER_MetricFamily* handle() const { return family_; }

 private:
  TRITONSERVER_MetricFamily* family_ = nullptr;
};

// A metric. Thread-safe, as the C API is.
class Metric {
 public:
  Metric(std::shared_ptr<MetricFamily> family, const py::dict& labels,
         const std::optional<std::vector<double>>& buckets)
      : family_(std::move(family)) {
    Parameters parameters(labels, "label");
    if (!buckets) {
      Check(TRITONSERVER_MetricNew(&metric_, family_->handle(), parameters.data(),
                                   parameters.size()));
      return;
    }
    TRITONSERVER_MetricArgs* args = nullptr;
    Check(TRITONSERVER_MetricArgsNew(&args));
    TRITONSERVER_Error* error =
        TRITONSERVER_MetricArgsSetHistogram(args, buckets->data(), buckets->size());
    if (error == nullptr) {
      error = TRITONSERVER_MetricNewWithArgs(&metric_, family_->handle(), parameters.data(),
                                             parameters.size(), args);
    }
    Ignore(TRITONSERVER_MetricArgsDelete(args));
    Check(error);
  }
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;
  ~Metric() { Ignore(TRITONSERVER_MetricDelete(metric_)); }

  double value() const {
    double value = 0;
    Check(TRITONSERVER_MetricValue(metric_, &value));
    return value;
  }
  int kind() const {
    TRITONSERVER_MetricKind kind = TRITONSERVER_METRIC_KIND_COUNTER;
    Check(TRITONSERVER_GetMetricKind(metric_, &kind));
    return kind;
  }
  template <auto Function>
  void Change(double value) {
    Check(Function(metric_, value));
  }

 private:
  std::shared_ptr<MetricFamily> family_;  // must outlive its metrics
  TRITONSERVER_Metric* metric_ = nullptr;
};

}  // namespace

void RegisterMetrics(py::module_& module) {
  py::class_<MetricFamily, std::shared_ptr<MetricFamily>>(module, "MetricFamily")
      .def(py::init<int, const std::string&, const std::string&>(), py::arg("kind"),
           py::arg("name"), py::arg("description"));
  py::class_<Metric>(module, "Metric")
      .def(py::init<std::shared_ptr<MetricFamily>, const py::dict&,
                    const std::optional<std::vector<double>>&>())
      .def_property_readonly("value", &Metric::value)
      .def("_kind", &Metric::kind)
      .def("increment", &Metric::Change<TRITONSERVER_MetricIncrement>, py::arg("value"))
      .def("set_value", &Metric::Change<TRITONSERVER_MetricSet>, py::arg("value"))
      .def("observe", &Metric::Change<TRITONSERVER_MetricObserve>, py::arg("value"));
}

}  // namespace nereid::python
