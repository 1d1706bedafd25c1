// What a matrix unit has: tiles of radial kernels whose products are of bfloat16 pieces.
#pragma once

#include "add_rows.h"
#include "elementwise.h"
#include "stored.h"
#include "split_panels.h"
#include "tiles.h"

namespace {

template <class Unit>
gramian::Tiles* make_split(const gramian::Request& request, gramian::Points z) {
  using V = Vector<float>;
  gramian::Tiles* made = nullptr;
  with_profile([&](const char* name, auto profile) {
    using K = decltype(profile);
    if constexpr (K::form == Form::radial)
      if (std::strcmp(name, request.kernel) == 0)
        made = new TilesOf<SplitPanels<V, Unit>>(request, z, split_method<V, K>());
  });
  return made;
}

}  // namespace
