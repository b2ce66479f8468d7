#include "rapt/models/layouts/layouts.h"

namespace rapt::models::layouts {

const Layout& rapt() {
  static const Layout layout{"rapt", {}, {}};
  return layout;
}

}  // namespace rapt::models::layouts
