// Models in int8: quantised when loading and stored, and what cannot be.
#include <cmath>
#include <limits>

#include "rapt/base/file.h"
#include "rapt/models/checkpoint.h"
#include "rapt/models/int8_weights.h"
#include "tests/testing/translators.h"

namespace rapt::models {
namespace {

using namespace testing;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Tensor logits(const EncoderDecoder& model) {
  const SmallBatch batch = small_batch();
  return model.forward(batch.source, batch.source_rows, batch.target, batch.target_rows, Pass());
}

EncoderDecoderConfig config_of(const std::string& layout, TieEmbeddings tie) {
  EncoderDecoderConfig config = small_config(layout);
  config.tie_embeddings = tie;
  if (tie == TieEmbeddings::three) config.src_vocab_size = config.tgt_vocab_size = 9;
  return config;
}

class Int8Folders : public ::testing::TestWithParam<std::tuple<std::string, TieEmbeddings>> {
 protected:
  void SetUp() override {
    const auto& [layout, tie] = GetParam();
    const EncoderDecoder model = make_model(config_of(layout, tie), DType::f32, 3);
    std::filesystem::create_directory(plain());
    std::filesystem::create_directory(narrow());
    save_encoder_decoder(model, plain());
    save_encoder_decoder(model, narrow(), {.int8 = true});
  }
  std::filesystem::path plain() const { return folder_.path() / "plain"; }
  std::filesystem::path narrow() const { return folder_.path() / "int8"; }

  TemporaryFolder folder_;
};

TEST_P(Int8Folders, AConvertedFolderHasTheBitsOfQuantisingWhenLoading) {
  const auto loaded = load_int8(plain()), stored = load_int8(narrow());
  EXPECT_TRUE(same_bits(logits(*loaded), logits(*stored)));
  auto frozen = load_encoder_decoder(plain());
  const Tensor before = logits(*frozen);
  frozen->make_int8();
  EXPECT_TRUE(same_bits(logits(*loaded), logits(*frozen)));
  EXPECT_FALSE(same_bits(before, logits(*frozen)));
  EXPECT_LT(difference(logits(*frozen), before), 0.1);
}

TEST_P(Int8Folders, SaysWhatItHolds) {
  EXPECT_FALSE(holds_int8(plain()));
  EXPECT_TRUE(holds_int8(narrow()));
  const SafetensorsFile file(narrow() / kWeightsFile);
  int64_t matrices = 0;
  for (const TensorInfo& info : file.tensors()) {
    if (info.type != FileType::i8) continue;
    ++matrices;
    EXPECT_EQ(info.shape.size(), 2u);
    EXPECT_EQ(file.at(scale_name(info.name)).shape, std::vector<int64_t>{info.shape[0]});
  }
  EXPECT_GE(matrices, 2 * 4 + 2 * 6);  // of two layers on each side
}

// For anything that wants weights: training, gradients, f32.
TEST_P(Int8Folders, IsForInferenceAlone) {
  const std::string error = error_of([&] { load_encoder_decoder(narrow(), DType::f32); });
  EXPECT_TRUE(contains(error, "int8") && contains(error, "converted from")) << error;
  const auto model = load_int8(narrow());
  Gradients gradients;
  const SmallBatch batch = small_batch();
  EXPECT_TRUE(contains(error_of([&] {
                         model->forward(batch.source, batch.source_rows, batch.target,
                                        batch.target_rows, Pass::train(gradients, 1, 1));
                       }),
                       "frozen"));
  EXPECT_TRUE(contains(error_of([&] { save_encoder_decoder(*model, plain()); }), "frozen"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Int8Folders,
                         ::testing::Combine(::testing::Values("rapt", "torch", "hand_built"),
                                            ::testing::Values(TieEmbeddings::none,
                                                              TieEmbeddings::two,
                                                              TieEmbeddings::three)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  std::string(name_of(std::get<1>(info.param)));
                         });

TEST(Int8Model, TiedMatricesThatDifferAreNamed) {
  const TemporaryFolder folder;
  EncoderDecoderConfig config = config_of("rapt", TieEmbeddings::none);
  save_encoder_decoder(make_model(config, DType::f32), folder.path(), {.int8 = true});
  config.tie_embeddings = TieEmbeddings::two;
  write_file(folder.path() / kConfigFile, config_text(config));
  const std::string error = error_of([&] { load_int8(folder.path()); });
  EXPECT_TRUE(contains(error, "projection.weight: expected the same values")) << error;
}

// A sentence by itself, and step by step, gets the bits that it gets among others.
TEST(Int8Model, MatesAndCachesChangeNothing) {
  EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 5);
  model.make_int8();
  const SmallBatch batch = small_batch();
  const Tensor together = logits(model);
  for (int64_t b = 0; b < 3; ++b) {
    const kernels::Segment &s = batch.source_rows[b], &t = batch.target_rows[b];
    const Rows rows = Rows::packed({s.count});
    const Tensor source = batch.source.rows(s.row, s.count),
                 target = batch.target.rows(t.row, t.count);
    const Tensor alone = model.forward(source, rows, target, Rows::packed({t.count}), Pass());
    EXPECT_TRUE(same_bits(alone, together.rows(t.row, t.count))) << b;
    const nn::Memory memory = model.encode(source, rows, Pass());
    auto state = model.start(memory, Pass());
    for (int64_t i = 0; i < t.count; ++i) {
      const Rows step({kernels::Segment{0, 1, i, 0}});
      EXPECT_TRUE(same_bits(model.step(target.rows(i, 1), step, memory, state, Pass()),
                            together.rows(t.row + i, 1)))
          << b << " " << i;
    }
  }
}

TEST(Int8Model, OfF64IsRefused) {
  EncoderDecoder model = make_model(small_config("rapt"), DType::f64);
  EXPECT_TRUE(contains(error_of([&] { model.make_int8(); }), "expected a matrix of f32"));
}

TEST(Int8Model, AWeightThatIsNotFiniteIsNotStored) {
  const TemporaryFolder folder;
  EncoderDecoder model = make_model(small_config("rapt"), DType::f32);
  for (const NamedParameter& p : nn::parameters(model)) {
    Tensor value = p.value();
    if (p.name == "decoder.layers.1.feed_forward.linear2.weight") value.data<float>()[11] = NAN;
  }
  const std::string error =
      error_of([&] { save_encoder_decoder(model, folder.path(), {.int8 = true}); });
  EXPECT_TRUE(contains(error, "decoder.layers.1.feed_forward.linear2.weight: row 1")) << error;
}

// A folder in int8 with one of its tensors changed.
class Hostile : public ::testing::Test {
 protected:
  Hostile() {
    save_encoder_decoder(make_model(small_config("rapt"), DType::f32), folder_.path(),
                         {.int8 = true});
  }

  // Writes the file again, each tensor as `change` leaves it; without its write function it is left
  // out.
  std::string error_after(const std::function<void(TensorSource&)>& change) {
    std::vector<TensorSource> sources;
    {
      const SafetensorsFile file(folder_.path() / kWeightsFile);
      for (const TensorInfo& info : file.tensors()) {
        const bool bytes = info.type == FileType::i8;
        const Tensor tensor = file.load(info, bytes ? DType::i32 : DType::f32);
        TensorSource source = source_of(info.name, tensor);
        if (bytes) {
          source.type = FileType::i8;
          const std::vector<int32_t> wide = tensor.to_vector<int32_t>();
          source.write = [narrow = std::vector<int8_t>(wide.begin(), wide.end())](
                             const ByteSink& sink) { sink(std::as_bytes(std::span(narrow))); };
        }
        change(source);
        if (source.write) sources.push_back(source);
      }
    }
    write_safetensors(folder_.path() / kWeightsFile, sources);
    try {
      load_int8(folder_.path());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::model) << error.what();
      return error.what();
    }
    return "";
  }

  const std::string matrix_ = "encoder.layers.0.feed_forward.linear1.weight";
  TemporaryFolder folder_;
};

TEST_F(Hostile, UnchangedItIsFine) {
  EXPECT_EQ(error_after([](TensorSource&) {}), "");
}

TEST_F(Hostile, MissingScalesAreNamed) {
  const std::string error = error_after([&](TensorSource& source) {
    if (source.name == scale_name(matrix_)) source.write = nullptr;
  });
  EXPECT_TRUE(contains(error, scale_name(matrix_))) << error;
}

TEST_F(Hostile, ScalesOfAnotherShapeAreNamed) {
  const std::string error = error_after([&](TensorSource& source) {
    if (source.name == scale_name(matrix_))
      source = source_of(source.name, Tensor::full({10}, DType::f32, 1));
  });
  EXPECT_TRUE(contains(error, "expected a scale for each of the 11 rows")) << error;
}

TEST_F(Hostile, ScalesThatCannotBeAreNamed) {
  for (const double bad : {std::nan(""), -1.0, std::numeric_limits<double>::infinity()}) {
    const std::string error = error_after([&](TensorSource& source) {
      if (source.name == scale_name(matrix_))
        source = source_of(source.name, Tensor::full({11}, DType::f32, bad));
    });
    EXPECT_TRUE(contains(error, scale_name(matrix_) + ": expected numbers of at least 0")) << error;
  }
}

TEST_F(Hostile, AMatrixOfAnotherShapeIsNamed) {
  const std::string error = error_after([&](TensorSource& source) {
    if (source.name == matrix_) source.shape = {6, 11};
  });
  EXPECT_TRUE(contains(error, matrix_ + ": expected shape (11, 6), got (6, 11)")) << error;
}

TEST_F(Hostile, AScaleWithoutItsMatrixIsNamed) {
  const std::string error = error_after([&](TensorSource& source) {
    if (source.name == scale_name(matrix_)) source.name = "stray.scale";
  });
  EXPECT_NE(error, "");
}

}  // namespace
}  // namespace rapt::models
