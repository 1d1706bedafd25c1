// Vectors of numbers, as wide as the instruction set of this translation unit has them.
//
// Compiler vector extensions give the arithmetic, with AVX-512, with AVX2, and with what every
// machine of its kind has (SSE2, NEON). A few functions have faster instructions.
//
// All of it is in an unnamed namespace: each translation unit keeps its own copy, or the linker
// might choose one with instructions that the machine at hand does not have.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define GRAMIAN_INLINE inline __attribute__((always_inline))
#define GRAMIAN_UNROLL _Pragma("GCC unroll 32")

namespace {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

template <class S>
struct Format;
template <>
struct Format<float> {
  using Int = std::int32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float rounder = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded
};
template <>
struct Format<double> {
  using Int = std::int64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double rounder = 6755399441055744.0;  // 1.5 * 2^52
};

// The minimax polynomials of 2^r with value 1 at 0, from the highest power down to the first.
constexpr double POWER_F32[] = {0x1.5bba2p-10, 0x1.3cea88p-7, 0x1.c6b752p-5, 0x1.ebf9bcp-3,
                                0x1.62e42ap-1};  // |r| <= 1/2, relative error 1.1e-7
constexpr double POWER_F32_FLOOR[] = {0x1.e9751ap-10, 0x1.27784cp-7, 0x1.c91ce8p-5, 0x1.ebdb56p-3,
                                      0x1.62e4bap-1};  // 0 <= r < 1, relative error 0.9e-7
constexpr double POWER_F64[] = {
    4.4549605981865183938e-10, 7.0725859492692236999e-9, 1.0178062445845773521e-7,
    1.3215442587921689653e-6,  1.5252733829836118394e-5, 1.5403530441736050155e-4,
    1.333355814641693531e-3,   9.6181291076068885273e-3, 5.5504108664821594339e-2,
    2.402265069591009822e-1,   6.9314718055994530942e-1};  // |r| <= 1/2, relative error 2e-17

// 2 artanh(q) / q as a polynomial of q^2, for |q| <= 0.172.
constexpr double LOG_F32[] = {2. / 9, 2. / 7, 2. / 5, 2. / 3, 2.};
constexpr double LOG_F64[] = {2. / 21, 2. / 19, 2. / 17, 2. / 15, 2. / 13, 2. / 11,
                              2. / 9,  2. / 7,  2. / 5,  2. / 3,  2.};

template <class S>
struct Vector {
  using Scalar = S;
  using F = Format<S>;
  using Int = typename F::Int;
  typedef S R __attribute__((vector_size(VECTOR_BYTES)));
  typedef Int I __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr int W = VECTOR_BYTES / int(sizeof(S));
  static constexpr bool single = sizeof(S) == 4;

  static GRAMIAN_INLINE R load(const S* p) {
    R r;
    std::memcpy(&r, p, sizeof r);
    return r;
  }
  static GRAMIAN_INLINE void store(S* p, R r) { std::memcpy(p, &r, sizeof r); }
  static GRAMIAN_INLINE R all(S a) { return a - R{}; }

  // 1, and with AVX-512 the compiler does not know that it is, so that products with it stay.
  static GRAMIAN_INLINE R one() {
    R r = all(S(1));
#if defined(__AVX512F__)
    asm("" : "+v"(r));
#endif
    return r;
  }

  static GRAMIAN_INLINE S sum(R r) {
#if defined(__AVX512F__)
    if constexpr (single)
      return _mm512_reduce_add_ps((__m512)r);
    else
      return _mm512_reduce_add_pd((__m512d)r);
#else
    for (int half = W / 2; half > 0; half /= 2)
      for (int l = 0; l < half; l++) r[l] += r[l + half];
    return r[0];
#endif
  }
  static GRAMIAN_INLINE R abs(R x) { return (R)((I)x & ~(I)all(S(-0.0))); }

  // at_most and at_least keep a NaN of x; a NaN is not below, nor at most, anything.
#if defined(__AVX512F__)
  static GRAMIAN_INLINE R at_most(R x, R c) {
    if constexpr (single)
      return (R)_mm512_min_ps((__m512)c, (__m512)x);
    else
      return (R)_mm512_min_pd((__m512d)c, (__m512d)x);
  }
  static GRAMIAN_INLINE R at_least(R x, R c) {
    if constexpr (single)
      return (R)_mm512_max_ps((__m512)c, (__m512)x);
    else
      return (R)_mm512_max_pd((__m512d)c, (__m512d)x);
  }
  static GRAMIAN_INLINE bool any_below(R x, R c) {
    if constexpr (single)
      return _mm512_cmp_ps_mask((__m512)x, (__m512)c, _CMP_LT_OQ) != 0;
    else
      return _mm512_cmp_pd_mask((__m512d)x, (__m512d)c, _CMP_LT_OQ) != 0;
  }
  static GRAMIAN_INLINE bool all_at_most(R x, R c) {
    if constexpr (single)
      return _mm512_cmp_ps_mask((__m512)x, (__m512)c, _CMP_NLE_UQ) == 0;
    else
      return _mm512_cmp_pd_mask((__m512d)x, (__m512d)c, _CMP_NLE_UQ) == 0;
  }
#elif defined(__AVX2__)
  static GRAMIAN_INLINE R at_most(R x, R c) {
    if constexpr (single)
      return (R)_mm256_min_ps((__m256)c, (__m256)x);
    else
      return (R)_mm256_min_pd((__m256d)c, (__m256d)x);
  }
  static GRAMIAN_INLINE R at_least(R x, R c) {
    if constexpr (single)
      return (R)_mm256_max_ps((__m256)c, (__m256)x);
    else
      return (R)_mm256_max_pd((__m256d)c, (__m256d)x);
  }
  static GRAMIAN_INLINE bool any_below(R x, R c) {
    return _mm256_movemask_epi8((__m256i)(x < c)) != 0;
  }
  static GRAMIAN_INLINE bool all_at_most(R x, R c) {
    return _mm256_movemask_epi8((__m256i)(x <= c)) == -1;
  }
#else
  static GRAMIAN_INLINE R at_most(R x, R c) { return x > c ? c : x; }
  static GRAMIAN_INLINE R at_least(R x, R c) { return x < c ? c : x; }
  static GRAMIAN_INLINE bool any_below(R x, R c) {
    const I below = x < c;
    Int any = 0;
    for (int l = 0; l < W; l++) any |= below[l];
    return any != 0;
  }
  static GRAMIAN_INLINE bool all_at_most(R x, R c) {
    const I within = x <= c;
    Int all = -1;
    for (int l = 0; l < W; l++) all &= within[l];
    return all == -1;
  }
#endif

  // The larger and the smaller of a number in memory and others; the former if it is NaN. With
  // AVX-512 it is an operand in memory: loads into registers hold up two operations at once.
  static GRAMIAN_INLINE R larger(const S& x, R z) {
#if defined(__AVX512F__)
    R r;
    if constexpr (single)
      asm("vmaxps %2%{1to16%}, %1, %0" : "=v"(r) : "v"(z), "m"(x));
    else
      asm("vmaxpd %2%{1to8%}, %1, %0" : "=v"(r) : "v"(z), "m"(x));
    return r;
#else
    return at_least(all(x), z);
#endif
  }
  static GRAMIAN_INLINE R smaller(const S& x, R z) {
#if defined(__AVX512F__)
    R r;
    if constexpr (single)
      asm("vminps %2%{1to16%}, %1, %0" : "=v"(r) : "v"(z), "m"(x));
    else
      asm("vminpd %2%{1to8%}, %1, %0" : "=v"(r) : "v"(z), "m"(x));
    return r;
#else
    return at_most(all(x), z);
#endif
  }

  // The square root of 0 <= x < infinity.
  static GRAMIAN_INLINE R sqrt(R x) {
#if defined(__AVX512F__)
    // 14 digits and a step of Newton's: three times as fast as vsqrtps
    if constexpr (single) {
      const R y = (R)_mm512_rsqrt14_ps((__m512)at_least(x, all(S(1e-30))));
      const R root = x * y, half = y * all(S(0.5));
      return root + (x - root * root) * half;
    } else {
      return (R)_mm512_sqrt_pd((__m512d)x);
    }
#elif defined(__AVX2__)
    if constexpr (single)
      return (R)_mm256_sqrt_ps((__m256)x);
    else
      return (R)_mm256_sqrt_pd((__m256d)x);
#else
    for (int l = 0; l < W; l++)
      x[l] = single ? S(__builtin_sqrtf(float(x[l]))) : S(__builtin_sqrt(double(x[l])));
    return x;
#endif
  }

  // One over the square root of 1e-30 (float64: 1e-290) <= x < infinity.
  static GRAMIAN_INLINE R inverse_root(R x) {
#if defined(__AVX512F__)
    if constexpr (single) {
      const R y = (R)_mm512_rsqrt14_ps((__m512)x);
      return y + y * (all(S(0.5)) - all(S(0.5)) * x * y * y);
    }
#endif
    return all(S(1)) / sqrt(x);
  }

  // a / b, for b that neither is denormal nor has an inverse that is.
  static GRAMIAN_INLINE R divide(R a, R b) {
#if defined(__AVX512F__)
    if constexpr (single) {  // 14 digits and a step of Newton's
      const R y = (R)_mm512_rcp14_ps((__m512)b), q = a * y;
      return q + (a - q * b) * y;
    }
#endif
    return a / b;
  }
  static GRAMIAN_INLINE R one_where_zero(R x) { return (R)((I)(x == R{}) & (I)all(1)); }

  // sum - t^2 / u for 0 <= |t| <= u; nothing where u is zero.
  static GRAMIAN_INLINE R less_fraction(R sum, R t, R u) {
    u += all(std::numeric_limits<S>::min());
#if defined(__AVX512F__)
    if constexpr (single) {
      const R y = (R)_mm512_rcp14_ps((__m512)u);
      return sum - (t * y) * (t * (all(2) - u * y));
    }
#endif
    return sum - t / u * t;
  }

  // sum + w where x > z, sum - w where x < z.
  static GRAMIAN_INLINE R add_signed(R sum, R x, R z, R w) {
#if defined(__AVX512F__)
    if constexpr (single) {
      const auto a = (__m512)x, b = (__m512)z, c = (__m512)w;
      const auto added =
          _mm512_mask_add_ps((__m512)sum, _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), (__m512)sum, c);
      return (R)_mm512_mask_sub_ps(added, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), added, c);
    } else {
      const auto a = (__m512d)x, b = (__m512d)z, c = (__m512d)w;
      const auto added =
          _mm512_mask_add_pd((__m512d)sum, _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ), (__m512d)sum, c);
      return (R)_mm512_mask_sub_pd(added, _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), added, c);
    }
#else
    return sum + (R)((I)(x > z) & (I)w) - (R)((I)(x < z) & (I)w);
#endif
  }

  // An exponent that is at most 0 but for rounding. With AVX-512 it stays as it is, and entries may
  // exceed 1 by what they are rounded by: units for additions are what holds up the exponential.
  static GRAMIAN_INLINE R exponent(R x) {
#if defined(__AVX512F__)
    return x;
#else
    return at_most(x, all(0));
#endif
  }

  // 2^x for x <= 0, or about; what underflows is zero, or next to it.
  static GRAMIAN_INLINE R exp2(R x) {
#if defined(__AVX512F__)
    if constexpr (single) {  // x - floor(x), and p 2^floor(x), are one instruction each
      const R r = (R)_mm512_reduce_ps((__m512)x, 0x09);
      return (R)_mm512_scalef_ps((__m512)(horner(r, POWER_F32_FLOOR) * r + all(S(1))), (__m512)x);
    } else {
      const R r = (R)_mm512_reduce_pd((__m512d)x, 0x08);
      const R p = horner(r, POWER_F64) * r + all(S(1));
      return (R)_mm512_scalef_pd((__m512d)p, (__m512d)(x - r));
    }
#else
    x = at_least(x, all(S(1 - F::bias)));
    const R shifted = x + all(F::rounder), r = x - (shifted - all(F::rounder));
    R p;
    if constexpr (single)
      p = horner(r, POWER_F32) * r + all(S(1));
    else
      p = horner(r, POWER_F64) * r + all(S(1));
    return (R)((I)p + ((I)shifted << F::mantissa));
#endif
  }

  // log(1 + s) of 0 <= s < infinity: the logarithm of u = 1 + s and what that sum rounded away.
  static GRAMIAN_INLINE R log1p(R s) {
    const R one = all(S(1)), u = one + s;
    const I e = ((I)u - (I)all(S(0.70710678118654752))) >> F::mantissa;
    const R m = (R)((I)u - (e << F::mantissa));  // u = 2^e m, 0.7 <= m < 1.42
    const R f = m - one, q = f / (f + all(S(2)));
    R series;
    if constexpr (single)
      series = horner(q * q, LOG_F32);
    else
      series = horner(q * q, LOG_F64);
    const R whole = __builtin_convertvector(e, R) * all(S(0.69314718055994531));
    return whole + (series * q + (s - (u - one)) / u);
  }

  template <int N>
  static GRAMIAN_INLINE R horner(R x, const double (&coefficients)[N]) {
    R p = all(S(coefficients[0]));
    GRAMIAN_UNROLL for (int k = 1; k < N; k++) p = p * x + all(S(coefficients[k]));
    return p;
  }
};

}  // namespace
