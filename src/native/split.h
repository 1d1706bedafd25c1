// Rows and columns as sums of two or three bfloat16 pieces, in the tiles of a matrix unit.
//
// A float32 coordinate is the sum of three pieces, each the nearest bfloat16 number to what the
// ones before leave. Two pieces leave 2^-18 of it at most; norms are then of the sum of the two.
#pragma once

#include "matrix_unit.h"
#include "pack.h"

namespace {

constexpr int PIECES = 3;                 // at most
constexpr long PANEL_TILES = 3;           // tiles of a panel of columns, side by side
constexpr long PANEL = PANEL_TILES * SIDE;

// Splits DEPTH numbers, which become the sum of their pieces.
inline void split(float* x, int pieces, Bfloat16 (*out)[DEPTH]) {
  float rest[DEPTH];
  std::memcpy(rest, x, sizeof rest);
  for (int p = 0; p < pieces; p++)
    for (long k = 0; k < DEPTH; k++) {
      std::uint32_t bits;
      std::memcpy(&bits, &rest[k], sizeof bits);
      bits += 0x7fff + (bits >> 16 & 1);  // ties to even
      out[p][k] = Bfloat16(bits >> 16);
      rest[k] -= number(out[p][k]);
    }
  for (long k = 0; k < DEPTH; k++) x[k] -= rest[k];
}

// The place of feature k of a row, or of a column, in the tiles of one piece of DEPTH features.
constexpr long row_place(long i, long k) { return i * DEPTH + k; }
constexpr long column_place(long j, long k) {
  return j / SIDE * TILE + k / 2 * DEPTH + j % SIDE * 2 + k % 2;
}

// Writes a tile of rows, or a panel of columns: for each DEPTH features the tiles of each piece.
template <bool COLUMNS, class In>
void split_panel(const In* x, long rows, long d, const double* origin, const double* factor,
                 double norm_sign, int pieces, Bfloat16* panel, float* norms) {
  constexpr long side = COLUMNS ? PANEL : SIDE, size = side * DEPTH;
  double sizes[side] = {};
  std::memset(panel, 0, sizeof(Bfloat16) * size_t(round_up(d, DEPTH) * side * pieces));
  for (long start = 0; start < d; start += DEPTH, panel += size * pieces)
    for (long i = 0; i < rows; i++) {
      float some[DEPTH] = {};
      Bfloat16 split_into[PIECES][DEPTH];
      coordinates(x + i * d + start, smaller(DEPTH, d - start), origin + start, factor + start,
                  some);
      split(some, pieces, split_into);
      sizes[i] += norm<Norm::squares, float>(some, DEPTH);
      for (int p = 0; p < pieces; p++)
        for (long k = 0; k < DEPTH; k++)
          panel[p * size + (COLUMNS ? column_place(i, k) : row_place(i, k))] = split_into[p][k];
    }
  for (long i = 0; i < side; i++) norms[i] = float(norm_sign * sizes[i]);
}

template <bool COLUMNS>
void pack_split(gramian::Points points, long start, long stop, const double* origin,
                const double* factor, double norm_sign, int pieces, Bfloat16* panels,
                float* norms) {
  constexpr long side = COLUMNS ? PANEL : SIDE;
  const long d = points.d, row = round_up(d, DEPTH) * pieces;
  with_data(points, [&](const auto* x) {
    for (long i = start; i < stop; i += side)
      split_panel<COLUMNS>(x + i * d, smaller(side, stop - i), d, origin, factor, norm_sign,
                           pieces, panels + (i - start) * row, norms + (i - start));
  });
}

}  // namespace
