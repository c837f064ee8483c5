// SPDX-License-Identifier: Apache-2.0
#include "engine/ensemble_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/fakes.h"

namespace nereid::engine {
namespace {

using testing::HasSubstr;

// An ensemble "e" of loaded models.
class AnEnsembleJob : public testing::Test {
 protected:
  void Load(const FakeModel& model, int64_t version = 1, const std::string& name_space = "") {
    const repository::ModelSource source = MakeSource(model, events_, "repo", name_space);
    auto made = factory_.Load(source, version, base::OkStatus);
    ASSERT_TRUE(made.ok());
    loaded_[{source.id(), version}] = (*made)->model();
    servables_.push_back(*std::move(made));
  }
  std::shared_ptr<core::Model> Find(const ModelId& id, int64_t version) const {
    std::shared_ptr<core::Model> found;
    for (const auto& [key, model] : loaded_) {
      if (key.first == id && (version < 0 || key.second == version)) found = model;
    }
    return found;
  }
  // Makes the job for an ensemble whose steps refer to the models `ids`.
  base::Result<LoadJob> Make(const config::ModelConfig& config, std::vector<ModelId> ids) const {
    Events events;
    return MakeEnsembleJob(
        MakeSource(config, events), {.id = "e", .steps = std::move(ids)},
        [this](const ModelId& id, int64_t version) { return Find(id, version); });
  }

  Events events_;
  FakeFactory factory_{events_};
  std::map<std::pair<ModelId, int64_t>, std::shared_ptr<core::Model>> loaded_;
  std::vector<std::unique_ptr<ServableModel>> servables_;
};

TEST_F(AnEnsembleJob, HasTheModelOfEachStep) {
  Load(PlainConfig("p"), 1);
  Load(PlainConfig("p"), 2);
  Load(PlainConfig("q"));
  const auto job = Make(EnsembleConfig("e", {"p", "p:1", "q"}), {"p", "p", "q"});
  ASSERT_TRUE(job.ok()) << job.status().message();
  ASSERT_EQ(job->parts.size(), 3u);
  EXPECT_EQ(job->parts[0], Find("p", 2));
  EXPECT_EQ(job->parts[1], Find("p", 1));
  EXPECT_EQ(job->parts[2], Find("q", 1));
}

TEST_F(AnEnsembleJob, RemembersTheNamespacesOfItsSteps) {
  Load(PlainConfig("p"), 1, "there");
  const auto job = Make(EnsembleConfig("e", {"p"}), {ModelId("there", "p")});
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->source->config->ensemble_scheduling()->step.front().model_namespace, "there");
  EXPECT_EQ(job->parts.front(), Find({"there", "p"}, 1));
}

TEST_F(AnEnsembleJob, FailsWhereTheTensorsDoNotFit) {
  config::ModelConfig other = PlainConfig("p");
  other.input.front().data_type = tensor::DataType::kInt64;
  Load(other);
  EXPECT_THAT(std::string(Make(EnsembleConfig("e", {"p"}), {"p"}).status().message()),
              HasSubstr("in ensemble e, ensemble tensor INPUT0: inconsistent data type"));
}

TEST_F(AnEnsembleJob, FailsWhereAStepNamesATensorThatItsModelLacks) {
  Load(PlainConfig("p"));
  config::ModelConfig config = EnsembleConfig("e", {"p"});
  auto ensemble = *config.ensemble_scheduling();
  ensemble.step.front().input_map["OTHER"] = "INPUT0";
  config.scheduling_choice = ensemble;
  EXPECT_THAT(std::string(Make(config, {"p"}).status().message()),
              HasSubstr("mapping to non-existing input OTHER in model p"));
}

TEST_F(AnEnsembleJob, ChecksAgainstTheHighestVersionAlsoWhereAStepNamesAnother) {
  // As in Triton, only one configuration of each model is considered.
  Load(PlainConfig("p"), 1);
  config::ModelConfig other = PlainConfig("p");
  other.input.front().data_type = tensor::DataType::kInt64;
  Load(other, 2);
  EXPECT_FALSE(Make(EnsembleConfig("e", {"p:1"}), {"p"}).ok());
}

}  // namespace
}  // namespace nereid::engine
