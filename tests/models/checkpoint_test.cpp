#include "rapt/models/checkpoint.h"

#include <fstream>

#include "rapt/base/file.h"
#include "rapt/base/memory.h"
#include "rapt/models/safetensors.h"
#include "tests/testing/translators.h"

namespace rapt::models {
namespace {

using namespace testing;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_same_weights(const EncoderDecoder& a, const EncoderDecoder& b) {
  const auto x = nn::parameters(a), y = nn::parameters(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].name, y[i].name);
    EXPECT_TRUE(same_bits(x[i].value(), y[i].value())) << x[i].name;
  }
}

// The tensors of a file, to be written again with a change.
std::vector<std::pair<std::string, Tensor>> tensors_of(const std::filesystem::path& folder) {
  const SafetensorsFile file(folder / kWeightsFile);
  std::vector<std::pair<std::string, Tensor>> all;
  for (const TensorInfo& info : file.tensors())
    all.emplace_back(info.name, file.load(info, DType::f32));
  return all;
}

void write_tensors(const std::filesystem::path& folder,
                   const std::vector<std::pair<std::string, Tensor>>& all) {
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : all) sources.push_back(source_of(name, tensor));
  write_safetensors(folder / kWeightsFile, sources);
}

class Folders : public ::testing::TestWithParam<std::string> {
 protected:
  TemporaryFolder folder_;
  const std::filesystem::path& path() const { return folder_.path(); }
};

TEST_P(Folders, WhatIsWrittenIsReadBackBitForBit) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const EncoderDecoder model = make_model(small_config(GetParam()), dtype);
    save_encoder_decoder(model, path());
    const auto loaded = load_encoder_decoder(path());
    expect_same_weights(*loaded, model);
    EXPECT_TRUE(same_bits(loaded->positions(), model.positions()));
    EXPECT_EQ(config_text(loaded->config()), config_text(model.config()));
  }
}

TEST_P(Folders, AFileWithoutTheTableOfPositionsIsAsGood) {
  const EncoderDecoder model = make_model(small_config(GetParam()), DType::f32);
  save_encoder_decoder(model, path());
  auto all = tensors_of(path());
  std::erase_if(all, [](const auto& named) { return named.first.ends_with(".pe"); });
  write_tensors(path(), all);
  const auto loaded = load_encoder_decoder(path());
  expect_same_weights(*loaded, model);
  EXPECT_TRUE(same_bits(loaded->positions(), model.positions()));
}

TEST_P(Folders, AMissingAnUnknownAndAMisshapenTensorAreNamed) {
  save_encoder_decoder(make_model(small_config(GetParam()), DType::f32), path());
  const auto all = tensors_of(path());
  auto fewer = all;
  const std::string gone = fewer[3].first;
  fewer.erase(fewer.begin() + 3);
  fewer.emplace_back("more", Tensor::zeros(all[3].second.shape(), DType::f32));
  write_tensors(path(), fewer);
  EXPECT_TRUE(
      contains(error_of([&] { load_encoder_decoder(path()); }), "expected a tensor " + gone));
  auto more = all;
  more.emplace_back("other.weight", Tensor::zeros({2}, DType::f32));
  write_tensors(path(), more);
  EXPECT_TRUE(contains(error_of([&] { load_encoder_decoder(path()); }),
                       "no place for tensor other.weight"));
  auto wrong = all;
  wrong[0].second = Tensor::zeros({wrong[0].second.dim(1), wrong[0].second.dim(0)}, DType::f32);
  write_tensors(path(), wrong);
  const std::string error = error_of([&] { load_encoder_decoder(path()); });
  EXPECT_TRUE(contains(error, wrong[0].first + ": expected shape")) << error;
  try {
    load_encoder_decoder(path());
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::model);
  }
}

TEST_P(Folders, R58_TiedMatricesArePresentOnceOrEqual) {
  EncoderDecoderConfig config = small_config(GetParam());
  config.tgt_vocab_size = config.src_vocab_size;
  config.tie_embeddings = TieEmbeddings::three;
  const EncoderDecoder model = make_model(config, DType::f32);
  save_encoder_decoder(model, path());
  expect_same_weights(*load_encoder_decoder(path()), model);
  auto all = tensors_of(path());
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const auto& t) {
                            return t.second.shape() == Shape{9, 6};
                          }),
            3);
  auto once = all;
  std::erase_if(once, [](const auto& named) { return named.first == "projection.weight"; });
  write_tensors(path(), once);
  expect_same_weights(*load_encoder_decoder(path()), model);
  for (auto& [name, tensor] : all) {
    if (name == "projection.weight") tensor = Tensor::zeros(tensor.shape(), DType::f32);
  }
  write_tensors(path(), all);
  EXPECT_TRUE(contains(error_of([&] { load_encoder_decoder(path()); }),
                       "projection.weight: expected the same values"));
  config.tie_embeddings = TieEmbeddings::none;  // untied and absent: never random
  save_encoder_decoder(make_model(config, DType::f32), path());
  all = tensors_of(path());
  std::erase_if(all, [](const auto& named) { return named.first == "projection.weight"; });
  all.emplace_back("padding", Tensor::zeros({9, 6}, DType::f32));
  write_tensors(path(), all);
  EXPECT_TRUE(contains(error_of([&] { load_encoder_decoder(path()); }),
                       "expected a tensor projection.weight"));
}

INSTANTIATE_TEST_SUITE_P(All, Folders, ::testing::Values("hand_built", "torch", "rapt"),
                         [](const auto& info) { return info.param; });

TEST(Layout, TheTorchSpellingStacksQueryKeyAndValue) {
  const EncoderDecoder model = make_model(small_config("torch"), DType::f32);
  const auto named =
      by_file_name(model, layout("torch"), [](const NamedParameter& p) { return p.value(); });
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named) {
    names.push_back(name);
    if (name == "transformer.decoder.layers.1.multihead_attn.in_proj_weight") {
      EXPECT_EQ(tensor.shape(), (Shape{18, 6}));
    }
  }
  for (const char* wanted :
       {"src_emb.weight", "tgt_emb.weight", "transformer.encoder.layers.0.self_attn.in_proj_weight",
        "transformer.encoder.norm.bias", "transformer.decoder.layers.1.norm3.weight",
        "projection.bias"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), wanted), names.end()) << wanted;
  }
}

TEST(Layout, TheHandBuiltSpellingNamesEachProjection) {
  const auto named =
      by_file_name(make_model(small_config("hand_built"), DType::f32), layout("hand_built"),
                   [](const NamedParameter& p) { return p.value(); });
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named) names.push_back(name);
  for (const char* wanted :
       {"encoder.src_emb.weight", "decoder.tgt_emb.weight",
        "encoder.layers.1.enc_self_attn.W_Q.weight", "decoder.layers.0.dec_enc_attn.layerNorm.bias",
        "decoder.layers.0.pos_ffn.fc.2.weight", "projection.weight"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), wanted), names.end()) << wanted;
  }
}

class Configuration : public ::testing::Test {
 protected:
  std::string error_with(const std::string& key, const std::string& value) {
    std::string text = config_text(small_config("torch"));
    const size_t at = text.find("\"" + key + "\":") + key.size() + 3;
    text.replace(at, text.find_first_of(",\n", at) - at, " " + value);
    write_file(folder_.path() / kConfigFile, text);
    return error_of([&] { read_config(folder_.path()); });
  }
  TemporaryFolder folder_;
};

TEST_F(Configuration, R52_NumbersThatCannotBeAreNamedByTheirKey) {
  for (const char* key :
       {"num_encoder_layers", "nhead", "dim_feedforward", "src_vocab_size", "max_len", "d_model"}) {
    for (const char* value : {"-1", "1e9", "2147483648000000", "1.5", "\"12\"", "true", "[]"}) {
      EXPECT_TRUE(contains(error_with(key, value), key)) << key << " " << value;
    }
  }
  EXPECT_TRUE(contains(error_with("dropout", "1"), "dropout"));
  EXPECT_TRUE(contains(error_with("nhead", "4"), "nhead x d_qk"));
  EXPECT_TRUE(contains(error_with("model_type", "\"bert\""), "model_type"));
}

TEST_F(Configuration, AMisspeltKeyNamesTheNearest) {
  write_file(
      folder_.path() / kConfigFile,
      R"({"model_type": "rapt.EncoderDecoder", "src_vocab_size": 3, "tgt_vocab_size": 3, "nheads": 2})");
  const std::string error = error_of([&] { read_config(folder_.path()); });
  EXPECT_TRUE(contains(error, "nheads")) << error;
  EXPECT_TRUE(contains(error, "nhead")) << error;
}

TEST_F(Configuration, R53_ALargeClaimOfASmallFileTakesNoMemory) {
  save_encoder_decoder(make_model(small_config("torch"), DType::f32), folder_.path());
  std::string text = config_text(small_config("torch"));
  text.replace(text.find("\"src_vocab_size\": 9"), 19, "\"src_vocab_size\": 9000000");
  text.replace(text.find("\"d_model\": 6"), 12, "\"d_model\": 600");
  text.replace(text.find("\"d_qk\": 2"), 9, "\"d_qk\": 200");
  text.replace(text.find("\"d_v\": 2"), 8, "\"d_v\": 200");
  write_file(folder_.path() / kConfigFile, text);
  const int64_t before = memory_use().peak;
  EXPECT_TRUE(contains(error_of([&] { load_encoder_decoder(folder_.path()); }),
                       "parameters that config.json describes"));
  EXPECT_LE(memory_use().peak - before, 1 << 20);
}

}  // namespace
}  // namespace rapt::models
