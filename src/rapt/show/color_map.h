// Colors for numbers. For sources only.
#pragma once

#include "rapt/show/figure.h"

namespace rapt::show {

// The color of `value` in [0, 1] (values beyond take the end's), from dark violet to yellow:
// viridis of Smith and van der Walt (2015), whose lightness grows evenly, also for the colour-blind
// and in print without colors.
Color viridis(double value);

// Black or white, whichever is better read on `background`.
Color readable_on(Color background);

// The color that lies `part` of the way from one to the other.
Color mixed(Color from, Color to, double part);

}  // namespace rapt::show
