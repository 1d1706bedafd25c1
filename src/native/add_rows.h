// What each instruction set has for sparse products: sums of multiples of rows without gaps.
#pragma once

#include "vector.h"

namespace {

// out (n) += the sum of rows (n), each times its factor, in their order.
template <class S>
void add_rows(S* out, const S* const* rows, const S* factors, long count, long n) {
  using V = Vector<S>;
  constexpr int SUMS = 4;
  long j = 0;
  for (; j + SUMS * V::W <= n; j += SUMS * V::W) {
    typename V::R sums[SUMS];
    GRAMIAN_UNROLL for (int l = 0; l < SUMS; l++) sums[l] = V::load(out + j + l * V::W);
    for (long k = 0; k < count; k++) {
      const auto factor = V::all(factors[k]);
      GRAMIAN_UNROLL for (int l = 0; l < SUMS; l++)
        sums[l] += factor * V::load(rows[k] + j + l * V::W);
    }
    GRAMIAN_UNROLL for (int l = 0; l < SUMS; l++) V::store(out + j + l * V::W, sums[l]);
  }
  for (; j < n; j++)
    for (long k = 0; k < count; k++) out[j] += factors[k] * rows[k][j];
}

}  // namespace
