// The panels that tiles read, for each kernel: columns once, rows as they come.
#pragma once

#include "pack.h"

namespace {

template <class S>
using StripFunction = void (*)(const Strip<S>&);

// What differs from kernel to kernel.
template <class S>
struct Method {
  StripFunction<S> stored, summed, both, chained, folded, slopes;  // slopes: null if there are none
  double (*slope)(double s, Parameters<double>);
  double (*front)(Parameters<double>);
  Form form;
  int sign;
  bool sharp;
  S row_times, column_times;  // by which coordinates are multiplied
  double norm_sign;           // and norms; zero where there are none
  double unit;
  bool squares;  // norms are of squares
};

template <class K>
double slope_of(double s, Parameters<double> given) {
  using V = Vector<double>;
  if constexpr (K::has_slope)
    return K::template slope<V>(V::all(K::sign * s), given)[0];
  else
    return 0;
}

template <class V, class K, Distance D>
constexpr StripFunction<typename V::Scalar> slopes_of() {
  if constexpr (K::has_slope)
    return strip<V, Slopes<K>, D, Purpose::store>;
  else
    return nullptr;
}

template <class V, class K, Distance D>
Method<typename V::Scalar> method_with() {
  using S = typename V::Scalar;
  constexpr bool radial = K::form == Form::radial, product = from_product<K, D>();
  return {strip<V, K, D, Purpose::store>,
          strip<V, K, D, Purpose::sum>,
          strip<V, K, D, Purpose::both>,
          strip<V, K, D, Purpose::chain>,
          strip<V, K, D, Purpose::fold>,
          slopes_of<V, K, D>(),
          slope_of<K>,
          K::front,
          K::form,
          K::sign,
          K::sharp,
          product && !radial ? S(2) : S(1),
          !product ? S(1) : radial ? S(-2 * K::sign) : S(2),
          has_share(K::form) ? 1.0 : !product ? 0.0 : radial ? double(K::sign) : 1.0,
          radial ? __builtin_sqrt(K::unit) : K::unit,
          radial || K::form == Form::common};
}

template <class V, class K>
Method<typename V::Scalar> method_of(K, bool difference, long d) {
  if constexpr (K::form == Form::inner || has_share(K::form)) {
    return method_with<V, K, Distance::product>();
  } else if constexpr (K::form == Form::fractions) {
    return method_with<V, K, Distance::difference>();
  } else {
    if (difference) return method_with<V, K, Distance::difference>();
    if (d < LONG) return method_with<V, K, Distance::product>();
    return method_with<V, K, Distance::long_product>();
  }
}

// Pairs with a squared distance of `NEAR` times its error or less are computed from differences,
// if the kernel is sharp: as kernels/_cancellation.py has it.
template <class S>
S near_factor(long d) {
  constexpr double NEAR = 4000;
  const double root = __builtin_sqrt(double(d));
  return S(NEAR * double(std::numeric_limits<S>::epsilon()) * (root > 2 ? root : 2));
}

// How points become coordinates.
struct Frame {
  Frame(const gramian::Request& request, long d, double unit) : origin(d), factor(d) {
    for (long k = 0; k < d; k++) {
      origin[k] = request.origin[k];
      factor[k] = request.factor[k] * unit;
    }
  }
  Buffer<double> origin, factor;
};

// What becomes of the entries of a few rows and columns, as `Purpose` says.
template <class S>
struct Use {
  S* entries;  // null, or the first of rows of `ld`
  long ld;
  const S* v;  // null, or as many numbers as there are columns
  S* sums;     // a vector for each row, lane by lane
  const S* u = nullptr;  // or factors: of entries, or where these are stored, of those before them
  S* columns = nullptr;  // sums over rows of their products, for each column
};

template <class S, class Function>
Function function_for(const Use<S>& use, Function stored, Function summed, Function both) {
  return use.v == nullptr ? stored : use.entries == nullptr ? summed : both;
}

// Panels for tiles of vectors: see tile.h.
template <class V_>
class VectorPanels {
 public:
  using V = V_;
  using S = typename V::Scalar;
  static constexpr long ROWS = MR, COLUMNS = NR<V>;
  static constexpr bool HAS_SLOPES = true, CHAINS = true;

  VectorPanels(const gramian::Request& request, gramian::Points z, const Method<S>& method)
      : method_(method),
        given_{S(request.first), S(request.second)},
        exact_{request.first, request.second},
        near_(near_factor<S>(z.d)),
        d_(z.d),
        frame_(request, z.d, method.unit * (method.form == Form::radial ? __builtin_sqrt(request.scale) : 1.0)),
        z_(round_up(z.n, COLUMNS) * z.d, Start::unset),
        z_norms_(round_up(z.n, COLUMNS), Start::unset) {}

  // What one thread needs for so many rows.
  struct Rows {
    Rows(const VectorPanels& panels, long rows) : x(rows * panels.d_), norms(rows) {}
    Buffer<S> x, norms;
  };

  void pack_columns(gramian::Points z, long start, long stop) {
    const Layout<S> layout{COLUMNS, method_.column_times, method_.squares, method_.norm_sign};
    pack<S>(z, start, stop, frame_.origin, frame_.factor, layout, z_ + start * d_,
            z_norms_ + start);
  }

  void load(Rows& rows, gramian::Points x, long start, long count) const {
    const Layout<S> layout{ROWS, method_.row_times, method_.squares, method_.norm_sign};
    pack<S>(x, start, start + count, frame_.origin, frame_.factor, layout, rows.x, rows.norms);
  }

  // Entries of the first `count` rows that are loaded and of columns j to j + size.
  void compute(Rows& rows, long count, long j, long size, const Use<S>& use) const {
    const Strip<S> s = strip_of(rows, count, j, size, use);
    if (use.u == nullptr)
      function_for(use, method_.stored, method_.summed, method_.both)(s);
    else
      (use.entries == nullptr ? method_.folded : method_.chained)(s);
  }

  // Slopes in their place.
  void slopes(Rows& rows, long count, long j, long size, S* out, long ld) const {
    method_.slopes(strip_of(rows, count, j, size, {out, ld, nullptr, nullptr}));
  }

  const Method<S>& method() const { return method_; }
  const Frame& frame() const { return frame_; }
  long d() const { return d_; }
  bool has_slopes() const { return method_.slopes != nullptr; }
  bool from_product() const { return method_.norm_sign != 0; }
  double front() const { return method_.front(exact_); }
  double slope(double s) const { return method_.slope(s, exact_); }

  // Coordinate k of a loaded row, and those of all columns of a panel, as they are stored.
  static const S* row(const Rows& rows, long i, long k, long d) {
    return rows.x + i / ROWS * ROWS * d + k * ROWS + i % ROWS;
  }
  const S* columns(long j, long k) const { return z_ + j * d_ + k * COLUMNS; }

 private:
  Strip<S> strip_of(Rows& rows, long count, long j, long size, const Use<S>& use) const {
    Strip<S> s{};
    s.x = rows.x, s.x_norms = rows.norms;
    s.z = z_ + j * d_, s.z_norms = z_norms_ + j;
    s.d = d_, s.rows = count, s.panels = size / COLUMNS;
    s.near = near_, s.given = given_;
    s.tile = use.entries, s.ld = use.ld, s.v = use.v, s.sums = use.sums;
    s.u = use.u, s.columns = use.columns;
    return s;
  }

  Method<S> method_;
  Parameters<S> given_;
  Parameters<double> exact_;
  S near_;
  long d_;
  Frame frame_;
  Buffer<S> z_, z_norms_;
};

}  // namespace
