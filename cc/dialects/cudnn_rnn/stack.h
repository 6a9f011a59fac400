// Stack: the layers of a model, run one after the other, and their directions
// on a backend that knows single layers.
//
// Between layers only the steps within the lengths exist: row e of an inner
// output [V, D*P] is that of the e-th entry of the forward schedule. The first
// input and the last output lie in the op's tensors, padding included.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_STACK_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_STACK_H_

#include <algorithm>
#include <vector>

#include "backends/cpu/rnn.h"
#include "backends/cpu/staging.h"
#include "dialects/cudnn_rnn/dropout.h"
#include "dialects/cudnn_rnn/model.h"
#include "dialects/cudnn_rnn/reserve.h"
#include "dialects/cudnn_rnn/tensors.h"

namespace tf_lstm_ops::cudnn_rnn {

template <class T>
class Stack {
 public:
  using C = typename cpu::Staging<T>::Compute;

  // `mask` null: no dropout. All arguments must outlive this object.
  Stack(const Problem& problem, const Reserve& reserve, const DropoutMask* mask,
        int threads, cpu::Staging<T>* staging)
      : problem_(problem),
        model_(problem.model),
        reserve_(reserve),
        mask_(mask),
        threads_(threads),
        staging_(staging) {
    for (int64_t d = 0; d < model_.directions; ++d) {
      schedules_.push_back(Schedule::Lengths(problem.batch, problem.time,
                                             problem.lengths.data(),
                                             problem.time_major, d == 1));
    }
    compact_row_.resize(problem.time * problem.batch);
    for (int64_t e = 0; e < problem.valid_steps; ++e) {
      compact_row_[schedules_[0].input_row[e]] = e;
    }
  }

  void Forward(const ForwardTensors<C>& t) {
    ClearPadding(t.output, model_.output_size());
    const C* x = t.input;
    for (int64_t layer = 0; layer < model_.layers; ++layer) {
      C* h = Last(layer) ? t.output : InnerOutput(layer, t.reserve);
      ForwardLayer(t, layer, x, h);
      x = Dropped(layer, h);
    }
  }

  void Backward(const BackwardTensors<C>& t) {
    ClearPadding(t.input_backprop, model_.input_size);
    const C* h_bar = t.output_backprop;
    for (int64_t layer = model_.layers - 1; layer >= 0; --layer) {
      C* dx = layer == 0 ? t.input_backprop : Scratch(model_.output_size());
      const C* x =
          layer == 0 ? t.input : Dropped(layer - 1, Inner(layer - 1, t));
      const C* h = Last(layer) ? t.output : Inner(layer, t);
      BackwardLayer(t, layer, x, h, h_bar, dx);
      h_bar = layer == 0 ? nullptr : Dropped(layer - 1, dx);
    }
  }

 private:
  bool Last(int64_t layer) const { return layer == model_.layers - 1; }
  int64_t PseudoLayer(int64_t layer, int64_t direction) const {
    return layer * model_.directions + direction;
  }

  C* Scratch(int64_t width) {
    return staging_->Scratch(problem_.valid_steps * width);
  }
  C* InnerOutput(int64_t layer, C* reserve) {
    return reserve ? reserve + reserve_.LayerOutput(layer)
                   : Scratch(model_.output_size());
  }
  const C* Inner(int64_t layer, const BackwardTensors<C>& t) const {
    return t.reserve + reserve_.LayerOutput(layer);
  }

  // Padding of the op's own tensors is zero.
  void ClearPadding(C* rows, int64_t width) const {
    const int64_t count = problem_.time * problem_.batch;
    if (problem_.valid_steps < count)
      std::fill(rows, rows + count * width, C(0));
  }

  // Rows [V, D*P] of a layer as the next one sees them; gradients likewise.
  const C* Dropped(int64_t layer, const C* rows) {
    if (mask_ == nullptr || Last(layer)) return rows;
    const int64_t width = model_.output_size();
    C* dropped = Scratch(width);
    for (int64_t e = 0; e < problem_.valid_steps; ++e) {
      mask_->Apply(layer, TimeMajorRow(e), rows + e * width,
                   dropped + e * width);
    }
    return dropped;
  }

  int64_t TimeMajorRow(int64_t e) const {
    const int64_t row = schedules_[0].input_row[e];
    if (problem_.time_major) return row;
    return row % problem_.time * problem_.batch + row / problem_.time;
  }

  // Of each direction, with the rows of a layer's input and output.
  std::vector<Schedule> LayerSchedules(int64_t layer) const {
    std::vector<Schedule> schedules = schedules_;
    const auto compact = [this](std::vector<int64_t>* rows) {
      for (int64_t& row : *rows) row = compact_row_[row];
    };
    for (Schedule& schedule : schedules) {
      if (layer > 0) compact(&schedule.input_row);
      if (!Last(layer)) compact(&schedule.output_row);
    }
    return schedules;
  }

  // A pseudo-layer's rows [B, width] of the op's states.
  C* GatherState(const C* states, int64_t pseudo_layer, int64_t width) {
    C* rows = staging_->Scratch(problem_.batch * width);
    for (int64_t b = 0; b < problem_.batch; ++b) {
      const C* from = states + problem_.StateRow(pseudo_layer, b) * width;
      std::copy(from, from + width, rows + b * width);
    }
    return rows;
  }
  void ScatterState(const C* rows, int64_t pseudo_layer, int64_t width,
                    C* states) const {
    for (int64_t b = 0; b < problem_.batch; ++b) {
      const C* from = rows + b * width;
      std::copy(from, from + width,
                states + problem_.StateRow(pseudo_layer, b) * width);
    }
  }

  // What forward and backward share.
  template <class Args, class Tensors>
  void SetInputs(const Tensors& t, int64_t layer, int64_t direction,
                 const Schedule& schedule, const C* x, Args* args) {
    const int64_t p = PseudoLayer(layer, direction);
    args->config = ConfigOf(model_, layer);
    args->config.bfloat16 = std::is_same_v<T, BFloat16>;
    args->schedule = &schedule;
    args->weights = WeightsOf(problem_, layer, direction, t.params);
    args->x = x;
    args->x_stride = args->config.input_size;
    args->h0 = GatherState(t.input_h, p, model_.hidden_size);
    if (model_.cell == CellKind::kLstm) {
      args->c0 = GatherState(t.input_c, p, model_.cell_size);
    }
    args->h_stride = model_.output_size();
  }

  // x [V, I], h [V, D*P].
  void ForwardLayer(const ForwardTensors<C>& t, int64_t layer, const C* x,
                    C* h) {
    const std::vector<Schedule> schedules = LayerSchedules(layer);
    std::vector<RnnForward<C>> calls(schedules.size());
    for (int64_t d = 0; d < model_.directions; ++d) {
      const int64_t p = PseudoLayer(layer, d);
      RnnForward<C>& args = calls[d];
      SetInputs(t, layer, d, schedules[d], x, &args);
      args.h = h + d * model_.hidden_size;
      if (t.reserve) {
        args.steps = PackedSteps(t.reserve + reserve_.Steps(p), model_.cell,
                                 model_.cell_size);
      }
      if (model_.cell == CellKind::kLstm) {
        args.final_c = staging_->Scratch(problem_.batch * model_.cell_size);
      }
    }
    cpu::ForwardAll(calls, threads_);
    for (int64_t d = 0; d < model_.directions; ++d) {
      PutFinalStates(t, PseudoLayer(layer, d), calls[d]);
    }
  }

  void PutFinalStates(const ForwardTensors<C>& t, int64_t pseudo_layer,
                      const RnnForward<C>& args) const {
    const int64_t hidden = model_.hidden_size;
    for (int64_t b = 0; b < problem_.batch; ++b) {
      const int64_t last = args.schedule->last[b];
      const C* from =
          last < 0 ? args.h0 + b * hidden
                   : args.h + args.schedule->output_row[last] * args.h_stride;
      std::copy(from, from + hidden,
                t.output_h + problem_.StateRow(pseudo_layer, b) * hidden);
    }
    if (args.final_c) {
      ScatterState(args.final_c, pseudo_layer, model_.cell_size, t.output_c);
    }
  }

  // x, dx [V, I]; h, h_bar [V, D*P].
  void BackwardLayer(const BackwardTensors<C>& t, int64_t layer, const C* x,
                     const C* h, const C* h_bar, C* dx) {
    const std::vector<Schedule> schedules = LayerSchedules(layer);
    std::vector<RnnBackward<C>> calls(schedules.size());
    for (int64_t d = 0; d < model_.directions; ++d) {
      const int64_t p = PseudoLayer(layer, d);
      RnnBackward<C>& args = calls[d];
      SetInputs(t, layer, d, schedules[d], x, &args);
      args.h = h + d * model_.hidden_size;
      args.h_bar = h_bar + d * model_.hidden_size;
      args.steps = PackedSteps(t.reserve + reserve_.Steps(p), model_.cell,
                               model_.cell_size);
      args.gradients = WeightsOf(problem_, layer, d, t.params_backprop);
      args.dx = dx;
      args.adds_to_dx = d > 0;
      args.dh = GatherState(t.output_h_backprop, p, model_.hidden_size);
      if (model_.cell == CellKind::kLstm) {
        args.dc = GatherState(t.output_c_backprop, p, model_.cell_size);
      }
    }
    cpu::BackwardAll(calls, threads_);
    for (int64_t d = 0; d < model_.directions; ++d) {
      const int64_t p = PseudoLayer(layer, d);
      ScatterState(calls[d].dh, p, model_.hidden_size, t.input_h_backprop);
      if (!calls[d].dc) continue;
      ScatterState(calls[d].dc, p, model_.cell_size, t.input_c_backprop);
    }
  }

  const Problem& problem_;
  const RnnModel& model_;
  const Reserve& reserve_;
  const DropoutMask* mask_;
  const int threads_;
  cpu::Staging<T>* staging_;
  std::vector<Schedule> schedules_;   // of each direction, rows of the op's own
  std::vector<int64_t> compact_row_;  // of each row of the op's own sequences
};

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_STACK_H_
