// The layouts that there are, one file each.
#pragma once

#include "rapt/models/layout.h"

namespace rapt::models::layouts {

const Layout& rapt();        // the canonical names themselves
const Layout& hand_built();  // an encoder-decoder written by hand, one module a projection
const Layout& torch();       // an encoder-decoder around torch.nn.Transformer

}  // namespace rapt::models::layouts
