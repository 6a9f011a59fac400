// ForwardArguments and BackwardArguments: the engine's arguments for a
// LayerForward or a LayerBackward. States and multipliers are made contiguous.
// Tensors that are already contiguous are not copied.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ENGINE_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ENGINE_ARGUMENTS_H_

#include <algorithm>
#include <cassert>
#include <memory>
#include <vector>

#include "backends/cpu/backward_engine.h"
#include "backends/cpu/forward_engine.h"
#include "backends/cpu/masked_steps.h"
#include "backends/cpu/memory/aligned_buffer.h"
#include "backends/cpu/plan/cost.h"
#include "backends/cpu/sizes.h"
#include "backends/cpu/team/thread_team.h"
#include "core/cell_shape.h"

namespace tf_lstm_ops::cpu {

// Makes strided states and multipliers contiguous. Copies live as long as this
// object. Throws std::bad_alloc.
template <class T>
class Contiguous {
 public:
  explicit Contiguous(int64_t batch) : batch_(batch) {}

  // Returns [B, width] to read. Null data reads as zeros.
  States<const T> Read(const States<const T>& from, int64_t width) {
    if (from.data && IsContiguous(from.stride, width)) {
      return {from.data, width};
    }
    T* rows = Allocate(batch_ * width);
    Copy(from, width, {rows, width});
    return {rows, width};
  }

  // Returns [B, width] to write. If `to` is null or not contiguous, the result
  // is a temporary array; the caller copies it to `to` by Copy.
  States<T> Write(const States<T>& to, int64_t width) {
    if (to.data && IsContiguous(to.stride, width)) return {to.data, width};
    return {Allocate(batch_ * width), width};
  }

  // Returns [gates, B, width] to read. Null stays null.
  Multipliers<T> Read(const Multipliers<T>& from, int gates, int64_t width) {
    const int64_t size = batch_ * width;
    const Multipliers<T> whole = {nullptr, size, width, 1};
    if (!from.data || (from.gate_stride == size && from.row_stride == width &&
                       from.column_stride == 1)) {
      return {from.data, size, width, 1};
    }
    T* all = Allocate(gates * size);
    for (int g = 0; g < gates; ++g) {
      for (int64_t b = 0; b < batch_; ++b) {
        for (int64_t k = 0; k < width; ++k) {
          all[whole.Index(g, b, k)] = from.data[from.Index(g, b, k)];
        }
      }
    }
    return {all, size, width, 1};
  }

  // Copies [B, width], to = from. Null `from` reads as zeros. Copies nothing
  // where `to` is null or the same memory.
  void Copy(const States<const T>& from, int64_t width,
            const States<T>& to) const {
    if (!to.data || to.data == from.data) return;
    for (int64_t b = 0; b < batch_; ++b) {
      T* row = to.data + b * to.stride;
      if (from.data) {
        const T* source = from.data + b * from.stride;
        std::copy(source, source + width, row);
      } else {
        std::fill(row, row + width, T(0));
      }
    }
  }

  // Returns uninitialised memory.
  T* Allocate(int64_t size) {
    buffers_.push_back(std::make_unique<AlignedBuffer>(size * sizeof(T)));
    return static_cast<T*>(buffers_.back()->data());
  }

 private:
  bool IsContiguous(int64_t stride, int64_t width) const {
    return stride == width || batch_ <= 1;
  }

  const int64_t batch_;
  std::vector<std::unique_ptr<AlignedBuffer>> buffers_;
};

// The blocks of all pre-activations. A layer-normalised cell has the products
// with h apart from those with x, in the same blocks.
inline GateOrder EngineOrder(const RnnConfig& config) {
  return WithCell<NoMath>(config.cell, [&](auto of) {
    using Cell = typename decltype(of)::Cell;
    GateOrder order = config.gate_order;
    if constexpr (Cell::kReducesRows) {
      for (int k = 0; k < Cell::kRecurrentPreActivations; ++k) {
        order.block[Cell::kFirstRecurrent + k] =
            config.gate_order.block[Cell::Plain::kFirstRecurrent + k];
      }
    }
    return order;
  });
}

// Makes the inputs that both passes share contiguous, and sets the order of the
// pre-activations.
template <class T>
void ReadInputs(Contiguous<T>* contiguous, LayerDirection<T>* engine) {
  engine->config.gate_order = EngineOrder(engine->config);
  const RnnConfig& config = engine->config;
  const int gates = GateCount(config.cell);
  engine->h0 = contiguous->Read(engine->h0, config.hidden_size);
  if (IsLstm(config.cell)) {
    engine->c0 = contiguous->Read(engine->c0, config.cell_size);
  }
  engine->input_dropout =
      contiguous->Read(engine->input_dropout, gates, config.input_size);
  engine->recurrent_dropout =
      contiguous->Read(engine->recurrent_dropout, gates, config.hidden_size);
}

// `layer` and `valid` must outlive the object. Throws std::bad_alloc.
template <class T>
class ForwardArguments {
 public:
  ForwardArguments(const LayerForward<T>& layer, const PackedSequence& valid)
      : layer_(layer), contiguous_(valid.batch) {
    const RnnConfig& config = layer.config;
    static_cast<LayerForward<T>&>(engine_) = layer;
    engine_.valid = &valid;
    ReadInputs(&contiguous_, &engine_);
    if (layer.final_c.data) {
      engine_.final_c = contiguous_.Write(layer.final_c, config.cell_size);
    }
  }

  const EngineForward<T>& engine() const { return engine_; }

  // Writes the final states and the masked steps. Call it after the engine has
  // run.
  void Finish() const {
    if (layer_.final_c.data) {
      contiguous_.Copy({engine_.final_c.data, engine_.final_c.stride},
                       layer_.config.cell_size, layer_.final_c);
    }
    if (layer_.final_h.data) WriteFinalH();
    FillMaskedSteps(layer_, *engine_.valid);
  }

 private:
  void WriteFinalH() const {
    const int64_t hidden = layer_.config.hidden_size;
    const PackedSequence& valid = *engine_.valid;
    for (int64_t b = 0; b < valid.batch; ++b) {
      const int64_t last = valid.Last(b);
      const T* from = last < 0
                          ? engine_.h0.data + b * hidden
                          : layer_.h + valid.At(last).output * layer_.h_stride;
      std::copy(from, from + hidden,
                layer_.final_h.data + b * layer_.final_h.stride);
    }
  }

  const LayerForward<T>& layer_;
  Contiguous<T> contiguous_;
  EngineForward<T> engine_;
};

// `layer` and `valid` must outlive the object. Throws std::bad_alloc.
template <class T>
class BackwardArguments {
 public:
  BackwardArguments(const LayerBackward<T>& layer, const PackedSequence& valid)
      : layer_(layer), contiguous_(valid.batch) {
    // Without rows there may be no saved activations to recognise a step by.
    assert(layer.z_grad == nullptr || valid.size() == 0);
    const int64_t hidden = layer.config.hidden_size;
    static_cast<LayerBackward<T>&>(engine_) = layer;
    engine_.z_grad = nullptr;
    engine_.valid = &valid;
    ReadInputs(&contiguous_, &engine_);
    if (AddsXGrad()) {
      // Without padding there are fewer rows.
      engine_.x_grad =
          contiguous_.Allocate(layer.sequence.rows() * layer.x_stride);
    }
    engine_.wants_h0_grad = layer.h0_grad.data != nullptr;
    engine_.h0_grad = contiguous_.Write(layer.h0_grad, hidden);
    contiguous_.Copy(layer.final_h_grad, hidden, engine_.h0_grad);
    if (!IsLstm(layer.config.cell)) return;
    const int64_t cell = layer.config.cell_size;
    engine_.c0_grad = contiguous_.Write(layer.c0_grad, cell);
    contiguous_.Copy(layer.final_c_grad, cell, engine_.c0_grad);
  }

  const EngineBackward<T>& engine() const { return engine_; }

  // Writes the gradients with respect to the initial states, and adds dx to
  // that of the pass that writes it. Call it after the engine has run.
  void Finish(int threads) const {
    if (AddsXGrad()) AddXGrad(threads);
    const auto copy = [this](const States<T>& from, int64_t width,
                             const States<T>& to) {
      contiguous_.Copy({from.data, from.stride}, width, to);
    };
    copy(engine_.h0_grad, layer_.config.hidden_size, layer_.h0_grad);
    copy(engine_.c0_grad, layer_.config.cell_size, layer_.c0_grad);
  }

 private:
  static constexpr int64_t kRowsOfItem = 64;  // to occupy several threads

  bool AddsXGrad() const { return layer_.adds_to_x_grad && layer_.x_grad; }

  void AddXGrad(int threads) const {
    const int64_t items = CeilDiv(engine_.valid->size(), kRowsOfItem);
    const Rates rates;
    const auto bytes = static_cast<double>(
        engine_.valid->size() * layer_.config.input_size * sizeof(T));
    const double time = 3 * StreamTime(rates, TheCaches(), bytes);
    RunItems(items, ThreadsOfPhase(rates, time, items, threads),
             [this](int64_t item, int) { AddRows(item); });
  }
  // Adds some rows of dx. All gates read the same columns of x.
  void AddRows(int64_t item) const {
    const PackedSequence& valid = *engine_.valid;
    const int64_t end = Min((item + 1) * kRowsOfItem, valid.size());
    for (int64_t e = item * kRowsOfItem; e < end; ++e) {
      const int64_t at = valid.At(e).input * layer_.x_stride;
      for (int64_t i = 0; i < layer_.config.input_size; ++i) {
        layer_.x_grad[at + i] += engine_.x_grad[at + i];
      }
    }
  }

  const LayerBackward<T>& layer_;
  Contiguous<T> contiguous_;
  EngineBackward<T> engine_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ENGINE_ARGUMENTS_H_
