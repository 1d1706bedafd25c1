// The tiles for one instruction set: the compiler flags of this file say which.
#include "isa_tiles.h"

const gramian::Isa gramian::portable = {"portable", false, make, reach, kernels,
                                     add_rows<float>, add_rows<double>, multiply_stored,
                                     map_floats, map_doubles};
