// SPDX-License-Identifier: Apache-2.0
// nereid check
#include <algorithm>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "base/log.h"
#include "base/nearest_name.h"
#include "check/check.h"
#include "check/read_model.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/json.h"
#include "engine/directories.h"
#include "memory/gpus.h"

namespace nereid::cli {
namespace {

using check::Severity;

struct CheckSettings {
  std::vector<std::string> repositories;
  check::CheckOptions options;
  std::vector<std::string> ignored;
  bool is_strict = false;
  bool loads = false;
  bool lists_kinds = false;
};

Style StyleOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return Style::kBad;
    case Severity::kWarning:
      return Style::kWarning;
    case Severity::kNote:
      return Style::kDim;
  }
  return Style::kPlain;
}

// Reads lines of the files that findings are in, one file at a time.
class SourceLines {
 public:
  // Returns an empty line if there is none.
  std::string_view Line(const std::string& file, int line) {
    if (file != file_) {
      file_ = file;
      lines_.clear();
      std::ifstream in(file, std::ios::binary);
      for (std::string text; std::getline(in, text);) lines_.push_back(std::move(text));
    }
    const auto index = static_cast<size_t>(line) - 1;
    return index < lines_.size() ? std::string_view(lines_[index]) : std::string_view();
  }

 private:
  std::string file_;
  std::vector<std::string> lines_;
};

// Prints findings like those of a compiler: place, text, the line, and what to do.
class TextReport {
 public:
  explicit TextReport(Output& output) : output_(output) {}

  void Print(const check::Report& report) {
    for (const check::Finding& finding : report.findings) Print(finding);
    const auto count = [&](Severity severity) {
      return Counted(report.Count(severity), check::SeverityName(severity));
    };
    output_.PrintText(fmt::format("{}: {}, {}, {}\n", Counted(report.models, "model"),
                                  count(Severity::kError), count(Severity::kWarning),
                                  count(Severity::kNote)));
  }

 private:
  void Print(const check::Finding& finding) {
    const std::string place =
        finding.line == 0 ? finding.file
                          : fmt::format("{}:{}:{}", finding.file, finding.line, finding.column);
    output_.PrintText(fmt::format(
        "{}: {}: {} [{}]\n", output_.InStyle(Style::kBold, place),
        output_.InStyle(StyleOf(finding.severity), check::SeverityName(finding.severity)),
        finding.text, finding.code));
    Source(finding);
    if (!finding.found.empty()) {
      output_.PrintText(fmt::format("  found {}, expected {}\n", finding.found, finding.expected));
    }
    if (!finding.suggestion.empty()) {
      output_.PrintText(fmt::format("  {}\n", output_.InStyle(Style::kGood, finding.suggestion)));
    }
    output_.PrintText("\n");
  }

  void Source(const check::Finding& finding) {
    constexpr size_t kMaxShown = 160;
    if (finding.line == 0) return;
    std::string line(lines_.Line(finding.file, finding.line));
    // A column counts a tab up to the next multiple of eight, as protobuf's reader does.
    for (size_t at = line.find('\t'); at != std::string::npos; at = line.find('\t', at)) {
      line.replace(at, 1, 8 - at % 8, ' ');
    }
    const auto column = static_cast<size_t>(finding.column) - 1;
    if (line.empty() || column > line.size() || column > kMaxShown) return;
    output_.PrintText(fmt::format("  {}\n  {}{}\n", line.substr(0, kMaxShown),
                                  std::string(column, ' '), output_.InStyle(Style::kGood, "^")));
  }

  Output& output_;
  SourceLines lines_;
};

rapidjson::Document ToJson(const check::Report& report) {
  rapidjson::Document document(rapidjson::kObjectType);
  auto& allocator = document.GetAllocator();
  document.AddMember("models", uint64_t{report.models}, allocator);
  document.AddMember("errors", uint64_t{report.Count(Severity::kError)}, allocator);
  document.AddMember("warnings", uint64_t{report.Count(Severity::kWarning)}, allocator);
  document.AddMember("notes", uint64_t{report.Count(Severity::kNote)}, allocator);
  rapidjson::Value findings(rapidjson::kArrayType);
  for (const check::Finding& finding : report.findings) {
    rapidjson::Value one(rapidjson::kObjectType);
    const auto add = [&](const char* key, std::string_view text) {
      one.AddMember(rapidjson::StringRef(key), TextValue(text, document), allocator);
    };
    add("code", finding.code);
    add("severity", check::SeverityName(finding.severity));
    add("model", finding.model);
    add("file", finding.file);
    one.AddMember("line", finding.line, allocator);
    one.AddMember("column", finding.column, allocator);
    add("field", finding.field);
    add("message", finding.text);
    add("found", finding.found);
    add("expected", finding.expected);
    add("suggestion", finding.suggestion);
    findings.PushBack(one, allocator);
  }
  document.AddMember("findings", findings, allocator);
  return document;
}

ExitCode ListKinds(Output& output) {
  if (output.wants_json()) {
    rapidjson::Document document(rapidjson::kArrayType);
    auto& allocator = document.GetAllocator();
    for (const check::Kind& kind : check::Kinds()) {
      rapidjson::Value one(rapidjson::kObjectType);
      one.AddMember("code", TextValue(kind.code, document), allocator);
      one.AddMember("severity", TextValue(check::SeverityName(kind.severity), document), allocator);
      one.AddMember("what", TextValue(kind.what, document), allocator);
      one.AddMember("advice", TextValue(kind.advice, document), allocator);
      document.PushBack(one, allocator);
    }
    output.PrintJson(document);
    return ExitCode::kSuccess;
  }
  Table table({{.title = "Code"}, {.title = "Severity"}, {.title = "What", .may_shrink = true}});
  for (const check::Kind& kind : check::Kinds()) {
    table.Add({Cell(std::string(kind.code)),
               Cell(std::string(check::SeverityName(kind.severity)), StyleOf(kind.severity)),
               Cell(std::string(kind.what))});
  }
  output.PrintTable(table);
  return ExitCode::kSuccess;
}

// Returns an error for a code that does not exist, which would hide nothing.
std::optional<std::string> WrongCode(const std::vector<std::string>& codes) {
  std::vector<std::string_view> names;
  for (const check::Kind& kind : check::Kinds()) names.push_back(kind.code);
  for (const std::string& code : codes) {
    if (std::ranges::find(names, code) != names.end()) continue;
    return fmt::format("there is no kind of mistake '{}'{}", code, base::DidYouMean(code, names));
  }
  return std::nullopt;
}

check::Report RunCheck(const CheckSettings& settings) {
  check::CheckOptions options = settings.options;
  options.repositories = settings.repositories;
  if (options.backend_directory.empty()) {
    options.backend_directory = engine::DefaultBackendDirectory();
  }
  if (options.agent_directory.empty()) {
    options.agent_directory =
        engine::DefaultDirectoryBeside(options.backend_directory, "repoagents");
  }
  memory::Gpus gpus{memory::GpuOptions()};
  options.gpus.gpus = gpus.devices();
  options.gpus.built_with_gpus = gpus.driver() != nullptr;
  options.cpus = std::thread::hardware_concurrency();
  check::Report report = check::CheckRepositories(options);
  std::erase_if(report.findings, [&](const check::Finding& finding) {
    return std::ranges::find(settings.ignored, finding.code) != settings.ignored.end();
  });
  return report;
}

std::vector<std::string> FlagsFor(const CheckSettings& settings) {
  std::vector<std::string> flags;
  const check::CheckOptions& options = settings.options;
  for (const std::string& one : settings.repositories) flags.push_back("--model-repository=" + one);
  const auto add = [&](std::string_view flag, const std::string& value) {
    if (!value.empty()) flags.push_back(fmt::format("--{}={}", flag, value));
  };
  add("backend-directory", options.backend_directory);
  add("repoagent-directory", options.agent_directory);
  add("model-config-name", options.model_config_name);
  if (options.disable_auto_complete) flags.emplace_back("--disable-auto-complete-config");
  return flags;
}

// Loads each model in which nothing wrong was found, and reports those that cannot be loaded.
void LoadModels(const CheckSettings& settings, const ServerProgram& server, check::Report& report) {
  check::CheckOptions options = settings.options;
  options.repositories = settings.repositories;
  for (const auto& [id, source] : check::ScanRepositories(options).models) {
    const bool is_wrong = std::ranges::any_of(report.findings, [&](const check::Finding& finding) {
      return finding.model == id.name && finding.severity == Severity::kError;
    });
    if (is_wrong) continue;
    const auto loaded = server.load(FlagsFor(settings), id.name);
    if (loaded.ok()) continue;
    const check::Kind& kind = check::FindKind("load-failed");
    report.findings.push_back({.code = kind.code,
                               .severity = kind.severity,
                               .model = id.name,
                               .file = source.model_folder,
                               .text = std::string(loaded.status().message())});
  }
}

ExitCode Check(const CheckSettings& settings, Invocation& invocation) {
  Output& output = invocation.output;
  if (settings.lists_kinds) return ListKinds(output);
  if (settings.repositories.empty()) {
    return output.Fail(ExitCode::kUsage, "no repository is given");
  }
  if (settings.loads && settings.options.has_namespaces) {
    return output.Fail(ExitCode::kUsage, "--load cannot tell models of the same name apart");
  }
  if (const auto wrong = WrongCode(settings.ignored)) return output.Fail(ExitCode::kUsage, *wrong);
  // The functions of the server that the check uses also log what they find.
  if (const base::Status status =
          base::ConfigureLog({.info = false, .warning = false, .error = false});
      !status.ok()) {
    return output.Fail(ExitCode::kFailure, status.message());
  }
  check::Report report = RunCheck(settings);
  if (settings.loads) {
    // Code of models may print.
    output.KeepStandardOutput();
    LoadModels(settings, invocation.server, report);
  }
  if (output.wants_json()) {
    output.PrintJson(ToJson(report));
  } else {
    TextReport(output).Print(report);
  }
  const size_t bad =
      report.Count(Severity::kError) + (settings.is_strict ? report.Count(Severity::kWarning) : 0);
  return bad == 0 ? ExitCode::kSuccess : ExitCode::kFailure;
}

}  // namespace

void AddCheck(Command& command) {
  auto& settings = command.Keep<CheckSettings>();
  check::CheckOptions& options = settings.options;
  command.Describe(
      "Reports every mistake in model repositories with its file, line and column, what was found, "
      "what was expected, and a suggestion; also settings that are slow or have no effect. Nothing "
      "is started, and no code of a model is run, unless --load is given. The exit status is 1 if "
      "there are errors. "
      "docs/check.md explains all kinds of mistakes.");
  command.Positional("REPOSITORY", settings.repositories, "The folders of models to check.")
      .Names(Hint::kFolder);
  command.Option("--ignore", "CODE", settings.ignored, "Leaves out findings of this kind.");
  command.Flag("--strict", settings.is_strict, "Makes warnings count for the exit status.");
  command.Flag("--load", settings.loads,
               "Also loads each model in which nothing wrong was found, one after the other. This "
               "runs the code of models, and finds what only the model file can tell.");
  command.Flag("--kinds", settings.lists_kinds, "Lists all kinds of mistakes, and checks nothing.");
  command
      .Flag("--disable-auto-complete-config", options.disable_auto_complete,
            "Checks for a server with this flag: configurations must be complete.")
      .In("The server that will load the repository");
  command
      .Flag("--model-namespacing", options.has_namespaces,
            "Checks for a server where repositories may have models of the same name.")
      .In("The server that will load the repository");
  command
      .Option("--model-config-name", "NAME", options.model_config_name,
              "Checks configs/NAME.pbtxt of models that have it, in place of config.pbtxt.")
      .In("The server that will load the repository");
  command
      .Option("--backend-directory", "FOLDER", options.backend_directory,
              "The backends of the server. By default those of this program.")
      .In("The server that will load the repository")
      .Names(Hint::kFolder);
  command
      .Option("--repoagent-directory", "FOLDER", options.agent_directory,
              "The repository agents of the server. By default those beside the backends.")
      .In("The server that will load the repository")
      .Names(Hint::kFolder);
  command.AddExample("nereid check models", "Checks all models in the folder models.");
  command.AddExample(
      "nereid check models --ignore gpu-unavailable --strict",
      "Fails also for warnings, but not for want of GPUs: for continuous integration.");
  command.OnRun([&settings](Invocation& invocation) { return Check(settings, invocation); });
}

}  // namespace nereid::cli
