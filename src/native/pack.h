// Rows and columns brought into the panels that tiles read, centred and scaled.
#pragma once

#include <cstdlib>
#include <new>

#include "isa.h"
#include "tile.h"

namespace {

enum class Start { zero, unset };

template <class T>
class Buffer {
 public:
  explicit Buffer(long size, Start start = Start::zero) {
    const size_t bytes = sizeof(T) * size_t(size > 0 ? size : 1);
    void* p = nullptr;
    if (posix_memalign(&p, 64, bytes)) throw std::bad_alloc();
    data_ = static_cast<T*>(p);
    if (start == Start::zero) std::memset(p, 0, bytes);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  operator T*() const { return data_; }

 private:
  T* data_;
};

constexpr long round_up(long n, long step) { return (n + step - 1) / step * step; }
constexpr long smaller(long a, long b) { return a < b ? a : b; }
constexpr long larger(long a, long b) { return a > b ? a : b; }

constexpr long CHUNK = 96 * 1024;  // bytes of entries that are stored before they are used
constexpr long PANELS = 128;       // whose sums are in the dtype of the tiles

constexpr long BLOCK_ROWS = 48;  // rows that share one read of the columns; no panel is wider

// Columns of a chunk of BLOCK_ROWS rows, in whole panels.
template <class S>
constexpr long chunk_of(long panel) {
  return larger(CHUNK / (BLOCK_ROWS * panel * long(sizeof(S))), 1) * panel;
}

// Coordinates of a row, subtracted and scaled in float64 and rounded once.
template <class S, class In>
GRAMIAN_INLINE void coordinates(const In* x, long d, const double* origin, const double* factor,
                                S* out) {
  for (long k = 0; k < d; k++) out[k] = S((double(x[k]) - origin[k]) * factor[k]);
}

enum class Norm { squares, sum, absolute, fourth };

// The sum of x_k^2, x_k, |x_k| or x_k^4, in eight parts that the compiler can do at once.
template <Norm N, class S>
inline double norm(const S* x, long d) {
  auto term = [](double a) {
    if constexpr (N == Norm::fourth) return a * a * a * a;
    return N == Norm::squares ? a * a : N == Norm::sum ? a : __builtin_fabs(a);
  };
  double part[8] = {};
  long k = 0;
  for (; k + 8 <= d; k += 8)
    for (int l = 0; l < 8; l++) part[l] += term(double(x[k + l]));
  for (; k < d; k++) part[0] += term(double(x[k]));
  double sum = 0;
  for (double p : part) sum += p;
  return sum;
}

// How coordinates are stored: `side` rows to a panel, multiplied by `times`, and with them
// `norm_sign` times their norms: of the squares, or just the sum.
template <class S>
struct Layout {
  long side;
  S times;
  bool squares;
  double norm_sign;
};

// Writes the panel of a few rows, some features after the others, so that it stays in the cache.
template <class S, class In>
void pack_panel(const In* x, long rows, long d, const double* origin, const double* factor,
                Layout<S> layout, S* panel, S* norms) {
  constexpr long SOME = 64;
  const long side = layout.side;
  S some[SOME];
  double sizes[BLOCK_ROWS] = {};
  for (long start = 0; start < d; start += SOME) {
    const long count = smaller(SOME, d - start);
    S* to = panel + start * side;
    for (long i = 0; i < rows; i++) {
      coordinates(x + i * d + start, count, origin + start, factor + start, some);
      sizes[i] += layout.squares ? norm<Norm::squares, S>(some, count)
                                 : norm<Norm::sum, S>(some, count);
      for (long k = 0; k < count; k++) to[k * side + i] = some[k] * layout.times;
    }
    for (long i = rows; i < side; i++)
      for (long k = 0; k < count; k++) to[k * side + i] = 0;
  }
  for (long i = 0; i < side; i++) norms[i] = S(layout.norm_sign * sizes[i]);
}

// Calls work(x) with the numbers of `points` in the dtype that they have.
template <class Work>
GRAMIAN_INLINE void with_data(gramian::Points points, Work work) {
  if (points.single)
    work(static_cast<const float*>(points.data));
  else
    work(static_cast<const double*>(points.data));
}

template <class S>
void pack(gramian::Points points, long start, long stop, const double* origin, const double* factor,
          Layout<S> layout, S* panels, S* norms) {
  const long d = points.d;
  with_data(points, [&](const auto* x) {
    for (long i = start; i < stop; i += layout.side)
      pack_panel(x + i * d, smaller(layout.side, stop - i), d, origin, factor, layout,
                 panels + (i - start) * d, norms + (i - start));
  });
}

inline double reach(gramian::Points points, const double* origin, const double* factor,
                    int power) {
  const auto size = power == 1   ? norm<Norm::absolute, double>
                    : power == 2 ? norm<Norm::squares, double>
                                 : norm<Norm::fourth, double>;
  Buffer<double> row(points.d);
  double top = 0;
  with_data(points, [&](const auto* x) {
    for (long i = 0; i < points.n; i++) {
      coordinates(x + i * points.d, points.d, origin, factor, (double*)row);
      const double value = size(row, points.d);
      top = value > top ? value : top;
    }
  });
  return top;
}

}  // namespace
