// A matrix unit: eight tiles of 16 rows of 64 bytes, and the instructions that work on them.
//
// `Amx` has the instructions. `Emulated` computes the same numbers with what every machine has, for
// tests: it is many times slower than tiles without a matrix unit.
#pragma once

#include <cstdint>
#include <cstring>

#include "vector.h"

namespace {

using Bfloat16 = std::uint16_t;  // the upper half of a float32

constexpr long SIDE = 16;   // rows of a tile, and float32 numbers in one of them
constexpr long DEPTH = 32;  // bfloat16 numbers in a row of a tile
constexpr long TILE = SIDE * DEPTH;

inline float number(Bfloat16 half) {
  const std::uint32_t bits = std::uint32_t(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

#if defined(__AMX_BF16__)
// The tiles belong to the thread from the construction of this to its end. In assembly: as GCC 12
// has the intrinsics, they may be moved before the stores to what they load.
class Amx {
 public:
  Amx() {
    struct {
      std::uint8_t palette = 1, start = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const layout;
    static_assert(sizeof layout == 64, "as the instruction reads it");
    asm volatile("ldtilecfg %0" ::"m"(layout));
  }
  ~Amx() { asm volatile("tilerelease" ::: "memory"); }
  Amx(const Amx&) = delete;
  Amx& operator=(const Amx&) = delete;

  template <int T>
  GRAMIAN_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(T));
  }
  template <int T>
  GRAMIAN_INLINE void load(const void* rows, long step) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(step), "i"(T) : "memory");
  }
  template <int T>
  GRAMIAN_INLINE void store(void* rows, long step) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(step), "i"(T) : "memory");
  }
  // C += A B for A (16, 32) and B (32, 16), of which two rows are interleaved in each row
  template <int C, int A, int B>
  GRAMIAN_INLINE void add_product() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
  }
};
#endif

// Rounds to float32 as the unit does: to nearest, and to zero what is below the normal numbers. The
// sum of a float32 and a product of two bfloat16 rounds to double first; that changes nothing, as
// double has more than twice as many digits.
inline float rounded(double x) {
  constexpr double least = 0x1p-126 - 0x1p-151;  // rounds to the smallest normal number
  return __builtin_fabs(x) < least ? 0.0f : float(x);
}

class Emulated {
 public:
  template <int T>
  void zero() {
    std::memset(tiles_[T], 0, sizeof tiles_[T]);
  }
  template <int T>
  void load(const void* rows, long step) {
    for (long i = 0; i < SIDE; i++)
      std::memcpy(tiles_[T][i], static_cast<const char*>(rows) + i * step, 64);
  }
  template <int T>
  void store(void* rows, long step) {
    for (long i = 0; i < SIDE; i++)
      std::memcpy(static_cast<char*>(rows) + i * step, tiles_[T][i], 64);
  }
  // As Intel's manual has TDPBF16PS: even and odd terms summed apart, then added to one another,
  // then to C; each addition is rounded, no product is, and denormal numbers count as zero.
  template <int C, int A, int B>
  void add_product() {
    double a[TILE], b[TILE];
    numbers(tiles_[A], a);
    numbers(tiles_[B], b);
    for (long i = 0; i < SIDE; i++) {
      float sum[DEPTH] = {}, c[SIDE];
      for (long k = 0; k < DEPTH; k += 2)
        for (long j = 0; j < DEPTH; j++)
          sum[j] = rounded(double(sum[j]) + a[i * DEPTH + k + j % 2] * b[k / 2 * DEPTH + j]);
      std::memcpy(c, tiles_[C][i], sizeof c);
      for (long j = 0; j < SIDE; j++) {
        const double both = rounded(double(sum[2 * j]) + double(sum[2 * j + 1]));
        c[j] = rounded(double(rounded(double(c[j]))) + both);
      }
      std::memcpy(tiles_[C][i], c, sizeof c);
    }
  }

 private:
  static void numbers(const unsigned char (*tile)[64], double* out) {
    Bfloat16 halves[TILE];
    std::memcpy(halves, tile, sizeof halves);
    for (long k = 0; k < TILE; k++)
      out[k] = (halves[k] & 0x7f80) == 0 ? 0 : double(number(halves[k]));
  }

  unsigned char tiles_[8][SIDE][64] = {};
};

}  // namespace
