// SPDX-License-Identifier: Apache-2.0
#include "engine/repository_watcher.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "base/temporary_folder.h"
#include "engine/testing/fakes.h"
#include "repository/local_store.h"

namespace nereid::engine {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Two repositories with generation files.
class TwoRepositories : public testing::Test {
 protected:
  TwoRepositories() : folder_(base::MakeTemporaryFolder("watch").value()) {
    for (const std::string& path : paths_) std::filesystem::create_directory(path);
  }
  ~TwoRepositories() override { std::filesystem::remove_all(folder_.path); }

  void Write(size_t repository, const std::string& text) const {
    const std::string path = paths_[repository] + "/.nereid-generation";
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  }
  void Remove(size_t repository) const {
    std::filesystem::remove(paths_[repository] + "/.nereid-generation");
  }

  const repository::LocalStore store_;
  const base::TemporaryFolder folder_;
  std::vector<std::string> paths_ = {folder_.path + "/one", folder_.path + "/two"};
};

class AWatch : public TwoRepositories {
 protected:
  // What a look finds, as "+a" for a model to be loaded and "-a" for one to be unloaded.
  std::vector<std::string> Look() {
    news_ = watch_.Look(paths_, {});
    std::vector<std::string> asked;
    for (const auto& [model, is_loaded] : news_.asked)
      asked.push_back((is_loaded ? "+" : "-") + model);
    return asked;
  }

  GenerationWatch watch_{store_};
  GenerationWatch::News news_;
};

TEST_F(AWatch, TellsWhatIsAskedAnew) {
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_FALSE(news_.is_changed);
  Write(0, "generation 1\nload 1 a\nend\n");
  EXPECT_THAT(Look(), ElementsAre("+a"));
  EXPECT_TRUE(news_.is_changed);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_FALSE(news_.is_changed);
  Write(0, "generation 2\nload 1 a\nunload 2 b\nend\n");
  EXPECT_THAT(Look(), ElementsAre("-b"));
  EXPECT_THAT(watch_.Unwanted(), ElementsAre("b"));
  Write(0, "generation 3\nload 3 a\nunload 2 b\nend\n");
  EXPECT_THAT(Look(), ElementsAre("+a"));
}

TEST_F(AWatch, TakesAnOlderFileForAChangeAsWell) {
  Write(0, "generation 5\nunload 5 a\nend\n");
  EXPECT_THAT(Look(), ElementsAre("-a"));
  Write(0, "generation 2\nload 2 a\nend\n");
  EXPECT_THAT(Look(), ElementsAre("+a"));
}

TEST_F(AWatch, ForgetsAFileThatIsGone) {
  Write(0, "generation 1\nunload 1 a\nend\n");
  Look();
  Remove(0);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_TRUE(news_.is_changed);
  EXPECT_THAT(watch_.Unwanted(), IsEmpty());
  Write(0, "generation 1\nunload 1 a\nend\n");
  EXPECT_THAT(Look(), ElementsAre("-a"));
}

TEST_F(AWatch, KeepsWhatItKnewWhereAFileCannotBeRead) {
  Write(0, "generation 1\nunload 1 a\nend\n");
  Look();
  Write(0, "generation 2\nload 2");
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_FALSE(news_.is_changed);
  EXPECT_THAT(watch_.Unwanted(), ElementsAre("a"));
}

TEST_F(AWatch, ReadsAFileLessOftenThatCannotBeReadAndTheOthersAsBefore) {
  Write(0, "generation 1\nload 1");
  EXPECT_THAT(Look(), IsEmpty());
  Write(0, "generation 1\nload 1 a\nend\n");
  for (int i = 0; i < GenerationWatch::kPause; ++i) {
    Write(1, fmt::format("generation {0}\nload {0} b\nend\n", i + 1));
    EXPECT_THAT(Look(), ElementsAre("+b"));
  }
  EXPECT_THAT(Look(), ElementsAre("+a"));
}

TEST_F(AWatch, HeedsTheFirstOfTheRepositoriesThatNameAModel) {
  Write(0, "generation 1\nload 1 a\nend\n");
  Write(1, "generation 9\nunload 9 a\nunload 8 b\nend\n");
  EXPECT_THAT(Look(), UnorderedElementsAre("+a", "-b"));
  Remove(0);
  EXPECT_THAT(Look(), ElementsAre("-a"));
}

TEST_F(AWatch, HeedsTheOtherRepositoryOnceOneIsGone) {
  Write(0, "generation 1\nunload 1 a\nunload 1 b\nend\n");
  Write(1, "generation 1\nload 1 a\nend\n");
  EXPECT_THAT(Look(), UnorderedElementsAre("-a", "-b"));
  paths_.erase(paths_.begin());
  EXPECT_THAT(Look(), ElementsAre("+a"));
  EXPECT_TRUE(news_.is_changed);
  EXPECT_THAT(watch_.Unwanted(), IsEmpty());
}

// Runs work on threads that end with it.
class Threads {
 public:
  void Run(base::UniqueFunction<void()> work) {
    auto shared = std::make_shared<base::UniqueFunction<void()>>(std::move(work));
    base::MutexLock lock(mutex_);
    threads_.emplace_back("work", [shared] { (*shared)(); });
  }

 private:
  base::Mutex mutex_;
  std::vector<base::Thread> threads_ NEREID_GUARDED_BY(mutex_);
};

class Wishes : public testing::Test {
 protected:
  WishTasks::Actions Actions() {
    return {.fulfil =
                [this](const std::string& model, bool is_loaded) {
                  events_.Add((is_loaded ? "load " : "unload ") + model);
                  if (model == "slow" && is_loaded) {
                    is_loading_.set_value();
                    cancelled_.get_future().wait();
                  }
                  return base::OkStatus();
                },
            .cancel_load = [this](const std::string&) { cancelled_.set_value(); },
            .run = [this](base::UniqueFunction<void()> work) { threads_.Run(std::move(work)); }};
  }

  Events events_;
  std::promise<void> is_loading_;
  std::promise<void> cancelled_;
  Threads threads_;
};

TEST_F(Wishes, OvertakeEachOtherAndEndALoadEarly) {
  WishTasks tasks(Actions());
  tasks.Add("slow", true);
  is_loading_.get_future().wait();
  tasks.Add("slow", true);
  tasks.Add("other", true);
  tasks.Add("slow", false);
  tasks.WaitUntilIdle();
  EXPECT_THAT(events_.Take(), UnorderedElementsAre("load slow", "load other", "unload slow"));
}

class AWatcher : public TwoRepositories {
 protected:
  RepositoryWatcher::Actions Actions(bool fulfils) {
    RepositoryWatcher::Actions actions{.repositories = [this] { return paths_; },
                                       .poll = [this] { events_.Add("poll"); },
                                       .keep_out =
                                           [this](const std::set<std::string>& names) {
                                             for (const std::string& name : names)
                                               events_.Add("without " + name);
                                           },
                                       .wishes = {}};
    if (fulfils) {
      actions.wishes = {.fulfil =
                            [this](const std::string& model, bool is_loaded) {
                              events_.Add((is_loaded ? "load " : "unload ") + model);
                              return base::OkStatus();
                            },
                        .cancel_load = [](const std::string&) {},
                        .run = [](base::UniqueFunction<void()> work) { work(); }};
    }
    return actions;
  }
  void WaitFor(const std::string& event) { ASSERT_TRUE(events_.WaitFor(event)); }

  Events events_;
};

TEST_F(AWatcher, PollsAtOnceWhenAFileHasChanged) {
  RepositoryWatcher watcher(store_, {.polls = std::chrono::hours(1), .looks = milliseconds(1)},
                            Actions(/*fulfils=*/false));
  Write(0, "generation 1\nunload 1 a\nend\n");
  watcher.Begin();
  watcher.Start();
  Write(0, "generation 2\nunload 1 a\nunload 2 b\nend\n");
  WaitFor("poll");
  EXPECT_TRUE(watcher.Stop(InAMinute()));
  EXPECT_THAT(events_.Take(), ElementsAre("without a", "without a", "without b", "poll"));
}

TEST_F(AWatcher, FulfilsAtTheStartWhatWasAskedBefore) {
  RepositoryWatcher watcher(store_, {.looks = milliseconds(1)}, Actions(/*fulfils=*/true));
  Write(1, "generation 3\nload 3 a\nend\n");
  watcher.Begin();
  watcher.FulfilFirst();
  EXPECT_THAT(events_.Take(), ElementsAre("load a"));
  watcher.Start();
  Write(1, "generation 4\nunload 4 a\nend\n");
  WaitFor("unload a");
  EXPECT_TRUE(watcher.Stop(InAMinute()));
}

TEST_F(AWatcher, IsNotStartedAfterItWasStopped) {
  RepositoryWatcher watcher(store_, {.polls = milliseconds(1)}, Actions(/*fulfils=*/false));
  EXPECT_TRUE(watcher.Stop(Passed()));
  watcher.Start();
  EXPECT_TRUE(watcher.Stop(Passed()));
  EXPECT_THAT(events_.Take(), IsEmpty());
}

}  // namespace
}  // namespace nereid::engine
