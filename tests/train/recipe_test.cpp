#include "rapt/train/recipe.h"

#include "rapt/decode/greedy.h"
#include "tests/train/runs.h"

namespace rapt::train {
namespace {

using namespace testing;

Recipe tiny() {
  Recipe recipe = tiny_recipe();
  recipe.model.dropout = recipe.model.position_dropout = 0;
  recipe.schedule = {.rate = 1e-2, .warmup = 5};
  recipe.fit.epochs = 40;
  recipe.fit.batches.tokens = 0;  // the corpus decides
  return recipe;
}

data::PairVocabularies unequal_words() {
  text::WordCounter source, target;
  source.add("a b c");
  target.add("x y z w");
  return {source.build(), target.build()};
}

ErrorKind kind_of(const Recipe& recipe) {
  try {
    recipe.check();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "expected an Error";
  return ErrorKind::failure;
}

TEST(Recipe, SettingsThatContradictEachOtherAreConfigErrors) {
  small_recipe().check();
  Recipe recipe = small_recipe();
  recipe.model.nhead = 3;
  EXPECT_EQ(kind_of(recipe), ErrorKind::config);
  recipe = small_recipe();
  recipe.model.max_len = 1;
  EXPECT_EQ(kind_of(recipe), ErrorKind::config);
  recipe = small_recipe();
  recipe.schedule.rate = -1;
  EXPECT_EQ(kind_of(recipe), ErrorKind::config);
}

TEST(Recipe, TheTranslatorTakesSizesAndIdsFromItsVocabularies) {
  const decode::Translator t = make_translator(tiny(), unequal_words());
  const models::EncoderDecoderConfig& config = t.model->config();
  EXPECT_EQ(config.src_vocab_size, 7);
  EXPECT_EQ(config.tgt_vocab_size, 8);
  EXPECT_EQ(config.start_id, 1);
  EXPECT_EQ(config.end_id, 2);
  EXPECT_EQ(config.unk_id, 3);
  EXPECT_EQ(config.d_model, 16);
}

TEST(Recipe, SentencesFillThePositionsAndNoMore) {
  const data::PairOptions pairs = tiny().pairs();
  EXPECT_EQ(pairs.max_source_words, 12);
  EXPECT_EQ(pairs.max_target_words, 11);  // the start symbol takes one
  EXPECT_TRUE(pairs.skip_too_long);
}

TEST(Recipe, AnEighthOfTheCorpusIsAStep) {
  data::PairCorpus corpus;
  const std::vector<int32_t> four(4, 3), long_one(99, 3);
  for (int64_t i = 0; i < 80; ++i) corpus.add(four, four, static_cast<uint64_t>(i));
  EXPECT_EQ(batch_tokens(corpus), 90);  // 80 x (4 + 4 and the start) / 8
  for (int64_t i = 0; i < 10; ++i) corpus.add(four, four, static_cast<uint64_t>(i));
  EXPECT_EQ(batch_tokens(corpus), 102);  // rounded up
  corpus.add(long_one, long_one, 0);
  EXPECT_EQ(batch_tokens(corpus), 199);  // the longest pair fits
  for (int64_t i = 0; i < 9000; ++i) corpus.add(four, four, static_cast<uint64_t>(i));
  EXPECT_EQ(batch_tokens(corpus), 4096);
}

TEST(Recipe, LearnsAHandfulOfPairsByHeart) {
  const decode::Translator t = make_translator(tiny(), unequal_words());
  data::PairCorpus corpus;
  const std::pair<const char*, const char*> pairs[] = {
      {"a b", "x"}, {"b a", "y z"}, {"c", "w x y"}};
  std::vector<std::vector<int32_t>> sources;
  for (const auto& [source, target] : pairs) {
    sources.push_back(t.source.encode(source, "test"));
    corpus.add(sources.back(), t.target.encode(target, "test"), sources.size());
  }
  int64_t epochs = 0;
  const double loss = learn(t, corpus, tiny(), [&](const Progress& p) { epochs = p.epoch; });
  EXPECT_EQ(epochs, 40);
  EXPECT_LT(loss, 0.8);  // smoothed labels alone leave 0.5
  const auto results = decode::greedy(*t.model, sources);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(t.target.decode(results[i].ids), pairs[i].second);
}

}  // namespace
}  // namespace rapt::train
