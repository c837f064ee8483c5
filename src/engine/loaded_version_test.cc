// SPDX-License-Identifier: Apache-2.0
#include "engine/loaded_version.h"

#include <gtest/gtest.h>

#include "core/testing/fakes.h"
#include "engine/testing/fakes.h"

namespace nereid::engine {
namespace {

using enum config::ConfigChange;

// A loaded version and the change that a new scan of a model requires.
class AVersion : public testing::Test {
 protected:
  AVersion() { LoadFrom(InstancesConfig("m", 1)); }

  void LoadFrom(const FakeModel& model) {
    auto source = std::make_shared<repository::ModelSource>(MakeSource(model, events_));
    version_ = std::make_unique<LoadedVersion>(source, *factory_.Load(*source, 1, base::OkStatus));
  }
  config::ConfigChange Needed(const FakeModel& model, const std::string& repository = "repo") {
    return ChangeNeeded(*version_, MakeSource(model, events_, repository));
  }

  Events events_;
  FakeFactory factory_{events_};
  std::unique_ptr<LoadedVersion> version_;
};

TEST_F(AVersion, StaysAsItIsWhereNothingChanged) {
  EXPECT_EQ(Needed(InstancesConfig("m", 1)), kNothing);
}

TEST_F(AVersion, GetsOtherInstancesWhereNothingElseChanged) {
  EXPECT_EQ(Needed(InstancesConfig("m", 2)), kInstances);
  EXPECT_EQ(Needed(PlainConfig("m")), kInstances);
}

TEST_F(AVersion, IsLoadedAgainWhereItIsConfiguredOtherwise) {
  FakeModel changed = InstancesConfig("m", 1);
  changed.config.parameters["key"] = "value";
  EXPECT_EQ(Needed(changed), kReload);
}

TEST_F(AVersion, IsLoadedAgainWhereItsOwnFilesChanged) {
  EXPECT_EQ(Needed(FakeModel(InstancesConfig("m", 1)).With({{1, 2}})), kReload);
  EXPECT_EQ(Needed(FakeModel(InstancesConfig("m", 2)).With({{1, 2}})), kReload);
  // A change of another version's files, or of the configuration file without a change of content,
  // requires nothing.
  FakeModel other = FakeModel(InstancesConfig("m", 1)).With({{1, 1}, {2, 2}});
  other.config_time_ns = 9;
  EXPECT_EQ(Needed(other), kNothing);
}

TEST_F(AVersion, DoesNotCareWhichVersionsArePolicy) {
  EXPECT_EQ(Needed(FakeModel(InstancesConfig("m", 1)).With(AllVersions())), kNothing);
}

TEST_F(AVersion, IsLoadedAgainFromAnotherRepository) {
  EXPECT_EQ(Needed(InstancesConfig("m", 1), "other"), kReload);
  // The files of a load request always count as different.
  EXPECT_EQ(Needed(InstancesConfig("m", 1), ""), kReload);
}

TEST_F(AVersion, IsLoadedAgainWhereItsConfigurationWasMadeUpBefore) {
  repository::ModelSource source = MakeSource(InstancesConfig("m", 1), events_);
  source.config_provided = false;
  EXPECT_EQ(ChangeNeeded(*version_, source), kReload);
}

TEST_F(AVersion, KnowsTheConfigurationThatItsClientsWereTold) {
  // The backend's completion or a change of instances produced this configuration.
  FakeModel told = InstancesConfig("m", 3);
  told.config.parameters["from"] = "backend";
  version_->changed_config = std::make_shared<const config::ModelConfig>(told.config);
  EXPECT_EQ(Needed(told), kNothing);
  told.config.gives_max_batch_size = true;
  EXPECT_EQ(Needed(told), kNothing);
  told.config.instance_group.front().count = 4;
  EXPECT_EQ(Needed(told), kInstances);
  told.config.parameters["from"] = "client";
  EXPECT_EQ(Needed(told), kReload);
}

TEST_F(AVersion, OfAnEnsembleIsMadeAnewEachTime) {
  LoadFrom(EnsembleConfig("m", {"p"}));
  EXPECT_EQ(Needed(EnsembleConfig("m", {"p"})), kReload);
  EXPECT_EQ(Needed(InstancesConfig("m", 1)), kReload);
}

TEST_F(AVersion, ThatBecomesAnEnsembleIsLoadedAgain) {
  EXPECT_EQ(Needed(EnsembleConfig("m", {"p"})), kReload);
}

TEST_F(AVersion, KnowsTheModelsOfItsSteps) {
  EXPECT_TRUE(version_->steps.empty());
  LoadFrom(EnsembleConfig("e", {"p", "q:2", "p"}));
  EXPECT_EQ(version_->steps, (std::set<repository::ModelId>{"p", "q"}));
}

TEST_F(AVersion, KnowsTheModelsThatItWasMadeOf) {
  const std::shared_ptr<core::Model> p = core::MakeFakeModel(0, {1});
  std::shared_ptr<core::Model> q = core::MakeFakeModel(0, {1});
  EXPECT_TRUE(version_->IsMadeOf({}));
  EXPECT_FALSE(version_->IsMadeOf({p}));
  auto source = std::make_shared<repository::ModelSource>(
      MakeSource(EnsembleConfig("e", {"p", "q"}), events_));
  const LoadedVersion ensemble(source, *factory_.LoadEnsemble(*source, 1, {p, q}), {p, q});
  EXPECT_TRUE(ensemble.IsMadeOf({p, q}));
  EXPECT_FALSE(ensemble.IsMadeOf({q, p}));
  EXPECT_FALSE(ensemble.IsMadeOf({p}));
  // An ensemble does not keep the models that it was made of.
  q = core::MakeFakeModel(0, {1});
  EXPECT_FALSE(ensemble.IsMadeOf({p, q}));
}

TEST_F(AVersion, UsesTheFilesOfItsLoadAndOfItsInstances) {
  EXPECT_TRUE(version_->FilesInUse().empty());
  LoadFrom(FakeModel(InstancesConfig("m", 1)).Watched());
  EXPECT_EQ(version_->FilesInUse().size(), 1u);
  version_->source = std::make_shared<repository::ModelSource>(
      MakeSource(FakeModel(InstancesConfig("m", 2)).Watched(), events_));
  EXPECT_EQ(version_->FilesInUse().size(), 2u);
}

TEST_F(AVersion, TellsTheConfigurationOfItsInstancesAsTheyAreNow) {
  EXPECT_EQ(version_->CurrentConfig(), version_->model()->shared_config());
  version_->changed_config = std::make_shared<const config::ModelConfig>(PlainConfig("m"));
  EXPECT_EQ(version_->CurrentConfig(), version_->changed_config);
}

}  // namespace
}  // namespace nereid::engine
