// Gradients of a predictor, sum_j k(x, z_j) v_j, at the rows x.
//
// Slopes are computed chunk by chunk, as entries are, and multiplied with v z, of which sums with
// 1 and with z are the gradients of a radial kernel; for the l1 distance with the signs of x - z.
#pragma once

#include "panels.h"
#include "sums.h"

namespace {

constexpr long SLOPE_SUMS = 1024;    // sums of a row that share its slopes, of v and v z
constexpr long SLOPE_COLUMNS = 256;  // those whose columns v z are there at once

// sums[i, k] += the sum of W[i, :] with the signs of x[i, k] - z[k, :], lane by lane, for SUM_ROWS
// rows and N features.
template <class V, int N>
GRAMIAN_INLINE void some_signed_sums(const typename V::Scalar* W, long ld, long width,
                                     const typename V::Scalar* x, const typename V::Scalar* z,
                                     long z_ld, typename V::Scalar* sums, long t) {
  typename V::R sum[SUM_ROWS][N] = {};
  for (long j = 0; j < width; j += V::W) {
    typename V::R column[N];
    GRAMIAN_UNROLL for (int k = 0; k < N; k++) column[k] = V::load(z + k * z_ld + j);
    GRAMIAN_UNROLL for (int i = 0; i < SUM_ROWS; i++) {
      const auto w = V::load(W + i * ld + j);
      GRAMIAN_UNROLL for (int k = 0; k < N; k++)
          sum[i][k] = V::add_signed(sum[i][k], V::all(x[k * MR + i]), column[k], w);
    }
  }
  GRAMIAN_UNROLL for (int i = 0; i < SUM_ROWS; i++)
      GRAMIAN_UNROLL for (int k = 0; k < N; k++) add<V>(sums + (i * t + k) * V::W, sum[i][k]);
}

template <class V>
class GradientsOf {
  using S = typename V::Scalar;
  using Panels = VectorPanels<V>;
  static constexpr long W = V::W, chunk = chunk_of<S>(Panels::COLUMNS);
  static_assert(MR % SUM_ROWS == 0 && BLOCK_ROWS % MR == 0, "rows of a sum are in one panel");

 public:
  GradientsOf(const Panels& panels, const std::atomic<bool>& stopped, gramian::Points z, const S* v,
              long width, long t)
      : panels_(panels),
        stopped_(stopped),
        z_(z),
        v_(v),
        width_(width),
        t_(t),
        d_(z.d),
        signs_(panels.method().form == Form::l1),
        each_(signs_ ? d_ : d_ + 1),
        some_(smaller(t, larger(SLOPE_SUMS / each_, 1))),
        together_(smaller(t, larger(SLOPE_COLUMNS / each_, 1))) {}

  bool write(gramian::Rows rows, double* out) const {
    if (t_ == 0 || rows.start == rows.stop) return true;  // `out` may be null
    std::memset(out, 0, sizeof(double) * size_t((rows.stop - rows.start) * t_ * d_));
    Work work(*this);
    for (long i = rows.start; i < rows.stop; i += BLOCK_ROWS) {
      const long count = smaller(BLOCK_ROWS, rows.stop - i);
      panels_.load(work.x, rows.x, i, count);
      find_reach(work, count);
      for (long c = 0; c < t_; c += some_)
        if (!add_targets(work, rows.x, i, count, c, smaller(some_, t_ - c),
                         out + (i - rows.start) * t_ * d_))
          return false;
    }
    return true;
  }

 private:
  struct Work {
    explicit Work(const GradientsOf& of)
        : x(of.panels_, BLOCK_ROWS),
          slopes(BLOCK_ROWS * chunk, Start::unset),
          weighted(of.signs_ ? BLOCK_ROWS * chunk : 0, Start::unset),
          columns(chunk * of.together_ * of.each_, Start::unset),
          sums(BLOCK_ROWS * of.some_ * of.each_ * W),
          totals(BLOCK_ROWS * of.some_ * of.each_),
          reach(BLOCK_ROWS) {}
    typename Panels::Rows x;
    Buffer<S> slopes, weighted, columns, sums;
    Buffer<double> totals;
    Buffer<S> reach;  // slopes above are of pairs near each other
  };

  // Adds the gradients for targets c to c + n of some rows to those of all targets.
  bool add_targets(Work& work, gramian::Points x, long i, long count, long c, long n,
                   double* out) const {
    const long rows = round_up(count, Panels::ROWS), sums = rows * n * each_;
    std::memset(work.totals, 0, sizeof(double) * size_t(sums));
    for (long j = 0, since = 0; j < width_; j += chunk) {
      if (stopped_.load(std::memory_order_relaxed)) return false;
      const long size = smaller(chunk, width_ - j);
      panels_.slopes(work.x, rows, j, size, work.slopes, chunk);
      if (panels_.method().sharp) take_near(work, x, i, count, j, size, c, n, out);
      if (signs_)
        add_signs(work, rows, j, size, c, n);
      else
        add_products(work, rows, j, size, c, n);
      if ((since += size) >= PANELS * Panels::COLUMNS || j + chunk >= width_) {
        for (long k = 0; k < sums; k++)
          work.totals[k] += double(V::sum(V::load(work.sums + k * W)));
        std::memset(work.sums, 0, sizeof(S) * size_t(sums * W));
        since = 0;
      }
    }
    finish(work, count, c, n, out);
    return true;
  }

  // The coordinates of a chunk of columns, one feature after the other, times v or as they are.
  void lay_out(long j, long size, const S* v, S* out) const {
    for (long p = 0; p < size; p += Panels::COLUMNS)
      for (long k = 0; k < d_; k++) {
        const S* z = panels_.columns(j + p, k);
        for (long l = 0; l < Panels::COLUMNS; l += W)
          V::store(out + k * chunk + p + l,
                   v == nullptr ? V::load(z + l) : V::load(z + l) * V::load(v + p + l));
      }
  }

  void add_products(Work& work, long rows, long j, long size, long c, long n) const {
    for (long first = 0; first < n; first += together_) {
      const long some = smaller(together_, n - first);
      for (long k = 0; k < some; k++) {
        const S* v = v_ + (c + first + k) * width_ + j;
        S* columns = work.columns + k * each_ * chunk;
        lay_out(j, size, v, columns);
        std::memcpy(columns + d_ * chunk, v, sizeof(S) * size_t(size));
      }
      row_sums<V>(work.slopes, chunk, rows, size, work.columns, chunk,
                  work.sums + first * each_ * W, some * each_, n * each_);
    }
  }

  void add_signs(Work& work, long rows, long j, long size, long c, long n) const {
    lay_out(j, size, nullptr, work.columns);
    for (long k = 0; k < n; k++) {
      const S* v = v_ + (c + k) * width_ + j;
      for (long i = 0; i < rows; i++)
        for (long l = 0; l < size; l += W)
          V::store(work.weighted + i * chunk + l,
                   V::load(work.slopes + i * chunk + l) * V::load(v + l));
      for (long i = 0; i < rows; i += SUM_ROWS)
        in_groups(d_, [&](long f, auto features) {
          some_signed_sums<V, decltype(features)::value>(
              work.weighted + i * chunk, chunk, size, Panels::row(work.x, i, f, d_),
              work.columns + f * chunk, chunk, work.sums + ((i * n + k) * d_ + f) * W, n * d_);
        });
    }
  }

  void finish(const Work& work, long count, long c, long n, double* out) const {
    const auto& method = panels_.method();
    const bool radial = method.form == Form::radial;
    // of a radial kernel s is sign |x - z|^2, and `column_times` of a product is -2 sign
    const double front = panels_.front() * (radial ? 2 * method.sign : 1);
    const double times = signs_ ? 1 : radial ? -1 / double(method.column_times) : 1;
    for (long i = 0; i < count; i++)
      for (long k = 0; k < n; k++) {
        const double* sums = work.totals + (i * n + k) * each_;
        double* to = out + (i * t_ + c + k) * d_;
        for (long f = 0; f < d_; f++) {
          const double x = radial ? double(*Panels::row(work.x, i, f, d_)) * sums[d_] : 0;
          to[f] += front * panels_.frame().factor[f] * (x + times * sums[f]);
        }
      }
  }

  // How near pairs must be for their slope to lose digits: of s, which is multiplied by one over s
  // at a kink, and of the difference of two sums. A slope above `reach` says that they are.
  void find_reach(Work& work, long count) const {
    if (!panels_.method().sharp) return;
    const double eps = double(std::numeric_limits<S>::epsilon());
    const double root = __builtin_sqrt(double(d_)), most = sizeof(S) == 4 ? 1e5 : 1e7;
    const double apart = !panels_.from_product() ? (sizeof(S) == 4 ? 0.02 : 1e-6)
                                                 : __builtin_sqrt(most * eps * (root > 2 ? root : 2));
    for (long i = 0; i < count; i++) {
      double norm = 0;
      for (long k = 0; k < d_; k++) {
        const double x = double(*Panels::row(work.x, i, k, d_));
        norm += x * x;
      }
      const double u2 = apart * apart * norm;
      work.reach[i] = S(u2 > 0 ? panels_.slope(u2) : std::numeric_limits<double>::infinity());
    }
  }

  // Adds what pairs near each other contribute, from the differences of the rows as they were
  // given, and sets their slopes to zero.
  void take_near(Work& work, gramian::Points x, long i, long count, long j, long size, long c,
                 long n, double* out) const {
    const long stop = smaller(size, z_.n - j);
    for (long r = 0; r < count; r++) {
      S* slopes = work.slopes + r * chunk;
      const auto reach = V::all(work.reach[r]);
      for (long l = 0; l < size; l += W) {
        if (__builtin_expect(!V::any_below(reach, V::load(slopes + l)), 1)) continue;
        for (long k = l; k < l + W; k++)
          if (slopes[k] > work.reach[r]) {
            slopes[k] = 0;
            if (k < stop) add_pair(x, i + r, j + k, c, n, out + r * t_ * d_);
          }
      }
    }
  }

  __attribute__((noinline)) void add_pair(gramian::Points x, long i, long j, long c, long n,
                                          double* out) const {
    with_data(x, [&](const auto* rows) {
      with_data(z_, [&](const auto* columns) {
        const auto apart = [&](long k) {
          return (double(rows[i * d_ + k]) - double(columns[j * d_ + k])) *
                 panels_.frame().factor[k];
        };
        double s = 0;
        for (long k = 0; k < d_; k++) s += apart(k) * apart(k);
        if (s == 0) return;
        const double front = 2 * panels_.method().sign * panels_.front() * panels_.slope(s);
        for (long f = 0; f < n; f++) {
          const double w = front * double(v_[(c + f) * width_ + j]);
          double* to = out + (c + f) * d_;
          for (long k = 0; k < d_; k++) to[k] += w * apart(k) * panels_.frame().factor[k];
        }
      });
    });
  }

  const Panels& panels_;
  const std::atomic<bool>& stopped_;
  gramian::Points z_;
  const S* v_;
  long width_, t_, d_;
  bool signs_;
  long each_;      // sums of a row for each target
  long some_;      // targets that share slopes
  long together_;  // and those whose columns are there at once
};

}  // namespace
