#include "rapt/tensor/pass.h"

#include <set>

#include "tests/testing/small_ops.h"

namespace rapt {
namespace {

using testing::error_of;
using testing::random_tensor;

TEST(Pass, WithoutGradientsRecordsNothing) {
  const Parameter weight(random_tensor({2, 3}, 1));
  const Pass pass = Pass::inference();
  EXPECT_FALSE(pass.training());
  EXPECT_FALSE(pass.use(weight).recorded());
  EXPECT_FALSE(testing::times_by_write(pass.use(weight, 0, 1), 2).recorded());
  EXPECT_TRUE(pass.use(weight).shares_memory(weight.value()));
}

TEST(Pass, WithGradientsParametersAreLeaves) {
  const Parameter weight(random_tensor({2, 3}, 1));
  Gradients gradients;
  const Pass pass = Pass::train(gradients, 1, 2);
  EXPECT_TRUE(pass.training());
  EXPECT_TRUE(pass.use(weight).recorded());
  EXPECT_TRUE(pass.use(weight).same_place(pass.use(weight)));
  EXPECT_EQ(pass.use(weight, 1, 1).shape(), Shape({1, 3}));
}

TEST(Pass, PathsNameThePlaceInTheModel) {
  const Pass root;
  EXPECT_EQ(root.path(), "");
  const Pass layer = root.scope("encoder").scope("layers", 3);
  EXPECT_EQ(layer.path(), "encoder.layers.3");
  EXPECT_EQ(layer.scope("norm").path(), "encoder.layers.3.norm");
  EXPECT_EQ(layer.path(), "encoder.layers.3");
}

TEST(Pass, DropoutKeysDifferByPathSeedAndStepAlone) {
  const auto key = [](uint64_t seed, uint64_t step, const char* path) {
    return Pass({.training = true, .seed = seed, .step = step}).scope(path).dropout(0.5).key;
  };
  const std::set<PhiloxKey> keys = {key(1, 1, "a"), key(2, 1, "a"), key(1, 2, "a"),
                                    key(1, 1, "b"), key(2, 2, "a"), key(1, 1, "a.b")};
  EXPECT_EQ(keys.size(), 6u);
  EXPECT_EQ(key(1, 1, "a"), key(1, 1, "a"));
  Gradients gradients;  // whether gradients are wanted makes no difference
  EXPECT_EQ(Pass::train(gradients, 1, 1).scope("a").dropout(0.5).key, key(1, 1, "a"));
}

TEST(Pass, DropoutActsInTrainingOnly) {
  EXPECT_EQ(Pass({.training = true}).dropout(0.25).probability, 0.25);
  EXPECT_EQ(Pass::inference().dropout(0.25).probability, 0);
}

TEST(Pass, ImpossibleProbabilitiesAreErrorsThatNameTheSite) {
  const Pass pass = Pass({.training = true}).scope("layers", 2);
  for (const double probability : {1.0, -0.1, 2.0, std::nan("")}) {
    EXPECT_NE(error_of([&] { pass.dropout(probability); }).find("layers.2"), std::string::npos);
    error_of([&] { Pass::inference().dropout(probability); });
  }
}

TEST(Pass, WeightsAreCapturedWhereTheyAreWanted) {
  AttentionCapture capture;
  capture.wants = [](std::string_view path) { return path == "b"; };
  const Pass pass({.capture = &capture});
  EXPECT_FALSE(pass.scope("a").wants_weights());
  EXPECT_TRUE(pass.scope("b").wants_weights());
  pass.scope("b").give_weights(Tensor::zeros({1}, DType::f32));
  ASSERT_EQ(capture.entries.size(), 1u);
  EXPECT_EQ(capture.entries[0].path, "b");
  capture.wants = nullptr;
  EXPECT_TRUE(pass.scope("a").wants_weights());
  EXPECT_FALSE(Pass::inference().wants_weights());
}

}  // namespace
}  // namespace rapt
