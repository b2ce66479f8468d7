// The gradient of a view is the same part of its whole's gradient: each case is proved by finite
// differences, with memory that holds NaN before.
#include "rapt/ops/elementwise.h"
#include "tests/testing/gradients.h"
#include "tests/testing/small_ops.h"

namespace rapt {
namespace {

using testing::check_gradients;
using testing::random_tensor;
using testing::stack_rows;
using testing::times_by_add;
using testing::times_by_give;
using testing::times_by_write;
using Inputs = std::vector<Tensor>;

// Every case runs on a leaf and on a result, whose gradient buffers have different lives.
void prove(const testing::TensorFunction& f, const std::vector<Tensor>& inputs) {
  EXPECT_TRUE(check_gradients(f, inputs));
  EXPECT_TRUE(check_gradients(
      [&](const Inputs& x) {
        Inputs results;
        for (const Tensor& input : x) results.push_back(times_by_give(input, 1.5));
        return f(results);
      },
      inputs));
}

Tensor flat(const Tensor& x) { return x.contiguous() ? x.reshape({x.numel(), 1}) : x; }

TEST(ViewGradients, ColumnsOfOneProductByThreeUsers) {
  prove(
      [](const Inputs& x) {
        const Tensor q = times_by_write(x[0].columns(0, 2), 2);
        const Tensor k = times_by_add(x[0].columns(2, 2), 3);
        const Tensor v = times_by_give(x[0].columns(4, 2), 4);
        return stack_rows({q, k, v});
      },
      {random_tensor({3, 6}, 1)});
}

TEST(ViewGradients, UnwrittenColumnsAreZero) {
  prove([](const Inputs& x) { return times_by_write(x[0].columns(2, 2), 2); },
        {random_tensor({3, 6}, 1)});
  prove(
      [](const Inputs& x) {
        return stack_rows({times_by_write(x[0].columns(5, 1), 2), x[0].columns(1, 1)});
      },
      {random_tensor({3, 6}, 1)});
}

TEST(ViewGradients, OverlappingColumns) {
  for (int64_t begin = 0; begin < 5; ++begin) {
    prove(
        [begin](const Inputs& x) {
          return stack_rows({times_by_write(x[0].columns(begin, 2), 2),
                             times_by_add(x[0].columns(1, 2), 3), x[0].columns(3, 2)});
        },
        {random_tensor({3, 6}, 1)});
  }
}

TEST(ViewGradients, OverlappingViewsInOneOp) {
  for (int64_t begin = 0; begin < 5; ++begin) {
    prove(
        [begin](const Inputs& x) {
          return stack_rows({x[0].columns(begin, 2), x[0].columns(2, 2), x[0].columns(begin, 2)});
        },
        {random_tensor({3, 6}, 1)});
    prove(
        [begin](const Inputs& x) {
          return stack_rows({x[0].rows(begin, 2), x[0].rows(2, 2), x[0].rows(begin, 2)});
        },
        {random_tensor({6, 3}, 1)});
  }
}

TEST(ViewGradients, RowRangesOfAParameter) {
  prove(
      [](const Inputs& x) {
        return stack_rows({times_by_write(x[0].rows(0, 2), 2), times_by_add(x[0].rows(3, 2), 3)});
      },
      {random_tensor({6, 3}, 1)});
  prove(
      [](const Inputs& x) {  // a vector
        return stack_rows({flat(times_by_write(x[0].rows(4, 2), 2)), flat(x[0].rows(1, 2))});
      },
      {random_tensor({6}, 1)});
}

TEST(ViewGradients, RowsAndColumnsMixed) {
  prove(
      [](const Inputs& x) {
        return stack_rows({times_by_write(x[0].rows(1, 2), 2).reshape({6, 1}),
                           times_by_write(x[0].columns(1, 1), 3), x[0].rows(0, 2).columns(1, 1),
                           times_by_add(x[0].columns(0, 2).rows(1, 2), 5).reshape({4, 1})});
      },
      {random_tensor({4, 3}, 1)});
}

TEST(ViewGradients, ABlockOfRowsAndColumnsAlone) {
  prove([](const Inputs& x) { return times_by_write(x[0].rows(1, 2).columns(1, 1), 3); },
        {random_tensor({4, 3}, 1)});
}

TEST(ViewGradients, AdjacentPartsBeforeTheWhole) {
  prove(
      [](const Inputs& x) {  // backward order: parts, a range over two of them, then the whole
        const Tensor whole = times_by_write(x[0], 2);
        const Tensor across = times_by_write(x[0].columns(1, 4), 3);
        const Tensor left = times_by_write(x[0].columns(0, 3), 4);
        const Tensor right = times_by_write(x[0].columns(3, 3), 5);
        return stack_rows({flat(left), flat(right), flat(across), flat(whole)});
      },
      {random_tensor({3, 6}, 1)});
}

TEST(ViewGradients, ReshapeChains) {
  prove(
      [](const Inputs& x) {
        const Tensor heads = x[0].columns(2, 4).reshape({3, 2, 2});
        const Tensor again = heads.reshape({3, 4}).columns(1, 2);
        return stack_rows({flat(times_by_write(again, 2)),
                           flat(times_by_add(x[0].reshape({6, 3}).rows(1, 3), 3)),
                           flat(times_by_write(x[0].reshape({2, 3, 3}).rows(1, 1), 4)),
                           flat(times_by_write(x[0].reshape({18}), 5))});
      },
      {random_tensor({3, 6}, 1)});
}

TEST(ViewGradients, ColumnsOfAFoldedAxis) {
  prove(
      [](const Inputs& x) {
        return stack_rows({times_by_write(x[0].reshape({6, 3}).columns(1, 1), 2),
                           x[0].reshape({6, 3}).columns(2, 1)});
      },
      {random_tensor({3, 6}, 1)});
}

TEST(ViewGradients, ViewsThatWrapAroundTheRowsInOneOp) {
  prove(
      [](const Inputs& x) {  // elements 3..20 as (3, 6), and the first two of the second row
        const Tensor wrapped = x[0].reshape({24}).rows(3, 18).reshape({3, 6});
        const Tensor start = x[0].rows(1, 1).columns(0, 2).reshape({2, 1});
        return stack_rows({wrapped.reshape({18, 1}), start});
      },
      {random_tensor({4, 6}, 1)});
}

TEST(ViewGradients, FoldedColumnsThatMeetInOneOp) {
  prove(
      [](const Inputs& x) {  // column 1 of (6, 3) holds column 4 of (3, 6)
        return stack_rows({x[0].reshape({6, 3}).columns(1, 1), x[0].columns(4, 1)});
      },
      {random_tensor({3, 6}, 1)});
}

TEST(ViewGradients, OneRow) {
  prove(
      [](const Inputs& x) {
        return stack_rows({x[0].columns(2, 2), times_by_write(x[0].columns(4, 2), 2),
                           x[0].columns(0, 2).reshape({1, 2}),
                           x[0].reshape({6}).rows(3, 2).reshape({1, 2})});
      },
      {random_tensor({1, 6}, 1)});
}

TEST(ViewGradients, EmptyViewsGetNothing) {
  prove(
      [](const Inputs& x) {
        return stack_rows({times_by_write(x[0].rows(1, 0), 2), times_by_write(x[0], 3)});
      },
      {random_tensor({3, 2}, 1)});
  prove(
      [](const Inputs& x) {
        return stack_rows({x[0], x[1]});
      },
      {random_tensor({0, 2}, 1), random_tensor({3, 2}, 2)});
  prove([](const Inputs& x) { return times_by_give(x[0].columns(1, 2), 2); },
        {random_tensor({0, 4}, 1)});
}

}  // namespace
}  // namespace rapt
