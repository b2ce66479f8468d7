// The tape: how results remember where they came from.
//
// An op computes its result and ends in record(): the result is recorded if and only if an input
// is. A result's backward runs once, after those of all results that were made from it, in the
// reverse order of making, and frees what it saved. There is no backward of a backward.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "rapt/tensor/tensor.h"

namespace rapt {

// The gradient of one recorded result or leaf, with a mark of which part was written. Nothing is
// zero-filled unless a part stays unwritten that is needed.
class GradientSlot {
 public:
  GradientSlot(const Shape& shape, DType dtype) : shape_(shape), dtype_(dtype) {}

  // The part that belongs to a view (its offset, shape and stride in the whole), and whether it is
  // the first time that it is written: then its contents are whatever they are and must be
  // overwritten.
  Tensor part(int64_t offset, const Shape& shape, int64_t row_stride, bool& first);
  // Takes `gradient` (held by nobody else) as the whole, if it fits and nothing was written yet.
  bool adopt(const Tensor& gradient);
  // The whole, unwritten parts zeroed. Undefined if nothing was ever written.
  Tensor whole();
  bool written() const { return state_ != State::none; }
  bool written(int64_t begin, int64_t rows) const;  // any element of these rows
  void clear();    // unwritten again; the buffer stays, but for an adopted one: the next will come
  void release();  // and without the buffer

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }

 private:
  enum class State { none, rows, columns, all };
  struct Range {
    int64_t begin, end;
  };
  bool mark(State kind, Range range);
  void zero_unwritten();

  Shape shape_;
  DType dtype_;
  Tensor buffer_;
  bool adopted_ = false;
  State state_ = State::none;
  std::vector<Range> ranges_;  // sorted, disjoint: of rows or of columns
};

// Where a backward sends the gradients of its inputs.
class Sink {
 public:
  // Whether anybody asks for the gradient of input i.
  bool wants(int i) const;
  // A buffer to fill with the gradient of input i; it is added to what is there, if there is
  // something.
  Tensor write(int i);
  // The gradient of input i so far; `first` says that there is none yet and the buffer must be
  // overwritten.
  struct Sum {
    Tensor gradient;
    bool first;
  };
  Sum add(int i);
  // Hands over a tensor that nobody else holds as the gradient of input i: it becomes the buffer
  // where there is none, else it is added.
  void give(int i, Tensor gradient);

  // Makes a result again, recorded, and sends dy back through it: to leaves, and to what was made
  // before this call, whose backward goes on from there. That of inputs comes about this way, too.
  void replay(const std::function<Tensor()>& make, const Tensor& dy);

 private:
  friend class BackwardRun;
  friend void send_back(const Tensor&, const Tensor&, uint64_t,
                        std::vector<std::shared_ptr<TapeNode>>&);
  struct Input {
    std::shared_ptr<TapeNode> node;  // null: no gradient wanted
    Shape shape;
    int64_t offset = 0, row_stride = 0;
    DType dtype = DType::f32;
  };
  friend struct TapeNode;
  friend Tensor record(const Tensor&, std::span<const Tensor>,
                       std::function<void(const Tensor&, Sink&)>);
  Sink(const std::vector<Input>& inputs, const Tensor& dy) : inputs_(inputs), dy_(dy) {}
  Sum place(const Input& input);
  Tensor aside(const Tensor& target);  // a buffer that finish() adds to `target`
  bool overlaps_earlier(const Input& input) const;
  void finish();

  const std::vector<Input>& inputs_;
  const Tensor& dy_;  // what the backward runs on
  struct Pending {
    Tensor target, source;
  };
  std::vector<Pending> pending_;
  std::vector<const Input*> placed_;
  std::vector<std::shared_ptr<TapeNode>> reached_;  // by replay()
};

// From the gradient dy of a result to those of its inputs. dy may be overwritten if it is handed on
// with give(): nobody reads it afterwards.
using Backward = std::function<void(const Tensor& dy, Sink& d)>;

// `y` with a place on the tape if an input has one, else `y` itself. y must be contiguous and new.
// The closure must not capture the returned handle (it would own itself); capturing `y` is fine.
Tensor record(const Tensor& y, std::initializer_list<Tensor> inputs, Backward backward);
// The same where the number of inputs is known at run time only.
Tensor record(const Tensor& y, std::span<const Tensor> inputs, Backward backward);

// Sends dy (the shape of y) back to every leaf that y was made from. Throws Error if y is not
// recorded, if shapes differ, or if it was run before.
void backward(const Tensor& y, const Tensor& dy);
// The same with dy = 1, for a y of one element.
void backward(const Tensor& y);

// A leaf: a tensor whose gradient is collected in `slot`.
Tensor record_leaf(const Tensor& x, std::shared_ptr<GradientSlot> slot);

}  // namespace rapt
