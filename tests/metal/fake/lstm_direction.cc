#include "lstm_direction.h"

#include <algorithm>
#include <cmath>

namespace fake {

Array ZerosOf(const Shape& shape) { return {Type::kFloat32, shape}; }

void Accumulate(Array* sum, const Array& terms) {
  for (size_t k = 0; k < sum->values.size(); ++k) {
    sum->values[k] += terms.values[k];
  }
}

namespace {

float Activate(Activation activation, float x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x <= 0 ? 0 : x;
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kHardSigmoid: {
      const float y = 0.2F * x + 0.5F;
      return y <= 0 ? 0 : y >= 1 ? 1 : y;
    }
  }
}

// The derivative, from the activation's value y.
float Slope(Activation activation, float y) {
  switch (activation) {
    case Activation::kNone:
      return 1;
    case Activation::kRelu:
      return y > 0 ? 1 : 0;
    case Activation::kTanh:
      return 1 - y * y;
    case Activation::kSigmoid:
      return y * (1 - y);
    case Activation::kHardSigmoid:
      return y > 0 && y < 1 ? 0.2F : 0;
  }
}

// The array of one time step of a sequence.
Array Step(const Array& sequence, int64_t t) {
  Shape shape(sequence.shape.begin() + 1, sequence.shape.end());
  return Strided(sequence, shape, t * SizeOf(shape), StridesOf(shape));
}

void SetStep(Array* sequence, int64_t t, const Array& step) {
  std::copy(step.values.begin(), step.values.end(),
            sequence->values.begin() + t * SizeOf(step.shape));
}

Array Product(const Array& a, const Array& b) {
  Array product = a;
  for (size_t k = 0; k < a.values.size(); ++k) product.values[k] *= b.values[k];
  return product;
}

// x[t] W^T + b for all steps.
Array InputProducts(const Direction& d, const LstmSizes& s) {
  const int64_t gates = 4 * s.units;
  Array x = d.source;
  x.shape = {s.time * s.rows, x.shape[2]};
  Array products =
      d.has_input_weight ? MatrixProduct(x, Transposed(d.input_weight)) : x;
  for (size_t k = 0; k < products.values.size(); ++k) {
    products.values[k] += d.bias.values[k % gates];
  }
  products.shape = {s.time, s.rows, gates};
  return products;
}

// z[t] = act((h[t-1] * m) R^T + x[t] W^T + b + p * c[t-1]) of all four gates.
// `products` are those of InputProducts.
Array Gates(const Direction& d, const LstmSizes& s, const Array& products,
            const Array& h, const Array& c) {
  const int64_t units = s.units;
  Array z = MatrixProduct(Product(h, d.mask), Transposed(d.recurrent_weight));
  Accumulate(&z, products);
  for (size_t k = 0; k < z.values.size(); ++k) {
    const int64_t row = k / (4 * units), column = k % (4 * units);
    if (d.has_peephole) {
      z.values[k] +=
          d.peephole.values[column] * c.values[row * units + column % units];
    }
    z.values[k] = Activate(d.gates[column / units], z.values[k]);
  }
  return z;
}

}  // namespace

DirectionResults RunDirection(const Direction& d, const LstmSizes& s) {
  const int64_t units = s.units;
  DirectionResults results{ZerosOf({s.time, s.rows, units}),
                           ZerosOf({s.time, s.rows, units}),
                           ZerosOf({s.time, s.rows, 4 * units})};
  const Array products = InputProducts(d, s);
  Array h = d.init_state, c = d.init_cell;
  for (int64_t n = 0; n < s.time; ++n) {
    const int64_t t = d.is_backwards ? s.time - 1 - n : n;
    const Array z = Gates(d, s, Step(products, t), h, c);
    for (int64_t k = 0; k < s.rows * units; ++k) {
      const float* gates = &z.values[k / units * 4 * units + k % units];
      float& cell = c.values[k];
      cell = gates[d.forget * units] * cell +
             gates[d.input * units] * gates[d.cell * units];
      h.values[k] = gates[d.output * units] * Activate(d.activation, cell);
    }
    SetStep(&results.output, t, h);
    SetStep(&results.cell, t, c);
    SetStep(&results.z_state, t, z);
  }
  return results;
}

namespace {

// The results of a step, and the cell state before it.
struct SavedStep {
  Array z, c, c_before;
};

// Returns the gradients with respect to the arguments of the four activations.
// `dc` is the gradient with respect to c[t], and on return that with respect to
// c[t-1].
Array StepGrads(const Direction& d, const LstmSizes& s, const Array& dh,
                const SavedStep& step, Array* dc) {
  const int64_t units = s.units;
  Array da = ZerosOf(step.z.shape);
  for (int64_t k = 0; k < s.rows * units; ++k) {
    const int64_t at = k / units * 4 * units + k % units;
    const float* gates = &step.z.values[at];
    const float i = gates[d.input * units], f = gates[d.forget * units];
    const float g = gates[d.cell * units], o = gates[d.output * units];
    const float cell = Activate(d.activation, step.c.values[k]);
    const float cell_grad =
        dc->values[k] + dh.values[k] * o * Slope(d.activation, cell);
    std::array<float, 4> dz{};
    dz[d.input] = cell_grad * g;
    dz[d.forget] = cell_grad * step.c_before.values[k];
    dz[d.cell] = cell_grad * i;
    dz[d.output] = dh.values[k] * cell;
    dc->values[k] = cell_grad * f;
    for (int gate = 0; gate < 4; ++gate) {
      const float grad = dz[gate] * Slope(d.gates[gate], gates[gate * units]);
      da.values[at + gate * units] = grad;
      if (d.has_peephole) {
        dc->values[k] += grad * d.peephole.values[gate * units + k % units];
      }
    }
  }
  return da;
}

void AccumulateVectors(const Array& da, const Array& c_before,
                       const LstmSizes& s, DirectionGrads* sums) {
  for (size_t k = 0; k < da.values.size(); ++k) {
    const int64_t row = k / (4 * s.units), column = k % (4 * s.units);
    sums->bias.values[column] += da.values[k];
    sums->peephole.values[column] +=
        da.values[k] * c_before.values[row * s.units + column % s.units];
  }
}

Array OutputOf(const Direction& d, const LstmSizes& s, const Array& z,
               const Array& c) {
  Array h = c;
  for (size_t k = 0; k < h.values.size(); ++k) {
    const int64_t row = k / s.units, unit = k % s.units;
    h.values[k] = z.values[(row * 4 + d.output) * s.units + unit] *
                  Activate(d.activation, c.values[k]);
  }
  return h;
}

}  // namespace

DirectionGrads RunDirectionBackward(const Direction& d, const LstmSizes& s,
                                    const DirectionSaved& saved) {
  DirectionGrads sums{
      ZerosOf(d.source.shape),       ZerosOf(d.recurrent_weight.shape),
      ZerosOf(d.input_weight.shape), ZerosOf(d.bias.shape),
      ZerosOf(d.peephole.shape),     saved.final_state_grad,
      saved.final_cell_grad};
  Array &dh = sums.init_state, &dc = sums.init_cell;
  for (int64_t n = s.time; n-- > 0;) {
    const int64_t t = d.is_backwards ? s.time - 1 - n : n;
    const int64_t before = d.is_backwards ? t + 1 : t - 1;
    const SavedStep step = {Step(saved.z_state, t), Step(saved.cell, t),
                            n > 0 ? Step(saved.cell, before) : d.init_cell};
    const Array h_before =
        n > 0 ? OutputOf(d, s, Step(saved.z_state, before), step.c_before)
              : d.init_state;
    Accumulate(&dh, Step(saved.output_grad, t));
    const Array da = StepGrads(d, s, dh, step, &dc);
    const Array transposed = Transposed(da);
    Accumulate(&sums.recurrent_weight,
               MatrixProduct(transposed, Product(h_before, d.mask)));
    if (d.has_input_weight) {
      Accumulate(&sums.input_weight,
                 MatrixProduct(transposed, Step(d.source, t)));
    }
    SetStep(&sums.source, t,
            d.has_input_weight ? MatrixProduct(da, d.input_weight) : da);
    AccumulateVectors(da, step.c_before, s, &sums);
    dh = Product(MatrixProduct(da, d.recurrent_weight), d.mask);
  }
  return sums;
}

}  // namespace fake
