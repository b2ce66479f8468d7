#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/reference.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::layouts;
using testing::Matrix;
using testing::row_ids;
using testing::same_bits;

constexpr Activation kKinds[] = {Activation::relu, Activation::gelu, Activation::gelu_tanh};
const Dropout kSites[] = {{}, {0.3, philox_key(1, 2, 3)}};

// What f and dropout give one after the other, and the gradient of x from dy.
template <class T>
struct Apart {
  Apart(const ActivationDropout& how, const Matrix<T>& x, const Matrix<T>& dy) : y(x), dx(x) {
    const int64_t rows = x.rows(), cols = x.cols();
    activation(how.kind, x.data(), x.ld(), y.data(), y.ld(), rows, cols);
    dropout(how.dropout, how.ids, y.data(), y.ld(), y.data(), y.ld(), rows, cols);
    dropout(how.dropout, how.ids, dy.data(), dy.ld(), dx.data(), dx.ld(), rows, cols);
    activation_grad(how.kind, x.data(), x.ld(), dx.data(), dx.ld(), dx.data(), dx.ld(), rows, cols);
  }

  Matrix<T> y, dx;
};

template <class F>
void for_all(const Layout& at, const F& f) {
  const auto ids = row_ids(at.rows);
  for (const Activation kind : kKinds) {
    for (const Dropout& site : kSites)
      f(ActivationDropout{kind, site, site.probability > 0 ? ids.data() : nullptr});
  }
}

template <class T>
void expect_same_as_apart(const Layout& at) {
  const Matrix<T> x(at, 1), dy(at, 2);
  for_all(at, [&](const ActivationDropout& how) {
    const Apart<T> want(how, x, dy);
    Matrix<T> y(at, 3), dx(at, 4), again(at, 5);
    activation_dropout(how, x.data(), x.ld(), y.data(), y.ld(), at.rows, at.cols);
    EXPECT_TRUE(same_bits(y, want.y)) << at.rows << " x " << at.cols;
    const Matrix<T> kept = how.kind == Activation::relu ? y : x;
    activation_dropout_grad(how, kept.data(), kept.ld(), dy.data(), dy.ld(), dx.data(), dx.ld(),
                            again.data(), again.ld(), at.rows, at.cols);
    EXPECT_TRUE(same_bits(dx, want.dx)) << at.rows << " x " << at.cols;
    if (how.kind != Activation::relu) {
      EXPECT_TRUE(same_bits(again, want.y)) << at.cols;
    }
    EXPECT_TRUE(y.guard_is_intact() && dx.guard_is_intact() && again.guard_is_intact());
  });
}

TEST(ActivationDropout, HasTheBitsOfBothOneAfterTheOther) {
  for (const Layout& at : layouts()) {
    expect_same_as_apart<float>(at);
    expect_same_as_apart<double>(at);
  }
}

TEST(ActivationDropout, OverwritesWhatItReads) {
  const Layout at = {3, 45, 2, 1};
  for_all(at, [&](const ActivationDropout& how) {
    const Matrix<float> x(at, 1), dy(at, 2);
    const Apart<float> want(how, x, dy);
    Matrix<float> y = x, dx = dy;
    activation_dropout(how, y.data(), y.ld(), y.data(), y.ld(), 3, 45);
    EXPECT_TRUE(same_bits(y, want.y));
    Matrix<float> kept = how.kind == Activation::relu ? y : x;
    activation_dropout_grad(how, kept.data(), kept.ld(), dx.data(), dx.ld(), dx.data(), dx.ld(),
                            kept.data(), kept.ld(), 3, 45);
    EXPECT_TRUE(same_bits(dx, want.dx));
    EXPECT_TRUE(same_bits(kept, want.y));
  });
}

TEST(ActivationDropout, ANullMatrixIsNotWritten) {
  const Layout at = {2, 33, 0, 0};
  for_all(at, [&](const ActivationDropout& how) {
    const Matrix<float> x(at, 1), dy(at, 2);
    const Apart<float> want(how, x, dy);
    Matrix<float> dx(at, 3);
    const Matrix<float>& kept = how.kind == Activation::relu ? want.y : x;
    activation_dropout_grad(how, kept.data(), 33, dy.data(), 33, dx.data(), 33,
                            static_cast<float*>(nullptr), 0, 2, 33);
    EXPECT_TRUE(same_bits(dx, Matrix<float>(want.dx)));
  });
}

}  // namespace
}  // namespace rapt::kernels
