// Sums over a stored part of the kernel matrix, K V and K' U, for several columns.
#pragma once

#include "tile.h"

namespace {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int SUM_ROWS = 4, TARGETS = 5;  // 20 sums and 15, of 32 registers
#else
constexpr int SUM_ROWS = 2, TARGETS = 4;  // 8 sums and 12, of 16 registers
#endif

template <int N>
struct Count {
  static constexpr int value = N;
};

// Calls group(first, Count<n>) for all of t targets, n of them at a time.
template <class Group>
GRAMIAN_INLINE void in_groups(long t, Group group) {
  long c = 0;
  for (; c + TARGETS <= t; c += TARGETS) group(c, Count<TARGETS>{});
  switch (t - c) {
    case 1: return group(c, Count<1>{});
    case 2: return group(c, Count<2>{});
    case 3: return group(c, Count<3>{});
    case 4: return group(c, Count<4>{});
  }
}

// sums[i, c] += K[i, :] v[c, :], lane by lane, for SUM_ROWS rows and N targets.
template <class V, int N>
GRAMIAN_INLINE void some_row_sums(const typename V::Scalar* K, long ld, long width,
                                  const typename V::Scalar* v, long v_ld, typename V::Scalar* sums,
                                  long t) {
  typename V::R sum[SUM_ROWS][N] = {};
  for (long j = 0; j < width; j += V::W) {
    typename V::R column[N];
    GRAMIAN_UNROLL for (int c = 0; c < N; c++) column[c] = V::load(v + c * v_ld + j);
    GRAMIAN_UNROLL for (int i = 0; i < SUM_ROWS; i++) {
      const auto k = V::load(K + i * ld + j);
      GRAMIAN_UNROLL for (int c = 0; c < N; c++) sum[i][c] += k * column[c];
    }
  }
  GRAMIAN_UNROLL for (int i = 0; i < SUM_ROWS; i++)
      GRAMIAN_UNROLL for (int c = 0; c < N; c++) add<V>(sums + (i * t + c) * V::W, sum[i][c]);
}

// For t of `all` targets that there are sums of.
template <class V>
void row_sums(const typename V::Scalar* K, long ld, long rows, long width,
              const typename V::Scalar* v, long v_ld, typename V::Scalar* sums, long t, long all) {
  for (long i = 0; i < rows; i += SUM_ROWS)
    in_groups(t, [&](long c, auto n) {
      some_row_sums<V, decltype(n)::value>(K + i * ld, ld, width, v + c * v_ld, v_ld,
                                           sums + (i * all + c) * V::W, all);
    });
}

// out[c, :] += u[:, c]' K for M vectors of columns and N targets.
template <class V, int N, int M>
GRAMIAN_INLINE void some_column_sums(const typename V::Scalar* K, long ld, long rows,
                                     const typename V::Scalar* u, long t, typename V::Scalar* out,
                                     long out_ld) {
  typename V::R sum[N][M] = {};
  for (long i = 0; i < rows; i++) {
    typename V::R k[M];
    GRAMIAN_UNROLL for (int q = 0; q < M; q++) k[q] = V::load(K + i * ld + q * V::W);
    GRAMIAN_UNROLL for (int c = 0; c < N; c++) {
      const auto weight = V::all(u[i * t + c]);
      GRAMIAN_UNROLL for (int q = 0; q < M; q++) sum[c][q] += k[q] * weight;
    }
  }
  GRAMIAN_UNROLL for (int c = 0; c < N; c++)
      GRAMIAN_UNROLL for (int q = 0; q < M; q++) add<V>(out + c * out_ld + q * V::W, sum[c][q]);
}

template <class V>
void column_sums(const typename V::Scalar* K, long ld, long rows, long width,
                 const typename V::Scalar* u, long t, typename V::Scalar* out, long out_ld) {
  constexpr long panel = NR<V>;
  long j = 0;
  if (t == 1)
    for (; j + 2 * panel <= width; j += 2 * panel)
      some_column_sums<V, 1, 2 * NV>(K + j, ld, rows, u, 1, out + j, out_ld);
  for (; j < width; j += panel)
    in_groups(t, [&](long c, auto n) {
      some_column_sums<V, decltype(n)::value, NV>(K + j, ld, rows, u + c, t, out + c * out_ld + j,
                                                  out_ld);
    });
}

}  // namespace
