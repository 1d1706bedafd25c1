// What each instruction set has for entries that are in memory: each row of them is read once, for
// the product with it and for what it adds to the sums.
#pragma once

#include <algorithm>
#include <vector>

#include "isa.h"
#include "vector.h"

namespace {

constexpr long GROUP = 8;            // rows that share what is read of v and of the sums
constexpr long FLOAT_TERMS = 256;    // of a sum in the dtype of the entries, in each lane
constexpr long LINE = 64;            // bytes that are read from memory at once

// sums[g] = row g times v, for `count` <= GROUP rows of m numbers.
template <class S>
void group_products(const S* const* rows, long count, const S* v, long m, double* sums) {
  using V = Vector<S>;
  for (long g = 0; g < count; g++) sums[g] = 0;
  constexpr long COLUMNS = FLOAT_TERMS * V::W;
  for (long start = 0; start < m; start += COLUMNS) {
    const long stop = std::min(start + COLUMNS, m);
    long j = start;
    typename V::R lanes[GROUP] = {};
    for (; j + V::W <= stop; j += V::W) {
      const auto factor = V::load(v + j);
      GRAMIAN_UNROLL for (long g = 0; g < GROUP; g++) lanes[g] += factor * V::load(rows[g] + j);
    }
    for (long g = 0; g < count; g++) {
      double sum = V::sum(lanes[g]);
      for (long k = j; k < stop; k++) sum += double(rows[g][k]) * double(v[k]);
      sums[g] += sum;
    }
  }
}

// out (m) += the sum of GROUP rows, each times its factor; `next` are rows to be read meanwhile.
template <class S>
void add_group(S* out, const S* const* rows, const S* factors, const S* const* next, long m) {
  using V = Vector<S>;
  constexpr long AHEAD = LINE / long(sizeof(S));
  typename V::R all[GROUP];
  GRAMIAN_UNROLL for (long g = 0; g < GROUP; g++) all[g] = V::all(factors[g]);
  long j = 0;
  for (; j + AHEAD <= m; j += AHEAD) {
    GRAMIAN_UNROLL for (long g = 0; g < GROUP; g++) __builtin_prefetch(next[g] + j, 0, 2);
    GRAMIAN_UNROLL for (long l = 0; l < AHEAD; l += V::W) {
      auto sum = V::load(out + j + l);
      GRAMIAN_UNROLL for (long g = 0; g < GROUP; g++) sum += all[g] * V::load(rows[g] + j + l);
      V::store(out + j + l, sum);
    }
  }
  for (; j < m; j++)
    for (long g = 0; g < GROUP; g++) out[j] += factors[g] * rows[g][j];
}

// The rows of a group; beyond the last one it is repeated, with factors of zero.
template <class S>
struct Group {
  const S* rows[GROUP];
  long count;

  Group(const gramian::Stored& E, long first)
      : count(std::max(0l, std::min(GROUP, E.stop - first))) {
    for (long g = 0; g < GROUP; g++) {
      const long i = std::min(first + g, E.stop - 1);
      rows[g] = static_cast<const S*>(E.entries) + (E.numbers ? E.numbers[i] : i) * E.m;
    }
  }
};

template <class S>
void multiply(const gramian::Stored& E, const gramian::Factors& with) {
  const long t = with.t, k = with.columns;
  const S* v = static_cast<const S*>(with.v);
  std::vector<S> sums(static_cast<size_t>(with.sums ? t * k : 0));
  std::vector<double> products(static_cast<size_t>(t * GROUP));
  const auto flush = [&] {
    for (size_t j = 0; j < sums.size(); j++) with.sums[j] += double(sums[j]), sums[j] = 0;
  };
  for (long first = E.start; first < E.stop; first += GROUP) {
    const Group<S> group(E, first), next(E, std::min(first + GROUP, E.stop - 1));
    for (long c = 0; c < t; c++) {
      double* p = products.data() + c * GROUP;
      if (v != nullptr) group_products(group.rows, group.count, v + c * E.m, E.m, p);
      for (long g = 0; g < group.count && with.products; g++)
        with.products[(first - E.start + g) * t + c] = p[g];
    }
    if (!with.sums) continue;
    for (long c = 0; c < t; c++) {
      S u[GROUP] = {};
      for (long g = 0; g < group.count; g++) {
        double value = with.chained ? products[size_t(c * GROUP + g)] : 0;
        if (with.targets) value -= with.targets[(first + g) * t + c];
        u[g] = S(with.weights ? value * with.weights[first + g] : value);
      }
      add_group(sums.data() + c * k, group.rows, u, c + 1 < t ? group.rows : next.rows, k);
    }
    if ((first - E.start) % FLOAT_TERMS == FLOAT_TERMS - GROUP) flush();
  }
  flush();
}

void multiply_stored(const gramian::Stored& E, const gramian::Factors& with) {
  E.single ? multiply<float>(E, with) : multiply<double>(E, with);
}

}  // namespace
