// What an instruction set offers to the Python module: `make` prepares one kernel and room for the
// columns of a matrix; the verbs of what it returns work on ranges of its rows, in one thread.
#pragma once

#include <atomic>
#include <vector>

namespace gramian {

struct Points {  // n rows of d features, one after the other
  const void* data;
  bool single;  // float32, or else float64
  long n, d;
};

struct Request {
  const char* kernel;
  double first, second;  // parameters beside the lengthscale
  double scale;          // of a radial kernel
  bool difference;       // squared distances from differences, or else from norms and a product
  bool single;           // compute in float32, or else in float64
  const double *origin, *factor;  // coordinates are (x - origin) * factor, for each feature
  const void* diagonal;           // of the dtype of the tiles; or null: no row is a column
  long offset;                    // row i is column i + offset
  int pieces;   // 2 or 3: products are of so many bfloat16 pieces of float32; or 0: they are not
  double near;  // of these: pairs with s < near |x|^2 come from differences if the kernel is sharp
};

struct Rows {
  Points x;
  long start, stop;
};

// K of some rows and all columns. Vectors have t columns; all but the sums are of the dtype in
// which the tiles are computed. Verbs that multiply return false if they were told to stop: what
// they have written is then of no use.
class Tiles {
 public:
  virtual ~Tiles();  // in isa.cpp, and with it the table of this class
  // From any thread: verbs under way and all later ones return, in less than a millisecond.
  void stop();
  virtual long width() const = 0;  // the columns, rounded up to whole panels
  // All columns must be packed before anything is multiplied; `start` is a multiple of 48.
  virtual void pack_columns(Points z, long start, long stop) = 0;
  // out (stop - start, t) = K v, for v as (t, width), zero where there is no column
  virtual bool matvec(Rows, const void* v, long t, double* out) const = 0;
  // out (t, m) = K' W (K v - y), for y (n, t) and w (n) if they are not null, nor v
  virtual bool normal(Rows, const void* v, const void* weights, const void* targets, long t,
                      double* out) const = 0;
  // out (t, m) += the part of K v that strips first, first + step, ... of the upper triangle give
  virtual bool symmetric(Points x, long first, long step, const void* v, long t,
                         double* out) const = 0;
  // out (stop - start, m) = K
  virtual bool block(Rows, void* out) const = 0;
  // out (stop - start, t, d) = the gradients of K v at the rows; z are the columns, as packed.
  // Where there are pieces, or the kernel has no slope: false.
  virtual bool gradients(Rows, Points z, const void* v, long t, double* out) const = 0;

 protected:
  std::atomic<bool> stopped_{false};
};

struct Stored {  // entries of some rows, from `start` to `stop`, and m columns
  const void* entries;
  bool single;  // float32, or else float64
  long m;
  const long* numbers;  // which rows they are; all of them, in order, if null
  long start, stop;
};

struct Factors {  // what entries are multiplied by: vectors of t columns
  const void* v;  // (t, m) of the dtype of the entries, or null
  const double *weights, *targets;  // W (rows) and y (rows, t), or null
  bool chained;                     // whether sums are of E v, too: there is v then
  long t, columns;                  // the sums are those of the first columns of E
  double* products;                 // (stop - start, t) = E v, or null
  double* sums;                     // (t, columns) += E' W (E v - y), or null
};

enum class Function { exp, log1p, asin, cos, sin };

struct Isa {
  const char* name;
  bool splits;  // has products of bfloat16 pieces, for radial kernels and float32
  Tiles* (*make)(const Request&, Points z);  // null if there is no such kernel
  // The largest sum over the features of the `power` of the coordinates' sizes: 1, 2 or 4.
  double (*reach)(Points, const double* origin, const double* factor, int power);
  void (*kernels)(void* list, void (*add)(void* list, const char* name, bool has_slope));
  // out (n) += the sum of `count` rows of n numbers, each times its factor
  void (*add_floats)(float* out, const float* const* rows, const float* factors, long count,
                     long n);
  void (*add_doubles)(double* out, const double* const* rows, const double* factors, long count,
                      long n);
  void (*multiply_stored)(const Stored&, const Factors&);
  // out (n) = the function of x (n), which may be the same memory; of float32 not the last two.
  void (*map_floats)(Function, const float* x, float* out, long n);
  void (*map_doubles)(Function, const double* x, double* out, long n);
};

extern const Isa amx, avx512, avx2, portable, emulated;

// Those that this machine has, best first; the emulation is not one of them.
std::vector<const Isa*> present();

}  // namespace gramian
