// Functions of single numbers, for which NumPy has no vectors on most machines.
#pragma once

#include <cmath>

#include "isa.h"
#include "vector.h"

namespace {

// Each has a `value` of vectors for the numbers that it `covers`; the C library computes others.

struct Exp {
  template <class V, class R = typename V::R>
  static GRAMIAN_INLINE bool covers(R x) {  // whose exponentials are normal numbers
    return V::all_at_most(V::abs(x), V::all(V::single ? 87 : 708));
  }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R x) {
    using F = typename V::F;
    using I = typename V::I;
    // ln 2 in two parts: products of whole numbers with the first are exact.
    constexpr double HIGH = V::single ? 0x1.62e4p-1 : 0x1.62e42feep-1;
    constexpr double LOW = V::single ? 0x1.7f7d1cf79abcap-20 : 0x1.a39ef35793c76p-33;
    const R shifted = x * V::all(S(1.4426950408889634)) + V::all(F::rounder);
    const R k = shifted - V::all(F::rounder);
    const R r = (x - k * V::all(S(HIGH))) - k * V::all(S(LOW));
    R p;
    if constexpr (V::single)
      p = V::horner(r, SERIES_F32) * r + V::all(1);
    else
      p = V::horner(r, SERIES_F64) * r + V::all(1);
    return (R)((I)p + ((I)shifted << F::mantissa));
  }
  template <class S>
  static S exact(S x) {
    return std::exp(x);
  }

 private:
  static constexpr double SERIES_F32[] = {1. / 5040, 1. / 720, 1. / 120, 1. / 24,
                                          1. / 6,    1. / 2,   1.};
  static constexpr double SERIES_F64[] = {
      1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880,
      1. / 40320,      1. / 5040,      1. / 720,      1. / 120,     1. / 24,
      1. / 6,          1. / 2,         1.};
};

struct Log1p {
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE bool covers(R x) {
    return V::all_at_most(-x, V::all(0)) &&
           V::all_at_most(x, V::all(std::numeric_limits<S>::max()));
  }
  template <class V, class R = typename V::R>
  static GRAMIAN_INLINE R value(R x) {
    return V::log1p(x);
  }
  template <class S>
  static S exact(S x) {
    return std::log1p(x);
  }
};

struct Asin {
  template <class V, class R = typename V::R>
  static GRAMIAN_INLINE bool covers(R x) {
    return V::all_at_most(V::abs(x), V::all(1));
  }
  // x + x z P(z) / Q(z), z = x^2, up to 1/2; beyond, by asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R x) {
    using I = typename V::I;
    const R size = V::abs(x), half = V::all(S(0.5));
    const I is_far = size > half;
    const R z = is_far ? (V::all(1) - size) * half : size * size;
    const R base = is_far ? V::sqrt(z) : size;
    R share;
    if constexpr (V::single)
      share = z * V::horner(z, P_F32) / V::horner(z, Q_F32);
    else
      share = z * V::horner(z, P_F64) / V::horner(z, Q_F64);
    const R near = base + base * share;
    const R angle = is_far ? V::all(S(1.5707963267948966)) -
                                 ((near - V::all(S(6.123233995736766e-17))) + near)
                           : near;
    return (R)((I)angle | ((I)x & (I)V::all(S(-0.0))));
  }
  template <class S>
  static S exact(S x) {
    return std::asin(x);
  }

 private:  // the coefficients of fdlibm
  static constexpr double P_F32[] = {-8.6563630030e-03, -4.2743422091e-02, 1.6666586697e-01};
  static constexpr double Q_F32[] = {-7.0662963390e-01, 1.};
  static constexpr double P_F64[] = {3.47933107596021167570e-05,  7.91534994289814532176e-04,
                                     -4.00555345006794114027e-02, 2.01212532134862925881e-01,
                                     -3.25565818622400915405e-01, 1.66666666666666657415e-01};
  static constexpr double Q_F64[] = {7.70381505559019352791e-02, -6.88283971605453293030e-01,
                                     2.02094576023350569471e+00, -2.40339491173441421878e+00, 1.};
};

// Sine of x + quarters pi/2, of float64 alone: NumPy has vectors for those of float32.
template <int QUARTERS>
struct Sine {
  template <class V, class R = typename V::R>
  static GRAMIAN_INLINE bool covers(R x) {
    return V::all_at_most(V::abs(x), V::all(1e6));
  }
  template <class V, class R = typename V::R>
  static GRAMIAN_INLINE R value(R x) {
    using F = typename V::F;
    using I = typename V::I;
    // pi/2 in three parts: products of whole numbers below 2^20 with the first two are exact.
    const R shifted = x * V::all(0.63661977236758134) + V::all(F::rounder);
    const R k = shifted - V::all(F::rounder);
    const R r = ((x - k * V::all(1.57079632673412561417e+00)) -
                 k * V::all(6.07710050630396597660e-11)) -
                k * V::all(2.02226624879595063154e-21);
    const I quarter = (I)shifted + QUARTERS;
    const R z = r * r;
    const R sine = r + r * z * V::horner(z, SINE);
    const R cosine = V::all(1) - (V::all(0.5) * z - z * z * V::horner(z, COSINE));
    const R found = (quarter & 1) == 1 ? cosine : sine;
    return (R)((I)found ^ ((quarter & 2) << 62));
  }
  template <class S>
  static S exact(S x) {
    return QUARTERS == 0 ? std::sin(x) : std::cos(x);
  }

 private:  // the coefficients of fdlibm, for |r| <= pi/4
  static constexpr double SINE[] = {1.58969099521155010221e-10,  -2.50507602534068634195e-08,
                                    2.75573137070700676789e-06,  -1.98412698298579493134e-04,
                                    8.33333333332248946124e-03,  -1.66666666666666324348e-01};
  static constexpr double COSINE[] = {-1.13596475577881948265e-11, 2.08757232129817482790e-09,
                                      -2.75573143513906633035e-07, 2.48015872894767294178e-05,
                                      -1.38888888888741095749e-03, 4.16666666666666019037e-02};
};

template <class V, class Function, class S = typename V::Scalar>
GRAMIAN_INLINE void map_vector(const S* x, S* out) {
  const auto numbers = V::load(x);
  if (Function::template covers<V>(numbers)) {
    V::store(out, Function::template value<V>(numbers));
    return;
  }
  for (int l = 0; l < V::W; l++) out[l] = Function::exact(x[l]);
}

// out (n) = the function of x (n), which may be the same memory.
template <class Function, class S>
void map_all(const S* x, S* out, long n) {
  using V = Vector<S>;
  long i = 0;
  for (; i + V::W <= n; i += V::W) map_vector<V, Function>(x + i, out + i);
  if (i == n) return;
  S padded[V::W] = {};
  std::memcpy(padded, x + i, sizeof(S) * size_t(n - i));
  map_vector<V, Function>(padded, padded);
  std::memcpy(out + i, padded, sizeof(S) * size_t(n - i));
}

void map_floats(gramian::Function function, const float* x, float* out, long n) {
  switch (function) {
    case gramian::Function::exp: return map_all<Exp>(x, out, n);
    case gramian::Function::log1p: return map_all<Log1p>(x, out, n);
    case gramian::Function::asin: return map_all<Asin>(x, out, n);
    default: return;
  }
}

void map_doubles(gramian::Function function, const double* x, double* out, long n) {
  switch (function) {
    case gramian::Function::exp: return map_all<Exp>(x, out, n);
    case gramian::Function::log1p: return map_all<Log1p>(x, out, n);
    case gramian::Function::asin: return map_all<Asin>(x, out, n);
    case gramian::Function::cos: return map_all<Sine<1>>(x, out, n);
    case gramian::Function::sin: return map_all<Sine<0>>(x, out, n);
  }
}

}  // namespace
