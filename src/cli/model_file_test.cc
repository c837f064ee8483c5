// SPDX-License-Identifier: Apache-2.0
#include "cli/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/file_test.h"

namespace nereid::cli {
namespace {

using testing::HasSubstr;
using testing::Pair;

class ModelFileTest : public FileTest {
 protected:
  ModelFile Recognize(const std::string& path) {
    auto model = RecognizeModelFile(Path(path));
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? *std::move(model) : ModelFile();
  }
  std::string WhyNot(const std::string& path) {
    return std::string(RecognizeModelFile(Path(path)).status().message());
  }
};

TEST_F(ModelFileTest, IsRecognizedByItsEndingAndNamedAfterItsStem) {
  struct Case {
    const char* file;
    const char* backend;
    const char* platform;
  };
  for (const Case& c :
       {Case{"resnet.onnx", "onnxruntime", "onnxruntime_onnx"},
        Case{"resnet.pt", "pytorch", "pytorch_libtorch"},
        Case{"resnet.PTH", "pytorch", "pytorch_libtorch"},
        Case{"resnet.pt2", "pytorch", "torch_aoti"}, Case{"resnet.tflite", "openvino", ""},
        Case{"resnet.pb", "tensorflow", "tensorflow_graphdef"},
        Case{"resnet.graphdef", "tensorflow", "tensorflow_graphdef"},
        Case{"resnet.plan", "tensorrt", "tensorrt_plan"}, Case{"resnet.py", "python", ""}}) {
    Write(c.file);
    const ModelFile model = Recognize(c.file);
    EXPECT_EQ(model.name, "resnet") << c.file;
    EXPECT_EQ(model.backend, c.backend) << c.file;
    EXPECT_EQ(model.platform, c.platform) << c.file;
    EXPECT_EQ(model.path, Path(c.file));
    EXPECT_EQ(model.kind, ModelFile::Kind::kFile);
  }
}

TEST_F(ModelFileTest, IsNamedAfterItsModelInARepository) {
  Write("digits/3/model.onnx");
  EXPECT_EQ(Recognize("digits/3/model.onnx").name, "digits");
  Write("digits/model.onnx");
  EXPECT_EQ(Recognize("digits/model.onnx").name, "model");
}

TEST_F(ModelFileTest, CharactersOfAFileThatNoUrlHasBecomeUnderscores) {
  EXPECT_EQ(MakeModelName("My net (2).final"), "My_net__2_.final");
  EXPECT_EQ(MakeModelName("größe"), "gr____e");
  EXPECT_EQ(MakeModelName(".hidden"), "hidden");
  EXPECT_EQ(MakeModelName(""), "model");
}

TEST_F(ModelFileTest, FoldersAreModelsModelFoldersOrRepositories) {
  Write("saved/saved_model.pb");
  EXPECT_EQ(Recognize("saved").platform, "tensorflow_savedmodel");
  EXPECT_EQ(Recognize("saved/saved_model.pb").path, Path("saved"));
  EXPECT_EQ(Recognize("saved/").name, "saved");
  Write("resnet_v1.5/saved_model.pb");
  EXPECT_EQ(Recognize("resnet_v1.5").name, "resnet_v1.5");
  Write("digits/1/model.savedmodel/saved_model.pb");
  EXPECT_EQ(Recognize("digits/1/model.savedmodel").name, "digits");
  Write("models/a/config.pbtxt");
  Write("models/b/1/model.onnx");
  EXPECT_EQ(Recognize("models").kind, ModelFile::Kind::kRepository);
  EXPECT_EQ(Recognize("models/a").kind, ModelFile::Kind::kFolder);
  EXPECT_EQ(Recognize("models/b").kind, ModelFile::Kind::kFolder);
  EXPECT_EQ(Recognize("models/b").name, "b");
}

TEST_F(ModelFileTest, AFolderWithOneModelIsThatModelUnderTheNameOfTheFolder) {
  Write("export/config.json");
  Write("export/net.onnx");
  EXPECT_EQ(Recognize("export").path, Path("export/net.onnx"));
  EXPECT_EQ(Recognize("export").name, "export");
  Write("code/helper.py");
  Write("code/model.py");
  EXPECT_EQ(Recognize("code").path, Path("code/model.py"));
  Write("export/other.onnx");
  EXPECT_THAT(WhyNot("export"), HasSubstr("has several models: net.onnx, other.onnx"));
}

TEST_F(ModelFileTest, TheConfigurationOfTheOnlyVersionCounts) {
  Write("digits/config.pbtxt");
  Write("digits/1/model.pt");
  EXPECT_EQ(Recognize("digits/1/model.pt").kind, ModelFile::Kind::kFolder);
  EXPECT_EQ(Recognize("digits/1/model.pt").path, Path("digits"));
  EXPECT_EQ(Recognize("digits/config.pbtxt").path, Path("digits"));
  Write("digits/1/other.pt");
  EXPECT_EQ(Recognize("digits/1/other.pt").kind, ModelFile::Kind::kFile);
  Write("digits/2/model.pt");
  EXPECT_EQ(Recognize("digits/1/model.pt").kind, ModelFile::Kind::kFile);
}

TEST_F(ModelFileTest, BothNetworksOfCaffe2AreLinkedUnderTheNamesOfRepositories) {
  Write("net/predict_net.pb");
  Write("net/init_net.pb");
  for (const char* path : {"net", "net/predict_net.pb", "net/init_net.pb"}) {
    const ModelFile model = Recognize(path);
    EXPECT_EQ(model.name, "net");
    EXPECT_EQ(model.backend, "caffe2");
    EXPECT_THAT(model.links, testing::ElementsAre(Pair("predict_net.pb", "model.netdef"),
                                                  Pair("init_net.pb", "init_model.netdef")));
  }
  Write("lone.netdef");
  EXPECT_THAT(WhyNot("lone.netdef"), HasSubstr("there is no 'init_lone.netdef'"));
  Write("init_lone.netdef");
  EXPECT_EQ(Recognize("lone.netdef").name, "lone");
}

TEST_F(ModelFileTest, AnOpenVinoModelNeedsItsWeights) {
  Write("net.xml");
  EXPECT_THAT(WhyNot("net.xml"), HasSubstr("there is no 'net.bin' with its weights"));
  Write("net.bin");
  EXPECT_EQ(Recognize("net.xml").backend, "openvino");
  EXPECT_EQ(Recognize("net.bin").path, Path("net.xml"));
}

TEST_F(ModelFileTest, WhatBelongsToTheModelIsTold) {
  Write("net.onnx");
  const ModelFile onnx = Recognize("net.onnx");
  for (const char* own : {"net.onnx", "net.onnx.data", "net.onnx_data", "net.data"}) {
    EXPECT_TRUE(onnx.Has(own)) << own;
  }
  for (const char* other : {"other.onnx", "net2.onnx", "net.txt", "venv", "net"}) {
    EXPECT_FALSE(onnx.Has(other)) << other;
  }
  Write("model.py");
  const ModelFile python = Recognize("model.py");
  EXPECT_TRUE(python.Has("helper.py"));
  EXPECT_FALSE(python.Has("__pycache__"));
}

TEST_F(ModelFileTest, ErrorsSayWhatWasFoundAndWhatCanBeServed) {
  Write("digits.onnx");
  EXPECT_THAT(WhyNot("digit.onnx"), HasSubstr("there is no file or folder"));
  EXPECT_THAT(WhyNot("digit.onnx"), HasSubstr("did you mean 'digits.onnx'?"));
  Write("notes.txt");
  EXPECT_THAT(WhyNot("notes.txt"), HasSubstr("What can be served: ONNX (.onnx)"));
  Write("empty/");
  EXPECT_THAT(WhyNot("empty"), HasSubstr("is empty"));
  Write("weights.safetensors");
  EXPECT_THAT(WhyNot("weights.safetensors"), HasSubstr("Export the model to ONNX"));
  Write("forest.pkl");
  EXPECT_THAT(WhyNot("forest.pkl"), HasSubstr("skl2onnx"));
  Write("net.keras");
  EXPECT_THAT(WhyNot("net.keras"), HasSubstr("SavedModel"));
  EXPECT_THAT(std::string(RecognizeModelFile("/dev/null").status().message()),
              HasSubstr("neither a file nor a folder"));
}

TEST_F(ModelFileTest, AnArgumentMayNameTheModel) {
  Write("net.onnx");
  Write("a=b.onnx");
  EXPECT_EQ(RecognizeArgument("cat=" + Path("net.onnx"))->name, "cat");
  EXPECT_EQ(RecognizeArgument(Path("a=b.onnx"))->name, "a_b");
  EXPECT_THAT(std::string(RecognizeArgument("a b=" + Path("net.onnx")).status().message()),
              HasSubstr("cannot be the name of a model"));
  Write("models/a/config.pbtxt");
  EXPECT_THAT(std::string(RecognizeArgument("x=" + Path("models")).status().message()),
              HasSubstr("whose models have their own names"));
}

TEST_F(ModelFileTest, TwoModelsOfOneNameAreRefusedWithAWayOut) {
  Write("a/net.onnx");
  Write("b/net.onnx");
  const base::Status status = CheckNames({Recognize("a/net.onnx"), Recognize("b/net.onnx")});
  EXPECT_THAT(std::string(status.message()), HasSubstr("would both be called 'net'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("net_2=" + Path("b/net.onnx")));
}

}  // namespace
}  // namespace nereid::cli
