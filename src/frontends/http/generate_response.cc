// SPDX-License-Identifier: Apache-2.0
#include "http/generate_response.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "common/json_text.h"
#include "core/model.h"
#include "http/infer_response.h"

namespace nereid::http {
namespace {

// One member of the object: a text, a parameter, or a tensor.
struct Member {
  std::string_view name;
  std::variant<std::string_view, const core::Parameter*, const core::ResponseOutput*> value;
  size_t place;  // among the members of the response
};

base::Status AppendOutput(const core::ResponseOutput& output, std::string& json) {
  const auto count = tensor::ElementCount(output.shape.dims());
  if (!count) {
    return base::InternalError(
        "Failed to write 'data' field: output tensor shape does not match size of output for '" +
        std::string(output.name) + "'");
  }
  if (*count == 1) return AppendJsonElements(output, 1, json);
  json += '[';
  NEREID_RETURN_IF_ERROR(AppendJsonElements(output, static_cast<uint64_t>(*count), json));
  json += ']';
  return base::OkStatus();
}

}  // namespace

base::Status AppendGenerateResponse(const core::Response& response, std::string& json) {
  const core::Request& request = response.request();
  std::vector<Member> members;
  members.reserve(3 + response.parameters().size() + response.output_count());
  if (!request.id.empty()) members.push_back({"id", request.id, members.size()});
  members.push_back({"model_name", std::string_view(request.model->name()), members.size()});
  members.push_back(
      {"model_version", std::string_view(request.model->version_text()), members.size()});
  for (const core::Parameter& parameter : response.parameters()) {
    members.push_back({parameter.name, &parameter, members.size()});
  }
  for (size_t i = 0; i < response.output_count(); ++i) {
    members.push_back({response.output(i).name, &response.output(i), members.size()});
  }
  // The first of several members of one name stays.
  std::ranges::sort(members, {}, [](const Member& m) { return std::pair(m.name, m.place); });
  const auto doubles = std::ranges::unique(members, {}, &Member::name);
  members.erase(doubles.begin(), doubles.end());
  json += '{';
  for (const Member& member : members) {
    if (&member != &members.front()) json += ',';
    common::AppendJsonString(json, member.name);
    json += ':';
    if (const auto* text = std::get_if<std::string_view>(&member.value)) {
      common::AppendJsonString(json, *text);
    } else if (const auto* parameter = std::get_if<const core::Parameter*>(&member.value)) {
      AppendJsonParameter((*parameter)->value, json);
    } else {
      NEREID_RETURN_IF_ERROR(
          AppendOutput(*std::get<const core::ResponseOutput*>(member.value), json));
    }
  }
  json += '}';
  return base::OkStatus();
}

}  // namespace nereid::http
