// Products of sparse matrices with dense results: entries of the right one are found by its rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gramian {

// A matrix in compressed sparse row form: the entries of row i are numbers start[i] to
// start[i + 1] - 1 of the columns and values.
template <class T>
struct Compressed {
  const long* start;
  const long* column;
  const T* value;
  long rows, columns, entries;

  // Whether starts increase from 0 to the entries, and all columns are there.
  bool valid() const {
    if (start[0] != 0 || start[rows] != entries) return false;
    for (long i = 0; i < rows; ++i)
      if (start[i] > start[i + 1]) return false;
    for (long k = 0; k < entries; ++k)
      if (column[k] < 0 || column[k] >= columns) return false;
    return true;
  }
};

// Writes left right to `out`, of left.rows x right.columns numbers. Each row is summed where it is
// written, in the order of the entries of `left`.
template <class T>
void product(const Compressed<T>& left, const Compressed<T>& right, T* out) {
  for (long i = 0; i < left.rows; ++i, out += right.columns) {
    std::fill(out, out + right.columns, T(0));
    for (long k = left.start[i]; k < left.start[i + 1]; ++k) {
      const T factor = left.value[k];
      const long row = left.column[k], stop = right.start[row + 1];
      for (long j = right.start[row]; j < stop; ++j)
        out[right.column[j]] += factor * right.value[j];
    }
  }
}

// Numbers of values among those that are known, by a hash table that is half empty at least.
class Numbers {
 public:
  Numbers(const long* known, long count) {
    size_t size = 2;
    while (size < 2 * size_t(count)) size *= 2;
    mask_ = size - 1;
    keys_.assign(size, NONE);
    numbers_.resize(size);
    for (long i = 0; i < count; ++i) {
      const size_t at = place(known[i]);
      keys_[at] = known[i];
      numbers_[at] = i;
    }
  }

  // The number of a value, none of which is negative; -1 of one that is not known.
  long operator()(long value) const {
    const size_t at = place(value);
    return keys_[at] == NONE ? -1 : numbers_[at];
  }

 private:
  static constexpr long NONE = -1;

  size_t place(long value) const {
    size_t at = (size_t(value) * 0x9e3779b97f4a7c15ull >> 20) & mask_;
    while (keys_[at] != NONE && keys_[at] != value) at = (at + 1) & mask_;
    return at;
  }

  size_t mask_;
  std::vector<long> keys_, numbers_;
};

}  // namespace gramian
