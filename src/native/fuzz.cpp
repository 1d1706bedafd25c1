// Runs the verbs on random problems, and compares what they give with plain loops in float64: to be
// built with sanitizers. `fuzz SEED CASES`: case k has the seed SEED + k, so that `fuzz ITS_SEED 1`
// repeats a case alone. A report of a sanitizer ends the program; the seed of the case is printed.
// Workers share the rows, and now and then they are told to stop.
#include <sanitizer/common_interface_defs.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "random_problem.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

std::uint64_t seed;
int failures = 0;

void report_seed() {
  std::fprintf(stderr, "in the case of fuzz %llu 1\n", (unsigned long long)seed);
}

// Flushes denormal numbers to zero in this thread, as the module does, or does not.
class Flush {
#if defined(__x86_64__)
 public:
  explicit Flush(bool flush) : before_(_mm_getcsr()) {
    _mm_setcsr(flush ? before_ | 0x8040 : before_);
  }
  ~Flush() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#else
 public:
  explicit Flush(bool) {}
#endif
};

// One sum and the size of its terms.
struct Sum {
  double value = 0, size = 0;
  bool finite = true;
  void add(double a, double b, double a_size) {
    const double term = a * b;
    finite = finite && std::isfinite(term);
    value += term, size += a_size * std::fabs(b);
  }
};

void fail(const Case& at, const char* verb, long i, long j, double got, double expected) {
  if (failures++ < 20)
    std::printf("fuzz %llu 1: %s %s %s%s: [%ld, %ld] is %.9g instead of %.9g\n",
                (unsigned long long)seed, at.isa->name, at.kernel.c_str(),
                at.single ? "float32 " : "float64 ", verb, i, j, got, expected);
}

void compare(const Case& at, const char* verb, long i, long j, double got, const Sum& expected) {
  const double most = at.single ? 1e30 : 1e290;  // more may overflow, in one order or another
  if (!expected.finite) {
    if (std::isfinite(got) && std::fabs(got) < most) fail(at, verb, i, j, got, expected.value);
  } else if (expected.size < most) {
    if (!(std::fabs(got - expected.value) <= at.tolerance() * expected.size + at.tiny()))
      fail(at, verb, i, j, got, expected.value);
  }
}

// Runs work(worker) in one or more threads, of which some may be told to stop.
template <class Work>
void in_workers(long workers, bool flush, Work work) {
  const auto each = [&](long worker) {
    const Flush flushing(flush);
    work(worker);
  };
  if (workers == 1) return each(0);
  std::vector<std::thread> threads;
  for (long worker = 0; worker < workers; worker++) threads.emplace_back(each, worker);
  for (std::thread& thread : threads) thread.join();
}

enum class Stop { never, before, during };

void check_reach(Random& random, const Case& at, Matrix& x,
                 const std::vector<double>& coordinates) {
  const int power = 1 << random.below(3);
  double top = 0;
  for (long i = 0; i < x.n; i++) {
    double sum = 0;
    for (long k = 0; k < x.d; k++)
      sum += std::pow(std::fabs(coordinates[size_t(i * x.d + k)]), double(power));
    top = sum > top ? sum : top;
  }
  const double got = at.isa->reach(x.points(), at.origin.data(), at.factor.data(), power);
  if (got != top && !(std::fabs(got - top) <= 1e-12 * top)) fail(at, "reach", 0, 0, got, top);
}

// Errors are relative to what slopes may be: pairs next to each other are differences of much more.
template <class V>
void check_gradients(const Case& at, Matrix& x, Matrix& z, long start, long stop,
                     const std::vector<double>& coordinates, const std::vector<double>& columns,
                     long m, long t, long d, const std::vector<double>& got, V v) {
  std::vector<double> slope(static_cast<size_t>(d)), apart(slope.size());
  for (long i = start; i < stop; i++) {
    if (x.kinds[size_t(i)] != Rows::plain) continue;
    for (long c = 0; c < t; c++) {
      std::vector<Sum> sums(static_cast<size_t>(d));
      double steepest = 0, all = 0;
      for (double f : at.factor) steepest = f > steepest ? f : steepest;
      for (long j = 0; j < m; j++) {
        const double *a = coordinates.data() + i * d, *b = columns.data() + j * d;
        double size = 1, length = 0;
        at.entry(a, b, &size);
        for (long k = 0; k < d; k++)
          apart[size_t(k)] = (x.x[i * d + k] - z.x[j * d + k]) * at.factor[size_t(k)];
        at.slope(a, b, apart.data(), slope.data());
        for (long k = 0; k < d; k++) length += slope[size_t(k)] * slope[size_t(k)];
        if (at.inner) {  // the sum of the sizes of what an inner product is of
          size = at.kernel == "linear" ? 1 : at.first * std::pow(1 + size, 1.0);
          length = length > 1 ? length : 1;
        }
        all += std::fabs(v(j, c)) * (std::sqrt(length) + size * steepest);
        double square = 0, norm = 0;
        for (long k = 0; k < d; k++)
          square += apart[size_t(k)] * apart[size_t(k)], norm += a[k] * a[k];
        // a distance from norms and a product is rounded as they are: near a kink slopes feel it
        if (at.radial && square > 0)
          all += std::fabs(v(j, c)) * steepest *
                 std::fmin((at.single ? 1e-6 : 1e-15) * norm / square, 2) / at.tolerance();
        for (long k = 0; k < d; k++) {
          // coordinates are rounded: those next to each other may be equal, or not
          const double step = apart[size_t(k)], bound = at.single ? 1e-6 : 1e-14;
          const bool signs = !at.radial && !at.inner;
          const bool unsure = signs && step != 0 && std::fabs(step) < bound;
          if (signs && step == 0) continue;  // not even an infinite value counts
          sums[size_t(k)].add(slope[size_t(k)], v(j, c), 0);
          if (unsure) sums[size_t(k)].size += 2e9 * std::fabs(v(j, c));
        }
      }
      for (long k = 0; k < d; k++) {
        sums[size_t(k)].size += all;
        compare(at, "gradients", i, c * d + k, got[size_t(((i - start) * t + c) * d + k)],
                sums[size_t(k)]);
      }
    }
  }
}

void run_case() {
  Random random(seed);
  const Shape shape = some_shape(random);
  const Case at = some_case(random, shape.d);
  const long m = shape.m, n = at.square ? m : shape.n, d = shape.d, t = shape.t;
  const long hostile = random.one_of(4) ? random.between(1, 3) : 0;
  const bool hostile_values = random.one_of(6), flush = !random.one_of(3);
  Matrix z(random, random.one_of(2), m, d, random.one_of(2) ? hostile : 0, at.nonnegative);
  Matrix other(random, random.one_of(2), n, d, hostile, at.nonnegative);
  Matrix& x = at.square ? z : other;
  const std::vector<double> columns = at.coordinates(z), coordinates = at.coordinates(x);
  check_reach(random, at, x, coordinates);

  const bool shared = random.one_of(2);
  const long offset = !shared || at.square ? 0 : random.between(-n - 60, m + 60);
  Array diagonal(random, at.single, m);
  for (long j = 0; j < m; j++) diagonal.set(j, random.uniform(1, 2));
  const gramian::Request request{at.kernel.c_str(),
                                 at.first,
                                 at.second,
                                 at.radial ? at.scale : 1,
                                 at.pieces == 0 && random.one_of(2),
                                 at.single,
                                 at.origin.data(),
                                 at.factor.data(),
                                 shared ? diagonal.data() : nullptr,
                                 offset,
                                 at.pieces,
                                 random.uniform(0.01, 0.05)};
  const long workers = random.one_of(12) ? random.between(2, 4) : 1;
  const std::unique_ptr<gramian::Tiles> tiles(at.isa->make(request, z.points()));
  const long blocks = (m + BLOCK - 1) / BLOCK, parts = random.between(1, blocks);
  const auto block = [&](long part) { return BLOCK * (blocks * part / parts); };
  in_workers(workers, flush, [&](long worker) {
    for (long part = worker; part < parts; part += workers)
      tiles->pack_columns(z.points(), block(part), part + 1 < parts ? block(part + 1) : m);
  });

  const long width = tiles->width();
  Array v(random, at.single, t * width), y(random, at.single, n * t), w(random, at.single, n);
  for (long c = 0; c < t; c++)
    for (long j = 0; j < m; j++) v.set(c * width + j, value(random, hostile_values, at.single));
  for (long i = 0; i < n * t; i++) y.set(i, value(random, hostile_values, at.single));
  for (long i = 0; i < n; i++) w.set(i, value(random, hostile_values, at.single));
  // A worker that flushes reads a denormal number as zero, though it may meet a huge one.
  const double least = !flush ? 0 : at.single ? 0x1p-126 : 0x1p-1022;
  const auto seen = [&](double read) { return std::fabs(read) < least ? 0 : read; };

  const bool all = at.square || random.one_of(3);
  const long start = all ? 0 : random.between(0, n), stop = all ? n : random.between(start, n);
  const long count = stop - start;
  // Parts of the rows, one for each worker.
  const auto bound = [&](long worker) { return start + count * worker / workers; };
  const auto part = [&](long worker) {
    return gramian::Rows{x.points(), bound(worker), bound(worker + 1)};
  };

  Array K(random, at.single, count * m);
  std::vector<double> product(size_t(count * t), NaN), half(size_t(workers * t * m));
  std::vector<double> normal(half.size());
  const bool has_v = !random.one_of(6), has_w = random.one_of(2), has_y = random.one_of(2);
  const Stop when = random.one_of(30)   ? Stop::before
                    : random.one_of(60) ? Stop::during
                                        : Stop::never;
  const long strips = workers == 1 ? random.between(1, 4) : workers;
  std::vector<double> slopes(size_t(count * t * d), NaN);
  const bool differentiable = at.pieces == 0 && !at.nonnegative;
  bool finished[5][4] = {};
  const auto verbs = [&](long worker) {
    const gramian::Rows rows = part(worker);
    const long first = rows.start - start;
    char* entries = static_cast<char*>(K.data()) + first * m * (at.single ? 4 : 8);
    double* sums = normal.data() + worker * t * m;
    finished[0][worker] = tiles->block(rows, entries);
    finished[1][worker] = tiles->matvec(rows, v.data(), t, product.data() + first * t);
    finished[2][worker] =
        tiles->normal(rows, has_v ? v.data() : nullptr, has_w ? w.data() : nullptr,
                      has_y ? y.data() : nullptr, t, sums);
    finished[4][worker] = differentiable && tiles->gradients(rows, z.points(), v.data(), t,
                                                             slopes.data() + first * t * d);
    finished[3][worker] = true;
    if (!at.square) return;
    for (long strip = worker; strip < strips; strip += workers)
      finished[3][worker] &= tiles->symmetric(x.points(), strip, strips, v.data(), t,
                                              half.data() + worker * t * m);
  };
  if (when == Stop::before) tiles->stop();
  if (when == Stop::during) {
    std::thread stopper([&] { tiles->stop(); });
    in_workers(workers, flush, verbs);
    stopper.join();
  } else {
    in_workers(workers, flush, verbs);
  }
  bool complete[5] = {true, true, true, true, differentiable};
  for (long worker = 0; worker < workers; worker++)
    for (int verb = 0; verb < 5; verb++) {
      const bool some = finished[verb][worker];
      complete[verb] &= some;
      if (verb == 4 && (!differentiable || t == 0)) continue;
      const bool works =
          verb != 3 ? bound(worker) < bound(worker + 1) : worker * BLOCK < m && at.square;
      if (when != Stop::during && some != (when == Stop::never || !works))
        fail(at, "stop", verb, worker, some, !some);
    }

  // Entries. What is wild may be anything that a kernel can be.
  const auto kind = [&](long i, long j) {
    const Rows a = x.kinds[size_t(i)], b = z.kinds[size_t(j)];
    return shared && j == i + offset                ? Rows::plain
           : a == Rows::nan || b == Rows::nan       ? Rows::nan
           : a == Rows::wild || b == Rows::wild     ? Rows::wild
                                                    : Rows::plain;
  };
  if (!complete[0]) return;
  std::vector<double> sizes(size_t(count * m), 1);
  for (long i = start; i < stop; i++)
    for (long j = 0; j < m; j++) {
      const long k = (i - start) * m + j;
      const double got = K[k];
      Sum expected;
      expected.value = at.entry(coordinates.data() + i * d, columns.data() + j * d, &expected.size);
      if (shared && j == i + offset) expected.value = expected.size = diagonal[j];
      if (kind(i, j) == Rows::plain) compare(at, "block", i, j, got, expected);
      if (kind(i, j) == Rows::nan && !std::isnan(got)) fail(at, "block", i, j, got, NaN);
      if (kind(i, j) == Rows::wild && !at.inner && !at.nonnegative && !(std::isnan(got) || (got >= 0 && got <= at.most())))
        fail(at, "block", i, j, got, NaN);
      sizes[size_t(k)] = std::fabs(expected.value) + 0.1 * expected.size;
    }

  // Sums of these entries. In those of wild rows not even NaN is sure.
  if (z.any(Rows::wild)) return;
  std::vector<Sum> residual(size_t(count * t));
  for (long i = 0; i < count; i++)
    for (long c = 0; c < t; c++) {
      Sum sum;
      sum.finite = x.kinds[size_t(start + i)] != Rows::nan;  // whatever the diagonal says
      for (long j = 0; j < m; j++)
        sum.add(K[i * m + j], seen(v[c * width + j]), sizes[size_t(i * m + j)]);
      if (complete[1] && x.kinds[size_t(start + i)] != Rows::wild)
        compare(at, "matvec", start + i, c, product[size_t(i * t + c)], sum);
      if (complete[3] && at.square) {
        double total = 0;
        for (long worker = 0; worker < workers; worker++)
          total += half[size_t((worker * t + c) * m + i)];
        compare(at, "symmetric", i, c, total, sum);
      }
      if (!has_v) sum = Sum{};
      if (has_y) sum.add(-1, seen(y[(start + i) * t + c]), 1);
      const double weight = has_w ? seen(w[start + i]) : 1;
      Sum& u = residual[size_t(i * t + c)];
      u.value = sum.value * weight, u.size = sum.size * std::fabs(weight);
      u.finite = sum.finite && std::isfinite(u.value);
    }
  if (complete[4] && !z.any(Rows::nan)) check_gradients(at, x, z, start, stop, coordinates, columns,
                                                        m, t, d, slopes, [&](long j, long c) {
                                                          return seen(v[c * width + j]);
                                                        });
  for (long i = start; i < stop; i++)
    if (x.kinds[size_t(i)] == Rows::wild) return;
  for (long c = 0; c < t && complete[2]; c++)
    for (long j = 0; j < m; j++) {
      Sum sum;
      double got = 0;
      for (long i = 0; i < count; i++) {
        const Sum& u = residual[size_t(i * t + c)];
        const double k = K[i * m + j];
        sum.value += k * u.value, sum.size += sizes[size_t(i * m + j)] * u.size;
        sum.finite = sum.finite && u.finite && std::isfinite(k);
      }
      for (long worker = 0; worker < workers; worker++)
        got += normal[size_t((worker * t + c) * m + j)];
      compare(at, "normal", c, j, got, sum);
    }
}

}  // namespace

extern "C" void __ubsan_on_report() { report_seed(); }

int main(int count, char** given) {
  const std::uint64_t first = count > 1 ? std::strtoull(given[1], nullptr, 10) : 0;
  const std::uint64_t cases = count > 2 ? std::strtoull(given[2], nullptr, 10) : 10000;
  // failures are seen though a report ends the program
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  __sanitizer_set_death_callback(report_seed);
  for (seed = first; seed < first + cases; seed++) run_case();
  std::printf("%llu random cases, %d failures\n", (unsigned long long)cases, failures);
  return failures != 0;
}
