// The verbs, built from strips: some rows against the panels of all columns.
//
// Entries and sums over a tile are in the dtype of the tiles; sums are added up in float64 after
// PANELS panels of columns or ROWS rows.
#pragma once

#include "pack.h"
#include "sums.h"

namespace {

constexpr long CHUNK = 96 * 1024;    // bytes of entries that are stored before they are used
constexpr long STRIP = 1000 * 1000;  // bytes of entries in a strip of `normal`: half a core's cache
constexpr long MOST_STRIP_ROWS = 2 * BLOCK_ROWS;
constexpr long PANELS = 128;
constexpr long ROWS = 1024;

template <class S>
using StripFunction = void (*)(const Strip<S>&);

// What differs from kernel to kernel.
template <class S>
struct Method {
  StripFunction<S> stored, summed, both;
  S row_times, column_times;  // by which coordinates are multiplied
  double norm_sign;           // and norms; zero where there are none
  double unit;
  bool radial;
};

template <class V, class K, Distance D>
Method<typename V::Scalar> method_with() {
  using S = typename V::Scalar;
  constexpr bool radial = K::form == Form::radial;
  constexpr bool product = K::form != Form::inner && D != Distance::difference;
  return {strip<V, K, D, true, false>,
          strip<V, K, D, false, true>,
          strip<V, K, D, true, true>,
          product && !radial ? S(2) : S(1),
          !product ? S(1) : radial ? S(-2 * K::sign) : S(2),
          !product ? 0.0 : radial ? double(K::sign) : 1.0,
          radial ? __builtin_sqrt(K::unit) : K::unit,
          radial};
}

template <class V, class K>
Method<typename V::Scalar> method_of(K, bool difference, long d) {
  if constexpr (K::form == Form::inner) {
    return method_with<V, K, Distance::product>();
  } else {
    if (difference) return method_with<V, K, Distance::difference>();
    if (d < LONG) return method_with<V, K, Distance::product>();
    return method_with<V, K, Distance::long_product>();
  }
}

// Pairs with a squared distance of `NEAR` times its error or less are computed from differences,
// if the kernel is sharp: as kernels/_near.py has it.
template <class S>
S near_factor(long d) {
  const double root = __builtin_sqrt(double(d));
  return S(4000 * double(std::numeric_limits<S>::epsilon()) * (root > 2 ? root : 2));
}

template <class V>
class TilesOf final : public gramian::Tiles {
  using S = typename V::Scalar;

 public:
  TilesOf(const gramian::Request& request, gramian::Points z, const Method<S>& method)
      : method_(method),
        given_{S(request.first), S(request.second)},
        near_(near_factor<S>(z.d)),
        d_(z.d),
        m_(z.n),
        width_(round_up(z.n, NR<V>)),
        shared_(request.diagonal != nullptr),
        offset_(request.offset),
        origin_(z.d),
        factor_(z.d),
        z_(width_ * z.d, Start::unset),
        z_norms_(width_, Start::unset),
        diagonal_(shared_ ? z.n : 0) {
    const double unit = method.unit * (method.radial ? __builtin_sqrt(request.scale) : 1.0);
    for (long k = 0; k < d_; k++) {
      origin_[k] = request.origin[k];
      factor_[k] = request.factor[k] * unit;
    }
    if (shared_) std::memcpy(diagonal_, request.diagonal, sizeof(S) * size_t(m_));
  }

  void pack_columns(gramian::Points z, long start, long stop) override {
    static_assert(BLOCK_ROWS % NR<V> == 0, "a block starts with a panel");
    const Layout<S> layout{NR<V>, method_.column_times, method_.radial, method_.norm_sign};
    pack<S>(z, start, stop, origin_, factor_, layout, z_ + start * d_, z_norms_ + start);
  }

  long width() const override { return width_; }

  void matvec(gramian::Rows rows, const void* v, long t, double* out) const override {
    Work work(*this, BLOCK_ROWS, t, 0);
    const long chunk = chunk_columns();
    Buffer<S> entries(BLOCK_ROWS * chunk, Start::unset);
    for (long i = rows.start; i < rows.stop; i += BLOCK_ROWS) {
      const long count = smaller(BLOCK_ROWS, rows.stop - i);
      load(work, rows.x, i, count);
      multiply<false>(work, i, count, static_cast<const S*>(v), t, entries, chunk);
      std::memcpy(out + (i - rows.start) * t, work.totals, sizeof(double) * size_t(count * t));
    }
  }

  void normal(gramian::Rows rows, const void* v, const void* weights, const void* targets, long t,
              double* out) const override {
    const long step = strip_rows();
    Work work(*this, step, t, t);
    Buffer<S> entries(step * width_, Start::unset);
    Added added(*this, t, out);
    for (long i = rows.start; i < rows.stop; i += step) {
      const long count = smaller(step, rows.stop - i);
      load(work, rows.x, i, count);
      multiply<true>(work, i, count, static_cast<const S*>(v), t, entries, width_);
      residual(work, i, count, static_cast<const S*>(weights), static_cast<const S*>(targets), t);
      added.add(entries, width_, count, 0, width_, work.u);
      added.count(count);
    }
    added.finish();
  }

  void symmetric(gramian::Points x, long first, long step, const void* vector, long t,
                 double* out) const override {
    const S* v = static_cast<const S*>(vector);
    constexpr long side = BLOCK_ROWS;
    static_assert(side % NR<V> == 0 && side % MR == 0, "strips start with a panel");
    const long chunk = chunk_columns();
    Work work(*this, side, t, t);
    Buffer<S> entries(side * chunk, Start::unset);
    Added added(*this, t, out);
    for (long i = first * side; i < m_; i += step * side) {
      const long count = smaller(side, m_ - i), rows = round_up(count, MR);
      load(work, x, i, count);
      for (long r = 0; r < count; r++)
        for (long c = 0; c < t; c++) work.u[r * t + c] = v[c * width_ + i + r];
      std::memset(work.totals, 0, sizeof(double) * size_t(rows * t));
      for (long j = i; j < width_; j += chunk) {
        const long size = smaller(chunk, width_ - j);
        const long lower = j == i ? smaller(side, size) : 0;  // done by the sums over columns
        fill(work, rows, j, size, entries, chunk);
        set_diagonal(i, count, j, size, entries, chunk);
        row_sums<V>(entries, chunk, rows, size, v + j, width_, work.sums, t);
        added.add(entries + lower, chunk, count, j + lower, size - lower, work.u);
        flush(work, rows, t);
      }
      for (long r = 0; r < count; r++)
        for (long c = 0; c < t; c++) out[c * m_ + i + r] += work.totals[r * t + c];
      added.count(count);
    }
    added.finish();
  }

  void block(gramian::Rows rows, void* out) const override {
    Work work(*this, BLOCK_ROWS, 0, 0);
    const long chunk = chunk_columns();
    Buffer<S> entries(BLOCK_ROWS * chunk, Start::unset);
    for (long i = rows.start; i < rows.stop; i += BLOCK_ROWS) {
      const long count = smaller(BLOCK_ROWS, rows.stop - i);
      load(work, rows.x, i, count);
      for (long j = 0; j < width_; j += chunk) {
        const long size = smaller(chunk, width_ - j);
        fill(work, round_up(count, MR), j, size, entries, chunk);
        set_diagonal(i, count, j, size, entries, chunk);
        S* to = static_cast<S*>(out) + (i - rows.start) * m_ + j;
        for (long r = 0; r < count; r++)
          std::memcpy(to + r * m_, entries + r * chunk, sizeof(S) * size_t(smaller(size, m_ - j)));
      }
    }
  }

 private:
  // What one thread needs for some rows.
  struct Work {
    Work(const TilesOf& tiles, long rows, long t, long weights)
        : x(rows * tiles.d_), x_norms(rows), sums(rows * t * V::W), totals(rows * t),
          u(rows * weights) {}
    Buffer<S> x, x_norms, sums;
    Buffer<double> totals;
    Buffer<S> u;
  };

  // Sums over rows, for all columns: added in float64 now and then.
  struct Added {
    Added(const TilesOf& tiles, long t, double* out)
        : t_(t), m_(tiles.m_), width_(tiles.width_), sums_(t * tiles.width_), out_(out) {}
    void add(const S* K, long ld, long rows, long j, long size, const S* u) {
      column_sums<V>(K, ld, rows, size, u, t_, sums_ + j, width_);
    }
    void count(long rows) {
      if ((since_ += rows) >= ROWS) finish();
    }
    void finish() {
      for (long c = 0; c < t_; c++)
        for (long j = 0; j < m_; j++) out_[c * m_ + j] += double(sums_[c * width_ + j]);
      std::memset(sums_, 0, sizeof(S) * size_t(t_ * width_));
      since_ = 0;
    }

   private:
    long t_, m_, width_, since_ = 0;
    Buffer<S> sums_;
    double* out_;
  };

  long strip_rows() const {
    const long fitting = STRIP / (width_ * long(sizeof(S))) / MR * MR;
    return larger(MR, smaller(MOST_STRIP_ROWS, fitting));
  }

  long chunk_columns() const {
    return larger(CHUNK / (BLOCK_ROWS * NR<V> * long(sizeof(S))), 1) * NR<V>;
  }

  void load(Work& work, gramian::Points x, long start, long count) const {
    const Layout<S> layout{MR, method_.row_times, method_.radial, method_.norm_sign};
    pack<S>(x, start, start + count, origin_, factor_, layout, work.x, work.x_norms);
  }

  Strip<S> strip_of(const Work& work, long rows, long j, long size) const {
    Strip<S> s{};
    s.x = work.x, s.x_norms = work.x_norms;
    s.z = z_ + j * d_, s.z_norms = z_norms_ + j;
    s.d = d_, s.rows = rows, s.panels = size / NR<V>;
    s.near = near_, s.given = given_;
    return s;
  }

  void fill(const Work& work, long rows, long j, long size, S* entries, long ld) const {
    Strip<S> s = strip_of(work, rows, j, size);
    s.tile = entries, s.ld = ld;
    method_.stored(s);
  }

  // totals = K v for the loaded rows. The entries are kept, all of them, or else one chunk of them
  // after the other.
  template <bool KEEP>
  void multiply(Work& work, long i, long count, const S* v, long t, S* entries, long ld) const {
    const long rows = round_up(count, MR), chunk = chunk_columns();
    std::memset(work.totals, 0, sizeof(double) * size_t(rows * t));
    for (long j = 0, since = 0; j < width_; j += chunk) {
      const long size = smaller(chunk, width_ - j);
      S* K = KEEP ? entries + j : entries;
      if (v != nullptr && t == 1 && !crosses(i, count, j, size)) {
        Strip<S> s = strip_of(work, rows, j, size);
        s.v = v + j, s.sums = work.sums, s.tile = K, s.ld = ld;
        (KEEP ? method_.both : method_.summed)(s);
      } else {
        fill(work, rows, j, size, K, ld);
        set_diagonal(i, count, j, size, K, ld);
        if (v != nullptr) row_sums<V>(K, ld, rows, size, v + j, width_, work.sums, t);
      }
      if ((since += size) >= PANELS * NR<V> || j + chunk >= width_) {
        flush(work, rows, t);
        since = 0;
      }
    }
  }

  void flush(Work& work, long rows, long t) const {
    for (long k = 0; k < rows * t; k++)
      work.totals[k] += double(V::sum(V::load(work.sums + k * V::W)));
    std::memset(work.sums, 0, sizeof(S) * size_t(rows * t * V::W));
  }

  void residual(Work& work, long i, long count, const S* weights, const S* targets, long t) const {
    for (long r = 0; r < count; r++)
      for (long c = 0; c < t; c++) {
        double u = work.totals[r * t + c];
        if (targets != nullptr) u -= double(targets[(i + r) * t + c]);
        work.u[r * t + c] = S(weights == nullptr ? u : u * double(weights[i + r]));
      }
  }

  bool crosses(long i, long rows, long j, long columns) const {
    return shared_ && i + offset_ < j + columns && i + rows + offset_ > j;
  }

  void set_diagonal(long i, long rows, long j, long columns, S* K, long ld) const {
    if (!shared_) return;
    const long stop = smaller(j + columns, m_);
    for (long r = larger(0, j - i - offset_); r < rows && i + r + offset_ < stop; r++)
      K[r * ld + i + r + offset_ - j] = diagonal_[i + r + offset_];
  }

  Method<S> method_;
  Parameters<S> given_;
  S near_;
  long d_, m_, width_;
  bool shared_;
  long offset_;
  Buffer<double> origin_, factor_;
  Buffer<S> z_, z_norms_, diagonal_;
};

template <class V>
gramian::Tiles* make_of(const gramian::Request& request, gramian::Points z) {
  gramian::Tiles* made = nullptr;
  with_profile([&](const char* name, auto profile) {
    if (std::strcmp(name, request.kernel) == 0)
      made = new TilesOf<V>(request, z, method_of<V>(profile, request.difference, z.d));
  });
  return made;
}

gramian::Tiles* make(const gramian::Request& request, gramian::Points z) {
  if (request.single) return make_of<Vector<float>>(request, z);
  return make_of<Vector<double>>(request, z);
}

void kernels(void* list, void (*add)(void* list, const char* name)) {
  with_profile([&](const char* name, auto) { add(list, name); });
}

}  // namespace
