#include "rapt/decode/best_tokens.h"

#include "tests/testing/tensors.h"

namespace rapt::decode {
namespace {

using namespace testing;

Tensor rows(const std::vector<float>& values, int64_t V) {
  return Tensor::from(values, {static_cast<int64_t>(values.size()) / V, V});
}

std::vector<int32_t> ids_of(const std::vector<Candidate>& row) {
  std::vector<int32_t> found;
  for (const Candidate& c : row) found.push_back(c.id);
  return found;
}

TEST(BestTokens, ComeInOrderAndOfEqualOnesTheFirst) {
  const auto best = best_tokens(rows({1, 3, 2, 3, 0, 5, 5, 5, 5, 5}, 5), {{3}, {2}}, "test", 0);
  EXPECT_EQ(ids_of(best[0]), (std::vector<int32_t>{1, 3, 2}));
  EXPECT_EQ(ids_of(best[1]), (std::vector<int32_t>{0, 1}));
  EXPECT_NEAR(best[1][1].log_probability, -std::log(5), 1e-6);
}

TEST(BestTokens, ThatCannotBeAreLeftOut) {
  EXPECT_EQ(ids_of(best_tokens(rows({-INFINITY, 2, -INFINITY, 7}, 4), {{9}}, "test", 0)[0]),
            (std::vector<int32_t>{3, 1}));
}

TEST(BestTokens, AForcedOneStandsAloneWhateverItIs) {
  const auto best = best_tokens(rows({1, 3, 2, 0}, 4), {{.count = 3, .forced = 3}}, "test", 0);
  EXPECT_EQ(ids_of(best[0]), std::vector<int32_t>{3});
  EXPECT_EQ(best[0][0].logit, 0);
  EXPECT_NEAR(best[0][0].log_probability,
              -std::log(1 + std::exp(1.0) + std::exp(2.0) + std::exp(3.0)), 1e-6);
}

TEST(BestTokens, RowsThatAreNotFiniteAreErrorsThatNameTheStep) {
  for (const std::vector<float>& bad : {std::vector<float>{9, 8, 7, NAN},
                                        {NAN, 1, 2, 3},
                                        {1, INFINITY, 2, 3},
                                        std::vector<float>(4, -INFINITY)}) {
    EXPECT_NE(error_of([&] { best_tokens(rows(bad, 4), {{2}}, "test", 17); }).find("step 17"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace rapt::decode
