// Runs each verb of each kernel on small odd shapes, in arrays that end where the data ends: to be
// built with sanitizers. Compares the instruction sets, and products with the blocks they are of;
// products of bfloat16 pieces with those of float32, and the emulated matrix unit with what it is.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "isa.h"
#include "matrix_unit.h"
#include "sparse.h"

namespace {

int failures = 0;

template <class S>
std::vector<S> numbers(long n, unsigned seed) {
  std::vector<S> out(static_cast<size_t>(n));
  for (S& value : out) {
    seed = seed * 1664525u + 1013904223u;
    value = S(double(seed >> 8) / (1 << 24) - 0.5);
  }
  return out;
}

void compare(const std::vector<double>& a, const std::vector<double>& b, double bound,
             const std::string& what) {
  double size = 1e-300, error = 0;
  for (size_t i = 0; i < a.size(); i++) {
    size = std::fmax(size, std::fabs(b[i]));
    error = std::fmax(error, std::fabs(a[i] - b[i]));
  }
  if (error <= bound * size) return;
  failures++;
  std::printf("%s: error %.2g\n", what.c_str(), error / size);
}

bool is_nonnegative(const std::string& kernel) {  // they have no slopes, either
  return kernel == "tanimoto_product" || kernel == "tanimoto_minmax" || kernel == "chi2";
}

bool is_radial(const std::string& kernel) {
  return kernel != "l1_laplacian" && kernel != "linear" && kernel != "polynomial" &&
         !is_nonnegative(kernel);
}

struct Shape {
  long n, m, d, t;
};

// All verbs; what they give, one after the other.
template <class S>
std::vector<double> verbs(const gramian::Isa& isa, const char* kernel, Shape at, bool difference,
                          const std::string& what, std::vector<double>* gradients,
                          int pieces = 0) {
  constexpr bool single = sizeof(S) == 4;
  const double tolerance = single ? 1e-4 : 1e-11;
  auto x = numbers<S>(at.n * at.d, 1), z = numbers<S>(at.m * at.d, 2);
  const bool nonnegative = is_nonnegative(kernel), has_slopes = pieces == 0 && !nonnegative;
  if (nonnegative)
    for (auto* points : {&x, &z})
      for (S& value : *points) value = value > 0 ? value : 0;
  const auto y = numbers<S>(at.n * at.t, 3), w = numbers<S>(at.n, 4);
  const std::vector<double> origin(size_t(at.d), nonnegative ? 0 : 0.01), factor(size_t(at.d), 0.5);
  const std::vector<S> diagonal(size_t(at.m), S(1));
  const gramian::Request request{kernel, 2,          1,      0.5, difference, single, origin.data(),
                                 factor.data(), diagonal.data(), -3, pieces, 0.01};
  const gramian::Points rows{x.data(), single, at.n, at.d}, columns{z.data(), single, at.m, at.d};
  gramian::Tiles* tiles = isa.make(request, columns);
  tiles->pack_columns(columns, 0, at.m);
  const long width = tiles->width();
  std::vector<S> v(size_t(at.t * width), S(0)), K(size_t(at.n * at.m));
  const auto values = numbers<S>(at.t * at.m, 5);
  for (long c = 0; c < at.t; c++)
    for (long j = 0; j < at.m; j++) v[size_t(c * width + j)] = values[size_t(c * at.m + j)];

  tiles->block({rows, 0, at.n}, K.data());
  std::vector<double> product(size_t(at.n * at.t)), expected(product.size());
  tiles->matvec({rows, 0, at.n}, v.data(), at.t, product.data());
  for (long i = 0; i < at.n; i++)
    for (long c = 0; c < at.t; c++)
      for (long j = 0; j < at.m; j++)
        expected[size_t(i * at.t + c)] +=
            double(K[size_t(i * at.m + j)]) * double(v[size_t(c * width + j)]);
  compare(product, expected, tolerance, what + " matvec");

  std::vector<double> normal(size_t(at.t * at.m)), sum(normal.size());
  tiles->normal({rows, 0, at.n}, v.data(), w.data(), y.data(), at.t, normal.data());
  for (long i = 0; i < at.n; i++)
    for (long c = 0; c < at.t; c++) {
      const double u = (expected[size_t(i * at.t + c)] - double(y[size_t(i * at.t + c)])) *
                       double(w[size_t(i)]);
      for (long j = 0; j < at.m; j++)
        sum[size_t(c * at.m + j)] += double(K[size_t(i * at.m + j)]) * u;
    }
  compare(normal, sum, tolerance, what + " normal");

  std::vector<double> half(normal.size());
  for (long strip = 0; strip < 2; strip++)
    tiles->symmetric(columns, strip, 2, v.data(), at.t, half.data());
  std::vector<double> slopes(size_t(at.n * at.t * at.d));
  if (tiles->gradients({rows, 0, at.n}, columns, v.data(), at.t, slopes.data()) != has_slopes) {
    failures++;
    std::printf("%s: gradients %s\n", what.c_str(), has_slopes ? "stopped" : "that there are not");
  }
  delete tiles;

  if (pieces == 0) gradients->assign(slopes.begin(), slopes.end());
  product.insert(product.end(), normal.begin(), normal.end());
  product.insert(product.end(), half.begin(), half.end());
  return product;
}

// Adds x y to c in the first numbers of a tile, with even or odd terms 2 n times, and returns c.
float add(float c, Bfloat16 x, Bfloat16 y, std::vector<int> terms) {
  Emulated unit;
  Bfloat16 a[TILE] = {}, b[TILE] = {};
  float out[SIDE * SIDE] = {c};
  for (int k : terms) a[k] = x, b[k / 2 * DEPTH + k % 2] = y;
  unit.load<0>(out, 64);
  unit.load<1>(a, 64);
  unit.load<2>(b, 64);
  unit.add_product<0, 1, 2>();
  unit.store<0>(out, 64);
  return out[0];
}

void expect(bool right, const char* what) {
  if (right) return;
  failures++;
  std::printf("%s\n", what);
}

void check_unit() {
  constexpr Bfloat16 one = 0x3f80, least = 0x0080, denormal = 0x0040;
  const Bfloat16 eps = (127 - 24) << 7;  // 2^-24: half of what is next to one
  expect(add(0, one, one, {0, 1, 2, 3, 31}) == 5, "sums all features");
  expect(add(1, one, eps, {0}) == 1, "rounds to even");
  expect(add(1, one, eps, {0, 2}) == 1 + 0x1p-23f, "adds a sum of even terms at once");
  expect(add(1, one, eps, {0, 1}) == 1 + 0x1p-23f, "adds even and odd terms first");
  expect(add(0, one, least, {0}) == 0x1p-126f, "keeps the least normal number");
  expect(add(0, one, denormal, {0, 2}) == 0, "takes denormal numbers for zero");
  expect(add(0x1p-127f, one, 0, {0}) == 0, "takes denormal sums for zero");
  expect(add(0, 0x3f00, least, {0, 1}) == 0, "has no denormal sums");
}

// Keeps every third number of a dense matrix, and returns its entries row by row.
struct Sparse {
  std::vector<long> start{0}, column;
  std::vector<double> value;
  long rows, columns;

  Sparse(std::vector<double>* dense, long n, long d) : rows(n), columns(d) {
    for (long i = 0; i < n; i++) {
      for (long j = 0; j < d; j++)
        if ((i + j) % 3)
          (*dense)[size_t(i * d + j)] = 0;
        else
          column.push_back(j), value.push_back((*dense)[size_t(i * d + j)]);
      start.push_back(long(column.size()));
    }
  }

  gramian::Compressed<double> get() const {
    return {start.data(), column.data(), value.data(), rows, columns, long(column.size())};
  }
};

void check_sparse(long n, long u, long m) {
  std::vector<double> a = numbers<double>(n * u, 1), b = numbers<double>(u * m, 2);
  const Sparse left(&a, n, u), right(&b, u, m);
  std::vector<double> out(size_t(n * m), 7.0), expected(size_t(n * m));
  for (long i = 0; i < n; i++)
    for (long k = 0; k < u; k++)
      for (long j = 0; j < m; j++)
        expected[size_t(i * m + j)] += a[size_t(i * u + k)] * b[size_t(k * m + j)];
  expect(left.get().valid() && right.get().valid(), "sparse matrices are valid");
  for (const gramian::Isa* isa : gramian::present()) {
    gramian::Right<double>(right.get(), isa->add_doubles).product(left.get(), out.data());
    compare(out, expected, 1e-12, "sparse product");
  }
  gramian::Numbers numbers;
  std::vector<long> known;
  for (long j : right.column)
    if (numbers.add(j) == long(known.size())) known.push_back(j);
  for (long j = 0; j < m + 3; j++) {
    const long at = numbers(j);
    const bool there = std::find(known.begin(), known.end(), j) != known.end();
    expect(there == (at >= 0) && (!there || (known[size_t(at)] == j && numbers.maybe(j))),
           "columns are found");
  }
  std::vector<long> start(left.start.size()), column(left.column.size());
  std::vector<double> value(left.value.size());
  const long kept = gramian::narrow(left.get(), numbers, start.data(), column.data(), value.data());
  long expected_kept = 0;
  for (long j : left.column) expected_kept += numbers(j) >= 0;
  expect(kept == expected_kept && start.back() == kept, "known columns are kept");
  const std::vector<double> w(known.size(), 0.5);
  std::vector<double> sums(known.size()), slow(known.size());
  gramian::factored_normal<double>(left.get(), numbers, w.data(), nullptr, nullptr, 1, sums.data());
  for (long i = 0; i < n; i++) {
    double u = 0;
    for (long k = start[size_t(i)]; k < start[size_t(i) + 1]; k++) u += 0.5 * value[size_t(k)];
    for (long k = start[size_t(i)]; k < start[size_t(i) + 1]; k++)
      slow[size_t(column[size_t(k)])] += u * value[size_t(k)];
  }
  compare(sums, slow, 1e-12, "normal product of sparse factors");
  Sparse wrong = right;
  if (!wrong.column.empty()) {
    wrong.column.back() = m;
    expect(!wrong.get().valid(), "a column too many is not valid");
  }
}

// Products with entries in memory, beside loops over them; rows are all, or some of them backwards.
template <class S>
void check_stored(long n, long m, long t, bool some) {
  const auto E = numbers<S>(n * m, 1), v = numbers<S>(t * m, 2);
  const auto y = numbers<double>(n * t, 3), w = numbers<double>(n, 4);
  std::vector<long> which;
  for (long i = n - 1; some && i >= 0; i -= 2) which.push_back(i);
  const long rows = some ? long(which.size()) : n, columns = (m + 1) / 2;
  std::vector<double> products(size_t(rows * t)), sums(size_t(t * columns));
  std::vector<double> slow_products(products.size()), slow_sums(sums.size());
  std::vector<double> alone(sums.size()), slow_alone(sums.size());  // those of y alone
  for (long i = 0; i < rows; i++)
    for (long c = 0; c < t; c++) {
      const S* row = E.data() + (some ? which[size_t(i)] : i) * m;
      double& p = slow_products[size_t(i * t + c)];
      for (long j = 0; j < m; j++) p += double(row[j]) * double(v[size_t(c * m + j)]);
      const double wy = w[size_t(i)] * y[size_t(i * t + c)], u = w[size_t(i)] * p - wy;
      for (long j = 0; j < columns; j++) {
        slow_sums[size_t(c * columns + j)] += u * double(row[j]);
        slow_alone[size_t(c * columns + j)] -= wy * double(row[j]);
      }
    }
  const gramian::Stored stored{E.data(), sizeof(S) == 4, m, some ? which.data() : nullptr, 0, rows};
  const double tolerance = sizeof(S) == 4 ? 1e-5 : 1e-12;
  for (const gramian::Isa* isa : gramian::present()) {
    std::fill(sums.begin(), sums.end(), 0.0);
    isa->multiply_stored(stored, {v.data(), w.data(), y.data(), true, t, columns, products.data(),
                                  sums.data()});
    compare(products, slow_products, tolerance, "products with stored entries");
    compare(sums, slow_sums, tolerance, "sums of stored entries");
    std::fill(alone.begin(), alone.end(), 0.0);
    isa->multiply_stored(stored, {nullptr, w.data(), y.data(), false, t, columns, nullptr,
                                  alone.data()});
    compare(alone, slow_alone, tolerance, "sums of stored entries without a vector");
  }
}

// Functions of numbers beside those of the C library, among them some that these compute.
template <class S>
void check_functions(long n) {
  using gramian::Function;
  auto x = numbers<S>(n, 5), out = x;
  if (n > 4) x[1] = S(800), x[2] = S(-800), x[4] = std::numeric_limits<S>::quiet_NaN();
  const std::pair<Function, S (*)(S)> functions[] = {
      {Function::exp, std::exp}, {Function::log1p, std::log1p}, {Function::asin, std::asin},
      {Function::cos, std::cos}, {Function::sin, std::sin}};
  for (const gramian::Isa* isa : gramian::present())
    for (const auto& [function, exact] : functions) {
      constexpr bool single = sizeof(S) == 4;
      if (single && (function == Function::cos || function == Function::sin)) continue;
      if constexpr (single)
        isa->map_floats(function, x.data(), out.data(), n);
      else
        isa->map_doubles(function, x.data(), out.data(), n);
      for (size_t i = 0; i < x.size(); i++) {
        const S expected = exact(x[i]), bound = 8 * std::numeric_limits<S>::epsilon();
        const bool same = out[i] == expected || (out[i] != out[i] && expected != expected);
        expect(same || std::fabs(out[i] - expected) <= bound * std::fabs(expected),
               "functions of numbers are those of the C library");
      }
    }
}

}  // namespace

int main() {
  for (long n : {1, 3, 4, 7, 16, 33, 100}) {
    check_functions<float>(n);
    check_functions<double>(n);
  }
  for (bool some : {false, true})
    for (const Shape& at : {Shape{1, 1, 0, 1}, {8, 16, 0, 1}, {9, 15, 0, 2}, {300, 33, 0, 3},
                            {5, 4100, 0, 1}, {2, 130, 0, 5}}) {
      check_stored<float>(at.n, at.m, at.t, some);
      check_stored<double>(at.n, at.m, at.t, some);
    }
  check_unit();
  check_sparse(1, 1, 1);
  check_sparse(5, 40, 17);
  check_sparse(0, 3, 4);
  check_sparse(3, 9, 200);
  std::vector<std::string> kernels;
  gramian::portable.kernels(&kernels, [](void* list, const char* name, bool) {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
  });
  const Shape shapes[] = {{1, 1, 1, 1},   {7, 50, 3, 1},   {53, 29, 2, 7},
                          {101, 131, 5, 3}, {49, 600, 40, 1}, {3, 97, 2000, 2}, {300, 131, 5, 1}};
  int cases = 0;
  for (const auto& kernel : kernels)
    for (const Shape& at : shapes)
      for (bool difference : {false, true}) {
        std::vector<double> first32, first64, slopes64, g32, g64;
        for (const gramian::Isa* isa : gramian::present()) {
          const std::string what = kernel + " " + isa->name + " d=" + std::to_string(at.d);
          const auto f32 = verbs<float>(*isa, kernel.c_str(), at, difference, what + " float32",
                                      &g32);
          const auto f64 = verbs<double>(*isa, kernel.c_str(), at, difference, what + " float64",
                                       &g64);
          if (first32.empty()) first32 = f32, first64 = f64, slopes64 = g64;
          if (at.d < 1000)  // float32 has nothing left of the l1 Laplacian there
            compare(g32, slopes64, 1e-3, what + " gradients in float32 against float64");
          compare(g64, slopes64, 1e-9, what + " gradients in float64 against the first");
          compare(f32, first32, 1e-3, what + " float32 against the first");
          compare(f64, first64, 1e-10, what + " float64 against the first");
          cases++;
        }
        for (int pieces : {2, 3}) {
          if (difference || !is_radial(kernel)) continue;
          const std::string what = kernel + " of " + std::to_string(pieces) + " pieces";
          const auto split =
              verbs<float>(gramian::emulated, kernel.c_str(), at, false, what, nullptr, pieces);
          compare(split, first32, pieces == 2 ? 1e-3 : 1e-4, what + " against the first");
          cases++;
        }
      }
  std::printf("%d cases, %d failures\n", cases, failures);
  return failures != 0;
}
