// Checks the attributes and inputs of an op of this dialect and maps its
// tensors to layer directions. All devices use it.
#ifndef TF_LSTM_OPS_DIALECTS_MPSGRAPH_PROBLEM_H_
#define TF_LSTM_OPS_DIALECTS_MPSGRAPH_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "core/attribute_reader.h"
#include "core/layer_direction.h"
#include "core/lstm_cell.h"
#include "core/shape.h"
#include "core/status.h"
#include "dialects/common/shape_of.h"

namespace tf_lstm_ops::mpsgraph {

// The attributes of both ops: the properties of Apple's MPSGraphLSTMDescriptor.
struct Descriptor {
  bool reverse = false;  // ignored if bidirectional
  int64_t directions = 1;
  GateOrder gate_order = kOrderIFCO;
  LstmActivations activations;

  // Reads the attributes. Errors: those of GetAttr.
  Status Init(const AttributeReader& reader);
};

// The sizes of a call.
struct Problem {
  int64_t time = 0;
  int64_t batch = 0;
  int64_t input = 0;  // I; H without input_weight
  int64_t cell = 0;
  int64_t directions = 1;
  bool has_input_weight = true;
  bool has_states = false;  // any of init_* and the gradients of final states

  int64_t gates() const { return 4 * cell; }  // of one direction
  int64_t width() const { return directions * cell; }
  int64_t source_width() const {
    return has_input_weight ? input : directions * gates();
  }
  Shape Steps(int64_t width) const {  // [T,N,D*width]
    return Shape({time, batch, directions * width});
  }
};

// Checks the shapes of the arguments and sets `problem`. Ranks that do not
// depend on the number of directions must have been checked. Errors:
// InvalidArgument.
Status MakeProblem(const Descriptor& descriptor, const ShapeOf& shape_of,
                   Problem* problem);

// Returns the shapes of MPSGraphLSTM's outputs, in order: output, cell and
// z_state. cell is [0] unless `produce_cell` or `training`; z_state is [0]
// unless `training`.
std::vector<Shape> ForwardShapes(const Problem& problem, bool produce_cell,
                                 bool training);

// The tensors of a call, with the shapes of the op. Absent ones are null.
template <class T>
struct Tensors {
  const T *source, *recurrent_weight, *input_weight, *bias;
  const T *init_state, *init_cell, *mask, *peephole;
  Shape mask_shape;

  // Views of the inputs of `call`, which has In and InputShape as CpuCall has.
  template <class Call>
  static Tensors From(Call* call) {
    return {call->In("source"),       call->In("recurrent_weight"),
            call->In("input_weight"), call->In("bias"),
            call->In("init_state"),   call->In("init_cell"),
            call->In("mask"),         call->In("peephole"),
            call->InputShape("mask")};
  }
};

// Inputs of the gradient op: the forward op's saved activations, of type S, and
// the gradients with respect to its outputs. Absent ones are null.
template <class T, class S>
struct OutputGrads {
  const S *z_state, *cells;
  const T *z_state_grad, *cells_grad;
  const T *h_grad, *state_grad, *cell_grad;

  template <class Call>
  static OutputGrads From(Call* call) {
    return {call->SavedIn("z_state"),     call->SavedIn("cell_output_fwd"),
            call->In("z_state_gradient"), call->In("cell_output_gradient"),
            call->In("source_gradient"),  call->In("state_gradient"),
            call->In("cell_gradient")};
  }
};

// The gradients that the op returns. Null where the input is absent.
template <class T>
struct InputGrads {
  T *source, *recurrent_weight, *input_weight, *bias;
  T *peephole, *init_state, *init_cell;
};

// Null stays null.
template <class T>
T* Offset(T* data, int64_t offset) {
  return data ? data + offset : nullptr;
}

// Maps the tensors of a call to its layer directions. `descriptor` and
// `problem` must outlive this object. The results are views of the tensors.
class Directions {
 public:
  Directions(const Descriptor& descriptor, const Problem& problem)
      : descriptor_(descriptor), problem_(problem) {}

  // The configuration of every direction.
  RnnConfig MakeConfig() const {
    RnnConfig config;
    config.cell = CellKind::kCustomLstm;
    config.input_size = problem_.input;
    config.cell_size = config.hidden_size = problem_.cell;
    config.gate_order = descriptor_.gate_order;
    config.options.activations = descriptor_.activations;
    if (!problem_.has_input_weight) config.x_gate_stride = problem_.cell;
    return config;
  }
  Sequence MakeSequence(int64_t direction) const {
    Sequence sequence;
    // Without steps and states there is nothing to compute for a row. The batch
    // can then be larger than what fits into memory.
    const bool has_rows = problem_.time > 0 || problem_.has_states;
    sequence.batch = has_rows ? problem_.batch : 0;
    sequence.time = sequence.steps = problem_.time;
    sequence.reversed =
        problem_.directions == 2 ? direction == 1 : descriptor_.reverse;
    return sequence;
  }

  // Sets the arguments that both passes share.
  template <class T>
  void SetLayer(int64_t direction, const Tensors<T>& t,
                LayerDirection<T>* layer) const {
    layer->config = MakeConfig();
    layer->sequence = MakeSequence(direction);
    layer->weights = Weights(direction, t.input_weight, t.recurrent_weight,
                             t.bias, t.peephole);
    layer->x = Offset(t.source, SourceColumn(direction));
    layer->x_stride = problem_.source_width();
    layer->h0 = State(direction, t.init_state);
    layer->c0 = State(direction, t.init_cell);
    layer->recurrent_dropout = Mask(direction, t);
  }

  // A view of the saved activations in cell [T, N, D*H] and z_state [T, N,
  // D*4H]. S is T, or BFloat16 where T is float.
  template <class T, class S>
  SavedActivations<T> Saved(int64_t direction, S* cells, S* z_state) const {
    SavedActivations<T> saved;
    saved.Set(kSavedCs, Offset(cells, direction * problem_.cell),
              problem_.width());
    for (int gate = 0; gate < kMaxPreActivations; ++gate) {
      const int64_t block = direction * kMaxPreActivations + Block(gate);
      saved.Set(kSavedOfGate[gate], Offset(z_state, block * problem_.cell),
                problem_.directions * problem_.gates());
    }
    return saved;
  }

  // A direction's columns of h [T, N, D*H] or of its gradient.
  template <class T>
  T* Output(int64_t direction, T* h) const {
    return Offset(h, direction * problem_.cell);
  }
  // A direction's columns of a state [N, D*H].
  template <class T>
  States<T> State(int64_t direction, T* states) const {
    return {Offset(states, direction * problem_.cell), problem_.width()};
  }

  template <class T, class S>
  void SetOutputGrads(int64_t direction, const OutputGrads<T, S>& t,
                      LayerBackward<T>* layer) const {
    layer->saved = Saved<const T>(direction, t.cells, t.z_state);
    layer->saved_grad = Saved<const T>(direction, t.cells_grad, t.z_state_grad);
    layer->h_grad = Output(direction, t.h_grad);
    layer->h_grad_stride = problem_.width();
    layer->final_h_grad = State(direction, t.state_grad);
    layer->final_c_grad = State(direction, t.cell_grad);
  }

  template <class T>
  void SetInputGrads(int64_t direction, const InputGrads<T>& grads,
                     LayerBackward<T>* layer) const {
    layer->weights_grad =
        Weights(direction, grads.input_weight, grads.recurrent_weight,
                grads.bias, grads.peephole);
    layer->x_grad = Offset(grads.source, SourceColumn(direction));
    layer->adds_to_x_grad = direction > 0 && problem_.has_input_weight;
    layer->h0_grad = State(direction, grads.init_state);
    layer->c0_grad = State(direction, grads.init_cell);
  }

 private:
  // Views of the weights of a direction, or of the gradients with respect to
  // them. The tensors are [4H, .], [8H, .] or [2, 4H, .]. Null stays null.
  template <class T>
  RnnWeights<T> Weights(int64_t direction, T* input, T* recurrent, T* bias,
                        T* peephole) const {
    const int64_t cell = problem_.cell, begin = direction * problem_.gates();
    RnnWeights<T> weights;
    if (input) {
      weights.input =
          ByUnit(input + begin * problem_.input, problem_.input, cell);
    }
    if (recurrent) {
      weights.recurrent = ByUnit(recurrent + begin * cell, cell, cell);
    }
    weights.input_bias = Offset(bias, begin);
    for (int gate = 0; peephole && gate < kMaxPreActivations; ++gate) {
      weights.peephole[gate] = peephole + begin + Block(gate) * cell;
    }
    return weights;
  }

  // The first column of the source that a direction reads.
  int64_t SourceColumn(int64_t direction) const {
    return problem_.has_input_weight ? 0 : direction * problem_.gates();
  }

  // A direction's columns of the mask, which broadcasts to [N, D*H].
  template <class T>
  Multipliers<T> Mask(int64_t direction, const Tensors<T>& t) const {
    if (!t.mask) return {};
    const auto stride = [&](int from_last, int64_t step) {
      const int k = t.mask_shape.rank() - from_last;
      return k < 0 || t.mask_shape.dim(k) == 1 ? 0 : step;
    };
    const int64_t column = stride(1, 1);
    const int64_t row = stride(2, column == 0 ? 1 : problem_.width());
    return {t.mask + direction * problem_.cell * column, 0, row, column};
  }

  int Block(int gate) const { return descriptor_.gate_order.block[gate]; }

  const Descriptor& descriptor_;
  const Problem& problem_;
};

}  // namespace tf_lstm_ops::mpsgraph

#endif  // TF_LSTM_OPS_DIALECTS_MPSGRAPH_PROBLEM_H_
