// SPDX-License-Identifier: Apache-2.0
#include "cli/repository_wish.h"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "base/log.h"
#include "cli/json.h"
#include "cli/printable.h"
#include "repository/generation.h"
#include "repository/routed_store.h"
#include "stores/stores.h"

namespace nereid::cli {

ExitCode WriteWish(const RepositoryWish& wish, Output& output) {
  // Stores log what they try again; the error says what came of it.
  if (const base::Status status =
          base::ConfigureLog({.info = false, .warning = false, .error = false});
      !status.ok()) {
    return output.Fail(ExitCode::kFailure, status.message());
  }
  const repository::RoutedStore store(stores::AllStores());
  const auto generation = repository::Ask(store, wish.repository, wish.model, wish.is_loaded);
  if (!generation.ok()) {
    const bool is_usage = generation.status().code() == base::StatusCode::kInvalidArgument;
    return output.Fail(is_usage ? ExitCode::kUsage : ExitCode::kFailure,
                       generation.status().message());
  }
  const std::string_view verb = wish.is_loaded ? "load" : "unload";
  if (output.wants_json()) {
    rapidjson::Document result(rapidjson::kObjectType);
    AddMember(result, result, "model", TextValue(ValidUtf8(wish.model), result));
    AddMember(result, result, "repository", TextValue(ValidUtf8(wish.repository), result));
    AddMember(result, result, "wish", TextValue(verb, result));
    AddMember(result, result, "generation", rapidjson::Value(generation->number));
    output.PrintJson(result);
    return ExitCode::kSuccess;
  }
  output.PrintText(fmt::format("generation {} of {}: {} {}\n", generation->number, wish.repository,
                               verb, wish.model));
  return ExitCode::kSuccess;
}

}  // namespace nereid::cli
