// The verbs, built from strips: some rows against the panels of all columns.
//
// Entries and sums over a tile are in the dtype of the tiles; sums are added up in float64 after
// PANELS panels of columns or ROWS rows.
#pragma once

#include "gradients.h"

namespace {

// Bytes of entries in a strip of `normal`. Less than half a cache of 1 MB; of many features so much
// that their columns, which come from further away, are read less often.
constexpr long STRIP = 400 * 1000, WIDE_STRIP = 1000 * 1000;
constexpr long MOST_STRIP_ROWS = 2 * BLOCK_ROWS;
constexpr long ROWS = 1024;

template <class Panels>
class TilesOf final : public gramian::Tiles {
  using V = typename Panels::V;
  using S = typename V::Scalar;

 public:
  template <class Method>
  TilesOf(const gramian::Request& request, gramian::Points z, const Method& method)
      : panels_(request, z, method),
        m_(z.n),
        wide_(z.d >= LONG),
        width_(round_up(z.n, Panels::COLUMNS)),
        shared_(request.diagonal != nullptr),
        offset_(request.offset),
        diagonal_(shared_ ? z.n : 0) {
    if (shared_) std::memcpy(diagonal_, request.diagonal, sizeof(S) * size_t(m_));
  }

  void pack_columns(gramian::Points z, long start, long stop) override {
    static_assert(BLOCK_ROWS % Panels::COLUMNS == 0, "a block starts with a panel");
    panels_.pack_columns(z, start, stop);
  }

  long width() const override { return width_; }

  bool matvec(gramian::Rows rows, const void* v, long t, double* out) const override {
    Work work(*this, BLOCK_ROWS, t, 0);
    const long chunk = chunk_columns();
    Buffer<S> entries(BLOCK_ROWS * chunk, Start::unset);
    for (long i = rows.start; i < rows.stop; i += BLOCK_ROWS) {
      const long count = smaller(BLOCK_ROWS, rows.stop - i);
      panels_.load(work.x, rows.x, i, count);
      if (!multiply<false>(work, i, count, static_cast<const S*>(v), t, entries, chunk))
        return false;
      if (t > 0)  // else `out` may be null, which even an empty copy does not allow
        std::memcpy(out + (i - rows.start) * t, work.totals, sizeof(double) * size_t(count * t));
    }
    return true;
  }

  bool normal(gramian::Rows rows, const void* v, const void* weights, const void* targets, long t,
              double* out) const override {
    const long step = strip_rows();
    Work work(*this, step, t, t);
    Buffer<S> entries(step * width_, Start::unset);
    Added added(*this, t, out);
    const bool chains = Panels::CHAINS && v != nullptr && t == 1;
    long held = 0;  // rows whose entries are not in the sums yet: they are added as others come
    for (long i = rows.start; i < rows.stop; i += step) {
      const long count = smaller(step, rows.stop - i);
      panels_.load(work.x, rows.x, i, count);
      if (held > count) added.add_rows(entries, held, work.u), held = 0;
      if (!multiply<true>(work, i, count, static_cast<const S*>(v), t, entries, width_,
                          held > 0 ? &added : nullptr))
        return false;
      if (held > 0) added.count(held);
      residual(work, i, count, static_cast<const S*>(weights), static_cast<const S*>(targets), t);
      held = count;
      if (!chains) added.add_rows(entries, held, work.u), held = 0;
    }
    if (held > 0) added.add_rows(entries, held, work.u);
    added.finish();
    return true;
  }

  bool symmetric(gramian::Points x, long first, long step, const void* vector, long t,
                 double* out) const override {
    const S* v = static_cast<const S*>(vector);
    constexpr long side = BLOCK_ROWS;
    static_assert(side % Panels::COLUMNS == 0 && side % Panels::ROWS == 0, "strips start with a panel");
    static_assert(chunk_columns() >= side, "the last strip has no chunk beyond its diagonal");
    const long chunk = chunk_columns();
    Work work(*this, side, t, t);
    Buffer<S> entries(side * chunk, Start::unset);
    Added added(*this, t, out);
    for (long i = first * side; i < m_; i += step * side) {
      const long count = smaller(side, m_ - i), rows = round_up(count, Panels::ROWS);
      panels_.load(work.x, x, i, count);
      for (long r = 0; r < count; r++)
        for (long c = 0; c < t; c++) work.u[r * t + c] = v[c * width_ + i + r];
      std::memset(work.totals, 0, sizeof(double) * size_t(rows * t));
      for (long j = i; j < width_; j += chunk) {
        if (is_stopped()) return false;
        const long size = smaller(chunk, width_ - j);
        if (Panels::CHAINS && t == 1 && j > i) {
          panels_.compute(work.x, rows, j, size,
                          {nullptr, chunk, v + j, work.sums, work.u, added.sums(j)});
        } else {
          const long lower = j == i ? smaller(side, size) : 0;  // done by the sums over columns
          fill(work, rows, j, size, entries, chunk);
          set_diagonal(i, count, j, size, entries, chunk);
          row_sums<V>(entries, chunk, rows, size, v + j, width_, work.sums, t, t);
          added.add(entries + lower, chunk, count, j + lower, size - lower, work.u);
        }
        flush(work, rows, t);
      }
      for (long r = 0; r < count; r++)
        for (long c = 0; c < t; c++) out[c * m_ + i + r] += work.totals[r * t + c];
      added.count(count);
    }
    added.finish();
    return true;
  }

  bool block(gramian::Rows rows, void* out) const override {
    Work work(*this, BLOCK_ROWS, 0, 0);
    const long chunk = chunk_columns();
    Buffer<S> entries(BLOCK_ROWS * chunk, Start::unset);
    for (long i = rows.start; i < rows.stop; i += BLOCK_ROWS) {
      const long count = smaller(BLOCK_ROWS, rows.stop - i);
      panels_.load(work.x, rows.x, i, count);
      for (long j = 0; j < width_; j += chunk) {
        if (is_stopped()) return false;
        const long size = smaller(chunk, width_ - j);
        fill(work, round_up(count, Panels::ROWS), j, size, entries, chunk);
        set_diagonal(i, count, j, size, entries, chunk);
        S* to = static_cast<S*>(out) + (i - rows.start) * m_ + j;
        for (long r = 0; r < count; r++)
          std::memcpy(to + r * m_, entries + r * chunk, sizeof(S) * size_t(smaller(size, m_ - j)));
      }
    }
    return true;
  }

  bool gradients(gramian::Rows rows, gramian::Points z, const void* v, long t,
                 double* out) const override {
    if constexpr (Panels::HAS_SLOPES) {
      if (!panels_.has_slopes()) return false;
      const GradientsOf<V> gradients(panels_, stopped_, z, static_cast<const S*>(v), width_, t);
      return gradients.write(rows, out);
    }
    return false;
  }

 private:
  // What one thread needs for some rows.
  struct Work {
    Work(const TilesOf& tiles, long rows, long t, long weights)
        : x(tiles.panels_, rows), sums(rows * t * V::W), totals(rows * t), u(rows * weights) {}
    typename Panels::Rows x;
    Buffer<S> sums;
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
    void add_rows(const S* K, long rows, const S* u) {
      add(K, width_, rows, 0, width_, u);
      count(rows);
    }
    void count(long rows) {
      if ((since_ += rows) >= ROWS) finish();
    }
    S* sums(long j) { return sums_ + j; }
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

  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }

  long strip_rows() const {
    constexpr long step = Panels::ROWS;
    const long bytes = wide_ ? WIDE_STRIP : STRIP;
    const long fitting = bytes / (width_ * long(sizeof(S))) / step * step;
    return larger(step, smaller(MOST_STRIP_ROWS, fitting));
  }

  static constexpr long chunk_columns() { return chunk_of<S>(Panels::COLUMNS); }

  void fill(Work& work, long rows, long j, long size, S* entries, long ld) const {
    panels_.compute(work.x, rows, j, size, {entries, ld, nullptr, nullptr});
  }

  // totals = K v for the loaded rows. The entries are kept, all of them, or else one chunk of them
  // after the other. Those of as many rows before are replaced, and first added, if they are held.
  template <bool KEEP>
  bool multiply(Work& work, long i, long count, const S* v, long t, S* entries, long ld,
                Added* held = nullptr) const {
    const long rows = round_up(count, Panels::ROWS), chunk = chunk_columns();
    std::memset(work.totals, 0, sizeof(double) * size_t(rows * t));
    for (long j = 0, since = 0; j < width_; j += chunk) {
      if (is_stopped()) return false;
      const long size = smaller(chunk, width_ - j);
      S* K = KEEP ? entries + j : entries;
      if (v != nullptr && t == 1 && !crosses(i, count, j, size)) {
        Use<S> use{KEEP ? K : nullptr, ld, v + j, work.sums};
        if (held != nullptr) use.u = work.u, use.columns = held->sums(j);
        panels_.compute(work.x, rows, j, size, use);
      } else {
        if (held != nullptr) held->add(K, ld, count, j, size, work.u);
        fill(work, rows, j, size, K, ld);
        set_diagonal(i, count, j, size, K, ld);
        if (v != nullptr) row_sums<V>(K, ld, rows, size, v + j, width_, work.sums, t, t);
      }
      if ((since += size) >= PANELS * NR<V> || j + chunk >= width_) {
        flush(work, rows, t);
        since = 0;
      }
    }
    return true;
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

  Panels panels_;
  long m_;
  bool wide_;
  long width_;
  bool shared_;
  long offset_;
  Buffer<S> diagonal_;
};

}  // namespace
