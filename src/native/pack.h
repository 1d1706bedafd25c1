// Rows and columns brought into the panels that tiles read, centred and scaled.
#pragma once

#include <cstdlib>
#include <new>

#include "isa.h"
#include "tile.h"

namespace {

template <class T>
class Buffer {
 public:
  explicit Buffer(long size) {
    void* p = nullptr;
    if (posix_memalign(&p, 64, sizeof(T) * size_t(size > 0 ? size : 1))) throw std::bad_alloc();
    data_ = static_cast<T*>(p);
    std::memset(p, 0, sizeof(T) * size_t(size > 0 ? size : 1));
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

// Coordinates of a row, subtracted and scaled in float64 and rounded once.
template <class S, class In>
GRAMIAN_INLINE void coordinates(const In* x, long d, const double* origin, const double* factor,
                                S* out) {
  for (long k = 0; k < d; k++) out[k] = S((double(x[k]) - origin[k]) * factor[k]);
}

enum class Norm { squares, sum, absolute };

// The sum of x_k^2, x_k or |x_k|, in eight parts that the compiler can do at once.
template <Norm N, class S>
GRAMIAN_INLINE double norm(const S* x, long d) {
  auto term = [](double a) {
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

// Writes rows start to stop in panels of `side`, multiplied by `times`, and `norm_sign` times their
// norms: of the squares, or just the sum.
template <class S>
void pack(gramian::Points points, long start, long stop, const double* origin, const double* factor,
          long side, S times, bool squares, double norm_sign, S* panels, S* norms) {
  const long d = points.d;
  Buffer<S> row(d);
  for (long i = 0; i < stop - start; i++) {
    const long at = (start + i) * d;
    if (points.single)
      coordinates(static_cast<const float*>(points.data) + at, d, origin, factor, (S*)row);
    else
      coordinates(static_cast<const double*>(points.data) + at, d, origin, factor, (S*)row);
    const double size = squares ? norm<Norm::squares, S>(row, d) : norm<Norm::sum, S>(row, d);
    norms[i] = S(norm_sign * size);
    S* to = panels + i / side * side * d + i % side;
    for (long k = 0; k < d; k++) to[k * side] = row[k] * times;
  }
  for (long i = stop - start; i % side != 0; i++) {
    norms[i] = 0;
    S* to = panels + i / side * side * d + i % side;
    for (long k = 0; k < d; k++) to[k * side] = 0;
  }
}

inline double reach(gramian::Points points, const double* origin, const double* factor,
                    bool squares) {
  Buffer<double> row(points.d);
  double top = 0;
  for (long i = 0; i < points.n; i++) {
    const long at = i * points.d;
    if (points.single)
      coordinates(static_cast<const float*>(points.data) + at, points.d, origin, factor,
                  (double*)row);
    else
      coordinates(static_cast<const double*>(points.data) + at, points.d, origin, factor,
                  (double*)row);
    const double size = squares ? norm<Norm::squares, double>(row, points.d)
                                : norm<Norm::absolute, double>(row, points.d);
    top = size > top ? size : top;
  }
  return top;
}

}  // namespace
