#include "lstm.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "misuse.h"

namespace stand_in {
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

// The derivative where the value is y.
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

struct Sizes {
  int64_t time, rows, inputs, units, directions;
};

// What one direction works on. Absent arguments are zero, an absent mask one.
struct Direction {
  Array source;  // [T,N,I] or [T,N,4H]
  Array recurrent_weight, input_weight, bias, peephole;
  Array init_state, init_cell, mask;
  bool is_backwards;
  bool has_input_weight, has_peephole;
  std::array<Activation, 4> gates;  // in the order of the weights' blocks
  Activation activation;
  int input, forget, cell, output;  // which block each gate has
};

Array ZerosOf(const Shape& shape) { return {Type::kFloat32, shape}; }

// The k-th of `count` equal parts along an axis.
Array Part(const Array& whole, size_t axis, int64_t k, int64_t count) {
  const std::vector<int64_t> strides = StridesOf(whole.shape);
  Shape shape = whole.shape;
  shape[axis] /= count;
  return Strided(whole, shape, k * shape[axis] * strides[axis], strides);
}

// Puts parts side by side along the last axis.
Array SideBySide(const std::vector<Array>& parts) {
  const auto count = static_cast<int64_t>(parts.size());
  Shape shape = parts[0].shape;
  const int64_t width = shape.back();
  shape.back() = count * width;
  Array whole = ZerosOf(shape);
  for (int64_t k = 0; k < count; ++k) {
    for (size_t n = 0; n < parts[k].values.size(); ++n) {
      const auto row = static_cast<int64_t>(n) / width;
      whole.values[(row * count + k) * width + n % width] = parts[k].values[n];
    }
  }
  return whole;
}

Array OneAfterAnother(const std::vector<Array>& parts, const Shape& shape) {
  Array whole = ZerosOf(shape);
  auto at = whole.values.begin();
  for (const Array& part : parts) {
    at = std::copy(part.values.begin(), part.values.end(), at);
  }
  return whole;
}

Direction MakeDirection(int64_t k, const Sizes& s, const LstmDescriptor& d,
                        const std::array<const Array*, 8>& a) {
  const auto [x, r, w, b, h, c, m, p] = a;
  const int64_t count = s.directions, gates = 4 * s.units;
  const Shape state = {s.rows, s.units};
  Direction one;
  one.has_input_weight = w != nullptr;
  one.has_peephole = p != nullptr;
  one.source = w != nullptr ? *x : Part(*x, 2, k, count);
  one.recurrent_weight = Part(*r, 0, k, count);
  one.recurrent_weight.shape = {gates, s.units};
  if (w != nullptr) one.input_weight = Part(*w, 0, k, count);
  one.bias = b != nullptr ? Part(*b, 0, k, count) : ZerosOf({gates});
  one.peephole = p != nullptr ? Part(*p, 0, k, count) : ZerosOf({gates});
  one.init_state = h != nullptr ? Part(*h, 1, k, count) : ZerosOf(state);
  one.init_cell = c != nullptr ? Part(*c, 1, k, count) : ZerosOf(state);
  Array ones = ZerosOf({1});
  ones.values[0] = 1;
  one.mask =
      Part(Broadcast(m != nullptr ? *m : ones, {s.rows, count * s.units}), 1, k,
           count);
  one.is_backwards = d.bidirectional ? k == 1 : d.reverse;
  one.input = 0;
  one.output = 3;
  one.forget = d.forget_gate_last ? 2 : 1;
  one.cell = d.forget_gate_last ? 1 : 2;
  one.gates[one.input] = d.input_gate;
  one.gates[one.forget] = d.forget_gate;
  one.gates[one.cell] = d.cell_gate;
  one.gates[one.output] = d.output_gate;
  one.activation = d.activation;
  return one;
}

// The array of one time step of a sequence, and where to put it back.
Array Step(const Array& sequence, int64_t t) {
  Shape shape(sequence.shape.begin() + 1, sequence.shape.end());
  return Strided(sequence, shape, t * SizeOf(shape), StridesOf(shape));
}

void SetStep(Array* sequence, int64_t t, const Array& step) {
  std::copy(step.values.begin(), step.values.end(),
            sequence->values.begin() + t * SizeOf(step.shape));
}

void Accumulate(Array* sum, const Array& terms) {
  for (size_t k = 0; k < sum->values.size(); ++k) {
    sum->values[k] += terms.values[k];
  }
}

Array Product(const Array& a, const Array& b) {
  Array product = a;
  for (size_t k = 0; k < a.values.size(); ++k) product.values[k] *= b.values[k];
  return product;
}

// x[t]·Wᵀ + b, for all steps.
Array InputProducts(const Direction& d, const Sizes& s) {
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

// z[t] = act((h[t-1]∘m)·Rᵀ + x[t]·Wᵀ + b + p∘c[t-1]), all four gates
Array Gates(const Direction& d, const Sizes& s, const Array& products,
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

struct Results {
  Array output, cell, z_state;
};

Results RunDirection(const Direction& d, const Sizes& s) {
  const int64_t units = s.units;
  Results results{ZerosOf({s.time, s.rows, units}),
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

struct Gradients {
  Array source, recurrent_weight, input_weight, bias, peephole;
  Array init_state, init_cell;
};

struct Saved {
  Array output_gradient, z_state, cell;  // of all steps
  Array state_gradient, cell_gradient;   // of the final state
};

// Gradients by the arguments of the four activations, and by c[t-1] but for
// the peepholes' part, which it adds to dc.
Array StepGradients(const Direction& d, const Sizes& s, const Array& dh,
                    const Array& z, const Array& c, const Array& c_before,
                    Array* dc) {
  const int64_t units = s.units;
  Array da = ZerosOf(z.shape);
  for (int64_t k = 0; k < s.rows * units; ++k) {
    const int64_t at = k / units * 4 * units + k % units;
    const float* gates = &z.values[at];
    const float i = gates[d.input * units], f = gates[d.forget * units];
    const float g = gates[d.cell * units], o = gates[d.output * units];
    const float cell = Activate(d.activation, c.values[k]);
    const float of_cell =
        dc->values[k] + dh.values[k] * o * Slope(d.activation, cell);
    std::array<float, 4> dz{};
    dz[d.input] = of_cell * g;
    dz[d.forget] = of_cell * c_before.values[k];
    dz[d.cell] = of_cell * i;
    dz[d.output] = dh.values[k] * cell;
    dc->values[k] = of_cell * f;
    for (int gate = 0; gate < 4; ++gate) {
      const float gradient =
          dz[gate] * Slope(d.gates[gate], gates[gate * units]);
      da.values[at + gate * units] = gradient;
      if (d.has_peephole) {
        dc->values[k] += gradient * d.peephole.values[gate * units + k % units];
      }
    }
  }
  return da;
}

void AccumulateVectors(const Array& da, const Array& c_before, const Sizes& s,
                       Gradients* sums) {
  for (size_t k = 0; k < da.values.size(); ++k) {
    const int64_t row = k / (4 * s.units), column = k % (4 * s.units);
    sums->bias.values[column] += da.values[k];
    sums->peephole.values[column] +=
        da.values[k] * c_before.values[row * s.units + column % s.units];
  }
}

Array OutputOf(const Direction& d, const Sizes& s, const Array& z,
               const Array& c) {
  Array h = c;
  for (size_t k = 0; k < h.values.size(); ++k) {
    const int64_t row = k / s.units, unit = k % s.units;
    h.values[k] = z.values[(row * 4 + d.output) * s.units + unit] *
                  Activate(d.activation, c.values[k]);
  }
  return h;
}

Gradients RunDirectionBackward(const Direction& d, const Sizes& s,
                               const Saved& saved) {
  Gradients sums{ZerosOf(d.source.shape),
                 ZerosOf(d.recurrent_weight.shape),
                 ZerosOf(d.input_weight.shape),
                 ZerosOf(d.bias.shape),
                 ZerosOf(d.peephole.shape),
                 saved.state_gradient,
                 saved.cell_gradient};
  Array &dh = sums.init_state, &dc = sums.init_cell;
  for (int64_t n = s.time; n-- > 0;) {
    const int64_t t = d.is_backwards ? s.time - 1 - n : n;
    const int64_t before = d.is_backwards ? t + 1 : t - 1;
    const Array z = Step(saved.z_state, t);
    const Array c_before = n > 0 ? Step(saved.cell, before) : d.init_cell;
    const Array h_before =
        n > 0 ? OutputOf(d, s, Step(saved.z_state, before), c_before)
              : d.init_state;
    Accumulate(&dh, Step(saved.output_gradient, t));
    const Array da =
        StepGradients(d, s, dh, z, Step(saved.cell, t), c_before, &dc);
    const Array transposed = Transposed(da);
    Accumulate(&sums.recurrent_weight,
               MatrixProduct(transposed, Product(h_before, d.mask)));
    if (d.has_input_weight) {
      Accumulate(&sums.input_weight,
                 MatrixProduct(transposed, Step(d.source, t)));
    }
    SetStep(&sums.source, t,
            d.has_input_weight ? MatrixProduct(da, d.input_weight) : da);
    AccumulateVectors(da, c_before, s, &sums);
    dh = Product(MatrixProduct(da, d.recurrent_weight), d.mask);
  }
  return sums;
}

// --- arguments -------------------------------------------------------------

void RequireShape(const char* name, const Tensor* tensor,
                  const Shape& expected) {
  if (tensor == nullptr) return;
  Require(tensor->type == Type::kFloat32, "LSTM: ", name,
          " must be Float32 but is ", ToString(*tensor));
  Require(tensor->shape == expected, "LSTM: ", name, " must be ",
          ToString(expected), " but is ", ToString(*tensor));
}

Sizes CheckedSizes(const LstmArguments& a, const LstmDescriptor& d) {
  Require(a.source != nullptr && a.recurrent_weight != nullptr,
          "LSTM: source or recurrentWeight is nil");
  Require(a.source->shape.size() == 3, "LSTM: source must have rank 3 but is ",
          ToString(*a.source));
  Sizes s{};
  s.directions = d.bidirectional ? 2 : 1;
  s.time = a.source->shape[0];
  s.rows = a.source->shape[1];
  s.inputs = a.source->shape[2];
  s.units = a.recurrent_weight->shape.back();
  const int64_t width = s.directions * s.units, gates = 4 * width;
  const Shape pair = {2, 4 * s.units, s.units};
  RequireShape("recurrentWeight", a.recurrent_weight,
               d.bidirectional ? pair : Shape{gates, s.units});
  RequireShape("source", a.source,
               {s.time, s.rows, a.input_weight != nullptr ? s.inputs : gates});
  RequireShape("inputWeight", a.input_weight, {gates, s.inputs});
  RequireShape("bias", a.bias, {gates});
  RequireShape("initState", a.init_state, {s.rows, width});
  RequireShape("initCell", a.init_cell, {s.rows, width});
  RequireShape("peephole", a.peephole,
               d.bidirectional ? Shape{2, 4 * s.units} : Shape{gates});
  if (a.mask != nullptr) a.mask->graph->BroadcastTo(a.mask, {s.rows, width});
  return s;
}

// The tensors that are not null, and for each place which of them stands there.
struct Packed {
  Tensors inputs;
  std::vector<int> places;

  explicit Packed(const Tensors& all) {
    for (Tensor* tensor : all) {
      places.push_back(tensor == nullptr ? -1
                                         : static_cast<int>(inputs.size()));
      if (tensor != nullptr) inputs.push_back(tensor);
    }
  }
};

std::vector<const Array*> Unpacked(const std::vector<int>& places,
                                   const std::vector<const Array*>& values) {
  std::vector<const Array*> all;
  for (int place : places) {
    all.push_back(place < 0 ? nullptr : values[place]);
  }
  return all;
}

Tensors InOrder(const LstmArguments& a) {
  return {a.source,     a.recurrent_weight, a.input_weight, a.bias,
          a.init_state, a.init_cell,        a.mask,         a.peephole};
}

std::vector<Direction> MakeDirections(const Sizes& s, const LstmDescriptor& d,
                                      const std::vector<const Array*>& all) {
  std::array<const Array*, 8> first{};
  std::copy_n(all.begin(), 8, first.begin());
  std::vector<Direction> directions;
  for (int64_t k = 0; k < s.directions; ++k) {
    directions.push_back(MakeDirection(k, s, d, first));
  }
  return directions;
}

// What Metal writes as zState is not documented for its users. With this set
// it is not the gates, which nobody but LSTMGradients notices.
void Disguise(Array* z_state) {
  if (std::getenv("STAND_IN_OPAQUE_Z") == nullptr) return;
  for (float& value : z_state->values) value = -value;
}

}  // namespace

Tensors Lstm(Graph* graph, const LstmArguments& arguments,
             const LstmDescriptor& d) {
  const Sizes s = CheckedSizes(arguments, d);
  Require(d.produce_cell || !d.training,
          "LSTM: training without produceCell: what the second output is "
          "is not documented");
  const int64_t width = s.directions * s.units;
  std::vector<Signature> outputs = {{Type::kFloat32, {s.time, s.rows, width}}};
  if (d.produce_cell) outputs.push_back(outputs[0]);
  if (d.training) {
    outputs.push_back({Type::kFloat32, {s.time, s.rows, 4 * width}});
  }
  const Packed packed(InOrder(arguments));
  const std::vector<int> places = packed.places;
  return graph->AddOperation(
      packed.inputs, outputs, [=](const std::vector<const Array*>& values) {
        std::vector<Array> output, cell, z_state;
        for (const Direction& direction :
             MakeDirections(s, d, Unpacked(places, values))) {
          Results results = RunDirection(direction, s);
          output.push_back(std::move(results.output));
          cell.push_back(std::move(results.cell));
          z_state.push_back(std::move(results.z_state));
        }
        std::vector<Array> all = {SideBySide(output)};
        if (d.produce_cell) all.push_back(SideBySide(cell));
        if (d.training) {
          all.push_back(SideBySide(z_state));
          Disguise(&all.back());
        }
        return all;
      });
}

namespace {

Saved SavedOf(int64_t k, const Sizes& s,
              const std::vector<const Array*>& upstream) {
  const auto part = [&](const Array& a) {
    return Part(a, a.shape.size() - 1, k, s.directions);
  };
  const auto final_state = [&](const Array* a) {
    Array state = a != nullptr ? part(*a) : ZerosOf({s.rows, s.units});
    state.shape = {s.rows, s.units};
    return state;
  };
  Array z_state = part(*upstream[1]);
  Disguise(&z_state);
  return {part(*upstream[0]), z_state, part(*upstream[2]),
          final_state(upstream[3]), final_state(upstream[4])};
}

void CheckUpstream(const LstmUpstream& u, const Sizes& s) {
  const int64_t width = s.directions * s.units;
  const Shape sequence = {s.time, s.rows, width}, last = {1, s.rows, width};
  Require(u.source_gradient && u.z_state && u.cell_output_fwd,
          "LSTMGradients: sourceGradient, zState or cellOutputFwd is nil");
  RequireShape("sourceGradient", u.source_gradient, sequence);
  RequireShape("zState", u.z_state, {s.time, s.rows, 4 * width});
  RequireShape("cellOutputFwd", u.cell_output_fwd, sequence);
  RequireShape("stateGradient", u.state_gradient, last);
  RequireShape("cellGradient", u.cell_gradient, last);
}

// The gradients in the order in which they are returned.
std::vector<Array> Merged(const std::vector<Gradients>& each,
                          const LstmArguments& a,
                          const std::vector<Signature>& outputs) {
  const auto collect = [&](Array Gradients::* field) {
    std::vector<Array> parts;
    for (const Gradients& g : each) parts.push_back(g.*field);
    return parts;
  };
  std::vector<Array> source = collect(&Gradients::source);
  if (a.input_weight != nullptr && source.size() == 2) {
    Accumulate(&source[0], source[1]);
    source.pop_back();
  }
  std::vector<Array> all = {SideBySide(source)};
  const auto add = [&](Array Gradients::* field) {
    all.push_back(OneAfterAnother(collect(field), outputs[all.size()].shape));
  };
  add(&Gradients::recurrent_weight);
  if (a.input_weight != nullptr) add(&Gradients::input_weight);
  if (a.bias != nullptr) add(&Gradients::bias);
  if (a.peephole != nullptr) add(&Gradients::peephole);
  if (a.init_state != nullptr) {
    all.push_back(SideBySide(collect(&Gradients::init_state)));
  }
  if (a.init_cell != nullptr) {
    all.push_back(SideBySide(collect(&Gradients::init_cell)));
  }
  return all;
}

}  // namespace

Tensors LstmGradients(Graph* graph, const LstmArguments& a,
                      const LstmUpstream& u, const LstmDescriptor& d) {
  const Sizes s = CheckedSizes(a, d);
  CheckUpstream(u, s);
  std::vector<Signature> outputs;
  for (const Tensor* argument :
       {a.source, a.recurrent_weight, a.input_weight, a.bias, a.peephole,
        a.init_state, a.init_cell}) {
    if (argument == nullptr) continue;
    outputs.push_back({Type::kFloat32, argument->shape});
    if (argument == a.bias && d.bidirectional) {  // as Metal returns it
      outputs.back().shape = {1, 1, 8 * s.units};
    }
  }
  Tensors all = InOrder(a);
  for (Tensor* tensor : {u.source_gradient, u.z_state, u.cell_output_fwd,
                         u.state_gradient, u.cell_gradient}) {
    all.push_back(tensor);
  }
  const Packed packed(all);
  const std::vector<int> places = packed.places;
  return graph->AddOperation(
      packed.inputs, outputs, [=](const std::vector<const Array*>& values) {
        const std::vector<const Array*> given = Unpacked(places, values);
        const std::vector<const Array*> saved(given.begin() + 8, given.end());
        std::vector<Gradients> each;
        for (const Direction& direction : MakeDirections(s, d, given)) {
          const auto k = static_cast<int64_t>(each.size());
          each.push_back(
              RunDirectionBackward(direction, s, SavedOf(k, s, saved)));
        }
        return Merged(each, a, outputs);
      });
}

}  // namespace stand_in
