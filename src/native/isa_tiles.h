// What each instruction set has: tiles of vectors for all kernels.
#pragma once

#include "add_rows.h"
#include "elementwise.h"
#include "stored.h"
#include "tiles.h"

namespace {

template <class V>
gramian::Tiles* make_of(const gramian::Request& request, gramian::Points z) {
  gramian::Tiles* made = nullptr;
  with_profile([&](const char* name, auto profile) {
    if (std::strcmp(name, request.kernel) == 0)
      made = new TilesOf<VectorPanels<V>>(request, z,
                                          method_of<V>(profile, request.difference, z.d));
  });
  return made;
}

gramian::Tiles* make(const gramian::Request& request, gramian::Points z) {
  if (request.single) return make_of<Vector<float>>(request, z);
  return make_of<Vector<double>>(request, z);
}

}  // namespace
