// Products of sparse matrices with dense results: rows of the right one are added up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

// Numbers of values in the order in which they come, by a hash table that is half empty at least.
// It keeps 32 bits of a value, so that it stays in the cache; where values have more, they are
// compared once more.
class Numbers {
 public:
  Numbers() { resize(); }

  // The number of a value, none of which is negative; a new one gets the next number.
  long add(long value) {
    wide_ = wide_ || value >> 32;
    Slot& slot = slots_[place(value)];
    if (slot.number != NONE) return slot.number;
    values_.push_back(value);
    put(count() - 1);
    if (2 * values_.size() > slots_.size()) {
      ++bits_;
      resize();
      for (long number = 0; number < count(); ++number) put(number);
    }
    return count() - 1;
  }

  // Whether a value may have a number: most of those that have none are known by a bit.
  bool maybe(long value) const {
    const std::uint64_t hash = mixed(value);
    return seen_[word(hash)] & bit(hash);
  }

  // The number of a value; -1 of one that was not added.
  long operator()(long value) const {
    return !wide_ && value >> 32 ? NONE : slots_[place(value)].number;
  }

  long count() const { return long(values_.size()); }

 private:
  struct Slot {
    std::uint32_t low;
    std::int32_t number;
  };
  static constexpr std::int32_t NONE = -1;

  void resize() {
    slots_.assign(size_t(1) << bits_, Slot{0, NONE});
    seen_.assign(slots_.size() >> 3, 0);  // eight bits for each slot
  }

  void put(long number) {
    const long value = values_[size_t(number)];
    const std::uint64_t hash = mixed(value);
    slots_[place(value)] = {std::uint32_t(value), std::int32_t(number)};
    seen_[word(hash)] |= bit(hash);
  }

  static std::uint64_t mixed(long value) { return std::uint64_t(value) * 0x9e3779b97f4a7c15ull; }
  size_t word(std::uint64_t hash) const { return size_t(hash >> (64 - bits_)) >> 3; }
  static std::uint64_t bit(std::uint64_t hash) { return std::uint64_t(1) << (hash >> 20 & 63); }

  bool holds(const Slot& slot, long value) const {
    return slot.low == std::uint32_t(value) && (!wide_ || values_[size_t(slot.number)] == value);
  }

  size_t place(long value) const {
    size_t at = size_t(mixed(value) >> (64 - bits_));
    while (slots_[at].number != NONE && !holds(slots_[at], value)) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  int bits_ = 3;
  bool wide_ = false;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> seen_;
  std::vector<long> values_;
};

// The entries of rows that are in columns with a number, one row after the other. What comes next
// does not depend on what is found, so that the processor looks for many columns at once.
template <class T>
class Finder {
 public:
  Finder(const Compressed<T>& rows, const Numbers& numbers) : rows_(rows), numbers_(numbers) {
    long most = 0;
    for (long i = 0; i < rows.rows; ++i) most = std::max(most, rows.start[i + 1] - rows.start[i]);
    likely_.resize(size_t(most));
  }

  // Writes those of row i to column and value, with room for all of them: how many there are.
  long row(long i, long* column, T* value) {
    long count = 0, kept = 0;
    for (long k = rows_.start[i]; k < rows_.start[i + 1]; ++k) {
      likely_[size_t(count)] = k;
      count += numbers_.maybe(rows_.column[k]);
    }
    for (long c = 0; c < count; ++c) {
      const long k = likely_[size_t(c)], number = numbers_(rows_.column[k]);
      column[kept] = number;
      value[kept] = rows_.value[k];
      kept += number >= 0;
    }
    return kept;
  }

  size_t longest() const { return likely_.size(); }

 private:
  const Compressed<T>& rows_;
  const Numbers& numbers_;
  std::vector<long> likely_;
};

// Leaves out entries of `left` whose columns have no number. Writes to start, column and value, with
// room for all entries, and returns how many are left.
template <class T>
long narrow(const Compressed<T>& left, const Numbers& numbers, long* start, long* column,
            T* value) {
  Finder<T> finder(left, numbers);
  start[0] = 0;
  for (long i = 0; i < left.rows; ++i)
    start[i + 1] = start[i] + finder.row(i, column + start[i], value + start[i]);
  return start[left.rows];
}

// out (u, t) += X' W (X w - y), for the entries X of rows whose columns have one of u numbers; y
// (rows, t), w (u, t) or the weights W may be null.
template <class T>
void factored_normal(const Compressed<T>& rows, const Numbers& numbers, const double* w,
                     const double* weights, const double* targets, long t, double* out) {
  Finder<T> finder(rows, numbers);
  std::vector<long> column(finder.longest());
  std::vector<T> value(finder.longest());
  std::vector<double> u(static_cast<size_t>(t));
  for (long i = 0; i < rows.rows; ++i) {
    const long kept = finder.row(i, column.data(), value.data());
    for (long c = 0; c < t; ++c) {
      double sum = 0;
      if (w != nullptr)
        for (long k = 0; k < kept; ++k)
          sum += double(value[size_t(k)]) * w[column[size_t(k)] * t + c];
      if (targets != nullptr) sum -= targets[i * t + c];
      u[size_t(c)] = weights == nullptr ? sum : sum * weights[i];
    }
    for (long k = 0; k < kept; ++k)
      for (long c = 0; c < t; ++c)
        out[column[size_t(k)] * t + c] += double(value[size_t(k)]) * u[size_t(c)];
  }
}

// Adds multiples of rows of n numbers to `out`: an instruction set's own, see isa.h.
template <class T>
using AddRows = void (*)(T* out, const T* const* rows, const T* factors, long count, long n);

// A sparse matrix on the right of products. Rows that are an eighth full or more are kept without
// gaps: adding a multiple of one is then a loop over vectors.
template <class T>
class Right {
 public:
  Right(const Compressed<T>& matrix, AddRows<T> add) : columns_(matrix.columns), add_(add) {
    start_.assign(1, 0);
    full_.assign(size_t(matrix.rows), -1);
    long held = 0;
    for (long i = 0; i < matrix.rows; ++i) {
      const long first = matrix.start[i], last = matrix.start[i + 1];
      if (FULL * (last - first) >= columns_) {
        full_[size_t(i)] = held++;
        rows_.resize(size_t(held * columns_));
        T* row = rows_.data() + (held - 1) * columns_;
        for (long k = first; k < last; ++k) row[matrix.column[k]] += matrix.value[k];
      } else {
        for (long k = first; k < last; ++k)
          entries_.push_back({int(matrix.column[k]), matrix.value[k]});
      }
      start_.push_back(long(entries_.size()));
    }
  }

  long rows() const { return long(full_.size()); }
  long columns() const { return columns_; }

  // Writes left times this to `out`, of left.rows x columns numbers. Each row is summed where it is
  // written, in the order of the entries of `left`, but for full rows, which come last.
  void product(const Compressed<T>& left, T* out) const {
    std::vector<const T*> rows;
    std::vector<T> factors;
    for (long i = 0; i < left.rows; ++i, out += columns_) {
      rows.clear(), factors.clear();
      std::fill(out, out + columns_, T(0));
      for (long k = left.start[i]; k < left.start[i + 1]; ++k) {
        const T factor = left.value[k];
        const size_t row = size_t(left.column[k]);
        if (full_[row] >= 0) {
          rows.push_back(rows_.data() + full_[row] * columns_);
          factors.push_back(factor);
        }
        for (long j = start_[row]; j < start_[row + 1]; ++j)
          out[entries_[size_t(j)].column] += factor * entries_[size_t(j)].value;
      }
      add_(out, rows.data(), factors.data(), long(rows.size()), columns_);
    }
  }

 private:
  static constexpr long FULL = 8;
  struct Entry {
    int column;
    T value;
  };

  long columns_;
  AddRows<T> add_;
  std::vector<long> start_, full_;
  std::vector<Entry> entries_;
  std::vector<T> rows_;
};

}  // namespace gramian
