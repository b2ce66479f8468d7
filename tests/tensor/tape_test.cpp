#include "rapt/tensor/tape.h"

#include "tests/testing/small_ops.h"

namespace rapt {
namespace {

using testing::error_of;
using testing::put;
using testing::random_tensor;
using testing::same_bits;
using testing::stack_rows;
using testing::times_by_add;
using testing::times_by_give;
using testing::times_by_write;

Tensor ones(const Shape& shape) { return Tensor::full(shape, DType::f64, 1); }

TEST(Tape, RecordsIfAndOnlyIfAnInputIsRecorded) {
  Gradients gradients;
  const Tensor x = random_tensor({2, 3}, 1), leaf = gradients.watch(x);
  EXPECT_FALSE(x.recorded());
  EXPECT_TRUE(leaf.recorded());
  EXPECT_FALSE(times_by_write(x, 2).recorded());
  EXPECT_TRUE(times_by_write(leaf, 2).recorded());
  EXPECT_TRUE(stack_rows({x, leaf}).recorded());
  EXPECT_FALSE(stack_rows({x, x}).recorded());
  EXPECT_FALSE(times_by_write(leaf.detach(), 2).recorded());
  EXPECT_TRUE(times_by_write(leaf.columns(1, 1), 2).recorded());
}

TEST(Tape, ABackwardAsksOnlyForRecordedInputs) {
  Gradients gradients;
  const Tensor x = random_tensor({2, 3}, 1), leaf = gradients.watch(x);
  const Tensor y = record(empty_like(x), {x, leaf, Tensor()}, [](const Tensor&, Sink& d) {
    EXPECT_FALSE(d.wants(0));
    EXPECT_TRUE(d.wants(1));
    EXPECT_FALSE(d.wants(2));
    EXPECT_NE(error_of([&] { d.write(0); }).find("internal error"), std::string::npos);
    put(ones({2, 3}), 5, d.write(1), false);
  });
  backward(y, ones({2, 3}));
  EXPECT_EQ(gradients.of(leaf).to_vector<double>(), std::vector<double>(6, 5));
}

TEST(Tape, EachVerbAddsToWhatOtherUsersWrote) {
  using Times = Tensor (*)(const Tensor&, double);
  const Times verbs[] = {times_by_write, times_by_add, times_by_give};
  for (const Times first : verbs) {
    for (const Times second : verbs) {
      Gradients gradients;
      const Tensor leaf = gradients.watch(random_tensor({2, 3}, 1));
      const Tensor h = times_by_write(leaf, 10);  // a result: its gradient may be adopted
      testing::poison_free_memory({6});
      backward(stack_rows({first(h, 2), second(h, 3)}), ones({4, 3}));
      EXPECT_EQ(gradients.of(leaf).to_vector<double>(), std::vector<double>(6, 50));
    }
  }
}

TEST(Tape, AGivenGradientBecomesTheBuffer) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2, 3}, 1));
  const void* given = nullptr;
  const Tensor h = times_by_write(leaf, 1);
  const Tensor seen = record(empty_like(h), {h}, [&](const Tensor& dy, Sink& d) {
    EXPECT_EQ(std::as_const(dy).raw(), given);
    put(dy, 1, d.write(0), false);
  });
  const Tensor y = record(empty_like(h), {seen}, [&](const Tensor& dy, Sink& d) {
    given = dy.raw();
    d.give(0, dy);  // nobody else holds it
  });
  backward(y, ones({2, 3}));
  EXPECT_EQ(gradients.of(leaf).to_vector<double>(), std::vector<double>(6, 1));
}

TEST(Tape, AGivenGradientThatIsHeldElsewhereIsCopied) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2, 3}, 1));
  Tensor kept;
  const Tensor h = times_by_write(leaf, 1);
  const Tensor in_place = record(empty_like(h), {h}, [&](const Tensor& dy, Sink& d) {
    Tensor dx = dy;
    put(dy, 7, dx, false);  // would change `kept` if it had been adopted
    d.give(0, dx);
  });
  backward(record(empty_like(h), {in_place},
                  [&](const Tensor& dy, Sink& d) {
                    kept = dy;
                    d.give(0, dy);
                  }),
           ones({2, 3}));
  EXPECT_EQ(kept.to_vector<double>(), std::vector<double>(6, 1));
  EXPECT_EQ(gradients.of(leaf).to_vector<double>(), std::vector<double>(6, 7));
}

TEST(Tape, TheGradientThatWasPassedInStaysAsItIs) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2, 3}, 1));
  const Tensor dy = ones({2, 3});
  backward(record(empty_like(leaf), {leaf},
                  [](const Tensor& g, Sink& d) {
                    Tensor dx = g;
                    put(g, 3, dx, false);
                    d.give(0, dx);
                  }),
           dy);
  EXPECT_EQ(dy.to_vector<double>(), std::vector<double>(6, 1));
}

TEST(Tape, ATensorUsedTwiceByOneOpGetsTheSum) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2, 3}, 1));
  const Tensor h = times_by_write(leaf, 1);
  Tensor dy = random_tensor({6, 3}, 2);
  const std::vector<double> g = dy.to_vector<double>();
  backward(stack_rows({h, leaf, h}), dy);
  const std::vector<double> got = gradients.of(leaf).to_vector<double>();
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(got[i], g[i] + g[i + 6] + g[i + 12], 1e-15);
}

TEST(Tape, WriteAndGiveOfTheSameInputAddUp) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2, 3}, 1));
  const Tensor h = times_by_write(leaf, 1);
  for (const bool give_first : {false, true}) {
    Gradients fresh;
    const Tensor x = fresh.watch(random_tensor({2, 3}, 1)), inner = times_by_write(x, 1);
    testing::poison_free_memory({6});
    backward(record(empty_like(x), {inner, inner},
                    [give_first](const Tensor& dy, Sink& d) {
                      Tensor given = empty_like(dy);
                      put(dy, 2, given, false);
                      if (give_first) d.give(0, std::move(given));
                      put(dy, 3, d.write(1), false);
                      if (!give_first) d.give(0, std::move(given));
                    }),
             ones({2, 3}));
    EXPECT_EQ(fresh.of(x).to_vector<double>(), std::vector<double>(6, 5));
  }
}

TEST(Tape, AnOpMayAskForAllBuffersBeforeItFillsThem) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({3, 4}, 1)), inner = times_by_write(leaf, 1);
  testing::poison_free_memory({12, 6, 9});
  const Tensor y =
      record(empty_like(leaf.columns(0, 3)), {inner.columns(0, 3), inner.columns(1, 3)},
             [](const Tensor& dy, Sink& d) {
               auto [first, first_is_new] = d.add(0);
               auto [second, second_is_new] = d.add(1);
               put(dy, 3, second, !second_is_new);
               put(dy, 2, first, !first_is_new);
             });
  backward(y, ones({3, 3}));
  EXPECT_EQ(gradients.of(leaf).rows(0, 1).to_vector<double>(), (std::vector<double>{2, 5, 5, 3}));
}

TEST(Tape, BackwardTwiceIsAnError) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2}, 1));
  const Tensor trunk = times_by_write(leaf, 2);
  const Tensor y = times_by_write(trunk, 2), z = times_by_write(trunk, 3);
  backward(y, ones({2}));
  EXPECT_NE(error_of([&] { backward(y, ones({2})); }).find("run before"), std::string::npos);
  EXPECT_NE(error_of([&] { backward(z, ones({2})); }).find("run before"), std::string::npos);
}

TEST(Tape, BackwardOfWhatDoesNotFitIsAnError) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2}, 1));
  EXPECT_NE(error_of([&] { backward(leaf.detach(), ones({2})); }).find("without gradients"),
            std::string::npos);
  const Tensor y = times_by_write(leaf, 2);
  EXPECT_NE(error_of([&] { backward(y, ones({3})); }).find("(2)"), std::string::npos);
  error_of([&] { backward(y, Tensor::zeros({2}, DType::f32)); });
  backward(y, ones({2}));  // the failures before left it usable
  EXPECT_EQ(gradients.of(leaf).to_vector<double>(), std::vector<double>(2, 2));
}

TEST(Tape, AScalarStartsWithOne) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(Tensor::full({1}, DType::f64, 3));
  backward(times_by_write(leaf, 4));
  EXPECT_EQ(gradients.of(leaf).item(), 4);
}

TEST(Tape, AViewOfAResultCanStartTheBackward) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2, 3}, 1));
  testing::poison_free_memory({6, 2});
  backward(times_by_add(leaf, 2).columns(1, 1), ones({2, 1}));
  EXPECT_EQ(gradients.of(leaf).to_vector<double>(), (std::vector<double>{0, 2, 0, 0, 2, 0}));
}

TEST(Tape, ResultsThatNoGradientReachesDoNotRun) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2}, 1));
  const Tensor unused =
      record(empty_like(leaf), {leaf}, [](const Tensor&, Sink&) { ADD_FAILURE() << "ran"; });
  const Tensor blocked =
      record(empty_like(leaf), {unused}, [](const Tensor&, Sink&) { /* sends nothing */ });
  backward(stack_rows({blocked, times_by_write(leaf, 2)}), ones({4, 1}));
  EXPECT_EQ(gradients.of(leaf).to_vector<double>(), std::vector<double>(2, 2));
}

TEST(Tape, ALongChainRunsAndIsFreedWithoutDeepRecursion) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(Tensor::full({1}, DType::f64, 1));
  for (const bool run : {true, false}) {
    Tensor y = leaf;
    // Each closure holds its input with its place on the tape, as products do.
    for (int i = 0; i < 100'000; ++i) {
      const Tensor x = y;
      y = record(Tensor::full({1}, DType::f64, 1), {x},
                 [x](const Tensor& dy, Sink& d) { put(dy, 1, d.write(0), false); });
    }
    if (run) backward(y);
  }
  EXPECT_EQ(gradients.of(leaf).item(), 1);
}

TEST(Tape, SavedTensorsAreFreedDuringTheBackward) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({4}, 1));
  std::weak_ptr<int> saved_early, saved_late;
  const auto op = [](const Tensor& x, std::weak_ptr<int>& watcher, std::function<void()> check) {
    const auto saved = std::make_shared<int>(0);
    watcher = saved;
    return record(empty_like(x), {x}, [saved, check](const Tensor& dy, Sink& d) {
      check();
      put(dy, 1, d.write(0), false);
    });
  };
  const Tensor h = op(leaf, saved_early, [&] {
    EXPECT_TRUE(saved_late.expired()) << "what the later result saved is still there";
  });
  const Tensor y = op(h, saved_late, [] {});
  EXPECT_FALSE(saved_early.expired());
  backward(y, ones({4}));
  EXPECT_TRUE(saved_early.expired());
}

TEST(Tape, AFailingBackwardPassesItsErrorOn) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2}, 1));
  const Tensor y = record(empty_like(leaf), {leaf},
                          [](const Tensor&, Sink&) { throw Error("out of something"); });
  EXPECT_EQ(error_of([&] { backward(y, ones({2})); }), "out of something");
}

// y = replayed(2 x) + 3 x: x is a result that two users share, one of them made again.
TEST(Tape, AResultMadeAgainHandsItsGradientOn) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2, 3}, 1));
  const Tensor x = times_by_write(leaf, 10);
  int made = 0;
  const Tensor twice = record(empty_like(x), {x}, [x, &made](const Tensor& dy, Sink& d) {
    d.replay([&] { return ++made, times_by_write(times_by_add(x, 4), 0.5); }, dy);
  });
  backward(stack_rows({twice, times_by_write(x, 3)}), ones({4, 3}));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(gradients.of(leaf).to_vector<double>(), std::vector<double>(6, 50));
}

TEST(Tape, AReplayReachesWhatItsResultWasNotRecordedWith) {
  Gradients gradients;
  const Tensor a = gradients.watch(random_tensor({2, 3}, 1)),
               b = gradients.watch(random_tensor({2, 3}, 2));
  const Tensor x = times_by_write(a, 2), other = times_by_write(b, 5);
  const Tensor y =
      record(empty_like(stack_rows({x, other})), {x}, [x, other](const Tensor& dy, Sink& d) {
        d.replay([&] { return stack_rows({x, times_by_write(other, 7)}); }, dy);
      });
  backward(y, ones({4, 3}));
  EXPECT_EQ(gradients.of(a).to_vector<double>(), std::vector<double>(6, 2));
  EXPECT_EQ(gradients.of(b).to_vector<double>(), std::vector<double>(6, 35));
}

TEST(Tape, AReplayThatIsNotRecordedIsAnError) {
  Gradients gradients;
  const Tensor x = gradients.watch(random_tensor({2, 3}, 1));
  const Tensor y = record(empty_like(x), {x}, [x](const Tensor& dy, Sink& d) {
    d.replay([&] { return times_by_write(x.detach(), 2); }, dy);
  });
  EXPECT_NE(error_of([&] {
              backward(y, ones({2, 3}));
            }).find("expected a recorded result"),
            std::string::npos);
}

}  // namespace
}  // namespace rapt
