#include "dialects/cudnn_rnn/problem.h"

#include <limits>
#include <string>

namespace tf_lstm_ops::cudnn_rnn {
namespace {

CellKind ParseCell(const std::string& rnn_mode) {
  if (rnn_mode == "gru") return CellKind::kGru;
  if (rnn_mode == "rnn_tanh") return CellKind::kTanh;
  if (rnn_mode == "rnn_relu") return CellKind::kRelu;
  return CellKind::kLstm;
}

InputMode ParseInputMode(const std::string& input_mode) {
  if (input_mode == "skip_input") return InputMode::kSkip;
  if (input_mode == "auto_select") return InputMode::kAuto;
  return InputMode::kLinear;
}

struct InputShapes {
  Shape input, input_h, input_c, params;
  Shape lengths;  // unknown rank: the op has none
};

// Axes of T and B in a sequence, and of L*D and B in a state.
struct Axes {
  int time, sequence_batch, pseudo_layers, state_batch;
};

Axes AxesOf(bool time_major) {
  return time_major ? Axes{0, 1, 0, 1} : Axes{1, 0, 1, 0};
}

// Checks that the arguments have layers, units and input columns. No time steps
// and no rows of the batch are allowed.
Status CheckNotEmpty(const InputShapes& shapes, const Axes& axes) {
  if (shapes.input.dim(2) == 0) {
    return InvalidArgument("input is empty, has shape: ",
                           shapes.input.ToString());
  }
  for (const int k : {axes.pseudo_layers, 2}) {
    if (shapes.input_h.dim(k) == 0) {
      return InvalidArgument("input_h is empty, has shape: ",
                             shapes.input_h.ToString());
    }
  }
  return Status();
}

// Checks the sizes of the states and sets num_units.
Status CheckStates(const Attributes& attributes, const InputShapes& shapes,
                   int64_t* num_units) {
  const Shape &h = shapes.input_h, &c = shapes.input_c;
  *num_units = h.dim(2);
  if (attributes.cell != CellKind::kLstm) return Status();
  if (c.rank() != 3) {
    return InvalidArgument("input_c must be rank 3 but is rank ", c.rank());
  }
  if (attributes.num_proj == 0) {
    if (h == c) return Status();
    return InvalidArgument(
        "input_h and input_c must have the same shape w/o projection: ",
        h.ToString(), " ", c.ToString());
  }
  *num_units = c.dim(2);
  if (h.dim(2) != attributes.num_proj || h.dim(2) > c.dim(2) ||
      h.dim(0) != c.dim(0) || h.dim(1) != c.dim(1)) {
    return InvalidArgument(
        "Invalid input_h and input_c w/ projection size: ", attributes.num_proj,
        " ", h.ToString(), " ", c.ToString());
  }
  return Status();
}

// Checks that every product of sizes that is computed later fits into int64.
Status CheckOverflow(const MultiLayerRnn& problem) {
  const RnnModel& m = problem.model;
  constexpr int64_t kRows = 8, kBytes = sizeof(double);  // saved per step
  int64_t product = 0;
  for (const int64_t size : {problem.time, problem.batch, m.layers}) {
    if (size > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument(
          "input: time_length, batch_size and the number of layers must fit "
          "into int32: ",
          problem.time, ", ", problem.batch, ", ", m.layers);
    }
  }
  for (const int64_t width : {m.input_size, m.cell_size}) {
    if (!CheckedProduct({problem.time, problem.batch, m.pseudo_layers(), width,
                         kRows, kBytes},
                        &product)) {
      return InvalidArgument(
          "input: time_length * batch_size * layers * width overflows: ",
          problem.SequenceShape(m.input_size).ToString(), " with ",
          m.pseudo_layers(), " of width ", width);
    }
  }
  return Status();
}

Status ReadLengths(const int32_t* lengths, MultiLayerRnn* problem) {
  problem->lengths.assign(problem->batch, static_cast<int32_t>(problem->time));
  for (int64_t b = 0; lengths && b < problem->batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > problem->time) {
      return InvalidArgument("sequence_lengths[", b, "] must be between 0 and ",
                             problem->time, " but is ", lengths[b]);
    }
    problem->lengths[b] = lengths[b];
  }
  problem->valid_steps = 0;
  for (const int64_t length : problem->lengths) problem->valid_steps += length;
  return Status();
}

}  // namespace

Status Attributes::Init(const AttributeReader& attributes, bool has_num_proj,
                        bool has_time_major) {
  std::string rnn_mode, mode, direction;
  int64_t seed1 = 0, seed2 = 0;
  TF_LSTM_OPS_RETURN_IF_ERROR(attributes.GetAttr("rnn_mode", &rnn_mode));
  TF_LSTM_OPS_RETURN_IF_ERROR(attributes.GetAttr("input_mode", &mode));
  TF_LSTM_OPS_RETURN_IF_ERROR(attributes.GetAttr("direction", &direction));
  TF_LSTM_OPS_RETURN_IF_ERROR(attributes.GetAttr("dropout", &dropout));
  TF_LSTM_OPS_RETURN_IF_ERROR(attributes.GetAttr("seed", &seed1));
  TF_LSTM_OPS_RETURN_IF_ERROR(attributes.GetAttr("seed2", &seed2));
  if (has_num_proj) {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes.GetAttr("num_proj", &num_proj));
  }
  if (has_time_major) {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes.GetAttr("time_major", &time_major));
  }
  cell = ParseCell(rnn_mode);
  input_mode = ParseInputMode(mode);
  directions = direction == "bidirectional" ? 2 : 1;
  seed = static_cast<uint64_t>(seed1) << 32 | static_cast<uint64_t>(seed2);
  const bool is_probability = dropout >= 0 && dropout <= 1;  // false for NaN
  if (!is_probability) {
    return InvalidArgument("dropout must be between 0 and 1 but is ", dropout);
  }
  if (num_proj < 0) {
    return InvalidArgument("num_proj must not be negative but is ", num_proj);
  }
  return Status();
}

Status Attributes::MakeModel(int64_t layers, int64_t num_units,
                             int64_t input_size, RnnModel* model) const {
  const auto positive = [](const char* name, int64_t value) {
    if (value > 0) return Status();
    return InvalidArgument(name, " must be positive but is ", value);
  };
  TF_LSTM_OPS_RETURN_IF_ERROR(positive("num_layers", layers));
  TF_LSTM_OPS_RETURN_IF_ERROR(positive("num_units", num_units));
  TF_LSTM_OPS_RETURN_IF_ERROR(positive("input_size", input_size));
  if (num_proj > 0 && cell != CellKind::kLstm) {
    return InvalidArgument("num_proj must be 0 unless rnn_mode is lstm but is ",
                           num_proj);
  }
  if (num_proj > num_units) {
    return InvalidArgument("num_proj must be at most num_units: ", num_proj,
                           " vs. ", num_units);
  }
  if (input_mode == InputMode::kSkip && input_size != num_units) {
    return InvalidArgument(
        "input_mode skip_input needs input_size == num_units: ", input_size,
        " vs. ", num_units);
  }
  model->cell = cell;
  model->layers = layers;
  model->directions = directions;
  model->input_size = input_size;
  model->cell_size = num_units;
  model->hidden_size = num_proj > 0 ? num_proj : num_units;
  model->skip_input =
      input_mode != InputMode::kLinear && input_size == num_units;
  return Status();
}

Status RefuseStockGru(CellKind cell) {
  if (cell != CellKind::kGru) return Status();
  return InvalidArgument(
      "rnn_mode gru under TensorFlow's own name is ambiguous without CUDA: "
      "Keras' GRU has its gates in another order than cuDNN there. Use "
      "tf_lstm_ops.keras.GRU (tf_lstm_ops.keras.convert_model), "
      "keras.layers.GRU(use_cudnn=False) or tf_lstm_ops.raw_ops");
}

Status MakeProblem(const Attributes& attributes, const ShapeOf& shape_of,
                   const int32_t* lengths, MultiLayerRnn* problem) {
  const InputShapes shapes = {shape_of("input"), shape_of("input_h"),
                              shape_of("input_c"), shape_of("params"),
                              shape_of("sequence_lengths")};
  const Axes axes = AxesOf(attributes.time_major);
  problem->time_major = attributes.time_major;
  problem->time = shapes.input.dim(axes.time);
  problem->batch = shapes.input.dim(axes.sequence_batch);
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckNotEmpty(shapes, axes));
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckDim("input_h", shapes.input_h,
                                       axes.state_batch, "batch_size",
                                       problem->batch));
  int64_t num_units = 0;
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckStates(attributes, shapes, &num_units));
  const int64_t pseudo_layers = shapes.input_h.dim(axes.pseudo_layers);
  if (pseudo_layers % attributes.directions != 0) {
    return InvalidArgument("input_h.dim_size(", axes.pseudo_layers,
                           ") must be a multiple of ", attributes.directions,
                           ", the number of directions, but is ",
                           pseudo_layers);
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(
      attributes.MakeModel(pseudo_layers / attributes.directions, num_units,
                           shapes.input.dim(2), &problem->model));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      ParamsLayout::Make(problem->model, &problem->params));
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckOverflow(*problem));
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckDim("params", shapes.params, 0,
                                       "params size", problem->params.size()));
  if (shapes.lengths.rank_known()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckDim("sequence_lengths", shapes.lengths, 0,
                                         "batch_size", problem->batch));
  }
  return ReadLengths(lengths, problem);
}

Status CheckBackprop(const MultiLayerRnn& problem, const ShapeOf& shape_of) {
  const RnnModel& model = problem.model;
  const auto check = [&](const char* name, const Shape& want) {
    const Shape got = shape_of(name);
    if (got == want) return Status();
    return InvalidArgument("Invalid ", name, " shape: expected ",
                           want.ToString(), " but got ", got.ToString());
  };
  const Shape sequence = problem.SequenceShape(model.output_size());
  const Shape hidden = problem.StateShape(model.hidden_size);
  const Shape cell = problem.StateShape(model.cell_size);
  TF_LSTM_OPS_RETURN_IF_ERROR(check("output", sequence));
  TF_LSTM_OPS_RETURN_IF_ERROR(check("output_h", hidden));
  TF_LSTM_OPS_RETURN_IF_ERROR(check("output_backprop", sequence));
  TF_LSTM_OPS_RETURN_IF_ERROR(check("output_h_backprop", hidden));
  if (model.cell != CellKind::kLstm) return Status();
  TF_LSTM_OPS_RETURN_IF_ERROR(check("output_c", cell));
  return check("output_c_backprop", cell);
}

std::vector<Shape> ForwardShapes(const MultiLayerRnn& problem, bool is_training,
                                 int64_t reserve_size) {
  const RnnModel& model = problem.model;
  const Shape scalar = Shape::OfRank(0);
  return {problem.SequenceShape(model.output_size()),
          problem.StateShape(model.hidden_size),
          IsLstm(model.cell) ? problem.StateShape(model.cell_size) : scalar,
          is_training ? Shape({reserve_size}) : scalar};
}

Status CheckReserveSize(const Shape& reserve_space, int64_t want) {
  if (reserve_space.rank() == 1 && reserve_space.dim(0) == want) {
    return Status();
  }
  return InvalidArgument(
      "reserve_space must have ", want, " elements but has shape ",
      reserve_space.ToString(),
      "; it must come unchanged from a forward call of the same op on the same "
      "device with is_training=True and the same attributes and inputs");
}

Shape HostReservedShape(const OpVariant& variant, bool is_training) {
  const bool is_pair = variant.version == 2 && is_training;
  return is_pair ? Shape({2}) : Shape::OfRank(0);
}

}  // namespace tf_lstm_ops::cudnn_rnn
