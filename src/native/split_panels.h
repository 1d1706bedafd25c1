// Panels for the tiles of a matrix unit: 16 rows by 48 columns of a radial kernel in float32, from
// products of bfloat16 pieces. Of two pieces the three largest products are used, of three the six
// largest; norms are added last.
#pragma once

#include "panels.h"
#include "split.h"

namespace {

constexpr long STEPS = 4;  // of DEPTH features: as many columns of them stay in the cache

constexpr long ENTRIES = SIDE * PANEL;

// products (16, 48) = or += x z for some steps, of which each has the pieces one after the other.
template <class Unit>
GRAMIAN_INLINE void add_products(Unit& unit, const Bfloat16* x, const Bfloat16* z, long steps,
                                 int pieces, bool first, float* products) {
  constexpr long row = 2 * DEPTH, out = PANEL * long(sizeof(float));
  if (first) {
    unit.template zero<0>();
    unit.template zero<1>();
    unit.template zero<2>();
  } else {
    unit.template load<0>(products, out);
    unit.template load<1>(products + SIDE, out);
    unit.template load<2>(products + 2 * SIDE, out);
  }
  for (; steps > 0; steps--, x += pieces * TILE, z += pieces * PANEL_TILES * TILE)
    for (int b = pieces - 1; b >= 0; b--) {
      const Bfloat16* columns = z + b * PANEL_TILES * TILE;
      unit.template load<4>(columns, row);
      unit.template load<5>(columns + TILE, row);
      unit.template load<6>(columns + 2 * TILE, row);
      for (int a = 0; a + b < pieces; a++) {
        unit.template load<7>(x + a * TILE, row);
        unit.template add_product<0, 7, 4>();
        unit.template add_product<1, 7, 5>();
        unit.template add_product<2, 7, 6>();
      }
    }
  unit.template store<0>(products, out);
  unit.template store<1>(products + SIDE, out);
  unit.template store<2>(products + 2 * SIDE, out);
}

// One tile whose products are known, and where its entries go.
struct Finished {
  const float* products;
  const Bfloat16 *x, *z;
  const float *x_norms, *z_norms;
  Use<float> use;
};

struct Finishing {
  long steps;
  int pieces;
  float near;  // pairs with s < near |x|^2 are recomputed from differences
  Parameters<float> given;
};

using FinishFunction = void (*)(const Finished&, const Finishing&);

// Squared differences of one row and all columns of a panel.
template <class V>
__attribute__((noinline)) void recompute_split(const Bfloat16* x, const Bfloat16* z, long steps,
                                               int pieces, float* s) {
  using R = typename V::R;
  using I = typename V::I;
  constexpr int W = V::W;
  const I upper = I{} + std::int32_t(0xffff0000);
  R sum[PANEL / W] = {};
  for (; steps > 0; steps--, x += pieces * TILE, z += pieces * PANEL_TILES * TILE)
    for (long k = 0; k < DEPTH; k += 2)
      for (long q = 0; q < PANEL; q += W) {
        R even{}, odd{};
        for (int p = 0; p < pieces; p++) {
          I pairs;
          std::memcpy(&pairs, z + p * PANEL_TILES * TILE + column_place(q, k), sizeof pairs);
          even += V::all(number(x[p * TILE + k])) - (R)(pairs << 16);
          odd += V::all(number(x[p * TILE + k + 1])) - (R)(pairs & upper);
        }
        sum[q / W] += even * even + odd * odd;
      }
  for (long q = 0; q < PANEL / W; q++) V::store(s + q * W, sum[q]);
}

template <class V, class K, Purpose P>
void finish(const Finished& tile, const Finishing& how) {
  constexpr int W = V::W, N = PANEL / W;
  for (long i = 0; i < SIDE; i++) {
    const auto x_norm = V::all(tile.x_norms[i]);
    typename V::R s[N];
    GRAMIAN_UNROLL for (int q = 0; q < N; q++)
        s[q] = V::load(tile.products + i * PANEL + q * W) * V::all(-2 * K::sign) +
               (x_norm + V::load(tile.z_norms + q * W));
    if constexpr (K::sharp) {
      const auto reach = V::all(how.near * tile.x_norms[i]);
      bool any = false;
      GRAMIAN_UNROLL for (int q = 0; q < N; q++) any |= V::any_below(s[q], reach);
      if (__builtin_expect(any, 0)) {
        float row[PANEL];
        recompute_split<V>(tile.x + row_place(i, 0), tile.z, how.steps, how.pieces, row);
        GRAMIAN_UNROLL for (int q = 0; q < N; q++) s[q] = V::load(row + q * W);
      }
    }
    typename V::R unused[N];
    finish_row<V, K, P>(s, how.given, stores(P) ? tile.use.entries + i * tile.use.ld : nullptr,
                        tile.use.v, sums(P) ? tile.use.sums + i * W : nullptr, 0, unused);
  }
}

struct SplitMethod {
  FinishFunction stored, summed, both;
  double norm_sign, unit;
};

template <class V, class K>
SplitMethod split_method() {
  return {finish<V, K, Purpose::store>, finish<V, K, Purpose::sum>, finish<V, K, Purpose::both>,
          double(K::sign), __builtin_sqrt(K::unit)};
}

template <class V_, class Unit>
class SplitPanels {
 public:
  using V = V_;
  static constexpr long ROWS = SIDE, COLUMNS = PANEL;
  static constexpr bool HAS_SLOPES = false, CHAINS = false;

  SplitPanels(const gramian::Request& request, gramian::Points z, const SplitMethod& method)
      : method_(method),
        how_{round_up(z.d, DEPTH) / DEPTH,
             request.pieces,
             float(request.near),
             {float(request.first), float(request.second)}},
        row_(how_.steps * how_.pieces * DEPTH),
        frame_(request, z.d, method.unit * __builtin_sqrt(request.scale)),
        z_(round_up(z.n, COLUMNS) * row_, Start::unset),
        z_norms_(round_up(z.n, COLUMNS), Start::unset) {}

  // What one thread needs for so many rows: products of all of them and of one tile more, which is
  // finished while the unit works on the next.
  struct Rows {
    Rows(const SplitPanels& panels, long rows)
        : x(round_up(rows, SIDE) * panels.row_),
          norms(round_up(rows, SIDE)),
          products((round_up(rows, SIDE) / SIDE + 1) * ENTRIES) {}
    Unit unit;
    Buffer<Bfloat16> x;
    Buffer<float> norms, products;
  };

  void pack_columns(gramian::Points z, long start, long stop) {
    pack_split<true>(z, start, stop, frame_.origin, frame_.factor, method_.norm_sign, how_.pieces,
                     z_ + start * row_, z_norms_ + start);
  }

  void load(Rows& rows, gramian::Points x, long start, long count) const {
    pack_split<false>(x, start, start + count, frame_.origin, frame_.factor, method_.norm_sign,
                      how_.pieces, rows.x, rows.norms);
  }

  void compute(Rows& rows, long count, long j, long size, const Use<float>& use) const {
    const long tiles = count / SIDE, parts = (how_.steps + STEPS - 1) / STEPS;
    const long each = (how_.steps + parts - 1) / parts;
    const FinishFunction finish_tile =
        function_for(use, method_.stored, method_.summed, method_.both);
    Finished last{};
    for (long p = 0, count_done = 0; p < size / PANEL; p++) {
      const Bfloat16* z = z_ + (j + p * PANEL) * row_;
      for (long start = 0; start < how_.steps; start += each) {
        const long steps = smaller(each, how_.steps - start), at = start * how_.pieces * TILE;
        for (long i = 0; i < tiles; i++) {
          const Bfloat16* x = rows.x + i * SIDE * row_;
          float* products = rows.products + (p * tiles + i) % (tiles + 1) * ENTRIES;
          add_products(rows.unit, x + at, z + at * PANEL_TILES, steps, how_.pieces, start == 0,
                       products);
          if (start + steps < how_.steps) continue;
          if (count_done++ > 0) finish_tile(last, how_);
          last = {products, x, z, rows.norms + i * SIDE, z_norms_ + j + p * PANEL,
                  part_of(use, i * SIDE, p * PANEL)};
        }
      }
    }
    finish_tile(last, how_);
  }

 private:
  static Use<float> part_of(const Use<float>& use, long i, long j) {
    return {use.entries == nullptr ? nullptr : use.entries + i * use.ld + j, use.ld,
            use.v == nullptr ? nullptr : use.v + j,
            use.sums == nullptr ? nullptr : use.sums + i * V::W};
  }

  SplitMethod method_;
  Finishing how_;
  long row_;  // numbers of all pieces of a row or column
  Frame frame_;
  Buffer<Bfloat16> z_;
  Buffer<float> z_norms_;
};

}  // namespace
