// The tiles for one instruction set: the compiler flags of this file say which.
#include "tiles.h"

const gramian::Isa gramian::portable = {"portable", make, reach, kernels};
