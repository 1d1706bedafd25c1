// The Python module gramian.engines._native: checks what it is given and hands it on.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "isa.h"
#include "sparse.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace nb = nanobind;
using gramian::Isa;

namespace {

// Inputs may be read-only. Outputs may not, and are declared `noconvert`: nanobind would pass a
// copy of an array that is not contiguous, and what is written there would be lost.
using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Vectors = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Given = std::optional<Array>;
using Output = nb::ndarray<nb::c_contig, nb::device::cpu>;
using Outputs = std::optional<Output>;

// Lets what is too small be zero in this thread, as kernel entries of far points are: arithmetic
// with denormal numbers is 20 to 40 times slower.
class FlushDenormals {
#if defined(__x86_64__)
 public:
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
 public:
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(before_ | (1ul << 24)));
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  unsigned long before_;
#endif
};

const Isa& instructions(const std::string& name) {
  std::vector<const Isa*> known = gramian::present();
  known.push_back(&gramian::emulated);
  for (const Isa* isa : known)
    if (name == "best" || name == isa->name) return *isa;
  throw std::invalid_argument("this machine has no instructions called '" + name + "'");
}

bool is(nb::dlpack::dtype dtype, int bits) {
  return dtype == (bits == 32 ? nb::dtype<float>() : nb::dtype<double>());
}

void expect(bool right, const char* name, const char* expected) {
  if (!right) throw std::invalid_argument(std::string(name) + " must be " + expected);
}

void expect_finished(bool finished) {
  if (!finished) throw std::runtime_error("stopped: the result is incomplete");
}

// Arrays without elements may declare axes of any length: a product of lengths must be checked.
bool holds(size_t size, long n, long t) {
  long product;
  return n >= 0 && t >= 0 && !__builtin_mul_overflow(n, t, &product) && long(size) == product;
}

// The length of the first axis, of an array that has one.
template <class Any>
long length(const Any& x, const char* name) {
  expect(x.ndim() > 0, name, "an array with axes");
  return long(x.shape(0));
}

template <class Any>
gramian::Points points(const Any& x, const char* name) {
  expect(x.ndim() == 2 && (is(x.dtype(), 32) || is(x.dtype(), 64)), name,
         "a matrix of float32 or float64");
  return {x.data(), is(x.dtype(), 32), long(x.shape(0)), long(x.shape(1))};
}

class Plan {
 public:
  Plan(const std::string& isa, const std::string& kernel, double first, double second, double scale,
       bool difference, bool single, const Array& z, const Vectors& origin, const Vectors& factor,
       const Given& diagonal, long offset, int pieces, double near)
      : single_(single), split_(pieces > 0) {
    const gramian::Points columns = points(z, "z");
    m_ = columns.n, d_ = columns.d;
    expect(m_ > 0 && d_ > 0, "z", "a matrix with rows and features");
    expect(long(origin.shape(0)) == d_ && long(factor.shape(0)) == d_, "origin and factor",
           "one number per feature");
    expect(std::abs(offset) <= std::numeric_limits<long>::max() / 4, "offset", "of 62 bits");
    const void* values = vector(diagonal, "diagonal", m_, 1);
    const gramian::Request request{kernel.c_str(), first,         second,        scale,
                                   difference,     single,        origin.data(), factor.data(),
                                   values,         offset,        pieces,        near};
    expect(pieces == 0 || ((pieces == 2 || pieces == 3) && single && instructions(isa).splits),
           "pieces", "0, or 2 or 3 of float32 where the instructions have products of them");
    nb::gil_scoped_release released;
    tiles_.reset(instructions(isa).make(request, columns));
    if (!tiles_) throw std::invalid_argument("there is no kernel called '" + kernel + "'");
  }

  long width() const { return tiles_->width(); }

  void stop() { tiles_->stop(); }

  void pack(const Array& z, long start, long stop) {
    const gramian::Rows columns = range(z, start, stop);
    expect(columns.x.n == m_ && start % 48 == 0, "start", "a multiple of 48");
    nb::gil_scoped_release released;
    FlushDenormals flush;
    tiles_->pack_columns(columns.x, start, stop);
  }

  void matvec(const Array& x, long start, long stop, const Array& v, const Output& out) const {
    const gramian::Rows rows = range(x, start, stop);
    const long t = length(v, "v");
    const void* columns = vector(v, "v", t, width());
    double* sums = result(out, stop - start, t);
    nb::gil_scoped_release released;
    FlushDenormals flush;
    expect_finished(tiles_->matvec(rows, columns, t, sums));
  }

  void normal(const Array& x, long start, long stop, const Given& v, const Given& weights,
              const Given& targets, const Output& out) const {
    const gramian::Rows rows = range(x, start, stop);
    const long t = length(out, "out");
    const void* columns = vector(v, "v", t, width());
    const void* w = vector(weights, "weights", rows.x.n, 1);
    const void* y = vector(targets, "targets", rows.x.n, t);
    double* sums = result(out, t, m_);
    nb::gil_scoped_release released;
    FlushDenormals flush;
    expect_finished(tiles_->normal(rows, columns, w, y, t, sums));
  }

  void symmetric(const Array& x, long first, long step, const Array& v, const Output& out) const {
    const gramian::Rows rows = range(x, 0, m_);
    const long t = length(v, "v");
    const void* columns = vector(v, "v", t, width());
    double* sums = result(out, t, m_);
    expect(rows.x.n == m_ && first >= 0 && step > 0, "x", "the columns");
    first = std::min(first, m_), step = std::min(step, m_);  // no strip is beyond the last row
    nb::gil_scoped_release released;
    FlushDenormals flush;
    expect_finished(tiles_->symmetric(rows.x, first, step, columns, t, sums));
  }

  void block(const Array& x, long start, long stop, const Output& out) const {
    const gramian::Rows rows = range(x, start, stop);
    expect(is(out.dtype(), single_ ? 32 : 64) && holds(out.size(), stop - start, m_), "out",
           "of the dtype of the tiles and the right shape");
    void* entries = out.data();
    nb::gil_scoped_release released;
    FlushDenormals flush;
    expect_finished(tiles_->block(rows, entries));
  }

  void gradients(const Array& x, long start, long stop, const Array& z, const Array& v,
                 const Output& out) const {
    const gramian::Rows rows = range(x, start, stop), columns = range(z, 0, m_);
    const long t = length(v, "v");
    const void* coefficients = vector(v, "v", t, width());
    expect(t <= std::numeric_limits<long>::max() / d_, "v", "of fewer columns");
    double* sums = result(out, stop - start, t * d_);
    expect(columns.x.n == m_, "z", "the columns");
    expect(!split_, "pieces", "0 for gradients");
    nb::gil_scoped_release released;
    FlushDenormals flush;
    expect_finished(tiles_->gradients(rows, columns.x, coefficients, t, sums));
  }

 private:
  gramian::Rows range(const Array& x, long start, long stop) const {
    const gramian::Points rows = points(x, "x");
    expect(rows.d == d_, "x", "a matrix with as many features as z");
    expect(0 <= start && start <= stop && stop <= rows.n, "start and stop", "a range of rows of x");
    return {rows, start, stop};
  }

  // The numbers of a contiguous array in the dtype of the tiles, of which there are n * t.
  const void* vector(const Given& given, const char* name, long n, long t) const {
    if (!given) return nullptr;
    expect(is(given->dtype(), single_ ? 32 : 64), name, "of the dtype of the tiles");
    expect(holds(given->size(), n, t), name, "as long as x or z");
    return given->data();
  }

  double* result(const Output& out, long n, long t) const {
    expect(is(out.dtype(), 64) && holds(out.size(), n, t), "out", "float64, of the right shape");
    return static_cast<double*>(out.data());
  }

  bool single_, split_;
  long m_ = 0, d_ = 0;
  std::unique_ptr<gramian::Tiles> tiles_;
};

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const Isa* isa : gramian::present()) names.emplace_back(isa->name);
  return names;
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  gramian::portable.kernels(&names, [](void* list, const char* name, bool) {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
  });
  return names;
}

std::vector<std::string> slope_names() {
  std::vector<std::string> names;
  gramian::portable.kernels(&names, [](void* list, const char* name, bool has_slope) {
    if (has_slope) static_cast<std::vector<std::string>*>(list)->emplace_back(name);
  });
  return names;
}

bool splits(const std::string& isa) { return instructions(isa).splits; }

double reach(const std::string& isa, const Array& x, const Vectors& origin, const Vectors& factor,
             int power) {
  const gramian::Points rows = points(x, "x");
  expect(rows.d > 0, "x", "a matrix with features");
  expect(long(origin.shape(0)) == rows.d && long(factor.shape(0)) == rows.d, "origin and factor",
         "one number per feature");
  expect(power == 1 || power == 2 || power == 4, "power", "1, 2 or 4");
  nb::gil_scoped_release released;
  return instructions(isa).reach(rows, origin.data(), factor.data(), power);
}

using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using IndexOutput = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(long) == sizeof(int64_t), "row starts and columns are read as long");

// Numbers in float64 of which there are n * t; null if they are not given.
template <class Any>
auto doubles(const std::optional<Any>& given, const char* name, long n, long t) {
  using Number = std::conditional_t<std::is_same_v<Any, Output>, double, const double>;
  expect(!given || (is(given->dtype(), 64) && holds(given->size(), n, t)), name,
         "float64, of the right shape");
  return given ? static_cast<Number*>(given->data()) : nullptr;
}

void multiply_stored(const std::string& isa, const Array& entries,
                     const std::optional<Indices>& numbers, long start, long stop, const Given& v,
                     const Given& weights, const Given& targets, const Outputs& products,
                     const Outputs& sums, long t, bool chained) {
  const gramian::Points E = points(entries, "entries");
  expect(E.d > 0, "entries", "a matrix with columns");
  const long rows = numbers ? long(numbers->shape(0)) : E.n;
  expect(0 <= start && start <= stop && stop <= rows, "start and stop", "a range of rows");
  expect(t > 0 && (v || !(products || chained)), "v", "there, of one column at least");
  if (v)
    expect(is(v->dtype(), E.single ? 32 : 64) && holds(v->size(), t, E.d), "v",
           "of the dtype of the entries, as long as their rows");
  expect(!sums || sums->ndim() > 0, "sums", "an array with axes");
  const long columns = sums ? long(sums->shape(sums->ndim() - 1)) : 0;
  expect(columns <= E.d, "sums", "of columns of the entries");
  expect(v || columns > 0, "v", "there, or sums with columns: they say how large t may be");
  const long* which = numbers ? reinterpret_cast<const long*>(numbers->data()) : nullptr;
  for (long i = start; which && i < stop; i++)
    expect(0 <= which[i] && which[i] < E.n, "numbers", "those of rows");
  const gramian::Stored stored{E.data, E.single, E.d, which, start, stop};
  const gramian::Factors with{v ? v->data() : nullptr,
                              doubles(weights, "weights", rows, 1),
                              doubles(targets, "targets", rows, t),
                              chained,
                              t,
                              columns,
                              doubles(products, "products", stop - start, t),
                              doubles(sums, "sums", t, columns)};
  nb::gil_scoped_release released;
  FlushDenormals flush;
  if (start < stop) instructions(isa).multiply_stored(stored, with);
}

gramian::Function function(const std::string& name) {
  using gramian::Function;
  const std::pair<const char*, Function> known[] = {{"exp", Function::exp},
                                                    {"log1p", Function::log1p},
                                                    {"asin", Function::asin},
                                                    {"cos", Function::cos},
                                                    {"sin", Function::sin}};
  for (const auto& [own, found] : known)
    if (name == own) return found;
  throw std::invalid_argument("there is no function called '" + name + "'");
}

// The numbers of a vector or a matrix, which may be a part of a wider one.
template <class Any>
long row_step(const Any& x, const char* name) {
  expect(x.ndim() == 1 || x.ndim() == 2, name, "a vector or a matrix");
  expect(x.size() == 0 || x.shape(x.ndim() - 1) == 1 || x.stride(x.ndim() - 1) == 1, name,
         "of neighbours in memory along its rows");
  return x.ndim() == 2 ? long(x.stride(0)) : 0;
}

void map(const std::string& isa, const std::string& name,
         const nb::ndarray<nb::ro, nb::device::cpu>& x, const nb::ndarray<nb::device::cpu>& out) {
  const gramian::Function f = function(name);
  const bool single = is(x.dtype(), 32), periodic = name == "cos" || name == "sin";
  expect((single && !periodic) || is(x.dtype(), 64), "x", "float64, or float32 but for cos and sin");
  const long step = row_step(x, "x"), out_step = row_step(out, "out");
  expect(out.dtype() == x.dtype() && out.ndim() == x.ndim() && out.shape(0) == x.shape(0) &&
             out.shape(out.ndim() - 1) == x.shape(x.ndim() - 1),
         "out", "of the shape and dtype of x");
  const gramian::Isa& with = instructions(isa);
  const long rows = x.ndim() == 2 ? long(x.shape(0)) : 1, n = long(x.shape(x.ndim() - 1));
  const void* from = x.data();
  void* to = out.data();
  nb::gil_scoped_release released;
  for (long i = 0; n > 0 && i < rows; i++) {
    if (single)
      with.map_floats(f, static_cast<const float*>(from) + i * step,
                      static_cast<float*>(to) + i * out_step, n);
    else
      with.map_doubles(f, static_cast<const double*>(from) + i * step,
                       static_cast<double*>(to) + i * out_step, n);
  }
}

template <class T>
gramian::Compressed<T> compressed(const Indices& start, const Indices& column, const Array& value,
                                  long columns, const char* name) {
  expect(start.shape(0) > 0 && value.ndim() == 1 && column.shape(0) == value.shape(0) &&
             is(value.dtype(), 8 * sizeof(T)),
         name, "row starts, and as many columns as values, of the dtype of out");
  const gramian::Compressed<T> found{
      reinterpret_cast<const long*>(start.data()), reinterpret_cast<const long*>(column.data()),
      static_cast<const T*>(value.data()), long(start.shape(0)) - 1, columns,
      long(value.shape(0))};
  expect(found.valid(), name, "a matrix in compressed sparse row form");
  return found;
}

// The right side of sparse products.
class SparseRight {
 public:
  SparseRight(const std::string& isa, const Indices& start, const Indices& column,
              const Array& value, long columns) {
    const gramian::Isa& with = instructions(isa);
    expect(columns >= 0 && columns <= std::numeric_limits<int>::max(), "columns",
           "a number of 32 bits");
    if (is(value.dtype(), 32))
      single_.emplace(compressed<float>(start, column, value, columns, "the right matrix"),
                      with.add_floats);
    else
      double_.emplace(compressed<double>(start, column, value, columns, "the right matrix"),
                      with.add_doubles);
  }

  void product(const Indices& start, const Indices& column, const Array& value,
               const Output& out) const {
    if (single_)
      product_of(*single_, start, column, value, out);
    else
      product_of(*double_, start, column, value, out);
  }

 private:
  template <class T>
  static void product_of(const gramian::Right<T>& right, const Indices& start,
                         const Indices& column, const Array& value, const Output& out) {
    const auto left = compressed<T>(start, column, value, right.rows(), "the left matrix");
    const gramian::Points found = points(out, "out");
    expect(found.single == (sizeof(T) == 4) && found.n == left.rows && found.d == right.columns(),
           "out", "of the shape and dtype of the product");
    nb::gil_scoped_release released;
    right.product(left, static_cast<T*>(out.data()));
  }

  std::optional<gramian::Right<float>> single_;
  std::optional<gramian::Right<double>> double_;
};

// The columns that occur in some sparse rows, by numbers in the order in which they come.
class Columns {
  template <class Use>
  static auto with(const Indices& start, const Indices& column, const Array& value, Use use) {
    constexpr long ANY = std::numeric_limits<long>::max();
    if (is(value.dtype(), 32)) {
      const auto left = compressed<float>(start, column, value, ANY, "the left matrix");
      nb::gil_scoped_release released;
      return use(left);
    }
    const auto left = compressed<double>(start, column, value, ANY, "the left matrix");
    nb::gil_scoped_release released;
    return use(left);
  }

 public:
  Columns(const Indices& known, const IndexOutput& out) {
    const size_t count = known.shape(0);
    const long* there = reinterpret_cast<const long*>(known.data());
    expect(out.shape(0) == count, "out", "as long as the columns");
    expect(std::all_of(there, there + count, [](long value) { return value >= 0; }), "columns",
           "not negative");
    nb::gil_scoped_release released;
    long* found = reinterpret_cast<long*>(out.data());
    for (size_t i = 0; i < count; ++i) found[i] = numbers_.add(there[i]);
  }

  long count() const { return numbers_.count(); }

  long narrow(const Indices& start, const Indices& column, const Array& value,
              const IndexOutput& out_start, const IndexOutput& out_column,
              const Output& out_value) const {
    expect(out_start.shape(0) == start.shape(0) && out_column.shape(0) == column.shape(0) &&
               out_value.size() == value.size() && out_value.dtype() == value.dtype(),
           "out", "as long as what is given, and of its dtype");
    long* starts = reinterpret_cast<long*>(out_start.data());
    long* columns = reinterpret_cast<long*>(out_column.data());
    return with(start, column, value, [&](const auto& left) {
      using T = std::remove_const_t<std::remove_pointer_t<decltype(left.value)>>;
      return gramian::narrow(left, numbers_, starts, columns, static_cast<T*>(out_value.data()));
    });
  }

  void normal(const Indices& start, const Indices& column, const Array& value, const Given& w,
              const Given& weights, const Given& targets, const Output& out) const {
    expect(out.ndim() == 2 && out.shape(1) > 0, "out", "a matrix with columns");
    const long t = long(out.shape(1)), rows = long(start.shape(0)) - 1;
    double* sums = doubles(Outputs(out), "out", count(), t);
    const double* v = doubles(w, "w", count(), t);
    const double* scale = doubles(weights, "weights", rows, 1);
    const double* y = doubles(targets, "targets", rows, t);
    if (count() == 0) return;  // an array without rows may declare any number of targets
    with(start, column, value, [&](const auto& left) {
      gramian::factored_normal(left, numbers_, v, scale, y, t, sums);
    });
  }

 private:
  gramian::Numbers numbers_;
};

// Lets what is too small be zero in this thread from now on, also outside this module.
void flush_denormals() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
  unsigned long flags;
  asm volatile("mrs %0, fpcr" : "=r"(flags));
  asm volatile("msr fpcr, %0" ::"r"(flags | (1ul << 24)));
#endif
}

// Exchanges number i with number i + offset[i], one after the other, as Fisher and Yates do.
void permute(const Indices& offset, const IndexOutput& out) {
  const long steps = length(offset, "offset"), n = length(out, "out");
  int64_t* order = out.data();
  for (long i = 0; i < steps; ++i) {
    const long other = offset.data()[i];
    expect(other >= 0 && i < n && other < n - i, "offset", "of numbers that exist");
    std::swap(order[i], order[i + other]);
  }
}

// What numpy.interp gives for one number, to the last bit: `at` and `value` return number i of n.
template <class At, class Value>
double interpolate(double x, long j, long n, At at, Value value) {
  if (j < 0) return value(0);
  if (j >= n - 1) return value(n - 1);
  if (at(j) == x) return value(j);
  const double slope = (value(j + 1) - value(j)) / (at(j + 1) - at(j));
  const double forth = slope * (x - at(j)) + value(j);
  if (!std::isnan(forth)) return forth;
  const double back = slope * (x - at(j + 1)) + value(j + 1);
  return std::isnan(back) && value(j) == value(j + 1) ? value(j) : back;
}

// The share of a distribution below a number, by its quantiles and their levels: the mean of the
// interpolations from below and from above, which differ at quantiles that are equal.
double share(double x, const double* q, const double* levels, long n) {
  if (std::isnan(x)) return x;
  const double* next = std::upper_bound(q, q + n, x);
  const bool tied = next != q && next[-1] == x;
  const double* not_below = tied ? std::lower_bound(q, next, x) : next;
  const double above = interpolate(
      x, next - q - 1, n, [&](long i) { return q[i]; }, [&](long i) { return levels[i]; });
  const double below = interpolate(
      -x, n - 1 - (not_below - q), n, [&](long i) { return -q[n - 1 - i]; },
      [&](long i) { return 1 - levels[n - 1 - i]; });
  return (above + (1 - below)) / 2;
}

void quantile_shares(const Array& x, const Array& quantiles, const Vectors& levels,
                     const Output& out) {
  const gramian::Points numbers = points(x, "x"), table = points(quantiles, "quantiles");
  const long b = numbers.n, p = numbers.d, q = table.d;
  expect(!numbers.single && !table.single && table.n == p && q > 0, "x and quantiles",
         "float64, with as many features as there are rows of quantiles");
  expect(long(levels.shape(0)) == q, "levels", "as many as quantiles of a feature");
  expect(is(out.dtype(), 64) && holds(out.size(), b, p), "out", "float64, of the shape of x");
  const auto* values = static_cast<const double*>(numbers.data);
  const auto* sorted = static_cast<const double*>(table.data);
  double* shares = static_cast<double*>(out.data());
  nb::gil_scoped_release released;
  for (long i = 0; i < b; ++i)
    for (long j = 0; j < p; ++j)
      shares[i * p + j] = share(values[i * p + j], sorted + j * q, levels.data(), q);
}

}  // namespace

NB_MODULE(_native, m) {
  const auto OUT = nb::arg("out").noconvert();
  m.doc() = "Compiled tiles of kernel matrices; see gramian.operators.NativeEngine.";
  m.def("instructions", isa_names,
        "Return the instruction sets that this machine has, best first.");
  m.def("kernels", kernel_names, "Return the names of the kernels that have tiles.");
  m.def("slopes", slope_names, "Return the names of those of them that have gradients.");
  m.def("splits", splits, "Return whether products of bfloat16 pieces are among these.");
  m.def("reach", reach, "Return the largest sum of the powers of the coordinates of a row, scaled.");
  m.def("flush_denormals", flush_denormals, "Set numbers that are too small to 0 in this thread.");
  m.def("permute_", permute, nb::arg("offset"), OUT, "Exchange number i with number i + offset[i].");
  m.def("map_", map, nb::arg("instructions"), nb::arg("function"),
        nb::arg("x").noconvert(), OUT,
        "Write exp, log1p, asin, cos or sin of numbers to `out`, which may be their memory.");
  m.def("quantile_shares", quantile_shares, nb::arg("x"), nb::arg("quantiles"), nb::arg("levels"),
        OUT, "Write the share of each feature's distribution below each number to `out`.");
  m.def("multiply_stored", multiply_stored, nb::arg("instructions"), nb::arg("entries"),
        nb::arg("numbers").none(), nb::arg("start"), nb::arg("stop"), nb::arg("v").none(),
        nb::arg("weights").none(), nb::arg("targets").none(), nb::arg("products").none().noconvert(),
        nb::arg("sums").none().noconvert(), nb::arg("t"), nb::arg("chained"),
        "Write E v of rows start to stop to `products`; add E' W (E v - y) to `sums`.");
  nb::class_<Columns>(m, "Columns", "The columns that occur in some rows; their numbers to `out`.")
      .def(nb::init<const Indices&, const IndexOutput&>(), nb::arg("columns"), OUT)
      .def_prop_ro("count", &Columns::count, "How many there are.")
      .def("narrow", &Columns::narrow, nb::arg("start"), nb::arg("column"), nb::arg("value"),
           nb::arg("out_start").noconvert(), nb::arg("out_column").noconvert(),
           nb::arg("out_value").noconvert(),
           "Write the entries in these columns, with their numbers; return how many there are.")
      .def("normal", &Columns::normal, nb::arg("start"), nb::arg("column"), nb::arg("value"),
           nb::arg("w").none(), nb::arg("weights").none(), nb::arg("targets").none(), OUT,
           "Add X' W (X w - y), of the entries X in these columns, to `out`.");
  nb::class_<SparseRight>(m, "SparseRight", "The right matrix of products of sparse matrices.")
      .def(nb::init<const std::string&, const Indices&, const Indices&, const Array&, long>())
      .def("product", &SparseRight::product, nb::arg("start"), nb::arg("column"),
           nb::arg("value"), OUT,
           "Write the product of a matrix, given as row starts, columns and values, to `out`.");
  nb::class_<Plan>(m, "Plan", "One kernel and the columns of a matrix, on one instruction set.")
      .def(nb::init<const std::string&, const std::string&, double, double, double, bool, bool,
                    const Array&, const Vectors&, const Vectors&, const Given&, long, int,
                    double>(),
           nb::arg("instructions"), nb::arg("kernel"), nb::arg("first"), nb::arg("second"),
           nb::arg("scale"), nb::arg("difference"), nb::arg("single"), nb::arg("z"),
           nb::arg("origin"), nb::arg("factor"), nb::arg("diagonal").none(), nb::arg("offset"),
           nb::arg("pieces"), nb::arg("near"))
      .def_prop_ro("width", &Plan::width, "The columns, rounded up to whole panels.")
      .def("pack", &Plan::pack, "Centre, scale and store columns start to stop.")
      .def("matvec", &Plan::matvec, nb::arg("x"), nb::arg("start"), nb::arg("stop"), nb::arg("v"),
           OUT, "Write K v of rows start to stop to `out`.")
      .def("normal", &Plan::normal, nb::arg("x"), nb::arg("start"), nb::arg("stop"),
           nb::arg("v").none(), nb::arg("weights").none(), nb::arg("targets").none(), OUT,
           "Write K' W (K v - y) of rows start to stop to `out`.")
      .def("symmetric", &Plan::symmetric, nb::arg("x"), nb::arg("first"), nb::arg("step"),
           nb::arg("v"), OUT,
           "Add to `out` what some strips of the upper triangle give of K v.")
      .def("block", &Plan::block, nb::arg("x"), nb::arg("start"), nb::arg("stop"), OUT,
           "Write rows start to stop of K to `out`.")
      .def("gradients", &Plan::gradients, nb::arg("x"), nb::arg("start"), nb::arg("stop"),
           nb::arg("z"), nb::arg("v"), OUT,
           "Write the gradients of K v at rows start to stop to `out`; z are the columns.")
      .def("stop", &Plan::stop, "Let calls under way, and all later ones, raise RuntimeError.");
}
