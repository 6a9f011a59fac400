#include "lstm.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "lstm_direction.h"
#include "misuse.h"

namespace fake {
namespace {

// The k-th of `count` equal parts along an axis.
Array Part(const Array& whole, size_t axis, int64_t k, int64_t count) {
  const std::vector<int64_t> strides = StridesOf(whole.shape);
  Shape shape = whole.shape;
  shape[axis] /= count;
  return Strided(whole, shape, k * shape[axis] * strides[axis], strides);
}

// Concatenates parts of equal shape along the last axis.
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

// Concatenates the elements of parts.
Array Consecutive(const std::vector<Array>& parts, const Shape& shape) {
  Array whole = ZerosOf(shape);
  auto at = whole.values.begin();
  for (const Array& part : parts) {
    at = std::copy(part.values.begin(), part.values.end(), at);
  }
  return whole;
}

Direction MakeDirection(int64_t k, const LstmSizes& s, const LstmDescriptor& d,
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

// --- arguments -------------------------------------------------------------

void RequireShape(const char* name, const Tensor* tensor,
                  const Shape& expected) {
  if (tensor == nullptr) return;
  Require(tensor->type == Type::kFloat32, "LSTM: ", name,
          " must be Float32 but is ", ToString(*tensor));
  Require(tensor->shape == expected, "LSTM: ", name, " must be ",
          ToString(expected), " but is ", ToString(*tensor));
}

LstmSizes CheckedSizes(const LstmArguments& a, const LstmDescriptor& d) {
  Require(a.source != nullptr && a.recurrent_weight != nullptr,
          "LSTM: source or recurrentWeight is nil");
  Require(a.source->shape.size() == 3, "LSTM: source must have rank 3 but is ",
          ToString(*a.source));
  LstmSizes s{};
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

// The tensors that are not null, and the index among them of each argument, or
// -1.
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

std::vector<Direction> MakeDirections(const LstmSizes& s,
                                      const LstmDescriptor& d,
                                      const std::vector<const Array*>& all) {
  std::array<const Array*, 8> first{};
  std::copy_n(all.begin(), 8, first.begin());
  std::vector<Direction> directions;
  for (int64_t k = 0; k < s.directions; ++k) {
    directions.push_back(MakeDirection(k, s, d, first));
  }
  return directions;
}

// The content of Metal's zState is not documented. With FAKE_OPAQUE_Z set it is
// not the gates, and only LSTMGradients can read it.
void Disguise(Array* z_state) {
  if (std::getenv("FAKE_OPAQUE_Z") == nullptr) return;
  for (float& value : z_state->values) value = -value;
}

}  // namespace

Tensors Lstm(Graph* graph, const LstmArguments& arguments,
             const LstmDescriptor& d) {
  const LstmSizes s = CheckedSizes(arguments, d);
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
          DirectionResults results = RunDirection(direction, s);
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

DirectionSaved SavedOf(int64_t k, const LstmSizes& s,
                       const std::vector<const Array*>& given) {
  const auto part = [&](const Array& a) {
    return Part(a, a.shape.size() - 1, k, s.directions);
  };
  const auto final_state = [&](const Array* a) {
    Array state = a != nullptr ? part(*a) : ZerosOf({s.rows, s.units});
    state.shape = {s.rows, s.units};
    return state;
  };
  Array z_state = part(*given[1]);
  Disguise(&z_state);
  return {part(*given[0]), z_state, part(*given[2]), final_state(given[3]),
          final_state(given[4])};
}

void CheckOutputGrads(const LstmOutputGrads& u, const LstmSizes& s) {
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

// The gradients of all directions in the order of the results.
std::vector<Array> Merged(const std::vector<DirectionGrads>& each,
                          const LstmArguments& a,
                          const std::vector<Signature>& outputs) {
  const auto collect = [&](Array DirectionGrads::* field) {
    std::vector<Array> parts;
    for (const DirectionGrads& grads : each) parts.push_back(grads.*field);
    return parts;
  };
  std::vector<Array> source = collect(&DirectionGrads::source);
  if (a.input_weight != nullptr && source.size() == 2) {
    Accumulate(&source[0], source[1]);
    source.pop_back();
  }
  std::vector<Array> all = {SideBySide(source)};
  const auto add = [&](Array DirectionGrads::* field) {
    all.push_back(Consecutive(collect(field), outputs[all.size()].shape));
  };
  add(&DirectionGrads::recurrent_weight);
  if (a.input_weight != nullptr) add(&DirectionGrads::input_weight);
  if (a.bias != nullptr) add(&DirectionGrads::bias);
  if (a.peephole != nullptr) add(&DirectionGrads::peephole);
  if (a.init_state != nullptr) {
    all.push_back(SideBySide(collect(&DirectionGrads::init_state)));
  }
  if (a.init_cell != nullptr) {
    all.push_back(SideBySide(collect(&DirectionGrads::init_cell)));
  }
  return all;
}

}  // namespace

Tensors LstmGradients(Graph* graph, const LstmArguments& a,
                      const LstmOutputGrads& u, const LstmDescriptor& d) {
  const LstmSizes s = CheckedSizes(a, d);
  CheckOutputGrads(u, s);
  std::vector<Signature> outputs;
  for (const Tensor* argument :
       {a.source, a.recurrent_weight, a.input_weight, a.bias, a.peephole,
        a.init_state, a.init_cell}) {
    if (argument == nullptr) continue;
    outputs.push_back({Type::kFloat32, argument->shape});
    if (argument == a.bias && d.bidirectional) {  // as on Metal
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
        std::vector<DirectionGrads> each;
        for (const Direction& direction : MakeDirections(s, d, given)) {
          const auto k = static_cast<int64_t>(each.size());
          each.push_back(
              RunDirectionBackward(direction, s, SavedOf(k, s, saved)));
        }
        return Merged(each, a, outputs);
      });
}

}  // namespace fake
