#include "rapt/ops/embedding.h"

#include "rapt/base/profile.h"
#include "rapt/kernels/embedding.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {

Tensor embedding(const Tensor& ids, const Tensor& table) {
  return embedding(ids, table, 1, {}, Rows::packed({ids.rank() == 1 ? ids.dim(0) : 0}), {});
}

Tensor embedding(const Tensor& ids, const Tensor& table, double factor, const Tensor& positions,
                 const Rows& rows, const kernels::Dropout& site) {
  return embedding(ids, table, factor, positions, rows, site, table.dtype());
}

Tensor embedding(const Tensor& ids, const Tensor& table, double factor, const Tensor& positions,
                 const Rows& rows, const kernels::Dropout& site, DType type) {
  RAPT_CHECK(table.rank() == 2, "embedding: expected a table (V, C), got {}", table.shape().text());
  RAPT_CHECK(ids.rank() == 1 && ids.dtype() == DType::i32,
             "embedding: expected ids (N) of i32, got {} of {}", ids.shape().text(),
             dtype_name(ids.dtype()));
  RAPT_CHECK(ids.dim(0) == rows.tokens(), "embedding: expected {} ids, got {}", rows.tokens(),
             ids.dim(0));
  RAPT_CHECK(precise(type) == table.dtype(), "embedding: expected a table of {} for {}, got {}",
             dtype_name(precise(type)), dtype_name(type), dtype_name(table.dtype()));
  const int64_t N = ids.dim(0), V = table.dim(0), C = table.dim(1);
  const int32_t* id = ids.data<int32_t>();
  for (int64_t i = 0; i < N; ++i) {
    RAPT_CHECK(id[i] >= 0 && id[i] < V,
               "embedding: expected ids below {} (the size of the vocabulary), got {} in row {}", V,
               id[i], i);
  }
  if (positions.defined()) {
    RAPT_CHECK(positions.rank() == 2 && positions.dim(1) == C && positions.dtype() == table.dtype(),
               "embedding: expected positions (.., {}) of {}, got {} of {}", C,
               dtype_name(table.dtype()), positions.shape().text(), dtype_name(positions.dtype()));
    RAPT_CHECK(!positions.recorded(),
               "embedding: expected positions that are not trained (look trained ones up as a "
               "table of their own and add)");
    RAPT_CHECK(rows.last_position() < positions.dim(0),
               "embedding: a sequence of {} tokens is longer than the {} positions of the model",
               rows.last_position() + 1, positions.dim(0));
  }
  Tensor y = Tensor::empty({N, C}, type);
  dispatch_activation(type, "embedding", [&](auto tag) {
    using T = decltype(tag);
    kernels::EmbeddingArgs<T> args;
    args.table = table.data<Precise<T>>();
    args.ldt = table.row_stride();
    if (positions.defined()) {
      args.positions = positions.data<Precise<T>>();
      args.ldp = positions.row_stride();
    }
    args.ids = id;
    args.rows = rows.ids();
    args.factor = factor;
    args.dropout = site;
    const ProfileScope profile("embedding", 0, 2 * bytes_of(y));
    kernels::embedding(args, y.data<T>(), C, N, C);
  });
  const bool in_one_piece = table.contiguous();
  return record(y, {table},
                [ids, rows, factor, site, in_one_piece, N, V, C](const Tensor& dy, Sink& d) {
                  dispatch_activation(dy.dtype(), "embedding", [&](auto tag) {
                    using T = decltype(tag);
                    kernels::EmbeddingArgs<T> args;
                    args.ids = ids.data<int32_t>();
                    args.rows = rows.ids();
                    args.factor = factor;
                    args.dropout = site;
                    const auto scatter = [&](Tensor d_table, bool first) {
                      const ProfileScope profile("embedding backward", 0, 2 * bytes_of(dy));
                      kernels::embedding_grad(args, dy.data<T>(), C, d_table.data<Precise<T>>(), V,
                                              first, N, C);
                    };
                    if (in_one_piece) {
                      auto [d_table, first] = d.add(0);
                      scatter(d_table, first);
                    } else {  // the kernel knows no gaps between rows
                      Tensor d_table = Tensor::empty({V, C}, precise(dy.dtype()));
                      scatter(d_table, true);
                      d.give(0, std::move(d_table));
                    }
                  });
                });
}

}  // namespace rapt
