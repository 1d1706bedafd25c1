// A tile of the kernel matrix: MR rows by NR columns that are computed in registers.
#pragma once

#include "profile.h"

namespace {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int MR = 8, NV = 3;  // 32 registers: 24 sums, 3 columns, 1 row and a few constants
#else
constexpr int MR = 6, NV = 2;  // 16 registers: 12 sums, 2 columns, 1 row and what is added
#endif
template <class V>
constexpr int NR = NV * V::W;

// In a loop over features: constants of what follows must not take registers from the sums.
GRAMIAN_INLINE void leave_constants_in_memory() {
#if defined(__AVX512F__)
  asm volatile("" ::: "xmm28", "xmm29", "xmm30", "xmm31");
#endif
}

// Numbers that the compiler must not keep in registers.
template <class S>
GRAMIAN_INLINE void stays_in_memory(S* numbers) {
  asm volatile("" ::"r"(numbers) : "memory");
}

constexpr int AHEAD = 12;  // features by which columns are fetched before they are needed

// How s comes about. With a product, |x - z|^2 is |x|^2 + |z|^2 - 2 x z, and the l1 distance is
// the sum of 2 max(x, z) - x - z. The terms of one row or column, its norm, are added first, which
// saves an addition, or last, which saves digits where there are many features.
enum class Distance { product, long_product, difference };

// Whether norms are part of s.
template <class K, Distance D>
constexpr bool from_product() {
  return (K::form == Form::radial || K::form == Form::l1) && D != Distance::difference;
}

constexpr long LONG = 32;  // features from which on norms are added last

// Rows and columns as the tiles want them. Panels of MR rows, of NR columns: for each feature the
// coordinates of all of them. Columns are multiplied by -2 sign where s is a product, and rows and
// columns by 2 where it is a sum of 2 max(x, z).
template <class S>
struct Strip {
  const S *x, *x_norms;
  const S *z, *z_norms;
  long d, rows, panels;  // rows: a multiple of MR
  S near;                // pairs with s < near |x|^2 are recomputed from differences
  Parameters<S> given;
  S* tile;  // rows by `ld` entries, where they are stored
  long ld;
  const S* v;  // panels * NR numbers
  S* sums;     // rows * W: the sums of K v, lane by lane
  const S* u;  // rows: factors of the entries, or of those that are there before
  S* columns;  // panels * NR: the sums over rows of their products
};

template <class V>
using Sums = typename V::R[MR][NV];

// Each part is summed from zero and then added: its digits do not drown in a sum that has grown.
template <class V>
GRAMIAN_INLINE void add(typename V::Scalar* to, typename V::R part) {
  V::store(to, V::load(to) + part);
}

// Replaces row i of s by squared differences, which do not cancel.
template <class V>
__attribute__((noinline)) void recompute(typename V::Scalar* s, const typename V::Scalar* x,
                                         const typename V::Scalar* z, long d) {
  using S = typename V::Scalar;
  typename V::R sum[NV] = {};
  for (long k = 0; k < d; k++)
    for (int q = 0; q < NV; q++) {
      const auto t = V::all(x[k * MR]) + V::all(S(0.5)) * V::load(z + k * NR<V> + q * V::W);
      sum[q] += t * t;
    }
  for (int q = 0; q < NV; q++) V::store(s + q * V::W, sum[q]);
}

template <class V>
GRAMIAN_INLINE void recompute_near(Sums<V>& s, const Strip<typename V::Scalar>& strip,
                                   const typename V::Scalar* x, const typename V::Scalar* x_norms,
                                   const typename V::Scalar* z) {
  using S = typename V::Scalar;
  GRAMIAN_UNROLL for (int i = 0; i < MR; i++) {
    const auto reach = V::all(strip.near * x_norms[i]);
    bool any = false;
    GRAMIAN_UNROLL for (int q = 0; q < NV; q++) any |= V::any_below(s[i][q], reach);
    if (__builtin_expect(any, 0)) {
      S row[NR<V>];
      recompute<V>(row, x + i, z, strip.d);
      GRAMIAN_UNROLL for (int q = 0; q < NV; q++) s[i][q] = V::load(row + q * V::W);
    }
  }
}

// `one` is 1: a maximum that is subtracted keeps the units for additions busy and those for
// multiplications idle, and a product with it goes there. It is the same number.
template <class V, class K, Distance D>
GRAMIAN_INLINE typename V::R term(typename V::R sum, const typename V::Scalar& each,
                                  typename V::R z, typename V::R one) {
  const auto x = V::all(each);
  if constexpr (K::form == Form::l1) {
    return sum - one * (D == Distance::difference ? V::abs(x - z) : V::larger(each, z));
  } else if constexpr (K::form == Form::least) {
    return sum + one * V::smaller(each, z);
  } else if constexpr (K::form == Form::fractions) {
    return V::less_fraction(sum, x - z, x + z);
  } else if constexpr (K::form == Form::radial && D == Distance::difference) {
    const auto t = x - z;
    return K::sign > 0 ? sum + t * t : sum - t * t;
  } else {
    return sum + x * z;
  }
}

// What becomes of entries: they are stored, or summed with v, or both. Two purposes sum over rows,
// with u, as well: `chain` what is stored before they take its place, `fold` the entries themselves,
// which are stored nowhere.
enum class Purpose { store, sum, both, chain, fold };

constexpr bool stores(Purpose purpose) {
  return purpose != Purpose::sum && purpose != Purpose::fold;
}
constexpr bool sums(Purpose purpose) { return purpose != Purpose::store; }
constexpr bool sums_over_rows(Purpose purpose) {
  return purpose == Purpose::chain || purpose == Purpose::fold;
}

// Kernel entries of N vectors of one row, from their s.
template <class V, class K, Purpose P, int N>
GRAMIAN_INLINE void finish_row(const typename V::R (&s)[N], Parameters<typename V::Scalar> given,
                               typename V::Scalar* out, const typename V::Scalar* v,
                               typename V::Scalar* sums, typename V::Scalar u,
                               typename V::R (&columns)[N]) {
  typename V::R sum{};
  GRAMIAN_UNROLL for (int q = 0; q < N; q++) {
    if constexpr (P == Purpose::chain) columns[q] += V::load(out + q * V::W) * V::all(u);
    const auto k = K::template value<V>(s[q], given);
    if constexpr (P == Purpose::fold) columns[q] += k * V::all(u);
    if constexpr (stores(P)) V::store(out + q * V::W, k);
    if constexpr (::sums(P)) sum = q == 0 ? k * V::load(v) : sum + k * V::load(v + q * V::W);
  }
  if constexpr (::sums(P)) V::store(sums, V::load(sums) + sum);
}

template <class V, class K, Distance D, Purpose P>
GRAMIAN_INLINE void tile(const Strip<typename V::Scalar>& strip, const typename V::Scalar* x,
                         const typename V::Scalar* x_norms, const typename V::Scalar* z,
                         const typename V::Scalar* z_norms, typename V::Scalar* out,
                         const typename V::Scalar* v, typename V::Scalar* sums,
                         const typename V::Scalar* u, typename V::Scalar* columns) {
  using R = typename V::R;
  constexpr int W = V::W;
  constexpr bool product = from_product<K, D>();
  constexpr bool norms_first = product && D == Distance::product;
  constexpr bool loads_rows = K::form == Form::l1 || K::form == Form::least;  // for each vector
  const R one = V::one();
  Sums<V> s;
  GRAMIAN_UNROLL for (int i = 0; i < MR; i++) {
    GRAMIAN_UNROLL for (int q = 0; q < NV; q++) {
      const R start = norms_first ? V::load(z_norms + q * W) : R{};
      s[i][q] = term<V, K, D>(start, x[i], V::load(z + q * W), one);
    }
  }
#pragma GCC unroll 2
  for (long k = 1; k < strip.d; k++) {
    const auto *x_k = x + k * MR, *z_k = z + k * NR<V>;
    R column[NV];
    GRAMIAN_UNROLL for (int q = 0; q < NV; q++) {
      column[q] = V::load(z_k + q * W);
      if (!loads_rows && q * VECTOR_BYTES % 64 == 0)
        __builtin_prefetch(z_k + AHEAD * NR<V> + q * W);
    }
    GRAMIAN_UNROLL for (int i = 0; i < MR; i++)
        GRAMIAN_UNROLL for (int q = 0; q < NV; q++)
            s[i][q] = term<V, K, D>(s[i][q], x_k[i], column[q], one);
    leave_constants_in_memory();
  }
  if constexpr (has_share(K::form))
    GRAMIAN_UNROLL for (int i = 0; i < MR; i++) {
      const R norm = V::all(x_norms[i]);
      GRAMIAN_UNROLL for (int q = 0; q < NV; q++)
          s[i][q] = K::template share<V>(s[i][q], norm + V::load(z_norms + q * W));
    }
  if constexpr (product) {
    GRAMIAN_UNROLL for (int i = 0; i < MR; i++) {
      const R norm = V::all(x_norms[i]);
      GRAMIAN_UNROLL for (int q = 0; q < NV; q++)
          s[i][q] += norms_first ? norm : norm + V::load(z_norms + q * W);
    }
    if constexpr (K::sharp) recompute_near<V>(s, strip, x, x_norms, z);
  }
  if constexpr (P == Purpose::chain)
    GRAMIAN_UNROLL for (int i = 0; i < MR; i++)
      GRAMIAN_UNROLL for (int q = 0; q < NV; q++)
        if (q * VECTOR_BYTES % 64 == 0) __builtin_prefetch(out + (i + MR) * strip.ld + q * W, 1);
  R over_rows[NV];  // in memory until here: while features are added up no register is left
  if constexpr (sums_over_rows(P))
    GRAMIAN_UNROLL for (int q = 0; q < NV; q++) over_rows[q] = V::load(columns + q * W);
  GRAMIAN_UNROLL for (int i = 0; i < MR; i++)
      finish_row<V, K, P>(s[i], strip.given, stores(P) ? out + i * strip.ld : nullptr, v,
                          ::sums(P) ? sums + i * W : nullptr, sums_over_rows(P) ? u[i] : 0,
                          over_rows);
  if constexpr (sums_over_rows(P))
    GRAMIAN_UNROLL for (int q = 0; q < NV; q++) V::store(columns + q * W, over_rows[q]);
}

template <class V, class K, Distance D, Purpose P>
void strip(const Strip<typename V::Scalar>& s) {
  for (long p = 0; p < s.panels; p++) {
    const long column = p * NR<V>;
    typename V::Scalar columns[NR<V>] = {};
    if constexpr (sums_over_rows(P)) stays_in_memory(columns);
    for (long i = 0; i < s.rows; i += MR)
      tile<V, K, D, P>(s, s.x + i * s.d, s.x_norms + i, s.z + column * s.d, s.z_norms + column,
                       stores(P) ? s.tile + i * s.ld + column : nullptr,
                       sums(P) ? s.v + column : nullptr, sums(P) ? s.sums + i * V::W : nullptr,
                       sums_over_rows(P) ? s.u + i : nullptr, columns);
    if constexpr (sums_over_rows(P))
      GRAMIAN_UNROLL for (int q = 0; q < NV; q++)
          add<V>(s.columns + column + q * V::W, V::load(columns + q * V::W));
  }
}

}  // namespace
