// The same with an emulation of the unit, for tests on machines that have none: it is never the
// best. All else is done with the best that there is.
#include "isa_split.h"

namespace {

gramian::Tiles* make(const gramian::Request& request, gramian::Points z) {
  return request.pieces == 0 ? gramian::present().front()->make(request, z)
                             : make_split<Emulated>(request, z);
}

}  // namespace

const gramian::Isa gramian::emulated = {"amx-emulated", true, make, reach, kernels,
                                     add_rows<float>, add_rows<double>, multiply_stored,
                                     map_floats, map_doubles};
