#include "rapt/tensor/tape.h"

#include <algorithm>
#include <atomic>
#include <queue>

#include "rapt/base/profile.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

std::atomic<uint64_t> next_order{1};

void add_into(Tensor& target, const Tensor& source) {
  const ProfileScope profile("gradient add", 0, bytes_of(target, source, target));
  dispatch_activation(target.dtype(), "gradient", [&](auto tag) {
    using T = decltype(tag);
    const auto [rows, cols, ld] = as_matrix(target);
    kernels::add(target.data<T>(), ld, source.data<T>(), as_matrix(source).ld, target.data<T>(), ld,
                 rows, cols);
  });
}

void copy_into(Tensor& target, const Tensor& source) {
  dispatch_activation(target.dtype(), "gradient", [&](auto tag) {
    using T = decltype(tag);
    const auto [rows, cols, ld] = as_matrix(target);
    kernels::scale(source.data<T>(), as_matrix(source).ld, 1, target.data<T>(), ld, rows, cols,
                   false);
  });
}

void zero(Tensor target) {
  dispatch_activation(target.dtype(), "gradient", [&](auto tag) {
    using T = decltype(tag);
    const auto [rows, cols, ld] = as_matrix(target);
    kernels::fill(target.data<T>(), ld, 0, rows, cols);
  });
}

}  // namespace

struct TapeNode {
  uint64_t order = 0;  // 0: a leaf
  bool ran = false;
  std::shared_ptr<GradientSlot> slot;
  std::vector<Sink::Input> inputs;
  Backward run;

  TapeNode() = default;
  TapeNode(const TapeNode&) = delete;
  TapeNode& operator=(const TapeNode&) = delete;
  ~TapeNode() { release(); }

  // Frees what the node holds. A node's end may be the end of its inputs' nodes and so on: they are
  // collected and freed in a loop, for a long chain would overflow the stack.
  void release() {
    thread_local std::vector<std::pair<Backward, std::vector<Sink::Input>>> doomed;
    thread_local bool freeing = false;
    doomed.emplace_back(std::move(run), std::move(inputs));
    run = nullptr;
    inputs.clear();
    if (freeing) return;
    freeing = true;
    while (!doomed.empty()) {
      auto last = std::move(doomed.back());
      doomed.pop_back();
    }
    freeing = false;
  }
};

// The members of Tensor that belong to the tape.
class TapeAccess {
 public:
  static const std::shared_ptr<TapeNode>& node(const Tensor& x) { return x.node_; }
  static int64_t offset(const Tensor& x) { return x.offset_; }
  static Tensor at_node(const Tensor& x, std::shared_ptr<TapeNode> node) {
    Tensor result = x;
    result.node_ = std::move(node);
    result.offset_ = 0;
    return result;
  }
  static Tensor strided(const Tensor& whole, int64_t offset, const Shape& shape,
                        int64_t row_stride) {
    Tensor part = whole;
    part.data_ = static_cast<char*>(whole.data_) + offset * size_of(whole.dtype_);
    part.shape_ = shape;
    part.row_stride_ = row_stride;
    return part;
  }
};

Tensor GradientSlot::part(int64_t offset, const Shape& shape, int64_t row_stride, bool& first) {
  if (!buffer_.defined()) buffer_ = Tensor::empty(shape_, dtype_);
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0], width = shape.row_size();
  const int64_t whole_rows = shape_.rank() == 0 ? 1 : shape_[0], whole_width = shape_.row_size();
  const bool dense = row_stride == width || rows <= 1;
  if (shape.numel() == shape_.numel()) {
    first = mark(State::all, {0, 0});
  } else if (shape.numel() == 0) {
    first = true;
  } else if (dense && offset % whole_width == 0 && rows * width % whole_width == 0) {
    first = mark(State::rows, {offset / whole_width, (offset + rows * width) / whole_width});
  } else if (row_stride == whole_width && rows == whole_rows && offset + width <= whole_width) {
    first = mark(State::columns, {offset, offset + width});
  } else {  // neither whole rows nor whole columns: everything else becomes zero
    zero_unwritten();
    first = false;
  }
  return TapeAccess::strided(buffer_, offset, shape, row_stride);
}

bool GradientSlot::written(int64_t begin, int64_t rows) const {
  if (state_ != State::rows) return state_ != State::none;
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const Range& r) { return begin < r.end && r.begin < begin + rows; });
}

bool GradientSlot::mark(State kind, Range range) {
  if (state_ == State::all) return false;
  if (state_ == State::none) {
    state_ = kind;
    ranges_.clear();
    if (kind != State::all) ranges_.push_back(range);
    return true;
  }
  if (kind == state_) {
    bool disjoint = true;
    for (const Range& r : ranges_) {
      if (r.begin <= range.begin && range.end <= r.end) return false;
      disjoint = disjoint && (range.end <= r.begin || r.end <= range.begin);
    }
    if (disjoint) {
      ranges_.push_back(range);
      std::sort(ranges_.begin(), ranges_.end(),
                [](const Range& a, const Range& b) { return a.begin < b.begin; });
      int64_t covered = 0;
      for (const Range& r : ranges_) covered += r.end - r.begin;
      const int64_t total = kind == State::columns ? shape_.row_size()
                            : shape_.rank() == 0   ? 1
                                                   : shape_[0];
      if (covered == total) state_ = State::all;
      return true;
    }
  }
  zero_unwritten();
  return false;
}

void GradientSlot::zero_unwritten() {
  if (state_ != State::all) {
    const int64_t rows = shape_.rank() == 0 ? 1 : shape_[0], width = shape_.row_size();
    const Tensor matrix = buffer_.reshape({rows, width});
    const int64_t total = state_ == State::columns ? width : rows;
    int64_t at = 0;
    ranges_.push_back({total, total});
    for (const Range& r : ranges_) {
      if (r.begin > at)
        zero(state_ == State::columns ? matrix.columns(at, r.begin - at)
                                      : matrix.rows(at, r.begin - at));
      at = r.end;
    }
  }
  ranges_.clear();
  state_ = State::all;
}

bool GradientSlot::adopt(const Tensor& gradient) {
  if (written() || buffer_.defined() || !gradient.contiguous() || gradient.dtype() != dtype_ ||
      gradient.numel() != shape_.numel()) {
    return false;
  }
  buffer_ = gradient.reshape(shape_).detach();
  adopted_ = true;
  state_ = State::all;
  return true;
}

void GradientSlot::clear() {
  state_ = State::none;
  ranges_.clear();
  if (!adopted_) return;
  adopted_ = false;
  buffer_ = Tensor();
}

Tensor GradientSlot::whole() {
  if (!written()) return {};
  zero_unwritten();
  return buffer_;
}

void GradientSlot::release() {
  clear();
  buffer_ = Tensor();
}

bool Sink::wants(int i) const { return inputs_.at(static_cast<size_t>(i)).node != nullptr; }

Sink::Sum Sink::place(const Input& input) {
  RAPT_ASSERT(input.node != nullptr);
  Sum sum{};
  sum.gradient = input.node->slot->part(input.offset, input.shape, input.row_stride, sum.first);
  placed_.push_back(&input);
  return sum;
}

Tensor Sink::aside(const Tensor& target) {
  pending_.push_back({target, empty_like(target)});
  return pending_.back().source;
}

bool Sink::overlaps_earlier(const Input& input) const {
  // Rows by columns of the whole; all columns where a view is not such a rectangle.
  struct Box {
    int64_t row, rows, col, cols;
  };
  const auto box = [](const Input& x) {
    const int64_t whole = std::max<int64_t>(1, x.node->slot->shape().row_size());
    const int64_t rows = x.shape.rank() == 0 ? 1 : x.shape[0], width = x.shape.row_size();
    const int64_t row = x.offset / whole, col = x.offset % whole;
    if ((x.row_stride == whole || rows == 1) && col + width <= whole) {
      return Box{row, rows, col, width};
    }
    const int64_t end = x.offset + (rows - 1) * x.row_stride + width;
    return Box{row, (end + whole - 1) / whole - row, 0, whole};
  };
  if (input.shape.numel() == 0) return false;
  return std::any_of(placed_.begin(), placed_.end(), [&](const Input* earlier) {
    if (earlier->node != input.node || earlier->shape.numel() == 0) return false;
    const Box a = box(*earlier), b = box(input);
    return a.row < b.row + b.rows && b.row < a.row + a.rows && a.col < b.col + b.cols &&
           b.col < a.col + a.cols;
  });
}

Sink::Sum Sink::add(int i) {
  const Input& input = inputs_.at(static_cast<size_t>(i));
  RAPT_ASSERT(input.node != nullptr);
  const bool overlaps = overlaps_earlier(input);
  Sum sum = place(input);
  if (overlaps) return {aside(sum.gradient), true};
  return sum;
}

Tensor Sink::write(int i) {
  Sum sum = add(i);
  return sum.first ? sum.gradient : aside(sum.gradient);
}

void Sink::give(int i, Tensor gradient) {
  const Input& input = inputs_.at(static_cast<size_t>(i));
  RAPT_ASSERT(input.node != nullptr && gradient.shape() == input.shape);
  const int64_t owners = gradient.shares_memory(dy_) ? 2 : 1;  // this handle and dy itself
  const bool whole = input.offset == 0 && gradient.owners() == owners;
  if (whole && input.node->slot->adopt(gradient)) return;
  Sum sum = place(input);
  if (sum.first) return copy_into(sum.gradient, gradient);
  pending_.push_back({sum.gradient, gradient});
}

void Sink::finish() {
  for (Pending& pending : pending_) add_into(pending.target, pending.source);
  pending_.clear();
}

Tensor record(const Tensor& y, std::initializer_list<Tensor> inputs, Backward backward) {
  return record(y, std::span(inputs.begin(), inputs.size()), std::move(backward));
}

Tensor record(const Tensor& y, std::span<const Tensor> inputs, Backward backward) {
  const bool any =
      std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return x.recorded(); });
  if (!any) return y;
  RAPT_ASSERT(y.contiguous() && !y.recorded());
  auto node = std::make_shared<TapeNode>();
  node->order = next_order.fetch_add(1, std::memory_order_relaxed);
  node->slot = std::make_shared<GradientSlot>(y.shape(), y.dtype());
  node->run = std::move(backward);
  node->inputs.reserve(inputs.size());
  for (const Tensor& x : inputs) {
    node->inputs.push_back(
        {TapeAccess::node(x), x.shape(), TapeAccess::offset(x), x.row_stride(), x.dtype()});
  }
  return TapeAccess::at_node(y, std::move(node));
}

Tensor record_leaf(const Tensor& x, std::shared_ptr<GradientSlot> slot) {
  auto node = std::make_shared<TapeNode>();
  node->slot = std::move(slot);
  return TapeAccess::at_node(x, std::move(node));
}

namespace {

using Node = std::shared_ptr<TapeNode>;

struct Later {
  bool operator()(const Node& a, const Node& b) const { return a->order < b->order; }
};

}  // namespace

// Nodes from the last made on: each has the whole of its gradient when its turn comes.
class BackwardRun {
 public:
  // What was made up to `from` is only handed its gradient, and told to `reached`.
  BackwardRun(uint64_t from, std::vector<Node>& reached) : from_(from), reached_(reached) {}

  void start(const Node& node) { queue_.push(node); }

  void run() {
    while (!queue_.empty()) {
      const Node node = queue_.top();
      queue_.pop();
      if (node->order == 0 || node->ran) continue;  // a leaf, or queued by several of its users
      if (node->order <= from_) {
        reached_.push_back(node);
        continue;
      }
      run(*node);
    }
  }

 private:
  void run(TapeNode& node) {
    node.ran = true;
    const Tensor gradient = node.slot->whole();
    node.slot->release();
    Sink sink(node.inputs, gradient);
    node.run(gradient, sink);
    sink.finish();
    for (const Sink::Input& input : node.inputs) queue(input.node);
    for (const Node& reached : sink.reached_) queue(reached);
    node.release();
  }

  void queue(const Node& node) {
    if (node == nullptr || node->order == 0) return;
    RAPT_CHECK(!node->ran,
               "backward: a part of this graph was run before, and what it saved is freed");
    if (node->slot->written()) queue_.push(node);
  }

  const uint64_t from_;
  std::vector<Node>& reached_;
  std::priority_queue<Node, std::vector<Node>, Later> queue_;
};

void send_back(const Tensor& y, const Tensor& dy, uint64_t from, std::vector<Node>& reached) {
  RAPT_CHECK(y.recorded(), "backward: expected a recorded result, got one made without gradients");
  RAPT_CHECK(dy.shape() == y.shape() && dy.dtype() == y.dtype(),
             "backward: expected a gradient {} of {}, got {} of {}", y.shape().text(),
             dtype_name(y.dtype()), dy.shape().text(), dtype_name(dy.dtype()));
  const Sink::Input start{TapeAccess::node(y), y.shape(), TapeAccess::offset(y), y.row_stride(),
                          y.dtype()};
  RAPT_CHECK(!start.node->ran,
             "backward: this result's backward was run before, and what it saved is freed");
  {  // no handle of the buffer stays here: the first backward may hand it on
    const std::vector<Sink::Input> starts = {start};
    Sink seed(starts, dy);
    Tensor first = seed.write(0);
    copy_into(first, dy);
    seed.finish();
  }
  BackwardRun run(from, reached);
  run.start(start.node);
  run.run();
}

void backward(const Tensor& y, const Tensor& dy) {
  std::vector<Node> none;  // everything was made after 0
  send_back(y, dy, 0, none);
}

void Sink::replay(const std::function<Tensor()>& make, const Tensor& dy) {
  const uint64_t before = next_order.load(std::memory_order_relaxed) - 1;
  send_back(make(), dy, before, reached_);
}

void backward(const Tensor& y) { backward(y, Tensor::full(y.shape(), y.dtype(), 1)); }

}  // namespace rapt
