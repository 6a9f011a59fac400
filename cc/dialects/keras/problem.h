// The ops behind tf_lstm_ops.keras: op variants, attributes, checks, and the
// mapping from an op's tensors to a layer direction. All devices use it.
#ifndef TF_LSTM_OPS_DIALECTS_KERAS_PROBLEM_H_
#define TF_LSTM_OPS_DIALECTS_KERAS_PROBLEM_H_

#include <string>
#include <utility>
#include <vector>

#include "core/attribute_reader.h"
#include "core/keras_layer.h"
#include "core/status.h"
#include "dialects/common/shape_of.h"
#include "dialects/keras/signatures.h"

namespace tf_lstm_ops::keras {

// The op variants: LSTM, the GRUs, the layer-normalised ones, and the plain
// RNN.
struct OpVariant {
  CellKind cell;  // with the default attributes
  const Signature& (*forward)();
  const Signature& (*gradient)();
  bool has_layer_norm = false;
  int directions = 1;  // 2: forwards and backwards

  constexpr bool is_lstm() const { return IsLstm(cell); }
  constexpr int gates() const { return GateCount(cell); }
  // Whether the recurrent product has a bias of its own.
  constexpr bool has_recurrent_bias() const {
    return cell == CellKind::kGru || cell == CellKind::kLayerNormGru;
  }
};

inline constexpr OpVariant kLstm = {CellKind::kLstm, &KerasLSTM,
                                    &KerasLSTMGrad};
inline constexpr OpVariant kGru = {CellKind::kGru, &KerasGRU, &KerasGRUGrad};
inline constexpr OpVariant kResetBeforeGru = {
    CellKind::kResetBeforeGru, &KerasResetBeforeGRU, &KerasResetBeforeGRUGrad};
inline constexpr OpVariant kLayerNormLstm = {
    CellKind::kLayerNormLstm, &KerasLayerNormLSTM, &KerasLayerNormLSTMGrad,
    /*has_layer_norm=*/true};
inline constexpr OpVariant kLayerNormGru = {
    CellKind::kLayerNormGru, &KerasLayerNormGRU, &KerasLayerNormGRUGrad,
    /*has_layer_norm=*/true};
inline constexpr OpVariant kSimpleRnn = {CellKind::kTanh, &KerasSimpleRNN,
                                         &KerasSimpleRNNGrad};

template <const OpVariant& kLayer>
constexpr OpVariant BidirectionalOf() {
  return {kLayer.cell, &Bidirectional<kLayer.forward>,
          &BidirectionalGrad<kLayer.forward, kLayer.gradient>,
          kLayer.has_layer_norm, 2};
}
template <const OpVariant& kLayer>
inline constexpr OpVariant kBidirectional = BidirectionalOf<kLayer>();

// The name of an input of a direction. The first one has the names of the
// layer's op.
inline std::string NameIn(int direction, const char* name) {
  return direction == 0 ? name : BackwardName(name);
}

// The size of h. Only KerasLSTM has it apart from the number of units.
inline int64_t HiddenSize(const Sizes& sizes) {
  return sizes.hidden == kUnknown ? sizes.cell : sizes.hidden;
}

// The attributes of an op. Attributes that it does not have keep the defaults.
struct Attributes : KerasLayer {
  // Reads the attributes. Errors: those of GetAttr; InvalidArgument where
  // epsilon is not positive.
  Status Init(const AttributeReader& reader, const OpVariant& variant) {
    cell = variant.cell;
    if (variant.has_layer_norm) {
      TF_LSTM_OPS_RETURN_IF_ERROR(InitLayerNorm(reader, variant));
    } else if (variant.cell == CellKind::kTanh) {
      TF_LSTM_OPS_RETURN_IF_ERROR(InitSimpleRnn(reader));
    } else {
      TF_LSTM_OPS_RETURN_IF_ERROR(InitActivations(reader));
      if (variant.is_lstm()) {
        TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("cell_clip", &cell_clip));
        TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("proj_clip", &proj_clip));
      }
    }
    in_order_of_computation = variant.directions == 1;
    if (variant.directions == 1) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          reader.GetAttr("go_backwards", &go_backwards));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        reader.GetAttr("zero_output_for_mask", &zero_output_for_mask));
    return reader.GetAttr("return_sequences", &return_sequences);
  }
  Status InitActivations(const AttributeReader& reader) {
    std::string state, gate;
    TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("activation", &state));
    TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("recurrent_activation", &gate));
    options.activations =
        KerasActivations(ActivationNamed(state), ActivationNamed(gate));
    return Status();
  }
  Status InitSimpleRnn(const AttributeReader& reader) {
    std::string activation;
    TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("activation", &activation));
    cell = SimpleRnnCell(ActivationNamed(activation));
    return Status();
  }
  Status InitLayerNorm(const AttributeReader& reader,
                       const OpVariant& variant) {
    float epsilon = 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("epsilon", &epsilon));
    if (!(epsilon > 0)) {
      return InvalidArgument("epsilon must be positive but is ", epsilon);
    }
    options.layer_norm.epsilon = epsilon;
    if (!variant.is_lstm()) return Status();
    return reader.GetAttr("carries_normalized_state",
                          &options.layer_norm.carries_normalized_state);
  }
  int64_t OutputSteps(const Sizes& sizes) const {
    return return_sequences ? sizes.time : 1;
  }
};

// Returns the shapes of a forward op's outputs, in order. `reserve_size` is in
// elements, 0 in inference.
inline std::vector<Shape> ForwardShapes(const OpVariant& variant,
                                        const Attributes& attributes,
                                        const Sizes& sizes,
                                        int64_t reserve_size) {
  const int64_t hidden = HiddenSize(sizes);
  std::vector<Shape> shapes = {
      Shape({sizes.batch, attributes.OutputSteps(sizes),
             variant.directions * hidden})};
  for (int d = 0; d < variant.directions; ++d) {
    shapes.push_back(Shape({sizes.batch, hidden}));
    if (variant.is_lstm()) shapes.push_back(Shape({sizes.batch, sizes.cell}));
  }
  shapes.push_back(Shape({reserve_size}));
  return shapes;
}

// Checks for each direction that h is smaller than the cell state with a
// projection, and of the same size and not clipped without. Error:
// InvalidArgument.
inline Status CheckProjection(const OpVariant& variant,
                              const Attributes& attributes, const Sizes& sizes,
                              const ShapeOf& shape_of) {
  const int64_t cell = sizes.cell, hidden = HiddenSize(sizes);
  for (int d = 0; d < variant.directions; ++d) {
    const std::string name = NameIn(d, "projection");
    const bool projects = shape_of(name.c_str()).rank_known();
    if (!projects && hidden != cell) {
      return InvalidArgument(NameIn(d, "initial_h"),
                             ".dim_size(1) != cell_size: ", hidden, " vs. ",
                             cell, "; the ", name, " is absent");
    }
    if (!projects && attributes.proj_clip > 0) {
      return InvalidArgument("proj_clip is ", attributes.proj_clip,
                             " but must be 0 where the ", name, " is absent");
    }
    if (projects && (hidden <= 0 || hidden >= cell)) {
      return InvalidArgument(name, ".dim_size(1) must be positive and below ",
                             cell, " but is ", hidden);
    }
  }
  return Status();
}

// Checks the number of time steps of a gradient op's inputs output and
// output_grad. Error: InvalidArgument.
inline Status CheckOutputs(const Attributes& attributes, const Sizes& sizes,
                           const ShapeOf& shape_of) {
  for (const char* name : {"output", "output_grad"}) {
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckDim(name, shape_of(name), 1, "time_length",
                                         attributes.OutputSteps(sizes)));
  }
  return Status();
}

// Checks that a gradient op's reserve has `want` elements. Error:
// InvalidArgument.
inline Status CheckReserve(const ShapeOf& shape_of, int64_t want) {
  const int64_t got = shape_of("reserve").dim(0);
  if (got == want) return Status();
  return InvalidArgument("reserve.dim_size(0) != ", want, ": ", got, " vs. ",
                         want,
                         "; it must come from a forward call with "
                         "training=True and the same arguments");
}

// The reserve: saved activations [rows, SavedCount(cell), H], then h of all
// steps, [B * T, P], unless the op's output has it, then h before its clip
// [rows, P] with proj_clip. `rows` is the number of
// valid steps where the host knows the mask, else B * T. Each device has its
// own order of rows. Offsets and sizes are in elements.
struct ReserveLayout {
  int64_t activations_size;
  int64_t h_size;
  int64_t unclipped_size;

  ReserveLayout(int64_t rows, const Sizes& sizes, CellKind cell,
                const Attributes& attributes)
      : activations_size(rows * SavedCount(cell) * sizes.cell),
        h_size(attributes.return_sequences
                   ? 0
                   : sizes.batch * sizes.time * HiddenSize(sizes)),
        unclipped_size(attributes.proj_clip > 0 ? rows * HiddenSize(sizes)
                                                : 0) {}

  int64_t h_offset() const { return activations_size; }
  int64_t unclipped_offset() const { return activations_size + h_size; }
  int64_t size() const { return unclipped_offset() + unclipped_size; }
};

// Sets the bias, or its gradient. Two biases are the rows of one tensor
// [2, 3H].
template <class T>
void SetBiases(const OpVariant& variant, int64_t cell, T* bias,
               KerasWeights<T>* weights) {
  weights->bias = bias;
  if (variant.has_recurrent_bias() && bias) {
    weights->recurrent_bias = bias + variant.gates() * cell;
  }
}

// Fills a layer direction from the inputs of `call`, which has In, Mask and
// Weights as CpuCall has. x is that of the layer's op.
template <class T, class Call>
void SetLayer(const OpVariant& variant, const Attributes& attributes,
              const Sizes& sizes, int direction, const T* x, Call* call,
              LayerDirection<T>* layer) {
  const int64_t cell = sizes.cell, input = sizes.input;
  const int64_t hidden = HiddenSize(sizes);
  const int gates = variant.gates();
  const auto in = [&](const char* name) {
    return call->In(NameIn(direction, name).c_str());
  };
  const auto matrices = [&](const char* name, int64_t rows, int blocks,
                            int64_t columns) {
    return call->Weights(
        NameIn(direction, name).c_str(), 0, rows * blocks * columns,
        [&](const auto* data) { return ByInput(data, blocks, columns); });
  };
  layer->config = KerasConfig(attributes);
  layer->config.input_size = input;
  layer->config.cell_size = cell;
  layer->config.hidden_size = hidden;
  layer->sequence = KerasSequence(attributes, direction, sizes.batch,
                                  sizes.time, call->Mask("mask"));
  layer->x = x;
  layer->x_stride = input;
  layer->h0 = {in("initial_h"), hidden};
  layer->c0 = {in("initial_c"), cell};
  KerasWeights<const T> weights;
  SetBiases(variant, cell, in("bias"), &weights);
  weights.peephole = in("peephole");
  weights.input_gamma = in("input_gamma");
  weights.recurrent_gamma = in("recurrent_gamma");
  weights.state_gamma = in("state_gamma");
  weights.state_beta = in("state_beta");
  layer->weights = ViewsOf(weights, layer->config);
  // Matrices of bfloat16 have views of their own.
  layer->weights.input = matrices("kernel", input, gates, cell);
  layer->weights.recurrent = matrices("recurrent_kernel", hidden, gates, cell);
  if (layer->config.projected()) {
    layer->weights.projection = matrices("projection", cell, 1, hidden);
  }
  const auto dropout = [&](const char* name, int64_t width) -> Multipliers<T> {
    return {in(name), sizes.batch * width, width, 1};
  };
  layer->input_dropout = dropout("input_dropout", input);
  layer->recurrent_dropout = dropout("recurrent_dropout", hidden);
}

// Sets the gradients with respect to the inputs of a direction. out(n) is
// output n of the layer's gradient op.
template <class T, class Out>
void SetInputGrads(const OpVariant& variant, const Sizes& sizes, const Out& out,
                   LayerBackward<T>* layer) {
  const int64_t cell = sizes.cell, hidden = HiddenSize(sizes);
  size_t n = 0;
  layer->x_grad = out(n++);
  layer->h0_grad = {out(n++), hidden};
  if (variant.is_lstm()) layer->c0_grad = {out(n++), cell};
  KerasWeights<T> grads;
  grads.kernel = out(n++);
  grads.recurrent_kernel = out(n++);
  SetBiases(variant, cell, out(n++), &grads);
  if (variant.has_layer_norm) {
    grads.input_gamma = out(n++);
    grads.recurrent_gamma = out(n++);
    if (variant.is_lstm()) {
      grads.state_gamma = out(n++);
      grads.state_beta = out(n++);
    }
  } else if (variant.is_lstm()) {
    grads.peephole = out(n++);
    if (layer->config.projected()) grads.projection = out(n++);
  }
  layer->weights_grad = ViewsOf(grads, layer->config);
}

}  // namespace tf_lstm_ops::keras

#endif  // TF_LSTM_OPS_DIALECTS_KERAS_PROBLEM_H_
