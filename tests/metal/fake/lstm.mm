#include <array>
#include <cmath>
#include <cstdlib>

#include "misuse.h"
#include "mpsgraph.h"

namespace fake {
namespace {

// --- arrays ----------------------------------------------------------------

Array operator+(const Array& a, const Array& b) { return Map(a, b, std::plus<float>()); }
Array operator*(const Array& a, const Array& b) { return Map(a, b, std::multiplies<float>()); }

Array Zeros(const Shape& shape) { return {Type::kFloat32, shape}; }

// The array of one time step of a sequence.
Array Step(const Array* sequence, int64_t t) {
  const Shape shape(sequence->shape.begin() + 1, sequence->shape.end());
  return Reshaped(Slice(*sequence, 0, t, 1), shape);
}

// The content of Metal's zState is not documented. With FAKE_OPAQUE_Z set it is not the gates, and
// only LSTMGradients can read it.
Array Disguised(const Array& z_state) {
  const bool is_opaque = std::getenv("FAKE_OPAQUE_Z") != nullptr;
  return Map(z_state, [=](float value) { return is_opaque ? -value : value; });
}

// --- equations -------------------------------------------------------------

struct Activation {
  float (*value)(float);
  float (*slope)(float value);  // the derivative, from the value
};

// In the order of MPSGraphRNNActivation: none, relu, tanh, sigmoid, hard sigmoid.
constexpr Activation kActivations[] = {
    {[](float x) { return x; }, [](float) { return 1.0F; }},
    {[](float x) { return x <= 0 ? 0 : x; }, [](float y) { return y > 0 ? 1.0F : 0; }},
    {[](float x) { return std::tanh(x); }, [](float y) { return 1 - y * y; }},
    {[](float x) { return 1 / (1 + std::exp(-x)); }, [](float y) { return y * (1 - y); }},
    {[](float x) { return x < -2.5F  ? 0
                          : x > 2.5F ? 1
                                     : 0.2F * x + 0.5F; },
     [](float y) { return y > 0 && y < 1 ? 0.2F : 0; }},
};

Array Activated(MPSGraphRNNActivation activation, const Array& a) {
  return Map(a, kActivations[activation].value);
}

Array Slopes(MPSGraphRNNActivation activation, const Array& values) {
  return Map(values, kActivations[activation].slope);
}

struct Cell {
  int64_t time, rows, units;
  int forget, cell;                                 // the block of a gate in the weights
  std::array<MPSGraphRNNActivation, 4> activation;  // by block
  MPSGraphRNNActivation state;

  static constexpr int kInput = 0, kOutput = 3;

  // One of four blocks along the last axis.
  Array Block(const Array& blocks, int k) const {
    return Slice(blocks, blocks.shape.size() - 1, k * units, units);
  }
  // A state [1, N, H] or [N, H], zero if absent.
  Array State(const Array* state) const {
    return state ? Reshaped(*state, {rows, units}) : Zeros({rows, units});
  }
  Array Output(const Array& z, const Array& c) const {
    return Block(z, kOutput) * Activated(state, c);
  }
};

Array Masked(const Inputs& a, const Array& h) { return a[kMask] ? h * *a[kMask] : h; }

Array FourTimes(const Array& c) { return Concat({&c, &c, &c, &c}, 1); }

// z[t] = act((h[t-1] * m) R^T + x[t] W^T + b + p * c[t-1]) of all four gates.
Array Gates(const Cell& cell, const Inputs& a, int64_t t, const Array& h, const Array& c) {
  Array x = Step(a[kSource], t);
  if (a[kInputWeight]) x = MatrixProduct(x, Transposed(*a[kInputWeight]));
  if (a[kBias]) x = x + *a[kBias];
  Array z = MatrixProduct(Masked(a, h), Transposed(*a[kRecurrentWeight])) + x;
  if (a[kPeephole]) z = z + FourTimes(c) * *a[kPeephole];
  std::vector<Array> gates;
  for (int k = 0; k < 4; ++k) gates.push_back(Activated(cell.activation[k], cell.Block(z, k)));
  return Concat(PointersTo(gates), 1);
}

// Returns the gradients with respect to the arguments of the four activations. `dc` is the gradient
// with respect to c[t], and on return that with respect to c[t-1].
Array StepGrads(const Cell& cell, const Inputs& a, int64_t t, const Array& c_before,
                const Array& dh, Array* dc) {
  const Array z = Disguised(Step(a[kZState], t));
  const auto gate = [&](int k) { return cell.Block(z, k); };
  const Array activated = Activated(cell.state, Step(a[kCellOutputFwd], t));
  *dc = *dc + dh * gate(Cell::kOutput) * Slopes(cell.state, activated);
  std::vector<Array> grads(4);
  grads[Cell::kInput] = *dc * gate(cell.cell);
  grads[cell.forget] = *dc * c_before;
  grads[cell.cell] = *dc * gate(Cell::kInput);
  grads[Cell::kOutput] = dh * activated;
  *dc = *dc * gate(cell.forget);
  for (int k = 0; k < 4; ++k) {
    grads[k] = grads[k] * Slopes(cell.activation[k], gate(k));
    if (a[kPeephole]) *dc = *dc + grads[k] * cell.Block(*a[kPeephole], k);
  }
  return Concat(PointersTo(grads), 1);
}

// --- arguments -------------------------------------------------------------

void RequireShape(const char* name, const Tensor* tensor, const Shape& expected) {
  if (tensor == nullptr) return;
  Require(tensor->type == Type::kFloat32, "LSTM: ", name, " must be Float32 but is ",
          ToString(*tensor));
  Require(tensor->shape == expected, "LSTM: ", name, " must be ", ToString(expected), " but is ",
          ToString(*tensor));
}

Cell CheckedCell(const Tensors& a, MPSGraphLSTMDescriptor* d) {
  Require(d != nil, "LSTM: descriptor is nil");
  Require(a[kSource] && a[kRecurrentWeight], "LSTM: source or recurrentWeight is nil");
  Require(a[kSource]->shape.size() == 3, "LSTM: source must have rank 3 but is ",
          ToString(*a[kSource]));
  const int64_t time = a[kSource]->shape[0], rows = a[kSource]->shape[1];
  const int64_t units = a[kRecurrentWeight]->shape.back(), gates = 4 * units;
  const int64_t inputs = a[kInputWeight] ? a[kSource]->shape[2] : gates;
  RequireShape("recurrentWeight", a[kRecurrentWeight], {gates, units});
  RequireShape("source", a[kSource], {time, rows, inputs});
  RequireShape("inputWeight", a[kInputWeight], {gates, inputs});
  RequireShape("bias", a[kBias], {gates});
  RequireShape("initState", a[kInitState], {rows, units});
  RequireShape("initCell", a[kInitCell], {rows, units});
  RequireShape("peephole", a[kPeephole], {gates});
  if (a[kMask]) RequireBroadcasts("LSTM: mask", *a[kMask], {rows, units});
  Cell cell = {time, rows, units, 1, 2, {}, d.activation};
  if (d.forgetGateLast) std::swap(cell.forget, cell.cell);
  cell.activation[Cell::kInput] = d.inputGateActivation;
  cell.activation[cell.forget] = d.forgetGateActivation;
  cell.activation[cell.cell] = d.cellGateActivation;
  cell.activation[Cell::kOutput] = d.outputGateActivation;
  for (const MPSGraphRNNActivation chosen : cell.activation) {
    Require(chosen <= MPSGraphRNNActivationHardSigmoid, "LSTM: activation ", chosen);
  }
  Require(cell.state <= MPSGraphRNNActivationHardSigmoid, "LSTM: activation ", cell.state);
  return cell;
}

}  // namespace

Tensors Lstm(Graph* graph, const Tensors& arguments, MPSGraphLSTMDescriptor* d) {
  const Cell cell = CheckedCell(arguments, d);
  Require(d.produceCell || !d.training,
          "LSTM: training without produceCell: what the second output is is not documented");
  const Shape sequence = {cell.time, cell.rows, cell.units};
  std::vector<Signature> outputs = {{Type::kFloat32, sequence}};
  if (d.produceCell) outputs.push_back(outputs[0]);
  if (d.training) outputs.push_back({Type::kFloat32, {cell.time, cell.rows, 4 * cell.units}});
  return graph->Add(arguments, outputs, [=](const Inputs& a) {
    std::array<std::vector<Array>, 3> steps;  // of each result
    Array h = cell.State(a[kInitState]), c = cell.State(a[kInitCell]);
    for (int64_t t = 0; t < cell.time; ++t) {
      const Array z = Gates(cell, a, t, h, c);
      const auto gate = [&](int k) { return cell.Block(z, k); };
      c = gate(cell.forget) * c + gate(Cell::kInput) * gate(cell.cell);
      h = cell.Output(z, c);
      steps[0].push_back(h);
      steps[1].push_back(c);
      steps[2].push_back(Disguised(z));
    }
    std::vector<Array> results;
    for (size_t k = 0; k < outputs.size(); ++k) {
      results.push_back(Reshaped(Concat(PointersTo(steps[k]), 0), outputs[k].shape));
    }
    return results;
  });
}

Tensors LstmGradients(Graph* graph, const Tensors& arguments, MPSGraphLSTMDescriptor* d) {
  const Cell cell = CheckedCell(arguments, d);
  const Tensors& u = arguments;
  Require(u[kSourceGradient] && u[kZState] && u[kCellOutputFwd],
          "LSTMGradients: sourceGradient, zState or cellOutputFwd is nil");
  const Shape sequence = {cell.time, cell.rows, cell.units}, last = {1, cell.rows, cell.units};
  RequireShape("sourceGradient", u[kSourceGradient], sequence);
  RequireShape("zState", u[kZState], {cell.time, cell.rows, 4 * cell.units});
  RequireShape("cellOutputFwd", u[kCellOutputFwd], sequence);
  RequireShape("stateGradient", u[kStateGradient], last);
  RequireShape("cellGradient", u[kCellGradient], last);

  constexpr LstmArgument kOrder[] = {kSource,   kRecurrentWeight, kInputWeight, kBias,
                                     kPeephole, kInitState,       kInitCell};
  std::vector<LstmArgument> wanted;
  std::vector<Signature> outputs;
  for (const LstmArgument argument : kOrder) {
    if (arguments[argument] == nullptr) continue;
    wanted.push_back(argument);
    outputs.push_back(*arguments[argument]);
    // As in some releases.
    if (argument == kBias) outputs.back().shape = {1, 1, 4 * cell.units};
  }
  return graph->Add(arguments, outputs, [=](const Inputs& a) {
    std::array<Array, kPeephole + 1> grads;
    for (const LstmArgument argument : wanted) grads[argument] = Zeros(a[argument]->shape);
    std::vector<Array> source(cell.time);
    Array dh = cell.State(a[kStateGradient]), dc = cell.State(a[kCellGradient]);
    for (int64_t t = cell.time; t-- > 0;) {
      const bool is_first = t == 0;
      const Array c_before = is_first ? cell.State(a[kInitCell]) : Step(a[kCellOutputFwd], t - 1);
      const Array h_before = is_first ? cell.State(a[kInitState])
                                      : cell.Output(Disguised(Step(a[kZState], t - 1)), c_before);
      dh = dh + Step(a[kSourceGradient], t);
      const Array da = StepGrads(cell, a, t, c_before, dh, &dc);
      const auto add = [&](LstmArgument argument, const Array& terms) {
        grads[argument] = grads[argument] + terms;
      };
      add(kRecurrentWeight, MatrixProduct(Transposed(da), Masked(a, h_before)));
      if (a[kInputWeight]) {
        add(kInputWeight, MatrixProduct(Transposed(da), Step(a[kSource], t)));
      }
      const Shape vector = {4 * cell.units};
      if (a[kBias]) add(kBias, Reshaped(Sum(da, 0), vector));
      if (a[kPeephole]) add(kPeephole, Reshaped(Sum(da * FourTimes(c_before), 0), vector));
      source[t] = a[kInputWeight] ? MatrixProduct(da, *a[kInputWeight]) : da;
      dh = Masked(a, MatrixProduct(da, *a[kRecurrentWeight]));
    }
    grads[kSource] = Concat(PointersTo(source), 0);
    grads[kInitState] = dh;
    grads[kInitCell] = dc;
    std::vector<Array> results;
    for (size_t k = 0; k < outputs.size(); ++k) {
      results.push_back(Reshaped(grads[wanted[k]], outputs[k].shape));
    }
    return results;
  });
}

}  // namespace fake
