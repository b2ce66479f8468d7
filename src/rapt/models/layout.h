// Layouts: the names that a family of checkpoints gives to the tensors of a model, as data.
//
// Inside, every parameter has one canonical name ("encoder.layers.3.self_attention.query.weight").
// A layout maps the names of a file to them: by renaming, and by stacking several along the first
// axis (PyTorch's in_proj_weight is query, key and value). Gradients are mapped as weights are.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::models {

// One tensor of the file. "{i}" stands for a layer's number, on both sides.
struct LayoutRule {
  std::string_view file;
  std::vector<std::string_view>
      canonical;  // more than one: stacked along the first axis, in this order
};

struct Layout {
  std::string_view name;
  std::vector<LayoutRule> rules;
  std::vector<std::string_view>
      positions;  // the names of the table of positions, a buffer; none where files have none
};

// The layout of that name; throws Error that lists the names.
const Layout& layout(std::string_view name);

// One tensor of a file and the canonical parameters that it is made of.
struct LayoutEntry {
  std::string file;
  std::vector<std::string> canonical;
};

// The tensors that a file in this layout has for a model with these canonical names, in the order
// of the names. Throws Error if the layout has no rule for one of them.
std::vector<LayoutEntry> entries(const Layout& layout, std::span<const std::string> canonical);

}  // namespace rapt::models
