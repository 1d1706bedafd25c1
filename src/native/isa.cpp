// Which instruction sets this machine has.
#include "isa.h"

#if defined(GRAMIAN_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

gramian::Tiles::~Tiles() = default;
void gramian::Tiles::stop() { stopped_.store(true, std::memory_order_relaxed); }

#if defined(GRAMIAN_AMX)
namespace {

// Linux lends a process the state of the tiles, 8 KiB for each thread, when it asks.
bool ask_for_tiles() {
  constexpr long REQUEST_PERMISSION = 0x1023, TILE_DATA = 18;
  return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

// To be called where there is AVX-512: xgetbv must be enabled.
bool has_amx() {
  constexpr unsigned BF16 = 1u << 22, TILE = 1u << 24, TILE_STATE = 3u << 17;
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & BF16) || !(d & TILE)) return false;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & TILE_STATE) == TILE_STATE && ask_for_tiles();
}

}  // namespace
#endif

std::vector<const gramian::Isa*> gramian::present() {
  std::vector<const Isa*> found;
#if defined(GRAMIAN_X86)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
#if defined(GRAMIAN_AMX)
    static const bool has_unit = has_amx();
    if (has_unit) found.push_back(&amx);
#endif
    found.push_back(&avx512);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&avx2);
#endif
  found.push_back(&portable);
  return found;
}
