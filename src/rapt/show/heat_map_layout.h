// Where the parts of a picture of heat maps stand. For sources only.
#pragma once

#include <span>

#include "rapt/show/figure.h"
#include "rapt/show/heat_map.h"

namespace rapt::show {

// Throws Error where maps or options cannot be shown, as heat_map.h says.
void check_maps(std::span<const HeatMap> maps, const HeatMapOptions& options);

Figure heat_map_layout(std::span<const HeatMap> maps, const HeatMapOptions& options,
                       const TextWidth& text_width);

}  // namespace rapt::show
