// Which instruction sets this machine has.
#include "isa.h"

gramian::Tiles::~Tiles() = default;

std::vector<const gramian::Isa*> gramian::present() {
  std::vector<const Isa*> found;
#if defined(GRAMIAN_X86)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    found.push_back(&avx512);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&avx2);
#endif
  found.push_back(&portable);
  return found;
}
