// SPDX-License-Identifier: Apache-2.0
#include "check/model_view.h"

#include "config/paths.h"

namespace nereid::check {
namespace {

// Mistakes that are the absence of one field because of another, which is then the place.
std::string_view OtherField(std::string_view code) {
  if (code == "ensemble-platform") return "ensemble_scheduling";
  if (code == "ensemble-scheduling-missing") return "platform";
  return code == "platform-backend" ? "backend" : "";
}

}  // namespace

std::string ModelView::VersionFolder(int64_t version) const {
  return config::JoinPath(folder, std::to_string(version));
}

void Findings::AtField(std::string_view code, std::string_view field, What what) {
  Finding finding{.code = code, .file = model_.config_path, .field = std::string(field)};
  if (!model_.has_config) {
    finding.file = model_.folder;
  } else {
    const config::TextPlace* place = model_.places.Find(field, what.found);
    if (place == nullptr) place = model_.places.Find(OtherField(code));
    finding.line = place == nullptr ? 1 : place->line;
    finding.column = place == nullptr ? 1 : place->column;
  }
  Add(std::move(finding), std::move(what));
}

void Findings::AtPath(std::string_view code, std::string path, What what) {
  Add({.code = code, .file = std::move(path)}, std::move(what));
}

void Findings::AtLine(std::string_view code, int line, int column, std::string field, What what) {
  Add({.code = code,
       .file = model_.config_path,
       .line = line,
       .column = column,
       .field = std::move(field)},
      std::move(what));
}

void Findings::Append(const config::ErrorList& errors) {
  for (const config::ConfigError& error : errors.errors()) {
    AtField(error.kind, error.field,
            {.text = error.text, .found = error.found, .expected = error.expected});
  }
}

void Findings::Add(Finding finding, What what) {
  const Kind& kind = FindKind(finding.code);
  finding.code = kind.code;
  finding.severity = kind.severity;
  finding.model = model_.name;
  finding.text = std::move(what.text);
  finding.found = std::move(what.found);
  finding.expected = std::move(what.expected);
  finding.suggestion =
      what.suggestion.empty() ? std::string(kind.advice) : std::move(what.suggestion);
  has_errors_ = has_errors_ || finding.severity == Severity::kError;
  findings_.push_back(std::move(finding));
}

}  // namespace nereid::check
