// Random problems for the verbs: shapes, rows, values, and entries of kernels in float64.
//
// Arrays end where their data ends, and start anywhere. Of the rows some are equal, some next to
// each other; some coordinates and values are denormal, huge, infinite or NaN.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "isa.h"

namespace {

constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
constexpr long BLOCK = 48;  // columns are packed in whole blocks

class Random {
 public:
  explicit Random(std::uint64_t start) : state_(start) {}
  std::uint64_t bits() {  // SplitMix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  long below(long n) { return long(bits() % std::uint64_t(n)); }
  long between(long least, long most) { return least + below(most - least + 1); }
  double uniform(double least, double most) {
    return least + (most - least) * double(bits() >> 11) * 0x1p-53;
  }
  bool one_of(long n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// Numbers of one dtype in memory that ends with the last of them.
struct Array {
  Array(Random& random, bool is_single, long n)
      : single(is_single), lead(random.one_of(2) ? 0 : random.below(16)), size(n) {
    bytes.resize(size_t((lead + n) * (single ? 4 : 8)));
  }
  template <class S>
  S* as() {
    return reinterpret_cast<S*>(bytes.data()) + lead;
  }
  void* data() { return single ? (void*)as<float>() : (void*)as<double>(); }
  void set(long i, double value) {
    if (single)
      as<float>()[i] = float(value);
    else
      as<double>()[i] = value;
  }
  double operator[](long i) { return single ? double(as<float>()[i]) : as<double>()[i]; }

  bool single;
  long lead, size;
  std::vector<char> bytes;
};

enum class Rows { plain, nan, wild };  // wild: its entries may be anything

// Coordinates of about one; some rows equal to others or next to them, some of another kind.
struct Matrix {
  Matrix(Random& random, bool single, long n_, long d_, long hostile, bool nonnegative = false)
      : n(n_), d(d_), x(random, single, n * d), kinds(size_t(n), Rows::plain) {
    for (long i = 0; i < n; i++) {
      const long like = i > 0 && random.one_of(4) ? random.below(i) : -1;
      const double apart = random.one_of(2) ? 0 : std::pow(10, random.uniform(-12, -1));
      for (long k = 0; k < d; k++) {
        const double drawn = random.uniform(-1, 1);
        const double u = !nonnegative ? drawn : drawn > 0 ? drawn : 0;
        x.set(i * d + k, like < 0 ? u : x[like * d + k] + apart * u);
      }
      if (like >= 0) kinds[size_t(i)] = kinds[size_t(like)];
    }
    for (; hostile > 0 && n > 0; hostile--)
      spoil(random, random.below(n), random.below(d), nonnegative);
  }

  gramian::Points points() { return {x.data(), x.single, n, d}; }

  bool any(Rows kind) const {
    for (Rows each : kinds)
      if (each == kind) return true;
    return false;
  }

  long n, d;
  Array x;
  std::vector<Rows> kinds;

 private:
  void spoil(Random& random, long i, long k, bool nonnegative) {
    const double sign = nonnegative || random.one_of(2) ? 1 : -1, top = x.single ? 3e38 : 1e308;
    const double choices[] = {NaN, x.single ? 1e-40 : 1e-310, 0, HUGE_VAL, top,
                              std::pow(10, random.uniform(2, x.single ? 38 : 300))};
    x.set(i * d + k, sign * choices[random.below(6)]);
    bool nan = false, plain = true;
    for (long l = 0; l < d; l++) {
      nan |= std::isnan(x[i * d + l]);
      plain &= std::fabs(x[i * d + l]) < 10;
    }
    kinds[size_t(i)] = nan ? Rows::nan : plain ? Rows::plain : Rows::wild;
  }
};

// Values that go with rows or columns, of which a few may be hostile.
double value(Random& random, bool hostile, bool single) {
  if (!hostile || !random.one_of(40)) return random.uniform(-1, 1);
  const double choices[] = {NaN, HUGE_VAL, -HUGE_VAL, 0, single ? 1e-41 : 1e-311,
                            single ? 3e38 : 1e308};
  return choices[random.below(6)];
}

struct Case {
  const gramian::Isa* isa;
  std::string kernel;
  bool single, square, radial, inner, nonnegative;
  int pieces;
  double first, second, scale;
  std::vector<double> origin, factor;

  // An entry in float64, and the size of the terms it comes from.
  double entry(const double* x, const double* z, double* size) const {
    double squares = 0, absolute = 0, product = 0, terms = 0, least = 0, most = 0, norms = 0;
    double fractions = 0;
    for (long k = 0, d = long(factor.size()); k < d; k++) {
      const double both = x[k] + z[k];
      least += x[k] < z[k] ? x[k] : z[k], most += x[k] < z[k] ? z[k] : x[k];
      norms += x[k] * x[k] + z[k] * z[k];
      fractions += both > 0 ? (x[k] - z[k]) * (x[k] - z[k]) / both : 0;
      const double apart = x[k] - z[k], term = x[k] * z[k];
      squares += apart * apart, absolute += std::fabs(apart);
      product += term, terms += std::fabs(term);
    }
    const double s = scale * squares, r = std::sqrt(s);
    *size = 1;
    if (kernel == "gaussian") return std::exp(-s);
    if (kernel == "laplacian" || kernel == "matern12") return std::exp(-r);
    if (kernel == "matern32") return (1 + r) * std::exp(-r);
    if (kernel == "matern52") return (1 + r + s / 3) * std::exp(-r);
    if (kernel == "rational_quadratic") return std::pow(1 + s, -first);
    if (kernel == "l1_laplacian") return std::exp(-absolute);
    const double nothing = single ? 1e-36 : 1e-300;  // what the norms of rows that underflow are
    // where coordinates are denormal, an entry depends on whether they are flushed to zero
    if ((kernel == "tanimoto_product" && norms > 0 && norms <= (single ? 1e-36 : 1e-72)) ||
        (kernel == "tanimoto_minmax" && most > 0 && most <= 1e-36))
      *size = 2 / tolerance();
    if (kernel == "tanimoto_product") return norms > nothing ? product / (norms - product) : 1;
    if (kernel == "tanimoto_minmax") return most > nothing ? least / most : 1;
    if (kernel == "chi2") return std::exp(-fractions);
    *size = terms;
    if (kernel == "linear") return product;
    *size = std::pow(1 + terms + std::fabs(second), first);
    return std::pow(product + second, first);
  }

  // The gradient of an entry, from coordinates and their differences, which are more precise.
  void slope(const double* x, const double* z, const double* differences, double* out) const {
    const long d = long(factor.size());
    double squares = 0, product = 0, size;
    for (long k = 0; k < d; k++)
      squares += differences[k] * differences[k], product += x[k] * z[k];
    const double s = scale * squares, r = std::sqrt(s), e = std::exp(-r);
    double of_s = 0;
    if (kernel == "gaussian") of_s = -std::exp(-s);
    if (kernel == "laplacian" || kernel == "matern12") of_s = r > 0 ? -e / (2 * r) : 0;
    if (kernel == "matern32") of_s = -e / 2;
    if (kernel == "matern52") of_s = -(1 + r) * e / 6;
    if (kernel == "rational_quadratic") of_s = -first * std::pow(1 + s, -first - 1);
    const double k_l1 = kernel == "l1_laplacian" ? entry(x, z, &size) : 0;
    const double of_product = kernel == "linear" ? 1 : first * std::pow(product + second, first - 1);
    for (long k = 0; k < d; k++) {
      const double apart = differences[k];
      const double slope = inner    ? of_product * z[k]
                           : radial ? 2 * scale * apart * of_s
                                    : -k_l1 * ((apart > 0) - (apart < 0));
      out[k] = slope * factor[size_t(k)];
    }
  }

  std::vector<double> coordinates(Matrix& x) const {
    std::vector<double> out(size_t(x.n * x.d));
    for (long i = 0; i < x.n; i++)
      for (long k = 0; k < x.d; k++)
        out[size_t(i * x.d + k)] = (x.x[i * x.d + k] - origin[size_t(k)]) * factor[size_t(k)];
    return out;
  }

  double tolerance() const { return !single ? 1e-9 : pieces == 2 ? 2e-3 : 1e-4; }
  // The largest entry of wild rows, of which an exponent may be anything, see `Vector::exponent`.
  double most() const { return kernel == "gaussian" || kernel == "l1_laplacian" ? HUGE_VAL : 1.001; }
  double tiny() const { return single ? 1e-30 : 1e-290; }
};

struct Shape {
  long n, m, d, t;
};

// Mostly small; some with more columns than a chunk has, more rows than are summed in float32, or
// more features than are packed at once.
Shape some_shape(Random& random) {
  const auto size = [&](long most) {
    if (random.one_of(6)) return random.between(1, 3);
    if (random.one_of(6)) return BLOCK * random.between(1, 2) + random.between(-1, 1);
    return random.between(1, most);
  };
  const long t = random.one_of(2) ? 1 : random.between(random.one_of(9) ? 0 : 2, 11);
  switch (random.below(32)) {
    case 0: return {random.between(1, 9), random.between(200, 1100), random.between(1, 5), t};
    case 1: return {random.between(900, 1200), random.between(1, 5), random.between(1, 3), t};
    case 2: return {random.between(1, 20), random.between(1, 60), random.between(30, 300), t};
    case 3: return {size(190), size(190), random.between(1, 9), t};
    default: return {size(40), size(40), random.between(1, random.one_of(4) ? 40 : 9), t};
  }
}

const std::vector<std::string>& kernels() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    gramian::portable.kernels(&list, [](void* to, const char* name, bool) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    });
    return list;
  }();
  return names;
}

Case some_case(Random& random, long d) {
  static std::vector<const gramian::Isa*> isas = gramian::present();
  Case at{};
  at.kernel = kernels()[size_t(random.below(long(kernels().size())))];
  at.inner = at.kernel == "linear" || at.kernel == "polynomial";
  at.nonnegative = at.kernel == "tanimoto_product" || at.kernel == "tanimoto_minmax" ||
                   at.kernel == "chi2";
  at.radial = !at.inner && !at.nonnegative && at.kernel != "l1_laplacian";
  at.single = random.one_of(2);
  at.square = random.one_of(3);
  // The emulation is slow: it is left for what nothing else here computes.
  at.isa = isas[size_t(random.below(long(isas.size())))];
  if (at.single && at.radial && random.one_of(d < 64 ? 10 : 40)) at.isa = &gramian::emulated;
  if (at.isa->splits && at.single && at.radial) at.pieces = random.one_of(2) ? 2 : 3;
  at.first = at.kernel == "polynomial" ? double(random.between(1, 5))
             : random.one_of(2)        ? 1
                                       : random.uniform(0.3, 3);
  at.second = random.uniform(0, 2);
  at.scale = random.uniform(0.2, 2);
  for (long k = 0; k < d; k++) {
    at.origin.push_back(at.nonnegative ? 0 : random.uniform(-0.1, 0.1));
    at.factor.push_back(random.uniform(0.1, 2) / std::sqrt(double(d)));
  }
  return at;
}

}  // namespace
