#include "rapt/tensor/gradients.h"

#include "rapt/base/check.h"

namespace rapt {

bool Gradients::has(const Parameter& parameter) const {
  const auto found = parameters_.find(parameter.id());
  return found != parameters_.end() && found->second.slot->written();
}

bool Gradients::has(const NamedParameter& rows) const {
  const auto found = parameters_.find(rows.parameter.id());
  return found != parameters_.end() && found->second.slot->written(rows.begin, rows.count);
}

Tensor Gradients::of(const Parameter& parameter) {
  const auto found = parameters_.find(parameter.id());
  return found == parameters_.end() ? Tensor() : found->second.slot->whole();
}

Gradients::Entry& Gradients::entry_of(const Parameter& parameter) {
  Entry& entry = parameters_[parameter.id()];
  if (entry.slot == nullptr) {
    entry.slot = std::make_shared<GradientSlot>(parameter.shape(), parameter.value().dtype());
  }
  if (!entry.leaf.defined() || entry.leaf.raw() != parameter.value().raw()) {  // new, or reloaded
    RAPT_CHECK(parameter.shape() == entry.slot->shape() &&
                   parameter.value().dtype() == entry.slot->dtype(),
               "Gradients: a parameter of shape {} was replaced by one of {}: use new Gradients",
               entry.slot->shape().text(), parameter.shape().text());
    entry.leaf = record_leaf(parameter.value(), entry.slot);
  }
  return entry;
}

Tensor Gradients::use(const Parameter& parameter) { return entry_of(parameter).leaf; }

Tensor Gradients::use_twin(const Parameter& parameter) {
  Entry& entry = entry_of(parameter);
  if (!entry.twin.defined() || entry.twin.raw() != parameter.twin().raw())
    entry.twin = record_leaf(parameter.twin(), entry.slot);
  return entry.twin;
}

Tensor Gradients::watch(const Tensor& x) {
  RAPT_CHECK(x.defined() && is_float(x.dtype()), "Gradients::watch: expected a float tensor");
  auto slot = std::make_shared<GradientSlot>(x.shape(), x.dtype());
  Tensor leaf = record_leaf(x.contiguous() ? x.detach() : x.contiguous_copy(), slot);
  watched_.push_back({std::move(slot), leaf, {}});
  return leaf;
}

Tensor Gradients::of(const Tensor& watched) {
  for (Entry& entry : watched_) {
    if (entry.leaf.same_place(watched)) {
      return entry.slot->written() ? entry.slot->whole()
                                   : Tensor::zeros(watched.shape(), watched.dtype());
    }
  }
  fail(ErrorKind::failure, "Gradients::of: expected a tensor returned by watch()");
}

void Gradients::clear() {
  for (auto& [id, entry] : parameters_) entry.slot->clear();
  watched_.clear();
}

}  // namespace rapt
