// The kernels. To add one of the distance: a struct here, and a line in `with_profile`.
//
// A radial profile is a function of s = unit scale |x - z|^2 / lengthscale^2, with the `scale` of
// the Python class; the `unit` brings s into the form that costs least here. With sign = -1 it is
// handed -s. Its coordinates are multiplied by the root of unit scale once, when rows are packed.
//
// `slope` is the derivative of `value`, of which `front` is a factor.
#pragma once

#include "vector.h"

namespace {

// What is added up over the features: squared differences, absolute ones, products; products and
// minima of which a share is taken; or fractions of sums, see `Chi2`.
enum class Form { radial, l1, inner, common, least, fractions };

constexpr bool has_share(Form form) { return form == Form::common || form == Form::least; }

// Parameters of a kernel beside the lengthscale, in the order of the fields of its Python class.
template <class S>
struct Parameters {
  S first, second;
};

constexpr double LOG2_E = 1.4426950408889634074, LN_2 = 0.69314718055994530942;

struct Profile {  // what a kernel has unless it says otherwise
  static constexpr Form form = Form::radial;
  static constexpr double unit = 1;
  static constexpr int sign = 1;
  static constexpr bool sharp = false;  // as `sharp` of the Python class
  static constexpr bool has_slope = true;
  static constexpr double front(Parameters<double>) { return 1; }
};

struct Gaussian : Profile {
  static constexpr double unit = LOG2_E;
  static constexpr int sign = -1;
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S>) {
    return V::exp2(V::exponent(s));
  }
  static constexpr double front(Parameters<double>) { return LN_2; }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R slope(R s, Parameters<S> given) {
    return value<V>(s, given);
  }
};

// sqrt(s), between 0 and where exp(-sqrt(s)) has underflowed.
template <class V>
GRAMIAN_INLINE typename V::R root(typename V::R s) {
  using S = typename V::Scalar;
  const S deepest = sizeof(S) == 4 ? S(2e4) : S(2e6);
  return V::sqrt(V::at_most(V::at_least(s, V::all(0)), V::all(deepest)));
}

struct Laplacian : Profile {
  static constexpr double unit = LOG2_E * LOG2_E;
  static constexpr bool sharp = true;
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S>) {
    return V::exp2(-root<V>(s));
  }
  static constexpr double front(Parameters<double>) { return -LN_2 / 2; }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R slope(R s, Parameters<S>) {
    const S least = sizeof(S) == 4 ? S(1e-30) : S(1e-290), most = sizeof(S) == 4 ? S(2e4) : S(2e6);
    s = V::at_most(V::at_least(s, V::all(least)), V::all(most));
    const auto inverse = V::inverse_root(s);
    return V::exp2(-s * inverse) * inverse;
  }
};

struct Matern32 : Profile {
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S>) {
    const auto u = root<V>(s);
    return (u + V::all(1)) * V::exp2(u * V::all(S(-LOG2_E)));
  }
  static constexpr double front(Parameters<double>) { return -1. / 2; }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R slope(R s, Parameters<S>) {
    return V::exp2(root<V>(s) * V::all(S(-LOG2_E)));
  }
};

struct Matern52 : Profile {
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S>) {
    const auto u = root<V>(s);
    return (u * u * V::all(S(1. / 3)) + u + V::all(1)) * V::exp2(u * V::all(S(-LOG2_E)));
  }
  static constexpr double front(Parameters<double>) { return -1. / 6; }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R slope(R s, Parameters<S> given) {
    return Matern32::value<V>(s, given);
  }
};

struct RationalQuadratic : Profile {
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S> given) {
    s = V::at_most(V::at_least(s, V::all(0)), V::all(std::numeric_limits<S>::max()));
    if (given.first == 1) return V::all(1) / (V::all(1) + s);
    return V::exp2(V::log1p(s) * V::all(S(-LOG2_E) * given.first));
  }
  static constexpr double front(Parameters<double> given) { return -given.first; }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R slope(R s, Parameters<S> given) {
    const auto k = value<V>(s, given);
    if (given.first == 1) return k * k;
    return k / (V::all(1) + V::at_least(s, V::all(0)));
  }
};

struct L1Laplacian : Profile {  // is handed minus the sum of absolute differences
  static constexpr Form form = Form::l1;
  static constexpr double unit = LOG2_E;
  static constexpr int sign = -1;
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S>) {
    return V::exp2(V::exponent(s));
  }
  static constexpr double front(Parameters<double>) { return -LN_2; }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R slope(R s, Parameters<S> given) {
    return value<V>(s, given);
  }
};

struct Linear : Profile {  // this and the next are handed the inner product
  static constexpr Form form = Form::inner;
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S>) {
    return s;
  }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R slope(R s, Parameters<S>) {
    return s - s + V::all(1);  // a NaN stays one
  }
};

struct Polynomial : Profile {
  static constexpr Form form = Form::inner;
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S> given) {
    return power<V>(s + V::all(given.second), long(given.first));
  }
  static constexpr double front(Parameters<double> given) { return given.first; }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R slope(R s, Parameters<S> given) {
    return power<V>(s + V::all(given.second), long(given.first) - 1);
  }

 private:
  template <class V, class R = typename V::R>
  static GRAMIAN_INLINE R power(R factor, long degree) {
    for (auto result = V::all(1);;) {
      if (degree & 1) result = result * factor;
      degree >>= 1;
      if (degree <= 0) return result;  // a negative one would never get there
      factor = factor * factor;
    }
  }
};

// Tanimoto's kernels: what two rows share, of what they have together, which is `both` norms less
// what they share. Of rows that have nothing it is 1.
template <Form F>
struct Tanimoto : Profile {
  static constexpr Form form = F;
  static constexpr bool has_slope = false;
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R share(R shared, R both) {
    const auto total = V::at_least(both - shared, V::all(std::numeric_limits<S>::min()));
    return V::divide(shared, total) + V::one_where_zero(both);
  }
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R share, Parameters<S>) {
    return share;
  }
};

struct Chi2 : Profile {  // is handed minus the sum of (x - z)^2 / (x + z)
  static constexpr Form form = Form::fractions;
  static constexpr double unit = LOG2_E;
  static constexpr int sign = -1;
  static constexpr bool has_slope = false;
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S>) {
    return V::exp2(V::exponent(s));
  }
};

// The slopes of a kernel in place of its entries.
template <class K>
struct Slopes : K {
  static constexpr bool sharp = false;  // pairs near a kink are looked for where slopes are used
  template <class V, class S = typename V::Scalar, class R = typename V::R>
  static GRAMIAN_INLINE R value(R s, Parameters<S> given) {
    return K::template slope<V>(s, given);
  }
};

// Calls visit(name, profile{}) for each kernel there is, by its name in Python; what has tiles but is
// one of several that a class stands for, or a part of it, is called what `tile_name` says.
template <class Visitor>
void with_profile(Visitor visit) {
  visit("gaussian", Gaussian{});
  visit("laplacian", Laplacian{});
  visit("matern12", Laplacian{});
  visit("matern32", Matern32{});
  visit("matern52", Matern52{});
  visit("rational_quadratic", RationalQuadratic{});
  visit("l1_laplacian", L1Laplacian{});
  visit("linear", Linear{});
  visit("polynomial", Polynomial{});
  visit("tanimoto_product", Tanimoto<Form::common>{});
  visit("tanimoto_minmax", Tanimoto<Form::least>{});
  visit("chi2", Chi2{});
}

void kernels(void* list, void (*add)(void* list, const char* name, bool has_slope)) {
  with_profile([&](const char* name, auto profile) { add(list, name, profile.has_slope); });
}

}  // namespace
