// Products of bfloat16 pieces in the AMX unit; all else with AVX-512, which comes with it.
#include "isa_split.h"

namespace {

gramian::Tiles* make(const gramian::Request& request, gramian::Points z) {
  return request.pieces == 0 ? gramian::avx512.make(request, z) : make_split<Amx>(request, z);
}

}  // namespace

const gramian::Isa gramian::amx = {"amx", true, make, reach, kernels,
                                     add_rows<float>, add_rows<double>, multiply_stored,
                                     map_floats, map_doubles};
