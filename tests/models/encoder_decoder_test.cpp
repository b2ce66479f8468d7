#include "rapt/models/encoder_decoder.h"

#include <map>
#include <thread>

#include "rapt/base/runtime.h"
#include "rapt/ops/cross_entropy.h"
#include "tests/testing/modules.h"
#include "tests/testing/translators.h"

namespace rapt::models {
namespace {

using namespace testing;

const DType kTypes[] = {DType::f32, DType::f64};

Loss loss_of(const EncoderDecoder& model, const SmallBatch& batch, const Pass& pass) {
  return cross_entropy(
      model.forward(batch.source, batch.source_rows, batch.target, batch.target_rows, pass),
      batch.labels);
}

// The loss, the logits and all gradients of a batch.
std::vector<std::pair<std::string, Tensor>> everything(const EncoderDecoder& model,
                                                       const SmallBatch& batch, uint64_t seed) {
  Gradients gradients;
  const Pass pass = Pass::train(gradients, seed, 0);
  const Loss loss = loss_of(model, batch, pass);
  backward(loss.sum);
  auto all = all_gradients(model, gradients);
  all.emplace_back("loss", loss.sum.detach());
  all.emplace_back("logits",
                   model.forward(batch.source, batch.source_rows, batch.target, batch.target_rows,
                                 Pass({.training = true, .seed = seed})));
  return all;
}

class Spellings : public ::testing::TestWithParam<std::string> {};

TEST_P(Spellings, EveryParameterHasItsGradient) {
  for (const TieEmbeddings tie : {TieEmbeddings::none, TieEmbeddings::two, TieEmbeddings::three}) {
    EncoderDecoderConfig config = small_config(GetParam());
    config.activation = "gelu";  // relu's kinks would disturb finite differences
    config.tie_embeddings = tie;
    config.tgt_vocab_size = config.src_vocab_size;
    config.scale_embeddings = tie != TieEmbeddings::none;
    config.dropout = 0.1;
    config.norm_first = tie == TieEmbeddings::two;
    const EncoderDecoder model = make_model(config, DType::f64);
    const SmallBatch batch = small_batch();
    EXPECT_TRUE(
        check_module(model,
                     [&](const Pass& pass) {
                       return model.forward(batch.source, batch.source_rows, batch.target,
                                            batch.target_rows, pass);
                     },
                     {.tolerance = 1e-6, .most = 5, .pass = {.training = true, .seed = 4}}));
  }
}

TEST_P(Spellings, EachDropoutActsByItself) {
  const SmallBatch batch = small_batch();
  const auto logits = [&](auto change, bool training) {
    EncoderDecoderConfig config = small_config(GetParam());
    config.dropout = config.position_dropout = 0;
    change(config);
    return make_model(config, DType::f64)
        .forward(batch.source, batch.source_rows, batch.target, batch.target_rows,
                 Pass({.training = training, .seed = 1}));
  };
  const Tensor none = logits([](auto&) {}, true);
  using Config = EncoderDecoderConfig;
  std::vector<Tensor> seen = {none};
  for (const auto change :
       {+[](Config& c) { c.dropout = 0.3; }, +[](Config& c) { c.position_dropout = 0.3; },
        +[](Config& c) { c.attention_dropout = 0.3; },
        +[](Config& c) { c.activation_dropout = 0.3; }}) {
    EXPECT_TRUE(same_bits(logits(change, false), none));
    seen.push_back(logits(change, true));
    for (size_t i = 0; i + 1 < seen.size(); ++i) EXPECT_FALSE(same_bits(seen.back(), seen[i])) << i;
  }
  const auto all = [](Config& c) { c.dropout = 0.3; };
  const auto outputs = [](Config& c) {
    c.dropout = 0.3;
    c.attention_dropout = c.activation_dropout = 0;
  };
  EXPECT_FALSE(same_bits(logits(all, true), logits(outputs, true)));
}

TEST_P(Spellings, CountsItsParametersFromTheConfiguration) {
  for (const TieEmbeddings tie : {TieEmbeddings::none, TieEmbeddings::two, TieEmbeddings::three}) {
    for (const bool on : {false, true}) {
      EncoderDecoderConfig config = small_config(GetParam());
      config.tgt_vocab_size = config.src_vocab_size;
      config.tie_embeddings = tie;
      config.projection_bias = config.final_norm = on;
      config.num_encoder_layers = 3;
      EXPECT_EQ(config.count_parameters(), nn::count_parameters(make_model(config, DType::f32)));
    }
  }
}

TEST_P(Spellings, PackedAndPaddedAgreeInLogitsAndGradients) {
  for (const DType dtype : kTypes) {
    EncoderDecoderConfig config = small_config(GetParam());
    config.dropout = 0.2;
    const EncoderDecoder model = make_model(config, dtype);
    const SmallBatch batch = small_batch();
    const Padded source = padded(batch.source, batch.source_rows),
                 target = padded(batch.target, batch.target_rows);
    Gradients packed_gradients, padded_gradients;
    const PassOptions options{.training = true, .seed = 5};
    PassOptions record = options;
    record.gradients = &packed_gradients;
    const Tensor logits = model.forward(batch.source, batch.source_rows, batch.target,
                                        batch.target_rows, Pass(record));
    const Tensor dy = random_tensor(logits.shape(), 3, dtype);
    backward(logits, dy);
    record.gradients = &padded_gradients;
    const Tensor wide = model.forward(source.ids, source.rows, target.ids, target.rows,
                                      Pass(record), source.mask, target.mask);
    EXPECT_LE(difference(take_rows(wide, target.real), logits), equal_within(dtype));
    Tensor wide_dy = Tensor::zeros(wide.shape(), dtype);
    int64_t row = 0;
    for (const auto& [begin, count] : target.real) {
      Tensor to = wide_dy.rows(begin, count);
      const Tensor from = dy.rows(row, count);
      std::memcpy(to.raw(), from.raw(), static_cast<size_t>(from.numel() * size_of(dtype)));
      row += count;
    }
    backward(wide, wide_dy);
    const auto a = all_gradients(model, padded_gradients),
               b = all_gradients(model, packed_gradients);
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_LE(difference(a[i].second, b[i].second), equal_within(dtype)) << a[i].first;
  }
}

TEST_P(Spellings, OneThreadAndManyAndTheSameRunTwiceAgreeInEveryBit) {
  for (const DType dtype : kTypes) {
    EncoderDecoderConfig config = small_config(GetParam());
    config.d_model = 48;
    config.dim_feedforward = 130;
    config.dropout = 0.1;
    const EncoderDecoder model = make_model(config, dtype);
    const SmallBatch batch = small_batch();
    std::vector<std::pair<std::string, Tensor>> first;
    for (const int threads : {1, 1, 2, 3, 4}) {
      Runtime runtime({.threads = threads, .log = {}});
      const Runtime::Scope scope(runtime);
      const auto all = everything(model, batch, 6);
      if (first.empty()) first = all;
      for (size_t i = 0; i < all.size(); ++i)
        EXPECT_TRUE(same_bits(all[i].second, first[i].second)) << all[i].first << " " << threads;
    }
  }
}

TEST_P(Spellings, ASentenceAloneIsThatWithAnyMatesBitForBit) {
  for (const DType dtype : kTypes) {
    const EncoderDecoder model = make_model(small_config(GetParam()), dtype);
    const SmallBatch batch = small_batch();
    const Tensor together =
        model.forward(batch.source, batch.source_rows, batch.target, batch.target_rows, Pass());
    for (int64_t b = 0; b < 3; ++b) {
      const Segment s = batch.source_rows[b], t = batch.target_rows[b];
      const Tensor alone =
          model.forward(batch.source.rows(s.row, s.count), Rows::packed({s.count}),
                        batch.target.rows(t.row, t.count), Rows::packed({t.count}), Pass());
      EXPECT_TRUE(same_bits(alone, together.rows(t.row, t.count).contiguous_copy())) << b;
    }
  }
}

TEST_P(Spellings, R16_AccumulatedGradientsAreThoseOfTheLargeBatch) {
  for (const DType dtype : kTypes) {
    EncoderDecoderConfig config = small_config(GetParam());
    config.dropout = 0.2;
    const EncoderDecoder model = make_model(config, dtype);
    const SmallBatch batch = small_batch();
    Gradients whole, parts;
    backward(loss_of(model, batch, Pass::train(whole, 1, 0)).sum);
    int64_t count = 0;
    for (int64_t b = 0; b < 3; ++b) {
      const Segment s = batch.source_rows[b], t = batch.target_rows[b];
      const uint64_t sample[] = {static_cast<uint64_t>(b)};
      const int64_t source_length[] = {s.count}, target_length[] = {t.count};
      const SmallBatch part{batch.source.rows(s.row, s.count), batch.target.rows(t.row, t.count),
                            batch.labels.rows(t.row, t.count), Rows::packed(source_length, sample),
                            Rows::packed(target_length, sample)};
      const Loss loss = loss_of(model, part, Pass::train(parts, 1, 0));
      backward(loss.sum);
      count += loss.count;
    }
    EXPECT_EQ(count, 9);
    const auto a = all_gradients(model, parts), b = all_gradients(model, whole);
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_LE(difference(a[i].second, b[i].second), equal_within(dtype)) << a[i].first;
  }
}

TEST_P(Spellings, R04_NoTokenSeesALaterOne) {
  const EncoderDecoder model = make_model(small_config(GetParam()), DType::f32);
  const Tensor source = ids({3, 4, 5}), before = ids({1, 3, 4, 5, 6}), after = ids({1, 3, 4, 6, 2});
  const Rows s = Rows::packed({3}), t = Rows::packed({5});
  const Tensor a = model.forward(source, s, before, t, Pass()),
               b = model.forward(source, s, after, t, Pass());
  EXPECT_TRUE(same_bits(a.rows(0, 3), b.rows(0, 3)));
  EXPECT_FALSE(same_bits(a.rows(3, 1), b.rows(3, 1)));
}

TEST_P(Spellings, GivesTheWeightsOfAllThreeKinds) {
  const EncoderDecoder model = make_model(small_config(GetParam()), DType::f64);
  const SmallBatch batch = small_batch();
  Attentions attentions;
  const Tensor with =
      model.forward(batch.source, batch.source_rows, batch.target, batch.target_rows, attentions);
  EXPECT_TRUE(same_bits(with, model.forward(batch.source, batch.source_rows, batch.target,
                                            batch.target_rows, Pass())));
  ASSERT_EQ(attentions.encoder.size(), 2u);
  ASSERT_EQ(attentions.decoder.size(), 2u);
  ASSERT_EQ(attentions.cross.size(), 2u);
  EXPECT_EQ(attentions.encoder[1].shape(), (Shape{3, 3, 4, 4}));
  EXPECT_EQ(attentions.decoder[1].shape(), (Shape{3, 3, 5, 5}));
  EXPECT_EQ(attentions.cross[1].shape(), (Shape{3, 3, 5, 4}));
  const double* w =
      attentions.decoder[0].data<double>() + (2 * 3 + 1) * 25;  // head 1 of the sentence of five
  for (int i = 0; i < 5; ++i) {
    double sum = 0;
    for (int j = 0; j < 5; ++j) {
      sum += w[i * 5 + j];
      if (j > i) {
        EXPECT_EQ(w[i * 5 + j], 0);
      }
    }
    EXPECT_NEAR(sum, 1, 1e-14);
  }
  const double* short_row =
      attentions.cross[0].data<double>() + 4 * 4;  // sentence 0 has three target tokens
  for (int j = 0; j < 4; ++j) EXPECT_EQ(short_row[j], 0);
}

TEST_P(Spellings, R24_ASentenceLongerThanTheModelIsRefused) {
  const EncoderDecoder model = make_model(small_config(GetParam()), DType::f32);
  const std::vector<int32_t> words(13, 3);
  const auto run = [&](int64_t length) {
    const Tensor source =
        Tensor::from(std::span(words).first(static_cast<size_t>(length)), {length});
    return model.forward(source, Rows::packed({length}), ids({1}), Rows::packed({1}), Pass());
  };
  EXPECT_EQ(run(11).dim(0), 1);
  EXPECT_EQ(run(12).dim(0), 1);
  const std::string error = error_of([&] { run(13); });
  EXPECT_NE(error.find("13"), std::string::npos) << error;
  EXPECT_NE(error.find("12 positions"), std::string::npos) << error;
}

// pytorch/pytorch#86274
TEST_P(Spellings, R11_LayersStartWithWeightsOfTheirOwn) {
  EXPECT_TRUE(check_first_weights([](Rng& rng) {
    EncoderDecoderConfig config = small_config(GetParam());
    config.num_encoder_layers = config.num_decoder_layers = 4;
    return std::make_unique<EncoderDecoder>(config, nn::Init{.rng = &rng, .dtype = DType::f64});
  }));
}

INSTANTIATE_TEST_SUITE_P(All, Spellings, ::testing::Values("hand_built", "torch", "rapt"),
                         [](const auto& info) { return info.param; });

TEST(EncoderDecoder, ManyThreadsMayShareAModel) {
  const EncoderDecoder model = make_model(small_config("rapt"), DType::f64);
  const SmallBatch batch = small_batch();
  const auto expected = everything(model, batch, 3);
  std::vector<std::vector<std::pair<std::string, Tensor>>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = everything(model, batch, 3); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    for (size_t i = 0; i < result.size(); ++i)
      EXPECT_TRUE(same_bits(result[i].second, expected[i].second)) << result[i].first;
  }
}

TEST(EncoderDecoder, IsInitialisedAsPyTorchInitialisesBothSpellings) {
  const auto named = [](const EncoderDecoder& model) {
    std::map<std::string, Tensor> all;
    for (const NamedParameter& p : nn::parameters(model)) all[p.name] = p.value();
    return all;
  };
  const auto largest = [](const Tensor& x) {
    double m = 0;
    for (const double v : values_of(x)) m = std::max(m, std::abs(v));
    return m;
  };
  EncoderDecoderConfig config = EncoderDecoderConfig::torch(50, 40);
  config.d_model = 64;
  config.nhead = 4;
  config.dim_feedforward = 96;
  config.num_encoder_layers = config.num_decoder_layers = 1;
  auto torch = named(make_model(config, DType::f64));
  const double in_proj = std::sqrt(6.0 / (64 + 3 * 64)), feed_forward = std::sqrt(6.0 / (64 + 96));
  EXPECT_NEAR(largest(torch["encoder.layers.0.self_attention.key.weight"]), in_proj,
              0.01 * in_proj);
  EXPECT_NEAR(largest(torch["decoder.layers.0.feed_forward.linear1.weight"]), feed_forward,
              0.01 * feed_forward);
  EXPECT_EQ(largest(torch["decoder.layers.0.cross_attention.value.bias"]), 0);
  EXPECT_EQ(largest(torch["decoder.layers.0.cross_attention.output.bias"]), 0);
  EXPECT_NEAR(largest(torch["encoder.layers.0.feed_forward.linear1.bias"]), 1.0 / 8, 0.1 / 8);
  EXPECT_NEAR(largest(torch["projection.weight"]), 1.0 / 8, 0.01 / 8);
  config.layout = "hand_built";
  auto hand = named(make_model(config, DType::f64));
  EXPECT_NEAR(largest(hand["encoder.layers.0.self_attention.query.weight"]), 1.0 / 8, 0.01 / 8);
  EXPECT_GT(largest(hand["encoder.layers.0.self_attention.query.bias"]), 0.1);
  double squares = 0;
  for (const double v : values_of(hand["source_embedding.weight"])) squares += v * v;
  EXPECT_NEAR(squares / 3200, 1, 0.1);
  EXPECT_EQ(largest(hand["encoder.layers.0.self_attention_norm.weight"]), 1);
  config.layout = "rapt";
  config.scale_embeddings = true;
  config.tie_embeddings = TieEmbeddings::two;
  auto scaled = named(make_model(config, DType::f64));
  for (const char* name : {"source_embedding.weight", "target_embedding.weight"}) {
    squares = 0;
    for (const double v : values_of(scaled[name])) squares += v * v;
    EXPECT_NEAR(squares / static_cast<double>(scaled[name].numel()) * 64, 1, 0.1) << name;
  }
}

TEST(EncoderDecoderConfig, SettingsThatCannotBeAreNamed) {
  const auto error = [](auto change) {
    EncoderDecoderConfig config = small_config("torch");
    change(config);
    return error_of([&] { config.check(); });
  };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(contains(error([](auto& c) { c.nhead = 4; }), "nhead 4 does not divide d_model 6"));
  EXPECT_TRUE(contains(error([](auto& c) { c.nhead = 0; }), "nhead"));
  EXPECT_TRUE(contains(error([](auto& c) { c.dim_feedforward = 0; }), "dim_feedforward"));
  EXPECT_TRUE(contains(error([](auto& c) { c.num_encoder_layers = -1; }), "num_encoder_layers"));
  EXPECT_TRUE(contains(error([](auto& c) { c.dropout = 1; }), "dropout"));
  EXPECT_TRUE(contains(error([](auto& c) { c.attention_dropout = -0.1; }), "attention_dropout"));
  EXPECT_TRUE(contains(error([](auto& c) { c.activation_dropout = 1; }), "activation_dropout"));
  EXPECT_TRUE(contains(error([](auto& c) { c.activation = "swish"; }), "swish"));
  EXPECT_TRUE(contains(error([](auto& c) { c.layout = "other"; }), "other"));
  EXPECT_TRUE(
      contains(error([](auto& c) { c.tie_embeddings = TieEmbeddings::three; }), "one vocabulary"));
  EXPECT_TRUE(contains(error([](auto& c) { c.end_id = 7; }), "end_id"));
  EXPECT_TRUE(contains(error([](auto& c) { c.max_len = int64_t{1} << 50; }), "max_len"));
}

}  // namespace
}  // namespace rapt::models
