// What torch.nn.functional.scaled_dot_product_attention refuses.
#include <cmath>
#include <functional>

#include "rapt/nn/torch/scaled_dot_product_attention.h"
#include "tests/testing/tensors.h"

namespace rapt::nn::torch {
namespace {

using rapt::testing::error_of;
using rapt::testing::random_tensor;
using Options = ScaledDotProductAttentionOptions;
using Inputs = std::vector<Tensor>;

// Each argument spoilt once: the message names it, what was expected and what came.
TEST(ScaledDotProductAttentionErrors, R09_WrongInputsAreErrorsThatSayWhatAndWhere) {
  struct Case {
    std::string argument, expected;
    std::function<void(Inputs&, Options&)> spoil;
  };
  const auto shaped = [](size_t i, const Shape& shape) {
    return [i, shape](Inputs& x, Options&) { x[i] = random_tensor(shape, 1); };
  };
  const auto all = [](const Shape& q, const Shape& k, const Shape& v, bool gqa) {
    return [=](Inputs& x, Options& o) {
      x = {random_tensor(q, 1), random_tensor(k, 2), random_tensor(v, 3)};
      o.enable_gqa = gqa;
    };
  };
  const std::vector<Case> cases = {
      {"query", "got no tensor", [](Inputs& x, Options&) { x[0] = Tensor(); }},
      {"query", "got (3)", shaped(0, {3})},
      {"query", "expected f32, f64 or bf16, got i32",
       [](Inputs& x, Options&) { x[0] = Tensor::zeros({2, 4, 5, 3}, DType::i32); }},
      {"query", "got (2, 0, 5, 3)", all({2, 0, 5, 3}, {2, 0, 7, 3}, {2, 0, 7, 2}, false)},
      {"query", "got (2, 0, 5, 3)", all({2, 0, 5, 3}, {2, 1, 7, 3}, {2, 1, 7, 2}, true)},
      {"query", "got (2, 4, 5, 0)", all({2, 4, 5, 0}, {2, 4, 7, 0}, {2, 4, 7, 2}, false)},
      {"key", "got no tensor", [](Inputs& x, Options&) { x[1] = Tensor(); }},
      {"key", "expected 4 axes", shaped(1, {4, 7, 3})},
      {"key", "expected f64, got f32", [](Inputs& x, Options&) { x[1] = x[1].to(DType::f32); }},
      {"key", "expected a last axis of 3", shaped(1, {2, 4, 7, 2})},
      {"key", "expected axis 0 to be 2", shaped(1, {3, 4, 7, 3})},
      {"key", "enable_gqa allows fewer", shaped(1, {2, 2, 7, 3})},
      {"key", "divides query's 4, got (2, 3, 7, 3)", all({2, 4, 5, 3}, {2, 3, 7, 3}, {2, 3, 7, 2}, true)},
      {"key", "divides query's 4, got (2, 0, 7, 3)", all({2, 4, 5, 3}, {2, 0, 7, 3}, {2, 0, 7, 2}, true)},
      {"key", "divides query's 4, got (2, 8, 7, 3)", all({2, 4, 5, 3}, {2, 8, 7, 3}, {2, 8, 7, 2}, true)},
      {"value", "expected 2 heads", all({2, 4, 5, 3}, {2, 2, 7, 3}, {2, 4, 7, 2}, true)},
      {"enable_gqa", "expected an axis of heads", all({5, 3}, {7, 3}, {7, 2}, true)},
      {"value", "got no tensor", [](Inputs& x, Options&) { x[2] = Tensor(); }},
      {"value", "expected 7 rows as key has, got (2, 4, 6, 2)", shaped(2, {2, 4, 6, 2})},
      {"value", "expected axis 1 to be 4", shaped(2, {2, 2, 7, 2})},
      {"value", "got (2, 4, 7, 0)", shaped(2, {2, 4, 7, 0})},
      {"value", "expected f64, got f32", [](Inputs& x, Options&) { x[2] = x[2].to(DType::f32); }},
      {"attn_mask", "expected bool or f64, got f32",
       [](Inputs&, Options& o) { o.attn_mask = random_tensor({5, 7}, 1, DType::f32); }},
      {"attn_mask", "broadcasts to (2, 4, 5, 7), got (5, 6)",
       [](Inputs&, Options& o) { o.attn_mask = random_tensor({5, 6}, 1); }},
      {"attn_mask", "broadcasts to (2, 4, 5, 7), got (1, 2, 4, 5, 7)",
       [](Inputs&, Options& o) { o.attn_mask = random_tensor({1, 2, 4, 5, 7}, 1); }},
      {"is_causal", "without attn_mask",
       [](Inputs&, Options& o) {
         o.attn_mask = random_tensor({5, 7}, 1);
         o.is_causal = true;
       }},
      {"scale", "expected a finite number, got nan", [](Inputs&, Options& o) { o.scale = NAN; }},
      {"dropout_p", "got 1", [](Inputs&, Options& o) { o.dropout_p = 1; }},
      {"dropout_p", "got -0.1", [](Inputs&, Options& o) { o.dropout_p = -0.1; }},
      {"dropout_p", "got nan", [](Inputs&, Options& o) { o.dropout_p = NAN; }}};
  for (const Case& c : cases) {
    Inputs x = {random_tensor({2, 4, 5, 3}, 1), random_tensor({2, 4, 7, 3}, 2),
                random_tensor({2, 4, 7, 2}, 3)};
    Options options;
    c.spoil(x, options);
    const std::string message =
        error_of([&] { scaled_dot_product_attention(x[0], x[1], x[2], options); });
    EXPECT_EQ(message.find("scaled_dot_product_attention: " + c.argument + ":"), 0u) << message;
    EXPECT_NE(message.find(c.expected), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace rapt::nn::torch
